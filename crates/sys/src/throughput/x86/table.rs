//! Which loop belongs to which kernel, and the scalar loop.

use std::arch::asm;

use super::super::Operation::{Add, MultiplyAdd};
use super::super::frame::{Chains, Frame, SCALAR_CHAINS, STRIDE_BYTES};
use super::super::sled::{Loops, Sled};
use super::super::{Form, Kernel, Level, Number};

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

/// The loops of a form: the step of its work, then that which counts the ports. So many chains and
/// pairs of steps are in an iteration; `sse` or a vector that VEX and EVEX know says with which registers.
macro_rules! by_form {
    ($form:ident, sse, $($rest:tt)*) => {
        by_form!(@ $form, ("xmm", "movups", ""), $($rest)*)
    };
    ($form:ident, $vector:literal, $($rest:tt)*) => {
        by_form!(@ $form, ($vector, "vmovups", "vzeroupper"), $($rest)*)
    };
    (@ $form:ident, $registers:tt, $count:tt, $pairs:literal, $work:expr, $port_count:expr) => {
        match $form {
            Form::Work => loops!($registers, $count, $pairs, $work),
            Form::PortCount => loops!($registers, $count, $pairs, $port_count),
        }
    };
}

/// An instruction that makes x out of x and another operand. SSE has the result in the first of two.
macro_rules! op {
    (sse, $op:literal, $operand:literal) => {
        concat!($op, " xmm\\c, xmm\\", $operand)
    };
    ($vector:literal, $op:literal, $operand:literal) => {
        concat!($op, " \\v\\c, \\v\\c, \\v\\", $operand)
    };
}

/// `op x, multiplier, summand`, where x is an operand as well.
macro_rules! op_with_both {
    ($op:literal) => {
        concat!($op, " \\v\\c, \\v\\a, \\v\\b")
    };
}

/// Fused; only the product to count the ports.
macro_rules! fused {
    ($form:ident, $vector:literal, $fused:literal, $multiply:literal) => {
        by_form!($form, $vector, 12, "4", op_with_both!($fused), op!($vector, $multiply, "a"))
    };
}

/// Sums of products of short integers: of bytes, and of words to count the ports.
macro_rules! dots {
    ($form:ident, $vector:literal, $bytes:literal, $words:literal) => {
        by_form!($form, $vector, 12, "4", op_with_both!($bytes), op_with_both!($words))
    };
}

/// The summand added to x; the other operation to count the ports.
macro_rules! sums {
    ($form:ident, $vector:tt, $add:literal, $subtract:literal) => {
        by_form!($form, $vector, 12, "4", op!($vector, $add, "b"), op!($vector, $subtract, "b"))
    };
}

/// x times the multiplier, then the summand added to it, with so many chains.
macro_rules! products {
    ($form:ident, $vector:tt, $count:tt, $multiply:literal, $add:literal, $subtract:literal) => {
        by_form!(
            $form,
            $vector,
            $count,
            "1",
            concat!(op!($vector, $multiply, "a"), "\n", op!($vector, $add, "b")),
            concat!(op!($vector, $multiply, "a"), "\n", op!($vector, $subtract, "b"))
        )
    };
}

/// The loops of a kernel and form, where there are any.
pub(in super::super) fn loops(kernel: Kernel, form: Form) -> Option<Loops> {
    use Level::{Avx2, Avx512, Avx512Vnni, AvxVnni, Scalar, Sse2};
    use Number::{F32, F64, I8, I32, I64};
    Some(match (kernel.level, kernel.number, kernel.operation) {
        (Sse2, F32, MultiplyAdd) => products!(form, sse, 12, "mulps", "addps", "subps"),
        (Sse2, F32, Add) => sums!(form, sse, "addps", "subps"),
        (Sse2, F64, MultiplyAdd) => products!(form, sse, 12, "mulpd", "addpd", "subpd"),
        (Sse2, F64, Add) => sums!(form, sse, "addpd", "subpd"),
        (Sse2, I32, MultiplyAdd) => products!(form, sse, 12, "pmulld", "paddd", "psubd"),
        (Sse2, I32, Add) => sums!(form, sse, "paddd", "psubd"),
        (Sse2, I64, Add) => sums!(form, sse, "paddq", "psubq"),
        (Avx2, F32, MultiplyAdd) => fused!(form, "ymm", "vfmadd213ps", "vmulps"),
        (Avx2, F32, Add) => sums!(form, "ymm", "vaddps", "vsubps"),
        (Avx2, F64, MultiplyAdd) => fused!(form, "ymm", "vfmadd213pd", "vmulpd"),
        (Avx2, F64, Add) => sums!(form, "ymm", "vaddpd", "vsubpd"),
        (Avx2, I32, MultiplyAdd) => products!(form, "ymm", 12, "vpmulld", "vpaddd", "vpsubd"),
        (Avx2, I32, Add) => sums!(form, "ymm", "vpaddd", "vpsubd"),
        (Avx2, I64, Add) => sums!(form, "ymm", "vpaddq", "vpsubq"),
        (AvxVnni, I8, MultiplyAdd) => {
            dots!(form, "ymm", "{{vex}} vpdpbusd", "{{vex}} vpdpwssd")
        }
        (Avx512, F32, MultiplyAdd) => fused!(form, "zmm", "vfmadd213ps", "vmulps"),
        (Avx512, F32, Add) => sums!(form, "zmm", "vaddps", "vsubps"),
        (Avx512, F64, MultiplyAdd) => fused!(form, "zmm", "vfmadd213pd", "vmulpd"),
        (Avx512, F64, Add) => sums!(form, "zmm", "vaddpd", "vsubpd"),
        (Avx512, I32, MultiplyAdd) => products!(form, "zmm", 24, "vpmulld", "vpaddd", "vpsubd"),
        (Avx512, I32, Add) => sums!(form, "zmm", "vpaddd", "vpsubd"),
        (Avx512, I64, MultiplyAdd) => products!(form, "zmm", 24, "vpmullq", "vpaddq", "vpsubq"),
        (Avx512, I64, Add) => sums!(form, "zmm", "vpaddq", "vpsubq"),
        (Avx512Vnni, I8, MultiplyAdd) => dots!(form, "zmm", "vpdpbusd", "vpdpwssd"),
        (Scalar, I64, MultiplyAdd) => match form {
            Form::Work => scalar_loops!("add"),
            Form::PortCount => scalar_loops!("sub"),
        },
        _ => return None,
    })
}
