//! `flatout bench`: the areas asked for, one record.

use flatout_bench::cache::{self, Clearing, Extent};
use flatout_bench::{Bench, Error, syscall};
use flatout_measure::case::Plan;
use flatout_measure::clock::{Clock, SystemClock};
use flatout_measure::guard::SystemWitness;
use flatout_measure::record::{Outcome, Status};
use flatout_measure::{sampler, warning};
use flatout_report::Format;
use flatout_sys::cancel::CancelToken;

use crate::arguments::bench::{Area, Bench as Arguments};
use crate::conclusion::{Conclusion, Draft, FAILED, INTERRUPTED, Keep, View, WRONG_USE};
use crate::output;
use crate::progress::Progress;

const SECOND_NS: u64 = 1_000_000_000;

/// One area with the time it gets.
struct Work {
    area: Area,
    extent: Extent,
    budget_ns: u64,
}

/// Measures the areas one after the other; one that fails does not stop the next.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> Conclusion {
    let seed = arguments.seed.unwrap_or_else(|| SystemClock.now_ns());
    let mut draft = Draft::begin(seed);
    let works = works(arguments);
    let shown_only = arguments.output.output.is_none() && arguments.output.format == Format::Table;
    let keep =
        if arguments.areas.is_empty() && shown_only { Keep::JsonAndPage } else { Keep::Nothing };
    if let (Keep::JsonAndPage, Err(error)) = (keep, output::check_current_directory()) {
        draft.fail(FAILED, error);
        return draft.conclude(View::Summary);
    }
    if let Err(error) = announce(&works, arguments, seed, cancel) {
        fail(&mut draft, error);
        return draft.conclude(View::Summary);
    }
    let mut progress = Progress::begin(works.iter().map(|work| work.budget_ns).sum());
    let mut witness = SystemWitness::new();
    for work in &works {
        progress.area(work.budget_ns);
        let mut events = |event| progress.show(&event);
        let mut bench = Bench {
            clock: &SystemClock,
            witness: &mut witness,
            events: &mut events,
            cancelled: &|| cancel.is_cancelled(),
        };
        match measure(&works, work, arguments, seed, cancel, &mut bench) {
            Ok(outcomes) => add(&mut draft, outcomes),
            Err(error) => fail(&mut draft, error),
        }
        if work.area == Area::Cache {
            draft.charts.extend(cache::charts());
        }
        if cancel.is_cancelled() {
            draft.fail(INTERRUPTED, "interrupted: rows without enough trials say so".to_owned());
            break;
        }
    }
    progress.end();
    Conclusion { keep, ..draft.conclude(View::Report) }
}

/// Adds the rows of an area; failed ones are counted in one line.
fn add(draft: &mut Draft, outcomes: Vec<Outcome>) {
    let failed: Vec<_> = outcomes.iter().filter(|row| row.status == Status::Failed).collect();
    if let Some(first) = failed.first() {
        let why = first.warnings.iter().find(|warning| warning.code == warning::FAILED);
        let why = why.map_or("", |warning| warning.text.as_str());
        draft.fail(
            FAILED,
            format!("{} rows failed, the first is {}: {why}", failed.len(), first.id),
        );
    }
    outcomes.into_iter().for_each(|outcome| draft.add(outcome));
}

fn fail(draft: &mut Draft, error: Error) {
    let code = if matches!(error, Error::Usage(_)) { WRONG_USE } else { FAILED };
    draft.fail(code, error.to_string());
}

