//! The areas that were asked for, planned, and ready to be measured in their share of the time.

use clap::ValueEnum;
use flatout_bench::{Area, Error, Estimate, Extent, Pace, Run};
use flatout_measure::case::Plan;
use flatout_sys::cancel::CancelToken;

use crate::arguments::bench::{Bench as Arguments, Name};
use crate::output;

/// Trials that every row gets at least.
const USUAL_TRIALS: u32 = 6;
const QUICK_TRIALS: u32 = 3;

/// One area, planned.
pub(super) struct Job {
    pub(super) name: Name,
    pub(super) estimate: Estimate,
    /// Time that its trials get.
    pub(super) budget_ns: u64,
    pub(super) area: Box<dyn Area>,
}

/// The areas asked for, or all of them in short.
///
/// Errors: what cannot be done; nothing is written before all areas are known to be possible.
pub(super) fn jobs(
    arguments: &Arguments,
    seed: u64,
    cancel: CancelToken,
) -> Result<Vec<Job>, Error> {
    arguments.check().map_err(Error::Usage)?;
    let names = arguments.names();
    let (names, extent) = match (names.is_empty(), arguments.quick) {
        (true, _) => (Name::value_variants().to_vec(), Extent::Few),
        (false, true) => (names, Extent::Quick),
        (false, false) => (names, Extent::Full),
    };
    let pace = if arguments.quick { Pace::Quick } else { Pace::Usual };
    let run = Run {
        extent,
        pace,
        least_trials: least_trials(pace),
        place: arguments.place().clone(),
        flatout: std::env::current_exe()
            .map_err(flatout_io::Error::system("find the program of", "flatout".as_ref()))?,
        max_write_bytes: None,
        time_ns: arguments.max_time.filter(|_| names.len() == 1),
        seed,
        cancel,
        notice: output::complain,
    };
    let area = |name: Name| {
        arguments.areas.make(name).map_err(|error| Error::Usage(output::one_line(&error)))
    };
    let mut areas: Vec<Box<dyn Area>> =
        names.iter().copied().map(area).collect::<Result<_, _>>()?;
    // Areas that have no choice take what they need, the others share the rest. What is wrong is
    // said in the order of the areas, below.
    let fixed: Vec<Option<Result<Estimate, Error>>> =
        areas.iter_mut().map(|area| (!area.can_shrink()).then(|| area.plan(&run))).collect();
    let needed: u64 = fixed.iter().flatten().flatten().map(|plan| plan.write_bytes).sum();
    let sharing = fixed.iter().filter(|plan| plan.is_none()).count().max(1) as u64;
    let share = |most: u64| most.saturating_sub(needed) / sharing;
    let run = Run { max_write_bytes: arguments.max_write.map(share), ..run };
    let mut jobs = Vec::new();
    for ((name, mut area), fixed) in names.into_iter().zip(areas).zip(fixed) {
        let estimate = fixed.unwrap_or_else(|| area.plan(&run))?;
        estimate.notices.iter().for_each(|line| output::complain(line));
        jobs.push(Job { name, budget_ns: estimate.usual_ns, estimate, area });
    }
    // Time asked for is shared out as the usual time is.
    if let Some(asked_ns) = arguments.max_time {
        let total: u128 = jobs.iter().map(|job| u128::from(job.budget_ns)).sum();
        for job in &mut jobs {
            let share = u128::from(asked_ns) * u128::from(job.budget_ns) / total.max(1);
            job.budget_ns = share as u64;
        }
    }
    Ok(jobs)
}

fn least_trials(pace: Pace) -> u32 {
    if pace == Pace::Quick { QUICK_TRIALS } else { USUAL_TRIALS }
}

/// When the rows of all areas are done.
pub(super) fn plan(arguments: &Arguments, seed: u64) -> Plan {
    let pace = if arguments.quick { Pace::Quick } else { Pace::Usual };
    Plan { min_trials: least_trials(pace), seed, ..Plan::default() }
}
