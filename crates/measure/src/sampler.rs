//! Runs cases in rounds until each figure is as precise as the plan asks or time is up.
//!
//! In every round all open cases run once, in a new random order, so that drift of the machine
//! hits all of them alike; the first round keeps the order of the cases, those that people compare first, so
//! that those for which there is no time are others. Each trial is wrapped by the guard; a spoiled one does not count.
//! What a row makes of its trials stands in `sampler/row.rs`; this file decides who runs next.
//!
//! A trial may report [`CLOCK_READS`], the readings inside its timed region; they are charged to
//! the harness.

pub mod fact;
mod pairs;
mod row;
mod warmup;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::case::{Case, Measured, Plan, Sample, Trial, TrialError, WhenPrecise};
use crate::clock::Clock;
use crate::fact::Key;
use crate::guard::{self, Spoil, UseOfCpus, Witness};
use crate::progress::Event;
use crate::random::SplitMix64;
use crate::row::Row;
use crate::statistics::pool::{Pool, Prior};
use crate::warning;

pub use crate::overhead::{Overhead, calibrate};

pub use pairs::Pair;
pub use row::note_use_of_cpus;
use row::{Closed, Sampled, Stolen, Surroundings, contention, distance};

/// Readings of the clock inside the timed region of a trial.
pub const CLOCK_READS: Key = Key::sum("clock_reads");

/// Rounds of which a row whose trials agree takes part in one.
const THIN_ROUNDS: usize = 4;

/// Half the width of an interval, as a share of its median, from which on a row is noisy.
pub const NOISY: f64 = 0.25;

/// What measures: when to stop, and what is needed from outside; tests hand in fakes.
pub struct Sampler<'a> {
    /// When to stop, and in which order to go.
    pub plan: Plan,
    /// Tells the time, for the budget and the estimates; trials read their own.
    pub clock: &'a dyn Clock,
    /// Sees what else happens on the machine.
    pub witness: &'a mut dyn Witness,
    /// Is told about progress.
    pub events: &'a mut dyn FnMut(Event),
    /// Whether the user wants to stop; asked before each trial.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl Sampler<'_> {
    /// The same with another plan, from now on.
    pub fn with(&mut self, plan: Plan) -> Sampler<'_> {
        Sampler {
            plan: plan.from(self.clock.now_ns()),
            witness: &mut *self.witness,
            events: &mut *self.events,
            ..*self
        }
    }

    /// The same with so much time.
    pub fn within(&mut self, budget_ns: u64) -> Sampler<'_> {
        self.with(Plan { budget_ns, ..self.plan.clone() })
    }

    /// The time that is left of the plan.
    pub fn left_ns(&self) -> u64 {
        self.plan.left_ns(self.clock.now_ns())
    }

    /// When a part of what is left of the time is over, one in `parts`; [`u64::MAX`] where it has
    /// no end.
    pub fn part_ends_ns(&self, parts: u64) -> u64 {
        match self.plan.ends_ns {
            u64::MAX => u64::MAX,
            _ => self.clock.now_ns().saturating_add(self.left_ns() / parts.max(1)),
        }
    }

    /// Measures `cases` and returns their rows in the same order.
    ///
    /// Never fails: what goes wrong becomes the status and a warning of the row. Cost: two
    /// readings of the witness per trial and a calibration of the harness at the start.
    pub fn run<R: Row>(&mut self, cases: Vec<Case<'_, R>>) -> Vec<Measured<R>> {
        of_rows(cases, |cases| self.run_all(cases))
    }

    fn run_all(&mut self, cases: Vec<Case<'_, &dyn Row>>) -> Vec<Measured<()>> {
        let overhead = calibrate(self.clock);
        let started_ns = self.clock.now_ns();
        let rows = cases.into_iter().map(|case| Sampled::new(case, &self.plan)).collect();
        let mut run = Run { rows, sampler: self, started_ns };
        let mut random = SplitMix64::new(run.sampler.plan.seed);
        let mut order: Vec<usize> = (0..run.rows.len()).collect();
        order.sort_by_key(|&index| !run.rows[index].case.row.label().is_headline);
        for round in 0.. {
            if !run.rows.iter().any(Sampled::is_open) {
                break;
            }
            for &index in &order {
                if !run.rests(index, round) {
                    run.step(index);
                }
            }
            random.shuffle(&mut order);
        }
        run.finish(&overhead)
    }
}

