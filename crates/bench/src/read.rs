//! Reading one file as fast as it goes, and knowing what the figure means.
//!
//! [`Reader::open`] looks at the file and chooses the settings; [`Reader::trial`] is one whole
//! independent read; [`outcome`] writes down what is known. Read next: `read/lanes.rs`, the timed
//! region.

mod lanes;
mod limit;
pub mod outcome;
mod range;
mod ways;

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use flatout_io::{
    Caching, Engine, Kind, MachineProfile, ProfileEntry, SizeClass, Source, Tuning, Work,
};
use flatout_measure::{Sample, TrialError, Warning, warning};
use flatout_sys::{CancelToken, affinity, filesystem, page_cache};

use crate::choice::{self, Choice, Facts, Wishes};
use crate::counted;
use crate::file_trial::evidence::{Bottom, is_kept_in_memory};
use crate::file_trial::page_cache::Pages;
use crate::{Error, file_trial, limits, workers};

pub use crate::file_trial::measured::Measured;
pub use crate::file_trial::page_cache::{CacheStart, Clearing};

/// What is to be read, and how far.
#[derive(Debug, Clone)]
pub struct Job {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// Settings asked for.
    pub wishes: Wishes,
    /// Blocks to be read, all of one size whatever engine is taken.
    pub block_count: Option<u64>,
    /// Without these, bytes to be read, in blocks of any size; `None`: to the end of the file.
    pub length_bytes: Option<u64>,
    /// When a trial is over.
    pub limit: Limit,
    /// What the page cache holds at the start.
    pub state: CacheStart,
    /// What is computed of the bytes, inside the timed region.
    pub digest: DigestKind,
    /// What was measured on this machine, for settings that are left open.
    pub profile: Option<Arc<MachineProfile>>,
    /// The wish to stop.
    pub cancel: CancelToken,
}

impl Job {
    /// Reads a whole file with these settings and no others.
    pub(crate) fn exactly(
        path: PathBuf,
        tuning: &Tuning,
        state: CacheStart,
        cancel: CancelToken,
    ) -> Self {
        Self {
            path,
            wishes: Wishes::exactly(tuning),
            block_count: None,
            length_bytes: None,
            limit: Limit::Blocks,
            state,
            digest: DigestKind::Xor32,
            profile: None,
            cancel,
        }
    }

    /// One trial as a row has it that names these settings.
    ///
    /// Errors: as [`Reader::trial`]; the settings were not to be had, so that there is no figure.
    pub(crate) fn sample(self) -> Result<Sample, TrialError> {
        let reader = Reader::open(self)?;
        let measured = reader.trial()?;
        let mut sample = measured.sample();
        warning::add_all(&mut sample.warnings, reader.warnings().iter().cloned());
        file_trial::refuse(&sample.warnings)?;
        Ok(sample)
    }
}

/// When a trial is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// When all blocks are read.
    Blocks,
    /// When all blocks are read or so many nanoseconds have passed.
    Duration(u64),
    /// The block count starts at 1 and doubles until a read takes at least so many nanoseconds.
    MinTime(u64),
}

/// What is computed of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DigestKind {
    // The file as little-endian words, the tail padded with zero bytes.
    /// XOR of all 32-bit words
    Xor32,
    // Each page is still touched.
    /// Nothing
    None,
}

/// A file that was looked at, with the settings chosen for it.
pub struct Reader {
    pub(crate) job: Job,
    pub(crate) source: Source,
    pub(crate) choice: Choice,
    /// End of the range that is read; `u64::MAX` for a stream without a block count.
    pub(crate) end_bytes: u64,
    /// Where the bytes lie, if they have to come from there.
    pub(crate) bottom: Bottom,
    /// What was measured of files like this one.
    best: Option<ProfileEntry>,
    pub(crate) warnings: Vec<Warning>,
    /// Whether a pass takes some ticks of the kernel's clock at most.
    pub is_brief: bool,
    /// Whether its first shares are to tell how the others are brought.
    finds_out: bool,
}

