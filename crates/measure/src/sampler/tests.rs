//! The sampler against made-up cases, a fake clock and a fake witness.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use serde_json::json;

use super::*;
use crate::case::{Further, Latencies, record};
use crate::clock::FakeClock;
use crate::fact::Facts;
use crate::guard::{FakeWitness, Reading};
use crate::histogram::{Histogram, LoopKind};
use crate::record::{Outcome, Status};
use crate::row::{Parameters, Unit};
use crate::warning::{self, Warning};

const MS: u64 = 1_000_000;

/// A row that has nothing but its name.
struct Plain(&'static str);

impl Row for Plain {
    fn id(&self) -> Cow<'static, str> {
        self.0.into()
    }

    fn parameters(&self) -> Parameters {
        Parameters::default()
    }

    fn unit(&self) -> Unit {
        Unit::OperationsPerSecond
    }
}

/// A case whose trials take the times that `elapsed_ns` says, for 1000 operations each.
fn case<'a>(
    id: &'static str,
    clock: &'a FakeClock,
    mut elapsed_ns: impl FnMut(u32) -> u64 + 'a,
) -> Case<'a, Plain> {
    let mut trial = 0;
    scripted(id, move |_| {
        let elapsed_ns = elapsed_ns(trial);
        trial += 1;
        clock.advance(elapsed_ns);
        Ok(Sample { amount: 1_000.0, elapsed_ns, ..Sample::default() })
    })
}

fn scripted<'a>(
    id: &'static str,
    trial: impl FnMut(u64) -> Result<Sample, TrialError> + 'a,
) -> Case<'a, Plain> {
    Case { row: Plain(id), trial: Box::new(trial) }
}

/// Runs without disturbance and without a wish to stop.
fn run_quietly(clock: &FakeClock, cases: Vec<Case<'_, Plain>>, plan: &Plan) -> Vec<Outcome> {
    run_watched(clock, cases, plan, FakeWitness::quiet())
}

fn run_watched(
    clock: &FakeClock,
    cases: Vec<Case<'_, Plain>>,
    plan: &Plan,
    mut witness: impl Witness,
) -> Vec<Outcome> {
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| false,
    };
    record(sampler.run(cases))
}

fn codes(outcome: &Outcome) -> Vec<&str> {
    outcome.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

/// Times that jump between half and double and never settle.
fn wild(trial: u32) -> u64 {
    if trial.is_multiple_of(2) { 50 * MS } else { 200 * MS }
}

/// A witness in whose eyes the intervals with these numbers were throttled.
fn throttled(spoiled: impl Fn(u32) -> bool, intervals: u32) -> FakeWitness {
    let mut throttled_ns = 0;
    FakeWitness::new((0..intervals).flat_map(|interval| {
        let before = Reading { throttled_ns, ..Reading::default() };
        throttled_ns += u64::from(spoiled(interval));
        [before, Reading { throttled_ns, ..Reading::default() }]
    }))
}

#[test]
fn a_steady_case_stops_at_the_least_trials() {
    let clock = FakeClock::default();
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, |_| MS)], &Plan::default())[0];
    assert_eq!(outcome.status, Status::Ok);
    assert_eq!(outcome.n, 6);
    assert_eq!(outcome.median, Some(1_000_000.0));
    assert_eq!(outcome.ci95, Some([1_000_000.0; 2]));
    assert_eq!(outcome.samples.len(), 6);
    assert_eq!(outcome.warnings, []);
    assert_eq!(outcome.audit["trials_run"], 6);
    assert_eq!(outcome.audit["intervals_spoiled"], 0);
    assert_eq!(outcome.audit["overhead_ratio"], 0.0);
}

#[test]
fn a_wild_case_runs_to_the_most_trials_and_is_unstable() {
    let clock = FakeClock::default();
    let plan = Plan { max_trials: 20, ..Plan::default() };
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, wild)], &plan)[0];
    assert_eq!((outcome.status, outcome.n), (Status::Unstable, 20));
    assert!(outcome.median.is_some());
    assert_eq!(codes(outcome), [warning::UNSTABLE]);
}

