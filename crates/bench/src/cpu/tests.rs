//! Tests of the area on the machine at hand, and of its bounds.

use std::collections::BTreeSet;

use flatout_measure::clock::SystemClock;
use flatout_measure::guard::FakeWitness;
use flatout_measure::{Plan, Sampler, Status};
use flatout_sys::CancelToken;

use super::*;

fn options() -> Options {
    Options {
        run: Run { seed: 3, cancel: CancelToken::manual(), ..Run::default() },
        threads: Vec::new(),
        order: None,
    }
}

/// Measures on the real machine, one trial per row.
fn measured(options: &Options, cancelled: bool) -> Found {
    let plan = Plan {
        min_trials: 1,
        max_trials: 1,
        budget_ns: 1,
        half_width: 1.0,
        seed: options.run.seed,
        ..Plan::default()
    };
    let mut witness = FakeWitness::quiet();
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock: &SystemClock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| cancelled,
    };
    options.clone().measure(&mut sampler).unwrap()
}

#[test]
fn every_row_has_a_figure_or_a_reason_and_a_ceiling() {
    let found = measured(&options(), false);
    let ids: BTreeSet<&str> = found.outcomes.iter().map(|outcome| outcome.id.as_str()).collect();
    assert!(ids.contains("cpu/throughput") && ids.contains("cpu/linpack"), "{ids:?}");
    for outcome in &found.outcomes {
        let name = format!("{} {:?}", outcome.id, outcome.parameters);
        match outcome.status {
            Status::Unsupported => eprintln!("skipped: {name}: {:?}", outcome.warnings),
            // What one trial beside other tests reads may lie above a peak read beside them.
            Status::Invalid => assert!(outcome.audit.contains_key("rejected_samples"), "{name}"),
            _ => assert!(outcome.median.is_some_and(|figure| figure > 0.0), "{name}: {outcome:?}"),
        }
        let derived = outcome.id.ends_with("scaling");
        assert!(derived || outcome.status == Status::Unsupported || outcome.ceiling.is_some());
    }
}

#[test]
fn more_threads_than_cpus_are_called_oversubscribed() {
    let count = 2 * Topology::look(Path::new("/")).count();
    let found = measured(&Options { threads: vec![count], ..options() }, false);
    let rows = found.outcomes.iter().filter(|one| one.id == "cpu/throughput");
    for row in rows.filter(|row| row.status != Status::Unsupported) {
        let codes: Vec<&str> = row.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert!(codes.contains(&"oversubscribed"), "{codes:?}");
    }
}

#[test]
fn a_user_who_stops_gets_interrupted_rows() {
    let found = measured(&options(), true);
    assert!(found.outcomes.iter().all(|outcome| outcome.median.is_none()));
    assert!(found.charts.is_empty());
}
