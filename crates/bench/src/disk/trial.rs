//! How a row of the disk area is timed: the cache is brought into its state, a crew of threads
//! runs the requests, what was written is synced, and the accounts are read around each step.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::operations::{
    Access, Completion, Direction, Operations, Timestamps, uring_refusal,
};
use flatout_io::{
    Caching, Engine, Error as IoError, Existing, Lane, Source, Split, Stop, Target, TargetOptions,
};
use flatout_measure::case::{Case, Trial, TrialError};
use flatout_sys::clock::monotonic_ns;
use flatout_sys::generator::fill_random;
use flatout_sys::page_cache::{self, CacheState};
use rustix::fs::fdatasync;

use super::account::{Account, Bill};
use super::lane::{LaneWork, Pace, Tally, Turns, Work};
use super::pattern::{Course, Test};
use super::row::{Extents, Row};
use super::sample::{self, Pass};
use super::site::Site;
use super::{Clearing, Terms};
use crate::crew::{self, Crewed, Watch};
use crate::error::Error;
use crate::scratch::Scratch;

/// Bins of the rate over time in one trial, and the narrowest.
const BINS: u64 = 20;
const LEAST_BIN_NS: u64 = 10_000_000;
/// Pieces of the file that the cold-blocks row reads, one per trial; each is read twice.
const COLD_PIECES: u64 = 12;
const MOST_COLD_BYTES: u64 = 64 << 20;
/// Time before the first operation of an open loop, so that every thread is there.
const LEAD_NS: u64 = 1_000_000;
/// What buffers hold before anything is read into them: not zeros, which would look like holes.
const UNREAD: u8 = 0xa5;

/// The row as a case for the sampler.
pub(super) fn case<'a>(row: &'a Row, site: &'a Site, terms: &'a Terms) -> Case<'a> {
    let count = Cell::new(0);
    let trial: Trial<'a> = Box::new(move |seed| {
        let number = count.replace(count.get() + 1);
        let attempt = Attempt { row, site, terms, seed, number };
        let sample = attempt.run();
        if site.cancel.is_cancelled() {
            return Err(TrialError::Interrupted);
        }
        sample
    });
    Case {
        id: row.test.id(),
        parameters: row.parameters(),
        unit: row.unit(),
        figure: row.figure(),
        trial,
    }
}

/// One trial.
struct Attempt<'a> {
    row: &'a Row,
    site: &'a Site,
    terms: &'a Terms,
    seed: u64,
    /// Trials of this row before.
    number: u64,
}

