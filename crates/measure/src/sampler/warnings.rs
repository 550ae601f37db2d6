//! What the trials of a row say against its figure: the harness's share, few samples, a wide
//! interval, samples far from the others.

use super::fact::{HARNESS_OVERHEAD_NS, OUTLIER_INDICES, OVERHEAD_RATIO};
use super::{CLOCK_READS, NOISY};
use crate::fact::{Facts, Value};
use crate::overhead::{OVERHEAD_SHARE, Overhead};
use crate::record::Outcome;
use crate::statistics;
use crate::units::counted;
use crate::units::wide_text;
use crate::warning::{self, Warning};

/// Says how much of the time of a trial is the harness's own; `times_ns` are those of all trials.
pub(super) fn overhead(
    outcome: &mut Outcome,
    facts: &mut Facts,
    times_ns: &[f64],
    overhead: &Overhead,
) {
    let Some(elapsed_ns) = statistics::median(times_ns) else { return };
    let reads = facts.number(CLOCK_READS).unwrap_or(0.0);
    let overhead_ns = overhead.of_trial_ns(reads / times_ns.len() as f64);
    let ratio = overhead_ns / elapsed_ns;
    facts.set(HARNESS_OVERHEAD_NS, overhead_ns);
    facts.set(OVERHEAD_RATIO, ratio);
    if ratio > OVERHEAD_SHARE {
        let text = format!(
            "the harness takes {:.1} % of the time of a trial ({overhead_ns:.0} of \
             {elapsed_ns:.0} ns)",
            ratio * 100.0
        );
        outcome.warn(warning::OVERHEAD, text);
    }
}

/// Adds what the finished samples say against themselves.
pub(super) fn samples(outcome: &mut Outcome, facts: &mut Facts) {
    let far = statistics::outliers(&outcome.samples);
    if !far.is_empty() {
        let text = format!("{} of {} samples lie far from the others", far.len(), outcome.n);
        facts.set(OUTLIER_INDICES, far.iter().copied().collect::<Value>());
        outcome.warn(warning::OUTLIERS, text);
    }
    let noise = match outcome.half_width() {
        None => {
            let text = format!("{}, too few for a 95 % interval", counted(outcome.n, "trial"));
            Warning::new(warning::FEW_TRIALS, text)
        }
        Some(width) if width > NOISY => {
            let trials = counted(outcome.n, "trial");
            let width =
                wide_text(width).map_or_else(|| format!("{:.0} %", width * 100.0), str::to_owned);
            let text = format!("the 95 % interval is ±{width} after {trials}");
            Warning::new(warning::UNSTABLE, text)
        }
        Some(_) => return,
    };
    warning::add(&mut outcome.warnings, noise);
}
