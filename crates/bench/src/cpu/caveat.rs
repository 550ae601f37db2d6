//! What the facts of a row say against its figure.

use flatout_measure::units::percent;
use flatout_measure::{Facts, Outcome, warning};

use super::clock::{AGREEMENT, agrees};
use super::fact;
use super::peak::Share;
use crate::workers;

/// How far twice the work may be from twice the time.
const DOUBLING: f64 = 0.02;
/// The same under contention, which comes and goes. Work that was not done would show as a factor.
const DOUBLING_DISTURBED: f64 = 0.15;
/// Trials that show it then.
const LEAST_TRIALS: u64 = 3;
/// A fall of the clock from before the work to after it that is said.
const CLOCK_FALL: f64 = 0.03;
/// Stolen share of the time that is said, and the least ticks that it must be: the kernel counts in
/// ticks of 10 ms, and trials take 1 to 80 ms.
const STOLEN: f64 = 0.05;
const STOLEN_TICKS: f64 = 3.0;

fn degrade(outcome: &mut Outcome, code: &str, text: String) {
    outcome.degrade();
    outcome.warn(code, text);
}

/// Whether the clock can be believed, and whether it fell.
pub(super) fn add_of_clock(outcome: &mut Outcome, facts: &Facts) {
    if outcome.median.is_none() {
        return;
    }
    let agreement = facts.number(fact::CHAIN_AGREEMENT_RATIO);
    if let Some(ratio) = agreement.filter(|&ratio| !agrees(ratio)) {
        let text = format!(
            "two kinds of dependency chain read clocks that differ by {:.1} %, more than {:.0} %: \
             the peak is as uncertain",
            (1.0 - ratio) * 100.0,
            AGREEMENT * 100.0
        );
        degrade(outcome, warning::CLOCK_DISAGREES, text);
    }
    let before = facts.number(fact::CLOCK_BEFORE_HZ);
    let fall =
        facts.number(fact::CLOCK_AFTER_HZ).zip(before).map(|(after, before)| 1.0 - after / before);
    // Who was interrupted in between reads any clock.
    let is_read = !warning::has(&outcome.warnings, warning::DISTURBED);
    if let Some(fall) = fall.filter(|&fall| fall > CLOCK_FALL && is_read) {
        let text = format!(
            "the clock fell by {} from before the work to after it: power, temperature, or \
             contention by an SMT sibling",
            percent(fall)
        );
        outcome.warn(warning::CLOCK_DRIFT, text);
    }
}

/// Whether the CPU can do more than any loop asks of it.
pub(super) fn add_of_width(outcome: &mut Outcome, is_narrow: bool) {
    if is_narrow && outcome.median.is_some() {
        let text = "the CPU has AVX without AVX2 and FMA, for which there is no loop: its registers \
                    are twice as wide as those of this row, and so may its peak be";
        outcome.warn(warning::NARROW_LOOPS, text.to_owned());
    }
}

/// The share of the time that was stolen, if it is one to speak of.
pub(super) fn stolen(facts: &Facts) -> Option<f64> {
    let ticks = facts.number(fact::STOLEN_TICKS)?;
    facts.number(fact::STOLEN_RATIO).filter(|&ratio| ratio > STOLEN && ticks >= STOLEN_TICKS)
}

/// What took CPU time away, and whether the time followed the work; `hidden` are CPUs that share a core, which
/// the kernel does not know.
pub(super) fn add_of_share(
    outcome: &mut Outcome,
    facts: &Facts,
    share: &Share,
    hidden: &[Vec<usize>],
) {
    if outcome.median.is_none() {
        return;
    }
    let contained = workers::contained(share.threads, share.cpus, share.quota_cpus);
    let contained = contained.filter(|_| share.is_limited_by_quota());
    warning::add_all(&mut outcome.warnings, contained);
    if share.cores < share.cores_declared {
        let pairs: Vec<String> = hidden.iter().map(|pair| format!("{pair:?}")).collect();
        let text = format!("CPUs share a core that the kernel takes for two: {}", pairs.join(", "));
        outcome.warn(warning::CORES_SHARED, text);
    }
    if let Some(ratio) = stolen(facts) {
        let text = format!("the hypervisor took {} of the CPU time", percent(ratio));
        outcome.warn(warning::STOLEN_TIME, text);
    }
    let beside_siblings = [warning::DISTURBED, warning::SMT_CONTENTION];
    let is_quiet = !beside_siblings.iter().any(|code| warning::has(&outcome.warnings, code));
    let most = if is_quiet { DOUBLING } else { DOUBLING_DISTURBED };
    // Contention that begins between two slices is in both of two trials as likely as in one.
    let is_shown = is_quiet || outcome.n >= LEAST_TRIALS;
    let doubling = facts.number(fact::DOUBLING_RATIO);
    let doubling = doubling.filter(|_| !share.is_oversubscribed() && is_shown);
    if let Some(ratio) = doubling.filter(|ratio| (ratio / 2.0 - 1.0).abs() > most) {
        let text = format!("twice the work took {ratio:.3} times the time, not twice");
        degrade(outcome, warning::NOT_LINEAR, text);
    }
}
