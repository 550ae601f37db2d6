//! The page cache: rate over block sizes and threads, hot and cold, and what clearing it does.
//!
//! The phases follow one another because each needs the last one's answer: block sweep with one
//! thread, thread sweep at the best block, block sweep at the best number of threads, and the
//! series first, again, cleared. Within a phase all rows are interleaved. Which rows there are:
//! `cache/row.rs`; how one is timed: `cache/trial.rs`; what they are held against:
//! `cache/bound.rs`.

mod bound;
mod row;
mod trial;

use std::path::PathBuf;

use clap::Args;
use flatout_io::{Engine, Tuning};
use flatout_measure::case::record;
use flatout_measure::{Chart, EVIDENCE, Evidence, Measured, Sampler, Warning, size_text, warning};
use flatout_sys::{Nature, affinity};

use crate::file_trial::evidence;
use crate::scratch::{self, Wanted};
use crate::tried::Tried;
use crate::{Area, Error, Estimate, Extent, Found, Run, Scratch, Seconds, fact};

pub use crate::file_trial::page_cache::Clearing;
use row::{Row, State, Test};
use trial::TestFiles;

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// Where the test files are made.
    #[arg(from_global)]
    pub directory: PathBuf,
    /// What all areas of the run have in common.
    #[arg(skip)]
    run: Run,
    /// Most bytes of a test file that are likely made in time.
    #[arg(skip)]
    in_time_bytes: Option<u64>,
    /// Whether the system's caches are dropped before cold rows.
    #[arg(from_global, id = "drop_caches")]
    pub clearing: Clearing,
}

/// Bytes of the hot and of the cold file.
const FULL_BYTES: u64 = 512 << 20;
const FEW_BYTES: u64 = 256 << 20;
/// Number of test files: one is kept hot, the other is cleared again and again.
const FILES: u64 = 2;

/// Part of the time that making both files may take.
const MAKING_PART: u64 = 3;

/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 12, few: 32, quick: 35, full: 240 };

impl Options {
    fn wanted_bytes(&self) -> u64 {
        if self.run.extent == Extent::Full { FULL_BYTES } else { FEW_BYTES }
    }

    /// Length of each of the two test files, and what limits it where it is less than is wanted.
    ///
    /// Errors: no directory, no room.
    fn file_bytes(&self) -> Result<(u64, Option<String>), Error> {
        let wanted = self.wanted_bytes().min(self.in_time_bytes.unwrap_or(u64::MAX));
        let most = self.run.max_write_bytes.map(|most| most / FILES);
        scratch::size(&self.directory, wanted, most).map_err(|error| match error {
            Error::NoRoom(text) => Error::NoRoom(format!("{text}, for each of {FILES} test files")),
            other => other,
        })
    }
}

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        let usual = SECONDS.estimate(run);
        let each_ns = usual.usual_ns / MAKING_PART / FILES;
        // So that what is announced is written, on a busy machine, too.
        let is_timed = run.time_ns.is_some() || run.rounds.is_none();
        self.in_time_bytes =
            is_timed.then(|| Tried::nothing().surely_made_bytes(each_ns).max(scratch::LEAST_BYTES));
        let write_bytes = self.file_bytes()?.0 * FILES;
        self.clearing.check()?;
        let place = Some(self.directory.clone());
        Ok(Estimate { place, write_bytes, most_write_bytes: write_bytes, ..usual })
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let outcomes = record(run(self, sampler)?);
        Ok(Found { outcomes, charts: charts(), ..Found::default() })
    }
}

/// Measures, and returns the rows with their bounds.
///
/// Errors: the test files cannot be made. What goes wrong with a row is the row's.
fn run(options: &Options, sampler: &mut Sampler<'_>) -> Result<Vec<Measured<Row>>, Error> {
    let (planned_bytes, limit) = options.file_bytes()?;
    let mut length_bytes = planned_bytes;
    let (directory, Run { seed, cancel, .. }) = (&options.directory, &options.run);
    let ends_ns = [2 * MAKING_PART, MAKING_PART].map(|parts| sampler.part_ends_ns(parts));
    let mut make = |seed, ends_ns| {
        let (chunk_bytes, cancel) = (scratch::CHUNK_BYTES, *cancel);
        let wanted = Wanted { length_bytes, seed, chunk_bytes, ends_ns, cancel };
        let file = Scratch::make(directory, wanted, &mut *sampler.events)?;
        length_bytes = file.length_bytes();
        Ok::<_, Error>(file)
    };
    let (hot, cold) = (make(*seed, ends_ns[0])?, make(seed.wrapping_add(1), ends_ns[1])?);
    let limit = limit.filter(|_| length_bytes == planned_bytes);
    let reduced = reduced(options.wanted_bytes(), length_bytes, limit.as_deref());
    let files = TestFiles::new(hot, cold, options)?;
    let bottom = files.bottom();
    // One of so many that are left.
    let mut phase = |rows: Vec<Row>, parts: u64| {
        let cases = rows.into_iter().map(|row| trial::case(row, &files)).collect();
        let mut rows = sampler.within(sampler.left_ns() / parts).run(cases);
        rows.iter_mut().for_each(|row| prove(row, bottom.ground));
        // Against the bounds of the same phase, which were measured in between.
        bound::apply(&mut rows, &bottom.limits);
        for row in &mut rows {
            warning::add_all(&mut row.outcome.warnings, reduced.clone());
        }
        rows
    };
    let cpus = affinity::allowed_cpu_count();
    if options.run.extent != Extent::Full {
        return Ok(phase(row::few(options.run.extent, cpus), 1));
    }
    let mut rows = phase(row::block_sweep(1), 4);
    let block = |engine| best(&rows, Some(engine)).map_or(1 << 20, |tuning| tuning.block_bytes);
    let engines = [Engine::Sync, Engine::Mmap, Engine::Uring];
    let sweep = phase(row::thread_sweep(&engines.map(|engine| (engine, block(engine))), cpus), 3);
    let threads = best(&sweep, None).map_or(1, |tuning| tuning.threads);
    rows.extend(sweep);
    if threads > 1 && !cancel.is_cancelled() {
        rows.extend(phase(row::block_sweep(threads), 2));
    }
    rows.extend(phase(row::series(), 1));
    Ok(rows)
}

