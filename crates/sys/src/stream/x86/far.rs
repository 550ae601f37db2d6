//! The order for arrays that no near cache holds: eight pages side by side, a line of each in turn.
//!
//! One core fetches a single stream more slowly than it could: its prefetcher stops at each page
//! of 4 KiB and has to find its way again, and few requests are under way meanwhile. Eight pages
//! at a time, and lines asked for a little ahead, keep more of them under way. On two virtual CPUs
//! of a Sapphire Rapids server (arrays of 440 MB on 2 MiB pages, medians of 5, 2026-11-22) a triad
//! moved 9.9 GB/s so and 7.0 in plain order, a read 11.3 and 6.8, a non-temporal triad 13.1 and
//! 9.6; the same with 16 pages, with 4, or with 64 KiB between the lines gave less or no more. On
//! Zen 4 it is slower than plain order (2026-11-26): whoever measures races both.
//!
//! What does not fill eight pages at the end of the arrays is done in plain order.

use super::super::{Body, Kernel, Level, Run};

/// Bytes that are done at a time: eight pages of 4 KiB.
const STRETCH_BYTES: usize = 8 * 4096;

/// The far form of a kernel, where it has one.
pub(in super::super) fn body(kernel: Kernel, level: Level) -> Option<Body> {
    match level {
        Level::Portable | Level::Neon => None,
        Level::Sse2 => sse2::body(kernel),
        Level::Avx2 => avx2::body(kernel),
        Level::Avx512 => avx512::body(kernel),
    }
}

/// Goes through the arrays pass by pass: whole stretches with the far form, the rest with the near
/// one; partial sums of both are added up.
///
/// # Safety
///
/// `run` must be as [`Body`] asks for, and both must be bodies of one kernel; `far` is handed whole
/// stretches only.
#[inline(always)]
unsafe fn split(run: &Run, far: Body, near: Body) {
    let far_bytes = run.length_bytes - run.length_bytes % STRETCH_BYTES;
    let rest_bytes = run.length_bytes - far_bytes;
    let (mut far_sums, mut near_sums) = ([0_u64; 32], [0_u64; 32]);
    let mut sums = [0_u64; 32];
    for _ in 0..run.passes {
        if far_bytes > 0 {
            let sums = far_sums.as_mut_ptr();
            // SAFETY: a part of the arrays that the caller vouches for.
            unsafe { far(&Run { length_bytes: far_bytes, passes: 1, sums, ..*run }) };
        }
        if rest_bytes > 0 {
            let rest = Run {
                target: run.target.wrapping_add(far_bytes),
                first: run.first.wrapping_add(far_bytes),
                second: run.second.wrapping_add(far_bytes),
                length_bytes: rest_bytes,
                passes: 1,
                sums: near_sums.as_mut_ptr(),
                value: run.value,
            };
            // SAFETY: the other part; it begins and ends at a multiple of the granule.
            unsafe { near(&rest) };
        }
        for (sum, (a, b)) in sums.iter_mut().zip(far_sums.iter().zip(&near_sums)) {
            *sum = sum.wrapping_add(*a).wrapping_add(*b);
        }
    }
    // SAFETY: the caller gives room for 32 words.
    unsafe { run.sums.cast::<[u64; 32]>().write_unaligned(sums) };
}

/// A kernel in the far order: registers with the offsets of a line of each page; how it stores, and
/// what it reads beside; what comes before all, what is done with each vector, what comes after all.
macro_rules! far {
    (
        $name:ident ($vector:literal, $offsets:literal)
        $store:ident [$($read:ident)*], $before:expr, $each:expr, $after:expr
    ) => {
        /// Contract: that of [`Body`].
        unsafe fn $name(run: &Run) {
            /// Contract: that of [`Body`], for whole stretches and one pass.
            unsafe fn stretches(run: &Run) {
                // SAFETY: the pointers stay within `length_bytes` of where they begin, because a
                // stretch divides it; the caller promises that these bytes are valid and that the
                // CPU has the instructions. Prefetches beyond the end touch nothing. Stack and
                // direction flag are left alone, and all vector registers are given up.
                unsafe {
                    vector_asm!(
                        run,
                        vectors!($vector, $before),
                        "2:",
                        "mov {lines:e}, 64",
                        ".p2align 6",
                        "3:",
                        $(ahead!("prefetcht0" $read),)*
                        far!(@own $store),
                        each!($vector, $offsets, $each),
                        advance!(64 t f s),
                        "dec {lines:e}",
                        "jnz 3b",
                        advance!(28672 t f s),
                        "cmp {t}, {end}",
                        "jb 2b",
                        vectors!($vector, $after),
                        "# {sums}",
                        t = inout(reg) run.target => _,
                        f = inout(reg) run.first => _,
                        s = inout(reg) run.second => _,
                        end = in(reg) run.target.wrapping_add(run.length_bytes),
                        sums = in(reg) run.sums,
                        lines = out(reg) _,
                    );
                }
            }
            // SAFETY: the caller's promise; both are this kernel.
            unsafe { split(run, stretches, near::$name) }
        }
    };
    // Lines that are written through the cache are fetched to be owned.
    (@own cached) => { ahead!("prefetchw" t) };
    (@own streamed) => { "" };
    (@own nothing) => { "" };
}

/// Asks for the lines four ahead, one per page.
macro_rules! ahead {
    ($prefetch:literal $pointer:ident) => {
        concat!(
            ".irp o,256,4352,8448,12544,16640,20736,24832,28928\n",
            $prefetch,
            " [{",
            stringify!($pointer),
            "} + \\o]\n.endr"
        )
    };
}

/// The far kernels of an instruction set, from its table; only `read` stands beside it.
macro_rules! far_kernels {
    ($near:ident, $table:ident, $vectors:tt, $zero:literal, $sum:literal, $end:literal) => {
        use std::arch::asm;

        use super::super::$near as near;
        use super::{Body, Kernel, Run, split};

        bodies!(and NtWrite = nt_write, NtCopy = nt_copy, NtTriad = nt_triad);
        $table!(far $vectors);
        far!(read $vectors nothing [f], $zero, $sum, $end);
    };
    ($near:ident, $vectors:tt) => {
        far_kernels!(
            $near, three_operands, $vectors, "vpxor xmm0, xmm0, xmm0",
            "vpaddq \\v\\()0, \\v\\()0, [{f} + \\o]", "vmovupd [{sums}], \\v\\()0\nvzeroupper"
        );
    };
}

mod avx512 {
    far_kernels!(avx512, ("zmm", "0,4096,8192,12288,16384,20480,24576,28672"));
}

mod avx2 {
    far_kernels!(
        avx2,
        (
            "ymm",
            "0,32,4096,4128,8192,8224,12288,12320,16384,16416,20480,20512,24576,24608,28672,28704"
        )
    );
}

mod sse2 {
    far_kernels!(
        sse2,
        two_operands,
        (
            "xmm",
            "0,16,32,48,4096,4112,4128,4144,8192,8208,8224,8240,12288,12304,12320,12336,\
             16384,16400,16416,16432,20480,20496,20512,20528,24576,24592,24608,24624,\
             28672,28688,28704,28720"
        ),
        "pxor xmm0, xmm0",
        "paddq xmm0, [{f} + \\o]",
        "movups [{sums}], xmm0"
    );
}
