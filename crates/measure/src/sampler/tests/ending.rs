//! Rows that end early: failed, unsupported, interrupted, or out of trials.

use std::cell::Cell;

use serde_json::json;

use super::*;

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

/// A row that no machine has.
struct Absent;

impl Row for Absent {
    fn label(&self) -> Label {
        Label::new("a/absent", Unit::OperationsPerSecond)
    }

    fn lacks(&self) -> Option<String> {
        Some("no such instruction".to_owned())
    }
}

#[test]
fn what_the_machine_lacks_is_said_where_there_is_no_time_either() {
    let clock = FakeClock::default();
    let mut witness = FakeWitness::quiet();
    let mut sampler = Sampler {
        plan: Plan { budget_ns: 0, ..Plan::default() },
        clock: &clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let case = Case { row: Absent, trial: Box::new(|_| panic!("it is not tried")) };
    let outcome = &record(sampler.run(vec![case]))[0];
    assert_eq!(outcome.status, Status::Unsupported);
    assert_eq!(outcome.warnings, [Warning::new(warning::UNSUPPORTED, "no such instruction")]);
}

#[test]
fn a_trial_without_time_is_invalid() {
    let clock = FakeClock::default();
    let outcome = &run_quietly(&clock, vec![case("a/b", &clock, |_| 0)], &Plan::default())[0];
    assert_eq!((outcome.status, outcome.median), (Status::Invalid, None));
    assert_eq!(codes(outcome), [warning::INVALID_TIME]);
}

#[test]
fn a_trial_that_was_cut_off_ends_the_run_where_the_user_stops_and_its_row_where_time_was_over() {
    let clock = FakeClock::default();
    let ended = |is_cancelled| {
        let cut = scripted("a/b", |_| Err(TrialError::Interrupted));
        let cases = vec![cut, case("a/c", &clock, |_| MS)];
        let (mut witness, begun_ns) = (FakeWitness::quiet(), clock.now_ns());
        let mut sampler = Sampler {
            plan: Plan::default(),
            clock: &clock,
            witness: &mut witness,
            events: &mut |_| {},
            cancelled: &|| is_cancelled && clock.now_ns() > begun_ns,
        };
        record(sampler.run(cases))
    };
    let stopped = ended(true);
    assert_eq!(stopped[1].status, Status::Interrupted);
    let late = ended(false);
    assert_eq!(codes(&late[0]), [warning::TIME_SHORT]);
    assert_eq!((late[1].status, late[1].n), (Status::Ok, 6));
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
fn a_row_that_can_have_no_more_trials_keeps_those_it_has() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let end = || TrialError::NoMore(Warning::new(warning::WRITE_LIMIT, "enough"));
    let cases = vec![
        scripted("a/some", |_| {
            trial += 1;
            let sample = Sample { amount: 1.0, elapsed_ns: MS, ..Sample::default() };
            if trial > 2 { Err(end()) } else { Ok(sample) }
        }),
        scripted("a/none", |_| Err(end())),
    ];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert_eq!((outcomes[0].n, outcomes[0].median), (2, Some(1_000.0)));
    assert_eq!(codes(&outcomes[0]), [warning::WRITE_LIMIT, warning::FEW_TRIALS]);
    assert_eq!((outcomes[1].status, outcomes[1].median), (Status::Unsupported, None));
    assert_eq!(codes(&outcomes[1]), [warning::WRITE_LIMIT], "the machine is not to blame");
}

#[test]
fn a_row_whose_other_end_is_lost_keeps_its_trials_and_says_what_failed() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let lost = || TrialError::NoMore(Warning::new(warning::FAILED, "the server has gone"));
    let cases = vec![
        scripted("a/some", |_| {
            trial += 1;
            let sample = Sample { amount: 1.0, elapsed_ns: MS, ..Sample::default() };
            if trial > 2 { Err(lost()) } else { Ok(sample) }
        }),
        scripted("a/none", |_| Err(lost())),
    ];
    let outcomes = run_quietly(&clock, cases, &Plan::default());
    assert_eq!((outcomes[0].n, outcomes[0].median), (2, Some(1_000.0)));
    assert_eq!(codes(&outcomes[0]), [warning::FAILED, warning::FEW_TRIALS]);
    assert_eq!((outcomes[1].status, outcomes[1].median), (Status::Failed, None));
    assert_eq!(outcomes[1].warnings, [Warning::new(warning::FAILED, "the server has gone")]);
}
