//! The digest of a large file in parts, which any thread may compute in any order.
//!
//! A [`Cutter`] belongs to a thread and makes a [`Part`] of each segment; a [`Fold`] belongs to
//! the file and joins the parts in order. Of SHA-256, where each step needs the one before, a part is
//! its bytes: one thread can have them ready while another one takes in those before.

mod blake3;
mod xxh3;

use std::collections::BTreeMap;

use flatout_sys::view::ByteView;

use super::algorithm::{Algorithm, Digest};
use super::hasher::Hasher;
use super::xor32::Xor32;

/// Least bytes of a segment.
pub const MIN_SEGMENT_BYTES: u64 = 16 << 10;
/// Most bytes of a segment.
pub const MAX_SEGMENT_BYTES: u64 = 8 << 20;
/// Bytes that are copied out of a mapping at a time, for what only the libraries can digest. Half
/// of a second-level cache of the size usual since 2017.
const COPY_BYTES: usize = 128 << 10;

/// How a file is cut: segments of one power of two of bytes; the last may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// The length of the file.
    pub length_bytes: u64,
    /// The length of a segment.
    pub segment_bytes: u64,
}

impl Cut {
    /// Cuts a file; `None` where there would be but one segment.
    ///
    /// Panics: when `segment_bytes` is no power of two from [`MIN_SEGMENT_BYTES`] to
    /// [`MAX_SEGMENT_BYTES`].
    pub fn new(algorithm: Algorithm, length_bytes: u64, segment_bytes: u64) -> Option<Self> {
        let allowed = MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES;
        assert!(segment_bytes.is_power_of_two() && allowed.contains(&segment_bytes));
        (length_bytes > segment_bytes).then_some(Self { algorithm, length_bytes, segment_bytes })
    }

    /// Whether the work is in joining the parts, which is done in order.
    pub fn is_serial(&self) -> bool {
        self.algorithm == Algorithm::Sha256
    }

    /// Number of segments, at least two.
    pub fn segments(&self) -> u64 {
        self.length_bytes.div_ceil(self.segment_bytes)
    }

    /// Offset and length of a segment.
    pub fn segment(&self, index: u64) -> (u64, usize) {
        let offset = index * self.segment_bytes;
        (offset, self.segment_bytes.min(self.length_bytes - offset) as usize)
    }
}

/// What is known of one segment.
#[derive(Debug)]
pub struct Part(State);

#[derive(Debug)]
enum State {
    Blake3(blake3::Value),
    Xxh3(xxh3::Part),
    Crc32c { sum: u32, length_bytes: usize },
    Xor32(Xor32),
    Bytes(Vec<u8>),
}

/// Makes parts of segments; one per thread, for any number of files.
#[derive(Default)]
pub struct Cutter {
    copy: Vec<u8>,
    blake3: Option<Box<blake3::Scratch>>,
    /// Nobody writes them: they are one page of the kernel's, over and over.
    zeros: Vec<u8>,
}

impl Cutter {
    /// The part of segment `index`.
    ///
    /// Panics: when the view has another length than the segment.
    pub fn part(&mut self, cut: &Cut, index: u64, bytes: ByteView<'_>) -> Part {
        let (offset, length) = cut.segment(index);
        assert_eq!(bytes.len(), length, "a segment is digested as a whole");
        Part(match cut.algorithm {
            Algorithm::Blake3 => {
                let scratch = self.blake3.get_or_insert_default();
                State::Blake3(blake3::value(bytes, offset, scratch, &mut self.copy))
            }
            Algorithm::Xxh3 => State::Xxh3(xxh3::Part::of(cut.length_bytes, offset, bytes)),
            Algorithm::Crc32c => {
                let mut sum = 0;
                each_slice(bytes, &mut self.copy, |slice| sum = crc32c::crc32c_append(sum, slice));
                State::Crc32c { sum, length_bytes: length }
            }
            Algorithm::Xor32 => {
                let mut digest = Xor32::default();
                digest.update(offset, bytes);
                State::Xor32(digest)
            }
            Algorithm::Sha256 => {
                let mut copy = vec![0; length];
                bytes.copy_to(&mut copy);
                State::Bytes(copy)
            }
        })
    }

