//! The stream kernels of x86-64: what each does with a vector stands here once per instruction set
//! (`three_operands`, `two_operands`); how it goes through the arrays is the order.
//!
//! The near order takes steps of four vectors. Pointers are moved on rather than indexed, because
//! an indexed operand costs a slot more in the front end of several cores. For arrays that no near
//! cache holds there is another order: [`far`].

use std::arch::asm;

use super::Run;

/// Instructions once per offset: `\o` stands for the offset and `\v` for the kind of register.
macro_rules! each {
    ($vector:literal, $offsets:literal, $text:expr) => {
        vectors!($vector, concat!(".irp o,", $offsets, "\n", $text, "\n.endr\n"))
    };
}

/// Instructions in which `\v` stands for the kind of register.
macro_rules! vectors {
    ($vector:literal, $text:expr) => {
        concat!(".irp v,", $vector, "\n", $text, "\n.endr\n")
    };
}

/// Instructions four times: `\c` stands for 0 to 3.
macro_rules! four {
    ($text:expr) => {
        concat!(".irp c,0,1,2,3\n", $text, "\n.endr\n")
    };
}

/// Moves pointers on by a step.
macro_rules! advance {
    ($step:literal $($pointer:ident)+) => {
        concat!($("add {", stringify!($pointer), "}, ", $step, "\n"),+)
    };
}

/// Assembly to which all vector registers are given up; `xmm15` begins with the factor.
macro_rules! vector_asm {
    ($run:ident, $($part:tt)*) => {
        asm!(
            $($part)*
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _,
            inout("xmm15") $run.value => _,
            options(nostack),
        )
    };
}

/// A kernel in the near order: registers with the offsets and the length of a step; how it stores,
/// and what it reads beside; what comes before the passes, what is done with each vector, and what
/// comes after the passes.
macro_rules! near {
    (
        $name:ident ($vector:literal, $offsets:literal, $step:literal)
        $store:ident [$($read:ident)*], $before:expr, $each:expr, $after:expr
    ) => {
        near!(
            @function $name,
            vectors!($vector, $before),
            concat!(each!($vector, $offsets, $each), advance!($step t $($read)*)),
            $after
        );
    };
    (@function $name:ident, $before:expr, $step:expr, $after:expr) => {
        /// Contract: that of [`super::super::Body`].
        pub(in super::super) unsafe fn $name(run: &Run) {
            // SAFETY: the pointers stay within `length_bytes` of where they begin, because the
            // step divides it; the caller promises that these bytes are valid and that the CPU
            // has the instructions. Stack and direction flag are left alone, and all vector
            // registers are given up.
            unsafe {
                vector_asm!(
                    run,
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
                );
            }
        }
    };
}

/// All kernels but `read`, of the instructions that load and store a vector, and store it past the caches;
/// that spread the factor over register 15; that leave in register 0 a vector of the first array scaled by
/// it, register 0 plus one of the second, and register 0 scaled plus one of the first; and that end them.
macro_rules! operations {
    (
        $order:ident $vectors:tt $move:literal $past:literal, $spread:literal,
        $scaled:literal, $added:literal, $fused:literal, $end:literal
    ) => {
        operations!(
            @stores $order $vectors cached $move write copy triad, $move, $spread, $fused, $end
        );
        operations!(
            @stores $order $vectors streamed $past nt_write nt_copy nt_triad, $move, $spread,
            $fused, $end
        );
        $order!(
            scale $vectors cached [f], $spread,
            concat!($scaled, "\n", $move, " [{t} + \\o], \\v\\()0"),
            $end
        );
        $order!(
            add $vectors cached [f s], "",
            concat!(
                $move, " \\v\\()0, [{f} + \\o]\n", $added, "\n",
                $move, " [{t} + \\o], \\v\\()0"
            ),
            $end
        );
    };
    (
        @stores $order:ident $vectors:tt $store:ident $out:literal
        $write:ident $copy:ident $triad:ident,
        $move:literal, $spread:literal, $fused:literal, $end:literal
    ) => {
        $order!(
            $write $vectors $store [], $spread,
            concat!($out, " [{t} + \\o], \\v\\()15"),
            $end
        );
        $order!(
            $copy $vectors $store [f], "",
            concat!($move, " \\v\\()0, [{f} + \\o]\n", $out, " [{t} + \\o], \\v\\()0"),
            $end
        );
        $order!(
            $triad $vectors $store [f s], $spread,
            concat!(
                $move, " \\v\\()0, [{s} + \\o]\n", $fused, "\n",
                $out, " [{t} + \\o], \\v\\()0"
            ),
            $end
        );
    };
}

/// In instructions of three operands: AVX2 and AVX-512F differ in the name of the registers, and in
/// the offsets that `$vectors` tells the order.
macro_rules! three_operands {
    ($order:ident $vectors:tt) => {
        operations!(
            $order $vectors "vmovupd" "vmovntpd", "vbroadcastsd \\v\\()15, xmm15",
            "vmulpd \\v\\()0, \\v\\()15, [{f} + \\o]",
            "vaddpd \\v\\()0, \\v\\()0, [{s} + \\o]",
            "vfmadd213pd \\v\\()0, \\v\\()15, [{f} + \\o]",
            "vzeroupper"
        );
    };
}

/// In the instructions of SSE2: multiplication and addition are two.
macro_rules! two_operands {
    ($order:ident $vectors:tt) => {
        operations!(
            $order $vectors "movaps" "movntps", "unpcklpd xmm15, xmm15",
            "movaps xmm0, [{f} + \\o]\nmulpd xmm0, xmm15",
            "addpd xmm0, [{s} + \\o]",
            "mulpd xmm0, xmm15\naddpd xmm0, [{f} + \\o]",
            ""
        );
    };
}

pub(super) mod far;

/// The near kernels of an instruction set, from its table. `read` stands beside it: four sums are
/// under way at a time, so as not to wait for one another.
macro_rules! near_kernels {
    ($table:ident, $vectors:tt, $zero:literal, $sum:expr, $end:expr) => {
        use std::arch::asm;

        use super::super::{Body, Kernel, Run};

        bodies!(and NtWrite = nt_write, NtCopy = nt_copy, NtTriad = nt_triad);
        $table!(near $vectors);
        near!(@function read, four!($zero), $sum, $end);
    };
    ($vector:literal, $bytes:literal, $step:literal, $offsets:literal) => {
        near_kernels!(
            three_operands, ($vector, $offsets, $step), "vpxor xmm\\c, xmm\\c, xmm\\c",
            concat!(
                vectors!(
                    $vector,
                    four!(concat!("vpaddq \\v\\c, \\v\\c, [{f} + ", $bytes, "*\\c]"))
                ),
                advance!($step t f)
            ),
            concat!(
                vectors!(
                    $vector,
                    four!(concat!("vmovupd [{sums} + ", $bytes, "*\\c], \\v\\c"))
                ),
                "vzeroupper"
            )
        );
    };
}

pub(super) mod avx512 {
    near_kernels!("zmm", 64, 256, "0,64,128,192");
}

pub(super) mod avx2 {
    near_kernels!("ymm", 32, 128, "0,32,64,96");
}

pub(super) mod sse2 {
    near_kernels!(
        two_operands,
        ("xmm", "0,16,32,48", 64),
        "pxor xmm\\c, xmm\\c",
        concat!(four!("paddq xmm\\c, [{f} + 16*\\c]"), advance!(64 t f)),
        four!("movups [{sums} + 16*\\c], xmm\\c")
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
