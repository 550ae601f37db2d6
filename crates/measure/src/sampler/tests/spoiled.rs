//! Trials that others spoiled: what is repeated, what counts after all, and what is said of it.

use serde_json::json;

use super::*;

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
    assert_eq!(codes(outcome), [warning::DISTURBED, warning::CPU_QUOTA]);
    assert_eq!(outcome.audit["intervals_spoiled"], 6);
    assert_eq!(outcome.audit["intervals_disturbed"], 6);
}

#[test]
fn a_row_whose_trials_were_all_spoiled_keeps_them_when_time_is_over() {
    let clock = FakeClock::default();
    let plan = Plan { ends_ns: 200 * MS, ..Plan::default() };
    let cases = vec![case("a/b", &clock, |_| 100 * MS)];
    let outcome = &run_watched(&clock, cases, &plan, throttled(|_| true, 40))[0];
    assert_eq!((outcome.status, outcome.n), (Status::Unstable, 2));
    assert_eq!(outcome.median, Some(10_000.0));
    assert_eq!(codes(outcome), [warning::DISTURBED, warning::CPU_QUOTA, warning::FEW_TRIALS]);
    assert_eq!(outcome.audit["intervals_spoiled"], 0);
    assert_eq!(outcome.audit["intervals_disturbed"], 2);
}

#[test]
fn a_trial_that_others_kept_from_doing_anything_is_repeated() {
    let clock = FakeClock::default();
    let witness = throttled(|interval| interval == 1, 8);
    let cases = vec![case("a/b", &clock, |trial| if trial == 1 { 0 } else { MS })];
    let outcome = &run_watched(&clock, cases, &Plan::default(), witness)[0];
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 6));
    assert_eq!(outcome.audit["spoil_reasons"], json!({"quota throttling": 1}));
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
    assert!(outcome.half_width().unwrap() > 0.07, "the other trials saw the sibling, too");
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
    let plan = Plan { ends_ns: 700 * MS, min_trials: 7, ..Plan::default() };
    let cases = vec![case("a/b", &clock, |_| 100 * MS)];
    let outcome = &run_watched(&clock, cases, &plan, throttled(|trial| trial < 6, 40))[0];
    assert_eq!(outcome.n, 1, "one quiet trial is better than six spoiled ones");
    let cases = vec![case("a/b", &clock, |_| 1_000 * MS)];
    let plan = Plan { ends_ns: 6_000 * MS, ..plan };
    clock.set(0);
    let outcome = &run_watched(&clock, cases, &plan, throttled(|_| true, 40))[0];
    assert_eq!((outcome.status, outcome.n), (Status::Degraded, 6));
}

