//! The loops of x86-64 in assembly: nothing that a compiler could fold, move or widen.
//!
//! Twelve chains live in registers 0 to 11, the constants in 12 to 15; of the wide loop 24 and the
//! four from 28 on. An iteration takes every chain through eight steps: long against the jumps that
//! the chained loops add to it. These do the same and jump into a row of dependent scalar
//! instructions ([`rows`]), so late that exactly as many are left as are wanted. Sources: the
//! instruction set references of Intel (volume 2) and AMD (volumes 3 and 4).

use std::arch::naked_asm;

/// Bytes of a link of each row, and of the jump behind it.
pub(super) const ADDITION_BYTES: u64 = 3;
pub(super) const MULTIPLICATION_BYTES: u64 = 4;
pub(super) const LOAD_BYTES: u64 = 3;
pub(super) const JUMP_BYTES: u64 = 3;

/// The rows of dependent instructions, which all chained loops share: additions, multiplications,
/// loads. Whoever jumps into one has the place to come back to in r9, the chain's value in r10, and
/// what each link takes in r11.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows() {
    naked_asm!(
        ".rept 512",
        "add r10, r11",
        ".endr",
        "jmp r9",
        ".rept 192",
        "imul r10d, r11d",
        ".endr",
        "jmp r9",
        ".rept 192",
        "mov r10, [r10]",
        ".endr",
        "jmp r9",
    )
}

/// Instructions for every register of a list: `\v` is their kind, `\c` the number.
macro_rules! each {
    ($vector:literal, $list:literal, $text:expr) => {
        concat!(".irp v,", $vector, "\n.irp c,", $list, "\n", $text, "\n.endr\n.endr\n")
    };
}

/// A loop over vectors, with so many chains: it loads them and the constants, takes every chain
/// through `$pairs` pairs of steps in each iteration, and stores the chains. In a step `\v` is the
/// kind of register, `\c` the chain, `\a` the multiplier and `\b` the summand.
macro_rules! vector_asm {
    (12, $($rest:tt)*) => {
        vector_asm!(
            @ "0,1,2,3,4,5,6,7,8,9,10,11", "12,13,14,15", ("12", "13") ("14", "15"), $($rest)*
        )
    };
    (24, $($rest:tt)*) => {
        vector_asm!(
            @ "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23", "28,29,30,31",
            ("28", "29") ("30", "31"), $($rest)*
        )
    };
    (
        @ $chains:literal, $constants:literal, $(($a:literal, $b:literal))+,
        ($vector:literal, $move:literal, $leave:literal), $pairs:literal, $step:expr,
        [$($before:expr)?], [$($within:expr),*], $frame:ident, $end:ident, $($operand:tt)*
    ) => {
        asm!(
            each!($vector, $chains, concat!($move, " \\v\\c, [{chains} + 64*\\c]")),
            // Constants lie in multiples of four: 12 to 15, or 28 to 31.
            each!($vector, $constants, concat!($move, " \\v\\c, [{constants} + 64*(\\c & 3)]")),
            $($before,)?
            ".p2align 6",
            "2:",
            concat!(".rept ", $pairs),
            $(each!(
                $vector, $chains,
                concat!(".irp a,", $a, "\n.irp b,", $b, "\n", $step, "\n.endr\n.endr")
            ),)+
            ".endr",
            $($within,)*
            "dec {n}",
            "jnz 2b",
            each!($vector, $chains, concat!($move, " [{end} + 64*\\c], \\v\\c")),
            $leave,
            chains = in(reg) &raw const $frame.chains,
            constants = in(reg) &raw const $frame.constants,
            end = in(reg) $end,
            $($operand)*
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            out("xmm28") _, out("xmm29") _, out("xmm30") _, out("xmm31") _,
            options(nostack),
        )
    };
}

/// Both loops of one kind of step. `$pairs` is what the chained one has in an iteration, see
/// [`super::chained_pairs`].
///
/// The loop with a row of links in it has twelve chains: of 24 it takes half of them at a time,
/// because the core does not see far enough ahead to go on beside the links.
macro_rules! loops {
    ($registers:tt, $count:tt, $pairs:literal, $step:expr) => {{
        /// The CPU must have the instructions; `iterations` is above 0.
        unsafe fn plain(frame: &Frame, end: &mut Chains, iterations: u64) {
            // SAFETY: the caller promises the instructions. Reads 64 × 24 and 64 × 4 bytes at
            // most and writes 64 × 24, which is what the types hold; the registers are named.
            unsafe {
                vector_asm!(
                    $count, $registers, "4", $step, [], [], frame, end,
                    n = inout(reg) iterations => _,
                );
            }
        }

        /// As `plain`; `sled.iterations` is above 0.
        unsafe fn chained(frame: &Frame, end: &mut Chains, sled: &mut Sled) {
            // SAFETY: as in `plain`. Loads follow the ring that the caller of `Sled::new`
            // keeps alive, or there are none. The jump lands in a row, at the start of one of its
            // instructions, because `Sled::new` cuts the count and goes back whole instructions.
            unsafe {
                vector_asm!(
                    12, $registers, $pairs, $step, ["lea r9, [rip + 5f]"], ["jmp {t}", "5:"], frame, end,
                    n = inout(reg) sled.iterations => _,
                    t = in(reg) sled.entry,
                    out("r9") _,
                    inout("r10") sled.value,
                    in("r11") sled.operand,
                );
            }
        }

        Loops { plain, chained }
    }};
}

mod lacks;
mod table;

pub(super) use lacks::{is_narrow, lacks};
pub(super) use table::loops;
