//! The rows of the first phase: what one access waits for, and how many one core waits for at once.

use flatout_measure::{Label, Row, Unit};
use flatout_sys::chase::{LINE_BYTES, Pages};
use flatout_sys::numa::Node;

use super::grid::RUN_BYTES;
use super::node::{self, Pair};
use super::ring::{Shape, page_bytes};
use super::{Chases, hand_over};
use crate::{Extent, KIB, MIB, between_runs};

/// Ids of rows that have a picture.
pub(super) const CURVE_ID: &str = "memory/latency";
pub(super) const PARALLEL_ID: &str = "memory/parallel-chases";
pub(super) const LOADED_ID: &str = "memory/loaded-latency";
/// Chases at once in the rows of the rate between nodes.
const NODE_CHASES: usize = 16;

/// A row before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LatencyRow {
    /// A point of the curve: one chase.
    Curve(Shape),
    /// Several chases of one core in memory at once.
    Parallel { chases: usize, run_bytes: u64 },
    /// One chase in memory, while other CPUs read for so much of the time.
    Loaded { load_percent: u32 },
    /// A line that goes back and forth between two CPUs; none where only one is allowed.
    HandOver(Option<(usize, usize)>),
    /// One chase from a node to the memory of one.
    NodeLatency(Pair),
    /// Several chases likewise.
    NodeRate(Pair),
}

impl LatencyRow {
    /// Chases at once.
    pub(super) fn chases(&self) -> usize {
        match *self {
            Self::Parallel { chases, .. } => chases,
            Self::NodeRate(_) => NODE_CHASES,
            _ => 1,
        }
    }

    /// The rings that it can walk through, best first.
    pub(super) fn shapes(&self, chases: &Chases) -> Vec<Shape> {
        let on = |pair: Pair, run_bytes| -> Vec<Shape> {
            let shapes = chases.grid.memory_shapes(run_bytes).into_iter();
            shapes.map(|shape| Shape { node: Some(pair.memory_node), ..shape }).collect()
        };
        match *self {
            Self::Curve(shape) => vec![shape],
            Self::Parallel { run_bytes, .. } => chases.grid.memory_shapes(run_bytes),
            Self::Loaded { .. } => chases.grid.memory_shapes(LINE_BYTES),
            Self::NodeLatency(pair) => on(pair, LINE_BYTES),
            Self::NodeRate(pair) => on(pair, RUN_BYTES),
            Self::HandOver(_) => Vec::new(),
        }
    }
}

impl Row for LatencyRow {
    fn label(&self) -> Label {
        let of = |id, unit| Label::new(id, unit).deviating_by(between_runs::MEMORY);
        let on_nodes = |label: Label, pair: Pair| {
            label.with("cpu_node", pair.cpu_node).with("memory_node", pair.memory_node)
        };
        match *self {
            Self::Curve(shape) => of(CURVE_ID, Unit::Nanoseconds)
                .with("working_set_bytes", shape.working_set_bytes)
                .with("page_bytes", page_bytes(shape.pages))
                .deviating_by(between_runs::LATENCY)
                .headline_if(shape.pages != Pages::Base && is_of_level(shape.working_set_bytes)),
            Self::Parallel { chases, run_bytes } => of(PARALLEL_ID, Unit::BytesPerSecond)
                .with("chases", chases)
                .with("run_bytes", run_bytes),
            Self::Loaded { load_percent } => {
                of(LOADED_ID, Unit::Nanoseconds).with("load_percent", load_percent)
            }
            Self::HandOver(cpus) => of("memory/hand-over", Unit::Nanoseconds)
                .with_known("first_cpu", cpus.map(|cpus| cpus.0))
                .with_known("second_cpu", cpus.map(|cpus| cpus.1))
                .deviating_by(between_runs::HAND_OVER),
            Self::NodeLatency(pair) => on_nodes(of("memory/node-latency", Unit::Nanoseconds), pair),
            Self::NodeRate(pair) => on_nodes(of("memory/node-rate", Unit::BytesPerSecond), pair),
        }
    }
}

/// Whether a working set lies in the middle of what a level of the caches mostly has, or is memory's on
/// most machines.
fn is_of_level(working_set_bytes: u64) -> bool {
    const CACHES: [u64; 3] = [16 * KIB, 256 * KIB, 4 * MIB];
    CACHES.contains(&working_set_bytes) || working_set_bytes >= 64 * MIB
}

/// The rows of a run on a machine with these nodes, of which threads get CPUs in this order. Rows in memory are
/// left out where there is not the room for such a working set.
pub(super) fn all(chases: &Chases, nodes: &[Node], order: &[usize]) -> Vec<LatencyRow> {
    let extent = chases.extent;
    let mut rows: Vec<_> = chases.grid.shapes.iter().copied().map(LatencyRow::Curve).collect();
    if chases.reaches_memory() {
        rows.extend(parallel(extent));
        rows.extend(loaded(extent));
    }
    rows.extend(hand_over::pairs_of(extent, order).into_iter().map(LatencyRow::HandOver));
    if chases.reaches_memory() {
        let both = |pair| [LatencyRow::NodeLatency(pair), LatencyRow::NodeRate(pair)];
        rows.extend(node::pairs(nodes, order).into_iter().flat_map(both));
    }
    rows
}

fn parallel(extent: Extent) -> impl Iterator<Item = LatencyRow> {
    let (random, runs): (&[usize], &[usize]) = match extent {
        Extent::Full => (&[1, 2, 4, 8, 12, 16, 24, 32], &[1, 4, 16]),
        Extent::Quick => (&[1, 8, 16, 32], &[4]),
        Extent::Few => (&[16], &[]),
    };
    let of = |run_bytes| move |&chases: &usize| LatencyRow::Parallel { chases, run_bytes };
    random.iter().map(of(LINE_BYTES)).chain(runs.iter().map(of(RUN_BYTES)))
}

fn loaded(extent: Extent) -> impl Iterator<Item = LatencyRow> {
    let percents: &[u32] = match extent {
        Extent::Full => &[0, 25, 50, 100],
        Extent::Quick => &[0, 100],
        Extent::Few => &[],
    };
    percents.iter().map(|&load_percent| LatencyRow::Loaded { load_percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_are_alike() {
        let node = |number, cpu| Node { number, cpus: vec![cpu], memory_bytes: 1 << 36 };
        let nodes = [node(0, 0), node(1, 1)];
        for (extent, in_memory) in [(Extent::Few, 1), (Extent::Quick, 7), (Extent::Full, 15)] {
            let rows = all(&Chases::new(extent, u64::MAX, (&[], 1), Pages::Huge), &nodes, &[0, 1]);
            let mut names: Vec<_> =
                rows.iter().map(|row| format!("{} {:?}", row.id(), row.parameters())).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), rows.len());
            let count = |id| rows.iter().filter(|row| row.id() == id).count();
            assert_eq!(count(PARALLEL_ID) + count(LOADED_ID), in_memory);
            assert_eq!(count("memory/node-latency") + count("memory/node-rate"), 8);
            assert_eq!(count("memory/hand-over"), usize::from(extent != Extent::Few));
        }
    }

    #[test]
    fn without_room_for_memory_there_are_no_rows_in_it() {
        let rows = all(&Chases::new(Extent::Full, 1 << 20, (&[], 1), Pages::Huge), &[], &[0]);
        let others = rows.iter().filter(|row| !matches!(row, LatencyRow::Curve(_)));
        assert_eq!(others.collect::<Vec<_>>(), [&LatencyRow::HandOver(None)]);
    }
}
