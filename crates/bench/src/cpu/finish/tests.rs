//! Tests of `finish`: rows of recorded and imagined machines.

use flatout_measure::record::{Provenance, Series};
use flatout_sys::throughput::{Level, Number, Operation};

use super::super::census::Count;
use super::super::ports::of_single;
use super::*;

const KERNEL: Kernel =
    Kernel { number: Number::F64, operation: Operation::MultiplyAdd, level: Level::Avx2 };

fn site(cpus: usize) -> Site {
    Site { cpus: (0..cpus).collect(), ..Site::default() }
}

fn census(per_cycle: f64) -> Census {
    Census::known(KERNEL, Count { per_cycle, ports: of_single(per_cycle), is_trusted: true })
}

fn throughput(threads: u32) -> Row {
    Row::Throughput { kernel: KERNEL, setting: Setting { threads, placement: Placement::Pinned } }
}

/// A row with the facts of two trials, each of which had these.
fn outcome(row: Row, per_s: f64, facts: Value) -> Outcome {
    let mut audit = serde_json::Map::new();
    audit.insert("trials_summed".to_owned(), json!(2));
    let mut outcome = Outcome {
        id: row.id().to_owned(),
        parameters: row.parameters(),
        unit: row.unit().name().to_owned(),
        median: Some(per_s),
        samples: vec![per_s; 2],
        n: 2,
        audit,
        ..Outcome::default()
    };
    for (key, value) in facts.as_object().unwrap() {
        set(&mut outcome, key, value.as_f64().unwrap());
    }
    outcome
}

/// Sets a fact of both trials, wherever it travels.
fn set(outcome: &mut Outcome, key: &str, value: f64) {
    if MEANS.contains(&key) || key == "stolen_ticks" {
        outcome.audit.insert(key.to_owned(), json!(2.0 * value));
        return;
    }
    outcome.series.retain(|series| series.name != key);
    let points = vec![[0.0, value]; 2];
    outcome.series.push(Series { name: key.to_owned(), points, ..Series::default() });
}

fn finished(rows: &[Row], outcomes: &mut [Outcome], site: &Site, per_cycle: f64) {
    finish(rows, outcomes, site, &census(per_cycle));
}

