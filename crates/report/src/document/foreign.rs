//! Results of other programs, read as records: JSON of fio, iperf3, hyperfine and Google Benchmark.
//!
//! A row is called `PROGRAM/TEST`. Its samples are whole runs, as far as the document has them: a job of fio
//! and a test of iperf3 are one, and a figure of one run has no interval. What the program says of the machine
//! is its environment; what it does not say is not made up.

use flatout_measure::record::{End, Latency, Outcome, Record, SCHEMA, Series, Start, Status};
use flatout_measure::warning::{self, Warning};
use flatout_measure::{Unit, statistics};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::order;

/// Whose document it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Fio,
    Iperf3,
    Hyperfine,
    GoogleBenchmark,
}

/// Each with the members of its documents, and whether these are all.
const KNOWN: [(Program, &[&str], bool); 4] = [
    (Program::Fio, &["fio version", "jobs"], false),
    (Program::Iperf3, &["start", "intervals", "end"], false),
    (Program::GoogleBenchmark, &["context", "benchmarks"], false),
    (Program::Hyperfine, &["results"], true),
];

/// The percentiles that are told, of the seventeen of fio.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// Operations that must lie beyond a percentile for it to be told.
const LEAST_BEYOND: f64 = 10.0;

/// Options of a job of fio that tell its work.
const FIO_OPTIONS: [&str; 9] =
    ["rw", "bs", "iodepth", "numjobs", "ioengine", "direct", "size", "fsync", "rate"];

impl Program {
    /// By the members of the outermost object.
    pub(super) fn of(keys: &[String]) -> Option<Self> {
        let is_it = |(_, names, are_all): &&(Self, &[&str], bool)| {
            names.iter().all(|name| keys.iter().any(|key| key == name))
                && (!are_all || keys.len() == names.len())
        };
        KNOWN.iter().find(is_it).map(|(program, ..)| *program)
    }

    /// The record of a document.
    ///
    /// Errors: it has no rows, or says that the run failed.
    pub(super) fn record(self, document: &Value) -> Result<Record, String> {
        let (tool, time, environment, results) = match self {
            Self::Fio => (
                text(&document["fio version"]),
                time(document["timestamp"].as_i64()),
                json!({}),
                fio(document),
            ),
            Self::Iperf3 => {
                let start = &document["start"];
                let time = time(start["timestamp"]["timesecs"].as_i64());
                // uname(2): the second word is the name of the host, which pages do not tell.
                let system = start["system_info"].as_str().unwrap_or_default();
                let host = system.split(' ').nth(1);
                let environment = json!({"system": start["system_info"], "host_name": host});
                (text(&start["version"]), time, environment, iperf3(document)?)
            }
            Self::Hyperfine => {
                ("hyperfine".to_owned(), String::new(), json!({}), hyperfine(document))
            }
            Self::GoogleBenchmark => {
                let context = &document["context"];
                let environment = json!({
                    "cpus_online": context["num_cpus"],
                    "host_name": context["host_name"],
                    "program": context["executable"],
                });
                let tool = "Google Benchmark".to_owned();
                (tool, text(&context["date"]), environment, google_benchmark(document))
            }
        };
        if results.is_empty() {
            return Err(format!("it is JSON of {tool} without a result"));
        }
        let warnings = results.iter().flat_map(|row| &row.warnings);
        let failures = warnings.filter(|said| said.code == warning::FAILED);
        let mut errors: Vec<String> = failures.map(|said| said.text.clone()).collect();
        errors.dedup();
        let exit_code = i32::from(!errors.is_empty());
        let end = End { exit_code, errors, elapsed_s: self.elapsed_s(document), ..End::default() };
        let start = Start { tool, time, environment, ..Start::default() };
        Ok(Record { schema: SCHEMA.to_owned(), start, results, end, ..Record::default() })
    }

