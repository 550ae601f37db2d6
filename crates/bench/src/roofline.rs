//! The roofline of a run: what a loop can do that does so many operations for each byte it moves.
//!
//! Nothing is measured for it: the roofs are the rates of memory and of its caches and the rate of
//! f64 multiply-adds, which the areas hand over as [`Part`]s; the kernels of STREAM are its points.
//! Without the area cpu there are no roofs, only points. What the rows are made from: `memory/bound.rs`, `cpu`.
//!
//! Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance
//! model for multicore architectures", 2009.

use flatout_measure::{Chart, DERIVED_FROM, Facts, Key, Label, Outcome, Row, Unit, blank};

use crate::counted;
use crate::memory::levels::MEMORY;

/// Id of the rows.
const ID: &str = "memory/roofline";
/// What a loop does for each byte: the abscissa.
pub(crate) const FLOP_PER_BYTE: Key = Key::last("flop_per_byte");
/// The rate of the level.
const BYTES_PER_S: Key = Key::last("bytes_per_s");
/// Operations per byte, as powers of two: copies do next to nothing, products of matrices dozens.
const INTENSITIES: std::ops::RangeInclusive<i32> = -5..=6;

/// A figure of an area that the roofline is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// The rate at which so many threads move bytes.
    Rate {
        /// The level of memory.
        level: &'static str,
        /// Threads.
        threads: u32,
        /// Bytes per second.
        bytes_per_s: f64,
    },
    /// The rate of f64 multiply-adds.
    Units {
        /// Threads.
        threads: u32,
        /// Operations per second.
        flop_per_s: f64,
    },
    /// A measured loop over memory.
    Loop {
        /// Threads.
        threads: u32,
        /// Operations for each byte.
        flop_per_byte: f64,
        /// Its row, in bytes per second.
        outcome: Box<Outcome>,
    },
}

/// A point of a curve.
struct Point {
    curve: String,
    flop_per_byte: f64,
}

impl Row for Point {
    fn label(&self) -> Label {
        Label::new(ID, Unit::FlopPerSecond)
            .with("curve", self.curve.clone())
            .with(FLOP_PER_BYTE.name(), self.flop_per_byte)
    }
}

/// A rate at which some number of threads moves bytes, and how it is called.
#[derive(Debug, Clone, PartialEq)]
struct Roof {
    name: String,
    threads: u32,
    bytes_per_s: f64,
}

/// The rows and their picture; none where no working sets were measured, as in the short set of
/// all areas.
pub fn of(parts: &[Part]) -> (Vec<Outcome>, Option<Chart>) {
    let is_cache = |part: &Part| matches!(part, Part::Rate { level, .. } if *level != MEMORY);
    if !parts.iter().any(is_cache) {
        return (Vec::new(), None);
    }
    let roofs = roofs(parts);
    let lines = roofs.iter().filter_map(|roof| Some(line(roof, flop_per_s(parts, roof.threads)?)));
    let mut rows: Vec<Outcome> = lines.flatten().collect();
    rows.extend(parts.iter().filter_map(point));
    let title = "Roofline: operations per second by operations per byte";
    let chart = Chart::new(title, ID, FLOP_PER_BYTE.name(), &["curve"]);
    (rows, Some(chart.by_powers_of_two()))
}

/// The fastest of each level and number of threads, caches first.
fn roofs(parts: &[Part]) -> Vec<Roof> {
    let mut roofs: Vec<Roof> = Vec::new();
    for part in parts {
        let Part::Rate { level, threads, bytes_per_s } = *part else { continue };
        let name = format!("{level}, {}", counted(threads, "thread"));
        match roofs.iter_mut().find(|roof| roof.name == name) {
            Some(roof) => roof.bytes_per_s = roof.bytes_per_s.max(bytes_per_s),
            None => roofs.push(Roof { name, threads, bytes_per_s }),
        }
    }
    roofs.sort_by_key(|roof| roof.name.starts_with(MEMORY));
    roofs
}