    /// The part of segment `index`, which holds nothing but zeros.
    pub fn part_of_zeros(&mut self, cut: &Cut, index: u64) -> Part {
        let length = cut.segment(index).1;
        let mut zeros = std::mem::take(&mut self.zeros);
        if zeros.len() < length {
            zeros = vec![0; length];
        }
        let part = self.part(cut, index, ByteView::of(&zeros[..length]));
        self.zeros = zeros;
        part
    }

    /// The part of segment `index`, of bytes that nobody else needs.
    ///
    /// Panics: as [`Self::part`].
    pub fn part_of(&mut self, cut: &Cut, index: u64, bytes: Vec<u8>) -> Part {
        if !cut.is_serial() {
            return self.part(cut, index, ByteView::of(&bytes));
        }
        assert_eq!(bytes.len(), cut.segment(index).1, "a segment is digested as a whole");
        Part(State::Bytes(bytes))
    }
}

/// Hands the bytes on as slices; those of a mapping are copied out of it first, because no
/// reference may point there.
fn each_slice(bytes: ByteView<'_>, copy: &mut Vec<u8>, mut take: impl FnMut(&[u8])) {
    if let Some(slice) = bytes.as_slice() {
        return take(slice);
    }
    copy.resize(COPY_BYTES, 0);
    for offset in (0..bytes.len()).step_by(COPY_BYTES) {
        let piece = bytes.part(offset, COPY_BYTES.min(bytes.len() - offset));
        let slice = &mut copy[..piece.len()];
        piece.copy_to(slice);
        take(slice);
    }
}

/// Joins the parts of one file.
pub struct Fold {
    sums: Sums,
    segments: u64,
    next: u64,
    /// Parts that came before their turn.
    waiting: BTreeMap<u64, Part>,
    spent: Vec<Vec<u8>>,
}

enum Sums {
    Blake3(blake3::Stack),
    Xxh3(Box<xxh3::Fold>),
    Crc32c(u32),
    Xor32(Xor32),
    InOrder(Box<Hasher>),
}

impl Fold {
    /// Nothing yet.
    pub fn new(cut: &Cut) -> Self {
        let sums = match cut.algorithm {
            Algorithm::Blake3 => Sums::Blake3(blake3::Stack::default()),
            Algorithm::Xxh3 => Sums::Xxh3(Box::new(xxh3::Fold::new(cut.length_bytes))),
            Algorithm::Crc32c => Sums::Crc32c(0),
            Algorithm::Xor32 => Sums::Xor32(Xor32::default()),
            Algorithm::Sha256 => Sums::InOrder(Box::new(Hasher::new(cut.algorithm))),
        };
        Self {
            sums,
            segments: cut.segments(),
            next: 0,
            waiting: BTreeMap::new(),
            spent: Vec::new(),
        }
    }

    /// Takes in the part of segment `index`.
    pub fn take(&mut self, index: u64, part: Part) {
        self.waiting.insert(index, part);
        while let Some(part) = self.waiting.remove(&self.next) {
            self.join(part);
            self.next += 1;
        }
    }

    /// Parts that wait for one before them.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The memory of [`Cutter::part_of`] whose bytes are joined, to be used again.
    pub fn spent(&mut self) -> impl Iterator<Item = Vec<u8>> {
        self.spent.drain(..)
    }

    /// Whether all segments are joined.
    pub fn is_whole(&self) -> bool {
        self.next == self.segments
    }

    fn join(&mut self, part: Part) {
        match (&mut self.sums, part.0) {
            (Sums::Blake3(stack), State::Blake3(value)) => stack.push(value),
            (Sums::Xxh3(fold), State::Xxh3(part)) => fold.join(part),
            (Sums::Crc32c(all), State::Crc32c { sum, length_bytes }) => {
                *all = crc32c::crc32c_combine(*all, sum, length_bytes);
            }
            (Sums::Xor32(all), State::Xor32(digest)) => all.merge(digest),
            (Sums::InOrder(hasher), State::Bytes(bytes)) => {
                hasher.update(&bytes);
                self.spent.push(bytes);
            }
            _ => unreachable!("the parts of one cut are of one algorithm"),
        }
    }

