//! What can be said about a handful of samples without assuming how they are distributed.
//!
//! Everything rests on order: median, order statistics, ranks. Samples must be finite; whoever
//! calls has checked that. What other runs will find: [`interval`]; many tests at once:
//! [`compare`]; distributions that tests need: [`student`].

pub mod compare;
pub mod interval;
pub mod pool;
pub mod student;

use std::borrow::Borrow;

/// Probability that a 95 % interval leaves on each side.
const TAIL: f64 = 0.025;

/// Scales a median absolute deviation to the standard deviation of normal data: 1 ÷ Φ⁻¹(3/4).
pub const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;

/// Scales a mean absolute deviation likewise: √(π/2).
const MEAN_DEVIATION_TO_SIGMA: f64 = 1.253_314_137_315_5;

/// Modified z-score beyond which a sample is flagged.
///
/// Source: Iglewicz and Hoaglin, "How to detect and handle outliers", 1993.
pub const OUTLIER_SCORE: f64 = 3.5;

/// Returns a sorted copy.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The median; the mean of the two middle samples when their number is even. `None` of nothing.
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let high = *sorted.get(sorted.len() / 2)?;
    if !sorted.len().is_multiple_of(2) {
        return Some(high);
    }
    let low = sorted[sorted.len() / 2 - 1];
    // Not (low + high) / 2, which overflows for large samples.
    Some(low + (high - low) / 2.0)
}

/// Smallest and largest sample; `None` of nothing.
pub fn extremes(samples: impl IntoIterator<Item = impl Borrow<f64>>) -> Option<(f64, f64)> {
    let mut samples = samples.into_iter().map(|sample| -> f64 { *sample.borrow() });
    let first = samples.next()?;
    Some(samples.fold((first, first), |(low, high), x| (low.min(x), high.max(x))))
}

/// The smallest sample; `None` of nothing.
pub fn min(samples: &[f64]) -> Option<f64> {
    extremes(samples).map(|(low, _)| low)
}

/// The largest sample; `None` of nothing.
pub fn max(samples: &[f64]) -> Option<f64> {
    extremes(samples).map(|(_, high)| high)
}

/// The mean; `None` of nothing.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// The standard deviation of what the samples were drawn from; `None` below two.
pub fn standard_deviation(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples).filter(|_| samples.len() > 1)?;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

/// The value below which the share `q` of the samples lies, interpolated linearly between
/// the two samples beside it. `None` of nothing and for `q` outside 0 to 1.
///
/// Source: type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    if samples.is_empty() || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let sorted = sorted(samples);
    let position = q * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

/// The 95 % confidence interval of the median: the pair of samples, equally far from both ends,
/// between which the true median lies with at least that probability, whatever the distribution.
///
/// `None` below six samples: even smallest to largest would then be wrong more often than 5 %.
/// The samples must be independent, which back-to-back trials on a busy machine are not quite.
///
/// Source: the sign test turned round; Conover, "Practical nonparametric statistics", 3.2.
pub fn median_interval(samples: &[f64]) -> Option<[f64; 2]> {
    let cut = interval_cut(samples.len())?;
    let sorted = sorted(samples);
    Some([sorted[cut], sorted[sorted.len() - 1 - cut]])
}

/// Samples to leave out at each end of `n` sorted ones: the largest k with P(X ≤ k) ≤ 2.5 % for
/// X binomial with n tries at one half.
fn interval_cut(n: usize) -> Option<usize> {
    // In logarithms, because 2^-n underflows from n = 1075.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    if n == 0 || tail > TAIL {
        return None;
    }
    let mut cut = 0;
    while cut + 1 < n {
        log_term += ((n - cut) as f64).ln() - ((cut + 1) as f64).ln();
        tail += log_term.exp();
        if tail > TAIL {
            break;
        }
        cut += 1;
    }
    Some(cut)
}

/// Half the width of the interval over the size of the median; `None` where there is no interval
/// or the median is 0.
pub fn relative_half_width(samples: &[f64]) -> Option<f64> {
    half_width(median(samples)?, median_interval(samples)?)
}

/// Half the width of an interval over the size of the median; `None` where that is 0.
pub fn half_width(median: f64, [low, high]: [f64; 2]) -> Option<f64> {
    (median != 0.0).then(|| (high - low) / 2.0 / median.abs())
}

/// The median distance from the median; `None` of nothing. Not scaled: see [`MAD_TO_SIGMA`].
pub fn median_absolute_deviation(samples: &[f64]) -> Option<f64> {
    let centre = median(samples)?;
    median(&samples.iter().map(|x| (x - centre).abs()).collect::<Vec<_>>())
}

