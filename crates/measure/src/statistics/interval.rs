//! The 95 % interval of a figure: where the median of other runs of the same lies. Trials of one run share its
//! state, which their number does not average out: so a share of their variance is taken to be the run's (the
//! intraclass correlation), and the rest falls with their number.
//!
//! Of ln figure, with trials of variance v, known with f degrees of freedom, and what runs are assumed to
//! differ by beyond them, τ; what was learned of earlier runs is weighed with that ([`Prior`]):
//!
//! half-width² = t²₀.₉₇₅(f) · v · (ρ + (1 − ρ) · min(1, π ÷ 2n)) + (1.96 · τ)² + 0.005²
//!
//! Sources: the design effect of Kish, "Survey sampling", 1965, 5.4; π ÷ 2n as the variance of a median of n
//! normal samples; v from Gini's mean difference (David, "Gini's mean difference rediscovered", 1968), which one
//! far sample moves less than it moves squares. docs/measuring.md says how far it reaches beside SMT siblings.

use std::f64::consts::{FRAC_PI_2, PI};

use super::pool::{Pool, Prior};
use super::student::student_quantile;
use super::{median, outliers, sorted};

/// Trials from which on there is an interval.
pub const LEAST_TRIALS: usize = 3;

/// Share of the variance of trials that all trials of a run have in common. Whole runs on two CPUs
/// had 0.03 to 0.25 by area; heavier tails than the normal's are in the rest (docs/measuring.md).
const RUN_SHARE: f64 = 0.40;

/// The same beside others who use CPUs: which of them, and when, is the run's, and decides.
const LOADED_RUN_SHARE: f64 = 1.0;

/// Degrees of freedom that what is assumed is worth beside what was learned: few runs miss what happens
/// rarely.
const ASSUMED_FREEDOM: f64 = 4.0;

/// What runs beside others differ by beyond what their trials show. With 0.2, 99.8 % of the intervals of eight
/// runs beside two busy loops and 98.3 % of five beside one hold (Emerald Rapids, 2026-11-29, recomputed); with
/// 0.3 99.8 and 99.0 %, at ±70 instead of ±50; with 0.1 copies and disks beside one loop do not
/// (docs/measuring.md).
const LOADED_DEVIATION: f64 = 0.2;

/// What runs differ by at least where trials count that something outside disturbed, if only in moments:
/// peaks of arithmetic beside an SMT sibling that was busy all the time differed by 3.5 to 4.9 % from run
/// to run, those in quiet moments by nothing (docs/measuring.md).
pub const DISTURBED_DEVIATION: f64 = 0.04;

/// The same of what has all of its time in it, or disturbed trials alone, where probes saw a sibling: it is
/// not known how much that took. With 0.12, 154 of 162 intervals of `cpu` and `memory` hold in two series of
/// eight runs on an Emerald Rapids whose siblings were busy, recomputed (docs/measuring.md); as few with 0.18.
pub const CONTENDED_DEVIATION: f64 = 0.12;

/// What runs differ by at least during which the hypervisor took CPU time, if others do not move the row
/// otherwise: peaks of quiet moments had 0.88 to 0.91 and 0.68 to 0.75 of what they had in eight other runs.
pub const STOLEN_DEVIATION: f64 = 0.1;

/// One trial in so many may lie far from the others and say nothing of them: its like moves no
/// median. More of them are a second level of the figure, at which the next run may be.
const FAR_PART: usize = 10;

/// No figure is promised more closely than this, as a share: runs that had no spread at all
/// differed by so much.
const RESOLUTION: f64 = 0.005;

/// Standard deviations on either side of a normal variable's middle that hold 95 % of it.
pub const WITHIN_95: f64 = 1.96;

/// Quantile that leaves 2.5 % above.
const UPPER: f64 = 0.975;