#[test]
fn a_wild_case_ends_with_the_budget() {
    let clock = FakeClock::default();
    let plan = Plan { budget_ns: 1_250 * MS, max_trials: 1_000, ..Plan::default() };
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, wild)], &plan)[0];
    assert_eq!((outcome.status, outcome.n), (Status::Unstable, 10));
}

#[test]
fn least_trials_may_stretch_the_budget_but_not_without_end() {
    let clock = FakeClock::default();
    let steady = |plan: &Plan| {
        clock.set(0);
        run_quietly(&clock, vec![case("a/b", &clock, |_| 100 * MS)], plan).remove(0)
    };
    let stretched = steady(&Plan { budget_ns: 300 * MS, ..Plan::default() });
    assert_eq!((stretched.status, stretched.n), (Status::Ok, 6));
    let ended = steady(&Plan { budget_ns: 100 * MS, ..Plan::default() });
    assert_eq!((ended.status, ended.n, ended.ci95), (Status::Unstable, 3, None));
    assert_eq!(codes(&ended), [warning::FEW_TRIALS]);
}

#[test]
fn fewer_than_six_trials_say_so() {
    let clock = FakeClock::default();
    let plan = Plan { min_trials: 3, max_trials: 3, ..Plan::default() };
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, |_| MS)], &plan)[0];
    assert_eq!((outcome.n, outcome.ci95), (3, None));
    assert_eq!(outcome.status, Status::Unstable);
    assert_eq!(codes(outcome), [warning::FEW_TRIALS]);
}

#[test]
fn cases_are_interleaved_in_an_order_that_the_seed_decides() {
    let order = |seed| {
        let clock = FakeClock::default();
        let log = RefCell::new(Vec::new());
        let log_as = |id: &'static str| {
            let log = &log;
            scripted(id, move |_| {
                log.borrow_mut().push(id);
                Ok(Sample { amount: 1.0, elapsed_ns: MS, ..Sample::default() })
            })
        };
        let cases = vec![log_as("a"), log_as("b"), log_as("c")];
        let outcomes = run_quietly(&clock, cases, &Plan { seed, ..Plan::default() });
        let ids: Vec<String> = outcomes.into_iter().map(|outcome| outcome.id).collect();
        assert_eq!(ids, ["a", "b", "c"], "results keep the order of the cases");
        log.into_inner()
    };
    let log = order(5);
    assert_eq!(log.len(), 18);
    for round in log.chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, ["a", "b", "c"], "each round runs each case once");
    }
    assert!(log.chunks(3).any(|round| round != &log[..3]), "rounds differ in order");
    assert_eq!(log, order(5));
    assert_ne!(log, order(6));
}

#[test]
fn every_trial_gets_its_own_seed() {
    let clock = FakeClock::default();
    let seeds = RefCell::new(Vec::new());
    let cases = (0..3)
        .map(|_| {
            scripted("a", |seed| {
                seeds.borrow_mut().push(seed);
                Ok(Sample { amount: 1.0, elapsed_ns: MS, ..Sample::default() })
            })
        })
        .collect();
    run_quietly(&clock, cases, &Plan::default());
    let mut seeds = seeds.into_inner();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 18);
}

#[test]
fn spoiled_trials_do_not_count_but_are_counted() {
    let clock = FakeClock::default();
    let witness = throttled(|interval| interval == 1 || interval == 4, 8);
    let cases =
        vec![case("a/b", &clock, |trial| if trial == 1 || trial == 4 { 9 * MS } else { MS })];
    let outcome = &run_watched(&clock, cases, &Plan::default(), witness)[0];
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 6));
    assert_eq!(outcome.samples, [1_000_000.0; 6]);
    assert_eq!(outcome.audit["intervals_spoiled"], 2);
    assert_eq!(outcome.audit["trials_run"], 8);
    assert_eq!(outcome.audit["spoil_reasons"], json!({"quota throttling": 2}));
}

