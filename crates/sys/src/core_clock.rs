//! The clock of a core, from chains of dependent instructions whose length in cycles is known.
//!
//! An addition of two registers takes one cycle on every core of x86-64 and aarch64, a multiplication of
//! two 32-bit registers three on x86-64 (Fog, "Instruction tables"; uops.info), two or three on aarch64
//! (Arm's software optimization guides of the Neoverse and Cortex cores); each waits for the one before.
//! Adding a constant would not do: recent cores fold that away before it is executed. A load from
//! the first cache takes four cycles or five, which the chain alone tells, beside additions. A
//! chain runs beside the work of a [`Workload`] in the same loop, and is the longer one of the
//! two: then the time of an iteration is that of the links, at the clock that the work leaves.
//! Loads serve best there: no arithmetic waits for their ports. Not here: how many links are
//! enough, and whether two kinds of chain agree.

use crate::clock;
use crate::throughput::{self, Links, Workload};

/// Which instruction the chain is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chain {
    /// Addition of two registers.
    Add,
    /// Multiplication of two 32-bit registers.
    Multiply,
    /// Load of an address from the place that the last one told.
    Load,
}

impl Chain {
    /// Cycles from one link to the next; `None` where that is not the same on all cores.
    pub const fn cycles_per_link(self) -> Option<u64> {
        match self {
            Self::Add => Some(1),
            Self::Multiply if cfg!(target_arch = "x86_64") => Some(3),
            Self::Multiply | Self::Load => None,
        }
    }

    /// What each link adds or multiplies by; odd, so that no product ever becomes zero.
    pub(crate) const fn operand(self) -> u64 {
        match self {
            Self::Add => 0x9e37_79b9_7f4a_7c15,
            Self::Multiply | Self::Load => 0x9e37_79b1,
        }
    }

    /// The most links that one iteration has room for.
    pub const fn most_links(self) -> u64 {
        throughput::most_links(self)
    }

    const fn start(self) -> u64 {
        match self {
            Self::Add | Self::Multiply => 0x2545_f491_4f6c_dd1d,
            Self::Load => 0,
        }
    }

    /// The value after `links` links from the start.
    fn value(self, links: u64) -> u64 {
        match self {
            Self::Add => self.start().wrapping_add(self.operand().wrapping_mul(links)),
            Self::Multiply => {
                let (mut power, mut square, mut left) = (1_u32, self.operand() as u32, links);
                while left > 0 {
                    if left & 1 == 1 {
                        power = power.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    left >>= 1;
                }
                u64::from((self.start() as u32).wrapping_mul(power))
            }
            Self::Load => links % Ring::PLACES as u64,
        }
    }
}

/// Words that each hold the address of the next one, the last that of the first. They keep to two
/// lines, so that all loads are served by the first cache. They lie on the stack of whoever reads a
/// clock: an allocation is part of the time that is read, and threads that share an arena of the
/// allocator, as they do where addresses are limited, wait for each other in it.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Ring([u64; Ring::PLACES]);

impl Ring {
    /// A prime, so that a number of links that is wrong by a round figure ends elsewhere.
    const PLACES: usize = 13;

    /// Writes the addresses, which hold as long as it is not moved.
    pub(crate) fn link(&mut self) {
        for place in 0..Self::PLACES {
            self.0[place] = self.address(place as u64 + 1);
        }
    }

    /// The address of a place, counted round the ring.
    pub(crate) fn address(&self, place: u64) -> u64 {
        (&raw const self.0[place as usize % Self::PLACES]).expose_provenance() as u64
    }

    /// The place at an address; one that does not exist for an address outside.
    pub(crate) fn place(&self, address: u64) -> u64 {
        (0..Self::PLACES as u64).find(|&place| self.address(place) == address).unwrap_or(u64::MAX)
    }
}

/// A stretch of time in which a chain ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Links of the chain.
    pub links: u64,
    /// Its time.
    pub elapsed_ns: u64,
    /// Whether chain and work gave the right results.
    pub is_right: bool,
}

impl Stretch {
    /// Nanoseconds from one link to the next.
    pub fn ns_per_link(&self) -> f64 {
        self.elapsed_ns as f64 / self.links.max(1) as f64
    }
}

