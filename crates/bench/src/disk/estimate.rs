//! What a run will write and how long its trials are, known before anything is touched.

use std::os::unix::fs::MetadataExt;

use flatout_measure::units::time_text;
use flatout_measure::{Plan, size_text};

use super::check;
use super::forecast::{self, Forecast, Speed};
use super::metadata::{self, MetadataOptions};
use super::pattern::Pattern;
use super::place::{Kind, Place};
use super::plan as rows;
use super::row::{Extents, Row};
use super::{Options, Terms};
use crate::scratch::LEAST_BYTES;
use crate::tried::Tried;
use crate::write_limit::announced_at_most;
use crate::{Error, Estimate, Extent, IoError, MIB, scratch};

/// The unit of `st_blocks` (inode(7)).
const STAT_BLOCK_BYTES: u64 = 512;
/// Trials of a row at most: those that write wear a disk out, and the matrix has many rows.
pub(super) const MAX_TRIALS: u32 = 20;
/// Bytes that a run with a time of its own writes at most, where nobody allows more.
const USUAL_MOST_WRITE_BYTES: u64 = 100_000_000_000;
/// What a trial with a time of its own may write in each second of it, where nobody said how much
/// the run may write; a faster disk is done earlier.
const USUAL_MOST_BYTES_PER_S: f64 = 4e9;
/// Files of a metadata trial.
const METADATA_FILES: u32 = 1000;
const QUICK_METADATA_FILES: u32 = 300;

/// Trials of a row that a 95 % interval needs.
const LEAST_TRIALS: u64 = 6;
/// Part of the time that the test file may take, where time was asked for.
pub(super) const MAKING_PART: u64 = 4;
/// What names and attributes need at most is so many times what they usually take.
const METADATA_LIKELY_PART: u64 = 3;
/// Of what may be written, names and attributes get one part in so many, where files are measured, too.
const METADATA_PART: u64 = 8;
/// What names and attributes are kept of the time is so many times what they usually take: they come last, and
/// are not to be left with few trials by what came before.
const METADATA_RESERVE: f64 = 1.5;

/// What the rows take, where nobody asks for something else.
struct Usual {
    /// Length of the test file.
    file_bytes: u64,
    /// Time of a trial.
    trial_ns: u64,
    /// Bytes that a trial writes at most.
    trial_write_bytes: u64,
    /// Trials of a row at most.
    max_trials: u32,
    /// Trials of a row for which there is time.
    trials: u32,
}

impl Usual {
    fn of(options: &Options) -> Self {
        let short = Self {
            file_bytes: 1024 * MIB,
            trial_ns: 500_000_000,
            trial_write_bytes: 64 * MIB,
            max_trials: MAX_TRIALS,
            trials: 12,
        };
        let usual = match options.run.extent {
            _ if options.selection.matrix => Self {
                file_bytes: 5_000_000_000,
                trial_ns: 400_000_000,
                trial_write_bytes: 128 * MIB,
                max_trials: 8,
                trials: 8,
            },
            Extent::Few => Self { file_bytes: 256 * MIB, trial_ns: 150_000_000, ..short },
            Extent::Quick => Self { trial_ns: 200_000_000, trials: 11, ..short },
            Extent::Full => short,
        };
        match options.run.rounds {
            Some(rounds) => Self { max_trials: rounds, trials: rounds, ..usual },
            None => usual,
        }
    }

    /// Trials of a row that are begun at most. Where no number of them is asked for there is room for more
    /// than there is time for, spoiled ones among them.
    fn begun_trials(&self, options: &Options) -> u32 {
        let spoiled = options.run.rounds.map_or(0, |_| Plan::default().most_spoiled);
        self.max_trials.saturating_add(spoiled)
    }
}

/// What a run will do at most.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    /// Length of the test file; 0 where the user's file or device is read.
    pub file_bytes: u64,
    /// What is said before anything is written; at most [`Terms::most_write_bytes`] are.
    pub announced: Estimate,
    /// Length that the test file should have had, where there was no room for it, and what limits it.
    reduced_from: Option<(u64, String)>,
    /// What is done to names and attributes, or why nothing is, though it should be.
    pub(super) metadata: Option<Result<MetadataOptions, String>>,
    /// Share of the time that names and attributes are estimated to take.
    metadata_share: f64,
    pub(super) max_trials: u32,
    /// Bytes that the trials of rows may write together.
    pub(super) trials_write_bytes: u64,
    /// What all trials obey.
    pub(super) terms: Terms,
}