#[test]
fn a_case_that_is_always_spoiled_ends_degraded() {
    let clock = FakeClock::default();
    let cases = vec![case("a/b", &clock, |_| MS)];
    let outcome = &run_watched(&clock, cases, &Plan::default(), throttled(|_| true, 40))[0];
    assert_eq!((outcome.status, outcome.n), (Status::Degraded, 6));
    assert_eq!(codes(outcome), [warning::DISTURBED]);
    assert_eq!(outcome.audit["intervals_spoiled"], 6);
    assert_eq!(outcome.audit["intervals_disturbed"], 6);
}

#[test]
fn a_row_whose_trials_were_all_spoiled_keeps_them_when_time_is_over() {
    let clock = FakeClock::default();
    let plan = Plan { budget_ns: 100 * MS, ..Plan::default() };
    let cases = vec![case("a/b", &clock, |_| 100 * MS)];
    let outcome = &run_watched(&clock, cases, &plan, throttled(|_| true, 40))[0];
    assert_eq!((outcome.status, outcome.n), (Status::Unstable, 3));
    assert_eq!(outcome.median, Some(10_000.0));
    assert_eq!(codes(outcome), [warning::DISTURBED, warning::FEW_TRIALS]);
    assert_eq!(outcome.audit["intervals_spoiled"], 0);
    assert_eq!(outcome.audit["intervals_disturbed"], 3);
}

/// A case of which the trials with these numbers end without a figure.
fn lossy<'a>(clock: &'a FakeClock, is_lost: impl Fn(u32) -> bool + 'a) -> Case<'a, Plain> {
    let mut trial = 0;
    scripted("a/b", move |_| {
        clock.advance(MS);
        trial += 1;
        let sample = Sample { amount: 1_000.0, elapsed_ns: MS, ..Sample::default() };
        let lost = Sample { spoil: Some(Spoil::Preempted), ..Sample::default() };
        Ok(if is_lost(trial - 1) { lost } else { sample })
    })
}

#[test]
fn a_spoiled_trial_without_a_figure_is_repeated() {
    let clock = FakeClock::default();
    let cases = vec![lossy(&clock, |trial| trial == 0 || trial == 4)];
    let outcome = &run_quietly(&clock, cases, &Plan::default())[0];
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 6));
    assert_eq!(outcome.audit["intervals_spoiled"], 2);
    assert_eq!(outcome.audit["spoil_reasons"], json!({"preemption": 2}));
    assert!(outcome.warnings.is_empty());
}

#[test]
fn a_row_whose_trials_never_have_a_figure_is_disturbed_and_not_failed() {
    let clock = FakeClock::default();
    let outcome = &run_quietly(&clock, vec![lossy(&clock, |_| true)], &Plan::default())[0];
    assert_eq!((outcome.status, outcome.median, outcome.n), (Status::Unsupported, None, 0));
    assert_eq!(codes(outcome), [warning::DISTURBED]);
    assert_eq!(outcome.audit["trials_run"], 6);
    let clock = FakeClock::default();
    let cases = vec![lossy(&clock, |trial| trial != 2)];
    let outcome = &run_quietly(&clock, cases, &Plan::default())[0];
    assert_eq!((outcome.status, outcome.n), (Status::Unstable, 1), "what there is counts");
    assert_eq!(codes(outcome), [warning::DISTURBED, warning::FEW_TRIALS]);
}

