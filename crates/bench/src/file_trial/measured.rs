//! What one read or write of a file did, in the words of the record.

use std::path::Path;

use flatout_io::{Engine, ProfileEntry, Tuning, escape};
use flatout_measure::{
    Ceiling, EVIDENCE, Evidence, Facts, Key, Parameters, Provenance, Sample, Warning, warning,
};

use crate::choice::Choice;
use crate::fact;

/// Why the engine is the one that was used.
pub(crate) const ENGINE_REASON: Key = Key::last("engine_reason");

/// What one read or write of a file did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Bytes moved, of all passes.
    pub bytes: u64,
    /// Blocks moved, of all passes.
    pub blocks: u64,
    /// The timed region, of all passes; of a write until the kernel had all bytes.
    pub elapsed_ns: u64,
    /// Until all bytes were durable; `None` when nobody asked, or they lie in memory.
    pub fsynced_ns: Option<u64>,
    /// Passes over the file; the last may be partial.
    pub passes: u64,
    /// xor32 of the first pass; none where that was cut off.
    pub xor32: Option<u32>,
    /// Whether a deadline or a signal ended it.
    pub stopped: bool,
    /// Of a write the same work without the writes, by one thread: generating data, and the harness
    /// itself.
    pub harness_ns: Option<u64>,
    /// Bytes of the range in the page cache before the first pass of a read.
    pub cached_before_bytes: Option<u64>,
    /// Bytes of the range in the page cache afterwards.
    pub cached_after_bytes: Option<u64>,
    /// What storage was asked to fetch and to take for this process meanwhile, and what the disks at
    /// the bottom moved; of a write until the sync was done.
    pub accounts: Facts,
    /// Engine that was really used; `None` for a stream.
    pub engine: Option<Engine>,
    /// What shows that a write went where its row has it.
    pub evidence: Option<Evidence>,
    /// Warnings that arose on the way.
    pub warnings: Vec<Warning>,
}

impl Measured {
    /// Notes a warning, once per code.
    pub(crate) fn warn(&mut self, code: &str, text: impl Into<String>) {
        warning::add(&mut self.warnings, Warning::new(code, text));
    }

    /// The bytes over a time, where there is a rate.
    pub(crate) fn rate(&self, elapsed_ns: u64) -> Option<f64> {
        (elapsed_ns > 0 && self.bytes > 0).then(|| self.bytes as f64 * 1e9 / elapsed_ns as f64)
    }

    /// The settings that were really used: what falls back has one request in flight.
    pub(crate) fn used(&self, chosen: Tuning) -> Tuning {
        match self.engine {
            Some(engine) if engine != chosen.engine => Tuning { engine, depth: 1, ..chosen },
            _ => chosen,
        }
    }

    /// Why the engine is the one that was used: the choice, what made it impossible, or what its first
    /// shares told.
    pub(crate) fn engine_reason(&self, choice: &Choice) -> String {
        let refused = |one: &&Warning| {
            [warning::URING_REFUSED, warning::MMAP_REFUSED].contains(&one.code.as_str())
        };
        match self.warnings.iter().find(refused) {
            Some(refusal) if self.engine != Some(choice.tuning.engine) => refusal.text.clone(),
            None if self.engine.is_some_and(|engine| engine != choice.tuning.engine) => {
                format!("{}, but read(2) brought its first shares faster", choice.engine_reason)
            }
            _ => choice.engine_reason.clone(),
        }
    }

    /// What is known of it besides its times.
    pub(crate) fn facts(&self) -> Facts {
        let facts = self.accounts.clone().with(fact::BYTES, self.bytes);
        facts
            // Blocks that were moved.
            .with(Key::sum("blocks"), self.blocks)
            .with_known(fact::CACHED_BEFORE_BYTES, self.cached_before_bytes)
            .with_known(fact::CACHED_AFTER_BYTES, self.cached_after_bytes)
            .with_known(EVIDENCE, self.evidence.clone())
    }

    /// What the sampler wants to know of it.
    pub fn sample(&self) -> Sample {
        Sample {
            amount: self.bytes as f64,
            elapsed_ns: self.elapsed_ns,
            facts: self.facts(),
            warnings: self.warnings.clone(),
            ..Sample::default()
        }
    }
}

/// The best that `flatout tune` measured of reads or writes like this one: the upper end of its interval,
/// since half of them are faster than the median.
pub(crate) fn earlier(work: &str, best: Option<&ProfileEntry>) -> Ceiling {
    let Some(entry) = best else {
        return Ceiling::unknown(format!("the best {work} here, which flatout tune measures"));
    };
    let high = entry.evidence.ci95.map_or(entry.limit_bytes_per_s, |[_, high]| high);
    let name = format!("the best {work} here, by flatout tune of {}", entry.day());
    Ceiling::known(name, Some(high), Provenance::Earlier)
}

/// What tells the row of a file that is read or written from others.
pub(crate) fn parameters(path: &Path, tuning: &Tuning) -> Parameters {
    Parameters::default()
        .with("file", escape(path.as_os_str()))
        .with("block_bytes", tuning.block_bytes)
        .with("threads", tuning.threads)
        .with("split", tuning.split.to_string())
        .with("engine", tuning.engine.to_string())
        .with("caching", tuning.caching.to_string())
        .with("depth", tuning.depth)
}
