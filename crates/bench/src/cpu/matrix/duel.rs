//! A product or a factorisation, timed again and again in one process: by our kernels, or by a
//! library of the machine. What `versus` races.

use std::path::Path;

use flatout_measure::{TrialError, statistics};
use flatout_sys::blas::Library;
use flatout_sys::dgemm::{BlockMut, Doubles, Kernels};
use flatout_sys::monotonic_ns;

use super::dgemm;
use super::linpack::{factor, solve};
use super::order::Shape;
use super::residual::{self, Residual, THRESHOLD};
use super::system::{fill, fill_column};
use crate::compute::{Figure, Job, Work};

/// Times `job`, in FLOPS: the median of its repetitions, of which the first does not count.
///
/// Errors: one line.
pub(crate) fn run(job: &Job) -> Result<Figure, TrialError> {
    let library = job.library.as_deref().map(|path| load(path, job.threads)).transpose()?;
    let shape = Shape::of_order(job.order);
    let cube = (job.order as f64).powi(3);
    let (amount, (times_ns, residual)) = match job.work {
        Work::Product => (2.0 * cube, product(job, shape, library.as_ref())?),
        _ => (2.0 / 3.0 * cube, factorisation(job, shape, library.as_ref())?),
    };
    if !residual.passes() {
        let found = residual.normalised;
        let text = format!("the result is wrong: normalised residual {found} of {THRESHOLD}");
        return Err(TrialError::Failed(text));
    }
    let rates: Vec<f64> = times_ns.iter().map(|&ns| amount / ns.max(1) as f64 * 1e9).collect();
    let by = match &library {
        Some(library) => library.description(),
        None => format!("flatout, kernels {}", Kernels::best().level().name()),
    };
    let figure = statistics::median(&rates).unwrap_or_default();
    let normalised_residual = Some(residual.normalised);
    Ok(Figure { figure, repetitions: rates.len(), by, normalised_residual })
}

fn load(path: &Path, threads: u32) -> Result<Library, TrialError> {
    let library = Library::load(path);
    let library = library.and_then(|library| library.set_threads(threads).map(|()| library));
    library.map_err(|text| TrialError::Failed(format!("cannot load {path:?}: {text}")))
}

fn product(
    job: &Job,
    shape: Shape,
    library: Option<&Library>,
) -> Result<(Vec<u64>, Residual), TrialError> {
    let mut product = dgemm::Product::new(Kernels::best(), shape, job.seed, job.threads)?;
    let times = job.repeat(|| match library {
        None => product.multiply().map(|timed| timed.elapsed_ns),
        Some(library) => {
            let (target, left, right) = product.blocks();
            let start_ns = monotonic_ns();
            library.multiply(target, left, right);
            Ok(monotonic_ns() - start_ns)
        }
    })?;
    Ok((times, product.residual(job.seed)))
}

fn factorisation(
    job: &Job,
    shape: Shape,
    library: Option<&Library>,
) -> Result<(Vec<u64>, Residual), TrialError> {
    let Shape { order, stride } = shape;
    let mut matrix = Doubles::new(order * stride)?;
    let mut pivots = Vec::new();
    let times = job.repeat(|| {
        fill(matrix.as_mut_slice(), shape, job.seed, job.threads)?;
        let values = matrix.as_mut_slice();
        let (exchanged, elapsed_ns) = match library {
            None => {
                let factored = factor::timed(Kernels::best(), values, shape, job.threads);
                factored.map(|(exchanged, timed)| (exchanged, timed.elapsed_ns))?
            }
            Some(library) => {
                let start_ns = monotonic_ns();
                let exchanged = library.factor(BlockMut::new(values, order, order, stride));
                let exchanged = exchanged.ok_or_else(factor::singular)?;
                (exchanged, monotonic_ns() - start_ns)
            }
        };
        pivots = exchanged;
        Ok(elapsed_ns)
    })?;
    let mut x = vec![0.0; order];
    fill_column(&mut x, job.seed, order as u64);
    solve::solve(shape.block(matrix.as_slice()), &pivots, &mut x);
    Ok((times, residual::of_solution(&x, job.seed)))
}
