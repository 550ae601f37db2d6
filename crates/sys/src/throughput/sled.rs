//! A chain of dependent scalar instructions beside a loop: a row of them, entered so late that exactly
//! as many are left as are wanted.

use super::frame::{Chains, Frame};
use super::{Links, arch};
use crate::core_clock::Chain;

/// Additions that a row holds.
const MOST_ADDITIONS: u64 = 512;
/// Multiplications and loads likewise.
const MOST_OTHERS: u64 = 192;
/// Where each row ends, from the beginning of the first on. An instruction stands behind each to jump back.
const ADDITIONS_END: u64 = arch::ADDITION_BYTES * MOST_ADDITIONS;
const MULTIPLICATIONS_END: u64 =
    ADDITIONS_END + arch::JUMP_BYTES + arch::MULTIPLICATION_BYTES * MOST_OTHERS;
const LOADS_END: u64 = MULTIPLICATIONS_END + arch::JUMP_BYTES + arch::LOAD_BYTES * MOST_OTHERS;

/// The most links per iteration.
pub(crate) const fn most_links(chain: Chain) -> u64 {
    match chain {
        Chain::Add => MOST_ADDITIONS,
        Chain::Multiply | Chain::Load => MOST_OTHERS,
    }
}

/// A chain beside a loop, as the assembly wants it.
pub(super) struct Sled {
    /// The chain's value, before and after.
    pub(super) value: u64,
    /// What each link adds or multiplies by.
    pub(super) operand: u64,
    pub(super) iterations: u64,
    /// Where the loop jumps into a row.
    pub(super) entry: u64,
}

impl Sled {
    /// The chain `links`, cut to what there is room for.
    pub(super) fn new(links: Links, iterations: u64) -> Self {
        let count = links.count.min(most_links(links.chain));
        let offset = match links.chain {
            Chain::Add => ADDITIONS_END - arch::ADDITION_BYTES * count,
            Chain::Multiply => MULTIPLICATIONS_END - arch::MULTIPLICATION_BYTES * count,
            Chain::Load => LOADS_END - arch::LOAD_BYTES * count,
        };
        let entry = arch::rows as *const () as u64 + offset;
        Self { value: links.start, operand: links.chain.operand(), iterations, entry }
    }
}

/// Both loops of a kind of step.
///
/// # Safety
/// The CPU must have what the kernel needs, and the loops more than 0 iterations.
pub(super) struct Loops {
    /// Runs so many iterations from a frame, and leaves its chains.
    pub(super) plain: unsafe fn(&Frame, &mut Chains, u64),
    /// The same with the chain that the sled describes; leaves its end there.
    pub(super) chained: unsafe fn(&Frame, &mut Chains, &mut Sled),
}
