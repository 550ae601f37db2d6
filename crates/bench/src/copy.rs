//! Copying trees: how long `flatout copy` takes by number of files, of pieces and of directories.
//!
//! The program itself is run, as whoever types its name runs it: its start is part of the time,
//! and the kernel accounts for its memory. What is copied: `copy/experiment.rs`; what of it there
//! is room and time for: `copy/choose.rs`; one copy: `copy/trial.rs`; what the machine does when
//! nothing but files and bytes are made: `copy/bare.rs`; what rows are held against:
//! `copy/bound.rs`. Races against other copiers are in [`crate::versus`].

mod bare;
mod bound;
mod choose;
mod experiment;
mod pace;
mod row;
mod site;
#[cfg(test)]
mod tests;
mod trial;

use std::rc::Rc;

use clap::{ArgAction, Args};
use flatout_measure::{Measured, Outcome, Plan, Sampler, Warning, record_counted, warning};
use flatout_sys::memory;
use flatout_tree::copy::options::Durability;

use crate::option::flag;
use crate::place::{COPYING, Place};
use crate::tried::Tried;
use crate::versus::{self, State};
use crate::write_limit::announced_at_most;
use crate::{Area, Clearing, Error, Estimate, Extent, Found, IoError, Run, Seconds, scratch};

pub use choose::LeftOut;
use choose::{Limits, Wanted, Why, choose, left_out_row};
use experiment::Experiment;
pub use experiment::Selection;
use pace::Pace;
use row::Row;
use site::Site;

/// Trials that a row gets at most: more would tell little, and every copy takes inodes.
const MOST_TRIALS: u32 = 10;
/// Trials of the row that shows how far copies of one tree differ.
const SPREAD_TRIALS: u32 = 10;
/// Part of the time that it may take.
const SPREAD_PART: u64 = 4;
/// A hot source takes at most one part in so many of the available memory: its copy lies there,
/// too.
const MEMORY_PART: u64 = 3;
/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 3, few: 3, quick: 30, full: 240 };

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    #[arg(skip)]
    run: Run,
    /// What of it will be copied.
    #[arg(skip)]
    planned: Option<Planned>,
    /// What the work takes in the place, once it was tried.
    #[arg(skip)]
    pace: Option<Pace>,
    /// What is copied, where that was asked for.
    #[command(flatten)]
    pub selection: Selection,
    /// Copy what the page cache does not hold, instead of what it holds
    #[arg(long = "cold", action = ArgAction::SetTrue,
        value_parser = flag([State::Hot, State::Cold]))]
    pub state: State,
    /// Besides, the time until storage has the copy
    #[arg(long = "durable", action = ArgAction::SetTrue,
        value_parser = flag([Durability::Cached, Durability::Durable]))]
    pub until: Durability,
    /// How the cache is cleared before cold copies.
    #[arg(from_global, id = "drop_caches")]
    pub clearing: Clearing,
}

/// Trees that lie there at the same time.
#[derive(Debug, Clone)]
struct Phase {
    rows: Vec<Wanted>,
    time_ns: u64,
}

/// What will be measured.
#[derive(Debug, Clone)]
struct Planned {
    phases: Vec<Phase>,
    left_out: Vec<LeftOut>,
    rounds: u32,
    most_rounds: u32,
    /// Bytes that are written at most, all copies together, and those that likely are.
    pub most_write_bytes: u64,
    pub write_bytes: u64,
    pub time_ns: u64,
}

impl Options {
    /// What the work takes here, as it was tried, else as it usually is.
    fn pace(&self) -> Pace {
        self.pace.unwrap_or(Pace::USUAL)
    }
}

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        self.selection.each_once();
        // What may be written is not spent on finding out how long it takes.
        if run.rounds.is_none() {
            let can_try = run.max_write_bytes.is_none();
            self.pace.get_or_insert_with(|| {
                if can_try {
                    Pace::of(Tried::with_copying(&run.place, None))
                } else {
                    Pace::usual()
                }
            });
        }
        let planned = plan(self)?;
        let planned = self.planned.insert(planned);
        Ok(Estimate {
            place: Some(self.run.place.clone()),
            write_bytes: planned.write_bytes,
            most_write_bytes: planned.most_write_bytes,
            writes_over: false,
            usual_ns: planned.time_ns,
            is_time_open: false,
            notices: choose::notices(&planned.left_out),
        })
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let planned = self.planned.take().map_or_else(|| plan(self), Ok)?;
        measure(self, &planned, sampler)
    }
}

