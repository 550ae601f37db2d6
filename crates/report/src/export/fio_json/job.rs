//! One row as one job of fio.

use flatout_measure::record::{Latency, Outcome};
use flatout_measure::statistics;
use serde_json::{Map, Value, json};

use crate::{export::raw, identity::forms, label, page::commands, text::Joined};

/// A row in the shape of a job.
pub(super) struct Job {
    /// What rows have in common that differ only in depth and threads.
    pub(super) folder: String,
    /// Pattern, depth and threads.
    pub(super) stem: String,
    pub(super) value: Value,
}

/// The key of the audit with the options of that job.
const OPTIONS: &str = "fio_options";
/// The patterns that only read or only write, in fio's words. Of rows that do both at once it is not
/// known how their latencies divide.
const PATTERNS: [&str; 4] = ["read", "randread", "write", "randwrite"];

/// What a row does, from the line that checks it with fio: `--rw=read:8k` is a read, too.
fn pattern(options: &Map<String, Value>) -> Option<&'static str> {
    let rw = options.get("rw")?.as_str()?.split(':').next();
    PATTERNS.into_iter().find(|known| rw == Some(*known))
}

/// The job of a row; none if fio's shape has no place for it.
pub(super) fn job(outcome: &Outcome) -> Option<Job> {
    if label::area(&outcome.id) != "disk" {
        return None;
    }
    let mut options = options(outcome);
    let rw = pattern(&options)?;
    let number = |key: &str| outcome.parameter_number(key);
    let block_bytes = number("block_bytes").filter(|bytes| *bytes > 0.0)?;
    let rates = Rates::of(outcome, block_bytes)?;
    let threads = number("threads").unwrap_or(1.0).max(1.0);
    let is_queued = outcome.parameter_text("engine") == Some("uring");
    let depth = if is_queued { number("depth").unwrap_or(1.0).max(1.0) } else { 1.0 };

    for (key, value) in [
        ("rw", rw.to_owned()),
        ("bs", block_bytes.to_string()),
        ("iodepth", depth.to_string()),
        ("numjobs", threads.to_string()),
    ] {
        // The line for a shell may say more, such as the stride; fio-plot knows these words only.
        options.insert(key.to_owned(), value.into());
    }
    let fact = |key: &str| outcome.fact_number(key);
    let elapsed_ns = fact("elapsed_ns").filter(|ns| *ns > 0.0);
    let share = |key: &str| Some(fact(key)? / elapsed_ns? * 100.0);
    let filled = rates.side(outcome, mean_ns(outcome, &rates, threads * depth));
    let is_read = rw.ends_with("read");
    let (read, write) = if is_read { (filled, empty()) } else { (empty(), filled) };
    let value = known(json!({
        "jobname": name(outcome),
        "groupid": 0,
        "error": 0,
        "elapsed": elapsed_ns.map(|ns| whole((ns / 1e9).ceil())),
        "job options": options,
        "read": read,
        "write": write,
        "trim": empty(),
        "job_runtime": elapsed_ns.map(|ns| whole(ns / 1e6)),
        "usr_cpu": share("user_ns"),
        "sys_cpu": share("system_ns"),
        "latency_ns": {},
        "latency_us": {},
        "latency_ms": {},
    }));
    let stem = format!("{rw}-{depth}-{threads}");
    Some(Job { folder: folder(outcome), stem, value })
}

/// The figure of a row in both of fio's units, and its samples.
struct Rates {
    bytes_per_s: f64,
    operations_per_s: f64,
    /// Bytes per second of each trial.
    samples: Vec<f64>,
    block_bytes: f64,
}

impl Rates {
    fn of(outcome: &Outcome, block_bytes: f64) -> Option<Self> {
        let median = label::figure(outcome)?;
        let bytes_per_figure = match outcome.unit.as_str() {
            "bytes/s" => 1.0,
            "operations/s" => block_bytes,
            _ => return None,
        };
        Some(Self {
            bytes_per_s: median * bytes_per_figure,
            operations_per_s: median * bytes_per_figure / block_bytes,
            samples: outcome.samples.iter().map(|sample| sample * bytes_per_figure).collect(),
            block_bytes,
        })
    }

