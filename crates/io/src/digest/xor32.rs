//! The xor32 of blocks in any order.
//!
//! `xor32` is the file as little-endian 32-bit words, the tail padded with zero bytes, all XORed.
//! XOR commutes, so blocks may come in any order and any size; a block that starts off a word
//! boundary is turned into place.

use flatout_sys::view::ByteView;

/// The xor32 of the blocks seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Xor32(pub u32);

impl Xor32 {
    /// Takes one block of the file in.
    #[inline]
    pub fn update(&mut self, offset_bytes: u64, bytes: ByteView<'_>) {
        self.0 ^= bytes.xor32().rotate_left(8 * (offset_bytes % 4) as u32);
    }

    /// Takes in what another lane saw.
    pub fn merge(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference(bytes: &[u8]) -> u32 {
        bytes.iter().enumerate().fold(0, |sum, (i, &byte)| sum ^ (u32::from(byte) << (8 * (i % 4))))
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_digest_of_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..5000),
            block in 1_usize..1500,
            backwards in any::<bool>(),
        ) {
            let mut blocks: Vec<_> = bytes.chunks(block).enumerate().collect();
            if backwards {
                blocks.reverse();
            }
            let mut digest = Xor32::default();
            for (index, chunk) in blocks {
                digest.update((index * block) as u64, ByteView::of(chunk));
            }
            prop_assert_eq!(digest.0, reference(&bytes));
        }
    }
}
