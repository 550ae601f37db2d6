//! Pointer chases: rings of nodes in random order, each step of which must wait for the one before.
//!
//! One node lies in each cache line of the working set; it takes a quarter of it, so that up to four
//! rings, which are not walked at the same time, can share the memory. The order is a uniformly random ring, so
//! that no prefetcher knows the next line, and a walk over more than a page of them needs as many
//! translations as pages. Several chases on one ring wait for several lines at once.
//!
//! A node knows its place in the ring. So the end of a walk shows that each step was made
//! ([`Chase::is_after`]). Which pages the nodes lie on: `region.rs`. Time and statistics are
//! left to the room above.

mod arena;
mod walk;

use std::io;

use crate::generator::SplitMix64;
pub use crate::region::{Pages, base_page_bytes, huge_page_bytes};
pub use arena::{Arena, SLOTS, Slot};
pub use walk::TOGETHER;

/// Distance of two nodes: a cache line on x86-64 and on the Arm servers known.
pub const LINE_BYTES: u64 = 64;
/// Places of a ring from which a walk can begin, if it has as many nodes. A walk of a large ring
/// is a small part of it: with this many it is another part in nearly every trial.
const MARKS: usize = 1024;
/// Chases that warm a ring together: as many lines as the cores known wait for, or more.
const WARMERS: usize = 16;

/// A node, the only one of its ring in its cache line.
#[derive(Debug)]
#[repr(C, align(16))]
struct Node {
    next: *const Node,
    rank: u64,
}

/// Nodes that a cache line has room for: one of each ring.
const NODES_PER_LINE: usize = LINE_BYTES as usize / size_of::<Node>();
const _: () = assert!(NODES_PER_LINE == SLOTS);

/// In which order a ring goes through its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Decides the random order.
    pub seed: u64,
    /// Nodes that follow each other as they lie in memory, before the next random jump; 1 for a
    /// wholly random order. With some dozens the prefetchers of the CPU can help.
    pub run_nodes: u32,
}

/// A ring of nodes in an arena.
#[derive(Debug)]
pub struct Chase {
    slot: Slot,
    nodes: usize,
    /// Every `spacing`-th node of the ring.
    marks: Vec<*const Node>,
    spacing: usize,
}

// SAFETY: the pointers lead into the chase's own slot of an arena that it keeps alive; its nodes are
// written by `link` alone, which takes `&mut self`, and only read through `&self`.
unsafe impl Send for Chase {}
// SAFETY: as above.
unsafe impl Sync for Chase {}

/// A node of a ring, from which a walk can go on.
#[derive(Debug, Clone, Copy)]
pub struct Position<'a>(&'a Node);

impl Chase {
    /// Makes a ring of `working_set_bytes` ÷ [`LINE_BYTES`] nodes, rounded down to whole runs of
    /// `order` but at least one, in the lines at the beginning of the arena of `slot`.
    ///
    /// Errors: `InvalidInput` for a working set larger than the arena or of more than 2³² nodes;
    /// `OutOfMemory` where there is no room for the order (4 bytes per run, given back).
    /// Cost: two random accesses per run, one per node.
    pub fn new(slot: Slot, working_set_bytes: u64, order: Order) -> io::Result<Self> {
        let run_nodes = u64::from(order.run_nodes.max(1));
        let nodes = (working_set_bytes / LINE_BYTES / run_nodes).max(1) * run_nodes;
        if nodes * LINE_BYTES > slot.arena().length_bytes() as u64 || nodes > u64::from(u32::MAX) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut chase = Self { slot, nodes: nodes as usize, marks: Vec::new(), spacing: 1 };
        chase.link(order)?;
        Ok(chase)
    }

    /// Puts the nodes into another order.
    ///
    /// A random permutation that is closed to a ring is a uniformly random cycle, the same
    /// distribution that Sattolo's algorithm has; this way each node's rank is known as well.
    ///
    /// Errors and cost: as [`Chase::new`]; `InvalidInput` also for runs that do not divide the
    /// nodes.
    pub fn link(&mut self, order: Order) -> io::Result<()> {
        let run = order.run_nodes.max(1) as usize;
        if !self.nodes.is_multiple_of(run) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let runs = shuffled(self.nodes / run, order.seed)?;
        let first = self.slot.arena().start().cast::<Node>().wrapping_add(self.slot.index());
        let node = |rank: usize| {
            let line = runs[rank / run] as usize * run + rank % run;
            first.wrapping_add(line * NODES_PER_LINE)
        };
        for rank in 0..self.nodes {
            let next = node(if rank + 1 == self.nodes { 0 } else { rank + 1 });
            let linked = Node { next, rank: rank as u64 };
            // SAFETY: node() gives lines below `nodes`, and all of these lie inside the arena, as
            // `new` has checked; it is aligned to a page. The slot is this ring's alone, and
            // `&mut self` says that nobody reads it now.
            unsafe { node(rank).write(linked) };
        }
        self.spacing = (self.nodes / MARKS).max(1);
        self.marks =
            (0..self.nodes).step_by(self.spacing).map(|rank| node(rank).cast_const()).collect();
        Ok(())
    }

