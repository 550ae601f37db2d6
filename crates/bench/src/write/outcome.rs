//! What is known about a write, as an outcome of the record.

use flatout_io::Caching;
use flatout_measure::{Facts, Key, Outcome, Parameters, Status, Unit, ceiling, size_text, warning};
use flatout_sys::affinity;

use super::limit::Times;
use super::{Data, Measured, Sync, Writer};
use crate::fact;
use crate::file_trial::measured::{self, ENGINE_REASON};

/// Id of the row of a write.
pub const ID: &str = "write/file";
/// Whether the file was there before.
const FILE_STATE: Key = Key::last("file_state");
/// Time until the page cache, or the device under direct I/O, had all bytes.
const TIME_TO_CACHE_S: Key = Key::last("time_to_cache_s");
/// The bytes by that time.
const RATE_TO_CACHE: Key = Key::last("rate_to_cache");
/// Time until they were durable.
const TIME_TO_DURABLE_S: Key = Key::last("time_to_durable_s");
/// The bytes by that time.
const RATE_DURABLE: Key = Key::last("rate_durable");
/// Time in which the data were made.
const GENERATE_S: Key = Key::last("generate_s");

impl Writer {
    /// The row of a write: the figure is the durable rate, or that to cache when nobody asked
    /// for durability or memory has none.
    pub fn outcome(&self, measured: &Measured) -> Outcome {
        let mut outcome = Outcome {
            id: ID.to_owned(),
            parameters: self.parameters(measured).to_json(),
            unit: Unit::BytesPerSecond.name().to_owned(),
            warnings: measured.warnings.clone(),
            ..Outcome::default()
        };
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
        let times = Times {
            bytes: measured.bytes,
            harness_ns: measured.harness_ns.map(|ns| ns as f64 / f64::from(threads)),
            to_cache_ns: measured.elapsed_ns,
            to_durable_ns: measured.fsynced_ns,
        };
        facts.set_known(fact::OVERHEAD_RATIO, times.overhead_ratio());
        warning::add_all(&mut outcome.warnings, times.warning(self.job.data));
        // In memory nothing waits for a device, however it is asked.
        let way = match warning::has(&measured.warnings, warning::MEMORY_FILESYSTEM) {
            true => (Caching::Buffered, Sync::None),
            false => (self.target.caching(), self.job.sync),
        };
        ceiling::apply(outcome, times.ceiling(way.0, way.1));
    }

    fn parameters(&self, measured: &Measured) -> Parameters {
        let data = match self.job.data {
            Data::Random => "random",
            Data::Zero => "zero",
            Data::Pattern => "pattern",
        };
        let sync = match self.job.sync {
            Sync::None => "none",
            Sync::End => "end",
            Sync::Each => "each",
        };
        measured::parameters(&self.job.path, &measured.used(self.choice.tuning))
            .with("data", data)
            .with("sync", sync)
            .with("seed", self.job.seed)
    }

    fn facts(&self, measured: &Measured) -> Facts {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let Measured { elapsed_ns, fsynced_ns, harness_ns, .. } = *measured;
        let mut facts = measured
            .facts()
            .with(ENGINE_REASON, measured.engine_reason(&self.choice))
            .with(FILE_STATE, if self.target.is_new() { "new" } else { "overwritten" })
            .with(TIME_TO_CACHE_S, seconds(elapsed_ns));
        facts.set_known(RATE_TO_CACHE, measured.rate(elapsed_ns));
        facts.set_known(TIME_TO_DURABLE_S, fsynced_ns.map(seconds));
        facts.set_known(RATE_DURABLE, fsynced_ns.and_then(|ns| measured.rate(ns)));
        facts.set_known(GENERATE_S, harness_ns.map(seconds));
        facts
    }
}
