//! The loops of aarch64 in assembly: nothing that a compiler could fold, move or widen.
//!
//! 24 chains live in vector registers 0 to 23, the constants in 28 to 31. An iteration takes every chain
//! through eight steps. The loop with a row of links in it has twelve chains, see `x86.rs`. Source: Arm
//! Architecture Reference Manual for A-profile, C7.

use std::arch::{asm, naked_asm};

use super::Number::{F32, F64, I32, I64};
use super::Operation::{Add, MultiplyAdd};
use super::frame::{Chains, Frame, SCALAR_CHAINS, STRIDE_BYTES};
use super::sled::{Loops, Sled};
use super::{Form, Kernel, Level};

/// Bytes of a link of each row, and of the jump behind it.
pub(super) const ADDITION_BYTES: u64 = 4;
pub(super) const MULTIPLICATION_BYTES: u64 = 4;
pub(super) const LOAD_BYTES: u64 = 4;
pub(super) const JUMP_BYTES: u64 = 4;

/// The rows of dependent instructions, which all chained loops share: additions, multiplications,
/// loads. Whoever jumps into one has the place to come back to in x9, the chain's value in x10, and
/// what each link takes in x11.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows() {
    naked_asm!(
        ".rept 512",
        "add x10, x10, x11",
        ".endr",
        "br x9",
        ".rept 192",
        "mul w10, w10, w11",
        ".endr",
        "br x9",
        ".rept 192",
        "ldr x10, [x10]",
        ".endr",
        "br x9",
    )
}

/// A step of each chain: `x`, the chain, is made by an instruction out of two operands, `x` again or the
/// multiplier `a` or summand `b`, whose registers are given.
macro_rules! step {
    (($op:literal, $x:tt, $y:tt, $kind:literal), $a:literal, $b:literal, [$($c:literal)*]) => {
        concat!($(
            $op, " v", $c, ".", $kind, ", v", step!(@ $x, $c, $a, $b), ".", $kind, ", v",
            step!(@ $y, $c, $a, $b), ".", $kind, "\n",
        )*)
    };
    (@ x, $c:literal, $a:literal, $b:literal) => {
        $c
    };
    (@ a, $c:literal, $a:literal, $b:literal) => {
        $a
    };
    (@ b, $c:literal, $a:literal, $b:literal) => {
        $b
    };
}

/// A loop over vectors with these chains, four pairs of steps to an iteration.
macro_rules! vector_asm {
    (
        $step:tt, [$($c:literal)*], [$($before:expr)?], [$($within:expr),*], $frame:ident,
        $end:ident, $($operand:tt)*
    ) => {
        asm!(
            concat!($("ldr q", $c, ", [{chains}, #(64*", $c, ")]\n"),*),
            "ldr q28, [{constants}]",
            "ldr q29, [{constants}, #64]",
            "ldr q30, [{constants}, #128]",
            "ldr q31, [{constants}, #192]",
            $($before,)?
            ".p2align 6",
            "2:",
            ".rept 4",
            step!($step, 28, 29, [$($c)*]),
            step!($step, 30, 31, [$($c)*]),
            ".endr",
            $($within,)*
            "subs {n}, {n}, #1",
            "b.ne 2b",
            concat!($("str q", $c, ", [{end}, #(64*", $c, ")]\n"),*),
            chains = in(reg) &raw const $frame.chains,
            constants = in(reg) &raw const $frame.constants,
            end = in(reg) $end,
            $($operand)*
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _,
            out("v6") _, out("v7") _, out("v8") _, out("v9") _, out("v10") _, out("v11") _,
            out("v12") _, out("v13") _, out("v14") _, out("v15") _, out("v16") _, out("v17") _,
            out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            out("v28") _, out("v29") _, out("v30") _, out("v31") _,
            options(nostack),
        )
    };
}

/// Both loops of one kind of step.
macro_rules! loops {
    ($step:tt) => {{
        /// `iterations` is above 0.
        unsafe fn plain(frame: &Frame, end: &mut Chains, iterations: u64) {
            // SAFETY: each CPU has the instructions. Reads 64 × 24 and 64 × 4 bytes and writes 64 × 24,
            // which is what the types hold; the registers are named.
            unsafe {
                vector_asm!(
                    $step, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23], [], [],
                    frame, end,
                    n = inout(reg) iterations => _,
                );
            }
        }

        /// As `plain`; `sled.iterations` is above 0.
        unsafe fn chained(frame: &Frame, end: &mut Chains, sled: &mut Sled) {
            // SAFETY: as in `plain`. Loads follow the ring that the caller of `Sled::new` keeps alive, or
            // there are none. The jump lands in a row, at the start of one of its instructions.
            unsafe {
                vector_asm!(
                    $step, [0 1 2 3 4 5 6 7 8 9 10 11], ["adr x9, 5f"], ["br {t}", "5:"], frame, end,
                    n = inout(reg) sled.iterations => _,
                    t = in(reg) sled.entry,
                    out("x9") _,
                    inout("x10") sled.value,
                    in("x11") sled.operand,
                );
            }
        }

        Loops { plain, chained }
    }};
}

