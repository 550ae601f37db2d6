//! Factorisations against P A = L U, against the plain elimination, and the order of the work.

use super::super::super::residual;
use super::super::super::system::{fill, fill_column};
use super::super::solve::solve;
use super::*;

fn factored(order: usize, threads: u32) -> (Vec<f64>, Vec<f64>, Vec<usize>, Shape) {
    let shape = Shape { order, stride: order + 5 };
    let mut values = vec![0.0; order * shape.stride];
    fill(&mut values, shape, 8, 1).unwrap();
    let before = values.clone();
    let (pivots, _) = timed(Kernels::best(), &mut values, shape, threads).unwrap();
    (before, values, pivots, shape)
}

#[test]
fn the_factors_multiply_to_the_exchanged_matrix() {
    for (order, threads) in [(1, 1), (7, 3), (33, 1), (64, 2), (150, 2), (261, 5), (300, 1)] {
        let (mut before, values, pivots, shape) = factored(order, threads);
        BlockMut::new(&mut before, order, order, shape.stride).exchange_rows(&pivots);
        let factors = shape.block(&values);
        let expected = shape.block(&before);
        for column in 0..order {
            let u = factors.column(column);
            for row in 0..order {
                let below = |k: usize| if k == row { 1.0 } else { factors.column(k)[row] };
                let product: f64 = (0..=row.min(column)).map(|k| below(k) * u[k]).sum();
                let difference = (product - expected.column(column)[row]).abs();
                assert!(difference < 1e-11, "{order} {threads}: {row},{column}: {difference}");
                assert!(row <= column || u[row].abs() <= 1.0, "a pivot was not the largest");
            }
        }
    }
}

/// The textbook: one column after the other, the largest value of it as pivot. Returns L below
/// the diagonal and U above, as rows, and which row of the matrix each of them was.
fn eliminated(matrix: impl Fn(usize, usize) -> f64, n: usize) -> (Vec<Vec<f64>>, Vec<usize>) {
    let mut rows: Vec<Vec<f64>> =
        (0..n).map(|row| (0..n).map(|column| matrix(row, column)).collect()).collect();
    let mut places: Vec<usize> = (0..n).collect();
    for k in 0..n {
        let size = |row: &usize| rows[*row][k].abs();
        let pivot = (k..n).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap();
        rows.swap(k, pivot);
        places.swap(k, pivot);
        let (above, below) = rows.split_at_mut(k + 1);
        for row in below {
            row[k] /= above[k][k];
            let factor = row[k];
            row[k + 1..].iter_mut().zip(&above[k][k + 1..]).for_each(|(x, u)| *x -= factor * u);
        }
    }
    (rows, places)
}

#[test]
fn the_plain_elimination_finds_the_same() {
    let (before, values, pivots, shape) = factored(257, 2);
    let n = shape.order;
    let matrix = shape.block(&before);
    let (known, places) = eliminated(|row, column| matrix.column(column)[row], n);
    let factors = shape.block(&values);
    let mut rows: Vec<usize> = (0..n).collect();
    for (row, &other) in pivots.iter().enumerate() {
        rows.swap(row, other);
    }
    assert_eq!(rows, places);
    for column in 0..n {
        for (row, known) in known.iter().enumerate() {
            let (own, known) = (factors.column(column)[row], known[column]);
            assert!((known - own).abs() < 1e-10, "{row},{column}: {own} {known}");
        }
    }
    let mut b = vec![0.0; n];
    fill_column(&mut b, 8, n as u64);
    let mut y: Vec<f64> = places.iter().map(|&row| b[row]).collect();
    for row in 0..n {
        y[row] -= (0..row).map(|k| known[row][k] * y[k]).sum::<f64>();
    }
    for row in (0..n).rev() {
        y[row] -= (row + 1..n).map(|k| known[row][k] * y[k]).sum::<f64>();
        y[row] /= known[row][row];
    }
    let mut x = b;
    solve(factors, &pivots, &mut x);
    let scale = x.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    assert!((0..n).all(|row| (y[row] - x[row]).abs() < 1e-9 * scale));
    assert!(residual::of_solution(&x, 8).normalised < 2.0);
}

#[test]
fn a_singular_matrix_is_refused_by_all_threads() {
    for threads in [1, 3] {
        let shape = Shape { order: 200, stride: 200 };
        let mut values = vec![0.0; 200 * 200];
        fill(&mut values, shape, 1, 1).unwrap();
        // The panel with this column is not the first.
        values[190 * 200..191 * 200].fill(0.0);
        let result = timed(Kernels::best(), &mut values, shape, threads);
        assert!(matches!(result, Err(TrialError::Failed(text)) if text.contains("singular")));
    }
}

fn state(through: &[usize], factored: usize, spare: usize) -> State {
    let step = || Arc::new(RwLock::new(Step::new(8, 8).unwrap()));
    State {
        blocks: through.iter().map(|&through| Progress { through, busy: false }).collect(),
        factored,
        steps: vec![None; through.len()],
        spare: (0..spare).map(|_| step()).collect(),
        singular: false,
    }
}

#[test]
fn the_next_panel_comes_first_and_then_who_is_furthest_behind() {
    let mut state = state(&[0, 1, 1, 0, 0], 1, 1);
    assert_eq!(state.next(), Next::Factor(1));
    state.blocks[1].busy = true;
    assert_eq!(state.next(), Next::Eliminate(0, 3));
    state.blocks[3].busy = true;
    assert_eq!(state.next(), Next::Eliminate(0, 4));
    state.blocks[4].busy = true;
    assert_eq!(state.next(), Next::Wait);
    state.singular = true;
    assert_eq!(state.next(), Next::Home);
}

#[test]
fn without_a_spare_copy_no_panel_is_factored() {
    assert_eq!(state(&[0, 1, 1, 0], 1, 0).next(), Next::Eliminate(0, 3));
    assert_eq!(state(&[0, 0, 1, 1], 1, 1).next(), Next::Eliminate(0, 1));
    assert_eq!(state(&[0, 1], 2, 1).next(), Next::Home);
}

#[test]
fn copies_come_back_when_all_have_gone_through() {
    let mut state = state(&[0, 1, 2, 1], 2, 0);
    for panel in 0..2 {
        state.steps[panel] = Some(Arc::new(RwLock::new(Step::new(8, 8).unwrap())));
    }
    state.release();
    assert_eq!((state.spare.len(), state.steps[1].is_some()), (1, true));
    state.blocks[3].through = 2;
    state.release();
    assert_eq!(state.spare.len(), 2);
}

#[test]
fn small_matrices_are_cut_for_the_threads() {
    assert_eq!(block_columns(6000, 2), 256);
    assert_eq!(block_columns(100, 2), 32);
    assert_eq!(block_columns(1000, 2), 128);
    assert_eq!(block_columns(1, 64), 32);
}
