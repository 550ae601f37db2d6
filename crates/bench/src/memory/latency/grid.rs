//! Which working sets are walked, on which pages, and how much memory that takes.

use flatout_sys::chase::Pages;
use flatout_sys::cpu_cache::DataCache;

use super::super::levels::Levels;
use super::ring::{self, Shape, page_bytes};
use crate::{Extent, GIB, KIB, MIB};

/// Length of the stretches that prefetchers may follow: they stop at the end of a page.
pub(super) const RUN_BYTES: u64 = 4096;

/// How many times the last cache a working set must be to be called memory. STREAM asks for
/// arrays of four times as much.
const MEMORY_TIMES: u64 = 4;

/// The longest working set of a short run.
const MOST_SHORT_BYTES: u64 = 512 * MIB;

/// From here on the curve on base pages has a point for every second power of two.
const BASE_DENSE_BYTES: u64 = 16 * MIB;

/// The points of a curve.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    pub(super) shapes: Vec<Shape>,
    longest_bytes: u64,
    wanted_bytes: u64,
    /// Size of the largest cache.
    pub(super) cache_bytes: u64,
    has_runs: bool,
    /// The largest pages that memory can lie on: those of the curve that tells the levels.
    largest: Pages,
}

impl Grid {
    /// As many points as fit into `room_bytes`, on pages up to `largest`: the longest working set is
    /// halved until all rings that are kept do.
    pub(super) fn new(
        extent: Extent,
        room_bytes: u64,
        caches: &[DataCache],
        largest: Pages,
    ) -> Self {
        let last_bytes = Levels::declared(caches).last_cache_bytes();
        let wanted_bytes = match extent {
            Extent::Full => GIB,
            Extent::Quick | Extent::Few => {
                (MEMORY_TIMES * last_bytes).next_power_of_two().clamp(64 * MIB, MOST_SHORT_BYTES)
            }
        };
        let mut grid = Self {
            shapes: Vec::new(),
            longest_bytes: wanted_bytes,
            wanted_bytes,
            cache_bytes: last_bytes,
            has_runs: extent != Extent::Few,
            largest,
        };
        loop {
            grid.shapes = points(extent, grid.longest_bytes, caches, largest);
            if grid.room_bytes() <= room_bytes || grid.longest_bytes <= MIB {
                return grid;
            }
            grid.longest_bytes /= 2;
        }
    }

    /// Memory of all rings that are kept, and of one more while it is made.
    pub(super) fn room_bytes(&self) -> u64 {
        let whole = |set: &Shape| set.working_set_bytes.next_multiple_of(page_bytes(set.pages));
        let kept: u64 = ring::arenas(&self.kept()).iter().map(whole).sum();
        let small = self.shapes.iter().filter(|shape| !shape.is_kept());
        let small = small.map(Shape::room_bytes).max();
        let orders = self.shapes.iter().map(|shape| shape.room_bytes() - shape.working_set_bytes);
        kept + small.unwrap_or(0) + orders.max().unwrap_or(0)
    }

    /// The rings that are kept, those for several chases among them.
    pub(super) fn kept(&self) -> Vec<Shape> {
        let runs = self.memory_shapes(RUN_BYTES).into_iter().take(usize::from(self.has_runs));
        self.shapes.iter().filter(|shape| shape.is_kept()).copied().chain(runs).collect()
    }

    /// What the longest working set should have been, if `shape` is it and is shorter.
    pub(super) fn cut_from(&self, shape: Shape) -> Option<u64> {
        let longest = self.shapes.iter().map(|shape| shape.working_set_bytes).max();
        let is_cut = self.longest_bytes < self.wanted_bytes;
        (is_cut && longest == Some(shape.working_set_bytes)).then_some(self.wanted_bytes)
    }

