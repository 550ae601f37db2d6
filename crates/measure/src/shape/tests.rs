//! Synthetic curves with known knees, and curves that have none.

use proptest::prelude::*;

use super::*;
use crate::random::SplitMix64;

/// A curve of bins of a tenth of a second.
pub(in crate::shape) fn curve(rates: &[f64]) -> Vec<[f64; 2]> {
    rates.iter().enumerate().map(|(index, rate)| [index as f64 / 10.0, *rate]).collect()
}

/// `count` rates around `level`, normally distributed with a deviation of `noise` levels.
pub(in crate::shape) fn noisy(
    random: &mut SplitMix64,
    count: usize,
    level: f64,
    noise: f64,
) -> Vec<f64> {
    (0..count).map(|_| (level * (1.0 + noise * normal(random))).max(0.0)).collect()
}

/// A number from the standard normal distribution: twelve uniform ones have variance 1.
fn normal(random: &mut SplitMix64) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

pub(in crate::shape) fn uniform(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn levels(parts: &[(usize, f64)]) -> Vec<f64> {
    parts.iter().flat_map(|(count, rate)| vec![*rate; *count]).collect()
}

fn shape_of(parts: &[(usize, f64)]) -> Option<Shape> {
    shape(&curve(&levels(parts)))
}

#[test]
fn a_level_that_ends_half_way_through_a_bin_has_a_knee() {
    for between in [20.0, 29.0, 30.0, 31.0, 40.0] {
        let found = shape_of(&[(6, 53.0), (1, between), (30, 7.5)]).unwrap();
        assert_eq!((found.burst_per_s, found.sustained_per_s), (53.0, 7.5), "{between}");
    }
}

#[test]
fn a_step_is_found_where_it_is() {
    let found = shape_of(&[(20, 500.0), (40, 100.0)]).unwrap();
    assert_eq!((found.burst_per_s, found.knee_s, found.sustained_per_s), (500.0, 2.0, 100.0));
    assert_eq!(found.step_ratio, 0.2);
    let rise = shape_of(&[(10, 100.0), (10, 150.0)]).unwrap();
    assert_eq!((rise.knee_s, rise.step_ratio), (1.0, 1.5));
}

#[test]
fn a_bin_that_spans_the_knee_belongs_to_either_side() {
    let found = shape_of(&[(20, 500.0), (1, 300.0), (20, 100.0)]).unwrap();
    assert!([2.0, 2.1].contains(&found.knee_s), "{found:?}");
    assert_eq!((found.burst_per_s, found.sustained_per_s), (500.0, 100.0));
}

#[test]
fn stalls_do_not_hide_a_step() {
    let mut rates = levels(&[(10, 500.0), (30, 200.0)]);
    for stall in [4, 17, 30] {
        rates[stall] = 1.0;
    }
    let found = shape(&curve(&rates)).unwrap();
    assert_eq!((found.burst_per_s, found.knee_s, found.sustained_per_s), (500.0, 1.0, 200.0));
}

#[test]
fn further_steps_down_lead_to_the_last_level() {
    let found = shape_of(&[(20, 900.0), (20, 400.0), (40, 100.0)]).unwrap();
    assert_eq!((found.burst_per_s, found.sustained_per_s), (900.0, 100.0));
    assert_eq!(found.knee_s, 2.0);
    let back = shape_of(&[(20, 500.0), (60, 100.0), (6, 500.0)]).unwrap();
    assert_eq!((back.knee_s, back.sustained_per_s), (2.0, 100.0), "a later rise is not followed");
}

#[test]
fn a_step_below_ten_percent_or_five_bins_is_none() {
    assert_eq!(shape_of(&[(20, 100.0), (20, 91.0)]), None);
    assert!(shape_of(&[(20, 100.0), (20, 89.0)]).is_some());
    assert_eq!(shape_of(&[(4, 100.0), (30, 10.0)]), None);
    assert_eq!(shape_of(&[(30, 100.0), (3, 10.0)]), None);
    assert_eq!(shape_of(&[(15, 100.0), (15, 0.0)]), None, "a stop is no level");
}

#[test]
fn one_count_more_is_no_other_level() {
    // Sequential reads of a disk beside other programs: 25 ms hold 4 or 5 times 16 requests.
    let counts = "3454445444445455555555455455";
    let rates: Vec<f64> = counts.bytes().map(|count| f64::from(count - b'0') * 6.7e8).collect();
    assert!(shape(&curve(&rates)).is_none());
}

#[test]
fn decays_and_equal_stairs_are_slow_trends() {
    for slowness in [10.0, 20.0, 40.0] {
        let decay: Vec<f64> =
            (0..60).map(|i| 100.0 + 100.0 * f64::exp(-f64::from(i) / slowness)).collect();
        assert_eq!(shape(&curve(&decay)), None, "decay over {slowness} bins");
    }
    let stairs: Vec<(usize, f64)> = (0..8).map(|i| (6, 100.0 - 10.0 * f64::from(i))).collect();
    assert_eq!(shape_of(&stairs), None);
}

#[test]
fn nothing_of_too_little_or_unsound() {
    let good = curve(&levels(&[(6, 500.0), (6, 100.0)]));
    assert!(shape(&good).is_some());
    for few in 0..BINS_LEAST {
        assert_eq!(shape(&good[..few]), None);
    }
    for (place, value) in
        [([3, 1], f64::NAN), ([3, 1], -1.0), ([3, 0], 0.0), ([3, 0], f64::INFINITY)]
    {
        let mut bad = good.clone();
        bad[place[0]][place[1]] = value;
        assert_eq!(shape(&bad), None, "{value} at {place:?}");
    }
    assert_eq!(shape(&curve(&[0.0; 30])), None);
}

/// How often a curve without a change of level is said to have one, of 3000 with each noise.
#[test]
fn noise_is_hardly_ever_called_a_knee() {
    let mut random = SplitMix64::new(11);
    let mut found = |bins: usize, noise: f64, memory: f64| {
        (0..3000)
            .filter(|_| {
                let mut state = normal(&mut random);
                let rates: Vec<f64> = (0..bins)
                    .map(|_| {
                        state =
                            memory * state + (1.0 - memory * memory).sqrt() * normal(&mut random);
                        (100.0 * (1.0 + noise * state)).max(0.0)
                    })
                    .collect();
                shape(&curve(&rates)).is_some()
            })
            .count()
    };
    for (bins, noise, memory, most) in [
        (12, 0.1, 0.0, 30),
        (12, 0.3, 0.0, 30),
        (30, 0.3, 0.0, 3),
        (100, 0.3, 0.0, 1),
        // A rate that wanders: a bin keeps half, or four fifths, of the last one's deviation.
        (30, 0.1, 0.5, 20),
        (30, 0.1, 0.8, 120),
        (100, 0.1, 0.8, 10),
    ] {
        let count = found(bins, noise, memory);
        println!("{bins} bins, noise {noise}, memory {memory}: {count} of 3000");
        assert!(count <= most, "{bins} bins, noise {noise}, memory {memory}: {count} of 3000");
    }
}

/// The definition: every split, each sum from scratch.
fn naive_two_levels(values: &[f64], least: usize) -> Option<TwoLevels> {
    let error = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    (least..values.len())
        .filter(|split| values.len() - split >= least)
        .map(|split| TwoLevels {
            split,
            squared_error: error(&values[..split]) + error(&values[split..]),
        })
        .min_by(|a, b| a.squared_error.total_cmp(&b.squared_error))
}

/// Curves of each test below that count. Their seeds are fixed: 6 ramps and 2 stalls of 100,000 do pass for
/// knees, so that a test that draws new ones fails at some time.
const CURVES: u64 = 6_000;

/// Random curves of [`CURVES`] seeds for which something holds.
fn count(holds: impl Fn(&mut SplitMix64) -> bool) -> usize {
    (0..CURVES).filter(|seed| holds(&mut SplitMix64::new(*seed))).count()
}

/// A whole number from `from` up to below `below`.
fn among(random: &mut SplitMix64, from: usize, below: usize) -> usize {
    from + (uniform(random) * (below - from) as f64) as usize
}

#[test]
fn a_noisy_step_is_found_within_two_bins() {
    let found = count(|random| {
        let [before, after] = [0; 2].map(|_| among(random, LEVEL_BINS_LEAST + 3, 80));
        let [ratio, noise] = [0.1 + 0.6 * uniform(random), 0.05 * uniform(random)];
        let mut rates = noisy(random, before, 1e8, noise);
        rates.extend(noisy(random, after, 1e8 * ratio, noise));
        let fallen = shape(&curve(&rates));
        rates.reverse();
        let risen = shape(&curve(&rates));
        let is_at = |found: Option<Shape>, bins: usize| {
            found.is_some_and(|found| (found.knee_s * 10.0 - bins as f64).abs() <= 2.01)
        };
        is_at(fallen, before)
            && is_at(risen, after)
            && fallen.is_some_and(|found| (found.step_ratio / ratio - 1.0).abs() < 0.1)
    });
    assert!(found as u64 >= CURVES - 1, "{found}");
}

#[test]
fn a_ramp_is_hardly_ever_a_knee() {
    let found = count(|random| {
        let bins = among(random, BINS_LEAST, 120);
        let [end, noise] = [0.05 + 2.95 * uniform(random), 0.03 * uniform(random)];
        let mut rates = noisy(random, bins, 1e8, noise);
        for (i, rate) in rates.iter_mut().enumerate() {
            *rate *= 1.0 + (end - 1.0) * i as f64 / bins as f64;
        }
        shape(&curve(&rates)).is_some()
    });
    assert!(found <= 2, "{found}");
}

#[test]
fn a_single_stall_is_hardly_ever_a_knee() {
    let found = count(|random| {
        let [bins, length] = [among(random, BINS_LEAST, 120), among(random, 1, 4)];
        let noise = 0.05 * uniform(random);
        let mut rates = noisy(random, bins, 1e8, noise);
        let from = among(random, 0, bins - length);
        rates[from..from + length].fill(1e6);
        shape(&curve(&rates)).is_some()
    });
    assert!(found <= 2, "{found}");
}

proptest! {
    #[test]
    fn the_fit_is_that_of_the_definition(values in prop::collection::vec(0.0..1e9, 0..60)) {
        let fit = two_levels(&values, LEVEL_BINS_LEAST);
        let naive = naive_two_levels(&values, LEVEL_BINS_LEAST);
        prop_assert_eq!(fit.is_some(), naive.is_some());
        if let (Some(fit), Some(naive)) = (fit, naive) {
            // Two splits may be equally good; their errors then differ by rounding only.
            prop_assert!((fit.squared_error - naive.squared_error).abs()
                <= 1e-9 * naive.squared_error.max(1.0));
        }
    }

    #[test]
    fn pauses_that_return_are_no_knee(
        seed: u64, period in 3usize..16, pause in 0.1..0.6, periods in 3usize..8, low in 0.1..0.8,
    ) {
        let mut random = SplitMix64::new(seed);
        let paused = ((pause * period as f64) as usize).max(1);
        let mut rates = noisy(&mut random, (period * periods).max(BINS_LEAST), 1e8, 0.02);
        for (index, rate) in rates.iter_mut().enumerate() {
            let phase = index % period;
            *rate *= if phase >= period - paused { low } else { 1.0 };
        }
        prop_assert_eq!(shape(&curve(&rates)), None);
        // Teeth: the rate falls through each period and is back at its beginning.
        for (index, rate) in rates.iter_mut().enumerate() {
            let fall = (index % period) as f64 / period as f64;
            *rate = 1e8 * (1.0 - (1.0 - low) * fall);
        }
        prop_assert_eq!(shape(&curve(&rates)), None);
    }

    #[test]
    fn the_scale_does_not_matter(
        seed: u64, bins in 12usize..60, split in 0.0..1.0, ratio in 0.2..1.2, power in -40i32..40,
    ) {
        let mut random = SplitMix64::new(seed);
        let burst = (bins as f64 * split) as usize;
        let mut rates = noisy(&mut random, burst, 1.0, 0.05);
        rates.extend(noisy(&mut random, bins - burst, ratio, 0.05));
        let scale = 2f64.powi(power);
        let scaled: Vec<f64> = rates.iter().map(|rate| rate * scale).collect();
        let (plain, scaled) = (shape(&curve(&rates)), shape(&curve(&scaled)));
        prop_assert_eq!(plain.map(|s| (s.knee_s, s.step_ratio)), scaled.map(|s| (s.knee_s, s.step_ratio)));
        prop_assert_eq!(plain.map(|s| s.burst_per_s * scale), scaled.map(|s| s.burst_per_s));
    }
}
