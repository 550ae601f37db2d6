//! Memory: what its levels give per second and how long one access waits.
//!
//! Latency comes first, in a run of the sampler of its own: its curve shows how large the levels
//! are, which decides how long arrays must be and names the working sets, and its parallel chases
//! bound what one core can fetch. The rows of bandwidth follow, all interleaved: which there are
//! stands in `memory/row.rs`, how one is timed and checked in `memory/trial.rs`, what they are
//! held against in `memory/bound.rs`. How much memory may be taken: `memory/room.rs`.

mod access;
mod block;
mod bound;
mod dimm;
pub(crate) mod duel;
mod fact;
mod latency;
pub(crate) mod levels;
pub(crate) mod room;
mod row;
mod stream;
mod test_memory;
mod trial;
mod working_set;

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use flatout_io::cause_text;
use flatout_measure::{Case, Chart, Measured, Sampler, record_counted, size_text};
use flatout_sys::{Groups, affinity, cpu_cache, monotonic_ns, numa};

use crate::contention::ContentionProbe;
use crate::option::{MAX_BYTES, count_to, size_to};
use crate::workers::{self, MAX_THREADS};
use crate::{Area, Error, Estimate, Extent, Found, Run, Seconds, cores};

use bound::Machine;
use room::Room;
use row::{RateRow, Terms};
use test_memory::{Extents, TestMemory};

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// What all areas of the run have in common.
    #[arg(skip)]
    run: Run,
    /// Threads; several make a sweep [default: 1, 2, 4, 8 and one per CPU; with --quick 1 and one
    /// per CPU]
    #[arg(short = 'j', long, alias = "numjobs", value_name = "N,…", value_delimiter = ',',
        value_parser = count_to(MAX_THREADS))]
    pub threads: Vec<u32>,
    /// How much a row of blocks moves, all threads together [default: 1.28 GB; with --quick a
    /// quarter]
    #[arg(id = "bytes", long = "size", alias = "bytes", value_name = "SIZE",
        value_parser = size_to(MAX_BYTES))]
    pub bytes: Option<u64>,
}

/// Bytes that a row of blocks moves unless the user wants others.
pub const USUAL_BYTES: u64 = 1_280_000_000;
/// The same where only some rows are measured, unless a cache could hold a good part of it: memory
/// that a hypervisor has yet to find comes at half a gigabyte a second.
const FEW_BYTES: u64 = 320_000_000;
/// Numbers of threads of a whole run, beside that of the CPUs.
const USUAL_THREADS: [u32; 4] = [1, 2, 4, 8];
/// Part of the time that latency gets.
const LATENCY_PART: u64 = 3;
/// Parts of the time, of latency and of rates, in which memory must be there.
const GETTING_PARTS: [u64; 2] = [4, 2];
/// Part of what is left then in which forms of kernels are raced: for some hundred rows that took 5 s of
/// 5 s beside 50 threads on 2 CPUs (AMD EPYC, family 25, model 17, 2026-11-26).
const RACING_PART: u64 = 2;

impl Options {
    fn threads(&self, cpus: u32) -> Vec<u32> {
        let usual = if self.run.extent == Extent::Full { &USUAL_THREADS[..] } else { &[1] };
        workers::counts(&self.threads, &[usual, &[cpus.min(MAX_THREADS)]].concat())
    }

    /// Bytes of a row of blocks beside caches that end with one of so many bytes.
    fn bytes(&self, last_cache_bytes: u64) -> u64 {
        let usual = match self.run.extent {
            Extent::Full => USUAL_BYTES,
            _ => last_cache_bytes.saturating_mul(4).clamp(FEW_BYTES, USUAL_BYTES),
        };
        self.bytes.unwrap_or(usual)
    }
}

