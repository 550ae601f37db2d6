//! What each area does with the arguments: its options, its share of the time, its rows.

use std::path::PathBuf;

use clap::ValueEnum;
use flatout_bench::cache::{self, Clearing};
use flatout_bench::disk::{self, Grid, Overwriting};
use flatout_bench::network::{self, token::Key};
use flatout_bench::{Bench, Error, Extent, Measured, copy, cpu, memory, syscall};
use flatout_measure::case::Plan;
use flatout_measure::record::{Chart, Outcome};
use flatout_measure::sampler;
use flatout_sys::cancel::CancelToken;
use serde_json::Value;

use super::SECOND_NS;
use crate::arguments::bench::{Area, Bench as Arguments};

/// Trials that every row gets at least.
const USUAL_TRIALS: u32 = 6;
const QUICK_TRIALS: u32 = 3;

/// One area, checked and ready to be measured.
pub(super) struct Job {
    pub(super) area: Area,
    /// Where it is measured.
    pub(super) place: PathBuf,
    /// Bytes that it writes at most.
    pub(super) write_bytes: u64,
    /// Whether it writes over a file of the user's.
    pub(super) writes_over: bool,
    /// Time that it takes at least, whatever is allowed.
    pub(super) least_ns: u64,
    /// Time that its trials get.
    pub(super) budget_ns: u64,
    work: Work,
    plan: Plan,
}

/// What is measured, and how.
enum Work {
    Cache(cache::Options),
    Disk(Box<(disk::Options, disk::Estimate)>),
    Syscall { block_bytes: u64, directory: PathBuf, quick: bool, cancel: CancelToken },
    Cpu(cpu::Options),
    Memory(memory::Options),
    Network(Box<network::Options>),
    Copy(Box<(copy::Options, copy::Planned)>),
}

/// What an area found.
pub(super) struct Found {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) charts: Vec<Chart>,
    pub(super) storage: Option<Value>,
}

impl From<Measured> for Found {
    fn from(measured: Measured) -> Self {
        Self { outcomes: measured.outcomes, charts: measured.charts, storage: None }
    }
}

/// The areas asked for, or all of them in short.
///
/// Errors: what cannot be done; nothing is written before all areas are known to be possible.
pub(super) fn jobs(
    arguments: &Arguments,
    seed: u64,
    cancel: CancelToken,
) -> Result<Vec<Job>, Error> {
    arguments.check().map_err(Error::Usage)?;
    let areas = arguments.areas();
    let (areas, size) = match (areas.is_empty(), arguments.quick) {
        (true, _) => (Area::value_variants().to_vec(), Extent::Few),
        (false, true) => (areas, Extent::Quick),
        (false, false) => (areas, Extent::Full),
    };
    let mut jobs = Vec::new();
    for &area in &areas {
        let context = Context { arguments, seed, cancel, size, areas: &areas };
        jobs.push(match area {
            Area::Cache => context.cache()?,
            Area::Disk => context.disk()?,
            Area::Syscall => context.syscall()?,
            Area::Cpu => context.cpu()?,
            Area::Memory => context.memory()?,
            Area::Network => context.network()?,
            Area::Copy => context.copy()?,
        });
    }
    // Time asked for is shared out as the usual time is.
    if let Some(asked_ns) = arguments.max_time {
        let total: u128 = jobs.iter().map(|job| u128::from(job.budget_ns)).sum();
        for job in &mut jobs {
            let share = u128::from(asked_ns) * u128::from(job.budget_ns) / total.max(1);
            job.budget_ns = share as u64;
        }
    }
    for job in &mut jobs {
        job.plan.budget_ns = job.budget_ns;
    }
    Ok(jobs)
}

struct Context<'a> {
    arguments: &'a Arguments,
    seed: u64,
    cancel: CancelToken,
    size: Extent,
    areas: &'a [Area],
}

