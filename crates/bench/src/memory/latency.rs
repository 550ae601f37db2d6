//! Latency of a dependent load over the working set: the curve, on base pages and on pages of
//! 2 MiB that were shown to be such.
//!
//! A figure is the time of a walk divided by its steps. Before the clock starts, the part of the
//! ring before the walk is gone through, so that caches, translation and page tables are as in an
//! endless walk. What the curve says of the levels: `memory/levels.rs`; rows of several chases at
//! once share the large rings: `memory/parallel.rs`, `memory/loaded.rs`.

mod finish;
mod grid;

use std::rc::Rc;

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::record::Chart;
use flatout_measure::row::Unit;
use flatout_measure::warning::{self, Warning};
use flatout_sys::chase::Pages;
use flatout_sys::cpu_cache::DataCache;
use serde_json::{Map, Value, json};

use super::ring::{self, Rings, Shape};
use crate::area::Extent;

pub use finish::finish;
pub(super) use grid::RUN_BYTES;

/// Id of the curve's rows.
pub const ID: &str = "memory/latency";
/// Id of the rows of levels, which [`finish`] adds.
pub const LEVEL_ID: &str = "memory/level";

/// Length of a timed walk: an interrupt of five microseconds in it is a thousandth.
pub(super) const WALK_NS: u64 = 5_000_000;
/// Length of a timed walk where few rows have to be quick.
const SHORT_WALK_NS: u64 = 4_000_000;

/// What the rows of chases share.
#[derive(Clone)]
pub struct Chases {
    pub(super) extent: Extent,
    pub(super) cache_bytes: u64,
    pub(super) walk_ns: u64,
    pub(super) rings: Rc<Rings>,
    grid: grid::Grid,
}

impl Chases {
    /// Chases that take at most `room_bytes` of memory together, on a CPU with these caches.
    pub fn new(extent: Extent, room_bytes: u64, caches: &[DataCache]) -> Self {
        let cache_bytes =
            caches.iter().map(|cache| cache.bytes).max().unwrap_or(UNKNOWN_CACHE_BYTES);
        let grid = grid::Grid::new(extent, room_bytes, caches);
        let walk_ns = if extent == Extent::Full { WALK_NS } else { SHORT_WALK_NS };
        Self { extent, cache_bytes, walk_ns, rings: Rings::new(grid.kept()), grid }
    }

    /// Chases whose walks are as short as can be.
    #[cfg(test)]
    pub(super) fn hasty(room_bytes: u64) -> Self {
        Self { walk_ns: 1, ..Self::new(Extent::Few, room_bytes, &[]) }
    }

    /// Most memory that the rows of the curve and of parallel chases hold at one time.
    pub fn memory_bytes(&self) -> u64 {
        self.grid.room_bytes()
    }

    /// Rings in memory for rows that need one, best first; none where there is not the room.
    pub(super) fn memory_shapes(&self, run_bytes: u64) -> Vec<Shape> {
        self.grid.memory_shapes(run_bytes)
    }
}

/// What is warmed where no cache is known: more than most have.
const UNKNOWN_CACHE_BYTES: u64 = 64 << 20;

/// The rows of the curve.
pub fn cases(chases: &Chases) -> Vec<Case<'static, Plain>> {
    let case = |&shape: &Shape| {
        let chases = chases.clone();
        Case {
            row: Plain { id: ID, parameters: parameters(shape), unit: Unit::Nanoseconds },
            trial: Box::new(move |seed| trial(&chases, shape, seed)),
        }
    };
    chases.grid.shapes().iter().map(case).collect()
}

fn parameters(shape: Shape) -> Map<String, Value> {
    let mut parameters = Map::new();
    parameters.insert("working_set_bytes".to_owned(), shape.working_set_bytes.into());
    parameters.insert("page_bytes".to_owned(), ring::page_bytes(shape.pages).into());
    parameters
}

fn trial(chases: &Chases, shape: Shape, seed: u64) -> Result<Sample, TrialError> {
    let cpu = ring::chase_cpu()?;
    let chase = &*chases.rings.ring(shape, cpu, seed)?;
    let warm_nodes = ring::warm_nodes(shape, chases.cache_bytes);
    let walk_ns = chases.walk_ns;
    let mut sample = ring::on_cpu(cpu, || {
        let index = seed as usize % chase.places();
        chase.warm(index, warm_nodes);
        let mut place = chase.place(index);
        let (steps, elapsed_ns) = ring::time_steps(walk_ns, |steps| {
            let from = place;
            place = chase.walk(from, steps);
            chase.is_after(from, steps, place)
        })?;
        let mut sample = Sample { amount: steps as f64, elapsed_ns, ..Sample::default() };
        ring::note_cpu(&mut sample, cpu);
        Ok(sample)
    })?;
    sample.audit.insert("steps".to_owned(), json!(sample.amount));
    sample.audit.insert("clock_reads".to_owned(), json!(2));
    if shape.pages == Pages::Huge {
        sample.audit.insert("pages_verified".to_owned(), json!(true));
    }
    if let Some(wanted_bytes) = chases.grid.cut_from(shape) {
        let text = format!(
            "memory is short: the longest working set is this one instead of {wanted_bytes} bytes"
        );
        warning::add(&mut sample.warnings, Warning::new(warning::SIZE_REDUCED, text));
    }
    Ok(sample)
}

/// The picture of the curve.
pub fn charts() -> Vec<Chart> {
    vec![Chart {
        title: "Latency by working set".to_owned(),
        id: ID.to_owned(),
        x_parameter: "working_set_bytes".to_owned(),
        x_log2: true,
        line_parameters: vec!["page_bytes".to_owned()],
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_counts_its_steps_and_its_time() {
        let chases = Chases::hasty(1 << 20);
        for bytes in [1 << 10, 100 << 10] {
            let shape = Shape::random(bytes, Pages::Base);
            for seed in 1..4 {
                let sample = trial(&chases, shape, seed).unwrap();
                assert!(sample.amount >= 1024.0 && sample.elapsed_ns > 0);
                assert_eq!(sample.audit["steps"], json!(sample.amount));
                assert!(sample.warnings.is_empty(), "{:?}", sample.warnings);
            }
        }
    }

    #[test]
    fn huge_pages_are_verified_or_refused_by_code() {
        let chases = Chases::hasty(8 << 20);
        let shape = Shape::random(64 << 10, Pages::Huge);
        for seed in 1..3 {
            match trial(&chases, shape, seed) {
                Ok(sample) => assert_eq!(sample.audit["pages_verified"], json!(true)),
                Err(TrialError::NoMore(doubt)) => {
                    eprintln!("skipped: {}", doubt.text);
                    assert_eq!(doubt.code, warning::NO_HUGE_PAGES);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn rows_differ_in_working_set_or_pages() {
        for extent in [Extent::Few, Extent::Quick, Extent::Full] {
            let mut all: Vec<String> = cases(&Chases::new(extent, u64::MAX, &[]))
                .iter()
                .map(|case| format!("{:?}", case.row.parameters))
                .collect();
            let count = all.len();
            all.sort();
            all.dedup();
            assert!(count >= 1);
            assert_eq!(all.len(), count);
        }
    }
}