    /// How long the run took, where the document says it; else 0.
    fn elapsed_s(self, document: &Value) -> f64 {
        match self {
            Self::Fio => {
                let jobs = document["jobs"].as_array().into_iter().flatten();
                jobs.filter_map(|job| job["elapsed"].as_f64()).fold(0.0, f64::max)
            }
            Self::Iperf3 => document["start"]["test_start"]["duration"].as_f64().unwrap_or(0.0),
            Self::Hyperfine | Self::GoogleBenchmark => 0.0,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(String::new, |time| time.to_string())
}

/// A row of these runs; none without a run.
fn row(id: &str, parameters: Map<String, Value>, unit: Unit, samples: Vec<f64>) -> Option<Outcome> {
    let median = Some(statistics::median(&samples)?);
    Some(Outcome {
        id: id.to_owned(),
        parameters,
        unit: unit.name().to_owned(),
        better: unit.better(),
        median,
        n: samples.len() as u64,
        samples,
        ..Outcome::default()
    })
}

fn failed(id: &str, parameters: Map<String, Value>, why: String) -> Outcome {
    let why = Warning::new(warning::FAILED, why);
    Outcome { parameters, ..Outcome::without_figure(id, Status::Failed, why) }
}

/// Tells rows apart that would be one: jobs of one name, for example.
fn numbered(mut rows: Vec<Outcome>) -> Vec<Outcome> {
    let name = |row: &Outcome| format!("{} {}", row.id, Value::from(row.parameters.clone()));
    let alike = order::grouped(rows.iter().enumerate().map(|(at, row)| (name(row), at)));
    for (_, places) in alike.into_iter().filter(|(_, places)| places.len() > 1) {
        for (at, number) in places.into_iter().zip(1..) {
            rows[at].parameters.insert("number".to_owned(), number.into());
        }
    }
    rows
}

/// What each job read, wrote and trimmed: rate, and requests with their latencies.
fn fio(document: &Value) -> Vec<Outcome> {
    let mut rows = Vec::new();
    for job in document["jobs"].as_array().into_iter().flatten() {
        let mut parameters = Map::new();
        parameters.insert("job".to_owned(), job["jobname"].clone());
        for key in FIO_OPTIONS {
            let told = [&job["job options"][key], &document["global options"][key]];
            if let Some(value) = told.into_iter().find(|value| !value.is_null()) {
                parameters.insert(key.to_owned(), value.clone());
            }
        }
        let code = job["error"].as_i64().filter(|code| *code != 0);
        let failure = code.map(|code| format!("job {} failed with error {code}", job["jobname"]));
        let work = parameters.get("rw").and_then(Value::as_str).unwrap_or("read").to_owned();
        for way in ["read", "write", "trim"] {
            let done = &job[way];
            let is_meant = work.contains(way) || way != "trim" && work.contains("rw");
            let row = |test: &str, unit, key: &str| {
                let id = format!("fio/{way}{test}");
                if let Some(why) = &failure {
                    return is_meant.then(|| failed(&id, parameters.clone(), why.clone()));
                }
                let figure = done[key].as_f64().filter(|_| done["total_ios"].as_u64() > Some(0));
                let latency = fio_latency(done).filter(|_| key == "iops");
                let row = row(&id, parameters.clone(), unit, figure.into_iter().collect())?;
                Some(Outcome { latency, ..row })
            };
            rows.extend(row("", Unit::BytesPerSecond, "bw_bytes"));
            rows.extend(row("-iops", Unit::OperationsPerSecond, "iops"));
        }
    }
    numbered(rows)
}

fn fio_latency(done: &Value) -> Option<Latency> {
    let told = ["clat_ns", "lat_ns"].map(|key| &done[key]);
    let told = || told.into_iter().filter(|told| told["N"].as_u64() > Some(0));
    // Which of them has percentiles is an option of fio (clat_percentiles, lat_percentiles).
    let told = told().find(|told| told["percentile"].is_object()).or_else(|| told().next())?;
    let operations = told["N"].as_u64()?;
    let percentile = |percent: f64| {
        let beyond = operations as f64 * (100.0 - percent) / 100.0;
        let mut told = told["percentile"].as_object()?.iter();
        let (_, ns) = told.find(|(key, _)| key.parse() == Ok(percent))?;
        (beyond >= LEAST_BEYOND).then(|| (format!("p{percent}"), ns.clone()))
    };
    Some(Latency {
        loop_kind: "closed".to_owned(),
        operations,
        min_ns: told["min"].as_f64()?,
        max_ns: told["max"].as_f64()?,
        percentiles_ns: PERCENTILES.into_iter().filter_map(percentile).collect(),
    })
}

/// What was sent and what arrived, in bytes per second; of a test both ways at once, each way.
///
/// Errors: the test failed.
fn iperf3(document: &Value) -> Result<Vec<Outcome>, String> {
    if let Some(why) = document["error"].as_str() {
        return Err(format!("it is JSON of iperf3, which failed: {why}"));
    }
    let test = &document["start"]["test_start"];
    let named = [("protocol", "protocol"), ("streams", "num_streams"), ("block_bytes", "blksize")];
    let named = named.into_iter().filter(|(_, key)| !test[key].is_null() && test[key] != 0);
    let mut parameters: Map<String, Value> =
        named.map(|(name, key)| (name.to_owned(), test[key].clone())).collect();
    let mut rows = Vec::new();
    if test["reverse"] == 1 {
        parameters.insert("reverse".to_owned(), true.into());
    }
    rows.extend(iperf3_way(document, &parameters, ""));
    parameters.insert("reverse".to_owned(), true.into());
    rows.extend(iperf3_way(document, &parameters, "_bidir_reverse"));
    Ok(rows)
}

/// The rows of one way, whose sums have names that end so. The curve is that of the end which wrote
/// the document, without the seconds that were left out (`--omit`), whose time begins anew. A server knows
/// nothing of what the other end counted: it writes 0 bytes.
fn iperf3_way(document: &Value, parameters: &Map<String, Value>, ending: &str) -> Vec<Outcome> {
    let named = |name: &str| format!("{name}{ending}");
    let intervals = document["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let counted = || intervals.iter().map(|one| &one[named("sum")]);
    let is_sender = counted().all(|sum| sum["sender"] != false);
    let curve: Vec<[f64; 2]> = counted()
        .filter(|sum| sum["omitted"] != true)
        .filter_map(|sum| Some([sum["end"].as_f64()?, sum["bits_per_second"].as_f64()? / 8.0]))
        .collect();
    let end = &document["end"];
    let sums: &[(&str, &str)] = match end[named("sum_sent")].is_object() {
        true => &[("sent", "sum_sent"), ("received", "sum_received")],
        false => &[("moved", "sum")],
    };
    let rows = sums.iter().filter_map(|(test, name)| {
        let sum = &end[named(name)];
        let rate = sum["bits_per_second"].as_f64().filter(|_| sum["bytes"] != 0)? / 8.0;
        let id = format!("iperf3/{test}");
        let mut row = row(&id, parameters.clone(), Unit::BytesPerSecond, vec![rate])?;
        for fact in ["retransmits", "lost_packets", "packets"] {
            row.audit.extend(sum.get(fact).map(|value| (fact.to_owned(), value.clone())));
        }
        let is_own = *test == "moved" || is_sender == (*test == "sent");
        if is_own && curve.len() > 1 {
            row.series.push(Series {
                name: "rate over time".to_owned(),
                x: "time_s".to_owned(),
                y: Unit::BytesPerSecond.name().to_owned(),
                points: curve.clone(),
            });
        }
        Some(row)
    });
    rows.collect()
}

/// The time of each run of each command.
fn hyperfine(document: &Value) -> Vec<Outcome> {
    let commands = document["results"].as_array().into_iter().flatten();
    let rows = commands.filter_map(|result| {
        let mut parameters = result["parameters"].as_object().cloned().unwrap_or_default();
        parameters.insert("command".to_owned(), result["command"].clone());
        let times = result["times"].as_array().into_iter().flatten();
        let mut samples: Vec<f64> = times.filter_map(Value::as_f64).map(|s| s * 1e9).collect();
        if samples.is_empty() {
            samples.extend(result["median"].as_f64().map(|s| s * 1e9));
        }
        let mut row = row("hyperfine/command", parameters, Unit::Nanoseconds, samples)?;
        // Without `--ignore-failure` it ends at the first one. That of a signal is null.
        let codes = result["exit_codes"].as_array().map_or(&[][..], Vec::as_slice);
        let failed = codes.iter().filter(|code| **code != 0).count();
        if failed > 0 {
            let text = format!("{failed} of {} runs of the command failed", codes.len());
            row.warn(warning::FAILED, text);
            row.degrade();
        }
        Some(row)
    });
    numbered(rows.collect())
}

/// The real time of each repetition; means and the like, which it works out itself, are left out.
fn google_benchmark(document: &Value) -> Vec<Outcome> {
    const ID: &str = "google-benchmark/time";
    let all = document["benchmarks"].as_array().map_or(&[][..], Vec::as_slice);
    let is_run = |one: &&Value| one["run_type"].as_str().is_none_or(|kind| kind == "iteration");
    let name = |one: &Value| {
        one["run_name"].as_str().or(one["name"].as_str()).unwrap_or_default().to_owned()
    };
    let named = |name: String| Map::from_iter([("benchmark".to_owned(), name.into())]);
    let (skipped, run): (Vec<&Value>, Vec<&Value>) =
        all.iter().filter(is_run).partition(|one| one["skipped"] == true);
    let unit_ns = |one: &Value| {
        let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        units.into_iter().find(|(name, _)| one["time_unit"] == *name).map(|(_, ns)| ns)
    };
    let (broken, whole): (Vec<&Value>, Vec<&Value>) = run.into_iter().partition(|one| {
        one["error_occurred"] == true || one["real_time"].is_number() && unit_ns(one).is_none()
    });
    let time = |one: &Value| Some((name(one), one["real_time"].as_f64()? * unit_ns(one)?));
    let times = order::grouped(whole.into_iter().filter_map(time)).into_iter();
    let rows = times.filter_map(|(name, times)| row(ID, named(name), Unit::Nanoseconds, times));
    let broken = broken.into_iter().map(|one| {
        let why = one["error_message"].as_str().unwrap_or("the unit of its time is not known");
        failed(ID, named(name(one)), why.to_owned())
    });
    // Their time is 0.
    let skipped = skipped.into_iter().map(|one| {
        let why = Warning::new(warning::UNSUPPORTED, text(&one["skip_message"]));
        Outcome {
            parameters: named(name(one)),
            ..Outcome::without_figure(ID, Status::Unsupported, why)
        }
    });
    rows.chain(broken).chain(skipped).collect()
}

#[cfg(test)]
mod tests;
