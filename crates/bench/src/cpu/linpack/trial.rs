//! One trial of Linpack: fill, solve under the clock, check.

use std::path::Path;

use flatout_measure::case::{Sample, TrialError};
use flatout_measure::record::{Series, Warning};
use flatout_sys::affinity;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::dgemm::{Doubles, Kernels};
use flatout_sys::quota::Groups;

use super::factor::{self, Shape};
use super::order::{Chosen, Work, operations};
use super::residual::{self, THRESHOLD};
use super::solve::solve;
use super::system::{fill, fill_column};
use crate::crew;

/// The curves by which a trial hands on what `finish` makes a list of.
pub(crate) const NAMES: [&str; 3] = ["seconds", "residual", "normalised residual"];
/// Order of the factorisation that tells how fast the machine is: 25 ms on one core of 2026.
const PROBE_ORDER: usize = 1152;

/// What all trials of a row share.
pub(super) struct Site {
    kernels: Kernels,
    chosen: Chosen,
    threads: u32,
}

impl Site {
    pub(super) fn new(kernels: Kernels, chosen: Chosen, threads: u32) -> Self {
        Self { kernels, chosen, threads }
    }

    fn shape(&self) -> Shape {
        Shape { order: self.chosen.order as usize, stride: self.chosen.stride as usize }
    }
}

/// What a solved system leaves.
struct Solved {
    x: Vec<f64>,
    elapsed_ns: u64,
}

/// Makes the system of `seed` and solves it; the clock runs for factorisation and substitution.
fn run(kernels: Kernels, shape: Shape, threads: u32, seed: u64) -> Result<Solved, TrialError> {
    let failed = |what: &dyn std::fmt::Display| TrialError::Failed(format!("linpack: {what}"));
    let Shape { order, stride } = shape;
    let mut matrix = Doubles::new(order * stride).map_err(|error| failed(&error))?;
    fill(matrix.as_mut_slice(), shape, seed, threads);
    let mut x = vec![0.0; order];
    fill_column(&mut x, seed, order as u64);
    let start_ns = monotonic_ns();
    let pivots = factor::factor(kernels, matrix.as_mut_slice(), shape, threads)
        .map_err(|error| failed(&error))?;
    solve(factor::whole(matrix.as_slice(), shape), &pivots, &mut x);
    let elapsed_ns = monotonic_ns().saturating_sub(start_ns);
    Ok(Solved { x, elapsed_ns })
}

/// Operations per second of a small factorisation, the better of two.
pub(super) fn probe(kernels: Kernels, threads: u32) -> Result<f64, TrialError> {
    let shape = Shape { order: PROBE_ORDER, stride: PROBE_ORDER + 8 };
    let mut best = f64::MAX;
    for seed in 0..2 {
        best = best.min(run(kernels, shape, threads, seed)?.elapsed_ns as f64);
    }
    Ok(operations(Work::Solve, PROBE_ORDER as u64) / best.max(1.0) * 1e9)
}

/// One trial, the `number`th.
pub(super) fn sample(site: &Site, seed: u64, number: u64) -> Result<Sample, TrialError> {
    let Solved { x, elapsed_ns } = run(site.kernels, site.shape(), site.threads, seed)?;
    let residual = residual::of(&x, seed);
    if !residual::passes(residual.normalised) {
        return Err(TrialError::Failed(format!(
            "linpack: the solution is wrong: normalised residual {} (limit {THRESHOLD}), order {}, \
             seed {seed}",
            residual.normalised, site.chosen.order
        )));
    }
    let figures = [elapsed_ns as f64 / 1e9, residual.absolute, residual.normalised];
    Ok(Sample {
        amount: operations(Work::Solve, site.chosen.order),
        elapsed_ns,
        warnings: crowd(site.threads),
        series: series(number, figures),
        ..Sample::default()
    })
}

/// One point for each of [`NAMES`].
pub(crate) fn series(number: u64, figures: [f64; 3]) -> Vec<Series> {
    let one = |(name, figure): (&str, f64)| Series {
        name: name.to_owned(),
        x: "trial".to_owned(),
        y: if name == NAMES[0] { "s".to_owned() } else { String::new() },
        points: vec![[number as f64, figure]],
    };
    NAMES.into_iter().zip(figures).map(one).collect()
}

/// What is to be said of so many threads on this machine.
pub(crate) fn crowd(threads: u32) -> Vec<Warning> {
    let cpus = affinity::allowed_cpu_count();
    let quota_cpus = Groups::discover(Path::new("/")).cpu_quota_cpus();
    let contained = crew::contained(threads, cpus, quota_cpus);
    crew::oversubscribed(threads, cpus).into_iter().chain(contained).collect()
}
