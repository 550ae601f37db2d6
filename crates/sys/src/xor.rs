//! The XOR kernels behind the xor32 digest: memory in, one 32-bit word out.
//!
//! All of them read through raw pointers, so that they also serve mapped files. The widest one
//! that the CPU has is chosen at run time, up to AVX2: what is read comes from memory, where
//! registers of 64 bytes were slower. Figures: 1 GiB of cached pages mapped, 2 threads, C probe, AMD EPYC
//! family 25 model 17, 2026-11-27: 10.1 GB/s (8.1–10.6) with 64 bytes, 10.7 (9.1–11.4) with 32; in folios of
//! 2 MiB 39 and 48; in the second-level cache 113 with either.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Bytes that the vector kernels take per step: eight registers of 32 bytes, so that as many
/// loads are in flight and the XORs never wait for each other.
const STEP_BYTES: usize = 256;

/// XOR of `bytes` as little-endian 32-bit words, the tail padded with zero bytes.
pub fn xor32(bytes: &[u8]) -> u32 {
    // SAFETY: a slice is readable for its length.
    unsafe { xor32_raw(bytes.as_ptr(), bytes.len()) }
}

/// XOR of the `length_bytes` at `start`, which need no alignment.
///
/// # Safety
///
/// `start` must be readable for `length_bytes`. The bytes may change meanwhile (mapped files):
/// then the result is that of some mixture.
#[inline]
pub(crate) unsafe fn xor32_raw(start: *const u8, length_bytes: usize) -> u32 {
    if length_bytes == 1 {
        // SAFETY: the caller promises one readable byte. The shortest block is worth a branch:
        // it is the one whose cost is all overhead.
        return u32::from(unsafe { start.read_volatile() });
    }
    let whole = length_bytes - length_bytes % STEP_BYTES;
    let body = if whole == 0 {
        0
    } else {
        // SAFETY: `whole` ≤ `length_bytes` and a multiple of STEP_BYTES, as the kernels ask for.
        unsafe { xor_steps(start, whole) }
    };
    // SAFETY: the rest of the range that the caller promises.
    body ^ unsafe { xor_tail(start.add(whole), length_bytes - whole) }
}

/// The tail below one step. `start` must be readable for `length_bytes`.
#[inline]
unsafe fn xor_tail(start: *const u8, length_bytes: usize) -> u32 {
    let mut word = 0;
    let words = length_bytes / 4;
    for index in 0..words {
        // SAFETY: 4 × words ≤ length_bytes.
        word ^= u32::from_le(unsafe { start.cast::<u32>().add(index).read_unaligned() });
    }
    for index in words * 4..length_bytes {
        // SAFETY: index < length_bytes.
        word ^= u32::from(unsafe { start.add(index).read() }) << (8 * (index % 4));
    }
    word
}

/// Folds 64-bit words to the digest of 32 bits.
fn fold(words: impl IntoIterator<Item = u64>) -> u32 {
    let word = words.into_iter().fold(0, |sum, word| sum ^ word);
    (word ^ (word >> 32)) as u32
}

unsafe fn xor_steps(start: *const u8, length_bytes: usize) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if crate::instruction_set::cpu_has!("avx2") {
        // SAFETY: the CPU has AVX2; the range is the caller's promise.
        return unsafe { xor_avx2(start, length_bytes) };
    }
    // SAFETY: every CPU of the architecture has it; the range is the caller's promise.
    unsafe { xor_baseline(start, length_bytes) }
}

/// A kernel for `$lanes` registers side by side, on a CPU with `$feature`.
macro_rules! kernel {
    (
        $name:ident, $feature:literal, [$vector:ident; $lanes:literal],
        $zero:ident($($zeros:literal)?), $load:ident, $store:ident, $xor:ident
    ) => {
        /// The CPU must have the feature; `start` must be readable for `length_bytes`, a multiple
        /// of `STEP_BYTES`.
        #[target_feature(enable = $feature)]
        unsafe fn $name(start: *const u8, length_bytes: usize) -> u32 {
            const VECTOR_BYTES: usize = size_of::<$vector>();
            let mut sums = [$zero($($zeros)?); $lanes];
            for offset in (0..length_bytes).step_by($lanes * VECTOR_BYTES) {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: all lanes divide a step, so this one is within the caller's promise.
                    let word = unsafe { $load(start.add(offset + VECTOR_BYTES * lane).cast()) };
                    *sum = $xor(*sum, word);
                }
            }
            let sum = sums.into_iter().reduce(|a, b| $xor(a, b)).expect("there are lanes");
            let mut words = [0_u64; VECTOR_BYTES / 8];
            // SAFETY: `words` has exactly the bytes of the register.
            unsafe { $store(words.as_mut_ptr().cast(), sum) };
            fold(words)
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel!(
    xor_avx2,
    "avx2",
    [__m256i; 8],
    _mm256_setzero_si256(),
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256
);
#[cfg(target_arch = "x86_64")]
kernel!(
    xor_baseline,
    "sse2",
    [__m128i; 8],
    _mm_setzero_si128(),
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_xor_si128
);

#[cfg(target_arch = "aarch64")]
kernel!(xor_baseline, "neon", [uint64x2_t; 8], vdupq_n_u64(0), vld1q_u64, vst1q_u64, veorq_u64);

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, word by word.
    fn reference(bytes: &[u8]) -> u32 {
        bytes.chunks(4).fold(0, |sum, chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            sum ^ u32::from_le_bytes(word)
        })
    }

    #[test]
    fn every_kernel_equals_the_definition_at_boundary_lengths() {
        let bytes: Vec<u8> =
            (0..3000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..600).chain([1023, 1024, 1025, 2047, 2048, 2999]) {
            for start in [0, 1, 3] {
                let slice = &bytes[start..(start + length).min(bytes.len())];
                assert_eq!(xor32(slice), reference(slice), "length {length}, start {start}");
            }
        }
    }

    #[test]
    fn each_kernel_equals_the_definition() {
        let bytes: Vec<u8> = (0..4096_u32).map(|i| ((i * i) >> 3) as u8).collect();
        // SAFETY: the slice is readable for its length, a multiple of STEP_BYTES.
        assert_eq!(unsafe { xor_baseline(bytes.as_ptr(), bytes.len()) }, reference(&bytes));
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above, and the CPU has AVX2.
            assert_eq!(unsafe { xor_avx2(bytes.as_ptr(), bytes.len()) }, reference(&bytes));
        }
    }
}
