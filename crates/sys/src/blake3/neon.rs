//! Four inputs side by side, in the 128-bit registers of aarch64.

use std::arch::aarch64::*;

super::lanes::kernel!(
    "neon",
    [uint32x4_t; 4],
    vdupq_n_u32,
    vld1q_u32,
    vst1q_u32,
    vaddq_u32,
    veorq_u32
);

/// Which byte goes where in a rotation by 8.
type Masks = uint8x16_t;

#[inline]
#[target_feature(enable = "neon")]
fn masks() -> Masks {
    const BYTES: [u8; 16] = lanes::rotated(1);
    // SAFETY: they are as long as a vector.
    unsafe { vld1q_u8(BYTES.as_ptr()) }
}

super::lanes::rotations!(
    "neon",
    |vector, _| vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(vector))),
    |vector| vsriq_n_u32::<12>(vshlq_n_u32::<20>(vector), vector),
    |vector, masks| vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(vector), masks)),
    |vector| vsriq_n_u32::<7>(vshlq_n_u32::<25>(vector), vector)
);

/// Four rows of four words become columns.
#[inline]
#[target_feature(enable = "neon")]
fn transpose(rows: [Vector; 4]) -> [Vector; 4] {
    let [a, b, c, d] = rows;
    let pairs = [vzip1q_u32(a, b), vzip2q_u32(a, b), vzip1q_u32(c, d), vzip2q_u32(c, d)];
    let [ab_low, ab_high, cd_low, cd_high] = pairs.map(|pair| vreinterpretq_u64_u32(pair));
    let columns = [
        vzip1q_u64(ab_low, cd_low),
        vzip2q_u64(ab_low, cd_low),
        vzip1q_u64(ab_high, cd_high),
        vzip2q_u64(ab_high, cd_high),
    ];
    columns.map(|column| vreinterpretq_u32_u64(column))
}
