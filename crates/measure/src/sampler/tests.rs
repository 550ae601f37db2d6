//! The sampler against made-up cases, a fake clock and a fake witness.

mod beginning;
mod ending;
mod outcome;
mod spoiled;

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::case::record;
use crate::clock::FakeClock;
use crate::comparison::noise::{Learned, Noise, RowNoise};
use crate::guard::{FakeWitness, Reading};
use crate::progress::Standing;
use crate::record::{Outcome, Status};
use crate::row::{Label, Unit};
use crate::warning::{self, Warning};

const MS: u64 = 1_000_000;

/// A row that has nothing but its name.
struct Plain(&'static str);

impl Row for Plain {
    fn label(&self) -> Label {
        Label::new(self.0, Unit::OperationsPerSecond)
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
    assert!(outcome.half_width().is_some_and(|width| width < 0.01), "{:?}", outcome.ci95);
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
fn no_trial_begins_that_would_end_after_the_time() {
    let clock = FakeClock::default();
    let steady = |ends_ns: u64, trial_ns: u64| {
        clock.set(0);
        let plan = Plan { budget_ns: 300 * MS, ends_ns, ..Plan::default() };
        let outcome = run_quietly(&clock, vec![case("a/b", &clock, |_| trial_ns)], &plan).remove(0);
        (outcome, clock.now_ns())
    };
    let (endless, _) = steady(u64::MAX, 100 * MS);
    assert_eq!(
        (endless.status, endless.n),
        (Status::Ok, 6),
        "its least trials, whatever they take"
    );
    let (ended, now_ns) = steady(300 * MS, 100 * MS);
    assert_eq!((ended.status, ended.n, now_ns), (Status::Ok, 3, 300 * MS));
    let (few, now_ns) = steady(299 * MS, 100 * MS);
    assert_eq!((few.status, few.n, few.ci95), (Status::Unstable, 2, None));
    assert_eq!((codes(&few), now_ns), (vec![warning::FEW_TRIALS], 200 * MS));
    let (_, now_ns) = steady(399 * MS, 100 * MS);
    assert_eq!(now_ns, 300 * MS, "a fourth would end too late");
}

#[test]
fn a_case_that_is_precise_goes_on_thinly_to_the_end_of_the_time() {
    let clock = FakeClock::default();
    let plan = Plan {
        when_precise: WhenPrecise::Thin,
        budget_ns: 10_000 * MS,
        ends_ns: 10_000 * MS,
        max_trials: 1_000,
        ..Plan::default()
    };
    let ends = RefCell::new(Vec::new());
    let steady = case("a/steady", &clock, |_| {
        ends.borrow_mut().push(clock.now_ns());
        50 * MS
    });
    let outcomes = run_quietly(&clock, vec![steady, case("a/wild", &clock, wild)], &plan);
    let [steady, wild] = [0, 1].map(|at: usize| outcomes[at].n);
    assert!(2 * steady < wild && steady >= 12, "{steady} {wild}");
    let last_ns = ends.into_inner().pop().unwrap();
    assert!(last_ns > 9_000 * MS, "the last trial began at {last_ns}");
    // Nothing but the trial that would not have ended in time is left of it.
    assert!((9_800 * MS..=10_000 * MS).contains(&clock.now_ns()), "{}", clock.now_ns());
}

#[test]
fn steady_cases_alone_use_the_time_up_to_their_most_trials() {
    let clock = FakeClock::default();
    let plan = Plan { when_precise: WhenPrecise::Thin, max_trials: 40, ..Plan::default() };
    let outcomes = run_quietly(&clock, vec![case("a/b", &clock, |_| MS)], &plan);
    assert_eq!(outcomes[0].n, 40);
}

#[test]
fn an_interval_says_whether_what_runs_differ_by_was_learned_or_is_assumed() {
    let clock = FakeClock::default();
    let run = |noise| {
        let plan = Plan { noise, ..Plan::default() };
        run_quietly(&clock, vec![case("a/b", &clock, |_| MS)], &plan).remove(0)
    };
    let (plain, own) = (run(None), RowNoise::of_runs("a/b", 5, 0.1 * 0.1));
    let noise = |row| Some(Arc::new(Noise::of(&Learned { rows: vec![row], ..Learned::default() })));
    assert_eq!(plain.audit["between_runs"], json!({"source": "assumed", "deviation": 0.0}));
    let learned = run(noise(own));
    assert_eq!(learned.audit["between_runs"]["source"], "learned");
    assert_eq!(learned.audit["between_runs"]["runs"], 5);
    assert!(plain.half_width().unwrap() < 0.01);
    // Student's t of eight degrees of freedom, half of them those of nothing that is assumed.
    let half_width = learned.half_width().unwrap();
    assert!((half_width - (2.306 * 0.1 * 0.6_f64.sqrt()).sinh()).abs() < 0.001, "{half_width}");
    let of_another = run(noise(RowNoise::of_runs("a/c", 5, 1.0)));
    assert_eq!(of_another.ci95, plain.ci95);
}

#[test]
fn a_part_ends_with_its_own_time_and_with_that_of_the_whole() {
    let whole = Plan { budget_ns: 100, ends_ns: 1_000, ..Plan::default() };
    assert_eq!(whole.clone().from(500).ends_ns, 600);
    assert_eq!(whole.clone().from(950).ends_ns, 1_000);
    assert_eq!((whole.left_ns(500), whole.left_ns(950), whole.left_ns(2_000)), (100, 50, 0));
    let endless = Plan { ends_ns: u64::MAX, ..whole };
    assert_eq!((endless.clone().from(5).ends_ns, endless.left_ns(5)), (u64::MAX, 100));
}

#[test]
fn fewer_than_three_trials_say_so() {
    let clock = FakeClock::default();
    let plan = Plan { min_trials: 2, max_trials: 2, ..Plan::default() };
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, |_| MS)], &plan)[0];
    assert_eq!((outcome.n, outcome.ci95), (2, None));
    assert_eq!(outcome.status, Status::Unstable);
    assert_eq!(codes(outcome), [warning::FEW_TRIALS]);
}

