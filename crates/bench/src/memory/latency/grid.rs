//! Which working sets are walked, on which pages, and how much memory that takes.

use flatout_sys::chase::Pages;
use flatout_sys::cpu_cache::DataCache;

use super::super::ring::{KEPT_BYTES, Shape};
use crate::bench::Extent;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// How many times the last cache a working set must be to be called memory. STREAM asks for
/// arrays of four times as much.
const MEMORY_TIMES: u64 = 4;

/// The points of a curve.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    shapes: Vec<Shape>,
    longest_bytes: u64,
    wanted_bytes: u64,
}

impl Grid {
    /// As many points as fit into `room_bytes`: the longest working set is halved until all rings
    /// that are kept do.
    pub(super) fn new(extent: Extent, room_bytes: u64, caches: &[DataCache]) -> Self {
        let last_bytes = caches.iter().map(|cache| cache.bytes).max().unwrap_or(32 * MIB);
        let wanted_bytes = match extent {
            Extent::Full => GIB,
            Extent::Quick | Extent::Few => {
                (MEMORY_TIMES * last_bytes).next_power_of_two().clamp(64 * MIB, 512 * MIB)
            }
        };
        let mut grid = Self { shapes: Vec::new(), longest_bytes: wanted_bytes, wanted_bytes };
        loop {
            let all = points(extent, wanted_bytes, caches);
            let longest = grid.longest_bytes;
            grid.shapes =
                all.into_iter().filter(|shape| shape.working_set_bytes <= longest).collect();
            if grid.room_bytes() <= room_bytes || grid.longest_bytes <= MIB {
                return grid;
            }
            grid.longest_bytes /= 2;
        }
    }

    pub(super) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Memory of all rings that are kept, and of one more while it is made.
    pub(super) fn room_bytes(&self) -> u64 {
        let sets = self.shapes.iter();
        let kept: u64 = sets
            .clone()
            .filter(|shape| shape.working_set_bytes >= KEPT_BYTES)
            .map(|shape| shape.working_set_bytes)
            .sum();
        let small = sets.clone().filter(|shape| shape.working_set_bytes < KEPT_BYTES);
        let small = small.map(Shape::room_bytes).max();
        let orders = sets.map(|shape| shape.room_bytes() - shape.working_set_bytes).max();
        kept + small.unwrap_or(0) + orders.unwrap_or(0)
    }

    /// What the longest working set should have been, if `shape` is it and is shorter.
    pub(super) fn cut_from(&self, shape: Shape) -> Option<u64> {
        let longest = self.shapes.iter().map(|shape| shape.working_set_bytes).max();
        let is_cut = self.longest_bytes < self.wanted_bytes;
        (is_cut && longest == Some(shape.working_set_bytes)).then_some(self.wanted_bytes)
    }

    /// The working set for rows that are to be in memory: the shortest of the grid that is long
    /// enough on huge pages, or the longest that is at least twice the last cache.
    pub(super) fn memory_set_bytes(&self, cache_bytes: u64) -> Option<u64> {
        let huge = self.shapes.iter().filter(|shape| shape.pages == Pages::Huge);
        let mut sets: Vec<u64> = huge.map(|shape| shape.working_set_bytes).collect();
        sets.sort_unstable();
        let enough = |times: u64| move |&&bytes: &&u64| bytes >= times.saturating_mul(cache_bytes);
        sets.iter()
            .find(enough(MEMORY_TIMES))
            .or_else(|| sets.iter().rev().find(enough(2)))
            .copied()
    }
}

