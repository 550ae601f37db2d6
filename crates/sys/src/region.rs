//! A mapping of one kind of page, on one node if asked for: what chases and streams lie in.
//!
//! Which pages were granted is not believed but read from /proc/self/smaps. Nothing is handed out
//! but the address of the first byte, and that inside this room: who may touch what is decided by
//! `chase/arena.rs` and `stream/arena.rs`, whose memory is seen as a [`Region`] elsewhere.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

use crate::attribute;
use crate::cause::answered;
use crate::numa;

/// Length of the large pages that are asked for: what one last page table maps, a page of entries of 8
/// bytes. 2 MiB with pages of 4 KiB, 32 MiB with 16 KiB (aarch64). The 512 MiB of 64 KiB are asked of no
/// machine: with 2 MiB, memory lies on base pages there, and that is found and said.
pub fn huge_page_bytes() -> usize {
    const MOST_BYTES: usize = 32 << 20;
    let table_bytes = base_page_bytes() / 8 * base_page_bytes();
    if table_bytes <= MOST_BYTES { table_bytes } else { 2 << 20 }
}

/// Which pages memory lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's base pages; huge ones are forbidden for the range.
    Base,
    /// Pages of [`huge_page_bytes`], as far as the kernel has them.
    Huge,
}

/// Length of the kernel's base pages; 4 KiB on x86-64.
pub use rustix::param::page_size as base_page_bytes;

/// Where the lowest of the large regions began. Others are mapped below it: to tell the pages of a
/// mapping from `/proc/self/smaps` the kernel goes through all that lie below (20 to 30 ms beside
/// 1.5 GiB of base pages, virtual Sapphire Rapids, 2026-11-22).
static LOWEST_LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// What is large in this respect.
const LARGE_BYTES: usize = 64 << 20;

/// Where a region of that length would lie below the large ones: a hint, no more. Null where there
/// are none, or no room.
fn below_large(reserved_bytes: usize) -> *mut libc::c_void {
    let lowest = LOWEST_LARGE.load(Ordering::Relaxed);
    let address = (lowest != usize::MAX).then(|| lowest.checked_sub(reserved_bytes)).flatten();
    ptr::without_provenance_mut(address.unwrap_or(0) / huge_page_bytes() * huge_page_bytes())
}

/// Zeroed memory in a mapping of its own.
///
/// The mapping has a page without access on both sides, so that the kernel cannot join it with a
/// mapping beside it, and what it says of it holds for this memory alone.
#[derive(Debug)]
pub struct Region {
    reserved: *mut libc::c_void,
    reserved_bytes: usize,
    start: *mut u8,
    length_bytes: usize,
    pages: Pages,
}

// SAFETY: a region owns its mapping alone. It reads or writes what is in it only in `touch`, which
// takes `&mut self`; what else is done with the address is for those to prove who do it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps at least `length_bytes`, and asks for `pages`. Nothing is touched yet.
    ///
    /// Huge pages are asked for, not promised: see [`Region::huge_bytes`].
    ///
    /// Errors: `ENOMEM` when the kernel grants no such length, or a limit of the process forbids
    /// it. Memory that is not there shows later, as the kernel's choice of a victim: ask before
    /// how much is free.
    /// Cost: three system calls.
    pub(crate) fn map(length_bytes: usize, pages: Pages) -> io::Result<Self> {
        let unit = match pages {
            Pages::Base => base_page_bytes(),
            Pages::Huge => huge_page_bytes(),
        };
        let no_room = || io::Error::from_raw_os_error(libc::ENOMEM);
        let length_bytes =
            length_bytes.max(1).checked_next_multiple_of(unit).ok_or_else(no_room)?;
        let reserved_bytes = length_bytes.checked_add(2 * unit).ok_or_else(no_room)?;
        // SAFETY: a new mapping without access at an address of the kernel's choice.
        let reserved = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            mmap_anonymous(below_large(reserved_bytes), reserved_bytes, ProtFlags::empty(), flags)?
        };
        // At least one byte, and so at least one page, is left free before the start.
        let skip = unit - reserved as usize % unit;
        let start = reserved.cast::<u8>().wrapping_add(skip);
        if reserved_bytes >= LARGE_BYTES {
            LOWEST_LARGE.fetch_min(reserved as usize, Ordering::Relaxed);
        }
        let region = Self { reserved, reserved_bytes, start, length_bytes, pages };
        region.open()?;
        Ok(region)
    }

    /// Puts what will be touched on memory of node `node`.
    ///
    /// Errors: those of mbind(2) (`EPERM` in many containers, `EINVAL` for a node without memory).
    pub(crate) fn bind(&self, node: u32) -> io::Result<()> {
        // SAFETY: the range is the region's own; its content is not changed.
        unsafe { numa::bind(self.start.cast(), self.length_bytes, node) }
    }

    /// Makes the inner part accessible, on the pages that were asked for.
    fn open(&self) -> io::Result<()> {
        let inner = self.start.cast::<libc::c_void>();
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range lies inside the mapping that was just made, see `map`.
        unsafe { mprotect(inner, self.length_bytes, access)? };
        let advice = match self.pages {
            Pages::Base => Advice::LinuxNoHugepage,
            Pages::Huge => Advice::LinuxHugepage,
        };
        // A kernel without huge pages refuses both (EINVAL): then all pages are base pages.
        // SAFETY: the range is the region's own.
        let _ = unsafe { madvise(inner, self.length_bytes, advice) };
        Ok(())
    }

    /// Writes zero to every page, so that all of them are there.
    ///
    /// Cost: one page fault per page.
    pub(crate) fn touch(&mut self) {
        for offset in (0..self.length_bytes).step_by(base_page_bytes()) {
            // SAFETY: offset < length_bytes, inside the region, which `&mut self` has alone.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
        compiler_fence(Ordering::SeqCst);
    }

    /// Length in bytes: what was asked for, rounded up to whole pages.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Which pages were asked for.
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// How many of the bytes lie on huge pages, according to `/proc/self/smaps`.
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
        // SAFETY: the range is the region's own; the kernel moves its content to other pages.
        answered(unsafe { libc::madvise(self.start.cast(), self.length_bytes, COLLAPSE) }).map(drop)
    }

    /// On which nodes the pages lie, see [`numa::pages_by_node`]; none where the kernel does not
    /// say.
    pub fn pages_by_node(&self) -> Option<Vec<(u32, u64)>> {
        let text = attribute::whole("/proc/self/numa_maps".as_ref())?;
        numa::pages_by_node(&text, self.start as u64)
    }

    /// First byte: aligned to a page of the kind asked for. The memory lives as long as `self`.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping that `map` made, and no reference outlives
        // `self`. munmap of a whole own mapping cannot fail.
        let _ = unsafe { munmap(self.reserved, self.reserved_bytes) };
    }
}