/// The blocks of a file that a pass works on.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    blocks: u64,
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
    fn run(&self) -> Result<flatout_measure::case::Sample, TrialError> {
        let block_bytes = self.row.tuning.block_bytes;
        let blocks = self.site.length_bytes / block_bytes;
        if blocks == 0 {
            return Err(TrialError::Unsupported(format!(
                "the file has {} bytes, less than one block of {block_bytes}",
                self.site.length_bytes
            )));
        }
        let whole = Range { first: 0, blocks };
        if self.row.test == Test::ColdBlocks {
            let piece = self.cold_piece(blocks)?;
            let first = self.pass(piece, None)?;
            let second = self.pass(piece, None)?;
            return Ok(sample::of_two(self.row, self.site, &first, &second));
        }
        if !self.row.writes() {
            let pass = self.pass(whole, None)?;
            return Ok(sample::of(self.row, self.site, &pass));
        }
        let taken = self.site.budget.take(self.terms.trial_write_bytes, block_bytes);
        if taken == 0 {
            return Err(TrialError::NoMore(sample::write_limit(self.terms)));
        }
        let limited = Range { blocks: blocks.min(taken / block_bytes), ..whole };
        let passed = match self.row.extents {
            Extents::Fresh => self.on_fresh_file(limited),
            Extents::Written => self.pass_limited(whole, taken / block_bytes),
        };
        let written = passed.as_ref().map_or(taken, |pass| pass.tally.written_bytes);
        self.site.budget.give_back(taken.saturating_sub(written));
        Ok(sample::of(self.row, self.site, &passed?))
    }

    /// The piece of the file that nobody in this run has read before.
    fn cold_piece(&self, blocks: u64) -> Result<Range, TrialError> {
        let pieces = COLD_PIECES.min(blocks);
        if self.number >= pieces {
            return Err(TrialError::NoMore(sample::no_more_cold_blocks()));
        }
        let share = blocks / pieces;
        let most = (MOST_COLD_BYTES / self.row.tuning.block_bytes).max(1);
        Ok(Range { first: share * self.number, blocks: share.min(most) })
    }

    fn on_fresh_file(&self, range: Range) -> Result<Pass, TrialError> {
        let directory = self.site.directory().unwrap_or(Path::new("."));
        let fresh = Scratch::empty(directory)?;
        self.measure(range, u64::MAX, Some(&fresh))
    }

    fn pass(&self, range: Range, fresh: Option<&Scratch>) -> Result<Pass, TrialError> {
        self.measure(range, u64::MAX, fresh)
    }

    fn pass_limited(&self, range: Range, most_operations: u64) -> Result<Pass, TrialError> {
        self.measure(range, most_operations, None)
    }

    /// One timed pass over a range, of the file or of a fresh one.
    fn measure(
        &self,
        range: Range,
        most_operations: u64,
        fresh: Option<&Scratch>,
    ) -> Result<Pass, TrialError> {
        let cached_before = self.set_cache_state()?;
        let threads = self.row.tuning.threads;
        let handles: Vec<Vec<Handle>> =
            (0..threads).map(|_| self.open(fresh)).collect::<Result<_, _>>()?;
        let disks = self.site.chain.disks();
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
                let most = most_operations.div_ceil(u64::from(threads));
                self.work(engine, index, range, most, epoch_ns.load(Ordering::Acquire))
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
        let sync_ns = match handles[0].last() {
            Some(Handle::Target(target)) => Some(self.sync(target.file())?),
            _ => None,
        };
        let (before, worked) = readings.into_inner().unwrap_or_else(|dead| dead.into_inner());
        let synced = if sync_ns.is_some() { Account::read(&disks) } else { worked.clone() };
        Ok(Pass {
            tally,
            elapsed_ns: crewed.elapsed_ns,
            sync_ns,
            bill: Bill { before, worked, synced },
            cached_before,
            cached_after: self.cache_state(),
            epoch_ns: epoch_ns.into_inner(),
            bin_ns: self.bin_ns(),
        })
    }

    /// Brings the page cache into the state in which the row begins, and says what it holds.
    fn set_cache_state(&self) -> Result<Option<CacheState>, TrialError> {
        let (file, length) = (self.site.file(), self.site.length_bytes);
        let fail = |error: std::io::Error| {
            let path = self.site.place.path();
            Error::from(IoError::system("set the cache state of", path)(error))
        };
        if self.terms.clearing == Clearing::System {
            rustix::fs::sync();
            page_cache::drop_system_caches(3).map_err(fail)?;
        }
        if self.row.test == Test::Reread {
            self.read_all(file, length)?;
            return Ok(self.cache_state());
        }
        // The cache of a device holds the metadata of whoever has mounted it.
        let is_device = self.site.place.kind() == super::place::Kind::Device;
        if is_device && self.row.tuning.caching == Caching::Direct {
            return Ok(self.cache_state());
        }
        match page_cache::evict(file, 0, length) {
            Ok(state) => Ok(Some(state)),
            // Some network filesystems and old kernels tell nothing.
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(fail(error).into()),
        }
    }

    fn cache_state(&self) -> Option<CacheState> {
        page_cache::state(self.site.file(), 0, self.site.length_bytes).ok()
    }

    fn read_all(&self, file: BorrowedFd<'_>, length_bytes: u64) -> Result<(), TrialError> {
        let mut buffer = vec![0; 1 << 20];
        let mut offset = 0;
        while offset < length_bytes && !self.site.cancel.is_cancelled() {
            match rustix::io::pread(file, &mut buffer, offset) {
                Ok(0) => break,
                Ok(got) => offset += got as u64,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(self.failed(Direction::Read, errno.into()).into()),
            }
        }
        Ok(())
    }

    /// The files of one thread, in the order in which its requests number them.
    fn open(&self, fresh: Option<&Scratch>) -> Result<Vec<Handle>, Error> {
        let tuning = self.row.tuning;
        let source = || -> Result<Handle, Error> {
            let source = Source::open(&self.site.path)?;
            let opened = source.with_caching(tuning.caching, tuning.block_bytes);
            Ok(Handle::Source(opened.source))
        };
        let options = TargetOptions {
            existing: Existing::Overwrite,
            caching: tuning.caching,
            block_bytes: tuning.block_bytes,
        };
        let target = || -> Result<Handle, Error> {
            let path = fresh.map_or_else(|| self.site.path.clone(), Scratch::path);
            Ok(Handle::Target(Target::open(&path, options)?.0))
        };
        Ok(match self.row.test.course() {
            Course::Read => vec![source()?],
            Course::Write | Course::Mixed => vec![target()?],
            Course::Copy => vec![source()?, target()?],
        })
    }

    /// An engine with buffers that are there and filled, before the clock runs.
    fn prepare<'h>(&self, handles: &'h [Handle], index: u32) -> Result<Operations<'h>, Error> {
        let tuning = self.row.tuning;
        let files: Vec<BorrowedFd<'h>> = handles.iter().map(Handle::file).collect();
        let access = Access { caching: tuning.caching, completion: Completion::Accepted };
        let slot_bytes = tuning.block_bytes as usize;
        let fail = || IoError::system("get buffers to measure", self.site.place.path());
        let sync = || Operations::sync(&files, access, slot_bytes).map_err(fail());
        let mut engine = match tuning.engine {
            Engine::Uring => match Operations::uring(&files, access, slot_bytes, tuning.depth) {
                Err(error) if uring_refusal(&error).is_some() => sync()?,
                made => made.map_err(fail())?,
            },
            Engine::Sync | Engine::Mmap => sync()?,
        };
        let mut place = (self.seed ^ u64::from(index) << 48) & !4095;
        let writes = matches!(self.row.test.course(), Course::Write | Course::Mixed);
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
        most_operations: u64,
        epoch_ns: u64,
    ) -> Result<LaneWork, Error> {
        let Row { test, tuning, rate_per_s, read_percent, .. } = *self.row;
        let threads = tuning.threads;
        let pace = rate_per_s.map(|rate| {
            let gap_ns = 1e9 / rate;
            let first_ns = epoch_ns + LEAD_NS + (gap_ns * f64::from(index)) as u64;
            Pace { first_ns, interval_ns: gap_ns * f64::from(threads) }
        });
        // Another turn through the page cache would find what the first one left there.
        let again = tuning.caching == Caching::Direct && self.row.extents == Extents::Written;
        let turns = if again && test != Test::ColdBlocks { Turns::Many } else { Turns::One };
        let mut lane = LaneWork::new(Work {
            course: test.course(),
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
        });
        let deadline_ns = match test {
            Test::ColdBlocks => None,
            _ => Some(epoch_ns.saturating_add(self.terms.runtime_ns)),
        };
        let mut stop = Stop::new(self.site.cancel, deadline_ns);
        engine
            .run(&mut lane, Timestamps::Each, &mut stop)
            .map_err(IoError::system("hand requests to the kernel for", self.site.place.path()))?;
        Ok(lane)
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<u64, Error> {
        let start_ns = monotonic_ns();
        fdatasync(file).map_err(IoError::system("sync", self.site.place.path()))?;
        Ok(monotonic_ns() - start_ns)
    }

    fn bin_ns(&self) -> u64 {
        (self.terms.runtime_ns / BINS).max(LEAST_BIN_NS)
    }

    fn failed(&self, direction: Direction, error: std::io::Error) -> Error {
        let operation = match (direction, self.site.directory()) {
            (Direction::Read, None) => "read",
            (Direction::Write, None) => "write",
            (Direction::Read, Some(_)) => "read the test file in",
            (Direction::Write, Some(_)) => "write the test file in",
        };
        IoError::system(operation, self.site.place.path())(error).into()
    }
}
