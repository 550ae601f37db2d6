//! What is known about a write, as an outcome of the record.

use flatout_io::escape;
use flatout_measure::ceiling;
use flatout_measure::record::{Outcome, Status};
use flatout_measure::warning::{self, Warning};
use flatout_sys::affinity;
use serde_json::{Map, Value, json};

use super::limit::{Manner, Times};
use super::{Data, Measured, Sync, Writer};

/// Id of the row of a write.
pub const ID: &str = "write/file";

impl Writer {
    /// The row of a write: the figure is the durable rate, or that to cache when nobody asked
    /// for durability.
    pub fn outcome(&self, measured: &Measured) -> Outcome {
        let mut outcome = Outcome {
            id: ID.to_owned(),
            parameters: self.parameters(measured),
            unit: "bytes/s".to_owned(),
            audit: self.audit(measured),
            warnings: measured.warnings.clone(),
            ..Outcome::default()
        };
        let elapsed_ns = measured.to_durable_ns.unwrap_or(measured.to_cache_ns);
        if measured.stopped {
            outcome.status = Status::Interrupted;
            outcome.audit.insert("ended_early".to_owned(), json!(self.how_far(measured)));
        } else if let Some(rate) = rate(measured.bytes, elapsed_ns) {
            (outcome.median, outcome.n, outcome.samples) = (Some(rate), 1, vec![rate]);
        }
        if self.job.data == Data::Zero {
            let text = "zero bytes: thin storage and compression take them for free";
            warning::add(&mut outcome.warnings, Warning::new(warning::ZERO_BLOCKS, text));
        }
        if outcome.median.is_some() {
            self.judge(measured, &mut outcome);
        }
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
    fn judge(&self, measured: &Measured, outcome: &mut Outcome) {
        let threads = self.choice.tuning.threads.min(affinity::allowed_cpu_count()).max(1);
        let times = Times {
            bytes: measured.bytes,
            harness_ns: measured.harness_ns.map(|ns| ns as f64 / f64::from(threads)),
            to_cache_ns: measured.to_cache_ns,
            to_durable_ns: measured.to_durable_ns,
        };
        if let Some(share) = times.overhead_ratio() {
            outcome.audit.insert("overhead_ratio".to_owned(), json!(share));
        }
        if let Some(doubt) = times.doubt(self.job.data) {
            warning::add(&mut outcome.warnings, doubt);
        }
        let manner = Manner { caching: self.target.caching(), sync: self.job.sync };
        ceiling::apply(outcome, times.ceiling(manner));
    }

    fn parameters(&self, measured: &Measured) -> Map<String, Value> {
        let tuning = self.choice.tuning;
        let pairs = [
            ("file", json!(escape(self.job.path.as_os_str()))),
            ("block_bytes", json!(tuning.block_bytes)),
            ("threads", json!(tuning.threads)),
            ("split", json!(tuning.split)),
            ("engine", json!(measured.engine.unwrap_or(tuning.engine))),
            ("caching", json!(tuning.caching)),
            ("depth", json!(tuning.depth)),
            (
                "data",
                json!(match self.job.data {
                    Data::Random => "random",
                    Data::Zero => "zero",
                    Data::Pattern => "pattern",
                }),
            ),
            (
                "sync",
                json!(match self.job.sync {
                    Sync::None => "none",
                    Sync::End => "end",
                    Sync::Each => "each",
                }),
            ),
            ("seed", json!(self.job.seed)),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn audit(&self, measured: &Measured) -> Map<String, Value> {
        let mut audit = Map::new();
        let mut set = |key: &str, value: Value| audit.insert(key.to_owned(), value);
        let seconds = |ns: u64| ns as f64 / 1e9;
        set("bytes", json!(measured.bytes));
        set("blocks", json!(measured.blocks));
        set("engine_reason", json!(self.choice.engine_reason));
        set("file_state", json!(if self.target.is_new() { "new" } else { "overwritten" }));
        set("time_to_cache_s", json!(seconds(measured.to_cache_ns)));
        if let Some(rate) = rate(measured.bytes, measured.to_cache_ns) {
            set("rate_to_cache", json!(rate));
        }
        if let Some(ns) = measured.to_durable_ns {
            set("time_to_durable_s", json!(seconds(ns)));
            if let Some(rate) = rate(measured.bytes, ns) {
                set("rate_durable", json!(rate));
            }
        }
        if let Some(ns) = measured.harness_ns {
            set("generate_s", json!(seconds(ns)));
        }
        if let Some(bytes) = measured.device_write_bytes {
            set("device_write_bytes", json!(bytes));
        }
        if let Some(bytes) = measured.cached_after_bytes {
            set("cached_after_bytes", json!(bytes));
        }
        audit
    }
}

fn rate(bytes: u64, elapsed_ns: u64) -> Option<f64> {
    (elapsed_ns > 0 && bytes > 0).then(|| bytes as f64 * 1e9 / elapsed_ns as f64)
}
