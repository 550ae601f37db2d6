//! The stream kernels of x86-64: one module per instruction set, all made by one macro.
//!
//! A kernel goes through its arrays in steps of four vectors. Pointers are moved on rather than
//! indexed, because an indexed operand costs a slot more in the front end of several cores. For
//! arrays that no near cache holds there is another order: [`far`].

use std::arch::asm;

use super::Run;

/// The same instructions once per offset, which stands between the two texts of each.
macro_rules! unrolled {
    ([$($offset:literal)+] $pieces:tt) => { concat!($(unrolled!(@one $offset $pieces)),+) };
    (@one $offset:literal [$($before:expr, $after:expr);+]) => {
        concat!($($before, $offset, $after, "\n"),+)
    };
}

/// Moves pointers on by a step.
macro_rules! advance {
    ($step:literal $($pointer:ident)+) => {
        concat!($("add {", stringify!($pointer), "}, ", $step, "\n"),+)
    };
}

pub(super) mod far;

/// A kernel: what comes before the passes, a step, and what comes after the passes.
macro_rules! kernel {
    ($name:ident, $before:expr, $step:expr, $after:expr) => {
        /// Contract: that of [`super::super::Body`].
        pub(in super::super) unsafe fn $name(run: &Run) {
            // SAFETY: the pointers stay within `length_bytes` of where they begin, because the
            // step divides it; the caller promises that these bytes are valid and that the CPU
            // has the instructions. Stack and direction flag are left alone, and all vector
            // registers are given up.
            unsafe {
                asm!(
                    $before,
                    "2:",
                    "mov {t}, {target}",
                    "mov {f}, {first}",
                    "mov {s}, {second}",
                    // One line of the decoded-instruction cache begins with the loop.
                    ".p2align 6",
                    "3:",
                    $step,
                    "cmp {t}, {end}",
                    "jb 3b",
                    "dec {passes}",
                    "jnz 2b",
                    $after,
                    "# {sums}",
                    t = out(reg) _,
                    f = out(reg) _,
                    s = out(reg) _,
                    target = in(reg) run.target,
                    first = in(reg) run.first,
                    second = in(reg) run.second,
                    end = in(reg) run.target.wrapping_add(run.length_bytes),
                    sums = in(reg) run.sums,
                    passes = inout(reg) run.passes => _,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _,
                    inout("xmm15") run.value => _,
                    options(nostack),
                );
            }
        }
    };
}

/// Which function does what.
macro_rules! bodies {
    () => {
        pub(in super::super) fn body(kernel: Kernel) -> Option<Body> {
            match kernel {
                Kernel::Read => Some(read),
                Kernel::Write => Some(write),
                Kernel::NtWrite => Some(nt_write),
                Kernel::Copy => Some(copy),
                Kernel::NtCopy => Some(nt_copy),
                Kernel::Scale => Some(scale),
                Kernel::Add => Some(add),
                Kernel::Triad => Some(triad),
                Kernel::NtTriad => Some(nt_triad),
                Kernel::RepMovsb | Kernel::Memcpy => None,
            }
        }
    };
}

/// The kernels of AVX2 and of AVX-512F differ in the name of the registers, in the offsets of four
/// of them in memory, and in the length of a step.
macro_rules! three_operands {
    ($r:literal, $offsets:tt, $step:literal) => {
        use std::arch::asm;

        use super::super::{Body, Kernel, Run};

        bodies!();

        kernel!(
            read,
            zeroed!(),
            three_operands!(@sum $r $offsets $step),
            three_operands!(@end $r $offsets)
        );
        kernel!(
            write,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                unrolled!($offsets ["vmovupd [{t} + ", concat!("], ", $r, "15")]),
                advance!($step t)
            ),
            "vzeroupper"
        );
        kernel!(
            nt_write,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                unrolled!($offsets ["vmovntpd [{t} + ", concat!("], ", $r, "15")]),
                advance!($step t)
            ),
            "vzeroupper"
        );
        kernel!(
            copy,
            "",
            concat!(
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{f} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!($step t f)
            ),
            "vzeroupper"
        );
        kernel!(
            nt_copy,
            "",
            concat!(
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{f} + "), "]";
                    "vmovntpd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!($step t f)
            ),
            "vzeroupper"
        );
        kernel!(
            scale,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                unrolled!($offsets [
                    concat!("vmulpd ", $r, "0, ", $r, "15, [{f} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!($step t f)
            ),
            "vzeroupper"
        );
        kernel!(
            add,
            "",
            concat!(
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{f} + "), "]";
                    concat!("vaddpd ", $r, "0, ", $r, "0, [{s} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!($step t f s)
            ),
            "vzeroupper"
        );
        kernel!(
            triad,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{s} + "), "]";
                    concat!("vfmadd213pd ", $r, "0, ", $r, "15, [{f} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!($step t f s)
            ),
            "vzeroupper"
        );
        kernel!(
            nt_triad,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{s} + "), "]";
                    concat!("vfmadd213pd ", $r, "0, ", $r, "15, [{f} + "), "]";
                    "vmovntpd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!($step t f s)
            ),
            "vzeroupper"
        );
    };
    (@sum $r:literal [$o0:literal $o1:literal $o2:literal $o3:literal] $step:literal) => {
        concat!(
            "vpaddq ", $r, "0, ", $r, "0, [{f} + ", $o0, "]\n",
            "vpaddq ", $r, "1, ", $r, "1, [{f} + ", $o1, "]\n",
            "vpaddq ", $r, "2, ", $r, "2, [{f} + ", $o2, "]\n",
            "vpaddq ", $r, "3, ", $r, "3, [{f} + ", $o3, "]\n",
            advance!($step t f)
        )
    };
    (@end $r:literal [$o0:literal $o1:literal $o2:literal $o3:literal]) => {
        concat!(
            "vmovupd [{sums} + ", $o0, "], ", $r, "0\n",
            "vmovupd [{sums} + ", $o1, "], ", $r, "1\n",
            "vmovupd [{sums} + ", $o2, "], ", $r, "2\n",
            "vmovupd [{sums} + ", $o3, "], ", $r, "3\n",
            "vzeroupper"
        )
    };
}

