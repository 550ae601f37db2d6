//! How many runs a comparison takes: with what chance a change is found in runs of such noise.

use std::cell::OnceCell;

use super::judgement::Rule;
use super::replicates::Estimate;
use super::{MOST_RUNS_NEEDED, NoiseSource, Power, SIGNIFICANCE};
use crate::statistics::pool::KIN_FREEDOM;
use crate::statistics::student::{normal_below, student_quantile};

/// Share of rows in which a change that matters is to be found.
pub(super) const POWER: f64 = 0.80;

/// Fewer runs a side are never advised. With four a side there are 35 ways to divide them, and two
/// rows that chance has divided cleanly are more than one in twenty of these.
pub(super) const LEAST_RUNS_ADVISED: u64 = 5;

/// What a comparison of some rows can find.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Logarithm of the change that is to be found.
    change: f64,
    /// Share of the significance that the first row has to pass.
    tail: f64,
    /// What the statistic must reach with each number of runs that may be advised; found when it is
    /// asked for, since a quantile costs more than all else here.
    sizes: Vec<(u64, OnceCell<f64>)>,
}

impl Plan {
    /// Of so many rows, for a change by this share of one in any of them.
    pub fn new(rows: usize, change_ratio: f64) -> Self {
        let sizes = LEAST_RUNS_ADVISED..=MOST_RUNS_NEEDED;
        Self {
            change: change_ratio.ln_1p(),
            tail: SIGNIFICANCE / (2 * rows.max(1)) as f64,
            sizes: sizes.map(|runs| (runs, OnceCell::new())).collect(),
        }
    }

    /// The statistic that one row must reach when none of the others has changed.
    pub fn critical(&self, freedom: f64) -> f64 {
        student_quantile(1.0 - self.tail, freedom)
    }

    /// The chance to find the change where a difference of two sides has this deviation.
    ///
    /// Source: the normal approximation of the noncentral t, Abramowitz and Stegun 26.7.10.
    pub fn chance(&self, deviation: f64, critical: f64, freedom: f64) -> f64 {
        let distance = self.change / deviation;
        if !distance.is_finite() {
            return 1.0;
        }
        let needed = critical * (1.0 - 1.0 / (4.0 * freedom));
        normal_below((distance - needed) / (1.0 + critical * critical / (2.0 * freedom)).sqrt())
    }

    /// Runs a side with which the change is found in four of five rows whose figures vary so from
    /// run to run. `None` for more than [`MOST_RUNS_NEEDED`], and for no rows.
    pub fn runs_for_most(&self, deviations: &[f64]) -> Option<u64> {
        if deviations.is_empty() {
            return None;
        }
        let is_short = |(runs, critical): &(u64, OnceCell<f64>)| {
            let runs = *runs as f64;
            let freedom = 2.0 * (runs - 1.0) + KIN_FREEDOM;
            let critical = *critical.get_or_init(|| self.critical(freedom));
            let chance = |one: &f64| self.chance(one * (2.0 / runs).sqrt(), critical, freedom);
            deviations.iter().map(chance).sum::<f64>() < POWER * deviations.len() as f64
        };
        self.sizes.get(self.sizes.partition_point(is_short)).map(|(runs, _)| *runs)
    }

    /// What runs can find of which these estimates are.
    pub fn power(&self, estimates: &[Estimate], rule: &mut Rule<'_>) -> Power {
        let chances = estimates.iter().map(|estimate| {
            let [_, critical] = rule.quantiles(estimate.freedom);
            self.chance(estimate.deviation(), critical, estimate.freedom)
        });
        let found = chances.sum::<f64>() / estimates.len() as f64;
        let deviations: Vec<f64> =
            estimates.iter().map(|estimate| estimate.planned_variance.sqrt()).collect();
        let count = |source| estimates.iter().filter(|one| one.source == source).count();
        let sources = [NoiseSource::Runs, NoiseSource::Learned, NoiseSource::Assumed];
        let known = sources.into_iter().filter(|source| count(*source) > 0);
        Power {
            found_ratio: (!estimates.is_empty()).then_some(found),
            runs_recommended: self.runs_for_most(&deviations),
            noise_source: known.max_by_key(|source| count(*source)),
        }
    }
}
