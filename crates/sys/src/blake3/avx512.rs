//! Sixteen inputs side by side, in 512-bit registers.

use std::arch::x86_64::*;

super::lanes::kernel!(
    "avx512f",
    [__m512i; 16],
    _mm512_set1_epi32,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_add_epi32,
    _mm512_xor_si512
);

/// Rotations need none.
type Masks = ();

#[inline]
fn masks() -> Masks {}

super::lanes::rotations!(
    "avx512f",
    |vector, ()| _mm512_ror_epi32::<16>(vector),
    |vector| _mm512_ror_epi32::<12>(vector),
    |vector, ()| _mm512_ror_epi32::<8>(vector),
    |vector| _mm512_ror_epi32::<7>(vector)
);

/// Sixteen rows of sixteen words become columns: within pairs, within fours, and then the
/// quarters of the registers among fours of registers.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: [Vector; 16]) -> [Vector; 16] {
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
