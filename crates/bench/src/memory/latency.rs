//! Latency, and what follows from it: the first phase, whose rows are all interleaved.
//!
//! The curve is the latency of a dependent load over the working set, on base pages and on pages of
//! 2 MiB that were shown to be such; it tells the levels. Several chases at once tell what one
//! core can fetch. Which rows there are: `row`; how one is timed: `walk`, `hand_over`; the rings:
//! `ring`, `grid`; what follows from the rows: `level`, `bound`.

mod bound;
mod grid;
mod hand_over;
mod level;
mod load;
mod node;
mod ring;
mod row;
mod walk;

use flatout_measure::case::record;
use flatout_measure::{Case, Ceiling, Chart, Outcome, Sampler, record_counted};
use flatout_sys::chase::{LINE_BYTES, Pages};
use flatout_sys::cpu_cache::DataCache;
use flatout_sys::numa::Node;

use super::fact::{HAND_OVERS, LINES, STEPS};
use super::levels::Levels;
use crate::Extent;
use crate::contention::ContentionProbe;

use grid::Grid;
use load::Loads;
pub(super) use node::near;
use ring::Rings;
pub(super) use ring::largest_pages;
use row::LatencyRow;

/// Length of a timed walk: an interrupt of five microseconds in it is a thousandth.
const WALK_NS: u64 = 5_000_000;
/// Length of a timed walk where few rows have to be quick.
const SHORT_WALK_NS: u64 = 4_000_000;
/// Part of the time that getting memory beforehand may take.
const MAKING_PART: u64 = 2;
/// Least and most memory that a load reads.
const LOAD_BYTES: [u64; 2] = [64 << 20, 512 << 20];

/// The machine as far as it is known beforehand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hardware<'a> {
    pub(super) caches: &'a [DataCache],
    /// Last caches that the CPUs have together.
    pub(super) last_caches: u64,
    pub(super) nodes: &'a [Node],
    /// CPUs that threads may run on, in the order in which they get them.
    pub(super) order: &'a [usize],
    /// What the memory modules can deliver together.
    pub(super) modules: &'a Ceiling,
    /// The largest pages that memory can lie on.
    pub(super) largest: Pages,
    /// Tells whether an SMT sibling contends for a core.
    pub(super) probe: &'a ContentionProbe,
}

/// What the first phase found.
pub(super) struct Found {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) levels: Levels,
    /// The most that one core took from memory; none where that was not measured.
    pub(super) core: Option<Ceiling>,
}

/// What the rows of chases share.
struct Chases {
    extent: Extent,
    walk_ns: u64,
    rings: Rings,
    loads: Loads,
    grid: Grid,
    /// Why they take no more memory.
    room_reason: String,
    /// CPUs on which they run, the first one that can be had.
    order: Vec<usize>,
}

impl Chases {
    /// Chases whose rings take at most `room_bytes` of memory together, on pages up to `largest` and a
    /// CPU with these caches, of the last of which the machine has so many.
    fn new(
        extent: Extent,
        room_bytes: u64,
        (caches, last_caches): (&[DataCache], u64),
        largest: Pages,
    ) -> Self {
        let grid = Grid::new(extent, room_bytes, caches, largest);
        let walk_ns = if extent == Extent::Full { WALK_NS } else { SHORT_WALK_NS };
        // No cache holds what a load reads.
        let [least, most] = LOAD_BYTES;
        let loads =
            Loads::new((2 * grid.cache_bytes).saturating_mul(last_caches).clamp(least, most));
        let (rings, room_reason) = (Rings::new(grid.kept()), String::new());
        let order = Vec::new();
        Self { extent, walk_ns, rings, loads, grid, room_reason, order }
    }

    /// Chases that take at most `room_bytes` with all that they need beside the rings.
    fn fitting(extent: Extent, room_bytes: u64, hardware: &Hardware<'_>) -> Self {
        let halves = (0..u64::BITS).map(|halvings| room_bytes >> halvings);
        let caches = (hardware.caches, hardware.last_caches);
        let new = |bytes| Self::new(extent, bytes, caches, hardware.largest);
        let mut tries = halves.map(new);
        let fitting = tries.find(|chases| chases.memory_bytes(hardware) <= room_bytes);
        fitting.unwrap_or_else(|| new(0))
    }

