//! A record as metrics (OpenMetrics 1.0 text), for node_exporter's textfile collector.
//!
//! Every family is a gauge, also those that end in `_info`: node_exporter reads the older text
//! format, which knows no other type for them. Base units: nanoseconds become seconds. Rows are
//! told apart by `id` and by their parameters as labels; how good a row is stands in
//! `flatout_result_info`, so that the label sets of figures do not change from run to run. Names are
//! listed in `docs/formats.md`; `family` holds lines together.

mod family;

use flatout_measure::record::{Ceiling, Mark, Outcome, Provenance, Record};
use serde_json::Value;

use self::family::{Families, Labels};
use super::{raw, told};
use crate::identity::Identity;
use crate::{label, text::Joined};

/// Nanoseconds in a second.
const SECOND_NS: f64 = 1e9;

/// Facts of the environment that become labels of the machine, where they are known.
const MACHINE: &str = "cpu_model cpus_online governor hypervisor io_uring_disabled kernel_release \
    memory_bytes simd transparent_hugepages";

/// Facts that name the machine; written only where they are asked for.
const IDENTITY: [&str; 2] = ["host_name", "host"];

/// Labels that say something else than a parameter.
const RESERVED: [&str; 8] =
    ["id", "row", "percentile", "status", "better", "warnings", "ceiling", "limiter"];

/// The metrics, with `# EOF` at their end.
pub fn document(record: &Record, identity: Identity) -> String {
    let shown = told(record, identity);
    let mut families = Families::default();
    machine(&mut families, &shown, identity);
    run(&mut families, &shown);
    let rows = told_apart(&shown.results);
    for (outcome, labels) in shown.results.iter().zip(&rows) {
        row(&mut families, outcome, labels);
    }
    families.text()
}

fn machine(families: &mut Families, record: &Record, identity: Identity) {
    let mut labels = Labels::default();
    labels.add("tool", &record.start.tool);
    let identifying = IDENTITY.into_iter().filter(|_| identity == Identity::Shown);
    for key in MACHINE.split(' ').chain(identifying) {
        if let Some(value) = record.start.environment.get(key).filter(|value| !value.is_null()) {
            labels.add(key, &raw(value));
        }
    }
    families.add("flatout_machine_info", "Machine and program of the run.", &labels, 1.0);
}

fn run(families: &mut Families, record: &Record) {
    let none = Labels::default();
    if let Some(seconds) = unix_seconds(&record.start.time) {
        let help = "When the run began, in seconds since 1970.";
        families.add("flatout_run_start_timestamp_seconds", help, &none, seconds);
    }
    let help = "How long the run took.";
    families.add("flatout_run_elapsed_seconds", help, &none, record.end.elapsed_s);
    let help = "Exit code of the run: 0 done, 1 failed, 2 wrong use, 130 interrupted.";
    families.add("flatout_run_exit_code", help, &none, f64::from(record.end.exit_code));
    let help = "What went wrong in the run.";
    families.add("flatout_run_errors", help, &none, record.end.errors.len() as f64);
    // What nobody knows is neither.
    for answer in record.end.verdict.iter().filter(|answer| answer.mark() != Mark::Unknown) {
        let mut labels = Labels::default();
        labels.add("question", &answer.question);
        let help = "Whether an answer of the verdict is reassuring.";
        families.add("flatout_verdict_good", help, &labels, f64::from(u8::from(answer.good)));
    }
}

fn row(families: &mut Families, outcome: &Outcome, labels: &Labels) {
    // What was best in this run, or is not known, bounds nothing.
    let is_bound = |ceiling: &&Ceiling| {
        !matches!(ceiling.provenance, Provenance::BestSeen | Provenance::Unknown)
    };
    let ceiling = outcome.ceiling.as_ref();
    let bound = ceiling.filter(is_bound);
    let mut info = labels.clone();
    info.add("status", outcome.status.name());
    info.add("better", outcome.better.name());
    info.add("warnings", &outcome.warnings.iter().map(|warning| warning.code.as_str()).joined(" "));
    info.add("ceiling", bound.map_or("", |ceiling| &ceiling.name));
    info.add("limiter", ceiling.map_or("", |ceiling| &ceiling.limiter));
    families.add("flatout_result_info", "How far a row can be trusted.", &info, 1.0);
    let help = "Trials that count.";
    families.add("flatout_result_trials", help, labels, outcome.n as f64);
    let Some(median) = label::figure(outcome) else { return };

    let (unit, divisor) = unit(&outcome.unit);
    let mut figure = |part: &str, help: &str, value: f64| {
        families.add(&format!("flatout_result{part}_{unit}"), help, labels, value / divisor);
    };
    figure("", "Median of the trials.", median);
    if let Some([low, high]) = outcome.ci95 {
        figure("_low", "Lower end of the median's 95 % confidence interval.", low);
        figure("_high", "Upper end of the median's 95 % confidence interval.", high);
    }
    if let Some(value) = bound.and_then(|ceiling| ceiling.value) {
        figure("_ceiling", "What bounds the figure.", value);
    }
    if let Some(ratio) = bound.and_then(|ceiling| ceiling.ratio) {
        let help = "Share of its ceiling that a figure reaches.";
        families.add("flatout_result_of_ceiling_ratio", help, labels, ratio);
    }
    let Some(latency) = &outcome.latency else { return };
    for name in label::percentiles(std::iter::once(latency)) {
        if let Some(ns) = latency.percentiles_ns.get(&name).and_then(Value::as_f64) {
            let mut labels = labels.clone();
            labels.add("percentile", &name);
            let help = "Latency of single operations, all trials together.";
            families.add("flatout_result_latency_seconds", help, &labels, ns / SECOND_NS);
        }
    }
}

