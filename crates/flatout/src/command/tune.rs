//! `flatout tune`: settings are tried, a record of them is shown, and what was picked is saved.

use flatout_bench::tried::{self, Tried};
use flatout_bench::tune::{self, Options, Tuned};
use flatout_bench::{Error, Extent};
use flatout_measure::case::{Plan, WhenPrecise};
use flatout_measure::clock::{Clock, SystemClock};
use flatout_report::quantity;
use flatout_report::text::Joined;
use flatout_sys::cancel::CancelToken;

use crate::announcement;
use crate::arguments::tune::Tune as Arguments;
use crate::conclusion::{Conclusion, Draft, FAILED, INTERRUPTED};
use crate::progress::Progress;
use crate::{output, profile};

/// Trials of a setting at most where no number was asked for: they write, and more would tell little.
const MOST_TRIALS: u32 = 100;
/// What is kept of the time to write down what was found, and to remove emptied copies: one part in so many.
const CLOSING_PART: u64 = 15;

/// Measures, shows and saves. A place that cannot be used ends it before anything is measured.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> Conclusion {
    let begun_ns = SystemClock.now_ns();
    let seed = arguments.seed.unwrap_or(begun_ns);
    let mut draft = Draft::measure(seed);
    let mut options = Options {
        directories: arguments.directories.clone(),
        extent: if arguments.quick { Extent::Quick } else { Extent::Full },
        max_write_bytes: arguments.max_write,
        time_ns: arguments.max_time,
        tried: Vec::new(),
        machine: profile::machine(),
        kernel: profile::kernel(),
        time: draft.record.start.time.clone(),
        seed,
        cancel,
    };
    let checked = tune::check(&options);
    if checked.is_ok() {
        options.tried = tried(arguments);
        options.max_write_bytes = tried::left_of(arguments.max_write);
    }
    let planned = checked.and_then(|()| begin(arguments, &options, begun_ns));
    let measured = planned.and_then(|plan| {
        let mut progress = Progress::begin(plan.budget_ns);
        progress.measure(plan.budget_ns, plan, cancel, |sampler| tune::run(&options, sampler))
    });
    match measured {
        Ok(tuned) => conclude(arguments, tuned, draft, cancel),
        Err(error) => {
            match cancel.is_cancelled() {
                true => draft.fail(INTERRUPTED, error.to_string()),
                false => draft.refuse(&error),
            }
            draft.conclude()
        }
    }
}

/// What a little of the work takes in each directory, where time is limited.
fn tried(arguments: &Arguments) -> Vec<Tried> {
    let is_timed = arguments.max_time.is_some() || arguments.rounds.is_none();
    let each = arguments.directories.iter().map(|directory| match is_timed {
        true => Tried::with_copying(directory, arguments.max_write),
        false => Tried::nothing(),
    });
    each.collect()
}

/// What else can be refused before anything is made; announces the rest.
fn begin(arguments: &Arguments, options: &Options, begun_ns: u64) -> Result<Plan, Error> {
    if !arguments.no_save {
        profile::FILE.check().map_err(Error::NoRoom)?;
    }
    let budget_ns = arguments.max_time.unwrap_or_else(|| tune::budget_ns(options));
    let places = options.directories.iter().zip(tune::room_bytes(options)?);
    let places = places
        .map(|(directory, bytes)| format!("{} in {directory:?}", quantity::rounded_size(bytes)))
        .joined(" and ");
    let begun_ns = if arguments.max_time.is_some() { begun_ns } else { SystemClock.now_ns() };
    let trials = match arguments.rounds {
        Some(rounds) => (rounds, rounds),
        None => (if arguments.quick { 3 } else { 6 }, MOST_TRIALS),
    };
    let trials_ns = budget_ns - budget_ns / CLOSING_PART;
    let (ends_ns, likely_ns) = match (arguments.max_time, arguments.rounds) {
        (None, Some(_)) => (u64::MAX, u64::MAX),
        _ => (begun_ns.saturating_add(trials_ns), trials_ns),
    };
    let (wanted, time_ns) = tune::forecast(options, trials, likely_ns)?;
    let most_bytes = options.max_write_bytes.unwrap_or(u64::MAX);
    let bytes = wanted.min(most_bytes);
    let time_ns = (time_ns as f64 * bytes as f64 / wanted.max(1) as f64) as u64;
    let time_ns = time_ns.saturating_add(budget_ns / CLOSING_PART);
    output::notice(&format!(
        "measuring settings with files of {places}, writes {}, takes about {}",
        announcement::written(bytes),
        announcement::time(arguments.max_time.map_or(time_ns, |asked_ns| asked_ns.min(time_ns)))
    ));
    Ok(Plan {
        min_trials: trials.0,
        max_trials: trials.1,
        budget_ns,
        ends_ns,
        when_precise: WhenPrecise::Thin,
        seed: options.seed,
        ..Plan::default()
    })
}

fn conclude(
    arguments: &Arguments,
    tuned: Tuned,
    mut draft: Draft,
    cancel: CancelToken,
) -> Conclusion {
    draft.note_failed_rows(&tuned.outcomes);
    tuned.left_behind.iter().for_each(|line| draft.fail(FAILED, line.clone()));
    if cancel.is_cancelled() {
        let text = "interrupted: nothing is saved, the files are removed".to_owned();
        draft.fail(INTERRUPTED, text);
    } else {
        save(&tuned, !arguments.no_save, &mut draft);
    }
    tuned.outcomes.into_iter().for_each(|row| draft.add(row));
    draft.judge()
}

/// Saves what was picked, if it is to be, and says what was not.
fn save(tuned: &Tuned, is_wanted: bool, draft: &mut Draft) {
    let is_empty = tuned.entries.is_empty();
    match &tuned.unsure[..] {
        [] if is_empty => draft.fail(FAILED, "nothing could be measured".to_owned()),
        [] => {}
        unsure => {
            let text = format!(
                "no settings for {}: fewer than three trials each do not tell which are the best; \
                 that takes more --max-time, or --runs",
                unsure.join("; ")
            );
            match is_empty && is_wanted {
                true => draft.fail(FAILED, text),
                false => output::notice(&text),
            }
        }
    }
    if is_empty || !is_wanted {
        return;
    }
    match profile::save(&tuned.entries) {
        Ok(path) => {
            let settings = quantity::counted(tuned.entries.len(), "setting");
            output::notice(&format!(
                "{settings} saved in {path:?}; copy, read and sum use what is there from now on"
            ));
        }
        Err(error) => draft.fail(FAILED, error),
    }
}
