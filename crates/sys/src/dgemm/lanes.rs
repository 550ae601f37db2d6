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

/// Vectors of `$count` doubles by their instructions: load, store, splat, the fused product and the
/// larger magnitude.
macro_rules! lanes {
    (
        $vector:ident, $count:literal, $load:ident, $store:ident, $splat:ident,
        |$sum:ident, $a:ident, $b:ident| $fused:expr, |$most:ident, $other:ident| $larger:expr
    ) => {
        impl Lanes for $vector {
            const COUNT: usize = $count;

            #[inline(always)]
            unsafe fn load(from: *const f64) -> Self {
                // SAFETY: the caller promises so many readable doubles, and the instructions.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f64) {
                // SAFETY: the caller promises room for so many doubles, and the instructions.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn splat(value: f64) -> Self {
                // SAFETY: the caller promises the instructions.
                unsafe { $splat(value) }
            }

            #[inline(always)]
            unsafe fn plus_product(self, $a: Self, $b: Self) -> Self {
                let $sum = self;
                // SAFETY: the caller promises the instructions.
                unsafe { $fused }
            }

            #[inline(always)]
            unsafe fn or_magnitude(self, $other: Self) -> Self {
                let $most = self;
                // SAFETY: the caller promises the instructions.
                unsafe { $larger }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod of_architecture {
    use std::arch::x86_64::*;

    use super::Lanes;

    pub(in super::super) type Baseline = __m128d;

    lanes!(
        __m512d,
        8,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        |sum, a, b| _mm512_fmadd_pd(a, b, sum),
        |most, other| _mm512_max_pd(most, _mm512_abs_pd(other))
    );
    lanes!(
        __m256d,
        4,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        |sum, a, b| _mm256_fmadd_pd(a, b, sum),
        |most, other| _mm256_max_pd(most, _mm256_andnot_pd(_mm256_set1_pd(-0.0), other))
    );
    lanes!(
        __m128d,
        2,
        _mm_loadu_pd,
        _mm_storeu_pd,
        _mm_set1_pd,
        |sum, a, b| _mm_add_pd(sum, _mm_mul_pd(a, b)),
        |most, other| _mm_max_pd(most, _mm_andnot_pd(_mm_set1_pd(-0.0), other))
    );
}

#[cfg(target_arch = "aarch64")]
mod of_architecture {
    use std::arch::aarch64::*;

    use super::Lanes;

    pub(in super::super) type Baseline = float64x2_t;

    lanes!(
        float64x2_t,
        2,
        vld1q_f64,
        vst1q_f64,
        vdupq_n_f64,
        |sum, a, b| vfmaq_f64(sum, a, b),
        |most, other| vmaxnmq_f64(most, vabsq_f64(other))
    );
}

pub(super) use of_architecture::Baseline;