/// Refuses options out of bounds, in one line. Nothing is measured and no memory taken.
///
/// # Errors
/// `Usage`.
fn check(options: &Options) -> Result<(), Error> {
    let bytes = options.bytes(0);
    let most = options.threads(affinity::allowed_cpu_count()).into_iter().max().unwrap_or(1);
    if row::part(bytes, most) == 0 {
        let least = flatout_sys::stream::GRANULE_BYTES as u64 * u64::from(most);
        return Err(Error::Usage(format!(
            "--size {}: {most} threads need at least {}",
            size_text(bytes),
            size_text(least)
        )));
    }
    Ok(())
}

/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 4, few: 9, quick: 12, full: 60 };

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        check(self)?;
        Ok(SECONDS.estimate(run))
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let options = &*self;
        let root = Path::new("/");
        let cpus = affinity::allowed_cpus().unwrap_or_default();
        // The first thread, and so each chase, runs on the first of these: weaker cores may lack a cache.
        let order = cores::in_order().unwrap_or_default();
        let caches = cpu_cache::data_caches(root, order.first().copied().unwrap_or(0));
        let (nodes, modules) = (numa::nodes(root), dimm::peak(root));
        let quota_cpus = Groups::discover(root).cpu_quota_cpus();
        // Of a single thread that a quota holds back probes tell nothing.
        let is_held_back = quota_cpus.is_some_and(|cpus| cpus < 1.0);
        let probe = ContentionProbe::of(is_held_back || cores::kinds(root, &cpus).len() > 1);
        probe.learn();
        let last_caches = last_caches(root, &cpus);
        let hardware = latency::Hardware {
            caches: &caches,
            last_caches,
            nodes: &nodes,
            order: &order,
            modules: &modules,
            largest: latency::largest_pages(),
            probe: &probe,
        };
        let latency_ns = sampler.left_ns() / LATENCY_PART;
        let near = latency::near(&nodes, &order);
        let (extent, room) = (options.run.extent, Room::on(near));
        let wanted_bytes = latency::memory_bytes(extent, room.bytes, &hardware);
        let room = in_time(sampler, latency_ns / GETTING_PARTS[0], wanted_bytes, &room);
        let found = latency::measure(extent, room, &hardware, &mut sampler.within(latency_ns));
        let latency::Found { mut outcomes, levels, core } = found;
        let mut roofline = Vec::new();
        if !options.run.cancel.is_cancelled() {
            let machine = Machine { levels, modules, core, cpus, last_caches };
            let rates = measure_rates(options, (&machine, &probe), nodes.len(), sampler)?;
            roofline = rates.iter().flat_map(|rate| bound::roofline(rate, &machine)).collect();
            outcomes.extend(record_counted(rates, &[fact::APPLICATION_BYTES, fact::ACCESSES]));
        }
        Ok(Found { outcomes, charts: charts(extent), roofline, ..Found::default() })
    }
}

/// The last caches that these CPUs have together, as the kernel says who shares them: at least one.
fn last_caches(root: &Path, cpus: &[usize]) -> u64 {
    let last = |&cpu: &usize| Some(cpu_cache::data_caches(root, cpu).pop()?.shared_cpus);
    cpus.iter().filter_map(last).collect::<BTreeSet<_>>().len().max(1) as u64
}

