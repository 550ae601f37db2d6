//! Copying trees: how long `flatout copy` takes by number of files, of pieces and of directories.
//!
//! The program itself is run, as whoever types its name runs it: its start is part of the time,
//! and the kernel accounts for its memory. What is copied: `copy/experiment.rs`; what of it there
//! is room and time for: `copy/choose.rs`; one copy: `copy/trial.rs`; what the machine does when
//! nothing but files and bytes are made: `copy/bare.rs`; what rows are held against:
//! `copy/finish.rs`. Races against other copiers are in [`crate::versus`].

mod bare;
mod choose;
mod experiment;
mod finish;
mod site;
#[cfg(test)]
mod tests;
mod trial;

use std::path::PathBuf;

use flatout_measure::case::Plan;
use flatout_measure::record::{Better, Outcome, Status, Warning};
use flatout_measure::{sampler, warning};
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::{memory, page_cache};

use crate::bench::{Bench, Extent, Measured};
use crate::cache::Clearing;
use crate::error::Error;
use crate::place::{COPYING, Place};
use crate::versus;

pub use choose::LeftOut;
use choose::{Limits, Wanted, choose};
pub use experiment::{Selection, charts};
use site::Site;
use trial::Row;

/// Trials that a row gets at most: more would tell little, and every copy takes inodes.
const MOST_TRIALS: u32 = 10;
/// Trials of the row that shows how far copies of one tree differ.
const SPREAD_TRIALS: u32 = 10;
/// Part of the time that it may take.
const SPREAD_PART: u64 = 4;
/// A hot source takes at most one part in so many of the available memory: its copy lies there,
/// too.
const MEMORY_PART: u64 = 3;
/// Free inodes that are taken at most: one part in this many.
const INODES_PART: u64 = 2;
/// Time of the whole grid, of the coarse one, and of the few rows of bare `bench`.
const FULL_NS: u64 = 240_000_000_000;
const QUICK_NS: u64 = 30_000_000_000;
const FEW_NS: u64 = 3_000_000_000;
const LEAST_NS: u64 = 1_000_000_000;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory where trees are made and copied.
    pub directory: PathBuf,
    /// The program of flatout.
    pub flatout: PathBuf,
    /// Which rows, unless [`Options::selection`] says so.
    pub extent: Extent,
    /// What is copied, where that was asked for.
    pub selection: Selection,
    /// Whether sources lie in the page cache.
    pub state: State,
    /// Whether the time until storage has the copy is a row, too.
    pub until: Until,
    /// How often each tree is copied; `None`: until the time is known well enough.
    pub rounds: Option<u32>,
    /// How often it is copied at least in that case.
    pub least_rounds: u32,
    /// The time that was asked for.
    pub time_ns: Option<u64>,
    /// Never write more than this; `None`: as much as there is room for at a time.
    pub max_write_bytes: Option<u64>,
    /// How the cache is cleared before cold copies.
    pub clearing: Clearing,
    /// Seed of orders.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// What the page cache holds of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All of it.
    Hot,
    /// Nothing.
    Cold,
}

impl State {
    fn of_tree(self) -> versus::State {
        match self {
            Self::Hot => versus::State::Hot,
            Self::Cold => versus::State::Cold,
        }
    }
}

/// When a copy counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When the program has ended; the page cache has the bytes.
    Cached,
    /// Then, and once more when storage has them.
    Durable,
}

/// What will be measured.
#[derive(Debug, Clone)]
pub struct Planned {
    rows: Vec<Wanted>,
    left_out: Vec<LeftOut>,
    rounds: u32,
    most_rounds: u32,
    bare_bytes: u64,
    /// Bytes that are written at most, all copies together.
    pub write_bytes: u64,
    /// Time that it takes.
    pub time_ns: u64,
    /// Time that it takes at least, whatever is allowed.
    pub least_ns: u64,
}

impl Planned {
    /// What is left out, a line per reason.
    pub fn notices(&self) -> Vec<String> {
        choose::notices(&self.left_out)
    }
}

/// Decides what is copied; nothing is made.
///
/// Errors: [`Error::Usage`] for what means nothing; no directory; no right to drop the system's
/// caches; nothing fits.
/// Cost: a few looks at the filesystem.
pub fn plan(options: &Options) -> Result<Planned, Error> {
    let wanted = options.selection.wanted(options.extent)?;
    if options.clearing == Clearing::System && !page_cache::may_drop_system_caches() {
        let text = "--drop-caches: /proc/sys/vm/drop_caches cannot be written to; it needs root";
        return Err(Error::NoRoom(text.to_owned()));
    }
    let room_bytes = versus::allowed_bytes(&options.directory, options.max_write_bytes)?;
    let rounds = options.rounds.unwrap_or(options.least_rounds);
    let facts = rustix::fs::statvfs(&options.directory)
        .map_err(flatout_io::Error::system("examine", &options.directory))?;
    let usual_ns = match options.extent {
        Extent::Full => FULL_NS,
        Extent::Quick => QUICK_NS,
        Extent::Few => FEW_NS,
    };
    let limits = Limits {
        room_bytes,
        write_bytes: options.max_write_bytes.unwrap_or(u64::MAX),
        // Filesystems without a fixed number of inodes show none.
        inodes: if facts.f_files == 0 { u64::MAX } else { facts.f_favail / INODES_PART },
        source_bytes: match options.state {
            State::Hot => memory::available_bytes().map_or(u64::MAX, |bytes| bytes / MEMORY_PART),
            State::Cold => u64::MAX,
        },
        time_s: options.time_ns.unwrap_or(usual_ns) as f64 / 1e9,
        rounds,
        is_cold: options.state == State::Cold,
        is_durable: options.until == Until::Durable,
    };
    let chosen = choose(wanted, &limits);
    // Bare `bench` has other areas; the notices say why it goes without this one.
    if let ([], Some(left), true) =
        (&chosen.rows[..], chosen.left_out.first(), options.extent != Extent::Few)
    {
        let (directory, reason) = (&options.directory, left.reason());
        return Err(Error::NoRoom(format!("nothing can be copied in {directory:?}: {reason}")));
    }
    let most_rounds = options.rounds.unwrap_or(MOST_TRIALS);
    let planned_ns = limits.time_ns(&chosen.rows, most_rounds);
    let time_ns = match (options.rounds, options.time_ns) {
        (Some(_), None) => planned_ns.max(LEAST_NS),
        (_, asked) => planned_ns.min(asked.unwrap_or(usual_ns)).max(LEAST_NS),
    };
    Ok(Planned {
        write_bytes: limits.written_bytes(&chosen.rows, most_rounds).min(limits.write_bytes),
        bare_bytes: choose::bare_bytes(&chosen.rows),
        least_ns: limits.time_ns(&chosen.rows, 1),
        rows: chosen.rows,
        left_out: chosen.left_out,
        rounds,
        most_rounds,
        time_ns,
    })
}

