//! Writing one file as fast as it goes: time to cache and time to durable are two figures.
//!
//! Read next: `write/lanes.rs`, the timed region.

mod lanes;
mod limit;
pub mod outcome;

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use flatout_io::operations::Completion;
use flatout_io::{Engine, Existing, MachineProfile, Target, TargetOptions, scan};
use flatout_measure::{Warning, size_text, warning};
use flatout_sys::{CancelToken, affinity};

use crate::choice::{self, Choice, Wishes};
use crate::file_trial::evidence::Bottom;
use crate::{Error, limits, workers};

pub use crate::file_trial::measured::Measured;

/// What is to be written.
#[derive(Debug, Clone)]
pub struct Job {
    /// The file.
    pub path: PathBuf,
    /// Settings asked for.
    pub wishes: Wishes,
    /// Blocks to be written.
    pub block_count: Option<u64>,
    /// What the blocks hold.
    pub data: Data,
    /// When the bytes must be durable.
    pub sync: Sync,
    /// What to do when the file exists.
    pub existing: Existing,
    /// Seed of random data.
    pub seed: u64,
    /// What was measured on this machine, which the figure is held against.
    pub profile: Option<Arc<MachineProfile>>,
    /// The wish to stop.
    pub cancel: CancelToken,
}

flatout_sys::words! {
    /// What the blocks hold.
    #[derive(ValueEnum)]
    pub enum Data: word {
        /// Incompressible; no two blocks alike
        Random = "random",
        /// Zero bytes
        Zero = "zero",
        /// Each 8-byte word holds its own offset
        Pattern = "pattern",
    }

    /// When the bytes must be durable.
    #[derive(ValueEnum)]
    pub enum Sync: word {
        /// Never
        None = "none",
        /// Once, at the end
        End = "end",
        /// After each block
        Each = "each",
    }
}

/// Bytes that are written when nothing else is said.
const DEFAULT_BYTES: u64 = 1 << 30;
/// Bytes of a filesystem that are left free, whatever is asked for.
const RESERVE_BYTES: u64 = 64 << 20;

/// A file that is open for writing, with the settings chosen for it.
pub struct Writer {
    pub(crate) job: Job,
    pub(crate) target: Target,
    pub(crate) choice: Choice,
    pub(crate) length_bytes: u64,
    /// Where the bytes lie in the end.
    bottom: Bottom,
    pub(crate) warnings: Vec<Warning>,
}

impl Writer {
    /// Opens the file and chooses the settings. Nothing is written yet.
    ///
    /// Errors: settings that make no sense, found before the file is touched; what open says; no
    /// room for the bytes, then a file that was made here is removed again.
    pub fn open(job: Job) -> Result<Self, Error> {
        let block_bytes =
            job.wishes.block_bytes.unwrap_or_else(|| choice::default_write_block(&job.wishes));
        let count = job.block_count.unwrap_or(DEFAULT_BYTES.div_ceil(block_bytes));
        let length_bytes = limits::length(count, block_bytes)?;
        let mut choice = choice::for_writing(length_bytes, &job.wishes);
        limits::fit_memory(&mut choice.tuning, job.wishes.depth)?;
        let options = TargetOptions {
            existing: job.existing,
            caching: choice.tuning.caching,
            block_bytes: choice.tuning.block_bytes,
        };
        let (target, fallback) = Target::open(&job.path, options)?;
        choice.tuning.caching = target.caching();
        let refused = fallback.map(|fallback| Warning::new(fallback.code, fallback.text));
        let mut warnings = Vec::from_iter(refused);
        if choice.tuning.engine == Engine::Uring && scan::may_answer_short(target.file()) {
            (choice.tuning.engine, choice.tuning.depth) = (Engine::Sync, 1);
            choice.engine_reason = format!("{}: no io_uring", scan::SERVED);
            warnings.push(Warning::new(warning::URING_REFUSED, choice.engine_reason.clone()));
        }
        warnings.append(&mut choice.notes);
        let (threads, cpus) = (choice.tuning.threads, affinity::allowed_cpu_count());
        warnings.extend(workers::oversubscribed(threads, cpus));
        let bottom = Bottom::of(target.file(), target.path());
        let writer = Self { job, target, choice, length_bytes, bottom, warnings };
        match writer.check_room() {
            Ok(()) => Ok(writer),
            Err(error) => {
                writer.target.remove_if_created()?;
                Err(error)
            }
        }
    }

    /// Refuses to fill a filesystem to the brim. Bytes that an existing file already has are its
    /// own to overwrite; its holes are not.
    fn check_room(&self) -> Result<(), Error> {
        let owned = self.target.owned_bytes()?;
        let needed = self.length_bytes.saturating_sub(owned);
        let Some(free) = self.target.free_bytes() else { return Ok(()) };
        if needed == 0 || needed.saturating_add(RESERVE_BYTES.min(free / 16)) <= free {
            return Ok(());
        }
        let path = self.target.path();
        Err(Error::NoRoom(format!(
            "cannot write {path:?}: {} are to be written, the filesystem has {} free and a reserve is left",
            size_text(needed),
            size_text(free)
        )))
    }

    /// Removes the file if it was made here. For writes that did not end well.
    pub fn discard(self) -> Result<(), Error> {
        Ok(self.target.remove_if_created()?)
    }
}

impl Sync {
    pub(crate) fn completion(self) -> Completion {
        match self {
            Self::Each => Completion::Durable,
            Self::None | Self::End => Completion::Accepted,
        }
    }
}
