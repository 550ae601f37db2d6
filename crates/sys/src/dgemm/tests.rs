//! The kernels of every instruction set against the definition, at shapes that do and do not fit
//! their tiles.

use super::*;

fn levels() -> Vec<Kernels> {
    Level::ALL.into_iter().filter_map(Kernels::at).collect()
}

/// Numbers between −½ and ½ that look random.
fn numbers(length: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        })
        .collect()
}

fn close(a: f64, b: f64, depth: usize) -> bool {
    (a - b).abs() <= 4.0 * f64::EPSILON * (depth as f64 + 4.0)
}

#[test]
fn products_equal_the_definition() {
    let mut room = Room::new(64).unwrap();
    let sizes = [(1, 1, 1), (24, 8, 5), (25, 9, 3), (47, 70, 385), (700, 9, 385), (7, 3, 800)];
    for kernels in levels() {
        for (rows, columns, depth) in sizes {
            for update in [Update::Replace, Update::Add, Update::Subtract] {
                let (a, b) = (numbers((rows + 3) * depth, 1), numbers((depth + 1) * columns, 2));
                let before = numbers((rows + 2) * columns, 3);
                let mut after = before.clone();
                let left = Block::new(&a, rows, depth, rows + 3);
                let right = Block::new(&b, depth, columns, depth + 1);
                let target = BlockMut::new(&mut after, rows, columns, rows + 2);
                kernels.multiply(target, left, right, update, &mut room);
                for column in 0..columns {
                    for row in 0..rows + 2 {
                        let place = column * (rows + 2) + row;
                        let sum: f64 = (0..depth)
                            .map(|k| {
                                a[k * (rows + 3) + row.min(rows - 1)] * b[column * (depth + 1) + k]
                            })
                            .sum();
                        let expected = match update {
                            _ if row >= rows => before[place],
                            Update::Replace => sum,
                            Update::Add => before[place] + sum,
                            Update::Subtract => before[place] - sum,
                        };
                        assert!(
                            close(after[place], expected, depth),
                            "{:?} {rows}×{columns}×{depth} {update:?} at {row},{column}: {} {expected}",
                            kernels.level(),
                            after[place]
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn an_empty_product_is_zero() {
    let mut values = [1.0; 6];
    let mut room = Room::new(8).unwrap();
    let (left, right) = (Block::new(&[], 2, 0, 2), Block::new(&[], 0, 3, 0));
    let target = BlockMut::new(&mut values, 2, 3, 2);
    Kernels::best().multiply(target, left, right, Update::Replace, &mut room);
    assert_eq!(values, [0.0; 6]);
}

/// Factors by the textbook.
fn textbook(values: &mut [f64], rows: usize, columns: usize) -> Vec<usize> {
    let mut pivots = Vec::new();
    for k in 0..columns.min(rows) {
        let best = (k..rows)
            .max_by(|&a, &b| values[k * rows + a].abs().total_cmp(&values[k * rows + b].abs()))
            .unwrap();
        pivots.push(best);
        for j in 0..columns {
            values.swap(j * rows + k, j * rows + best);
        }
        for i in k + 1..rows {
            values[k * rows + i] /= values[k * rows + k];
            for j in k + 1..columns {
                values[j * rows + i] -= values[k * rows + i] * values[j * rows + k];
            }
        }
    }
    pivots
}

fn assert_close(a: &[f64], b: &[f64], what: &str) {
    let far = a.iter().zip(b).position(|(a, b)| (a - b).abs() > 1e-11 * (1.0 + b.abs()));
    if let Some(place) = far {
        panic!("{what}: {} instead of {} at {place}", a[place], b[place]);
    }
}

#[test]
fn narrow_panels_equal_the_textbook() {
    for kernels in levels() {
        for (rows, columns) in [(1, 1), (8, 8), (9, 3), (57, 8), (200, 5)] {
            let mut values = numbers(rows * columns, 5);
            let mut expected = values.clone();
            let mut pivots = vec![0; columns];
            let panel = BlockMut::new(&mut values, rows, columns, rows);
            assert!(kernels.factor_narrow(panel, &mut pivots));
            assert_eq!(pivots, textbook(&mut expected, rows, columns));
            assert_close(&values, &expected, &format!("{:?} {rows}×{columns}", kernels.level()));
        }
    }
}

#[test]
fn a_panel_without_a_usable_pivot_is_refused() {
    for kernels in levels() {
        for bad in [0.0, f64::INFINITY, f64::NAN] {
            let mut values = vec![1.0; 40];
            values[20..].fill(bad);
            let panel = BlockMut::new(&mut values, 20, 2, 20);
            assert!(!kernels.factor_narrow(panel, &mut [0; 2]), "{bad}");
        }
    }
}

#[test]
fn both_eliminations_equal_the_textbook() {
    for kernels in levels() {
        for (rows, known, columns) in
            [(8, 8, 1), (30, 8, 8), (65, 5, 20), (100, 24, 33), (90, 37, 70)]
        {
            let all = known + columns;
            let mut values = numbers(rows * all, 9);
            // The left part by the textbook, with its exchanges made in all columns.
            let mut left = values[..rows * known].to_vec();
            let pivots = textbook(&mut left, rows, known);
            BlockMut::new(&mut values, rows, all, rows).exchange_rows(&pivots);
            values[..rows * known].copy_from_slice(&left);
            let mut expected = values.clone();
            for k in 0..known {
                for j in known..all {
                    for i in k + 1..rows {
                        expected[j * rows + i] -= expected[k * rows + i] * expected[j * rows + k];
                    }
                }
            }
            let mut room = Room::new(32).unwrap();
            let mut within = values.clone();
            let panel = BlockMut::new(&mut within, rows, all, rows);
            kernels.eliminate_within(panel, known, &mut room);
            let what = format!("{:?} {rows} {known} {columns}", kernels.level());
            assert_close(&within, &expected, &what);

            let mut step = Step::new(rows, known).unwrap();
            step.take(kernels, Block::new(&left, rows, known, rows));
            let rest = BlockMut::new(&mut values[rows * known..], rows, columns, rows);
            kernels.eliminate(rest, &step, &mut room);
            assert_close(&values, &expected, &what);
        }
    }
}

#[test]
fn parts_are_split_where_asked() {
    let mut values: Vec<f64> = (0..12).map(f64::from).collect();
    let matrix = BlockMut::new(&mut values, 3, 3, 4);
    let (top, bottom) = matrix.split_rows(1);
    let (mut left, mut right) = bottom.split_columns(2);
    assert_eq!(left.column(1), [5.0, 6.0]);
    assert_eq!(right.column(0), [9.0, 10.0]);
    assert_eq!(top.as_block().column(2), [8.0]);
    right.exchange_rows(&[1]);
    assert_eq!(right.as_block().column(0), [10.0, 9.0]);
}

#[test]
#[should_panic(expected = "lies within")]
fn a_matrix_larger_than_its_values_is_refused() {
    let _ = Block::new(&[0.0; 11], 3, 3, 4).part(0, 0, 3, 3);
    let _ = Block::new(&[0.0; 10], 3, 3, 4);
}

#[test]
#[should_panic(expected = "a part is within")]
fn a_part_that_begins_beyond_all_numbers_is_refused() {
    let _ = Block::new(&[0.0; 9], 3, 3, 3).part(usize::MAX, 0, 2, 1);
}
