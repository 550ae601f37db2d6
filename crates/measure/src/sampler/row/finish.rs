//! What a row says when its trials are over: its figures, its status, and what became of trials.

use super::super::detail::{join_series, pool};
use super::super::fact::{
    BETWEEN_RUNS, INTERVALS_DISTURBED, INTERVALS_SPOILED, REJECTED_SAMPLES, SPOIL_REASONS,
    TRIALS_RUN, USE_OF_CPUS, WARMUP_DROPPED, WARMUP_SAMPLES,
};
use super::super::warnings;
use super::{Closed, Sampled, Stolen, Surroundings, Taken, contention, is_own_doing};
use crate::case::{Further, Measured, MeasuredFurther, Plan, blank};
use crate::fact::{Facts, Value};
use crate::guard::{Spoil, UseOfCpus};
use crate::overhead::Overhead;
use crate::record::{Outcome, Status};
use crate::row::Row;
use crate::sampler::NOISY;
use crate::statistics;
use crate::statistics::interval::{self, Knowledge};
use crate::units::counted;
use crate::warning;

impl Sampled<'_> {
    /// The row, settled, with its figure and those of its further figures.
    pub(in crate::sampler) fn finish(
        mut self,
        plan: &Plan,
        overhead: &Overhead,
        beside: &Surroundings,
    ) -> Measured<()> {
        let mut outcome = blank(self.case.row);
        let warmup = self.warmup(plan);
        let mut latencies = self.latencies.take();
        for taken in &mut self.taken[warmup..] {
            pool(&mut latencies, taken.sample.latencies.take());
        }
        outcome.latency = latencies.and_then(|latencies| latencies.latency());
        let (dropped, counted) = self.taken.split_at(warmup);
        for taken in counted {
            join_series(&mut outcome.series, &taken.sample.series);
        }
        let figures: Vec<f64> = counted.iter().map(|taken| taken.figure).collect();
        let mut facts = Facts::merged(counted.iter().map(|taken| &taken.sample.facts));
        let warnings = counted.iter().flat_map(|taken| &taken.sample.warnings).chain(&self.end);
        warning::add_all(&mut outcome.warnings, warnings.cloned());
        let times: Vec<f64> = counted.iter().map(|taken| taken.sample.elapsed_ns as f64).collect();
        warnings::overhead(&mut outcome, &mut facts, &times, overhead);
        self.note_trials(&mut outcome, &mut facts, dropped);
        let watched = counted.iter().map(|taken| &taken.sample.facts);
        let beside_sibling = self.reasons.contains_key(Spoil::SiblingContention.name());
        let is_disturbed = self.disturbed > 0 && beside_sibling;
        let contention =
            contention::Contention::of(&facts, contention::ratio(watched), is_disturbed);
        contention.note(&mut outcome, &mut facts);
        let use_of_cpus = counted.iter().map(|taken| taken.use_of_cpus).reduce(UseOfCpus::and);
        let use_of_cpus = use_of_cpus.filter(|all| all.elapsed_ns > 0);
        if let Some(all) = use_of_cpus {
            note_use_of_cpus(&mut outcome, &mut facts, all, beside.cpus);
        }
        let is_stolen = self.note_stolen(&mut outcome, beside.stolen);
        let is_beside_others = is_stolen
            || warning::has(&outcome.warnings, warning::LOCAL_LOAD)
            || use_of_cpus.is_some_and(|all| all.is_beside_load(beside.cpus));
        let is_loaded = self.disturbed > 0 || is_beside_others;
        let least_deviation = if contention.is_in_figure() {
            interval::CONTENDED_DEVIATION
        } else if is_stolen {
            interval::STOLEN_DEVIATION
        } else if beside_sibling {
            // Where a sibling spoiled one trial, the others saw it, too, if less of it.
            interval::DISTURBED_DEVIATION
        } else {
            0.0
        };
        let kin = beside.kin;
        let known = Knowledge { kin, is_loaded, is_beside_others, ..self.knowledge(plan) };
        let known = Knowledge { least_deviation, ..known };
        let interval = |figures: &[f64], facts: &mut Facts| {
            facts.set(BETWEEN_RUNS, between_runs(figures, &known));
            interval::of_runs(figures, &known)
        };
        let ci95 = interval(&figures, &mut facts)
            .map(|ends| self.with_both_levels(ends, &facts, beside.contention_ratio, &known));
        if let Some((status, code, text)) = self.refused() {
            if !figures.is_empty() {
                facts.set(REJECTED_SAMPLES, figures.into_iter().collect::<Value>());
            }
            outcome.status = status;
            outcome.warn(code, text);
            return Measured { row: (), outcome, facts, further: Vec::new() };
        }
        let more = counted.iter().map(|taken| taken.sample.further.len()).min().unwrap_or(0);
        let further = (0..more).map(|index| {
            let all: Vec<&Further> =
                counted.iter().map(|taken| &taken.sample.further[index]).collect();
            self.further(&outcome, &facts, &all, interval)
        });
        let further = further.collect();
        self.conclude(&mut outcome, &mut facts, figures, ci95);
        Measured { row: (), outcome, facts, further }
    }

    /// Why the row has no figure, with the code of the warning that says so.
    pub(in crate::sampler) fn refused(&self) -> Option<(Status, &str, &str)> {
        match self.closed.as_ref()? {
            Closed::Failed(text) => Some((Status::Failed, warning::FAILED, text)),
            Closed::Unsupported(text) => Some((Status::Unsupported, warning::UNSUPPORTED, text)),
            Closed::Never(why) => Some((Status::Unsupported, &why.code, &why.text)),
            Closed::Invalid(text) => Some((Status::Invalid, warning::INVALID_TIME, text)),
            Closed::Done | Closed::Interrupted | Closed::Lost(_) => None,
        }
    }

    /// A further figure of all trials that count: what differs from the row's own replaces it.
    fn further(
        &self,
        own: &Outcome,
        facts: &Facts,
        all: &[&Further],
        interval: impl Fn(&[f64], &mut Facts) -> Option<[f64; 2]>,
    ) -> MeasuredFurther {
        let parameters = all[0].parameters.clone();
        let mut outcome = Outcome { latency: None, series: Vec::new(), ..own.clone() };
        outcome.parameters.extend(parameters.to_json());
        let mut facts = facts.clone();
        facts.extend(Facts::merged(all.iter().map(|further| &further.facts)));
        let unit = self.case.row.unit();
        let figures =
            all.iter().filter_map(|further| unit.figure(further.amount, further.elapsed_ns));
        let figures: Vec<f64> = figures.collect();
        let ci95 = interval(&figures, &mut facts);
        self.conclude(&mut outcome, &mut facts, figures, ci95);
        MeasuredFurther { parameters, outcome, facts }
    }

    /// A row of the ratios of two rows, this one being one of them: disturbed and interrupted as
    /// it is. What a run does to both of a pair cancels out, so the order of the ratios is enough.
    pub(in crate::sampler) fn ratio(&self, row: &dyn Row, ratios: Vec<f64>) -> Measured<()> {
        let (mut outcome, mut facts) = (blank(row), Facts::default());
        self.note_disturbance(&mut outcome);
        let ci95 = statistics::median_interval(&ratios);
        self.conclude(&mut outcome, &mut facts, ratios, ci95);
        Measured { row: (), outcome, facts, further: Vec::new() }
    }

    /// Gives a row its figures, its status and what these say against themselves.
    fn conclude(
        &self,
        outcome: &mut Outcome,
        facts: &mut Facts,
        figures: Vec<f64>,
        ci95: Option<[f64; 2]>,
    ) {
        outcome.median = statistics::median(&figures);
        outcome.ci95 = ci95;
        outcome.status = match self.closed {
            Some(Closed::Interrupted) => Status::Interrupted,
            _ if outcome.half_width().is_none_or(|width| width > NOISY) => Status::Unstable,
            _ if self.disturbed > 0 => Status::Degraded,
            _ => Status::Ok,
        };
        outcome.n = figures.len() as u64;
        outcome.samples = figures;
        if outcome.status == Status::Interrupted {
            let text = format!("interrupted after {}", counted(outcome.n, "trial"));
            outcome.warn(warning::INTERRUPTED, text);
        }
        if let Some(Closed::Lost(text)) = &self.closed {
            outcome.warn(warning::FAILED, text);
        }
        warnings::samples(outcome, facts);
    }

    fn note_trials(&self, outcome: &mut Outcome, facts: &mut Facts, dropped: &[Taken]) {
        facts.set(TRIALS_RUN, self.attempts);
        facts.set(INTERVALS_SPOILED, self.spoiled);
        facts.set(WARMUP_DROPPED, dropped.len());
        if !dropped.is_empty() {
            let figures = dropped.iter().map(|taken| taken.figure);
            facts.set(WARMUP_SAMPLES, figures.collect::<Value>());
        }
        if !self.reasons.is_empty() {
            let reasons = self.reasons.iter().map(|(&reason, &count)| (reason, count));
            facts.set(SPOIL_REASONS, Value::fields(reasons));
        }
        if self.disturbed > 0 {
            facts.set(INTERVALS_DISTURBED, self.disturbed);
        }
        self.note_disturbance(outcome);
    }

    /// Says that the hypervisor took CPU time, from this row or, for the most part, from those measured with
    /// it. A trial is short beside the kernel's ticks, so rows from which none was seen to go are no quieter.
    fn note_stolen(&self, outcome: &mut Outcome, of_phase: Stolen) -> bool {
        let own = Stolen::of([self]);
        let Some(Stolen { trials, of }) = [own, of_phase].into_iter().find(|all| all.is_much())
        else {
            return false;
        };
        let whose = if own.is_much() { "trials" } else { "trials of all rows" };
        let text = format!("the hypervisor took CPU time during {trials} of {of} {whose}");
        outcome.warn(warning::STOLEN_TIME, text);
        true
    }

    fn note_disturbance(&self, outcome: &mut Outcome) {
        if self.disturbed > 0 {
            let reasons: Vec<&str> = self.reasons.keys().copied().collect();
            let (count, all) = (self.spoiled + self.disturbed, self.attempts);
            let text = format!(
                "{count} of {all} trials were disturbed from outside ({})",
                reasons.join(", ")
            );
            outcome.warn(warning::DISTURBED, text);
            let throttled = self.reasons.get(Spoil::Throttled.name());
            if let Some(count) = throttled {
                let text =
                    format!("the CPU quota of the control group held back {count} of {all} trials");
                outcome.warn(warning::CPU_QUOTA, text);
            }
        }
    }
}

