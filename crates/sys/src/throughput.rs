//! Loops of arithmetic in registers, which keep the units of one core busy, and their proof.
//!
//! A [`Kernel`] names what is computed; a [`Workload`] is a kernel with its numbers. Each pass
//! starts from the same numbers, ends in others that ordinary scalar code worked out beforehand,
//! and adds them to a sum, so that neither a wrong result nor a pass left out goes unseen. The
//! loops do no memory access but at the ends of a pass. Not here: time, clock, ports; the loop
//! with a dependency chain in it serves [`crate::core_clock`]. Read next: `throughput/x86.rs`, or
//! `throughput/aarch64.rs`.

use std::io;

use crate::core_clock::{Chain, Ring};

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod frame;
mod kernel;
mod program;
mod sled;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
use aarch64 as arch;
#[cfg(target_arch = "x86_64")]
use x86 as arch;

use frame::Frame;
use program::Program;
use sled::Sled;

pub use kernel::{Form, Kernel, Level, Number, Operation};
pub(crate) use sled::most_links;

/// A kernel with its numbers, ready to run in any number of threads.
pub struct Workload {
    kernel: Kernel,
    form: Form,
    body: Body,
    /// What one pass adds to the sum.
    expected: u64,
    /// Steps of one pass.
    steps_per_pass: u64,
    /// Registers that one step works on: a tile is worked on row by row.
    rows_per_step: u64,
    turns_per_pass: u64,
}

enum Body {
    /// Registers; the scalar loop keeps its numbers in the first bytes of each. The wide loop has
    /// its second half as well, because the loop that has a chain in it takes half at a time.
    Registers(Box<Frame>, Option<Box<Frame>>),
    /// Tiles.
    #[cfg(target_arch = "x86_64")]
    Tiles(Box<tile::Tiles>),
}

/// What a run did, and whether its results are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Operations, as [`Operation::count`] counts them.
    pub operations: u64,
    /// Whether the sum of all results is the one that was worked out beforehand.
    pub is_right: bool,
}

