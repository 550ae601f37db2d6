//! The race: rounds in random order, until each pair is told apart well enough or time is up.
//!
//! In a round everybody runs once, one after the other. A round counts as a whole, because the
//! ratio of a pair is taken round by round: what drifts hits both. What the rows say stands in
//! [`crate::versus::finish`].

use std::collections::BTreeMap;

use flatout_measure::guard::{self, Spoil};
use flatout_measure::progress::{Event, Progress};
use flatout_measure::random::SplitMix64;
use flatout_measure::record::{Outcome, Warning};
use flatout_measure::sampler::Sampler;
use flatout_measure::{statistics, warning};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::versus::finish;
use crate::versus::heat::{Checked, Figure, Finished, Heat, Run};
use crate::versus::run::{RunError, Runner, Spent, command_text, complaint, refusal};

/// Spoiled rounds after which a heat stops waiting for quiet ones, if they are also the majority.
const SPOILED_MOST: usize = 3;
/// How many times its time a heat may take so that it gets its least rounds.
const STRETCH: u64 = 2;
/// How many times as long as expected a run may take, and this long in any case.
const RUN_STRETCH: f64 = 20.0;
const RUN_LEAST_NS: u64 = 60_000_000_000;

/// A run that did its work.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) figure: f64,
    pub(super) elapsed_ns: u64,
    pub(super) spent: Spent,
    pub(super) audit: Map<String, Value>,
    pub(super) warnings: Vec<Warning>,
}

/// The runs of a round by contestant; none of those who are out.
pub(super) type Round = Vec<Option<Taken>>;

/// All that came of a heat.
pub(super) struct Raced {
    /// Rounds that count.
    pub(super) rounds: Vec<Round>,
    /// Why contestants are out.
    pub(super) failures: Vec<Option<String>>,
    /// Their commands, as in their first run.
    pub(super) commands: Vec<String>,
    /// Rounds that were spoiled and thrown away, and those that count nevertheless.
    pub(super) spoiled: usize,
    pub(super) disturbed: usize,
    pub(super) reasons: BTreeMap<&'static str, u64>,
    pub(super) is_interrupted: bool,
    /// What could not be removed.
    pub(super) leftovers: Option<String>,
}

/// Why a round did not come to its end.
enum Halt {
    Interrupted,
    /// Nobody can be raced here.
    Impossible(String),
}

/// Races one heat: a row per contestant (and its speed where the heat asks for it), then a row
/// per pair. What the runs left is removed.
///
/// Never fails: what goes wrong becomes the status and a warning of the rows.
pub fn run(mut heat: Heat<'_>, runner: &mut dyn Runner, sampler: &mut Sampler<'_>) -> Vec<Outcome> {
    let result = Race::new(&mut heat, runner, sampler).run();
    finish::rows(&heat, &result, &sampler.plan)
}

/// The pairs of a heat, as places of subject and opponent: flatout against each rival, or each
/// rival against the first.
pub(super) fn pairs(heat: &Heat<'_>) -> Vec<(usize, usize)> {
    let has_flatout = heat.contestants.first().is_some_and(|first| first.name == "flatout");
    let others = 1..heat.contestants.len();
    others.map(|other| if has_flatout { (0, other) } else { (other, 0) }).collect()
}

/// How many times as good the subject was as its opponent, in each round in which both ran.
pub(super) fn ratios(figure: Figure, rounds: &[Round], pair: (usize, usize)) -> Vec<f64> {
    use flatout_measure::record::Better;
    let both = rounds.iter().filter_map(|round| round[pair.0].as_ref().zip(round[pair.1].as_ref()));
    both.map(|(subject, against)| match figure {
        Figure::Printed { better: Better::Higher, .. } => subject.figure / against.figure,
        Figure::Time | Figure::Printed { .. } => against.figure / subject.figure,
    })
    .collect()
}

struct Race<'r, 'h, 'b> {
    heat: &'r mut Heat<'h>,
    runner: &'r mut dyn Runner,
    sampler: &'r mut Sampler<'b>,
    result: Raced,
    discarded: Vec<Round>,
    started_ns: u64,
    begun_rounds: u32,
    runs: u64,
}

impl<'r, 'h, 'b> Race<'r, 'h, 'b> {
    fn new(
        heat: &'r mut Heat<'h>,
        runner: &'r mut dyn Runner,
        sampler: &'r mut Sampler<'b>,
    ) -> Self {
        let count = heat.contestants.len();
        let result = Raced {
            rounds: Vec::new(),
            failures: vec![None; count],
            commands: vec![String::new(); count],
            spoiled: 0,
            disturbed: 0,
            reasons: BTreeMap::new(),
            is_interrupted: false,
            leftovers: None,
        };
        let started_ns = sampler.clock.now_ns();
        let (discarded, begun_rounds, runs) = (Vec::new(), 0, 0);
        Self { heat, runner, sampler, result, discarded, started_ns, begun_rounds, runs }
    }

