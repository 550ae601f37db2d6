//! Which trials at the start of a row are warm-up.

use crate::statistics;

/// Trials at the start that may be dropped.
pub(super) const MOST: usize = 2;
/// How much slower than the rest a warm-up trial is at least.
const SHARE: f64 = 0.05;
/// How many median deviations of the rest, scaled to standard deviations, it is away at least.
const DEVIATIONS: f64 = 3.0;
/// Trials that "the rest" needs before anything can be said about the first ones: beside fewer, the slower one of
/// two levels looks like warm-up. Beside three or four, round trips of 51 and 47 µs were dropped in two whole runs
/// of eight, in a third of which all took 51, and 38 µs stood there as if there were nothing else (AMD EPYC,
/// 2 vCPUs, 2026-11-29).
const REST_LEAST: usize = 8;

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

    /// So many of the first trials that look like warm-up, before ten others.
    fn of(first: &[f64]) -> usize {
        detect(&[first, &[1.0; 10]].concat())
    }

    #[test]
    fn a_slow_start_is_warm_up_and_a_slow_middle_is_not() {
        assert_eq!([of(&[2.0]), of(&[2.0, 1.5]), of(&[1.0, 2.0]), of(&[0.5])], [1, 2, 0, 0]);
        assert_eq!(of(&[9.0, 9.0, 9.0]), 2, "at most two");
    }

    #[test]
    fn warm_up_needs_a_clear_distance_and_something_to_compare_with() {
        assert_eq!(of(&[1.04]), 0, "below 5 %");
        let noise = [0.9, 1.0, 1.1, 1.0, 0.9];
        assert_eq!(detect(&[&[1.2], &noise[..], &noise].concat()), 0, "within the noise");
        assert_eq!(detect(&[]), 0);
    }

    #[test]
    fn a_first_trial_at_the_slower_of_two_levels_is_no_warm_up_of_a_few() {
        // Round trips between two CPUs, as a whole run had them.
        assert_eq!(detect(&[51.3, 37.6, 38.9, 37.6]), 0);
        assert_eq!(detect(&[46.7, 42.5, 38.0, 37.8, 37.6]), 0);
    }
}
