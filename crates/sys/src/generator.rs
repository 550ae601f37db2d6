//! Incompressible data, faster than a disk takes it, and the same for every way of writing it.
//!
//! The stream is defined by a seed and a position, not by a history: cell k (4 KiB) comes from
//! eight xorshift128+ generators seeded from (seed, k). So threads can fill any part in any
//! order, and no two blocks are alike (deduplication finds nothing).
//! Source: S. Vigna, "Further scramblings of Marsaglia's xorshift generators", 2017; the seeds
//! go through the finaliser of SplitMix64.

/// Unit in which the stream is made.
const CELL_BYTES: usize = 4096;
const LANES: usize = 8;

/// Fills `target` with the bytes of stream `seed` from position `offset_bytes` on.
///
/// Cost: no allocation. Whole cells are written in place; a cut cell is made on the stack.
pub fn fill_random(target: &mut [u8], seed: u64, offset_bytes: u64) {
    let cell_length = CELL_BYTES as u64;
    let skip = (offset_bytes % cell_length) as usize;
    let mut cell = offset_bytes / cell_length;
    let head_length = if skip == 0 { 0 } else { target.len().min(CELL_BYTES - skip) };
    let (head, body) = target.split_at_mut(head_length);
    let mut scratch = [0; CELL_BYTES];
    if !head.is_empty() {
        fill_cell(&mut scratch, seed, cell);
        head.copy_from_slice(&scratch[skip..skip + head.len()]);
        cell += 1;
    }
    let (cells, tail) = body.as_chunks_mut::<CELL_BYTES>();
    for whole in cells {
        fill_cell(whole, seed, cell);
        cell += 1;
    }
    if !tail.is_empty() {
        fill_cell(&mut scratch, seed, cell);
        tail.copy_from_slice(&scratch[..tail.len()]);
    }
}

/// Fills `target` with a pattern that names its place: each aligned 8-byte word holds its own
/// offset, little-endian. Compressible, but a block that landed at the wrong place shows.
pub fn fill_pattern(target: &mut [u8], offset_bytes: u64) {
    let skip = (offset_bytes % 8) as usize;
    let head_length = if skip == 0 { 0 } else { target.len().min(8 - skip) };
    let (head, body) = target.split_at_mut(head_length);
    let first = (offset_bytes - skip as u64).to_le_bytes();
    head.copy_from_slice(&first[skip..skip + head.len()]);
    let mut position = offset_bytes + head.len() as u64;
    let (words, tail) = body.as_chunks_mut::<8>();
    for word in words {
        *word = position.to_le_bytes();
        position += 8;
    }
    tail.copy_from_slice(&position.to_le_bytes()[..tail.len()]);
}

