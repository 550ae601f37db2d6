//! What the sampler is handed: one [`Case`] per row, and the [`Plan`] that all of them share.
//!
//! A case knows how to run one trial; it does not decide how many are run, nor in which order.
//! Read next: [`crate::sampler`].

use std::sync::Arc;

use crate::comparison::noise::Noise;
use crate::evidence::{EVIDENCE, Evidence};
use crate::fact::{Facts, Key, Value};
use crate::guard::Spoil;
use crate::histogram::{Histogram, LoopKind};
use crate::record::{Latency, Outcome, Series, Status, Warning};
use crate::row::{Label, Parameters, Row};
use crate::sampler::fact::BETWEEN_RUNS;
use crate::statistics::interval::half_of_trials;
use crate::warning;

/// What one trial moved and how long it took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Bytes or operations, as the unit of the row says; not a rate.
    pub amount: f64,
    /// The timed region of the trial.
    pub elapsed_ns: u64,
    /// What else is known of this trial; merged over the trials that count, as the keys say.
    pub facts: Facts,
    /// Warnings; one per code is kept.
    pub warnings: Vec<Warning>,
    /// Latency of its single operations; merged over the trials that count.
    pub latencies: Option<Latencies>,
    /// Curves; those of one name are joined over the trials that count.
    pub series: Vec<Series>,
    /// Figures that the same trial gave beside its own, in the same order in every trial: each
    /// becomes a row.
    pub further: Vec<Further>,
    /// Whether what others do meanwhile belongs to the figure; then they spoil no trial.
    pub is_sustained: bool,
    /// Why this trial must not count, where it has a witness of its own. It may have ended without
    /// an amount then: it is repeated, and a row that has no other trials is `disturbed`.
    pub spoil: Option<Spoil>,
}

impl Sample {
    /// Notes a warning, once per code.
    pub fn warn(&mut self, code: &str, text: impl Into<String>) {
        warning::add(&mut self.warnings, Warning::new(code, text));
    }
}

/// How long the single operations of one trial took.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    /// The operations by duration.
    pub histogram: Histogram,
    /// How they were paced.
    pub loop_kind: LoopKind,
}

impl Latencies {
    /// What goes into the record.
    pub fn latency(&self) -> Option<Latency> {
        self.histogram.latency(self.loop_kind)
    }
}

/// A further figure of a trial, for example the time until the bytes were durable, where the
/// trial's own figure ends when the kernel had them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Further {
    /// What tells its row from the trial's own; replaces parameters of the same name.
    pub parameters: Parameters,
    /// Bytes or operations.
    pub amount: f64,
    /// The time that it took.
    pub elapsed_ns: u64,
    /// Facts that differ from the trial's own; merged as those are.
    pub facts: Facts,
}

/// Why a trial gave no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The workload failed; the text names operation, path and cause.
    #[error("{0}")]
    Failed(String),
    /// This machine cannot do it; the text names what is missing.
    #[error("{0}")]
    Unsupported(String),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// There can be no further trial; those that the row has count. Without any, the row has no
    /// figure and this reason, and failed where that says so.
    #[error("{}", .0.text)]
    NoMore(Warning),
}

impl From<std::io::Error> for TrialError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(crate::cause_text(&error))
    }
}

/// One trial: sets up outside the timed region, runs, and reports. The argument is a seed that
/// differs from trial to trial (for random orders).
pub type Trial<'a> = Box<dyn FnMut(u64) -> Result<Sample, TrialError> + 'a>;

/// One row to be measured.
pub struct Case<'a, R> {
    /// Which row.
    pub row: R,
    /// Runs one trial.
    pub trial: Trial<'a>,
}

impl<R> Case<'_, R> {
    /// A row that is left out because there is no time to set it up.
    pub fn without_time(row: R) -> Self {
        Self { row, trial: Box::new(|_| Err(TrialError::NoMore(warning::no_time()))) }
    }
}

/// A row that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured<R> {
    /// Which row.
    pub row: R,
    /// Its figure with interval and warnings.
    pub outcome: Outcome,
    /// What else is known of it.
    pub facts: Facts,
    /// The further figures of its trials.
    pub further: Vec<MeasuredFurther>,
}

/// A further figure of a row that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredFurther {
    /// What tells its row from the trial's own.
    pub parameters: Parameters,
    /// The figure with interval and warnings.
    pub outcome: Outcome,
    /// What else is known of it.
    pub facts: Facts,
}

impl Measured<()> {
    /// The same of a row.
    pub(crate) fn of<R>(self, row: R) -> Measured<R> {
        let Self { outcome, facts, further, .. } = self;
        Measured { row, outcome, facts, further }
    }
}

impl<R: Row> Measured<R> {
    /// As rows of the record: its own, then those of its further figures.
    pub fn record(self) -> impl Iterator<Item = Outcome> {
        let is_of_hardware = self.row.label().is_of_hardware;
        let further = self.further.into_iter().map(|further| (further.outcome, further.facts));
        let all = [(self.outcome, self.facts)].into_iter().chain(further);
        all.map(move |(outcome, facts)| recorded(outcome, &facts, is_of_hardware))
    }
}

fn recorded(mut outcome: Outcome, facts: &Facts, is_of_hardware: bool) -> Outcome {
    outcome.audit.extend(facts.to_json());
    // Whoever works out what limits a row knows the hardware; others come before it, but not
    // before a limit that the row has reached.
    if let Some(bound) = &mut outcome.ceiling
        && !is_of_hardware
        && warning::has(&outcome.warnings, warning::LOCAL_LOAD)
        && !bound.is_reached()
    {
        bound.limiter = "other programs".to_owned();
    }
    outcome
}

