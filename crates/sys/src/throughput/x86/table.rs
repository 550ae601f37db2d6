//! Which loop belongs to which kernel, and the scalar loop.

use std::arch::asm;

use super::super::Operation::{Add, MultiplyAdd};
use super::super::frame::{Chains, Frame, SCALAR_CHAINS, STRIDE_BYTES};
use super::super::{Form, Kernel, Level, Number};
use super::Sled;

sse_product_and_sum!(sse_f32_multiply_add, "mulps", "addps");
sse_product_and_sum!(sse_f32_multiply_subtract, "mulps", "subps");
sse_product_and_sum!(sse_f64_multiply_add, "mulpd", "addpd");
sse_product_and_sum!(sse_f64_multiply_subtract, "mulpd", "subpd");
sse_product_and_sum!(sse_i32_multiply_add, "pmulld", "paddd");
sse_product_and_sum!(sse_i32_multiply_subtract, "pmulld", "psubd");
sse_sum!(sse_f32_add, "addps");
sse_sum!(sse_f32_subtract, "subps");
sse_sum!(sse_f64_add, "addpd");
sse_sum!(sse_f64_subtract, "subpd");
sse_sum!(sse_i32_add, "paddd");
sse_sum!(sse_i32_subtract, "psubd");
sse_sum!(sse_i64_add, "paddq");
sse_sum!(sse_i64_subtract, "psubq");

with_both!(avx2_f32_fused, "ymm", "vfmadd213ps");
with_multiplier!(avx2_f32_multiply, "ymm", "vmulps");
with_both!(avx2_f64_fused, "ymm", "vfmadd213pd");
with_multiplier!(avx2_f64_multiply, "ymm", "vmulpd");
with_summand!(avx2_f32_add, "ymm", "vaddps");
with_summand!(avx2_f32_subtract, "ymm", "vsubps");
with_summand!(avx2_f64_add, "ymm", "vaddpd");
with_summand!(avx2_f64_subtract, "ymm", "vsubpd");
product_and_sum!(avx2_i32_multiply_add, "ymm", "vpmulld", "vpaddd");
product_and_sum!(avx2_i32_multiply_subtract, "ymm", "vpmulld", "vpsubd");
with_summand!(avx2_i32_add, "ymm", "vpaddd");
with_summand!(avx2_i32_subtract, "ymm", "vpsubd");
with_summand!(avx2_i64_add, "ymm", "vpaddq");
with_summand!(avx2_i64_subtract, "ymm", "vpsubq");
with_both!(avx_vnni_bytes, "ymm", "{{vex}} vpdpbusd");
with_both!(avx_vnni_words, "ymm", "{{vex}} vpdpwssd");

with_both!(avx512_f32_fused, "zmm", "vfmadd213ps");
with_multiplier!(avx512_f32_multiply, "zmm", "vmulps");
with_both!(avx512_f64_fused, "zmm", "vfmadd213pd");
with_multiplier!(avx512_f64_multiply, "zmm", "vmulpd");
with_summand!(avx512_f32_add, "zmm", "vaddps");
with_summand!(avx512_f32_subtract, "zmm", "vsubps");
with_summand!(avx512_f64_add, "zmm", "vaddpd");
with_summand!(avx512_f64_subtract, "zmm", "vsubpd");
wide_product_and_sum!(avx512_i32_multiply_add, "vpmulld", "vpaddd");
wide_product_and_sum!(avx512_i32_multiply_subtract, "vpmulld", "vpsubd");
with_summand!(avx512_i32_add, "zmm", "vpaddd");
with_summand!(avx512_i32_subtract, "zmm", "vpsubd");
wide_product_and_sum!(avx512_i64_multiply_add, "vpmullq", "vpaddq");
wide_product_and_sum!(avx512_i64_multiply_subtract, "vpmullq", "vpsubq");
with_summand!(avx512_i64_add, "zmm", "vpaddq");
with_summand!(avx512_i64_subtract, "zmm", "vpsubq");
with_both!(avx512_vnni_bytes, "zmm", "vpdpbusd");
with_both!(avx512_vnni_words, "zmm", "vpdpwssd");

/// The two loops of a kernel.
struct Loops {
    plain: unsafe fn(&Frame, &mut Chains, u64),
    chained: unsafe fn(&Frame, &mut Chains, &mut Sled),
}

macro_rules! pick {
    ($name:ident) => {
        Some(Loops { plain: $name::plain, chained: $name::chained })
    };
    ($form:expr, $work:ident, $port_count:ident) => {
        match $form {
            Form::Work => pick!($work),
            Form::PortCount => pick!($port_count),
        }
    };
}

