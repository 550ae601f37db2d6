//! What is known about a write, as an outcome of the record.

use flatout_io::operations::Direction;
use flatout_io::{Caching, SizeClass, Work};
use flatout_measure::{
    Ceiling, Facts, Label, Outcome, Parameters, Status, Unit, blank, ceiling, size_text, warning,
};
use flatout_sys::{Nature, affinity, filesystem};

use super::{Data, Measured, Sync, Writer, limit};
use crate::fact;
use crate::file_trial::group_limit;
use crate::file_trial::measured::{self, ENGINE_REASON};

/// Id of the row of a write.
pub const ID: &str = "write/file";

impl Writer {
    /// The row of a write: the figure is the durable rate, or that to cache when nobody asked
    /// for durability or memory has none.
    pub fn outcome(&self, measured: &Measured) -> Outcome {
        let row = Label::new(ID, Unit::BytesPerSecond).of(self.parameters(measured));
        let mut outcome = Outcome { warnings: measured.warnings.clone(), ..blank(&row) };
        let mut facts = self.facts(measured);
        let elapsed_ns = measured.fsynced_ns.unwrap_or(measured.elapsed_ns);
        if measured.stopped {
            outcome.status = Status::Interrupted;
            facts.set(fact::ENDED_EARLY, self.how_far(measured));
        } else if let Some(rate) = measured.rate(elapsed_ns) {
            (outcome.median, outcome.n, outcome.samples) = (Some(rate), 1, vec![rate]);
        }
        if self.job.data == Data::Zero {
            let text = "zero bytes: thin storage and compression take them for free";
            outcome.warn(warning::ZERO_BLOCKS, text);
        }
        if outcome.median.is_some() {
            self.judge(measured, &mut outcome, &mut facts);
        }
        outcome.audit.extend(facts.to_json());
        outcome
    }

    /// What an interrupted write has done to its file, in one sentence.
    pub fn how_far(&self, measured: &Measured) -> String {
        let [bytes, length] = [measured.bytes, self.length_bytes].map(size_text);
        let path = self.target.path();
        if self.target.is_new() {
            return format!("interrupted after {bytes} of {length}; {path:?} was removed again");
        }
        format!(
            "interrupted: {} bytes of {length} of {path:?} were overwritten, the rest is as it was",
            measured.bytes
        )
    }

    /// The generator's share, and what bounds the figure.
    fn judge(&self, measured: &Measured, outcome: &mut Outcome, facts: &mut Facts) {
        let threads = self.choice.tuning.threads.min(affinity::allowed_cpu_count()).max(1);
        let harness_ns = measured.harness_ns.map(|ns| ns as f64 / f64::from(threads));
        let share = harness_ns.map(|ns| ns / measured.elapsed_ns.max(1) as f64);
        facts.set_known(fact::OVERHEAD_RATIO, share);
        let overhead = share.and_then(|share| limit::overhead(share, self.job.data));
        warning::add_all(&mut outcome.warnings, overhead);
        let has = |code| warning::has(&measured.warnings, code);
        // In memory nothing waits for a device, however it is asked; nor do direct writes that are buffered.
        let (caching, sync) = match has(warning::MEMORY_FILESYSTEM) {
            true => (Caching::Buffered, Sync::None),
            false if has(warning::DIRECT_CACHED) => (Caching::Buffered, self.job.sync),
            false => (self.target.caching(), self.job.sync),
        };
        let reaches_storage = caching == Caching::Direct || measured.fsynced_ns.is_some();
        let limits = if reaches_storage { &self.bottom.limits[..] } else { &[] };
        let group = group_limit::of(outcome, limits, facts, Direction::Write);
        let known = group.or_else(|| self.best_here(measured));
        let storage = match self.bottom.ground {
            Some(Nature::Network) => "network filesystem and its server",
            Some(Nature::Userspace) => "program that serves the filesystem",
            _ => "device",
        };
        let way = (caching, sync, storage);
        ceiling::apply(outcome, limit::ceiling(measured, harness_ns, way, known));
    }

    /// The bound of writes as tune makes them: large, of random bytes to a new file, until they are durable.
    fn best_here(&self, measured: &Measured) -> Option<Ceiling> {
        let class = (SizeClass::of(self.length_bytes), true);
        let is_alike = self.target.is_new()
            && self.job.data == Data::Random
            && class.0 == SizeClass::Large
            && measured.fsynced_ns.is_some();
        let identity = filesystem::identity(self.target.file()).unwrap_or_default();
        let profile = self.job.profile.as_ref();
        let best = profile.and_then(|known| known.find(Work::Write, class, ("", &identity)));
        is_alike.then(|| measured::earlier("write", best))
    }

    fn parameters(&self, measured: &Measured) -> Parameters {
        measured::parameters(&self.job.path, &measured.used(self.choice.tuning))
            .with("data", self.job.data.word())
            .with("sync", self.job.sync.word())
            .with("seed", self.job.seed)
    }

    fn facts(&self, measured: &Measured) -> Facts {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let Measured { elapsed_ns, fsynced_ns, harness_ns, .. } = *measured;
        let mut facts = measured
            .facts()
            .with(ENGINE_REASON, measured.engine_reason(&self.choice))
            // Whether the file was there before.
            .with("file_state", if self.target.is_new() { "new" } else { "overwritten" })
            // Time until the page cache, or the device under direct I/O, had all bytes.
            .with("time_to_cache_s", seconds(elapsed_ns));
        // The bytes by that time.
        facts.set_known("rate_to_cache", measured.rate(elapsed_ns));
        // Time until they were durable.
        facts.set_known("time_to_durable_s", fsynced_ns.map(seconds));
        // The bytes by that time.
        facts.set_known("rate_durable", fsynced_ns.and_then(|ns| measured.rate(ns)));
        // Time in which the data were made.
        facts.set_known("generate_s", harness_ns.map(seconds));
        facts
    }
}
