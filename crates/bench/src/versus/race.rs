//! A race: one work in one state of the cache, and those that take part; its contestants are cases
//! of the sampler, which runs rounds until each pair is told apart well enough or time is up.
//!
//! In a round everybody runs once, one after the other. What the rows say besides their figures
//! stands in [`crate::versus::finish`].

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flatout_measure::clock::Clock;
use flatout_measure::guard::{self, FakeWitness, Witness};
use flatout_measure::sampler::Pair;
use flatout_measure::{
    Better, Case, Facts, Label, Outcome, Parameters, Sample, Sampler, Spoil, TrialError, Unit,
    Warning, warning,
};
use flatout_sys::process::Account;

use crate::corpus::{Corpus, make};
use crate::versus::rival::Found;
use crate::versus::run::{Runner, command_text, run_in_time};
use crate::versus::{Ground, fact, finish, state};
use crate::{Error, WriteLimit};

/// One who takes part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contestant {
    /// `flatout`, or the name of a rival.
    pub name: String,
    /// Its version, as its program says it; empty where it says none.
    pub version: String,
    /// The program, or the library, that it is.
    pub program: PathBuf,
}

impl From<&Found> for Contestant {
    fn from(found: &Found) -> Self {
        let Found { rival, path, version } = found.clone();
        Self { name: rival.name.to_owned(), version, program: path }
    }
}

impl Contestant {
    /// Ourselves.
    pub fn flatout(program: &Path) -> Self {
        let version = concat!("flatout ", env!("CARGO_PKG_VERSION")).to_owned();
        Self { name: "flatout".to_owned(), version, program: program.to_owned() }
    }
}

/// Program and arguments. A pipeline is `sh -c TEXT`.
pub type Argv = Vec<OsString>;

/// One run of one contestant.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Who runs.
    pub contestant: &'a Contestant,
    /// Its place in [`Race::contestants`].
    pub index: usize,
    /// The round, from 0 on.
    pub round: u32,
    /// When the race must be over, on the monotonic clock: so long its sources may be made.
    pub ends_ns: u64,
}

/// What came of checking a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// The figure that the program printed, in the unit of the race, where that is what counts
    /// instead of the time.
    pub figure: Option<f64>,
    /// Warnings about the run, for example what a copy lacks.
    pub warnings: Vec<Warning>,
    /// What else is known of it.
    pub facts: Facts,
}

/// What is raced. Everything but the process and [`Workload::complete`] lies outside of the clock.
pub trait Workload {
    /// Brings the cache into the state of the race and proves it; what is returned belongs to the
    /// facts of the row.
    ///
    /// Errors: the state cannot be had, which ends the race.
    fn prepare(&mut self, _run: &Run<'_>) -> Result<Facts, Error> {
        Ok(Facts::default())
    }

    /// How the contestant is called for this run.
    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error>;

    /// What belongs to the work though the program does not do it, such as making a copy durable.
    /// Timed.
    fn complete(&mut self, _run: &Run<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Looks whether the run did its work.
    ///
    /// Errors: what it left is wrong, which fails the contestant's row; the text says what.
    fn check(&mut self, run: &Run<'_>, account: &Account) -> Result<Checked, Error>;
}

/// What is made for a race, and removed after the last.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    /// Where it lies.
    pub path: PathBuf,
    /// Bytes that making it writes.
    pub bytes: u64,
    /// The time that making it is expected to take.
    pub making_ns: u64,
    /// The time that removing it is expected to take.
    pub removing_ns: u64,
}

impl Made {
    /// Of a corpus, which may be there already.
    pub(super) fn of(corpus: &Corpus, ground: &Ground) -> Self {
        let corpora = ground.corpora();
        let bytes = make::new_bytes(corpus, &corpora);
        Self {
            path: corpora.join(&corpus.name),
            bytes,
            making_ns: ground.tried.surely_making_ns(bytes),
            // Corpora that are kept are not waited for.
            removing_ns: if ground.keeps { 0 } else { ground.tried.removing_ns(corpus.files) },
        }
    }
}

/// One work in one state, and those that take part.
pub struct Race<'a> {
    /// The rows are called `versus/TEST`.
    pub test: &'static str,
    /// What tells this race from others of the same test; base units (`bytes`, `files`,
    /// `block_bytes`, `cache_state`, `corpus`, …).
    pub parameters: Parameters,
    /// The unit of what the programs print ([`Checked::figure`]), where that is compared and not the
    /// time of a run.
    pub printed: Option<Unit>,
    /// Bytes that each run moves; 0 where there is no such number. Else the row of a speed
    /// (`versus/TEST-speed`, bytes/s) stands beside that of the time.
    pub bytes: u64,
    /// What it reads, where that must be made. Races of one path make it once.
    pub made: Option<Made>,
    /// Bytes that each run likely writes.
    pub written_bytes: u64,
    /// Who takes part. The first is held against all others where it is flatout; else all others
    /// are held against it.
    pub contestants: Vec<Contestant>,
    /// Seconds that one run is expected to take, with its preparation; for the plan of the time.
    pub expected_s: f64,
    /// The work.
    pub workload: Box<dyn Workload + 'a>,
}

