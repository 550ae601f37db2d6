//! A record as the lines that `go test -bench` prints, so that benchstat can read it.
//!
//! One line per sample: benchstat makes its own statistics of them. Rows without a figure are
//! named in a comment, which benchstat skips. Nothing that changes from run to run stands before
//! the lines, because benchstat makes a table of its own of each such set. The grammar is that of
//! <https://golang.org/design/14313-benchmark-format>; what is lost stands in `docs/formats.md`.

use std::collections::{BTreeMap, HashMap};

use flatout_measure::record::{Outcome, Record};
use serde_json::Value;

use super::{raw, told};
use crate::identity::Identity;
use crate::label;
use crate::text::{self, Joined};

/// The lines.
pub fn document(record: &Record, identity: Identity) -> String {
    let shown = told(record, identity);
    let environment = &shown.start.environment;
    let mut out =
        format!("# {}, {}\n", text::visible(&shown.start.tool), text::visible(&shown.start.time));
    out.push_str("goos: linux\n");
    if let Some(architecture) = architecture(environment) {
        out.push_str(&format!("goarch: {architecture}\n"));
    }
    out.push_str("pkg: flatout\n");
    if let Some(model) = environment.get("cpu_model").and_then(Value::as_str) {
        out.push_str(&format!("cpu: {}\n", text::visible(model)));
    }
    for (unit, better) in directions(&shown.results) {
        out.push_str(&format!("Unit {unit} better={better}\n"));
    }
    let cpus = environment.get("cpus_online").and_then(Value::as_u64).unwrap_or(1);
    // Two rows may be alike once paths are hidden; under one name they would pass for one.
    let mut seen: HashMap<String, u64> = HashMap::new();
    for outcome in &shown.results {
        let name = name(outcome);
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        let number = if *count > 1 { format!("/row={count}") } else { String::new() };
        push_row(&mut out, &format!("{name}{number}-{cpus}"), outcome);
    }
    out
}

fn push_row(out: &mut String, name: &str, outcome: &Outcome) {
    let Some(median) = label::figure(outcome) else {
        out.push_str(&format!("# {name}: {}\n", label::no_figure(outcome.status)));
        return;
    };
    let unit = unit(&outcome.unit);
    // A figure that follows from others, such as a ratio of two rows, has no samples.
    let derived = [median];
    let samples = if outcome.samples.is_empty() { &derived[..] } else { &outcome.samples };
    for sample in samples {
        out.push_str(&format!("{name} 1 {sample} {unit}\n"));
    }
}

/// The direction of each unit, where all rows agree on it: benchstat wants one per unit.
fn directions(results: &[Outcome]) -> BTreeMap<String, &'static str> {
    let mut directions: BTreeMap<String, Option<&'static str>> = BTreeMap::new();
    for outcome in results.iter().filter(|outcome| label::figure(outcome).is_some()) {
        let better = outcome.better.name();
        let known = directions.entry(unit(&outcome.unit)).or_insert(Some(better));
        if *known != Some(better) {
            *known = None;
        }
    }
    directions.into_iter().filter_map(|(unit, better)| Some((unit, better?))).collect()
}

/// `BenchmarkDisk/random-read/block_bytes=4096/threads=1`; the number of CPUs follows it.
fn name(outcome: &Outcome) -> String {
    let mut id = outcome.id.split('/').map(word).joined("/");
    if let Some(first) = id.get(..1) {
        id.replace_range(..1, &first.to_ascii_uppercase());
    }
    let parameters = label::ordered(&outcome.parameters).into_iter();
    let parameters: String =
        parameters.map(|(key, value)| format!("/{}={}", word(key), word(&raw(value)))).collect();
    format!("Benchmark{id}{parameters}")
}

