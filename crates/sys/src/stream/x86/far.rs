//! The order for arrays that no near cache holds: eight pages side by side, a line of each in turn.
//!
//! One core fetches a single stream more slowly than it could: its prefetcher stops at each page
//! of 4 KiB and has to find its way again, and few requests are under way meanwhile. Eight pages
//! at a time, and lines asked for a little ahead, keep more of them under way. On two virtual CPUs
//! of a Sapphire Rapids server (arrays of 440 MB on 2 MiB pages, medians of 5, 2026-11-22) a triad
//! moved 9.9 GB/s so and 7.0 in plain order, a read 11.3 and 6.8, a non-temporal triad 13.1 and
//! 9.6; the same with 16 pages, with 4, or with 64 KiB between the lines gave less or no more.
//!
//! What does not fill eight pages at the end of the arrays is done in plain order.

use super::super::{Body, Kernel, Level, Run};

/// Bytes that are done at a time: eight pages of 4 KiB.
const STRETCH_BYTES: usize = 8 * 4096;

/// The far form of a kernel, where it has one.
pub(in super::super) fn body(kernel: Kernel, level: Level) -> Option<Body> {
    match level {
        Level::Portable => None,
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

/// A kernel: what comes before all, what is done with a line of each page, what comes after all.
macro_rules! far_kernel {
    ($name:ident, $near:path, $before:expr, $lines:expr, $after:expr) => {
        /// Contract: that of [`Body`].
        unsafe fn $name(run: &Run) {
            /// Contract: that of [`Body`], for whole stretches and one pass.
            unsafe fn stretches(run: &Run) {
                // SAFETY: the pointers stay within `length_bytes` of where they begin, because a
                // stretch divides it; the caller promises that these bytes are valid and that the
                // CPU has the instructions. Prefetches beyond the end touch nothing. Stack and
                // direction flag are left alone, and all vector registers are given up.
                unsafe {
                    asm!(
                        $before,
                        "2:",
                        "mov {lines:e}, 64",
                        ".p2align 6",
                        "3:",
                        $lines,
                        "dec {lines:e}",
                        "jnz 3b",
                        "add {t}, 28672",
                        "add {f}, 28672",
                        "add {s}, 28672",
                        "cmp {t}, {end}",
                        "jb 2b",
                        $after,
                        "# {sums}",
                        t = inout(reg) run.target => _,
                        f = inout(reg) run.first => _,
                        s = inout(reg) run.second => _,
                        end = in(reg) run.target.wrapping_add(run.length_bytes),
                        sums = in(reg) run.sums,
                        lines = out(reg) _,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                        out("xmm12") _, out("xmm13") _, out("xmm14") _,
                        inout("xmm15") run.value => _,
                        options(nostack),
                    );
                }
            }
            // SAFETY: the caller's promise; both are this kernel.
            unsafe { split(run, stretches, $near) }
        }
    };
}

/// Which function does what.
macro_rules! far_bodies {
    () => {
        pub(super) fn body(kernel: Kernel) -> Option<Body> {
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

/// Asks for the lines four ahead, one per page: to be read (`ahead`) or to be written (`owned`).
macro_rules! ahead {
    ($pointer:literal) => {
        ahead!(@all "prefetcht0 [{" $pointer)
    };
    (owned $pointer:literal) => {
        ahead!(@all "prefetchw [{" $pointer)
    };
    (@all $before:literal $pointer:literal) => {
        unrolled!([256 4352 8448 12544 16640 20736 24832 28928]
            [concat!($before, $pointer, "} + "), "]"])
    };
}

/// The far kernels of an instruction set with three operands: its near module, the name of its
/// registers, and the offsets of a line of each page.
macro_rules! three_operands {
    ($near:ident, $r:literal, $offsets:tt) => {
        use std::arch::asm;

        use super::super::$near as near;
        use super::{Body, Kernel, Run, split};

        far_bodies!();

        far_kernel!(
            read,
            near::read,
            "vpxor xmm0, xmm0, xmm0",
            concat!(
                ahead!("f"),
                unrolled!($offsets [concat!("vpaddq ", $r, "0, ", $r, "0, [{f} + "), "]"]),
                advance!(64 t f s)
            ),
            concat!("vmovupd [{sums}], ", $r, "0\nvzeroupper")
        );
        far_kernel!(
            write,
            near::write,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                ahead!(owned "t"),
                unrolled!($offsets [
                    "vmovupd [{t} + ", concat!("], ", $r, "15")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            nt_write,
            near::nt_write,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                unrolled!($offsets [
                    "vmovntpd [{t} + ", concat!("], ", $r, "15")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            copy,
            near::copy,
            "",
            concat!(
                ahead!("f"),
                ahead!(owned "t"),
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{f} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            nt_copy,
            near::nt_copy,
            "",
            concat!(
                ahead!("f"),
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{f} + "), "]";
                    "vmovntpd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            scale,
            near::scale,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                ahead!("f"),
                ahead!(owned "t"),
                unrolled!($offsets [
                    concat!("vmulpd ", $r, "0, ", $r, "15, [{f} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            add,
            near::add,
            "",
            concat!(
                ahead!("f"),
                ahead!("s"),
                ahead!(owned "t"),
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{f} + "), "]";
                    concat!("vaddpd ", $r, "0, ", $r, "0, [{s} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            triad,
            near::triad,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                ahead!("f"),
                ahead!("s"),
                ahead!(owned "t"),
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{s} + "), "]";
                    concat!("vfmadd213pd ", $r, "0, ", $r, "15, [{f} + "), "]";
                    "vmovupd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
        far_kernel!(
            nt_triad,
            near::nt_triad,
            concat!("vbroadcastsd ", $r, "15, xmm15"),
            concat!(
                ahead!("f"),
                ahead!("s"),
                unrolled!($offsets [
                    concat!("vmovupd ", $r, "0, [{s} + "), "]";
                    concat!("vfmadd213pd ", $r, "0, ", $r, "15, [{f} + "), "]";
                    "vmovntpd [{t} + ", concat!("], ", $r, "0")
                ]),
                advance!(64 t f s)
            ),
            "vzeroupper"
        );
    };
}

/// 64 bytes at a time.
mod avx512 {
    three_operands!(avx512, "zmm", [0 4096 8192 12288 16384 20480 24576 28672]);
}

/// 32 bytes at a time.
mod avx2 {
    three_operands!(avx2, "ymm", [
        0 32 4096 4128 8192 8224 12288 12320 16384 16416 20480 20512 24576 24608 28672 28704
    ]);
}

mod sse2;
