//! From core to core: what it takes until a line that one CPU has written is read by another, one
//! way.

use std::thread;

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::ceiling;
use flatout_measure::guard::Spoil;
use flatout_measure::record::{Ceiling, Outcome};
use flatout_measure::row::Unit;
use flatout_sys::affinity;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::hand_over::{Line, Unanswered};
use serde_json::{Map, json};

use super::ring;
use crate::area::Extent;

/// Id of the rows.
pub const ID: &str = "memory/hand-over";

/// Round trips that are timed: some milliseconds between cores of one chip.
const ROUNDS: u64 = 20_000;
/// Round trips before.
const WARM_UP_ROUNDS: u64 = 1_000;
/// Most pairs of CPUs: all of a machine of eight.
const MOST_PAIRS: usize = 28;

/// The rows, one for each pair of allowed CPUs up to a bound; with one CPU a row that says so.
pub fn cases(extent: Extent) -> Vec<Case<'static, Plain>> {
    if extent == Extent::Few {
        return Vec::new();
    }
    let cpus = affinity::allowed_cpus().unwrap_or_default();
    let most = if extent == Extent::Full { MOST_PAIRS } else { 1 };
    let pairs = pairs(&cpus, most);
    if pairs.is_empty() {
        let text = "two CPUs are needed, one is allowed";
        let refuse = move |_| Err(TrialError::Unsupported(text.to_owned()));
        return vec![case(Map::new(), Box::new(refuse))];
    }
    let of = |(first, second): (usize, usize)| {
        let mut parameters = Map::new();
        parameters.insert("first_cpu".to_owned(), first.into());
        parameters.insert("second_cpu".to_owned(), second.into());
        case(parameters, Box::new(move |_| trial((first, second), ROUNDS)))
    };
    pairs.into_iter().map(of).collect()
}

fn case(
    parameters: Map<String, serde_json::Value>,
    trial: flatout_measure::case::Trial<'static>,
) -> Case<'static, Plain> {
    Case { row: Plain { id: ID, parameters, unit: Unit::Nanoseconds }, trial }
}

/// All pairs, or, where these are more than `most`, those of the first CPU with others that are
/// spread evenly.
fn pairs(cpus: &[usize], most: usize) -> Vec<(usize, usize)> {
    let all = cpus.len() * cpus.len().saturating_sub(1) / 2;
    if all > most {
        let others = &cpus[1..];
        let count = most.min(others.len());
        return (0..count).map(|which| (cpus[0], others[which * others.len() / count])).collect();
    }
    let with = |index: usize| cpus[index + 1..].iter().map(move |&second| (cpus[index], second));
    (0..cpus.len()).flat_map(with).collect()
}

/// Hands a new line back and forth. A thread that does not come, because others have its CPU,
/// spoils the trial.
fn trial(cpus: (usize, usize), rounds: u64) -> Result<Sample, TrialError> {
    let line = Line::default();
    let Some(elapsed_ns) = exchange(&line, cpus, rounds)? else {
        return Ok(Sample { spoil: Some(Spoil::Preempted), ..Sample::default() });
    };
    if line.hand_overs() != 2 * (WARM_UP_ROUNDS + rounds) {
        return Err(TrialError::Failed("the line was not handed over each time".to_owned()));
    }
    let mut sample = Sample { amount: (2 * rounds) as f64, elapsed_ns, ..Sample::default() };
    sample.audit.insert("hand_overs".to_owned(), json!(2 * rounds));
    sample.audit.insert("clock_reads".to_owned(), json!(2));
    if let Some(siblings) = siblings(cpus.0) {
        sample.audit.insert("first_cpu_shares_core_with".to_owned(), siblings.into());
    }
    Ok(sample)
}

/// The time of `rounds` round trips after a warm-up; none if one side waited in vain.
fn exchange(
    line: &Line,
    (first, second): (usize, usize),
    rounds: u64,
) -> Result<Option<u64>, TrialError> {
    let serve = || {
        line.serve(WARM_UP_ROUNDS)?;
        let start_ns = monotonic_ns();
        line.serve(rounds)?;
        Ok::<_, Unanswered>(monotonic_ns().saturating_sub(start_ns))
    };
    // Who cannot even begin frees the other, or it would wait for nothing.
    let give_up = |_: &TrialError| line.give_up();
    let answer = || {
        ring::on_cpu(second, || Ok(line.answer(0, WARM_UP_ROUNDS + rounds))).inspect_err(give_up)
    };
    let (served, answered) = thread::scope(|scope| {
        let answerer = thread::Builder::new()
            .spawn_scoped(scope, answer)
            .map_err(|error| TrialError::Failed(format!("cannot start a thread: {error}")))?;
        let served = ring::on_cpu(first, || Ok(serve())).inspect_err(give_up);
        let answered = answerer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, TrialError>((served, answered))
    })?;
    let (served, answered) = (served?, answered?);
    Ok(served.ok().filter(|_| answered.is_ok()))
}

/// The CPUs that the kernel lists as hardware threads of the same core.
fn siblings(cpu: usize) -> Option<String> {
    let place = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    Some(std::fs::read_to_string(place).ok()?.trim().to_owned())
}

/// Names what limits the rows; a bound is not known.
pub fn finish(outcomes: &mut [Outcome]) {
    for outcome in outcomes.iter_mut().filter(|row| row.id == ID) {
        let limit = Ceiling {
            name: "none is known".to_owned(),
            limiter: "coherence between the cores".to_owned(),
            ..Ceiling::default()
        };
        ceiling::apply(outcome, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_all_or_spread() {
        assert_eq!(pairs(&[0, 1], 28), [(0, 1)]);
        assert_eq!(pairs(&[2, 5, 7], 28), [(2, 5), (2, 7), (5, 7)]);
        assert_eq!(pairs(&[4], 28), []);
        assert_eq!(pairs(&[], 28), []);
        let many: Vec<usize> = (0..64).collect();
        let found = pairs(&many, 28);
        assert_eq!(found.len(), 28);
        assert!(found.iter().all(|&(first, second)| first == 0 && second > 0));
        assert_eq!(pairs(&[0, 1, 2], 1), [(0, 1)]);
    }

    #[test]
    fn each_hand_over_is_counted() {
        let cpus = affinity::allowed_cpus().unwrap();
        let [first, second, ..] = cpus[..] else {
            return eprintln!("skipped: two CPUs are needed, one is allowed");
        };
        let sample = trial((first, second), 50).unwrap();
        assert_eq!(sample.amount, 100.0);
        assert!(sample.elapsed_ns > 0);
    }

    #[test]
    fn a_thread_that_comes_too_late_gives_no_time_and_no_failure() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let line = Line::default();
        // As a side does that has waited for half a second.
        line.give_up();
        assert_eq!(exchange(&line, (cpu, cpu), 10), Ok(None));
    }

    #[test]
    fn a_side_that_cannot_run_does_not_hang_the_other() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        for pair in [(cpu, usize::MAX), (usize::MAX, cpu)] {
            assert!(matches!(trial(pair, 10), Err(TrialError::Failed(_))));
        }
    }
}
