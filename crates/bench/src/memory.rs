//! Memory: what its levels give per second and how long one access waits.
//!
//! Latency comes first, in a run of the sampler of its own: its curve shows how large the levels
//! are, which decides how long arrays must be and names the working sets, and its parallel chases
//! bound what one core can fetch. The rows of bandwidth follow, all interleaved: which there are
//! stands in `memory/row.rs`, how one is timed and checked in `memory/trial.rs`, what they are
//! held against in `memory/finish.rs`. How much memory may be taken: `memory/room.rs`.

mod access;
mod block;
pub mod dimm;
mod finish;
#[cfg(test)]
mod fixture;
pub mod hand_over;
pub mod latency;
pub mod levels;
pub mod loaded;
pub mod node;
pub mod parallel;
mod ring;
pub mod room;
mod row;
mod site;
mod stream;
mod trial;
mod working_set;

use std::path::Path;

use flatout_measure::record::{Ceiling, Chart, Outcome};
use flatout_measure::sampler::Sampler;
use flatout_sys::cancel::CancelToken;
use flatout_sys::cpu_cache::{self, DataCache};
use flatout_sys::quota::Groups;
use flatout_sys::{affinity, numa};

use crate::area::{Area, Estimate, Extent, Found, Pace, Seconds};
use crate::crew::MAX_THREADS;
use crate::error::Error;
use crate::limits;

use finish::Limits;
use latency::Chases;
use levels::Levels;
use room::Room;
use row::{Row, Terms};
use site::Site;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which rows.
    pub extent: Extent,
    /// Numbers of threads; empty: 1, 2, 4, 8 and as many as CPUs, in short runs 1 and as many as
    /// CPUs.
    pub threads: Vec<u32>,
    /// Bytes that a row of blocks moves, all threads together; without: 1.28 GB.
    pub bytes: Option<u64>,
    /// Seed of the data and of the orders.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// Bytes that a row of blocks moves unless the user wants others.
pub const USUAL_BYTES: u64 = 1_280_000_000;
/// Numbers of threads of a whole run, beside that of the CPUs.
const USUAL_THREADS: [u32; 4] = [1, 2, 4, 8];
/// Part of the time that latency gets.
const LATENCY_PART: u64 = 3;

/// How many times its budget a run of the sampler may take until each row has its least trials:
/// budgets are so much shorter, because this area's time is a promise.
const STRETCH: u64 = 2;

impl Options {
    fn threads(&self, cpus: u32) -> Vec<u32> {
        let mut threads = match (self.threads.is_empty(), self.extent) {
            (false, _) => self.threads.clone(),
            (true, Extent::Full) => USUAL_THREADS.to_vec(),
            (true, Extent::Few | Extent::Quick) => vec![1],
        };
        if self.threads.is_empty() {
            threads.push(cpus.min(MAX_THREADS));
        }
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    fn bytes(&self) -> u64 {
        self.bytes.unwrap_or(USUAL_BYTES)
    }
}

/// Refuses options out of bounds, in one line. Nothing is measured and no memory taken.
///
/// # Errors
/// `Usage`.
fn check(options: &Options) -> Result<(), Error> {
    for &threads in &options.threads {
        limits::within("--threads", Some(threads.into()), u64::from(MAX_THREADS), "")?;
    }
    let bytes = options.bytes();
    limits::within("--bytes", Some(bytes), i64::MAX as u64, " bytes")?;
    let most = options.threads(affinity::allowed_cpu_count()).into_iter().max().unwrap_or(1);
    if row::part(bytes, most) == 0 {
        let least = flatout_sys::stream::GRANULE_BYTES as u64 * u64::from(most);
        return Err(Error::Usage(format!(
            "--bytes {bytes}: {most} threads need at least {least} bytes"
        )));
    }
    Ok(())
}

/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 4, few: 9, quick: 9, full: 55 };

impl Area for Options {
    fn plan(&mut self, pace: Pace) -> Result<Estimate, Error> {
        check(self)?;
        let usual_ns = SECONDS.nanoseconds(self.extent, pace);
        Ok(Estimate { usual_ns, ..Estimate::default() })
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        measure(self, sampler)
    }
}

fn measure(options: &Options, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
    let started_ns = sampler.clock.now_ns();
    // What is free is shared out below: nobody else may take of it meanwhile.
    flatout_sys::memory::share_addresses_of_threads();
    let allowed = affinity::allowed_cpus().unwrap_or_default();
    let caches = cpu_cache::data_caches(Path::new("/"), first_cpu());
    let modules = dimm::peak(Path::new("/"));
    let latency_ns = sampler.plan.budget_ns / LATENCY_PART / STRETCH;
    let (mut outcomes, levels, core) =
        measure_latency(options, &caches, &modules, &mut sampler.within(latency_ns));
    if options.cancel.is_cancelled() {
        return Ok(Found { outcomes, charts: charts(options.extent), storage: None });
    }
    let cpus = (allowed.len() as u32).max(1);
    let limits = Limits { modules, core, cpus, allowed, huge_ratio: None };
    let spent_ns = sampler.clock.now_ns().saturating_sub(started_ns);
    let left_ns = sampler.plan.budget_ns.saturating_sub(spent_ns);
    let sampler = &mut sampler.within(left_ns);
    outcomes.extend(measure_bandwidth(options, &levels, limits, sampler)?);
    Ok(Found { outcomes, charts: charts(options.extent), storage: None })
}

