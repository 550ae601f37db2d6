//! The timed region of a write: lanes over a range, then the sync.

use std::io;
use std::iter::StepBy;
use std::ops::Range;

use flatout_io::operations::{Access, After, Done, Operations, Request, Timestamps, Workload};
use flatout_io::{Caching, Engine, Fallback, Lane, Stop, Target};
use flatout_measure::{Evidence, Facts, Happened, Key, warning};
use flatout_sys::descriptor;
use flatout_sys::generator::fill_pattern;
use flatout_sys::{Nature, fill_random, monotonic_ns};

use super::{Data, Measured, Sync, Writer};
use crate::file_trial::accounting::{
    DISK_WRITE_BYTES, DISK_WRITE_REQUESTS, PROCESS_WRITE_BYTES, Scope,
};
use crate::file_trial::cache_watch::CacheWatch;
use crate::file_trial::evidence;
use crate::file_trial::page_cache::{self, Pages};
use crate::{Error, IoError, Watch, fact, file_trial};

/// Direct writes may leave one part in this many of their bytes in the page cache: odd ends of a
/// file go through it.
const CACHED_PART: u64 = 10;

/// Time in which the page cache is looked at some twenty times, while direct requests run.
const WATCHED_NS: u64 = 200_000_000;

/// Bytes that the null engine is given to find the harness's own share.
const CALIBRATION_BYTES: u64 = 64 << 20;
/// Rounds of the null engine, and the time for all of them.
const CALIBRATION_ROUNDS: u32 = 3;
const CALIBRATION_NS: u64 = 100_000_000;

/// The blocks of one lane: what comes next, what it holds, what became of it.
struct Blocks {
    left: StepBy<Range<u64>>,
    block_bytes: u64,
    data: Data,
    seed: u64,
    bytes: u64,
    blocks: u64,
    failure: Option<io::Error>,
}

impl Workload for Blocks {
    fn next(&mut self) -> Option<Request> {
        let offset_bytes = self.left.next()? * self.block_bytes;
        Some(Request::write(offset_bytes, self.block_bytes as usize))
    }

    fn fill(&mut self, request: &Request, bytes: &mut [u8]) {
        match self.data {
            Data::Random => fill_random(bytes, self.seed, request.offset_bytes),
            Data::Pattern => fill_pattern(bytes, request.offset_bytes),
            // Buffers begin zeroed and nobody else writes into them.
            Data::Zero => {}
        }
    }

    fn done(&mut self, done: Done<'_>) -> After {
        match done.result {
            Ok(moved) => {
                self.bytes += moved as u64;
                // A write is cut only by a wish to stop.
                let is_whole = moved == done.request.length_bytes;
                self.blocks += u64::from(is_whole);
                if is_whole { After::Next } else { After::End }
            }
            Err(error) => {
                self.failure.get_or_insert(error);
                After::End
            }
        }
    }
}

type Prepared<'a> = (Operations<'a>, Option<Fallback>);

