//! One row while it is measured: which trials count, and whether they are enough. What it says in
//! the end: `row/finish.rs`.

pub(super) mod contention;
pub(super) mod distance;
mod finish;
mod stolen;

pub use finish::note_use_of_cpus;
use finish::pool;
pub(super) use stolen::Stolen;

use std::collections::BTreeMap;

use super::{Attempt, warmup};
use crate::case::{Case, Latencies, Plan, Sample, TrialError, WhenPrecise};
use crate::comparison::RowName;
use crate::fact::Facts;
use crate::guard::{Spoil, UseOfCpus};
use crate::progress::Standing;
use crate::record::Better;
use crate::row::{Label, Row};
use crate::statistics;
use crate::statistics::interval::{self, Knowledge};
use crate::statistics::pool::{Pool, Prior};
use crate::warning::{self, Warning};

/// The same where a trial is a round of whole programs, and dear.
const SPOILED_ROUNDS_MOST: u32 = 3;
/// Quiet trials from which on disturbed ones do not count beside them: these measured something else.
const QUIET_LEAST: usize = 3;

/// Why a row takes no more trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Closed {
    /// Precise enough, or no trials or time left.
    Done,
    /// The workload failed.
    Failed(String),
    /// This machine cannot do it.
    Unsupported(String),
    /// Not even one trial was possible, though the machine could do it.
    Never(Warning),
    /// A trial reported what cannot be.
    Invalid(String),
    /// The user wants to stop.
    Interrupted,
}

/// What a row needs to know of what it was measured beside.
pub(super) struct Surroundings {
    /// How far trials of rows like it lie apart.
    pub(super) kin: Option<Prior>,
    pub(super) cpus: u32,
    /// What the hypervisor took from all rows of the phase.
    pub(super) stolen: Stolen,
    /// For which share of the time that these watched an SMT sibling used the core.
    pub(super) contention_ratio: Option<f64>,
    pub(super) least_distance_ns: Option<u32>,
}

/// A trial with a figure.
struct Taken {
    /// Which of the row's trials it was, from 1.
    attempt: u32,
    figure: f64,
    sample: Sample,
    is_disturbed: bool,
    use_of_cpus: UseOfCpus,
    distance_ns: Option<[u32; 2]>,
}

/// One row while it is measured.
pub(super) struct Sampled<'a> {
    pub(super) case: Case<'a, &'a dyn Row>,
    /// Trials begun, whatever became of them.
    pub(super) attempts: u32,
    /// Time of all of them with their set-up.
    pub(super) spent_ns: u64,
    pub(super) closed: Option<Closed>,
    taken: Vec<Taken>,
    latencies: Option<Latencies>,
    /// Spoiled trials, while there is nothing better: should time run out before a quiet one, they
    /// are what there is.
    discarded: Vec<Taken>,
    /// Spoiled trials that were thrown away.
    spoiled: u32,
    /// Spoiled trials that count.
    disturbed: u32,
    keeps_spoiled: bool,
    spoiled_most: u32,
    /// Whether each trial is part of a round, which counts for all of its rows or for none: then
    /// no row drops trials that another one keeps, and spoiled rounds are better than none.
    is_in_rounds: bool,
    reasons: BTreeMap<&'static str, u64>,
    /// Why there could be no more trials than there are.
    end: Option<Warning>,
}

impl<'a> Sampled<'a> {
    pub(super) fn new(case: Case<'a, &'a dyn Row>, plan: &Plan) -> Self {
        Self {
            case,
            attempts: 0,
            spent_ns: 0,
            closed: None,
            taken: Vec::new(),
            latencies: None,
            discarded: Vec::new(),
            spoiled: 0,
            disturbed: 0,
            keeps_spoiled: false,
            spoiled_most: plan.most_spoiled,
            is_in_rounds: false,
            reasons: BTreeMap::new(),
            end: None,
        }
    }

    /// A row whose trials are parts of rounds.
    pub(super) fn in_rounds(case: Case<'a, &'a dyn Row>, plan: &Plan) -> Self {
        let spoiled_most = SPOILED_ROUNDS_MOST.min(plan.min_trials);
        Self { spoiled_most, is_in_rounds: true, ..Self::new(case, plan) }
    }

    /// The figures of the trials that count so far, in their order.
    pub(super) fn taken_figures(&self) -> impl Iterator<Item = f64> {
        self.taken.iter().map(|taken| taken.figure)
    }

    /// What is known of these trials.
    pub(super) fn taken_facts(&self) -> impl Iterator<Item = &Facts> {
        self.taken.iter().map(|taken| &taken.sample.facts)
    }

    /// Its id and its parameters, for those who watch.
    pub(super) fn name(&self) -> RowName {
        let Label { id, parameters, .. } = self.case.row.label();
        RowName { id: id.into_owned(), parameters: parameters.to_json() }
    }

    /// What it says by now, for those who watch.
    pub(super) fn standing(&self, plan: &Plan) -> Standing {
        let figures = self.figures(plan);
        let is_loaded = self.disturbed > 0;
        Standing {
            unit: self.case.row.unit().name(),
            trials: figures.len() as u64,
            discarded: self.spoiled.into(),
            median: statistics::median(&figures),
            ci95: interval::of_runs(&figures, &Knowledge { is_loaded, ..self.knowledge(plan) }),
            refused: self.refused().map(|(status, _, text)| (status, text.to_owned())),
        }
    }

