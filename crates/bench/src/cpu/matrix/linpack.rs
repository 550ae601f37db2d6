//! Linpack: random equations A x = b of order n, solved by LU factorisation with partial pivoting
//! and substitution.
//!
//! The figure counts 2/3 n³ + 2 n² operations, whatever was really done, divided by the time from
//! the first touch of A to the solution, with threads and memory there. Source of the count: J. Dongarra, P. Luszczek, A. Petitet,
//! "The LINPACK Benchmark: past, present and future", Concurrency and Computation 15, 2003.
//!
//! Read next: `factor`, where the time goes.

pub(super) mod factor;
mod panel;
pub(super) mod solve;

use flatout_measure::TrialError;
use flatout_sys::dgemm::{Doubles, Kernels};
use flatout_sys::{monotonic_ns, thread_cpu_ns};

use super::order::Shape;
use super::system::{fill, fill_column};
use super::{Ran, residual};
use crate::workers::Spent;

/// Makes the system of `seed` and solves it; the clock runs for factorisation and substitution.
pub(super) fn run(
    kernels: Kernels,
    shape: Shape,
    threads: u32,
    seed: u64,
) -> Result<Ran, TrialError> {
    let mut matrix = Doubles::new(shape.order * shape.stride)?;
    fill(matrix.as_mut_slice(), shape, seed, threads)?;
    let mut x = vec![0.0; shape.order];
    fill_column(&mut x, seed, shape.order as u64);
    let begun = Spent::now();
    let (pivots, factored) = factor::timed(kernels, matrix.as_mut_slice(), shape, threads)?;
    let (start_ns, start_cpu_ns) = (monotonic_ns(), thread_cpu_ns());
    solve::solve(shape.block(matrix.as_slice()), &pivots, &mut x);
    let elapsed_ns = factored.elapsed_ns + monotonic_ns().saturating_sub(start_ns);
    let cpu_ns = factored.cpu_ns + thread_cpu_ns().saturating_sub(start_cpu_ns);
    let spent = Spent { cpu_ns, ..Spent::since(begun) };
    // The matrix is not kept: the check makes it again from its seed.
    Ok(Ran { elapsed_ns, spent, residual: Box::new(move || residual::of_solution(&x, seed)) })
}
