//! The disk: throughput, operations per second and latency, with proof of what reached the device.
//!
//! What is measured: `disk/place.rs`. Which rows there are: `disk/plan.rs`. How one is timed:
//! `disk/trial.rs`, whose threads run `disk/lane.rs`. What the figures mean: `disk/finish.rs` and
//! `disk/bound.rs`. Names and attributes have rows of another kind: `disk/metadata.rs`.

mod bound;
mod check;
pub(crate) mod duel;
mod estimate;
mod fact;
mod finish;
mod fio;
mod forecast;
mod lane;
pub(crate) mod metadata;
mod overhead;
mod pass;
mod pattern;
mod place;
mod plan;
mod row;
mod sample;
mod storage;
mod test_file;
mod trial;

use clap::{ArgAction, Args};
use flatout_io::{Caching, Engine, Split};
use flatout_measure::case::record;
use flatout_measure::{Chart, Outcome, Plan, Sampler, Status, Warning, warning};
use flatout_sys::ring::MAX_DEPTH;

use crate::file_trial::evidence;
use crate::option::{
    CACHING, DIRECT, MAX_BLOCK_BYTES, MAX_BYTES, SPLIT, SYNC, Wish, count_to, distinct, each_once,
    flag, rate, size_to, time, words,
};
use crate::scratch::{CHUNK_BYTES, Wanted};
use crate::workers::MAX_THREADS;
use crate::write::Sync;
use crate::{Area, Clearing, Error, Estimate, Found, Run, Scratch};

use pattern::patterns;
use row::Row;
use test_file::TestFile;

use estimate::{MAKING_PART, Planned};
pub use pattern::Pattern;
pub use place::Overwriting;
use place::{Kind, Place};

/// The area: what the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// What all areas of the run have in common.
    #[arg(skip)]
    run: Run,
    /// What will be done of it.
    #[arg(skip)]
    planned: Option<Planned>,
    /// What the user named.
    #[command(flatten)]
    pub selection: Selection,
    /// Length of the test file; of a FILE or device how much of it is used [default: 1 GiB, less
    /// where that is more than a tenth of the free space; of the matrix 5 GB; all of a FILE or
    /// device]
    #[arg(id = "bytes", long = "size", alias = "bytes", value_name = "SIZE",
        value_parser = size_to(MAX_BYTES))]
    pub bytes: Option<u64>,
    /// Write over the FILE given: its content is lost
    #[arg(long = "overwrite", action = ArgAction::SetTrue,
        value_parser = flag([Overwriting::Refused, Overwriting::Allowed]))]
    pub overwriting: Overwriting,
    /// Whether the system's caches are dropped before each trial.
    #[arg(from_global, id = "drop_caches")]
    pub clearing: Clearing,
}

