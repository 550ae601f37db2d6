//! DGEMM: the product of two random matrices of doubles, C = A B.
//!
//! The figure counts 2 n³ operations. The threads share C out as a grid and each works out its
//! part alone. A result is checked against a random vector: A (B v) must equal C v (R. Freivalds,
//! "Probabilistic machines can use less running time", 1977); nothing else of the product is used.
//!
//! [`cases`] gives the row; `linpack::finish` adds its trials one by one.

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::row::Unit;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::dgemm::{Block, BlockMut, Doubles, Kernels, Room, Update};

use super::linpack::factor::{Shape, whole};
use super::linpack::order::{self, Chosen, Limits, Work, operations};
use super::linpack::system::{fill, fill_column};
use super::linpack::{self, ASSUMED_FLOP_PER_S, Options};

/// Differences below this times ε n pass, against the magnitude of what is compared.
const THRESHOLD: f64 = 16.0;
/// Order of the product that tells how fast the machine is.
const PROBE_ORDER: usize = 768;

/// The row `cpu/dgemm`; as `linpack::cases`.
///
/// # Errors
/// `Failed` for options that `linpack::check` refuses.
pub fn cases(options: &Options) -> Result<Vec<Case<'static, Plain>>, TrialError> {
    let kernels = Kernels::best();
    let (threads, seed) = (options.threads.max(1), options.seed);
    let rate = match options.order {
        Some(_) => ASSUMED_FLOP_PER_S,
        None => probe(kernels, threads)?,
    };
    let limits = Limits::of(options, rate);
    let chosen =
        order::choose(Work::Product, options.order, &limits).map_err(TrialError::Unsupported)?;
    let mut number = 0_u64;
    Ok(vec![Case {
        row: Plain {
            id: "cpu/dgemm",
            parameters: linpack::parameters(kernels, &chosen, threads),
            unit: Unit::FlopPerSecond,
        },
        trial: Box::new(move |trial_seed| {
            number += 1;
            sample(kernels, chosen, threads, (seed ^ trial_seed, number))
        }),
    }])
}

/// Operations per second of a small product, the better of two.
fn probe(kernels: Kernels, threads: u32) -> Result<f64, TrialError> {
    let shape = Shape { order: PROBE_ORDER, stride: PROBE_ORDER + 8 };
    let mut best = f64::MAX;
    for seed in 0..2 {
        best = best.min(Product::new(shape, seed, threads)?.run(kernels, threads)? as f64);
    }
    Ok(operations(Work::Product, PROBE_ORDER as u64) / best.max(1.0) * 1e9)
}

/// One trial; `run` is its seed and its number.
fn sample(
    kernels: Kernels,
    chosen: Chosen,
    threads: u32,
    run: (u64, u64),
) -> Result<Sample, TrialError> {
    let (seed, number) = run;
    let shape = Shape { order: chosen.order as usize, stride: chosen.stride as usize };
    let mut product = Product::new(shape, seed, threads)?;
    let elapsed_ns = product.run(kernels, threads)?;
    let (difference, normalised) = product.difference(seed);
    if !passes(normalised) {
        return Err(TrialError::Failed(format!(
            "dgemm: the product is wrong: normalised difference {normalised} (limit {THRESHOLD}), \
             order {}, seed {seed}",
            chosen.order
        )));
    }
    let figures = [elapsed_ns as f64 / 1e9, difference, normalised];
    Ok(Sample {
        amount: operations(Work::Product, chosen.order),
        elapsed_ns,
        warnings: linpack::crowd(threads),
        series: linpack::series(number, figures),
        ..Sample::default()
    })
}

/// Whether a normalised difference is small enough. One that is no number is not.
fn passes(normalised: f64) -> bool {
    normalised < THRESHOLD
}

/// Three matrices.
struct Product {
    shape: Shape,
    left: Doubles,
    right: Doubles,
    target: Doubles,
}

fn no_memory(error: std::io::Error) -> TrialError {
    TrialError::Failed(format!("dgemm: no memory for the matrices: {error}"))
}

impl Product {
    fn new(shape: Shape, seed: u64, threads: u32) -> Result<Self, TrialError> {
        let matrix = || Doubles::new(shape.order * shape.stride).map_err(no_memory);
        let mut product = Self { shape, left: matrix()?, right: matrix()?, target: matrix()? };
        fill(product.left.as_mut_slice(), shape, seed, threads);
        fill(product.right.as_mut_slice(), shape, !seed, threads);
        Ok(product)
    }

    /// Works out the product; returns how long it took.
    fn run(&mut self, kernels: Kernels, threads: u32) -> Result<u64, TrialError> {
        let Shape { order, stride } = self.shape;
        let (down, across) = grid(threads);
        let columns = part(order, across);
        let rooms: Result<Vec<Room>, _> = (0..down * across).map(|_| Room::new(columns)).collect();
        let mut rooms = rooms.map_err(no_memory)?;
        let (left, right) =
            (whole(self.left.as_slice(), self.shape), whole(self.right.as_slice(), self.shape));
        let target = BlockMut::new(self.target.as_mut_slice(), order, order, stride);
        let mut parts = parts(target, left, right, (down, across));
        let start_ns = monotonic_ns();
        std::thread::scope(|scope| {
            let own = parts.pop().zip(rooms.pop());
            let others = parts.into_iter().zip(&mut rooms);
            let mut late = Vec::new();
            for (part, room) in others {
                let thread = std::thread::Builder::new();
                // A closure that was not spawned is gone, and its part with it.
                if let Err(error) = thread.spawn_scoped(scope, move || part.run(kernels, room)) {
                    late.push(error);
                }
            }
            if let Some((part, mut room)) = own {
                part.run(kernels, &mut room);
            }
            match late.pop() {
                Some(error) => {
                    Err(TrialError::Failed(format!("dgemm: cannot start a thread: {error}")))
                }
                None => Ok(()),
            }
        })?;
        Ok(monotonic_ns().saturating_sub(start_ns))
    }

