//! The rows of matrices, Linpack and DGEMM, in the time that the loops of the units have left.
//!
//! A result is checked outside the clock, and one whose normalised residual is 16 or more fails the
//! row. Each row has a run of the sampler to itself: its trials take seconds, and how large its
//! matrices are (`order`) follows from its share of the time.

mod dgemm;
pub(crate) mod duel;
mod linpack;
mod meeting;
mod order;
mod residual;
mod system;

use flatout_measure::case::record;
use flatout_measure::units::percent;
use flatout_measure::{
    Case, Ceiling, EVIDENCE, Evidence, Facts, Happened, Label, Measured, Outcome, Plan, Provenance,
    Row, Sample, Sampler, TrialError, Unit, Value, Warning, ceiling, warning,
};
use flatout_sys::dgemm::Kernels;
use flatout_sys::monotonic_ns;

use super::bound::{AT_THE_LIMIT, double_peak};
use super::row::UnitRow;
use super::topology::Topology;
use super::{Options, fact};
use crate::workers::Spent;
use crate::{Extent, Room, slowdown, workers};

use order::{ALIGNMENT_BYTES, Shape, operations};
use residual::{Residual, THRESHOLD};

/// Part of its share of the time that a row is told of, in percent: of 10 trials that were wanted 16
/// were made, 2 vCPUs beside other work, 2026-11-22.
const TOLD_PERCENT: u64 = 60;
/// Trials where nobody says otherwise.
const TRIALS: u32 = 10;
/// Operations per second by which the number of trials is chosen where the order is given, and so
/// nothing is probed: a slow core, so that time is rather left over.
const ASSUMED_FLOP_PER_S: f64 = 20e9;
/// Times that twice the order takes, and the part of a row's time that all small runs may take.
const PROBE_GROWTH: u64 = 8;
const PROBE_PARTS: u64 = 4;
/// The least orders that show what the kernels do, of Linpack and of DGEMM.
const TELLING_ORDERS: [u64; 2] = [1152, 768];
/// A row with less time is left out.
const LEAST_SHARE_NS: u64 = 50_000_000;
/// What keeps products of matrices from the peak where nobody else does.
const LIMITER: &str = "multiply-add units; then packing, cache misses and, in LU, pivoting";

flatout_sys::words! {
    /// What is done with the matrices.
    enum Work: id {
        /// Linpack, A x = b: one matrix.
        Solve = "cpu/linpack",
        /// DGEMM, C = A B: three.
        Product = "cpu/dgemm",
    }
}

/// What a run did.
struct Ran {
    elapsed_ns: u64,
    /// What it took of a quota.
    spent: Spent,
    /// Works out how far the result is off, which takes about as long as making the matrices.
    residual: Box<dyn FnOnce() -> Residual>,
}

impl Work {
    fn run(self, shape: Shape, threads: u32, seed: u64) -> Result<Ran, TrialError> {
        let kernels = Kernels::best();
        match self {
            Self::Solve => linpack::run(kernels, shape, threads, seed),
            Self::Product => dgemm::run(kernels, shape, threads, seed),
        }
    }

    /// Operations per second of small runs, by which the order is chosen.
    fn probe(self, terms: &Terms) -> Result<f64, TrialError> {
        let largest = TELLING_ORDERS[self as usize];
        let (rate, order) = probed(largest, terms.time_ns / PROBE_PARTS, |order| {
            let (begun, begun_ns) = (Spent::now(), monotonic_ns());
            let Ran { elapsed_ns, spent, .. } =
                self.run(Shape::of_order(order), terms.threads, order)?;
            // A quota holds a run of a millisecond back for none of its periods or for most of one.
            let elapsed_ns = spent.charged_ns(elapsed_ns, terms.quota_cpus);
            let rate = operations(self, order as usize) / elapsed_ns.max(1) as f64 * 1e9;
            let spent_ns = monotonic_ns() - begun_ns;
            Ok((rate, Spent::since(begun).charged_ns(spent_ns, terms.quota_cpus)))
        })?;
        // Threads that come fresh go first, so a trial gets less where others are at work; the
        // probe has seen some of it.
        Ok(if order == largest { rate / slowdown::now().sqrt() } else { rate })
    }
}

