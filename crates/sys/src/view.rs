//! Bytes that may lie in a buffer of ours or in somebody's mapped file.
//!
//! A mapped file can change under our feet, so no Rust reference to it may exist. A view hides
//! the address and offers only kernels that read through raw pointers.

use std::marker::PhantomData;

use crate::{blake3, xor, xxh3};

/// Borrowed bytes, readable only by the kernels of this room.
#[derive(Debug, Clone, Copy)]
pub struct ByteView<'a> {
    start: *const u8,
    length_bytes: usize,
    mapped: bool,
    owner: PhantomData<&'a [u8]>,
}

impl<'a> ByteView<'a> {
    /// A view of ordinary memory.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Self {
        let start = bytes.as_ptr();
        Self { start, length_bytes: bytes.len(), mapped: false, owner: PhantomData }
    }

    /// A view of mapped memory. The caller keeps `length_bytes` readable bytes at `start` mapped
    /// for `'a`.
    #[inline]
    pub(crate) fn of_mapping(start: *const u8, length_bytes: usize) -> Self {
        Self { start, length_bytes, mapped: true, owner: PhantomData }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length_bytes
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length_bytes == 0
    }

    /// The bytes as a slice, unless they belong to a mapping.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [u8]> {
        // SAFETY: views that are not mapped were made by `of` from a slice of lifetime 'a.
        (!self.mapped).then(|| unsafe { std::slice::from_raw_parts(self.start, self.length_bytes) })
    }

    /// XOR of the bytes as little-endian 32-bit words, the tail padded with zero bytes.
    #[inline]
    pub fn xor32(&self) -> u32 {
        // SAFETY: both constructors promise `length_bytes` readable bytes at `start` for 'a.
        unsafe { xor::xor32_raw(self.start, self.length_bytes) }
    }

    /// The sums of the first `sums.len()` blocks for XXH3: see [`xxh3`].
    ///
    /// Panics: when there are not so many bytes.
    pub fn xxh3_block_sums(&self, sums: &mut [xxh3::Sums]) {
        assert!(sums.len() * xxh3::BLOCK_BYTES <= self.length_bytes, "the view has the blocks");
        // SAFETY: both constructors promise `length_bytes` readable bytes at `start` for 'a.
        unsafe { xxh3::block_sums_raw(self.start, sums) }
    }

    /// The BLAKE3 chaining value of these bytes as a subtree of a file, in which they begin with
    /// chunk `first_chunk`; `None` on CPUs without the kernel: see [`blake3`].
    ///
    /// Panics: when they are no power of two of chunks within the kernel's bounds.
    pub fn blake3_subtree(
        &self,
        first_chunk: u64,
        scratch: &mut blake3::Scratch,
    ) -> Option<blake3::ChainingValue> {
        assert!(self.length_bytes.is_multiple_of(blake3::CHUNK_BYTES), "whole chunks only");
        let chunks = self.length_bytes / blake3::CHUNK_BYTES;
        // SAFETY: both constructors promise `length_bytes` readable bytes at `start` for 'a.
        unsafe { blake3::subtree_raw(self.start, chunks, first_chunk, scratch) }
    }

    /// A part of the bytes.
    ///
    /// Panics: when it does not lie within them.
    #[inline]
    pub fn part(&self, offset: usize, length_bytes: usize) -> Self {
        assert!(offset <= self.length_bytes && length_bytes <= self.length_bytes - offset);
        // SAFETY: the assertion keeps the part within the readable bytes.
        Self { start: unsafe { self.start.add(offset) }, length_bytes, ..*self }
    }

    /// Reads one byte of each 4 KiB page and the last byte, so that each page is really there.
    pub fn touch(&self) -> u8 {
        let mut seen = 0;
        for index in (0..self.length_bytes).step_by(4096).chain(self.length_bytes.checked_sub(1)) {
            // SAFETY: `index` is below `length_bytes`, which is readable; volatile keeps the read.
            seen |= unsafe { self.start.add(index).read_volatile() };
        }
        seen
    }

    /// Copies the bytes into `target`.
    ///
    /// Panics: when `target` has another length.
    pub fn copy_to(&self, target: &mut [u8]) {
        assert_eq!(target.len(), self.length_bytes, "target and view must have one length");
        // SAFETY: source is readable for `length_bytes`, target is an exclusive slice of that
        // length, and a mapping never overlaps Rust-owned memory.
        unsafe { self.start.copy_to_nonoverlapping(target.as_mut_ptr(), self.length_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_reads_what_the_slice_holds() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let view = ByteView::of(&bytes);
        let mut copy = vec![0; bytes.len()];
        view.copy_to(&mut copy);
        assert_eq!(copy, bytes);
        assert_eq!(view.as_slice(), Some(&bytes[..]));
        assert_eq!(ByteView::of(&[]).touch(), 0);
        assert_eq!(ByteView::of(&[8]).touch(), 8);
    }
}
