//! What is made of the blocks of a lane where nobody wants their bytes.
//!
//! The loop over the blocks is compiled here, with the engines: a crate that is compiled for size
//! can have its files read by it and lose no speed.

use flatout_sys::view::ByteView;

use super::{Pass, Plan, Scanner};
use crate::digest::Xor32;
use crate::error::Error;
use crate::stop::Stop;

/// Blocks shorter than this are too often all zero by chance to be counted.
const ZERO_BLOCK_BYTES: usize = 512;

/// The digest of the blocks that a lane saw, and which of them may hold nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The xor32 of all blocks; 0 where none was wanted.
    pub digest: Xor32,
    /// Of those that were digested.
    pub zeros: Zeros,
}

/// Blocks of a lane whose words XOR to nothing, and the last of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Zeros {
    /// Their bytes, all together.
    pub bytes: u64,
    /// Where the last one begins in the file.
    pub offset: u64,
    /// How long the last one is.
    pub length: usize,
}

impl Tally {
    #[inline]
    fn take(&mut self, offset: u64, bytes: ByteView<'_>) {
        let before = self.digest;
        self.digest.update(offset, bytes);
        if before == self.digest && bytes.len() >= ZERO_BLOCK_BYTES {
            let sum = self.zeros.bytes + bytes.len() as u64;
            self.zeros = Zeros { bytes: sum, offset, length: bytes.len() };
        }
    }
}

impl Scanner {
    /// Reads each block of the lane and takes it into the tally; without one the bytes are brought
    /// into memory, and no more.
    ///
    /// Errors: as of [`Scanner::run`].
    pub fn tally(
        &mut self,
        plan: &Plan,
        stop: &mut Stop,
        tally: Option<&mut Tally>,
    ) -> Result<Pass, Error> {
        match tally {
            Some(tally) => self.run(plan, stop, |offset, bytes| tally.take(offset, bytes)),
            // Bytes in a buffer were copied there; those in a mapping must be touched.
            None => self.run(plan, stop, |_, bytes| {
                if bytes.as_slice().is_none() {
                    std::hint::black_box(bytes.touch());
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_blocks_of_zeros_are_counted() {
        let mut tally = Tally::default();
        let (zeros, ones) = ([0; 1024], {
            let mut one = [0; 512];
            one[7] = 1;
            one
        });
        for (offset, bytes) in
            [(0, &zeros[..]), (1024, &ones[..]), (1536, &zeros[..600]), (2136, &zeros[..511])]
        {
            tally.take(offset, ByteView::of(bytes));
        }
        assert_eq!(tally.zeros, Zeros { bytes: 1624, offset: 1536, length: 600 });
    }
}
