//! What a run will write and how long its trials are, known before anything is touched.

use std::os::unix::fs::MetadataExt;

use flatout_io::Error as IoError;
use flatout_sys::memory;

use super::check;
use super::metadata::{self, MetadataOptions};
use super::pattern::Pattern;
use super::place::{Kind, Place, Rights};
use super::plan as rows;
use super::row::{Extents, Row};
use super::{Grid, Options, Terms};
use crate::error::Error;
use crate::limits;
use crate::scratch;

const MIB: u64 = 1 << 20;
/// Available memory that a file in memory takes at most: one part in this many.
const MEMORY_PART: u64 = 4;
/// The unit of `st_blocks` (inode(7)).
const STAT_BLOCK_BYTES: u64 = 512;
/// Smallest test file.
const LEAST_BYTES: u64 = MIB;
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
const METADATA_DIRECTORIES: u32 = 16;
const SMALL_FILE_BYTES: u64 = 4096;

/// Trials of a row that a usual run takes, and what each needs besides its own time.
const USUAL_TRIALS: u64 = 8;
/// Trials of a row that a 95 % interval needs.
const LEAST_TRIALS: u64 = 6;
const SET_UP_NS: u64 = 200_000_000;
/// Time for the rows of names and attributes.
const METADATA_NS: u64 = 15_000_000_000;
const FULL_METADATA_NS: u64 = 45_000_000_000;

/// What a grid takes, where nobody asks for something else.
struct Usual {
    /// Length of the test file.
    file_bytes: u64,
    /// Time of a trial.
    trial_ns: u64,
    /// Bytes that a trial writes at most.
    trial_write_bytes: u64,
    /// Trials of a row at most.
    max_trials: u32,
}

impl Grid {
    const fn usual(self) -> Usual {
        let short = Usual {
            file_bytes: 1024 * MIB,
            trial_ns: 500_000_000,
            trial_write_bytes: 64 * MIB,
            max_trials: MAX_TRIALS,
        };
        match self {
            Self::Few => Usual { file_bytes: 256 * MIB, trial_ns: 150_000_000, ..short },
            Self::Quick => Usual { trial_ns: 200_000_000, ..short },
            Self::Short => short,
            Self::Matrix => Usual {
                file_bytes: 5_000_000_000,
                trial_ns: 400_000_000,
                trial_write_bytes: 128 * MIB,
                max_trials: 8,
            },
        }
    }
}

/// What a run will do at most.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    /// Length of the test file; 0 where the user's file or device is read.
    pub file_bytes: u64,
    /// Rows of requests.
    pub rows: usize,
    /// Whether the user's own file is written over.
    pub writes_over: bool,
    /// Length that the test file should have had, where there was no room for it.
    pub(super) reduced_from: Option<u64>,
    pub(super) metadata: Option<MetadataOptions>,
    /// Why names and attributes are not measured, though they should be.
    pub(super) metadata_refusal: Option<String>,
    metadata_bytes: u64,
    pub(super) max_trials: u32,
    /// What all trials obey.
    pub(super) terms: Terms,
}

impl Planned {
    /// Time that the trials take, as far as can be said beforehand.
    pub fn time_ns(&self) -> u64 {
        let trial_ns = self.terms.runtime_ns.saturating_add(SET_UP_NS);
        let rows_ns = (self.rows as u64 * USUAL_TRIALS).saturating_mul(trial_ns);
        rows_ns.saturating_add(self.metadata_ns())
    }

    /// Time that it takes at least: each row has one trial, however short the time allowed is.
    pub fn least_ns(&self) -> u64 {
        (self.rows as u64).saturating_mul(self.terms.runtime_ns)
    }

    /// The part of it that names and attributes take.
    pub(super) fn metadata_ns(&self) -> u64 {
        match self.metadata.as_ref().map(|options| options.extent) {
            None => 0,
            Some(metadata::Extent::Quick) => METADATA_NS,
            Some(metadata::Extent::Full) => FULL_METADATA_NS,
        }
    }

