//! What is known about a read, as an outcome of the record.

use flatout_measure::case::{Plain, Sample, blank};
use flatout_measure::record::{Outcome, Status};
use flatout_measure::row::Unit;
use flatout_measure::warning::{self, Warning};
use serde_json::{Map, Value, json};

use super::{DigestKind, Limit, Measured, Reader};
use flatout_io::{Kind, escape};

/// Id of the row of a read.
pub const ID: &str = "read/file";
/// Share of the time that the harness may take without a word.
const HARNESS_LIMIT: f64 = 0.01;

impl Reader {
    /// What makes this read differ from others.
    pub fn parameters(&self) -> Map<String, Value> {
        let tuning = self.choice.tuning;
        let mut parameters = Map::new();
        let mut set = |key: &str, value: Value| parameters.insert(key.to_owned(), value);
        set("file", json!(escape(self.job.path.as_os_str())));
        set("block_bytes", json!(tuning.block_bytes));
        set("threads", json!(tuning.threads));
        set("split", json!(tuning.split));
        set("engine", json!(tuning.engine));
        set("caching", json!(tuning.caching));
        set("depth", json!(tuning.depth));
        set(
            "state",
            json!(match self.job.state {
                super::CacheStart::Cold => "cold",
                super::CacheStart::AsItIs => "as_it_is",
            }),
        );
        parameters
    }

    /// The row before anything was measured.
    pub fn blank(&self) -> Outcome {
        let parameters = self.parameters();
        let mut outcome = blank(&Plain { id: ID, parameters, unit: Unit::BytesPerSecond });
        outcome.warnings.clone_from(&self.warnings);
        outcome
    }

    /// Writes what one trial found into the row; the figure itself comes from the samples.
    pub fn describe(&self, measured: &Measured, outcome: &mut Outcome) {
        if let Some(engine) = measured.engine {
            outcome.parameters.insert("engine".to_owned(), json!(engine));
        }
        let audit = &mut outcome.audit;
        let mut set = |key: &str, value: Value| audit.insert(key.to_owned(), value);
        set("bytes", json!(measured.bytes));
        set("blocks", json!(measured.blocks));
        set("seconds", json!(measured.elapsed_ns as f64 / 1e9));
        set("passes", json!(measured.passes));
        // Of a pass that was cut off, nobody could say which bytes the digest covers.
        let covers_a_pass = measured.passes > 1 || !measured.stopped;
        if self.job.digest == DigestKind::Xor32 && covers_a_pass {
            set("digest_xor32", json!(format!("{:08x}", measured.xor32)));
        }
        set("engine_reason", json!(self.engine_reason(measured)));
        if let Some(bytes) = measured.cached_before_bytes {
            set("cached_before_bytes", json!(bytes));
        }
        if let Some(bytes) = measured.cached_after_bytes {
            set("cached_after_bytes", json!(bytes));
        }
        if let Some(bytes) = measured.device_read_bytes {
            set("device_read_bytes", json!(bytes));
        }
        match self.job.limit {
            Limit::MinTime { .. } => {
                set("size_found_bytes", json!(measured.bytes));
            }
            Limit::Duration { ns } => {
                set("ended_early", json!(self.how_far(measured, ns)));
            }
            Limit::Blocks if measured.stopped => {
                let text = format!("interrupted after {} bytes", measured.bytes);
                set("ended_early", json!(text));
            }
            Limit::Blocks => {}
        }
        for warning in &measured.warnings {
            warning::add(&mut outcome.warnings, warning.clone());
        }
    }

    /// Why the engine is the one that was used: the choice, or what made it impossible.
    fn engine_reason(&self, measured: &Measured) -> String {
        let refused = |one: &&Warning| {
            [warning::URING_REFUSED, warning::MMAP_REFUSED].contains(&one.code.as_str())
        };
        match measured.warnings.iter().find(refused) {
            Some(refusal) if measured.engine != Some(self.choice.tuning.engine) => {
                refusal.text.clone()
            }
            _ => self.choice.engine_reason.clone(),
        }
    }

    /// What a time limit has to say: how far, or when the file ended.
    fn how_far(&self, measured: &Measured, limit_ns: u64) -> String {
        let seconds = measured.elapsed_ns as f64 / 1e9;
        let limit = limit_ns as f64 / 1e9;
        let bytes = measured.bytes;
        if !measured.stopped {
            let what = match self.source.kind() {
                Kind::Sized if self.end_bytes < self.source.length_bytes() => "what was asked for",
                Kind::Sized => "the whole file",
                Kind::Endless | Kind::Stream => "all there was",
            };
            return format!("{what} was read after {seconds:.6} s of {limit} s");
        }
        match self.source.kind() {
            Kind::Sized => {
                let percent = bytes as f64 / self.end_bytes.max(1) as f64 * 100.0;
                format!("stopped after {limit} s at {bytes} bytes, {percent:.2} % of the file")
            }
            Kind::Endless | Kind::Stream => format!("stopped after {limit} s at {bytes} bytes"),
        }
    }

    /// The row of a single trial.
    pub fn single(&self, measured: &Measured) -> Outcome {
        let mut outcome = self.blank();
        self.describe(measured, &mut outcome);
        self.judge_harness(measured, &mut outcome);
        if measured.bytes > 0 && measured.elapsed_ns > 0 {
            let rate = measured.bytes as f64 * 1e9 / measured.elapsed_ns as f64;
            (outcome.median, outcome.n, outcome.samples) = (Some(rate), 1, vec![rate]);
        }
        if self.job.cancel.is_cancelled() {
            outcome.status = Status::Interrupted;
        }
        if measured.bytes == 0 {
            let text = "there was nothing to read, so there is no rate";
            warning::add(&mut outcome.warnings, Warning::new(warning::EMPTY_FILE, text));
        }
        outcome
    }

    /// The harness's own share, and a doubt when it is more than 1 %.
    fn judge_harness(&self, measured: &Measured, outcome: &mut Outcome) {
        let each_ns = self.harness_ns_per_block();
        let threads = f64::from(self.choice.tuning.threads);
        let share = each_ns * measured.blocks as f64 / threads / measured.elapsed_ns.max(1) as f64;
        outcome.audit.insert("harness_ns_per_block".to_owned(), json!(each_ns));
        outcome.audit.insert("overhead_ratio".to_owned(), json!(share));
        if share > HARNESS_LIMIT {
            let text = format!("the loop over blocks takes {:.1} % of the time", share * 100.0);
            warning::add(&mut outcome.warnings, Warning::new(warning::OVERHEAD, text));
        }
    }

    /// What the sampler wants to know of a trial.
    pub fn sample(measured: &Measured) -> Sample {
        Sample {
            amount: measured.bytes as f64,
            elapsed_ns: measured.elapsed_ns,
            audit: Map::new(),
            warnings: measured.warnings.clone(),
            ..Sample::default()
        }
    }
}