/// Makes the trees, copies them, and removes everything.
///
/// Errors: they cannot be made, or not be removed. What goes wrong with a row is the row's.
pub fn measure(
    options: &Options,
    planned: &Planned,
    plan: &Plan,
    bench: &mut Bench<'_>,
) -> Result<Measured, Error> {
    let asked = left_out_rows(options, planned);
    if planned.rows.is_empty() {
        return Ok(Measured { outcomes: asked, charts: Vec::new() });
    }
    let directory = options
        .directory
        .canonicalize()
        .map_err(flatout_io::Error::system("open the directory", &options.directory))?;
    let place = Place::take(&directory, COPYING)?;
    let leftovers = place.remove_leftovers()?;
    let measured = measure_in(options, planned, plan, (&place, &mut *bench));
    // Everything that was made goes with the place.
    let left = place.leave();
    let mut measured = measured?;
    left?;
    if let (Some(row), false) = (measured.outcomes.first_mut(), leftovers.is_empty()) {
        let text = format!("what an earlier run left is still there: {}", leftovers.join("; "));
        row.warnings.push(Warning::new(warning::FAILED, text));
    }
    measured.outcomes.extend(asked);
    Ok(measured)
}

/// As [`measure`], in a place that its caller removes.
fn measure_in(
    options: &Options,
    planned: &Planned,
    plan: &Plan,
    (place, bench): (&Place, &mut Bench<'_>),
) -> Result<Measured, Error> {
    let begun_ns = monotonic_ns();
    let left_ns = |most_ns: u64| most_ns.saturating_sub(monotonic_ns() - begun_ns).max(LEAST_NS);
    // Asked for exactly, they are made whatever time they take, unless that is limited.
    let is_unlimited = options.rounds.is_some() && options.time_ns.is_none();
    let budget_ns = if is_unlimited { u64::MAX / 4 } else { plan.budget_ns };
    let plan = Plan { min_trials: planned.rounds, max_trials: planned.most_rounds, ..plan.clone() };
    let wanted = [Wanted::empty()].into_iter().chain(planned.rows.iter().cloned());
    let rows: Vec<Row> = wanted.map(Row::new).collect();
    let made = (&rows[..], planned.bare_bytes);
    let site = Site::make(options, made, place.targets(), &mut *bench.events)?;
    let (spread, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.wanted.experiment.is_spread() && options.rounds.is_none());
    let mut outcomes = Vec::new();
    if !spread.is_empty() {
        let budget_ns = left_ns(budget_ns / SPREAD_PART);
        let (min_trials, max_trials) = (SPREAD_TRIALS, SPREAD_TRIALS);
        let plan = Plan { min_trials, max_trials, budget_ns, ..plan.clone() };
        let cases = spread.into_iter().map(|row| trial::case(row, &site)).collect();
        outcomes.extend(sampler::run(cases, &plan, bench.tools()));
    }
    let plan = Plan { budget_ns: left_ns(budget_ns), ..plan };
    let mut cases = bare::cases(&site);
    cases.extend(others.into_iter().map(|row| trial::case(row, &site)));
    outcomes.extend(sampler::run(cases, &plan, bench.tools()));
    finish::finish(&mut outcomes, &rows, &site);
    if options.extent == Extent::Few {
        // What rows are held against is named in them, and has no rows of its own there.
        outcomes.retain(|row| rows[1..].iter().any(|own| own.is_of(row)));
    }
    Ok(Measured { charts: charts(&outcomes), outcomes })
}

/// What was asked for by name and is left out has a row that says why.
fn left_out_rows(options: &Options, planned: &Planned) -> Vec<Outcome> {
    let is_asked = |left: &&LeftOut| !left.wanted.is_optional;
    let row = |left: &LeftOut| Outcome {
        id: left.wanted.experiment.id().to_owned(),
        parameters: left.wanted.parameters(options.state),
        unit: "ns".to_owned(),
        better: Better::Lower,
        status: Status::Unsupported,
        warnings: vec![Warning::new(warning::UNSUPPORTED, left.reason())],
        ..Outcome::default()
    };
    planned.left_out.iter().filter(is_asked).map(row).collect()
}
