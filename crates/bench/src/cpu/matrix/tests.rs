//! Whole rows, from the terms to the facts.

use flatout_measure::record::Provenance;
use flatout_measure::{Status, blank};

use super::*;

fn terms(order: Option<u64>) -> Terms {
    let room = Room::of(Some(1 << 30), None, None);
    Terms { order, trials: 3, threads: 2, quota_cpus: None, time_ns: 1_000_000, room, seed: 5 }
}

/// The facts of a row after three trials, and the figures of these.
fn measured(case: &mut Case<'_, MatrixRow>) -> (Facts, Vec<f64>) {
    let samples: Vec<Sample> = (0..3).map(|seed| (case.trial)(seed).unwrap()).collect();
    let figure = |one: &Sample| case.row.unit().figure(one.amount, one.elapsed_ns).unwrap();
    let figures = samples.iter().map(figure).collect();
    (Facts::merged(samples.iter().map(|sample| &sample.facts)), figures)
}

#[test]
fn a_row_lists_its_trials() {
    for work in [Work::Solve, Work::Product] {
        let topology = Topology::default();
        let mut case = case(work, &terms(Some(100)), &topology);
        assert_eq!((case.row.id(), case.row.unit().name()), (work.id().into(), "flop/s"));
        let parameters = case.row.parameters();
        assert_eq!(parameters.value("order"), Some(&100_u64.into()));
        assert_eq!(parameters.value("leading_dimension"), Some(&104_u64.into()));
        let (facts, figures) = measured(&mut case);
        let record = facts.to_json();
        let trials = record["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 3);
        for (trial, figure) in trials.iter().zip(&figures) {
            assert_eq!((&trial["passed"], &trial["order"]), (&true.into(), &100.into()));
            let (seconds, rate) =
                (trial["seconds"].as_f64().unwrap(), trial["flop_per_s"].as_f64().unwrap());
            assert_eq!(rate, *figure);
            assert!((seconds * rate / operations(work, 100) - 1.0).abs() < 1e-9);
            let normalised = trial["normalised_residual"].as_f64().unwrap();
            assert!(normalised > 0.0 && normalised < 16.0, "{normalised}");
        }
        assert_ne!(trials[0]["residual"], trials[1]["residual"], "each trial has its own matrix");
        let average = figures.iter().sum::<f64>() / 3.0;
        assert_eq!(facts.number(fact::AVERAGE_FLOP_PER_S), Some(average));
        assert!(facts.number(fact::BEST_FLOP_PER_S).unwrap() >= average);
    }
}

#[test]
fn without_an_order_one_is_found() {
    for work in [Work::Solve, Work::Product] {
        assert!(terms(None).shape(work).unwrap().order >= 96);
    }
}

#[test]
fn matrices_that_time_made_small_say_so_and_those_that_were_asked_for_do_not() {
    let topology = Topology::default();
    for (order, is_said) in [(None, true), (Some(100), false)] {
        let mut case = case(Work::Solve, &terms(order), &topology);
        let warnings = (case.trial)(1).unwrap().warnings;
        assert_eq!(warning::has(&warnings, warning::SIZE_REDUCED), is_said, "{warnings:?}");
        assert!(warning::has(&warnings, warning::CPUS_CHANGED), "there were none: {warnings:?}");
    }
}

#[test]
fn of_a_quota_small_runs_count_what_they_take_of_it() {
    for work in [Work::Solve, Work::Product] {
        let of = |quota_cpus| Terms { quota_cpus, time_ns: 1 << 40, ..terms(None) };
        let rate = |quota_cpus| work.probe(&of(quota_cpus)).unwrap();
        let (half, thousandth) = (rate(Some(0.5)), rate(Some(0.001)));
        assert!(thousandth < half / 20.0, "{thousandth} {half}");
    }
}

#[test]
fn small_runs_take_no_more_than_their_time() {
    let orders = |time_ns| {
        let mut seen = Vec::new();
        let run = |order: u64| {
            seen.push(order);
            Ok((1e9, (order / 96).pow(3)))
        };
        let last = probed(768, time_ns, run).unwrap();
        assert_eq!(last, (1e9, seen[seen.len() - 1]));
        seen
    };
    assert_eq!(orders(8), [96, 96]);
    assert_eq!(orders(9 + 64), [96, 192, 384, 384]);
    assert_eq!(orders(u64::MAX), [96, 192, 384, 768]);
}

#[test]
fn a_small_run_that_lost_its_cpu_does_not_end_the_others() {
    let mut runs = 0;
    let run = |order: u64| {
        runs += 1;
        // The first one waits for as long as others have its CPU.
        let waited_ns = if runs == 1 { 10_000_000 } else { 0 };
        let spent_ns = 20_000 * (order / 96).pow(3) + waited_ns;
        Ok((1e9 / spent_ns as f64, spent_ns))
    };
    assert_eq!(probed(768, 40_000_000, run).unwrap(), (1e9 / 10_240_000.0, 768));
}

#[test]
fn an_order_without_room_is_refused_and_its_row_says_why() {
    let topology = Topology::default();
    let mut case = case(Work::Solve, &terms(Some(1 << 20)), &topology);
    assert_eq!(case.row.shape, None);
    let Err(TrialError::Unsupported(text)) = (case.trial)(1) else { panic!("it is taken") };
    assert!(text.starts_with("--order 1048576:"), "{text}");
}

/// A row with this figure, held against a peak of 80 GFLOPS.
fn held(median: f64, provenance: Provenance, contention: Option<f64>) -> Measured<MatrixRow> {
    let row = MatrixRow { id: "cpu/dgemm", threads: 1, shape: None };
    let outcome = Outcome { median: Some(median), samples: vec![median; 6], n: 6, ..blank(&row) };
    let mut facts = Facts::default();
    facts.set_known(fact::CONTENTION_RATIO, contention);
    let mut row = Measured { row, outcome, facts, further: Vec::new() };
    hold(&mut row, Ceiling::known("peak", Some(80e9), provenance));
    row
}

#[test]
fn a_figure_above_the_peak_is_an_alarm() {
    let fine = held(72e9, Provenance::Inferred, None).outcome;
    assert_eq!((fine.status, fine.ceiling.unwrap().ratio), (Status::Ok, Some(0.9)));
    let alarm = held(90e9, Provenance::Inferred, None).outcome;
    assert_eq!((alarm.status, alarm.median), (Status::Invalid, None));
    assert!(warning::has(&alarm.warnings, "above_ceiling"));
    assert_eq!(held(90e9, Provenance::Unknown, None).outcome.status, Status::Ok);
}

#[test]
fn a_quota_is_not_taken_for_a_sibling() {
    let outcome = Outcome {
        median: Some(30e9),
        warnings: vec![Warning::new(warning::CPU_QUOTA, "held back")],
        ..Outcome::default()
    };
    let mut row = Measured { outcome, ..held(30e9, Provenance::Measured, Some(1.0)) };
    hold(&mut row, Ceiling::known("peak", Some(80e9), Provenance::Measured));
    assert_eq!(row.outcome.ceiling.unwrap().limiter, "the CPU quota");
}

#[test]
fn contention_that_was_seen_is_named() {
    let row = |ratio| held(50e9, Provenance::Inferred, ratio).outcome.ceiling.unwrap().limiter;
    assert_eq!([row(None), row(Some(0.05))], [LIMITER, LIMITER]);
    let limiter = row(Some(0.97));
    assert!(limiter.contains("in 97 % of the probes") && limiter.contains("pivoting"), "{limiter}");
}

#[test]
fn the_plan_makes_the_trials_that_were_asked_for() {
    let plan = terms(None).plan(1_000_000, &Plan::default());
    assert_eq!((plan.min_trials, plan.max_trials, plan.budget_ns), (3, 3, 1_000_000));
}

#[test]
fn a_row_without_a_figure_has_no_evidence() {
    let mut row = held(72e9, Provenance::Inferred, None);
    prove(&mut row);
    assert!(row.facts.value(EVIDENCE).is_some());
    let mut refused = held(72e9, Provenance::Inferred, None);
    (refused.outcome.median, refused.outcome.n) = (None, 0);
    prove(&mut refused);
    assert_eq!(refused.facts.value(EVIDENCE), None);
}