    /// ‖A (B v) − C v‖∞ for a random v, and the same normalised: divided by
    /// ε n (‖C v‖∞ + ‖B v‖∞ ÷ 2), where ½ bounds the numbers of A and ε = 2⁻⁵³.
    fn difference(&self, seed: u64) -> (f64, f64) {
        let order = self.shape.order;
        let mut v = vec![0.0; order];
        fill_column(&mut v, seed, order as u64);
        let times = |matrix: &Doubles, v: &[f64]| multiply(whole(matrix.as_slice(), self.shape), v);
        let right = times(&self.right, &v);
        let (expected, found) = (times(&self.left, &right), times(&self.target, &v));
        let most = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(0.0, |most: f64, value| {
                if value.is_nan() || most.is_nan() { f64::NAN } else { most.max(value.abs()) }
            })
        };
        let difference = most(&mut expected.iter().zip(&found).map(|(a, b)| a - b));
        let scale = most(&mut expected.iter().copied()) + most(&mut right.iter().copied()) / 2.0;
        let unit = f64::EPSILON / 2.0;
        let normalised =
            if difference == 0.0 { 0.0 } else { difference / (unit * order as f64 * scale) };
        (difference, normalised)
    }
}

/// matrix × v.
fn multiply(matrix: Block<'_>, v: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; matrix.rows()];
    for (column, v) in v.iter().enumerate() {
        for (sum, value) in product.iter_mut().zip(matrix.column(column)) {
            *sum += value * v;
        }
    }
    product
}

/// What one thread works out.
struct Part<'m> {
    target: BlockMut<'m>,
    left: Block<'m>,
    right: Block<'m>,
}

impl Part<'_> {
    fn run(self, kernels: Kernels, room: &mut Room) {
        let Self { target, left, right } = self;
        kernels.multiply(target, left, right, Update::Replace, room);
    }
}

/// How the target is shared out: parts one below the other, and side by side. As square as may
/// be, since a thread packs the rows of A and the columns of B that its part needs.
fn grid(threads: u32) -> (usize, usize) {
    let threads = threads.max(1);
    let down = (1..=threads.isqrt()).rev().find(|down| threads.is_multiple_of(*down)).unwrap_or(1);
    (down as usize, (threads / down) as usize)
}

/// Rows, or columns, of one of `parts`: whole tiles of all kernels.
fn part(order: usize, parts: usize) -> usize {
    order.div_ceil(parts).next_multiple_of(24)
}

fn parts<'m>(
    target: BlockMut<'m>,
    left: Block<'m>,
    right: Block<'m>,
    grid: (usize, usize),
) -> Vec<Part<'m>> {
    let order = left.rows();
    let (high, wide) = (part(order, grid.0), part(order, grid.1));
    let mut parts = Vec::new();
    let mut rest = target;
    for column in (0..order).step_by(wide) {
        let columns = wide.min(order - column);
        let (mut strip, others) = rest.split_columns(columns);
        rest = others;
        for row in (0..order).step_by(high) {
            let rows = high.min(order - row);
            let (target, below) = strip.split_rows(rows);
            strip = below;
            let left = left.part(row, 0, rows, order);
            parts.push(Part { target, left, right: right.part(0, column, order, columns) });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(order: u64, threads: u32) -> Options {
        Options {
            order: Some(order),
            trials: 1,
            threads,
            time_ns: 1_000_000,
            free_bytes: 1 << 30,
            seed: 3,
        }
    }

    #[test]
    fn products_of_any_order_and_threads_pass_their_check() {
        for (order, threads) in [(1, 1), (30, 1), (100, 2), (77, 6), (130, 4)] {
            let mut cases = cases(&options(order, threads)).unwrap();
            let sample = (cases[0].trial)(1).unwrap();
            assert_eq!(sample.amount, 2.0 * (order as f64).powi(3));
            let normalised = sample.series[2].points[0][1];
            assert!(normalised < 2.0, "{order} {threads}: {normalised}");
        }
    }

    #[test]
    fn a_product_with_one_wrong_number_fails_its_check() {
        let shape = Shape { order: 60, stride: 72 };
        let mut product = Product::new(shape, 1, 1).unwrap();
        product.run(Kernels::best(), 1).unwrap();
        assert!(product.difference(1).1 < 2.0);
        for wrong in [1e-6, f64::NAN, f64::INFINITY] {
            let right = product.target.as_slice()[17 * 72 + 3];
            product.target.as_mut_slice()[17 * 72 + 3] = right + wrong;
            let (_, normalised) = product.difference(1);
            assert!(!passes(normalised), "{wrong}: {normalised}");
            product.target.as_mut_slice()[17 * 72 + 3] = right;
        }
    }

    #[test]
    fn the_grid_has_a_part_for_each_thread_and_covers_all() {
        assert_eq!(
            [1, 2, 4, 7, 8, 12, 64].map(grid),
            [(1, 1), (1, 2), (2, 2), (1, 7), (2, 4), (3, 4), (8, 8)]
        );
        let mut values = vec![0.0; 100 * 100];
        let zeros = vec![0.0; 100 * 100];
        let all = Block::new(&zeros, 100, 100, 100);
        let target = BlockMut::new(&mut values, 100, 100, 100);
        let parts = parts(target, all, all, (2, 3));
        assert!(parts.len() <= 6);
        let covered: usize =
            parts.iter().map(|part| part.target.rows() * part.target.columns()).sum();
        assert_eq!(covered, 100 * 100);
    }
}
