//! What a row makes of its trials: warm-up, facts, far samples, overhead, further figures.

use serde_json::json;

use super::*;
use crate::case::{Further, Latencies};
use crate::fact::Facts;
use crate::histogram::{Histogram, LoopKind};
use crate::row::Parameters;

#[test]
fn warm_up_is_dropped_shown_and_made_up_for() {
    let clock = FakeClock::default();
    let cases = vec![case("a/b", &clock, |trial| if trial < 2 { 2 * MS } else { MS })];
    let outcome = &run_quietly(&clock, cases, &Plan::default())[0];
    assert_eq!((outcome.status, outcome.n), (Status::Ok, 8));
    assert_eq!(outcome.samples, [1_000_000.0; 8]);
    assert_eq!(outcome.audit["warmup_dropped"], 2);
    assert_eq!(outcome.audit["warmup_samples"], json!([500_000.0, 500_000.0]));
    assert_eq!(outcome.audit["trials_run"], 10);
}

#[test]
fn warm_up_is_kept_when_time_ran_out_before_the_least_trials() {
    let clock = FakeClock::default();
    let plan = Plan { ends_ns: 550 * MS, ..Plan::default() };
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
fn an_interval_has_what_was_found_alone_on_the_core_and_beside_a_sibling_that_was_seen() {
    use crate::sampler::fact::{
        CONTENDED_NS, CONTENTION_RATIO, FIGURE_ALONE, FIGURE_CONTENDED, WATCHED_NS,
    };
    let of = |facts: Facts, spoil: Option<Spoil>| {
        let clock = FakeClock::default();
        let watching = scripted("a/b", |_| {
            clock.advance(MS);
            let facts = facts.clone();
            Ok(Sample { amount: 1e6, elapsed_ns: MS, facts, spoil, ..Sample::default() })
        });
        run_quietly(&clock, vec![watching], &Plan::default()).remove(0)
    };
    let watched = |contended_ns: u64| {
        Facts::default().with(WATCHED_NS, 100_u64).with(CONTENDED_NS, contended_ns)
    };
    let outcome = |contended_ns: u64, levels: [Option<f64>; 2]| {
        let mut facts = watched(contended_ns);
        facts.set_known(FIGURE_ALONE, levels[0]);
        facts.set_known(FIGURE_CONTENDED, levels[1]);
        of(facts, None)
    };
    let reach = |outcome: &Outcome| outcome.ci95.unwrap().map(|end| (end / 1e7).round() as u64);
    let both = [Some(1.1e9), Some(0.6e9)];
    let seen = outcome(40, both);
    assert_eq!(
        (reach(&seen), codes(&seen)),
        ([60, 111], vec![warning::SMT_CONTENTION, warning::UNSTABLE])
    );
    assert_eq!(seen.audit["contention_ratio"], 0.4);
    // Not worth a warning, but the next run may have more of it.
    let little = outcome(6, [Some(1e9), None]);
    assert_eq!((reach(&little), codes(&little)), ([77, 101], Vec::new()));
    assert_eq!(reach(&outcome(100, [None, Some(1e9)])), [100, 131]);
    let mixed = outcome(80, [Some(1e9), Some(0.95e9)]);
    assert_eq!(reach(&mixed), [77, 124], "neither was alone or beside it for long");
    let hardly = outcome(2, both);
    assert_eq!(reach(&hardly), [100, 101], "an interrupt in a probe is no sibling");
    assert_eq!(reach(&outcome(100, [None, None])), [100, 101], "quiet moments count");
    // What has all of its time in it, or disturbed trials alone, does not tell the two apart.
    let all_time = |ratio: f64| of(Facts::default().with(CONTENTION_RATIO, ratio), None);
    assert_eq!(
        (reach(&all_time(0.7)), codes(&all_time(0.7))),
        ([79, 127], vec![warning::SMT_CONTENTION])
    );
    assert_eq!((reach(&all_time(0.04)), codes(&all_time(0.04))), ([100, 101], Vec::new()));
    let disturbed = of(watched(90), Some(Spoil::SiblingContention));
    assert_eq!(reach(&disturbed), [79, 127]);
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
fn a_harness_that_takes_too_long_is_a_warning() {
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
fn a_further_figure_becomes_a_row_of_the_same_trials() {
    let clock = FakeClock::default();
    let mut trial = 0;
    let cases = vec![scripted("a/b", |_| {
        trial += 1;
        let mut histogram = Histogram::default();
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
    assert_eq!((own.n, further.n), (8, 8));
    assert!(further.half_width().is_some_and(|width| width < 0.01));
    assert_eq!(
        (own.audit["bytes"].as_u64(), further.audit["bytes"].as_u64()),
        (Some(80), Some(80))
    );
    assert_eq!((own.audit.get("own"), &further.audit["own"]), (None, &json!(8)));
    let latency = own.latency.as_ref().unwrap();
    assert_eq!((latency.operations, latency.min_ns, latency.max_ns), (8, 200.0, 900.0));
}

/// What was durable in the end differs from run to run by more than what the disk had taken.
#[test]
fn a_further_figure_has_what_earlier_runs_taught_of_its_own_row() {
    let clock = FakeClock::default();
    let durable = || Parameters::default().with("until", "durable");
    let noise = |parameters: Parameters, log_variance| {
        let noise = RowNoise::of_runs("a/b", 9, log_variance);
        RowNoise { parameters: parameters.to_json(), ..noise }
    };
    let rows = vec![noise(Parameters::default(), 1e-6), noise(durable(), 0.04)];
    let noise = Some(Arc::new(Noise::of(&Learned { rows, ..Learned::default() })));
    let trial = |_| {
        let (amount, elapsed_ns) = (1.0, 2 * MS);
        let further = Further { parameters: durable(), amount, elapsed_ns, ..Further::default() };
        Ok(Sample { amount, elapsed_ns: MS, further: vec![further], ..Sample::default() })
    };
    let plan = Plan { noise, ..Plan::default() };
    let outcomes = run_quietly(&clock, vec![scripted("a/b", trial)], &plan);
    let [own, further] = [0, 1].map(|at: usize| outcomes[at].half_width().unwrap());
    assert!(own < 0.02 && further > 0.3, "{own} {further}");
    assert_eq!(outcomes[1].audit["between_runs"]["runs"], 9);
}

#[test]
fn a_figure_that_depends_on_where_the_host_has_the_cpus_says_so() {
    let run = |distances: [u32; 2], times_ms: [u64; 2]| {
        let clock = FakeClock::default();
        let at = |trial: u32| usize::from(trial % 4 > 1);
        let case = case("a", &clock, |trial| times_ms[at(trial)] * MS);
        let ends = (0..24).flat_map(|trial| [distances[at(trial)]; 2]);
        let plan = Plan { max_trials: 24, min_trials: 24, ..Plan::default() };
        run_watched(&clock, vec![case], &plan, FakeWitness::of_moved_cpus(ends)).remove(0)
    };
    let moved = run([24, 170], [10, 15]);
    assert_eq!(codes(&moved), ["cpus_moved", "unstable"]);
    assert!(
        moved.warnings[0].text.contains("24 ns from each other, in 12 170 ns, with 0.67 times")
    );
    let [low, high] = moved.ci95.unwrap();
    assert!(low < 66_700.0 && high > 99_900.0, "either may be that of the next run: {low} {high}");
    assert_eq!(moved.audit["cpu_distance_ns"], json!(97.0));
    assert_eq!(codes(&run([24, 40], [10, 15])), ["unstable"], "they are at one cache");
    assert_eq!(codes(&run([24, 170], [10, 10])), [""; 0], "it does not depend on it");
}