impl Context<'_> {
    fn job(&self, area: Area, place: PathBuf, write_bytes: u64, seconds: u64, work: Work) -> Job {
        let min_trials = if self.arguments.quick { QUICK_TRIALS } else { USUAL_TRIALS };
        let plan = Plan { min_trials, seed: self.seed, ..Plan::default() };
        let budget_ns = seconds.saturating_mul(SECOND_NS);
        Job { area, place, write_bytes, writes_over: false, least_ns: 0, budget_ns, work, plan }
    }

    /// What an area may write: the syscall area needs little and no choice, the others share the
    /// rest.
    fn max_write_bytes(&self) -> Option<u64> {
        let has = |area| self.areas.contains(&area);
        let (options, _) = self.syscall_options();
        let needed = if has(Area::Syscall) { syscall::file_bytes(&options) } else { 0 };
        let shares = [Area::Cache, Area::Disk, Area::Copy].into_iter().filter(|&area| has(area));
        let shares = shares.count() as u64;
        self.arguments.max_write.map(|most| most.saturating_sub(needed) / shares.max(1))
    }

    fn syscall_options(&self) -> (syscall::Options<'static>, u64) {
        let block_bytes = self.arguments.block_size.first().copied().unwrap_or(1);
        let directory = self.arguments.directory.clone();
        let quick = self.size != Extent::Full;
        (syscall::Options { block_bytes, directory, quick, cancelled: &|| false }, block_bytes)
    }

    fn clearing(&self) -> Clearing {
        if self.arguments.drop_caches { Clearing::System } else { Clearing::File }
    }

    fn cache(&self) -> Result<Job, Error> {
        let options = cache::Options {
            directory: self.arguments.directory.clone(),
            extent: self.size,
            max_write_bytes: self.max_write_bytes(),
            clearing: self.clearing(),
            seed: self.seed,
            cancel: self.cancel,
        };
        cache::check(&options)?;
        let seconds = match (self.size, self.arguments.quick) {
            (Extent::Few, true) => 12,
            (Extent::Few, false) => 32,
            (Extent::Quick, _) => 35,
            (Extent::Full, _) => 240,
        };
        let bytes = options.write_bytes()?;
        Ok(self.job(Area::Cache, options.directory.clone(), bytes, seconds, Work::Cache(options)))
    }

    fn disk(&self) -> Result<Job, Error> {
        let arguments = self.arguments;
        let chosen = &arguments.disk;
        // The block size of bare `bench` is that of system calls.
        let block_bytes = if self.size == Extent::Few { &[][..] } else { &arguments.block_size };
        let options = disk::Options {
            path: arguments.place().clone(),
            overwriting: match chosen.overwrite {
                true => Overwriting::Allowed,
                false => Overwriting::Refused,
            },
            grid: match (chosen.matrix, self.size) {
                (true, _) => Grid::Matrix,
                (false, Extent::Few) => Grid::Few,
                (false, Extent::Quick) => Grid::Quick,
                (false, Extent::Full) => Grid::Short,
            },
            selection: chosen.selection(block_bytes, &arguments.threads),
            bytes: arguments.bytes,
            runtime_ns: chosen.runtime,
            max_write_bytes: self.max_write_bytes(),
            clearing: self.clearing(),
            seed: self.seed,
            cancel: self.cancel,
        };
        let estimate = disk::estimate(&options)?;
        let seconds = estimate.time_ns().div_ceil(SECOND_NS);
        let place = options.path.clone();
        let (writes_over, least_ns) = (estimate.writes_over, estimate.least_ns());
        let bytes = estimate.most_write_bytes;
        let work = Work::Disk(Box::new((options, estimate)));
        let job = self.job(Area::Disk, place, bytes, seconds, work);
        Ok(Job { writes_over, least_ns, ..job })
    }

    fn syscall(&self) -> Result<Job, Error> {
        let (options, block_bytes) = self.syscall_options();
        let syscall::Options { ref directory, quick, .. } = options;
        let directory = directory.clone();
        syscall::check(&options).map_err(Error::Usage)?;
        let bytes = syscall::file_bytes(&options);
        let seconds = match (self.size, self.arguments.quick) {
            (Extent::Few, true) => 8,
            (Extent::Few, false) => 19,
            (Extent::Quick, _) => 15,
            (Extent::Full, _) => 120,
        };
        let work =
            Work::Syscall { block_bytes, directory: directory.clone(), quick, cancel: self.cancel };
        Ok(self.job(Area::Syscall, directory, bytes, seconds, work))
    }

    /// Seconds for an area that moves nothing on a disk.
    fn seconds(&self) -> u64 {
        match (self.size, self.arguments.quick) {
            (Extent::Few, true) => 4,
            (Extent::Few, false) | (Extent::Quick, _) => 9,
            (Extent::Full, _) => 55,
        }
    }

    fn cpu(&self) -> Result<Job, Error> {
        let options = cpu::Options {
            extent: self.size,
            threads: self.arguments.threads.clone(),
            order: self.arguments.cpu.order,
            trials: self.arguments.cpu.trials,
            seed: self.seed,
            cancel: self.cancel,
        };
        cpu::check(&options)?;
        Ok(self.job(Area::Cpu, PathBuf::new(), 0, self.seconds(), Work::Cpu(options)))
    }

    fn memory(&self) -> Result<Job, Error> {
        let options = memory::Options {
            extent: self.size,
            threads: self.arguments.threads.clone(),
            bytes: self.arguments.bytes,
            seed: self.seed,
            cancel: self.cancel,
        };
        memory::check(&options)?;
        Ok(self.job(Area::Memory, PathBuf::new(), 0, self.seconds(), Work::Memory(options)))
    }

    fn network(&self) -> Result<Job, Error> {
        let chosen = &self.arguments.network;
        // The block size of bare `bench` is that of system calls.
        let is_few = self.size == Extent::Few;
        let block_bytes = if is_few { &[][..] } else { &self.arguments.block_size };
        let key = chosen.token_file.as_deref().map(Key::from_file).transpose();
        let options = network::Options {
            extent: self.size,
            connect: chosen.connect.clone(),
            key: key.map_err(Error::Network)?,
            family: chosen.family(),
            selection: chosen
                .selection(block_bytes, self.arguments.bytes, self.arguments.disk.rate)
                .map_err(Error::Usage)?,
            window_ns: chosen.duration,
            cancel: self.cancel,
            notice: crate::output::complain,
        };
        network::check(&options)?;
        let seconds = match (self.size, self.arguments.quick) {
            (Extent::Few, true) => 2,
            (Extent::Few, false) => 5,
            (Extent::Quick, _) => 6,
            (Extent::Full, _) => 26,
        };
        let work = Work::Network(Box::new(options));
        Ok(self.job(Area::Network, PathBuf::new(), 0, seconds, work))
    }

    fn copy(&self) -> Result<Job, Error> {
        let (arguments, chosen) = (self.arguments, &self.arguments.copy);
        let flatout = std::env::current_exe()
            .map_err(flatout_io::Error::system("find the program of", "flatout".as_ref()))?;
        let is_alone = self.areas.len() == 1;
        let options = copy::Options {
            directory: arguments.place().clone(),
            flatout,
            extent: self.size,
            selection: chosen.selection(),
            state: chosen.state(),
            until: chosen.until(),
            rounds: chosen.rounds,
            least_rounds: if arguments.quick { QUICK_TRIALS } else { USUAL_TRIALS },
            time_ns: arguments.max_time.filter(|_| is_alone),
            max_write_bytes: self.max_write_bytes(),
            clearing: self.clearing(),
            seed: self.seed,
            cancel: self.cancel,
        };
        let planned = copy::plan(&options)?;
        planned.notices().iter().for_each(|line| crate::output::complain(line));
        let place = options.directory.clone();
        let (bytes, least_ns, time_ns) = (planned.write_bytes, planned.least_ns, planned.time_ns);
        let work = Work::Copy(Box::new((options, planned)));
        let job = self.job(Area::Copy, place, bytes, 0, work);
        Ok(Job { least_ns, budget_ns: time_ns, ..job })
    }
}

