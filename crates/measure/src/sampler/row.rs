//! One row while it is measured: which trials count, whether they are enough, and what the
//! record says about them in the end.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::detail::{Details, LatencyPool, join_series};
use super::figure::{figure, quotient};
use super::{Attempt, audit, warmup};
use crate::case::{Case, Figure, Further, Plan, Sample, TrialError};
use crate::guard::Spoil;
use crate::overhead::{OVERHEAD_SHARE, Overhead};
use crate::record::{Outcome, Status};
use crate::statistics;
use crate::warning::{self, Warning};

/// Spoiled trials after which a row stops waiting for quiet ones, if they are also the majority.
const SPOILED_MOST: u32 = 6;
/// Quiet trials from which on disturbed ones do not count beside them: these measured something else.
const QUIET_LEAST: usize = 3;
/// Trials below which there is no 95 % interval.
const INTERVAL_LEAST: usize = 6;

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

/// A trial with a figure.
struct Taken {
    figure: f64,
    elapsed_ns: u64,
    audit: Map<String, Value>,
    warnings: Vec<Warning>,
    details: Details,
    is_disturbed: bool,
}

/// One row while it is measured.
pub(super) struct Row<'a> {
    pub(super) case: Case<'a>,
    /// Trials begun, whatever became of them.
    pub(super) attempts: u32,
    /// Time of all of them with their set-up.
    pub(super) spent_ns: u64,
    pub(super) closed: Option<Closed>,
    taken: Vec<Taken>,
    latencies: LatencyPool,
    /// Spoiled trials, while there is nothing better: should time run out before a quiet one, they
    /// are what there is.
    discarded: Vec<Taken>,
    /// Spoiled trials that were thrown away.
    spoiled: u32,
    /// Spoiled trials that count.
    disturbed: u32,
    keeps_spoiled: bool,
    reasons: BTreeMap<&'static str, u64>,
    /// Why there could be no more trials than there are.
    end: Option<Warning>,
}

