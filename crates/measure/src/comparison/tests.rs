//! Pairs of records whose verdict can be told by hand.

use proptest::prelude::*;
use serde_json::json;

use super::noise::{Learned, Noise, Unlearned, learn};
mod learned;
mod simulation;

use super::*;
use crate::fixture::{map, record, row};
use crate::random::{Draw, SplitMix64};
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

/// One run of each side.
fn once(old: Vec<Outcome>, new: Vec<Outcome>) -> Comparison {
    let (old, new) = ([record(old)], [record(new)]);
    asked(&old, &new, &Question::default())
}

/// Five runs of each side, which differ by a tenth of a percent.
fn held(old: Vec<Outcome>, new: Vec<Outcome>) -> Comparison {
    held_by(old, new, &Question { threshold_ratio: Some(0.05), noise: None })
}

fn held_by(old: Vec<Outcome>, new: Vec<Outcome>, question: &Question) -> Comparison {
    asked(&repeated(&old, 5), &repeated(&new, 5), question)
}

fn asked(old: &[Record], new: &[Record], question: &Question) -> Comparison {
    compare(Runs { name: "old", records: old }, Runs { name: "new", records: new }, question)
}

/// So many runs of these rows.
fn repeated(rows: &[Outcome], runs: u32) -> Vec<Record> {
    let run = |run: u32| {
        let factor = 1.0 + 0.001 * f64::from((run * 7 + runs) % 5);
        let scaled = |row: &Outcome| Outcome {
            samples: row.samples.iter().map(|sample| sample * factor).collect(),
            ..row.clone()
        };
        record(rows.iter().map(scaled).collect())
    };
    (0..runs).map(run).collect()
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
    for comparison in [once(rows(), rows()), held(rows(), rows())] {
        assert_eq!(comparison.counts, Counts { same: 3, ..Counts::default() });
        assert_eq!(comparison.verdict, Verdict::Same);
        assert!(comparison.environment.is_empty() && comparison.only_old.is_empty());
        assert!(comparison.same_run);
    }
    // Also what two runs could not show: few samples, zeros, a figure without samples.
    for samples in [vec![1.0, 5.0], vec![0.0; 8], Vec::new()] {
        let row = || Outcome { samples: samples.clone(), ..row("a/b") };
        assert_eq!(only(&once(vec![row()], vec![row()])).verdict, Verdict::Same);
    }
}

#[test]
fn a_difference_within_the_threshold_is_no_difference() {
    let comparison = held(vec![around("a/b", 100.0)], vec![around("a/b", 103.0)]);
    assert_eq!(only(&comparison).verdict, Verdict::Same);
    assert!(only(&comparison).p_corrected.unwrap() < SIGNIFICANCE, "significant, yet small");
    let finer = Question { threshold_ratio: Some(0.01), noise: None };
    let comparison = held_by(vec![around("a/b", 100.0)], vec![around("a/b", 103.0)], &finer);
    assert_eq!(only(&comparison).verdict, Verdict::Better);
}

#[test]
fn one_run_of_each_is_no_evidence_however_many_samples_it_has() {
    let samples = |level: f64| (0..1000).map(|k| level * (1.0 + 1e-6 * f64::from(k % 7))).collect();
    let many = |level| Outcome { samples: samples(level), ..around("a/b", level) };
    let comparison = once(vec![many(100.0)], vec![many(85.0)]);
    let row = only(&comparison);
    assert_eq!((row.verdict, row.reason), (Verdict::Unclear, Some(Reason::WideInterval)));
    assert_eq!(row.noise_source, Some(NoiseSource::Assumed));
    assert!(row.runs_needed.unwrap() >= 4 && comparison.power.runs_recommended.unwrap() >= 5);
    // One that stands out from the others is seen all the same; that all differ is no evidence.
    let rows = |levels: [f64; 4]| {
        let ids = ["a/b", "a/c", "a/d", "a/e"];
        ids.into_iter().zip(levels).map(|(id, level)| around(id, level)).collect::<Vec<_>>()
    };
    let comparison = once(rows([1.0, 2.0, 3.0, 4.0]), rows([1.01, 1.99, 3.0, 0.8]));
    assert_eq!((comparison.counts.worse, comparison.rows[3].verdict), (1, Verdict::Worse));
    let comparison = once(rows([1.0, 2.0, 3.0, 4.0]), rows([3.0, 0.7, 1.0, 0.8]));
    assert_eq!(comparison.counts.unclear, 4);
    // Nor is one sample, such as the best of some trials.
    let mut best = rows([1.01, 1.99, 3.0, 0.8]);
    best[3].samples.truncate(1);
    assert_eq!(once(rows([1.0, 2.0, 3.0, 4.0]), best).counts.unclear, 4);
}

