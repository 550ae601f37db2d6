//! What kernels of all widths share: the tree over the chunks, and the rounds.
//!
//! A width has a module with its vector operations, in which [`kernel`] writes the rest: functions
//! that are compiled for a CPU cannot be generic over operations that are.

use super::CHUNK_BYTES;

pub(super) const BLOCK_BYTES: usize = 64;
pub(super) const CHUNK_BLOCKS: usize = CHUNK_BYTES / BLOCK_BYTES;

pub(super) const CHUNK_START: u32 = 1;
pub(super) const CHUNK_END: u32 = 2;
pub(super) const PARENT: u32 = 4;

pub(super) const KEY: [u32; 8] = [
    0x6A09_E667,
    0xBB67_AE85,
    0x3C6E_F372,
    0xA54F_F53A,
    0x510E_527F,
    0x9B05_688C,
    0x1F83_D9AB,
    0x5BE0_CD19,
];

/// Blocks by which the memory is asked ahead: sixteen streams are more than the prefetchers of
/// the CPU follow.
pub(super) const PREFETCH_BLOCKS: usize = 4;

/// Which word of the block each of the 14 half rounds takes: the permutation of the message,
/// applied round by round.
pub(super) const SCHEDULE: [[usize; 16]; 7] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8],
    [3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1],
    [10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6],
    [12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4],
    [9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7],
    [11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13],
];

/// Where the inputs lie that are hashed side by side.
pub(super) struct Place {
    pub(super) start: *const u8,
    /// From one input to the next.
    pub(super) step_bytes: usize,
    /// Blocks of an input.
    pub(super) blocks: usize,
    /// The number of the first, where inputs are chunks.
    pub(super) first_chunk: u64,
}

/// Flags of the first block of an input, of those in between, and of the last.
pub(super) type Flags = [u32; 3];

/// A quarter of a round in all lanes.
macro_rules! mix {
    ($v:ident, $words:ident, $masks:ident, $a:literal, $b:literal, $c:literal, $d:literal, $x:expr, $y:expr) => {
        $v[$a] = add(add($v[$a], $v[$b]), $words[$x]);
        $v[$d] = rotate_16(xor($v[$d], $v[$a]), $masks);
        $v[$c] = add($v[$c], $v[$d]);
        $v[$b] = rotate_12(xor($v[$b], $v[$c]));
        $v[$a] = add(add($v[$a], $v[$b]), $words[$y]);
        $v[$d] = rotate_8(xor($v[$d], $v[$a]), $masks);
        $v[$c] = add($v[$c], $v[$d]);
        $v[$b] = rotate_7(xor($v[$b], $v[$c]));
    };
}
pub(super) use mix;

macro_rules! round {
    ($v:ident, $words:ident, $masks:ident, $r:literal) => {
        let s = &const { lanes::SCHEDULE[$r] };
        lanes::mix!($v, $words, $masks, 0, 4, 8, 12, s[0], s[1]);
        lanes::mix!($v, $words, $masks, 1, 5, 9, 13, s[2], s[3]);
        lanes::mix!($v, $words, $masks, 2, 6, 10, 14, s[4], s[5]);
        lanes::mix!($v, $words, $masks, 3, 7, 11, 15, s[6], s[7]);
        lanes::mix!($v, $words, $masks, 0, 5, 10, 15, s[8], s[9]);
        lanes::mix!($v, $words, $masks, 1, 6, 11, 12, s[10], s[11]);
        lanes::mix!($v, $words, $masks, 2, 7, 8, 13, s[12], s[13]);
        lanes::mix!($v, $words, $masks, 3, 4, 9, 14, s[14], s[15]);
    };
}
pub(super) use round;

/// A function that gives a vector, compiled for a CPU with `$feature`.
macro_rules! operation {
    ($feature:literal, $name:ident($($value:tt: $type:ty),+) => $result:expr) => {
        #[inline]
        #[target_feature(enable = $feature)]
        fn $name($($value: $type),+) -> Vector {
            $result
        }
    };
}
pub(super) use operation;

/// Rotations of the words of a vector to the right by 16, 12, 8 and 7; those by whole bytes with
/// `Masks` if need be.
macro_rules! rotations {
    (
        $feature:literal, |$a:ident, $masks_a:tt| $by_16:expr, |$b:ident| $by_12:expr,
        |$c:ident, $masks_c:tt| $by_8:expr, |$d:ident| $by_7:expr
    ) => {
        lanes::operation!($feature, rotate_16($a: Vector, $masks_a: Masks) => $by_16);
        lanes::operation!($feature, rotate_12($b: Vector) => $by_12);
        lanes::operation!($feature, rotate_8($c: Vector, $masks_c: Masks) => $by_8);
        lanes::operation!($feature, rotate_7($d: Vector) => $by_7);
    };
}
pub(super) use rotations;