#[test]
fn quiet_trials_that_come_late_count_alone() {
    let clock = FakeClock::default();
    let plan = Plan { min_trials: 13, ..Plan::default() };
    let times = |trial| if trial < 7 { 9 * MS } else { MS };
    let cases = vec![case("a/b", &clock, times)];
    let outcome = &run_watched(&clock, cases, &plan, throttled(|trial| trial < 7, 40))[0];
    // The seventh counted, because six before were spoiled, until quiet ones came.
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 13));
    assert_eq!(outcome.median, Some(1_000_000.0));
    assert_eq!(outcome.audit["intervals_spoiled"], 7);
    assert!(!outcome.audit.contains_key("intervals_disturbed"));
}

#[test]
fn a_trial_may_have_a_witness_of_its_own() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let own = scripted("a/b", |_| {
        trial += 1;
        clock.advance(MS);
        let spoil = (trial == 2).then_some(Spoil::SiblingContention);
        Ok(Sample { amount: 1.0, elapsed_ns: MS, spoil, ..Sample::default() })
    });
    let outcome = &run_quietly(&clock, vec![own], &Plan::default())[0];
    assert_eq!(outcome.audit["spoil_reasons"], json!({"SMT sibling contention": 1}));
    assert_eq!(outcome.n, 6);
}

#[test]
fn three_quiet_trials_count_alone_and_two_do_not() {
    for (quiet, expected) in [(2, 9 * MS), (3, MS)] {
        let clock = FakeClock::default();
        let plan = Plan { max_trials: 30, min_trials: 30, budget_ns: 250 * MS, ..Plan::default() };
        let is_quiet = move |trial: u32| (1..=quiet).any(|which| trial == 8 + 4 * which);
        let times = move |trial| if is_quiet(trial) { MS } else { 9 * MS };
        let cases = vec![case("a/b", &clock, times)];
        let watch = throttled(move |trial| !is_quiet(trial), 200);
        let outcome = &run_watched(&clock, cases, &plan, watch)[0];
        let median = outcome.median.unwrap();
        assert!((median * expected as f64 / 1e12 - 1.0).abs() < 1e-9, "{quiet}: {median}");
    }
}

#[test]
fn a_row_that_kept_spoiled_trials_is_at_best_degraded() {
    let clock = FakeClock::default();
    let plan = Plan { budget_ns: 300 * MS, min_trials: 7, ..Plan::default() };
    let cases = vec![case("a/b", &clock, |_| 100 * MS)];
    let outcome = &run_watched(&clock, cases, &plan, throttled(|trial| trial < 6, 40))[0];
    assert_eq!(outcome.n, 1, "one quiet trial is better than six spoiled ones");
    let cases = vec![case("a/b", &clock, |_| 1_000 * MS)];
    let plan = Plan { budget_ns: 2_500 * MS, ..plan };
    clock.set(0);
    let outcome = &run_watched(&clock, cases, &plan, throttled(|_| true, 40))[0];
    assert_eq!((outcome.status, outcome.n), (Status::Degraded, 6));
}

#[test]
fn every_row_gets_one_trial_however_little_time_there_is() {
    let clock = FakeClock::default();
    let plan = Plan { budget_ns: MS, ..Plan::default() };
    let cases = ["a/b", "a/c", "a/d"].map(|id| case(id, &clock, |_| 100 * MS)).into();
    for outcome in run_quietly(&clock, cases, &plan) {
        assert_eq!((outcome.n, outcome.median), (1, Some(10_000.0)), "{}", outcome.id);
    }
}

#[test]
fn a_user_who_stops_is_not_made_to_wait_for_the_first_trials() {
    let clock = FakeClock::default();
    let cases = ["a/b", "a/c"].map(|id| case(id, &clock, |_| 100 * MS)).into();
    let mut witness = FakeWitness::quiet();
    let mut sampler = Sampler {
        plan: Plan::default(),
        clock: &clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| clock.now_ns() > 0,
    };
    let outcomes = record(sampler.within(MS).run(cases));
    assert_eq!(outcomes.iter().map(|outcome| outcome.n).sum::<u64>(), 1);
    let untried = outcomes.iter().find(|outcome| outcome.n == 0).unwrap();
    assert_eq!(untried.status, Status::Interrupted);
}