#[test]
fn few_trials_are_helped_by_rows_of_the_same_test_or_else_by_all() {
    let clock = FakeClock::default();
    let plan = Plan { min_trials: 3, max_trials: 3, ..Plan::default() };
    let by = |id, percent: u64| {
        case(id, &clock, move |trial| (100 * MS) + percent * MS * u64::from(trial))
    };
    // The first row's trials agree by chance more closely than those of nine others.
    let half_width = |first: u64, others: [&'static str; 9]| {
        let others = others.into_iter().map(|id| by(id, 10));
        let cases = std::iter::once(by("a/b", first)).chain(others).collect();
        run_quietly(&clock, cases, &plan)[0].half_width().unwrap()
    };
    let alone = run_quietly(&clock, vec![by("a/b", 3)], &plan)[0].half_width().unwrap();
    let of_test = half_width(3, ["a/b"; 9]);
    assert!(of_test > half_width(10, ["a/b"; 9]) * 0.8, "{of_test}");
    assert!(half_width(3, ["a/c"; 9]) > 0.9 * of_test, "where kin are few, all are");
    assert!(alone > 0.03, "{alone}");
    let steady = half_width(0, ["a/b"; 9]);
    assert!(steady < 0.3 * of_test, "one that does not vary at all is of another kind: {steady}");
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
fn a_number_of_trials_that_was_asked_for_is_kept_where_the_first_looked_like_warm_up() {
    let clock = FakeClock::default();
    let plan = Plan { min_trials: 9, max_trials: 9, ..Plan::default() };
    // A tenth takes the place of the first, which then does not stand out any more.
    let times = [130, 100, 108, 100, 108, 100, 108, 100, 108, 300];
    let trials = case("a/b", &clock, |trial| times[trial as usize] * MS);
    let outcome = &run_quietly(&clock, vec![trials], &plan)[0];
    assert_eq!((outcome.n, &outcome.audit["trials_run"]), (9, &json!(10)), "{outcome:?}");
}

#[test]
fn rows_for_which_there_is_no_time_are_the_last_and_say_so() {
    let clock = FakeClock::default();
    let plan = Plan { budget_ns: 250 * MS, ends_ns: 250 * MS, ..Plan::default() };
    let cases = ["a/b", "a/c", "a/d"].map(|id| case(id, &clock, |_| 100 * MS)).into();
    let outcomes = run_quietly(&clock, cases, &plan);
    assert_eq!(clock.now_ns(), 200 * MS);
    assert_eq!(outcomes[..2].iter().map(|outcome| outcome.n).collect::<Vec<_>>(), [1, 1]);
    assert_eq!((outcomes[2].status, outcomes[2].median), (Status::Unsupported, None));
    assert_eq!(codes(&outcomes[2]), [warning::TIME_SHORT]);
}

#[test]
fn the_estimate_of_the_time_left_ends_at_nothing() {
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
    let left_ns: Vec<Option<u64>> = events
        .iter()
        .filter_map(|event| match event {
            Event::Trial { left_ns, .. } | Event::Closed { left_ns, .. } => Some(*left_ns),
            Event::Ended { .. } | Event::Preparing { .. } => None,
        })
        .collect();
    assert_eq!(left_ns.len(), 14);
    assert_eq!(left_ns[..2], [None, Some(11 * MS)]);
    assert!(left_ns[1..].is_sorted_by(|earlier, later| earlier >= later), "{left_ns:?}");
    assert_eq!(left_ns[13], Some(0));
}

#[test]
fn who_watches_learns_after_each_trial_what_the_row_says_by_now() {
    let clock = FakeClock::default();
    let mut witness = FakeWitness::quiet();
    let mut standings = Vec::new();
    let mut sampler = Sampler {
        plan: Plan::default(),
        clock: &clock,
        witness: &mut witness,
        events: &mut |event| match event {
            Event::Ended { standing, .. } | Event::Closed { standing, .. } => {
                standings.push(standing);
            }
            Event::Trial { .. } | Event::Preparing { .. } => {}
        },
        cancelled: &|| false,
    };
    let refuse = |_: u64| Err(TrialError::Unsupported("no such thing".to_owned()));
    sampler.run(vec![case("a/b", &clock, |_| MS)]);
    sampler.run(vec![scripted("a/c", refuse)]);
    let trials: Vec<u64> = standings.iter().map(|standing| standing.trials).collect();
    assert_eq!(trials, [1, 2, 3, 4, 5, 6, 6, 0, 0], "the last of each row is that of its end");
    assert_eq!((standings[1].ci95, standings[1].median.is_some()), (None, true));
    let half = |standing: &Standing| standing.ci95.map(|[low, high]| high - low).unwrap();
    assert!(half(&standings[5]) <= half(&standings[2]));
    let refused = (Status::Unsupported, "no such thing".to_owned());
    assert_eq!((standings[7].refused.clone(), standings[8].refused.clone()), (None, Some(refused)));
}

#[test]
fn no_cases_no_rows() {
    assert!(run_quietly(&FakeClock::default(), Vec::new(), &Plan::default()).is_empty());
}
