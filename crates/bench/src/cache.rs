//! The page cache: rate over block sizes and threads, hot and cold, and what clearing it does.
//!
//! The phases follow one another because each needs the last one's answer: block sweep with one
//! thread, thread sweep at the best block, block sweep at the best number of threads, and the
//! series first, again, cleared. Within a phase all rows are interleaved. Which rows there are:
//! `cache/row.rs`; how one is timed: `cache/trial.rs`; what they are held against:
//! `cache/finish.rs`.

mod finish;
mod row;
mod trial;

use std::path::PathBuf;

use flatout_io::Engine;
use flatout_measure::case::Plan;
use flatout_measure::record::{Chart, Outcome};
use flatout_measure::sampler;
use flatout_sys::cancel::CancelToken;
use flatout_sys::{affinity, page_cache};

use crate::bench::{Bench, Extent};
use crate::error::Error;
use crate::scratch::{self, Scratch};

use row::{Row, State, Test};
use trial::Site;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the test files are made.
    pub directory: PathBuf,
    /// Which rows.
    pub extent: Extent,
    /// Never write more than this.
    pub max_write_bytes: Option<u64>,
    /// Whether the system's caches are dropped before cold rows.
    pub clearing: Clearing,
    /// Seed of the data.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// How the cache is cleared before a cold row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// This file only: write back, DONTNEED, cachestat.
    File,
    /// This file, and then the caches of the whole system (drop_caches 3). Needs root.
    System,
}

/// Bytes of the hot and of the cold file.
const FULL_BYTES: u64 = 512 << 20;
const FEW_BYTES: u64 = 256 << 20;
/// Number of test files: one is kept hot, the other is cleared again and again.
const FILES: u64 = 2;

impl Options {
    /// Length of each of the two test files.
    ///
    /// Errors: no directory, no room.
    pub fn file_bytes(&self) -> Result<u64, Error> {
        let wanted = if self.extent == Extent::Full { FULL_BYTES } else { FEW_BYTES };
        let most = self.max_write_bytes.map(|most| most / FILES);
        scratch::size(&self.directory, wanted, most).map_err(|error| match error {
            Error::NoRoom(text) => Error::NoRoom(format!("{text}, for each of {FILES} test files")),
            other => other,
        })
    }

    /// Bytes that will be written.
    ///
    /// Errors: as [`Options::file_bytes`].
    pub fn write_bytes(&self) -> Result<u64, Error> {
        Ok(self.file_bytes()? * FILES)
    }
}

/// Refuses what cannot be done, before anything is written.
///
/// Errors: no directory, no room, no right to drop the system's caches.
pub fn check(options: &Options) -> Result<(), Error> {
    options.file_bytes()?;
    let forbidden = options.clearing == Clearing::System && !page_cache::may_drop_system_caches();
    if forbidden {
        let text = "--drop-caches: /proc/sys/vm/drop_caches cannot be written to; it needs root";
        return Err(Error::NoRoom(text.to_owned()));
    }
    Ok(())
}

/// Measures, and returns the rows with their ceilings.
///
/// Errors: the test files cannot be made. What goes wrong with a row is the row's.
pub fn run(options: &Options, plan: &Plan, bench: &mut Bench<'_>) -> Result<Vec<Outcome>, Error> {
    let length = options.file_bytes()?;
    let Options { directory, seed, cancel, .. } = options;
    let mut make = |seed| Scratch::make(directory, length, seed, *cancel, &mut *bench.events);
    let site = Site::new(make(*seed)?, make(seed.wrapping_add(1))?, options)?;
    let mut outcomes = Vec::new();
    let phases = if options.extent == Extent::Full { 4 } else { 1 };
    let share = Plan { budget_ns: plan.budget_ns / phases, ..plan.clone() };
    let phase = |rows: Vec<Row>, bench: &mut Bench<'_>| {
        let cases = rows.into_iter().map(|row| trial::case(row, &site)).collect();
        let mut outcomes = sampler::run(cases, &share, bench.tools());
        // Against the ceilings of the same phase, which were measured in between.
        finish::finish(&mut outcomes);
        outcomes
    };
    match options.extent {
        Extent::Few | Extent::Quick => {
            outcomes.extend(phase(row::few(options.extent, affinity::allowed_cpu_count()), bench));
        }
        Extent::Full => {
            outcomes.extend(phase(row::block_sweep(1), bench));
            let best = best_blocks(&outcomes);
            let sweep = phase(row::thread_sweep(&best, affinity::allowed_cpu_count()), bench);
            let threads = best_threads(&sweep);
            outcomes.extend(sweep);
            if threads > 1 && !cancel.is_cancelled() {
                outcomes.extend(phase(row::block_sweep(threads), bench));
            }
            outcomes.extend(phase(row::series(), bench));
        }
    }
    Ok(outcomes)
}

