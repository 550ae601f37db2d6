//! Linpack: random equations A x = b of order n, solved by LU factorisation with partial pivoting
//! and substitution, and checked.
//!
//! The figure counts 2/3 n³ + 2 n² operations, whatever was really done, divided by the time from
//! the first touch of A to the solution. Filling A and checking x are outside the clock.
//! Source of the count: J. Dongarra, P. Luszczek, A. Petitet, "The LINPACK Benchmark: past, present
//! and future", Concurrency and Computation 15, 2003.
//!
//! A is not kept: the check makes it again, column by column, from the seed. A solution whose
//! normalised residual is 16 or more fails the row.
//!
//! [`cases`] gives the row; [`finish`] adds the trials one by one, average and best. Read next:
//! `order`, how large n is; `factor`, where the time goes.

pub(crate) mod factor;
pub(crate) mod order;
mod panel;
mod residual;
mod solve;
pub(crate) mod system;
mod trial;

pub(crate) use trial::{crowd, series};

use std::rc::Rc;

use flatout_measure::case::{Case, Plain, Plan, TrialError};
use flatout_measure::record::{Ceiling, Outcome, Status, Warning};
use flatout_measure::row::Unit;
use flatout_measure::{ceiling, statistics, warning};
use flatout_sys::dgemm::Kernels;
use serde_json::{Map, Value, json};

use order::{Chosen, Limits, Work};

/// Trials where nobody says otherwise.
pub const TRIALS: u32 = 10;

/// What a row of Linpack, or of DGEMM, is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Order of the matrices; without one it follows from time and memory.
    pub order: Option<u64>,
    /// Trials, as the time allows; at least one is made.
    pub trials: u32,
    /// Threads, this one included; at least 1.
    pub threads: u32,
    /// Time for all trials together.
    pub time_ns: u64,
    /// Memory that is free; at most 60 % of it is taken.
    pub free_bytes: u64,
    /// Seed of the matrices.
    pub seed: u64,
}

/// Refuses an order that is 0, or for which there is not the memory, in one line.
///
/// # Errors
/// The line.
pub fn check(options: &Options) -> Result<(), String> {
    for work in [Work::Solve, Work::Product] {
        order::choose(work, options.order, &Limits::of(options, 1e9))?;
    }
    Ok(())
}

/// The row `cpu/linpack`; nothing is set up before its first trial, but some milliseconds are
/// spent on a small factorisation that tells how large a one the time allows.
///
/// # Errors
/// `Failed` for options that [`check`] refuses.
pub fn cases(options: &Options) -> Result<Vec<Case<'static, Plain>>, TrialError> {
    let kernels = Kernels::best();
    let rate = match options.order {
        Some(_) => ASSUMED_FLOP_PER_S,
        None => trial::probe(kernels, options.threads)?,
    };
    let limits = Limits::of(options, rate);
    let chosen =
        order::choose(Work::Solve, options.order, &limits).map_err(TrialError::Unsupported)?;
    let (threads, seed) = (options.threads.max(1), options.seed);
    let site = Rc::new(trial::Site::new(kernels, chosen, threads));
    let mut number = 0_u64;
    Ok(vec![Case {
        row: Plain {
            id: "cpu/linpack",
            parameters: parameters(kernels, &chosen, threads),
            unit: Unit::FlopPerSecond,
        },
        trial: Box::new(move |trial_seed| {
            number += 1;
            trial::sample(&site, seed ^ trial_seed, number)
        }),
    }])
}

/// Operations per second by which the number of trials is chosen where the order is given, and so
/// nothing is probed: a slow core, so that time is rather left over.
pub(crate) const ASSUMED_FLOP_PER_S: f64 = 20e9;

/// What tells a row from others; the same for Linpack and DGEMM.
pub(crate) fn parameters(kernels: Kernels, chosen: &Chosen, threads: u32) -> Map<String, Value> {
    let facts = json!({
        "threads": threads,
        "order": chosen.order,
        "leading_dimension": chosen.stride,
        "alignment_bytes": order::ALIGNMENT_BYTES,
        "type": "f64",
        "level": kernels.level().name(),
    });
    facts.as_object().cloned().unwrap_or_default()
}

/// The plan by which these rows are measured: as many trials as were asked for, whatever the
/// interval says earlier, and no more time than there is.
pub fn plan(options: &Options, base: &Plan) -> Plan {
    let trials = options.trials.max(1);
    Plan {
        min_trials: trials,
        max_trials: trials,
        half_width: base.half_width,
        budget_ns: options.time_ns,
        seed: base.seed,
    }
}