/// The rows of bandwidth, on so many memory nodes.
fn measure_rates(
    options: &Options,
    (machine, probe): (&Machine, &ContentionProbe),
    nodes: usize,
    sampler: &mut Sampler<'_>,
) -> Result<Vec<Measured<RateRow>>, Error> {
    let room = Room::now();
    let threads = options.threads(machine.cpu_count());
    let group_count = if nodes <= 1 { 1 } else { threads.len() as u64 };
    let most = threads.iter().copied().max().unwrap_or(1);
    let mut terms = Terms {
        extent: options.run.extent,
        threads,
        quota_cpus: Groups::discover(Path::new("/")).cpu_quota_cpus(),
        bytes: options.bytes(machine.caches_bytes(most)),
        room_bytes: room.bytes,
        room_reason: room.reason.clone(),
        machine,
    };
    let mut rows = terms.rows().map_err(Error::NoRoom)?;
    // Where time is too short for all of this memory, arrays are as long as it allows.
    let Extents { source_bytes, target_bytes } = row::extents(&rows);
    let wanted_bytes = source_bytes.saturating_add(target_bytes) + row::slack_bytes();
    let time_ns = sampler.left_ns() / group_count / GETTING_PARTS[1];
    let (had_bytes, reason) = in_time(sampler, time_ns, wanted_bytes, &room);
    if had_bytes < room.bytes {
        terms.room_bytes = had_bytes.max(row::slack_bytes() + row::LEAST_BYTES).min(room.bytes);
        terms.room_reason = reason;
        rows = terms.rows().map_err(Error::NoRoom)?;
    }
    let groups = groups(rows, nodes);
    let mut measured = Vec::new();
    for (groups_left, rows) in (1..=groups.len() as u64).rev().zip(groups) {
        let share_ns = sampler.left_ns() / groups_left;
        if options.run.cancel.is_cancelled() {
            break;
        }
        let sampler = &mut sampler.within(share_ns);
        measured.extend(measure_group(options, rows, (machine, probe), sampler)?);
    }
    Ok(measured)
}

/// The rows that can share memory: all of them where it is near to every CPU, otherwise those of
/// one number of threads.
fn groups(rows: Vec<RateRow>, nodes: usize) -> Vec<Vec<RateRow>> {
    let mut groups: Vec<Vec<RateRow>> = Vec::new();
    for row in rows {
        let shares =
            |group: &&mut Vec<RateRow>| nodes <= 1 || group[0].parts.threads == row.parts.threads;
        match groups.iter_mut().find(shares) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn measure_group(
    options: &Options,
    rows: Vec<RateRow>,
    (machine, probe): (&Machine, &ContentionProbe),
    sampler: &mut Sampler<'_>,
) -> Result<Vec<Measured<RateRow>>, Error> {
    let threads = rows.iter().map(|row| row.parts.threads).max().unwrap_or(1);
    let mut memory =
        TestMemory::new(row::extents(&rows), threads, options.run.seed, options.run.cancel)
            .map_err(|error| {
                Error::NoRoom(format!("cannot get memory to measure: {}", cause_text(&error)))
            })?;
    memory.known_cpus.clone_from(&machine.cpus);
    // Forms of kernels are raced before the clock of the rows; what there is no time for is left out.
    let raced_ns = sampler.part_ends_ns(RACING_PART);
    let case = |row: RateRow| match monotonic_ns() < raced_ns {
        true => row.raced(&memory).case(&memory, probe),
        false => Case::without_time(row),
    };
    let cases = rows.into_iter().map(case).collect();
    let mut rows = sampler.within(sampler.left_ns()).run(cases);
    bound::apply(&mut rows, machine, memory.huge_ratio);
    Ok(rows)
}

/// How much of the room may be taken, and why it is not more: all of it, unless time has an end and
/// less than is wanted can be had in `time_ns`.
fn in_time(sampler: &Sampler<'_>, time_ns: u64, wanted_bytes: u64, room: &Room) -> (u64, String) {
    if sampler.plan.ends_ns != u64::MAX
        && let (bytes, Some(why)) = room::had_in(time_ns, wanted_bytes)
    {
        return (bytes, why.to_owned());
    }
    (room.bytes, room.reason.clone())
}

/// The pictures of this area.
fn charts(extent: Extent) -> Vec<Chart> {
    if extent == Extent::Few {
        return Vec::new();
    }
    let mut charts = latency::charts();
    let title = "Memory rate by working set";
    let by_size = Chart::new(title, working_set::ID, "working_set_bytes", &["kernel"]);
    charts.push(by_size.by_powers_of_two());
    charts.extend(block::PATTERNS.map(|pattern| {
        let title = format!("{} rate of memory by threads", pattern.title);
        Chart::new(&title, pattern.id, "threads", &["block_bytes"])
    }));
    charts
}

#[cfg(test)]
mod tests;