    /// Nodes of the ring.
    pub fn nodes(&self) -> u64 {
        self.nodes as u64
    }

    /// Places from which a walk can begin; `place` takes any number below.
    pub fn places(&self) -> usize {
        self.marks.len()
    }

    /// The place number `index`, counted round the ring.
    pub fn place(&self, index: usize) -> Position<'_> {
        // SAFETY: marks are nodes of the ring, linked before and not written while `&self` lives.
        Position(unsafe { &*self.marks[index % self.marks.len()] })
    }

    /// So many places, as far apart as the ring allows, the first one being number `index`.
    pub fn apart(&self, index: usize, count: usize) -> Vec<Position<'_>> {
        let places = self.places();
        (0..count).map(|which| self.place(index % places + which * places / count.max(1))).collect()
    }

    /// Walks `steps` steps, each of which waits for the one before.
    ///
    /// Cost: the latency of a load per step; nothing else is on the way.
    pub fn walk<'a>(&'a self, from: Position<'a>, steps: u64) -> Position<'a> {
        // SAFETY: all nodes lead to nodes of this ring, which nobody writes while `&self` lives.
        Position(unsafe { &*walk::alone(from.0, steps) })
    }

    /// Walks `steps` steps from each of the places at the same time; their number is one of
    /// [`TOGETHER`]. None for another number.
    pub fn walk_together<'a>(
        &'a self,
        from: &[Position<'a>],
        steps: u64,
    ) -> Option<Vec<Position<'a>>> {
        let starts: Vec<*const Node> =
            from.iter().map(|place| std::ptr::from_ref(place.0)).collect();
        // SAFETY: as in `walk`.
        let ends = unsafe { walk::together(&starts, steps) }?;
        // SAFETY: as in `walk`.
        Some(ends.into_iter().map(|end| Position(unsafe { &*end })).collect())
    }

    /// Brings into the caches what an endless walk would have left there when it comes to place
    /// `index`: the last `nodes` nodes before it, or the whole ring if it is shorter.
    ///
    /// Cost: several lines are waited for at once, some 10 ns per node of a ring in memory.
    pub fn warm(&self, index: usize, nodes: u64) {
        let places = self.places();
        let stretches = nodes.div_ceil(self.spacing as u64).min(places as u64) as usize;
        let first = index % places + places - stretches;
        let all: Vec<Position<'_>> =
            (first..first + stretches).map(|index| self.place(index)).collect();
        for group in all.chunks(WARMERS) {
            let walked = self.walk_together(group, self.spacing as u64);
            for &place in group.iter().filter(|_| walked.is_none()) {
                self.walk(place, self.spacing as u64);
            }
        }
    }

    /// Whether `to` lies `steps` steps behind `from`: only then was each step made.
    pub fn is_after(&self, from: Position<'_>, steps: u64, to: Position<'_>) -> bool {
        let nodes = self.nodes();
        (from.0.rank + steps % nodes) % nodes == to.0.rank
    }
}

