//! Where a value stands on an axis, and which values are worth a label.

use flatout_measure::statistics;

/// How values are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    Linear,
    Log2,
    Log10,
}

/// A range with its spacing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    pub low: f64,
    pub high: f64,
    pub spacing: Spacing,
}

/// From this ratio of the largest to the smallest figure on, a linear axis would press the lower
/// lines flat onto its foot, and the figures are spaced by powers of ten.
const LOG_FROM_RATIO: f64 = 200.0;
/// Larger figures than this and smaller ones than its inverse stand at the ends: sums and logarithms of
/// what is between are finite.
const LARGEST: f64 = 1e300;

impl Axis {
    /// The axis for x values.
    pub fn for_x(values: impl Iterator<Item = f64>, log2: bool) -> Option<Self> {
        let (low, high) = extremes(values)?;
        let spacing = if log2 && low > 0.0 { Spacing::Log2 } else { Spacing::Linear };
        let high = if high > low { high } else { low + f64::max(1.0, low.abs() * 1e-9) };
        Some(Self { low, high, spacing })
    }

    /// The axis for figures: from zero, or by powers of ten where they differ too much.
    pub fn for_y(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = extremes(values)?;
        if low > 0.0 && high / low >= LOG_FROM_RATIO {
            return Self::by_tens([low, high].into_iter());
        }
        Self::from_zero([low, high].into_iter())
    }

    /// The axis for figures by powers of ten; from zero where one is not above it.
    pub fn by_tens(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = extremes(values)?;
        if low <= 0.0 {
            return Self::from_zero([low, high].into_iter());
        }
        let (low, high) = (low.log10().floor(), high.log10());
        let top = if high.ceil() - high > 0.5 { high.floor() + 0.5 } else { high.ceil() };
        let top = if top > low { top } else { low + 1.0 };
        Some(Self { low: 10_f64.powf(low), high: 10_f64.powf(top), spacing: Spacing::Log10 })
    }

    /// The axis for figures from zero.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = extremes(values)?;
        let low = low.min(0.0);
        let high = if high > low { high } else { 1.0 };
        let step = nice_step((high - low) / 5.0);
        let high = (high / step).ceil() * step;
        Some(Self { low: (low / step).floor() * step, high, spacing: Spacing::Linear })
    }

    /// The place of a value: 0 at the low end, 1 at the high end.
    pub fn position(&self, value: f64) -> f64 {
        let (low, high, value) = (self.map(self.low), self.map(self.high), self.map(value));
        // Of large values that are nearly equal the logarithms are.
        if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }

    fn map(&self, value: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => value,
            Spacing::Log2 => value.log2(),
            Spacing::Log10 => value.log10(),
        }
    }

    /// Values for labels, ascending, at most about `most` of them.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2) as f64;
        match self.spacing {
            Spacing::Linear => {
                let step = nice_step((self.high - self.low) / most);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step + 1e-6).floor() as i64;
                (first..=last).map(|index| index as f64 * step).collect()
            }
            Spacing::Log2 => {
                powers(2.0, self.low.log2(), self.high.log2(), most, &[1, 2, 4, 5, 10])
            }
            Spacing::Log10 => {
                let (low, high) = (self.low.log10(), self.high.log10());
                let tens = powers(10.0, low, high, most, &[1, 2, 3]);
                // One or two labels tell no figure between them.
                let among = |ten: f64| [1.0, 2.0, 5.0].map(|factor| factor * ten);
                let is_within = |tick: &f64| *tick <= self.high * (1.0 + 1e-9);
                match tens.len() > 2 {
                    true => tens,
                    false => tens.into_iter().flat_map(among).filter(is_within).collect(),
                }
            }
        }
    }
}

fn powers(base: f64, low: f64, high: f64, most: f64, steps: &[i32]) -> Vec<f64> {
    let step = steps.iter().copied().find(|step| (high - low) / f64::from(*step) < most);
    let step = step.unwrap_or_else(|| ((high - low) / most).ceil() as i32).max(1);
    let first = (low / f64::from(step) - 1e-9).ceil() as i32;
    let last = (high / f64::from(step) + 1e-9).floor() as i32;
    (first..=last).map(|index| base.powi(index * step)).collect()
}

/// The next step of 1, 2 or 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let bounded = |value: f64| match value.abs() {
        size if size < 1.0 / LARGEST => 0.0,
        _ => value.clamp(-LARGEST, LARGEST),
    };
    statistics::extremes(values.filter(|value| value.is_finite()).map(bounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_get_a_label_every_fourth_power() {
        let axis = Axis::for_x([1.0, 4_194_304.0].into_iter(), true).unwrap();
        assert_eq!(axis.ticks(8), [1.0, 16.0, 256.0, 4096.0, 65_536.0, 1_048_576.0]);
        assert_eq!(axis.position(2048.0), 0.5);
    }

    #[test]
    fn figures_start_at_zero_unless_they_differ_too_much() {
        let axis = Axis::for_y([30.0, 470.0].into_iter()).unwrap();
        assert_eq!((axis.low, axis.high), (0.0, 500.0));
        assert_eq!(axis.ticks(5), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        let axis = Axis::for_y([3.0, 13_000.0].into_iter()).unwrap();
        assert_eq!((axis.low, axis.spacing), (1.0, Spacing::Log10));
        let axis = Axis::by_tens([110.0, 290.0].into_iter()).unwrap();
        assert_eq!(axis.ticks(6), [100.0, 200.0], "one label tells no figure");
        let axis = Axis::by_tens([20.0, 250.0].into_iter()).unwrap();
        assert_eq!(axis.ticks(6), [10.0, 20.0, 50.0, 100.0, 200.0]);
        assert_eq!(Axis::for_y([f64::NAN].into_iter()), None);
        assert_eq!(Axis::for_y([0.0].into_iter()).unwrap().high, 1.0);
        assert_eq!(Axis::from_zero([-1e-320].into_iter()).unwrap().high, 1.0);
    }

    #[test]
    fn an_axis_of_absurd_figures_has_an_end() {
        let large = [[1.0, 1.7e308], [-1.7e308, 1.7e308], [1e300, 1e300], [1e15, 1e15 + 1.0]];
        for values in [[5e-324, 1.0]].into_iter().chain(large) {
            let axes = [
                Axis::for_x(values.into_iter(), false),
                Axis::for_x(values.into_iter(), true),
                Axis::for_y(values.into_iter()),
                Axis::by_tens(values.into_iter()),
            ];
            for axis in axes.map(Option::unwrap) {
                let ticks = axis.ticks(8);
                assert!(ticks.len() <= 20, "{axis:?}: {}", ticks.len());
                let places = values.into_iter().chain(ticks).map(|value| axis.position(value));
                assert!(places.clone().all(f64::is_finite), "{axis:?}");
            }
        }
    }
}