/// The bytes on huge pages of the mapping that begins at `start`, out of the text of smaps, which
/// is read no further than needed. Paths in it, such as the program's own, need not be UTF-8.
fn huge_bytes(smaps: impl BufRead, start: u64) -> Option<u64> {
    let head = format!("{start:x}-");
    let lines = smaps.split(b'\n').map_while(Result::ok);
    let mut lines = lines.skip_while(|line| !line.starts_with(head.as_bytes()));
    let line = lines.find(|line| line.starts_with(b"AnonHugePages:"))?;
    attribute::kib_after(str::from_utf8(&line).ok()?, "AnonHugePages:")
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
        let program = b"550000000000-550000001000 r-xp 0 08:01 7 /home/m\xfcller/flatout\n";
        let of_a_program = [&program[..], SMAPS.as_bytes()];
        assert_eq!(huge_bytes(&*of_a_program.concat(), 0x7f00_0060_0000), Some(2 << 20));
    }

    #[test]
    fn base_pages_are_never_huge() {
        let mut region = Region::map((4 << 20) + 1, Pages::Base).unwrap();
        region.touch();
        assert_eq!(region.length_bytes() % base_page_bytes(), 0);
        assert!(region.length_bytes() > 4 << 20);
        assert_eq!(region.huge_bytes(), Some(0));
    }

    #[test]
    fn huge_pages_are_as_long_as_those_of_the_kernel() {
        let path = std::path::Path::new("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        match attribute::whole(path).and_then(|text| text.trim().parse::<usize>().ok()) {
            Some(bytes) if bytes <= 32 << 20 => assert_eq!(huge_page_bytes(), bytes),
            other => eprintln!("skipped: pages of {other:?} bytes are not asked for"),
        }
    }

    #[test]
    fn huge_pages_are_aligned_and_counted_for_this_region_alone() {
        let regions =
            (1..4).map(|pages| Region::map(pages * huge_page_bytes(), Pages::Huge).unwrap());
        let mut regions: Vec<Region> = regions.collect();
        for region in &mut regions {
            assert_eq!(region.start() as usize % huge_page_bytes(), 0);
            assert_eq!(region.huge_bytes(), Some(0), "nothing was touched");
            region.touch();
        }
        for region in &regions {
            let huge_bytes = region.huge_bytes().unwrap();
            assert!(
                huge_bytes <= region.length_bytes() as u64,
                "{huge_bytes} of {}",
                region.length_bytes()
            );
            if region.collapse().is_ok() {
                assert_eq!(region.huge_bytes(), Some(region.length_bytes() as u64));
            }
        }
    }

    #[test]
    fn a_length_beyond_memory_is_an_error() {
        for length_bytes in [usize::MAX, usize::MAX / 2] {
            let error = Region::map(length_bytes, Pages::Huge).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
        }
    }
}