impl Planned {
    /// Length that the test file should have had, where it is shorter, and what limits it.
    pub(super) fn reduced_from(&self, made_bytes: u64) -> Option<(u64, String)> {
        let is_late = made_bytes < self.file_bytes;
        let wanted = self.reduced_from.as_ref().map_or(self.file_bytes, |reduced| reduced.0);
        match is_late {
            true => Some((wanted, "the time; --max-time allows more".to_owned())),
            false => self.reduced_from.clone(),
        }
    }

    /// Time that names and attributes get of what is left, which is shared out as it was estimated.
    pub(super) fn metadata_part_ns(&self, left_ns: u64) -> u64 {
        (left_ns as f64 * (self.metadata_share * METADATA_RESERVE).min(1.0)) as u64
    }
}

/// Refuses trials that are longer than the run.
fn check_runtime(options: &Options) -> Result<(), Error> {
    match (options.selection.runtime_ns, options.run.time_ns) {
        (Some(runtime_ns), Some(time_ns)) if runtime_ns > time_ns => Err(Error::Usage(format!(
            "--time: a trial of {} does not fit into the {} that --max-time leaves; --runs 1 runs each \
             row once, whatever time it takes",
            time_text(runtime_ns),
            time_text(time_ns)
        ))),
        _ => Ok(()),
    }
}

/// Works out what a run will do, and refuses what cannot be done. Nothing is written but what is tried, to
/// files without a name: 2 MiB show whether direct writes are buffered, and up to 60 MiB how fast storage is;
/// nothing under a limit of bytes.
///
/// Errors: the place cannot be measured in the way asked for, settings are out of bounds, or
/// there is no room.
pub(super) fn plan(options: &Options) -> Result<Planned, Error> {
    let place = Place::find(&options.run.place, options.overwriting)?;
    check::options(options, &place)?;
    let rows = rows::rows(options.run.extent, &options.selection, &place);
    check::rows(options, &place, &rows)?;
    let metadata = match metadata_options(options, &place) {
        // Where there is no room for them, the other rows can be measured nevertheless.
        Err(Error::NoRoom(why)) if !rows.is_empty() => Some(Err(why)),
        metadata => metadata?.map(Ok),
    };
    let names = metadata.as_ref().and_then(|metadata| metadata.as_ref().ok());
    let metadata_bytes = names.map_or(0, |options| metadata::Needs::of(options).bytes);
    check_runtime(options)?;
    let usual = Usual::of(options);
    let cap_bytes = match options.selection.runtime_ns {
        Some(_) if options.run.max_write_bytes.is_some() => u64::MAX,
        Some(ns) => (ns as f64 / 1e9 * USUAL_MOST_BYTES_PER_S) as u64,
        None => usual.trial_write_bytes,
    };
    let needs_file = place.kind == Kind::Directory && !rows.is_empty();
    let speed = speed(options, &place, &rows, needs_file || names.is_some());
    let (file_bytes, reduced_from) = match needs_file {
        true => file_bytes(options, &place, &rows, metadata_bytes, (cap_bytes, speed.tried))?,
        false => (0, None),
    };
    let all_bytes = most_bytes(&rows, cap_bytes, file_bytes, usual.begun_trials(options));
    let cap = options.selection.runtime_ns.map_or(u64::MAX, |_| USUAL_MOST_WRITE_BYTES);
    let of_rows = all_bytes.min(cap).min(room_in_holes(&place)?);
    let wanted = file_bytes.saturating_add(of_rows).saturating_add(metadata_bytes);
    let most_write_bytes = wanted.min(options.run.max_write_bytes.unwrap_or(u64::MAX));
    let left = most_write_bytes.saturating_sub(file_bytes).saturating_sub(metadata_bytes);
    let runtime_ns = options.selection.runtime_ns.unwrap_or(usual.trial_ns);
    let writing = rows.iter().filter(|row| row.writes()).count() as u64;
    let least = writing * LEAST_TRIALS.min(usual.max_trials.into());
    let trial_write_bytes = left.checked_div(least).unwrap_or(left).min(cap_bytes);
    let metadata_ns = names.map_or(0, |options| metadata::usual_ns(options, speed.tried));
    let forecast = Forecast {
        beside_ns: metadata_ns.saturating_add(speed.tried.making_ns(file_bytes)),
        trials: usual.trials,
        max_trials: usual.max_trials,
        is_exact: options.run.rounds.is_some(),
        ..Forecast::of(&rows, trial_write_bytes, runtime_ns, speed)
    };
    let usual_ns = forecast.usual_ns();
    // Where all trials that are made end before the time that was asked for, the run does.
    let most_ns = if names.is_none() { forecast.most_ns() } else { u64::MAX };
    let time_ns = options.run.time_ns.map_or(usual_ns, |asked_ns| asked_ns.min(most_ns));
    let trials_bytes = forecast.trials_bytes(options.run.time_ns.unwrap_or(usual_ns));
    let likely_bytes =
        (file_bytes + metadata_bytes / METADATA_LIKELY_PART).saturating_add(trials_bytes);
    let is_open = options.run.rounds.is_none() && options.selection.runtime_ns.is_none();
    let trials_most = if is_open { announced_at_most(trials_bytes) } else { left };
    let most_write_bytes = most_write_bytes - left.saturating_sub(trials_most);
    let writes_over = place.may_overwrite() && writing > 0;
    place.check_access(writes_over)?;
    let announced = Estimate {
        place: Some(place.path.clone()),
        write_bytes: likely_bytes.min(most_write_bytes),
        most_write_bytes,
        writes_over,
        usual_ns: time_ns,
        ..Estimate::default()
    };
    Ok(Planned {
        file_bytes,
        announced,
        reduced_from,
        metadata,
        metadata_share: metadata_ns as f64 / usual_ns.max(1) as f64,
        max_trials: usual.max_trials,
        trials_write_bytes: left.min(trials_most),
        terms: Terms {
            runtime_ns,
            trial_write_bytes,
            most_write_bytes,
            clearing: options.clearing,
        },
    })
}