/// How far trials of one row lie apart, as the logarithm of their figures.
pub fn spread(figures: &[f64]) -> Pool {
    let far = outliers(figures);
    let is_few = far.len() * FAR_PART <= figures.len();
    let near = figures.iter().enumerate().filter(|(index, _)| !is_few || !far.contains(index));
    let logs = sorted(&near.map(|(_, figure)| figure.ln()).collect::<Vec<_>>());
    let count = logs.len() as f64;
    if logs.len() < 2 {
        return Pool::default();
    }
    // The sum over all pairs of how far they are apart.
    let weighted =
        logs.iter().enumerate().map(|(rank, log)| (2.0 * rank as f64 + 1.0 - count) * log);
    let mean_difference = weighted.sum::<f64>() / (count * (count - 1.0) / 2.0);
    let variance = mean_difference.powi(2) * PI / 4.0;
    Pool { squares: variance * (count - 1.0), freedom: count - 1.0, rows: 1 }
}

/// How far runs of a row lie apart, as earlier runs of this machine tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetweenRuns {
    /// Variance of the logarithm of a run's figure.
    pub variance: f64,
    /// Degrees of freedom with which it is known.
    pub freedom: f64,
    /// Runs that tell it.
    pub runs: u64,
}

impl BetweenRuns {
    fn pool(self) -> Pool {
        let Self { variance, freedom, .. } = self;
        Pool { squares: variance * freedom, freedom, rows: 1 }
    }
}

/// What is known of a row besides its trials.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Knowledge {
    /// How far trials of rows like it lie apart.
    pub kin: Option<Prior>,
    /// Whether trials count that something outside disturbed, or others were at work.
    pub is_loaded: bool,
    /// Whether others were at work, on this machine or on its host.
    pub is_beside_others: bool,
    /// What runs differ by at least beyond their trials, by what was seen to disturb them.
    pub least_deviation: f64,
    /// How far its runs lie apart.
    pub learned: Option<BetweenRuns>,
    /// The same where nothing was learned, beyond what trials show: a standard deviation.
    pub assumed_deviation: f64,
}

impl Knowledge {
    /// Standard deviation of the logarithm of a run's figure: what was learned, else what is assumed beyond
    /// what trials show.
    pub fn deviation_between_runs(&self) -> f64 {
        self.learned.map_or(self.beyond_trials(), |learned| learned.variance.sqrt())
    }

    /// What is assumed; of a row that others do not move, beside them only what their hardware threads do.
    fn beyond_trials(&self) -> f64 {
        let least = match self.assumed_deviation > 0.0 {
            true if self.is_beside_others => LOADED_DEVIATION,
            _ if self.is_loaded => DISTURBED_DEVIATION,
            _ => 0.0,
        };
        self.assumed_deviation.max(least).max(self.least_deviation)
    }
}

/// The interval of these trials. `None` below [`LEAST_TRIALS`]. Figures must be above 0.
pub fn of_runs(figures: &[f64], known: &Knowledge) -> Option<[f64; 2]> {
    if figures.len() < LEAST_TRIALS {
        return None;
    }
    let own = spread(figures);
    let (variance, freedom) = known.kin.map_or((own.variance(), own.freedom), |kin| kin.with(own));
    let of_median = (FRAC_PI_2 / figures.len() as f64).min(1.0);
    let run_share = if known.is_loaded { LOADED_RUN_SHARE } else { RUN_SHARE };
    let shared = run_share + (1.0 - run_share) * of_median;
    let upper = |freedom: f64| student_quantile(UPPER, freedom).powi(2);
    let assumed = upper(freedom) * variance * shared + (WITHIN_95 * known.beyond_trials()).powi(2);
    let spread = match known.learned {
        Some(runs) => {
            let of_run = variance * shared + known.beyond_trials().powi(2);
            let prior = Prior { variance: of_run, freedom: ASSUMED_FREEDOM };
            let (of_runs, runs_freedom) = prior.with(runs.pool());
            let of_next = upper(runs_freedom) * of_runs * (1.0 + (runs.runs as f64).recip());
            // Quiet runs taught it: beside others it is no less than is assumed.
            let least = if known.is_beside_others { assumed } else { 0.0 };
            let of_trials = if known.is_loaded { shared } else { of_median };
            of_next.max(upper(freedom) * variance * of_trials).max(least)
        }
        None => assumed,
    };
    let half = (spread + RESOLUTION.powi(2)).sqrt();
    let middle = median(figures)?;
    let [low, high] = [middle * (-half).exp(), middle * half.exp()];
    // Runs that were learned from had the levels that there are.
    if known.learned.is_some() {
        return Some([low, high]);
    }
    let (levels, far) = (sorted(figures), figures.len() / FAR_PART);
    Some([low.min(levels[far]), high.max(levels[levels.len() - 1 - far])])
}

