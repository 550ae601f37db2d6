//! The heavy part of XXH3: blocks of 1 KiB in, eight sums of 64 bits each out.
//!
//! Within a block the state of XXH3 only has terms added that depend on nothing but the input, so
//! blocks can be summed apart from each other, by any thread, and joined later in order by the
//! cheap step between blocks. This file does the sums; the joining is the caller's. It reads
//! through raw pointers, so that it also serves mapped files.
//!
//! Source: Collet, "xxHash fast digest algorithm", `doc/xxhash_spec.md` of xxHash 0.8.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Bytes of a block: sixteen stripes.
pub const BLOCK_BYTES: usize = 1024;
/// Bytes of a stripe: eight lanes of 64 bits.
pub const STRIPE_BYTES: usize = 64;
/// Stripes of a block.
const STRIPES: usize = BLOCK_BYTES / STRIPE_BYTES;
/// Bytes by which the secret moves on from stripe to stripe.
const SECRET_STEP_BYTES: usize = 8;

/// The default secret, which unseeded digests use.
pub const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// What a run of stripes adds to the state.
pub type Sums = [u64; 8];

/// The sums of whole stripes at the start of a block.
///
/// Panics: when there are more stripes than a block has, or half ones.
pub fn stripe_sums(bytes: &[u8]) -> Sums {
    assert!(bytes.len() <= BLOCK_BYTES && bytes.len().is_multiple_of(STRIPE_BYTES));
    let mut sums = [0; 8];
    for (index, stripe) in bytes.chunks_exact(STRIPE_BYTES).enumerate() {
        add_stripe(&mut sums, stripe, &SECRET[SECRET_STEP_BYTES * index..]);
    }
    sums
}

/// Adds one stripe under a given part of the secret.
pub fn add_stripe(sums: &mut Sums, stripe: &[u8], secret: &[u8]) {
    for lane in 0..8 {
        let word = |bytes: &[u8]| {
            u64::from_le_bytes(bytes[8 * lane..8 * lane + 8].try_into().expect("eight bytes"))
        };
        let value = word(stripe);
        let keyed = value ^ word(secret);
        sums[lane ^ 1] = sums[lane ^ 1].wrapping_add(value);
        sums[lane] = sums[lane].wrapping_add((keyed & 0xffff_ffff).wrapping_mul(keyed >> 32));
    }
}

/// Writes the sums of the `sums.len()` blocks at `start`, which needs no alignment.
///
/// # Safety
///
/// `start` must be readable for `sums.len()` × [`BLOCK_BYTES`]. The bytes may change meanwhile
/// (mapped files): then the result is that of some mixture.
pub(crate) unsafe fn block_sums_raw(start: *const u8, sums: &mut [Sums]) {
    #[cfg(target_arch = "x86_64")]
    if crate::instruction_set::cpu_has!("avx512f") {
        // SAFETY: the CPU has AVX-512F; the range is the caller's promise.
        return unsafe { sums_avx512(start, sums) };
    } else if crate::instruction_set::cpu_has!("avx2") {
        // SAFETY: the CPU has AVX2; the range is the caller's promise.
        return unsafe { sums_avx2(start, sums) };
    }
    // SAFETY: every CPU of the architecture has it; the range is the caller's promise.
    unsafe { sums_baseline(start, sums) }
}

/// Swaps the 64-bit halves of each 128 bits.
#[cfg(target_arch = "x86_64")]
const SWAPPED: i32 = 0b01_00_11_10;

