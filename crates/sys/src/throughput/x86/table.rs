//! Which loop belongs to which kernel, and the scalar loop.

use std::arch::asm;

use super::super::Operation::{Add, MultiplyAdd};
use super::super::frame::{Chains, Frame, SCALAR_CHAINS, STRIDE_BYTES};
use super::super::{Form, Kernel, Level, Number};
use super::Sled;

fn first_word(register: &[u8; STRIDE_BYTES]) -> u64 {
    let (words, _) = register.as_chunks::<8>();
    u64::from_ne_bytes(words[0])
}

fn keep(end: &mut Chains, chains: &[u64; SCALAR_CHAINS]) {
    for (register, value) in end.0.iter_mut().zip(chains) {
        register[..8].copy_from_slice(&value.to_ne_bytes());
    }
}

/// The scalar loop: an iteration takes each of five chains through eight steps.
macro_rules! scalar_asm {
    (
        $add:literal, [$($before:expr)?], [$($within:expr),*], $frame:ident, $end:ident,
        $($operand:tt)*
    ) => {
        let mut c: [u64; SCALAR_CHAINS] =
            std::array::from_fn(|at| first_word(&$frame.chains.0[at]));
        // SAFETY: all registers are named; jump and loads as in the vector loops.
        unsafe {
            asm!(
                $($before,)?
                ".p2align 6",
                "2:",
                ".rept 8",
                concat!("imul {c0}, {a}\n", $add, " {c0}, {b}"),
                concat!("imul {c1}, {a}\n", $add, " {c1}, {b}"),
                concat!("imul {c2}, {a}\n", $add, " {c2}, {b}"),
                concat!("imul {c3}, {a}\n", $add, " {c3}, {b}"),
                concat!("imul {c4}, {a}\n", $add, " {c4}, {b}"),
                ".endr",
                $($within,)*
                "dec {n}",
                "jnz 2b",
                c0 = inout(reg) c[0], c1 = inout(reg) c[1], c2 = inout(reg) c[2],
                c3 = inout(reg) c[3], c4 = inout(reg) c[4],
                a = in(reg) first_word(&$frame.constants[0]),
                b = in(reg) first_word(&$frame.constants[1]),
                $($operand)*
            );
        }
        keep($end, &c);
    };
}

/// Both scalar loops.
macro_rules! scalar_loops {
    ($add:literal) => {{
        /// `iterations` is above 0.
        unsafe fn plain(frame: &Frame, end: &mut Chains, iterations: u64) {
            scalar_asm!(
                $add, [], [], frame, end,
                n = inout(reg) iterations => _,
                options(nostack, nomem),
            );
        }

        /// `sled.iterations` is above 0.
        unsafe fn chained(frame: &Frame, end: &mut Chains, sled: &mut Sled) {
            scalar_asm!(
                $add, ["lea r9, [rip + 5f]"], ["jmp {t}", "5:"], frame, end,
                n = inout(reg) sled.iterations => _,
                t = in(reg) sled.entry,
                out("r9") _,
                inout("r10") sled.value,
                in("r11") sled.operand,
                options(nostack, readonly),
            );
        }

        Loops { plain, chained }
    }};
}

/// Both loops of a kind of step.
struct Loops {
    plain: unsafe fn(&Frame, &mut Chains, u64),
    chained: unsafe fn(&Frame, &mut Chains, &mut Sled),
}

/// The loops of a form: the operations of its work, then those that count the ports.
macro_rules! by_form {
    ($form:ident, $work:expr, $port_count:expr) => {
        match $form {
            Form::Work => $work,
            Form::PortCount => $port_count,
        }
    };
}

/// One instruction for each step: `op x, multiplier, summand`, where x is an operand as well.
macro_rules! with_both {
    ($vector:literal, $op:literal) => {
        loops!(($vector, "vmovups", "vzeroupper"), 12, "4", concat!($op, " \\v\\c, \\v\\a, \\v\\b"))
    };
}

/// Fused; only the product to count the ports.
macro_rules! fused {
    ($form:ident, $vector:literal, $fused:literal, $multiply:literal) => {
        by_form!(
            $form,
            with_both!($vector, $fused),
            loops!(
                ($vector, "vmovups", "vzeroupper"),
                12,
                "4",
                concat!($multiply, " \\v\\c, \\v\\c, \\v\\a")
            )
        )
    };
}

/// `op x, x, summand`; the other one to count the ports.
macro_rules! sums {
    (@ $vector:literal, $op:literal) => {
        loops!(
            ($vector, "vmovups", "vzeroupper"), 12, "4",
            concat!($op, " \\v\\c, \\v\\c, \\v\\b")
        )
    };
    ($form:ident, $vector:literal, $add:literal, $subtract:literal) => {
        by_form!($form, sums!(@ $vector, $add), sums!(@ $vector, $subtract))
    };
}

/// `multiply x, x, multiplier`, then `add x, x, summand`, with so many chains.
macro_rules! products {
    (@ $vector:literal, $count:tt, $multiply:literal, $add:literal) => {
        loops!(
            ($vector, "vmovups", "vzeroupper"), $count, "1",
            concat!($multiply, " \\v\\c, \\v\\c, \\v\\a\n", $add, " \\v\\c, \\v\\c, \\v\\b")
        )
    };
    ($form:ident, $vector:literal, $count:tt, $multiply:literal, $add:literal, $subtract:literal) => {
        by_form!(
            $form,
            products!(@ $vector, $count, $multiply, $add),
            products!(@ $vector, $count, $multiply, $subtract)
        )
    };
}

