//! The timed region of a read: lanes over a range, passes over a file, caches cleared between.

use flatout_io::digest::Xor32;
use flatout_io::scan::{self, Pass, Plan, Scanner, Tally, Zeros};
use flatout_io::{Caching, Engine, Fallback, Kind, Lane, Stop, Tuning};
use flatout_measure::{Facts, size_text, warning};
use flatout_sys::{CancelToken, monotonic_ns, usage};

use super::range::Range;
use super::ways::{Scanners, Way, Ways};
use super::{CacheStart, DigestKind, Limit, Measured, Reader};
use crate::file_trial::accounting::{
    DISK_READ_BYTES, DISK_READ_REQUESTS, PROCESS_READ_BYTES, Scope,
};
use crate::file_trial::page_cache::{self, Pages};
use crate::file_trial::{self, Ran};
use crate::{Error, IoError, Watch, fact};

/// A read shorter than this says little.
const SHORT_RUN_NS: u64 = 100_000;
/// Wall time that a read for a least time may take, as a multiple of that time.
const PATIENCE: u64 = 20;
const DIGEST_DIFFERS: &str =
    "the digest changed between passes: somebody writes the file meanwhile";
/// Rounds of the loop that finds the harness's own share.
const CALIBRATION_BLOCKS: u64 = 20_000;
/// Bytes of a suspected zero block that are read once more before anything is said.
const ZERO_SAMPLE_BYTES: usize = 4096;

/// Direct reads may leave one part in this many of their bytes in the page cache.
const CACHED_PART: u64 = 10;

/// What one lane did.
#[derive(Debug, Clone, Default)]
struct Passes {
    pass: Pass,
    tally: Tally,
    differs: bool,
    /// Whole passes.
    whole: u64,
    engine: Option<Engine>,
    fallback: Option<Fallback>,
}

impl Reader {
    /// One whole independent read.
    ///
    /// Errors: those of the engines. A wish to stop is no error: `stopped` is set.
    pub fn trial(&self) -> Result<Measured, Error> {
        let mut measured = match self.job.limit {
            Limit::Blocks => self.read_blocks(self.blocks_in_range(), None)?,
            Limit::Duration(ns) => self.read_blocks(self.blocks_in_range(), Some(ns))?,
            Limit::MinTime(ns) => self.read_for(ns)?,
        };
        self.audit_caching(&mut measured);
        if measured.bytes > 0 && measured.elapsed_ns < SHORT_RUN_NS {
            let text = "the read took less than 100 µs: starting it weighs as much as reading";
            measured.warn(warning::SHORT_RUN, text);
        }
        Ok(measured)
    }

    /// What the harness takes per block: the loop over blocks without the reads and the digest.
    ///
    /// Cost: some 20,000 rounds, less than a millisecond.
    pub fn harness_ns_per_block(&self) -> f64 {
        let (blocks, elapsed_ns) = self.harness_rounds();
        elapsed_ns as f64 / blocks.max(1) as f64
    }

    /// Blocks of the loop without the reads, and their time.
    fn harness_rounds(&self) -> (u64, u64) {
        let plan = Plan {
            start_bytes: 0,
            end_bytes: CALIBRATION_BLOCKS,
            block_bytes: 1,
            split: self.choice.tuning.split,
            lane: Lane::ONLY,
        };
        // A read that was interrupted has an overhead, too: this is not cut short.
        let mut stop = Stop::new(CancelToken::manual(), None);
        let mut seen = 0;
        let start_ns = monotonic_ns();
        let pass =
            scan::null(&[0], &plan, &mut stop, |offset, _| seen ^= std::hint::black_box(offset));
        let elapsed_ns = monotonic_ns() - start_ns;
        std::hint::black_box(seen);
        (pass.blocks, elapsed_ns)
    }

    /// Holds the page cache before and after against what the caching promises.
    fn audit_caching(&self, measured: &mut Measured) {
        let caching = self.source.caching();
        let (before, after) = (measured.cached_before_bytes, measured.cached_after_bytes);
        let grown =
            page_cache::growth_warning(caching, before, after, measured.bytes / CACHED_PART);
        warning::add_all(&mut measured.warnings, grown);
        if let Some(before) = before.filter(|&bytes| caching == Caching::Dontcache && bytes > 0) {
            let text =
                format!("{before} bytes were in the page cache already and were served from there");
            measured.warn(warning::DONTCACHE_HIT, text);
        }
    }

