//! Which trials at the start of a row are warm-up.

use crate::statistics;

/// Trials at the start that may be dropped.
pub(super) const MOST: usize = 2;
/// How much slower than the rest a warm-up trial is at least.
const SHARE: f64 = 0.05;
/// How many median deviations of the rest, scaled to standard deviations, it is away at least.
const DEVIATIONS: f64 = 3.0;
/// Trials that "the rest" needs before anything can be said about the first ones.
const REST_LEAST: usize = 3;

/// Counts the trials at the start that are clearly slower than the rest; `slowness` is time per
/// amount of each trial, in the order in which they ran.
pub(super) fn detect(slowness: &[f64]) -> usize {
    (1..=MOST)
        .rev()
        .filter(|count| slowness.len() >= count + REST_LEAST)
        .find(|count| {
            let (first, rest) = slowness.split_at(*count);
            let centre = statistics::median(rest).unwrap_or(0.0);
            let deviation = statistics::median_absolute_deviation(rest).unwrap_or(0.0);
            let far = DEVIATIONS * statistics::MAD_TO_SIGMA * deviation;
            first.iter().all(|slow| slow - centre > far.max(SHARE * centre))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_is_warm_up_and_a_slow_middle_is_not() {
        assert_eq!(detect(&[2.0, 1.0, 1.0, 1.0]), 1);
        assert_eq!(detect(&[2.0, 1.5, 1.0, 1.0, 1.0]), 2);
        assert_eq!(detect(&[1.0, 2.0, 1.0, 1.0, 1.0]), 0);
        assert_eq!(detect(&[9.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 2, "at most two");
    }

    #[test]
    fn warm_up_needs_a_clear_distance_and_something_to_compare_with() {
        assert_eq!(detect(&[1.04, 1.0, 1.0, 1.0]), 0, "below 5 %");
        assert_eq!(detect(&[1.2, 0.9, 1.0, 1.1, 1.0, 0.9]), 0, "within the noise");
        assert_eq!(detect(&[2.0, 1.0, 1.0]), 0, "two are no rest");
        assert_eq!(detect(&[]), 0);
    }

    #[test]
    fn a_fast_start_is_no_warm_up() {
        assert_eq!(detect(&[0.5, 1.0, 1.0, 1.0, 1.0]), 0);
    }
}