/// The rate of f64 multiply-adds with so many threads: as measured, or what the fastest thread of
/// other numbers did times as many; none where no number was measured.
fn flop_per_s(parts: &[Part], wanted: u32) -> Option<f64> {
    let fastest = |is_scaled: bool| {
        let rate = |part: &Part| match *part {
            Part::Units { threads, flop_per_s } if is_scaled || threads == wanted => {
                Some(flop_per_s * f64::from(wanted) / f64::from(threads))
            }
            _ => None,
        };
        parts.iter().filter_map(rate).reduce(f64::max)
    };
    fastest(false).or_else(|| fastest(true))
}

/// A roof as a curve: what memory allows, until the units are the limit.
fn line(roof: &Roof, flop_per_s: f64) -> Vec<Outcome> {
    let facts = Facts::default().with(BYTES_PER_S, roof.bytes_per_s);
    // The rate of the arithmetic units.
    let audit = facts.with("units_flop_per_s", flop_per_s).to_json();
    let at = |log2: i32| {
        let flop_per_byte = 2_f64.powi(log2);
        let rate = (roof.bytes_per_s * flop_per_byte).min(flop_per_s);
        let row = Point { curve: roof.name.clone(), flop_per_byte };
        Outcome { median: Some(rate), audit: audit.clone(), ..blank(&row) }
    };
    INTENSITIES.map(at).collect()
}

/// A loop as a point.
fn point(part: &Part) -> Option<Outcome> {
    let Part::Loop { threads, flop_per_byte, outcome } = part else { return None };
    let scaled = |value: f64| value * flop_per_byte;
    let curve = format!("STREAM measured, {}", counted(threads, "thread"));
    let audit = Facts::default().with(DERIVED_FROM, outcome.id.clone()).to_json();
    Some(Outcome {
        audit,
        median: Some(scaled(outcome.median?)),
        ci95: outcome.ci95.map(|interval| interval.map(scaled)),
        n: outcome.n,
        samples: outcome.samples.iter().copied().map(scaled).collect(),
        status: outcome.status,
        ..blank(&Point { curve, flop_per_byte: *flop_per_byte })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Vec<Part> {
        let rate = |level, threads, bytes_per_s| Part::Rate { level, threads, bytes_per_s };
        let triad = |threads, rate: f64| {
            let figure =
                Outcome { median: Some(rate), samples: vec![rate], n: 1, ..Outcome::default() };
            Part::Loop { threads, flop_per_byte: 0.125, outcome: Box::new(figure) }
        };
        vec![
            rate(MEMORY, 1, 8e9),
            rate(MEMORY, 1, 10e9),
            rate(MEMORY, 2, 16e9),
            rate("L1", 1, 90e9),
            rate("L1", 1, 100e9),
            triad(1, 8e9),
            triad(2, 16e9),
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
        let mut parts = memory();
        parts.push(Part::Units { threads: 1, flop_per_s: 60e9 });
        let (rows, chart) = of(&parts);
        assert_eq!(at(&rows, "L1, 1 thread", 0.25), Some(25e9));
        assert_eq!(at(&rows, "L1, 1 thread", 1.0), Some(60e9));
        assert_eq!(at(&rows, "DRAM, 1 thread", 1.0), Some(10e9), "the fastest of STREAM");
        assert_eq!(at(&rows, "DRAM, 2 threads", 64.0), Some(120e9), "twice what one thread does");
        assert_eq!(at(&rows, "STREAM measured, 1 thread", 0.125), Some(1e9));
        assert_eq!(at(&rows, "STREAM measured, 2 threads", 0.125), Some(2e9));
        let chart = chart.unwrap();
        assert!(rows.iter().all(|row| row.id == chart.id));
        assert!(rows.iter().all(|row| row.parameters[&chart.x_parameter].is_number()));
    }

    /// Else a roof would rise beyond what any CPU does.
    #[test]
    fn without_units_there_is_no_roof() {
        let (rows, _) = of(&memory());
        assert!(!rows.is_empty());
        assert!(
            rows.iter().all(|row| row.parameters["curve"].as_str().unwrap().starts_with("STREAM"))
        );
    }

    #[test]
    fn a_few_rows_make_no_roofline() {
        let is_cache = |part: &Part| matches!(part, Part::Rate { level, .. } if *level != MEMORY);
        let few: Vec<_> = memory().into_iter().filter(|part| !is_cache(part)).collect();
        assert_eq!(of(&few), (Vec::new(), None));
    }
}