impl Race<'_> {
    /// Bytes that a round likely writes.
    pub fn round_bytes(&self) -> u64 {
        self.written_bytes.saturating_mul(self.contestants.len() as u64)
    }
}

impl Race<'static> {
    /// Flatout against one rival, by time, over no bytes that count.
    pub(super) fn against(
        ground: &Ground,
        found: &Found,
        (test, parameters): (&'static str, Parameters),
        expected_s: f64,
        workload: impl Workload + 'static,
    ) -> Self {
        Self {
            test,
            parameters,
            printed: None,
            bytes: 0,
            made: None,
            written_bytes: 0,
            contestants: vec![Contestant::flatout(&ground.flatout), found.into()],
            expected_s,
            workload: Box::new(workload),
        }
    }
}

/// Runs a race: a row per contestant (and its speed where bytes are moved), then a row per pair.
/// What the runs left goes with their place. It ends before a round that would write more than may be.
/// Never fails: what goes wrong becomes the status and a warning of the rows.
pub fn run(
    race: Race<'_>,
    runner: &mut dyn Runner,
    limit: &WriteLimit,
    sampler: &mut Sampler<'_>,
) -> Vec<Outcome> {
    let pair = |(subject, against)| {
        let name = |at: usize| race.contestants[at].name.clone();
        let row = Label::new(finish::RATIO, Unit::Ratio)
            .of(race.parameters.clone())
            .with("test", race.test)
            .with("subject", name(subject))
            .with("against", name(against));
        Pair { row, subject, against }
    };
    let pairs = pairs(&race).map(pair).collect();
    let unit = race.printed.unwrap_or(Unit::Nanoseconds);
    let row = |contestant: &Contestant| {
        Label::new(format!("versus/{}", race.test), unit)
            .of(race.parameters.clone())
            .with("contestant", contestant.name.clone())
    };
    let rows: Vec<Label> = race.contestants.iter().map(row).collect();
    let Sampler { plan, clock, witness, events, cancelled } = sampler;
    let track = RefCell::new(Track {
        commands: vec![String::new(); rows.len()],
        race,
        runner,
        witness: &mut **witness,
        clock: *clock,
        cancelled: *cancelled,
        ends_ns: plan.ends_ns,
        limit,
        rounds: 0,
        longest_ns: 0,
    });
    let cases = rows.into_iter().enumerate().map(|(index, row)| {
        let (track, mut round) = (&track, 0);
        let trial = move |_| {
            round += 1;
            track.borrow_mut().turn(index, round - 1)
        };
        Case { row, trial: Box::new(trial) }
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
    let Track { race, commands, .. } = track.into_inner();
    for (measured, command) in rows.iter_mut().zip(commands) {
        measured.facts.set(fact::COMMAND, command);
    }
    finish::rows(&race, rows, ratios)
}

/// The pairs of a race, as places of subject and opponent: flatout against each rival, or each
/// rival against the first.
pub(super) fn pairs(race: &Race<'_>) -> impl Iterator<Item = (usize, usize)> + use<> {
    let has_flatout = race.contestants.first().is_some_and(|first| first.name == "flatout");
    let others = 1..race.contestants.len();
    others.map(move |other| if has_flatout { (0, other) } else { (other, 0) })
}

/// What all contestants share.
struct Track<'a, 'h> {
    race: Race<'h>,
    runner: &'a mut dyn Runner,
    witness: &'a mut dyn Witness,
    clock: &'a dyn Clock,
    cancelled: &'a dyn Fn() -> bool,
    /// When all must be over.
    ends_ns: u64,
    /// What all may write, and how many rounds were begun.
    limit: &'a WriteLimit,
    rounds: u32,
    /// How each contestant was called first.
    commands: Vec<String>,
    /// What the longest run took, with the check of what it left.
    longest_ns: u64,
}

impl Track<'_, '_> {
    /// One run of one contestant.
    fn turn(&mut self, index: usize, round: u32) -> Result<Sample, TrialError> {
        if round >= self.rounds {
            self.rounds = round + 1;
            self.limit.take(self.race.round_bytes())?;
        }
        let contestant = &self.race.contestants[index];
        let run = Run { contestant, index, round, ends_ns: self.ends_ns };
        let mut facts = self.race.workload.prepare(&run).map_err(|error| {
            let text = format!("the state of the race cannot be had: {error}");
            let is_late = self.clock.now_ns() >= self.ends_ns;
            let why =
                if is_late { warning::no_time() } else { Warning::new(warning::FAILED, text) };
            self.unless_cancelled(TrialError::NoMore(why))
        })?;
        let invocation = self.race.workload.invocation(&run);
        let invocation = invocation.map_err(|error| self.failed(error.to_string()))?;
        if self.commands[index].is_empty() {
            self.commands[index] = command_text(&invocation);
        }
        let name = &contestant.name;
        let before = self.witness.read();
        let begun_ns = self.clock.now_ns();
        let left_ns = self.ends_ns.saturating_sub(begun_ns);
        if left_ns == 0 || left_ns < self.longest_ns {
            return Err(TrialError::NoMore(warning::no_time()));
        }
        let spent = run_in_time(self.runner, (name, &invocation), self.race.expected_s, left_ns);
        let spent = spent.map_err(|error| self.unless_cancelled(error))?;
        let ended_ns = self.clock.now_ns();
        let completed = self.race.workload.complete(&run);
        completed.map_err(|error: Error| self.failed(format!("{name}: {error}")))?;
        let elapsed_ns =
            spent.elapsed_ns.saturating_add(self.clock.now_ns().saturating_sub(ended_ns));
        let after = self.witness.read();
        // Who is preempted by whom cannot be told: the contestant is "others" to the witness.
        let spoil = guard::judge(&before, &after, self.witness.cpus())
            .filter(|&spoil| spoil != Spoil::Preempted);
        let checked = self.race.workload.check(&run, &spent);
        let checked = checked.map_err(|error| match error {
            Error::Warned(why) if why.code == warning::TIME_SHORT => {
                self.unless_cancelled(TrialError::NoMore(why))
            }
            error => self.failed(format!("{name}: {error}")),
        })?;
        self.longest_ns = self.longest_ns.max(self.clock.now_ns().saturating_sub(begun_ns));
        let Some(amount) = amount(self.race.printed, elapsed_ns, checked.figure) else {
            let text = format!("{name} printed no figure of what was asked for");
            return Err(self.failed(text));
        };
        facts.extend(checked.facts);
        describe(&mut facts, &spent);
        let mut warnings = checked.warnings;
        warnings.extend(state::doubt(&facts));
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
pub(crate) fn describe(facts: &mut Facts, spent: &Account) {
    facts.set(fact::USER_NS, spent.user_ns);
    facts.set(fact::SYSTEM_NS, spent.system_ns);
    facts.set(fact::CPU_NS, spent.user_ns.saturating_add(spent.system_ns));
    facts.set(fact::PEAK_MEMORY_BYTES, spent.peak_memory_bytes);
    // Whose resident set that is.
    facts.set("peak_memory_of", spent.peak_memory_of.name());
}

/// The amount that makes the figure of a run in its time; `None` where there is no figure.
fn amount(unit: Option<Unit>, elapsed_ns: u64, printed: Option<f64>) -> Option<f64> {
    let Some(unit) = unit else { return Some(1.0) };
    let printed = printed.filter(|printed| printed.is_finite() && *printed > 0.0)?;
    Some(match unit.better() {
        Better::Higher => printed * elapsed_ns as f64 / 1e9,
        Better::Lower => elapsed_ns as f64 / printed,
    })
}

#[cfg(test)]
mod tests;
