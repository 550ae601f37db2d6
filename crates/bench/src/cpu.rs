//! The CPU: what its units do per second, held against what its clock and its ports allow.
//!
//! A row of `cpu/throughput` is a loop of arithmetic in registers ([`flatout_sys::throughput`]),
//! in slices of 0.04 ms; before each, chains of dependent instructions tell the clock in that very
//! load ([`flatout_sys::core_clock`]). Its peak is the product of what `peak` lists, each factor
//! measured: cores by `sharing`, the clock by `clock`, ports by `census`. `lookout` tells in which slices the core was nobody else's. Which rows there are:
//! `row`; how one is timed: `trial` and `load`; what they are held against: `finish`. Matrices come
//! last: `matrix`.

mod census;
mod clock;
pub mod dgemm;
mod fact;
mod finish;
pub mod linpack;
mod load;
mod lookout;
mod matrix;
mod peak;
mod ports;
mod row;
mod scaling;
mod sharing;
mod site;
mod stint;
mod trial;
mod watch;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use flatout_measure::case::{Case, Plain, TrialError};
use flatout_measure::record::Outcome;
use flatout_measure::sampler::Sampler;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::throughput::{Form, Kernel, Number, Operation};

use crate::area::{Area, Estimate, Extent, Found, Pace, Seconds};
use crate::crew::MAX_THREADS;
use crate::error::Error;
use crate::limits::within;

use census::Census;
use load::{Load, NoLoad};
use row::Row;
use site::Site;
use trial::{Placement, Setting};

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which rows.
    pub extent: Extent,
    /// Numbers of threads; empty: 1, 2, 4, 8 and one per CPU.
    pub threads: Vec<u32>,
    /// Order of the matrices of Linpack; without one it follows from time and memory.
    pub order: Option<u64>,
    /// Trials of Linpack, as the time allows.
    pub trials: Option<u32>,
    /// Seed of the data.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// Refuses options out of bounds, in one line.
///
/// # Errors
/// `Usage`.
fn check(options: &Options) -> Result<(), Error> {
    for &threads in &options.threads {
        within("--threads", Some(threads.into()), MAX_THREADS.into(), "")?;
    }
    within("--trials", options.trials.map(u64::from), MAX_TRIALS, "")?;
    within("--order", options.order, MAX_ORDER, "")?;
    matrix::check(options).map_err(Error::Usage)
}

/// Trials of Linpack that anybody would wait for.
const MAX_TRIALS: u64 = 10_000;
/// A matrix of this order takes 8 TiB.
const MAX_ORDER: u64 = 1 << 20;
/// Share of the area's time that is the units'; the rest is Linpack's.
const UNITS_SHARE: f64 = 0.6;
/// Share of the units' time in which ports are counted again that a neighbour kept from being counted.
const CENSUS_SHARE: f64 = 0.2;

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
    let ends_ns = sampler.clock.now_ns().saturating_add(sampler.plan.budget_ns);
    let site = Site::look(Path::new("/"));
    let share_ns = (sampler.plan.budget_ns as f64 * UNITS_SHARE) as u64;
    let mut outcomes = units(options, &site, &mut sampler.within(share_ns));
    let scaling = match options.extent {
        Extent::Few => Vec::new(),
        Extent::Quick | Extent::Full => scaling::rows(&outcomes),
    };
    let rest_ns = ends_ns.saturating_sub(sampler.clock.now_ns());
    let matrices = matrix::outcomes(options, &outcomes, &site, &mut sampler.within(rest_ns));
    outcomes.extend(matrices);
    outcomes.extend(scaling);
    Ok(Found { charts: scaling::charts(&outcomes), outcomes, storage: None })
}

/// The rows of the arithmetic units, with their ceilings.
fn units(options: &Options, site: &Site, sampler: &mut Sampler<'_>) -> Vec<Outcome> {
    let rows = row::rows(options.extent, &options.threads, site);
    let kernels: Vec<Kernel> = rows.iter().filter_map(|row| row.kernel()).collect();
    let mut census = Census::take(&kernels, site, options.seed, sampler.cancelled);
    let loads = Loads { seed: options.seed, known: RefCell::default() };
    let cases = rows.iter().map(|&row| case(row, &loads, site)).collect();
    let mut outcomes = sampler.run_recorded(cases);
    let most_ns = (sampler.plan.budget_ns as f64 * CENSUS_SHARE) as u64;
    let until_ns = monotonic_ns().saturating_add(most_ns);
    let is_over = || (sampler.cancelled)() || monotonic_ns() > until_ns;
    census.complete(site, options.seed, &is_over);
    finish::finish(&rows, &mut outcomes, site, &census);
    outcomes
}

/// Workloads that several rows share, made when the first of them needs one.
struct Loads {
    seed: u64,
    known: RefCell<BTreeMap<Kernel, Rc<Load>>>,
}

impl Loads {
    fn get(&self, kernel: Kernel) -> Result<Rc<Load>, TrialError> {
        if let Some(load) = self.known.borrow().get(&kernel) {
            return Ok(Rc::clone(load));
        }
        let load = Load::new(kernel, Form::Work, self.seed).map_err(|error| match error {
            NoLoad::Unsupported(text) => {
                TrialError::Unsupported(format!("{}: {text}", row::name(kernel)))
            }
            NoLoad::Wrong(text) => TrialError::Failed(text),
        })?;
        let load = Rc::new(load);
        self.known.borrow_mut().insert(kernel, Rc::clone(&load));
        Ok(load)
    }
}

fn case<'a>(row: Row, loads: &'a Loads, site: &'a Site) -> Case<'a, Plain> {
    Case {
        row: Plain { id: row.id(), parameters: row.parameters(), unit: row.unit() },
        trial: Box::new(move |_seed| match row {
            Row::Throughput { kernel, setting } => {
                trial::sample(&*loads.get(kernel)?, site, setting)
            }
            Row::Clock { load: None, .. } => trial::idle_clock(site),
            Row::Clock { load: Some(kernel), threads } => {
                let setting = Setting { threads, placement: Placement::Pinned };
                trial::loaded_clock(&*loads.get(kernel)?, site, setting)
            }
            Row::Sharing { first, second } => {
                let kernel = row::best(Number::F64, Operation::MultiplyAdd).ok_or_else(|| {
                    TrialError::Unsupported("no kernel keeps the ports busy here".to_owned())
                })?;
                sharing::sample(&*loads.get(kernel)?, first, second)
            }
        }),
    }
}

#[cfg(test)]
mod tests;
