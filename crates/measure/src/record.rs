//! Schema `flatout/1`: what a run leaves behind, as plain data.
//!
//! Base units only: bytes, seconds, operations per second, nanoseconds where a name ends in
//! `_ns`. Prefixes and rounding belong to the report. The JSON Schema in `docs/schema/` says the
//! same to other programs, and a test holds the two together.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::statistics;

/// The name of this schema version, the first member of every document.
pub const SCHEMA: &str = "flatout/1";

/// A whole run: one document, complete even when the run failed or was interrupted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What was known before the first trial.
    pub start: Start,
    /// One entry per figure, in the order of the report.
    pub results: Vec<Outcome>,
    /// Which results belong together in one picture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<Chart>,
    /// How the run ended.
    pub end: End,
}

impl Record {
    /// Reads a document. Here, so that what reads it is compiled once for all rooms.
    ///
    /// # Errors
    ///
    /// It is no JSON, or no record.
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

/// What was known before the first trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Program and version, for example `flatout 0.1.0`.
    pub tool: String,
    /// The command line, each argument with lossless escapes for bytes that are not UTF-8.
    pub argv: Vec<String>,
    /// Seed of every random order and of all random data in the run.
    pub seed: u64,
    /// Wall-clock time of the start, RFC 3339 with offset.
    pub time: String,
    /// The machine: see [`crate::environment`]. A null member could not be read.
    pub environment: Value,
}

/// One figure with interval and warnings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `area/test`, for example `cache/block-sweep`; stable between versions.
    pub id: String,
    /// What makes this row differ from others of the same id; base units.
    pub parameters: Map<String, Value>,
    /// Base unit of `median`, `ci95` and `samples`, for example `bytes/s`, `ns`, `operations/s`.
    pub unit: String,
    /// The direction of improvement.
    pub better: Better,
    /// Median of the samples; null when there is no figure (`failed`, `invalid`, …).
    pub median: Option<f64>,
    /// 95 % interval: where the medians of other runs lie; null where samples are too few for one.
    pub ci95: Option<[f64; 2]>,
    /// Number of samples that count.
    pub n: u64,
    /// Every sample that counts, in the order in which it was taken.
    pub samples: Vec<f64>,
    /// Whether the figure can be used.
    pub status: Status,
    /// Latency of single operations, where they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Curves that belong to this figure (rate over time, passes, …).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// Counted facts about the trials: bytes asked, bytes moved by the device, cache share, and
    /// what the sampler dropped (`warmup_dropped`, `intervals_spoiled`, `overhead_ratio`, …).
    pub audit: Map<String, Value>,
    /// What bounds this figure; null when the row has no such thing.
    pub ceiling: Option<Ceiling>,
    /// Warnings, each with a stable code.
    pub warnings: Vec<Warning>,
}

impl Outcome {
    /// Half the width of the interval as a share of the figure; `None` where one of them is
    /// missing.
    pub fn half_width(&self) -> Option<f64> {
        statistics::half_width(self.median?, self.ci95?)
    }

    /// Notes a warning, once per code.
    pub fn warn(&mut self, code: &str, text: impl Into<String>) {
        crate::warning::add(&mut self.warnings, Warning::new(code, text));
    }

    /// The figure is there, but less good than it looks.
    pub fn degrade(&mut self) {
        if self.status == Status::Ok {
            self.status = Status::Degraded;
        }
    }

    /// A number among the facts.
    pub fn fact_number(&self, key: &str) -> Option<f64> {
        self.audit.get(key)?.as_f64()
    }

    /// A whole number among the facts.
    pub fn fact_count(&self, key: &str) -> Option<u64> {
        self.audit.get(key)?.as_u64()
    }

    /// A text among the facts.
    pub fn fact_text(&self, key: &str) -> Option<&str> {
        self.audit.get(key)?.as_str()
    }

    /// A number among the parameters.
    pub fn parameter_number(&self, key: &str) -> Option<f64> {
        self.parameters.get(key)?.as_f64()
    }

    /// A whole number among the parameters.
    pub fn parameter_count(&self, key: &str) -> Option<u64> {
        self.parameters.get(key)?.as_u64()
    }

    /// A text among the parameters.
    pub fn parameter_text(&self, key: &str) -> Option<&str> {
        self.parameters.get(key)?.as_str()
    }
}

flatout_sys::words! {
    /// The direction of improvement.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Better: name, ALL {
        /// A larger figure is better (rates).
        #[default]
        Higher = "higher",
        /// A smaller figure is better (times).
        Lower = "lower",
    }
}

flatout_sys::words! {
    /// Whether a figure can be used; what speaks more against it comes later.
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Status: name, ALL {
        /// The interval is as narrow as was asked for.
        #[default]
        Ok = "ok",
        /// The figure holds with a reservation that a warning names.
        Degraded = "degraded",
        /// The time budget ended before the interval was narrow.
        Unstable = "unstable",
        /// The run was interrupted before this figure was complete.
        Interrupted = "interrupted",
        /// This machine cannot do it; a warning names what is missing.
        Unsupported = "unsupported",
        /// A figure that cannot be true; it is not given.
        Invalid = "invalid",
        /// The workload reported an error; a warning names it.
        Failed = "failed",
    }
}

/// Latency of single operations, from a merged histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How the operations were paced: `closed` (next after the last) or `open` (intended start).
    pub loop_kind: String,
    /// Operations in the histogram.
    pub operations: u64,
    /// Shortest operation.
    pub min_ns: f64,
    /// Longest operation.
    pub max_ns: f64,
    /// Percentile (`p50`, `p99.9`, …) to nanoseconds; only those with n(1−p) ≥ 10.
    pub percentiles_ns: Map<String, Value>,
}

