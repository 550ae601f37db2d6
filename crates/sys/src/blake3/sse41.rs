//! Four inputs side by side, in 128-bit registers.

use std::arch::x86_64::*;

super::lanes::kernel!(
    "sse4.1",
    [__m128i; 4],
    _mm_set1_epi32,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_add_epi32,
    _mm_xor_si128
);

super::lanes::shuffled_rotations!(
    "sse4.1",
    _mm_shuffle_epi8,
    _mm_or_si128,
    _mm_srli_epi32,
    _mm_slli_epi32
);

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
