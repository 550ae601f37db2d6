//! Limits that are there, flat devices that have none, and how often chance looks like a limit.

use proptest::prelude::*;

use super::*;
use crate::random::SplitMix64;
use crate::shape::tests::{curve, noisy, uniform};

const BYTES: &str = "bytes/s";
const OPERATIONS: &str = "operations/s";

/// What a figure is called, if it is flat to the last byte.
fn called(value: f64, unit: &str) -> Option<(f64, &'static str)> {
    plateau(&curve(&[value; 20]), unit).map(|found| (found.round_figure, found.unit_words))
}

#[test]
fn round_figures_are_named_in_their_unit() {
    assert_eq!(called(100e6, BYTES), Some((100.0, "MB/s")));
    assert_eq!(called(99.2e6, BYTES), Some((100.0, "MB/s")), "just below a limit");
    assert_eq!(called(101.0e6, BYTES), None, "above it is no limit");
    assert_eq!(called(125.0 * MIB, BYTES), Some((125.0, "MiB/s")));
    assert_eq!(called(64.0 * MIB, BYTES), Some((64.0, "MiB/s")));
    assert_eq!(called(1.25e9, BYTES), Some((1250.0, "MB/s")));
    assert_eq!(called(3000.0, OPERATIONS), Some((3000.0, "operations/s")));
    assert_eq!(called(3600.0, OPERATIONS), None);
    assert_eq!(called(3000.0, "ns"), None);
    assert_eq!(called(0.0, BYTES), None);
}

#[test]
fn a_plateau_needs_ten_bins_and_sound_ones() {
    assert!(plateau(&curve(&[100e6; 10]), BYTES).is_some());
    assert_eq!(plateau(&curve(&[100e6; 9]), BYTES), None);
    assert_eq!(plateau(&[], BYTES), None);
    assert_eq!(plateau(&curve(&[f64::NAN; 20]), BYTES), None);
}

#[test]
fn the_plateau_after_a_burst_is_the_one_that_counts() {
    let rates = [vec![737e6; 12], vec![100e6; 20]].concat();
    let found = plateau(&curve(&rates), BYTES).unwrap();
    assert_eq!((found.round_figure, found.unit_words), (100.0, "MB/s"));
    let short = [vec![737e6; 12], vec![100e6; 9]].concat();
    assert_eq!(plateau(&curve(&short), BYTES), None, "nine bins of it are too few");
}

#[test]
fn stalls_and_an_uneven_start_do_no_harm() {
    let mut rates = vec![500e6; 30];
    (rates[0], rates[7], rates[20]) = (900e6, 0.0, 80e6);
    assert_eq!(flat(&rates), Some(500e6));
    assert!(plateau(&curve(&rates), BYTES).is_some());
}

/// Bytes that a bucket lets through in each bin, refilled in slices; never more than the bucket.
fn bucket(bins: usize, slice_s: f64, bin_s: f64) -> Vec<f64> {
    let mut passed = 0.0;
    (1..=bins)
        .map(|bin| {
            let slices = (bin as f64 * bin_s / slice_s + 1e-9).floor();
            let before = std::mem::replace(&mut passed, slices * slice_s * 200e6);
            (passed - before) / bin_s
        })
        .collect()
}

#[test]
fn a_bucket_refilled_in_slices_is_flat_over_groups() {
    // Bins of 100 ms hold 2 or 3 slices of 40 ms, by turns, or 1 or 2 of 60 ms in turns of three.
    for slice_s in [0.04, 0.06, 0.05, 0.1] {
        let rates = bucket(60, slice_s, 0.1);
        let found = plateau(&curve(&rates), BYTES).unwrap();
        assert_eq!((found.round_figure, found.unit_words), (200.0, "MB/s"), "slice {slice_s}");
    }
}

