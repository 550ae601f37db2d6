//! Loops of arithmetic in registers, which keep the units of one core busy, and their proof.
//!
//! A [`Kernel`] names what is computed; a [`Workload`] is a kernel with its numbers. Each pass
//! starts from the same numbers, ends in others that ordinary scalar code worked out beforehand,
//! and adds them to a sum, so that neither a wrong result nor a pass left out goes unseen. The
//! loops do no memory access but at the ends of a pass. Not here: time, clock, ports; the loop
//! with a dependency chain in it serves [`crate::core_clock`]. Read next: `throughput/x86.rs`.

use std::io;

use crate::core_clock::Chain;
#[cfg(target_arch = "x86_64")]
use crate::core_clock::Ring;

mod frame;
mod program;
#[cfg(target_arch = "x86_64")]
mod tile;
#[cfg(target_arch = "x86_64")]
mod x86;

use frame::Frame;
use program::Program;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::most_links;

/// The type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Number {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// 32-bit integers, wrapping.
    I32,
    /// 64-bit integers, wrapping.
    I64,
    /// Bytes, unsigned times signed, summed up in 32 bits.
    I8,
    /// The upper half of a single-precision number, summed up in single precision.
    Bf16,
}

/// What is done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// x × a + b, counted as two operations, in one instruction where there is one.
    MultiplyAdd,
    /// x + b, counted as one.
    Add,
}

/// The instructions that do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// General registers.
    Scalar,
    /// Vectors of 16 bytes; SSE4.1 for the multiplication of 32-bit integers.
    Sse2,
    /// Vectors of 32 bytes, with FMA.
    Avx2,
    /// Vectors of 64 bytes; AVX-512DQ for the multiplication of 64-bit integers.
    Avx512,
    /// Dot products of bytes in vectors of 32 bytes.
    AvxVnni,
    /// Dot products of bytes in vectors of 64 bytes.
    Avx512Vnni,
    /// Products of tiles of 16 rows of 64 bytes.
    Amx,
}

/// What is computed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kernel {
    /// The type of the numbers.
    pub number: Number,
    /// What is done with them.
    pub operation: Operation,
    /// The instructions that do it.
    pub level: Level,
}

/// Which of the two loops of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The loop whose rate is the figure.
    Work,
    /// A loop of other instructions that the same ports execute: a product for the fused
    /// multiply-add, a difference for a sum. It counts the ports; its own rate is no figure.
    Census,
}

impl Number {
    /// The word for it: `f64`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I8 => "i8",
            Self::Bf16 => "bf16",
        }
    }

    /// Whether operations are floating-point ones.
    pub const fn is_floating(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::Bf16)
    }

    /// Bytes of one number.
    pub const fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }
}

impl Operation {
    /// The word for it: `multiply-add`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::MultiplyAdd => "multiply-add",
            Self::Add => "add",
        }
    }

    /// Operations that it counts as.
    pub const fn count(self) -> u64 {
        match self {
            Self::MultiplyAdd => 2,
            Self::Add => 1,
        }
    }
}

impl Level {
    /// The word for it: `avx512`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Amx => "amx",
        }
    }

    /// Bytes of a register that an instruction works on; of a row, with tiles.
    pub const fn register_bytes(self) -> usize {
        match self {
            Self::Scalar => 8,
            Self::Sse2 => 16,
            Self::Avx2 | Self::AvxVnni => 32,
            Self::Avx512 | Self::Avx512Vnni | Self::Amx => 64,
        }
    }
}

/// Levels from the narrowest to the widest.
const LADDER: [Level; 7] = [
    Level::Scalar,
    Level::Sse2,
    Level::Avx2,
    Level::Avx512,
    Level::AvxVnni,
    Level::Avx512Vnni,
    Level::Amx,
];

impl Kernel {
    /// The kernels of a type and operation that some CPU has, the narrowest first, whether this
    /// machine can run them or not. A rung that no instruction set has (SSE2 and AVX2 multiply no
    /// 64-bit integers) is left out.
    pub fn ladder(number: Number, operation: Operation) -> Vec<Self> {
        let kernel = |level| Self { number, operation, level };
        LADDER.into_iter().map(kernel).filter(|kernel| kernel.exists()).collect()
    }

