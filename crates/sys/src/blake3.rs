//! BLAKE3 of many chunks at once, sixteen side by side in 512-bit registers.
//!
//! Reads through raw pointers, so that mapped files need no copy, which costs as much as half of
//! the hashing. It gives the chaining value of a subtree; roots, short inputs and CPUs without
//! AVX-512 belong to the library (`io::digest`).
//!
//! Source: O'Connor, Aumasson, Neves and Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere",
//! 2021, sections 2.1 to 2.4 and 5.3.

/// Bytes of a chunk, a leaf of the tree.
pub const CHUNK_BYTES: usize = 1024;
/// Chunks that the kernel takes at a time, and the least that a subtree must have.
pub const LANES: usize = 16;
/// Most chunks of a subtree.
pub const MAX_CHUNKS: usize = 4096;

/// A chaining value as the tree's parents take it in.
pub type ChainingValue = [u8; 32];

const BLOCK_BYTES: usize = 64;
const CHUNK_BLOCKS: usize = CHUNK_BYTES / BLOCK_BYTES;

const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 2;
const PARENT: u32 = 4;

const KEY: [u32; 8] = [
    0x6A09_E667,
    0xBB67_AE85,
    0x3C6E_F372,
    0xA54F_F53A,
    0x510E_527F,
    0x9B05_688C,
    0x1F83_D9AB,
    0x5BE0_CD19,
];

/// Room for the values of one level of a subtree. Cost: 128 KiB.
pub struct Scratch(Box<[ChainingValue; MAX_CHUNKS]>);

impl Default for Scratch {
    fn default() -> Self {
        let values = vec![[0; 32]; MAX_CHUNKS].into_boxed_slice();
        Self(values.try_into().expect("it has MAX_CHUNKS values"))
    }
}

