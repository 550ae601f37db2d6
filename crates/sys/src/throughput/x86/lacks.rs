//! What a CPU must have for a loop over registers.

use crate::instruction_set::cpu_has;
use crate::throughput::{Kernel, Level, Number, Operation};

/// The feature that a kernel of registers lacks here.
pub(in crate::throughput) fn lacks(kernel: Kernel) -> Option<&'static str> {
    let multiplies_integers = kernel.operation == Operation::MultiplyAdd;
    match (kernel.level, kernel.number) {
        (Level::Scalar, _) => None,
        (Level::Sse2, Number::I32) if multiplies_integers => {
            (!cpu_has!("sse4.1")).then_some("SSE4.1")
        }
        (Level::Sse2, _) => None,
        (Level::Avx2, _) => match () {
            () if !cpu_has!("avx2") => Some("AVX2"),
            () if !cpu_has!("fma") => Some("FMA"),
            () => None,
        },
        (Level::Avx512, Number::I64) if multiplies_integers => {
            (!cpu_has!("avx512dq")).then_some("AVX-512DQ")
        }
        (Level::Avx512, _) => (!cpu_has!("avx512f")).then_some("AVX-512F"),
        (Level::AvxVnni, _) => (!cpu_has!("avxvnni")).then_some("AVX-VNNI"),
        (Level::Avx512Vnni, _) => (!cpu_has!("avx512vnni")).then_some("AVX-512 VNNI"),
        (Level::Amx | Level::Neon, _) => Some("such loop over registers"),
    }
}
