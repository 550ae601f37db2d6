//! What a CPU must have for a loop over registers.

use crate::instruction_set::cpu_has;
use crate::throughput::{Kernel, Level, Number, Operation};

/// Whether the CPU has wider registers for a kernel of this kind than any loop for it that runs here.
pub(in crate::throughput) fn is_narrow(kernel: Kernel) -> bool {
    let wider = Kernel { level: Level::Avx2, ..kernel };
    is_narrow_where(kernel, cpu_has!("avx") && lacks(wider).is_some())
}

/// AVX alone has no integers.
fn is_narrow_where(kernel: Kernel, has_only_avx: bool) -> bool {
    has_only_avx && kernel.level == Level::Sse2 && kernel.number.is_floating()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_floating_point_are_narrow_where_there_is_avx_without_avx2() {
        let kernel = |number, level| Kernel { number, operation: Operation::Add, level };
        for (number, level, is_narrow) in [
            (Number::F64, Level::Sse2, true),
            (Number::F32, Level::Sse2, true),
            (Number::I32, Level::Sse2, false),
            (Number::F64, Level::Avx2, false),
        ] {
            let kernel = kernel(number, level);
            assert_eq!(is_narrow_where(kernel, true), is_narrow, "{kernel:?}");
            assert!(!is_narrow_where(kernel, false), "{kernel:?}");
        }
    }
}