/// Bytes out of the page cache that take less than 0.1 s: who else had the CPUs meanwhile, ticks hardly say.
const BRIEF_BYTES: u64 = 1 << 30;

impl Reader {
    /// Opens the file, looks at it and chooses the settings.
    ///
    /// Errors: what open says; settings that make no sense ([`Error::Usage`]), found before the
    /// file is touched.
    pub fn open(mut job: Job) -> Result<Self, Error> {
        let counted_bytes = job.block_count.map(|count| {
            let block_bytes = job.wishes.block_bytes.get_or_insert(choice::MMAP_BLOCK_BYTES);
            limits::length(count, *block_bytes)
        });
        let wanted_bytes = counted_bytes.transpose()?.or(job.length_bytes);
        let source = Source::open(&job.path)?;
        let end_bytes = match source.kind() {
            Kind::Sized => wanted_bytes.unwrap_or(u64::MAX).min(source.length_bytes()),
            Kind::Endless | Kind::Stream => wanted_bytes.unwrap_or(u64::MAX),
        };
        let mut warnings = Vec::new();
        let facts = facts(&job, &source, end_bytes);
        let best = measured(&job, &source, &facts).cloned();
        let mut choice = choice::for_reading(&facts, &job.wishes, best.as_ref());
        let (source, fallback) =
            source.with_caching(choice.tuning.caching, choice.tuning.block_bytes);
        if let Some(fallback) = fallback {
            choice.engine_reason += &format!("; {}", fallback.text);
            if job.wishes.caching.is_some() {
                warnings.push(Warning::new(fallback.code, fallback.text));
            }
        }
        choice.tuning.caching = source.caching();
        if job.wishes.threads.is_none()
            && let Err(error) = workers::each(choice.tuning.threads, |_| ())
        {
            // The one that is there does the work of those that cannot be had.
            choice.tuning.threads = (error.number - 1).max(1);
            warnings.push(Warning::new(warning::THREADS_REDUCED, error.to_string()));
        }
        warnings.append(&mut choice.notes);
        limits::fit_memory(&mut choice.tuning, job.wishes.depth)?;
        let is_apart =
            matches!(job.state, CacheStart::Cold(_)) || source.caching() == Caching::Direct;
        let bottom = match is_apart && source.kind() == Kind::Sized {
            true => Bottom::of(source.file(), source.path()),
            false => Bottom::default(),
        };
        let is_asked = job.wishes.engine.is_some() || best.is_some();
        let finds_out = !is_asked && job.digest == DigestKind::Xor32;
        let is_brief = facts.cached_percent == 100 && end_bytes <= BRIEF_BYTES;
        let mut reader =
            Self { job, source, choice, end_bytes, bottom, best, warnings, is_brief, finds_out };
        reader.look_for_traps(&facts, wanted_bytes);
        Ok(reader)
    }

