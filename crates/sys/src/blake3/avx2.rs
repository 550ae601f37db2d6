//! Eight inputs side by side, in 256-bit registers.

use std::arch::x86_64::*;

super::lanes::kernel!(
    "avx2",
    [__m256i; 8],
    _mm256_set1_epi32,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_add_epi32,
    _mm256_xor_si256
);

super::lanes::shuffled_rotations!(
    "avx2",
    _mm256_shuffle_epi8,
    _mm256_or_si256,
    _mm256_srli_epi32,
    _mm256_slli_epi32
);

/// Eight rows of eight words become columns: within pairs, within fours, and then the halves of the
/// registers.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [Vector; 8]) -> [Vector; 8] {
    let mut pairs = rows;
    for index in (0..8).step_by(2) {
        pairs[index] = _mm256_unpacklo_epi32(rows[index], rows[index + 1]);
        pairs[index + 1] = _mm256_unpackhi_epi32(rows[index], rows[index + 1]);
    }
    let mut fours = pairs;
    for index in (0..8).step_by(4) {
        fours[index] = _mm256_unpacklo_epi64(pairs[index], pairs[index + 2]);
        fours[index + 1] = _mm256_unpackhi_epi64(pairs[index], pairs[index + 2]);
        fours[index + 2] = _mm256_unpacklo_epi64(pairs[index + 1], pairs[index + 3]);
        fours[index + 3] = _mm256_unpackhi_epi64(pairs[index + 1], pairs[index + 3]);
    }
    let mut columns = rows;
    for word in 0..4 {
        columns[word] = _mm256_permute2x128_si256::<0x20>(fours[word], fours[word + 4]);
        columns[word + 4] = _mm256_permute2x128_si256::<0x31>(fours[word], fours[word + 4]);
    }
    columns
}
