//! What the verdicts are worth, by simulation: many comparisons whose truth is known. Seeds are
//! fixed, so that a test gives the same each time.

use serde_json::{Map, json};

use super::super::noise::{Noise, learn};
use super::*;
use crate::fixture::record;
use crate::random::SplitMix64;
use crate::record::Outcome;
use crate::statistics::compare::{Resampling, ratio};

/// Rounds of each bootstrap here: enough for ends of intervals, and fast.
const ROUNDS: usize = 200;

/// One machine: rows with levels of their own, noise between samples and between runs.
struct Machine {
    rows: usize,
    samples: usize,
    sample_noise: f64,
    run_noise: f64,
    random: SplitMix64,
}

impl Machine {
    /// A run in which the first `changed` rows are `factor` times as large.
    fn run(&mut self, changed: usize, factor: f64) -> Record {
        let rows = (0..self.rows).map(|index| {
            let factor = if index < changed { factor } else { 1.0 };
            let level = 1000.0 * factor * (self.run_noise * self.random.normal()).exp();
            let draw = |_| level * (self.sample_noise * self.random.normal()).exp();
            let samples: Vec<f64> = (0..self.samples).map(draw).collect();
            let mut parameters = Map::new();
            parameters.insert("row".to_owned(), json!(index.to_string()));
            Outcome {
                id: "area/test".to_owned(),
                parameters,
                unit: "bytes/s".to_owned(),
                median: crate::statistics::median(&samples),
                n: samples.len() as u64,
                samples,
                ..Outcome::default()
            }
        });
        let rows = rows.collect();
        let mut record = record(rows);
        record.start.environment = json!({"cpu_model": "X", "cpus_online": 2});
        record
    }

    fn compare(&mut self, changed: usize, factor: f64, threshold: &Threshold) -> Comparison {
        let (old, new) = ([self.run(0, 1.0)], [self.run(changed, factor)]);
        let runs = |name, records| Runs { name, records };
        compare_in(runs("old", &old), runs("new", &new), threshold, ROUNDS)
    }
}

#[test]
fn intervals_hold_the_truth_in_93_to_97_of_100() {
    // Counts of both sides and distributions: normal, skewed, heavy-tailed.
    let mut random = SplitMix64::new(1);
    for (n, m) in [(6, 6), (9, 12), (20, 20), (31, 60)] {
        for shape in 0..3 {
            let mut draw = |count: usize, level: f64| -> Vec<f64> {
                let mut one = || match shape {
                    0 => 1.0 + 0.02 * random.normal(),
                    1 => (0.2 * random.normal()).exp(),
                    // Student's t with three degrees of freedom.
                    _ => 1.0 + 0.01 * random.normal() / (random.gamma(1.5) * 2.0 / 3.0).sqrt(),
                };
                (0..count).map(|_| level * one()).collect()
            };
            let trials = 1_000;
            let mut held = 0;
            for seed in 0..trials {
                let (new, old) = (draw(n, 1.3), draw(m, 1.0));
                let resampling = Resampling { seed, rounds: 400 };
                let [low, high] = ratio(&new, &old, resampling).unwrap().ci95.unwrap();
                held += u32::from(low <= 1.3 && 1.3 <= high);
            }
            let share = f64::from(held) / trials as f64;
            assert!((0.93..=0.975).contains(&share), "{n} {m} shape {shape}: {share}");
        }
    }
}

#[test]
fn where_nothing_changed_one_comparison_in_twenty_claims_something_at_most() {
    let trials = 150;
    // No noise between runs, and a threshold so small that only the tests stand in the way.
    let mut still = Machine {
        rows: 20,
        samples: 10,
        sample_noise: 0.02,
        run_noise: 0.0,
        random: SplitMix64::new(2),
    };
    let false_ones = |comparison: Comparison| {
        usize::from(comparison.counts.better + comparison.counts.worse > 0)
    };
    let claimed: usize =
        (0..trials).map(|_| false_ones(still.compare(0, 1.0, &Threshold::Given(1e-6)))).sum();
    assert!(claimed * 20 <= trials, "{claimed} of {trials} with independent samples");
    // Runs that differ by more than their samples say; the noise is learned from three others.
    let mut restless = Machine {
        rows: 20,
        samples: 10,
        sample_noise: 0.01,
        run_noise: 0.04,
        random: SplitMix64::new(3),
    };
    let mut claimed = 0;
    for _ in 0..trials {
        let known: Vec<Record> = (0..3).map(|_| restless.run(0, 1.0)).collect();
        let noise = Threshold::Learned(Noise::of(&learn(&known).unwrap()));
        claimed += false_ones(restless.compare(0, 1.0, &noise));
    }
    assert!(claimed * 20 <= trials, "{claimed} of {trials} with noise between runs");
}

#[test]
fn where_nothing_changed_most_rows_are_the_same() {
    let mut machine = Machine {
        rows: 40,
        samples: 12,
        sample_noise: 0.02,
        run_noise: 0.03,
        random: SplitMix64::new(4),
    };
    let known: Vec<Record> = (0..3).map(|_| machine.run(0, 1.0)).collect();
    let noise = Threshold::Learned(Noise::of(&learn(&known).unwrap()));
    let same: u64 = (0..5).map(|_| machine.compare(0, 1.0, &noise).counts.same).sum();
    assert!(same > 170, "{same} of 200");
}

#[test]
fn a_change_of_a_tenth_in_noise_of_a_fiftieth_is_found() {
    let mut machine = Machine {
        rows: 20,
        samples: 10,
        sample_noise: 0.02,
        run_noise: 0.0,
        random: SplitMix64::new(5),
    };
    let (mut found, mut wrong) = (0, 0);
    for _ in 0..20 {
        let comparison = machine.compare(5, 0.90, &Threshold::Given(0.05));
        found += comparison.rows[..5].iter().filter(|r| r.verdict == Verdict::Worse).count();
        wrong += comparison.rows[5..].iter().filter(|r| r.verdict == Verdict::Worse).count();
    }
    assert!(found >= 95, "{found} of 100");
    assert_eq!(wrong, 0);
}

#[test]
fn a_change_of_a_tenth_is_found_with_learned_noise_too() {
    let mut machine = Machine {
        rows: 20,
        samples: 12,
        sample_noise: 0.02,
        run_noise: 0.005,
        random: SplitMix64::new(6),
    };
    let mut found = 0;
    for _ in 0..20 {
        let known: Vec<Record> = (0..4).map(|_| machine.run(0, 1.0)).collect();
        let noise = Threshold::Learned(Noise::of(&learn(&known).unwrap()));
        let comparison = machine.compare(5, 1.0 / 0.9, &noise);
        found += comparison.rows[..5].iter().filter(|r| r.verdict == Verdict::Better).count();
    }
    assert!(found >= 85, "{found} of 100");
}

#[test]
fn the_detectable_change_is_found_in_four_of_five_cases() {
    let mut machine = Machine {
        rows: 20,
        samples: 15,
        sample_noise: 0.02,
        run_noise: 0.0,
        random: SplitMix64::new(7),
    };
    let threshold = Threshold::Given(0.03);
    let detectable: Vec<f64> = (0..10)
        .flat_map(|_| machine.compare(0, 1.0, &threshold).rows)
        .map(|row| row.detectable_ratio.unwrap())
        .collect();
    let change = 1.0 + crate::statistics::median(&detectable).unwrap();
    let found: u64 = (0..20).map(|_| machine.compare(20, change, &threshold).counts.better).sum();
    let share = found as f64 / 400.0;
    assert!((0.70..=0.92).contains(&share), "{share} at {change}");
}
