//! Many rows compared at once: what their tests make of each other, so that a whole comparison is
//! wrong in one case of twenty at most, not each of its rows.

use crate::random::SplitMix64;

/// The p-values as they count when all of them are looked at: the chance that any of the true
/// hypotheses is rejected at this level, whichever are true and however they depend on each other.
///
/// In the order of the input. Values must lie between 0 and 1.
///
/// Source: Holm, "A simple sequentially rejective multiple test procedure", 1979.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        most = most.max(p_values[index] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[index] = most;
    }
    adjusted
}

/// The same for test statistics, by what they are once the runs are divided in other ways: the
/// share of divisions in which the largest statistic of the rows that are not yet rejected is at
/// least as large.
///
/// In the order of `observed`; statistics are distances from nothing, so more is more. Each of
/// `divided` has one for each row, and the division that was made is among them. Exact whatever
/// the distribution and the dependence of rows, if runs could have come in any order.
///
/// Source: Westfall and Young, "Resampling-based multiple testing", 1993, algorithm 4.1 (step-down
/// maxT); in the form of Ge, Dudoit and Speed, 2003, box 2.
pub fn step_down(observed: &[f64], divided: impl Iterator<Item = Vec<f64>>) -> Vec<f64> {
    /// Sums in another order differ in their last digits.
    const EQUAL_WITHIN: f64 = 1e-9;
    let mut order: Vec<usize> = (0..observed.len()).collect();
    order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
    let (mut reached, mut divisions) = (vec![0_usize; observed.len()], 0_usize);
    for statistics in divided {
        divisions += 1;
        let mut largest = 0.0_f64;
        for index in order.iter().rev() {
            largest = largest.max(statistics[*index]);
            reached[*index] += usize::from(largest >= observed[*index] * (1.0 - EQUAL_WITHIN));
        }
    }
    let (mut adjusted, mut most) = (vec![1.0; observed.len()], 0.0_f64);
    for index in order {
        most = most.max(reached[index] as f64 / divisions.max(1) as f64);
        adjusted[index] = most;
    }
    adjusted
}

/// The chance that samples come to lie so far above the second ones if both are of one kind: the exact
/// one-sided rank-sum test; equal samples count as lower ones. 1 where one of both is empty.
///
/// Cost: some (n + m)² · n² · ½ additions for n samples against m.
/// Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger
/// than the other", 1947.
pub fn above(samples: &[f64], others: &[f64]) -> f64 {
    let (first, all) = (samples.len(), samples.len() + others.len());
    let wins = |sample: &f64| others.iter().filter(|other| sample > other).count();
    let reached = samples.iter().map(wins).sum::<usize>() + first * (first + 1) / 2;
    let most = first * (2 * all - first + 1) / 2;
    // Of each size, how many sets of the ranks so far have each sum.
    let mut sets = vec![vec![0.0; most + 1]; first + 1];
    sets[0][0] = 1.0;
    for rank in 1..=all {
        for size in (1..=first.min(rank)).rev() {
            for sum in rank..=most {
                sets[size][sum] += sets[size - 1][sum - rank];
            }
        }
    }
    sets[first][reached..].iter().sum::<f64>() / sets[first].iter().sum::<f64>()
}

/// How many ways there are to pick `picked` of `of`; infinite where a double does not hold it.
pub fn combinations(of: usize, picked: usize) -> f64 {
    (0..picked.min(of))
        .map(|index| (of - index) as f64 / (index + 1) as f64)
        .product::<f64>()
        .round()
}

/// Ways to divide runs anew into two sides of these sizes; true stands for the second side. All
/// of them if there are at most `most`, else the one that was made and random ones.
pub fn divisions(sizes: [usize; 2], most: usize, random: &mut SplitMix64) -> Vec<Vec<bool>> {
    let [first, second] = sizes;
    let made: Vec<bool> = (0..first + second).map(|run| run >= first).collect();
    if combinations(first + second, second) > most as f64 {
        let mut drawn = made.clone();
        let draw = |_| {
            random.shuffle(&mut drawn);
            drawn.clone()
        };
        return std::iter::once(made).chain((1..most).map(draw)).collect();
    }
    let mut all = vec![made];
    while let Some(next) = next_division(&all[all.len() - 1]) {
        all.push(next);
    }
    all
}