impl Job {
    /// Measures the area.
    ///
    /// Errors: its files cannot be made. What goes wrong with a row is the row's.
    pub(super) fn measure(&self, bench: &mut Bench<'_>) -> Result<Found, Error> {
        match &self.work {
            Work::Cache(options) => {
                let outcomes = cache::run(options, &self.plan, bench)?;
                Ok(Found { outcomes, charts: cache::charts(), storage: None })
            }
            Work::Disk(work) => {
                let (options, estimate) = &**work;
                let found = disk::run(options, estimate, &self.plan, bench)?;
                let charts = disk::charts(&found.outcomes);
                Ok(Found { outcomes: found.outcomes, charts, storage: Some(found.storage) })
            }
            Work::Syscall { block_bytes, directory, quick, cancel } => {
                let cancelled = || cancel.is_cancelled();
                let options = syscall::Options {
                    block_bytes: *block_bytes,
                    directory: directory.clone(),
                    quick: *quick,
                    cancelled: &cancelled,
                };
                let cases =
                    syscall::cases(&options).map_err(|error| Error::Usage(error.to_string()))?;
                let mut outcomes = sampler::run(cases, &self.plan, bench.tools());
                syscall::finish(&mut outcomes);
                Ok(Found { outcomes, charts: Vec::new(), storage: None })
            }
            Work::Cpu(options) => Ok(cpu::measure(options, &self.plan, bench)?.into()),
            Work::Memory(options) => Ok(memory::measure(options, &self.plan, bench)?.into()),
            Work::Network(options) => Ok(network::measure(options, &self.plan, bench)?.into()),
            Work::Copy(work) => Ok(copy::measure(&work.0, &work.1, &self.plan, bench)?.into()),
        }
    }
}