#[test]
fn preemption_is_no_news_when_threads_outnumber_cpus() {
    let mut reading = Reading::default();
    let busy = FakeWitness::new(
        std::iter::repeat_with(|| {
            reading.monotonic_ns += 1_000 * MS;
            reading.raw_ns += 1_000 * MS;
            reading.involuntary_switches += 9_999;
            reading.others_busy_ns += 900 * MS;
            reading
        })
        .take(40),
    );
    let clock = FakeClock::default();
    let cases = vec![scripted("a/b", |_| {
        let warnings = vec![Warning::new(warning::OVERSUBSCRIBED, "8 threads on 1 CPU")];
        Ok(Sample { amount: 1.0, elapsed_ns: MS, warnings, ..Sample::default() })
    })];
    let outcome = &run_watched(&clock, cases, &Plan::default(), busy)[0];
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 6));
    assert_eq!(outcome.audit["intervals_spoiled"], 0);
    assert_eq!(codes(outcome), [warning::OVERSUBSCRIBED]);
}

#[test]
fn warm_up_is_dropped_shown_and_made_up_for() {
    let clock = FakeClock::default();
    let cases = vec![case("a/b", &clock, |trial| if trial < 2 { 2 * MS } else { MS })];
    let outcome = &run_quietly(&clock, cases, &Plan::default())[0];
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 6));
    assert_eq!(outcome.samples, [1_000_000.0; 6]);
    assert_eq!(outcome.audit["warmup_dropped"], 2);
    assert_eq!(outcome.audit["warmup_samples"], json!([500_000.0, 500_000.0]));
    assert_eq!(outcome.audit["trials_run"], 8);
}

#[test]
fn warm_up_is_kept_when_time_ran_out_before_the_least_trials() {
    let clock = FakeClock::default();
    let plan = Plan { budget_ns: 200 * MS, ..Plan::default() };
    let cases = vec![case("a/b", &clock, |trial| if trial == 0 { 200 * MS } else { 100 * MS })];
    let outcome = &run_quietly(&clock, cases, &plan)[0];
    assert_eq!(outcome.n, 4);
    assert_eq!(outcome.audit["warmup_dropped"], 0);
}

#[test]
fn facts_are_merged_over_the_trials_that_count() {
    let clock = FakeClock::default();
    let witness = throttled(|interval| interval == 0, 7);
    let mut trial = 0;
    let cases = vec![scripted("a/b", |_| {
        trial += 1;
        let facts = Facts::default()
            .with(Key::sum("bytes"), 10_u64)
            .with(Key::last("engine"), format!("e{trial}"));
        Ok(Sample {
            amount: 10.0,
            elapsed_ns: MS,
            facts,
            warnings: vec![Warning::new(warning::NOT_COLD, format!("trial {trial}"))],
            ..Sample::default()
        })
    })];
    let outcome = &run_watched(&clock, cases, &Plan::default(), witness)[0];
    assert_eq!(outcome.audit["bytes"], 60);
    assert_eq!(outcome.audit["engine"], "e7");
    assert_eq!(outcome.warnings, [Warning::new(warning::NOT_COLD, "trial 2")]);
}

#[test]
fn failed_and_unsupported_rows_name_the_cause_and_give_no_figure() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let cases = vec![
        scripted("a/failed", |_| {
            trial += 1;
            if trial > 2 {
                return Err(TrialError::Failed("read x: I/O error".to_owned()));
            }
            Ok(Sample { amount: 1.0, elapsed_ns: 1_000 * MS, ..Sample::default() })
        }),
        scripted("a/unsupported", |_| Err(TrialError::Unsupported("no io_uring".to_owned()))),
        case("a/fine", &clock, |_| MS),
    ];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert_eq!(outcomes[0].status, Status::Failed);
    assert_eq!(outcomes[0].warnings, [Warning::new(warning::FAILED, "read x: I/O error")]);
    assert_eq!((outcomes[0].median, outcomes[0].n), (None, 0));
    assert_eq!(outcomes[0].audit["rejected_samples"], json!([1.0, 1.0]));
    assert_eq!(outcomes[1].status, Status::Unsupported);
    assert_eq!(outcomes[1].warnings, [Warning::new(warning::UNSUPPORTED, "no io_uring")]);
    assert_eq!(outcomes[2].status, Status::Ok);
}

