//! Page-aligned memory of its own mapping, fit for direct I/O and for registering with a ring.

use std::{io, ptr};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::region::{base_page_bytes, huge_page_bytes};

/// A zeroed, page-aligned, resident block of memory.
///
/// Cost: one mmap and one munmap; all pages are touched at creation, so that no fault falls into
/// a timed region.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: *mut u8,
    length_bytes: usize,
}

// SAFETY: the buffer owns its mapping alone, and hands out references by the usual borrow rules.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps `length_bytes` of zeroed memory. A length of zero is rounded up to one byte.
    ///
    /// Errors: `ENOMEM` when the kernel has no room.
    pub fn new(length_bytes: usize) -> io::Result<Self> {
        let length_bytes = length_bytes.max(1);
        let huge = length_bytes >= huge_page_bytes();
        let flags = if huge { MapFlags::PRIVATE } else { MapFlags::PRIVATE | MapFlags::POPULATE };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory
        // that anybody else owns.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), length_bytes, protection, flags) }?;
        let mut buffer = Self { start: start.cast(), length_bytes };
        if huge {
            // SAFETY: the range is the mapping made above. Refusal costs speed only.
            let _ = unsafe { madvise(start, length_bytes, Advice::LinuxHugepage) };
            buffer.as_mut_slice().iter_mut().step_by(base_page_bytes()).for_each(|byte| *byte = 0);
        }
        Ok(buffer)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is `length_bytes` long, initialised (zeroed by the kernel), and
        // lives as long as `self`; `&self` keeps writers away.
        unsafe { std::slice::from_raw_parts(self.start, self.length_bytes) }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length_bytes) }
    }

    /// First byte, for the kernel's use inside this room.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapping that `new` made, and no reference outlives
        // `self`. munmap of a whole own mapping cannot fail.
        let _ = unsafe { munmap(self.start.cast(), self.length_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_writable() {
        for length in [0, 1, 4095, 4096, 3 << 20] {
            let mut buffer = AlignedBuffer::new(length).unwrap();
            assert_eq!(buffer.start() as usize % 4096, 0);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
            buffer.as_mut_slice().fill(7);
            assert_eq!(buffer.as_slice().last(), Some(&7));
        }
    }

    #[test]
    fn a_length_beyond_memory_is_an_error() {
        assert!(AlignedBuffer::new(usize::MAX / 2).is_err());
    }
}