/// An interval that reaches to all levels at which a run can be, and as far beyond as quiet runs differ
/// at one of them. Runs that were learned from had the levels that there are.
pub fn reaching([low, high]: [f64; 2], levels: &[f64], known: &Knowledge) -> [f64; 2] {
    if known.learned.is_some() {
        return [low, high];
    }
    let beyond = (WITHIN_95 * known.assumed_deviation).hypot(RESOLUTION).exp();
    levels
        .iter()
        .fold([low, high], |[low, high], level| [low.min(level / beyond), high.max(level * beyond)])
}

/// Half of the interval as a share of its middle, as trials and earlier runs have it, without what was
/// assumed before any run told. Beside others that stays: quiet runs taught.
pub fn learned_half(figures: &[f64], known: &Knowledge) -> Option<f64> {
    let assumed_deviation = if known.is_beside_others { known.assumed_deviation } else { 0.0 };
    let [low, high] = of_runs(figures, &Knowledge { assumed_deviation, ..*known })?;
    Some(((high / low).ln() / 2.0).exp_m1())
}

/// Half of an interval as a share of its middle, as the trials alone have it: without what runs were
/// assumed to differ by, which no trial shows.
pub fn half_of_trials([low, high]: [f64; 2], assumed_deviation: f64) -> f64 {
    let half = (high / low).ln() / 2.0;
    (half.powi(2) - (WITHIN_95 * assumed_deviation).powi(2)).max(0.0).sqrt().exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Draw, SplitMix64};

    const QUIET: Knowledge = Knowledge {
        kin: None,
        is_loaded: false,
        is_beside_others: false,
        least_deviation: 0.0,
        learned: None,
        assumed_deviation: 0.0,
    };

    /// In how many of simulated runs the interval holds the true figure: of 20 rows with so many
    /// trials, whose deviation is 5 %, with this share of the variance between runs.
    fn coverage(run_share: f64, trials: usize, has_kin: bool) -> f64 {
        let mut random = SplitMix64::new(7);
        let (mut held, mut all) = (0, 0);
        for _run in 0..150 {
            let rows: Vec<Vec<f64>> = (0..20)
                .map(|_| {
                    let common = random.normal() * run_share.sqrt();
                    let own = (1.0 - run_share).sqrt();
                    let trial = |_| (0.05 * (common + own * random.normal())).exp();
                    (0..trials).map(trial).collect()
                })
                .collect();
            let kin = Prior::of(&rows.iter().map(|row| spread(row)).collect::<Vec<_>>());
            for row in &rows {
                let [low, high] =
                    of_runs(row, &Knowledge { kin: kin.filter(|_| has_kin), ..QUIET }).unwrap();
                held += usize::from((low..=high).contains(&1.0));
                all += 1;
            }
        }
        held as f64 / all as f64
    }

    #[test]
    fn the_interval_holds_what_other_runs_find_where_runs_share_what_is_assumed() {
        for trials in [3, 6, 12, 60] {
            for has_kin in [false, true] {
                let coverage = coverage(0.3, trials, has_kin);
                assert!((0.93..=0.99).contains(&coverage), "{trials} {has_kin}: {coverage}");
            }
        }
    }

    #[test]
    fn trials_that_share_nothing_are_held_too() {
        for trials in [3, 6, 12, 60] {
            let coverage = coverage(0.0, trials, true);
            assert!(coverage > 0.95, "{trials}: {coverage}");
        }
    }

    #[test]
    fn more_trials_do_not_average_out_what_they_share() {
        let trials = |count: usize| -> Vec<f64> {
            (0..count).map(|trial| if trial % 2 == 0 { 98.0 } else { 102.0 }).collect()
        };
        let half = |count| {
            let [low, high] = of_runs(&trials(count), &QUIET).unwrap();
            (high / low).ln() / 2.0
        };
        let beside_others = of_runs(&trials(60), &Knowledge { is_loaded: true, ..QUIET }).unwrap();
        assert!((beside_others[1] / beside_others[0]).ln() / 2.0 > 1.4 * half(60));
        assert!(half(6) > half(60));
        assert!(half(10_000) > 0.019, "{}", half(10_000));
    }

    #[test]
    fn what_runs_differ_by_is_what_was_learned_of_them_else_what_is_assumed() {
        let trials: Vec<f64> = (0..60).map(|trial| 100.0 + f64::from(trial % 3)).collect();
        let half = |known: Knowledge| {
            let [low, high] = of_runs(&trials, &known).unwrap();
            (high / low).ln() / 2.0
        };
        let learned = |deviation: f64| {
            let variance = deviation * deviation;
            Knowledge { learned: Some(BetweenRuns { variance, freedom: 9.0, runs: 6 }), ..QUIET }
        };
        let assumed = Knowledge { assumed_deviation: 0.1, ..QUIET };
        assert!((half(assumed) - 0.196).abs() < 0.004, "{}", half(assumed));
        // Student's t of thirteen degrees of freedom: nine that were learned, four of what is assumed.
        let variance: f64 = (9.0 * 0.05 * 0.05 + 4.0 * 0.1 * 0.1) / 13.0;
        let expected = 2.160 * (variance * 7.0 / 6.0).sqrt();
        let both = Knowledge { assumed_deviation: 0.1, ..learned(0.05) };
        assert!((half(both) - expected).abs() < 0.002, "{}: the mean of both", half(both));
        let loaded = |assumed_deviation| Knowledge {
            is_loaded: true,
            is_beside_others: true,
            assumed_deviation,
            ..QUIET
        };
        assert!(half(loaded(0.02)) > 1.96 * 0.2, "beside others, runs differ by more");
        assert!(half(loaded(0.0)) < 0.1, "a row of quiet moments alone does not");
        let stolen = Knowledge { least_deviation: STOLEN_DEVIATION, ..loaded(0.0) };
        assert!(half(stolen) > 1.96 * 0.1, "that the hypervisor took time from, it does");
        let beside = Knowledge { is_beside_others: true, ..both };
        assert_eq!(
            half(beside),
            half(Knowledge { learned: None, ..beside }),
            "quiet runs taught it"
        );
        let shown = |known: Knowledge| learned_half(&trials, &known).unwrap().ln_1p();
        assert!(
            (shown(both) - half(learned(0.05))).abs() < 1e-9,
            "what was assumed is no evidence"
        );
        assert!((shown(beside) - half(beside)).abs() < 1e-9, "beside others it stays");
        assert!(half(learned(1e-6)) < half(QUIET), "runs that agree need no share of trials");
        assert!(half(learned(1e-6)) > 0.005, "what these trials differ by stays");
    }

    /// In how many of simulated runs the interval holds the true figure, after so many runs taught
    /// what they differ by; and how wide it is in the middle. Five trials of 1 % each, eight rows of
    /// one test, assumed to differ by 10 %.
    fn learned_coverage(deviation: f64, runs: u64) -> (f64, f64) {
        let mut random = SplitMix64::new(11);
        let (mut held, mut halves) = (0, Vec::new());
        for _machine in 0..120 {
            let mut run = || -> Vec<Vec<f64>> {
                let row = |_| {
                    let of_run = deviation * random.normal();
                    (0..5).map(|_| (of_run + 0.01 * random.normal()).exp()).collect()
                };
                (0..8).map(row).collect()
            };
            let learned: Vec<Vec<f64>> =
                (0..runs).map(|_| run().iter().map(|row| median(row).unwrap()).collect()).collect();
            let own = |row: usize| Pool::of(learned.iter().map(|run| run[row].ln()));
            let kin = Prior::of(&(0..8).map(own).collect::<Vec<_>>());
            for (row, trials) in run().iter().enumerate() {
                let (variance, freedom) =
                    kin.map_or((own(row).variance(), own(row).freedom), |kin| kin.with(own(row)));
                let learned = Some(BetweenRuns { variance, freedom, runs });
                let known = Knowledge { learned, assumed_deviation: 0.1, ..QUIET };
                let [low, high] = of_runs(trials, &known).unwrap();
                held += usize::from((low..=high).contains(&1.0));
                halves.push((high / low).ln() / 2.0);
            }
        }
        (held as f64 / halves.len() as f64, median(&halves).unwrap())
    }

    #[test]
    fn learning_narrows_intervals_to_what_a_machine_has_and_they_hold() {
        for (deviation, runs, widest) in [(0.1, 8, 0.25), (0.1, 4, 0.28), (0.06, 8, 0.17)] {
            let (held, half) = learned_coverage(deviation, runs);
            assert!((0.93..=0.99).contains(&held), "{deviation} {runs}: {held}");
            assert!(half < widest, "{deviation} {runs}: {half}");
        }
        let (held, half) = learned_coverage(0.01, 8);
        assert!(held > 0.93 && half < 0.12, "assumed alone would be 0.2: {held} {half}");
        let (held, _) = learned_coverage(0.13, 8);
        assert!(held > 0.9, "what is worse than assumed is learned, too: {held}");
    }

    #[test]
    fn equal_trials_are_promised_to_the_resolution_and_few_have_no_interval() {
        let [low, high] = of_runs(&[100.0; 6], &QUIET).unwrap();
        assert!((low - 99.5).abs() < 0.01 && (high - 100.5).abs() < 0.01, "{low} {high}");
        assert_eq!(of_runs(&[100.0; 2], &QUIET), None);
        let kin = Prior { variance: 0.01, freedom: 4.0 };
        let [low, high] = of_runs(&[100.0; 3], &Knowledge { kin: Some(kin), ..QUIET }).unwrap();
        assert!(low < 90.0 && high > 110.0, "kin say how far trials of such rows lie apart");
    }

    #[test]
    fn the_spread_of_normal_trials_is_their_variance() {
        let mut random = SplitMix64::new(3);
        let figures: Vec<f64> = (0..20_000).map(|_| (0.1 * random.normal()).exp()).collect();
        let deviation = spread(&figures).variance().sqrt();
        assert!((deviation - 0.1).abs() < 0.002, "{deviation}");
        assert_eq!(spread(&[1.0]), Pool::default());
    }

    #[test]
    fn one_far_trial_in_ten_says_nothing_of_the_others_but_two_levels_do() {
        let trials = |far: usize| -> Vec<f64> {
            (0..10)
                .map(|trial| if trial < far { 50.0 } else { 100.0 + trial as f64 / 10.0 })
                .collect()
        };
        let width = |far| spread(&trials(far)).variance().sqrt();
        let [low, _] = of_runs(&trials(1), &QUIET).unwrap();
        assert!(low > 90.0 && width(1) < 0.01, "{low} {}", width(1));
        assert!(width(2) > 0.2, "{}", width(2));
        // Kin that are steady do not hide the second level.
        let kin = Some(Prior { variance: 1e-6, freedom: 20.0 });
        let [low, _] = of_runs(&trials(2), &Knowledge { kin, ..QUIET }).unwrap();
        assert!(low <= 50.0, "{low}");
    }
}