/// Decides what is copied; nothing is made but what [`Tried::of`] makes.
///
/// Errors: [`Error::Usage`] for what means nothing; no directory; no right to drop caches; nothing fits.
/// Cost: a few looks at the filesystem.
fn plan(options: &Options) -> Result<Planned, Error> {
    let directory = &options.run.place;
    let wanted = options.selection.wanted(options.run.extent)?;
    options.clearing.check()?;
    let room_bytes = versus::allowed_bytes(directory, options.run.max_write_bytes)?;
    let rounds = options.run.rounds.unwrap_or(options.run.least_trials);
    let asked_ns = SECONDS.estimate(&options.run).usual_ns;
    let pace = options.pace();
    let limits = Limits {
        room_bytes,
        write_bytes: options.run.max_write_bytes.unwrap_or(u64::MAX),
        shared_from_bytes: scratch::shared_from_bytes(directory),
        inodes: scratch::inodes_part(directory).unwrap_or(u64::MAX),
        source_bytes: match options.state {
            State::Hot => memory::available_bytes().map_or(u64::MAX, |bytes| bytes / MEMORY_PART),
            _ => u64::MAX,
        },
        time_s: asked_ns as f64 / 1e9,
        rounds,
        is_cold: options.state == State::Cold,
        is_durable: options.until == Durability::Durable,
        pace,
    };
    let chosen = choose(wanted, &limits);
    // Bare `bench` has other areas; the notices say why it goes without this one.
    if let ([], Some(left), true) =
        (&chosen.phases[..], chosen.left_out.first(), options.run.extent != Extent::Few)
    {
        let reason = left.reason();
        return Err(Error::NoRoom(format!("nothing can be copied in {directory:?}: {reason}")));
    }
    // A quarter more rounds than there is likely time for: what is written is what was announced.
    let slowdown = pace.slowdown;
    let busy = Limits { time_s: limits.time_s / slowdown, ..limits.clone() };
    let in_time =
        options.run.rounds.unwrap_or_else(|| busy.rounds(&chosen.phases, rounds, MOST_TRIALS));
    let most_rounds = options.run.rounds.unwrap_or(in_time + in_time / 4);
    // Rows that what may be written ends say so.
    let likely = in_time.min(limits.written_rounds(&chosen.phases)).max(1);
    let planned_ns = limits.phases_s(&chosen.phases, likely) * 1e9 * slowdown;
    let likely_ns = match (options.run.rounds, options.run.time_ns) {
        (Some(_), None) => planned_ns,
        _ => planned_ns.min(asked_ns as f64),
    };
    let written = |rounds| limits.phases_bytes(&chosen.phases, rounds).min(limits.write_bytes);
    // Those that show how copies vary have more than there is time for.
    let spread = chosen.phases.iter().flatten().filter(|row| row.experiment == Experiment::Spread);
    let spread_bytes: u64 =
        spread.map(|row| row.corpus.written_bytes(limits.shared_from_bytes)).sum();
    let in_time = |bytes: u64| (bytes as f64 * (likely_ns / planned_ns).min(1.0)) as u64;
    let (write_bytes, most_write_bytes) = match options.run.rounds {
        // Trials that are spoiled are repeated.
        Some(rounds) => (in_time(written(likely)), written(rounds + Plan::default().most_spoiled)),
        None => {
            let more = u64::from(SPREAD_TRIALS.saturating_sub(likely));
            let all = written(likely).saturating_add(spread_bytes.saturating_mul(more));
            let bytes = in_time(all);
            (bytes, announced_at_most(bytes).min(limits.write_bytes))
        }
    };
    let phase =
        |rows: Vec<Wanted>| Phase { time_ns: (limits.time_s(&rows, likely) * 1e9) as u64, rows };
    Ok(Planned {
        most_write_bytes,
        phases: chosen.phases.into_iter().map(phase).collect(),
        left_out: chosen.left_out,
        rounds,
        most_rounds,
        write_bytes: write_bytes.min(most_write_bytes),
        time_ns: likely_ns as u64,
    })
}

/// Makes the trees, copies them, and removes everything.
///
/// Errors: they cannot be made, or not be removed. What goes wrong with a row is the row's.
fn measure(
    options: &Options,
    planned: &Planned,
    sampler: &mut Sampler<'_>,
) -> Result<Found, Error> {
    // Trees of a grid that are too large for this place are no rows; time and memory are the run's.
    let is_row =
        |left: &&LeftOut| !left.wanted.is_optional || matches!(left.why, Why::Time | Why::Memory);
    let left_out = planned.left_out.iter().filter(is_row);
    let left_out: Vec<Outcome> = left_out.map(|left| left_out_row(left, options.state)).collect();
    if planned.phases.is_empty() {
        return Ok(Found { outcomes: left_out, ..Found::default() });
    }
    let asked = &options.run.place;
    let directory = asked.canonicalize().map_err(IoError::system("open the directory", asked))?;
    let place = Place::take(&directory, COPYING)?;
    let leftovers = place.remove_leftovers()?;
    let measured = measure_in(options, planned, &place, sampler);
    // Everything that was made goes with the place.
    let left = place.leave();
    let mut measured = measured?;
    left?;
    if let (Some(row), false) = (measured.outcomes.first_mut(), leftovers.is_empty()) {
        let text = format!("what an earlier run left is still there: {}", leftovers.join("; "));
        row.warnings.push(Warning::new(warning::FAILED, text));
    }
    measured.outcomes.extend(left_out);
    Ok(measured)
}

