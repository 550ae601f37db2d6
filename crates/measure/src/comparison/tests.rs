//! Pairs of records whose verdict can be told by hand.

use proptest::prelude::*;
use serde_json::json;

use super::noise::{Learned, Noise, Unlearned, learn};
mod simulation;

use super::*;
use crate::fixture::{map, record, row};
use crate::record::Outcome;

/// A row of ten samples within half a percent of `level`.
fn around(id: &str, level: f64) -> Outcome {
    let samples: Vec<f64> =
        (0..10).map(|k| level * (1.0 + 0.001 * f64::from((k * 7) % 11 - 5))).collect();
    Outcome { n: 10, median: crate::statistics::median(&samples), samples, ..row(id) }
}

fn with(parameters: Value, row: Outcome) -> Outcome {
    Outcome { parameters: map(parameters), ..row }
}

fn held(old: Vec<Outcome>, new: Vec<Outcome>) -> Comparison {
    held_by(old, new, &Threshold::Given(0.05))
}

fn held_by(old: Vec<Outcome>, new: Vec<Outcome>, threshold: &Threshold) -> Comparison {
    let (old, new) = ([record(old)], [record(new)]);
    compare(Runs { name: "old", records: &old }, Runs { name: "new", records: &new }, threshold)
}

fn only(comparison: &Comparison) -> &Row {
    assert_eq!(comparison.rows.len(), 1, "{comparison:#?}");
    &comparison.rows[0]
}

#[test]
fn a_rate_that_fell_is_worse_and_a_time_that_fell_is_better() {
    let fell = held(vec![around("a/b", 100.0)], vec![around("a/b", 80.0)]);
    assert_eq!((only(&fell).verdict, fell.verdict), (Verdict::Worse, Verdict::Worse));
    assert!((only(&fell).ratio.unwrap() - 0.8).abs() < 1e-9);
    let lower = |level| Outcome { better: Better::Lower, ..around("a/b", level) };
    let fell = held(vec![lower(100.0)], vec![lower(80.0)]);
    assert_eq!(only(&fell).verdict, Verdict::Better);
    assert_eq!(fell.counts, Counts { better: 1, ..Counts::default() });
}

#[test]
fn a_file_against_itself_is_the_same_in_every_row() {
    let rows = || vec![around("a/b", 100.0), around("a/c", 3.0), around("d/e", 1e12)];
    let comparison = held(rows(), rows());
    assert_eq!(comparison.counts, Counts { same: 3, ..Counts::default() });
    assert_eq!(comparison.verdict, Verdict::Same);
    assert!(comparison.environment.is_empty() && comparison.only_old.is_empty());
    assert!(comparison.same_run);
    // Also what two runs could not show: few samples, zeros, a figure without samples.
    for samples in [vec![1.0, 5.0], vec![0.0; 8], Vec::new()] {
        let row = || Outcome { samples: samples.clone(), ..row("a/b") };
        assert_eq!(only(&held(vec![row()], vec![row()])).verdict, Verdict::Same);
    }
}

#[test]
fn a_difference_within_the_threshold_is_no_difference() {
    let comparison = held(vec![around("a/b", 100.0)], vec![around("a/b", 103.0)]);
    assert_eq!(only(&comparison).verdict, Verdict::Same);
    assert!(only(&comparison).p_corrected.unwrap() < SIGNIFICANCE, "significant, yet small");
    let finer = Threshold::Given(0.01);
    let comparison = held_by(vec![around("a/b", 100.0)], vec![around("a/b", 103.0)], &finer);
    assert_eq!(only(&comparison).verdict, Verdict::Better);
}

#[test]
fn a_wide_interval_is_unclear_and_asks_for_runs() {
    let wide = |id| Outcome {
        samples: vec![60.0, 140.0, 80.0, 120.0, 100.0, 95.0, 105.0],
        ..around(id, 100.0)
    };
    let other = Outcome { samples: wide("a/b").samples.into_iter().rev().collect(), ..wide("a/b") };
    let comparison = held(vec![wide("a/b")], vec![other]);
    let row = only(&comparison);
    assert_eq!((row.verdict, row.reason), (Verdict::Unclear, Some(Reason::WideInterval)));
    assert!(row.runs_needed.unwrap() >= 2, "{row:?}");
    assert_eq!(comparison.verdict, Verdict::Unclear);
}