    fn exists(self) -> bool {
        use Level::{Amx, Avx2, Avx512, Avx512Vnni, AvxVnni, Scalar, Sse2};
        let multiplies = self.operation == Operation::MultiplyAdd;
        match (self.number, self.level) {
            (Number::I8, AvxVnni | Avx512Vnni | Amx) | (Number::Bf16, Amx) => multiplies,
            (Number::I8 | Number::Bf16, _) | (_, AvxVnni | Avx512Vnni | Amx) => false,
            (Number::I64, Scalar) => multiplies,
            (_, Scalar) => false,
            (Number::I64, Sse2 | Avx2) => !multiplies,
            (_, Sse2 | Avx2 | Avx512) => true,
        }
    }

    /// Numbers that a step works on: with tiles, those of one row, times the 16 columns that it
    /// meets.
    pub const fn lanes(self) -> u64 {
        let columns = if matches!(self.level, Level::Amx) { 16 } else { 1 };
        columns * (self.level.register_bytes() / self.number.bytes()) as u64
    }

    /// Instructions that do one operation on one register, and whether it is one fused
    /// instruction: a product and a sum are two.
    pub const fn instructions(self) -> u64 {
        match (self.operation, self.number, self.level) {
            (Operation::Add, ..) => 1,
            (_, Number::I8 | Number::Bf16, _) => 1,
            (_, Number::F32 | Number::F64, Level::Avx2 | Level::Avx512) => 1,
            _ => 2,
        }
    }

    /// What this machine lacks to run it; `None` if nothing.
    pub fn lacks(self) -> Option<String> {
        if !self.exists() {
            return Some(format!("{} has no {}", self.level.word(), self.number.word()));
        }
        missing(self)
    }
}

#[cfg(target_arch = "x86_64")]
fn missing(kernel: Kernel) -> Option<String> {
    if kernel.level == Level::Amx {
        return tile::lacks(kernel.number);
    }
    x86::lacks(kernel).map(|feature| format!("the CPU has no {feature}, or the kernel hides it"))
}

#[cfg(not(target_arch = "x86_64"))]
fn missing(_kernel: Kernel) -> Option<String> {
    Some("there are no kernels for this kind of CPU yet".to_owned())
}

/// Dependency chains that a loop advances side by side.
pub const CHAINS: u64 = frame::CHAINS as u64;

/// A kernel with its numbers, ready to run in any number of threads.
#[derive(Debug)]
pub struct Workload {
    kernel: Kernel,
    form: Form,
    body: Body,
    /// What one pass adds to the sum.
    expected: u64,
}

#[derive(Debug)]
enum Body {
    /// Registers; the scalar loop keeps its numbers in the first bytes of each.
    Registers(Box<Frame>),
    /// Tiles.
    #[cfg(target_arch = "x86_64")]
    Tiles(Box<tile::Tiles>),
}