#[test]
fn wider_noise_and_trends_are_not_flat() {
    let mut random = SplitMix64::new(5);
    let mut count_flat = |bins: usize, noise: f64| {
        (0..2000).filter(|_| flat(&noisy(&mut random, bins, 1e8, noise)).is_some()).count()
    };
    for (bins, noise, least, most) in [
        (60, 0.010, 1990, 2000),
        (60, 0.015, 600, 1900),
        (60, 0.030, 0, 100),
        (10, 0.030, 0, 400),
        (60, 0.050, 0, 0),
    ] {
        let count = count_flat(bins, noise);
        println!("{bins} bins, noise {noise}: {count} of 2000 are flat");
        assert!((least..=most).contains(&count), "{bins} bins, noise {noise}: {count}");
    }
    let ramp: Vec<f64> = (0..40).map(|i| 100e6 + 0.5e6 * f64::from(i)).collect();
    assert!(flat(&ramp).is_none());
}

/// Share of the sizes between two ends, spaced evenly in their logarithm, that look round.
fn share(unit: &str, low: f64, high: f64) -> f64 {
    let steps = 30_000;
    let hits = (0..steps)
        .map(|step| low * (high / low).powf((f64::from(step) + 0.5) / f64::from(steps)))
        .filter(|value| round_figure(*value, unit).is_some())
        .count();
    hits as f64 / f64::from(steps)
}

/// The figures that the doc comment of `plateau` derives.
#[test]
fn chance_looks_like_a_limit_less_than_once_in_seven() {
    let per_decade = (1.005f64 / 0.990).ln() / 10f64.ln();
    let per_octave = (1.005f64 / 0.990).ln() / 2f64.ln();
    // Whole decades; three of them are ten octaves but for 0.3 %.
    let operations = share(OPERATIONS, 100.0, 1e6);
    assert!((operations - 11.0 * per_decade).abs() < 0.001, "{operations}");
    let bytes = share(BYTES, 18e6, 18e9);
    let derived = 17.0 * per_decade + per_octave;
    println!("operations {operations:.4}, bytes {bytes:.4} of {derived:.4} derived");
    assert!((bytes - derived).abs() < 0.001, "{bytes} of {derived}");
    // No stretch in which real devices lie is much worse than the whole.
    for low in [20e6, 50e6, 100e6, 200e6, 500e6, 1e9] {
        let stretch = share(BYTES, low, low * 10.0);
        println!("bytes from {low:e}: {stretch:.4}");
        assert!(stretch < 0.15, "{low}: {stretch}");
    }
}

/// The same through the whole function: flat devices of random speed with noise of 0.5 %.
#[test]
fn flat_devices_of_random_speed_are_named_as_rarely() {
    let mut random = SplitMix64::new(17);
    let devices = 2000;
    let named = (0..devices)
        .filter(|_| {
            let speed = 20e6 * 1000f64.powf(uniform(&mut random));
            plateau(&curve(&noisy(&mut random, 50, speed, 0.005)), BYTES).is_some()
        })
        .count();
    println!("{named} of {devices} flat devices");
    assert!((named as f64) < 0.15 * f64::from(devices), "{named}");
}

proptest! {
    #[test]
    fn a_limit_is_found_under_noise_and_stalls(
        seed: u64, power in 1i32..5, which in 0..ROUND.len(), bins in 20usize..100, stall: bool,
    ) {
        let limit = ROUND[which] * 10f64.powi(power) * MB;
        let mut rates = noisy(&mut SplitMix64::new(seed), bins, limit * 0.9975, 0.004);
        if stall {
            rates[bins / 2] = 0.0;
        }
        let found = plateau(&curve(&rates), BYTES).unwrap();
        prop_assert_eq!(found.unit_words, "MB/s");
        prop_assert!((found.round_figure * MB / limit - 1.0).abs() < 1e-12, "{:?}", found);
        prop_assert!((flat(&rates).unwrap() / limit - 0.9975).abs() < 0.005);
    }

    #[test]
    fn ten_times_the_rate_is_ten_times_the_figure(which in 0..ROUND.len(), off in -0.0099..0.0049) {
        let value = ROUND[which] * 1e7 * (1.0 + off);
        let (low, high) = (called(value, OPERATIONS), called(value / 10.0, OPERATIONS));
        prop_assert_eq!(low.map(|l| l.0), high.map(|h| h.0 * 10.0));
    }
}