    /// Warnings that arose before anything was measured.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Warnings that hold before anything was measured.
    fn look_for_traps(&mut self, facts: &Facts, wanted_bytes: Option<u64>) {
        let length = self.source.length_bytes();
        let sized = self.source.kind() == Kind::Sized;
        let tuning = self.choice.tuning;
        let mut warn = |code: &str, text: String| self.warnings.push(Warning::new(code, text));
        if let Some(wanted) = wanted_bytes.filter(|&wanted| sized && wanted > length) {
            let missing = wanted - length;
            let text = format!(
                "{wanted} bytes were asked for, but the file ends after {length}: {} short",
                counted(missing, "byte")
            );
            warn(warning::SHORT_FILE, text);
        }
        let holes = self.source.hole_bytes();
        let written = length.saturating_sub(holes);
        let reserved = self.source.allocated_bytes().unwrap_or(0).saturating_sub(written);
        if holes > 0 {
            let (code, what) = match reserved >= holes / 2 {
                true => (warning::UNWRITTEN_EXTENTS, "were allocated but never written"),
                false => (warning::SPARSE_FILE, "are holes"),
            };
            let text = format!("{holes} of {length} bytes {what}: no device is read for them");
            warn(code, text);
        }
        let compressed = if facts.is_hot() { 0 } else { self.source.compressed_bytes() };
        if compressed > 0 {
            let text = format!(
                "at least {compressed} of {length} bytes are stored compressed: the device reads fewer"
            );
            warn(warning::COMPRESSED_FILE, text);
        }
        let cold = matches!(self.job.state, CacheStart::Cold(_));
        if sized && is_kept_in_memory(self.source.file()) {
            warn(
                warning::MEMORY_FILESYSTEM,
                "the file lives in memory: no device is behind this figure".to_owned(),
            );
        }
        let is_direct = self.source.caching() == Caching::Direct;
        if sized && tuning.block_bytes < 4096 && tuning.engine != Engine::Mmap && !is_direct {
            let block = tuning.block_bytes;
            let (code, what) = if cold || facts.cached_percent == 0 {
                (
                    warning::READAHEAD_BOUND,
                    "readahead and system calls limit this figure, not the disk",
                )
            } else {
                (warning::SYSCALL_BOUND, "system calls limit this figure, not memory")
            };
            warn(code, format!("blocks of {}: {what}", counted(block, "byte")));
        }
        self.warnings.extend(workers::oversubscribed(tuning.threads, facts.cpus));
        let blocks = self.end_bytes.div_ceil(tuning.block_bytes);
        self.warnings.extend(workers::idle(tuning.threads, blocks).filter(|_| blocks > 0));
    }
}

/// What was measured for files like this one.
fn measured<'a>(job: &'a Job, source: &Source, facts: &Facts) -> Option<&'a ProfileEntry> {
    let profile = job.profile.as_ref().filter(|_| facts.kind == Kind::Sized)?;
    let class = (SizeClass::of(facts.length_bytes), facts.is_hot());
    let identity = filesystem::identity(source.file()).ok()?;
    profile.find(Work::Read, class, (&identity, ""))
}

fn facts(job: &Job, source: &Source, end_bytes: u64) -> Facts {
    let (cached_percent, sampled, dirty) = match (source.kind(), job.state) {
        (Kind::Sized, CacheStart::AsItIs) => residency(source, end_bytes),
        (Kind::Sized, CacheStart::Hot | CacheStart::HotAlready) => (100, false, false),
        (Kind::Sized, _) if is_kept_in_memory(source.file()) => (100, false, false),
        _ => (0, false, false),
    };
    Facts {
        kind: source.kind(),
        length_bytes: end_bytes,
        cached_percent,
        sampled,
        dirty,
        cpus: affinity::allowed_cpu_count(),
        may_stop: matches!(job.limit, Limit::Duration(_)),
    }
}

/// Share of the range in the page cache in percent, whether that is a sample's, and whether some
/// of it is dirty. What is all there in each of many pieces is taken for hot: the trial proves it.
/// Unknown counts as cold and clean: then the device is asked, and a cached file is only read more
/// slowly than it could be.
fn residency(source: &Source, end_bytes: u64) -> (u8, bool, bool) {
    let pages = Pages { file: source.file(), path: source.path(), length_bytes: end_bytes };
    if let Some(samples) = page_cache::all_samples(source.file(), end_bytes) {
        return (100, true, samples.dirty_bytes.is_some_and(|dirty| dirty > 0));
    }
    match pages.held() {
        Some(state) => {
            let percent = u128::from(state.cached_bytes) * 100 / u128::from(end_bytes.max(1));
            (percent.min(100) as u8, false, state.dirty_bytes.is_some_and(|dirty| dirty > 0))
        }
        None => (source.sampled_cache_percent(end_bytes).unwrap_or(0), true, false),
    }
}