/// What a run did, and whether its results are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Operations, as [`Operation::count`] counts them.
    pub operations: u64,
    /// Steps: one operation on one register or tile, by one instruction or two.
    pub steps: u64,
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
            let expected = tiles.expected();
            let body = Body::Tiles(Box::new(tiles));
            return Ok(Self { kernel, form, body, expected });
        }
        let program = Program::of(kernel, form);
        let frame = Frame::new(kernel, program, seed);
        let expected = program.result(kernel, &frame, PASS_PAIRS).sum(kernel);
        Ok(Self { kernel, form, body: Body::Registers(Box::new(frame)), expected })
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Which of its loops.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Steps of one iteration of the loop.
    pub fn steps_per_iteration(&self) -> u64 {
        match &self.body {
            Body::Registers(_) if self.kernel.level == Level::Scalar => {
                2 * PAIRS_PER_ITERATION * frame::SCALAR_CHAINS as u64
            }
            Body::Registers(_) => 2 * PAIRS_PER_ITERATION * CHAINS,
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(_) => tile::STEPS_PER_ITERATION,
        }
    }

    /// Iterations of one pass.
    pub fn iterations_per_pass(&self) -> u64 {
        match &self.body {
            Body::Registers(_) => PASS_ITERATIONS,
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(tiles) => tiles.iterations(),
        }
    }

    /// Iterations of one pass of the loop that has a chain in it: between two of them stand its
    /// links.
    pub fn turns_per_pass(&self) -> u64 {
        match &self.body {
            Body::Registers(_) => PASS_PAIRS / chained_pairs(self.kernel),
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(tiles) => tiles.iterations(),
        }
    }

    /// Links of an iteration, where the loop cannot have any other number of them.
    pub fn fixed_links(&self, chain: Chain) -> Option<u64> {
        match &self.body {
            Body::Registers(_) => None,
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(_) => Some(tile::links(chain)),
        }
    }

    /// Runs `passes` passes. The loop is nothing but the kernel.
    pub fn run(&self, passes: u64) -> Checked {
        let mut sum = 0_u64;
        for _ in 0..passes {
            sum = sum.wrapping_add(self.pass());
        }
        self.checked(passes, sum)
    }

    /// Runs `passes` passes with a chain of dependent scalar instructions in each iteration.
    /// Gives the end of the chain beside what [`Self::run`] gives.
    pub(crate) fn run_chained(&self, passes: u64, links: Links) -> (Checked, u64) {
        let (mut sum, mut end) = (0_u64, links.start);
        for _ in 0..passes {
            let (pass, value) = self.chained_pass(Links { start: end, ..links });
            sum = sum.wrapping_add(pass);
            end = value;
        }
        (self.checked(passes, sum), end)
    }

    fn checked(&self, passes: u64, sum: u64) -> Checked {
        let steps = passes * self.iterations_per_pass() * self.steps_per_iteration();
        let rows = self.rows_per_step();
        Checked {
            operations: steps * rows * self.kernel.lanes() * self.kernel.operation.count(),
            steps,
            is_right: sum == self.expected.wrapping_mul(passes),
        }
    }

    /// Registers that one step works on: a tile is worked on row by row.
    pub fn rows_per_step(&self) -> u64 {
        match &self.body {
            Body::Registers(_) => 1,
            #[cfg(target_arch = "x86_64")]
            Body::Tiles(tiles) => tiles.rows(),
        }
    }
}

/// Iterations of one pass over registers. Long against its ends (some 150 instructions), short
/// enough to be worked out by scalar code in some milliseconds.
const PASS_ITERATIONS: u64 = 512;
/// Pairs of steps in one iteration.
const PAIRS_PER_ITERATION: u64 = 4;
/// Pairs of steps in one pass.
const PASS_PAIRS: u64 = PASS_ITERATIONS * PAIRS_PER_ITERATION;

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

/// A chain of dependent instructions that runs beside a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) chain: Chain,
    /// Links per iteration of the loop.
    pub(crate) count: u64,
    /// Where the chain begins.
    pub(crate) start: u64,
}

#[cfg(target_arch = "x86_64")]
impl Workload {
    fn pass(&self) -> u64 {
        match &self.body {
            Body::Registers(frame) => {
                let mut end = frame::Chains::zero();
                let turns = self.iterations_per_pass();
                // SAFETY: `new` made sure that the CPU has what the kernel needs.
                unsafe { x86::plain(self.kernel, self.form, frame, &mut end, turns) };
                end.sum(self.kernel)
            }
            // SAFETY: `new` made sure that the CPU has tiles and the kernel grants them.
            Body::Tiles(tiles) => unsafe { tiles.pass(None).0 },
        }
    }

    fn chained_pass(&self, links: Links) -> (u64, u64) {
        // Loads follow a ring of addresses; outside, a place in it is a number.
        let ring = Ring::new();
        let loads = links.chain == Chain::Load;
        let start = if loads { ring.address(links.start) } else { links.start };
        let links = Links { start, ..links };
        let (sum, end) = match &self.body {
            Body::Registers(frame) => {
                let mut end = frame::Chains::zero();
                let mut sled = x86::Sled::new(links, self.turns_per_pass());
                // SAFETY: as in `pass`; a sled is never longer than the code has room for, and
                // the ring outlives the call.
                unsafe { x86::chained(self.kernel, self.form, frame, &mut end, &mut sled) };
                (end.sum(self.kernel), sled.value)
            }
            // SAFETY: as in `pass`, and the ring outlives the call.
            Body::Tiles(tiles) => unsafe { tiles.pass(Some(links)) },
        };
        (sum, if loads { ring.place(end) } else { end })
    }
}

/// No workload can be made here, see [`Kernel::lacks`]: nothing runs.
#[cfg(not(target_arch = "x86_64"))]
impl Workload {
    fn pass(&self) -> u64 {
        self.expected.wrapping_add(1)
    }

    fn chained_pass(&self, links: Links) -> (u64, u64) {
        (self.pass(), links.start)
    }
}

#[cfg(test)]
mod tests;