    /// What is known of it besides its trials.
    fn knowledge(&self, plan: &Plan) -> Knowledge {
        let RowName { id, parameters } = self.name();
        Knowledge {
            learned: plan.noise.as_ref().and_then(|noise| noise.between_runs(&id, &parameters)),
            assumed_deviation: self.case.row.label().deviation_between_runs,
            ..Knowledge::default()
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Takes in one trial; a reason is returned when it ends the row.
    pub(super) fn take(&mut self, attempt: Attempt, plan: &Plan) -> Option<Closed> {
        self.attempts = self.attempts.saturating_add(1);
        self.spent_ns = self.spent_ns.saturating_add(attempt.spent_ns);
        let sample = match attempt.result {
            Ok(sample) => sample,
            Err(TrialError::Failed(text)) => return Some(Closed::Failed(text)),
            Err(TrialError::Unsupported(text)) => return Some(Closed::Unsupported(text)),
            Err(TrialError::Interrupted) => return Some(Closed::Interrupted),
            Err(TrialError::NoMore(why)) => return Some(self.ends(why)),
        };
        let Some(figure) = self.case.row.unit().figure(sample.amount, sample.elapsed_ns) else {
            // Who got no CPU may have done nothing at all.
            if let Some(spoil) = sample.spoil.or(attempt.spoil) {
                return self.lose(spoil);
            }
            return Some(Closed::Invalid(format!(
                "a trial reported {} in {} ns",
                sample.amount, sample.elapsed_ns
            )));
        };
        let (use_of_cpus, distance_ns) = (attempt.use_of_cpus, attempt.distance_ns);
        let spoil = attempt.spoil.filter(|spoil| {
            let is_own = *spoil == Spoil::Preempted && is_own_doing(&sample.warnings);
            !is_own && !sample.is_sustained
        });
        let spoil = spoil.or(sample.spoil);
        let (attempt, is_disturbed) = (self.attempts, spoil.is_some());
        let taken = Taken { attempt, figure, sample, is_disturbed, use_of_cpus, distance_ns };
        match spoil {
            Some(spoil) if self.is_discarded(spoil) => {
                if self.taken.is_empty() || self.is_in_rounds {
                    self.discarded.push(taken);
                }
                if self.is_in_rounds && self.keeps_spoiled {
                    self.accept_discarded(plan);
                }
            }
            _ => {
                if !self.is_in_rounds {
                    self.discarded.clear();
                }
                self.count(taken);
            }
        }
        None
    }

    /// Why there can be no first trial, however much time there is.
    pub(super) fn lacks(&self) -> Option<String> {
        (self.attempts == 0).then(|| self.case.row.lacks()).flatten()
    }

    /// How a row ends that gets no more trials.
    pub(super) fn done(&self) -> Closed {
        match self.attempts {
            0 => Closed::Never(warning::no_time()),
            _ => Closed::Done,
        }
    }

    /// Ends the row with the trials that it has.
    pub(super) fn ends(&mut self, why: Warning) -> Closed {
        if self.taken.is_empty() && self.discarded.is_empty() {
            let has_failed = why.code == warning::FAILED;
            return if has_failed { Closed::Failed(why.text) } else { Closed::Never(why) };
        }
        self.end = Some(why);
        Closed::Done
    }

    /// Counts a trial that was spoiled before it had a figure; it cannot be kept for want of
    /// better ones. Where most are like that, the row ends.
    fn lose(&mut self, spoil: Spoil) -> Option<Closed> {
        self.is_discarded(spoil);
        let text = format!("trials ended without a figure ({})", spoil.name());
        self.keeps_spoiled.then(|| self.ends(Warning::new(warning::DISTURBED, text)))
    }

    /// Lets a trial count. Its latencies join the others' at once unless it may yet turn out to be
    /// warm-up, because a histogram is large.
    fn count(&mut self, mut taken: Taken) {
        if self.taken.len() >= warmup::MOST {
            pool(&mut self.latencies, taken.sample.latencies.take());
        }
        self.taken.push(taken);
    }

    /// Counts a spoiled trial and says whether it is thrown away. Where most are spoiled, quiet
    /// ones will not come: from then on they are kept and the row says so.
    fn is_discarded(&mut self, spoil: Spoil) -> bool {
        *self.reasons.entry(spoil.name()).or_default() += 1;
        if self.keeps_spoiled {
            self.disturbed += 1;
            return false;
        }
        self.spoiled += 1;
        self.keeps_spoiled = self.spoiled >= self.spoiled_most && self.spoiled > self.attempts / 2;
        true
    }

    /// Trials at the start that look like warm-up.
    fn suspected(&self) -> usize {
        if self.is_in_rounds {
            return 0;
        }
        let slowness = |taken: &Taken| match self.case.row.unit().better() {
            Better::Higher => 1.0 / taken.figure,
            Better::Lower => taken.figure,
        };
        warmup::detect(&self.taken.iter().map(slowness).collect::<Vec<_>>())
    }

    /// Trials at the start that are dropped: never so many that fewer than the least remain, and those
    /// whose place another took while they looked like warm-up.
    fn warmup(&self, plan: &Plan) -> usize {
        let most = least(plan).max(plan.max_trials as usize);
        let beyond = |count: usize| self.taken.len().saturating_sub(count);
        let replaced = if self.disturbed == 0 { beyond(most) } else { 0 };
        self.suspected().min(beyond(least(plan))).max(replaced)
    }

    /// The figures that count so far: the quiet ones, if there are some.
    fn figures(&self, plan: &Plan) -> Vec<f64> {
        let counted = &self.taken[self.warmup(plan)..];
        let quiet: Vec<f64> =
            counted.iter().filter(|taken| !taken.is_disturbed).map(|taken| taken.figure).collect();
        if quiet.len() >= QUIET_LEAST && !self.is_in_rounds {
            return quiet;
        }
        counted.iter().map(|taken| taken.figure).collect()
    }

    /// Whether as many trials count as the plan asks at least. One that looks like warm-up does
    /// not, even while there are too few others to drop it: more are run instead.
    pub(super) fn has_least(&self, plan: &Plan) -> bool {
        self.taken.len() - self.suspected() >= least(plan)
    }

    /// Whether more trials would be wasted.
    pub(super) fn is_enough(&self, plan: &Plan) -> bool {
        self.figures(plan).len() >= (plan.max_trials as usize).max(least(plan))
            || plan.when_precise == WhenPrecise::Stop && self.is_precise(plan)
    }

    /// Whether its trials agree as closely as the plan asks.
    pub(super) fn is_precise(&self, plan: &Plan) -> bool {
        let width = statistics::relative_half_width(&self.figures(plan));
        width.is_some_and(|width| width <= plan.half_width)
    }

    /// Trials that this row will take yet, as far as can be seen: the width of an interval
    /// shrinks with the root of the number of samples.
    pub(super) fn expected_more(&self, plan: &Plan) -> u64 {
        let figures = self.figures(plan);
        let count = figures.len() as u64;
        let to_least = (least(plan) as u64).saturating_sub(count);
        let to_most = u64::from(plan.max_trials).saturating_sub(count).max(to_least);
        if plan.when_precise == WhenPrecise::Thin {
            return to_most.max(1);
        }
        let to_precise = statistics::relative_half_width(&figures).map_or(to_least, |width| {
            let times = (width / plan.half_width).powi(2);
            (count as f64 * times).ceil() as u64
        });
        to_precise.saturating_sub(count).max(to_least).min(to_most).max(1)
    }

    /// Decides which trials count, and says how far they lie apart.
    pub(super) fn settle(&mut self, plan: &Plan) -> Pool {
        self.keep_what_there_is(plan);
        self.prefer_quiet();
        let counted = self.taken[self.warmup(plan)..].iter().map(|taken| taken.figure);
        interval::spread(&counted.collect::<Vec<_>>())
    }

    /// A disturbed figure says more than none: where every trial was spoiled, those count.
    pub(super) fn keep_what_there_is(&mut self, plan: &Plan) {
        if self.taken.is_empty() || (self.is_in_rounds && self.taken.len() < least(plan)) {
            self.accept_discarded(plan);
        }
    }

    /// Lets the discarded trials count, as many as may.
    fn accept_discarded(&mut self, plan: &Plan) {
        let mut accepted = std::mem::take(&mut self.discarded);
        if self.is_in_rounds {
            let most = (plan.max_trials as usize).max(least(plan));
            accepted.truncate(most.saturating_sub(self.taken.len()));
            self.spoiled -= accepted.len() as u32;
            self.disturbed += accepted.len() as u32;
        } else {
            self.disturbed += std::mem::take(&mut self.spoiled);
        }
        accepted.into_iter().for_each(|taken| self.count(taken));
        self.taken.sort_by_key(|taken| taken.attempt);
    }

    /// Where quiet trials came after all, and some of them, only they count. Not where the
    /// latencies of all have been joined already.
    fn prefer_quiet(&mut self) {
        let quiet = self.taken.iter().filter(|taken| !taken.is_disturbed).count();
        let is_kept = self.is_in_rounds || self.latencies.is_some();
        if self.disturbed == 0 || quiet < QUIET_LEAST || is_kept {
            return;
        }
        self.taken.retain(|taken| !taken.is_disturbed);
        self.spoiled += self.disturbed;
        self.disturbed = 0;
    }
}

/// Trials that a row gets at least.
pub(super) fn least(plan: &Plan) -> usize {
    (plan.min_trials as usize).max(1)
}

/// Preemption says nothing about a trial that runs more threads than there are CPUs, or whose own
/// traffic the kernel carries: it does so in interrupts and threads of its own, like a stranger.
fn is_own_doing(warnings: &[Warning]) -> bool {
    let own = [warning::OVERSUBSCRIBED, warning::LOOPBACK, warning::ONE_MACHINE];
    own.iter().any(|code| warning::has(warnings, code))
}
