//! Calls and faults that change what is mapped.

use std::io;

use rustix::mm::{Advice, madvise};

use super::raw;
use crate::region::{Pages, Region, base_page_bytes};

/// Maps one anonymous page, never touched, and unmaps it: two system calls.
///
/// # Errors
/// The kernel's error at the first call that fails.
#[inline(never)]
pub fn map_unmap(calls: u64) -> io::Result<()> {
    let length = rustix::param::page_size();
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    for _ in 0..calls {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing in use.
        let mapped = unsafe { raw::call6(libc::SYS_mmap, 0, length, access, kind, usize::MAX, 0) };
        if (-4095..0).contains(&mapped) {
            return Err(super::surprise("mmap", mapped));
        }
        // SAFETY: the page was mapped just above and nobody else knows it.
        let unmapped = unsafe { raw::call2(libc::SYS_munmap, mapped as usize, length) };
        if unmapped != 0 {
            return Err(super::surprise("munmap", unmapped));
        }
    }
    Ok(())
}

/// Anonymous memory whose pages are given back on demand, so that each touch is a minor fault.
///
/// Huge pages are refused for it: one of those would answer for 512 touches.
#[derive(Debug)]
pub struct FaultRegion(Region);

impl FaultRegion {
    /// Maps `pages` pages, none of them present.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(pages: usize) -> io::Result<Self> {
        let length_bytes =
            pages.checked_mul(base_page_bytes()).ok_or(io::ErrorKind::OutOfMemory)?;
        Region::map(length_bytes, Pages::Base).map(Self)
    }

    /// Writes one byte into each of the first `pages` pages; each is a fault if
    /// [`release`](Self::release) came before.
    ///
    /// # Panics
    /// If `pages` is more than the region has.
    #[inline(never)]
    pub fn touch(&mut self, pages: usize) {
        let page_bytes = base_page_bytes();
        assert!(pages <= self.0.length_bytes() / page_bytes, "the region is smaller");
        for page in 0..pages {
            // SAFETY: the byte lies in the mapping, which `self` owns alone; volatile, because
            // the store is the point.
            unsafe { self.0.start().add(page * page_bytes).write_volatile(1) };
        }
    }

    /// Gives all pages back to the kernel.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn release(&mut self) -> io::Result<()> {
        // SAFETY: the range is the mapping, which `self` owns alone; its content is no use.
        unsafe { madvise(self.0.start().cast(), self.0.length_bytes(), Advice::LinuxDontNeed)? };
        Ok(())
    }

    /// Minor faults of the calling thread so far.
    pub fn faults_so_far() -> u64 {
        crate::usage::thread().minor_faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_leaves_nothing_behind() {
        let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let before = mappings();
        map_unmap(5000).unwrap();
        // Other tests map too, but not thousands of times.
        assert!(mappings() < before + 1000);
    }

    #[test]
    fn a_region_longer_than_all_addresses_is_refused() {
        let pages = usize::MAX / rustix::param::page_size() + 2;
        assert_eq!(FaultRegion::new(pages).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn each_touched_page_is_a_fault_after_release() {
        let mut region = FaultRegion::new(64).unwrap();
        for _ in 0..3 {
            let before = FaultRegion::faults_so_far();
            region.touch(64);
            assert!(FaultRegion::faults_so_far() - before >= 64);
            region.release().unwrap();
        }
    }
}