/// What the user fixed; what is empty or none keeps its default.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[group(skip)]
pub struct Selection {
    /// What to do to the file, several separated by commas: read, write, copy, randread, randwrite,
    /// randrw, readwrite (rw), backward-read, strided-read, reread, cold-blocks, metadata [default:
    /// a short plan of throughput, operations per second and latency]
    #[arg(long = "rw", aliases = ["pattern", "readwrite"], value_name = "PATTERN,…", value_delimiter = ',',
        value_parser = patterns(), hide_possible_values = true)]
    pub patterns: Vec<Pattern>,
    /// Bytes per request; several make a sweep [default: 1M sequential, 4K random]
    #[arg(id = "block_size", short = 'b', long = "block-size", alias = "bs", value_name = "SIZE,…",
        value_parser = size_to(MAX_BLOCK_BYTES), value_delimiter = ',')]
    pub block_bytes: Vec<u64>,
    /// Threads; several make a sweep [default: 1]
    #[arg(short = 'j', long, alias = "numjobs", value_name = "N,…", value_delimiter = ',',
        value_parser = count_to(MAX_THREADS))]
    pub threads: Vec<u32>,
    /// The whole grid: see below
    #[arg(long)]
    pub matrix: bool,
    /// Requests in flight per thread; several make a sweep [default: 16 sequential, 64 random; of
    /// the matrix 1]
    #[arg(
        id = "depth",
        long = "iodepth",
        alias = "depth",
        value_name = "N,…",
        value_delimiter = ',',
        value_parser = count_to(MAX_DEPTH)
    )]
    pub depths: Vec<u32>,
    /// How the kernel is asked: sync (pread, pwrite) or uring [default: uring]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Engine>,
    /// How the page cache takes part [default: direct]
    #[arg(long, value_name = "HOW", value_parser = words(CACHING), default_value = "auto",
        hide_default_value = true)]
    pub caching: Wish<Caching>,
    /// Around the page cache (O_DIRECT), the same as --caching direct; --direct=0: through it
    #[arg(long, value_name = "0|1", value_parser = words(DIRECT), num_args = 0..=1,
        require_equals = true, default_missing_value = "1", hide_possible_values = true,
        conflicts_with = "caching")]
    pub direct: Option<Caching>,
    /// Which blocks a thread gets in sequential patterns [default: contiguous]
    #[arg(long, value_name = "HOW", value_parser = words(SPLIT))]
    pub split: Option<Split>,
    /// When writes must be durable: end (synced once after each trial), each (each write by itself,
    /// as with O_DSYNC) [default: end]
    #[arg(long, value_name = "WHEN", value_parser = words(SYNC), hide_possible_values = true)]
    pub sync: Option<Sync>,
    /// Time of each trial [default: 500ms; of the matrix 400ms; 200ms with --quick]. Given, trials
    /// that write are limited by it and --max-write alone [default then: 100 GB]
    #[arg(id = "time", short = 't', long, aliases = ["runtime", "duration"], value_name = "TIME",
        value_parser = time)]
    pub runtime_ns: Option<u64>,
    /// Operations per second, all threads together: an open loop, whose latencies count from the
    /// intended start
    #[arg(id = "rate", long, value_name = "N", value_parser = rate)]
    pub rate_per_s: Option<f64>,
    /// Reads of a hundred operations of randrw and readwrite [default: 70]
    #[arg(long = "rwmixread", alias = "mix", value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(..=100))]
    pub read_percent: Option<u8>,
}

impl Selection {
    /// Each value once.
    fn each_once(&mut self) {
        self.patterns = distinct(std::mem::take(&mut self.patterns), Pattern::eq);
        each_once(&mut self.block_bytes);
        each_once(&mut self.threads);
        each_once(&mut self.depths);
    }
}

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        self.selection.each_once();
        self.selection.caching = self.selection.direct.or(self.selection.caching);
        Ok(self.planned.insert(estimate::plan(self)?).announced.clone())
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let planned = self.planned.take().map_or_else(|| estimate::plan(self), Ok)?;
        run(self, &planned, sampler)
    }
}

/// What all trials of a run obey.
#[derive(Debug, Clone)]
struct Terms {
    /// Time of a trial.
    runtime_ns: u64,
    /// Bytes that a trial writes at most.
    trial_write_bytes: u64,
    /// Bytes that the run writes at most.
    most_write_bytes: u64,
    clearing: Clearing,
}