/// Bytes that so many trials of each of these rows write at most.
fn most_bytes(rows: &[Row], cap_bytes: u64, file_bytes: u64, trials: u32) -> u64 {
    let of_row = |row: &Row| match row.extents {
        Extents::Fresh => of_trial(row, cap_bytes).min(file_bytes),
        Extents::Written => of_trial(row, cap_bytes),
    };
    let each = rows.iter().filter(|row| row.writes()).map(of_row);
    each.fold(0, u64::saturating_add).saturating_mul(trials.into())
}

/// How fast things go here just now. A probe would be a disturbance where nothing is written, and what may
/// be written is not spent on it.
fn speed(options: &Options, place: &Place, rows: &[Row], makes_files: bool) -> Speed {
    let writes = rows.iter().any(Row::writes);
    let is_probed = makes_files && writes && options.run.max_write_bytes.is_none();
    let tried = match makes_files || writes {
        true if is_probed => Tried::of(&place.path),
        true => Tried::nothing(),
        false => Tried::USUAL,
    };
    let is_buffered = is_probed && forecast::buffers_direct_writes(&place.path);
    Speed { tried, is_buffered }
}

/// What a trial of a row may write where `bytes` are meant for each: a block of each thread at
/// least.
pub(super) fn of_trial(row: &Row, bytes: u64) -> u64 {
    bytes.max(row.tuning.block_bytes.saturating_mul(u64::from(row.tuning.threads)))
}

/// Bytes that may be written into a file of the user's. Space that a sparse one has not got yet is
/// taken as sparingly as any other.
fn room_in_holes(place: &Place) -> Result<u64, Error> {
    if !place.may_overwrite() {
        return Ok(u64::MAX);
    }
    let facts = std::fs::metadata(&place.path).map_err(IoError::system("examine", &place.path))?;
    let is_sparse = facts.blocks().saturating_mul(STAT_BLOCK_BYTES) < facts.len();
    let free = scratch::free_bytes(&place.filesystem()?);
    Ok(if is_sparse { scratch::part_of(free) } else { u64::MAX })
}

fn metadata_options(options: &Options, place: &Place) -> Result<Option<MetadataOptions>, Error> {
    let selection = &options.selection;
    let is_asked = match selection.patterns.is_empty() {
        true => !selection.matrix && options.run.extent != Extent::Few,
        false => selection.patterns.contains(&Pattern::Metadata),
    };
    let is_possible = place.kind == Kind::Directory;
    if !(is_asked && is_possible) {
        return Ok(None);
    }
    let extent = match (selection.patterns.is_empty(), options.run.extent) {
        (false, Extent::Full) => Extent::Full,
        _ => Extent::Quick,
    };
    let is_quick = options.run.extent == Extent::Quick;
    let wanted = MetadataOptions {
        directory: place.path.clone(),
        files: if is_quick { QUICK_METADATA_FILES } else { METADATA_FILES },
        threads: metadata::threads(extent),
        extent,
        cancel: options.run.cancel,
    };
    // It is reckoned with what it writes at most; usually that is a third.
    let part = if selection.patterns.len() == 1 { 1 } else { METADATA_PART };
    let most = options.run.max_write_bytes.map(|most| most / part);
    metadata::fitted(&wanted, most).map(Some)
}