/// Which bytes of 16 come to which place where words are rotated to the right by so many bytes.
pub(super) const fn rotated<const BYTES: usize>(by_bytes: usize) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut place = 0;
    while place < BYTES {
        bytes[place] = (place % 16 / 4 * 4 + (place + by_bytes) % 4) as u8;
        place += 1;
    }
    bytes
}

/// Rotations of the words of a vector, where no instruction rotates: by whole bytes with `$shuffle`,
/// for which there are masks, by other amounts with two shifts.
#[cfg(target_arch = "x86_64")]
macro_rules! shuffled_rotations {
    ($feature:literal, $shuffle:ident, $or:ident, $right:ident, $left:ident) => {
        /// Which byte goes where in rotations by 16 and by 8.
        type Masks = [Vector; 2];

        /// The compiler must not know them: it makes two shuffles of one, to save the constant.
        #[inline]
        #[target_feature(enable = $feature)]
        fn masks() -> Masks {
            static BYTES: [[u8; size_of::<Vector>()]; 2] = [lanes::rotated(2), lanes::rotated(1)];
            let bytes = std::hint::black_box(&BYTES);
            // SAFETY: both are as long as a vector.
            [0, 1].map(|index| unsafe { load(bytes[index].as_ptr()) })
        }

        super::lanes::rotations!(
            $feature,
            |vector, masks| $shuffle(vector, masks[0]),
            |vector| $or($right::<12>(vector), $left::<20>(vector)),
            |vector, masks| $shuffle(vector, masks[1]),
            |vector| $or($right::<7>(vector), $left::<25>(vector))
        );
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use shuffled_rotations;

/// The kernel of a width, for a CPU with `$feature`: vectors of `$lanes` words, and the instructions
/// that set, load, store, add and combine them. Beside it stand `rotate_16` to `rotate_7` with the
/// `Masks` that some take, and `transpose` of as many rows as there are words.
macro_rules! kernel {
    (
        $feature:literal, [$vector:ident; $lanes:literal],
        $set:ident, $load:ident, $store:ident, $add:ident, $xor:ident
    ) => {
        use super::lanes::{self, BLOCK_BYTES, CHUNK_BLOCKS, Flags, KEY, Place};
        use super::{CHUNK_BYTES, ChainingValue};

        /// One word of each input.
        type Vector = $vector;
        /// Inputs side by side.
        const LANES: usize = $lanes;

        lanes::operation!($feature, set(word: u32) => $set(word as _));
        lanes::operation!($feature, add(a: Vector, b: Vector) => $add(a, b));
        lanes::operation!($feature, xor(a: Vector, b: Vector) => $xor(a, b));

        /// Safety: a vector must be readable there.
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn load(place: *const u8) -> Vector {
            // SAFETY: the caller's promise.
            unsafe { $load(place.cast()) }
        }

        /// Safety: a vector must be writable there.
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn store(place: *mut u8, vector: Vector) {
            // SAFETY: the caller's promise.
            unsafe { $store(place.cast(), vector) }
        }

        /// The value of a subtree.
        ///
        /// # Safety
        ///
        /// As [`super::Kernel`] says.
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn subtree(
            start: *const u8,
            chunks: usize,
            first_chunk: u64,
            values: &mut [ChainingValue],
        ) -> ChainingValue {
            assert!(values.len() >= chunks.max(2 * LANES), "room for the values");
            for group in (0..chunks).step_by(LANES) {
                let out = values[group..group + LANES].as_mut_ptr();
                let place = Place {
                    // SAFETY: within the promised range.
                    start: unsafe { start.add(group * CHUNK_BYTES) },
                    step_bytes: CHUNK_BYTES,
                    blocks: CHUNK_BLOCKS,
                    first_chunk: first_chunk + group as u64,
                };
                // SAFETY: all blocks of `LANES` chunks; `out` has room for as many values.
                unsafe { hash(place, [lanes::CHUNK_START, 0, lanes::CHUNK_END], out) };
            }
            // Pairs lie side by side, and no value is written before all of its group are read.
            // Where pairs are fewer than lanes, the others work on what lies behind them.
            let values = values.as_mut_ptr();
            let mut left = chunks;
            while left > 1 {
                for group in (0..left / 2).step_by(LANES) {
                    // SAFETY: of 2 × LANES values from twice the group on, all within the room.
                    let start = unsafe { values.add(2 * group).cast_const().cast() };
                    // A parent has no number: it is counted as number 0, whatever its lane.
                    let place = Place { start, step_bytes: BLOCK_BYTES, blocks: 1, first_chunk: 0 };
                    // SAFETY: as above; a group has room for `LANES` values.
                    unsafe { hash(place, [lanes::PARENT; 3], values.add(group)) };
                }
                left /= 2;
            }
            // SAFETY: there is one at least.
            unsafe { values.read() }
        }

        /// Hashes `LANES` inputs side by side.
        ///
        /// One function, so that the compiler keeps the state in registers from block to block:
        /// with the state handed over in memory, and nothing prefetched, it took 1.3 times as long
        /// with AVX-512.
        ///
        /// Safety: the inputs must be readable, and `out` have room for as many values.
        #[target_feature(enable = $feature)]
        unsafe fn hash(place: Place, flags: Flags, out: *mut ChainingValue) {
            let Place { start, step_bytes, blocks, first_chunk } = place;
            let masks = masks();
            let mut value = KEY.map(|word| set(word));
            let number = |lane: usize| if blocks > 1 { first_chunk + lane as u64 } else { 0 };
            let low: [u32; LANES] = std::array::from_fn(|lane| number(lane) as u32);
            let high: [u32; LANES] = std::array::from_fn(|lane| (number(lane) >> 32) as u32);
            // SAFETY: both arrays are as long as a vector.
            let counter = unsafe { [load(low.as_ptr().cast()), load(high.as_ptr().cast())] };
            for block in 0..blocks {
                let flags = match block {
                    0 => flags[0],
                    _ if block == blocks - 1 => flags[2],
                    _ => flags[1],
                };
                // SAFETY: this block of each of the inputs lies in the promised range.
                let words = unsafe { load_words(start.add(block * BLOCK_BYTES), step_bytes) };
                if blocks > 1 {
                    prefetch(start, block + lanes::PREFETCH_BLOCKS);
                }
                value = compress(value, &words, counter, flags, masks);
            }
            // SAFETY: the caller promises room for the values.
            unsafe { store_values(value, out) }
        }

        /// Asks for one block of each of the chunks; behind their ends, of those that follow.
        #[inline]
        #[target_feature(enable = $feature)]
        fn prefetch(start: *const u8, block: usize) {
            let group = block / CHUNK_BLOCKS * LANES * CHUNK_BYTES;
            let offset = group + block % CHUNK_BLOCKS * BLOCK_BYTES;
            for lane in 0..LANES {
                // A hint is no access: beyond the end of the range it does nothing.
                let place = start.wrapping_add(offset + lane * CHUNK_BYTES);
                crate::prefetch::near(place);
            }
        }

        /// Seven rounds over a block per lane; what follows them for a value that is no root.
        #[inline]
        #[target_feature(enable = $feature)]
        fn compress(
            value: [Vector; 8],
            words: &[Vector; 16],
            counter: [Vector; 2],
            flags: u32,
            masks: Masks,
        ) -> [Vector; 8] {
            let [h0, h1, h2, h3, h4, h5, h6, h7] = value;
            let [k0, k1, k2, k3] = [KEY[0], KEY[1], KEY[2], KEY[3]].map(|word| set(word));
            let [low, high] = counter;
            let (length, flags) = (set(BLOCK_BYTES as u32), set(flags));
            let mut v = [h0, h1, h2, h3, h4, h5, h6, h7, k0, k1, k2, k3, low, high, length, flags];
            lanes::round!(v, words, masks, 0);
            lanes::round!(v, words, masks, 1);
            lanes::round!(v, words, masks, 2);
            lanes::round!(v, words, masks, 3);
            lanes::round!(v, words, masks, 4);
            lanes::round!(v, words, masks, 5);
            lanes::round!(v, words, masks, 6);
            std::array::from_fn(|index| xor(v[index], v[index + 8]))
        }

        /// Loads one block from each of the places `step_bytes` apart, and turns them so that each
        /// vector holds one word of all.
        ///
        /// Safety: 64 bytes must be readable at each place.
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn load_words(start: *const u8, step_bytes: usize) -> [Vector; 16] {
            let mut words = [set(0); 16];
            for (part, columns) in words.chunks_exact_mut(LANES).enumerate() {
                let offset = part * size_of::<Vector>();
                // SAFETY: a part of each block.
                let rows: [Vector; LANES] = std::array::from_fn(|lane| unsafe {
                    load(start.add(lane * step_bytes + offset))
                });
                columns.copy_from_slice(&transpose(rows));
            }
            words
        }

        /// Turns eight vectors, one word of each value, into the values.
        ///
        /// Safety: `out` must have room for `LANES` values.
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn store_values(value: [Vector; 8], out: *mut ChainingValue) {
            let mut words = [set(0); 16];
            words[..8].copy_from_slice(&value);
            for part in 0..8_usize.div_ceil(LANES) {
                let columns = std::array::from_fn(|word| words[part * LANES + word]);
                for (lane, row) in transpose(columns).into_iter().enumerate() {
                    let mut bytes = [0_u8; size_of::<Vector>()];
                    // SAFETY: as long as a vector.
                    unsafe { store(bytes.as_mut_ptr(), row) };
                    let length = bytes.len().min(size_of::<ChainingValue>());
                    // SAFETY: a part of a value, for which the caller promises room.
                    unsafe {
                        let value = out.add(lane).cast::<u8>().add(part * length);
                        value.copy_from_nonoverlapping(bytes.as_ptr(), length);
                    }
                }
            }
        }
    };
}
pub(super) use kernel;