/// Measures, and returns the rows with their bounds. `estimate` is what was made of the same
/// options, and no more is written than it says.
///
/// Errors: the place cannot be measured, or the test file cannot be made. What goes wrong with a
/// row is the row's.
fn run(options: &Options, estimate: &Planned, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
    let place = Place::find(&options.run.place, options.overwriting)?;
    let terms = &estimate.terms;
    let scratch = match place.kind {
        Kind::Directory => {
            let wanted = Wanted {
                length_bytes: estimate.file_bytes,
                seed: options.run.seed,
                chunk_bytes: CHUNK_BYTES,
                ends_ns: sampler.part_ends_ns(MAKING_PART),
                cancel: options.run.cancel,
            };
            Some(Scratch::make(&place.path, wanted, &mut *sampler.events)?)
        }
        Kind::File | Kind::Device => None,
    };
    let made_bytes = scratch.as_ref().map_or(0, Scratch::length_bytes);
    let reduced_from = estimate.reduced_from(made_bytes);
    let left_bytes = estimate.trials_write_bytes;
    let file = TestFile::new(&place, scratch.as_ref(), left_bytes, reduced_from, options)?;
    // Rows that could not have what they asked for may have become the same.
    let fitted = plan::rows(options.run.extent, &options.selection, &place).into_iter();
    let rows = plan::each_once(fitted.map(|row| file.fit(row)));
    let names_ns = estimate.metadata_part_ns(sampler.left_ns());
    // What names and attributes leave of their time is that of the rows, where it can be said beforehand how
    // much that is: storage may be so slow that nothing is left.
    let early = match place.is_in_memory {
        true => Some(measure_names(options, estimate, &mut sampler.within(names_ns))?),
        false => None,
    };
    let later_ns = if early.is_some() { 0 } else { names_ns };
    let whole_ns = sampler.left_ns().saturating_sub(later_ns);
    let max_trials = sampler.plan.max_trials.min(estimate.max_trials);
    let phases = phases(rows, test_file::copies_on_write(&file.chain.layers));
    let all = phases.iter().flatten().count().max(1) as u64;
    let mut measured = Vec::new();
    for rows in &phases {
        let budget_ns = whole_ns / all * rows.len() as u64;
        let plan = Plan { budget_ns, max_trials, ..sampler.plan.clone() };
        let cases = rows.iter().map(|row| trial::case(row, &file, terms)).collect();
        measured.extend(sampler.with(plan).run(cases));
    }
    finish::apply(&mut measured, &file, terms);
    let mut outcomes = record(measured);
    let (storage, unsynced) = (storage::describe(&file), file.chain.unsynced());
    let is_synchronous = file.chain.is_synchronous();
    drop((file, scratch));
    let left_ns = sampler.left_ns();
    outcomes.extend(match early {
        Some(names) => names,
        None => measure_names(options, estimate, &mut sampler.within(left_ns))?,
    });
    if is_synchronous {
        let is_kept = |warning: &Warning| warning.code != warning::NOT_DURABLE;
        outcomes.iter_mut().for_each(|outcome| outcome.warnings.retain(is_kept));
    }
    unsynced.iter().for_each(|option| doubt_durable(&mut outcomes, option));
    let charts = charts(&outcomes);
    Ok(Found { charts, outcomes, storage: Some(storage), ..Found::default() })
}

/// The rows of names and attributes; or one that says why there are none, though there should be.
fn measure_names(
    options: &Options,
    estimate: &Planned,
    sampler: &mut Sampler<'_>,
) -> Result<Vec<Outcome>, Error> {
    let fitted = match &estimate.metadata {
        Some(Ok(_)) if options.run.cancel.is_cancelled() => return Ok(Vec::new()),
        None => return Ok(Vec::new()),
        // Others may have filled the filesystem since, or it gives room back late.
        Some(Ok(metadata)) => metadata::fitted(metadata, None),
        Some(Err(why)) => Err(Error::NoRoom(why.clone())),
    };
    match fitted {
        Err(Error::NoRoom(why)) if estimate.file_bytes > 0 => {
            let why = Warning::new(warning::UNSUPPORTED, why);
            Ok(vec![Outcome::without_figure("disk/metadata", Status::Unsupported, why)])
        }
        fitted => metadata::run(&fitted?, sampler),
    }
}

/// Says of what counts until bytes are durable that they are not, where a filesystem is mounted so.
fn doubt_durable(outcomes: &mut [Outcome], option: &str) {
    let counts = |outcome: &&mut Outcome| {
        outcome.id == "disk/fsync" || outcome.parameter_text("until") == Some("durable")
    };
    for outcome in outcomes.iter_mut().filter(counts) {
        warning::add(&mut outcome.warnings, evidence::not_durable(option));
    }
}

/// Rows whose trials take turns. Blocks are cold once only: theirs is the first turn. What is written over
/// on a filesystem that copies on write lies elsewhere afterwards, in pieces: reads come before. (btrfs:
/// 1.1 GB/s between random writes, 2.5 GB/s of a file as it was made; 2026-11-26.)
fn phases(rows: Vec<Row>, copies_on_write: bool) -> [Vec<Row>; 3] {
    let (cold, rest) = rows.into_iter().partition(|row| row.test == Pattern::ColdBlocks);
    let (early, late) =
        Vec::into_iter(rest).partition(|row: &Row| copies_on_write && !row.writes());
    [cold, early, late]
}