/// The rate of the last of small runs, and its order: each has twice the order of the one before,
/// until the next would end after `time_ns` or one is as large as shows what the kernels do: 25 ms on
/// one core of 2026, beside 30 busy threads on 2 CPUs half a second. One that is too small for that and
/// took long may have lost its CPU by chance, for a hundred times its own time: it is run once more.
/// `run` returns rate and time.
fn probed(
    largest: u64,
    time_ns: u64,
    mut run: impl FnMut(u64) -> Result<(f64, u64), TrialError>,
) -> Result<(f64, u64), TrialError> {
    let (mut order, mut all_ns) = (largest / 8, 0_u64);
    let is_last = |all_ns: u64, spent_ns| all_ns.saturating_add(PROBE_GROWTH * spent_ns) > time_ns;
    loop {
        let (mut rate, mut spent_ns) = run(order)?;
        all_ns = all_ns.saturating_add(spent_ns);
        if order < largest && is_last(all_ns, spent_ns) {
            let (again, again_ns) = run(order)?;
            all_ns = all_ns.saturating_add(again_ns);
            (rate, spent_ns) = (rate.max(again), spent_ns.min(again_ns));
        }
        if order >= largest || is_last(all_ns, spent_ns) {
            return Ok((rate, order));
        }
        order *= 2;
    }
}

/// A row of matrices.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MatrixRow {
    id: &'static str,
    threads: u32,
    /// That of its matrices; none of a row that could not be begun with.
    shape: Option<Shape>,
}

impl Row for MatrixRow {
    fn label(&self) -> Label {
        let Self { id, threads, shape } = *self;
        let label =
            Label::new(id, Unit::FlopPerSecond).with("threads", threads).with("type", "f64");
        let Some(shape) = shape else { return label };
        label
            .with("order", shape.order)
            .with("leading_dimension", shape.stride)
            .with("alignment_bytes", ALIGNMENT_BYTES)
            .with("level", Kernels::best().level().name())
    }
}

/// What a row is to be.
struct Terms {
    /// Order of the matrices; without one it follows from time and memory.
    order: Option<u64>,
    /// Trials, as the time allows; at least one is made.
    trials: u32,
    /// Threads, this one included; at least 1.
    threads: u32,
    /// A quota that is worth less than these.
    quota_cpus: Option<f64>,
    /// Time for all trials together.
    time_ns: u64,
    /// Memory that may be taken.
    room: Room,
    /// Seed of the matrices.
    seed: u64,
}

impl Terms {
    fn new(options: &Options, threads: u32, topology: &Topology, time_ns: u64) -> Self {
        let trials = options.run.rounds.unwrap_or(TRIALS);
        let (order, seed) = (options.order, options.run.seed);
        let is_held_back = warning::has(&crowd(threads, topology), warning::CPU_QUOTA);
        let quota_cpus = topology.quota_cpus.filter(|_| is_held_back);
        Self { order, trials, threads, quota_cpus, time_ns, room: Room::now(), seed }
    }

    /// As many trials as were asked for, whatever the interval says earlier, and no more time than
    /// there is.
    fn plan(&self, budget_ns: u64, base: &Plan) -> Plan {
        Plan { min_trials: self.trials, max_trials: self.trials, budget_ns, ..base.clone() }
    }

    /// The matrices of a row; without an order some milliseconds are spent on a small run that tells
    /// how large ones the time allows.
    fn shape(&self, work: Work) -> Result<Shape, TrialError> {
        let flop_per_s = match self.order {
            Some(_) => ASSUMED_FLOP_PER_S,
            None => work.probe(self)?,
        };
        order::choose(work, self, flop_per_s).map_err(TrialError::Unsupported)
    }

