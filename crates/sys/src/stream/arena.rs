//! Memory to stream through: a mapping of its own, on 2 MiB pages where they are granted.
//!
//! Nothing is touched when it is made: the thread that will use a part touches it first, so that
//! the part lies on that thread's memory node. Whether large pages were granted is not believed
//! but read from /proc/self/smaps.

use std::{fs, io, ptr, slice};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Length and alignment of a large page: x86-64, and aarch64 with pages of 4 KiB.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A zeroed block of memory that begins at a multiple of [`HUGE_PAGE_BYTES`].
///
/// Cost: one mmap and one munmap. A page is made when it is touched first.
#[derive(Debug)]
pub struct Arena {
    mapping: *mut u8,
    mapping_bytes: usize,
    start: *mut f64,
    elements: usize,
}

// SAFETY: an arena owns its mapping alone, and hands out references by the usual borrow rules.
unsafe impl Send for Arena {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `length_bytes`, rounded up to whole large pages, and asks for these.
    ///
    /// Errors: `ENOMEM` when the kernel grants no such length, or a limit of the process forbids
    /// it. Memory that is not there shows later, as the kernel's choice of a victim: ask before
    /// how much is free.
    pub fn new(length_bytes: usize) -> io::Result<Self> {
        let no_room = || io::Error::from_raw_os_error(libc::ENOMEM);
        let length = length_bytes.max(1).checked_next_multiple_of(HUGE_PAGE_BYTES);
        let length = length.ok_or_else(no_room)?;
        // Older kernels put a mapping at any page.
        let mapping_bytes = length.checked_add(HUGE_PAGE_BYTES).ok_or_else(no_room)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory
        // that anybody else owns.
        let mapping = unsafe { mmap_anonymous(ptr::null_mut(), mapping_bytes, protection, flags) }?;
        let mapping = mapping.cast::<u8>();
        let start = mapping.wrapping_add(mapping.align_offset(HUGE_PAGE_BYTES));
        // SAFETY: the range lies within the mapping made above. Refusal costs speed only, and is
        // seen in `huge_bytes`.
        let _ = unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) };
        let elements = length / size_of::<f64>();
        Ok(Self { mapping, mapping_bytes, start: start.cast(), elements })
    }

    /// The memory as numbers.
    pub fn as_slice(&self) -> &[f64] {
        // SAFETY: `start` is aligned, the range lies within the mapping, the kernel has zeroed it,
        // and it lives as long as `self`; `&self` keeps writers away.
        unsafe { slice::from_raw_parts(self.start, self.elements) }
    }

    /// The memory as numbers, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start, self.elements) }
    }

    /// Length in bytes: what was asked for, rounded up.
    pub fn length_bytes(&self) -> usize {
        self.elements * size_of::<f64>()
    }

    /// Bytes that lie on large pages now; `None` where the kernel does not say.
    ///
    /// Cost: the kernel goes through the page tables of the whole process.
    pub fn huge_bytes(&self) -> Option<u64> {
        let start = self.start.addr();
        let text = fs::read_to_string("/proc/self/smaps").ok()?;
        let bytes = parse_huge_bytes(&text, start as u64, (start + self.length_bytes()) as u64)?;
        // A neighbour with the same rights may have been joined to this mapping.
        Some(bytes.min(self.length_bytes() as u64))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping that `new` made, and no reference outlives
        // `self`. munmap of a whole own mapping cannot fail.
        let _ = unsafe { munmap(self.mapping.cast(), self.mapping_bytes) };
    }
}

/// Reads the text of /proc/self/smaps: the bytes on large pages of all mappings that overlap the
/// addresses from `start` to `end`; `None` when no line tells.
pub fn parse_huge_bytes(text: &str, start: u64, end: u64) -> Option<u64> {
    let mut is_inside = false;
    let mut total = None;
    for line in text.lines() {
        if let Some((from, to)) = range(line) {
            is_inside = from < end && to > start;
        } else if let Some(rest) = line.strip_prefix("AnonHugePages:").filter(|_| is_inside) {
            let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
            total = Some(total.unwrap_or(0) + kib * 1024);
        }
    }
    total
}

/// The addresses of a mapping, where the line begins one.
fn range(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split_once(' ')?.0.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_aligned_zeroed_and_writable() {
        for length in [0, 1, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 1] {
            let mut arena = Arena::new(length).unwrap();
            assert!(arena.length_bytes() >= length && arena.length_bytes() > 0);
            assert_eq!(arena.as_slice().as_ptr().addr() % HUGE_PAGE_BYTES, 0);
            assert!(arena.as_slice().iter().all(|&element| element == 0.0));
            arena.as_mut_slice().fill(2.0);
            let last = arena.length_bytes() / 8 - 1;
            assert_eq!(arena.as_slice()[last], 2.0);
        }
    }

    #[test]
    fn a_length_beyond_memory_is_an_error() {
        for length in [usize::MAX, usize::MAX / 2] {
            assert_eq!(Arena::new(length).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
        }
    }

    #[test]
    fn large_pages_are_counted_or_unknown() {
        let mut arena = Arena::new(4 * HUGE_PAGE_BYTES).unwrap();
        assert!(arena.huge_bytes().is_none_or(|bytes| bytes == 0), "nothing was touched");
        arena.as_mut_slice().fill(1.0);
        let length = arena.length_bytes() as u64;
        assert!(arena.huge_bytes().is_none_or(|bytes| bytes <= length));
    }

    #[test]
    fn only_mappings_inside_the_range_count() {
        let text = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\nAnonHugePages:      2048 kB\nVmFlags: rd wr hg\n\
7f0000400000-7f0000800000 rw-p 00000000 00:00 0 \n\
AnonHugePages:      4096 kB\n\
7fff00000000-7fff00021000 rw-p 00000000 00:00 0                          [stack]\n\
AnonHugePages:         0 kB\n";
        let at = |start, end| parse_huge_bytes(text, start, end);
        assert_eq!(at(0x7f00_0000_0000, 0x7f00_0040_0000), Some(2 << 20));
        assert_eq!(at(0x7f00_0020_0000, 0x7f00_0060_0000), Some(6 << 20));
        assert_eq!(at(0x7fff_0000_0000, 0x7fff_0000_1000), Some(0));
        assert_eq!(at(0x1000, 0x2000), None);
        assert_eq!(parse_huge_bytes("", 0, u64::MAX), None);
    }
}
