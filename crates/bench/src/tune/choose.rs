//! Which of the settings tried is taken: the smallest that is shown to reach 95 % of the best, or else the
//! usual ones, which are used without a profile.

use flatout_io::{Caching, Engine, Tuning};
use flatout_measure::{Ceiling, Key, Measured, Outcome, ceiling, statistics, warning};

/// Whether a row's setting was taken.
const CHOSEN: Key = Key::last("chosen");
/// What a smaller setting must be shown to reach of the best, and of the usual one; one that is no smaller
/// than the usual must be faster than it.
const ENOUGH: f64 = 0.95;
/// What a setting must reach of the best to be measured once more, and the trials that show that it
/// does not.
const CLOSE: f64 = 0.8;
pub(super) const FEWEST_TRIALS: u32 = 3;
/// The quantile of its trials that settings are told apart by: what disturbs a trial makes it slower.
/// Of 6 settings for 64 MiB (12 trials each, resampled 3 and then 6 at a time; family 25 model 17,
/// ext4 in memory, 2026-11-26) one within 5 % of the best was taken in 96 %; by medians in 90 %, and with
/// two trials and three in 72 %.
const QUANTILE: f64 = 0.75;

/// The chance at most that one setting that is no better takes the place of another by luck. Several are
/// held against it, so that one of them does more often: of five up to one time in ten.
const CHANCE: f64 = 0.02;

/// The settings taken, and the limit: the median of the best ones, with its interval, in the unit of
/// the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) tuning: Tuning,
    pub(super) limit: f64,
    pub(super) n: u64,
    pub(super) ci95: Option<[f64; 2]>,
    /// Whether both have trials enough for an interval, without which it is left to chance which is
    /// the better one, and no setting is without one.
    pub(super) is_sure: bool,
}

/// The rates by which settings are told apart; 0 where there is none.
fn rates<R>(rows: &[Measured<R>]) -> Vec<f64> {
    let rate = |row: &Measured<R>| statistics::quantile(&row.outcome.samples, QUANTILE);
    rows.iter().map(|row| rate(row).unwrap_or(0.0)).collect()
}

/// The settings that may be the best, those for which there was no time among them: which of them is, few
/// trials do not tell.
pub(super) fn close<R>(rows: &[Measured<R>]) -> Vec<usize> {
    let rates = rates(rows);
    let best = rates.iter().copied().fold(0.0, f64::max);
    let may_be = |&index: &usize| {
        let is_shown = rows[index].outcome.n >= FEWEST_TRIALS.into();
        let is_near = rates[index] > 0.0 && (rates[index] >= CLOSE * best || !is_shown);
        is_near || was_left_out(&rows[index].outcome)
    };
    (0..rows.len()).filter(may_be).collect()
}

/// Whether the second look at a setting counts, and not the first: it had as many trials as it takes, or
/// some, and the first had too few as well.
pub(super) fn tells_more(second: &Outcome, first: &Outcome) -> bool {
    second.ci95.is_some() || first.ci95.is_none() && second.n > 0
}

/// Whether there was no time for a single trial.
pub(super) fn was_left_out(outcome: &Outcome) -> bool {
    warning::has(&outcome.warnings, warning::TIME_SHORT)
}

/// Picks one, marks its row where that is sure, and holds each row against the best. `None` where none has a figure.
///
/// The usual one, where it has a figure, stays unless the trials show that another is better: where other
/// programs or guests come and go, the best of a few is often a lucky one. Where programs certainly took CPUs
/// from it or from the other one, the trials say which is best beside these, and it stays.
pub(super) fn among<R>(
    tunings: &[Tuning],
    usual: Option<&Tuning>,
    rows: &mut [Measured<R>],
    name: impl FnOnce(&Tuning) -> String,
) -> Option<Choice> {
    let smallest = smallest(tunings, rows)?;
    let usual = tunings.iter().position(|one| Some(one) == usual);
    let chosen = usual.filter(|&usual| stays(tunings, rows, usual, smallest)).unwrap_or(smallest);
    let medians: Vec<f64> = rows.iter().map(|row| row.outcome.median.unwrap_or(0.0)).collect();
    let best = (0..rows.len()).max_by(|&a, &b| medians[a].total_cmp(&medians[b]))?;
    let Outcome { n, ci95, .. } = rows[best].outcome;
    let name = name(&tunings[chosen]);
    let is_known = |outcome: &Outcome| outcome.ci95.is_some() && outcome.n >= FEWEST_TRIALS.into();
    let is_sure = [chosen, best].iter().all(|&index| is_known(&rows[index].outcome))
        && !rows.iter().any(|row| was_left_out(&row.outcome));
    for (index, measured) in rows.iter_mut().enumerate() {
        measured.facts.set(CHOSEN, is_sure && index == chosen);
        if measured.outcome.median.is_some() {
            let bound = Ceiling::best_seen(name.clone(), Some(medians[best]));
            ceiling::apply(&mut measured.outcome, bound);
        }
    }
    Some(Choice { tuning: tunings[chosen], limit: medians[best], n, ci95, is_sure })
}

