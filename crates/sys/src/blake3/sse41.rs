//! Four inputs side by side, in 128-bit registers.

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_loadu_si128, _mm_or_si128, _mm_set1_epi32, _mm_shuffle_epi8,
    _mm_slli_epi32, _mm_srli_epi32, _mm_storeu_si128, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
    _mm_unpacklo_epi32, _mm_unpacklo_epi64, _mm_xor_si128,
};

/// One word of each input.
type Vector = __m128i;
/// Which byte goes where in rotations by 16 and by 8.
type Masks = [Vector; 2];
/// Inputs side by side.
const LANES: usize = 4;

super::lanes::kernel!("sse4.1");

static BYTES: [[u8; size_of::<Vector>()]; 2] = [
    [2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13],
    [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12],
];

/// The compiler must not know them: it makes two shuffles of one, to save the constant.
#[inline]
#[target_feature(enable = "sse4.1")]
fn masks() -> Masks {
    let bytes = std::hint::black_box(&BYTES);
    // SAFETY: both are as long as a vector.
    [0, 1].map(|index| unsafe { load(bytes[index].as_ptr()) })
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn set(word: u32) -> Vector {
    _mm_set1_epi32(word as i32)
}

/// Safety: a vector must be readable there.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn load(place: *const u8) -> Vector {
    // SAFETY: the caller's promise.
    unsafe { _mm_loadu_si128(place.cast()) }
}

/// Safety: a vector must be writable there.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn store(place: *mut u8, vector: Vector) {
    // SAFETY: the caller's promise.
    unsafe { _mm_storeu_si128(place.cast(), vector) }
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn add(a: Vector, b: Vector) -> Vector {
    _mm_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn xor(a: Vector, b: Vector) -> Vector {
    _mm_xor_si128(a, b)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn rotate_16(vector: Vector, masks: Masks) -> Vector {
    _mm_shuffle_epi8(vector, masks[0])
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn rotate_12(vector: Vector) -> Vector {
    _mm_or_si128(_mm_srli_epi32::<12>(vector), _mm_slli_epi32::<20>(vector))
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn rotate_8(vector: Vector, masks: Masks) -> Vector {
    _mm_shuffle_epi8(vector, masks[1])
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn rotate_7(vector: Vector) -> Vector {
    _mm_or_si128(_mm_srli_epi32::<7>(vector), _mm_slli_epi32::<25>(vector))
}

/// Four rows of four words become columns.
#[inline]
#[target_feature(enable = "sse4.1")]
fn transpose(rows: [Vector; 4]) -> [Vector; 4] {
    let [a, b, c, d] = rows;
    let [ab_low, ab_high] = [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
    let [cd_low, cd_high] = [_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d)];
    [
        _mm_unpacklo_epi64(ab_low, cd_low),
        _mm_unpackhi_epi64(ab_low, cd_low),
        _mm_unpacklo_epi64(ab_high, cd_high),
        _mm_unpackhi_epi64(ab_high, cd_high),
    ]
}