/// The next division in lexical order, false before true; `None` after the last.
fn next_division(division: &[bool]) -> Option<Vec<bool>> {
    // The last false that has a true behind it becomes true; what is behind it begins anew.
    let behind = division.iter().rposition(|is_second| *is_second)?;
    let place = division[..behind].iter().rposition(|is_second| !is_second)?;
    let mut next = division.to_vec();
    next[place] = true;
    let left = division[place + 1..].iter().filter(|is_second| **is_second).count() - 1;
    let tail = &mut next[place + 1..];
    let start = tail.len() - left;
    tail.iter_mut().enumerate().for_each(|(index, is_second)| *is_second = index >= start);
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrected_p_values_agree_with_r() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "holm") of R.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005, 0.9]);
        for (got, expected) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.025, 0.9]) {
            assert!((got - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.7, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn statistics_are_corrected_from_the_largest_down() {
        // By hand: the largest of all rows in each division, then without the first row.
        let divided = [vec![5.0, 2.0], vec![1.0, 3.0], vec![6.0, 0.5], vec![0.1, 0.2]];
        assert_eq!(step_down(&[5.0, 2.0], divided.into_iter()), [0.5, 0.5]);
        let divided = [vec![5.0, 2.0], vec![1.0, 0.0], vec![0.0, 1.0], vec![0.1, 0.2]];
        assert_eq!(step_down(&[5.0, 2.0], divided.into_iter()), [0.25, 0.25]);
        let divided = [vec![f64::INFINITY, 2.0], vec![0.0, 2.0]];
        assert_eq!(step_down(&[f64::INFINITY, 2.0], divided.into_iter()), [0.5, 1.0]);
    }

    #[test]
    fn the_chance_of_ranks_is_exact() {
        // By hand; the last one by counting in fractions of whole numbers (0.612 by the normal distribution).
        let close = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-9, "{got}");
        close(above(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]), 1.0 / 20.0);
        close(above(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 1.0);
        close(above(&[1.1, 3.3, 5.5, 7.7], &[2.2, 4.4, 6.6]), 0.5714285714285714);
        close(above(&[2.0, 3.0], &[2.0, 1.0]), above(&[2.0, 3.0], &[2.5, 1.0]));
        assert_eq!([above(&[], &[1.0]), above(&[1.0], &[])], [1.0, 1.0]);
        let many: Vec<f64> = (0..20).map(f64::from).collect();
        let others: Vec<f64> = many.iter().map(|one| one + 0.5).collect();
        close(above(&many, &others), 0.6105981821922238);
    }

    #[test]
    fn every_division_comes_once_or_as_many_as_asked_for() {
        let mut random = SplitMix64::new(1);
        for sizes in [[1, 1], [2, 3], [4, 4], [5, 1]] {
            let mut all = divisions(sizes, 100, &mut random);
            assert_eq!(all.len() as f64, combinations(sizes[0] + sizes[1], sizes[1]));
            assert!(all[0].iter().take(sizes[0]).all(|is_second| !is_second));
            let of_size =
                |one: &Vec<bool>| one.iter().filter(|second| **second).count() == sizes[1];
            assert!(all.iter().all(of_size));
            all.sort();
            all.dedup();
            assert_eq!(all.len() as f64, combinations(sizes[0] + sizes[1], sizes[1]));
        }
        let drawn = divisions([50, 50], 30, &mut random);
        assert_eq!(drawn.len(), 30);
        assert!(drawn.iter().all(|one| one.iter().filter(|second| **second).count() == 50));
        assert_eq!((combinations(8, 4), combinations(5, 0)), (70.0, 1.0));
        assert!(combinations(100_000, 50_000).is_infinite());
    }
}