/// Four whole vector registers set to zero.
macro_rules! zeroed {
    () => {
        "vpxor xmm0, xmm0, xmm0\nvpxor xmm1, xmm1, xmm1\n\
         vpxor xmm2, xmm2, xmm2\nvpxor xmm3, xmm3, xmm3"
    };
}

/// 64 bytes at a time.
pub(super) mod avx512 {
    three_operands!("zmm", [0 64 128 192], 256);
}

/// 32 bytes at a time.
pub(super) mod avx2 {
    three_operands!("ymm", [0 32 64 96], 128);
}

/// 16 bytes at a time; multiplication and addition are two instructions.
pub(super) mod sse2 {
    use std::arch::asm;

    use super::super::{Body, Kernel, Run};

    bodies!();

    kernel!(
        read,
        "pxor xmm0, xmm0\npxor xmm1, xmm1\npxor xmm2, xmm2\npxor xmm3, xmm3",
        concat!(
            "paddq xmm0, [{f}]\npaddq xmm1, [{f} + 16]\n",
            "paddq xmm2, [{f} + 32]\npaddq xmm3, [{f} + 48]\n",
            advance!(64 t f)
        ),
        "movups [{sums}], xmm0\nmovups [{sums} + 16], xmm1\n\
         movups [{sums} + 32], xmm2\nmovups [{sums} + 48], xmm3"
    );
    kernel!(
        write,
        "unpcklpd xmm15, xmm15",
        concat!(unrolled!([0 16 32 48] ["movaps [{t} + ", "], xmm15"]), advance!(64 t)),
        ""
    );
    kernel!(
        nt_write,
        "unpcklpd xmm15, xmm15",
        concat!(unrolled!([0 16 32 48] ["movntps [{t} + ", "], xmm15"]), advance!(64 t)),
        ""
    );
    kernel!(
        copy,
        "",
        concat!(
            unrolled!([0 16 32 48] ["movaps xmm0, [{f} + ", "]"; "movaps [{t} + ", "], xmm0"]),
            advance!(64 t f)
        ),
        ""
    );
    kernel!(
        nt_copy,
        "",
        concat!(
            unrolled!([0 16 32 48] ["movaps xmm0, [{f} + ", "]"; "movntps [{t} + ", "], xmm0"]),
            advance!(64 t f)
        ),
        ""
    );
    kernel!(
        scale,
        "unpcklpd xmm15, xmm15",
        concat!(
            unrolled!([0 16 32 48] [
                "movaps xmm0, [{f} + ", "]\nmulpd xmm0, xmm15";
                "movaps [{t} + ", "], xmm0"
            ]),
            advance!(64 t f)
        ),
        ""
    );
    kernel!(
        add,
        "",
        concat!(
            unrolled!([0 16 32 48] [
                "movaps xmm0, [{f} + ", "]";
                "addpd xmm0, [{s} + ", "]";
                "movaps [{t} + ", "], xmm0"
            ]),
            advance!(64 t f s)
        ),
        ""
    );
    kernel!(
        triad,
        "unpcklpd xmm15, xmm15",
        concat!(
            unrolled!([0 16 32 48] [
                "movaps xmm0, [{s} + ", "]\nmulpd xmm0, xmm15";
                "addpd xmm0, [{f} + ", "]";
                "movaps [{t} + ", "], xmm0"
            ]),
            advance!(64 t f s)
        ),
        ""
    );
    kernel!(
        nt_triad,
        "unpcklpd xmm15, xmm15",
        concat!(
            unrolled!([0 16 32 48] [
                "movaps xmm0, [{s} + ", "]\nmulpd xmm0, xmm15";
                "addpd xmm0, [{f} + ", "]";
                "movntps [{t} + ", "], xmm0"
            ]),
            advance!(64 t f s)
        ),
        ""
    );
}

/// One instruction of the CPU moves everything; its microcode chooses the way.
///
/// Contract: that of [`super::Body`].
pub(super) unsafe fn rep_movsb(run: &Run) {
    for _ in 0..run.passes {
        // SAFETY: the caller promises both ranges; the ABI keeps the direction flag clear.
        unsafe {
            asm!(
                "rep movsb",
                inout("rdi") run.target => _,
                inout("rsi") run.first => _,
                inout("rcx") run.length_bytes => _,
                options(nostack, preserves_flags),
            );
        }
    }
}
