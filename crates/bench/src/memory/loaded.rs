//! Latency of memory while other CPUs read from it, in steps of what they can read.
//!
//! The load is a loop that reads a buffer of its own, with pauses between pieces such that it works
//! for the share of the time that the row names. How many bytes per second that was while the
//! chase ran is counted, and stands in the audit.

mod load;

use std::rc::Rc;

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Chart, Outcome, Provenance};
use flatout_measure::row::Unit;
use flatout_sys::affinity;
use flatout_sys::chase::LINE_BYTES;
use serde_json::{Map, Value, json};

use super::latency::Chases;
use super::ring::{self, Shape};
use crate::area::Extent;

use load::{Load, Loads};

/// Id of the rows.
pub const ID: &str = "memory/loaded-latency";
/// Most CPUs that make the load; more than a memory controller needs.
const MOST_LOADERS: usize = 32;
/// Most memory of all loads together.
const MOST_BYTES: u64 = 512 << 20;

/// The rows; none where there is not the room for a working set in memory. Where one CPU is
/// allowed, those with a load say that they need two.
pub fn cases(chases: &Chases) -> Vec<Case<'static, Plain>> {
    let shapes = chases.memory_shapes(LINE_BYTES);
    if shapes.is_empty() {
        return Vec::new();
    }
    let shares: &[u32] = match chases.extent {
        Extent::Full => &[0, 25, 50, 100],
        Extent::Quick => &[0, 100],
        Extent::Few => &[],
    };
    let loads = Rc::new(Loads::new(memory_bytes(chases)));
    let of = |&percent: &u32| case(chases.clone(), Rc::clone(&loads), shapes.clone(), percent);
    shares.iter().map(of).collect()
}

/// Memory that the load reads, beside the rings of the curve: no cache holds it.
pub fn memory_bytes(chases: &Chases) -> u64 {
    if chases.extent == Extent::Few || chases.memory_shapes(LINE_BYTES).is_empty() {
        return 0;
    }
    (2 * chases.cache_bytes).clamp(64 << 20, MOST_BYTES)
}

fn case(
    chases: Chases,
    loads: Rc<Loads>,
    shapes: Vec<Shape>,
    percent: u32,
) -> Case<'static, Plain> {
    let mut parameters = Map::new();
    parameters.insert("load_percent".to_owned(), percent.into());
    Case {
        row: Plain { id: ID, parameters, unit: Unit::Nanoseconds },
        trial: Box::new(move |seed| trial(&chases, &loads, &shapes, Load { percent, seed })),
    }
}

fn trial(
    chases: &Chases,
    loads: &Loads,
    shapes: &[Shape],
    wanted: Load,
) -> Result<Sample, TrialError> {
    let cpu = ring::chase_cpu()?;
    let cpus = affinity::allowed_cpus().unwrap_or_default();
    let others: Vec<usize> =
        cpus.into_iter().filter(|&other| other != cpu).take(MOST_LOADERS).collect();
    if wanted.percent > 0 && others.is_empty() {
        let text = "two CPUs are needed, one is allowed: the other one makes the load";
        return Err(TrialError::Unsupported(text.to_owned()));
    }
    let (shape, chase) = chases.rings.first(shapes, cpu, wanted.seed)?;
    let chase = &*chase;
    let others = if wanted.percent == 0 { Vec::new() } else { others };
    let warm_nodes = ring::warm_nodes(shape, chases.cache_bytes);
    let walk_ns = chases.walk_ns;
    let index = wanted.seed as usize % chase.places();
    let threads = others.len();
    let mut sample = loads.during(wanted, &others, |counted| {
        ring::on_cpu(cpu, || {
            chase.warm(index, warm_nodes);
            let mut place = chase.place(index);
            let mut load_bytes = 0;
            let (steps, elapsed_ns) = ring::time_steps(walk_ns, |steps| {
                let before = counted();
                let from = place;
                place = chase.walk(from, steps);
                load_bytes = counted() - before;
                chase.is_after(from, steps, place)
            })?;
            let mut sample = Sample { amount: steps as f64, elapsed_ns, ..Sample::default() };
            sample.audit.insert("load_bytes".to_owned(), json!(load_bytes));
            sample.audit.insert("load_ns".to_owned(), json!(elapsed_ns));
            ring::note_cpu(&mut sample, cpu);
            ring::note_ring(&mut sample, shape, shapes[0]);
            Ok(sample)
        })
    })?;
    sample.audit.insert("load_threads".to_owned(), threads.to_string().into());
    Ok(sample)
}

