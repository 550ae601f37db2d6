//! Two sets of samples against each other: how many times larger, and whether chance explains it.

use crate::random::SplitMix64;

use super::{median, quantile, sorted};

/// Resamples behind a bootstrap interval. 2000 put the ends of a 95 % interval on the 50th value
/// from each side, and 60 samples a side take a few milliseconds.
const RESAMPLES: usize = 2_000;

/// Samples a side below which no interval is given, the same as for one median.
const LEAST_SAMPLES: usize = 6;

/// How many times larger one median is than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of the numerator over median of the denominator.
    pub ratio: f64,
    /// 95 % interval by percentile bootstrap; `None` below six samples on either side. Medians
    /// of few samples take few values, so close to six the interval is a little too narrow.
    pub ci95: Option<[f64; 2]>,
}

/// The ratio of two medians, with an interval that depends on `seed` alone.
///
/// `None` when a side is empty, or any sample is not finite and above 0: a ratio of rates or of
/// times then means nothing.
pub fn ratio(numerator: &[f64], denominator: &[f64], seed: u64) -> Option<Ratio> {
    let usable = |samples: &[f64]| samples.iter().all(|x| x.is_finite() && *x > 0.0);
    if !usable(numerator) || !usable(denominator) {
        return None;
    }
    let ratio = median(numerator)? / median(denominator)?;
    if numerator.len().min(denominator.len()) < LEAST_SAMPLES {
        return Some(Ratio { ratio, ci95: None });
    }
    let mut random = SplitMix64::new(seed);
    let mut resampled_median = |samples: &[f64]| {
        let drawn: Vec<f64> =
            samples.iter().map(|_| samples[random.below(samples.len())]).collect();
        median(&drawn).unwrap_or(f64::NAN)
    };
    let ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| resampled_median(numerator) / resampled_median(denominator))
        .collect();
    let ci95 = Some([quantile(&ratios, 0.025)?, quantile(&ratios, 0.975)?]);
    Some(Ratio { ratio, ci95 })
}

/// Result of a Mann–Whitney U test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// Pairs in which the first set has the larger sample; ties count one half.
    pub u: f64,
    /// Distance of `u` from what chance gives, in standard deviations, continuity-corrected.
    pub z: f64,
    /// Two-sided probability of a distance at least this large by chance alone.
    pub p: f64,
}

/// Tests whether one set tends to have larger samples than the other.
///
/// By normal approximation with correction for ties, which is rough below about eight samples a
/// side. `None` when a side is empty. All samples equal: p = 1.
///
/// Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically
/// larger than the other", 1947.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankSum> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (n1, n2) = (first.len() as f64, second.len() as f64);
    let second_sorted = sorted(second);
    let u: f64 = first
        .iter()
        .map(|x| {
            let below = second_sorted.partition_point(|y| y < x);
            let not_above = second_sorted.partition_point(|y| y <= x);
            (below + not_above) as f64 / 2.0
        })
        .sum();
    let total = n1 + n2;
    let ties = tie_term(&[first, second].concat());
    let variance = n1 * n2 / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)));
    let distance = u - n1 * n2 / 2.0;
    if variance <= 0.0 {
        return Some(RankSum { u, z: 0.0, p: 1.0 });
    }
    let corrected = (distance.abs() - 0.5).max(0.0);
    let z = corrected.copysign(distance) / variance.sqrt();
    Some(RankSum { u, z, p: complementary_error(z.abs() / std::f64::consts::SQRT_2).min(1.0) })
}

/// Σ (t³ − t) over the groups of equal samples.
fn tie_term(samples: &[f64]) -> f64 {
    sorted(samples)
        .chunk_by(|a, b| a == b)
        .map(|group| {
            let t = group.len() as f64;
            t * t * t - t
        })
        .sum()
}

