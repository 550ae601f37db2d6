//! Holds a figure against what bounds it. A figure above a bound that was derived cannot be
//! true; one above a bound that was measured shows that the bound was measured too low.

use serde_json::json;

use crate::record::{Better, Ceiling, Outcome, Provenance, Status};
use crate::sampler::fact::REJECTED_SAMPLES;
use crate::warning;

/// How far above its ceiling a figure may be: clocks and counters are no better than this.
pub const TOLERANCE: f64 = 1.02;

/// Share of a limit from which on the limit itself is what holds a figure back.
const REACHED: f64 = 0.9;

impl Ceiling {
    /// Whether the figure is at its limit, or bursts above it.
    pub fn is_reached(&self) -> bool {
        self.ratio.is_some_and(|share| share >= REACHED)
    }

    /// A bound that nobody knows the value of.
    pub fn unknown(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A bound that was measured in this run; unknown where the measurement has no figure.
    pub fn measured(name: impl Into<String>, value: Option<f64>) -> Self {
        Self::known(name, value, Provenance::Measured)
    }

    /// The best figure of its kind in this run: no bound, so that no share of it is worked out.
    pub fn best_seen(name: impl Into<String>, value: Option<f64>) -> Self {
        Self::known(name, value, Provenance::BestSeen)
    }

    /// A bound with its origin; unknown without a value.
    pub fn known(name: impl Into<String>, value: Option<f64>, from: Provenance) -> Self {
        let provenance = value.map_or(Provenance::Unknown, |_| from);
        Self { name: name.into(), value, provenance, ..Self::default() }
    }

    /// The same bound, with what most likely limits the figure.
    #[must_use]
    pub fn limited_by(self, limiter: impl Into<String>) -> Self {
        Self { limiter: limiter.into(), ..self }
    }
}

/// Whether `provenance` is a derivation rather than a measurement of this run.
pub fn is_derived(provenance: Provenance) -> bool {
    match provenance {
        Provenance::Cpuid
        | Provenance::Smbios
        | Provenance::Link
        | Provenance::Inferred
        | Provenance::Given => true,
        Provenance::Measured | Provenance::Earlier | Provenance::BestSeen | Provenance::Unknown => {
            false
        }
    }
}

/// How close a figure is to its ceiling; 1 is at the limit, more is beyond it.
///
/// `None` when either is missing or not above 0, when nobody knows where the ceiling is from, and
/// beside what is only the best of this run.
pub fn ratio(median: Option<f64>, better: Better, ceiling: &Ceiling) -> Option<f64> {
    let usable = |figure: Option<f64>| figure.filter(|f| f.is_finite() && *f > 0.0);
    let (median, value) = (usable(median)?, usable(ceiling.value)?);
    match (ceiling.provenance, better) {
        (Provenance::Unknown | Provenance::BestSeen, _) => None,
        (_, Better::Higher) => Some(median / value),
        (_, Better::Lower) => Some(value / median),
    }
}

/// Gives `outcome` its ceiling, works out the ratio, and judges a figure beyond it.
///
/// A limit that somebody set lets bursts through: beyond it the row is degraded, and the limit stays.
/// Beyond a derived ceiling the row becomes invalid and its samples move to
/// `audit.rejected_samples`; beyond a measured one it is degraded, if its interval lies beyond, too:
/// both are as uncertain as other figures. Before that, the caller should have measured the ceiling
/// again, interleaved with the row. Whatever the caller put into `ceiling.ratio` is replaced.
pub fn apply(outcome: &mut Outcome, ceiling: Ceiling) {
    let ratio = ratio(outcome.median, outcome.better, &ceiling);
    let ceiling = outcome.ceiling.insert(Ceiling { ratio, ..ceiling });
    let Some(ratio) = ratio.filter(|ratio| *ratio > TOLERANCE) else { return };
    let text = format!("{:.0} % of {}, which is its limit", ratio * 100.0, ceiling.name);
    if ceiling.provenance == Provenance::Given {
        outcome.degrade();
        let text = format!(
            "{text}: it let a burst through, or does not hold here; longer trials tell which"
        );
        outcome.warn(warning::LIMIT_EXCEEDED, text);
    } else if is_derived(ceiling.provenance) {
        outcome.audit.insert(REJECTED_SAMPLES.name().to_owned(), json!(outcome.samples));
        outcome.samples.clear();
        outcome.median = None;
        outcome.ci95 = None;
        outcome.n = 0;
        outcome.status = Status::Invalid;
        outcome.warn(warning::ABOVE_CEILING, text);
    } else {
        let certain = outcome.ci95.map(|[low, high]| match outcome.better {
            Better::Higher => low,
            Better::Lower => high,
        });
        if self::ratio(certain, outcome.better, ceiling).is_some_and(|ratio| ratio <= TOLERANCE) {
            return;
        }
        outcome.degrade();
        outcome.warn(warning::CEILING_LOW, format!("{text}: the limit was measured too low"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(median: f64, better: Better) -> Outcome {
        Outcome {
            better,
            median: Some(median),
            ci95: Some([median; 2]),
            n: 6,
            samples: vec![median; 6],
            ..Outcome::default()
        }
    }

    fn ceiling(value: f64, provenance: Provenance) -> Ceiling {
        Ceiling {
            name: "the bound".to_owned(),
            value: Some(value),
            provenance,
            ..Ceiling::default()
        }
    }

    fn judged(median: f64, better: Better, value: f64, provenance: Provenance) -> Outcome {
        let mut outcome = outcome(median, better);
        apply(&mut outcome, ceiling(value, provenance));
        outcome
    }

    fn ratio_of(outcome: &Outcome) -> Option<f64> {
        outcome.ceiling.as_ref().unwrap().ratio
    }

    #[test]
    fn below_the_ceiling_only_the_ratio_is_added() {
        let row = judged(80.0, Better::Higher, 100.0, Provenance::Cpuid);
        assert_eq!((ratio_of(&row), row.status, row.median), (Some(0.8), Status::Ok, Some(80.0)));
        assert!(row.warnings.is_empty());
    }

    #[test]
    fn where_lower_is_better_the_ratio_is_turned_round() {
        let row = judged(200.0, Better::Lower, 100.0, Provenance::Measured);
        assert_eq!(ratio_of(&row), Some(0.5));
        let row = judged(50.0, Better::Lower, 100.0, Provenance::Cpuid);
        assert_eq!(row.status, Status::Invalid);
    }

    #[test]
    fn two_percent_above_are_forgiven() {
        let row = judged(102.0, Better::Higher, 100.0, Provenance::Link);
        assert_eq!(row.status, Status::Ok);
    }

    #[test]
    fn above_any_derived_ceiling_there_is_no_figure() {
        for provenance in
            [Provenance::Cpuid, Provenance::Smbios, Provenance::Link, Provenance::Inferred]
        {
            let row = judged(103.0, Better::Higher, 100.0, provenance);
            assert_eq!(row.status, Status::Invalid);
            assert_eq!((row.median, row.ci95, row.n), (None, None, 0));
            assert!(row.samples.is_empty());
            assert_eq!(row.audit["rejected_samples"], json!([103.0_f64; 6].to_vec()));
            assert_eq!(row.warnings[0].code, warning::ABOVE_CEILING);
            assert_eq!(row.warnings[0].text, "103 % of the bound, which is its limit");
        }
    }

    #[test]
    fn a_limit_that_was_set_stays_where_a_burst_exceeds_it() {
        let row = judged(154.0, Better::Higher, 104.9, Provenance::Given);
        assert_eq!((row.status, row.median, row.n), (Status::Degraded, Some(154.0), 6));
        let bound = row.ceiling.unwrap();
        assert_eq!((bound.value, bound.provenance), (Some(104.9), Provenance::Given));
        assert!(bound.is_reached());
        let below = judged(50.0, Better::Higher, 104.9, Provenance::Given).ceiling.unwrap();
        assert!(!below.is_reached());
        assert_eq!(row.warnings[0].code, warning::LIMIT_EXCEEDED);
        assert!(row.warnings[0].text.starts_with("147 % of the bound"), "{:?}", row.warnings);
    }

    #[test]
    fn above_a_measured_bound_the_bound_is_called_low() {
        let row = judged(120.0, Better::Higher, 100.0, Provenance::Measured);
        assert_eq!((row.status, row.median), (Status::Degraded, Some(120.0)));
        assert_eq!(row.warnings[0].code, warning::CEILING_LOW);
    }

    #[test]
    fn a_figure_whose_interval_reaches_a_measured_bound_is_not_above_it() {
        for (median, better) in [(120.0, Better::Higher), (80.0, Better::Lower)] {
            let row = Outcome { ci95: Some([70.0, 130.0]), ..outcome(median, better) };
            let judged = |provenance| {
                let mut row = Outcome { status: Status::Ok, ..row.clone() };
                apply(&mut row, ceiling(100.0, provenance));
                (row.status, row.median.is_some())
            };
            assert_eq!(judged(Provenance::Measured), (Status::Ok, true));
            assert_eq!(
                judged(Provenance::Link),
                (Status::Invalid, false),
                "a derived one has none"
            );
        }
    }

    #[test]
    fn a_worse_status_is_kept() {
        let mut row = outcome(120.0, Better::Higher);
        row.status = Status::Unstable;
        apply(&mut row, ceiling(100.0, Provenance::Measured));
        assert_eq!(row.status, Status::Unstable);
    }

    #[test]
    fn an_unknown_ceiling_is_legal() {
        let row = judged(120.0, Better::Higher, 100.0, Provenance::Unknown);
        assert_eq!((ratio_of(&row), row.status), (None, Status::Ok));
        let mut row = outcome(1.0, Better::Higher);
        apply(&mut row, Ceiling::default());
        assert_eq!((ratio_of(&row), row.status), (None, Status::Ok));
    }

    #[test]
    fn the_best_of_a_run_is_no_bound() {
        let mut row = outcome(120.0, Better::Higher);
        apply(&mut row, Ceiling::best_seen("the best row", Some(100.0)));
        assert_eq!((ratio_of(&row), row.status), (None, Status::Ok));
        assert!(row.warnings.is_empty());
    }

    #[test]
    fn a_row_without_a_figure_has_no_ratio() {
        let mut row = Outcome { status: Status::Failed, ..Outcome::default() };
        apply(&mut row, ceiling(100.0, Provenance::Cpuid));
        assert_eq!((ratio_of(&row), row.status), (None, Status::Failed));
        assert_eq!(judged(1.0, Better::Higher, 0.0, Provenance::Cpuid).status, Status::Ok);
    }
}
