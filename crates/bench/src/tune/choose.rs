//! Which of the settings tried is taken: the smallest that reaches 98 % of the best.

use flatout_io::Tuning;
use flatout_measure::case::Measured;
use flatout_measure::ceiling;
use flatout_measure::fact::Key;
use flatout_measure::record::{Ceiling, Outcome};

/// Whether a row's setting was taken.
const CHOSEN: Key = Key::last("chosen");
/// What a setting must reach of the best.
const ENOUGH: f64 = 0.98;
/// What a setting must reach of the best to be measured once more.
const CLOSE: f64 = 0.8;

/// The settings taken, and the limit: the median of the best ones, with its interval, in the unit of
/// the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) tuning: Tuning,
    pub(super) limit: f64,
    pub(super) n: u64,
    pub(super) ci95: Option<[f64; 2]>,
    /// Whether both have trials enough for an interval, without which it is left to chance which is
    /// the better one.
    pub(super) is_sure: bool,
}

/// The settings that may be the best: which of them is, few trials do not tell.
pub(super) fn close<R>(rows: &[Measured<R>]) -> Vec<usize> {
    let rate = |index: &usize| rows[*index].outcome.median.unwrap_or(0.0);
    let best = (0..rows.len()).map(|index| rate(&index)).fold(0.0, f64::max);
    (0..rows.len()).filter(|index| rate(index) > 0.0 && rate(index) >= CLOSE * best).collect()
}

/// Picks one, marks its row, and holds each row against the best. `None` where none has a figure.
pub(super) fn among<R>(
    tunings: &[Tuning],
    rows: &mut [Measured<R>],
    name: impl FnOnce(&Tuning) -> String,
) -> Option<Choice> {
    let rates: Vec<f64> =
        rows.iter().map(|measured| measured.outcome.median.unwrap_or(0.0)).collect();
    let chosen = smallest(tunings, &rates)?;
    let best = (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b]))?;
    let Outcome { n, ci95, .. } = rows[best].outcome;
    let name = name(&tunings[chosen]);
    for (index, measured) in rows.iter_mut().enumerate() {
        measured.facts.set(CHOSEN, index == chosen);
        if measured.outcome.median.is_some() {
            let bound = Ceiling::best_seen(name.clone(), Some(rates[best]));
            ceiling::apply(&mut measured.outcome, bound);
        }
    }
    let is_sure = [chosen, best].iter().all(|&index| rows[index].outcome.ci95.is_some());
    Some(Choice { tuning: tunings[chosen], limit: rates[best], n, ci95, is_sure })
}

/// The smallest settings that reach enough of the best: first by threads, then by bytes in flight,
/// then by the length of a request.
fn smallest(tunings: &[Tuning], rates: &[f64]) -> Option<usize> {
    let best = rates.iter().copied().filter(|rate| *rate > 0.0).max_by(f64::total_cmp)?;
    let size = |index: &usize| {
        let Tuning { threads, depth, block_bytes, .. } = tunings[*index];
        let in_flight = u64::from(threads) * u64::from(depth) * block_bytes;
        (threads, in_flight, block_bytes)
    };
    (0..tunings.len().min(rates.len())).filter(|&i| rates[i] >= best * ENOUGH).min_by_key(size)
}

#[cfg(test)]
mod tests {
    use flatout_io::{Caching, Engine, Split};
    use flatout_measure::fact::Facts;

    use super::*;

    fn tuning(block_bytes: u64, depth: u32, threads: u32) -> Tuning {
        Tuning {
            engine: Engine::Uring,
            caching: Caching::Buffered,
            block_bytes,
            depth,
            threads,
            split: Split::Contiguous,
        }
    }

    #[test]
    fn the_smallest_that_is_good_enough_is_taken() {
        let tunings = [tuning(4, 16, 1), tuning(4, 4, 1), tuning(1, 8, 1), tuning(1, 1, 2)];
        assert_eq!(smallest(&tunings, &[100.0, 97.9, 97.0, 99.0]), Some(0));
        assert_eq!(smallest(&tunings, &[100.0, 98.0, 97.0, 200.0]), Some(3));
        assert_eq!(smallest(&tunings, &[100.0, 98.0, 98.1, 100.0]), Some(2));
        assert_eq!(smallest(&tunings, &[0.0; 4]), None);
        assert_eq!(smallest(&[], &[]), None);
    }

    #[test]
    fn the_limit_is_the_best_and_not_what_was_taken() {
        let tunings = [tuning(1, 1, 1), tuning(1, 1, 2), tuning(1, 1, 4)];
        let row = |median: Option<f64>| {
            let ci95 = median.map(|m| [m - 1.0, m + 1.0]);
            let outcome = Outcome { median, n: 6, ci95, ..Outcome::default() };
            Measured { row: (), outcome, facts: Facts::default(), further: Vec::new() }
        };
        let mut rows = [row(Some(98.5)), row(Some(100.0)), row(None)];
        let choice = among(&tunings, &mut rows, |_| "best".to_owned()).unwrap();
        assert_eq!((choice.tuning.threads, choice.limit, choice.n), (1, 100.0, 6));
        assert_eq!((choice.ci95, choice.is_sure), (Some([99.0, 101.0]), true));
        rows[0].outcome.ci95 = None;
        assert!(!among(&tunings, &mut rows, |_| String::new()).unwrap().is_sure);
        let chosen: Vec<_> = rows.iter().map(|row| row.facts.flag(CHOSEN) == Some(true)).collect();
        assert_eq!(chosen, [true, false, false]);
        let best = |row: &Measured<()>| row.outcome.ceiling.as_ref().and_then(|best| best.value);
        assert_eq!((best(&rows[0]), best(&rows[2])), (Some(100.0), None));
        assert_eq!(
            among(&tunings, &mut [row(None), row(None), row(None)], |_| String::new()),
            None
        );
        let rows = [79.9, 80.0, 100.0].map(|rate| row(Some(rate)));
        assert_eq!(close(&rows), [1, 2]);
        assert_eq!(close(&[row(None), row(None)]), [0; 0]);
    }
}
