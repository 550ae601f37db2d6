//! How a row of the page cache area is timed: its cache state is set and proved, then it is read
//! for a while, by the same reader that `flatout read` uses.

use flatout_measure::case::{Case, Sample, TrialError};
use flatout_measure::record::Warning;
use flatout_measure::warning;
use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::generator::fill_random;
use flatout_sys::xor;

use super::Options;
use super::row::{Row, State, Test};
use crate::choice::{REFUSALS, Wishes};
use crate::crew;
use crate::error::Error;
use crate::fact;
use crate::read::{CacheStart, DigestKind, Job, Limit, Measured, Reader};
use crate::residency;
use crate::scratch::Scratch;

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
pub(super) struct Site {
    hot: Scratch,
    cold: Scratch,
    memory: AlignedBuffer,
    options: Options,
}

impl Site {
    pub(super) fn new(hot: Scratch, cold: Scratch, options: &Options) -> Result<Self, Error> {
        let length = MEMORY_BYTES.min(hot.length_bytes()) as usize;
        let mut memory = AlignedBuffer::new(length)
            .map_err(flatout_io::Error::system("get memory to compare with", &options.directory))?;
        fill_random(memory.as_mut_slice(), options.seed, 0);
        Ok(Self { hot, cold, memory, options: options.clone() })
    }
}

/// The row as a case for the sampler.
pub(super) fn case(row: Row, site: &Site) -> Case<'_, Row> {
    Case {
        row,
        trial: Box::new(move |_seed| {
            let measured = match row.test {
                Test::MemoryRead => return memory_read(&row, site),
                Test::BlockSweep | Test::ThreadSweep | Test::DeviceRead => read(&row, site)?,
                Test::First => series(&row, site, 0, CacheStart::Cold)?,
                Test::Again => series(&row, site, 1, CacheStart::AsItIs)?,
                Test::Third => series(&row, site, 2, CacheStart::AsItIs)?,
                Test::Cleared => series(&row, site, 2, CacheStart::Cold)?,
            };
            if site.options.cancel.is_cancelled() {
                return Err(TrialError::Interrupted);
            }
            Ok(sample(&row, measured))
        }),
    }
}

fn job(row: &Row, file: &Scratch, site: &Site, limit: Limit, state: CacheStart) -> Job {
    let tuning = row.tuning;
    Job {
        path: file.path(),
        wishes: Wishes::exactly(&tuning),
        block_count: None,
        limit,
        state,
        digest: DigestKind::Xor32,
        profile: None,
        cancel: site.options.cancel,
    }
}

/// Reads for a while, from the hot file or from the cleared one.
fn read(row: &Row, site: &Site) -> Result<Measured, TrialError> {
    let hot = row.state == State::Hot;
    if hot {
        warm(&site.hot, site)?;
    } else {
        clear(site)?;
    }
    let (file, ns, state) = match hot {
        true => (&site.hot, HOT_TRIAL_NS, CacheStart::AsItIs),
        false => (&site.cold, COLD_TRIAL_NS, CacheStart::Cold),
    };
    let reader = Reader::open(job(row, file, site, Limit::Duration { ns }, state))?;
    measure(row, &reader, file.length_bytes())
}

/// One pass of the series, after as many others as it takes.
fn series(row: &Row, site: &Site, earlier: u32, state: CacheStart) -> Result<Measured, TrialError> {
    clear(site)?;
    let block_count = Some(SERIES_BYTES.min(site.cold.length_bytes()) / row.tuning.block_bytes);
    let job = |state| {
        let job = job(row, &site.cold, site, Limit::Blocks, state);
        Reader::open(Job { block_count, ..job })
    };
    for pass in 0..earlier {
        let state = if pass == 0 { CacheStart::Cold } else { CacheStart::AsItIs };
        job(state)?.trial()?;
    }
    if earlier > 0 && state == CacheStart::Cold {
        clear(site)?;
    }
    measure(row, &job(state)?, SERIES_BYTES.min(site.cold.length_bytes()))
}

/// Drops the caches of the whole system where that is asked for. The file itself is cleared by
/// its reader.
fn clear(site: &Site) -> Result<(), TrialError> {
    residency::clear_system(site.options.clearing)
        .map_err(|error| TrialError::Failed(format!("cannot drop the system's caches: {error}")))
}

/// Brings the whole file into the page cache unless it is there. Outside of any timed region.
fn warm(file: &Scratch, site: &Site) -> Result<(), TrialError> {
    residency::warm(file.file(), file.length_bytes(), site.options.cancel).map_err(|error| {
        let text = "cannot bring the test file into the page cache";
        TrialError::Failed(format!("{text}: {error}"))
    })
}

/// One trial of the row's reader. A row that names an engine or a caching that was not to be had
/// is no row: what was measured instead has rows of its own.
fn measure(row: &Row, reader: &Reader, length_bytes: u64) -> Result<Measured, TrialError> {
    let mut measured = reader.trial()?;
    for doubt in reader.warnings() {
        warning::add(&mut measured.warnings, doubt.clone());
    }
    let refused = |code: &&Warning| REFUSALS.contains(&code.code.as_str());
    if let Some(refusal) = measured.warnings.iter().find(refused) {
        return Err(TrialError::Unsupported(refusal.text.clone()));
    }
    let cached = measured.cached_before_bytes;
    match row.state {
        State::Cold if warning::has(&measured.warnings, warning::MEMORY_FILESYSTEM) => {
            let text = "files of this filesystem live in memory: nothing here is ever cold";
            return Err(TrialError::Unsupported(text.to_owned()));
        }
        State::Hot if cached.is_some_and(|bytes| bytes < length_bytes) => {
            let text = "the file did not stay in the page cache: memory is short";
            warning::add(&mut measured.warnings, Warning::new(warning::NOT_HOT, text));
        }
        State::Hot | State::Cold | State::Apart => {}
    }
    Ok(measured)
}

fn sample(row: &Row, measured: Measured) -> Sample {
    let mut sample = Reader::sample(&measured);
    sample.facts.set(fact::BYTES, measured.bytes);
    sample.facts.set_known(fact::DEVICE_READ_BYTES, measured.device_read_bytes);
    let cached = measured.cached_before_bytes.filter(|_| row.state == State::Cold);
    sample.facts.set_known(fact::CACHED_BEFORE_BYTES, cached);
    sample
}

/// The same XOR over anonymous memory, by the same number of threads: what a read of the page
/// cache could reach if the kernel cost nothing.
fn memory_read(row: &Row, site: &Site) -> Result<Sample, TrialError> {
    let threads = row.tuning.threads;
    let blocks: Vec<&[u8]> = site.memory.as_slice().chunks(MEMORY_BLOCK_BYTES).collect();
    let crewed = crew::run(
        threads,
        |_| Ok::<_, TrialError>(()),
        |index, ()| {
            let own = blocks.iter().skip(index as usize).step_by(threads as usize);
            Ok(own.fold(0, |sum, block| sum ^ xor::xor32(block)))
        },
    );
    let mut sum = 0;
    for part in crewed.results {
        sum ^= part?;
    }
    std::hint::black_box(sum);
    let mut sample = Sample {
        amount: site.memory.len() as f64,
        elapsed_ns: crewed.elapsed_ns,
        ..Sample::default()
    };
    sample.facts.set(fact::BYTES, site.memory.len());
    Ok(sample)
}