#[test]
fn a_trial_without_time_is_invalid() {
    let clock = FakeClock::default();
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, |_| 0)], &Plan::default())[0];
    assert_eq!((outcome.status, outcome.median), (Status::Invalid, None));
    assert_eq!(codes(outcome), [warning::INVALID_TIME]);
}

#[test]
fn an_interrupted_trial_ends_the_run() {
    let clock = FakeClock::default();
    let cases = vec![scripted("a/b", |_| Err(TrialError::Interrupted)), case("a/c", &clock, wild)];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert!(outcomes.iter().all(|outcome| outcome.status == Status::Interrupted));
    assert!(outcomes[1].n <= 1);
}

#[test]
fn cancelling_keeps_what_was_complete() {
    let clock = FakeClock::default();
    let trials = Cell::new(0);
    let counted = |trial| {
        trials.set(trials.get() + 1);
        wild(trial)
    };
    let cases = vec![case("a/steady", &clock, |_| MS), case("a/wild", &clock, counted)];
    let mut witness = FakeWitness::quiet();
    let mut sampler = Sampler {
        plan: Plan::default(),
        clock: &clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| trials.get() >= 8,
    };
    let outcomes = record(sampler.run(cases));
    assert_eq!((outcomes[0].status, outcomes[0].n), (Status::Ok, 6));
    assert_eq!((outcomes[1].status, outcomes[1].n), (Status::Interrupted, 8));
    assert!(outcomes[1].median.is_some(), "what there is, is shown");
    assert_eq!(codes(&outcomes[1]), [warning::INTERRUPTED, warning::UNSTABLE]);
}

#[test]
fn a_far_sample_is_flagged_and_kept() {
    let clock = FakeClock::default();
    let cases = vec![case("a/b", &clock, |trial| if trial == 3 { 9 * MS } else { MS })];
    let plan = Plan { min_trials: 12, ..Plan::default() };
    let outcome = &run_quietly(&clock, cases, &plan)[0];
    assert_eq!(outcome.n, 12);
    assert_eq!(codes(outcome), [warning::OUTLIERS]);
    assert_eq!(outcome.audit["outlier_indices"], json!([3]));
}

#[test]
fn a_harness_that_takes_too_long_is_a_doubt() {
    let clock = FakeClock::default();
    clock.set_step(30);
    let sample = |elapsed_ns, reads: u64| Sample {
        amount: 1.0,
        elapsed_ns,
        facts: Facts::default().with(CLOCK_READS, reads),
        ..Sample::default()
    };
    let cases = vec![
        scripted("a/short", |_| Ok(sample(1_000, 0))),
        scripted("a/long", |_| Ok(sample(1_000_000, 0))),
        scripted("a/chatty", |_| Ok(sample(1_000_000, 1_000))),
    ];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert_eq!(outcomes[0].audit["overhead_ratio"], 0.03);
    assert_eq!(codes(&outcomes[0]), [warning::OVERHEAD]);
    assert_eq!(codes(&outcomes[1]), [] as [&str; 0]);
    assert_eq!(outcomes[2].audit["harness_overhead_ns"], 30_030.0);
    assert_eq!(codes(&outcomes[2]), [warning::OVERHEAD]);
}

