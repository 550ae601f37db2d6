//! What a row says when its trials are over: its figures, its status, what became of trials, and what
//! these say against the figure.

use super::super::fact::{
    BETWEEN_RUNS, HARNESS_OVERHEAD_NS, INTERVALS_DISTURBED, INTERVALS_SPOILED, OUTLIER_INDICES,
    OVERHEAD_RATIO, REJECTED_SAMPLES, SPOIL_REASONS, TRIALS_RUN, USE_OF_CPUS, WARMUP_DROPPED,
    WARMUP_SAMPLES,
};
use super::super::{CLOCK_READS, NOISY};
use super::{Closed, Sampled, Stolen, Surroundings, Taken, contention, distance, is_own_doing};
use crate::case::{Further, Latencies, Measured, MeasuredFurther, Plan, blank};
use crate::fact::{Facts, Value};
use crate::guard::{Spoil, UseOfCpus};
use crate::overhead::{OVERHEAD_SHARE, Overhead};
use crate::record::{Outcome, Series, Status};
use crate::row::Row;
use crate::statistics;
use crate::statistics::interval::{self, Knowledge};
use crate::units::{counted, half};
use crate::warning::{self, Warning};

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
        note_overhead(&mut outcome, &mut facts, &times, overhead);
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
        facts.set(BETWEEN_RUNS, between_runs(&figures, &known));
        let places = distance::note((&mut outcome, &mut facts), counted, beside.least_distance_ns);
        let ci95 = interval::of_runs(&figures, &known)
            .map(|ends| self.with_both_levels(ends, &facts, beside.contention_ratio, &known))
            .map(|ends| {
                interval::reaching(ends, places.as_ref().map_or(&[], |all| &all[..]), &known)
            });
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
            self.further((&outcome, &facts), &all, plan, &known)
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
            Closed::Done | Closed::Interrupted => None,
        }
    }

    /// A further figure of all trials that count: what differs from the row's own replaces it.
    fn further(
        &self,
        (own, facts): (&Outcome, &Facts),
        all: &[&Further],
        plan: &Plan,
        known: &Knowledge,
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
        let noise = plan.noise.as_ref();
        let learned = noise.and_then(|it| it.between_runs(&outcome.id, &outcome.parameters));
        let known = Knowledge { learned, ..*known };
        facts.set(BETWEEN_RUNS, between_runs(&figures, &known));
        let ci95 = interval::of_runs(&figures, &known);
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
        note_samples(outcome, facts);
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

/// Says how much of the time of a trial is the harness's own; `times_ns` are those of all trials.
fn note_overhead(outcome: &mut Outcome, facts: &mut Facts, times_ns: &[f64], overhead: &Overhead) {
    let Some(elapsed_ns) = statistics::median(times_ns) else { return };
    let reads = facts.number(CLOCK_READS).unwrap_or(0.0);
    let overhead_ns = overhead.of_trial_ns(reads / times_ns.len() as f64);
    let ratio = overhead_ns / elapsed_ns;
    facts.set(HARNESS_OVERHEAD_NS, overhead_ns);
    facts.set(OVERHEAD_RATIO, ratio);
    if ratio > OVERHEAD_SHARE {
        let text = format!(
            "the harness takes {:.1} % of the time of a trial ({overhead_ns:.0} of \
             {elapsed_ns:.0} ns)",
            ratio * 100.0
        );
        outcome.warn(warning::OVERHEAD, text);
    }
}

/// Adds what the finished samples say against themselves.
fn note_samples(outcome: &mut Outcome, facts: &mut Facts) {
    let far = statistics::outliers(&outcome.samples);
    if !far.is_empty() {
        let text = format!("{} of {} samples lie far from the others", far.len(), outcome.n);
        facts.set(OUTLIER_INDICES, far.iter().copied().collect::<Value>());
        outcome.warn(warning::OUTLIERS, text);
    }
    let noise = match outcome.half_width() {
        None => {
            let text = format!("{}, too few for a 95 % interval", counted(outcome.n, "trial"));
            Warning::new(warning::FEW_TRIALS, text)
        }
        Some(width) if width > NOISY => {
            let trials = counted(outcome.n, "trial");
            let text = format!("the 95 % interval is ±{} after {trials}", half(width));
            Warning::new(warning::UNSTABLE, text)
        }
        Some(_) => return,
    };
    warning::add(&mut outcome.warnings, noise);
}

/// Moves the latencies of a trial to those of all trials that count so far.
pub(super) fn pool(into: &mut Option<Latencies>, more: Option<Latencies>) {
    match (into, more) {
        (Some(pool), Some(more)) => pool.histogram.merge(&more.histogram),
        (pool @ None, more) => *pool = more,
        (Some(_), None) => {}
    }
}

/// Appends the curves of a trial to those of the same name.
pub(super) fn join_series(into: &mut Vec<Series>, from: &[Series]) {
    for series in from {
        match into.iter_mut().find(|known| known.name == series.name) {
            Some(known) => known.points.extend_from_slice(&series.points),
            None => into.push(series.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{Histogram, LoopKind};

    fn timed(durations: &[u64]) -> Option<Latencies> {
        let mut histogram = Histogram::default();
        durations.iter().for_each(|&duration| histogram.record(duration));
        Some(Latencies { histogram, loop_kind: LoopKind::Open })
    }

    #[test]
    fn latencies_of_trials_are_pooled_and_moved_once() {
        let mut pooled = None;
        let mut first = timed(&[10, 30]);
        pool(&mut pooled, first.take());
        pool(&mut pooled, first.take());
        pool(&mut pooled, timed(&[20]));
        let latency = pooled.unwrap().latency().unwrap();
        assert_eq!((latency.operations, latency.min_ns, latency.max_ns), (3, 10.0, 30.0));
        assert_eq!(latency.loop_kind, "open");
    }

    #[test]
    fn curves_of_one_name_are_joined() {
        let curve = |name: &str, x: f64| Series {
            name: name.to_owned(),
            points: vec![[x, 1.0]],
            ..Series::default()
        };
        let mut joined = Vec::new();
        join_series(&mut joined, &[curve("a", 1.0), curve("b", 1.0)]);
        join_series(&mut joined, &[curve("a", 2.0)]);
        assert_eq!(joined[0].points, [[1.0, 1.0], [2.0, 1.0]]);
        assert_eq!(joined.len(), 2);
    }
}
