//! The CPU: what its units do per second, held against what its clock and its ports allow.
//!
//! A row of `cpu/throughput` is a loop of arithmetic in registers ([`flatout_sys::throughput`]),
//! in slices of 0.04 ms; before each, chains of dependent instructions tell the clock in that very
//! load ([`flatout_sys::core_clock`]). Its peak is the product of what `peak` lists, each factor
//! measured: cores by `sharing`, the clock by `clock`, ports by `port_count`. `contention` tells in
//! which slices no SMT sibling used the core. Which rows there are: `row`; how one is timed: `trial`
//! and `load`; what they are held against: `bound`. Matrices come last: `matrix`.

mod bound;
mod caveat;
mod clock;
mod fact;
mod load;
mod matrix;
mod peak;
mod port_count;
mod ports;
mod preemption;
mod row;
mod scaling;
mod sharing;
mod topology;
mod trial;
mod window;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use clap::Args;
use flatout_measure::{
    Case, EVIDENCE, Evidence, Happened, Measured, Sampler, TrialError, record_counted,
};
use flatout_sys::monotonic_ns;
use flatout_sys::throughput::{Form, Kernel, Number, Operation};

use crate::option::count_to;
use crate::roofline::Part;
use crate::workers::MAX_THREADS;
use crate::{Area, Error, Estimate, Extent, Found, Run, Seconds};

pub(crate) use matrix::duel;

use load::Load;
use port_count::PortCounts;
use row::UnitRow;
use topology::Topology;
use trial::{Placement, Setting};

/// What the user chose.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Options {
    /// What all areas of the run have in common.
    #[arg(skip)]
    run: Run,
    /// Threads; several make a sweep [default: 1, 2, 4, 8 and one per CPU]
    #[arg(short = 'j', long, alias = "numjobs", value_name = "N,…", value_delimiter = ',',
        value_parser = count_to(MAX_THREADS))]
    pub threads: Vec<u32>,
    /// Order of the matrices of Linpack and DGEMM [default: what time and memory allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_ORDER))]
    pub order: Option<u64>,
}

/// A matrix of this order takes 8 TiB.
const MAX_ORDER: u64 = 1 << 20;
/// Share of the area's time that is the units'; the rest is Linpack's.
const UNITS_SHARE: f64 = 0.6;
/// Part of the units' time, one in so many, in which ports are counted, and again in the end where
/// contention kept them from being counted.
const PORT_COUNT_PARTS: u64 = 5;

/// Time of the area.
const SECONDS: Seconds = Seconds { few_quick: 4, few: 9, quick: 9, full: 55 };

impl Area for Options {
    fn plan(&mut self, run: &Run) -> Result<Estimate, Error> {
        self.run = run.clone();
        matrix::check(self).map_err(Error::Usage)?;
        Ok(SECONDS.estimate(run))
    }

    fn measure(&mut self, sampler: &mut Sampler<'_>) -> Result<Found, Error> {
        let options = &*self;
        let topology = Topology::look(Path::new("/"));
        let share_ns = (sampler.left_ns() as f64 * UNITS_SHARE) as u64;
        let matrices_ns = sampler.left_ns() - share_ns;
        let units = units(options, &topology, &mut sampler.within(share_ns));
        let scaling = match options.run.extent {
            Extent::Few => Vec::new(),
            Extent::Quick | Extent::Full => scaling::rows(&units),
        };
        // What the units left goes to the matrices where there is an end.
        let rest_ns =
            if sampler.plan.ends_ns == u64::MAX { matrices_ns } else { sampler.left_ns() };
        let matrices = matrix::outcomes(options, &units, &topology, &mut sampler.within(rest_ns));
        let charts = scaling::charts(&scaling);
        let roofline = units.iter().filter_map(multiply_adds).collect();
        let outcomes = [record_counted(units, &[fact::OPERATIONS]), matrices, scaling].concat();
        Ok(Found { outcomes, charts, roofline, ..Found::default() })
    }
}