/// Length of the test file: what is wanted, at most a tenth of the free space, and so that what
/// may be written is not spent on it alone. Then what was wanted, where that is more, and what limits it.
/// `metadata_bytes` and `cap_bytes` for each trial that writes want room beside it. It is no longer
/// than is likely made as slowly as was seen: so much is announced. (Beside load 21 on 2
/// CPUs one was made at 1/11 to 1/14 of its usual rate; ext4, AMD EPYC, 2026-11-26.)
fn file_bytes(
    options: &Options,
    place: &Place,
    rows: &[Row],
    metadata_bytes: u64,
    (cap_bytes, tried): (u64, Tried),
) -> Result<(u64, Option<(u64, String)>), Error> {
    let wanted = options.bytes.unwrap_or(Usual::of(options).file_bytes);
    let filesystem = place.filesystem()?;
    let free = scratch::free_bytes(&filesystem);
    let memory_part = scratch::memory_part(&filesystem, scratch::MEMORY_PART);
    let writes = rows.iter().any(Row::writes);
    let most = options.run.max_write_bytes.map_or(u64::MAX, |most| {
        let left = most.saturating_sub(metadata_bytes);
        if writes { left / 2 } else { left }
    });
    // Where a trial has a fresh file, that lies beside the first.
    let part = scratch::part_of(free);
    let is_fresh = |row: &&Row| row.writes() && row.extents == Extents::Fresh;
    let fresh = rows.iter().filter(is_fresh).map(|row| of_trial(row, cap_bytes)).max();
    let beside = part - fresh.unwrap_or(0).min(part / 2);
    let making_ns = options.run.time_ns.map(|time_ns| time_ns / MAKING_PART);
    let in_time = making_ns.map_or(u64::MAX, |ns| tried.surely_made_bytes(ns).max(LEAST_BYTES));
    let less = if beside < part { ", less a second file for the rows that write" } else { "" };
    let limits = [
        (in_time, "--max-time".to_owned()),
        (beside, format!("{} free, of which one tenth{less}", size_text(free))),
        (memory_part, "a part of the available memory".to_owned()),
        (most, "--max-write, less what other files take".to_owned()),
    ];
    let (size, limit) = scratch::size_within(&place.path, wanted, limits)?;
    Ok((size, limit.map(|limit| (wanted, limit))))
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::*;
    use crate::area::{Extent, Run};
    use crate::disk::place::Overwriting;
    use crate::disk::{Clearing, Selection};

    fn bare(run: Run) -> Options {
        Options {
            run,
            planned: None,
            selection: Selection::default(),
            bytes: None,
            overwriting: Overwriting::Refused,
            clearing: Clearing::File,
        }
    }

    #[test]
    fn where_there_is_no_room_what_takes_it_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let run = Run { place: directory.path().to_owned(), ..Run::default() };
        let run = Run { extent: Extent::Quick, max_write_bytes: Some(1), ..run };
        let options = bare(run);
        let said = plan(&options).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("0 bytes may be taken (--max-write"), "{said}");
        assert!(!said.contains("free"), "{said}");
    }

    #[test]
    fn however_few_trials_are_asked_for_each_writes_as_much_and_spoiled_ones_have_room() {
        let directory = tempfile::tempdir().unwrap();
        let planned = |rounds| {
            let run = Run { place: directory.path().to_owned(), rounds, ..Run::default() };
            let run = Run { max_write_bytes: Some(1 << 40), ..run };
            plan(&bare(Run { extent: Extent::Few, seed: 1, ..run })).unwrap()
        };
        let usual_bytes = planned(None).terms.trial_write_bytes;
        for rounds in [1, 3, 8] {
            let planned = planned(Some(rounds));
            let trial_bytes = planned.terms.trial_write_bytes;
            assert_eq!(trial_bytes, usual_bytes, "{rounds}");
            let trials = planned.trials_write_bytes / trial_bytes;
            assert!(trials >= u64::from(rounds) + 6, "room for {trials} of {rounds} trials");
        }
    }

    #[test]
    fn a_limit_leaves_room_for_the_file_beside_names_and_attributes() {
        let directory = tempfile::tempdir().unwrap();
        for most in [16 * MIB, 100 * MIB] {
            let run = Run {
                extent: Extent::Quick,
                place: directory.path().to_owned(),
                max_write_bytes: Some(most),
                seed: 1,
                cancel: CancelToken::manual(),
                ..Run::default()
            };
            let options = bare(run);
            let planned = plan(&options).unwrap();
            let metadata = planned.metadata.as_ref().and_then(|metadata| metadata.as_ref().ok());
            let needs = metadata.map(metadata::Needs::of);
            assert!(needs.is_none_or(|needs| needs.bytes <= most / METADATA_PART));
            assert!(planned.file_bytes >= most / 4, "{} of {most}", planned.file_bytes);
            assert!(planned.terms.most_write_bytes <= most);
        }
    }
}