/// Whether this CPU has what the kernel needs.
pub fn is_supported() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::instruction_set::cpu_has!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The chaining value of the subtree over the `chunks` whole chunks at `start`, the first of which
/// is number `first_chunk` of the file; `None` where [`is_supported`] is false.
///
/// Panics: when `chunks` is no power of two between [`LANES`] and [`MAX_CHUNKS`].
///
/// # Safety
///
/// `start` must be readable for `chunks` × [`CHUNK_BYTES`]. The bytes may change meanwhile (mapped
/// files): then the result is that of some mixture.
pub(crate) unsafe fn subtree_raw(
    start: *const u8,
    chunks: usize,
    first_chunk: u64,
    scratch: &mut Scratch,
) -> Option<ChainingValue> {
    assert!(chunks.is_power_of_two() && (LANES..=MAX_CHUNKS).contains(&chunks));
    if !is_supported() {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the CPU has AVX-512F, the range is the caller's promise, and `chunks` is within
        // the scratch.
        Some(unsafe { x86::subtree(start, chunks, first_chunk, &mut scratch.0[..]) })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (start, first_chunk, scratch);
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_add_epi32, _mm512_loadu_si512, _mm512_ror_epi32,
        _mm512_set1_epi32, _mm512_shuffle_i32x4, _mm512_storeu_si512, _mm512_unpackhi_epi32,
        _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
    };

    use super::{
        BLOCK_BYTES, CHUNK_BLOCKS, CHUNK_BYTES, CHUNK_END, CHUNK_START, ChainingValue, KEY, LANES,
        PARENT,
    };

    /// Which word of the block each of the 14 half rounds takes: the permutation of the message,
    /// applied round by round.
    const SCHEDULE: [[usize; 16]; 7] = schedule();

    const fn schedule() -> [[usize; 16]; 7] {
        const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
        let mut rounds = [[0; 16]; 7];
        let mut word = 0;
        while word < 16 {
            rounds[0][word] = word;
            word += 1;
        }
        let mut round = 1;
        while round < 7 {
            word = 0;
            while word < 16 {
                rounds[round][word] = rounds[round - 1][PERMUTATION[word]];
                word += 1;
            }
            round += 1;
        }
        rounds
    }

    /// The CPU must have AVX-512F; `start` must be readable for `chunks` chunks, at least
    /// [`LANES`] and a power of two, and `values` must have room for one value each.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn subtree(
        start: *const u8,
        chunks: usize,
        first_chunk: u64,
        values: &mut [ChainingValue],
    ) -> ChainingValue {
        for group in (0..chunks).step_by(LANES) {
            let out = values[group..group + LANES].as_mut_ptr();
            // SAFETY: sixteen chunks of the promised range; `out` has room for sixteen values.
            unsafe { hash_chunks(start.add(group * CHUNK_BYTES), first_chunk + group as u64, out) };
        }
        let mut left = chunks;
        while left > 1 {
            // Below sixteen pairs the lanes beyond the end work on what an earlier level left.
            for group in (0..left / 2).step_by(LANES) {
                let pairs = (left / 2 - group).min(LANES);
                let mut parents = [[[0_u8; 32]; 2]; LANES];
                for (pair, parent) in parents.iter_mut().enumerate().take(pairs) {
                    let at = 2 * (group + pair);
                    *parent = [values[at], values[at + 1]];
                }
                let mut out = [[0; 32]; LANES];
                // SAFETY: sixteen pairs of values lie in `parents`; `out` takes sixteen.
                unsafe { hash_parents(parents.as_ptr().cast(), out.as_mut_ptr()) };
                values[group..group + pairs].copy_from_slice(&out[..pairs]);
            }
            left /= 2;
        }
        values[0]
    }

    /// Sixteen chunks that lie behind each other.
    #[target_feature(enable = "avx512f")]
    unsafe fn hash_chunks(start: *const u8, first_chunk: u64, out: *mut ChainingValue) {
        let place = Place { start, step_bytes: CHUNK_BYTES, blocks: CHUNK_BLOCKS, first_chunk };
        // SAFETY: sixteen blocks of each of sixteen chunks; `out` is the caller's promise.
        unsafe { hash(place, [CHUNK_START, 0, CHUNK_END], out) }
    }

    /// Sixteen parents, the two values of each behind each other.
    #[target_feature(enable = "avx512f")]
    unsafe fn hash_parents(pairs: *const u8, out: *mut ChainingValue) {
        // A parent has no number: it is counted as number 0, whatever its lane.
        let place = Place { start: pairs, step_bytes: BLOCK_BYTES, blocks: 1, first_chunk: 0 };
        // SAFETY: the caller promises sixteen blocks of 64 bytes and room for sixteen values.
        unsafe { hash(place, [PARENT; 3], out) }
    }

    /// Where the sixteen inputs lie.
    struct Place {
        start: *const u8,
        /// From one input to the next.
        step_bytes: usize,
        /// Blocks of an input.
        blocks: usize,
        /// The number of the first, where inputs are chunks.
        first_chunk: u64,
    }

    /// Hashes sixteen inputs side by side. The flags are those of the first block, of those in
    /// between, and of the last.
    ///
    /// One function, so that the compiler keeps the state in registers from block to block: with the
    /// state handed over in memory, and nothing prefetched, it took 1.3 times as long.
    #[target_feature(enable = "avx512f")]
    unsafe fn hash(place: Place, flags: [u32; 3], out: *mut ChainingValue) {
        let Place { start, step_bytes, blocks, first_chunk } = place;
        let mut value = KEY.map(|word| _mm512_set1_epi32(word as i32));
        let number = |lane: usize| if blocks > 1 { first_chunk + lane as u64 } else { 0 };
        let low: [u32; LANES] = std::array::from_fn(|lane| number(lane) as u32);
        let high: [u32; LANES] = std::array::from_fn(|lane| (number(lane) >> 32) as u32);
        // SAFETY: both arrays have 64 bytes.
        let counter = unsafe {
            [
                _mm512_loadu_si512(low.as_ptr().cast::<__m512i>()),
                _mm512_loadu_si512(high.as_ptr().cast::<__m512i>()),
            ]
        };
        for block in 0..blocks {
            let flags = match block {
                0 => flags[0],
                _ if block == blocks - 1 => flags[2],
                _ => flags[1],
            };
            // SAFETY: this block of each of the sixteen inputs lies in the promised range.
            let words = unsafe { load_words(start.add(block * BLOCK_BYTES), step_bytes) };
            if blocks > 1 {
                prefetch(start, block + PREFETCH_BLOCKS);
            }
            value = compress(value, &words, counter, flags);
        }
        // SAFETY: the caller promises room for sixteen values.
        unsafe { store_values(value, out) }
    }

    /// Blocks by which the memory is asked ahead: sixteen streams are more than the prefetchers of
    /// the CPU follow.
    const PREFETCH_BLOCKS: usize = 4;

    /// Asks for one block of each of sixteen chunks; behind their ends, of the sixteen that follow.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn prefetch(start: *const u8, block: usize) {
        let group = block / CHUNK_BLOCKS * LANES * CHUNK_BYTES;
        let offset = group + block % CHUNK_BLOCKS * BLOCK_BYTES;
        for lane in 0..LANES {
            // A hint is no access: beyond the end of the range it does nothing.
            let place = start.wrapping_add(offset + lane * CHUNK_BYTES);
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
        }
    }

    /// Seven rounds over sixteen blocks, one per lane; what follows them for a value that is no
    /// root.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn compress(
        value: [__m512i; 8],
        words: &[__m512i; 16],
        counter: [__m512i; 2],
        flags: u32,
    ) -> [__m512i; 8] {
        let constant = |word: u32| _mm512_set1_epi32(word as i32);
        let [h0, h1, h2, h3, h4, h5, h6, h7] = value;
        let mut v = [
            h0,
            h1,
            h2,
            h3,
            h4,
            h5,
            h6,
            h7,
            constant(KEY[0]),
            constant(KEY[1]),
            constant(KEY[2]),
            constant(KEY[3]),
            counter[0],
            counter[1],
            constant(BLOCK_BYTES as u32),
            constant(flags),
        ];
        macro_rules! mix {
            ($a:literal, $b:literal, $c:literal, $d:literal, $x:expr, $y:expr) => {
                v[$a] = _mm512_add_epi32(_mm512_add_epi32(v[$a], v[$b]), words[$x]);
                v[$d] = _mm512_ror_epi32::<16>(_mm512_xor_si512(v[$d], v[$a]));
                v[$c] = _mm512_add_epi32(v[$c], v[$d]);
                v[$b] = _mm512_ror_epi32::<12>(_mm512_xor_si512(v[$b], v[$c]));
                v[$a] = _mm512_add_epi32(_mm512_add_epi32(v[$a], v[$b]), words[$y]);
                v[$d] = _mm512_ror_epi32::<8>(_mm512_xor_si512(v[$d], v[$a]));
                v[$c] = _mm512_add_epi32(v[$c], v[$d]);
                v[$b] = _mm512_ror_epi32::<7>(_mm512_xor_si512(v[$b], v[$c]));
            };
        }
        macro_rules! round {
            ($r:literal) => {
                let s = &const { SCHEDULE[$r] };
                mix!(0, 4, 8, 12, s[0], s[1]);
                mix!(1, 5, 9, 13, s[2], s[3]);
                mix!(2, 6, 10, 14, s[4], s[5]);
                mix!(3, 7, 11, 15, s[6], s[7]);
                mix!(0, 5, 10, 15, s[8], s[9]);
                mix!(1, 6, 11, 12, s[10], s[11]);
                mix!(2, 7, 8, 13, s[12], s[13]);
                mix!(3, 4, 9, 14, s[14], s[15]);
            };
        }
        round!(0);
        round!(1);
        round!(2);
        round!(3);
        round!(4);
        round!(5);
        round!(6);
        std::array::from_fn(|index| _mm512_xor_si512(v[index], v[index + 8]))
    }

    /// Loads one block from each of sixteen places `step_bytes` apart, and turns them so that each
    /// register holds one word of all.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_words(start: *const u8, step_bytes: usize) -> [__m512i; 16] {
        // SAFETY: the caller promises 64 bytes at each of the sixteen places.
        let rows: [__m512i; 16] = std::array::from_fn(|lane| unsafe {
            _mm512_loadu_si512(start.add(lane * step_bytes).cast::<__m512i>())
        });
        transpose(rows)
    }

    /// Sixteen rows of sixteen words become columns: within pairs, within fours, and then the
    /// quarters of the registers among fours of registers.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
        let mut pairs = rows;
        for index in (0..16).step_by(2) {
            pairs[index] = _mm512_unpacklo_epi32(rows[index], rows[index + 1]);
            pairs[index + 1] = _mm512_unpackhi_epi32(rows[index], rows[index + 1]);
        }
        let mut fours = pairs;
        for index in (0..16).step_by(4) {
            fours[index] = _mm512_unpacklo_epi64(pairs[index], pairs[index + 2]);
            fours[index + 1] = _mm512_unpackhi_epi64(pairs[index], pairs[index + 2]);
            fours[index + 2] = _mm512_unpacklo_epi64(pairs[index + 1], pairs[index + 3]);
            fours[index + 3] = _mm512_unpackhi_epi64(pairs[index + 1], pairs[index + 3]);
        }
        let mut columns = rows;
        for word in 0..4 {
            let [a, b, c, d] = [fours[word], fours[word + 4], fours[word + 8], fours[word + 12]];
            let low_ab = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
            let high_ab = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
            let low_cd = _mm512_shuffle_i32x4::<0b10_00_10_00>(c, d);
            let high_cd = _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d);
            columns[word] = _mm512_shuffle_i32x4::<0b10_00_10_00>(low_ab, low_cd);
            columns[word + 4] = _mm512_shuffle_i32x4::<0b10_00_10_00>(high_ab, high_cd);
            columns[word + 8] = _mm512_shuffle_i32x4::<0b11_01_11_01>(low_ab, low_cd);
            columns[word + 12] = _mm512_shuffle_i32x4::<0b11_01_11_01>(high_ab, high_cd);
        }
        columns
    }

    /// Turns eight registers, one word of sixteen values each, into the sixteen values.
    #[target_feature(enable = "avx512f")]
    unsafe fn store_values(value: [__m512i; 8], out: *mut ChainingValue) {
        let mut words = [[0_u32; LANES]; 8];
        for (row, register) in words.iter_mut().zip(value) {
            // SAFETY: a row has exactly the 64 bytes of the register.
            unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), register) };
        }
        for lane in 0..LANES {
            let mut bytes = [0; 32];
            for (word, row) in words.iter().enumerate() {
                bytes[4 * word..4 * word + 4].copy_from_slice(&row[lane].to_le_bytes());
            }
            // SAFETY: the caller promises room for sixteen values.
            unsafe { out.add(lane).write(bytes) };
        }
    }
}
