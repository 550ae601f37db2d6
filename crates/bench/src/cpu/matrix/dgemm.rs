//! DGEMM: the product of two random matrices of doubles, C = A B.
//!
//! The threads share C out as a grid and each works out its part; of small matrices those in a row
//! of the grid share the packed A.

use std::sync::{PoisonError, RwLock};

use flatout_measure::TrialError;
use flatout_sys::dgemm::{Block, BlockMut, Doubles, Kernels, PackedLeft, Room, Update};

use super::meeting::{self, Meeting, Timed};
use super::order::Shape;
use super::system::fill;
use super::{Ran, residual};
use crate::workers::Spent;

/// Most numbers of A that threads pack for each other; more go through each thread's own cache.
const SHARED_NUMBERS: usize = 1 << 20;

/// Makes the matrices of `seed` and multiplies them; the clock runs for the product.
pub(super) fn run(
    kernels: Kernels,
    shape: Shape,
    threads: u32,
    seed: u64,
) -> Result<Ran, TrialError> {
    let mut product = Product::new(kernels, shape, seed, threads)?;
    let begun = Spent::now();
    let Timed { elapsed_ns, cpu_ns } = product.multiply()?;
    let spent = Spent { cpu_ns, ..Spent::since(begun) };
    Ok(Ran { elapsed_ns, spent, residual: Box::new(move || product.residual(seed)) })
}

/// Three matrices, and what they are multiplied with.
pub(super) struct Product {
    kernels: Kernels,
    threads: u32,
    shape: Shape,
    left: Doubles,
    right: Doubles,
    target: Doubles,
    /// Memory for the packed factors, from the first time on: new memory is cold, which cost a product
    /// of n = 500 a tenth (Zen 4, 2026-11-26).
    rooms: Vec<Room>,
    rows: Vec<SharedRows>,
}

impl Product {
    pub(super) fn new(
        kernels: Kernels,
        shape: Shape,
        seed: u64,
        threads: u32,
    ) -> Result<Self, TrialError> {
        let matrix = || Doubles::new(shape.order * shape.stride);
        let [mut left, mut right, target] = [matrix()?, matrix()?, matrix()?];
        fill(left.as_mut_slice(), shape, seed, threads)?;
        fill(right.as_mut_slice(), shape, !seed, threads)?;
        let (rooms, rows) = (Vec::new(), Vec::new());
        Ok(Self { kernels, threads, shape, left, right, target, rooms, rows })
    }

    /// Target and factors.
    pub(super) fn blocks(&mut self) -> (BlockMut<'_>, Block<'_>, Block<'_>) {
        let Shape { order, stride } = self.shape;
        let [left, right] = [&self.left, &self.right].map(|one| self.shape.block(one.as_slice()));
        (BlockMut::new(self.target.as_mut_slice(), order, order, stride), left, right)
    }

    /// Works out the product; returns how long it took, with the threads there and awake.
    pub(super) fn multiply(&mut self) -> Result<Timed, TrialError> {
        let (kernels, order) = (self.kernels, self.shape.order);
        let (down, across) = grid(self.threads);
        let (mut rooms, mut rows) =
            (std::mem::take(&mut self.rooms), std::mem::take(&mut self.rows));
        let (target, left, right) = self.blocks();
        let parts = parts(target, left, right, (down, across));
        let is_shared = across > 1 && order * kernels.depth_of(order) <= SHARED_NUMBERS;
        // All memory is there before a thread is: one that had none would be waited for.
        if rooms.is_empty() {
            let room = |_| Room::new(part_size(order, across, 8));
            rooms = (0..parts.len()).map(room).collect::<Result<_, _>>()?;
            rows = parts
                .chunk_by(|one, other| is_shared && one.row == other.row)
                .map(|row| SharedRows::new(kernels, is_shared, row))
                .collect::<Result<_, _>>()?;
        }
        for shared in &mut rows {
            shared.meeting = Meeting::of(shared.threads as u32);
        }
        let row_of: Vec<(usize, usize)> = (0..)
            .zip(&rows)
            .flat_map(|(row, shared)| (0..shared.threads).map(move |member| (row, member)))
            .collect();
        let mut parts: Vec<_> = parts.into_iter().zip(&mut rooms).collect();
        let multiply = |index: u32, (part, room): &mut (Part<'_>, &mut Room)| {
            let (row, member) = row_of[index as usize];
            if is_shared {
                rows[row].multiply(kernels, part, member, room);
            } else {
                let (left, right) = (part.left, part.right);
                kernels.multiply(part.target.again(), left, right, Update::Replace, room);
            }
        };
        let timed = meeting::timed(&mut parts, multiply)?;
        (self.rooms, self.rows) = (rooms, rows);
        Ok(timed)
    }