/// The text as a part of a name: what would end the part, or is no text, is written as `%` and the
/// hexadecimal digits of its bytes.
fn word(text: &str) -> String {
    let is_part =
        |c: char| !c.is_whitespace() && !text::is_unsafe(c) && !matches!(c, '/' | '%' | '=');
    let spelled =
        |c: char| -> String { c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let word = text::replaced(text, |c| (!is_part(c)).then(|| spelled(c).into()));
    if word.is_empty() { "%".to_owned() } else { word }
}

/// The unit as benchstat knows it: it gives `B/s` binary prefixes and makes seconds of `ns/op`.
fn unit(unit: &str) -> String {
    match unit {
        "bytes/s" => "B/s".to_owned(),
        "ns" => "ns/op".to_owned(),
        "s" => "sec/op".to_owned(),
        "operations/s" => "op/s".to_owned(),
        "" => "value".to_owned(),
        other => other.split('/').map(word).joined("/"),
    }
}

/// Go's name of the architecture, from the vector extension that was found.
fn architecture(environment: &Value) -> Option<&'static str> {
    match environment.get("simd")?.as_str()? {
        "neon" | "sve" | "sve2" => Some("arm64"),
        word if word.starts_with("avx") || word.starts_with("sse") => Some("amd64"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{Better, End, Start};
    use serde_json::json;

    use super::*;

    #[test]
    fn names_hold_no_space_and_say_everything() {
        let outcome = Outcome {
            id: "disk/random read".to_owned(),
            parameters: json!({"threads": 2, "engine": "a/b c%", "file": ""})
                .as_object()
                .cloned()
                .unwrap(),
            ..Outcome::default()
        };
        assert_eq!(
            name(&outcome),
            "BenchmarkDisk/random%20read/engine=a%2Fb%20c%25/threads=2/file=%"
        );
    }

    #[test]
    fn a_unit_has_a_direction_when_all_rows_agree() {
        let row = |unit: &str, better| Outcome {
            unit: unit.to_owned(),
            better,
            median: Some(1.0),
            ..Outcome::default()
        };
        let rows = [
            row("ns", Better::Lower),
            row("ratio", Better::Lower),
            row("ratio", Better::Higher),
            row("bytes/s", Better::Higher),
        ];
        let found: Vec<_> = directions(&rows).into_iter().collect();
        assert_eq!(found, [("B/s".to_owned(), "higher"), ("ns/op".to_owned(), "lower")]);
    }

    #[test]
    fn rows_that_are_alike_once_paths_are_hidden_stay_apart() {
        let row = |file: &str| Outcome {
            id: "a/b".to_owned(),
            parameters: json!({"place": file}).as_object().cloned().unwrap(),
            median: Some(1.0),
            ..Outcome::default()
        };
        let record = Record {
            schema: String::new(),
            start: Start {
                tool: String::new(),
                argv: Vec::new(),
                seed: 0,
                time: String::new(),
                environment: json!({"cpus_online": 2}),
            },
            results: vec![row("/home/x"), row("/home/y")],
            charts: Vec::new(),
            end: End::default(),
        };
        let text = document(&record, Identity::Hidden);
        assert!(text.contains("BenchmarkA/b/place=(hidden)-2 1 1 value\n"), "{text}");
        assert!(text.contains("BenchmarkA/b/place=(hidden)/row=2-2 1 1 value\n"), "{text}");
    }

    #[test]
    fn every_sample_is_a_line_and_no_figure_is_a_comment() {
        let mut out = String::new();
        let mut outcome = Outcome {
            id: "a/b".to_owned(),
            unit: "ns".to_owned(),
            median: Some(2.5),
            samples: vec![2.0, 3.0],
            ..Outcome::default()
        };
        push_row(&mut out, "BenchmarkA/b-2", &outcome);
        outcome.samples.clear();
        push_row(&mut out, "BenchmarkA/b-2", &outcome);
        outcome.median = None;
        push_row(&mut out, "BenchmarkA/b-2", &outcome);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines,
            [
                "BenchmarkA/b-2 1 2 ns/op",
                "BenchmarkA/b-2 1 3 ns/op",
                "BenchmarkA/b-2 1 2.5 ns/op",
                "# BenchmarkA/b-2: no figure"
            ]
        );
    }
}