    /// Rings for rows that are to be in memory, best first: the shortest working set that is four
    /// times the largest cache, shorter ones down to twice, and the first of all on base pages.
    pub(super) fn memory_shapes(&self, run_bytes: u64) -> Vec<Shape> {
        let curve = self.shapes.iter().filter(|shape| shape.pages == self.largest);
        let mut sets: Vec<u64> = curve.map(|shape| shape.working_set_bytes).collect();
        sets.sort_unstable();
        let enough = sets.iter().position(|&bytes| bytes >= MEMORY_TIMES * self.cache_bytes);
        sets.truncate(enough.map_or(sets.len(), |index| index + 1));
        sets.retain(|&bytes| bytes >= 2 * self.cache_bytes);
        let on = |pages| move |&bytes: &u64| Shape { run_bytes, ..Shape::random(bytes, pages) };
        let base = sets.last().map(on(Pages::Base));
        sets.iter().rev().map(on(self.largest)).chain(base).collect()
    }
}

/// All points up to `longest_bytes`, shortest first.
fn points(extent: Extent, longest_bytes: u64, caches: &[DataCache], largest: Pages) -> Vec<Shape> {
    let powers = |first: u64, step: u32| {
        (first.ilog2()..=longest_bytes.ilog2()).step_by(step as usize).map(|log2| 1_u64 << log2)
    };
    let (curve, base): (Vec<u64>, Vec<u64>) = match extent {
        Extent::Full => {
            // Three halves of a power of two between, where the knees of a core's own caches and
            // of most shared ones lie. Larger rings take a second to make for each GiB.
            let between = (13..25).map(|log2| 3 << log2);
            let base = powers(KIB, 1).filter(|bytes| *bytes < BASE_DENSE_BYTES);
            let base = base.chain(powers(BASE_DENSE_BYTES, 2));
            (powers(KIB, 1).chain(between).collect(), base.collect())
        }
        Extent::Quick => {
            let between = [48 * KIB, 1536 * KIB, 3 * MIB];
            let curve = powers(16 * KIB, 1).chain(between).collect();
            (curve, vec![16 * KIB, 256 * KIB, 16 * MIB, longest_bytes])
        }
        Extent::Few => (few(longest_bytes, caches), Vec::new()),
    };
    let on = |pages| move |bytes| Shape::random(bytes, pages);
    let mut all: Vec<Shape> = curve.into_iter().map(on(largest)).collect();
    all.extend(base.into_iter().map(on(Pages::Base)));
    all.retain(|shape| shape.working_set_bytes <= longest_bytes);
    all.sort_by_key(|shape| (shape.working_set_bytes, page_bytes(shape.pages)));
    all.dedup();
    all
}

