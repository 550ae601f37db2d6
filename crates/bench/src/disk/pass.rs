//! One timed pass over some blocks: the cache is brought into its state, a crew of threads runs
//! the requests, what was written is synced, and the accounts are read around each step.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::operations::{Access, Completion, Direction, Operations};
use flatout_io::{
    Caching, Engine, Error as IoError, Existing, Lane, Source, Split, Stop, Target, TargetOptions,
};
use flatout_measure::case::TrialError;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::generator::fill_random;
use flatout_sys::page_cache::{self, CacheState};
use rustix::fs::fdatasync;
use rustix::io::Errno;

use super::Terms;
use super::accounting::{Account, Accounts};
use super::lane::{LaneWork, Pace, Tally, Turns, Work};
use super::pattern::{IoType, Test};
use super::row::{Extents, Row};
use super::test_file::TestFile;
use crate::crew::{self, Crewed, Watch};
use crate::error::Error;
use crate::residency;
use crate::scratch::Scratch;

/// Bins of the rate over time in one trial, and the narrowest.
const BINS: u64 = 20;
const LEAST_BIN_NS: u64 = 25_000_000;
/// Time before the first operation of an open loop, so that every thread is there.
pub(super) const LEAD_NS: u64 = 1_000_000;
/// Operations of an open loop that a trial has at least, unless they took longer than this.
const LEAST_PACED: f64 = 20.0;
const MOST_PACED_NS: u64 = 10_000_000_000;
/// What buffers hold before anything is read into them: not zeros, which would look like holes.
const UNREAD: u8 = 0xa5;

/// One trial.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) row: &'a Row,
    pub(super) file: &'a TestFile,
    pub(super) terms: &'a Terms,
    pub(super) seed: u64,
}

/// The blocks of a file that a pass works on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) blocks: u64,
}

/// What a pass may do at most, all threads together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) range: Range,
    pub(super) most_operations: u64,
}

/// What one pass did.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) tally: Tally,
    pub(super) elapsed_ns: u64,
    /// From the first request to durable bytes, where something was written.
    pub(super) durable_ns: Option<u64>,
    pub(super) accounts: Accounts,
    pub(super) cached_before: Option<CacheState>,
    pub(super) cached_after: Option<CacheState>,
    pub(super) epoch_ns: u64,
    pub(super) bin_ns: u64,
}

/// A file opened by one thread.
enum Handle {
    Source(Source),
    Target(Target),
}

impl Handle {
    fn file(&self) -> BorrowedFd<'_> {
        match self {
            Self::Source(source) => source.file(),
            Self::Target(target) => target.file(),
        }
    }
}