#[test]
fn worse_goes_before_unclear() {
    let old = vec![around("a/b", 100.0), Outcome { samples: vec![1.0; 3], ..row("a/c") }];
    let new = vec![around("a/b", 50.0), Outcome { samples: vec![2.0; 3], ..row("a/c") }];
    let comparison = held(old, new);
    assert_eq!((comparison.counts.worse, comparison.counts.unclear), (1, 1));
    assert_eq!(comparison.verdict, Verdict::Worse);
}

#[test]
fn few_samples_are_said_and_how_many_runs_are_missing() {
    let few = Outcome { samples: vec![99.0, 100.0], ..row("a/b") };
    let comparison = held(vec![few], vec![around("a/b", 100.0)]);
    let row = only(&comparison);
    assert_eq!((row.verdict, row.reason), (Verdict::Unclear, Some(Reason::FewSamples)));
    assert_eq!((row.runs_needed, row.ci95), (Some(2), None));
    assert!(row.ratio.is_some() && row.p_corrected.is_none());
}

#[test]
fn what_cannot_be_compared_says_why() {
    let failed = |status| Outcome { status, median: None, samples: Vec::new(), ..row("a/b") };
    let good = || around("a/b", 100.0);
    let cases = [
        (good(), failed(Status::Failed), Verdict::Unclear, Reason::FigureLost),
        (good(), failed(Status::Invalid), Verdict::Unclear, Reason::FigureLost),
        (good(), failed(Status::Unsupported), Verdict::Incomparable, Reason::NoFigure),
        (failed(Status::Failed), good(), Verdict::Incomparable, Reason::NoFigure),
        (failed(Status::Failed), failed(Status::Failed), Verdict::Incomparable, Reason::NoFigure),
        (
            Outcome { samples: Vec::new(), ..good() },
            good(),
            Verdict::Incomparable,
            Reason::NoSamples,
        ),
        (
            Outcome { samples: vec![0.0; 8], median: Some(0.0), ..good() },
            good(),
            Verdict::Incomparable,
            Reason::NoRatio,
        ),
        (
            Outcome { unit: "ns".to_owned(), ..good() },
            good(),
            Verdict::Incomparable,
            Reason::UnitsDiffer,
        ),
    ];
    for (old, new, verdict, reason) in cases {
        let comparison = held(vec![old], vec![new]);
        let row = only(&comparison);
        assert_eq!((row.verdict, row.reason), (verdict, Some(reason)), "{row:#?}");
    }
    // A figure that cannot be true is no sample either, whatever the record holds.
    let invalid = Outcome { status: Status::Invalid, ..good() };
    assert_eq!(only(&held(vec![invalid], vec![good()])).old.median, None);
}

#[test]
fn rows_are_matched_by_id_and_parameters() {
    let at = |threads: f64, level| with(json!({"threads": threads}), around("a/b", level));
    let comparison = held(
        vec![at(1.0, 100.0), at(2.0, 200.0), at(8.0, 400.0)],
        vec![with(json!({"threads": 2}), around("a/b", 200.0)), at(1.0, 100.0)],
    );
    assert_eq!(comparison.counts.same, 2, "2 and 2.0 are one number");
    assert_eq!(comparison.only_old[0].parameters, map(json!({"threads": 8.0})));
    assert!(comparison.only_new.is_empty());
}

#[test]
fn equal_rows_are_paired_in_their_order() {
    let rows = || vec![around("a/b", 100.0), around("a/b", 300.0)];
    let comparison = held(rows(), rows());
    assert_eq!(comparison.counts.same, 2);
    let comparison = held(rows(), vec![around("a/b", 100.0)]);
    assert_eq!((comparison.counts.same, comparison.only_old.len()), (1, 1));
}

#[test]
fn another_path_is_no_other_work() {
    let at =
        |file: &str, level| with(json!({"file": file, "threads": 1}), around("read/file", level));
    let comparison =
        held(vec![at("/a/x", 100.0), at("/a/y", 50.0)], vec![at("/b/y", 100.0), at("/a/y", 50.0)]);
    assert_eq!(comparison.counts.same, 2);
    let differing: Vec<_> = comparison.rows.iter().map(|row| &row.differing_parameters).collect();
    assert_eq!(*differing[0], map(json!({"file": "/b/y"})));
    assert!(differing[1].is_empty(), "the one of equal path is taken first");
}

