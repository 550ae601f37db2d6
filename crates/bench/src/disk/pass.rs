//! One timed pass over some blocks: the cache is brought into its state, worker threads run
//! the requests, what was written is synced, and the accounts are read around each step.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use flatout_io::operations::{Access, Direction, Operations};
use flatout_io::{
    Caching, Existing, Fallback, Lane, Source, Split, Stop, Target, TargetOptions, Tuning,
};
use flatout_measure::TrialError;
use flatout_sys::{CacheState, fill_random, monotonic_ns};
use rustix::fs::fdatasync;

use super::Terms;
use super::lane::{LaneWork, Pace, Range, Tally, Turns, Work};
use super::pattern::{IoType, Pattern};
use super::place::Kind;
use super::row::{Extents, Row};
use super::test_file::TestFile;
use crate::file_trial::accounting::{Account, Accounts, Scope};
use crate::file_trial::cache_watch::{CacheWatch, Looks};
use crate::file_trial::page_cache::{self, Pages};
use crate::{CacheStart, Clearing, Error, IoError, Scratch, Watch, file_trial};

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

/// What one pass did.
pub(super) struct Pass {
    pub(super) tally: Tally,
    pub(super) elapsed_ns: u64,
    /// From the first request to durable bytes, where something was written.
    pub(super) fsynced_ns: Option<u64>,
    pub(super) accounts: Accounts,
    pub(super) cached_before: Option<CacheState>,
    pub(super) cached_after: Option<CacheState>,
    /// What the cache held of the file while direct requests were under way.
    pub(super) looks: Looks,
    pub(super) epoch_ns: u64,
    pub(super) bin_ns: u64,
}

