//! What amount and time of a trial make.

use crate::case::{Figure, Sample};

/// The figure of one trial; `None` when time or amount cannot be true.
pub(super) fn figure(kind: Figure, sample: &Sample) -> Option<f64> {
    quotient(kind, sample.amount, sample.elapsed_ns)
}

pub(super) fn quotient(kind: Figure, amount: f64, elapsed_ns: u64) -> Option<f64> {
    let elapsed_ns = elapsed_ns as f64;
    let figure = match kind {
        Figure::Rate => amount / (elapsed_ns / 1e9),
        Figure::NanosecondsEach => elapsed_ns / amount,
    };
    (figure.is_finite() && figure > 0.0).then_some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_cannot_be_are_none() {
        let sample = |amount, elapsed_ns| Sample { amount, elapsed_ns, ..Sample::default() };
        assert_eq!(figure(Figure::Rate, &sample(4.0, 2_000_000_000)), Some(2.0));
        assert_eq!(figure(Figure::NanosecondsEach, &sample(4.0, 20)), Some(5.0));
        assert_eq!(figure(Figure::Rate, &sample(4.0, 0)), None);
        assert_eq!(figure(Figure::NanosecondsEach, &sample(0.0, 20)), None);
        assert_eq!(figure(Figure::NanosecondsEach, &sample(4.0, 0)), None);
        assert_eq!(figure(Figure::Rate, &sample(f64::NAN, 9)), None);
        assert_eq!(figure(Figure::Rate, &sample(-1.0, 9)), None);
    }
}