    /// Whether a trial ends within so much time, as far as small runs tell. One whose order is chosen
    /// does.
    fn fits(&self, work: Work, left_ns: u64) -> bool {
        let Some(order) = self.order else { return true };
        work.probe(self).map_or(true, |rate| order::trial_ns(work, order, rate) <= left_ns as f64)
    }
}

/// Refuses an order for which there is not the memory, in one line.
pub(super) fn check(options: &Options) -> Result<(), String> {
    if options.order.is_some() {
        let terms = Terms::new(options, 1, &Topology::default(), 0);
        for work in [Work::Solve, Work::Product] {
            order::choose(work, &terms, ASSUMED_FLOP_PER_S)?;
        }
    }
    Ok(())
}

/// The rows, each held against the peak of its number of threads among the rows of the `units`.
pub(super) fn outcomes(
    options: &Options,
    units: &[Measured<UnitRow>],
    topology: &Topology,
    sampler: &mut Sampler<'_>,
) -> Vec<Outcome> {
    let rows: Vec<(u32, Work)> = threads(options, topology.count())
        .into_iter()
        .flat_map(|threads| [Work::Product, Work::Solve].map(|work| (threads, work)))
        .collect();
    let mut outcomes = Vec::new();
    let whole_ns = sampler.left_ns() / rows.len().max(1) as u64;
    for (rows_left, (threads, work)) in (1..=rows.len() as u64).rev().zip(rows) {
        if (sampler.cancelled)() {
            break;
        }
        // Equal shares, of which each row is told less: the guard throws trials out, and the
        // sampler makes others for them.
        let share_ns = match sampler.plan.ends_ns {
            u64::MAX => whole_ns,
            _ => sampler.left_ns() / rows_left,
        };
        let terms = Terms::new(options, threads, topology, share_ns / 100 * TOLD_PERCENT);
        let has_end = sampler.plan.ends_ns != u64::MAX;
        let case =
            match share_ns >= LEAST_SHARE_NS && (!has_end || terms.fits(work, sampler.left_ns())) {
                true => case(work, &terms, topology),
                false => Case::without_time(MatrixRow { id: work.id(), threads, shape: None }),
            };
        let mut rows = sampler.with(terms.plan(share_ns, &sampler.plan)).run(vec![case]);
        for row in &mut rows {
            hold(row, double_peak(units, threads));
            prove(row);
        }
        outcomes.extend(record(rows));
    }
    outcomes
}

/// One thread and one per CPU, unless the user chose; short runs have the latter alone.
fn threads(options: &Options, all: u32) -> Vec<u32> {
    let usual = if options.run.extent == Extent::Full { &[1, all][..] } else { &[all] };
    // The whole machine first: it needs the largest matrices to show what it can.
    workers::counts(&options.threads, usual).into_iter().rev().collect()
}

/// The case of a row; one that could not be begun with says why in its first trial.
fn case<'a>(work: Work, terms: &Terms, topology: &'a Topology) -> Case<'a, MatrixRow> {
    let Terms { threads, seed, quota_cpus, .. } = *terms;
    let shape = terms.shape(work);
    let row = MatrixRow { id: work.id(), threads, shape: shape.as_ref().ok().copied() };
    let telling = TELLING_ORDERS[work as usize];
    let is_small = |shape: &Shape| terms.order.is_none() && (shape.order as u64) < telling;
    let small = row.shape.filter(is_small).map(|Shape { order, .. }| {
        let text = format!(
            "for want of time, or of memory, matrices have the order {order}: the kernels show what they do \
             from {telling} on"
        );
        Warning::new(warning::SIZE_REDUCED, text)
    });
    let trial = move |trial_seed| {
        // What a quota held back counts, too: by chance it is one trial and not the next.
        let is_sustained = quota_cpus.is_some();
        let sample = topology.probe.around(&topology.cpus, is_sustained, || {
            sample(work, shape.clone()?, (threads, quota_cpus), seed ^ trial_seed)
        })?;
        let crowd = crowd(threads, topology).into_iter();
        let warnings = crowd.chain(small.clone()).chain(topology.changed()).collect();
        Ok(Sample { warnings, is_sustained, ..sample })
    };
    Case { row, trial: Box::new(trial) }
}

