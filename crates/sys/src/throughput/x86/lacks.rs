//! What a CPU must have for a loop over registers.

use std::arch::is_x86_feature_detected;

use crate::throughput::{Kernel, Level, Number, Operation};

/// The feature that a kernel of registers lacks here.
pub(in crate::throughput) fn lacks(kernel: Kernel) -> Option<&'static str> {
    let multiplies_integers = kernel.operation == Operation::MultiplyAdd;
    match (kernel.level, kernel.number) {
        (Level::Scalar, _) => None,
        (Level::Sse2, Number::I32) if multiplies_integers => {
            (!is_x86_feature_detected!("sse4.1")).then_some("SSE4.1")
        }
        (Level::Sse2, _) => None,
        (Level::Avx2, _) => match () {
            () if !is_x86_feature_detected!("avx2") => Some("AVX2"),
            () if !is_x86_feature_detected!("fma") => Some("FMA"),
            () => None,
        },
        (Level::Avx512, Number::I64) if multiplies_integers => {
            (!is_x86_feature_detected!("avx512dq")).then_some("AVX-512DQ")
        }
        (Level::Avx512, _) => (!is_x86_feature_detected!("avx512f")).then_some("AVX-512F"),
        (Level::AvxVnni, _) => (!is_x86_feature_detected!("avxvnni")).then_some("AVX-VNNI"),
        (Level::Avx512Vnni, _) => {
            (!is_x86_feature_detected!("avx512vnni")).then_some("AVX-512 VNNI")
        }
        (Level::Amx, _) => Some("loop over registers for tiles"),
    }
}
