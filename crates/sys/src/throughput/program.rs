//! What a loop computes, step by step, in scalar code: the other way to its results.

use super::frame::{Chains, Frame, Register};
use super::{Form, Kernel, Level, Number, Operation};

/// One step of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// x × a + b, rounded once.
    Fused,
    /// x + a × b, rounded once: vectors of aarch64 have no other.
    Accumulate,
    /// x × a, then + b: rounded twice.
    MultiplyThenAdd,
    /// x × a, then − b.
    MultiplyThenSubtract,
    /// x × a.
    Multiply,
    /// x + b.
    Add,
    /// x − b.
    Subtract,
    /// x + Σ of four products of bytes, unsigned and signed.
    DotBytes,
    /// x + Σ of two products of 16-bit words.
    DotWords,
}

impl Program {
    /// The step of a kernel; the form decides between the loop itself and the one that counts
    /// its ports.
    pub(super) fn of(kernel: Kernel, form: Form) -> Self {
        let fused = kernel.instructions() == 1;
        match (kernel.number, kernel.operation, form) {
            (Number::I8, _, Form::Work) => Self::DotBytes,
            (Number::I8, _, Form::PortCount) => Self::DotWords,
            (_, Operation::Add, Form::Work) => Self::Add,
            (_, Operation::Add, Form::PortCount) => Self::Subtract,
            (_, Operation::MultiplyAdd, Form::Work) if kernel.level == Level::Neon => {
                Self::Accumulate
            }
            (_, Operation::MultiplyAdd, Form::Work) if fused => Self::Fused,
            (_, Operation::MultiplyAdd, Form::Work) => Self::MultiplyThenAdd,
            (_, Operation::MultiplyAdd, Form::PortCount) if fused => Self::Multiply,
            (_, Operation::MultiplyAdd, Form::PortCount) => Self::MultiplyThenSubtract,
        }
    }

    pub(super) fn subtracts(self) -> bool {
        matches!(self, Self::Subtract | Self::MultiplyThenSubtract)
    }

    /// Whether a chain is a factor itself.
    pub(super) fn multiplies(self) -> bool {
        !matches!(self, Self::Add | Self::Subtract | Self::Accumulate)
    }

    /// The chains after so many pairs of steps.
    pub(super) fn result(self, kernel: Kernel, frame: &Frame, pairs: u64) -> Chains {
        let mut end = frame.chains.clone();
        let bytes = kernel.level.register_bytes();
        for register in end.0.iter_mut().take(kernel.chains()) {
            match kernel.number {
                Number::F32 => {
                    each(register, &frame.constants, bytes, |x, c| self.walk(pairs, x, c, f32_step))
                }
                Number::F64 => {
                    each(register, &frame.constants, bytes, |x, c| self.walk(pairs, x, c, f64_step))
                }
                Number::I32 | Number::I8 | Number::Bf16 => {
                    each(register, &frame.constants, bytes, |x, c| self.walk(pairs, x, c, i32_step))
                }
                Number::I64 => {
                    each(register, &frame.constants, bytes, |x, c| self.walk(pairs, x, c, i64_step))
                }
            }
        }
        end
    }

    /// `pairs` times the step with the first two constants, then with the others.
    fn walk<T: Copy>(
        self,
        pairs: u64,
        mut x: T,
        [a, b, c, d]: [T; 4],
        step: impl Fn(Self, T, T, T) -> T,
    ) -> T {
        for _ in 0..pairs {
            x = step(self, x, a, b);
            x = step(self, x, c, d);
        }
        x
    }
}

/// Applies `walk` to each lane of the first `bytes` of a register.
fn each<T: Lane>(
    register: &mut Register,
    constants: &[Register; 4],
    bytes: usize,
    walk: impl Fn(T, [T; 4]) -> T,
) {
    for at in (0..bytes).step_by(size_of::<T>()) {
        let constants = std::array::from_fn(|index| T::get(&constants[index][at..]));
        walk(T::get(&register[at..]), constants).put(&mut register[at..]);
    }
}

/// A number that lies in a register.
trait Lane: Copy {
    fn get(bytes: &[u8]) -> Self;
    fn put(self, bytes: &mut [u8]);
}

macro_rules! lane {
    ($($number:ty),+) => {$(
        impl Lane for $number {
            fn get(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(&bytes[..size_of::<Self>()]);
                Self::from_ne_bytes(own)
            }

            fn put(self, bytes: &mut [u8]) {
                bytes[..size_of::<Self>()].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )+};
}

lane!(f32, f64, i32, i64);

macro_rules! floating_step {
    ($name:ident, $number:ty) => {
        fn $name(program: Program, x: $number, a: $number, b: $number) -> $number {
            match program {
                Program::Fused => x.mul_add(a, b),
                Program::Accumulate => a.mul_add(b, x),
                Program::MultiplyThenAdd => x * a + b,
                Program::MultiplyThenSubtract => x * a - b,
                Program::Multiply => x * a,
                Program::Add => x + b,
                Program::Subtract => x - b,
                // No floating-point kernel has these.
                Program::DotBytes | Program::DotWords => <$number>::NAN,
            }
        }
    };
}

floating_step!(f32_step, f32);
floating_step!(f64_step, f64);

fn i32_step(program: Program, x: i32, a: i32, b: i32) -> i32 {
    match program {
        Program::DotBytes => {
            let pairs = a.to_ne_bytes().into_iter().zip(b.to_ne_bytes());
            pairs.fold(x, |sum, (a, b)| sum.wrapping_add(i32::from(a) * i32::from(b.cast_signed())))
        }
        Program::DotWords => {
            let words = |v: i32| [v as i16, (v >> 16) as i16];
            let pairs = words(a).into_iter().zip(words(b));
            pairs.fold(x, |sum, (a, b)| sum.wrapping_add(i32::from(a) * i32::from(b)))
        }
        _ => i64_step(program, x.into(), a.into(), b.into()) as i32,
    }
}

fn i64_step(program: Program, x: i64, a: i64, b: i64) -> i64 {
    match program {
        Program::Fused | Program::MultiplyThenAdd => x.wrapping_mul(a).wrapping_add(b),
        Program::Accumulate => x.wrapping_add(a.wrapping_mul(b)),
        Program::MultiplyThenSubtract => x.wrapping_mul(a).wrapping_sub(b),
        Program::Multiply => x.wrapping_mul(a),
        Program::Add => x.wrapping_add(b),
        Program::Subtract => x.wrapping_sub(b),
        // Only bytes have these.
        Program::DotBytes | Program::DotWords => !x,
    }
}