    /// Most memory that the rows hold at one time.
    fn memory_bytes(&self, hardware: &Hardware<'_>) -> u64 {
        let has_load = self.extent != Extent::Few && self.reaches_memory();
        let load_bytes = if has_load { self.loads.total_bytes } else { 0 };
        let on_nodes = node::memories(hardware.nodes, hardware.order) as u64;
        let set_bytes =
            self.grid.memory_shapes(LINE_BYTES).first().map_or(0, |shape| shape.working_set_bytes);
        let beside = load_bytes.saturating_add(on_nodes.saturating_mul(set_bytes));
        self.grid.room_bytes().saturating_add(beside)
    }

    fn reaches_memory(&self) -> bool {
        !self.grid.memory_shapes(LINE_BYTES).is_empty()
    }

    fn case<'a>(&'a self, row: LatencyRow, probe: &'a ContentionProbe) -> Case<'a, LatencyRow> {
        let trial = move |seed| match row {
            LatencyRow::HandOver(cpus) => hand_over::sample(cpus),
            _ => walk::sample(&row, self, probe, seed),
        };
        Case { row, trial: Box::new(trial) }
    }
}

/// Memory that the rows take where there are `room_bytes` of it.
pub(super) fn memory_bytes(extent: Extent, room_bytes: u64, hardware: &Hardware<'_>) -> u64 {
    Chases::fitting(extent, room_bytes, hardware).memory_bytes(hardware)
}

/// Measures the rows, in at most so many bytes of memory, for a reason.
pub(super) fn measure(
    extent: Extent,
    (room_bytes, room_reason): (u64, String),
    hardware: &Hardware<'_>,
    sampler: &mut Sampler<'_>,
) -> Found {
    let chases = Chases::fitting(extent, room_bytes, hardware);
    let near = near(hardware.nodes, hardware.order);
    let rings = chases.rings.until(sampler.part_ends_ns(MAKING_PART), near);
    let chases = Chases { rings, room_reason, order: hardware.order.to_vec(), ..chases };
    let rows = row::all(&chases, hardware.nodes, hardware.order).into_iter();
    let mut rows = sampler.run(rows.map(|row| chases.case(row, hardware.probe)).collect());
    // How long rings must be to lie in memory was decided before the curve was there.
    let assumed = Levels::declared(hardware.caches).assumed();
    for one in &mut rows {
        if !matches!(one.row, LatencyRow::Curve(_) | LatencyRow::HandOver(_)) {
            one.outcome.warnings.extend(assumed.clone());
        }
    }
    let (levels, level_rows) = level::find(&rows, hardware.caches);
    let core = bound::apply(&mut rows, &levels, hardware.modules);
    let mut outcomes = record_counted(rows, &[STEPS, LINES, HAND_OVERS]);
    outcomes.extend(record(level_rows));
    Found { outcomes, levels, core }
}

/// The pictures of these rows.
pub(super) fn charts() -> Vec<Chart> {
    let chart = Chart::new;
    vec![
        chart("Latency by working set", row::CURVE_ID, "working_set_bytes", &["page_bytes"])
            .by_powers_of_two(),
        chart("Rate of one core by parallel chases", row::PARALLEL_ID, "chases", &["run_bytes"]),
        chart("Latency of memory by load", row::LOADED_ID, "load_percent", &[]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::caches::caches;

    #[test]
    fn what_lies_beside_the_rings_is_counted_in() {
        let node = |number, cpu| Node { number, cpus: vec![cpu], memory_bytes: 1 << 36 };
        let (nodes, modules) = ([node(0, 0), node(1, 1)], Ceiling::default());
        let probe = ContentionProbe::default();
        let hardware = Hardware {
            caches: &[],
            last_caches: 1,
            nodes: &nodes,
            order: &[1, 0],
            modules: &modules,
            largest: Pages::Huge,
            probe: &probe,
        };
        let chases = Chases::new(Extent::Full, u64::MAX, (&[], 1), Pages::Huge);
        let beside = chases.memory_bytes(&hardware) - chases.grid.room_bytes();
        assert_eq!(beside, (128 << 20) + 2 * (256 << 20), "a load and a ring on each node");
        for room_bytes in [4 << 30, 1 << 30, 100 << 20] {
            let chases = Chases::fitting(Extent::Full, room_bytes, &hardware);
            assert!(chases.memory_bytes(&hardware) <= room_bytes);
        }
    }

    #[test]
    fn a_load_is_more_than_the_last_caches_of_all_cpus_hold() {
        let load = |last_caches| {
            let caches = caches(&[32 << 10, 1 << 20, 32 << 20]);
            Chases::new(Extent::Full, u64::MAX, (&caches, last_caches), Pages::Huge).loads
        };
        assert_eq!([1, 4, 12].map(|count| load(count).total_bytes >> 20), [64, 256, 512]);
    }
}
