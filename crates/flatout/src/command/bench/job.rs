//! The areas that were asked for, planned, and ready to be measured in their share of the time.

use std::sync::Arc;

use clap::ValueEnum;
use flatout_bench::{Area, Error, Estimate, Extent, Run, scratch, slowdown};
use flatout_measure::case::{Plan, WhenPrecise};
use flatout_measure::comparison::noise::Noise;
use flatout_sys::cancel::CancelToken;
use flatout_sys::memory::room_to_measure;

use crate::arguments::bench::{Bench as Arguments, Name};
use crate::command::own_program;
use crate::output;

/// Trials that every row gets at least.
const USUAL_TRIALS: u32 = 6;
const QUICK_TRIALS: u32 = 3;
/// Trials that a row gets at most where time was asked for: more make a record large.
const MOST_TRIALS: u32 = 1000;
/// What is kept of the time to write down what was found: one part in so many, and at most so long.
const CLOSING_PART: u64 = 50;
const MOST_CLOSING_NS: u64 = 300_000_000;
/// Beside others it takes longer: one part in so many at most.
const BUSY_CLOSING_PART: u64 = 10;

/// One area, planned.
pub(super) struct Planned {
    pub(super) name: Name,
    pub(super) estimate: Estimate,
    pub(super) area: Box<dyn Area>,
}

/// An area as the options want it.
pub(super) type Make<'m> = dyn Fn(Name) -> Result<Box<dyn Area>, Error> + 'm;

/// The areas asked for, or all of them in short.
///
/// Errors: what cannot be done; nothing is written before all areas are known to be possible.
pub(super) fn jobs(
    arguments: &Arguments,
    seed: u64,
    cancel: CancelToken,
    make: &Make<'_>,
) -> Result<Vec<Planned>, Error> {
    arguments.check().map_err(Error::Usage)?;
    if let Some(directory) = arguments.given_directory() {
        scratch::on(directory)?;
    }
    room_to_measure().map_err(|why| Error::NoRoom(format!("cannot measure: {why}")))?;
    let names = arguments.names();
    let (names, extent) = match (names.is_empty(), arguments.quick) {
        (true, _) => (Name::value_variants().to_vec(), Extent::Few),
        (false, true) => (names, Extent::Quick),
        (false, false) => (names, Extent::Full),
    };
    let run = Run {
        extent,
        is_quick: arguments.quick,
        least_trials: least_trials(arguments),
        place: arguments.place().clone(),
        flatout: own_program(),
        max_write_bytes: arguments.max_write,
        time_ns: None,
        rounds: arguments.rounds,
        seed,
        cancel,
        notice: Some(output::notice),
    };
    let mut areas: Vec<Box<dyn Area>> =
        names.iter().copied().map(make).collect::<Result<_, _>>()?;
    let runs = vec![run; areas.len()];
    let mut estimates = plan_all(&mut areas, &runs)?;
    if let Some(asked_ns) = arguments.max_time {
        // Time asked for is shared out as the usual time is.
        let weights: Vec<u64> = estimates.iter().map(|estimate| estimate.usual_ns).collect();
        let runs: Vec<Run> = runs
            .into_iter()
            .enumerate()
            .map(|(at, run)| Run { time_ns: Some(part_ns(asked_ns, &weights, at)), ..run })
            .collect();
        estimates = plan_all(&mut areas, &runs)?;
    }
    for line in estimates.iter().flat_map(|estimate| &estimate.notices) {
        output::notice(line);
    }
    let jobs = names.into_iter().zip(estimates).zip(areas);
    Ok(jobs.map(|((name, estimate), area)| Planned { name, estimate, area }).collect())
}

/// Plans each area for its run. Where it is limited what may be written, those that write share it; what one
/// leaves goes to the next.
///
/// Errors: the first, in the order of the areas.
fn plan_all(areas: &mut [Box<dyn Area>], runs: &[Run]) -> Result<Vec<Estimate>, Error> {
    let plan = |(area, run): (&mut Box<dyn Area>, &Run)| area.plan(run);
    let mut estimates = areas.iter_mut().zip(runs).map(plan).collect::<Result<Vec<_>, _>>()?;
    let Some(mut left) = runs.iter().find_map(|run| run.max_write_bytes) else {
        return Ok(estimates);
    };
    let writes = |estimate: &Estimate| estimate.most_write_bytes > 0;
    let mut sharing = estimates.iter().filter(|estimate| writes(estimate)).count() as u64;
    for (at, estimate) in estimates.iter_mut().enumerate().filter(|(_, estimate)| writes(estimate))
    {
        let run = Run { max_write_bytes: Some(left / sharing), ..runs[at].clone() };
        *estimate = areas[at].plan(&run)?;
        (left, sharing) = (left.saturating_sub(estimate.most_write_bytes), sharing - 1);
    }
    Ok(estimates)
}

/// The part of a time that belongs to one of several with these weights.
fn part_ns(whole_ns: u64, weights: &[u64], at: usize) -> u64 {
    let all: u128 = weights.iter().copied().map(u128::from).sum();
    (u128::from(whole_ns) * u128::from(weights[at]) / all.max(1)) as u64
}

