//! Facts of single trials of which a row gives the median: the clock and what belongs to it.
//!
//! They travel as curves with a point for each trial, because the sampler sums up what stands in the
//! audit: a mean would follow the one trial in which a neighbour came.

use flatout_measure::record::{Outcome, Series};
use flatout_measure::statistics::{median, quantile};
use serde_json::json;

const NAMES: [&str; 7] = [
    "clock_hz",
    "clock_slowest_thread_hz",
    "clock_fastest_thread_hz",
    "clock_before_hz",
    "clock_after_hz",
    "chain_agreement_ratio",
    "doubling_ratio",
];

/// Curves of one point each.
pub(super) fn series(facts: impl Iterator<Item = (&'static str, f64)>) -> Vec<Series> {
    let curve = |(name, value): (&str, f64)| Series {
        name: name.to_owned(),
        x: "trial".to_owned(),
        y: String::new(),
        points: vec![[0.0, value]],
    };
    facts.filter(|(_, value)| value.is_finite()).map(curve).collect()
}

/// The values of a fact, one for each trial that had it.
fn values(series: &[Series], name: &str) -> Vec<f64> {
    let curve = series.iter().find(|one| one.name == name);
    curve.map(|one| one.points.iter().map(|point| point[1]).collect()).unwrap_or_default()
}

/// The median of a fact; none where no trial had it.
pub(super) fn of(series: &[Series], name: &str) -> Option<f64> {
    median(&values(series, name))
}

/// Puts the medians into the audit, and operations per cycle: in the middle trial, and in the best
/// tenth of them, each trial at its own clock. Takes the curves away.
pub(super) fn settle(outcome: &mut Outcome) {
    for name in NAMES {
        if let Some(value) = of(&outcome.series, name) {
            outcome.audit.insert(name.to_owned(), json!(value));
        }
    }
    let clocks = values(&outcome.series, "clock_hz");
    if clocks.len() == outcome.samples.len() && outcome.unit != "Hz" {
        let each: Vec<f64> =
            outcome.samples.iter().zip(&clocks).map(|(rate, hz)| rate / hz).collect();
        for (key, share) in
            [("operations_per_cycle", 0.5), ("operations_per_cycle_best_decile", 0.9)]
        {
            outcome.audit.extend(quantile(&each, share).map(|one| (key.to_owned(), json!(one))));
        }
    }
    outcome.series.retain(|series| !NAMES.contains(&series.name.as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disturbed_trial_moves_no_median() {
        let curve = |name: &str, values: &[f64]| Series {
            points: values.iter().map(|&value| [0.0, value]).collect(),
            name: name.to_owned(),
            ..Series::default()
        };
        let mut outcome = Outcome {
            unit: "flop/s".to_owned(),
            samples: vec![40.0, 30.0, 20.0],
            series: vec![curve("clock_hz", &[2.0, 2.0, 1.0]), curve("other", &[1.0])],
            ..Outcome::default()
        };
        settle(&mut outcome);
        assert_eq!(outcome.audit["clock_hz"], 2.0);
        assert_eq!(outcome.audit["operations_per_cycle"], 20.0);
        assert_eq!(outcome.audit["operations_per_cycle_best_decile"], 20.0);
        assert_eq!(outcome.series.len(), 1);
    }

    #[test]
    fn what_is_no_number_is_no_fact() {
        assert!(series([("clock_hz", f64::NAN)].into_iter()).is_empty());
        assert_eq!(of(&series([("clock_hz", 2.0)].into_iter()), "clock_hz"), Some(2.0));
        assert_eq!(of(&[], "clock_hz"), None);
    }
}