    /// Blocks from the start to the end of the range; one "block" without end for a stream.
    fn blocks_in_range(&self) -> u64 {
        self.end_bytes.div_ceil(self.choice.tuning.block_bytes)
    }

    /// Doubles the block count until a read takes `min_ns`.
    fn read_for(&self, min_ns: u64) -> Result<Measured, Error> {
        if self.source.kind() != Kind::Sized {
            return self.read_stream_for(min_ns);
        }
        let patience_ns = monotonic_ns() + min_ns.saturating_mul(PATIENCE);
        let mut count = 1_u64;
        loop {
            let mut measured = self.read_blocks(count, None)?;
            if measured.elapsed_ns >= min_ns || measured.stopped || measured.bytes == 0 {
                return Ok(measured);
            }
            if monotonic_ns() > patience_ns {
                let text = "clearing the cache before each pass, or waiting for a CPU, takes so much longer than reading that the time asked for is not reached";
                measured.warn(warning::SHORT_RUN, text);
                return Ok(measured);
            }
            count = count.saturating_mul(2);
        }
    }

    /// Reads on, doubling the block count, until all reads together have taken `min_ns`: a stream
    /// cannot be passed over again.
    fn read_stream_for(&self, min_ns: u64) -> Result<Measured, Error> {
        let block_bytes = self.choice.tuning.block_bytes;
        let mut total = Measured { xor32: Some(0), ..Measured::default() };
        self.set_cache_state(0, &mut total)?;
        let mut count = 1_u64;
        while total.elapsed_ns < min_ns && !total.stopped {
            let start_bytes = total.bytes;
            let end_bytes = start_bytes.saturating_add(count.saturating_mul(block_bytes));
            let range = Range { start_bytes, end_bytes, repeats: 1 };
            let digest = self.pass(range, None, &mut total)?;
            total.xor32 = total.xor32.zip(digest).map(|(all, more)| all ^ more);
            if total.bytes < end_bytes {
                break;
            }
            count = count.saturating_mul(2);
        }
        total.passes = 1;
        Ok(total)
    }

    /// Reads `count` blocks, passing over the file again and again where it is too short. Whole
    /// passes over a file that is not cleared in between follow one another without a pause.
    fn read_blocks(&self, count: u64, duration_ns: Option<u64>) -> Result<Measured, Error> {
        let blocks_in_range = self.blocks_in_range().max(1);
        let mut total = Measured::default();
        let mut left = count;
        let whole = Range { start_bytes: 0, end_bytes: self.end_bytes, repeats: 1 };
        while left > 0 && !total.stopped {
            let share = left.min(blocks_in_range);
            let repeats = match self.job.state {
                CacheStart::Cold(_) => 1,
                _ if whole.shared(&self.choice.tuning).is_some() => 1,
                _ => (left / blocks_in_range).max(1),
            };
            let end_bytes =
                share.saturating_mul(self.choice.tuning.block_bytes).min(self.end_bytes);
            let cached_before = self.set_cache_state(end_bytes, &mut total)?;
            if total.passes == 0 {
                total.cached_before_bytes = cached_before;
            }
            let is_first = total.passes == 0;
            let range = Range { start_bytes: 0, end_bytes, repeats };
            let digest = self.pass(range, duration_ns, &mut total)?;
            if is_first {
                total.xor32 = digest;
            } else if share == blocks_in_range && digest.is_some() && total.xor32 != digest {
                total.warn(warning::DIGEST_DIFFERS, DIGEST_DIFFERS);
            }
            left -= share * repeats;
            total.stopped |= left > 0 && self.job.cancel.is_cancelled();
            if self.source.kind() != Kind::Sized || end_bytes == 0 {
                break;
            }
        }
        // What was all there (in whole pages) stays there, and asking takes 5 ms for each GiB of short folios.
        let was_whole = total.cached_before_bytes.is_some_and(|bytes| bytes >= self.end_bytes);
        let may_change = !was_whole || self.source.caching() != Caching::Buffered;
        if self.source.kind() == Kind::Sized && may_change {
            let held = self.pages(self.end_bytes).held_by_workers();
            total.cached_after_bytes = held.map(|held| held.cached_bytes);
        }
        Ok(total)
    }

