//! From core to core: what it takes until a line that one CPU has written is read by another, one
//! way.

use flatout_measure::{CLOCK_READS, Sample, Spoil, TrialError};
use flatout_sys::hand_over::Line;

use super::super::fact;
use crate::Extent;
use crate::cores;
use crate::fact::CPUS_SHARE_CORE;
use crate::workers::{self, ThreadError};

/// Round trips that are timed: some milliseconds between cores of one chip.
const ROUNDS: u64 = 20_000;
/// Round trips before.
const WARM_UP_ROUNDS: u64 = 1_000;
/// Most pairs of CPUs: all of a machine of eight.
const MOST_PAIRS: usize = 28;

/// The pairs of CPUs that are measured, up to a bound; none in one row where one CPU is allowed. `order`
/// is that in which threads get CPUs.
pub(super) fn pairs_of(extent: Extent, order: &[usize]) -> Vec<Option<(usize, usize)>> {
    let most = match extent {
        Extent::Few => return Vec::new(),
        Extent::Quick => 1,
        Extent::Full => MOST_PAIRS,
    };
    let pairs = pairs(order, most);
    if pairs.is_empty() { vec![None] } else { pairs.into_iter().map(Some).collect() }
}

/// All pairs, or, where these are more than `most`, those of the first CPU with others that are
/// spread evenly, one of another core first.
fn pairs(order: &[usize], most: usize) -> Vec<(usize, usize)> {
    let pair = |one: usize| move |&other: &usize| (one.min(other), one.max(other));
    let with = |at: usize| order[at + 1..].iter().map(pair(order[at]));
    let mut pairs: Vec<_> = (0..order.len()).flat_map(with).collect();
    if pairs.len() > most {
        let all = order.len() - 1;
        let count = most.min(all);
        pairs = (0..count).map(|at| pairs[at * all / count]).collect();
    }
    pairs.sort_unstable();
    pairs
}

/// Runs one trial between these CPUs.
pub(super) fn sample(cpus: Option<(usize, usize)>) -> Result<Sample, TrialError> {
    workers::can_tie()?;
    let too_few = || TrialError::Unsupported("two CPUs are needed, one is allowed".to_owned());
    trial(&Line::default(), cpus.ok_or_else(too_few)?, ROUNDS)
}

/// Hands the line back and forth. A thread that does not come, because others have its CPU,
/// spoils the trial.
fn trial(line: &Line, cpus: (usize, usize), rounds: u64) -> Result<Sample, TrialError> {
    let played = line.play(cpus.into(), workers::tie_to, (WARM_UP_ROUNDS, 1, rounds));
    let Some(elapsed_ns) = played.map_err(ThreadError::of_one)?? else {
        return Ok(Sample { spoil: Some(Spoil::Preempted), ..Sample::default() });
    };
    if line.hand_overs() != 2 * (WARM_UP_ROUNDS + rounds) {
        return Err(TrialError::Failed("the line was not handed over each time".to_owned()));
    }
    let mut sample = Sample { amount: (2 * rounds) as f64, elapsed_ns, ..Sample::default() };
    sample.facts.set(fact::HAND_OVERS, 2 * rounds);
    sample.facts.set(CLOCK_READS, 2_u64);
    sample.facts.set_known(CPUS_SHARE_CORE, cores::share_core(cpus.0, cpus.1));
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use flatout_sys::affinity;

    use super::*;

    #[test]
    fn pairs_are_all_or_spread() {
        assert_eq!(pairs(&[0, 1], 28), [(0, 1)]);
        assert_eq!(pairs(&[7, 2, 5], 28), [(2, 5), (2, 7), (5, 7)]);
        // Two cores whose hardware threads have adjacent numbers.
        assert_eq!(pairs(&[2, 0, 3, 1], 1), [(0, 2)]);
        assert_eq!(pairs(&[4], 28), []);
        assert_eq!(pairs(&[], 28), []);
        let many: Vec<usize> = (0..64).collect();
        let found = pairs(&many, 28);
        assert_eq!(found.len(), 28);
        assert!(found.iter().all(|&(first, second)| first == 0 && second > 0));
        assert_eq!(pairs_of(Extent::Full, &[4]), [None]);
        assert!(matches!(sample(None), Err(TrialError::Unsupported(_))));
    }

    #[test]
    fn each_hand_over_is_counted() {
        let cpus = affinity::allowed_cpus().unwrap();
        let [first, second, ..] = cpus[..] else {
            return eprintln!("skipped: two CPUs are needed, one is allowed");
        };
        // On a busy machine a side may come too late.
        let mut trials = (0..20).map(|_| trial(&Line::default(), (first, second), 50).unwrap());
        let sample = trials.find(|sample| sample.spoil.is_none()).unwrap();
        assert_eq!(sample.amount, 100.0);
        assert!(sample.elapsed_ns > 0);
    }

    #[test]
    fn a_thread_that_comes_too_late_gives_no_time_and_no_failure() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let line = Line::default();
        // As a side does that has waited for half a second.
        line.give_up();
        let lost = Sample { spoil: Some(Spoil::Preempted), ..Sample::default() };
        assert_eq!(trial(&line, (cpu, cpu), 10), Ok(lost));
    }

    #[test]
    fn a_side_that_cannot_run_does_not_hang_the_other() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        for pair in [(cpu, usize::MAX), (usize::MAX, cpu)] {
            assert!(matches!(trial(&Line::default(), pair, 10), Err(TrialError::NoMore(_))));
        }
    }
}
