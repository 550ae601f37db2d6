//! The solution from the factors: y = L⁻¹ P b, then x = U⁻¹ y, column by column.

use flatout_sys::dgemm::Block;

/// Columns that are taken at a time, so that the vector is read and written once for all of them.
const GROUP: usize = 4;

/// Replaces `b` by the solution. `factors` holds L and U, `pivots` for each row the one that it was
/// exchanged with, in order.
///
/// Cost: 2 n² operations; each of the n² numbers is read once.
pub(in super::super) fn solve(factors: Block<'_>, pivots: &[usize], b: &mut [f64]) {
    for (row, &other) in pivots.iter().enumerate() {
        b.swap(row, other);
    }
    let n = b.len();
    for first in (0..n).step_by(GROUP) {
        let last = n.min(first + GROUP);
        for column in first..last {
            let known = b[column];
            let values = &factors.column(column)[column + 1..last];
            subtract(&mut b[column + 1..last], values, known);
        }
        let (known, rest) = b.split_at_mut(last);
        subtract_group(rest, factors, (first, last), &known[first..], last);
    }
    for end in (1..=n).rev().step_by(GROUP) {
        let start = end.saturating_sub(GROUP);
        for column in (start..end).rev() {
            let values = factors.column(column);
            b[column] /= values[column];
            let known = b[column];
            subtract(&mut b[start..column], &values[start..column], known);
        }
        let (rest, known) = b.split_at_mut(start);
        subtract_group(rest, factors, (start, end), known, 0);
    }
}

/// rest −= column × known.
fn subtract(rest: &mut [f64], column: &[f64], known: f64) {
    for (rest, value) in rest.iter_mut().zip(column) {
        *rest -= value * known;
    }
}

/// Takes the columns of `group`, from row `row` on, times what is known, from the rest.
fn subtract_group(
    rest: &mut [f64],
    factors: Block<'_>,
    group: (usize, usize),
    known: &[f64],
    row: usize,
) {
    let length = rest.len();
    let column = |index: usize| &factors.column(group.0 + index)[row..row + length];
    if group.1 - group.0 < GROUP {
        for (index, &known) in known.iter().enumerate() {
            subtract(rest, column(index), known);
        }
        return;
    }
    let columns: [&[f64]; GROUP] = std::array::from_fn(column);
    let [k0, k1, k2, k3] = [known[0], known[1], known[2], known[3]];
    let [c0, c1, c2, c3] = columns;
    for (index, rest) in rest.iter_mut().enumerate() {
        *rest -= (c0[index] * k0 + c1[index] * k1) + (c2[index] * k2 + c3[index] * k3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_systems_are_solved() {
        // A = [[2, 1], [4, 5]]: rows exchanged, L = [[1, 0], [½, 1]], U = [[4, 5], [0, −1½]].
        let factors = [4.0, 0.5, 5.0, -1.5];
        let mut b = [4.0, 14.0];
        solve(Block::new(&factors, 2, 2, 2), &[1, 1], &mut b);
        assert_eq!(b, [1.0, 2.0]);
    }

    #[test]
    fn every_order_around_a_group_is_solved() {
        for n in 1..15_usize {
            // L has halves below its ones, U twos on its diagonal and ones above.
            let value = |row: usize, column: usize| match row.cmp(&column) {
                std::cmp::Ordering::Greater => 0.5,
                std::cmp::Ordering::Equal => 2.0,
                std::cmp::Ordering::Less => 1.0,
            };
            let factors: Vec<f64> = (0..n * n).map(|place| value(place % n, place / n)).collect();
            let x: Vec<f64> = (1..=n).map(|value| value as f64).collect();
            let above = |row: usize| (row..n).map(|column| value(row, column) * x[column]).sum();
            let y: Vec<f64> = (0..n).map(above).collect();
            let mut b: Vec<f64> =
                (0..n).map(|row| y[row] + y[..row].iter().sum::<f64>() * 0.5).collect();
            let none: Vec<usize> = (0..n).collect();
            solve(Block::new(&factors, n, n, n), &none, &mut b);
            assert!(b.iter().zip(&x).all(|(b, x)| (b - x).abs() < 1e-9), "{n}: {b:?}");
        }
    }
}
