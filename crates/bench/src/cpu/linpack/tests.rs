//! A whole row, from the options to the audit.

use super::*;

fn options(order: Option<u64>) -> Options {
    Options { order, trials: 3, threads: 2, time_ns: 1_000_000, free_bytes: 1 << 30, seed: 5 }
}

/// A row as the sampler would leave it after `count` trials.
fn measured(case: &mut Case<'_, Plain>, count: u64) -> Outcome {
    let mut outcome = flatout_measure::case::blank(&case.row);
    for seed in 0..count {
        let sample = (case.trial)(seed).unwrap();
        outcome.samples.push(sample.amount / sample.elapsed_ns as f64 * 1e9);
        for series in sample.series {
            match outcome.series.iter_mut().find(|known| known.name == series.name) {
                Some(known) => known.points.extend(series.points),
                None => outcome.series.push(series),
            }
        }
    }
    outcome
}

#[test]
fn a_row_lists_its_trials() {
    let mut cases = cases(&options(Some(100))).unwrap();
    let mut outcomes = [measured(&mut cases[0], 3)];
    finish(&mut outcomes);
    let [outcome] = outcomes;
    assert_eq!((outcome.id.as_str(), outcome.unit.as_str()), ("cpu/linpack", "flop/s"));
    assert_eq!(outcome.parameters["order"], 100);
    assert_eq!(outcome.parameters["leading_dimension"], 104);
    let trials = outcome.audit["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3);
    for (trial, sample) in trials.iter().zip(&outcome.samples) {
        assert_eq!((&trial["passed"], &trial["order"]), (&json!(true), &json!(100)));
        let (seconds, rate) =
            (trial["seconds"].as_f64().unwrap(), trial["flop_per_s"].as_f64().unwrap());
        assert_eq!(rate, *sample);
        assert!((seconds * rate / order::operations(Work::Solve, 100) - 1.0).abs() < 1e-9);
        let normalised = trial["normalised_residual"].as_f64().unwrap();
        assert!(normalised > 0.0 && normalised < 16.0, "{normalised}");
    }
    assert_ne!(trials[0]["residual"], trials[1]["residual"], "each trial has its own matrix");
    let average = outcome.samples.iter().sum::<f64>() / 3.0;
    assert_eq!(outcome.audit["average_flop_per_s"], json!(average));
    assert!(outcome.audit["best_flop_per_s"].as_f64().unwrap() >= average);
    assert!(outcome.series.is_empty(), "the list says it all");
}

#[test]
fn without_an_order_one_is_found() {
    let cases = cases(&options(None)).unwrap();
    assert!(cases[0].row.parameters["order"].as_u64().unwrap() >= 96);
}

#[test]
fn an_order_without_room_is_refused() {
    assert!(check(&options(Some(100))).is_ok());
    for order in [0, 1 << 20] {
        let text = check(&options(Some(order))).unwrap_err();
        assert!(text.starts_with(&format!("--order {order}:")), "{text}");
        assert!(matches!(cases(&options(Some(order))), Err(TrialError::Unsupported(_))));
    }
}

#[test]
fn a_figure_above_the_peak_is_an_alarm() {
    use flatout_measure::record::{Provenance, Status};
    let row = |median: f64| Outcome {
        id: "cpu/dgemm".to_owned(),
        median: Some(median),
        samples: vec![median; 6],
        n: 6,
        ..Outcome::default()
    };
    let peak = |provenance| Ceiling { value: Some(80e9), provenance, ..Ceiling::default() };
    let judged = |median, provenance| {
        let mut outcome = row(median);
        against_peak(&mut outcome, peak(provenance));
        outcome
    };
    let fine = judged(72e9, Provenance::Inferred);
    assert_eq!((fine.status, fine.ceiling.unwrap().ratio), (Status::Ok, Some(0.9)));
    let alarm = judged(90e9, Provenance::Inferred);
    assert_eq!((alarm.status, alarm.median), (Status::Invalid, None));
    assert!(warning::has(&alarm.warnings, "above_ceiling"));
    assert_eq!(judged(90e9, Provenance::Unknown).status, Status::Ok);
}

#[test]
fn a_neighbour_who_was_seen_is_named() {
    let row = |ratio| {
        let peak = Ceiling { value: Some(80e9), ..Ceiling::default() };
        let mut outcome = Outcome { median: Some(50e9), ..Outcome::default() };
        against_peak(&mut outcome, peak);
        note_neighbour(&mut outcome, ratio);
        let limiter = outcome.ceiling.unwrap_or_default().limiter;
        (outcome.audit.get("neighbour_ratio").cloned(), outcome.warnings.len(), limiter)
    };
    assert_eq!(row(None), (None, 0, LIMITER.to_owned()));
    assert_eq!(row(Some(0.05)), (Some(json!(0.05)), 0, LIMITER.to_owned()));
    let (ratio, warnings, limiter) = row(Some(0.97));
    assert_eq!((ratio, warnings), (Some(json!(0.97)), 1));
    assert!(
        limiter.contains("in 97 % of the glances") && limiter.contains("pivoting"),
        "{limiter}"
    );
}

#[test]
fn the_plan_makes_the_trials_that_were_asked_for() {
    let plan = plan(&options(None), &Plan::default());
    assert_eq!((plan.min_trials, plan.max_trials, plan.budget_ns), (3, 3, 1_000_000));
}
