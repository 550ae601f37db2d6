//! The roofline of a run: what a loop can do that does so many operations for each byte it moves.
//!
//! Nothing is measured for it: the roofs are the rates of memory and of its caches and the rate of
//! f64 multiply-adds, all from rows of the record of this run; the kernels of STREAM are its points.
//! Without the area cpu the roofs have no end. What the rows are made from: `memory/bound.rs`, `cpu`.
//!
//! Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
//! model for multicore architectures", 2009.

use std::borrow::Cow;

use flatout_measure::case::{Measured, blank};
use flatout_measure::fact::{Facts, Key};
use flatout_measure::record::{Chart, Outcome};
use flatout_measure::row::{Parameters, Row, Unit};
use serde_json::{Value, json};

use crate::memory::fact::{FLOP_PER_BYTE, FLOP_PER_S, LEVEL};

/// Id of the rows.
const ID: &str = "memory/roofline";
/// The rate of the level.
const BYTES_PER_S: Key = Key::last("bytes_per_s");
/// The rate of the arithmetic units.
const UNITS_FLOP_PER_S: Key = Key::last("units_flop_per_s");
/// Operations per byte, as powers of two: copies do next to nothing, products of matrices dozens.
const INTENSITIES: std::ops::RangeInclusive<i32> = -5..=6;

/// A point of a curve.
struct Point {
    curve: String,
    flop_per_byte: f64,
}

impl Row for Point {
    fn id(&self) -> Cow<'static, str> {
        ID.into()
    }

    fn parameters(&self) -> Parameters {
        Parameters::default()
            .with("curve", self.curve.clone())
            .with(FLOP_PER_BYTE.name(), self.flop_per_byte)
    }

    fn unit(&self) -> Unit {
        Unit::FlopPerSecond
    }
}

/// A rate at which some number of threads moves bytes, and how it is called.
#[derive(Debug, Clone, PartialEq)]
struct Roof {
    name: String,
    threads: u64,
    bytes_per_s: f64,
}

/// The rows and their picture; none where no working sets were measured, as in the short set of
/// all areas.
pub fn of(outcomes: &[Outcome]) -> (Vec<Outcome>, Option<Chart>) {
    let roofs = roofs(outcomes);
    if roofs.is_empty() {
        return (Vec::new(), None);
    }
    let mut rows: Vec<Outcome> =
        roofs.iter().flat_map(|roof| line(roof, flop_per_s(outcomes, roof.threads))).collect();
    rows.extend(outcomes.iter().filter_map(stream));
    let chart = Chart {
        title: "Roofline: operations per second by operations per byte".to_owned(),
        id: ID.to_owned(),
        x_parameter: FLOP_PER_BYTE.name().to_owned(),
        x_log2: true,
        line_parameters: vec!["curve".to_owned()],
    };
    (rows, Some(chart))
}

/// The fastest row of each level of one thread, and of STREAM for each number of threads.
fn roofs(outcomes: &[Outcome]) -> Vec<Roof> {
    let mut roofs: Vec<Roof> = Vec::new();
    let sets = outcomes.iter().filter(|row| row.id == "memory/working-set");
    for row in sets {
        let level = row.audit.get(LEVEL.name()).and_then(Value::as_str);
        // Memory is STREAM's, with arrays that are longer; what may be either is no roof.
        if let Some(level) = level.filter(|level| level.starts_with('L') && level.len() == 2) {
            raise(&mut roofs, level, 1, row.median);
        }
    }
    if roofs.is_empty() {
        return roofs;
    }
    for row in outcomes.iter().filter(|row| row.id == "memory/stream") {
        if let Some(threads) = number(row, "threads") {
            raise(&mut roofs, "DRAM", threads, row.median);
        }
    }
    roofs
}

/// Takes in a rate: the highest of a level and number of threads is the roof.
fn raise(roofs: &mut Vec<Roof>, level: &str, threads: u64, rate: Option<f64>) {
    let Some(bytes_per_s) = rate.filter(|rate| *rate > 0.0) else { return };
    let name = label(level, threads);
    match roofs.iter_mut().find(|roof| roof.name == name) {
        Some(roof) => roof.bytes_per_s = roof.bytes_per_s.max(bytes_per_s),
        None => roofs.push(Roof { name, threads, bytes_per_s }),
    }
}

fn label(what: &str, threads: u64) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{what}, {threads} thread{plural}")
}

fn number(row: &Outcome, key: &str) -> Option<u64> {
    row.parameters.get(key).and_then(Value::as_u64)
}

/// The rate of f64 multiply-adds with so many threads; none where it was not measured.
fn flop_per_s(outcomes: &[Outcome], threads: u64) -> Option<f64> {
    let is = |row: &&Outcome| {
        let has = |key: &str, value: Value| row.parameters.get(key) == Some(&value);
        row.id == "cpu/throughput"
            && has("type", json!("f64"))
            && has("operation", json!("multiply-add"))
            && has("threads", json!(threads))
    };
    outcomes.iter().filter(is).filter_map(|row| row.median).reduce(f64::max)
}