/// As [`measure`], in a place that its caller removes.
fn measure_in(
    options: &Options,
    planned: &Planned,
    place: &Place,
    sampler: &mut Sampler<'_>,
) -> Result<Found, Error> {
    // Removing everything belongs to the time.
    let all: Vec<Wanted> = planned.phases.iter().flat_map(|phase| phase.rows.clone()).collect();
    let removing_s = choose::removing_s(&all, planned.most_rounds, &options.pace());
    let left_ns = sampler.left_ns();
    let sampler = &mut sampler.within(left_ns.saturating_sub((removing_s * 1e9) as u64));
    let mut site = Site::make(options, place.targets(), &mut *sampler.events)?;
    // Trials that are spoiled and repeated write, too: no more than was announced.
    site.limit.end_at(planned.most_write_bytes);
    site.ends_ns = sampler.part_ends_ns(1);
    let (mut outcomes, mut measured) = (Vec::new(), Vec::new());
    for (number, phase) in planned.phases.iter().enumerate() {
        let left_ns = sampler.left_ns();
        if left_ns == 0 {
            let late = phase.rows.iter().cloned();
            let late = late.map(|wanted| LeftOut { wanted, why: Why::Time });
            outcomes.extend(late.map(|left| left_out_row(&left, options.state)));
            continue;
        }
        let plan = Plan {
            min_trials: planned.rounds,
            max_trials: planned.most_rounds,
            budget_ns: share_ns(&planned.phases[number..], left_ns),
            ..sampler.plan.clone()
        };
        // What was measured in each phase is told apart by it.
        let name = (planned.phases.len() > 1).then_some(number + 1);
        let rows = phase.rows.clone();
        let (rows, late) = measure_phase(name, rows, &site, &mut sampler.with(plan))?;
        measured.extend(rows);
        outcomes.extend(late.iter().map(|left| left_out_row(left, options.state)));
    }
    if options.run.extent == Extent::Few {
        // What rows are held against is named in them, and has no rows of its own there.
        measured.retain(|measured| !measured.row.is_reference());
        outcomes.retain(|row| row.id != Experiment::Empty.id());
    }
    let charts =
        if options.run.extent == Extent::Few { Vec::new() } else { experiment::charts(&measured) };
    outcomes.extend(record_counted(measured, &[bare::COMPLETED, crate::fact::BYTES]));
    Ok(Found { charts, outcomes, ..Found::default() })
}

/// The part of the time that the first of these phases gets.
fn share_ns(phases: &[Phase], left_ns: u64) -> u64 {
    let all: u128 = phases.iter().map(|phase| u128::from(phase.time_ns)).sum();
    let first = phases.first().map_or(0, |phase| u128::from(phase.time_ns));
    (u128::from(left_ns) * first / all.max(1)) as u64
}

/// Makes the trees of a phase, copies them in rounds, and empties them. Returns the rows, and the
/// trees for which there was no time.
fn measure_phase(
    phase: Option<usize>,
    wanted: Vec<Wanted>,
    site: &Site,
    sampler: &mut Sampler<'_>,
) -> Result<(Vec<Measured<Row>>, Vec<LeftOut>), Error> {
    let bare_bytes = choose::bare_bytes(&wanted);
    let mut trees: Vec<Wanted> = [Wanted::empty()].into_iter().chain(wanted).collect();
    let making_ns = if sampler.plan.ends_ns == u64::MAX { u64::MAX } else { sampler.left_ns() };
    let late = site.begin_phase(&trees, making_ns, &mut *sampler.events)?;
    trees.retain(|tree| late.iter().all(|late| !Rc::ptr_eq(&late.corpus, &tree.corpus)));
    let late = late.into_iter().map(|wanted| LeftOut { wanted, why: Why::Time }).collect();
    let is_exact = site.options.run.rounds.is_some();
    let (spread, others): (Vec<Wanted>, Vec<Wanted>) =
        trees.into_iter().partition(|wanted| wanted.experiment == Experiment::Spread && !is_exact);
    let mut rows = Vec::new();
    if !spread.is_empty() {
        let budget_ns = sampler.left_ns() / SPREAD_PART;
        let (min_trials, max_trials) = (SPREAD_TRIALS, SPREAD_TRIALS);
        let plan = Plan { min_trials, max_trials, budget_ns, ..sampler.plan.clone() };
        let cases = spread.into_iter().map(|wanted| trial::case(wanted, phase, site)).collect();
        rows.extend(sampler.with(plan).run(cases));
    }
    let budget_ns = sampler.left_ns();
    let mut cases = bare::cases(site, bare_bytes, phase);
    cases.extend(others.into_iter().map(|wanted| trial::case(wanted, phase, site)));
    rows.extend(sampler.within(budget_ns).run(cases));
    bare::prove(&mut rows, site);
    bound::apply(&mut rows, site);
    site.end_phase();
    Ok((rows, late))
}