    /// Bytes that the trials of rows may write together.
    pub(super) fn trials_write_bytes(&self) -> u64 {
        self.terms
            .most_write_bytes
            .saturating_sub(self.file_bytes)
            .saturating_sub(self.metadata_bytes)
    }
}

/// Works out what a run will do, and refuses what cannot be done. Nothing is written.
///
/// Errors: the place cannot be measured in the way asked for, settings are out of bounds, or
/// there is no room.
pub(super) fn plan(options: &Options) -> Result<Planned, Error> {
    let place = Place::find(&options.path, options.overwriting)?;
    check::options(options, &place)?;
    let rows = rows::rows(options.grid, &options.selection, &place);
    if options.grid != Grid::Matrix {
        // The grid is fixed: its rows that do not fit into memory say so.
        rows.iter().try_for_each(|row| limits::check_memory(&row.tuning))?;
    }
    let metadata = metadata_options(options, &place);
    let (metadata, metadata_refusal) = match metadata {
        // Where there is no room for them, the other rows can be measured nevertheless.
        Err(Error::NoRoom(why)) if !rows.is_empty() => (None, Some(why)),
        metadata => (metadata?, None),
    };
    let metadata_bytes = metadata.as_ref().map_or(0, |options| metadata::Needs::of(options).bytes);
    let usual = options.grid.usual();
    let cap_bytes = match options.selection.runtime_ns {
        Some(_) if options.max_write_bytes.is_some() => u64::MAX,
        Some(ns) => (ns as f64 / 1e9 * USUAL_MOST_BYTES_PER_S) as u64,
        None => usual.trial_write_bytes,
    };
    let needs_file = place.kind == Kind::Directory && !rows.is_empty();
    let (file_bytes, reduced_from) = match needs_file {
        true => file_bytes(options, &place, &rows, metadata_bytes, cap_bytes)?,
        false => (0, None),
    };
    let each_bytes = rows.iter().map(|row| match (row.writes(), row.extents) {
        (false, _) => 0,
        (true, Extents::Fresh) => of_trial(row, cap_bytes).min(file_bytes),
        (true, Extents::Written) => of_trial(row, cap_bytes),
    });
    let all_bytes = each_bytes.fold(0, u64::saturating_add).saturating_mul(usual.max_trials.into());
    let cap =
        if options.selection.runtime_ns.is_some() { USUAL_MOST_WRITE_BYTES } else { u64::MAX };
    let of_rows = all_bytes.min(cap).min(room_in_holes(&place)?);
    let wanted = file_bytes.saturating_add(of_rows).saturating_add(metadata_bytes);
    let most_write_bytes = wanted.min(options.max_write_bytes.unwrap_or(u64::MAX));
    let left = most_write_bytes.saturating_sub(file_bytes).saturating_sub(metadata_bytes);
    let writing = rows.iter().filter(|row| row.writes()).count() as u64;
    let share = left.checked_div(writing * LEAST_TRIALS).unwrap_or(u64::MAX);
    let writes_over = place.rights() == Rights::Overwrite && writing > 0;
    if place.kind != Kind::Directory {
        place.check_readable()?;
    }
    if place.kind == Kind::Directory || writes_over {
        place.check_writable()?;
    }
    Ok(Planned {
        file_bytes,
        rows: rows.len(),
        writes_over,
        reduced_from,
        metadata,
        metadata_refusal,
        metadata_bytes,
        max_trials: usual.max_trials,
        terms: Terms {
            runtime_ns: options.selection.runtime_ns.unwrap_or(usual.trial_ns),
            trial_write_bytes: share.min(cap_bytes),
            most_write_bytes,
            clearing: options.clearing,
        },
    })
}

/// What a trial of a row may write where `bytes` are meant for each: a block of each thread at
/// least.
pub(super) fn of_trial(row: &Row, bytes: u64) -> u64 {
    bytes.max(row.tuning.block_bytes.saturating_mul(u64::from(row.tuning.threads)))
}

