//! Memory for matrices: doubles that begin on a page, on huge pages where the kernel grants them.

use std::io;

use crate::buffer::AlignedBuffer;

/// Page-aligned doubles, zero at first and resident.
pub struct Doubles {
    buffer: AlignedBuffer,
    length: usize,
}

impl Doubles {
    /// Room for `length` doubles.
    ///
    /// # Errors
    /// `ENOMEM` where the kernel has no room.
    pub fn new(length: usize) -> io::Result<Self> {
        let bytes = length.checked_mul(size_of::<f64>());
        let bytes = bytes.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { buffer: AlignedBuffer::new(bytes)?, length })
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[f64] {
        // SAFETY: the buffer is page-aligned and has room for `length` doubles; every bit pattern
        // is one, and the memory was zeroed by the kernel.
        unsafe { std::slice::from_raw_parts(self.buffer.start().cast(), self.length) }
    }

    /// The numbers, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.start().cast(), self.length) }
    }
}