/// Whether the usual setting has trials enough, which do not show that the other one is better, or what they
/// show is what other programs left of the CPUs.
fn stays<R>(tunings: &[Tuning], rows: &[Measured<R>], usual: usize, other: usize) -> bool {
    let part = if size(&tunings[other]) < size(&tunings[usual]) { ENOUGH } else { 1.0 };
    let is_known = |index: usize| rows[index].outcome.samples.len() >= FEWEST_TRIALS as usize;
    let is_beside_load =
        |index: usize| warning::has(&rows[index].outcome.warnings, warning::LOCAL_LOAD);
    let is_told =
        is_shown(rows, other, (part, usual)) && ![usual, other].into_iter().any(is_beside_load);
    is_known(usual) && is_known(other) && !is_told
}

/// Whether the trials of a setting show that it does more than this part of another one.
fn is_shown<R>(rows: &[Measured<R>], index: usize, (part, of): (f64, usize)) -> bool {
    let [samples, of] = [index, of].map(|index| &rows[index].outcome.samples);
    let of: Vec<f64> = of.iter().map(|rate| rate * part).collect();
    statistics::compare::above(samples, &of) <= CHANCE
}

/// The smallest settings that are shown to reach enough of the best: these, where no smaller ones are.
fn smallest<R>(tunings: &[Tuning], rows: &[Measured<R>]) -> Option<usize> {
    let rates = rates(rows);
    let some = (0..rates.len()).filter(|&index| rates[index] > 0.0);
    let best = some.max_by(|&one, &other| rates[one].total_cmp(&rates[other]))?;
    let is_enough = |&index: &usize| {
        size(&tunings[index]) < size(&tunings[best])
            && rates[index] >= rates[best] * ENOUGH
            && is_shown(rows, index, (ENOUGH, best))
    };
    let smaller = (0..rates.len()).filter(is_enough).min_by_key(|&index| size(&tunings[index]));
    Some(smaller.unwrap_or(best))
}

/// First the threads, those of the kernel that do a ring's buffered requests counted as one, then the bytes
/// in flight, then the length of a request.
fn size(tuning: &Tuning) -> (u32, u64, u64) {
    let &Tuning { engine, caching, threads, depth, block_bytes, .. } = tuning;
    let in_flight = u64::from(threads) * u64::from(depth) * block_bytes;
    let has_helpers = engine == Engine::Uring && caching == Caching::Buffered;
    (threads + u32::from(has_helpers), in_flight, block_bytes)
}

#[cfg(test)]
mod tests {
    use flatout_io::Split;
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

    fn row(samples: &[f64]) -> Measured<()> {
        let (samples, n) = (samples.to_vec(), samples.len() as u64);
        let outcome =
            Outcome { median: statistics::median(&samples), samples, n, ..Outcome::default() };
        Measured { row: (), outcome, facts: Facts::default(), further: Vec::new() }
    }

    #[test]
    fn a_second_look_that_was_too_short_does_not_take_the_place_of_the_first() {
        let looked = |n, is_sure: bool| Outcome {
            n,
            ci95: is_sure.then_some([1.0, 2.0]),
            ..Outcome::default()
        };
        assert!(tells_more(&looked(5, true), &looked(9, true)));
        assert!(!tells_more(&looked(1, false), &looked(5, true)));
        assert!(tells_more(&looked(1, false), &looked(1, false)));
        assert!(!tells_more(&looked(0, false), &looked(1, false)), "it had no time");
    }

