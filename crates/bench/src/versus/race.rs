//! The race of one heat: its contestants as cases of the sampler, which runs rounds until each
//! pair is told apart well enough or time is up.
//!
//! In a round everybody runs once, one after the other. What the rows say besides their figures
//! stands in [`crate::versus::finish`].

use std::borrow::Cow;
use std::cell::RefCell;

use flatout_measure::case::{Case, Sample, TrialError};
use flatout_measure::clock::Clock;
use flatout_measure::fact::Facts;
use flatout_measure::guard::{self, FakeWitness, Spoil, Witness};
use flatout_measure::record::{Better, Outcome, Warning};
use flatout_measure::row::{Parameters, Row, Unit};
use flatout_measure::sampler::{Pair, Sampler};
use flatout_measure::warning;

use crate::error::Error;
use crate::versus::heat::{Contestant, Course, Figure, Heat, Run};
use crate::versus::run::{RunError, Runner, Spent, command_text, complaint, refusal};
use crate::versus::{fact, finish};

/// How many times as long as expected a run may take, and this long in any case.
const RUN_STRETCH: f64 = 20.0;
const RUN_LEAST_NS: u64 = 60_000_000_000;

/// The figure of one contestant.
#[derive(Debug, Clone)]
pub(super) struct ContestantRow {
    pub(super) test: &'static str,
    pub(super) parameters: Parameters,
    pub(super) contestant: Contestant,
    pub(super) unit: Unit,
}

impl Row for ContestantRow {
    fn id(&self) -> Cow<'static, str> {
        format!("versus/{}", self.test).into()
    }

    fn parameters(&self) -> Parameters {
        self.parameters.clone().with("contestant", self.contestant.name.clone())
    }

    fn unit(&self) -> Unit {
        self.unit
    }
}

/// How many times as good one contestant is as another.
#[derive(Debug, Clone)]
pub(super) struct RatioRow {
    test: &'static str,
    parameters: Parameters,
    pub(super) subject: usize,
    pub(super) against: usize,
    names: [String; 2],
}

impl Row for RatioRow {
    fn id(&self) -> Cow<'static, str> {
        finish::RATIO.into()
    }

    fn parameters(&self) -> Parameters {
        let [subject, against] = self.names.clone();
        let parameters = self.parameters.clone().with("test", self.test);
        parameters.with("subject", subject).with("against", against)
    }

    fn unit(&self) -> Unit {
        Unit::Ratio
    }
}

/// Races one heat: a row per contestant (and its speed where the heat asks for it), then a row
/// per pair. What the runs left is removed.
///
/// Never fails: what goes wrong becomes the status and a warning of the rows.
pub fn run(mut heat: Heat<'_>, runner: &mut dyn Runner, sampler: &mut Sampler<'_>) -> Vec<Outcome> {
    let pairs = pairs(&heat).into_iter().map(|(subject, against)| {
        let names = [subject, against].map(|at| heat.contestants[at].name.clone());
        let parameters = heat.parameters.clone();
        let row = RatioRow { test: heat.test, parameters, subject, against, names };
        Pair { row, subject, against }
    });
    let pairs = pairs.collect();
    let Sampler { plan, clock, witness, events, cancelled } = sampler;
    let track = RefCell::new(Track {
        course: heat.course.as_mut(),
        runner,
        witness: &mut **witness,
        clock: *clock,
        cancelled: *cancelled,
        figure: heat.figure,
        limit_ns: limit_ns(heat.expected_s),
        commands: vec![String::new(); heat.contestants.len()],
        runs: 0,
    });
    let cases = heat.contestants.iter().enumerate().map(|(index, contestant)| {
        let mut round = 0;
        let (track, test, unit) = (&track, heat.test, heat.figure.unit());
        let (parameters, own) = (heat.parameters.clone(), contestant.clone());
        Case {
            row: ContestantRow { test, parameters, contestant: own, unit },
            trial: Box::new(move |_| {
                round += 1;
                track.borrow_mut().turn(contestant, index, round - 1)
            }),
        }
    });
    // What happens while a run is prepared or checked says nothing of it: each run is watched apart.
    let mut nobody = FakeWitness::quiet();
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock: *clock,
        witness: &mut nobody,
        events: &mut **events,
        cancelled: *cancelled,
    };
    let (mut rows, ratios) = sampler.race(cases.collect(), pairs);
    let commands = track.into_inner().commands;
    for (measured, command) in rows.iter_mut().zip(commands) {
        measured.facts.set(fact::COMMAND, command);
    }
    let leftovers = heat.course.clean().err().map(|error| error.to_string());
    let speed_bytes = (heat.with_speed && heat.bytes > 0).then_some(heat.bytes);
    finish::rows(rows, ratios, speed_bytes, leftovers)
}