/// A race of two rows whose trials take longer and longer, before the eyes of `witness`: the rows, and
/// that of their ratio.
fn raced(plan: Plan, mut witness: FakeWitness) -> [Outcome; 3] {
    let clock = FakeClock::default();
    let mut sampler = Sampler {
        plan,
        clock: &clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let slower = |trial: u32| 100 * MS + u64::from(trial) * MS;
    let cases = ["a/b", "a/c"].map(|id| case(id, &clock, slower)).into();
    let pair = Pair { row: Plain("a/ratio"), subject: 0, against: 1 };
    let (rows, ratios) = sampler.race(cases, vec![pair]);
    let all: Vec<Outcome> = record(rows).into_iter().chain(record(ratios)).collect();
    all.try_into().unwrap()
}

#[test]
fn spoiled_rounds_that_count_because_time_is_over_count_for_the_ratio_too() {
    let plan = Plan { ends_ns: 410 * MS, ..Plan::default() };
    let rows = raced(plan, throttled(|_| true, 40));
    assert_eq!(rows.each_ref().map(|row| row.n), [2; 3]);
    let ratio = &rows[2];
    assert_eq!(ratio.median, Some(1.0));
    assert_eq!(codes(ratio), [warning::DISTURBED, warning::CPU_QUOTA, warning::FEW_TRIALS]);
}

#[test]
fn rounds_that_count_after_all_stand_where_they_were_run() {
    let plan = Plan { min_trials: 5, max_trials: 5, ..Plan::default() };
    let rows = raced(plan, throttled(|interval| [1, 3, 4].contains(&(interval / 2)), 40));
    for row in &rows[..2] {
        let is_in_order = row.samples.is_sorted_by(|earlier, later| earlier > later);
        assert!(row.n == 5 && is_in_order, "{:?}", row.samples);
    }
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
fn a_row_over_loopback_tells_that_it_waited_where_others_had_the_cpus() {
    const TRIAL_NS: u64 = 100 * MS;
    for (others_ns, is_told) in [(0, false), (TRIAL_NS / 2, true)] {
        let clock = FakeClock::default();
        let trial = scripted("a/b", |_| {
            clock.advance(TRIAL_NS);
            let warnings = vec![Warning::new(warning::LOOPBACK, "loopback")];
            Ok(Sample { amount: 1.0, elapsed_ns: TRIAL_NS, warnings, ..Sample::default() })
        });
        let reading = |count: u64| Reading {
            monotonic_ns: count * TRIAL_NS,
            raw_ns: count * TRIAL_NS,
            own_ns: count * TRIAL_NS / 2,
            waited_ns: Some(count * TRIAL_NS / 2),
            others_busy_ns: count * others_ns,
            others_running: 1,
            ..Reading::default()
        };
        let witness = FakeWitness::new((0..40).map(reading));
        let outcome = &run_watched(&clock, vec![trial], &Plan::default(), witness)[0];
        assert_eq!(warning::has(&outcome.warnings, warning::LOCAL_LOAD), is_told);
    }
}

/// `/proc/stat` is hidden: nothing is said of others but that they, likely, kept threads waiting.
#[test]
fn where_others_are_hidden_long_waiting_tells_of_them_and_they_have_no_figure() {
    const TRIAL_NS: u64 = 100 * MS;
    for (waited, is_told) in [(0.1, false), (0.5, true)] {
        let clock = FakeClock::default();
        let trial = scripted("a/b", |_| {
            clock.advance(TRIAL_NS);
            Ok(Sample { amount: 1.0, elapsed_ns: TRIAL_NS, ..Sample::default() })
        });
        let reading = |count: u64| Reading {
            monotonic_ns: count * TRIAL_NS,
            raw_ns: count * TRIAL_NS,
            own_ns: (count as f64 * (1.0 - waited) * TRIAL_NS as f64) as u64,
            waited_ns: Some((count as f64 * waited * TRIAL_NS as f64) as u64),
            others_hidden: true,
            ..Reading::default()
        };
        let witness = FakeWitness::new((0..40).map(reading));
        let outcome = &run_watched(&clock, vec![trial], &Plan::default(), witness)[0];
        assert_eq!(warning::has(&outcome.warnings, warning::LOCAL_LOAD), is_told);
        let used = &outcome.audit["use_of_cpus"];
        assert!(used["others_cpus"].is_null() && used["own_cpus"].is_number(), "{used}");
    }
}

/// Every other trial is twice as long because of others: moments without them are the peak, and all of
/// the time is what is sustained.
#[test]
fn what_is_sustained_has_the_time_in_it_that_others_took() {
    let least = |is_sustained| {
        let (clock, mut count) = (FakeClock::default(), 0);
        let trial = scripted("a/b", |_| {
            count += 1;
            let elapsed_ns = if count % 2 == 0 { 2 * MS } else { MS };
            clock.advance(elapsed_ns);
            Ok(Sample { amount: 1.0, elapsed_ns, is_sustained, ..Sample::default() })
        });
        let witness = throttled(|interval| interval % 2 == 1, 40);
        let outcome = run_watched(&clock, vec![trial], &Plan::default(), witness).remove(0);
        outcome.samples.into_iter().fold(f64::MAX, f64::min)
    };
    assert_eq!([false, true].map(least), [1000.0, 500.0]);
}

/// The hypervisor takes time from every third trial of two rows, or from two trials in all.
#[test]
fn what_the_hypervisor_takes_much_from_is_measured_beside_others() {
    let stolen_from = |is_stolen: fn(u64) -> bool| {
        let clock = FakeClock::default();
        let interval = |number: u64| {
            let steal_ns = if is_stolen(number) { 50 * MS } else { 0 };
            let end = Reading { monotonic_ns: 10 * MS, raw_ns: 10 * MS, ..Reading::default() };
            [Reading::default(), Reading { steal_ns, ..end }]
        };
        let witness = FakeWitness::new((0..80).flat_map(interval));
        let cases = ["a/b", "a/c"].map(|id| case(id, &clock, |_| 10 * MS));
        run_watched(&clock, cases.into(), &Plan::default(), witness)
    };
    for row in stolen_from(|number| number % 3 == 0) {
        assert_eq!(codes(&row), [warning::STOLEN_TIME]);
        assert!(row.half_width().unwrap() > 0.19, "{row:?}");
    }
    for row in stolen_from(|number| number < 2) {
        assert_eq!(codes(&row), [""; 0]);
        assert!(row.half_width().unwrap() < 0.01, "{row:?}");
    }
}