#[test]
fn a_size_that_a_run_chose_for_itself_may_differ_a_little() {
    let of = |order: u64| with(json!({"order": order, "type": "f64"}), around("cpu/linpack", 9.0));
    let comparison = held(vec![of(1440)], vec![of(1296)]);
    assert_eq!(only(&comparison).verdict, Verdict::Same);
    assert_eq!(only(&comparison).differing_parameters, map(json!({"order": 1296})));
    assert!(held(vec![of(1440)], vec![of(700)]).rows.is_empty(), "that is other work");
    assert!(held(vec![of(1440)], vec![of(1296), of(1300)]).rows.is_empty(), "which of them?");
}

#[test]
fn a_row_that_repeats_another_is_counted_once() {
    let copy = |level| Outcome { id: "cpu/scaling".to_owned(), ..around("cpu/throughput", level) };
    let comparison = held(
        vec![around("cpu/throughput", 10.0), copy(10.0)],
        vec![around("cpu/throughput", 5.0), copy(5.0)],
    );
    assert_eq!((comparison.counts.worse, comparison.counts.incomparable), (1, 1));
    assert_eq!(comparison.rows[1].reason, Some(Reason::Repeats));
}

#[test]
fn all_rows_count_in_the_correction() {
    // One row of twenty differs, with p = 2 ÷ 924 by itself.
    let six = |id: &str, level: f64| Outcome {
        samples: (0..6).map(|k| level + f64::from(k) / 100.0).collect(),
        ..around(id, level)
    };
    let rows = |first: f64| -> Vec<Outcome> {
        let level = |index| if index == 0 { first } else { 100.0 + f64::from(index) };
        (0..30).map(|index| six(&format!("a/{index}"), level(index))).collect()
    };
    let comparison = held(rows(100.0), rows(150.0));
    let row = &comparison.rows[0];
    assert!((row.p.unwrap() - 2.0 / 924.0).abs() < 1e-12);
    assert!((row.p_corrected.unwrap() - 60.0 / 924.0).abs() < 1e-12);
    assert_eq!((row.verdict, row.reason), (Verdict::Unclear, Some(Reason::NotSignificant)));
    assert!(row.runs_needed.is_some());
}

#[test]
fn several_runs_of_a_side_are_one() {
    let run = |level: f64| record(vec![around("a/b", level)]);
    let (old, new) = ([run(100.0), run(101.0), run(99.0)], [run(80.0), run(81.0)]);
    let comparison = compare(
        Runs { name: "old", records: &old },
        Runs { name: "new", records: &new },
        &Threshold::Default,
    );
    let row = only(&comparison);
    assert_eq!((row.old.n, row.old.runs, row.new.n, row.new.runs), (30, 3, 20, 2));
    assert_eq!((row.verdict, row.threshold_ratio), (Verdict::Worse, DEFAULT_THRESHOLD_RATIO));
}

#[test]
fn a_guest_has_a_wider_threshold_unless_its_noise_is_known() {
    let run = |level: f64, hypervisor: bool| {
        let mut run = record(vec![around("a/b", level)]);
        run.start.environment = json!({"hypervisor": hypervisor});
        run
    };
    let verdict = |hypervisor: bool| {
        let (old, new) = ([run(100.0, hypervisor)], [run(82.0, hypervisor)]);
        let old = Runs { name: "old", records: &old };
        let comparison = compare(old, Runs { name: "new", records: &new }, &Threshold::Default);
        (only(&comparison).verdict, comparison.threshold.ratio)
    };
    assert_eq!(verdict(false), (Verdict::Worse, DEFAULT_THRESHOLD_RATIO));
    assert_eq!(verdict(true), (Verdict::Same, DEFAULT_GUEST_THRESHOLD_RATIO));
}