impl<'a> Row<'a> {
    pub(super) fn new(case: Case<'a>) -> Self {
        Self {
            case,
            attempts: 0,
            spent_ns: 0,
            closed: None,
            taken: Vec::new(),
            latencies: LatencyPool::default(),
            discarded: Vec::new(),
            spoiled: 0,
            disturbed: 0,
            keeps_spoiled: false,
            reasons: BTreeMap::new(),
            end: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// Takes in one trial; a reason is returned when it ends the row.
    pub(super) fn take(&mut self, attempt: Attempt) -> Option<Closed> {
        self.attempts = self.attempts.saturating_add(1);
        self.spent_ns = self.spent_ns.saturating_add(attempt.spent_ns);
        let sample = match attempt.result {
            Ok(sample) => sample,
            Err(TrialError::Failed(text)) => return Some(Closed::Failed(text)),
            Err(TrialError::Unsupported(text)) => return Some(Closed::Unsupported(text)),
            Err(TrialError::Interrupted) => return Some(Closed::Interrupted),
            Err(TrialError::NoMore(why)) if self.taken.is_empty() && self.discarded.is_empty() => {
                return Some(Closed::Never(why));
            }
            Err(TrialError::NoMore(why)) => {
                self.end = Some(why);
                return Some(Closed::Done);
            }
        };
        let Some(figure) = figure(self.case.figure, &sample) else {
            return Some(Closed::Invalid(format!(
                "a trial reported {} in {} ns",
                sample.amount, sample.elapsed_ns
            )));
        };
        let spoil = attempt.spoil.filter(|spoil| counts(*spoil, &sample)).or(sample.spoil);
        let Sample { elapsed_ns, audit, warnings, latencies, series, further, .. } = sample;
        let details = Details { latencies, series, further };
        let is_disturbed = spoil.is_some();
        let taken = Taken { figure, elapsed_ns, audit, warnings, details, is_disturbed };
        match spoil {
            Some(spoil) if self.is_discarded(spoil) => {
                if self.taken.is_empty() {
                    self.discarded.push(taken);
                }
            }
            _ => {
                self.discarded.clear();
                self.count(taken);
            }
        }
        None
    }

    /// Lets a trial count. Its latencies join the others' at once unless it may yet turn out to be
    /// warm-up, because a histogram is large.
    fn count(&mut self, mut taken: Taken) {
        if self.taken.len() >= warmup::MOST {
            self.latencies.take(&mut taken.details);
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
        self.keeps_spoiled = self.spoiled >= SPOILED_MOST && self.spoiled > self.attempts / 2;
        true
    }

    /// Trials at the start that look like warm-up.
    fn suspected(&self) -> usize {
        let slowness = |taken: &Taken| match self.case.figure {
            Figure::Rate => 1.0 / taken.figure,
            Figure::NanosecondsEach => taken.figure,
        };
        warmup::detect(&self.taken.iter().map(slowness).collect::<Vec<_>>())
    }

    /// Trials at the start that are dropped; never so many that fewer than the least remain.
    fn warmup(&self, plan: &Plan) -> usize {
        self.suspected().min(self.taken.len().saturating_sub(least(plan)))
    }

    /// The figures that count so far: the quiet ones, if there are some.
    fn figures(&self, plan: &Plan) -> Vec<f64> {
        let counted = &self.taken[self.warmup(plan)..];
        let quiet: Vec<f64> =
            counted.iter().filter(|taken| !taken.is_disturbed).map(|taken| taken.figure).collect();
        if quiet.len() >= QUIET_LEAST {
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
        let figures = self.figures(plan);
        figures.len() >= (plan.max_trials as usize).max(least(plan)) || is_precise(&figures, plan)
    }

    /// Trials that this row will take yet, as far as can be seen: the width of an interval
    /// shrinks with the root of the number of samples.
    pub(super) fn expected_more(&self, plan: &Plan) -> u64 {
        let figures = self.figures(plan);
        let count = figures.len() as u64;
        let to_least = (least(plan) as u64).saturating_sub(count);
        let to_most = u64::from(plan.max_trials).saturating_sub(count).max(to_least);
        let to_precise = statistics::relative_half_width(&figures).map_or(to_least, |width| {
            let times = (width / plan.half_width).powi(2);
            (count as f64 * times).ceil() as u64
        });
        to_precise.saturating_sub(count).max(to_least).min(to_most).max(1)
    }

    /// The row as it goes into the record, and those of its further figures.
    pub(super) fn finish(mut self, plan: &Plan, overhead: &Overhead) -> Vec<Outcome> {
        self.keep_what_there_is();
        self.prefer_quiet();
        let mut outcome = self.case.blank_outcome();
        let warmup = self.warmup(plan);
        let mut latencies = std::mem::take(&mut self.latencies);
        for taken in &mut self.taken[warmup..] {
            latencies.take(&mut taken.details);
        }
        outcome.latency = latencies.latency();
        let (dropped, counted) = self.taken.split_at(warmup);
        for taken in counted {
            join_series(&mut outcome.series, &taken.details.series);
        }
        let figures: Vec<f64> = counted.iter().map(|taken| taken.figure).collect();
        for taken in counted {
            audit::merge(&mut outcome.audit, &taken.audit);
            for doubt in &taken.warnings {
                warning::add(&mut outcome.warnings, doubt.clone());
            }
        }
        if let Some(end) = &self.end {
            warning::add(&mut outcome.warnings, end.clone());
        }
        self.note_overhead(&mut outcome, counted, overhead);
        self.note_trials(&mut outcome, dropped);
        let refused = match &self.closed {
            Some(Closed::Failed(text)) => Some((Status::Failed, warning::FAILED, text)),
            Some(Closed::Unsupported(text)) => {
                Some((Status::Unsupported, warning::UNSUPPORTED, text))
            }
            Some(Closed::Never(why)) => Some((Status::Unsupported, why.code.as_str(), &why.text)),
            Some(Closed::Invalid(text)) => Some((Status::Invalid, warning::INVALID_TIME, text)),
            _ => None,
        };
        if let Some((status, code, text)) = refused {
            if !figures.is_empty() {
                outcome.audit.insert("rejected_samples".to_owned(), json!(figures));
            }
            outcome.status = status;
            warning::add(&mut outcome.warnings, Warning::new(code, text));
            return vec![outcome];
        }
        let more = counted.iter().map(|taken| taken.details.further.len()).min().unwrap_or(0);
        let further = (0..more).map(|index| {
            let of = |taken: &Taken| taken.details.further[index].clone();
            let all: Vec<Further> = counted.iter().map(of).collect();
            let mut own = outcome.clone();
            own.parameters.extend(all[0].parameters.clone());
            own.latency = None;
            own.series.clear();
            let mut facts = Map::new();
            all.iter().for_each(|further| audit::merge(&mut facts, &further.audit));
            own.audit.extend(facts);
            let figures = all.iter().map(|f| quotient(self.case.figure, f.amount, f.elapsed_ns));
            self.conclude(own, figures.flatten().collect(), plan)
        });
        let further: Vec<Outcome> = further.collect();
        [self.conclude(outcome, figures, plan)].into_iter().chain(further).collect()
    }

    /// Gives a row its figures, its status and what these say against themselves.
    fn conclude(&self, mut outcome: Outcome, figures: Vec<f64>, plan: &Plan) -> Outcome {
        outcome.status = match self.closed {
            Some(Closed::Interrupted) => Status::Interrupted,
            _ if !is_precise(&figures, plan) => Status::Unstable,
            _ if self.disturbed > 0 => Status::Degraded,
            _ => Status::Ok,
        };
        outcome.median = statistics::median(&figures);
        outcome.ci95 = statistics::median_interval(&figures);
        outcome.n = figures.len() as u64;
        outcome.samples = figures;
        if outcome.status == Status::Interrupted {
            let text = format!("interrupted after {} trials that count", outcome.n);
            warning::add(&mut outcome.warnings, Warning::new(warning::INTERRUPTED, text));
        }
        note_doubts(&mut outcome, plan);
        outcome
    }

    /// A doubtful figure says more than none: where every trial was spoiled, those count.
    fn keep_what_there_is(&mut self) {
        if self.taken.is_empty() {
            self.disturbed += self.spoiled;
            self.spoiled = 0;
            for taken in std::mem::take(&mut self.discarded) {
                self.count(taken);
            }
        }
    }

    /// Where quiet trials came after all, and some of them, only they count. Not where the
    /// latencies of all have been joined already.
    fn prefer_quiet(&mut self) {
        let quiet = self.taken.iter().filter(|taken| !taken.is_disturbed).count();
        if self.disturbed == 0 || quiet < QUIET_LEAST || !self.latencies.is_empty() {
            return;
        }
        self.taken.retain(|taken| !taken.is_disturbed);
        self.spoiled += self.disturbed;
        self.disturbed = 0;
    }

    fn note_trials(&self, outcome: &mut Outcome, dropped: &[Taken]) {
        let audit = &mut outcome.audit;
        audit.insert("trials_run".to_owned(), json!(self.attempts));
        audit.insert("intervals_spoiled".to_owned(), json!(self.spoiled));
        audit.insert("warmup_dropped".to_owned(), json!(dropped.len()));
        if !dropped.is_empty() {
            let figures: Vec<f64> = dropped.iter().map(|taken| taken.figure).collect();
            audit.insert("warmup_samples".to_owned(), json!(figures));
        }
        if !self.reasons.is_empty() {
            audit.insert("spoil_reasons".to_owned(), json!(self.reasons));
        }
        if self.disturbed > 0 {
            audit.insert("intervals_disturbed".to_owned(), json!(self.disturbed));
        }
        if self.disturbed > 0 {
            let reasons: Vec<&str> = self.reasons.keys().copied().collect();
            let (count, all) = (self.spoiled + self.disturbed, self.attempts);
            let text = format!(
                "{count} of {all} trials were disturbed from outside ({})",
                reasons.join(", ")
            );
            warning::add(&mut outcome.warnings, Warning::new(warning::DISTURBED, text));
        }
    }

    fn note_overhead(&self, outcome: &mut Outcome, counted: &[Taken], overhead: &Overhead) {
        let times: Vec<f64> = counted.iter().map(|taken| taken.elapsed_ns as f64).collect();
        let Some(elapsed_ns) = statistics::median(&times) else { return };
        let reads = outcome.audit.get("clock_reads").and_then(Value::as_f64).unwrap_or(0.0);
        let overhead_ns = overhead.of_trial_ns(reads / counted.len() as f64);
        let ratio = overhead_ns / elapsed_ns;
        outcome.audit.insert("harness_overhead_ns".to_owned(), json!(overhead_ns));
        outcome.audit.insert("overhead_ratio".to_owned(), json!(ratio));
        if ratio > OVERHEAD_SHARE {
            let text = format!(
                "the harness takes {:.1} % of the time of a trial ({overhead_ns:.0} of \
                 {elapsed_ns:.0} ns)",
                ratio * 100.0
            );
            warning::add(&mut outcome.warnings, Warning::new(warning::OVERHEAD, text));
        }
    }
}

/// Adds what the finished samples say against themselves.
fn note_doubts(outcome: &mut Outcome, plan: &Plan) {
    let far = statistics::outliers(&outcome.samples);
    if !far.is_empty() {
        let text = format!("{} of {} samples lie far from the others", far.len(), outcome.n);
        outcome.audit.insert("outlier_indices".to_owned(), json!(far));
        warning::add(&mut outcome.warnings, Warning::new(warning::OUTLIERS, text));
    }
    if outcome.samples.len() < INTERVAL_LEAST {
        let text = format!("{} trials count; a 95 % interval needs {INTERVAL_LEAST}", outcome.n);
        warning::add(&mut outcome.warnings, Warning::new(warning::FEW_TRIALS, text));
    } else if let Some(width) = statistics::relative_half_width(&outcome.samples)
        && width > plan.half_width
    {
        let text = format!(
            "the 95 % interval is ±{:.1} % after {} trials; ±{:.1} % was asked for",
            width * 100.0,
            outcome.n,
            plan.half_width * 100.0
        );
        warning::add(&mut outcome.warnings, Warning::new(warning::UNSTABLE, text));
    }
}

fn least(plan: &Plan) -> usize {
    (plan.min_trials as usize).max(1)
}

fn is_precise(figures: &[f64], plan: &Plan) -> bool {
    statistics::relative_half_width(figures).is_some_and(|width| width <= plan.half_width)
}

/// Preemption says nothing about a trial that runs more threads than there are CPUs, or whose own
/// traffic the kernel carries: it does so in interrupts and threads of its own, like a stranger.
fn counts(spoil: Spoil, sample: &Sample) -> bool {
    let own = [warning::OVERSUBSCRIBED, warning::LOOPBACK];
    spoil != Spoil::Preempted || !own.iter().any(|code| warning::has(&sample.warnings, code))
}