/// The pairs of a heat, as places of subject and opponent: flatout against each rival, or each
/// rival against the first.
pub(super) fn pairs(heat: &Heat<'_>) -> Vec<(usize, usize)> {
    let has_flatout = heat.contestants.first().is_some_and(|first| first.name == "flatout");
    let others = 1..heat.contestants.len();
    others.map(|other| if has_flatout { (0, other) } else { (other, 0) }).collect()
}

/// What all contestants share.
struct Track<'a, 'h> {
    course: &'a mut (dyn Course + 'h),
    runner: &'a mut dyn Runner,
    witness: &'a mut dyn Witness,
    clock: &'a dyn Clock,
    cancelled: &'a dyn Fn() -> bool,
    figure: Figure,
    limit_ns: u64,
    /// How each contestant was called first.
    commands: Vec<String>,
    runs: u64,
}

impl Track<'_, '_> {
    /// One run of one contestant.
    fn turn(
        &mut self,
        contestant: &Contestant,
        index: usize,
        round: u32,
    ) -> Result<Sample, TrialError> {
        let run = Run { contestant, index, round, number: self.runs };
        self.runs += 1;
        let facts = self.course.prepare(&run).map_err(|error| {
            let text = format!("the state of the heat cannot be had: {error}");
            self.unless_cancelled(TrialError::NoMore(Warning::new(warning::FAILED, text)))
        })?;
        let invocation = self.course.invocation(&run);
        let invocation = invocation.map_err(|error| self.failed(error.to_string()))?;
        let command = command_text(&invocation);
        if self.commands[index].is_empty() {
            self.commands[index].clone_from(&command);
        }
        let name = &contestant.name;
        let before = self.witness.read();
        let spent = self.runner.run(&invocation, self.limit_ns).map_err(|error| match error {
            RunError::Interrupted => TrialError::Interrupted,
            other => self.failed(refusal(name, &command, &other)),
        })?;
        if spent.finished.exit_code != 0 {
            return Err(self.failed(complaint(name, &command, &spent.finished)));
        }
        let ended_ns = self.clock.now_ns();
        let completed = self.course.complete(&run);
        completed.map_err(|error: Error| self.failed(format!("{name}: {error}")))?;
        let elapsed_ns =
            spent.elapsed_ns.saturating_add(self.clock.now_ns().saturating_sub(ended_ns));
        let after = self.witness.read();
        // Who is preempted by whom cannot be told: the contestant is "others" to the witness.
        let spoil = guard::judge(&before, &after, self.witness.cpus())
            .filter(|&spoil| spoil != Spoil::Preempted);
        let checked = self.course.check(&run, &spent.finished);
        let checked = checked.map_err(|error| self.failed(format!("{name}: {error}")))?;
        let Some(amount) = amount(self.figure, elapsed_ns, checked.figure) else {
            return Err(self.failed(format!("{name}: no figure came of a run")));
        };
        let mut facts = facts;
        facts.extend(checked.facts);
        describe(&mut facts, &spent);
        let mut warnings = checked.warnings;
        if facts.flag(fact::CACHE_STATE_PROVED) == Some(false) {
            let text = "the kernel does not tell what the page cache held before a run";
            warnings.push(Warning::new(warning::STATE_UNPROVED, text));
        }
        Ok(Sample { amount, elapsed_ns, facts, warnings, spoil, ..Sample::default() })
    }

    fn failed(&self, text: String) -> TrialError {
        self.unless_cancelled(TrialError::Failed(text))
    }

    /// What fails while the user wants to stop, fails because of that.
    fn unless_cancelled(&self, error: TrialError) -> TrialError {
        if (self.cancelled)() { TrialError::Interrupted } else { error }
    }
}

/// What a run cost besides its time.
pub(crate) fn describe(facts: &mut Facts, spent: &Spent) {
    facts.set(fact::USER_NS, spent.user_ns);
    facts.set(fact::SYSTEM_NS, spent.system_ns);
    facts.set(fact::CPU_NS, spent.user_ns.saturating_add(spent.system_ns));
    facts.set(fact::PEAK_MEMORY_BYTES, spent.peak_memory_bytes);
    facts.set(fact::PEAK_MEMORY_OF, spent.peak_memory_of);
}

/// The amount that makes the figure of a run in its time; `None` where there is no figure.
fn amount(figure: Figure, elapsed_ns: u64, printed: Option<f64>) -> Option<f64> {
    let elapsed_ns = elapsed_ns as f64;
    match figure {
        Figure::Time => Some(1.0),
        Figure::Printed(unit) if unit.better() == Better::Higher => {
            Some(printed? * elapsed_ns / 1e9)
        }
        Figure::Printed(_) => Some(elapsed_ns / printed?),
    }
}

/// The time that a run may take which is expected to take so long.
pub(crate) fn limit_ns(expected_s: f64) -> u64 {
    RUN_LEAST_NS.saturating_add((expected_s * RUN_STRETCH * 1e9) as u64)
}

#[cfg(test)]
mod tests;
