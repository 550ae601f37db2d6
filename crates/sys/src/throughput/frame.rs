//! The numbers that a loop starts from: constants and chains, as the registers hold them.

use super::program::Program;
use super::{Kernel, Level, Number};
use crate::generator::SplitMix64;

/// Chains of a vector loop: enough for two units with a latency of five cycles (Haswell), few
/// enough to leave four of the sixteen registers of AVX2 to the constants.
pub(super) const CHAINS: usize = 12;
/// Chains of the scalar loop; there are not more registers.
pub(super) const SCALAR_CHAINS: usize = 5;
/// Chains of the loops of 512-bit products and sums of integers: three or four micro-operations on two
/// ports, and a latency of 11 or 16 cycles. Which port each waits for is decided long before it
/// runs, so there must be work for both all the time: with 12 chains 0.93 (64 bits) and 0.99 (32
/// bits) of what is possible were reached, with 16 and 24 all of it (Sapphire Rapids alone on its
/// core, 2026-11-22).
pub(super) const WIDE_CHAINS: usize = 24;
/// Bytes from one register to the next in memory: that of the widest one.
pub(super) const STRIDE_BYTES: usize = 64;

/// A register in memory.
pub(super) type Register = [u8; STRIDE_BYTES];

/// The registers of all chains.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Chains(pub(super) [Register; WIDE_CHAINS]);

/// Two multipliers and two summands, used in turn, and the start of the chains.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Frame {
    /// Multiplier and summand of even steps, then those of odd ones.
    pub(super) constants: [Register; 4],
    pub(super) chains: Chains,
}

impl Chains {
    pub(super) fn zero() -> Self {
        Self([[0; STRIDE_BYTES]; WIDE_CHAINS])
    }

    /// The sum of all words, which differs when any of them does, but for an accident.
    #[inline]
    pub(super) fn sum(&self, kernel: Kernel) -> u64 {
        let words = kernel.level.register_bytes() / 8;
        let mut sum = 0_u64;
        for register in &self.0[..kernel.chains()] {
            let (all, _) = register.as_chunks::<8>();
            for word in &all[..words] {
                sum = sum.wrapping_add(u64::from_ne_bytes(*word));
            }
        }
        sum
    }
}

/// Contraction of a pair of steps. A chain keeps e^−1 of its distance to where it tends over a
/// pass of 1024 pairs, so that its end still tells the number of steps, and its numbers stay near 1.
const CONTRACTION: f64 = 1.0 / 1024.0;
/// Growth of a pair of additions: 1024 of them, a pass, add an eighth.
const GROWTH: f64 = 1.0 / 8192.0;
/// Where the chains of multiply-add tend.
const CENTRE: f64 = 1.5;

impl Frame {
    /// Random numbers that neither overflow nor become subnormal within a pass.
    pub(super) fn new(kernel: Kernel, program: Program, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut frame = Self { constants: [[0; STRIDE_BYTES]; 4], chains: Chains::zero() };
        if kernel.level == Level::Scalar {
            frame.fill_scalar(&mut random);
        } else if kernel.number.is_floating() {
            frame.fill_floating(kernel.number, program, &mut random);
        } else {
            frame.constants.as_flattened_mut().iter_mut().for_each(|byte| *byte = random.byte());
            frame.chains.0.as_flattened_mut().iter_mut().for_each(|byte| *byte = random.byte());
            // An even multiplier would make all chains end in the same number.
            for multiplier in [0, 2] {
                frame.constants[multiplier].iter_mut().step_by(4).for_each(|byte| *byte |= 1);
            }
        }
        frame
    }

    /// The same with the second half of the chains in the place of the first.
    pub(super) fn second_half(&self) -> Self {
        let mut half = self.clone();
        half.chains.0.rotate_left(CHAINS);
        half
    }

    /// Both steps of a pair have the same constants: registers are short.
    fn fill_scalar(&mut self, random: &mut Random) {
        let (multiplier, summand) = (random.0.next_u64() | 1, random.0.next_u64());
        for (register, value) in self.constants.iter_mut().zip([multiplier, summand].repeat(2)) {
            register[..8].copy_from_slice(&value.to_ne_bytes());
        }
        for register in self.chains.0.iter_mut().take(SCALAR_CHAINS) {
            register[..8].copy_from_slice(&random.0.next_u64().to_ne_bytes());
        }
    }

    fn fill_floating(&mut self, number: Number, program: Program, random: &mut Random) {
        let lanes = STRIDE_BYTES / number.bytes();
        // A difference does with the opposite number what a sum does.
        let sign = if program.subtracts() { -1.0 } else { 1.0 };
        for lane in 0..lanes {
            let first = random.between(1.1, 1.4);
            let second = (1.0 - CONTRACTION) / first;
            let step = random.between(0.25, 0.5);
            let back = if program.multiplies() {
                CENTRE * CONTRACTION - step * second
            } else {
                GROWTH - step
            };
            let sums = match program {
                // What is added is a product.
                Program::Accumulate => [step / first, back / second],
                _ => [sign * step, sign * back],
            };
            for (register, value) in
                self.constants.iter_mut().zip([first, sums[0], second, sums[1]])
            {
                put(register, number, lane, value);
            }
            for register in &mut self.chains.0 {
                put(register, number, lane, random.between(1.0, 2.0));
            }
        }
    }
}

fn put(register: &mut Register, number: Number, lane: usize, value: f64) {
    let bytes = number.bytes();
    let place = &mut register[lane * bytes..][..bytes];
    match number {
        Number::F32 => place.copy_from_slice(&(value as f32).to_ne_bytes()),
        _ => place.copy_from_slice(&value.to_ne_bytes()),
    }
}

/// Random bits for the mantissas.
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(super) fn byte(&mut self) -> u8 {
        (self.0.next_u64() >> 56) as u8
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }
}