/// All points up to `longest_bytes`, shortest first.
fn points(extent: Extent, longest_bytes: u64, caches: &[DataCache]) -> Vec<Shape> {
    let powers = |first: u64, step: u32| {
        (first.ilog2()..=longest_bytes.ilog2()).step_by(step as usize).map(|log2| 1_u64 << log2)
    };
    let (mut huge, base): (Vec<u64>, Vec<u64>) = match extent {
        Extent::Full => {
            // Three halves of a power of two between, where the knees of caches lie.
            let between = (13..28).map(|log2| 3 << log2);
            (powers(KIB, 1).chain(between).collect(), powers(KIB, 1).collect())
        }
        Extent::Quick => {
            let between = [48 * KIB, 1536 * KIB, 3 * MIB];
            let huge = powers(16 * KIB, 1).chain(between).collect();
            (huge, vec![16 * KIB, 256 * KIB, 16 * MIB, longest_bytes])
        }
        Extent::Few => (few(longest_bytes, caches), vec![longest_bytes]),
    };
    huge.retain(|&bytes| bytes <= longest_bytes);
    huge.sort_unstable();
    huge.dedup();
    let on = |pages| move |bytes| Shape::random(bytes, pages);
    let mut all: Vec<Shape> = huge.into_iter().map(on(Pages::Huge)).collect();
    all.extend(base.into_iter().map(on(Pages::Base)));
    all.sort_by_key(|shape| shape.working_set_bytes);
    all
}

/// One working set in the middle of each cache that is declared, and one in memory.
fn few(longest_bytes: u64, caches: &[DataCache]) -> Vec<u64> {
    let halves = caches.iter().map(|cache| cache.bytes / 2 / KIB * KIB);
    halves.filter(|&bytes| bytes >= KIB).chain([longest_bytes]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches(sizes: &[u64]) -> Vec<DataCache> {
        let cache = |(index, &bytes): (usize, &u64)| DataCache {
            level: index as u32 + 1,
            bytes,
            line_bytes: 64,
            shared_cpus: String::new(),
        };
        sizes.iter().enumerate().map(cache).collect()
    }

    fn sets(grid: &Grid, pages: Pages) -> Vec<u64> {
        let of = grid.shapes().iter().filter(|shape| shape.pages == pages);
        of.map(|shape| shape.working_set_bytes).collect()
    }

    #[test]
    fn the_full_curve_goes_from_a_kib_to_a_gib_on_both_pages() {
        let grid = Grid::new(Extent::Full, u64::MAX, &caches(&[48 * KIB, 2 * MIB, 105 * MIB]));
        for pages in [Pages::Huge, Pages::Base] {
            let sets = sets(&grid, pages);
            assert_eq!((sets[0], *sets.last().unwrap()), (KIB, GIB));
        }
        assert!(sets(&grid, Pages::Huge).contains(&(48 * KIB)));
        assert!(sets(&grid, Pages::Huge).contains(&(192 * MIB)));
        assert_eq!(grid.memory_set_bytes(105 * MIB), Some(512 * MIB));
        assert!(grid.shapes().iter().all(|&shape| grid.cut_from(shape).is_none()));
        assert!(grid.room_bytes() < 5 * GIB, "{}", grid.room_bytes());
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        for room_bytes in [4 * GIB, GIB, 100 * MIB, 10 * MIB] {
            let grid = Grid::new(Extent::Full, room_bytes, &[]);
            assert!(grid.room_bytes() <= room_bytes || grid.longest_bytes <= MIB);
            let longest = grid.shapes().iter().max_by_key(|shape| shape.working_set_bytes).unwrap();
            assert_eq!(grid.cut_from(*longest), Some(GIB));
            assert_eq!(grid.cut_from(grid.shapes()[0]), None);
        }
    }

    #[test]
    fn nothing_is_called_memory_that_caches_could_hold() {
        let grid = Grid::new(Extent::Full, 300 * MIB, &[]);
        assert_eq!(grid.memory_set_bytes(GIB), None);
        let twice = grid.memory_set_bytes(grid.longest_bytes / 2);
        assert_eq!(twice, Some(grid.longest_bytes));
    }

    #[test]
    fn a_few_rows_are_in_the_middle_of_each_level() {
        let grid = Grid::new(Extent::Few, u64::MAX, &caches(&[48 * KIB, 2 * MIB, 105 * MIB]));
        let l3 = 105 * MIB / 2;
        assert_eq!(sets(&grid, Pages::Huge), [24 * KIB, MIB, l3, 512 * MIB]);
        assert_eq!(sets(&grid, Pages::Base), [512 * MIB]);
        let unknown = Grid::new(Extent::Few, u64::MAX, &[]);
        assert_eq!(sets(&unknown, Pages::Huge), [128 * MIB]);
    }
}