/// The numbers below `count` in random order.
fn shuffled(count: usize, seed: u64) -> io::Result<Vec<u32>> {
    let mut order = Vec::new();
    order.try_reserve_exact(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
    order.extend(0..count as u32);
    SplitMix64::new(seed).shuffle(&mut order);
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;

    fn chase(working_set_bytes: u64, seed: u64) -> Chase {
        Chase::new(slot(working_set_bytes), working_set_bytes, order(seed)).unwrap()
    }

    /// In an arena of its own.
    fn slot(length_bytes: u64) -> Slot {
        Arc::new(Arena::new(length_bytes as usize, Pages::Base, None).unwrap()).slot().unwrap()
    }

    fn order(seed: u64) -> Order {
        Order { seed, run_nodes: 1 }
    }

    fn addresses(chase: &Chase) -> Vec<usize> {
        let mut place = chase.place(0);
        (0..chase.nodes())
            .map(|_| {
                place = chase.walk(place, 1);
                std::ptr::from_ref(place.0) as usize
            })
            .collect()
    }

    #[test]
    fn a_ring_visits_each_line_once_and_comes_back() {
        for bytes in [1, 64, 128, 1 << 10, 3 << 10, 100 << 10] {
            let chase = chase(bytes, 7);
            let start = chase.slot.arena().start() as usize;
            let seen = addresses(&chase);
            let lines: HashSet<usize> =
                seen.iter().map(|address| (address - start) / LINE_BYTES as usize).collect();
            assert_eq!(lines.len() as u64, chase.nodes());
            assert!(lines.iter().all(|&line| (line as u64) < chase.nodes()));
            assert_eq!(chase.nodes(), (bytes / 64).max(1));
            assert!(chase.is_after(chase.place(0), 0, chase.walk(chase.place(0), chase.nodes())));
        }
    }

    #[test]
    fn seeds_give_different_orders_and_linking_again_too() {
        let mut one = chase(64 << 10, 1);
        let first = addresses(&one);
        assert_eq!(addresses(&chase(64 << 10, 1)).len(), first.len());
        one.link(order(2)).unwrap();
        assert_ne!(addresses(&one), first);
        one.link(order(1)).unwrap();
        assert_eq!(addresses(&one), first);
        // What is adjacent in the ring is not adjacent in memory.
        let near = first.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 128).count();
        assert!(near < first.len() / 50, "{near} of {}", first.len());
    }

    #[test]
    fn runs_follow_memory_and_jump_between() {
        let order = Order { seed: 5, run_nodes: 64 };
        let mut chase = Chase::new(slot(1 << 20), 1 << 20, order).unwrap();
        let seen = addresses(&chase);
        let next = seen.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) == 64).count();
        assert!((seen.len() - 2 * seen.len() / 64..seen.len()).contains(&next), "{next}");
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len());
        assert!(chase.link(Order { seed: 5, run_nodes: 63 }).is_err());
    }

    #[test]
    fn rings_share_memory_without_disturbing_each_other() {
        let arena = Arc::new(Arena::new(1 << 20, Pages::Base, None).unwrap());
        let mut rings: Vec<Chase> = (0..SLOTS as u64)
            .map(|seed| Chase::new(arena.slot().unwrap(), 1 << (17 + seed), order(seed)).unwrap())
            .collect();
        assert!(arena.slot().is_none(), "all are taken");
        for ring in &rings {
            assert!(ring.is_after(ring.place(0), 0, ring.walk(ring.place(0), ring.nodes())));
            assert_eq!(addresses(ring).iter().collect::<HashSet<_>>().len() as u64, ring.nodes());
        }
        let second = addresses(&rings[1]);
        rings[0].link(order(77)).unwrap();
        assert_eq!(addresses(&rings[1]), second);
        rings.pop();
        assert!(arena.slot().is_some(), "it was given back");
    }

    #[test]
    fn walks_of_any_length_are_checked_by_rank() {
        let chase = chase(300 << 10, 3);
        for steps in [0, 1, 15, 16, 17, 4_799, 4_800, 4_801, 100_003] {
            let (from, wrong) = (chase.place(5), chase.place(6));
            let to = chase.walk(from, steps);
            assert!(chase.is_after(from, steps, to));
            assert!(!chase.is_after(from, steps + 1, to));
            assert!(!chase.is_after(wrong, steps, to));
        }
    }

    #[test]
    fn chases_together_end_where_each_alone_would() {
        let chase = chase(1 << 20, 9);
        for count in TOGETHER {
            let from = chase.apart(11, count);
            let to = chase.walk_together(&from, 333).unwrap();
            assert_eq!(to.len(), count);
            for (from, to) in from.into_iter().zip(to) {
                assert!(chase.is_after(from, 333, to));
                assert_eq!(chase.walk(from, 333).0.rank, to.0.rank);
            }
        }
        assert!(chase.walk_together(&chase.apart(0, 5), 1).is_none());
        assert!(chase.walk_together(&[], 1).is_none());
    }

    #[test]
    fn warming_takes_any_amount_and_place() {
        for bytes in [64, 1 << 10, 1 << 20] {
            let chase = chase(bytes, 4);
            for (index, nodes) in [(0, 0), (1, 1), (1023, 5_000), (9_999, u64::MAX)] {
                chase.warm(index, nodes);
            }
        }
    }

    #[test]
    fn a_working_set_larger_than_its_arena_is_refused() {
        let slot = slot(4096);
        let bytes = slot.arena().length_bytes() as u64 + LINE_BYTES;
        let error = Chase::new(slot, bytes, order(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        for seed in 0..6_000 {
            *counts.entry(shuffled(3, seed * 977).unwrap()).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