/// Adds `load_bytes_per_s` to each row, and holds it against the latency without a load.
pub fn finish(outcomes: &mut [Outcome]) {
    let percent = |row: &Outcome| row.parameters.get("load_percent").and_then(Value::as_u64);
    let rows = outcomes.iter().filter(|row| row.id == ID);
    let idle_ns = rows.filter(|row| percent(row) == Some(0)).find_map(|row| row.median);
    for outcome in outcomes.iter_mut().filter(|row| row.id == ID) {
        let number = |key: &str| outcome.audit.get(key).and_then(Value::as_f64);
        let (bytes, elapsed_ns) = (number("load_bytes"), number("load_ns"));
        outcome.audit.remove("load_ns");
        if let (Some(bytes), Some(elapsed_ns)) = (bytes, elapsed_ns.filter(|&ns| ns > 0.0)) {
            outcome.audit.insert("load_bytes_per_s".to_owned(), json!(bytes / elapsed_ns * 1e9));
        }
        let limit = match (percent(outcome), idle_ns) {
            (Some(1..), Some(idle_ns)) => Ceiling {
                name: "latency without a load".to_owned(),
                value: Some(idle_ns),
                provenance: Provenance::Measured,
                limiter: "queues of the interconnect and of memory".to_owned(),
                ..Ceiling::default()
            },
            _ => Ceiling {
                name: "none is known: it is what the others are held against".to_owned(),
                limiter: "latency of memory".to_owned(),
                ..Ceiling::default()
            },
        };
        ceiling::apply(outcome, limit);
    }
}

/// The picture of the rows.
pub fn charts() -> Vec<Chart> {
    vec![Chart {
        title: "Latency of memory by load".to_owned(),
        id: ID.to_owned(),
        x_parameter: "load_percent".to_owned(),
        x_log2: false,
        line_parameters: Vec::new(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_sys::chase::Pages;

    #[test]
    fn the_load_is_what_was_read_while_the_chase_ran() {
        let chases = Chases::hasty(1 << 20);
        let loads = Loads::new(4 << 20);
        let shape = Shape::random(1 << 20, Pages::Base);
        for percent in [0, 50, 100] {
            match trial(&chases, &loads, &[shape], Load { percent, seed: 5 }) {
                Ok(sample) => {
                    assert!(sample.amount > 0.0);
                    let threads = sample.audit["load_threads"].as_str().unwrap();
                    assert_eq!(threads == "0", percent == 0);
                }
                Err(TrialError::Unsupported(text)) => {
                    assert_eq!(affinity::allowed_cpu_count(), 1);
                    eprintln!("skipped: {text}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn row(percent: u64, latency_ns: f64, load_bytes: u64) -> Outcome {
        let mut outcome = Outcome {
            id: ID.to_owned(),
            median: Some(latency_ns),
            better: flatout_measure::record::Better::Lower,
            ..Outcome::default()
        };
        outcome.parameters.insert("load_percent".to_owned(), percent.into());
        outcome.audit.insert("load_bytes".to_owned(), load_bytes.into());
        outcome.audit.insert("load_ns".to_owned(), 1_000_000.into());
        outcome
    }

    #[test]
    fn rows_with_a_load_are_held_against_the_one_without() {
        let mut rows = [row(0, 100.0, 0), row(100, 125.0, 10_000_000)];
        finish(&mut rows);
        assert_eq!(rows[1].audit["load_bytes_per_s"], json!(1e10));
        assert_eq!(rows[1].ceiling.as_ref().unwrap().ratio, Some(0.8));
        assert_eq!(rows[0].ceiling.as_ref().unwrap().value, None);
    }
}