/// The interval of a figure as its trials have it, for what is held against another figure of the same run:
/// what runs differ by moves both.
pub fn within_run(outcome: &Outcome, facts: &Facts) -> Option<[f64; 2]> {
    let known = facts.value(BETWEEN_RUNS).map(Value::to_json).unwrap_or_default();
    let deviation = known["deviation"].as_f64().unwrap_or(0.0);
    let (median, most) = (outcome.median?, 1.0 + half_of_trials(outcome.ci95?, deviation));
    Some([median / most, median * most])
}

/// The rows of the record for rows that were measured, in their order.
pub fn record<R: Row>(rows: Vec<Measured<R>>) -> Vec<Outcome> {
    rows.into_iter().flat_map(Measured::record).collect()
}

/// As [`record`], of rows whose work counts itself: the first of `counts` that a row has is its
/// evidence, unless it has some.
pub fn record_counted<R: Row>(rows: Vec<Measured<R>>, counts: &[Key]) -> Vec<Outcome> {
    let prove = |outcome: &Outcome, facts: &mut Facts| {
        if outcome.median.is_none() || facts.value(EVIDENCE).is_some() {
            return;
        }
        let count = counts.iter().find(|key| facts.value(**key).is_some());
        if let Some(count) = count {
            facts.set(EVIDENCE, Evidence::counted(facts, *count));
        }
    };
    let proved = |mut measured: Measured<R>| {
        prove(&measured.outcome, &mut measured.facts);
        for further in &mut measured.further {
            prove(&further.outcome, &mut further.facts);
        }
        measured
    };
    record(rows.into_iter().map(proved).collect())
}

/// A row of the record before anything was measured.
pub fn blank(row: &dyn Row) -> Outcome {
    let Label { id, unit, parameters, .. } = row.label();
    Outcome {
        id: id.into_owned(),
        parameters: parameters.to_json(),
        unit: unit.name().to_owned(),
        better: unit.better(),
        ..Outcome::default()
    }
}

impl Outcome {
    /// A row that has no figure, and why.
    pub fn without_figure(id: &str, status: Status, why: Warning) -> Self {
        Self { id: id.to_owned(), status, warnings: vec![why], ..Self::default() }
    }
}

/// What a case does whose trials agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenPrecise {
    /// It ends.
    Stop,
    /// It takes part in one round of four until the time is over: so it sees the run to its end, and
    /// does not stop when its trials happen to agree.
    Thin,
}

/// When to stop, and in which order to go.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Trials that each case gets at least.
    pub min_trials: u32,
    /// Trials that each case gets at most.
    pub max_trials: u32,
    /// A case is precise when its trials alone tell its median to this share: when half the width
    /// of the interval by their order, of six at least, is no more. What runs differ by comes on top.
    pub half_width: f64,
    /// What a case does that is precise.
    pub when_precise: WhenPrecise,
    /// What is known of how far runs of this machine lie apart.
    pub noise: Option<Arc<Noise>>,
    /// Time for all cases together; cases whose interval is still wide then are `unstable`.
    pub budget_ns: u64,
    /// When all must be over, on the clock of the sampler: no trial begins of which it can be seen
    /// that it would end later. [`u64::MAX`]: each case gets its least trials, whatever they take.
    pub ends_ns: u64,
    /// Spoiled trials after which a case stops waiting for quiet ones, if they are also the majority.
    pub most_spoiled: u32,
    /// Seed of the order and of the seeds handed to the trials.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            min_trials: 6,
            max_trials: 60,
            half_width: 0.02,
            when_precise: WhenPrecise::Stop,
            noise: None,
            budget_ns: 60_000_000_000,
            ends_ns: u64::MAX,
            most_spoiled: 6,
            seed: 1,
        }
    }
}

impl Plan {
    /// The same for a part of the work that begins `now_ns`: a part ends with its own time where
    /// the whole ends at all.
    pub fn from(self, now_ns: u64) -> Self {
        if self.ends_ns == u64::MAX {
            return self;
        }
        let ends_ns = self.ends_ns.min(now_ns.saturating_add(self.budget_ns));
        Self { ends_ns, ..self }
    }

    /// Time that is left of it; without an end all that was meant for it.
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        match self.ends_ns {
            u64::MAX => self.budget_ns,
            ends_ns => ends_ns.saturating_sub(now_ns).min(self.budget_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Ceiling;
    use crate::row::Unit;
    use crate::warning::Warning;

    #[test]
    fn others_limit_a_row_that_waited_for_them_unless_it_is_at_its_limit() {
        struct One(Label);
        impl Row for One {
            fn label(&self) -> Label {
                self.0.clone()
            }
        }
        let limiter = |label: Label, ratio| {
            let ceiling = Ceiling { ratio, ..Ceiling::default() };
            let ceiling = Some(ceiling.limited_by("contention by an SMT sibling"));
            let warnings = vec![Warning::new(warning::LOCAL_LOAD, "others")];
            let outcome = Outcome { ceiling, warnings, ..Outcome::default() };
            let row =
                Measured { row: One(label), outcome, facts: Facts::default(), further: Vec::new() };
            row.record().next().and_then(|row| row.ceiling).unwrap().limiter
        };
        let work = || Label::new("cpu/work", Unit::OpPerSecond);
        let of = |ratio| limiter(work(), ratio);
        assert_eq!([Some(0.17), None].map(of), ["other programs"; 2]);
        assert_eq!(of(Some(0.998)), "contention by an SMT sibling");
        let clock = limiter(work().of_hardware(), None);
        assert_eq!(clock, "contention by an SMT sibling", "a clock is that of the hardware");
    }
}