    /// Brings the page cache into the state asked for, and proves it. Returns the bytes of the range
    /// that are cached.
    fn set_cache_state(&self, end_bytes: u64, total: &mut Measured) -> Result<Option<u64>, Error> {
        let state = self.job.state;
        let is_cold = matches!(state, CacheStart::Cold(_));
        if self.source.kind() != Kind::Sized {
            if is_cold {
                let text = "what has no known length has no page cache that could be cleared";
                total.warn(warning::NOT_COLD, text);
            }
            return Ok(None);
        }
        // The whole file is cleared, whatever of it is read.
        let pages = self.pages(if is_cold { self.source.length_bytes() } else { end_bytes });
        let found = pages.found(state, self.source.caching())?;
        let dirty = found.and_then(|found| found.dirty_bytes).filter(|&dirty| dirty > 0);
        let goes_around = self.source.caching() == Caching::Direct;
        if let Some(dirty) = dirty.filter(|_| is_cold || goes_around) {
            let when = match is_cold {
                true => "they were written back first",
                false => "direct reads write them back first, while the clock runs",
            };
            let text = format!("{} had not reached the device yet; {when}", size_text(dirty));
            total.warn(warning::DIRTY_PAGES, text);
        }
        let held = match state {
            CacheStart::AsItIs | CacheStart::HotAlready => found,
            CacheStart::Hot | CacheStart::Cold(_) => pages.bring(state, self.job.cancel)?,
        };
        let otherwise = page_cache::start_warning(state, held, end_bytes);
        warning::add_all(&mut total.warnings, otherwise);
        Ok(held.map(|held| held.cached_bytes))
    }