/// One working set in the middle of each cache that is declared, and one in memory: of less than twice the
/// last cache a good part would lie there.
fn few(longest_bytes: u64, caches: &[DataCache]) -> Vec<u64> {
    let halves = caches.iter().map(|cache| cache.bytes / 2 / KIB * KIB);
    let twice_bytes = caches.iter().map(|cache| 2 * cache.bytes).max().unwrap_or(0);
    let is_memory = longest_bytes >= twice_bytes.min(MOST_SHORT_BYTES);
    let memory = is_memory.then_some(longest_bytes);
    halves.filter(|&bytes| bytes >= KIB).chain(memory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::caches::caches;

    fn sets(grid: &Grid, pages: Pages) -> Vec<u64> {
        let of = grid.shapes.iter().filter(|shape| shape.pages == pages);
        of.map(|shape| shape.working_set_bytes).collect()
    }

    #[test]
    fn the_full_curve_goes_from_a_kib_to_a_gib_on_both_pages() {
        let grid = Grid::new(
            Extent::Full,
            u64::MAX,
            &caches(&[48 * KIB, 2 * MIB, 105 * MIB]),
            Pages::Huge,
        );
        for pages in [Pages::Huge, Pages::Base] {
            let sets = sets(&grid, pages);
            assert_eq!((sets[0], *sets.last().unwrap()), (KIB, GIB));
        }
        assert!(sets(&grid, Pages::Huge).contains(&(48 * KIB)));
        assert!(sets(&grid, Pages::Huge).contains(&(48 * MIB)));
        let base = sets(&grid, Pages::Base);
        assert_eq!(base[base.len() - 5..], [8, 16, 64, 256, 1024].map(|mib| mib * MIB));
        let memory: Vec<_> = grid
            .memory_shapes(64)
            .iter()
            .map(|shape| (shape.pages, shape.working_set_bytes / MIB))
            .collect();
        assert_eq!(memory, [(Pages::Huge, 512), (Pages::Huge, 256), (Pages::Base, 512)]);
        assert!(grid.shapes.iter().all(|&shape| grid.cut_from(shape).is_none()));
        assert!(grid.room_bytes() < 3 * GIB, "{}", grid.room_bytes());
    }

    #[test]
    fn base_pages_have_the_whole_curve_where_there_are_no_others() {
        for extent in [Extent::Full, Extent::Quick] {
            let grid = |largest| Grid::new(extent, 3 * GIB, &caches(&[48 * KIB, MIB]), largest);
            let (both, base) = (grid(Pages::Huge), grid(Pages::Base));
            let mut all: Vec<u64> =
                both.shapes.iter().map(|shape| shape.working_set_bytes).collect();
            all.dedup();
            assert_eq!(sets(&base, Pages::Base), all);
            assert!(sets(&base, Pages::Huge).is_empty());
            let [on_both, on_base] = [both, base].map(|grid| grid.memory_shapes(RUN_BYTES)[0]);
            assert_eq!(on_base, Shape { pages: Pages::Base, ..on_both });
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        for room_bytes in [2 * GIB, GIB, 100 * MIB, 10 * MIB] {
            let grid = Grid::new(Extent::Full, room_bytes, &[], Pages::Huge);
            assert!(grid.room_bytes() <= room_bytes || grid.longest_bytes <= MIB);
            let longest = grid.shapes.iter().max_by_key(|shape| shape.working_set_bytes).unwrap();
            assert_eq!(grid.cut_from(*longest), Some(GIB));
            assert_eq!(grid.cut_from(grid.shapes[0]), None);
        }
    }

    #[test]
    fn nothing_is_called_memory_that_caches_could_hold() {
        let grid =
            |cache_bytes| Grid::new(Extent::Full, 300 * MIB, &caches(&[cache_bytes]), Pages::Huge);
        assert!(grid(GIB).memory_shapes(64).is_empty());
        let small = grid(8 * MIB).memory_shapes(64);
        assert_eq!(small[0].working_set_bytes, 32 * MIB);
        assert!(small.iter().all(|shape| shape.working_set_bytes >= 16 * MIB));
    }

    #[test]
    fn a_few_rows_are_in_the_middle_of_each_level() {
        let grid =
            Grid::new(Extent::Few, u64::MAX, &caches(&[48 * KIB, 2 * MIB, 105 * MIB]), Pages::Huge);
        let l3 = 105 * MIB / 2;
        assert_eq!(sets(&grid, Pages::Huge), [24 * KIB, MIB, l3, 512 * MIB]);
        assert!(sets(&grid, Pages::Base).is_empty());
        let little = |room_bytes| {
            let caches = caches(&[48 * KIB, 2 * MIB, 105 * MIB]);
            sets(&Grid::new(Extent::Few, room_bytes, &caches, Pages::Huge), Pages::Huge)
        };
        assert_eq!(little(400 * MIB), [24 * KIB, MIB, l3, 256 * MIB], "memory all the same");
        assert_eq!(little(200 * MIB), [24 * KIB, MIB, l3], "a cache would hold most of it");
        let unknown = Grid::new(Extent::Few, u64::MAX, &[], Pages::Huge);
        assert_eq!(sets(&unknown, Pages::Huge), [256 * MIB], "four times what is assumed");
    }
}