fn first_cpu() -> usize {
    affinity::allowed_cpus().ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0)
}

/// The rows of latency, what they say of the levels, and what they say of one core.
fn measure_latency(
    options: &Options,
    caches: &[DataCache],
    modules: &Ceiling,
    sampler: &mut Sampler<'_>,
) -> (Vec<Outcome>, Levels, Option<Ceiling>) {
    let nodes = numa::nodes(Path::new("/"));
    let cpus = affinity::allowed_cpus().unwrap_or_default();
    let room_bytes = Room::now().bytes;
    let taken = |chases: &Chases| {
        let beside = [loaded::memory_bytes(chases), node::memory_bytes(chases, &nodes, &cpus)];
        beside.into_iter().fold(chases.memory_bytes(), u64::saturating_add)
    };
    let halves = (0..u64::BITS).map(|halvings| room_bytes >> halvings);
    let mut tries = halves.map(|bytes| Chases::new(options.extent, bytes, caches));
    let fitting = tries.find(|chases| taken(chases) <= room_bytes);
    let chases = fitting.unwrap_or_else(|| Chases::new(options.extent, 0, caches));
    let mut cases = latency::cases(&chases);
    cases.extend(parallel::cases(&chases));
    cases.extend(loaded::cases(&chases));
    cases.extend(hand_over::cases(options.extent));
    cases.extend(node::cases(&chases, &nodes, &cpus));
    let mut outcomes = sampler.run_recorded(cases);
    let levels = latency::finish(&mut outcomes, caches);
    let core = parallel::finish(&mut outcomes, modules).map(|core| core.ceiling());
    loaded::finish(&mut outcomes);
    hand_over::finish(&mut outcomes);
    node::finish(&mut outcomes);
    (outcomes, levels, core)
}

/// The rows of bandwidth.
fn measure_bandwidth(
    options: &Options,
    levels: &Levels,
    limits: Limits,
    sampler: &mut Sampler<'_>,
) -> Result<Vec<Outcome>, Error> {
    let room = Room::now();
    let terms = Terms {
        extent: options.extent,
        threads: options.threads(limits.cpus),
        cpus: limits.cpus,
        quota_cpus: Groups::discover(Path::new("/")).cpu_quota_cpus(),
        bytes: options.bytes(),
        room_bytes: room.bytes,
        room_reason: room.reason(),
        levels,
    };
    let rows = terms.rows().map_err(Error::NoRoom)?;
    let mut outcomes = Vec::new();
    let groups = groups(rows, numa::nodes(Path::new("/")).len());
    let share_ns = sampler.plan.budget_ns / groups.len().max(1) as u64;
    for rows in groups {
        if options.cancel.is_cancelled() {
            break;
        }
        outcomes.extend(measure_group(
            options,
            &rows,
            levels,
            &limits,
            &mut sampler.within(share_ns),
        )?);
    }
    Ok(outcomes)
}

/// The rows that can share a site: all of them where memory is near to every CPU, otherwise those
/// of one number of threads.
fn groups(rows: Vec<Row>, nodes: usize) -> Vec<Vec<Row>> {
    if nodes <= 1 {
        return vec![rows];
    }
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| group[0].threads == row.threads) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn measure_group(
    options: &Options,
    rows: &[Row],
    levels: &Levels,
    limits: &Limits,
    sampler: &mut Sampler<'_>,
) -> Result<Vec<Outcome>, Error> {
    let started_ns = sampler.clock.now_ns();
    let threads = rows.iter().map(|row| row.threads).max().unwrap_or(1);
    let mut site = Site::new(row::extents(rows), threads, options.seed, options.cancel)
        .map_err(|error| Error::NoRoom(format!("cannot get memory to measure: {error}")))?;
    site.doubt_since(&limits.allowed);
    let spent_ns = sampler.clock.now_ns().saturating_sub(started_ns);
    let budget_ns = sampler.plan.budget_ns.saturating_sub(spent_ns) / STRETCH;
    let cases = rows.iter().map(|row| row.case(&site)).collect();
    let mut outcomes = sampler.within(budget_ns).run_recorded(cases);
    let limits = Limits { huge_ratio: site.huge_ratio, ..limits.clone() };
    finish::finish(rows, &mut outcomes, levels, &limits);
    Ok(outcomes)
}

/// The pictures of this area.
fn charts(extent: Extent) -> Vec<Chart> {
    if extent == Extent::Few {
        return Vec::new();
    }
    let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
    let mut charts = latency::charts();
    charts.extend(parallel::charts());
    charts.extend(loaded::charts());
    charts.push(Chart {
        title: "Memory rate by working set".to_owned(),
        id: working_set::ID.to_owned(),
        x_parameter: "working_set_bytes".to_owned(),
        x_log2: true,
        line_parameters: words(&["kernel"]),
    });
    charts.extend(block::Pattern::ALL.map(|pattern| Chart {
        title: format!("{} by threads", pattern.title()),
        id: pattern.id().to_owned(),
        x_parameter: "threads".to_owned(),
        x_log2: false,
        line_parameters: words(&["block_bytes"]),
    }));
    charts
}

#[cfg(test)]
mod tests;