/// Runs `passes` passes of `workload` with `links_per_iteration` links, at most
/// [`Chain::most_links`], in each iteration of its loop ([`Workload::turns_per_pass`]); a workload
/// with [`Workload::fixed_links`] has as many as it must.
///
/// Cost: the clock is read twice, and a ring of addresses is made on the stack.
pub fn beside(workload: &Workload, chain: Chain, links_per_iteration: u64, passes: u64) -> Stretch {
    let count = links_per_iteration.min(chain.most_links());
    let count = workload.fixed_links(chain).unwrap_or(count);
    let links = Links { chain, count, start: chain.start() };
    let start_ns = clock::monotonic_ns();
    let (checked, end) = workload.run_chained(passes, links);
    let elapsed_ns = clock::monotonic_ns().saturating_sub(start_ns);
    let total = passes * workload.turns_per_pass() * count;
    let is_right = checked.is_right && end == chain.value(total);
    Stretch { links: total, elapsed_ns, is_right }
}

/// One link, and the end of a loop.
#[cfg(target_arch = "x86_64")]
macro_rules! text {
    (add) => {
        "add {x}, {y}"
    };
    (multiply) => {
        "imul {x:e}, {y:e}"
    };
    (load) => {
        "mov {x}, [{x}]"
    };
    (again) => {
        "dec {n}\njnz 2b"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! text {
    (add) => {
        "add {x}, {x}, {y}"
    };
    (multiply) => {
        "mul {x:w}, {x:w}, {y:w}"
    };
    (load) => {
        "ldr {x}, [{x}]"
    };
    (again) => {
        "subs {n}, {n}, #1\nb.ne 2b"
    };
}

/// A loop of 64 links.
macro_rules! repeated {
    ($link:ident, $value:ident, $turns:ident, $($operand:tt)*) => {
        std::arch::asm!(
            "2:", ".rept 64", text!($link), ".endr", text!(again),
            x = inout(reg) $value, n = inout(reg) $turns => _, $($operand)*
        )
    };
}
/// Runs a chain of at least `links` links and nothing beside it.
///
/// Cost: the clock is read twice.
pub fn alone(chain: Chain, links: u64) -> Stretch {
    /// Links of one iteration.
    const UNROLLED: u64 = 64;
    let turns = links.div_ceil(UNROLLED).max(1);
    let (mut ring, operand) = (Ring::default(), chain.operand());
    ring.link();
    let mut value = if chain == Chain::Load { ring.address(chain.start()) } else { chain.start() };
    let start_ns = clock::monotonic_ns();
    // SAFETY: all registers are named. The loads read the ring, which is alive, and each word of
    // it is the address of another one.
    unsafe {
        match chain {
            Chain::Add => {
                repeated!(add, value, turns, y = in(reg) operand, options(nostack, nomem))
            }
            Chain::Multiply => {
                repeated!(multiply, value, turns, y = in(reg) operand, options(nostack, nomem));
            }
            Chain::Load => repeated!(load, value, turns, options(nostack, readonly)),
        }
    }
    let elapsed_ns = clock::monotonic_ns().saturating_sub(start_ns);
    let total = turns * UNROLLED;
    let value = if chain == Chain::Load { ring.place(value) } else { value };
    Stretch { links: total, elapsed_ns, is_right: value == chain.value(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_chain_is_that_of_its_links_one_by_one() {
        for links in [0_u64, 1, 2, 3, 64, 100, 1000] {
            let mut sum = Chain::Add.start();
            let mut product = Chain::Multiply.start() as u32;
            for _ in 0..links {
                sum = sum.wrapping_add(Chain::Add.operand());
                product = product.wrapping_mul(Chain::Multiply.operand() as u32);
            }
            assert_eq!(Chain::Add.value(links), sum);
            assert_eq!(Chain::Multiply.value(links), u64::from(product));
        }
    }

    #[test]
    fn a_chain_alone_is_as_long_as_was_asked_for() {
        for chain in [Chain::Add, Chain::Multiply, Chain::Load] {
            let stretch = alone(chain, 1000);
            assert!(stretch.is_right, "{chain:?}");
            assert_eq!(stretch.links, 1024);
        }
    }

    #[test]
    fn a_stretch_gives_the_time_of_a_link() {
        let stretch = Stretch { links: 3000, elapsed_ns: 1000, is_right: true };
        assert_eq!(stretch.ns_per_link(), 1.0 / 3.0);
        assert_eq!(Stretch { links: 0, ..stretch }.ns_per_link(), 1000.0);
    }
}