/// What is to be said of so many threads on this machine.
fn crowd(threads: u32, topology: &Topology) -> Vec<Warning> {
    let contained = workers::contained(threads, topology.count(), topology.quota_cpus);
    workers::oversubscribed(threads, topology.count()).into_iter().chain(contained).collect()
}

/// One trial, with all that is known of it as a fact.
fn sample(
    work: Work,
    shape: Shape,
    (threads, quota_cpus): (u32, Option<f64>),
    seed: u64,
) -> Result<Sample, TrialError> {
    let Ran { elapsed_ns, spent, residual } = work.run(shape, threads, seed)?;
    let elapsed_ns = spent.charged_ns(elapsed_ns, quota_cpus);
    let residual = residual();
    if !residual.passes() {
        return Err(TrialError::Failed(format!(
            "{}: the result is wrong: normalised residual {} (limit {THRESHOLD}), order {}, seed \
             {seed}",
            work.id(),
            residual.normalised,
            shape.order
        )));
    }
    let amount = operations(work, shape.order);
    let flop_per_s = Unit::FlopPerSecond.figure(amount, elapsed_ns);
    let trial = Value::fields([
        ("order", Value::from(shape.order)),
        ("leading_dimension", shape.stride.into()),
        ("alignment_bytes", ALIGNMENT_BYTES.into()),
        ("seconds", (elapsed_ns as f64 / 1e9).into()),
        ("flop_per_s", flop_per_s.into()),
        ("residual", residual.absolute.into()),
        ("normalised_residual", residual.normalised.into()),
        ("passed", true.into()),
    ]);
    let mut facts = Facts::default().with(fact::TRIALS, vec![trial]);
    facts.set_known(fact::AVERAGE_FLOP_PER_S, flop_per_s);
    facts.set_known(fact::BEST_FLOP_PER_S, flop_per_s);
    Ok(Sample { amount, elapsed_ns, facts, ..Sample::default() })
}

/// Says what shows that a row with a figure happened.
fn prove(measured: &mut Measured<MatrixRow>) {
    if measured.outcome.median.is_some() {
        let trials = measured.outcome.n as f64;
        let text = "the residual of each result was checked";
        measured.facts.set(EVIDENCE, Evidence::read(Happened::Yes, "trials_checked", trials, text));
    }
}

/// Holds a row against the peak of the CPUs that it used: multiply-adds of doubles, as the registers
/// give them in that load. A figure above it is an alarm (see [`ceiling::apply`]).
fn hold(measured: &mut Measured<MatrixRow>, mut peak: Ceiling) {
    let Measured { outcome, facts, .. } = measured;
    if outcome.n > 0 {
        facts.set(fact::HALF_WIDTH, outcome.half_width());
    }
    let is_held_back = warning::has(&outcome.warnings, warning::CPU_QUOTA);
    if is_held_back && peak.value.is_some() {
        // A trial shorter than the quota's period has more than its share.
        peak.provenance = Provenance::Given;
    }
    let limiter = if is_held_back { "the CPU quota" } else { LIMITER };
    ceiling::apply(outcome, peak.limited_by(limiter));
    let contention = facts.number(fact::CONTENTION_RATIO).unwrap_or(0.0);
    if is_held_back || contention <= warning::NOTABLE_CONTENTION {
        return;
    }
    let seen = format!("contention by an SMT sibling in {} of the probes", percent(contention));
    let below = |bound: &&mut Ceiling| bound.ratio.is_none_or(|ratio| ratio < AT_THE_LIMIT);
    if let Some(bound) = outcome.ceiling.as_mut().filter(below) {
        bound.limiter = format!("{seen}, then {LIMITER}");
    }
}

#[cfg(test)]
mod tests;