#[test]
fn progress_counts_up_and_its_estimate_ends_at_nothing() {
    let clock = FakeClock::default();
    let mut witness = FakeWitness::quiet();
    let mut events = Vec::new();
    let mut sampler = Sampler {
        plan: Plan::default(),
        clock: &clock,
        witness: &mut witness,
        events: &mut |event| events.push(event),
        cancelled: &|| false,
    };
    sampler.run(vec![case("a/b", &clock, |_| MS), case("a/c", &clock, |_| MS)]);
    let progress: Vec<Progress> = events
        .iter()
        .filter_map(|event| match event {
            Event::Trial { progress, .. } | Event::Closed { progress, .. } => Some(*progress),
            Event::Preparing { .. } => None,
        })
        .collect();
    assert_eq!(progress.len(), 14);
    assert_eq!((progress[0].left_ns, progress[0].trials_expected), (None, 12));
    assert_eq!(progress[1].left_ns, Some(11 * MS));
    assert!(progress.is_sorted_by_key(|progress| progress.trials_done));
    let last = progress[13];
    assert_eq!((last.cases_done, last.trials_done, last.left_ns), (2, 12, Some(0)));
}

#[test]
fn a_further_figure_becomes_a_row_of_the_same_trials() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let cases = vec![scripted("a/b", |_| {
        trial += 1;
        let mut histogram = Histogram::new();
        histogram.record(trial * 100);
        // The first trial is warm-up, and none of what it brought may count.
        let elapsed_ns = if trial == 1 { 9 * MS } else { MS };
        Ok(Sample {
            amount: 10.0,
            elapsed_ns,
            facts: Facts::default().with(Key::sum("bytes"), 10_u64),
            latencies: Some(Latencies { histogram, loop_kind: LoopKind::Closed }),
            further: vec![Further {
                parameters: Parameters::default().with("until", "durable"),
                amount: 10.0,
                elapsed_ns: 2 * elapsed_ns,
                facts: Facts::default().with(Key::sum("own"), 1_u64),
            }],
            ..Sample::default()
        })
    })];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert_eq!(outcomes.len(), 2);
    let [own, further] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((own.median, further.median), (Some(10_000.0), Some(5_000.0)));
    assert_eq!(
        (own.parameters.get("until"), &further.parameters["until"]),
        (None, &json!("durable"))
    );
    assert_eq!((own.n, further.n, further.ci95), (6, 6, Some([5_000.0; 2])));
    assert_eq!(
        (own.audit["bytes"].as_u64(), further.audit["bytes"].as_u64()),
        (Some(60), Some(60))
    );
    assert_eq!((own.audit.get("own"), &further.audit["own"]), (None, &json!(6)));
    let latency = own.latency.as_ref().unwrap();
    assert_eq!((latency.operations, latency.min_ns, latency.max_ns), (6, 200.0, 700.0));
}

#[test]
fn a_row_that_can_have_no_more_trials_keeps_those_it_has() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let end = || TrialError::NoMore(Warning::new(warning::WRITE_LIMIT, "enough"));
    let cases = vec![
        scripted("a/some", |_| {
            trial += 1;
            let sample = Sample { amount: 1.0, elapsed_ns: MS, ..Sample::default() };
            if trial > 3 { Err(end()) } else { Ok(sample) }
        }),
        scripted("a/none", |_| Err(end())),
    ];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert_eq!((outcomes[0].n, outcomes[0].median), (3, Some(1_000.0)));
    assert_eq!(codes(&outcomes[0]), [warning::WRITE_LIMIT, warning::FEW_TRIALS]);
    assert_eq!((outcomes[1].status, outcomes[1].median), (Status::Unsupported, None));
    assert_eq!(codes(&outcomes[1]), [warning::WRITE_LIMIT], "the machine is not to blame");
}

#[test]
fn no_cases_no_rows() {
    assert!(run_quietly(&FakeClock::default(), Vec::new(), &Plan::default()).is_empty());
}