impl Attempt<'_> {
    /// One timed pass over a range, of the file or of a fresh one.
    pub(super) fn pass(&self, limits: Limits, fresh: Option<&Scratch>) -> Result<Pass, TrialError> {
        let cached_before = self.set_cache_state(limits)?;
        let threads = self.row.tuning.threads;
        let handles: Vec<Vec<Handle>> =
            (0..threads).map(|_| self.open(fresh)).collect::<Result<_, _>>()?;
        let disks = self.file.chain.disks();
        let epoch_ns = AtomicU64::new(0);
        let readings = Mutex::new((Account::default(), Account::default()));
        let lock = || readings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let watch = Watch {
            begins: &|| {
                lock().0 = Account::read(&disks);
                epoch_ns.store(monotonic_ns(), Ordering::Release);
            },
            ended: &|| lock().1 = Account::read(&disks),
        };
        let crewed: Crewed<Result<LaneWork, Error>> = crew::run_watched(
            threads,
            watch,
            |index| self.prepare(&handles[index as usize], index),
            |index, engine| {
                // Shares add up to what is allowed; a thread may get none.
                let (count, most) = (u64::from(threads), limits.most_operations);
                let share = most / count + u64::from(u64::from(index) < most % count);
                let limits = Limits { most_operations: share, ..limits };
                self.work(engine, index, limits, epoch_ns.load(Ordering::Acquire))
            },
        );
        let mut tally = Tally::default();
        for lane in crewed.results {
            let mut lane = lane?;
            if let Some((direction, error)) = lane.failure.take() {
                return Err(self.failed(direction, error).into());
            }
            tally.merge(&lane.tally);
        }
        let epoch_ns = epoch_ns.into_inner();
        // The bytes go on to the disk while the accounts are read: one clock for all of it.
        let durable_ns = match handles[0].last() {
            Some(Handle::Target(target)) => {
                let fail = IoError::system("sync", self.file.place.path());
                fdatasync(target.file()).map_err(|errno| Error::from(fail(errno)))?;
                Some((monotonic_ns() - epoch_ns).max(crewed.elapsed_ns))
            }
            _ => None,
        };
        let (before, worked) = readings.into_inner().unwrap_or_else(|dead| dead.into_inner());
        let synced = if durable_ns.is_some() { Account::read(&disks) } else { worked.clone() };
        Ok(Pass {
            tally,
            elapsed_ns: crewed.elapsed_ns,
            durable_ns,
            accounts: Accounts { before, worked, synced },
            cached_before,
            cached_after: self.cache_state(),
            epoch_ns,
            bin_ns: self.bin_ns(),
        })
    }

    /// Brings the page cache into the state in which the row begins, and says what it holds.
    fn set_cache_state(&self, limits: Limits) -> Result<Option<CacheState>, TrialError> {
        let (file, length) = (self.file.descriptor(), self.file.length_bytes);
        let fail = |error: std::io::Error| {
            let path = self.file.place.path();
            Error::from(IoError::system("set the cache state of", path)(error))
        };
        residency::clear_system(self.terms.clearing).map_err(fail)?;
        if self.row.test == Test::Reread {
            let length_bytes = limits.range.blocks * self.row.tuning.block_bytes;
            let read = residency::warm(file, length_bytes, self.file.cancel);
            read.map_err(|error| self.failed(Direction::Read, error))?;
            return Ok(self.cache_state());
        }
        // The cache of a device holds the metadata of whoever has mounted it.
        let is_device = self.file.place.kind() == super::place::Kind::Device;
        if is_device && self.row.tuning.caching == Caching::Direct {
            return Ok(self.cache_state());
        }
        match page_cache::evict(file, 0, length) {
            Ok(state) => Ok(Some(state)),
            // Somebody else's file, some network filesystems and old kernels tell nothing.
            Err(error) if tells_nothing(&error) => Ok(None),
            Err(error) => Err(fail(error).into()),
        }
    }

    fn cache_state(&self) -> Option<CacheState> {
        page_cache::state(self.file.descriptor(), 0, self.file.length_bytes).ok()
    }

    /// The files of one thread, in the order in which its requests number them.
    fn open(&self, fresh: Option<&Scratch>) -> Result<Vec<Handle>, Error> {
        let tuning = self.row.tuning;
        // The file has tried this caching on this file: a refusal now is no fallback, but a change.
        let changed = |why: String| {
            let path = self.file.place.path().to_owned();
            Error::from(IoError::Refused { operation: "measure", path, reason: why })
        };
        let source = || -> Result<Handle, Error> {
            let source = Source::open(&self.file.path)?;
            let opened = source.with_caching(tuning.caching, tuning.block_bytes);
            match opened.fallback {
                Some(fallback) => Err(changed(fallback.text)),
                None => Ok(Handle::Source(opened.source)),
            }
        };
        let options = TargetOptions {
            existing: Existing::Overwrite,
            caching: tuning.caching,
            block_bytes: tuning.block_bytes,
        };
        let target = || -> Result<Handle, Error> {
            let path = fresh.map_or_else(|| self.file.path.clone(), Scratch::path);
            match Target::open(&path, options)? {
                (_, Some(fallback)) => Err(changed(fallback.text)),
                (target, None) => Ok(Handle::Target(target)),
            }
        };
        Ok(match self.row.test.io_type() {
            IoType::Read => vec![source()?],
            IoType::Write | IoType::Mixed => vec![target()?],
            IoType::Copy => vec![source()?, target()?],
        })
    }

    /// An engine with buffers that are there and filled, before the clock runs.
    fn prepare<'h>(&self, handles: &'h [Handle], index: u32) -> Result<Operations<'h>, Error> {
        let tuning = self.row.tuning;
        let files: Vec<BorrowedFd<'h>> = handles.iter().map(Handle::file).collect();
        let access = Access { caching: tuning.caching, completion: Completion::Accepted };
        let slot_bytes = tuning.block_bytes as usize;
        let fail = || IoError::system("get buffers to measure", self.file.place.path());
        let made = match tuning.engine {
            Engine::Uring => Operations::uring(&files, access, slot_bytes, tuning.depth),
            Engine::Sync | Engine::Mmap => Operations::sync(&files, access, slot_bytes),
        };
        let mut engine = made.map_err(fail())?;
        let mut place = (self.seed ^ u64::from(index) << 48) & !4095;
        let writes = matches!(self.row.test.io_type(), IoType::Write | IoType::Mixed);
        engine.prime(|bytes| {
            if writes {
                fill_random(bytes, self.seed, place);
                place = place.wrapping_add(bytes.len() as u64);
            } else {
                bytes.fill(UNREAD);
            }
        });
        Ok(engine)
    }

    /// What one thread does while the clock runs.
    fn work(
        &self,
        engine: &mut Operations<'_>,
        index: u32,
        limits: Limits,
        epoch_ns: u64,
    ) -> Result<LaneWork, Error> {
        let Limits { range, most_operations } = limits;
        let Row { test, tuning, rate_per_s, read_percent, .. } = *self.row;
        let threads = tuning.threads;
        let pace = rate_per_s.map(|rate| {
            let gap_ns = 1e9 / rate;
            let first_ns =
                epoch_ns.saturating_add(LEAD_NS).saturating_add((gap_ns * f64::from(index)) as u64);
            Pace { first_ns, interval_ns: gap_ns * f64::from(threads) }
        });
        // Another turn through the page cache would find what the first one left there.
        let again = tuning.caching == Caching::Direct && self.row.extents == Extents::Written;
        let turns = if again && test != Test::ColdBlocks { Turns::Many } else { Turns::One };
        let timestamps = test.timestamps();
        let mut lane = LaneWork::new(Work {
            io_type: test.io_type(),
            order: test.order(self.seed),
            // A random order is split by contiguous shares of its positions.
            split: if test.is_random() { Split::Contiguous } else { tuning.split },
            lane: Lane { index, count: threads },
            block_bytes: tuning.block_bytes,
            first_block: range.first,
            blocks: range.blocks,
            most_operations,
            turns,
            read_percent,
            pace,
            epoch_ns,
            bin_ns: self.bin_ns(),
            seed: self.seed,
            timestamps,
        });
        let deadline_ns = match test {
            Test::ColdBlocks => None,
            _ => Some(epoch_ns.saturating_add(self.runtime_ns())),
        };
        let mut stop = Stop::new(self.file.cancel, deadline_ns);
        engine
            .run(&mut lane, timestamps, &mut stop)
            .map_err(IoError::system("hand requests to the kernel for", self.file.place.path()))?;
        if let Some(deadline_ns) = deadline_ns {
            lane.count_unstarted(deadline_ns);
        }
        Ok(lane)
    }

    /// Time of the pass: an open loop takes as long as a few operations need.
    fn runtime_ns(&self) -> u64 {
        let least_ns = self.row.rate_per_s.map_or(0.0, |rate| LEAST_PACED / rate * 1e9);
        self.terms.runtime_ns.max((least_ns as u64).min(MOST_PACED_NS))
    }

    fn bin_ns(&self) -> u64 {
        (self.runtime_ns() / BINS).max(LEAST_BIN_NS)
    }

    fn failed(&self, direction: Direction, error: std::io::Error) -> Error {
        let operation = match (direction, self.file.directory()) {
            (Direction::Read, None) => "read",
            (Direction::Write, None) => "write",
            (Direction::Read, Some(_)) => "read the test file in",
            (Direction::Write, Some(_)) => "write the test file in",
        };
        IoError::system(operation, self.file.place.path())(error).into()
    }
}

/// Whether an error only says that nobody may know what the page cache holds of the file.
fn tells_nothing(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::OPNOTSUPP)
    )
}