fn fill_cell(target: &mut [u8; CELL_BYTES], seed: u64, cell: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        if crate::instruction_set::cpu_has!("avx512f") {
            // SAFETY: the CPU has AVX-512F.
            return unsafe { fill_cell_avx512(target, seed, cell) };
        }
        if crate::instruction_set::cpu_has!("avx2") {
            // SAFETY: the CPU has AVX2.
            return unsafe { fill_cell_avx2(target, seed, cell) };
        }
    }
    fill_cell_body(target, seed, cell);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fill_cell_avx512(target: &mut [u8; CELL_BYTES], seed: u64, cell: u64) {
    fill_cell_body(target, seed, cell);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn fill_cell_avx2(target: &mut [u8; CELL_BYTES], seed: u64, cell: u64) {
    fill_cell_body(target, seed, cell);
}

/// The generator itself, written so that the compiler keeps each state array in registers of
/// whatever width the caller's target feature grants.
#[inline(always)]
fn fill_cell_body(target: &mut [u8; CELL_BYTES], seed: u64, cell: u64) {
    let base = mix(seed ^ mix(cell.wrapping_add(WEYL)));
    let mut first = [0_u64; LANES];
    let mut second = [0_u64; LANES];
    for lane in 0..LANES {
        first[lane] = mix(base.wrapping_add(2 * lane as u64 + 1));
        second[lane] = mix(base.wrapping_add(2 * lane as u64 + 2)) | 1;
    }
    for line in target.as_chunks_mut::<{ 8 * LANES }>().0 {
        let mut out = [0_u64; LANES];
        for lane in 0..LANES {
            let mut x = first[lane];
            let y = second[lane];
            first[lane] = y;
            x ^= x << 23;
            second[lane] = x ^ y ^ (x >> 18) ^ (y >> 5);
            out[lane] = second[lane].wrapping_add(y);
        }
        for (place, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(out) {
            *place = word.to_le_bytes();
        }
    }
}

/// Random words one after the other, for orders, seeds and resampling: one 64-bit state, every seed
/// is good, period 2^64. Not for secrets.
///
/// Own code, because results must be the same on every machine and in every version.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator whose numbers depend on `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(WEYL);
        mix(self.0)
    }

    /// An index below `bound`, or 0 when `bound` is 0. The bias is below bound ÷ 2^64.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// A number from 0 to below 1, evenly spread over 2^53 steps.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts `items` in random order, each order equally likely.
    ///
    /// Source: Fisher and Yates, as in Knuth, "The art of computer programming", 3.4.2, algorithm P.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// What the state of SplitMix64 grows by: odd, and near 2⁶⁴ ÷ the golden ratio.
pub(crate) const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64: a bijection that spreads every bit.
#[inline(always)]
pub(crate) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_depends_on_seed_and_position_alone() {
        let mut whole = vec![0; 20_000];
        fill_random(&mut whole, 42, 0);
        for (offset, length) in
            [(0, 1), (1, 4095), (4095, 2), (4096, 4096), (5000, 12_345), (8191, 8193)]
        {
            let mut part = vec![0; length];
            fill_random(&mut part, 42, offset as u64);
            assert_eq!(part, whole[offset..offset + length], "offset {offset}");
        }
        let mut other = vec![0; 20_000];
        fill_random(&mut other, 43, 0);
        assert_ne!(whole, other);
    }

    #[test]
    fn random_bytes_are_spread_evenly_and_blocks_differ() {
        let mut bytes = vec![0; 1 << 20];
        fill_random(&mut bytes, 7, 1 << 30);
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|&byte| counts[byte as usize] += 1);
        // 4096 expected each; six standard deviations of a binomial are 384.
        assert!(counts.iter().all(|&count| count.abs_diff(4096) < 400), "{counts:?}");
        let blocks: std::collections::HashSet<&[u8]> = bytes.chunks(512).collect();
        assert_eq!(blocks.len(), bytes.len() / 512);
    }

    #[test]
    fn vector_widths_give_one_stream() {
        let mut plain = [0; CELL_BYTES];
        let mut chosen = [0; CELL_BYTES];
        fill_cell_body(&mut plain, 9, 3);
        fill_cell(&mut chosen, 9, 3);
        assert_eq!(plain, chosen);
    }

    #[test]
    fn words_are_those_of_the_reference() {
        // The first three of the authors' own code, seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let words =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.next_u64()), words);
    }

    #[test]
    fn the_pattern_names_its_place() {
        let mut bytes = vec![0; 100];
        fill_pattern(&mut bytes, 4093);
        assert_eq!(bytes[3..11], 4096_u64.to_le_bytes());
        assert_eq!(bytes[..3], 4088_u64.to_le_bytes()[5..]);
        for (offset, length) in [(0, 0), (0, 3), (5, 2), (5, 3), (6, 11), (8, 16), (7, 4096)] {
            let mut part = vec![0; length];
            fill_pattern(&mut part, offset);
            let expected = (offset..offset + length as u64)
                .map(|place| (place - place % 8).to_le_bytes()[(place % 8) as usize]);
            assert!(part.iter().copied().eq(expected), "offset {offset}, length {length}");
        }
    }
}
