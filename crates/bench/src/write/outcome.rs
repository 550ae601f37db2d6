//! What is known about a write, as an outcome of the record.

use flatout_io::escape;
use flatout_measure::ceiling;
use flatout_measure::fact::{Facts, Key};
use flatout_measure::record::{Outcome, Status};
use flatout_measure::row::{Parameters, Unit};
use flatout_measure::warning::{self, Warning};
use flatout_sys::affinity;

use super::limit::{Manner, Times};
use super::{Data, Measured, Sync, Writer};
use crate::fact;

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
    /// for durability.
    pub fn outcome(&self, measured: &Measured) -> Outcome {
        let mut outcome = Outcome {
            id: ID.to_owned(),
            parameters: self.parameters(measured).to_json(),
            unit: Unit::BytesPerSecond.name().to_owned(),
            warnings: measured.warnings.clone(),
            ..Outcome::default()
        };
        let mut facts = self.facts(measured);
        let elapsed_ns = measured.to_durable_ns.unwrap_or(measured.to_cache_ns);
        if measured.stopped {
            outcome.status = Status::Interrupted;
            facts.set(fact::ENDED_EARLY, self.how_far(measured));
        } else if let Some(rate) = rate(measured.bytes, elapsed_ns) {
            (outcome.median, outcome.n, outcome.samples) = (Some(rate), 1, vec![rate]);
        }
        if self.job.data == Data::Zero {
            let text = "zero bytes: thin storage and compression take them for free";
            warning::add(&mut outcome.warnings, Warning::new(warning::ZERO_BLOCKS, text));
        }
        if outcome.median.is_some() {
            self.judge(measured, &mut outcome, &mut facts);
        }
        outcome.audit.extend(facts.to_json());
        outcome
    }

    /// What an interrupted write has done to its file, in one sentence.
    pub fn how_far(&self, measured: &Measured) -> String {
        let (bytes, length) = (measured.bytes, self.length_bytes);
        let path = self.target.path();
        if self.target.is_new() {
            return format!(
                "interrupted after {bytes} of {length} bytes; {path:?} was removed again"
            );
        }
        format!(
            "interrupted: {bytes} of {length} bytes of {path:?} were overwritten, the rest is as it was"
        )
    }

    /// The generator's share, and what bounds the figure.
    fn judge(&self, measured: &Measured, outcome: &mut Outcome, facts: &mut Facts) {
        let threads = self.choice.tuning.threads.min(affinity::allowed_cpu_count()).max(1);
        let times = Times {
            bytes: measured.bytes,
            harness_ns: measured.harness_ns.map(|ns| ns as f64 / f64::from(threads)),
            to_cache_ns: measured.to_cache_ns,
            to_durable_ns: measured.to_durable_ns,
        };
        facts.set_known(fact::OVERHEAD_RATIO, times.overhead_ratio());
        if let Some(doubt) = times.doubt(self.job.data) {
            warning::add(&mut outcome.warnings, doubt);
        }
        let manner = Manner { caching: self.target.caching(), sync: self.job.sync };
        ceiling::apply(outcome, times.ceiling(manner));
    }

    fn parameters(&self, measured: &Measured) -> Parameters {
        let tuning = self.choice.tuning;
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
        Parameters::default()
            .with("file", escape(self.job.path.as_os_str()))
            .with("block_bytes", tuning.block_bytes)
            .with("threads", tuning.threads)
            .with("split", tuning.split.to_string())
            .with("engine", measured.engine.unwrap_or(tuning.engine).to_string())
            .with("caching", tuning.caching.to_string())
            .with("depth", tuning.depth)
            .with("data", data)
            .with("sync", sync)
            .with("seed", self.job.seed)
    }

    fn facts(&self, measured: &Measured) -> Facts {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut facts = Facts::default()
            .with(fact::BYTES, measured.bytes)
            .with(Key::last("blocks"), measured.blocks)
            .with(Key::last("engine_reason"), self.choice.engine_reason.clone())
            .with(FILE_STATE, if self.target.is_new() { "new" } else { "overwritten" })
            .with(TIME_TO_CACHE_S, seconds(measured.to_cache_ns));
        facts.set_known(RATE_TO_CACHE, rate(measured.bytes, measured.to_cache_ns));
        facts.set_known(TIME_TO_DURABLE_S, measured.to_durable_ns.map(seconds));
        let durable = measured.to_durable_ns.and_then(|ns| rate(measured.bytes, ns));
        facts.set_known(RATE_DURABLE, durable);
        facts.set_known(GENERATE_S, measured.harness_ns.map(seconds));
        facts.set_known(fact::DEVICE_WRITE_BYTES, measured.device_write_bytes);
        facts.set_known(fact::CACHED_AFTER_BYTES, measured.cached_after_bytes);
        facts
    }
}

fn rate(bytes: u64, elapsed_ns: u64) -> Option<f64> {
    (elapsed_ns > 0 && bytes > 0).then(|| bytes as f64 * 1e9 / elapsed_ns as f64)
}
