//! Memory to stream through: a mapping of its own, on large pages where they are granted.
//!
//! Nothing is touched when it is made: the thread that will use a part touches it first, so that
//! the part lies on that thread's memory node. What pages there are: `region.rs`.

use std::ops::Deref;
use std::{io, slice};

use crate::region::{Pages, Region};

/// A zeroed block of memory that begins at a large page.
///
/// Cost: that of a mapping. A page is made when it is touched first.
#[derive(Debug)]
pub struct Arena(Region);

impl Arena {
    /// Maps `length_bytes`, rounded up to whole large pages, and asks for these.
    ///
    /// Errors: `ENOMEM` when the kernel grants no such length, or a limit of the process forbids
    /// it. Memory that is not there shows later, as the kernel's choice of a victim: ask before
    /// how much is free.
    pub fn new(length_bytes: usize) -> io::Result<Self> {
        Region::map(length_bytes, Pages::Huge).map(Self)
    }

    /// The memory as numbers.
    pub fn as_slice(&self) -> &[f64] {
        // SAFETY: the start is aligned to a page, the range lies within the region, the kernel has
        // zeroed it, and it lives as long as `self`; `&self` keeps writers away.
        unsafe { slice::from_raw_parts(self.0.start().cast(), self.elements()) }
    }

    /// The memory as numbers, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.0.start().cast(), self.elements()) }
    }

    fn elements(&self) -> usize {
        self.0.length_bytes() / size_of::<f64>()
    }
}

impl Deref for Arena {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::huge_page_bytes;

    #[test]
    fn an_arena_is_aligned_zeroed_and_writable() {
        for length in [0, 1, huge_page_bytes(), huge_page_bytes() + 1] {
            let mut arena = Arena::new(length).unwrap();
            assert!(arena.length_bytes() >= length && arena.length_bytes() > 0);
            assert_eq!(arena.as_slice().as_ptr().addr() % huge_page_bytes(), 0);
            assert!(arena.as_slice().iter().all(|&element| element == 0.0));
            arena.as_mut_slice().fill(2.0);
            let last = arena.length_bytes() / 8 - 1;
            assert_eq!(arena.as_slice()[last], 2.0);
        }
    }

    #[test]
    fn large_pages_are_counted_once_they_are_there() {
        let mut arena = Arena::new(4 * huge_page_bytes()).unwrap();
        assert!(arena.huge_bytes().is_none_or(|bytes| bytes == 0), "nothing was touched");
        arena.as_mut_slice().fill(1.0);
        let length = arena.length_bytes() as u64;
        assert!(arena.huge_bytes().is_none_or(|bytes| bytes <= length));
        let is_whole = arena.collapse().is_ok();
        assert!(!is_whole || arena.huge_bytes().is_none_or(|bytes| bytes == length));
        assert!(arena.as_slice().iter().all(|&element| element == 1.0));
    }
}
