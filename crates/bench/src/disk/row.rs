//! A row of the disk area before it is measured.

use flatout_io::{Caching, Split, Tuning};
use flatout_measure::{Label, Parameters, Row as Measurable, Unit, Warning};

use super::pattern::{IoType, Pattern};
use crate::between_runs;
use crate::write::Sync;

/// A row before it is measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(super) test: Pattern,
    pub(super) tuning: Tuning,
    /// What is written over, where something is written.
    pub(super) extents: Extents,
    /// Operations per second of an open loop, all threads together; none: as fast as it goes.
    pub(super) rate_per_s: Option<f64>,
    /// Per cent of the operations of a mix that read.
    pub(super) read_percent: u8,
    /// When what is written must be durable: synced once after each trial, or each write.
    pub(super) sync: Sync,
    /// What was asked for and could not be had, known before the first trial.
    pub(super) warnings: Vec<Warning>,
}

flatout_sys::words! {
    /// What a write finds where it goes.
    pub(crate) enum Extents: word {
        /// Nothing: each trial has a new file, and the filesystem has to find it a place.
        Fresh = "fresh",
        /// Blocks that were written before.
        Written = "written",
    }
}

/// Which figure of a trial a row of the record shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    /// The trial's own: until the last request completed, or the first read of cold blocks.
    Own,
    /// A further one of a trial that writes: until the bytes were durable.
    Fsynced,
    /// A further one of cold blocks: the second read.
    Second,
}

impl Figure {
    /// What tells its row of the record from the trial's own.
    pub(super) fn parameters(self) -> Parameters {
        let parameters = Parameters::default();
        match self {
            Self::Own => parameters,
            Self::Fsynced => parameters.with("until", "durable"),
            Self::Second => parameters.with("pass", "second"),
        }
    }
}

impl Measurable for Row {
    fn label(&self) -> Label {
        let Tuning { engine, caching, block_bytes, depth, threads, split } = self.tuning;
        let io_type = self.test.io_type();
        let read_share = f64::from(self.read_percent) / 100.0;
        let (is_twice, is_hot) = (self.test == Pattern::ColdBlocks, self.test == Pattern::Reread);
        let unit = match self.test {
            test if test.is_latency() => Unit::Nanoseconds,
            _ if self.test.is_random() => Unit::OperationsPerSecond,
            _ => Unit::BytesPerSecond,
        };
        Label::new(self.test.id(), unit)
            .with("engine", engine.to_string())
            .with("caching", caching.to_string())
            .with("block_bytes", block_bytes)
            .with("threads", threads)
            .with("depth", depth)
            .with_known("split", self.is_split().then(|| split.to_string()))
            .with_known("extents", (io_type == IoType::Write).then(|| self.extents.word()))
            .with_known("read_share", (io_type == IoType::Mixed).then_some(read_share))
            .with_known("until", self.writes().then(|| self.until()))
            .with_known("sync", self.syncs_each().then(|| Sync::Each.word()))
            .with_known("rate_operations_per_s", self.rate_per_s)
            .with_known("pass", is_twice.then_some("first"))
            .with_known("cache_state", is_hot.then_some("hot"))
            .deviating_by(between_runs::DISK)
            .headline_if(self.is_headline())
    }
}

impl Row {
    /// Whether it is what disks are compared by: large blocks read and written anew, small ones anywhere.
    fn is_headline(&self) -> bool {
        match self.test {
            Pattern::SequentialRead => true,
            Pattern::SequentialWrite => {
                self.extents == Extents::Fresh && self.tuning.caching == Caching::Direct
            }
            Pattern::RandomRead | Pattern::RandomWrite => self.rate_per_s.is_none(),
            _ => false,
        }
    }

    /// Whether its threads share blocks out otherwise than as goes without saying; so rows of one sweep
    /// differ by threads alone.
    pub(super) fn is_split(&self) -> bool {
        let Tuning { threads, split, .. } = self.tuning;
        threads > 1 && !self.test.is_random() && split != Split::Contiguous
    }

    /// The further figure of its trials, where they have one.
    pub(super) fn further(&self) -> Figure {
        if self.writes() { Figure::Fsynced } else { Figure::Second }
    }

    /// How far the bytes of a write have come when its first figure is taken.
    fn until(&self) -> &'static str {
        match self.tuning.caching {
            _ if self.syncs_each() => "durable",
            Caching::Direct => "device",
            Caching::Buffered | Caching::Dontcache => "cache",
        }
    }

    /// Whether each write is durable before the next one of its thread and slot.
    pub(super) fn syncs_each(&self) -> bool {
        self.writes() && self.sync == Sync::Each
    }

    /// Whether what this figure counts may not be durable yet.
    pub(super) fn is_early(&self, figure: Figure) -> bool {
        self.writes() && figure == Figure::Own && !self.syncs_each()
    }

    /// Whether the figure counts bytes.
    pub(super) fn counts_bytes(&self) -> bool {
        self.unit() == Unit::BytesPerSecond
    }

    /// Whether a trial writes to the file or makes files.
    pub(super) fn writes(&self) -> bool {
        match self.test.io_type() {
            IoType::Read => false,
            IoType::Write | IoType::Copy => true,
            IoType::Mixed => self.read_percent < 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::plan::tests_rows;

    #[test]
    fn rows_that_write_say_until_when_and_have_a_durable_figure() {
        for row in tests_rows() {
            let until = row.parameters().value("until").is_some();
            assert_eq!((until, row.further() == Figure::Fsynced), (row.writes(), row.writes()));
        }
        assert_eq!(Figure::Fsynced.parameters().value("until"), Some(&"durable".into()));
    }

    #[test]
    fn writes_that_are_synced_each_say_so_and_are_durable_at_once() {
        for row in tests_rows() {
            let row = Row { sync: Sync::Each, ..row };
            let told = ["sync", "until"].map(|name| row.parameters().value(name).cloned());
            let expected = row.writes().then_some(["each", "durable"]);
            assert_eq!(told, expected.map_or([None, None], |words| words.map(|w| Some(w.into()))));
            assert!(!row.is_early(Figure::Own));
        }
    }
}
