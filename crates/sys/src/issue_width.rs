//! How many instructions a core begins per cycle, for a moment: whether anybody else uses it.
//!
//! Two hardware threads of a core take turns to bring instructions in. A stretch of instructions that
//! do nothing is limited by that alone: no port executes them. While a busy sibling contends, their
//! number per cycle falls to about a half, at once, whatever the sibling does; a chain of
//! additions, one per cycle, is hardly touched, and tells the cycles. So no counter of the CPU is
//! needed, and no word of the hypervisor. Not here: how many there are on a core of one's own.

use crate::core_clock;
use crate::core_clock::Chain;

/// Instructions of one measurement: 3 µs at six per cycle, 1.3 at twelve (which an AMD EPYC, family 25,
/// model 17, begins of these). Half as many were too few there: reading the clock, and what other work had
/// left, made them 11.0 to 11.4 in four of ten probes on a core of one's own, which passed for contention
/// (2026-11-29).
const INSTRUCTIONS: u64 = 600 * INSTRUCTIONS_PER_TURN;
/// Turns before that, which bring the loop and the clock back into the caches that other work has
/// taken.
const WARM_UP_TURNS: u64 = 4;
/// Links of the chain that tells the cycles: some 2 µs.
const LINKS: u64 = 5 << 10;
/// Instructions of one turn: 96 that do nothing, and the two that count the turns, which recent cores take
/// as one.
const INSTRUCTIONS_PER_TURN: u64 = 97;

/// Instructions per cycle that the core of this thread begins; `None` on a kind of CPU that has no such
/// code yet. A chain that was interrupted tells too many.
///
/// Cost: 3 to 5 µs, in which the clock is read six times. Source of the idea: two threads of a core
/// share its allocation, cycle by cycle (Intel 64 and IA-32 Architectures Optimization Reference
/// Manual, "Hyper-Threading"; for AMD the Software Optimization Guides, "Resource Sharing").
pub fn measure() -> Option<f64> {
    do_nothing(WARM_UP_TURNS)?;
    let (elapsed_ns, _) = do_nothing(INSTRUCTIONS / INSTRUCTIONS_PER_TURN)?;
    let chain = core_clock::alone(Chain::Add, LINKS);
    Some(INSTRUCTIONS as f64 / elapsed_ns.max(1) as f64 * chain.ns_per_link())
}

/// Runs turns of instructions that do nothing; nanoseconds, and where they lie.
#[cfg(target_arch = "x86_64")]
fn do_nothing(turns: u64) -> Option<(u64, usize)> {
    use crate::clock;
    use std::arch::asm;

    let start_ns = clock::monotonic_ns();
    let place: usize;
    // SAFETY: the only registers that change are named. The instructions are of four bytes, so that they
    // lie in the cache of decoded instructions wherever there is one (of one byte there would be
    // too many in a line of it), and begin with a line: at 8 of 64 places a turn took one cycle more.
    unsafe {
        asm!(
            "lea {place}, [rip + 2f]", ".p2align 6", "2:", ".rept 96", ".byte 0x0f, 0x1f, 0x40, 0x00", ".endr", "dec {n}", "jnz 2b",
            n = inout(reg) turns.max(1) => _,
            place = out(reg) place,
            options(nostack, nomem),
        );
    }
    Some((clock::monotonic_ns().saturating_sub(start_ns), place))
}

/// See the other one: no code for this kind of CPU yet.
#[cfg(not(target_arch = "x86_64"))]
fn do_nothing(_turns: u64) -> Option<(u64, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_cycles_are_measured() {
        let Some(issued) = measure() else { return eprintln!("skipped: no code for this CPU") };
        assert!(issued > 0.0 && issued.is_finite());
    }

    #[test]
    fn the_loop_that_does_nothing_begins_with_a_line_of_the_cache() {
        let Some((_, place)) = do_nothing(1) else {
            return eprintln!("skipped: no code for this CPU");
        };
        assert_eq!(place % 64, 0);
    }
}