/// Has rows measured by code that does not know their type, and is compiled once for all types.
fn of_rows<R: Row>(
    cases: Vec<Case<'_, R>>,
    measure: impl FnOnce(Vec<Case<'_, &dyn Row>>) -> Vec<Measured<()>>,
) -> Vec<Measured<R>> {
    let (rows, trials): (Vec<R>, Vec<Trial<'_>>) =
        cases.into_iter().map(|case| (case.row, case.trial)).unzip();
    let cases = rows.iter().zip(trials).map(|(row, trial)| Case { row: row as &dyn Row, trial });
    let measured = measure(cases.collect());
    rows.into_iter().zip(measured).map(|(row, measured)| measured.of(row)).collect()
}

/// One trial and what the guard thought of it.
pub(crate) struct Attempt {
    /// What the case reported.
    pub(crate) result: Result<Sample, TrialError>,
    /// Why it must not count.
    pub(crate) spoil: Option<Spoil>,
    /// Time of the whole trial with its set-up.
    pub(crate) spent_ns: u64,
    /// Who had the CPUs meanwhile.
    pub(crate) use_of_cpus: UseOfCpus,
    /// How far CPUs were from each other before and after it.
    pub(crate) distance_ns: Option<[u32; 2]>,
}

/// Runs one trial between two readings of the witness.
pub(crate) fn attempt(
    trial: &mut Trial<'_>,
    seed: u64,
    clock: &dyn Clock,
    witness: &mut dyn Witness,
) -> Attempt {
    let started_ns = clock.now_ns();
    let distance_ns = witness.distance_ns();
    let before = witness.read();
    let result = trial(seed);
    let after = witness.read();
    let spoil = guard::judge(&before, &after, witness.cpus());
    let use_of_cpus = UseOfCpus::between(&before, &after);
    let distance_ns = distance_ns.zip(witness.distance_ns()).map(|(first, last)| [first, last]);
    let spent_ns = clock.now_ns().saturating_sub(started_ns);
    Attempt { result, spoil, spent_ns, use_of_cpus, distance_ns }
}

/// State of one call of [`Sampler::run`].
struct Run<'c, 's, 'a> {
    rows: Vec<Sampled<'c>>,
    sampler: &'s mut Sampler<'a>,
    started_ns: u64,
}

impl Run<'_, '_, '_> {
    /// Runs one trial of the row at `index` if it still wants one.
    fn step(&mut self, index: usize) {
        if !self.rows[index].is_open() {
            return;
        }
        if (self.sampler.cancelled)() {
            return self.interrupt();
        }
        if let Some(text) = self.rows[index].lacks() {
            return self.close(index, Closed::Unsupported(text));
        }
        if !self.wants_more(index) {
            return self.close(index, self.rows[index].done());
        }
        let attempt = self.attempt(index);
        match self.take(index, attempt) {
            Some(Closed::Interrupted) => self.interrupt(),
            Some(reason) => self.close(index, reason),
            None if !self.wants_more(index) => self.close(index, Closed::Done),
            None => {}
        }
    }

    /// Runs a trial of the row at `index`. One that was ended though nobody wants to stop was ended because
    /// its time was over.
    fn attempt(&mut self, index: usize) -> Attempt {
        let left_ns = self.left_ns();
        let (row, sampler) = (&mut self.rows[index], &mut *self.sampler);
        (sampler.events)(Event::Trial { row: row.name(), left_ns });
        // A seed that no other trial of this run gets: the generator is a bijection of its state.
        let place = ((index as u64) << 32) | u64::from(row.attempts);
        let seed = SplitMix64::new(sampler.plan.seed.wrapping_add(place)).next_u64();
        let mut attempt = attempt(&mut row.case.trial, seed, sampler.clock, sampler.witness);
        if attempt.result == Err(TrialError::Interrupted) && !(sampler.cancelled)() {
            attempt.result = Err(TrialError::NoMore(warning::no_time()));
        }
        attempt
    }

    /// Lets the row at `index` take in a trial; a reason is returned when it ends the row.
    fn take(&mut self, index: usize, attempt: Attempt) -> Option<Closed> {
        let (row, plan) = (&mut self.rows[index], &self.sampler.plan);
        let use_of_cpus = attempt.use_of_cpus;
        let reason = row.take(attempt, plan);
        let (row, standing) = (row.name(), row.standing(plan));
        (self.sampler.events)(Event::Ended { row, standing, use_of_cpus });
        reason
    }

    /// The rows with their figures. What rows of one test say together of how far trials lie
    /// apart helps those that have few; where there are few such rows, all of this run do.
    fn finish(mut self, overhead: &Overhead) -> Vec<Measured<()>> {
        let plan = &self.sampler.plan;
        let mut all = Vec::new();
        let mut tests: HashMap<Cow<'static, str>, Vec<Pool>> = HashMap::new();
        for row in &mut self.rows {
            let spread = row.settle(plan);
            tests.entry(row.case.row.id()).or_default().push(spread);
            all.push(spread);
        }
        let all = Prior::of(&all);
        let tests: HashMap<_, Option<Prior>> =
            tests.into_iter().map(|(test, rows)| (test, Prior::of(&rows))).collect();
        let kin = |row: &dyn Row| tests.get(&row.id()).copied().flatten().or(all);
        let cpus = self.sampler.witness.cpus();
        let stolen = Stolen::of(&self.rows);
        let contention_ratio = contention::ratio(self.rows.iter().flat_map(Sampled::taken_facts));
        let least_distance_ns = distance::least(&self.rows);
        let finish = |row: Sampled<'_>| {
            let surroundings = Surroundings {
                kin: kin(row.case.row),
                cpus,
                stolen,
                contention_ratio,
                least_distance_ns,
            };
            row.finish(plan, overhead, &surroundings)
        };
        self.rows.into_iter().map(finish).collect()
    }

    fn elapsed_ns(&self) -> u64 {
        self.sampler.clock.now_ns().saturating_sub(self.started_ns)
    }

    fn wants_more(&self, index: usize) -> bool {
        let (row, plan) = (&self.rows[index], &self.sampler.plan);
        let is_in_time = self.is_in_time(self.expected_ns(row));
        if row.has_least(plan) {
            is_in_time && !row.is_enough(plan) && self.elapsed_ns() < plan.budget_ns
        } else {
            is_in_time
        }
    }

    /// Whether a row leaves this round to others, because its trials agree already.
    fn rests(&self, index: usize, round: usize) -> bool {
        let (row, plan) = (&self.rows[index], &self.sampler.plan);
        plan.when_precise == WhenPrecise::Thin
            && !(round + index).is_multiple_of(THIN_ROUNDS)
            && row.is_open()
            && row.has_least(plan)
            && row.is_precise(plan)
    }

    /// Whether what takes so long ends before all must be over.
    fn is_in_time(&self, expected_ns: u64) -> bool {
        let ends_ns = self.sampler.plan.ends_ns;
        let now_ns = self.sampler.clock.now_ns();
        ends_ns == u64::MAX || now_ns < ends_ns && expected_ns <= ends_ns - now_ns
    }

    /// Time that a trial of this row takes with its set-up: as its own so far, else as those of all.
    fn expected_ns(&self, row: &Sampled<'_>) -> u64 {
        row.spent_ns.checked_div(row.attempts.into()).unwrap_or_else(|| {
            let attempts: u64 = self.rows.iter().map(|row| u64::from(row.attempts)).sum();
            let spent_ns: u64 = self.rows.iter().map(|row| row.spent_ns).sum();
            spent_ns.checked_div(attempts).unwrap_or(0)
        })
    }

    fn close(&mut self, index: usize, reason: Closed) {
        self.rows[index].closed = Some(reason);
        let left_ns = self.left_ns();
        let row = &self.rows[index];
        let (row, standing) = (row.name(), row.standing(&self.sampler.plan));
        (self.sampler.events)(Event::Closed { row, standing, left_ns });
    }

    fn interrupt(&mut self) {
        for row in self.rows.iter_mut().filter(|row| row.is_open()) {
            row.closed = Some(Closed::Interrupted);
        }
    }

    /// Estimate of the time that all rows together still take; `None` before the first trial ended.
    fn left_ns(&self) -> Option<u64> {
        let is_begun = self.rows.iter().any(|row| row.attempts > 0);
        let of = |row: &Sampled<'_>| {
            row.expected_more(&self.sampler.plan).saturating_mul(self.expected_ns(row))
        };
        let left_ns =
            self.rows.iter().filter(|row| row.is_open()).map(of).fold(0, u64::saturating_add);
        is_begun.then(|| left_ns.min(self.sampler.left_ns()))
    }
}

#[cfg(test)]
mod tests;