    /// `"read"` or `"write"` of a job. fio's minima and so on are of windows of time, these are of
    /// trials.
    fn side(&self, outcome: &Outcome, mean_ns: Option<f64>) -> Value {
        let fact = |key: &str| outcome.fact_number(key);
        let mean = statistics::mean(&self.samples);
        // fio says of one that it does not deviate.
        let deviation = mean.map(|_| statistics::standard_deviation(&self.samples).unwrap_or(0.0));
        let least = statistics::min(&self.samples);
        let most = statistics::max(&self.samples);
        let kib = |bytes: Option<f64>| bytes.map(|bytes| whole(bytes / 1024.0));
        let operations = |bytes: Option<f64>| bytes.map(|bytes| bytes / self.block_bytes);
        let mut side = known(json!({
            "io_bytes": fact("bytes").map(whole),
            "io_kbytes": kib(fact("bytes")),
            "bw_bytes": whole(self.bytes_per_s),
            "bw": whole(self.bytes_per_s / 1024.0),
            "iops": self.operations_per_s,
            "runtime": fact("elapsed_ns").map(|ns| whole(ns / 1e6)),
            "total_ios": fact("operations").map(whole),
            "short_ios": 0,
            "drop_ios": 0,
            "bw_min": kib(least),
            "bw_max": kib(most),
            "bw_agg": 100.0,
            "bw_mean": mean.map(|mean| mean / 1024.0),
            "bw_dev": deviation.map(|deviation| deviation / 1024.0),
            "bw_samples": self.samples.len(),
            "iops_min": operations(least),
            "iops_max": operations(most),
            "iops_mean": operations(mean),
            "iops_stddev": operations(deviation),
            "iops_samples": self.samples.len(),
        }));
        if let Some(latency) = &outcome.latency {
            side["clat_ns"] = latencies(latency, mean_ns, true);
            side["lat_ns"] = latencies(latency, mean_ns, false);
        } else {
            side["lat_ns"] = latencies(&Latency::default(), mean_ns, false);
        }
        side
    }
}

/// Without what is not known, but for what fio-plot asks for by its name.
fn known(mut job: Value) -> Value {
    const ASKED_FOR: [&str; 3] = ["usr_cpu", "sys_cpu", "iops_stddev"];
    if let Some(members) = job.as_object_mut() {
        members.retain(|name, member| !member.is_null() || ASKED_FOR.contains(&name.as_str()));
    }
    job
}

/// The nearest whole number: fio writes sizes, times and counts so.
fn whole(value: f64) -> u64 {
    // A float too large for the type becomes its largest value.
    value.round() as u64
}

/// The side that a row has nothing of, as fio writes it.
fn empty() -> Value {
    let none = json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
    json!({
        "io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0,
        "total_ios": 0, "short_ios": 0, "drop_ios": 0, "slat_ns": none, "clat_ns": none,
        "lat_ns": none, "bw_min": 0, "bw_max": 0, "bw_agg": 0.0, "bw_mean": 0.0, "bw_dev": 0.0,
        "bw_samples": 0, "iops_min": 0, "iops_max": 0, "iops_mean": 0.0, "iops_stddev": 0.0,
        "iops_samples": 0,
    })
}

fn latencies(latency: &Latency, mean_ns: Option<f64>, with_percentiles: bool) -> Value {
    let mut value = json!({
        "min": whole(latency.min_ns), "max": whole(latency.max_ns), "N": latency.operations,
        // The record has no deviation. fio-plot stops without one; zero is what fio writes for none.
        "stddev": 0.0,
    });
    if let Some(mean_ns) = mean_ns {
        value["mean"] = mean_ns.into();
    }
    if with_percentiles {
        let mut percentiles = Map::new();
        for (name, ns) in &latency.percentiles_ns {
            if let Some(share) = name.strip_prefix('p').and_then(|share| share.parse::<f64>().ok())
            {
                percentiles.insert(format!("{share:.6}"), ns.clone());
            }
        }
        value["percentile"] = Value::Object(percentiles);
    }
    value
}

/// The mean latency: requests in flight ÷ requests per second (Little's law), which holds where the
/// next request begins when one has ended, and no flush belongs to the time.
fn mean_ns(outcome: &Outcome, rates: &Rates, in_flight: f64) -> Option<f64> {
    let is_closed = outcome.latency.as_ref().is_some_and(|latency| latency.loop_kind == "closed");
    let is_durable = outcome.parameter_text("until") == Some("durable");
    let holds = is_closed && !is_durable && rates.operations_per_s > 0.0;
    holds.then(|| in_flight / rates.operations_per_s * 1e9)
}

/// The options of the job that does the row; earlier records have the line for a shell alone.
fn options(outcome: &Outcome) -> Map<String, Value> {
    if let Some(Value::Object(told)) = outcome.audit.get(OPTIONS) {
        return told.clone();
    }
    let line = outcome.fact_text(commands::KEY).unwrap_or_default();
    let option = |word: &str| {
        let bare = forms::bare(word);
        let word = bare.strip_prefix("--")?;
        let (key, value) = word.split_once('=').unwrap_or((word, "1"));
        Some((key.to_owned(), value.into()))
    };
    forms::shell_words(line).into_iter().filter_map(option).collect()
}

/// Id and parameters, for people.
fn name(outcome: &Outcome) -> String {
    let parameters = label::parameters(&outcome.parameters);
    let comma = if parameters.is_empty() { "" } else { ", " };
    crate::text::visible(&format!("{}{comma}{parameters}", label::test(&outcome.id)))
}

/// Test and parameters except depth and threads, as the name of a folder.
fn folder(outcome: &Outcome) -> String {
    let rest = label::ordered(&outcome.parameters)
        .into_iter()
        .filter(|(key, _)| !["depth", "threads"].contains(key))
        .map(|(_, value)| raw(value));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let words = std::iter::once(label::test(&outcome.id).to_owned()).chain(rest);
    let name: String = words.joined("-").chars().map(plain).take(100).collect();
    name.trim_start_matches('.').to_owned()
}
