//! `flatout bench`: the areas asked for, one record. What an area does: `bench/job.rs`.

mod job;
#[cfg(feature = "mpi")]
pub mod together;

use flatout_bench::{Error, Estimate, Found, roofline};
use flatout_measure::clock::{Clock, SystemClock};
use flatout_measure::record::{Outcome, Record, Status};
use flatout_measure::units::{counted, size_text};
use flatout_measure::warning;
use flatout_report::Format;
use flatout_report::text::Joined;
use flatout_sys::cancel::CancelToken;

use crate::announcement;
use crate::arguments::bench::Bench as Arguments;
use crate::arguments::refusal;
use crate::command::compare::noise_file;
use crate::command::history;
use crate::conclusion::{Conclusion, Draft, FAILED, INTERRUPTED, Keep};
use crate::live;
use crate::output;
use crate::progress::Progress;

use job::Planned;

/// Measures the areas one after the other; one that fails does not stop the next.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> Conclusion {
    let make = |name| {
        let made = arguments.areas.make(name);
        made.map_err(|error| Error::Usage(refusal::one_line(&error)))
    };
    run_with(arguments, cancel, &make, Draft::measure)
}

/// The same with areas of somebody's making.
fn run_with(
    arguments: &Arguments,
    cancel: CancelToken,
    make: &job::Make<'_>,
    begin: fn(u64) -> Draft,
) -> Conclusion {
    let begun_ns = SystemClock.now_ns();
    let seed = arguments.seed.unwrap_or(begun_ns);
    let mut draft = begin(seed);
    match measure(arguments, (seed, begun_ns), cancel, make, &mut draft) {
        Ok((keep, earlier)) => Conclusion { keep, earlier, ..draft.judge() },
        Err(error) => {
            fail(&mut draft, &error);
            draft.conclude()
        }
    }
}

/// Fills the draft. Returns what is to be left in the current directory, and earlier records.
///
/// Errors: why nothing can be measured.
fn measure(
    arguments: &Arguments,
    (seed, begun_ns): (u64, u64),
    cancel: CancelToken,
    make: &job::Make<'_>,
    draft: &mut Draft,
) -> Result<(Keep, Vec<Record>), Error> {
    let is_bare = arguments.names().is_empty();
    let shown_only =
        arguments.output.output.is_none() && arguments.output.format() == Format::Table;
    let keep = if is_bare && shown_only { Keep::JsonAndPage } else { Keep::Nothing };
    if keep == Keep::JsonAndPage {
        output::check_current_directory().map_err(Error::NoRoom)?;
    }
    arguments.output.check_history(arguments.history.as_deref()).map_err(Error::Usage)?;
    let earlier = history::read(arguments.history.as_deref()).map_err(Error::NoRoom)?;
    if arguments.live {
        live::check().map_err(Error::Usage)?;
    }
    let mut jobs = job::jobs(arguments, seed, cancel, make)?;
    announce(&jobs, arguments)?;
    let mut estimates: Vec<u64> = jobs.iter().map(|job| job.estimate.usual_ns).collect();
    let all_ns = estimates.iter().copied().fold(0, u64::saturating_add);
    let ends_ns = job::ends_ns(arguments, all_ns, begun_ns, SystemClock.now_ns());
    let mut progress = match arguments.live {
        true => Progress::live(all_ns)
            .map_err(|error| Error::NoRoom(output::cannot("take the screen")(error)))?,
        false => Progress::begin(all_ns),
    };
    let mut roofline = Vec::new();
    let noise = noise_file::of(&draft.record.start.environment);
    for job in &mut jobs {
        let plan = job::plan(arguments, seed, noise.clone());
        let plan = job::share(ends_ns, &estimates, SystemClock.now_ns(), plan);
        let expected_ns = estimates.remove(0);
        let found =
            progress.measure(expected_ns, plan, cancel, |sampler| job.area.measure(sampler));
        match found {
            Ok(mut found) => {
                found.check_places();
                roofline.append(&mut found.roofline);
                add(draft, found);
            }
            Err(error) => fail(draft, &error),
        }
        if cancel.is_cancelled() {
            draft.fail(INTERRUPTED, "interrupted: rows without enough trials say so".to_owned());
            break;
        }
    }
    drop(progress);
    let (rows, chart) = roofline::of(&roofline);
    rows.into_iter().for_each(|row| draft.add(row));
    draft.record.charts.extend(chart);
    draft.require_a_figure();
    Ok((keep, earlier))
}