/// The areas, with their extent and the time they take at most.
fn works(arguments: &Arguments) -> Vec<Work> {
    let mut areas = arguments.areas.clone();
    areas.sort_unstable();
    areas.dedup();
    let (areas, extent) = match (areas.is_empty(), arguments.quick) {
        (true, _) => (vec![Area::Cache, Area::Syscall], Extent::Few),
        (false, true) => (areas, Extent::Quick),
        (false, false) => (areas, Extent::Full),
    };
    let short = arguments.quick && extent == Extent::Few;
    let seconds = |area| match (area, extent) {
        (Area::Cache, Extent::Few) => {
            if short {
                15
            } else {
                40
            }
        }
        (Area::Syscall, Extent::Few) => {
            if short {
                10
            } else {
                25
            }
        }
        (Area::Cache, Extent::Quick) => 30,
        (Area::Syscall, Extent::Quick) => 15,
        (Area::Cache, Extent::Full) => 240,
        (Area::Syscall, Extent::Full) => 120,
    };
    let total: u64 = areas.iter().map(|&area| seconds(area)).sum();
    // Time asked for is shared out as the usual time is.
    let budget_ns = |area| match arguments.max_time {
        Some(ns) => (u128::from(ns) * u128::from(seconds(area)) / u128::from(total)) as u64,
        None => seconds(area) * SECOND_NS,
    };
    areas.iter().map(|&area| Work { area, extent, budget_ns: budget_ns(area) }).collect()
}

fn cache_options(
    works: &[Work],
    work: &Work,
    arguments: &Arguments,
    seed: u64,
    cancel: CancelToken,
) -> cache::Options {
    cache::Options {
        directory: arguments.directory.clone(),
        extent: work.extent,
        max_write_bytes: arguments.max_write.map(|most| {
            // The other areas want some of it, too.
            if works.len() == 1 { most } else { most / 3 * 2 }
        }),
        clearing: if arguments.drop_caches { Clearing::System } else { Clearing::File },
        seed,
        cancel,
    }
}

/// Refuses what cannot be done, and says beforehand what will be written and how long it takes.
fn announce(
    works: &[Work],
    arguments: &Arguments,
    seed: u64,
    cancel: CancelToken,
) -> Result<(), Error> {
    let mut bytes = 0;
    for work in works {
        bytes += match work.area {
            Area::Cache => {
                let options = cache_options(works, work, arguments, seed, cancel);
                cache::check(&options)?;
                options.write_bytes()?
            }
            Area::Syscall => {
                let options = syscall_options(work, arguments, &|| false);
                syscall::check(&options).map_err(Error::Usage)?;
                syscall::file_bytes(&options)
            }
        };
    }
    if let Some(most) = arguments.max_write.filter(|&most| bytes > most) {
        return Err(Error::NoRoom(format!(
            "--max-write {most}: the test files of these areas need {bytes} bytes"
        )));
    }
    let seconds = works.iter().map(|work| work.budget_ns).sum::<u64>().div_ceil(SECOND_NS);
    let areas: Vec<_> = works.iter().map(|work| work.area.name()).collect();
    output::complain(&format!(
        "measuring {}: writes {} into unnamed files in {:?}, takes about {seconds} s",
        areas.join(", "),
        flatout_report::quantity::bytes(bytes),
        arguments.directory,
    ));
    Ok(())
}

fn syscall_options<'a>(
    work: &Work,
    arguments: &Arguments,
    cancelled: &'a (dyn Fn() -> bool + Sync),
) -> syscall::Options<'a> {
    syscall::Options {
        block_bytes: arguments.block_size,
        directory: arguments.directory.clone(),
        quick: work.extent != Extent::Full,
        cancelled,
    }
}

fn measure(
    works: &[Work],
    work: &Work,
    arguments: &Arguments,
    seed: u64,
    cancel: CancelToken,
    bench: &mut Bench<'_>,
) -> Result<Vec<Outcome>, Error> {
    let quick = arguments.quick;
    let plan = Plan {
        min_trials: if quick { 3 } else { 6 },
        budget_ns: work.budget_ns,
        seed,
        ..Plan::default()
    };
    match work.area {
        Area::Cache => {
            cache::run(&cache_options(works, work, arguments, seed, cancel), &plan, bench)
        }
        Area::Syscall => {
            let cancelled = || cancel.is_cancelled();
            let options = syscall_options(work, arguments, &cancelled);
            let cases =
                syscall::cases(&options).map_err(|error| Error::Usage(error.to_string()))?;
            let mut outcomes = sampler::run(cases, &plan, bench.tools());
            syscall::finish(&mut outcomes);
            Ok(outcomes)
        }
    }
}