impl Writer {
    /// Writes all blocks, and makes them durable where that is asked for.
    ///
    /// Errors: those of the kernel. The file is left as it is: [`Writer::discard`] removes it.
    /// A wish to stop is no error: `stopped` is set. Once the bytes are where they were asked to
    /// be, nothing is an error any more but that of closing the file.
    pub fn run(&self) -> Result<Measured, Error> {
        let tuning = self.choice.tuning;
        let targets: Vec<Target> =
            (0..tuning.threads).map(|_| self.target.reopen()).collect::<Result<_, _>>()?;
        let pages = Pages {
            file: self.target.file(),
            path: self.target.path(),
            length_bytes: self.length_bytes,
        };
        let is_clean =
            self.target.is_new() || pages.held().is_some_and(|held| held.dirty_bytes == Some(0));
        if !is_clean {
            // The kernel counts what a process writes when a page gets dirty; these may be already.
            rustix::fs::fdatasync(self.target.file())
                .map_err(IoError::system("write back", self.target.path()))?;
        }
        let cached_before = pages.held();
        // A reading between the last request and the sync would be time in which the device has nothing to do.
        let scope = Scope::Begin(&self.bottom.disks);
        let prepare = |index| self.prepare(&targets[index as usize]);
        let work = |index, prepared: &mut Prepared<'_>, _| {
            self.write_lane(Lane { index, count: tuning.threads }, prepared)
        };
        let run = |watch: Watch<'_>| file_trial::run(tuning.threads, scope, watch, prepare, work);
        let is_direct = self.target.caching() == Caching::Direct;
        let watch = CacheWatch::new(pages, cached_before, WATCHED_NS).filter(|_| is_direct);
        let (ran, looks) = CacheWatch::during(watch, run);
        let ran = ran?;
        let mut measured = Measured { elapsed_ns: ran.elapsed_ns, ..Measured::default() };
        measured.warnings.clone_from(&self.warnings);
        for (blocks, engine, fallback) in ran.results {
            measured.bytes += blocks.bytes;
            measured.blocks += blocks.blocks;
            measured.engine = Some(engine);
            if let Some(Fallback { code, text }) = fallback {
                measured.warn(code, text);
            }
        }
        measured.stopped = measured.bytes < self.length_bytes;
        if !measured.stopped {
            self.target.set_length(self.length_bytes)?;
            self.make_durable(ran.begun_ns, &mut measured)?;
            self.close(targets)?;
            if self.bottom.ground == Some(Nature::Memory) {
                // A sync returns at once and keeps nothing: there is no time to durable.
                measured.fsynced_ns = None;
                let text = "the file lives in memory: no device is behind this figure, and \
                            nothing that is synced is durable";
                measured.warn(warning::MEMORY_FILESYSTEM, text);
            }
            let unsynced = self.bottom.unsynced.filter(|_| measured.fsynced_ns.is_some());
            warning::add_all(&mut measured.warnings, unsynced.map(evidence::not_durable));
        }
        let mut facts = ran.accounts.before.until_now(scope).facts();
        let own = &mut measured.accounts;
        own.set_known(Key::sum("device_write_bytes"), facts.count(PROCESS_WRITE_BYTES));
        for key in [DISK_WRITE_BYTES, DISK_WRITE_REQUESTS] {
            own.set_known(key, facts.count(key));
        }
        measured.cached_after_bytes = pages.held().map(|held| held.cached_bytes);
        facts.extend(looks.facts());
        self.prove(&facts, self.bottom.ground, &mut measured);
        let (caching, most_bytes) = (self.target.caching(), measured.bytes / CACHED_PART);
        let after = measured.cached_after_bytes;
        let before = cached_before.map(|held| held.cached_bytes);
        let grown = page_cache::growth_warning(caching, before, after, most_bytes);
        warning::add_all(&mut measured.warnings, grown);
        if !measured.stopped {
            measured.harness_ns = self.harness_ns();
        }
        Ok(measured)
    }

    /// Says what shows that the bytes went where the row has them.
    fn prove(&self, facts: &Facts, ground: Option<Nature>, measured: &mut Measured) {
        let bytes = measured.bytes as f64;
        let is_direct = self.target.caching() == Caching::Direct;
        if self.job.sync == Sync::None && !is_direct {
            measured.evidence = Some(Evidence::counted(&measured.facts(), fact::BYTES));
            return;
        }
        let accounts = [DISK_WRITE_BYTES, PROCESS_WRITE_BYTES].map(|key| facts.number(key));
        let moved = evidence::moved(bytes, accounts, ground);
        warning::add_all(&mut measured.warnings, evidence::against(&moved));
        let buffered = match moved.happened {
            Happened::Yes if is_direct => evidence::buffered(facts, bytes),
            _ => None,
        };
        if let Some(found) = buffered.as_ref().filter(|found| found.happened == Happened::No) {
            measured.warn(warning::DIRECT_CACHED, found.text.to_string());
        }
        measured.evidence = Some(buffered.unwrap_or(moved));
    }

    /// Keeps the promise of `--sync`. That the name may not be durable is a warning only: the bytes
    /// are safe, and removing them would not help anybody.
    fn make_durable(&self, begun_ns: u64, measured: &mut Measured) -> Result<(), Error> {
        match self.job.sync {
            Sync::None => {
                let text = "nothing was synced: the figure is the page cache's, not the device's";
                measured.warn(warning::NOT_DURABLE, text);
                return Ok(());
            }
            Sync::Each => {
                // What the file had beyond the last block is cut off, which no block has synced.
                self.target.sync()?;
                measured.fsynced_ns = Some(measured.elapsed_ns);
            }
            Sync::End => {
                self.target.sync()?;
                // The bytes go on to the device while threads end: one clock for all of it.
                measured.fsynced_ns = Some((monotonic_ns() - begun_ns).max(measured.elapsed_ns));
            }
        }
        if let Err(error) = self.target.sync_name() {
            let text = format!("the bytes are durable, the file's name may not be: {error}");
            measured.warn(warning::NOT_DURABLE, text);
        }
        Ok(())
    }

    /// Some servers (FUSE, NFS) tell as late as this that they could not keep the bytes.
    fn close(&self, targets: Vec<Target>) -> Result<(), Error> {
        for target in targets {
            let closed = descriptor::close(target.into_file());
            closed.map_err(IoError::system("close", self.target.path()))?;
        }
        Ok(())
    }

    fn prepare<'a>(&self, target: &'a Target) -> Result<Prepared<'a>, Error> {
        let access = Access { caching: target.caching(), completion: self.job.sync.completion() };
        let made = Operations::prepare(&[target.file()], access, &self.choice.tuning);
        Ok(made.map_err(IoError::system("get buffers to write", target.path()))?)
    }

    fn write_lane(
        &self,
        lane: Lane,
        (operations, fallback): &mut Prepared<'_>,
    ) -> Result<(Blocks, Engine, Option<Fallback>), Error> {
        let mut blocks = self.blocks(lane, self.length_bytes);
        let mut stop = Stop::new(self.job.cancel, None);
        let fail = || IoError::system("write", self.target.path());
        operations.run(&mut blocks, Timestamps::None, &mut stop).map_err(fail())?;
        match blocks.failure.take() {
            Some(error) => Err(fail()(error).into()),
            None => Ok((blocks, operations.engine(), fallback.take())),
        }
    }

    fn blocks(&self, lane: Lane, length_bytes: u64) -> Blocks {
        let tuning = self.choice.tuning;
        let blocks = length_bytes.div_ceil(tuning.block_bytes);
        let (first, end, step) = lane.blocks(blocks, tuning.split);
        Blocks {
            left: (first..end).step_by(step as usize),
            block_bytes: tuning.block_bytes,
            data: self.job.data,
            seed: self.job.seed,
            bytes: 0,
            blocks: 0,
            failure: None,
        }
    }

    /// Time that generating the data and the harness itself take one thread for all the blocks,
    /// found by running a part of them through the null engine. The best of a few rounds, since
    /// it is a bound; `None` where there is no memory for it.
    fn harness_ns(&self) -> Option<u64> {
        let block_bytes = self.choice.tuning.block_bytes;
        let part_bytes = self.length_bytes.min(CALIBRATION_BYTES.max(block_bytes));
        let mut null = Operations::null(block_bytes as usize).ok()?;
        let ends_ns = monotonic_ns() + CALIBRATION_NS;
        let mut best: Option<f64> = None;
        for _ in 0..CALIBRATION_ROUNDS {
            let mut blocks = self.blocks(Lane::ONLY, part_bytes);
            let mut stop = Stop::new(self.job.cancel, Some(ends_ns));
            let start_ns = monotonic_ns();
            null.run(&mut blocks, Timestamps::None, &mut stop).ok()?;
            let elapsed_ns = monotonic_ns() - start_ns;
            if blocks.bytes > 0 {
                let share = self.length_bytes as f64 / blocks.bytes as f64;
                let all_ns = elapsed_ns as f64 * share;
                best = Some(best.map_or(all_ns, |best| best.min(all_ns)));
            }
            if monotonic_ns() >= ends_ns || self.job.cancel.is_cancelled() {
                break;
            }
        }
        best.map(|ns| ns as u64)
    }
}