    /// The digest of the file.
    ///
    /// Panics: when parts are missing: [`Fold::is_whole`] tells.
    pub fn finish(self) -> Digest {
        assert!(self.is_whole(), "all segments must be taken in");
        match self.sums {
            Sums::Blake3(stack) => Digest::new(Algorithm::Blake3, &stack.root()),
            Sums::Xxh3(fold) => Digest::new(Algorithm::Xxh3, &fold.finish().to_be_bytes()),
            Sums::Crc32c(sum) => Digest::new(Algorithm::Crc32c, &sum.to_be_bytes()),
            Sums::Xor32(digest) => Digest::new(Algorithm::Xor32, &digest.0.to_be_bytes()),
            Sums::InOrder(hasher) => hasher.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digest::Hasher;

    fn whole(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    fn in_parts(algorithm: Algorithm, bytes: &[u8], segment_bytes: u64, turn: u64) -> Digest {
        let cut = Cut::new(algorithm, bytes.len() as u64, segment_bytes).unwrap();
        let (mut cutter, mut fold) = (Cutter::default(), Fold::new(&cut));
        let count = cut.segments();
        for step in 0..count {
            let index = (count - 1 - step + turn) % count;
            let (offset, length) = cut.segment(index);
            let view = ByteView::of(&bytes[offset as usize..offset as usize + length]);
            fold.take(index, cutter.part(&cut, index, view));
        }
        assert_eq!((fold.waiting(), fold.is_whole()), (0, true));
        fold.finish()
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        flatout_sys::generator::fill_random(&mut bytes, 5, 0);
        bytes
    }

    const ALL: [Algorithm; 5] = [
        Algorithm::Blake3,
        Algorithm::Xxh3,
        Algorithm::Crc32c,
        Algorithm::Sha256,
        Algorithm::Xor32,
    ];

    #[test]
    fn parts_give_the_digest_of_the_whole_at_boundary_lengths() {
        let bytes = noise((1 << 20) + 70_000);
        let segment = 16 << 10;
        for algorithm in ALL {
            for segments in [1, 2, 3, 16, 33, 64] {
                for more in
                    [1, 2, 63, 64, 65, 240, 1023, 1024, 1025, 1087, 1088, 1089, 16_383, 16_384]
                {
                    let bytes = &bytes[..segments * segment + more];
                    let expected = whole(algorithm, bytes);
                    let found = in_parts(algorithm, bytes, segment as u64, 1);
                    assert_eq!(found, expected, "{segments} segments and {more} bytes");
                }
            }
        }
    }

    #[test]
    fn large_segments_take_the_kernels_for_many_chunks() {
        let bytes = noise((9 << 20) + 12_345);
        for algorithm in ALL {
            for segment in [64 << 10, 1 << 20, 8 << 20] {
                assert_eq!(in_parts(algorithm, &bytes, segment, 0), whole(algorithm, &bytes));
            }
        }
    }

    #[test]
    fn segments_of_zeros_are_digested_without_any() {
        let segment = 16 << 10;
        for (segments, more) in [(1, 1), (2, 1024), (5, 1025), (8, 16_384)] {
            let bytes = vec![0; segments * segment + more];
            for algorithm in ALL {
                let cut = Cut::new(algorithm, bytes.len() as u64, segment as u64).unwrap();
                let (mut cutter, mut fold) = (Cutter::default(), Fold::new(&cut));
                for index in 0..cut.segments() {
                    fold.take(index, cutter.part_of_zeros(&cut, index));
                }
                assert_eq!(fold.finish(), whole(algorithm, &bytes), "{segments} and {more}");
            }
        }
    }

    #[test]
    fn what_is_one_segment_is_not_cut() {
        assert_eq!(Cut::new(Algorithm::Blake3, 1 << 20, 1 << 20), None);
        assert!(Cut::new(Algorithm::Blake3, (1 << 20) + 1, 1 << 20).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn any_length_and_order(length in 16_385_usize..300_000, turn in 0_u64..20, shift in 0_u32..3) {
            let bytes = noise(length);
            for algorithm in ALL {
                if let Some(cut) = Cut::new(algorithm, length as u64, (16 << 10) << shift) {
                    let found = in_parts(algorithm, &bytes, cut.segment_bytes, turn);
                    prop_assert_eq!(found, whole(algorithm, &bytes));
                }
            }
        }
    }
}