#[test]
fn a_wide_interval_is_unclear_and_asks_for_runs() {
    let runs = |levels: [f64; 5]| levels.map(|level| record(vec![around("a/b", level)]));
    let (old, new) =
        (runs([60.0, 140.0, 80.0, 120.0, 99.0]), runs([95.0, 70.0, 130.0, 90.0, 101.0]));
    let comparison = asked(&old, &new, &Question::default());
    let row = only(&comparison);
    assert_eq!((row.verdict, row.reason), (Verdict::Unclear, Some(Reason::WideInterval)));
    assert_eq!(row.noise_source, Some(NoiseSource::Runs));
    assert!(row.runs_needed.is_none_or(|runs| runs >= 20), "{row:?}");
    assert_eq!(comparison.verdict, Verdict::Unclear);
}

#[test]
fn one_row_that_is_worse_makes_all_worse() {
    let others = || (0..9).map(|index| around(&format!("a/{index}"), f64::from(index) + 1.0));
    let rows = |level| others().chain([around("a/b", level)]).collect::<Vec<_>>();
    let comparison = held(rows(100.0), rows(80.0));
    assert_eq!((comparison.counts.worse, comparison.counts.same), (1, 9));
    assert_eq!(comparison.verdict, Verdict::Worse);
}

#[test]
fn rows_that_stay_unclear_keep_the_others_from_no_verdict() {
    // Four rows of five are known well, one swings by a factor of two.
    let run = |swing: f64, wild: usize| {
        let level =
            |index| (index + 1) as f64 * if index < wild { swing } else { 1.0 + swing / 1000.0 };
        record((0..5).map(|index| around(&format!("{index}/x"), level(index))).collect())
    };
    let side = |wild, swings: [f64; 5]| swings.map(|swing| run(swing, wild));
    let (old, new) = ([1.0, 2.0, 1.9, 1.1, 1.5], [2.1, 1.2, 1.6, 2.0, 0.9]);
    let verdict = |wild| asked(&side(wild, old), &side(wild, new), &Question::default());
    let comparison = verdict(1);
    assert_eq!((comparison.counts.same, comparison.counts.unclear), (4, 1));
    assert_eq!(comparison.verdict, Verdict::Same);
    assert_eq!(verdict(2).verdict, Verdict::Unclear);
    // A figure that is lost is another matter.
    let mut lost = side(0, new);
    for run in &mut lost {
        run.results[0].status = Status::Failed;
    }
    let comparison = asked(&side(0, old), &lost, &Question::default());
    assert_eq!((comparison.counts.same, comparison.verdict), (4, Verdict::Unclear));
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
fn what_failed_and_tells_no_unit_is_a_figure_lost() {
    let good = Outcome { unit: "ns".to_owned(), better: Better::Lower, ..around("a/b", 7.0) };
    let failed = Outcome {
        id: "a/b".to_owned(),
        parameters: good.parameters.clone(),
        status: Status::Failed,
        ..Outcome::default()
    };
    let comparison = held(vec![good.clone()], vec![failed.clone()]);
    assert_eq!(only(&comparison).reason, Some(Reason::FigureLost));
    assert_eq!(comparison.verdict, Verdict::Unclear);
    let comparison = held(vec![failed], vec![good]);
    let row = only(&comparison);
    assert_eq!((row.reason, &*row.unit), (Some(Reason::NoFigure), "ns"));
}

#[test]
fn no_figure_stands_in_the_unit_of_another() {
    let rate = || around("a/b", 100.0);
    let time = || Outcome { unit: "ns".to_owned(), better: Better::Lower, ..rate() };
    let comparison = once(vec![rate()], vec![time()]);
    let row = only(&comparison);
    assert_eq!((row.old.median.is_some(), row.new.median), (true, None));
    // Nor is there a mean of both among the runs of a side.
    let mixed = [record(vec![rate()]), record(vec![time()])];
    let row = &asked(&mixed, &mixed, &Question::default()).rows[0];
    assert_eq!((row.reason, row.old.median), (Some(Reason::UnitsDiffer), None));
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
    // One row has changed; it must stand out among the others in all divisions of the runs.
    let mut random = SplitMix64::new(1);
    let mut run = |first: f64| {
        let mut level =
            |index| (if index == 0 { first } else { 100.0 }) * (0.03 * random.normal()).exp();
        record((0..30).map(|index| around(&format!("a/{index}"), level(index))).collect())
    };
    let mut side = |first: f64| (0..5).map(|_| run(first)).collect::<Vec<_>>();
    let comparison = asked(&side(100.0), &side(108.0), &Question::default());
    let row = &comparison.rows[0];
    assert!(row.p.unwrap() < 0.01 && row.p_corrected.unwrap() > 5.0 * row.p.unwrap(), "{row:?}");
    assert_eq!(row.verdict, Verdict::Unclear);
    assert_eq!(asked(&side(100.0), &side(150.0), &Question::default()).counts.better, 1);
}

#[test]
fn several_runs_of_a_side_are_one() {
    let run = |level: f64| record(vec![around("a/b", level)]);
    let (old, new) = ([run(100.0), run(101.0), run(99.0)], [run(80.0), run(81.0)]);
    let comparison = asked(&old, &new, &Question::default());
    let row = only(&comparison);
    assert_eq!((row.old.n, row.old.runs, row.new.n, row.new.runs), (30, 3, 20, 2));
    // Geometric means of 80 and 81, and of 99, 100 and 101.
    let (old, new) = ((100.0_f64 * 101.0 * 99.0).cbrt(), (80.0_f64 * 81.0).sqrt());
    assert!((row.ratio.unwrap() - new / old).abs() < 1e-12, "{row:?}");
    let shown = row.new.median.unwrap() / row.old.median.unwrap();
    assert!((row.ratio.unwrap() - shown).abs() < 1e-12, "{row:?}");
}

#[test]
fn a_run_without_the_row_takes_no_harm() {
    let (old, mut new) = (repeated(&[around("a/b", 9.0)], 6), repeated(&[around("a/b", 7.0)], 6));
    new[2].results.clear();
    new[4].results[0].status = Status::Failed;
    let comparison = asked(&old, &new, &Question::default());
    assert_eq!((only(&comparison).new.runs, only(&comparison).verdict), (4, Verdict::Worse));
}

#[test]
fn a_run_that_failed_says_nothing_of_noise() {
    let rows = |levels: [f64; 4]| {
        let ids = ["a/b", "a/c", "a/d", "a/e"];
        record(ids.into_iter().zip(levels).map(|(id, level)| around(id, level)).collect())
    };
    let (old, new) = (rows([1.0, 2.0, 3.0, 4.0]), [rows([1.01, 1.99, 3.0, 0.8])]);
    let mut failed = old.clone();
    for row in &mut failed.results {
        (row.status, row.median, row.n) = (Status::Failed, None, 0);
        row.samples.clear();
    }
    let without = asked(std::slice::from_ref(&old), &new, &Question::default());
    let with = asked(&[old, failed], &new, &Question::default());
    assert_eq!((with.counts.worse, without.counts.worse), (1, 1));
    for (with, without) in with.rows.iter().zip(&without.rows) {
        assert_eq!((with.noise_ratio, with.p), (without.noise_ratio, without.p), "{}", with.id);
    }
}

#[test]
fn runs_that_failed_or_have_no_ratio_are_not_left_out_in_silence() {
    let sides = || [repeated(&[around("a/b", 9.0)], 6), repeated(&[around("a/b", 9.0)], 6)];
    let judge = |[old, new]: [Vec<Record>; 2]| asked(&old, &new, &Question::default());
    assert_eq!(judge(sides()).verdict, Verdict::Same);
    let [old, mut new] = sides();
    new[4].results[0].status = Status::Failed;
    let lost = judge([old.clone(), new.clone()]);
    assert_eq!((lost.verdict, only(&lost).reason), (Verdict::Unclear, Some(Reason::FigureLost)));
    assert_eq!(judge([new.clone(), old.clone()]).verdict, Verdict::Same);
    assert_eq!(judge([new.clone(), new]).verdict, Verdict::Same, "it fails now and then");
    let [_, mut new] = sides();
    new[3].results[0].samples[0] = 0.0;
    assert_eq!(only(&judge([old, new])).reason, Some(Reason::NoRatio));
}

#[test]
fn a_row_that_few_runs_have_shows_nothing() {
    let (mut old, mut new) =
        (repeated(&[around("a/b", 9.0)], 6), repeated(&[around("a/b", 3.0)], 6));
    for runs in [&mut old, &mut new] {
        runs[2..5].iter_mut().for_each(|run| run.results.clear());
    }
    let comparison = asked(&old, &new, &Question::default());
    assert_eq!((only(&comparison).p_corrected, comparison.verdict), (Some(1.0), Verdict::Unclear));
    assert_eq!(only(&comparison).reason, Some(Reason::NotSignificant));
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
            "storage": [{"filesystem": "ext4", "free_bytes": 1, "used_bytes": 7, "source": "(hidden)"}]}),
        &["/x/flatout", "bench", "--output", "a", "--seed=3"],
    );
    let new = with(
        json!({"cpu_model": "X", "cpus_online": 2, "cpus_allowed": 1, "memory_bytes": 1001,
            "memory_available_bytes": 9, "load_average": [0.9, 3, 1],
            "mitigations": {"l1tf": "Vulnerable"},
            "storage": [{"filesystem": "xfs", "free_bytes": 9, "used_bytes": 8, "source": "/dev/x"}]}),
        &["flatout", "bench", "--format", "json", "-o", "b"],
    );
    let names = |old: &Record, new: &Record| {
        let [old, new] = [old, new].map(std::slice::from_ref);
        let found = asked(old, new, &Question::default());
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
fn every_run_of_a_side_has_a_say_in_what_differs() {
    let with = |cpu: &str, kernel: &str| {
        let mut run = record(vec![around("a/b", 1.0)]);
        run.start.environment = json!({"cpu_model": cpu, "kernel_release": kernel});
        run
    };
    let found = |old: &[Record], new: &[Record]| asked(old, new, &Question::default());
    let old = [with("X", "6.1"), with("X", "6.1")];
    assert_eq!(found(&old, &old).same_machine, Some(true));
    let mixed = found(&old, &[with("X", "6.1"), with("Y", "6.2")]);
    assert_eq!(mixed.same_machine, Some(false));
    let told: Vec<_> =
        mixed.environment.iter().map(|one| (one.name.as_str(), one.new.clone())).collect();
    assert_eq!(told, [("cpu_model", json!("X | Y")), ("kernel_release", json!("6.1 | 6.2"))]);
    let mut silent = with("X", "6.1");
    silent.start.environment = json!(null);
    assert_eq!(found(&old, &[with("X", "6.1"), silent]).same_machine, None);
}

#[test]
fn a_clock_that_changed_and_cpus_that_were_moved_are_told() {
    let told = |fact: &str, old: f64, new: f64| {
        let with =
            |value: f64| Outcome { audit: map(json!({ fact: value })), ..around("a/b", 1.0) };
        let found = held(vec![with(old)], vec![with(new)]).environment;
        found.into_iter().next().map(|one| (one.name, one.new))
    };
    let as_told = |name: &str, new: f64| Some((name.to_owned(), json!(new)));
    assert_eq!(told("clock_hz", 3e9, 2.5e9), as_told("clock_in_load_hz", 2.5e9));
    assert_eq!(told("clock_hz", 3e9, 2.99e9), None);
    assert_eq!(told("cpu_distance_ns", 31.0, 168.0), as_told("cpu_distance_ns", 168.0));
    assert_eq!(told("cpu_distance_ns", 31.0, 42.0), None);
}

#[test]
fn very_many_rows_take_no_harm() {
    let rows = |count: u32, factor: f64| -> Vec<Outcome> {
        let few = |index| Outcome {
            samples: vec![factor * (1.0 + f64::from(index)); 3],
            ..row(&format!("a/{index}"))
        };
        (0..count).map(few).collect()
    };
    let comparison = once(rows(30_000, 1.0), rows(30_000, 2.0));
    assert_eq!(comparison.counts.unclear, 30_000);
    let (old, new) = (repeated(&rows(3_000, 1.0), 4), repeated(&rows(3_000, 2.0), 4));
    assert_eq!(asked(&old, &new, &Question::default()).counts.better, 3_000);
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
        new_runs in prop::sample::select(vec![1, 9]),
    ) {
        let mut old = [record(old), record(third)];
        let new: Vec<Record> = (0..new_runs).map(|_| record(new.clone())).collect();
        old.iter_mut().for_each(|run| run.start.environment = json!({"cpu_model": "X"}));
        let noise = learn(&old).ok().map(|learned| Noise::of(&learned));
        let question = Question { threshold_ratio: given, noise };
        let runs = |name, records| Runs { name, records };
        let comparison = compare_in(runs("o", &old), runs("n", &new), &question, 50);
        let counts = comparison.counts;
        let sum =
            counts.better + counts.worse + counts.same + counts.unclear + counts.incomparable;
        prop_assert_eq!(sum, comparison.rows.len() as u64);
        for row in &comparison.rows {
            let numbers =
                [row.ratio, row.p, row.p_corrected, row.detectable_ratio, row.noise_ratio, row.old.median];
            prop_assert!(numbers.iter().flatten().all(|x| x.is_finite()), "{:?}", row);
            prop_assert!(row.ci95.is_none_or(|[low, high]| low <= high && low > 0.0));
            prop_assert!(row.p_corrected.is_none_or(|p| (0.0..=1.0).contains(&p)), "{:?}", row);
            let is_told = matches!(row.verdict, Verdict::Unclear | Verdict::Incomparable);
            prop_assert_eq!(is_told, row.reason.is_some(), "{:?}", row);
        }
        // Nothing is lost: each row of the new side is matched or listed.
        let listed = comparison.rows.len() + comparison.only_new.len();
        prop_assert_eq!(listed, new[0].results.len());
    }
}