#[test]
fn noise_widens_what_counts_as_the_same() {
    let machine = json!({"cpu_model": "X", "cpus_online": 2, "memory_bytes": 1000});
    let run = |level: f64| {
        let mut run = record(vec![around("a/b", level), around("a/c", 100.0)]);
        run.start.environment = machine.clone();
        run
    };
    let learned = learn(&[run(100.0), run(120.0), run(90.0)]).unwrap();
    assert_eq!((learned.runs, learned.rows.len()), (3, 2));
    // Variance of ln 100, ln 120, ln 90, below the line 2: numpy.var(…, ddof=1).
    assert!((learned.rows[0].log_variance - 0.021_183_827_190).abs() < 1e-12, "{learned:?}");
    let noise = Threshold::Learned(Noise::of(&learned));
    let noisy = held_by(vec![around("a/b", 100.0)], vec![around("a/b", 125.0)], &noise);
    assert_eq!(only(&noisy).verdict, Verdict::Same);
    assert_eq!(only(&noisy).threshold_source, ThresholdSource::NoiseOfRow);
    let far = held_by(vec![around("a/b", 100.0)], vec![around("a/b", 900.0)], &noise);
    assert_eq!(only(&far).verdict, Verdict::Better);
    let kin = held_by(vec![around("a/x", 1.0)], vec![around("a/x", 1.01)], &noise);
    assert_eq!(only(&kin).threshold_source, ThresholdSource::NoiseOfArea);
    let stranger = held_by(vec![around("z/x", 1.0)], vec![around("z/x", 1.01)], &noise);
    assert_eq!(only(&stranger).threshold_source, ThresholdSource::Default);
    assert!(learned.is_of(&machine));
    assert!(learned.is_of(&json!({"cpu_model": "X", "cpus_online": 2, "memory_bytes": 1001})));
    assert!(!learned.is_of(&json!({"cpu_model": "Y", "cpus_online": 2, "memory_bytes": 1000})));
    assert!(!learned.is_of(&json!({})));
}

#[test]
fn noise_that_cannot_be_learned_says_why() {
    let run = |cpu: &str, row| {
        let mut run = record(vec![row]);
        run.start.environment = json!({ "cpu_model": cpu });
        run
    };
    let good = || around("a/b", 1.0);
    assert_eq!(learn(&[]), Err(Unlearned::FewRuns));
    assert_eq!(learn(&[run("X", good())]), Err(Unlearned::FewRuns));
    assert_eq!(learn(&[run("X", good()), run("Y", good())]), Err(Unlearned::Machines));
    let nameless = || record(vec![good()]);
    assert_eq!(learn(&[nameless(), nameless()]), Err(Unlearned::Nameless));
    let few = || Outcome { samples: vec![1.0; 5], ..row("a/b") };
    assert_eq!(learn(&[run("X", few()), run("X", few())]), Err(Unlearned::NoRows));
}

#[test]
fn hostile_noise_is_passed_over() {
    let row = |log_variance: f64, runs| noise::RowNoise {
        id: "a/b".to_owned(),
        parameters: Map::new(),
        runs,
        log_variance,
    };
    let rows = vec![row(f64::MAX, 2), row(-1.0, 3), row(0.1, 1), row(0.1, u64::MAX), row(0.0, 2)];
    let learned =
        Learned { machine: Map::new(), tool: String::new(), time: String::new(), runs: 2, rows };
    let noise = Threshold::Learned(Noise::of(&learned));
    let comparison = held_by(vec![around("a/b", 1.0)], vec![around("a/b", 2.0)], &noise);
    assert!(only(&comparison).threshold_ratio.is_finite());
    assert_eq!(only(&comparison).verdict, Verdict::Same, "with that much noise all is the same");
}

#[test]
fn the_machines_come_first() {
    let with = |environment: Value, argv: &[&str]| {
        let mut run = record(vec![around("a/b", 1.0)]);
        run.start.environment = environment;
        run.start.argv = argv.iter().map(|word| (*word).to_owned()).collect();
        run
    };
    let old = with(
        json!({"cpu_model": "X", "cpus_online": 2, "cpus_allowed": 2, "memory_bytes": 1000,
            "memory_available_bytes": 5, "load_average": [0.5, 1, 1],
            "mitigations": {"l1tf": "Not affected"},
            "storage": [{"filesystem": "ext4", "free_bytes": 1, "source": "(hidden)"}]}),
        &["/x/flatout", "bench", "--output", "a", "--seed=3"],
    );
    let new = with(
        json!({"cpu_model": "X", "cpus_online": 2, "cpus_allowed": 1, "memory_bytes": 1001,
            "memory_available_bytes": 9, "load_average": [0.9, 3, 1],
            "mitigations": {"l1tf": "Vulnerable"},
            "storage": [{"filesystem": "xfs", "free_bytes": 9, "source": "/dev/x"}]}),
        &["flatout", "bench", "--format", "json"],
    );
    let names = |old: &Record, new: &Record| {
        let runs = |name, record| Runs { name, records: std::slice::from_ref(record) };
        let found = compare(runs("old", old), runs("new", new), &Threshold::Default);
        let names: Vec<String> = found.environment.iter().map(|d| d.name.clone()).collect();
        (found.same_machine, names.join(" "))
    };
    let told = "cpus_allowed mitigations.l1tf storage.0.filesystem";
    assert_eq!(names(&old, &new), (Some(true), told.to_owned()));
    let mut other = new.clone();
    other.start.environment["cpu_model"] = json!("Y");
    other.start.argv[1] = "read".to_owned();
    assert_eq!(names(&old, &other), (Some(false), format!("command cpu_model {told}")));
    other.start.environment = json!(null);
    assert_eq!(names(&old, &other).0, None);
}