    fn run(mut self) -> Raced {
        let mut random = SplitMix64::new(self.sampler.plan.seed);
        let mut order: Vec<usize> = (0..self.heat.contestants.len()).collect();
        while self.wants_more() {
            random.shuffle(&mut order);
            match self.round(&order) {
                Ok(()) => {}
                Err(Halt::Interrupted) => {
                    self.result.is_interrupted = true;
                    break;
                }
                Err(Halt::Impossible(text)) => {
                    for failure in &mut self.result.failures {
                        failure.get_or_insert_with(|| text.clone());
                    }
                    break;
                }
            }
        }
        // Spoiled rounds are better than none at all.
        if self.result.rounds.len() < self.sampler.plan.min_trials as usize {
            self.accept_spoiled();
        }
        self.result.leftovers = self.heat.course.clean().err().map(|error| error.to_string());
        self.result
    }

    fn elapsed_ns(&self) -> u64 {
        self.sampler.clock.now_ns().saturating_sub(self.started_ns)
    }

    fn is_in(&self, index: usize) -> bool {
        self.result.failures[index].is_none()
    }

    fn wants_more(&self) -> bool {
        if !(0..self.heat.contestants.len()).any(|index| self.is_in(index)) {
            return false;
        }
        let (counted, elapsed_ns) = (self.result.rounds.len(), self.elapsed_ns());
        if counted < self.sampler.plan.min_trials as usize {
            let most_ns = self.sampler.plan.budget_ns.saturating_mul(STRETCH);
            return self.begun_rounds == 0 || elapsed_ns < most_ns;
        }
        counted < self.sampler.plan.max_trials as usize
            && elapsed_ns < self.sampler.plan.budget_ns
            && !self.is_precise()
    }

    /// Whether each pair that is still raced is told apart well enough.
    fn is_precise(&self) -> bool {
        let is_narrow = |samples: &[f64]| {
            statistics::relative_half_width(samples)
                .is_some_and(|width| width <= self.sampler.plan.half_width)
        };
        pairs(self.heat)
            .into_iter()
            .filter(|pair| self.is_in(pair.0) && self.is_in(pair.1))
            .all(|pair| is_narrow(&ratios(self.heat.figure, &self.result.rounds, pair)))
    }

    /// One round; it counts unless something outside spoiled it.
    fn round(&mut self, order: &[usize]) -> Result<(), Halt> {
        let mut round: Round = vec![None; order.len()];
        let mut spoil = None;
        let number = self.begun_rounds;
        self.begun_rounds += 1;
        for &index in order {
            if !self.is_in(index) {
                continue;
            }
            if (self.sampler.cancelled)() {
                return Err(Halt::Interrupted);
            }
            self.tell(index);
            match self.turn(index, number) {
                Ok((taken, spoiled)) => {
                    round[index] = Some(taken);
                    spoil = spoil.or(spoiled);
                }
                Err(Turn::Halted(halt)) => return Err(halt),
                Err(Turn::Failed(text)) => self.result.failures[index] = Some(text),
            }
        }
        self.count(round, spoil);
        Ok(())
    }

    fn count(&mut self, round: Round, spoil: Option<Spoil>) {
        let Some(spoil) = spoil else {
            self.result.rounds.push(round);
            return;
        };
        *self.result.reasons.entry(spoil.name()).or_default() += 1;
        if self.result.disturbed > 0 {
            self.result.disturbed += 1;
            self.result.rounds.push(round);
            return;
        }
        self.result.spoiled += 1;
        self.discarded.push(round);
        let most = SPOILED_MOST.min(self.sampler.plan.min_trials as usize);
        if self.discarded.len() >= most && self.discarded.len() > self.result.rounds.len() {
            self.accept_spoiled();
        }
    }

    /// Lets the spoiled rounds count, as many as may: there is nothing better.
    fn accept_spoiled(&mut self) {
        let room = (self.sampler.plan.max_trials as usize).saturating_sub(self.result.rounds.len());
        let mut spoiled = std::mem::take(&mut self.discarded);
        spoiled.truncate(room);
        self.result.spoiled -= spoiled.len();
        self.result.disturbed += spoiled.len();
        self.result.rounds.extend(spoiled);
    }