/// erfc(x) for x ≥ 0, to about 1e-14.
///
/// Source: the power series of erf below 2.5 and the continued fraction above, Abramowitz and
/// Stegun 7.1.6 and 7.1.14.
fn complementary_error(x: f64) -> f64 {
    let scale = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.5 {
        let (mut term, mut sum, mut index) = (x, x, 1.0);
        while term > 1e-17 * sum {
            term *= 2.0 * x * x / (2.0 * index + 1.0);
            sum += term;
            index += 1.0;
        }
        return 1.0 - 2.0 * scale * sum;
    }
    let tail = (1..=60).rev().fold(x, |below, k| x + f64::from(k) / 2.0 / below);
    scale / tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn erfc_at_known_points() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 0.004_677_734_981_047_266),
            (2.6, 0.000_236_034_416_529_349_2),
            (4.0, 1.541_725_790_028_002e-8),
        ] {
            let got = complementary_error(x);
            assert!((got - expected).abs() <= 1e-9 * expected.max(1e-3), "{x}: {got}");
        }
    }

    #[test]
    fn sets_that_do_not_overlap_differ() {
        let low: Vec<f64> = (1..=10).map(f64::from).collect();
        let high: Vec<f64> = (11..=20).map(f64::from).collect();
        let test = mann_whitney(&low, &high).unwrap();
        assert_eq!(test.u, 0.0);
        // The figure that R's wilcox.test(exact = FALSE) gives.
        assert!((test.p - 0.000_182_671_8).abs() < 1e-8, "{}", test.p);
        assert!(test.z < 0.0);
        assert_eq!(mann_whitney(&high, &low).unwrap().u, 100.0);
    }

    #[test]
    fn equal_sets_do_not_differ() {
        let same = [3.0; 8];
        assert_eq!(mann_whitney(&same, &same).unwrap().p, 1.0);
        assert_eq!(mann_whitney(&[], &same), None);
        let spread = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(mann_whitney(&spread, &spread).unwrap().p, 1.0);
    }

    #[test]
    fn a_ratio_needs_six_samples_for_its_interval() {
        let two = ratio(&[2.0; 5], &[1.0; 9], 1).unwrap();
        assert_eq!((two.ratio, two.ci95), (2.0, None));
        assert_eq!(ratio(&[2.0; 6], &[1.0; 6], 1).unwrap().ci95, Some([2.0, 2.0]));
    }

    #[test]
    fn a_ratio_of_what_is_no_rate_is_none() {
        assert_eq!(ratio(&[], &[1.0], 1), None);
        assert_eq!(ratio(&[1.0], &[0.0], 1), None);
        assert_eq!(ratio(&[f64::NAN], &[1.0], 1), None);
    }

    #[test]
    fn the_seed_alone_decides_the_interval() {
        let a: Vec<f64> = (1..30).map(|n| 100.0 + f64::from(n * 37 % 11)).collect();
        let b: Vec<f64> = (1..30).map(|n| 50.0 + f64::from(n * 17 % 7)).collect();
        assert_eq!(ratio(&a, &b, 9), ratio(&a, &b, 9));
        let [low, high] = ratio(&a, &b, 9).unwrap().ci95.unwrap();
        assert!(low < 2.0 && high > 1.9 && low <= high);
    }

    proptest! {
        // Each case is costly: large histograms, thousands of resamples.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn u_counts_the_pairs(
            a in prop::collection::vec(0_i32..20, 1..25),
            b in prop::collection::vec(0_i32..20, 1..25),
        ) {
            let floats = |v: &[i32]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let test = mann_whitney(&floats(&a), &floats(&b)).unwrap();
            let mut naive = 0.0;
            for x in &a {
                for y in &b {
                    naive += match x.cmp(y) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
            prop_assert_eq!(test.u, naive);
            prop_assert!((0.0..=1.0).contains(&test.p));
            let other = mann_whitney(&floats(&b), &floats(&a)).unwrap();
            prop_assert!((test.p - other.p).abs() < 1e-12);
            prop_assert!((test.u + other.u - (a.len() * b.len()) as f64).abs() < 1e-9);
        }

        #[test]
        fn the_interval_holds_the_ratio(
            a in prop::collection::vec(1.0..2.0, 6..20),
            b in prop::collection::vec(1.0..2.0, 6..20),
            seed: u64,
        ) {
            let Ratio { ratio, ci95 } = ratio(&a, &b, seed).unwrap();
            let [low, high] = ci95.unwrap();
            prop_assert!(low <= ratio * 1.000_001 && ratio <= high * 1.000_001);
        }
    }
}