impl Attempt<'_> {
    /// One timed pass over a range, of the file or of a fresh one.
    pub(super) fn pass(&self, range: Range, fresh: Option<&Scratch>) -> Result<Pass, TrialError> {
        let cached_before = self.set_cache_state(range)?;
        let threads = self.row.tuning.threads;
        let files: Vec<Vec<OwnedFd>> =
            (0..threads).map(|_| self.open(fresh)).collect::<Result<_, _>>()?;
        let scope = Scope::Machine(&self.file.chain.disks);
        let prepare = |index| self.prepare(&files[index as usize], index);
        let work = |index, engine: &mut Operations<'_>, begun_ns| {
            // Shares add up to what is allowed; a thread may get none.
            let (count, most) = (u64::from(threads), range.most_operations);
            let share = most / count + u64::from(u64::from(index) < most % count);
            self.work(engine, index, Range { most_operations: share, ..range }, begun_ns)
        };
        let run = |watch: Watch<'_>| file_trial::run(threads, scope, watch, prepare, work);
        let (ran, looks) = CacheWatch::during(self.cache_watch(fresh, cached_before), run);
        let mut ran = ran?;
        let mut tally = Tally::default();
        for mut lane in ran.results {
            if let Some((direction, error)) = lane.failure.take() {
                return Err(self.failed(direction, error).into());
            }
            tally.merge(&lane.tally);
        }
        let mut fsynced_ns = None;
        if let Some(target) = files[0].last().filter(|_| self.row.test.io_type() != IoType::Read) {
            let fail = IoError::system("sync", &self.file.place.path);
            fdatasync(target).map_err(|errno| Error::from(fail(errno)))?;
            // The bytes go on to the disk while the accounts are read: one clock for all of it.
            fsynced_ns = Some((monotonic_ns() - ran.begun_ns).max(ran.elapsed_ns));
            ran.accounts.synced = Account::read(scope);
        }
        Ok(Pass {
            tally,
            elapsed_ns: ran.elapsed_ns,
            fsynced_ns,
            accounts: ran.accounts,
            cached_before,
            cached_after: self.pages(fresh).held(),
            looks,
            epoch_ns: ran.begun_ns,
            bin_ns: self.bin_ns(),
        })
    }

    /// Who looks at the page cache during direct requests: that of the file which is written, where
    /// one is. The cache of a device holds the metadata of whoever has mounted it.
    fn cache_watch<'w>(
        &'w self,
        fresh: Option<&'w Scratch>,
        before: Option<CacheState>,
    ) -> Option<CacheWatch<'w>> {
        if self.row.tuning.caching != Caching::Direct || self.file.place.kind == Kind::Device {
            return None;
        }
        let before = match fresh {
            Some(_) => before.map(|before| CacheState { cached_bytes: 0, ..before }),
            None => before,
        };
        CacheWatch::new(self.pages(fresh), before, self.runtime_ns())
    }

    /// What of the file that is written may lie in the page cache, where one is made; else of the test file.
    fn pages<'w>(&'w self, fresh: Option<&'w Scratch>) -> Pages<'w> {
        let pages = self.file.pages();
        fresh.map_or(pages, |fresh| Pages { file: fresh.file(), ..pages })
    }

    /// Brings the page cache into the state in which the row begins, and says what it holds.
    fn set_cache_state(&self, range: Range) -> Result<Option<CacheState>, Error> {
        let (pages, cancel) = (self.file.pages(), self.file.cancel);
        let cleared = page_cache::clear_system(self.terms.clearing);
        cleared.map_err(IoError::system("set the cache state of", pages.path))?;
        if self.row.test == Pattern::Reread {
            let length_bytes = range.blocks * self.row.tuning.block_bytes;
            return Pages { length_bytes, ..pages }.bring(CacheStart::Hot, cancel);
        }
        // The cache of a device holds the metadata of whoever has mounted it.
        let is_device = self.file.place.kind == Kind::Device;
        let start = match is_device && self.row.tuning.caching == Caching::Direct {
            true => CacheStart::AsItIs,
            false => CacheStart::Cold(Clearing::File),
        };
        pages.bring(start, cancel)
    }

    /// The files of one thread, in the order in which its requests number them.
    fn open(&self, fresh: Option<&Scratch>) -> Result<Vec<OwnedFd>, Error> {
        let Tuning { caching, block_bytes, .. } = self.row.tuning;
        let source = || {
            let opened = Source::open(&self.file.path)?;
            let (source, fallback) = opened.with_caching(caching, block_bytes);
            Ok((source.into_file(), fallback))
        };
        let target = || {
            let path = fresh.map_or_else(|| self.file.path.clone(), Scratch::path);
            let options = TargetOptions { existing: Existing::Overwrite, caching, block_bytes };
            let (target, fallback) = Target::open(&path, options)?;
            Ok((target.into_file(), fallback))
        };
        let opened = match self.row.test.io_type() {
            IoType::Read => vec![source()],
            IoType::Write | IoType::Mixed => vec![target()],
            IoType::Copy => vec![source(), target()],
        };
        let known = |opened| match opened {
            Ok((file, fallback)) => self.unchanged(fallback).map(|()| file),
            // What is opened through /proc has a name that the user knows.
            Err(IoError::System { operation, source, .. }) => {
                Err(IoError::system(operation, &self.file.place.path)(source).into())
            }
            Err(refused) => Err(refused.into()),
        };
        opened.into_iter().map(known).collect()
    }

    /// The row was fitted to this machine and file: a refusal now is no fallback, but a change.
    fn unchanged(&self, fallback: Option<Fallback>) -> Result<(), Error> {
        let Some(fallback) = fallback else { return Ok(()) };
        let (reason, path) = (fallback.refusal().to_owned(), self.file.place.path.clone());
        Err(IoError::Refused { operation: "measure", path, reason }.into())
    }

    /// An engine with buffers that are there and filled, before the clock runs.
    fn prepare<'f>(&self, files: &'f [OwnedFd], index: u32) -> Result<Operations<'f>, Error> {
        let tuning = self.row.tuning;
        let files: Vec<BorrowedFd<'f>> = files.iter().map(AsFd::as_fd).collect();
        let access = Access { caching: tuning.caching, completion: self.row.sync.completion() };
        let fail = IoError::system("get buffers to measure", &self.file.place.path);
        let (mut engine, fallback) = Operations::prepare(&files, access, &tuning).map_err(fail)?;
        self.unchanged(fallback)?;
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
        range: Range,
        epoch_ns: u64,
    ) -> Result<LaneWork, Error> {
        let Row { test, tuning, rate_per_s, read_percent, .. } = *self.row;
        let pace = rate_per_s.map(|rate| {
            let gap_ns = 1e9 / rate;
            let first_ns =
                epoch_ns.saturating_add(LEAD_NS).saturating_add((gap_ns * f64::from(index)) as u64);
            Pace { first_ns, interval_ns: gap_ns * f64::from(tuning.threads) }
        });
        // Another turn through the page cache would find what the first one left there.
        let again = tuning.caching == Caching::Direct && self.row.extents == Extents::Written;
        let turns = if again && test != Pattern::ColdBlocks { Turns::Many } else { Turns::One };
        let timestamps = test.timestamps();
        let mut lane = LaneWork::new(Work {
            io_type: test.io_type(),
            order: test.order(self.seed),
            // A random order is split by contiguous shares of its positions.
            split: if test.is_random() { Split::Contiguous } else { tuning.split },
            lane: Lane { index, count: tuning.threads },
            block_bytes: tuning.block_bytes,
            range,
            turns,
            read_percent,
            pace,
            epoch_ns,
            bin_ns: self.bin_ns(),
            seed: self.seed,
            timestamps,
        });
        let timed = test != Pattern::ColdBlocks;
        let deadline_ns = timed.then(|| epoch_ns.saturating_add(self.runtime_ns()));
        let mut stop = Stop::new(self.file.cancel, deadline_ns);
        engine
            .run(&mut lane, timestamps, &mut stop)
            .map_err(IoError::system("hand requests to the kernel for", &self.file.place.path))?;
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
        IoError::system(operation, &self.file.place.path)(error).into()
    }
}