    #[test]
    fn the_smallest_that_is_shown_to_reach_95_percent_of_the_best_is_taken() {
        let tunings = [tuning(4, 16, 1), tuning(4, 4, 1), tuning(1, 8, 1), tuning(1, 1, 2)];
        // Trials around each rate.
        let of = |rates: &[f64], spread: f64| {
            let trials = |rate: &f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|step| rate + spread * step);
            let rows: Vec<_> = rates.iter().map(|rate| row(&trials(rate))).collect();
            smallest(&tunings, &rows)
        };
        assert_eq!(of(&[100.0, 96.0, 94.0, 99.0], 0.1), Some(1));
        assert_eq!(of(&[100.0, 96.0, 95.5, 99.0], 0.1), Some(2), "two are, and this is smaller");
        assert_eq!(of(&[100.0, 96.0, 97.0, 200.0], 0.1), Some(3));
        assert_eq!(
            of(&[100.0, 96.0, 97.0, 100.0], 5.0),
            Some(3),
            "it is not shown, nor which is best"
        );
        assert_eq!(of(&[0.0; 4], 0.0), None);
        let two = Tuning { engine: Engine::Sync, ..tuning(1, 1, 2) };
        let rows = [row(&[100.0; 4]), row(&[99.0; 4])];
        assert_eq!(smallest(&[tuning(1, 8, 1), two], &rows), Some(1), "no smaller ring");
        assert_eq!(smallest::<()>(&[], &[]), None);
    }

    #[test]
    fn a_trial_that_was_disturbed_does_not_make_its_setting_the_slower_one() {
        let mut rows = [row(&[70.0, 71.0, 70.0, 69.0]), row(&[80.0, 30.0, 79.0, 20.0])];
        assert_eq!(close(&rows), [0, 1]);
        let tunings = [tuning(1, 1, 1), tuning(1, 1, 2)];
        let choice = among(&tunings, None, &mut rows, |_| String::new()).unwrap();
        assert_eq!((choice.tuning.threads, choice.limit), (2, 70.0));
    }

    #[test]
    fn the_usual_setting_stays_unless_another_is_shown_to_be_better() {
        let tunings = [tuning(1, 1, 1), tuning(1, 1, 2), tuning(1, 1, 4)];
        let taken = |rows: [&[f64]; 3]| {
            let mut rows = rows.map(row);
            among(&tunings, Some(&tunings[1]), &mut rows, |_| String::new()).unwrap().tuning.threads
        };
        let slow = [10.0, 11.0, 12.0, 11.0];
        let (wide, quick) = ([60.0, 100.0, 61.0, 62.0], [99.0, 100.0, 101.0, 102.0]);
        assert_eq!(taken([&wide, &[90.0, 50.0, 91.0, 92.0], &slow]), 2, "one trial was lucky");
        assert_eq!(taken([&quick, &[80.0, 81.0, 50.0, 82.0], &slow]), 1, "faster and smaller");
        assert_eq!(taken([&quick, &quick.map(|rate| rate + 0.5), &slow]), 1, "smaller, as fast");
        assert_eq!(taken([&slow, &quick.map(|rate| rate - 1.5), &quick]), 2, "larger, no faster");
        assert_eq!(taken([&slow, &quick, &quick.map(|rate| rate + 9.0)]), 4, "larger, but faster");
        assert_eq!(taken([&quick, &[101.0, 102.0], &slow]), 2, "two trials show nothing");
        assert_eq!(taken([&quick, &[], &slow]), 1, "the usual one cannot be had");
    }

    #[test]
    fn the_usual_setting_stays_where_programs_took_its_cpus() {
        let tunings = [tuning(1, 1, 1), tuning(1, 1, 2)];
        let [quick, slow] = [10.0, 5.0].map(|rate| [rate, rate + 0.1, rate + 0.2, rate + 0.3]);
        for (beside_load, threads) in [(None, 1), (Some(0), 2), (Some(1), 2)] {
            let mut rows = [row(&quick), row(&slow)];
            if let Some(index) = beside_load {
                rows[index].outcome.warn(warning::LOCAL_LOAD, "a program");
            }
            let choice = among(&tunings, Some(&tunings[1]), &mut rows, |_| String::new()).unwrap();
            assert_eq!(choice.tuning.threads, threads, "{beside_load:?}");
        }
    }

    #[test]
    fn the_limit_is_the_best_and_not_what_was_taken() {
        let tunings = [tuning(1, 1, 1), tuning(1, 1, 2), tuning(1, 1, 4)];
        let row = |median: Option<f64>| {
            let ci95 = median.map(|m| [m - 1.0, m + 1.0]);
            let trials = |m| [-0.2, -0.1, 0.0, 0.1, 0.2].map(|off| m + off);
            let samples = median.into_iter().flat_map(trials).collect();
            let outcome = Outcome { median, samples, n: 6, ci95, ..Outcome::default() };
            Measured { row: (), outcome, facts: Facts::default(), further: Vec::new() }
        };
        let mut rows = [row(Some(98.5)), row(Some(100.0)), row(None)];
        let choice = among(&tunings, None, &mut rows, |_| "best".to_owned()).unwrap();
        assert_eq!((choice.tuning.threads, choice.limit, choice.n), (1, 100.0, 6));
        assert_eq!((choice.ci95, choice.is_sure), (Some([99.0, 101.0]), true));
        let chosen = |rows: &[Measured<()>]| -> Vec<_> {
            rows.iter().map(|row| row.facts.flag(CHOSEN) == Some(true)).collect()
        };
        assert_eq!(chosen(&rows), [true, false, false]);
        rows[0].outcome.ci95 = None;
        assert!(!among(&tunings, None, &mut rows, |_| String::new()).unwrap().is_sure);
        assert_eq!(chosen(&rows), [false; 3], "nothing is taken");
        let best = |row: &Measured<()>| row.outcome.ceiling.as_ref().and_then(|best| best.value);
        assert_eq!((best(&rows[0]), best(&rows[2])), (Some(100.0), None));
        assert_eq!(
            among(&tunings, None, &mut [row(None), row(None), row(None)], |_| String::new()),
            None
        );
        let mut rows = [79.9, 80.0, 100.0].map(|rate| row(Some(rate)));
        assert_eq!(close(&rows), [1, 2]);
        rows[0].outcome.n = 2;
        assert_eq!(close(&rows), [0, 1, 2], "two trials show nothing");
        assert_eq!(close(&[row(None), row(None)]), [0; 0]);
        let mut rows = [row(Some(100.0)), row(None)];
        assert!(among(&tunings, None, &mut rows, |_| String::new()).unwrap().is_sure);
        rows[1].outcome.warnings.push(warning::no_time());
        assert_eq!(close(&rows), [0, 1], "it may be the best");
        assert!(!among(&tunings, None, &mut rows, |_| String::new()).unwrap().is_sure);
    }
}