/// What the interval of these figures takes runs to differ by, and where that is from.
fn between_runs(figures: &[f64], known: &Knowledge) -> Value {
    let source = known.learned.map_or("assumed", |_| "learned");
    let deviation = known.deviation_between_runs();
    let fields = [("source", Value::from(source)), ("deviation", Value::from(deviation))];
    let runs = known.learned.map(|learned| ("runs", Value::from(learned.runs)));
    let half = known.learned.and_then(|_| interval::learned_half(figures, known));
    let half = half.map(|half| ("half_width_ratio", Value::from(half)));
    let beside = known.is_beside_others.then(|| ("beside_others", Value::from(true)));
    Value::fields(fields.into_iter().chain(runs).chain(half).chain(beside))
}

/// Share of the CPUs to which it must be known what others used, or nothing is said of it.
const OTHERS_KNOWN: f64 = 0.1;

/// Says who had the CPUs during the trials that count, and warns where others kept threads waiting.
/// That threads waited is their own doing in some rows, unless others had a good part of the CPUs.
pub fn note_use_of_cpus(outcome: &mut Outcome, facts: &mut Facts, all: UseOfCpus, cpus: u32) {
    // Of short trials the kernel's ticks do not tell what others did.
    let is_told = all.others_resolution_cpus() <= OTHERS_KNOWN * f64::from(cpus);
    let is_known = is_told && !all.others_hidden;
    let fields = [
        ("own_cpus", Some(all.own_ns as f64 / all.elapsed_ns as f64)),
        ("others_cpus", is_known.then(|| all.others_cpus().min(f64::from(cpus)))),
        ("kernel_cpus", is_known.then(|| all.kernel_ns as f64 / all.elapsed_ns as f64)),
        ("run_queue_wait_ratio", all.wait_ratio()),
    ];
    facts.set(USE_OF_CPUS, Value::fields(fields));
    let unseen = all.wait_unseen().map(|ratio| (ratio, ", likely: what they do is hidden here"));
    if let Some((ratio, doubt)) = all.wait_for_others().map(|ratio| (ratio, "")).or(unseen)
        && (!is_own_doing(&outcome.warnings) || all.is_beside_load(cpus))
    {
        let text = format!(
            "its threads waited for a CPU in {:.0} % of the time that they wanted one: other \
             programs run on this machine{doubt}",
            ratio * 100.0
        );
        outcome.warn(warning::LOCAL_LOAD, text);
    }
}