    /// One run of one contestant between two readings of the witness.
    fn turn(&mut self, index: usize, round: u32) -> Result<(Taken, Option<Spoil>), Turn> {
        let contestant = &self.heat.contestants[index];
        let run = Run { contestant, index, round, number: self.runs };
        self.runs += 1;
        let cancelled = self.sampler.cancelled;
        let fails = |text: String| Turn::failed(text, cancelled);
        let course = &mut self.heat.course;
        let state = course.prepare(&run).map_err(|error| Turn::impossible(&error, cancelled))?;
        let invocation = course.invocation(&run).map_err(|error| fails(error.to_string()))?;
        if self.result.commands[index].is_empty() {
            self.result.commands[index] = command_text(&invocation);
        }
        let limit_ns = limit_ns(self.heat.expected_s);
        let before = self.sampler.witness.read();
        let spent = self.runner.run(&invocation, limit_ns).map_err(|error| match error {
            RunError::Interrupted => Turn::Halted(Halt::Interrupted),
            other => fails(refusal(&contestant.name, &command_text(&invocation), &other)),
        })?;
        if spent.finished.exit_code != 0 {
            let command = command_text(&invocation);
            return Err(fails(complaint(&contestant.name, &command, &spent.finished)));
        }
        let ended_ns = self.sampler.clock.now_ns();
        let failed = |error: Error| fails(format!("{}: {error}", contestant.name));
        course.complete(&run).map_err(failed)?;
        let completed_ns = self.sampler.clock.now_ns().saturating_sub(ended_ns);
        let after = self.sampler.witness.read();
        let checked = course.check(&run, &spent.finished).map_err(failed)?;
        let elapsed_ns = spent.elapsed_ns.saturating_add(completed_ns);
        let taken = taken(self.heat.figure, elapsed_ns, spent, checked, state)
            .ok_or_else(|| fails(format!("{}: no figure came of a run", contestant.name)))?;
        // Who is preempted by whom cannot be told: the contestant is "others" to the witness.
        let spoil = guard::judge(&before, &after, self.sampler.witness.cpus())
            .filter(|&spoil| spoil != Spoil::Preempted);
        Ok((taken, spoil))
    }

    fn tell(&mut self, index: usize) {
        let mut parameters = self.heat.parameters.clone();
        let name = self.heat.contestants[index].name.clone();
        parameters.insert("contestant".to_owned(), name.into());
        let id = format!("versus/{}", self.heat.test);
        let progress = self.progress();
        (self.sampler.events)(Event::Trial { id, parameters, progress });
    }

    fn progress(&self) -> Progress {
        let elapsed_ns = self.elapsed_ns();
        let contestants = self.heat.contestants.len() as u64;
        let least =
            (u64::from(self.sampler.plan.min_trials) * contestants).saturating_sub(self.runs);
        let each_ns = elapsed_ns.checked_div(self.runs);
        let budget_left_ns = self.sampler.plan.budget_ns.saturating_sub(elapsed_ns);
        let left_ns = each_ns.map(|each| each.saturating_mul(least).max(budget_left_ns));
        Progress {
            cases_done: 0,
            cases_total: contestants,
            trials_done: self.runs,
            trials_expected: self.runs + least,
            elapsed_ns,
            budget_ns: self.sampler.plan.budget_ns,
            left_ns,
        }
    }
}

/// Why a turn gave nothing.
enum Turn {
    /// The contestant is out.
    Failed(String),
    /// The heat is over.
    Halted(Halt),
}

impl Turn {
    /// What fails while the user wants to stop, fails because of that.
    fn failed(text: String, cancelled: &dyn Fn() -> bool) -> Self {
        if cancelled() { Self::Halted(Halt::Interrupted) } else { Self::Failed(text) }
    }

    fn impossible(error: &Error, cancelled: &dyn Fn() -> bool) -> Self {
        let halt = if cancelled() {
            Halt::Interrupted
        } else {
            Halt::Impossible(format!("the state of the heat cannot be had: {error}"))
        };
        Self::Halted(halt)
    }
}

/// A run with its figure; `None` where time or figure cannot be.
fn taken(
    figure: Figure,
    elapsed_ns: u64,
    mut spent: Spent,
    checked: Checked,
    state: Map<String, Value>,
) -> Option<Taken> {
    let value = match figure {
        Figure::Time => elapsed_ns as f64,
        Figure::Printed { .. } => checked.figure?,
    };
    // What was printed has been checked and is not needed any more; it may be large.
    spent.finished = Finished::default();
    let mut audit = state;
    audit.extend(checked.audit);
    let mut warnings = checked.warnings;
    if audit.get("cache_state_proved") == Some(&Value::Bool(false)) {
        let text = "the kernel does not tell what the page cache held before a run";
        warnings.push(Warning::new(warning::STATE_UNPROVED, text));
    }
    let is_true = value.is_finite() && value > 0.0;
    is_true.then_some(Taken { figure: value, elapsed_ns, spent, audit, warnings })
}

/// The time that a run may take which is expected to take so long.
pub(crate) fn limit_ns(expected_s: f64) -> u64 {
    RUN_LEAST_NS.saturating_add((expected_s * RUN_STRETCH * 1e9) as u64)
}

#[cfg(test)]
mod tests;
