//! Metadata: how many files a second a filesystem creates, looks up, opens, renames, lists,
//! removes and makes durable, in one directory and in many.
//!
//! Names must exist for this. They all lie below one fresh directory of owner-only mode, are
//! reached through descriptors, and are gone when [`run`] returns. There are two phases, because
//! ext4 can create 10 to 40 times slower for a minute after many files were deleted (freed inodes are
//! skipped one by one): the first creates and never deletes, the second unlinks what the first
//! left, and each set of files gets a group of inodes of its own.
//!
//! Which rows there are and what one operation is: `metadata/row.rs`; how they are timed:
//! `metadata/trial.rs`; how the names are kept and removed: `metadata/test_directory.rs`.

pub(crate) mod bound;
mod file_set;
mod fio;
mod room;
mod row;
pub(crate) mod test_directory;
mod test_files;
mod timed;
mod trial;

use std::path::PathBuf;

use flatout_measure::{Measured, Outcome, Plan, Sampler, record_counted, warning};
use flatout_sys::{CancelToken, affinity};

use super::fact;
use crate::tried::Tried;
use crate::{Error, Extent, workers};

pub(super) use room::{Needs, fitted};

use row::{MetadataRow, Test};
use test_files::TestFiles;

/// Bytes written to each file that is made durable.
const SMALL_FILE_BYTES: u64 = 4096;

/// What the user chose.
#[derive(Debug, Clone)]
pub(super) struct MetadataOptions {
    /// Where the directory with the test files is made.
    pub(super) directory: PathBuf,
    /// Files that a trial works on; those of fsync take a twentieth, and a slow filesystem gets as far
    /// as time allows.
    pub(super) files: u32,
    /// Numbers of threads, ascending, each once.
    pub(super) threads: Vec<u32>,
    /// Which rows.
    pub(super) extent: Extent,
    /// The wish to stop.
    pub(super) cancel: CancelToken,
}

/// The numbers of threads: one, and in full one per CPU.
pub(super) fn threads(extent: Extent) -> Vec<u32> {
    let cpus = affinity::allowed_cpu_count().min(workers::MAX_THREADS);
    if extent == Extent::Full && cpus > 1 { vec![1, cpus] } else { vec![1] }
}

/// Trials of a row at most: each leaves files until the end of the run.
fn most_trials(extent: Extent) -> u32 {
    if extent == Extent::Full { 10 } else { 6 }
}

/// Time that all trials take beside what they sync, in short and in full: 1.2 s on tmpfs to 2.2 on btrfs, 9.5 on
/// ext4, with what they sync (2 vCPUs of an Emerald Rapids, 2026-11-29).
const QUICK_NS: f64 = 1.4e9;
const FULL_NS: f64 = 7e9;

/// Time that the rows usually take where waiting for storage takes what was tried.
pub(super) fn usual_ns(options: &MetadataOptions, tried: Tried) -> u64 {
    let trials = f64::from(most_trials(options.extent));
    let of_row = f64::from(room::files_of(Test::Fsync, options)) * tried.settle_ns;
    let rows = row::rows(&[Test::Fsync], options).len() as f64;
    let synced_ns = trials * rows * of_row.min(trial::CHANGING_NS as f64);
    let all_ns = if options.extent == Extent::Full { FULL_NS } else { QUICK_NS };
    (all_ns * tried.slowdown + synced_ns) as u64
}

/// Part of the time that the second phase gets: one in this many.
const UNLINK_PART: u64 = 5;

/// Measures, removes what was made, and returns the rows.
///
/// What goes wrong with a row is the row's. Should something stay behind in the directory, the
/// last row is degraded and says so.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn run(
    options: &MetadataOptions,
    sampler: &mut Sampler<'_>,
) -> Result<Vec<Outcome>, Error> {
    let files = TestFiles::make(options)?;
    let most = most_trials(options.extent);
    let plan = sampler.plan.clone();
    let unlink_ns = plan.budget_ns / UNLINK_PART;
    let plan = Plan {
        min_trials: plan.min_trials.min(most),
        max_trials: plan.max_trials.min(most),
        budget_ns: plan.budget_ns - unlink_ns,
        ..plan
    };
    let mut phase = |tests: &[Test], plan: &Plan| -> Vec<Measured<MetadataRow>> {
        let rows = row::rows(tests, options);
        let cases = rows.into_iter().map(|row| trial::case(row, &files)).collect();
        sampler.with(plan.clone()).run(cases)
    };
    let mut rows = phase(&Test::FIRST_PHASE, &plan);
    // More trials than there are files left would have to make new ones first.
    let left = files.least_left() / options.threads.len().max(1);
    let max_trials = plan.max_trials.min(left as u32).max(plan.min_trials);
    rows.extend(phase(&[Test::Unlink], &Plan { max_trials, budget_ns: unlink_ns, ..plan }));
    bound::apply(&mut rows);
    let mut outcomes = record_counted(rows, &[fact::REQUESTS]);
    if let (Err(error), Some(last)) = (files.finish(), outcomes.last_mut()) {
        last.warn(warning::FAILED, format!("test files stay behind: {error}"));
        last.degrade();
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests;