/// Adds what an area found.
fn add(draft: &mut Draft, found: Found) {
    let has_failed = draft.note_failed_rows(&found.outcomes);
    // Without time it is not known what else could have been measured.
    let is_late = |row: &Outcome| warning::has(&row.warnings, warning::TIME_SHORT);
    let is_tried = |row: &Outcome| row.median.is_some() || is_late(row);
    if !has_failed
        && !found.outcomes.iter().any(is_tried)
        && let Some(first) = found.outcomes.iter().find(|row| row.status == Status::Unsupported)
    {
        let why = first.warnings.first().map_or("", |warning| warning.text.as_str());
        draft.fail(FAILED, format!("nothing could be measured: {}: {why}", first.id));
    }
    // What went wrong beside a figure that stands, such as files that could not be removed.
    draft.note_failures(found.outcomes.iter().filter(|row| row.status != Status::Failed));
    draft.record.charts.extend(found.charts);
    found.outcomes.into_iter().for_each(|outcome| draft.add(outcome));
    found.storage.into_iter().for_each(|storage| draft.add_storage(storage));
}

/// Notes why an area was not measured; a reason with a code has a row to carry it.
fn fail(draft: &mut Draft, error: &Error) {
    if let Error::Warned(warning) = error {
        draft.add(Outcome::without_figure("disk/refused", Status::Failed, warning.clone()));
    }
    draft.refuse(error);
}

/// Says beforehand what will be written and how long it takes.
fn announce(jobs: &[Planned], arguments: &Arguments) -> Result<(), Error> {
    let sum = |part: fn(&Estimate) -> u64| {
        jobs.iter().map(|job| part(&job.estimate)).fold(0, u64::saturating_add)
    };
    let (bytes, most_bytes) = (sum(|job| job.write_bytes), sum(|job| job.most_write_bytes));
    if let Some(most) = arguments.max_write.filter(|&most| most_bytes > most) {
        return Err(Error::NoRoom(format!(
            "--max-write {}: the test files of these areas need {}",
            size_text(most),
            size_text(most_bytes)
        )));
    }
    let time = match arguments.rounds.filter(|_| jobs.iter().any(|job| job.estimate.is_time_open)) {
        Some(rounds) => format!("as long as {} of each row", counted(rounds, "trial")),
        None => format!("about {}", announcement::time(sum(|job| job.usual_ns))),
    };
    let areas = jobs.iter().map(|job| job.name.word()).joined(", ");
    let over = jobs.iter().any(|job| job.estimate.writes_over);
    let target = if over { "over what is there" } else { "into files of its own" };
    let writes = match bytes {
        0 => "only reads".to_owned(),
        _ => format!(
            "writes {}{} {target}",
            announcement::written(bytes),
            announcement::at_most(bytes, most_bytes)
        ),
    };
    let mut places: Vec<_> = jobs.iter().filter_map(|job| job.estimate.place.as_ref()).collect();
    places.dedup();
    let what = match places.is_empty() {
        true => areas,
        false => {
            let places = places.iter().map(|place| format!("{place:?}")).joined(", ");
            format!("{areas} in {places}: {writes}")
        }
    };
    output::notice(&format!("measuring {what}, takes {time}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use flatout_measure::warning::Warning;

    use super::*;

    #[test]
    fn what_went_wrong_beside_a_figure_is_an_error_of_the_run() {
        let row = Outcome {
            id: "disk/unlink".to_owned(),
            status: Status::Degraded,
            median: Some(1.0),
            warnings: vec![Warning::new(warning::FAILED, "test files stay behind")],
            ..Outcome::default()
        };
        let mut draft = Draft::begin(1);
        add(&mut draft, Found { outcomes: vec![row], ..Found::default() });
        let end = draft.judge().record.end;
        assert_eq!(
            (end.exit_code, end.errors),
            (FAILED, vec!["test files stay behind".to_owned()])
        );
    }
}
