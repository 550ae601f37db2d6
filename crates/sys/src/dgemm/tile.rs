//! The innermost loop: one tile of the result in registers, while the two factors pass by.

use super::lanes::Lanes;
use crate::prefetch;

/// Most numbers that a tile has.
pub(super) const MOST: usize = 24 * 8;

/// Columns of the left factor that are asked for ahead of their use: it comes from the second-level
/// cache. 16 was 2 % faster than none on 2 vCPUs of Sapphire Rapids beside another guest, 2026-11-22.
const AHEAD: usize = 16;

/// Steps between two looks at whether the end is reached, with registers of two and four: beside an SMT
/// sibling every instruction counts. With AVX2 products of n = 1000 got 1.066 [1.015, 1.124] of their rate with it, LU
/// of n = 1500 1.05 [0.94, 1.11], one thread (Intel Emerald Rapids, 2026-11-29, 35 and 15 rounds); LU on an AMD EPYC
/// (family 25, model 17) 0.975 to 0.994, in four noisy rounds of up to 1.01. Those of eight wait for their units.
const UNROLLED: usize = 4;

/// What becomes of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// It takes the target's place.
    Replace,
    /// It is added to the target.
    Add,
    /// It is taken from the target.
    Subtract,
}

/// One tile: `depth` columns of the left factor's sliver times as many rows of the right one's.
pub(super) struct Tile {
    pub(super) depth: usize,
    /// The tile's rows of the left factor, column after column.
    pub(super) left: *const f64,
    /// Numbers from one of these columns to the next.
    pub(super) left_step: usize,
    /// The tile's columns of the right factor, row after row, without gaps.
    pub(super) right: *const f64,
    /// Where the numbers of the right factor lie that later tiles need, and how many they are: they
    /// are asked for on the way. Any address will do. Without that, products were 5 % slower with
    /// AVX-512 and 10 % with AVX2: n = 1800, Zen 4, 2026-11-23.
    pub(super) next: *const f64,
    pub(super) next_numbers: usize,
    /// The tile of the target.
    pub(super) target: *mut f64,
    /// Numbers from one column of the target to the next.
    pub(super) stride: usize,
    pub(super) update: Update,
}

/// One column of the left factor times one row of the right one.
///
/// # Safety
///
/// As for [`tile`], for one step.
#[inline(always)]
unsafe fn step<V: Lanes, const M: usize, const N: usize>(
    sums: &mut [[V; M]; N],
    left: *const f64,
    left_step: usize,
    right: *const f64,
) {
    for line in 0..(M * V::COUNT).div_ceil(8) {
        prefetch::near(left.wrapping_add(AHEAD * left_step + 8 * line));
    }
    // SAFETY: M registers on the left and N doubles on the right, as the caller promises.
    unsafe {
        let rows: [V; M] = std::array::from_fn(|index| V::load(left.add(index * V::COUNT)));
        for (index, column) in sums.iter_mut().enumerate() {
            let factor = V::splat(*right.add(index));
            for (sum, row) in column.iter_mut().zip(rows) {
                *sum = sum.plus_product(row, factor);
            }
        }
    }
}

/// Works out one tile of `M` registers by `N` columns.
///
/// # Safety
///
/// The CPU must have the instructions of `V`. `left` must be readable for M registers at each of
/// `depth` steps, `right` for N × `depth` doubles, and `target` writable for M registers in each of
/// N columns, and readable unless it is replaced. Nobody else may write any of it.
#[inline(always)]
pub(super) unsafe fn tile<V: Lanes, const M: usize, const N: usize>(job: &Tile) {
    let Tile { depth, left_step, stride, target, .. } = *job;
    let (mut left, mut right) = (job.left, job.right);
    // SAFETY: all accesses are those that the caller promises: M registers per step on the left,
    // N doubles per step on the right, M registers in each of N columns of the target.
    unsafe {
        let zero = V::splat(0.0);
        let mut sums = [[zero; M]; N];
        // The target is needed when the loop is over. Its lines are asked for one column at a time:
        // all at once they would hold up those of the left factor.
        let share = depth.div_ceil(N);
        let mut done = 0;
        let unrolled = if V::COUNT < 8 { UNROLLED } else { 1 };
        let next_share = job.next_numbers.div_ceil(N).next_multiple_of(8);
        for column in 0..N {
            let start = target.wrapping_add(column * stride);
            for line in 0..(M * V::COUNT).div_ceil(8) {
                prefetch::near(start.wrapping_add(8 * line));
            }
            prefetch::near(start.wrapping_add(M * V::COUNT - 1));
            let end = depth.min(done + share);
            let share_end = job.next_numbers.min((column + 1) * next_share);
            for number in (column * next_share..share_end).step_by(8) {
                prefetch::second(job.next.wrapping_add(number));
            }
            while done + unrolled <= end {
                for _ in 0..unrolled {
                    step(&mut sums, left, left_step, right);
                    (left, right) = (left.wrapping_add(left_step), right.add(N));
                }
                done += unrolled;
            }
            while done < end {
                step(&mut sums, left, left_step, right);
                (left, right) = (left.wrapping_add(left_step), right.add(N));
                done += 1;
            }
        }
        let sign = V::splat(if job.update == Update::Subtract { -1.0 } else { 1.0 });
        for (index, column) in sums.iter().enumerate() {
            let start = target.wrapping_add(index * stride);
            for (row, &sum) in column.iter().enumerate() {
                let place = start.wrapping_add(row * V::COUNT);
                let sum = match job.update {
                    Update::Replace => sum,
                    Update::Add | Update::Subtract => V::load(place).plus_product(sum, sign),
                };
                sum.store(place);
            }
        }
    }
}