impl Workload {
    /// Makes the numbers of `kernel` from `seed`, and works out what comes of them.
    ///
    /// Cost: up to ten milliseconds of scalar arithmetic.
    ///
    /// # Errors
    /// `Unsupported`, with what this machine lacks.
    pub fn new(kernel: Kernel, form: Form, seed: u64) -> io::Result<Self> {
        if let Some(text) = kernel.lacks() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        #[cfg(target_arch = "x86_64")]
        if kernel.level == Level::Amx {
            let tiles = tile::Tiles::new(kernel.number, form, seed);
            return Ok(Self {
                kernel,
                form,
                expected: tiles.expected(),
                steps_per_pass: tile::ITERATIONS * tile::STEPS_PER_ITERATION,
                rows_per_step: tile::ROWS as u64,
                turns_per_pass: tile::ITERATIONS,
                body: Body::Tiles(Box::new(tiles)),
            });
        }
        let program = Program::of(kernel, form);
        let frame = Frame::new(kernel, program, seed);
        let expected = program.result(kernel, &frame, pass_pairs(kernel)).sum(kernel);
        let second = (kernel.chains() > frame::CHAINS).then(|| Box::new(frame.second_half()));
        Ok(Self {
            kernel,
            form,
            expected,
            steps_per_pass: 2 * pass_pairs(kernel) * kernel.chains() as u64,
            rows_per_step: 1,
            turns_per_pass: half_turns(kernel) * (1 + u64::from(second.is_some())),
            body: Body::Registers(Box::new(frame), second),
        })
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Iterations of one pass of the loop that has a chain in it: between two of them stand its
    /// links.
    pub fn turns_per_pass(&self) -> u64 {
        self.turns_per_pass
    }

    /// Links of an iteration, where the loop cannot have any other number of them.
    pub fn fixed_links(&self, _chain: Chain) -> Option<u64> {
        match &self.body {
            Body::Registers(..) => None,
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(_) => Some(tile::links(_chain)),
        }
    }

    /// Runs `passes` passes. The loop is nothing but the kernel.
    pub fn run(&self, passes: u64) -> Checked {
        let mut end = frame::Chains::zero();
        let mut sum = 0_u64;
        self.shape();
        for _ in 0..passes {
            sum = sum.wrapping_add(self.pass(&mut end));
        }
        self.checked(passes, sum)
    }

    /// Gives back what runs leave in the registers of this thread for the next ones: the shape of tiles. Due
    /// when a thread goes on with other work.
    pub fn rest(&self) {
        #[cfg(target_arch = "x86_64")]
        if matches!(self.body, Body::Tiles(_)) {
            // SAFETY: as in `shape`.
            unsafe { tile::release() };
        }
    }

    /// Shapes what passes over tiles need of the thread.
    fn shape(&self) {
        #[cfg(target_arch = "x86_64")]
        if let Body::Tiles(tiles) = &self.body {
            // SAFETY: `new` made sure that the CPU has tiles and the kernel grants them.
            unsafe { tiles.shape() };
        }
    }

    /// Runs `passes` passes with a chain of dependent scalar instructions in each iteration.
    /// Gives the end of the chain beside what [`Self::run`] gives.
    pub(crate) fn run_chained(&self, passes: u64, links: Links) -> (Checked, u64) {
        // Loads follow a ring of addresses; outside, a place in it is a number.
        let mut ring = Ring::default();
        ring.link();
        let loads = links.chain == Chain::Load;
        let mut value = if loads { ring.address(links.start) } else { links.start };
        let (mut sum, mut ends) = (0_u64, frame::Chains::zero());
        self.shape();
        for _ in 0..passes {
            let links = Links { start: value, ..links };
            let (pass, end) = self.chained_pass(links, &ring, &mut ends);
            sum = sum.wrapping_add(pass);
            value = end;
        }
        (self.checked(passes, sum), if loads { ring.place(value) } else { value })
    }

    fn checked(&self, passes: u64, sum: u64) -> Checked {
        let registers = passes * self.steps_per_pass * self.rows_per_step;
        Checked {
            operations: registers * self.kernel.lanes() * self.kernel.operation.count(),
            is_right: sum == self.expected.wrapping_mul(passes),
        }
    }
}

/// Iterations of one pass over registers. Long against its ends (some 150 instructions), short
/// enough to be worked out by scalar code in some milliseconds, and to fit into the moments in which
/// nobody else uses the core: some 5 µs. A product and a sum take twice as long as one instruction
/// and more, and the wide loops have twice the chains.
const fn pass_iterations(kernel: Kernel) -> u64 {
    match (kernel.chains(), kernel.instructions()) {
        (frame::WIDE_CHAINS, _) => 64,
        (frame::CHAINS, 2) => 128,
        _ => 256,
    }
}

/// Pairs of steps in one iteration.
const PAIRS_PER_ITERATION: u64 = 4;
/// Pairs of steps in one pass.
const fn pass_pairs(kernel: Kernel) -> u64 {
    pass_iterations(kernel) * PAIRS_PER_ITERATION
}

/// Pairs of steps in an iteration of the chained loop. Links and work overlap only as far as the
/// core looks ahead: with four pairs of products and sums, which are up to 384 micro-operations,
/// the chain waited for the work and read 1.6 GHz instead of 2.2 (Sapphire Rapids, 2026-11-22).
/// One pair of single instructions would be as short as the jumps.
const fn chained_pairs(kernel: Kernel) -> u64 {
    if kernel.instructions() == 1 || matches!(kernel.level, Level::Scalar) {
        PAIRS_PER_ITERATION
    } else {
        1
    }
}

/// Iterations of the chained loop over one of the halves of a pass, or over all where there is one.
const fn half_turns(kernel: Kernel) -> u64 {
    pass_pairs(kernel) / chained_pairs(kernel)
}

/// A chain of dependent instructions that runs beside a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) chain: Chain,
    /// Links per iteration of the loop.
    pub(crate) count: u64,
    /// Where the chain begins.
    pub(crate) start: u64,
}

impl Workload {
    /// One pass; `end` is where the chains are left.
    fn pass(&self, end: &mut frame::Chains) -> u64 {
        match &self.body {
            Body::Registers(frame, _) => {
                let iterations = pass_iterations(self.kernel);
                if let Some(loops) = arch::loops(self.kernel, self.form) {
                    // SAFETY: `new` made sure that the CPU has what the kernel needs.
                    unsafe { (loops.plain)(frame, end, iterations) };
                }
                end.sum(self.kernel)
            }
            // SAFETY: `run` calls `shape`.
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(tiles) => unsafe { tiles.pass(None).0 },
        }
    }

    /// One pass with a chain; of loads, `links.start` and the end are addresses in `_ring`.
    fn chained_pass(&self, links: Links, _ring: &Ring, ends: &mut frame::Chains) -> (u64, u64) {
        match &self.body {
            Body::Registers(frame, second) => {
                let (mut sum, mut value) = (0_u64, links.start);
                let loops = arch::loops(self.kernel, self.form);
                for frame in std::iter::once(frame).chain(second) {
                    let links = Links { start: value, ..links };
                    let mut sled = Sled::new(links, half_turns(self.kernel));
                    if let Some(loops) = &loops {
                        // SAFETY: as in `pass`; a sled is never longer than the code has room for,
                        // and the ring outlives the call.
                        unsafe { (loops.chained)(frame, ends, &mut sled) };
                    }
                    // What one half does not have is zero.
                    sum = sum.wrapping_add(ends.sum(self.kernel));
                    value = sled.value;
                }
                (sum, value)
            }
            // SAFETY: `run_chained` calls `shape`, and the ring outlives the call.
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(tiles) => unsafe { tiles.pass(Some(links)) },
        }
    }
}

#[cfg(test)]
mod tests;
