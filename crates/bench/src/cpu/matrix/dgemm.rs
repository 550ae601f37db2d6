//! DGEMM: the product of two random matrices of doubles, C = A B.
//!
//! The threads share C out as a grid and each works out its part alone.

use std::sync::{Mutex, PoisonError};

use flatout_measure::case::TrialError;
use flatout_sys::dgemm::{Block, BlockMut, Doubles, Kernels, Room, Update};

use super::Ran;
use super::order::Shape;
use super::residual;
use super::system::fill;
use crate::workers;

/// Makes the matrices of `seed` and multiplies them; the clock runs for the product.
pub(super) fn run(
    kernels: Kernels,
    shape: Shape,
    threads: u32,
    seed: u64,
) -> Result<Ran, TrialError> {
    let mut product = Product::new(shape, seed, threads)?;
    let elapsed_ns = product.multiply(kernels, threads)?;
    Ok(Ran { elapsed_ns, residual: Box::new(move || product.residual(seed)) })
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
    fn multiply(&mut self, kernels: Kernels, threads: u32) -> Result<u64, TrialError> {
        let Shape { order, stride } = self.shape;
        let (down, across) = grid(threads);
        let [left, right] = [&self.left, &self.right].map(|one| self.shape.block(one.as_slice()));
        let target = BlockMut::new(self.target.as_mut_slice(), order, order, stride);
        let parts = parts(target, left, right, (down, across));
        let parts: Vec<_> = parts.into_iter().map(Mutex::new).collect();
        let prepare = |index: u32| -> Result<_, TrialError> {
            let part = parts[index as usize].lock().unwrap_or_else(PoisonError::into_inner);
            Ok((part, Room::new(part_size(order, across)).map_err(no_memory)?))
        };
        let finished = workers::run(parts.len() as u32, prepare, |_, (part, room)| {
            let (left, right) = (part.left, part.right);
            kernels.multiply(part.target.again(), left, right, Update::Replace, room);
            Ok(())
        });
        finished.results.into_iter().collect::<Result<(), TrialError>>()?;
        Ok(finished.elapsed_ns)
    }

    fn residual(&self, seed: u64) -> residual::Residual {
        let factors = [self.left.as_slice(), self.right.as_slice()];
        residual::of_product(factors, self.target.as_slice(), self.shape, seed)
    }
}

/// What one thread works out.
struct Part<'m> {
    target: BlockMut<'m>,
    left: Block<'m>,
    right: Block<'m>,
}

/// How the target is shared out: parts one below the other, and side by side. As square as may
/// be, since a thread packs the rows of A and the columns of B that its part needs.
fn grid(threads: u32) -> (usize, usize) {
    let down = (1..=threads.isqrt()).rev().find(|down| threads.is_multiple_of(*down)).unwrap_or(1);
    (down as usize, (threads / down) as usize)
}

/// Rows, or columns, of one of `parts`: whole tiles of all kernels.
fn part_size(order: usize, parts: usize) -> usize {
    order.div_ceil(parts).next_multiple_of(24)
}

fn parts<'m>(
    target: BlockMut<'m>,
    left: Block<'m>,
    right: Block<'m>,
    grid: (usize, usize),
) -> Vec<Part<'m>> {
    let order = left.rows();
    let (high, wide) = (part_size(order, grid.0), part_size(order, grid.1));
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

    #[test]
    fn products_of_any_order_and_threads_pass_their_check() {
        for (order, threads) in [(1, 1), (30, 1), (100, 2), (77, 6), (130, 4)] {
            let ran = run(Kernels::best(), Shape::of_order(order), threads, 3).unwrap();
            let normalised = (ran.residual)().normalised;
            assert!(ran.elapsed_ns > 0 && normalised < 2.0, "{order} {threads}: {normalised}");
        }
    }

    #[test]
    fn a_product_with_one_wrong_number_fails_its_check() {
        let shape = Shape { order: 60, stride: 72 };
        let mut product = Product::new(shape, 1, 1).unwrap();
        product.multiply(Kernels::best(), 1).unwrap();
        assert!(product.residual(1).normalised < 2.0);
        for wrong in [1e-6, f64::NAN, f64::INFINITY] {
            let right = product.target.as_slice()[17 * 72 + 3];
            product.target.as_mut_slice()[17 * 72 + 3] = right + wrong;
            let residual = product.residual(1);
            assert!(!residual.passes(), "{wrong}: {residual:?}");
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
