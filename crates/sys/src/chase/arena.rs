//! Memory that rings share: resident before anything is timed, a quarter of each line for a ring.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::region::{Pages, Region};

/// Rings that can share an arena.
pub const SLOTS: usize = 4;

/// Zeroed memory, every page of which is there.
#[derive(Debug)]
pub struct Arena {
    region: Region,
    /// One bit for each slot that somebody has.
    taken: AtomicU8,
}

/// A quarter of each cache line of an arena, for one ring; given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    arena: Arc<Arena>,
    index: usize,
}

impl Slot {
    /// The memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Which quarter, from 0 on.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.arena.taken.fetch_and(!(1 << self.index), Ordering::AcqRel);
    }
}

impl Arena {
    /// At least `length_bytes` on `pages`, on memory of node `node` if one is named, every page
    /// written to. Memory without a node is that of the CPU that this thread runs on.
    ///
    /// Huge pages are asked for, not promised: see [`Region::huge_bytes`].
    ///
    /// Errors: `ENOMEM` without room; those of mbind(2) (`EPERM` in many containers, `EINVAL` for
    /// a node without memory).
    /// Cost: four system calls, and one page fault per page.
    pub fn new(length_bytes: usize, pages: Pages, node: Option<u32>) -> io::Result<Self> {
        let mut region = Region::map(length_bytes, pages)?;
        node.map_or(Ok(()), |node| region.bind(node))?;
        region.touch();
        Ok(Self { region, taken: AtomicU8::new(0) })
    }

    /// A slot that nobody has; none if all are taken.
    pub fn slot(self: &Arc<Self>) -> Option<Slot> {
        let free =
            |index: &usize| self.taken.fetch_or(1 << index, Ordering::AcqRel) & 1 << index == 0;
        let index = (0..SLOTS).find(free)?;
        Some(Slot { arena: Arc::clone(self), index })
    }
}

impl Deref for Arena {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_resident_and_has_four_slots() {
        let arena = Arc::new(Arena::new((4 << 20) + 1, Pages::Base, None).unwrap());
        assert!(arena.length_bytes() > 4 << 20);
        assert_eq!((arena.pages(), arena.huge_bytes()), (Pages::Base, Some(0)));
        let slots: Vec<Slot> = std::iter::from_fn(|| arena.slot()).collect();
        let indices: Vec<usize> = slots.iter().map(Slot::index).collect();
        assert_eq!(indices, [0, 1, 2, 3]);
    }
}
