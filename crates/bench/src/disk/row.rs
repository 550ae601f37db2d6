//! A row of the disk area before it is measured.

use flatout_io::{Caching, Engine, Split, Tuning};
use flatout_measure::record::Warning;
use flatout_measure::row::Unit;
use serde_json::{Map, Value, json};

use super::pattern::{Course, Test};

/// A row before it is measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) test: Test,
    pub(super) tuning: Tuning,
    /// What is written over, where something is written.
    pub(super) extents: Extents,
    /// Operations per second of an open loop, all threads together; none: as fast as it goes.
    pub(super) rate_per_s: Option<f64>,
    /// Per cent of the operations of a mix that read.
    pub(super) read_percent: u8,
    /// What was asked for and could not be had, known before the first trial.
    pub(super) doubts: Vec<Warning>,
}

/// What a write finds where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extents {
    /// Nothing: each trial has a new file, and the filesystem has to find it a place.
    Fresh,
    /// Blocks that were written before.
    Written,
}

impl Extents {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Written => "written",
        }
    }
}

impl Row {
    /// What tells the row from others with the same id.
    pub(super) fn parameters(&self) -> Map<String, Value> {
        let Tuning { engine, caching, block_bytes, depth, threads, split } = self.tuning;
        let mut map = Map::new();
        let mut insert = |key: &str, value: Value| map.insert(key.to_owned(), value);
        insert("engine", json!(engine));
        insert("caching", json!(caching));
        insert("block_bytes", json!(block_bytes));
        insert("threads", json!(threads));
        insert("depth", json!(depth));
        // Contiguous is what goes without saying; so rows of one sweep differ by threads alone.
        if threads > 1 && !self.test.is_random() && split != Split::Contiguous {
            insert("split", json!(split));
        }
        match self.test.course() {
            Course::Write => {
                insert("extents", json!(self.extents.word()));
                insert("until", json!(self.until()));
            }
            Course::Copy => {
                insert("until", json!(self.until()));
            }
            Course::Mixed => {
                insert("read_share", json!(f64::from(self.read_percent) / 100.0));
                if self.writes() {
                    insert("until", json!(self.until()));
                }
            }
            Course::Read => {}
        }
        if let Some(rate) = self.rate_per_s {
            insert("rate_operations_per_s", json!(rate));
        }
        match self.test {
            Test::ColdBlocks => insert("pass", json!("first")),
            Test::Reread => insert("cache_state", json!("hot")),
            _ => None,
        };
        map
    }

    /// What makes two rows the same in a record.
    pub(super) fn id_and_parameters(&self) -> (&'static str, Map<String, Value>) {
        (self.test.id(), self.parameters())
    }

    /// How far the bytes of a write have come when its first figure is taken.
    pub(super) fn until(&self) -> &'static str {
        match self.tuning.caching {
            Caching::Direct => "device",
            Caching::Buffered | Caching::Dontcache => "cache",
        }
    }

    /// Base unit of the figure.
    pub(super) fn unit(&self) -> Unit {
        match self.test {
            Test::Latency(_) => Unit::Nanoseconds,
            _ if self.test.is_random() => Unit::OperationsPerSecond,
            _ => Unit::BytesPerSecond,
        }
    }

    /// Whether the figure counts bytes.
    pub(super) fn counts_bytes(&self) -> bool {
        self.unit() == Unit::BytesPerSecond
    }

    /// Whether a trial writes to the file or makes files.
    pub(super) fn writes(&self) -> bool {
        match self.test.course() {
            Course::Read => false,
            Course::Write | Course::Copy => true,
            Course::Mixed => self.read_percent < 100,
        }
    }

    /// Requests in flight, all threads together.
    pub(super) fn requests_in_flight(&self) -> u32 {
        let Tuning { engine, depth, threads, .. } = self.tuning;
        if engine == Engine::Uring { depth * threads } else { threads }
    }
}
