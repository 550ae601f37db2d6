//! What the kernels need of a vector register, and the registers that there are.
//!
//! The kernels are written once over [`Lanes`]; `kernel` compiles them per instruction set.

/// Doubles side by side in a register. All methods are inlined into a function that is compiled
/// for the instruction set, and may only be called where the CPU has it.
pub(super) trait Lanes: Copy {
    /// How many there are.
    const COUNT: usize;
    /// Reads [`COUNT`](Self::COUNT) doubles, of any alignment.
    unsafe fn load(from: *const f64) -> Self;
    /// Writes them, at any alignment.
    unsafe fn store(self, to: *mut f64);
    /// The same number in all places.
    unsafe fn splat(value: f64) -> Self;
    /// self + a × b, rounded once where the instruction set can.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
    /// The larger of self and the magnitude of `other`, place by place.
    unsafe fn or_magnitude(self, other: Self) -> Self;
}

/// Fetches the line at `at` towards the core. Any address will do.
#[inline(always)]
pub(super) fn prefetch(at: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// As [`prefetch`], into the second-level cache.
#[inline(always)]
pub(super) fn prefetch_second(at: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Two doubles without special instructions: what the compiler's baseline has (SSE2, NEON).
#[derive(Clone, Copy)]
pub(super) struct Pair([f64; 2]);

#[inline(always)]
fn plus_product(sum: f64, a: f64, b: f64) -> f64 {
    // Where the baseline has no fused form, `mul_add` would be a call into libm.
    if cfg!(target_arch = "aarch64") { a.mul_add(b, sum) } else { sum + a * b }
}

impl Lanes for Pair {
    const COUNT: usize = 2;

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: the caller promises two readable doubles.
        Self(unsafe { from.cast::<[f64; 2]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64) {
        // SAFETY: the caller promises room for two doubles.
        unsafe { to.cast::<[f64; 2]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn splat(value: f64) -> Self {
        Self([value; 2])
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Self([plus_product(self.0[0], a.0[0], b.0[0]), plus_product(self.0[1], a.0[1], b.0[1])])
    }

    #[inline(always)]
    unsafe fn or_magnitude(self, other: Self) -> Self {
        Self([self.0[0].max(other.0[0].abs()), self.0[1].max(other.0[1].abs())])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Lanes;

    impl Lanes for __m512d {
        const COUNT: usize = 8;

        #[inline(always)]
        unsafe fn load(from: *const f64) -> Self {
            // SAFETY: the caller promises eight readable doubles, and AVX-512F.
            unsafe { _mm512_loadu_pd(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises room for eight doubles, and AVX-512F.
            unsafe { _mm512_storeu_pd(to, self) }
        }

        #[inline(always)]
        unsafe fn splat(value: f64) -> Self {
            // SAFETY: the caller promises AVX-512F.
            unsafe { _mm512_set1_pd(value) }
        }

        #[inline(always)]
        unsafe fn plus_product(self, a: Self, b: Self) -> Self {
            // SAFETY: the caller promises AVX-512F.
            unsafe { _mm512_fmadd_pd(a, b, self) }
        }

        #[inline(always)]
        unsafe fn or_magnitude(self, other: Self) -> Self {
            // SAFETY: the caller promises AVX-512F.
            unsafe { _mm512_max_pd(self, _mm512_abs_pd(other)) }
        }
    }

    impl Lanes for __m256d {
        const COUNT: usize = 4;

        #[inline(always)]
        unsafe fn load(from: *const f64) -> Self {
            // SAFETY: the caller promises four readable doubles, and AVX2.
            unsafe { _mm256_loadu_pd(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f64) {
            // SAFETY: the caller promises room for four doubles, and AVX2.
            unsafe { _mm256_storeu_pd(to, self) }
        }

        #[inline(always)]
        unsafe fn splat(value: f64) -> Self {
            // SAFETY: the caller promises AVX2.
            unsafe { _mm256_set1_pd(value) }
        }

        #[inline(always)]
        unsafe fn plus_product(self, a: Self, b: Self) -> Self {
            // SAFETY: the caller promises AVX2 and FMA.
            unsafe { _mm256_fmadd_pd(a, b, self) }
        }

        #[inline(always)]
        unsafe fn or_magnitude(self, other: Self) -> Self {
            // SAFETY: the caller promises AVX2.
            unsafe { _mm256_max_pd(self, _mm256_andnot_pd(_mm256_set1_pd(-0.0), other)) }
        }
    }
}