/// Says what shows that the bytes of a row came from where it has them.
fn prove(measured: &mut Measured<Row>, ground: Option<Nature>) {
    match measured.row.state {
        // Each trial was held against the digest of the whole.
        State::Apart if measured.outcome.median.is_some() => {
            let evidence = Evidence::counted(&measured.facts, fact::BYTES);
            measured.facts.set(EVIDENCE, evidence);
        }
        State::Apart => {}
        state => evidence::prove_read(measured, state == State::Hot, ground),
    }
}

/// What every row says of files that are shorter than they should be: for want of what limits them, or of
/// time.
fn reduced(wanted_bytes: u64, length_bytes: u64, limit: Option<&str>) -> Option<Warning> {
    let text = format!(
        "the test files have {} instead of {} ({})",
        size_text(length_bytes),
        size_text(wanted_bytes),
        limit.unwrap_or("the time; --max-time allows more")
    );
    (length_bytes < wanted_bytes).then(|| Warning::new(warning::SIZE_REDUCED, text))
}

/// The pictures of this area.
fn charts() -> Vec<Chart> {
    let (blocks, threads) = ("Read rate by block size", "Read rate by threads");
    let lines = ["engine", "cache_state", "threads"];
    vec![
        Chart::new(blocks, Test::BlockSweep.id(), "block_bytes", &lines).by_powers_of_two(),
        Chart::new(threads, Test::ThreadSweep.id(), "threads", &lines[..2]),
    ]
}

/// The settings with the best hot rate, of one engine or of any.
fn best(rows: &[Measured<Row>], engine: Option<Engine>) -> Option<Tuning> {
    let is_hot = |measured: &&Measured<Row>| {
        let Row { state, tuning, .. } = measured.row;
        state == State::Hot && engine.is_none_or(|engine| engine == tuning.engine)
    };
    let rate = |measured: &Measured<Row>| measured.outcome.median.unwrap_or(0.0);
    let best = rows.iter().filter(is_hot).max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    Some(best.row.tuning)
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::Plan;
    use flatout_measure::clock::SystemClock;
    use flatout_measure::evidence::Happened;
    use flatout_measure::fact::Facts;
    use flatout_measure::guard::FakeWitness;
    use flatout_measure::record::{Outcome, Status};

    use flatout_sys::cancel::CancelToken;

    use super::*;
    use crate::file_trial::accounting::DISK_READ_BYTES;

    /// As read in a control group of 128 MiB, with a file of 256 MiB.
    #[test]
    fn hot_rows_that_were_fetched_from_storage_say_so() {
        let measured = |state, fetched: u64| {
            let row = Row::new(Test::BlockSweep, state, Engine::Sync, 1 << 20, 1);
            let facts = Facts::default().with(fact::BYTES, 1000_u64);
            let facts = facts.with(fact::DEVICE_READ_BYTES, fetched);
            let facts = facts.with(DISK_READ_BYTES, fetched);
            let outcome = Outcome { median: Some(1e9), ..Outcome::default() };
            let mut measured = Measured { row, outcome, facts, further: Vec::new() };
            prove(&mut measured, Some(Nature::Disk));
            measured.record().next().unwrap()
        };
        let happened = |row: &Outcome| Evidence::of(row).unwrap().happened;
        let (hot, cold) = (measured(State::Hot, 0), measured(State::Hot, 950));
        assert_eq!((happened(&hot), hot.warnings.len()), (Happened::Yes, 0));
        assert_eq!(happened(&cold), Happened::No);
        assert_eq!(cold.warnings[0].code, warning::NOT_HOT);
        assert_eq!(happened(&measured(State::Cold, 1000)), Happened::Yes);
        let served = measured(State::Cold, 100);
        assert_eq!(served.warnings[0].code, warning::NOT_FROM_DEVICE);
        assert_eq!(happened(&measured(State::Apart, 0)), Happened::Yes);
    }

    #[test]
    fn a_short_run_measures_every_row_it_names() {
        let directory = tempfile::tempdir().unwrap();
        let common = Run {
            extent: Extent::Few,
            max_write_bytes: Some(8 << 20),
            seed: 1,
            cancel: CancelToken::manual(),
            ..Run::default()
        };
        let options = Options {
            directory: directory.path().to_owned(),
            run: common,
            in_time_bytes: None,
            clearing: Clearing::File,
        };
        let plan =
            Plan { min_trials: 1, max_trials: 1, budget_ns: u64::MAX / 4, ..Plan::default() };
        let mut witness = FakeWitness::quiet();
        let mut events = |_| {};
        let mut sampler = Sampler {
            plan: plan.clone(),
            clock: &SystemClock,
            witness: &mut witness,
            events: &mut events,
            cancelled: &|| false,
        };
        let outcomes = record(run(&options, &mut sampler).unwrap());
        assert!(outcomes.len() >= 16);
        for outcome in &outcomes {
            let good = outcome.median.is_some_and(|rate| rate > 0.0)
                || outcome.status == Status::Unsupported;
            assert!(good, "{outcome:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
