//! What can be computed, with which instructions, and what a machine lacks for it.

use super::frame::{CHAINS, SCALAR_CHAINS, WIDE_CHAINS};
#[cfg(target_arch = "x86_64")]
use super::{tile, x86};

crate::words! {
    /// The type of the numbers.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Number: word {
        /// IEEE 754 single precision.
        F32 = "f32",
        /// IEEE 754 double precision.
        F64 = "f64",
        /// 32-bit integers, wrapping.
        I32 = "i32",
        /// 64-bit integers, wrapping.
        I64 = "i64",
        /// Bytes, unsigned times signed, summed up in 32 bits.
        I8 = "i8",
        /// The upper half of a single-precision number, summed up in single precision.
        Bf16 = "bf16",
    }

    /// What is done with them.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Operation: word {
        /// x × a + b, counted as two operations, in one instruction where there is one.
        MultiplyAdd = "multiply-add",
        /// x + b, counted as one.
        Add = "add",
    }

    /// The instructions that do it, from the narrowest to the widest.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Level: word, ALL {
        /// General registers.
        Scalar = "scalar",
        /// Vectors of 16 bytes, of aarch64.
        Neon = "neon",
        /// Vectors of 16 bytes; SSE4.1 for the multiplication of 32-bit integers.
        Sse2 = "sse2",
        /// Vectors of 32 bytes, with FMA.
        Avx2 = "avx2",
        /// Vectors of 64 bytes; AVX-512DQ for the multiplication of 64-bit integers.
        Avx512 = "avx512",
        /// Dot products of bytes in vectors of 32 bytes.
        AvxVnni = "avx-vnni",
        /// Dot products of bytes in vectors of 64 bytes.
        Avx512Vnni = "avx512-vnni",
        /// Products of tiles of 16 rows of 64 bytes.
        Amx = "amx",
    }
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
    PortCount,
}

const IS_X86: bool = cfg!(target_arch = "x86_64");

impl Number {
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
    /// Operations that it counts as.
    pub const fn count(self) -> u64 {
        match self {
            Self::MultiplyAdd => 2,
            Self::Add => 1,
        }
    }
}

impl Level {
    /// Bytes of a register that an instruction works on; of a row, with tiles.
    pub const fn register_bytes(self) -> usize {
        match self {
            Self::Scalar => 8,
            Self::Neon | Self::Sse2 => 16,
            Self::Avx2 | Self::AvxVnni => 32,
            Self::Avx512 | Self::Avx512Vnni | Self::Amx => 64,
        }
    }
}

impl Kernel {
    /// The kernels of a type and operation that some CPU of this architecture has, the narrowest first,
    /// whether this machine can run them or not. A level that no instruction set has (SSE2 and AVX2 multiply no
    /// 64-bit integers) is left out.
    pub fn levels(number: Number, operation: Operation) -> Vec<Self> {
        let kernel = |level| Self { number, operation, level };
        Level::ALL.into_iter().map(kernel).filter(|kernel| kernel.exists()).collect()
    }

    fn exists(self) -> bool {
        use Level::{Amx, Avx2, Avx512, Avx512Vnni, AvxVnni, Neon, Scalar, Sse2};
        let multiplies = self.operation == Operation::MultiplyAdd;
        match (self.number, self.level) {
            (Number::I64, Neon) => !multiplies && !IS_X86,
            (Number::F32 | Number::F64 | Number::I32, Neon) => !IS_X86,
            (_, Neon) => false,
            (_, Sse2 | Avx2 | Avx512 | AvxVnni | Avx512Vnni | Amx) if !IS_X86 => false,
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

    /// Dependency chains that its loop advances side by side.
    pub(super) const fn chains(self) -> usize {
        match (self.level, self.number, self.operation) {
            (Level::Scalar, ..) => SCALAR_CHAINS,
            (Level::Avx512, Number::I32 | Number::I64, Operation::MultiplyAdd) => WIDE_CHAINS,
            // Four units of four cycles (Apple), six of up to four (Cortex-X925).
            (Level::Neon, ..) => WIDE_CHAINS,
            _ => CHAINS,
        }
    }

    /// Instructions that do one operation on one register, and whether it is one fused
    /// instruction: a product and a sum are two.
    pub const fn instructions(self) -> u64 {
        match (self.operation, self.number, self.level) {
            (Operation::Add, ..) => 1,
            (_, Number::I8 | Number::Bf16, _) => 1,
            (_, Number::F32 | Number::F64, Level::Avx2 | Level::Avx512) => 1,
            (_, _, Level::Neon) => 1,
            (_, _, Level::Scalar) if !IS_X86 => 1,
            _ => 2,
        }
    }

    /// Whether this CPU computes the same in wider registers, for which no loop runs here: it has AVX, and
    /// neither AVX2 nor FMA, which the loops of 32 bytes are made of.
    pub fn is_narrow(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return x86::is_narrow(self);
        #[cfg(not(target_arch = "x86_64"))]
        false
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
    x86::lacks(kernel)
        .map(|feature| format!("the CPU has no {feature}, the kernel hides it, or a limit was set"))
}

/// Each CPU of aarch64 that runs Linux has vectors.
#[cfg(not(target_arch = "x86_64"))]
fn missing(_kernel: Kernel) -> Option<String> {
    None
}