    pub(super) fn residual(&self, seed: u64) -> residual::Residual {
        let factors = [self.left.as_slice(), self.right.as_slice()];
        residual::of_product(factors, self.target.as_slice(), self.shape, seed)
    }
}

/// What one thread works out.
struct Part<'m> {
    /// Its row in the grid.
    row: usize,
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

/// Rows, or columns, of one of `parts`: whole tiles of all kernels, of 24 rows or 8 columns.
fn part_size(order: usize, parts: usize, tile: usize) -> usize {
    order.div_ceil(parts).next_multiple_of(tile)
}

fn parts<'m>(
    target: BlockMut<'m>,
    left: Block<'m>,
    right: Block<'m>,
    grid: (usize, usize),
) -> Vec<Part<'m>> {
    let order = left.rows();
    let (high, wide) = (part_size(order, grid.0, 24), part_size(order, grid.1, 8));
    let mut parts = Vec::new();
    let mut rest = target;
    for row in (0..order).step_by(high) {
        let rows = high.min(order - row);
        let (mut strip, below) = rest.split_rows(rows);
        rest = below;
        let left = left.part(row, 0, rows, order);
        for column in (0..order).step_by(wide) {
            let columns = wide.min(order - column);
            let (target, others) = strip.split_columns(columns);
            strip = others;
            parts.push(Part { row, target, left, right: right.part(0, column, order, columns) });
        }
    }
    parts
}

/// The rows of A that the threads of one row of the grid pack for each other: each packs some of
/// them, and all use all. Two sets, so that one is packed while somebody still uses the other.
struct SharedRows {
    threads: usize,
    sets: [Vec<RwLock<PackedLeft>>; 2],
    meeting: Meeting,
}

impl SharedRows {
    fn new(kernels: Kernels, is_shared: bool, row: &[Part<'_>]) -> std::io::Result<Self> {
        let (rows, depth) = (row[0].left.rows(), kernels.depth_of(row[0].left.columns()));
        let size = part_size(rows, row.len(), 24);
        let members = if is_shared { row.len() } else { 0 };
        let set = || -> std::io::Result<Vec<_>> {
            (0..members).map(|_| PackedLeft::new(size, depth).map(RwLock::new)).collect()
        };
        let meeting = Meeting::of(row.len() as u32);
        Ok(Self { threads: row.len(), sets: [set()?, set()?], meeting })
    }

    fn multiply(&self, kernels: Kernels, part: &mut Part<'_>, member: usize, room: &mut Room) {
        let (rows, depth) = (part.left.rows(), part.left.columns());
        let size = part_size(rows, self.threads, 24);
        let range = |member: usize| {
            let first = rows.min(member * size);
            (first, size.min(rows - first))
        };
        let deep = kernels.depth_of(depth);
        for (turn, step) in (1..).zip((0..depth).step_by(deep)) {
            let deep = deep.min(depth - step);
            let set = &self.sets[turn as usize % 2];
            let (first, own) = range(member);
            let mut packed = set[member].write().unwrap_or_else(PoisonError::into_inner);
            packed.take(kernels, part.left.part(first, step, own, deep));
            drop(packed);
            room.take_right(kernels, part.right.part(step, 0, deep, part.right.columns()));
            self.meeting.wait(turn);
            let update = if step == 0 { Update::Replace } else { Update::Add };
            // Each begins with its own, which its cache holds.
            for other in 0..self.threads {
                let other = (member + other) % self.threads;
                let (first, high) = range(other);
                let packed = set[other].read().unwrap_or_else(PoisonError::into_inner);
                let (_, below) = part.target.again().split_rows(first);
                kernels.multiply_packed(below.split_rows(high).0, &packed, update, room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_any_order_and_threads_pass_their_check() {
        for (order, threads) in [(1, 1), (30, 1), (100, 2), (77, 6), (130, 4)] {
            let shape = Shape::of_order(order);
            let mut product = Product::new(Kernels::best(), shape, 3, threads).unwrap();
            // The second time in memory that is there.
            for _ in 0..2 {
                assert!(product.multiply().unwrap().elapsed_ns > 0);
                let normalised = product.residual(3).normalised;
                assert!(normalised < 2.0, "{order} {threads}: {normalised}");
                product.target.as_mut_slice().fill(0.0);
            }
        }
    }

    #[test]
    fn a_product_with_one_wrong_number_fails_its_check() {
        let shape = Shape { order: 60, stride: 72 };
        let mut product = Product::new(Kernels::best(), shape, 1, 1).unwrap();
        product.multiply().unwrap();
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
