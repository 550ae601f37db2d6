//! The random matrices: made column by column from a seed, in any order, as often as needed.

use std::sync::Mutex;

use flatout_measure::SplitMix64;

use super::order::Shape;
use crate::workers::{self, ThreadError, lock};

/// Columns of one seed: more than any matrix has.
const COLUMNS: u64 = 1 << 32;

/// Fills column `column` of the matrix of that seed with numbers evenly spread over [−½, ½).
///
/// Units: plain numbers; the mean of their squares is 1/12, so that no pivot of a matrix is small
/// and the residual of its solution means something.
pub(super) fn fill_column(values: &mut [f64], seed: u64, column: u64) {
    let start = SplitMix64::new(seed.wrapping_mul(COLUMNS) ^ column).next_u64();
    let mut random = SplitMix64::new(start);
    for value in values {
        // 52 random bits behind a fixed exponent lie in [1, 2).
        *value = f64::from_bits(0x3ff0_0000_0000_0000 | (random.next_u64() >> 12)) - 1.5;
    }
}

/// Fills a whole matrix, in `threads` threads; padding between the columns stays as it is.
///
/// Errors: not all of them can be started.
pub(super) fn fill(
    values: &mut [f64],
    shape: Shape,
    seed: u64,
    threads: u32,
) -> Result<(), ThreadError> {
    let Shape { order, stride } = shape;
    let width = order.div_ceil(threads.max(1) as usize).max(1);
    let parts: Vec<_> = values.chunks_mut(width * stride).map(Mutex::new).collect();
    let fill = |index: u32| {
        let mut part = lock(&parts[index as usize]);
        let columns = part.chunks_mut(stride).zip(index as usize * width..order);
        columns.for_each(|(values, column)| fill_column(&mut values[..order], seed, column as u64));
    };
    workers::each(parts.len() as u32, fill).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_does_not_depend_on_the_threads() {
        let shape = Shape { order: 50, stride: 56 };
        let mut one = vec![7.0; 50 * 56];
        let mut three = one.clone();
        fill(&mut one, shape, 3, 1).unwrap();
        fill(&mut three, shape, 3, 3).unwrap();
        assert_eq!(one, three);
        assert_eq!(one[50..56], [7.0; 6], "padding is left alone");
        let mut column = vec![0.0; 50];
        fill_column(&mut column, 3, 49);
        assert_eq!(one[49 * 56..49 * 56 + 50], column);
        fill_column(&mut column, 4, 49);
        assert_ne!(one[49 * 56..49 * 56 + 50], column);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut values = vec![0.0; 100_000];
        fill_column(&mut values, 1, 0);
        assert!(values.iter().all(|value| (-0.5..0.5).contains(value)));
        let mean = values.iter().sum::<f64>() / 1e5;
        let square = values.iter().map(|value| value * value).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.005 && (square - 1.0 / 12.0).abs() < 0.002, "{mean} {square}");
    }
}