/// A curve: pairs of x and y in base units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What the curve shows, for example `rate over passes`.
    pub name: String,
    /// Name and unit of x, for example `pass` or `time_s`.
    pub x: String,
    /// Unit of y, for example `bytes/s`.
    pub y: String,
    /// The pairs, x ascending.
    pub points: Vec<[f64; 2]>,
}

/// What bounds a figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// What the bound is, for example `bare memory read, 2 threads`.
    pub name: String,
    /// The bound in the unit of the row; null when unknown.
    pub value: Option<f64>,
    /// Where the bound comes from.
    pub provenance: Provenance,
    /// median ÷ value (value ÷ median where lower is better); 1 is at the limit.
    pub ratio: Option<f64>,
    /// What most likely limits the figure, in the field's words, for example `system call entry`.
    pub limiter: String,
}

flatout_sys::words! {
    /// Where a ceiling comes from.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Provenance: name, ALL {
        /// Measured in this run.
        Measured = "measured",
        /// Read from the CPU's own description.
        Cpuid = "cpuid",
        /// Read from firmware tables.
        Smbios = "smbios",
        /// Read from a bus or network link.
        Link = "link",
        /// Derived from other figures; the limiter says how.
        Inferred = "inferred",
        /// Set from outside, by an administrator or the user.
        Given = "given",
        /// Measured by an earlier run on this machine.
        Earlier = "earlier",
        /// No bound: the best figure of its kind in this run, which others are set beside.
        BestSeen = "best_seen",
        /// Nobody knows.
        #[default]
        Unknown = "unknown",
    }
}

/// What speaks against a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable, `snake_case`; programs match on it. All codes stand in [`crate::warning`].
    pub code: String,
    /// One sentence for people.
    pub text: String,
}

impl Warning {
    /// A warning with its stable code and a sentence.
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into() }
    }
}

/// A picture: all results with this id, x from one parameter, one line per combination of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chart {
    /// Heading of the picture.
    pub title: String,
    /// The results that it shows.
    pub id: String,
    /// The parameter on the x axis, for example `block_bytes`; numeric.
    pub x_parameter: String,
    /// Whether x is spaced by powers of two.
    pub x_log2: bool,
    /// The parameters whose values name a line, for example `engine`, `threads`, `cache_state`.
    pub line_parameters: Vec<String>,
}

impl Chart {
    /// A picture whose x is spaced evenly.
    pub fn new(title: &str, id: &str, x_parameter: &str, line_parameters: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            id: id.to_owned(),
            x_parameter: x_parameter.to_owned(),
            x_log2: false,
            line_parameters: line_parameters.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// The same with x spaced by powers of two.
    #[must_use]
    pub fn by_powers_of_two(self) -> Self {
        Self { x_log2: true, ..self }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Seconds from the first to the last action.
    pub elapsed_s: f64,
    /// Exit code of the program: 0 done, 1 something failed, 2 wrong use, 130 interrupted.
    pub exit_code: i32,
    /// What went wrong, one sentence each; empty when nothing did.
    pub errors: Vec<String>,
    /// What other programs did meanwhile; none in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The six answers; empty for commands that give no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdict: Vec<Answer>,
}

impl End {
    /// Notes that something went wrong. The gravest code stays: interrupted, wrong use, failed.
    pub fn fail(&mut self, code: i32, text: String) {
        self.errors.push(text);
        self.exit_code = self.exit_code.max(code);
    }
}

/// What other programs did on the machine during a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// CPUs of the machine.
    pub cpus: u32,
    /// CPUs that other programs used, in the mean of the run; threads of the kernel and interrupts,
    /// which may have worked for us, are not in it. Null where these cannot be told apart: in a
    /// container that does not see them.
    pub others_cpus: Option<f64>,
    /// Share of the CPU time of the CPUs that could be used that the hypervisor took.
    pub stolen_ratio: f64,
    /// Of the time that threads of ours wanted a CPU, the share in which they waited for one; null
    /// where the kernel does not count it.
    pub run_queue_wait_ratio: Option<f64>,
    /// Share of the time in which some task of the machine waited for a CPU (pressure stall
    /// information); null where the kernel does not count it.
    pub cpu_pressure_ratio: Option<f64>,
    /// The programs that used most, by name, the largest first.
    pub programs: Vec<ProgramLoad>,
}

/// What the processes of one program used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramLoad {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// How many processes of that name.
    pub processes: u64,
    /// CPUs that they used together, in the mean of the run.
    pub cpus: f64,
}

/// One of the six answers of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The question, for example `why not double?`.
    pub question: String,
    /// Whether the answer is reassuring.
    pub good: bool,
    /// The answer in one word; none in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// The answer in one or two sentences.
    pub text: String,
    /// The fields of the record on which it rests, for example `results[].ceiling.ratio`.
    pub rests_on: Vec<String>,
}

/// An answer of the verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Reassuring for nearly all rows.
    Good,
    /// For some of them.
    Partly,
    /// For few or none.
    Bad,
    /// There is nothing to tell it by.
    Unknown,
}

impl Answer {
    /// The answer in one word, also of a document that says only whether it is good.
    pub fn mark(&self) -> Mark {
        self.mark.unwrap_or(if self.good { Mark::Good } else { Mark::Bad })
    }
}