/// The pictures of this area: one for each test of which a setting has more than two values.
fn charts(outcomes: &[Outcome]) -> Vec<Chart> {
    let ids = distinct(outcomes.iter().map(|outcome| outcome.id.as_str()), |a, b| a == b);
    ids.into_iter().filter_map(|id| chart(id, outcomes)).collect()
}

/// Settings in the order of importance: the first that is swept is the x axis.
const SWEPT: [(&str, &str, bool); 3] =
    [("block_bytes", "block size", true), ("depth", "depth", true), ("threads", "threads", false)];
/// What tells the lines of a picture from each other.
const LINES: [&str; 9] =
    ["engine", "caching", "block_bytes", "threads", "depth", "split", "extents", "until", "sync"];

fn chart(id: &str, outcomes: &[Outcome]) -> Option<Chart> {
    let values = |parameter: &str| {
        let own = outcomes.iter().filter(|outcome| outcome.id == id);
        let mut values: Vec<Option<String>> = own
            .map(|outcome| {
                let value = outcome.parameters.get(parameter)?;
                Some(value.as_str().map_or_else(|| format!("{parameter} {value}"), str::to_owned))
            })
            .collect();
        each_once(&mut values);
        values
    };
    let (x, by, x_log2) = SWEPT.into_iter().find(|sweep| values(sweep.0).len() > 2)?;
    // What all lines have in common stands once, in the title.
    let (lines, common): (Vec<&str>, Vec<&str>) =
        LINES.into_iter().filter(|line| *line != x).partition(|line| values(line).len() > 1);
    let common: Vec<String> = common.into_iter().flat_map(values).flatten().collect();
    let test = id.trim_start_matches("disk/").replace('-', " ");
    let title = match common.is_empty() {
        true => format!("{test} by {by}"),
        false => format!("{test} by {by} ({})", common.join(", ")),
    };
    Some(Chart { x_log2, ..Chart::new(&title, id, x, &lines) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_come_before_writes_where_these_tear_the_file_to_pieces() {
        let rows = plan::tests_rows();
        let [cold, early, late] = phases(rows.clone(), false);
        assert_eq!((cold.len(), early.len(), late.len()), (0, 0, rows.len()));
        let [_, early, late] = phases(rows.clone(), true);
        assert!(early.iter().all(|row| !row.writes()) && late.iter().all(Row::writes));
        assert_eq!(early.len() + late.len(), rows.len());
    }

    #[test]
    fn what_a_mount_keeps_from_being_durable_is_doubted() {
        let row = |id: &str, until: &str| {
            let parameters = json!({ "until": until }).as_object().cloned().unwrap();
            Outcome { id: id.to_owned(), parameters, ..Outcome::default() }
        };
        let mut rows = [row("disk/fsync", ""), row("disk/x", "durable"), row("disk/x", "device")];
        doubt_durable(&mut rows, "volatile");
        let is_doubted = |row: &Outcome| warning::has(&row.warnings, warning::NOT_DURABLE);
        assert_eq!(rows.each_ref().map(is_doubted), [true, true, false]);
        assert!(rows[0].warnings[0].text.contains("mounted volatile"));
    }

    #[test]
    fn a_sweep_is_a_picture_whose_title_says_what_its_lines_have_in_common() {
        let row = |block: u64, threads: u32| {
            let parameters = json!({
                "engine": "sync", "caching": "direct", "block_bytes": block, "threads": threads,
                "depth": 1,
            });
            Outcome {
                id: "disk/random-read".to_owned(),
                parameters: parameters.as_object().cloned().unwrap(),
                ..Outcome::default()
            }
        };
        let rows: Vec<_> = [4096, 8192, 65536]
            .into_iter()
            .flat_map(|block| [row(block, 1), row(block, 8)])
            .collect();
        let charts = charts(&rows);
        assert_eq!(charts.len(), 1);
        assert_eq!(charts[0].title, "random read by block size (sync, direct, depth 1)");
        assert_eq!(charts[0].line_parameters, ["threads"]);
        assert!(super::charts(&rows[..2]).is_empty());
    }
}