#[test]
fn a_clock_that_changed_is_told() {
    let clocked = |hz: f64| Outcome { audit: map(json!({ "clock_hz": hz })), ..around("a/b", 1.0) };
    let comparison = held(vec![clocked(3e9)], vec![clocked(2.5e9)]);
    assert_eq!(comparison.environment[0].name, "clock_in_load_hz");
    assert!(held(vec![clocked(3e9)], vec![clocked(2.99e9)]).environment.is_empty());
}

#[test]
fn a_hundred_thousand_rows_take_no_harm() {
    let rows = |level: f64| -> Vec<Outcome> {
        let few = |index| Outcome { samples: vec![level; 3], ..row(&format!("a/{index}")) };
        (0..100_000).map(few).collect()
    };
    let comparison = held(rows(1.0), rows(2.0));
    assert_eq!(comparison.counts.unclear, 100_000);
}

/// Any number that JSON can hold, extremes often.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("JSON has no others", |x| x.is_finite()),
        prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324
        ]),
        0.5..2.0,
    ]
}

prop_compose! {
    fn any_row()(
        id in prop::sample::select(vec!["a/b", "a/c", "", "x"]),
        parameter in prop::option::of(any_number()),
        unit in prop::sample::select(vec!["ns", "bytes/s"]),
        lower: bool,
        samples in prop::collection::vec(any_number(), 0..15),
        median in prop::option::of(any_number()),
        status in prop::sample::select(vec![Status::Ok, Status::Failed, Status::Interrupted]),
    ) -> Outcome {
        let parameters = parameter.map(|p| map(json!({"p": p}))).unwrap_or_default();
        let better = if lower { Better::Lower } else { Better::Higher };
        let n = samples.len() as u64;
        Outcome { id: id.to_owned(), parameters, unit: unit.to_owned(), better, median, n, samples,
            status, ..Outcome::default() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_rows_hold_the_answer_is_whole(
        old in prop::collection::vec(any_row(), 0..8),
        new in prop::collection::vec(any_row(), 0..8),
        third in prop::collection::vec(any_row(), 0..8),
        given in prop::option::of(1e-9..1e9),
    ) {
        let (mut old, new) = ([record(old), record(third)], [record(new)]);
        old.iter_mut().for_each(|run| run.start.environment = json!({"cpu_model": "X"}));
        let threshold = match (given, learn(&old)) {
            (Some(ratio), _) => Threshold::Given(ratio),
            (None, Ok(learned)) => Threshold::Learned(Noise::of(&learned)),
            (None, Err(_)) => Threshold::Default,
        };
        let runs = |name, records| Runs { name, records };
        let comparison = compare_in(runs("o", &old), runs("n", &new), &threshold, 50);
        let counts = comparison.counts;
        let sum =
            counts.better + counts.worse + counts.same + counts.unclear + counts.incomparable;
        prop_assert_eq!(sum, comparison.rows.len() as u64);
        for row in &comparison.rows {
            let numbers = [row.ratio, row.p, row.p_corrected, row.detectable_ratio, row.old.median];
            prop_assert!(numbers.iter().flatten().all(|x| x.is_finite()), "{:?}", row);
            prop_assert!(row.ci95.is_none_or(|[low, high]| low <= high && low > 0.0));
            prop_assert!(row.threshold_ratio.is_finite());
            let is_told = matches!(row.verdict, Verdict::Unclear | Verdict::Incomparable);
            prop_assert_eq!(is_told, row.reason.is_some(), "{:?}", row);
        }
        // Nothing is lost: each row of the new side is matched or listed.
        let listed = comparison.rows.len() + comparison.only_new.len();
        prop_assert_eq!(listed, new[0].results.len());
    }
}