/// A kernel for registers of which so many make up a stripe, on a CPU with `$feature`; with the
/// products of the halves of `$keyed`, and the words of `$value` swapped in pairs.
macro_rules! kernel {
    (
        $name:ident, $feature:literal, $vector:ident, $load:ident, $store:ident, $add:ident,
        $xor:ident, $zero:expr, |$keyed:ident| $product:expr, |$value:ident| $swapped:expr
    ) => {
        /// The CPU must have the feature; `start` must be readable for the blocks.
        #[target_feature(enable = $feature)]
        unsafe fn $name(start: *const u8, sums: &mut [Sums]) {
            const VECTOR_BYTES: usize = size_of::<$vector>();
            for (block, sum) in sums.iter_mut().enumerate() {
                let mut total = [$zero; STRIPE_BYTES / VECTOR_BYTES];
                for index in 0..STRIPES {
                    for (part, total) in total.iter_mut().enumerate() {
                        // SAFETY: this part of the stripe lies in the promised range, that of the
                        // secret in its 192 bytes.
                        let ($value, key) = unsafe {
                            let stripe = start.add(block * BLOCK_BYTES + index * STRIPE_BYTES);
                            let secret = SECRET.as_ptr().add(SECRET_STEP_BYTES * index);
                            let offset = VECTOR_BYTES * part;
                            ($load(stripe.add(offset).cast()), $load(secret.add(offset).cast()))
                        };
                        let $keyed = $xor($value, key);
                        *total = $add(*total, $add($product, $swapped));
                    }
                }
                for (part, total) in total.into_iter().enumerate() {
                    // SAFETY: a sum has 64 bytes, as all parts together.
                    unsafe {
                        let place = sum.as_mut_ptr().cast::<u8>().add(VECTOR_BYTES * part);
                        $store(place.cast(), total);
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel!(
    sums_avx512,
    "avx512f",
    __m512i,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_add_epi64,
    _mm512_xor_si512,
    _mm512_setzero_si512(),
    |keyed| _mm512_mul_epu32(keyed, _mm512_srli_epi64::<32>(keyed)),
    |value| _mm512_shuffle_epi32::<SWAPPED>(value)
);
#[cfg(target_arch = "x86_64")]
kernel!(
    sums_avx2,
    "avx2",
    __m256i,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_add_epi64,
    _mm256_xor_si256,
    _mm256_setzero_si256(),
    |keyed| _mm256_mul_epu32(keyed, _mm256_srli_epi64::<32>(keyed)),
    |value| _mm256_shuffle_epi32::<SWAPPED>(value)
);
#[cfg(target_arch = "x86_64")]
kernel!(
    sums_baseline,
    "sse2",
    __m128i,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_add_epi64,
    _mm_xor_si128,
    _mm_setzero_si128(),
    |keyed| _mm_mul_epu32(keyed, _mm_srli_epi64::<32>(keyed)),
    |value| _mm_shuffle_epi32::<SWAPPED>(value)
);
#[cfg(target_arch = "aarch64")]
kernel!(
    sums_baseline,
    "neon",
    uint64x2_t,
    vld1q_u64,
    vst1q_u64,
    vaddq_u64,
    veorq_u64,
    vdupq_n_u64(0),
    |keyed| vmull_u32(vmovn_u64(keyed), vshrn_n_u64::<32>(keyed)),
    |value| vextq_u64::<1>(value, value)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kernels_agree() {
        let bytes: Vec<u8> = (0..5 * BLOCK_BYTES as u32 + 3)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8)
            .collect();
        let start = bytes[3..].as_ptr();
        let expected: Vec<Sums> = bytes[3..].chunks_exact(BLOCK_BYTES).map(stripe_sums).collect();
        let mut sums = [[0; 8]; 5];
        // SAFETY: five blocks lie behind the third byte.
        unsafe { sums_baseline(start, &mut sums) };
        assert_eq!(sums[..], expected);
        sums = [[1; 8]; 5];
        // SAFETY: as above.
        unsafe { block_sums_raw(start, &mut sums) };
        assert_eq!(sums[..], expected);
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            sums = [[2; 8]; 5];
            // SAFETY: as above, and the CPU has AVX2.
            unsafe { sums_avx2(start, &mut sums) };
            assert_eq!(sums[..], expected);
        }
    }
}