fn codes(outcome: &Outcome) -> Vec<&str> {
    outcome.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

/// An AMD Zen 2 at 3.3 GHz: 52.8 GFLOPS per core.
fn zen(threads: u32, per_s: f64) -> (Row, Outcome) {
    let row = throughput(threads);
    let facts = json!({
        "clock_hz": 3.3e9, "clock_before_hz": 3.3e9, "clock_after_hz": 3.29e9,
        "chain_agreement_ratio": 0.998, "cpu_use_ratio": 0.999, "cpus_got": threads,
        "doubling_ratio": 2.001, "stolen_ratio": 0.0, "stolen_ticks": 0.0
    });
    (row, outcome(row, per_s, facts))
}

#[test]
fn a_row_at_its_peak_says_how_the_peak_came_about() {
    let (row, outcome) = zen(1, 52.5e9);
    let mut outcomes = [outcome];
    finished(&[row], &mut outcomes, &site(4), 1.99);
    let ceiling = outcomes[0].ceiling.as_ref().unwrap();
    assert!((ceiling.value.unwrap() - 52.8e9).abs() < 1.0);
    assert_eq!(ceiling.provenance, Provenance::Inferred);
    assert!((ceiling.ratio.unwrap() - 52.5 / 52.8).abs() < 1e-9);
    assert_eq!(ceiling.limiter, "execution ports");
    assert!(outcomes[0].audit["peak"].as_str().unwrap().contains("3.300 GHz"));
    assert_eq!(outcomes[0].audit["clock_hz"], 3.3e9, "the median of the trials");
    assert!(outcomes[0].warnings.is_empty(), "{:?}", outcomes[0].warnings);
    assert_eq!(outcomes[0].status, Status::Ok);
}

#[test]
fn a_figure_above_its_peak_is_not_given() {
    let (row, outcome) = zen(1, 60e9);
    let mut outcomes = [outcome];
    finished(&[row], &mut outcomes, &site(4), 2.0);
    assert_eq!((outcomes[0].median, outcomes[0].status), (None, Status::Invalid));
    assert_eq!(codes(&outcomes[0]), [warning::ABOVE_CEILING]);
}

#[test]
fn ports_that_are_no_whole_number_leave_the_peak_unknown() {
    let (row, outcome) = zen(1, 52.5e9);
    let mut outcomes = [outcome];
    finished(&[row], &mut outcomes, &site(4), 1.78);
    let ceiling = outcomes[0].ceiling.as_ref().unwrap();
    assert_eq!((ceiling.value, ceiling.provenance), (None, Provenance::Unknown));
    assert!(ceiling.name.contains("1.78 steps per cycle"), "{}", ceiling.name);
    assert_eq!(outcomes[0].median, Some(52.5e9));
}

#[test]
fn siblings_that_only_the_measurement_shows_halve_the_peak() {
    let (row, outcome_of_two) = zen(2, 52.6e9);
    let pair = Row::Sharing { first: 0, second: 1 };
    let mut outcomes = [outcome_of_two, outcome(pair, 1.01, json!({}))];
    finished(&[row, pair], &mut outcomes, &site(2), 2.0);
    assert_eq!(outcomes[1].audit["verdict"], "they share one core");
    assert!((outcomes[0].ceiling.as_ref().unwrap().value.unwrap() - 52.8e9).abs() < 1.0);
    assert_eq!(codes(&outcomes[0]), [warning::CORES_SHARED]);
    let mut apart = [zen(2, 104e9).1, outcome(pair, 1.99, json!({}))];
    finished(&[row, pair], &mut apart, &site(2), 2.0);
    assert!((apart[0].ceiling.as_ref().unwrap().value.unwrap() - 105.6e9).abs() < 1.0);
    assert!(apart[0].warnings.is_empty());
}

#[test]
fn a_container_with_a_quota_is_held_against_its_share() {
    let (row, outcome) = zen(4, 78e9);
    let mut outcomes = [outcome];
    outcomes[0].audit.insert("cpus_got".to_owned(), json!(2.0 * 1.49));
    let contained = Site { quota_cpus: Some(1.5), ..site(8) };
    finished(&[row], &mut outcomes, &contained, 2.0);
    let ceiling = outcomes[0].ceiling.as_ref().unwrap();
    assert!((ceiling.value.unwrap() - 1.5 * 52.8e9).abs() < 1.0);
    assert!(codes(&outcomes[0]).contains(&warning::CPU_QUOTA));
}

#[test]
fn clocks_that_disagree_degrade_the_row_and_a_falling_one_is_named() {
    let (row, mut doubtful) = zen(1, 50e9);
    set(&mut doubtful, "chain_agreement_ratio", 0.97);
    set(&mut doubtful, "clock_after_hz", 3.1e9);
    let mut outcomes = [doubtful];
    finished(&[row], &mut outcomes, &site(4), 2.0);
    assert_eq!(outcomes[0].status, Status::Degraded);
    assert_eq!(codes(&outcomes[0]), [warning::CLOCK_DISAGREES, warning::CLOCK_DRIFT]);
}

#[test]
fn twice_the_work_in_less_than_twice_the_time_is_said() {
    let (row, mut skipping) = zen(1, 50e9);
    set(&mut skipping, "doubling_ratio", 1.4);
    let mut outcomes = [skipping];
    finished(&[row], &mut outcomes, &site(4), 2.0);
    assert_eq!(codes(&outcomes[0]), [warning::NOT_LINEAR]);
    assert_eq!(outcomes[0].status, Status::Degraded);
}

#[test]
fn what_took_the_time_is_named() {
    let limiter = |per_s: f64, facts: &[(&str, f64)]| {
        let (row, mut outcome) = zen(1, per_s);
        for (key, value) in facts {
            set(&mut outcome, key, *value);
        }
        let mut outcomes = [outcome];
        finished(&[row], &mut outcomes, &site(4), 2.0);
        outcomes[0].ceiling.as_ref().unwrap().limiter.clone()
    };
    assert!(limiter(45e9, &[("stolen_ratio", 0.1), ("stolen_ticks", 3.0)]).contains("stolen"));
    assert!(limiter(45e9, &[("stolen_ratio", 0.1)]).contains("neighbour"), "one tick is none");
    assert!(limiter(45e9, &[("cpu_use_ratio", 0.8)]).contains("other programs"));
    assert!(limiter(45e9, &[]).contains("neighbour on the same core all the time"));
}

#[test]
fn a_neighbour_who_comes_and_goes_is_told_by_the_best_trials() {
    let (row, mut outcome) = zen(1, 48e9);
    outcome.samples = [vec![48e9; 8], vec![52.5e9; 2]].concat();
    let clock = outcome.series.iter_mut().find(|series| series.name == "clock_hz").unwrap();
    clock.points = vec![[0.0, 3.3e9]; 10];
    let mut outcomes = [outcome];
    finished(&[row], &mut outcomes, &site(4), 2.0);
    let limiter = &outcomes[0].ceiling.as_ref().unwrap().limiter;
    assert!(limiter.contains("the best tenth of the trials reaches 99.4 %"), "{limiter}");
    let ratio = outcomes[0].audit["per_cycle_ratio"].as_f64().unwrap();
    assert!((ratio - 48.0 / 52.8).abs() < 1e-9);
}

#[test]
fn more_threads_than_cpus_are_held_against_the_cpus() {
    let (row, outcome) = zen(8, 208e9);
    let mut outcomes = [outcome];
    finished(&[row], &mut outcomes, &site(4), 2.0);
    assert!((outcomes[0].ceiling.as_ref().unwrap().value.unwrap() - 211.2e9).abs() < 10.0);
}

#[test]
fn the_peak_for_matrices_is_that_of_the_row_with_as_many_threads() {
    let (row, outcome) = zen(2, 104e9);
    let mut outcomes = [outcome];
    finished(&[row], &mut outcomes, &site(4), 2.0);
    let peak = double_peak(&outcomes, 2);
    assert!((peak.value.unwrap() - 105.6e9).abs() < 1.0);
    assert_eq!((peak.provenance, peak.ratio), (Provenance::Inferred, None));
    assert_eq!(peak.name, "peak of f64 multiply-add, 2 threads");
    assert_eq!(double_peak(&outcomes, 1).value, None);
}

#[test]
fn a_row_that_cannot_run_has_no_doubts_of_its_own() {
    let row = throughput(1);
    let mut outcomes =
        [Outcome { status: Status::Unsupported, id: row.id().to_owned(), ..Outcome::default() }];
    finished(&[row], &mut outcomes, &site(1), 2.0);
    assert_eq!((outcomes[0].status, outcomes[0].warnings.len()), (Status::Unsupported, 0));
}