/// The pictures of this area.
pub fn charts() -> Vec<Chart> {
    let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
    vec![
        Chart {
            title: "Read rate by block size".to_owned(),
            id: Test::BlockSweep.id().to_owned(),
            x_parameter: "block_bytes".to_owned(),
            x_log2: true,
            line_parameters: words(&["engine", "cache_state", "threads"]),
        },
        Chart {
            title: "Read rate by threads".to_owned(),
            id: Test::ThreadSweep.id().to_owned(),
            x_parameter: "threads".to_owned(),
            x_log2: false,
            line_parameters: words(&["engine", "cache_state"]),
        },
    ]
}

/// The block size with the best hot rate, per engine.
fn best_blocks(outcomes: &[Outcome]) -> Vec<(Engine, u64)> {
    [Engine::Sync, Engine::Mmap, Engine::Uring]
        .into_iter()
        .map(|engine| {
            let best = best(outcomes, Some(engine));
            (engine, best.and_then(|row| number(row, "block_bytes")).unwrap_or(1 << 20))
        })
        .collect()
}

/// The number of threads with the best hot rate of any engine.
fn best_threads(outcomes: &[Outcome]) -> u32 {
    let threads = best(outcomes, None).and_then(|row| number(row, "threads"));
    threads.map_or(1, |threads| threads as u32)
}

fn best(outcomes: &[Outcome], engine: Option<Engine>) -> Option<&Outcome> {
    let hot = |row: &&Outcome| {
        text(row, "cache_state") == Some(State::Hot.word())
            && engine.is_none_or(|engine| text(row, "engine") == Some(&engine.to_string()))
    };
    let rate = |row: &Outcome| row.median.unwrap_or(0.0);
    outcomes.iter().filter(hot).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

fn number(outcome: &Outcome, parameter: &str) -> Option<u64> {
    outcome.parameters.get(parameter)?.as_u64()
}

fn text<'a>(outcome: &'a Outcome, parameter: &str) -> Option<&'a str> {
    outcome.parameters.get(parameter)?.as_str()
}

#[cfg(test)]
mod tests {
    use flatout_measure::clock::SystemClock;
    use flatout_measure::guard::FakeWitness;
    use flatout_measure::record::Status;

    use super::*;

    #[test]
    fn a_short_run_measures_every_row_it_names() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            directory: directory.path().to_owned(),
            extent: Extent::Few,
            max_write_bytes: Some(8 << 20),
            clearing: Clearing::File,
            seed: 1,
            cancel: CancelToken::manual(),
        };
        let plan =
            Plan { min_trials: 1, max_trials: 1, budget_ns: u64::MAX / 4, ..Plan::default() };
        let mut witness = FakeWitness::quiet();
        let mut events = |_| {};
        let mut bench = Bench {
            clock: &SystemClock,
            witness: &mut witness,
            events: &mut events,
            cancelled: &|| false,
        };
        let outcomes = run(&options, &plan, &mut bench).unwrap();
        assert!(outcomes.len() >= 16);
        for outcome in &outcomes {
            let good = outcome.median.is_some_and(|rate| rate > 0.0)
                || outcome.status == Status::Unsupported;
            assert!(good, "{outcome:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
