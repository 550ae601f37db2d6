//! Two sets of samples against each other: how many times larger, and whether chance explains it.

use crate::random::SplitMix64;

use super::{median_of_sorted, quantile_of_sorted, sorted, student};

/// Rounds of a bootstrap that put the ends of a 95 % interval on the 50th value from each side.
/// With 60 samples a side they take half a millisecond.
pub const ROUNDS: usize = 2_000;

/// Samples a side below which no interval is given, the same as for one median.
pub const LEAST_SAMPLES: usize = 6;

/// How often and with which numbers a bootstrap draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resampling {
    /// Decides every draw.
    pub seed: u64,
    /// Resamples; [`ROUNDS`] unless there are very many intervals to be found.
    pub rounds: usize,
}

impl Resampling {
    /// [`ROUNDS`] resamples.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, rounds: ROUNDS }
    }
}

/// How many times larger one median is than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of the numerator over median of the denominator.
    pub ratio: f64,
    /// 95 % interval by percentile bootstrap; `None` below six samples on either side. Samples of
    /// the normal, the lognormal and a heavy-tailed distribution have it cover in 94 to 97.5 % of
    /// cases, from six samples on.
    pub ci95: Option<[f64; 2]>,
}

/// The ratio of two medians, with an interval that depends on the seed alone.
///
/// `None` when a side is empty, or any sample is not finite and above 0: a ratio of rates or of
/// times then means nothing; nor does one that no number can hold.
///
/// Cost: two sorts, and some 0.2 µs per round, however many samples there are.
///
/// Source: Efron, "Bootstrap methods: another look at the jackknife", 1979.
pub fn ratio(numerator: &[f64], denominator: &[f64], resampling: Resampling) -> Option<Ratio> {
    let usable = |samples: &[f64]| samples.iter().all(|x| x.is_finite() && *x > 0.0);
    if !usable(numerator) || !usable(denominator) {
        return None;
    }
    let (numerator, denominator) = (sorted(numerator), sorted(denominator));
    let ratio = median_of_sorted(&numerator)? / median_of_sorted(&denominator)?;
    if !ratio.is_normal() {
        return None;
    }
    if numerator.len().min(denominator.len()) < LEAST_SAMPLES || resampling.rounds == 0 {
        return Some(Ratio { ratio, ci95: None });
    }
    let mut random = SplitMix64::new(resampling.seed);
    let mut ratios: Vec<f64> = (0..resampling.rounds)
        .map(|_| {
            let above = resampled_median(&numerator, &mut random);
            above / resampled_median(&denominator, &mut random)
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let ends = [quantile_of_sorted(&ratios, 0.025), quantile_of_sorted(&ratios, 0.975)];
    let ci95 = ends.iter().all(|end| end.is_normal()).then_some(ends);
    Some(Ratio { ratio, ci95 })
}

/// The median of as many samples as there are, drawn from them with replacement, in constant time.
///
/// A draw is a rank, ⌊n·U⌋; the middle one of n draws is the rank of the middle one of n evenly
/// spread numbers, which has a beta distribution. For even n the one above it is the least of the
/// remaining n/2, which lie evenly between it and 1. `sorted` must not be empty.
///
/// Source: the distribution of order statistics; David and Nagaraja, "Order statistics", 2.3.
fn resampled_median(sorted: &[f64], random: &mut SplitMix64) -> f64 {
    let n = sorted.len();
    let at = |u: f64| sorted[((u * n as f64) as usize).min(n - 1)];
    let place = n.div_ceil(2) as f64;
    let (below, above) = (random.gamma(place), random.gamma(n as f64 - place + 1.0));
    let middle = below / (below + above);
    if !n.is_multiple_of(2) {
        return at(middle);
    }
    let step = 1.0 - (1.0 - random.unit()).powf(1.0 / place);
    let (low, high) = (at(middle), at(middle + (1.0 - middle) * step));
    low + (high - low) / 2.0
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

/// Products of the two numbers of samples up to which p is exact. Then all counts of arrangements
/// are whole numbers that a double holds: at most 40 over 20 of them.
const EXACT_PAIRS: usize = 400;

/// Tests whether one set tends to have larger samples than the other.
///
/// p is exact where no two samples are equal and there are few: the numbers of both sets multiply
/// to 400 at most. Otherwise it is by normal approximation with corrections for ties and
/// continuity. `None` when a side is empty. All samples equal: p = 1.
///
/// Cost: three sorts; up to 8,000 additions for an exact p.
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
    if variance.is_nan() || variance <= 0.0 {
        return Some(RankSum { u, z: 0.0, p: 1.0 });
    }
    let corrected = (distance.abs() - 0.5).max(0.0);
    let z = corrected.copysign(distance) / variance.sqrt();
    let is_exact = ties == 0.0 && first.len().saturating_mul(second.len()) <= EXACT_PAIRS;
    let p = if is_exact {
        exact_two_sided(u.min(n1 * n2 - u), first.len(), second.len())
    } else {
        student::normal_two_sided(z)
    };
    Some(RankSum { u, z, p })
}

/// Twice the share of arrangements of n1 and n2 distinct samples whose U is at most `least`.
///
/// The arrangements with U = k are the coefficients of the Gaussian binomial n1 + n2 over n1, the
/// product of (1 − qⁿ²⁺ⁱ) ÷ (1 − qⁱ) for i from 1 to n1; multiplied and divided one by one they
/// stay whole numbers.
fn exact_two_sided(least: f64, n1: usize, n2: usize) -> f64 {
    let mut counts = vec![0.0; n1 * n2 + 1];
    counts[0] = 1.0;
    for i in 1..=n1 {
        for k in (n2 + i..counts.len()).rev() {
            counts[k] -= counts[k - n2 - i];
        }
        for k in i..counts.len() {
            counts[k] += counts[k - i];
        }
    }
    let all: f64 = counts.iter().sum();
    let tail: f64 = counts.iter().take(least as usize + 1).sum();
    (2.0 * tail / all).min(1.0)
}

/// The p-values as they count when all of them are looked at: the smallest share of false ones
/// among those called significant at which this one is called so.
///
/// In the order of the input. Where nothing differs at all, the chance that any value is at most
/// α is at most α. Values must lie between 0 and 1.
///
/// Source: Benjamini and Hochberg, "Controlling the false discovery rate", 1995.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 1.0_f64;
    for (rank, index) in order.into_iter().enumerate().rev() {
        least = least.min(p_values[index] * p_values.len() as f64 / (rank + 1) as f64);
        adjusted[index] = least;
    }
    adjusted
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
pub(super) fn complementary_error(x: f64) -> f64 {
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
        // One arrangement of 20 over 10 to each side; R's wilcox.test says 1.083e-05, too.
        assert!((test.p - 2.0 / 184_756.0).abs() < 1e-15, "{}", test.p);
        assert!(test.z < 0.0);
        assert_eq!(mann_whitney(&high, &low).unwrap().u, 100.0);
    }

    #[test]
    fn tests_agree_with_scipy() {
        // scipy.stats.mannwhitneyu 1.17.1, method='exact' and 'asymptotic'.
        let one = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let two = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.060_01, 3.24, 1.290_01];
        let test = mann_whitney(&one, &two).unwrap();
        assert_eq!(test.u, 58.0);
        assert!((test.p - 0.135_911_147_675_853_55).abs() < 1e-14, "{}", test.p);
        assert!((student::normal_two_sided(test.z) - 0.133_320_215_589_627_4).abs() < 1e-12);
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 12.0];
        let seven = [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 13.0];
        let test = mann_whitney(&six, &seven).unwrap();
        assert_eq!(test.u, 6.0);
        assert!((test.p - 0.034_965_034_965_034_96).abs() < 1e-14, "{}", test.p);
        let tied = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0];
        let more = [2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 6.0, 7.0, 7.0];
        let test = mann_whitney(&tied, &more).unwrap();
        assert_eq!(test.u, 13.5);
        assert!((test.p - 0.031_758_957_148_063_71).abs() < 1e-12, "{}", test.p);
    }

    #[test]
    fn exact_and_approximate_meet_where_one_ends() {
        // 20 × 20 is the last exact one.
        let low: Vec<f64> = (0..20).map(|k| f64::from(k) * 2.0).collect();
        let high: Vec<f64> = low.iter().map(|x| x + 9.0).collect();
        let test = mann_whitney(&low, &high).unwrap();
        let approximate = student::normal_two_sided(test.z);
        assert!((test.p / approximate - 1.0).abs() < 0.05, "{} {approximate}", test.p);
    }

    #[test]
    fn corrected_p_values_agree_with_scipy() {
        // scipy.stats.false_discovery_control 1.17.1; the values of Benjamini and Hochberg's paper
        // as its documentation gives them.
        let p = [
            0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216, 0.222, 0.251,
            0.269, 0.275, 0.34, 0.341, 0.384, 0.569, 0.594, 0.696, 0.762, 0.94, 0.942, 0.975,
            0.986,
        ];
        let adjusted = benjamini_hochberg(&p);
        for (index, expected) in [
            (0, 0.025),
            (1, 0.1),
            (2, 0.21),
            (4, 0.21),
            (5, 0.25),
            (6, 0.264_285_714_286),
            (7, 0.491_071_428_571),
            (14, 0.532_812_5),
            (16, 0.564_705_882_353),
            (24, 0.986),
        ] {
            assert!((adjusted[index] - expected).abs() < 1e-11, "{index}: {}", adjusted[index]);
        }
        let mut turned = p;
        turned.reverse();
        let mut back = benjamini_hochberg(&turned);
        back.reverse();
        assert_eq!(back, adjusted);
        assert!(benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn a_resampled_median_is_that_of_drawn_samples() {
        // Of five and of six samples, how often each value is the median of a resample, against
        // drawing them one by one.
        for n in [5_usize, 6] {
            let samples: Vec<f64> = (1..=n).map(|k| k as f64).collect();
            let mut random = SplitMix64::new(5);
            let rounds = 40_000;
            let (mut fast, mut slow) = (vec![0_i32; 2 * n + 1], vec![0_i32; 2 * n + 1]);
            for _ in 0..rounds {
                fast[(resampled_median(&samples, &mut random) * 2.0) as usize] += 1;
                let drawn: Vec<f64> = (0..n).map(|_| samples[random.below(n)]).collect();
                slow[(super::super::median(&drawn).unwrap() * 2.0) as usize] += 1;
            }
            for (fast, slow) in fast.iter().zip(&slow) {
                // Four standard deviations of the difference of two counts, at most.
                assert!((fast - slow).abs() < 600, "{fast} {slow}");
            }
        }
    }

    #[test]
    fn a_million_samples_take_no_longer_than_a_sort() {
        let many: Vec<f64> = (0..1_000_000).map(|k| 100.0 + f64::from(k % 1000) / 100.0).collect();
        let found = ratio(&many, &many, Resampling::seeded(1)).unwrap();
        let [low, high] = found.ci95.unwrap();
        assert!(low > 0.999 && low <= 1.0 && (1.0..1.001).contains(&high), "{low} {high}");
        assert_eq!(mann_whitney(&many, &many).unwrap().p, 1.0);
    }

    #[test]
    fn a_ratio_that_no_number_holds_is_none() {
        let (huge, tiny) = ([f64::MAX; 6], [f64::MIN_POSITIVE; 6]);
        assert_eq!(ratio(&huge, &tiny, Resampling::seeded(1)), None);
        assert_eq!(ratio(&tiny, &huge, Resampling::seeded(1)), None);
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
        let two = ratio(&[2.0; 5], &[1.0; 9], Resampling::seeded(1)).unwrap();
        assert_eq!((two.ratio, two.ci95), (2.0, None));
        assert_eq!(
            ratio(&[2.0; 6], &[1.0; 6], Resampling::seeded(1)).unwrap().ci95,
            Some([2.0, 2.0])
        );
    }

    #[test]
    fn a_ratio_of_what_is_no_rate_is_none() {
        assert_eq!(ratio(&[], &[1.0], Resampling::seeded(1)), None);
        assert_eq!(ratio(&[1.0], &[0.0], Resampling::seeded(1)), None);
        assert_eq!(ratio(&[f64::NAN], &[1.0], Resampling::seeded(1)), None);
    }

    #[test]
    fn the_seed_alone_decides_the_interval() {
        let a: Vec<f64> = (1..30).map(|n| 100.0 + f64::from(n * 37 % 11)).collect();
        let b: Vec<f64> = (1..30).map(|n| 50.0 + f64::from(n * 17 % 7)).collect();
        let nine = || ratio(&a, &b, Resampling::seeded(9)).unwrap();
        assert_eq!(nine(), nine());
        let [low, high] = nine().ci95.unwrap();
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
            let Ratio { ratio, ci95 } = ratio(&a, &b, Resampling::seeded(seed)).unwrap();
            let [low, high] = ci95.unwrap();
            prop_assert!(low <= ratio * 1.000_001 && ratio <= high * 1.000_001);
        }
    }
}
