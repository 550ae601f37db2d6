//! Figures that are clearly worse than those beside them: stragglers, slow and asymmetric pairs.

use flatout_measure::case::within_run;
use flatout_measure::{Better, MeasuredFurther, statistics};

/// A figure this far from the median of all, or from the other way, is named.
const CLEARLY: f64 = 0.8;
/// So many must be there for a median to mean something.
const LEAST: usize = 3;
/// So many are named.
const MOST_NAMED: usize = 8;

/// A figure, and how many times as good as the usual one it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outlying {
    pub(super) key: String,
    pub(super) share: f64,
}

/// How good a figure with an interval is at least and at most, more being better, and in the middle.
fn goodness(further: &MeasuredFurther) -> Option<[f64; 3]> {
    let outcome = &further.outcome;
    let ([low, high], median) = (within_run(outcome, &further.facts)?, outcome.median?);
    Some(match outcome.better {
        Better::Higher => [low, median, high],
        Better::Lower => [1.0 / high, 1.0 / median, 1.0 / low],
    })
}

/// Those that are slow even at the good end of their interval, the worst first.
pub(super) fn slow<'m>(
    figures: impl Iterator<Item = (String, &'m MeasuredFurther)>,
) -> Vec<Outlying> {
    let known = figures.filter_map(|(key, further)| Some((key, goodness(further)?)));
    let known: Vec<(String, [f64; 3])> = known.collect();
    let medians: Vec<f64> = known.iter().map(|(_, [_, median, _])| *median).collect();
    let usual = statistics::median(&medians).filter(|_| known.len() >= LEAST);
    let Some(usual) = usual else { return Vec::new() };
    let slow = known.into_iter().filter(|(_, [_, _, best])| *best < CLEARLY * usual);
    let mut slow: Vec<_> =
        slow.map(|(key, [_, median, _])| Outlying { key, share: median / usual }).collect();
    slow.sort_by(|one, other| one.share.total_cmp(&other.share));
    slow
}

/// Whether one is slower than the other, by all that their intervals say: how many times as good.
pub(super) fn slower(one: &MeasuredFurther, other: &MeasuredFurther) -> Option<f64> {
    let ([_, median, best], [least, other, _]) = (goodness(one)?, goodness(other)?);
    (best < CLEARLY * least).then(|| median / other)
}

/// A list for people.
pub(super) fn named(all: &[Outlying]) -> String {
    let mut said: Vec<String> = all
        .iter()
        .take(MOST_NAMED)
        .map(|one| format!("{} ({:.2} of the usual)", one.key, one.share))
        .collect();
    if let Some(more) = all.len().checked_sub(MOST_NAMED).filter(|&more| more > 0) {
        said.push(format!("and {more} more"));
    }
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Outcome;

    use super::*;

    fn further(ci95: [f64; 2], better: Better) -> MeasuredFurther {
        let median = Some((ci95[0] + ci95[1]) / 2.0);
        let outcome = Outcome { median, ci95: Some(ci95), better, ..Outcome::default() };
        MeasuredFurther { outcome, facts: Default::default(), parameters: Default::default() }
    }

    fn keyed(all: &[MeasuredFurther]) -> impl Iterator<Item = (String, &MeasuredFurther)> {
        all.iter().enumerate().map(|(at, one)| (at.to_string(), one))
    }

    #[test]
    fn only_what_is_slow_at_its_best_is_named() {
        let all = |better| {
            let rates = [[9.0, 11.0], [5.0, 7.0], [1.0, 20.0], [9.0, 11.0], [10.0, 12.0]];
            rates.map(|[low, high]| match better {
                Better::Higher => further([low, high], better),
                Better::Lower => further([1.0 / high, 1.0 / low], better),
            })
        };
        for better in [Better::Higher, Better::Lower] {
            let all = all(better);
            let slow = slow(keyed(&all));
            assert_eq!(
                slow.iter().map(|one| &one.key[..]).collect::<Vec<_>>(),
                ["1"],
                "{better:?}"
            );
            assert!((0.5..0.65).contains(&slow[0].share), "{slow:?}");
            assert!(slower(&all[1], &all[0]).is_some() && slower(&all[0], &all[1]).is_none());
            assert!(slower(&all[2], &all[4]).is_none(), "it may be as fast");
        }
        let two = [further([1.0, 1.0], Better::Higher), further([9.0, 9.0], Better::Higher)];
        assert!(slow(keyed(&two)).is_empty(), "which of two is the usual one?");
        let many: Vec<_> = (0..10).map(|at| Outlying { key: at.to_string(), share: 0.5 }).collect();
        assert!(named(&many).ends_with("and 2 more"), "{}", named(&many));
    }
}