/// What a roofline ends at: the rate of f64 multiply-adds.
fn multiply_adds(measured: &Measured<UnitRow>) -> Option<Part> {
    let UnitRow::Units { kernel, setting } = measured.row else { return None };
    let work = (kernel.number, kernel.operation);
    let is_peak =
        setting.placement != Placement::Sustained && work == (Number::F64, Operation::MultiplyAdd);
    let flop_per_s = measured.outcome.median.filter(|_| is_peak)?;
    Some(Part::Units { threads: setting.threads, flop_per_s })
}

/// The rows of the arithmetic units, with their bounds.
fn units(
    options: &Options,
    topology: &Topology,
    sampler: &mut Sampler<'_>,
) -> Vec<Measured<UnitRow>> {
    let rows = row::rows(options.run.extent, &options.threads, topology);
    let kernel = |row: &UnitRow| match row {
        UnitRow::Units { kernel, .. } => Some(*kernel),
        UnitRow::Clock { .. } | UnitRow::Sharing { .. } => None,
    };
    let kernels: Vec<Kernel> = rows.iter().filter_map(kernel).collect();
    let cancelled = sampler.cancelled;
    let until = |ends_ns: u64| move || cancelled() || monotonic_ns() >= ends_ns;
    let counted_ns = sampler.part_ends_ns(PORT_COUNT_PARTS);
    let mut ports = PortCounts::take(&kernels, topology, options.run.seed, &until(counted_ns));
    let loads = Loads { seed: options.run.seed, known: RefCell::default() };
    let cases = rows.into_iter().map(|row| case(row, &loads, topology)).collect();
    let complete_ns = sampler.left_ns() / PORT_COUNT_PARTS;
    let rows_ns = sampler.left_ns() - complete_ns;
    let mut measured = sampler.within(rows_ns).run(cases);
    let completed_ns = monotonic_ns().saturating_add(complete_ns.min(sampler.left_ns()));
    ports.complete(topology, options.run.seed, &until(completed_ns));
    bound::apply(&mut measured, topology, &ports.counts());
    for Measured { row, outcome, facts, .. } in &mut measured {
        let agreement = facts.number(fact::CHAIN_AGREEMENT_RATIO);
        if let (UnitRow::Clock { load: None, .. }, Some(ratio)) = (row, agreement)
            && outcome.median.is_some()
        {
            let text = "two kinds of dependency chains were counted against each other";
            let by = fact::CHAIN_AGREEMENT_RATIO.name();
            facts.set(EVIDENCE, Evidence::read(Happened::Yes, by, ratio, text));
        }
    }
    measured
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
        let load = Rc::new(Load::new(kernel, Form::Work, self.seed)?);
        self.known.borrow_mut().insert(kernel, Rc::clone(&load));
        Ok(load)
    }
}

fn case<'a>(row: UnitRow, loads: &'a Loads, topology: &'a Topology) -> Case<'a, UnitRow> {
    let trial = move |_seed| match row {
        UnitRow::Units { kernel, setting } => match setting.placement {
            Placement::Sustained => trial::sustained(&*loads.get(kernel)?, topology, setting),
            _ => trial::sample(&*loads.get(kernel)?, topology, setting),
        },
        UnitRow::Clock { load: None, .. } => trial::idle_clock(topology),
        UnitRow::Clock { load: Some(kernel), threads } => {
            let setting = Setting { threads, placement: Placement::Pinned };
            trial::sample(&*loads.get(kernel)?, topology, setting).map(trial::clock_sample)
        }
        UnitRow::Sharing { first, second } => {
            let kernel = row::best(Number::F64, Operation::MultiplyAdd).ok_or_else(|| {
                TrialError::Unsupported("no kernel keeps the ports busy here".to_owned())
            })?;
            sharing::sample(&*loads.get(kernel)?, first, second)
        }
    };
    Case { row, trial: Box::new(trial) }
}

#[cfg(test)]
mod tests;
