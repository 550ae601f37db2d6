//! Memory of one kind of page, on one node if asked for, resident before anything is timed.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence};

use crate::numa;

/// Length of the large pages that are asked for. Source: the level above the last of the page
/// tables of x86-64, and of aarch64 with pages of 4 KiB.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Rings that can share an arena.
pub const SLOTS: usize = 4;

/// Which pages memory lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's base pages; huge ones are forbidden for the range.
    Base,
    /// Pages of 2 MiB, as far as the kernel has them.
    Huge,
}

/// Length of the kernel's base pages; 4 KiB on x86-64.
pub fn base_page_bytes() -> usize {
    rustix::param::page_size()
}

/// Zeroed memory in a mapping of its own, every page of which is there.
///
/// The mapping has a page without access on both sides, so that the kernel cannot join it with a
/// neighbour, and what it says of the mapping holds for this memory alone.
#[derive(Debug)]
pub struct Arena {
    reserved: *mut libc::c_void,
    reserved_bytes: usize,
    start: *mut u8,
    length_bytes: usize,
    pages: Pages,
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

// SAFETY: the arena owns its mapping alone; what is in it is reached through its slots, each of which
// one owner has.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps at least `length_bytes` on `pages`, on memory of node `node` if one is named, and
    /// writes to every page. Memory without a node is that of the CPU that this thread runs on.
    ///
    /// Huge pages are asked for, not promised: see [`Arena::huge_bytes`].
    ///
    /// Errors: `ENOMEM` without room; those of mbind(2) (`EPERM` in many containers, `EINVAL` for
    /// a node without memory).
    /// Cost: four system calls, and one page fault per page.
    pub fn new(length_bytes: usize, pages: Pages, node: Option<u32>) -> io::Result<Self> {
        let unit = match pages {
            Pages::Base => base_page_bytes(),
            Pages::Huge => HUGE_PAGE_BYTES.max(base_page_bytes()),
        };
        let no_room = || io::Error::from_raw_os_error(libc::ENOMEM);
        let length_bytes =
            length_bytes.max(1).checked_next_multiple_of(unit).ok_or_else(no_room)?;
        let reserved_bytes = length_bytes.checked_add(2 * unit).ok_or_else(no_room)?;
        // SAFETY: a new mapping without access at an address of the kernel's choice.
        let reserved = unsafe {
            libc::mmap(
                ptr::null_mut(),
                reserved_bytes,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // At least one byte, and so at least one page, is left free before the start.
        let skip = unit - reserved as usize % unit;
        let start = reserved.cast::<u8>().wrapping_add(skip);
        let taken = AtomicU8::new(0);
        let arena = Self { reserved, reserved_bytes, start, length_bytes, pages, taken };
        arena.open()?;
        if let Some(node) = node {
            // SAFETY: the range is the arena's own, and nothing is in it yet.
            unsafe { numa::bind(arena.start.cast(), arena.length_bytes, node) }?;
        }
        arena.touch();
        Ok(arena)
    }

    /// Makes the inner part accessible, on the pages that were asked for.
    fn open(&self) -> io::Result<()> {
        let inner = self.start.cast::<libc::c_void>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range lies inside the mapping that was just made, see `new`.
        if unsafe { libc::mprotect(inner, self.length_bytes, access) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let advice = match self.pages {
            Pages::Base => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // A kernel without huge pages refuses both (EINVAL): then all pages are base pages.
        // SAFETY: the range is the arena's own.
        let _ = unsafe { libc::madvise(inner, self.length_bytes, advice) };
        Ok(())
    }

    /// A slot that nobody has; none if all are taken.
    pub fn slot(self: &Arc<Self>) -> Option<Slot> {
        let free =
            |index: &usize| self.taken.fetch_or(1 << index, Ordering::AcqRel) & 1 << index == 0;
        let index = (0..SLOTS).find(free)?;
        Some(Slot { arena: Arc::clone(self), index })
    }

    fn touch(&self) {
        for offset in (0..self.length_bytes).step_by(base_page_bytes()) {
            // SAFETY: offset < length_bytes, inside the arena, to which nobody has a reference yet.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// Length in bytes: what was asked for, rounded up to whole pages.
    pub fn len(&self) -> usize {
        self.length_bytes
    }

    /// Always false: an arena has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Which pages were asked for.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// How many of the bytes lie on huge pages, according to `/proc/self/smaps`; none where that
    /// cannot be read.
    ///
    /// Cost: the kernel walks the page tables of the mappings below this one, some 10 ms per GiB
    /// of base pages. New mappings lie low as a rule, and what lies above is not asked for.
    pub fn huge_bytes(&self) -> Option<u64> {
        let smaps = File::open("/proc/self/smaps").ok()?;
        // A buffer of a page, because the kernel fills whatever it is given.
        huge_bytes(BufReader::with_capacity(4096, smaps), self.start as u64)
    }

    /// Asks the kernel to put together huge pages from base pages now, where the memory was too
    /// much in pieces for them when it was touched.
    ///
    /// Errors: `EINVAL` before Linux 6.1; `EAGAIN` or `ENOMEM` where there are still none.
    /// Cost: the pages that were not huge are copied.
    pub fn collapse(&self) -> io::Result<()> {
        /// `MADV_COLLAPSE`, see madvise(2).
        const COLLAPSE: libc::c_int = 25;
        // SAFETY: the range is the arena's own; the kernel moves its content to other pages.
        match unsafe { libc::madvise(self.start.cast(), self.length_bytes, COLLAPSE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// On which nodes the pages lie, see [`numa::pages_by_node`]; none where the kernel does not
    /// say.
    pub fn pages_by_node(&self) -> Option<Vec<(u32, u64)>> {
        let text = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
        numa::pages_by_node(&text, self.start as u64)
    }

    /// First byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping that `new` made, and no reference outlives
        // `self`. munmap of a whole own mapping cannot fail.
        let _ = unsafe { libc::munmap(self.reserved, self.reserved_bytes) };
    }
}

/// The bytes on huge pages of the mapping that begins at `start`, out of the text of smaps, which
/// is read no further than needed.
fn huge_bytes(smaps: impl BufRead, start: u64) -> Option<u64> {
    let head = format!("{start:x}-");
    let mut lines = smaps.lines().map_while(Result::ok).skip_while(|line| !line.starts_with(&head));
    let line = lines.find(|line| line.starts_with("AnonHugePages:"))?;
    let kib: u64 =
        line.strip_prefix("AnonHugePages:")?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\n\
KernelPageSize:        4 kB\n\
AnonHugePages:         0 kB\n\
7f0000600000-7f0000a00000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\n\
AnonHugePages:      2048 kB\n\
VmFlags: rd wr mr mw me ac sd hg \n";

    #[test]
    fn huge_pages_of_the_right_mapping_are_counted() {
        assert_eq!(huge_bytes(SMAPS.as_bytes(), 0x7f00_0000_0000), Some(0));
        assert_eq!(huge_bytes(SMAPS.as_bytes(), 0x7f00_0060_0000), Some(2 << 20));
        assert_eq!(huge_bytes(SMAPS.as_bytes(), 0x7f00_0080_0000), None);
    }

    #[test]
    fn base_pages_are_never_huge() {
        let arena = Arena::new((4 << 20) + 1, Pages::Base, None).unwrap();
        assert_eq!(arena.len() % base_page_bytes(), 0);
        assert!(arena.len() > 4 << 20 && !arena.is_empty());
        assert_eq!(arena.huge_bytes(), Some(0));
    }

    #[test]
    fn huge_pages_are_aligned_and_counted_for_this_arena_alone() {
        let arenas: Vec<Arena> =
            (1..4).map(|pages| Arena::new(pages << 21, Pages::Huge, None).unwrap()).collect();
        for arena in &arenas {
            assert_eq!(arena.start() as usize % HUGE_PAGE_BYTES, 0);
            let huge_bytes = arena.huge_bytes().unwrap();
            assert!(huge_bytes <= arena.len() as u64, "{huge_bytes} of {}", arena.len());
            if arena.collapse().is_ok() {
                assert_eq!(arena.huge_bytes(), Some(arena.len() as u64));
            }
        }
    }

    #[test]
    fn a_length_beyond_memory_is_an_error() {
        for length_bytes in [usize::MAX, usize::MAX / 2] {
            assert!(Arena::new(length_bytes, Pages::Huge, None).is_err());
        }
    }
}