    fn pages(&self, length_bytes: u64) -> Pages<'_> {
        Pages { file: self.source.file(), path: self.source.path(), length_bytes }
    }

    /// The passes over a range, by all lanes together; adds to `total`. Returns the digest of the
    /// first, unless that was cut off.
    fn pass(
        &self,
        range: Range,
        duration_ns: Option<u64>,
        total: &mut Measured,
    ) -> Result<Option<u32>, Error> {
        let mut ran = self.run_lanes(range, self.choice.tuning, duration_ns);
        // Windows that some lanes got may leave no room for the buffers of the others.
        let is_mapped =
            self.choice.tuning.engine == Engine::Mmap && self.source.kind() == Kind::Sized;
        if is_mapped
            && let Err(Error::Io(IoError::System { source, .. })) = &ran
            && source.kind() == std::io::ErrorKind::OutOfMemory
        {
            let text = "mmap left no memory for all threads; read with sync";
            total.warn(warning::MMAP_REFUSED, text);
            // Lanes that had their windows have read meanwhile: what was cold is made cold again.
            self.set_cache_state(range.end_bytes, total)?;
            let tuning = Tuning { engine: Engine::Sync, ..self.choice.tuning };
            ran = self.run_lanes(range, tuning, duration_ns);
        }
        Ok(self.add(ran?, range, total))
    }

    /// The passes over a range by all lanes.
    fn run_lanes(
        &self,
        range: Range,
        tuning: Tuning,
        duration_ns: Option<u64>,
    ) -> Result<Ran<Passes>, Error> {
        let shared = range.shared(&tuning);
        let may_find_out = self.finds_out && tuning.engine == Engine::Mmap && shared.is_some();
        let ways = may_find_out.then(|| Ways::of(tuning.threads, range.length_bytes())).flatten();
        let prepare = |_| Scanners::prepare(&self.source, &tuning, ways.is_some());
        let work = |index, lane: &mut Scanners, begun_ns| {
            let mut stop =
                Stop::new(self.job.cancel, duration_ns.map(|ns| ns.saturating_add(begun_ns)));
            let (engine, fallback) = (lane.usual.engine(), lane.fallback.take());
            let mut passes = Passes { engine, fallback, ..Passes::default() };
            let is_digested = self.job.digest == DigestKind::Xor32;
            let mut read =
                |scanner: &mut Scanner, plan: &Plan, passes: &mut Passes| -> Result<(), Error> {
                    // A wish that was seen behind the last block of a scan stopped nothing yet.
                    if passes.pass.blocks > 0 && self.job.cancel.is_cancelled() {
                        passes.pass.stopped = true;
                        return Ok(());
                    }
                    let tally = is_digested.then_some(&mut passes.tally);
                    let pass = scanner.tally(plan, &mut stop, tally)?;
                    passes.pass.bytes += pass.bytes;
                    passes.pass.blocks += pass.blocks;
                    passes.pass.stopped = pass.stopped;
                    Ok(())
                };
            if let Some(shared) = &shared {
                let mut copied_bytes = 0;
                while !passes.pass.stopped
                    && let Some(plan) = shared.take()
                {
                    let way = ways.as_ref().map_or(Way::Mapped, Ways::next);
                    let faults = || usage::thread().minor_faults;
                    let before = (passes.pass.bytes, monotonic_ns(), faults());
                    let scanner = lane.by(way);
                    read(scanner, &plan, &mut passes)?;
                    let bytes = passes.pass.bytes - before.0;
                    if let Some(ways) = &ways {
                        ways.note(
                            way,
                            bytes,
                            monotonic_ns() - before.1,
                            faults().saturating_sub(before.2),
                        );
                    }
                    copied_bytes += if scanner.engine() == Some(Engine::Sync) { bytes } else { 0 };
                }
                if copied_bytes > passes.pass.bytes / 2 {
                    passes.engine = Some(Engine::Sync);
                }
                passes.whole = u64::from(!passes.pass.stopped);
                return Ok(passes);
            }
            let plan = Plan {
                start_bytes: range.start_bytes,
                end_bytes: range.end_bytes,
                block_bytes: tuning.block_bytes,
                split: tuning.split,
                lane: Lane { index, count: tuning.threads },
            };
            for repeat in 0..range.repeats {
                let before = std::mem::take(&mut passes.tally.digest);
                read(&mut lane.usual, &plan, &mut passes)?;
                if repeat > 0 {
                    passes.differs |= !passes.pass.stopped && before != passes.tally.digest;
                    passes.tally.digest = before;
                }
                if passes.pass.stopped {
                    break;
                }
                passes.whole += 1;
            }
            Ok(passes)
        };
        let scope = match &self.bottom.disks[..] {
            [] => Scope::Process,
            disks => Scope::Machine(disks),
        };
        file_trial::run(tuning.threads, scope, Watch::NOBODY, prepare, work)
    }

    /// Adds what lanes did to `total`; returns the digest of the first pass where that is whole.
    fn add(&self, ran: Ran<Passes>, range: Range, total: &mut Measured) -> Option<u32> {
        total.elapsed_ns += ran.elapsed_ns;
        let accounts = ran.accounts.facts();
        let mut own = Facts::default();
        own.set_known(fact::DEVICE_READ_BYTES, accounts.count(PROCESS_READ_BYTES));
        for key in [DISK_READ_BYTES, DISK_READ_REQUESTS] {
            own.set_known(key, accounts.count(key));
        }
        total.accounts = Facts::merged([&total.accounts, &own].into_iter());
        let whole = ran.results.iter().map(|passes| passes.whole).min().unwrap_or(0);
        total.passes += range.repeats.min(whole + 1);
        let mut digest = Xor32::default();
        let mut zeros = Vec::new();
        for passes in ran.results {
            digest.merge(passes.tally.digest);
            total.bytes += passes.pass.bytes;
            total.blocks += passes.pass.blocks;
            total.stopped |= passes.pass.stopped;
            // That of all lanes, or of the one that could not have it.
            if total.engine.is_none() || passes.fallback.is_some() {
                total.engine = passes.engine;
            }
            if passes.differs {
                total.warn(warning::DIGEST_DIFFERS, DIGEST_DIFFERS);
            }
            if let Some(fallback) = passes.fallback {
                total.warn(fallback.code, fallback.text);
            }
            let suspected = passes.tally.zeros;
            zeros.extend((suspected.bytes > 0).then_some(suspected));
        }
        self.judge_zeros(&zeros, total);
        (whole > 0).then_some(digest.0)
    }

    /// Blocks whose words XOR to nothing are read once more, and named if they are all zero.
    fn judge_zeros(&self, lanes: &[Zeros], total: &mut Measured) {
        let suspected: u64 = lanes.iter().map(|zeros| zeros.bytes).sum();
        let is_zero = |zeros: &Zeros| {
            let mut bytes = [1; ZERO_SAMPLE_BYTES];
            let sample = &mut bytes[..zeros.length.min(ZERO_SAMPLE_BYTES)];
            self.source.sample(zeros.offset, sample) && sample.iter().all(|&byte| byte == 0)
        };
        if suspected > 0 && lanes.iter().all(is_zero) {
            let text = format!(
                "{suspected} bytes lie in blocks of zeros: thin storage and compression move them for free"
            );
            total.warn(warning::ZERO_BLOCKS, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use flatout_io::Split;
    use flatout_sys::cancel::CancelToken;

    use super::super::Job;
    use super::*;
    use crate::choice::{self, Wishes};
    use crate::file_trial::accounting::{Account, Accounts};

    #[test]
    fn an_interrupted_read_knows_its_overhead() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cancel = CancelToken::manual();
        let tuning = choice::for_writing(1, &Wishes::default()).tuning;
        let job = Job::exactly(file.path().to_owned(), &tuning, CacheStart::AsItIs, cancel);
        let reader = Reader::open(job).unwrap();
        cancel.cancel();
        assert_eq!(reader.harness_rounds().0, CALIBRATION_BLOCKS);
    }

    /// Words at the ends of shares, which two lanes bring in either way.
    #[test]
    fn a_long_file_is_whole_whatever_way_brings_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let length_bytes = (512 << 20) + 5;
        file.as_file().set_len(length_bytes).unwrap();
        let mut expected = 0;
        for place in (0..=32).flat_map(|share| [share * (16 << 20), (share + 1) * (16 << 20) - 4]) {
            let word = 0x9e37_79b9_u32.wrapping_mul(place as u32 | 1);
            if place + 4 <= length_bytes {
                file.as_file().write_all_at(&word.to_le_bytes(), place).unwrap();
                expected ^= word;
            }
        }
        let state = CacheStart::Hot;
        let tuning = choice::for_writing(1, &Wishes::default()).tuning;
        let mut job = Job::exactly(file.path().to_owned(), &tuning, state, CancelToken::manual());
        job.wishes = Wishes { threads: Some(2), ..Wishes::default() };
        let reader = Reader::open(job).unwrap();
        let measured = reader.trial().unwrap();
        assert_eq!((measured.bytes, measured.xor32), (length_bytes, Some(expected)));
        assert_eq!(measured.blocks, 513);
    }

    #[test]
    fn a_pass_that_one_lane_did_not_end_has_no_digest() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 5000]).unwrap();
        let tuning = Tuning {
            engine: Engine::Sync,
            caching: Caching::Buffered,
            block_bytes: 4096,
            depth: 1,
            threads: 2,
            split: Split::Contiguous,
        };
        let path = file.path().to_owned();
        let job = Job::exactly(path, &tuning, CacheStart::AsItIs, CancelToken::manual());
        let reader = Reader::open(job).unwrap();
        let accounts = || Accounts {
            before: Account::default(),
            worked: Account::default(),
            synced: Account::default(),
        };
        for (passes, expected) in
            [([0, 3], (1, None)), ([1, 3], (2, Some(0))), ([5, 5], (5, Some(0)))]
        {
            let lane = |whole| Passes { whole, ..Passes::default() };
            let results = passes.map(lane).to_vec();
            let ran = Ran { results, begun_ns: 0, elapsed_ns: 1, accounts: accounts() };
            let mut total = Measured::default();
            let range = Range { start_bytes: 0, end_bytes: 5000, repeats: 5 };
            let digest = reader.add(ran, range, &mut total);
            assert_eq!((total.passes, digest), expected, "{passes:?}");
        }
    }
}