/// When everything is over, on the system's clock, of a run that takes `usual_ns` from `now_ns` on unless
/// another time was asked for; [`u64::MAX`] where a number of trials was.
pub(super) fn ends_ns(arguments: &Arguments, usual_ns: u64, begun_ns: u64, now_ns: u64) -> u64 {
    match (arguments.max_time, arguments.rounds) {
        (Some(asked_ns), _) => {
            begun_ns.saturating_add(asked_ns - closing_ns(asked_ns, slowdown::now()))
        }
        (None, Some(_)) => u64::MAX,
        (None, None) => now_ns.saturating_add(usual_ns),
    }
}

/// What the first of these areas gets, by their estimates: its part of what is left until `ends_ns`, so
/// that what one leaves goes to the next, and what one takes too much is taken from all that follow.
pub(super) fn share(ends_ns: u64, estimates_ns: &[u64], now_ns: u64, base: Plan) -> Plan {
    if ends_ns == u64::MAX {
        let budget_ns = estimates_ns.first().copied().unwrap_or(0);
        return Plan { budget_ns, ends_ns, ..base };
    }
    let budget_ns = part_ns(ends_ns.saturating_sub(now_ns), estimates_ns, 0);
    Plan { budget_ns, ends_ns: now_ns.saturating_add(budget_ns), ..base }
}

/// What is kept of the time asked for to write down what was found, where all is so many times slower.
fn closing_ns(asked_ns: u64, slowdown: f64) -> u64 {
    let quiet_ns = (asked_ns / CLOSING_PART).min(MOST_CLOSING_NS);
    ((quiet_ns as f64 * slowdown) as u64).min(asked_ns / BUSY_CLOSING_PART)
}

fn least_trials(arguments: &Arguments) -> u32 {
    if arguments.quick { QUICK_TRIALS } else { USUAL_TRIALS }
}

/// When the rows of all areas are done, beside what is known of this machine's noise.
pub(super) fn plan(arguments: &Arguments, seed: u64, noise: Option<Arc<Noise>>) -> Plan {
    let (min_trials, when_precise) = (least_trials(arguments), WhenPrecise::Thin);
    let plan = Plan { min_trials, when_precise, noise, seed, ..Plan::default() };
    match (arguments.rounds, arguments.max_time) {
        (Some(rounds), _) => Plan { min_trials: rounds, max_trials: rounds, ..plan },
        // Time that was asked for is used.
        (None, Some(_)) => Plan { max_trials: MOST_TRIALS, ..plan },
        (None, None) => plan,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments as Parsed, Command};

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn what_one_area_leaves_goes_to_the_next_and_what_it_takes_is_taken_from_all() {
        let budget = |estimates: &[u64], now_ns| {
            let plan = share(100, estimates, now_ns, Plan::default());
            assert_eq!(plan.ends_ns, now_ns + plan.budget_ns);
            plan.budget_ns
        };
        assert_eq!(budget(&[10, 30, 60], 0), 10);
        assert_eq!(budget(&[30, 60], 10), 30);
        assert_eq!(budget(&[30, 60], 55), 15, "the first took too long");
        assert_eq!(budget(&[60], 20), 80, "the others took less");
        assert_eq!(budget(&[60], 200), 0);
        let endless = share(u64::MAX, &[7], 5, Plan::default());
        assert_eq!((endless.budget_ns, endless.ends_ns), (7, u64::MAX));
    }

    #[test]
    fn time_that_was_asked_for_is_shared_out_whole_and_used() {
        let asked = |words: &[&str]| {
            let words = ["flatout", "bench"].iter().chain(words);
            match Parsed::try_parse_from(words).unwrap().command {
                Command::Bench(arguments) => plan(&arguments, 1, None),
                other => panic!("{other:?}"),
            }
        };
        let usual = asked(&[]);
        assert_eq!((usual.max_trials, usual.when_precise), (60, WhenPrecise::Thin));
        assert_eq!(asked(&["--max-time", "5s"]).max_trials, MOST_TRIALS);
        let fixed = asked(&["--max-time", "5s", "--runs", "4"]);
        assert_eq!((fixed.min_trials, fixed.max_trials), (4, 4));
        let weights = [3, 5, 2];
        let parts: Vec<u64> = (0..3).map(|at| part_ns(5 * SECOND_NS, &weights, at)).collect();
        assert_eq!(parts.iter().sum::<u64>(), 5 * SECOND_NS);
    }

    #[test]
    fn time_is_kept_to_write_down_what_was_found() {
        assert_eq!(closing_ns(5 * SECOND_NS, 1.0), 100_000_000);
        assert_eq!(closing_ns(600 * SECOND_NS, 1.0), 300_000_000);
        assert_eq!(closing_ns(1, 1.0), 0);
        assert_eq!(closing_ns(5 * SECOND_NS, 3.0), 300_000_000);
        assert_eq!(closing_ns(5 * SECOND_NS, 20.0), 500_000_000, "a tenth at most");
    }
}