/// A roof as a curve: what memory allows, until the units are the limit.
fn line(roof: &Roof, flop_per_s: Option<f64>) -> Vec<Outcome> {
    let mut facts = Facts::default().with(BYTES_PER_S, roof.bytes_per_s);
    facts.set_known(UNITS_FLOP_PER_S, flop_per_s);
    let at = |log2: i32| {
        let flop_per_byte = 2_f64.powi(log2);
        let allowed = roof.bytes_per_s * flop_per_byte;
        let rate = flop_per_s.map_or(allowed, |most| allowed.min(most));
        let row = Point { curve: roof.name.clone(), flop_per_byte };
        let outcome = Outcome { median: Some(rate), ..blank(&row) };
        Measured { row, outcome, facts: facts.clone(), further: Vec::new() }
    };
    INTENSITIES.map(at).flat_map(Measured::record).collect()
}

/// A kernel of STREAM as a point.
fn stream(row: &Outcome) -> Option<Outcome> {
    let fact = |key: Key| row.audit.get(key.name())?.as_f64().filter(|one| *one > 0.0);
    let (flop_per_byte, rate) = (fact(FLOP_PER_BYTE)?, fact(FLOP_PER_S)?);
    // Kernels that go past the caches have the same operations per byte.
    let kernel = row.parameters.get("kernel")?.as_str()?;
    if row.id != "memory/stream" || kernel.starts_with("nt-") {
        return None;
    }
    let curve = label("STREAM measured", number(row, "threads")?);
    let scaled = |value: f64| value * flop_per_byte;
    Some(Outcome {
        median: Some(rate),
        ci95: row.ci95.map(|interval| interval.map(scaled)),
        n: row.n,
        samples: row.samples.iter().copied().map(scaled).collect(),
        status: row.status,
        ..blank(&Point { curve, flop_per_byte })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, parameters: Value, audit: Value, median: f64) -> Outcome {
        Outcome {
            id: id.to_owned(),
            parameters: parameters.as_object().cloned().unwrap(),
            audit: audit.as_object().cloned().unwrap(),
            median: Some(median),
            samples: vec![median],
            n: 1,
            ..Outcome::default()
        }
    }

    fn memory() -> Vec<Outcome> {
        let set = |level: &str, rate| {
            row("memory/working-set", json!({"kernel": "read"}), json!({"level": level}), rate)
        };
        let stream = |kernel: &str, threads: u64, rate: f64| {
            let audit = json!({"flop_per_byte": 0.125, "flop_per_s": rate / 8.0});
            row("memory/stream", json!({"kernel": kernel, "threads": threads}), audit, rate)
        };
        vec![
            set("L1", 90e9),
            set("L1", 100e9),
            set("last cache or DRAM", 900e9),
            stream("triad", 1, 8e9),
            stream("nt-triad", 1, 10e9),
            stream("triad", 2, 16e9),
        ]
    }

    fn at(rows: &[Outcome], curve: &str, intensity: f64) -> Option<f64> {
        let is = |row: &&Outcome| {
            row.parameters["curve"] == curve && row.parameters["flop_per_byte"] == intensity
        };
        rows.iter().find(is).and_then(|row| row.median)
    }

    #[test]
    fn a_roof_rises_with_the_operations_per_byte_until_the_units_are_busy() {
        let mut outcomes = memory();
        let units = json!({"type": "f64", "operation": "multiply-add", "threads": 1});
        outcomes.push(row("cpu/throughput", units, json!({}), 60e9));
        let (rows, chart) = of(&outcomes);
        assert_eq!(at(&rows, "L1, 1 thread", 0.25), Some(25e9));
        assert_eq!(at(&rows, "L1, 1 thread", 1.0), Some(60e9));
        assert_eq!(at(&rows, "DRAM, 1 thread", 1.0), Some(10e9), "the fastest of STREAM");
        assert_eq!(at(&rows, "DRAM, 2 threads", 64.0), Some(1024e9), "no units were measured");
        assert_eq!(at(&rows, "STREAM measured, 1 thread", 0.125), Some(1e9));
        assert_eq!(at(&rows, "STREAM measured, 2 threads", 0.125), Some(2e9));
        let chart = chart.unwrap();
        assert!(rows.iter().all(|row| row.id == chart.id));
        assert!(rows.iter().all(|row| row.parameters[&chart.x_parameter].is_number()));
    }

    #[test]
    fn a_few_rows_make_no_roofline() {
        let few: Vec<_> = memory().into_iter().filter(|row| row.id == "memory/stream").collect();
        assert_eq!(of(&few), (Vec::new(), None));
    }
}
