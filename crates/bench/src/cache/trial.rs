//! How a row of the page cache area is timed: its cache state is set and proved, then it is read
//! for a while, by the same reader that `flatout read` uses.

use flatout_measure::{Case, Facts, Sample, TrialError, warning};
use flatout_sys::{AlignedBuffer, CancelToken, affinity, fill_random, xor};

use super::Options;
use super::row::{Row, State, Test};
use crate::file_trial::evidence::Bottom;
use crate::read::{Job, Limit, Reader};
use crate::{CacheStart, Clearing, Error, Scratch, fact, go_on, limits, workers};

/// Longest hot trial. Long enough for a million 1-byte reads, short enough for many rows.
const HOT_TRIAL_NS: u64 = 25_000_000;
/// Longest cold trial.
const COLD_TRIAL_NS: u64 = 60_000_000;
/// Bytes that a pass of the series reads.
const SERIES_BYTES: u64 = 64 << 20;
/// Bytes of anonymous memory behind the ceiling of hot rows.
const MEMORY_BYTES: u64 = 256 << 20;
/// Bytes that a thread takes at a time from memory.
const MEMORY_BLOCK_BYTES: usize = 1 << 20;

/// The test files and the memory that rows work on.
pub(super) struct TestFiles {
    hot: Scratch,
    cold: Scratch,
    memory: AlignedBuffer,
    /// The digest of the memory.
    digest: u32,
    clearing: Clearing,
    cancel: CancelToken,
}

impl TestFiles {
    pub(super) fn new(hot: Scratch, cold: Scratch, options: &Options) -> Result<Self, Error> {
        let length = MEMORY_BYTES.min(hot.length_bytes()) as usize;
        let mut memory = AlignedBuffer::new(length)
            .map_err(flatout_io::Error::system("get memory to compare with", &options.directory))?;
        fill_random(memory.as_mut_slice(), options.run.seed, 0);
        let digest = xor::xor32(memory.as_slice());
        Ok(Self {
            hot,
            cold,
            memory,
            digest,
            clearing: options.clearing,
            cancel: options.run.cancel,
        })
    }

    /// What the files lie in at the bottom.
    pub(super) fn bottom(&self) -> Bottom {
        Bottom::of(self.cold.file(), &self.cold.path())
    }
}

/// The row as a case for the sampler.
pub(super) fn case(row: Row, files: &TestFiles) -> Case<'_, Row> {
    let (cold, hot) = (CacheStart::Cold(files.clearing), CacheStart::HotAlready);
    Case {
        row,
        trial: Box::new(move |_seed| {
            limits::check_trial(&row.tuning)?;
            let sample = match row.test {
                Test::MemoryRead => return memory_read(&row, files),
                Test::BlockSweep | Test::ThreadSweep | Test::DeviceRead => read(&row, files),
                Test::First => series(&row, files, &[], cold),
                Test::Again => series(&row, files, &[cold], hot),
                Test::Third => series(&row, files, &[cold, hot], hot),
                Test::Cleared => series(&row, files, &[cold, hot], cold),
            };
            go_on(files.cancel)?;
            let sample = sample?;
            let in_memory = warning::has(&sample.warnings, warning::MEMORY_FILESYSTEM);
            if row.state == State::Cold && in_memory {
                let text = "files of this filesystem live in memory: nothing here is ever cold";
                return Err(TrialError::Unsupported(text.to_owned()));
            }
            Ok(sample)
        }),
    }
}

/// Reads for a while, from the hot file or from the cleared one.
fn read(row: &Row, files: &TestFiles) -> Result<Sample, TrialError> {
    let (file, ns, state) = match row.state {
        State::Hot => (&files.hot, HOT_TRIAL_NS, CacheStart::Hot),
        _ => (&files.cold, COLD_TRIAL_NS, CacheStart::Cold(files.clearing)),
    };
    let job = Job::exactly(file.path(), &row.tuning, state, files.cancel);
    Job { limit: Limit::Duration(ns), ..job }.sample()
}

/// One pass of the series, after others.
fn series(
    row: &Row,
    files: &TestFiles,
    earlier: &[CacheStart],
    state: CacheStart,
) -> Result<Sample, TrialError> {
    let bytes = SERIES_BYTES.min(files.cold.length_bytes());
    let block_count = Some(bytes / row.tuning.block_bytes);
    let job = |state| {
        let job = Job::exactly(files.cold.path(), &row.tuning, state, files.cancel);
        Job { block_count, ..job }
    };
    for &state in earlier {
        Reader::open(job(state))?.trial()?;
    }
    job(state).sample()
}

/// The same XOR over anonymous memory, by the same number of threads: what a read of the page
/// cache could reach if the kernel cost nothing.
fn memory_read(row: &Row, files: &TestFiles) -> Result<Sample, TrialError> {
    let threads = row.tuning.threads;
    let blocks: Vec<&[u8]> = files.memory.as_slice().chunks(MEMORY_BLOCK_BYTES).collect();
    let (sums, elapsed_ns) = workers::each(threads, |index| {
        let own = blocks.iter().skip(index as usize).step_by(threads as usize);
        let pieces = own.flat_map(|block| block.chunks(row.tuning.block_bytes as usize));
        pieces.fold(0, |sum, piece| sum ^ xor::xor32(piece))
    })?;
    if sums.into_iter().fold(0, |all, sum| all ^ sum) != files.digest {
        return Err(TrialError::Failed("the memory was not read: its digest differs".to_owned()));
    }
    let (amount, facts) = (files.memory.as_slice().len() as f64, Facts::default());
    let facts = facts.with(fact::BYTES, files.memory.as_slice().len());
    let crowd = workers::oversubscribed(threads, affinity::allowed_cpu_count());
    let warnings = crowd.into_iter().collect();
    Ok(Sample { amount, elapsed_ns, facts, warnings, ..Sample::default() })
}