/// Indices of the samples whose modified z-score exceeds [`OUTLIER_SCORE`].
///
/// Where more than half of the samples are equal, the median deviation is 0 and the mean
/// deviation takes its place. To be flagged, never to be removed.
pub fn outliers(samples: &[f64]) -> Vec<usize> {
    let (Some(centre), Some(mad)) = (median(samples), median_absolute_deviation(samples)) else {
        return Vec::new();
    };
    let sigma = if mad > 0.0 {
        mad * MAD_TO_SIGMA
    } else {
        let total: f64 = samples.iter().map(|x| (x - centre).abs()).sum();
        total / samples.len() as f64 * MEAN_DEVIATION_TO_SIGMA
    };
    let far = |x: f64| (x - centre).abs() > OUTLIER_SCORE * sigma;
    samples.iter().enumerate().filter(|(_, x)| far(**x)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_exists_from_six_samples_on() {
        let samples: Vec<f64> = (1..=40).map(f64::from).collect();
        assert_eq!(median_interval(&samples[..5]), None);
        assert_eq!(median_interval(&samples[..6]), Some([1.0, 6.0]));
        assert_eq!(median_interval(&samples[..8]), Some([1.0, 8.0]));
        assert_eq!(median_interval(&samples[..9]), Some([2.0, 8.0]));
        // Ranks from the table of Conover: n = 20 gives the 6th and the 15th.
        assert_eq!(median_interval(&samples[..20]), Some([6.0, 15.0]));
        assert_eq!(median_interval(&samples[..40]), Some([14.0, 27.0]));
    }

    #[test]
    fn many_samples_do_not_underflow() {
        let cut = interval_cut(10_000).unwrap();
        // n/2 − 0.98 √n, the normal approximation.
        assert!(cut.abs_diff(4902) <= 1, "{cut}");
    }

    #[test]
    fn nothing_of_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(extremes([0.0; 0]), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(median_absolute_deviation(&[]), None);
        assert!(outliers(&[]).is_empty());
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(
            standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
                .map(|d| (d * 1e4).round()),
            Some(21381.0)
        );
        assert_eq!(standard_deviation(&[1.0]), None);
    }

    #[test]
    fn quantiles_between_neighbours() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&samples, 0.0), Some(1.0));
        assert_eq!(quantile(&samples, 0.5), Some(2.5));
        assert_eq!(quantile(&samples, 0.25), Some(1.75));
        assert_eq!(quantile(&samples, 1.0), Some(4.0));
        assert_eq!(quantile(&samples, 1.1), None);
    }

    #[test]
    fn huge_samples_do_not_overflow() {
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    #[test]
    fn a_far_sample_is_flagged() {
        assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.2, 9.8, 20.0]), [5]);
        assert!(outliers(&[10.0, 10.1, 9.9, 10.2, 9.8, 10.3]).is_empty());
    }

    #[test]
    fn a_far_sample_among_equal_ones_is_flagged() {
        let mut samples = vec![5.0; 20];
        assert!(outliers(&samples).is_empty());
        samples.push(6.0);
        assert_eq!(outliers(&samples), [20]);
    }

    #[test]
    fn half_width_is_relative_to_the_median() {
        let samples = [98.0, 99.0, 100.0, 100.0, 101.0, 102.0];
        assert_eq!(relative_half_width(&samples), Some(0.02));
        assert_eq!(relative_half_width(&[0.0; 6]), None);
        assert_eq!(relative_half_width(&samples[..5]), None);
    }

    /// P(X ≤ k) for n tries at one half, by counting.
    fn naive_tail(n: u32, k: u32) -> f64 {
        let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        (0..=k).map(choose).sum::<f64>() / 2_f64.powi(n as i32)
    }

    proptest! {
        #[test]
        fn the_cut_is_the_largest_within_the_tail(n in 6_u32..200) {
            let cut = interval_cut(n as usize).unwrap() as u32;
            prop_assert!(naive_tail(n, cut) <= 0.025 + 1e-12);
            prop_assert!(naive_tail(n, cut + 1) > 0.025 - 1e-12);
        }

        #[test]
        fn the_median_has_as_many_below_as_above(samples in prop::collection::vec(-1e6..1e6, 1..60)) {
            let m = median(&samples).unwrap();
            let below = samples.iter().filter(|x| **x < m).count();
            let above = samples.iter().filter(|x| **x > m).count();
            prop_assert!(below <= samples.len() / 2 && above <= samples.len() / 2);
            prop_assert_eq!(quantile(&samples, 0.5).map(|q| (q - m).abs() < 1e-6), Some(true));
        }

        #[test]
        fn the_interval_holds_the_median_and_lies_within_the_extremes(
            samples in prop::collection::vec(-1e6..1e6, 6..60),
        ) {
            let [low, high] = median_interval(&samples).unwrap();
            let m = median(&samples).unwrap();
            let (least, most) = extremes(&samples).unwrap();
            prop_assert!(least <= low && low <= m && m <= high && high <= most);
        }

        #[test]
        fn order_does_not_matter(samples in prop::collection::vec(-1e6..1e6, 6..40)) {
            let mut turned = samples.clone();
            turned.reverse();
            prop_assert_eq!(median(&samples), median(&turned));
            prop_assert_eq!(median_interval(&samples), median_interval(&turned));
            prop_assert_eq!(
                median_absolute_deviation(&samples), median_absolute_deviation(&turned));
        }
    }
}