/// Bytes that may be written into a file of the user's. Space that a sparse one has not got yet is
/// taken as sparingly as any other.
fn room_in_holes(place: &Place) -> Result<u64, Error> {
    if place.rights() != Rights::Overwrite {
        return Ok(u64::MAX);
    }
    let facts = std::fs::metadata(&place.path).map_err(IoError::system("examine", &place.path))?;
    let is_sparse = facts.blocks().saturating_mul(STAT_BLOCK_BYTES) < facts.len();
    let free = place.filesystem()?.free_bytes;
    Ok(if is_sparse { scratch::part_of(free) } else { u64::MAX })
}

fn metadata_options(options: &Options, place: &Place) -> Result<Option<MetadataOptions>, Error> {
    let selection = &options.selection;
    let is_asked = match selection.patterns.is_empty() {
        true => matches!(options.grid, Grid::Quick | Grid::Short),
        false => selection.patterns.contains(&Pattern::Metadata),
    };
    let is_possible = place.rights() == Rights::MakeFiles;
    if !(is_asked && is_possible) {
        return Ok(None);
    }
    let extent = match (selection.patterns.is_empty(), options.grid) {
        (false, Grid::Short) => metadata::Extent::Full,
        _ => metadata::Extent::Quick,
    };
    let wanted = MetadataOptions {
        directory: place.path.clone(),
        files: if options.grid == Grid::Quick { QUICK_METADATA_FILES } else { METADATA_FILES },
        directories_many: METADATA_DIRECTORIES,
        threads: extent.threads(),
        small_file_bytes: SMALL_FILE_BYTES,
        extent,
        cancel: options.cancel,
    };
    // Of what may be written an eighth; it takes a tenth of what it is told is free.
    let most = options.max_write_bytes.map(|most| most / 8 * 10);
    metadata::fitted(&wanted, most).map(Some)
}

/// Length of the test file: what is wanted, at most a tenth of the free space, and so that what
/// may be written is not spent on it alone. Then what was wanted, where that is more.
/// `metadata_bytes` and `cap_bytes` for each trial that writes want room beside it.
fn file_bytes(
    options: &Options,
    place: &Place,
    rows: &[Row],
    metadata_bytes: u64,
    cap_bytes: u64,
) -> Result<(u64, Option<u64>), Error> {
    let wanted = options.bytes.unwrap_or(options.grid.usual().file_bytes);
    let filesystem = place.filesystem()?;
    // Where nobody counts, as on ramfs, nothing is known to be short but memory.
    let free = if filesystem.size_bytes == 0 { u64::MAX } else { filesystem.free_bytes };
    let in_memory = filesystem.in_memory.then(memory::available_bytes).flatten();
    let memory_part = in_memory.map_or(u64::MAX, |bytes| bytes / MEMORY_PART);
    let writes = rows.iter().any(Row::writes);
    let most = options.max_write_bytes.map_or(u64::MAX, |most| {
        let left = most.saturating_sub(metadata_bytes);
        if writes { left / 2 } else { left }
    });
    // Where a trial has a fresh file, that lies beside the first.
    let part = scratch::part_of(free);
    let is_fresh = |row: &&Row| row.writes() && row.extents == Extents::Fresh;
    let fresh = rows.iter().filter(is_fresh).map(|row| of_trial(row, cap_bytes)).max();
    let part = part - fresh.unwrap_or(0).min(part / 2);
    let size = wanted.min(part).min(memory_part).min(most);
    let size = if size < LEAST_BYTES { size } else { size - size % LEAST_BYTES };
    if size < LEAST_BYTES {
        return Err(Error::NoRoom(format!(
            "cannot measure in {:?}: a test file of at least {LEAST_BYTES} bytes is needed, but {size} \
             may be taken ({free} bytes free, of which one tenth; --bytes; --max-write)",
            &place.path
        )));
    }
    let is_less = size < wanted - wanted % LEAST_BYTES;
    Ok((size, is_less.then_some(wanted)))
}