/// Labels that tell each row from every other: of rows that are alike in all, the later ones are
/// numbered.
fn told_apart(results: &[Outcome]) -> Vec<Labels> {
    let mut seen = std::collections::HashMap::new();
    let own = results.iter().map(|outcome| {
        let mut labels = Labels::default();
        labels.add("id", &outcome.id);
        for (key, value) in &outcome.parameters {
            let is_reserved = RESERVED.contains(&key.to_ascii_lowercase().as_str());
            let prefix = if is_reserved { "parameter_" } else { "" };
            labels.add(&format!("{prefix}{key}"), &raw(value));
        }
        let count: &mut u64 = seen.entry(labels.to_string()).or_default();
        *count += 1;
        if *count > 1 {
            labels.add("row", &count.to_string());
        }
        labels
    });
    own.collect()
}

/// The unit as the end of a name, and by what a figure is divided to be in it.
fn unit(unit: &str) -> (String, f64) {
    let name = match unit {
        "ns" => return ("seconds".to_owned(), SECOND_NS),
        "s" => "seconds",
        "op/s" | "operations/s" => "operations_per_second",
        "Hz" => "hertz",
        "" => "value",
        other => {
            let rate = other.strip_suffix("/s").map(|stem| format!("{stem}_per_second"));
            return (family::name_part(rate.as_deref().unwrap_or(other)), 1.0);
        }
    };
    (name.to_owned(), 1.0)
}

/// Seconds since 1970 of an RFC 3339 time; none if it is something else.
fn unix_seconds(time: &str) -> Option<f64> {
    time.parse::<jiff::Timestamp>().ok().map(|time| time.as_second() as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00+00:00"), Some(0.0));
        assert_eq!(unix_seconds("2026-11-21T23:59:43+00:00"), Some(1_795_305_583.0));
        assert_eq!(unix_seconds("2024-02-29T12:00:00.5-02:30"), Some(1_709_217_000.0));
        for wrong in ["", "yesterday", "2024-13-01T00:00:00Z", "2024-01-01T00:00:00", "é"] {
            assert_eq!(unix_seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn units_end_a_name() {
        assert_eq!(unit("ns"), ("seconds".to_owned(), SECOND_NS));
        assert_eq!(unit("bytes/s"), ("bytes_per_second".to_owned(), 1.0));
        assert_eq!(unit("flop/s"), ("flop_per_second".to_owned(), 1.0));
        assert_eq!(unit("CPUs"), ("cpus".to_owned(), 1.0));
        assert_eq!(unit("\u{1b}<a b>"), ("a_b".to_owned(), 1.0));
    }

    #[test]
    fn only_what_bounds_a_figure_is_written_as_its_ceiling() {
        let text = |provenance| {
            let ceiling = Ceiling { value: Some(2e9), provenance, ..Ceiling::default() };
            let ceiling = Some(Ceiling { name: "the best".to_owned(), ..ceiling });
            let unit = "bytes/s".to_owned();
            let outcome = Outcome { median: Some(1e9), unit, ceiling, ..Outcome::default() };
            let mut families = Families::default();
            row(&mut families, &outcome, &Labels::default());
            families.text()
        };
        assert!(text(Provenance::Measured).contains("flatout_result_ceiling_bytes_per_second 2"));
        for no_bound in [Provenance::BestSeen, Provenance::Unknown] {
            let text = text(no_bound);
            assert!(!text.contains("_ceiling_") && !text.contains("the best"), "{text}");
        }
    }

    #[test]
    fn an_answer_that_nobody_knows_is_neither_good_nor_bad() {
        let answer = |mark: Option<&str>| {
            let mut answer = json!({"question": "q", "good": false, "text": "", "rests_on": []});
            answer["mark"] = mark.into();
            answer
        };
        let of = |answers: Vec<Value>| {
            let record = serde_json::from_value::<Record>(json!({
                "schema": "flatout/1", "results": [],
                "start": {"tool": "", "argv": [], "seed": 0, "time": "", "environment": {}},
                "end": {"elapsed_s": 1.0, "exit_code": 0, "errors": [], "verdict": answers},
            }));
            document(&record.unwrap(), Identity::Hidden)
        };
        assert!(of(vec![answer(None)]).contains("flatout_verdict_good{question=\"q\"} 0"));
        assert!(!of(vec![answer(Some("unknown"))]).contains("flatout_verdict_good"));
    }

    #[test]
    fn rows_that_are_alike_are_numbered() {
        let row = || Outcome { id: "a/b".to_owned(), ..Outcome::default() };
        let labels = told_apart(&[row(), row(), row()]);
        let texts: Vec<String> = labels.iter().map(Labels::to_string).collect();
        assert_eq!(texts, ["{id=\"a/b\"}", "{id=\"a/b\",row=\"2\"}", "{id=\"a/b\",row=\"3\"}"]);
    }
}