fn loops(kernel: Kernel, form: Form) -> Option<Loops> {
    use Level::{Avx2, Avx512, Avx512Vnni, AvxVnni, Scalar, Sse2};
    use Number::{F32, F64, I8, I32, I64};
    match (kernel.level, kernel.number, kernel.operation) {
        (Sse2, F32, MultiplyAdd) => pick!(form, sse_f32_multiply_add, sse_f32_multiply_subtract),
        (Sse2, F32, Add) => pick!(form, sse_f32_add, sse_f32_subtract),
        (Sse2, F64, MultiplyAdd) => pick!(form, sse_f64_multiply_add, sse_f64_multiply_subtract),
        (Sse2, F64, Add) => pick!(form, sse_f64_add, sse_f64_subtract),
        (Sse2, I32, MultiplyAdd) => pick!(form, sse_i32_multiply_add, sse_i32_multiply_subtract),
        (Sse2, I32, Add) => pick!(form, sse_i32_add, sse_i32_subtract),
        (Sse2, I64, Add) => pick!(form, sse_i64_add, sse_i64_subtract),
        (Avx2, F32, MultiplyAdd) => pick!(form, avx2_f32_fused, avx2_f32_multiply),
        (Avx2, F32, Add) => pick!(form, avx2_f32_add, avx2_f32_subtract),
        (Avx2, F64, MultiplyAdd) => pick!(form, avx2_f64_fused, avx2_f64_multiply),
        (Avx2, F64, Add) => pick!(form, avx2_f64_add, avx2_f64_subtract),
        (Avx2, I32, MultiplyAdd) => pick!(form, avx2_i32_multiply_add, avx2_i32_multiply_subtract),
        (Avx2, I32, Add) => pick!(form, avx2_i32_add, avx2_i32_subtract),
        (Avx2, I64, Add) => pick!(form, avx2_i64_add, avx2_i64_subtract),
        (AvxVnni, I8, MultiplyAdd) => pick!(form, avx_vnni_bytes, avx_vnni_words),
        (Avx512, F32, MultiplyAdd) => pick!(form, avx512_f32_fused, avx512_f32_multiply),
        (Avx512, F32, Add) => pick!(form, avx512_f32_add, avx512_f32_subtract),
        (Avx512, F64, MultiplyAdd) => pick!(form, avx512_f64_fused, avx512_f64_multiply),
        (Avx512, F64, Add) => pick!(form, avx512_f64_add, avx512_f64_subtract),
        (Avx512, I32, MultiplyAdd) => {
            pick!(form, avx512_i32_multiply_add, avx512_i32_multiply_subtract)
        }
        (Avx512, I32, Add) => pick!(form, avx512_i32_add, avx512_i32_subtract),
        (Avx512, I64, MultiplyAdd) => {
            pick!(form, avx512_i64_multiply_add, avx512_i64_multiply_subtract)
        }
        (Avx512, I64, Add) => pick!(form, avx512_i64_add, avx512_i64_subtract),
        (Avx512Vnni, I8, MultiplyAdd) => pick!(form, avx512_vnni_bytes, avx512_vnni_words),
        (Scalar, I64, MultiplyAdd) => pick!(form, scalar_multiply_add, scalar_multiply_subtract),
        _ => None,
    }
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

fn first_word(register: &[u8; STRIDE_BYTES]) -> u64 {
    let (words, _) = register.as_chunks::<8>();
    u64::from_ne_bytes(words[0])
}

/// Both scalar loops: an iteration takes each of five chains through eight steps.
macro_rules! scalar_loops {
    ($name:ident, $add:literal) => {
        mod $name {
            use super::*;

            macro_rules! step {
                ($chain:literal) => {
                    concat!("imul {", $chain, "}, {a}\n", $add, " {", $chain, "}, {b}\n")
                };
            }
            macro_rules! steps {
                () => {
                    concat!(
                        step!("c0"), step!("c1"), step!("c2"),
                        step!("c3"), step!("c4"),
                        step!("c0"), step!("c1"), step!("c2"),
                        step!("c3"), step!("c4"),
                    )
                };
            }

            /// `iterations` is above 0.
            pub(super) unsafe fn plain(frame: &Frame, end: &mut Chains, iterations: u64) {
                let mut c: [u64; SCALAR_CHAINS] =
                    std::array::from_fn(|at| first_word(&frame.chains.0[at]));
                // SAFETY: registers only, all of them named.
                unsafe {
                    asm!(
                        ".p2align 6",
                        "2:",
                        ".rept 4",
                        steps!(),
                        ".endr",
                        "dec {n}",
                        "jnz 2b",
                        c0 = inout(reg) c[0], c1 = inout(reg) c[1], c2 = inout(reg) c[2],
                        c3 = inout(reg) c[3], c4 = inout(reg) c[4],
                        a = in(reg) first_word(&frame.constants[0]),
                        b = in(reg) first_word(&frame.constants[1]),
                        n = inout(reg) iterations => _,
                        options(nostack, nomem),
                    );
                }
                keep(end, &c);
            }

            /// `sled.iterations` is above 0 and its tail fits into the row.
            pub(super) unsafe fn chained(frame: &Frame, end: &mut Chains, sled: &mut Sled) {
                let mut c: [u64; SCALAR_CHAINS] =
                    std::array::from_fn(|at| first_word(&frame.chains.0[at]));
                // SAFETY: all registers are named; jump and loads as in the vector loops.
                unsafe {
                    asm!(
                        aim!(),
                        ".p2align 6",
                        "2:",
                        ".rept 4",
                        steps!(),
                        ".endr",
                        sled!(),
                        "dec {n}",
                        "jnz 2b",
                        c0 = inout(reg) c[0], c1 = inout(reg) c[1], c2 = inout(reg) c[2],
                        c3 = inout(reg) c[3], c4 = inout(reg) c[4],
                        a = in(reg) first_word(&frame.constants[0]),
                        b = in(reg) first_word(&frame.constants[1]),
                        n = inout(reg) sled.iterations => _,
                        t = inout(reg) sled.row => _,
                        u = in(reg) sled.tail_bytes,
                        inout("r10") sled.value,
                        in("r11") sled.operand,
                        options(nostack, readonly),
                    );
                }
                keep(end, &c);
            }
        }
    };
}

fn keep(end: &mut Chains, chains: &[u64; SCALAR_CHAINS]) {
    for (register, value) in end.0.iter_mut().zip(chains) {
        register[..8].copy_from_slice(&value.to_ne_bytes());
    }
}

scalar_loops!(scalar_multiply_add, "add");
scalar_loops!(scalar_multiply_subtract, "sub");