fn first_word(register: &[u8; STRIDE_BYTES]) -> u64 {
    let (words, _) = register.as_chunks::<8>();
    u64::from_ne_bytes(words[0])
}

/// The scalar loop: an iteration takes each of five chains through eight steps.
macro_rules! scalar_asm {
    (
        $summand:literal, [$($before:expr)?], [$($within:expr),*], $frame:ident, $end:ident,
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
                concat!("madd {c0}, {c0}, {a}, ", $summand),
                concat!("madd {c1}, {c1}, {a}, ", $summand),
                concat!("madd {c2}, {c2}, {a}, ", $summand),
                concat!("madd {c3}, {c3}, {a}, ", $summand),
                concat!("madd {c4}, {c4}, {a}, ", $summand),
                ".endr",
                $($within,)*
                "subs {n}, {n}, #1",
                "b.ne 2b",
                "/* {b} */",
                c0 = inout(reg) c[0], c1 = inout(reg) c[1], c2 = inout(reg) c[2],
                c3 = inout(reg) c[3], c4 = inout(reg) c[4],
                a = in(reg) first_word(&$frame.constants[0]),
                b = in(reg) first_word(&$frame.constants[1]),
                $($operand)*
            );
        }
        for (register, value) in $end.0.iter_mut().zip(c) {
            register[..8].copy_from_slice(&value.to_ne_bytes());
        }
    };
}

/// Both scalar loops.
macro_rules! scalar_loops {
    ($summand:literal) => {{
        /// `iterations` is above 0.
        unsafe fn plain(frame: &Frame, end: &mut Chains, iterations: u64) {
            scalar_asm!(
                $summand, [], [], frame, end,
                n = inout(reg) iterations => _,
                options(nostack, nomem),
            );
        }

        /// `sled.iterations` is above 0.
        unsafe fn chained(frame: &Frame, end: &mut Chains, sled: &mut Sled) {
            scalar_asm!(
                $summand, ["adr x9, 5f"], ["br {t}", "5:"], frame, end,
                n = inout(reg) sled.iterations => _,
                t = in(reg) sled.entry,
                out("x9") _,
                inout("x10") sled.value,
                in("x11") sled.operand,
                options(nostack, readonly),
            );
        }

        Loops { plain, chained }
    }};
}

/// The loops of a form: the step of its work, or the one that counts the ports.
macro_rules! by_form {
    ($form:ident, $work:tt, $port_count:tt) => {
        match $form {
            Form::Work => loops!($work),
            Form::PortCount => loops!($port_count),
        }
    };
}

/// The loops of a kernel and form, where there are any.
pub(super) fn loops(kernel: Kernel, form: Form) -> Option<Loops> {
    use Level::{Neon, Scalar};
    Some(match (kernel.level, kernel.number, kernel.operation) {
        (Neon, F32, MultiplyAdd) => by_form!(form, ("fmla", a, b, "4s"), ("fmul", x, a, "4s")),
        (Neon, F32, Add) => by_form!(form, ("fadd", x, b, "4s"), ("fsub", x, b, "4s")),
        (Neon, F64, MultiplyAdd) => by_form!(form, ("fmla", a, b, "2d"), ("fmul", x, a, "2d")),
        (Neon, F64, Add) => by_form!(form, ("fadd", x, b, "2d"), ("fsub", x, b, "2d")),
        (Neon, I32, MultiplyAdd) => by_form!(form, ("mla", a, b, "4s"), ("mul", x, a, "4s")),
        (Neon, I32, Add) => by_form!(form, ("add", x, b, "4s"), ("sub", x, b, "4s")),
        (Neon, I64, Add) => by_form!(form, ("add", x, b, "2d"), ("sub", x, b, "2d")),
        (Scalar, I64, MultiplyAdd) => match form {
            Form::Work => scalar_loops!("{b}"),
            Form::PortCount => scalar_loops!("xzr"),
        },
        _ => return None,
    })
}