/// SSE: the first operand is the result. `op x, summand`.
macro_rules! sse_sums {
    (@ $op:literal) => {
        loops!(("xmm", "movups", ""), 12, "4", concat!($op, " xmm\\c, xmm\\b"))
    };
    ($form:ident, $add:literal, $subtract:literal) => {
        by_form!($form, sse_sums!(@ $add), sse_sums!(@ $subtract))
    };
}

/// `multiply x, multiplier`, then `add x, summand`.
macro_rules! sse_products {
    (@ $multiply:literal, $add:literal) => {
        loops!(
            ("xmm", "movups", ""), 12, "1",
            concat!($multiply, " xmm\\c, xmm\\a\n", $add, " xmm\\c, xmm\\b")
        )
    };
    ($form:ident, $multiply:literal, $add:literal, $subtract:literal) => {
        by_form!($form, sse_products!(@ $multiply, $add), sse_products!(@ $multiply, $subtract))
    };
}

fn loops(kernel: Kernel, form: Form) -> Option<Loops> {
    use Level::{Avx2, Avx512, Avx512Vnni, AvxVnni, Scalar, Sse2};
    use Number::{F32, F64, I8, I32, I64};
    Some(match (kernel.level, kernel.number, kernel.operation) {
        (Sse2, F32, MultiplyAdd) => sse_products!(form, "mulps", "addps", "subps"),
        (Sse2, F32, Add) => sse_sums!(form, "addps", "subps"),
        (Sse2, F64, MultiplyAdd) => sse_products!(form, "mulpd", "addpd", "subpd"),
        (Sse2, F64, Add) => sse_sums!(form, "addpd", "subpd"),
        (Sse2, I32, MultiplyAdd) => sse_products!(form, "pmulld", "paddd", "psubd"),
        (Sse2, I32, Add) => sse_sums!(form, "paddd", "psubd"),
        (Sse2, I64, Add) => sse_sums!(form, "paddq", "psubq"),
        (Avx2, F32, MultiplyAdd) => fused!(form, "ymm", "vfmadd213ps", "vmulps"),
        (Avx2, F32, Add) => sums!(form, "ymm", "vaddps", "vsubps"),
        (Avx2, F64, MultiplyAdd) => fused!(form, "ymm", "vfmadd213pd", "vmulpd"),
        (Avx2, F64, Add) => sums!(form, "ymm", "vaddpd", "vsubpd"),
        (Avx2, I32, MultiplyAdd) => products!(form, "ymm", 12, "vpmulld", "vpaddd", "vpsubd"),
        (Avx2, I32, Add) => sums!(form, "ymm", "vpaddd", "vpsubd"),
        (Avx2, I64, Add) => sums!(form, "ymm", "vpaddq", "vpsubq"),
        (AvxVnni, I8, MultiplyAdd) => by_form!(
            form,
            with_both!("ymm", "{{vex}} vpdpbusd"),
            with_both!("ymm", "{{vex}} vpdpwssd")
        ),
        (Avx512, F32, MultiplyAdd) => fused!(form, "zmm", "vfmadd213ps", "vmulps"),
        (Avx512, F32, Add) => sums!(form, "zmm", "vaddps", "vsubps"),
        (Avx512, F64, MultiplyAdd) => fused!(form, "zmm", "vfmadd213pd", "vmulpd"),
        (Avx512, F64, Add) => sums!(form, "zmm", "vaddpd", "vsubpd"),
        (Avx512, I32, MultiplyAdd) => products!(form, "zmm", 24, "vpmulld", "vpaddd", "vpsubd"),
        (Avx512, I32, Add) => sums!(form, "zmm", "vpaddd", "vpsubd"),
        (Avx512, I64, MultiplyAdd) => products!(form, "zmm", 24, "vpmullq", "vpaddq", "vpsubq"),
        (Avx512, I64, Add) => sums!(form, "zmm", "vpaddq", "vpsubq"),
        (Avx512Vnni, I8, MultiplyAdd) => {
            by_form!(form, with_both!("zmm", "vpdpbusd"), with_both!("zmm", "vpdpwssd"))
        }
        (Scalar, I64, MultiplyAdd) => by_form!(form, scalar_loops!("add"), scalar_loops!("sub")),
        _ => return None,
    })
}

/// Runs `iterations` iterations from `frame`, and leaves the chains in `end`.
///
/// # Safety
/// The CPU must have what the kernel needs. `iterations` is above 0.
pub(in super::super) unsafe fn plain(
    kernel: Kernel,
    form: Form,
    frame: &Frame,
    end: &mut Chains,
    iterations: u64,
) {
    if let Some(loops) = loops(kernel, form) {
        // SAFETY: the caller keeps what `plain` asks for.
        unsafe { (loops.plain)(frame, end, iterations) }
    }
}

/// As [`plain`], with the chain that `sled` describes; leaves its end there.
///
/// # Safety
/// The CPU must have what the kernel needs, and the sled more than 0 iterations.
pub(in super::super) unsafe fn chained(
    kernel: Kernel,
    form: Form,
    frame: &Frame,
    end: &mut Chains,
    sled: &mut Sled,
) {
    if let Some(loops) = loops(kernel, form) {
        // SAFETY: the caller keeps what `chained` asks for.
        unsafe { (loops.chained)(frame, end, sled) }
    }
}
