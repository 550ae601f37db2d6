//! Samples of combinations in which every pair of two factors' values occurs.
//!
//! Most faults need one or two settings to meet; few need three. The sample is greedy, not the
//! smallest possible.

use std::collections::BTreeSet;

use crate::fixture::Random;

/// Candidates from which each row is chosen; more make the sample smaller and slower to find.
const CANDIDATES: usize = 24;

/// Two factors with a value each, the lower factor first.
type Pair = (usize, usize, usize, usize);

/// Rows of one value index per factor; factor i has `levels[i]` values.
pub fn sample(levels: &[usize], seed: u64) -> Vec<Vec<usize>> {
    let mut random = Random::new(seed);
    let mut open = all_pairs(levels);
    let mut rows = Vec::new();
    while let Some(&(first, a, second, b)) = open.first() {
        let candidates = (0..CANDIDATES).map(|_| {
            let mut row: Vec<usize> = levels.iter().map(|&count| random.below(count)).collect();
            (row[first], row[second]) = (a, b);
            row
        });
        let best = candidates
            .max_by_key(|row| pairs_of(row).filter(|pair| open.contains(pair)).count())
            .expect("there are candidates");
        pairs_of(&best).for_each(|pair| {
            open.remove(&pair);
        });
        rows.push(best);
    }
    rows
}

/// Every row there is.
pub fn everything(levels: &[usize]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |rows, &count| {
        rows.iter().flat_map(|row| (0..count).map(|value| [&row[..], &[value]].concat())).collect()
    })
}

fn all_pairs(levels: &[usize]) -> BTreeSet<Pair> {
    let mut pairs = BTreeSet::new();
    for (first, &count) in levels.iter().enumerate() {
        for (second, &others) in levels.iter().enumerate().skip(first + 1) {
            for a in 0..count {
                pairs.extend((0..others).map(|b| (first, a, second, b)));
            }
        }
    }
    pairs
}

fn pairs_of(row: &[usize]) -> impl Iterator<Item = Pair> {
    (0..row.len()).flat_map(move |first| {
        (first + 1..row.len()).map(move |second| (first, row[first], second, row[second]))
    })
}

#[test]
fn every_pair_occurs_in_a_small_sample() {
    let levels = [3, 2, 3, 6, 9];
    for seed in 0..5 {
        let rows = sample(&levels, seed);
        let covered: BTreeSet<Pair> = rows.iter().flat_map(|row| pairs_of(row)).collect();
        assert_eq!(covered, all_pairs(&levels));
        assert!(rows.len() < 80, "{} rows, everything would be 972", rows.len());
        assert_eq!(rows, sample(&levels, seed), "the seed decides");
    }
}

#[test]
fn everything_is_every_row_once() {
    let rows = everything(&[3, 2, 4]);
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 24);
    assert_eq!(rows.len(), 24);
}
