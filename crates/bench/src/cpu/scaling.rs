//! Threads against rate, beside the peak: rows made of other rows, for a picture.

use std::collections::BTreeSet;

use flatout_measure::record::{Chart, Outcome, Provenance, Status};
use serde_json::{Value, json};

const FLOATING: &str = "cpu/scaling";
const INTEGER: &str = "cpu/integer-scaling";

/// Which row a curve is made of: pinned multiply-add of the rung that has several threads.
fn is_curve(outcome: &Outcome) -> bool {
    let text = |key: &str| outcome.parameters.get(key).and_then(Value::as_str);
    outcome.id == "cpu/throughput"
        && text("operation") == Some("multiply-add")
        && matches!(text("type"), Some("f32" | "f64" | "i32" | "i64"))
        && outcome.parameters.get("pinned") == Some(&json!(true))
        && outcome.median.is_some()
}

/// For each point of a curve the figure, and its peak where that is known; no curve of one point.
pub(super) fn rows(outcomes: &[Outcome]) -> Vec<Outcome> {
    let word = |outcome: &Outcome, key: &str| outcome.parameters.get(key).cloned();
    let key =
        |outcome: &Outcome| format!("{:?} {:?}", word(outcome, "type"), word(outcome, "level"));
    let points: Vec<&Outcome> = outcomes.iter().filter(|outcome| is_curve(outcome)).collect();
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<String> =
        points.iter().map(|outcome| key(outcome)).filter(|key| !seen.insert(key.clone())).collect();
    let mut rows = Vec::new();
    for outcome in points.into_iter().filter(|outcome| repeated.contains(&key(outcome))) {
        rows.push(point(outcome, "measured"));
        let peak = outcome.ceiling.as_ref().filter(|one| one.provenance != Provenance::Unknown);
        if let Some(value) = peak.and_then(|peak| peak.value) {
            let figure = Outcome {
                median: Some(value),
                ci95: None,
                n: 0,
                samples: Vec::new(),
                status: Status::Ok,
                ..point(outcome, "peak")
            };
            rows.push(figure);
        }
    }
    rows
}

fn point(outcome: &Outcome, curve: &str) -> Outcome {
    let floating = outcome.unit == "flop/s";
    let keys = ["type", "level", "threads"];
    let mut parameters: serde_json::Map<String, Value> = keys
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), outcome.parameters.get(key)?.clone())))
        .collect();
    parameters.insert("curve".to_owned(), json!(curve));
    Outcome {
        id: if floating { FLOATING } else { INTEGER }.to_owned(),
        parameters,
        audit: serde_json::Map::new(),
        ceiling: None,
        warnings: Vec::new(),
        series: Vec::new(),
        latency: None,
        ..outcome.clone()
    }
}

/// The pictures that these rows make.
pub(super) fn charts(outcomes: &[Outcome]) -> Vec<Chart> {
    let titles = [
        (FLOATING, "Floating-point multiply-add by threads, and its peak"),
        (INTEGER, "Integer multiply-add by threads, and its peak"),
    ];
    let has = |id: &str| outcomes.iter().any(|outcome| outcome.id == id);
    let chart = |(id, title): (&str, &str)| Chart {
        title: title.to_owned(),
        id: id.to_owned(),
        x_parameter: "threads".to_owned(),
        x_log2: true,
        line_parameters: ["type", "curve", "level"].map(str::to_owned).to_vec(),
    };
    titles.into_iter().filter(|(id, _)| has(id)).map(chart).collect()
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Ceiling;

    use super::*;

    fn row(threads: u32, level: &str, peak: Option<f64>) -> Outcome {
        let parameters = json!({
            "type": "f64", "operation": "multiply-add", "level": level, "threads": threads,
            "pinned": true
        });
        let provenance = peak.map_or(Provenance::Unknown, |_| Provenance::Inferred);
        Outcome {
            id: "cpu/throughput".to_owned(),
            parameters: parameters.as_object().cloned().unwrap(),
            unit: "flop/s".to_owned(),
            median: Some(10.0),
            samples: vec![10.0],
            n: 1,
            ceiling: Some(Ceiling { value: peak, provenance, ..Ceiling::default() }),
            ..Outcome::default()
        }
    }

    #[test]
    fn a_curve_stands_beside_its_peak() {
        let outcomes = [row(1, "avx512", Some(11.0)), row(2, "avx512", None), row(1, "sse2", None)];
        let rows = rows(&outcomes);
        let figures: Vec<_> = rows
            .iter()
            .map(|row| (row.parameters["curve"].as_str().unwrap(), row.median.unwrap(), row.n))
            .collect();
        assert_eq!(figures, [("measured", 10.0, 1), ("peak", 11.0, 0), ("measured", 10.0, 1)]);
        assert!(rows.iter().all(|row| row.parameters["level"] == "avx512"), "one point, no curve");
        let charts = charts(&rows);
        assert_eq!((charts.len(), charts[0].id.as_str()), (1, "cpu/scaling"));
    }
}
