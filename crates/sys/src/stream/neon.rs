//! The stream kernels of aarch64: pairs of 128-bit registers, in steps of four pairs. There are no
//! stores past the caches: `stnp` is a hint that CPUs are free to ignore.

use std::arch::asm;

use super::{Body, Kernel, Run};

bodies!(and);

/// A kernel that reads some of the arrays; what is done with each pair, `\o` bytes from where the
/// pointers are, with the factor in `v31`; and after all passes.
macro_rules! kernel {
    ($name:ident [$($read:ident)*], $each:literal, $after:literal) => {
        /// Contract: that of [`Body`].
        unsafe fn $name(run: &Run) {
            // SAFETY: the pointers stay within `length_bytes` of where they begin, because the
            // step divides it; the caller promises that these bytes are valid. The stack is left
            // alone, and all registers that are used are given up.
            unsafe {
                asm!(
                    "dup v31.2d, v31.d[0]",
                    "movi v0.2d, 0",
                    "movi v1.2d, 0",
                    "movi v4.2d, 0",
                    "movi v5.2d, 0",
                    "2:",
                    "mov {t}, {target}",
                    "mov {f}, {first}",
                    "mov {s}, {second}",
                    ".p2align 6",
                    "3:",
                    concat!(".irp o,0,32,64,96\n", $each, "\n.endr"),
                    "add {t}, {t}, 128",
                    $(concat!("add {", stringify!($read), "}, {", stringify!($read), "}, 128"),)*
                    "cmp {t}, {end}",
                    "b.lo 3b",
                    "subs {passes}, {passes}, 1",
                    "b.ne 2b",
                    $after,
                    "// {sums}",
                    t = out(reg) _,
                    f = out(reg) _,
                    s = out(reg) _,
                    target = in(reg) run.target,
                    first = in(reg) run.first,
                    second = in(reg) run.second,
                    end = in(reg) run.target.wrapping_add(run.length_bytes),
                    sums = in(reg) run.sums,
                    passes = inout(reg) run.passes => _,
                    out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _,
                    inout("v31") run.value => _,
                    options(nostack),
                );
            }
        }
    };
}

// Four sums, so as not to wait for one another.
kernel!(
    read[f],
    "ldp q2, q3, [{f}, \\o]\n\
     .if \\o & 32\nadd v0.2d, v0.2d, v2.2d\nadd v1.2d, v1.2d, v3.2d\n\
     .else\nadd v4.2d, v4.2d, v2.2d\nadd v5.2d, v5.2d, v3.2d\n.endif",
    "stp q0, q1, [{sums}]\nstp q4, q5, [{sums}, 32]"
);
kernel!(write [], "stp q31, q31, [{t}, \\o]", "");
kernel!(copy[f], "ldp q2, q3, [{f}, \\o]\nstp q2, q3, [{t}, \\o]", "");
kernel!(
    scale[f],
    "ldp q2, q3, [{f}, \\o]\nfmul v2.2d, v2.2d, v31.2d\nfmul v3.2d, v3.2d, v31.2d\n\
     stp q2, q3, [{t}, \\o]",
    ""
);
kernel!(
    add [f s],
    "ldp q2, q3, [{f}, \\o]\nldp q4, q5, [{s}, \\o]\nfadd v2.2d, v2.2d, v4.2d\n\
     fadd v3.2d, v3.2d, v5.2d\nstp q2, q3, [{t}, \\o]",
    ""
);
kernel!(
    triad [f s],
    "ldp q2, q3, [{f}, \\o]\nldp q4, q5, [{s}, \\o]\nfmla v2.2d, v4.2d, v31.2d\n\
     fmla v3.2d, v5.2d, v31.2d\nstp q2, q3, [{t}, \\o]",
    ""
);