/// Adds what follows from all trials of a row to its audit: `trials` one by one (seconds,
/// operations per second, residual, normalised residual, whether it passed), `average_flop_per_s`
/// and `best_flop_per_s`. Rows of other areas are left alone.
pub fn finish(outcomes: &mut [Outcome]) {
    let own = |outcome: &&mut Outcome| ["cpu/linpack", "cpu/dgemm"].contains(&outcome.id.as_str());
    for outcome in outcomes.iter_mut().filter(own) {
        let trials = each_trial(outcome);
        let rates: Vec<f64> = outcome.samples.clone();
        if !rates.is_empty() {
            let average = rates.iter().sum::<f64>() / rates.len() as f64;
            let best = rates.iter().copied().fold(0.0, f64::max);
            outcome.audit.insert("trials".to_owned(), Value::Array(trials));
            outcome.audit.insert("average_flop_per_s".to_owned(), json!(average));
            outcome.audit.insert("best_flop_per_s".to_owned(), json!(best));
            let half = statistics::relative_half_width(&rates);
            outcome.audit.insert("half_width".to_owned(), json!(half));
        }
        outcome.series.retain(|series| !trial::NAMES.contains(&series.name.as_str()));
    }
}

/// The row of the best trial of Linpack, which is what lists of machines show; none without a
/// figure.
pub(super) fn best(outcome: &Outcome) -> Option<Outcome> {
    let rate = statistics::max(&outcome.samples).filter(|_| outcome.id == "cpu/linpack")?;
    outcome.median?;
    let mut audit = Map::new();
    audit.insert("chosen_from_trials".to_owned(), json!(outcome.n));
    Some(Outcome {
        id: "cpu/linpack-best".to_owned(),
        median: Some(rate),
        ci95: None,
        n: 1,
        samples: vec![rate],
        audit,
        ceiling: None,
        warnings: Vec::new(),
        series: Vec::new(),
        status: Status::Ok,
        ..outcome.clone()
    })
}

/// The figures of the trials that count, from the curves that these brought.
fn each_trial(outcome: &Outcome) -> Vec<Value> {
    let points = |name: &str| {
        let series = outcome.series.iter().find(|series| series.name == name);
        series.map(|series| series.points.clone()).unwrap_or_default()
    };
    let [seconds, residuals, normalised] = trial::NAMES.map(points);
    let order = outcome.parameters.get("order").cloned().unwrap_or_default();
    let stride = outcome.parameters.get("leading_dimension").cloned().unwrap_or_default();
    let one = |index: usize| {
        let value = |points: &[[f64; 2]]| points.get(index).map(|point| point[1]);
        json!({
            "order": order,
            "leading_dimension": stride,
            "alignment_bytes": order::ALIGNMENT_BYTES,
            "seconds": value(&seconds),
            "flop_per_s": outcome.samples.get(index),
            "residual": value(&residuals),
            "normalised_residual": value(&normalised),
            "passed": value(&normalised).map(residual::passes),
        })
    };
    (0..outcome.samples.len()).map(one).collect()
}

/// Holds a row of Linpack or DGEMM against the peak of the CPUs that it used: multiply-adds of
/// doubles, as the registers give them in that load. A figure above it is an alarm: the row
/// becomes invalid where the peak is derived (see [`ceiling::apply`]).
pub fn against_peak(outcome: &mut Outcome, peak: Ceiling) {
    let limiter = if peak.limiter.is_empty() { LIMITER.to_owned() } else { peak.limiter.clone() };
    ceiling::apply(outcome, Ceiling { limiter, ..peak });
}

/// What keeps products of matrices from the peak where nobody else does.
const LIMITER: &str = "multiply-add units; then packing, cache misses and, in LU, pivoting";
/// Share of the peak from which on there is nothing to explain.
const AT_THE_LIMIT: f64 = 0.97;
/// Share of the glances at the cores that saw a neighbour from which on he is named.
const NEIGHBOUR: f64 = 0.1;

/// Notes how often glances before and after the trials saw somebody else on the cores, and names him.
pub(super) fn note_neighbour(outcome: &mut Outcome, ratio: Option<f64>) {
    let Some(ratio) = ratio.filter(|_| outcome.median.is_some()) else { return };
    outcome.audit.insert("neighbour_ratio".to_owned(), json!(ratio));
    if ratio <= NEIGHBOUR {
        return;
    }
    let seen = format!("another hardware thread in {:.0} % of the glances", ratio * 100.0);
    let text =
        format!("{seen} at the cores before and after: ports and caches were shared with it");
    warning::add(&mut outcome.warnings, Warning::new(warning::CORE_NEIGHBOUR, text));
    let below = |ceiling: &&mut Ceiling| ceiling.ratio.is_none_or(|ratio| ratio < AT_THE_LIMIT);
    if let Some(ceiling) = outcome.ceiling.as_mut().filter(below) {
        ceiling.limiter = format!("a neighbour on the core ({seen}), then {LIMITER}");
    }
}

#[cfg(test)]
mod tests;
