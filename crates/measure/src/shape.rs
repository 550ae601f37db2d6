//! What a curve of rates over time says: whether its level changed, and when.
//!
//! A burst is a level that ends, as when a cache of the drive is full or saved-up tokens are
//! spent. A slow trend, a stall and pauses that return are none, and noise must not look like
//! one: every test below has to agree. Whether a flat curve looks like a limit that somebody
//! set: [`plateau()`]. Nothing here knows what was measured.

mod plateau;

use crate::fact::Key;
use crate::statistics::{MAD_TO_SIGMA, median};

pub use plateau::{GROUPS_LEAST, Plateau, plateau};

/// Bins that a level consists of at least; fewer could be one stall of the machine.
pub const LEVEL_BINS_LEAST: usize = 5;
/// Bins that a curve needs before a knee is looked for.
pub const BINS_LEAST: usize = 12;

/// Knees that are followed; real devices have up to three levels (cache, direct, folding).
const KNEES_MOST: usize = 3;
/// Distance of two levels over the higher one, below which they count as one.
const STEP_LEAST: f64 = 0.10;
/// Distance of two levels over the standard deviation of the bins around them.
const DEVIATIONS: f64 = 4.0;
/// The standard deviation of normal noise over its mean deviation: √(π ÷ 2).
const MEAN_TO_SIGMA: f64 = 1.253_314_137_315_500_3;
/// Share of the bins of a level that may lie nearer to the other level.
const MISPLACED_MOST: f64 = 0.10;
/// Largest squared error of two levels over that of a straight line; the line is a slow trend.
const LINE_SHARE: f64 = 0.75;
/// Share of the distance that must be crossed right at the knee: a decay crosses it slowly.
const JUMP_SHARE: f64 = 0.6;
/// Bins of the curve for each bin that "right at the knee" spans.
const BINS_PER_JUMP_BIN: usize = 16;

/// A [`Shape`] in a record: the rate before and after it changed its level, and when it did.
pub const BURST_PER_S: Key = Key::last("burst_per_s");
/// See [`BURST_PER_S`].
pub const KNEE_S: Key = Key::last("knee_s");
/// See [`BURST_PER_S`].
pub const SUSTAINED_PER_S: Key = Key::last("sustained_per_s");

/// Two levels of a rate and when the first one ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Median of the bins before the knee. Units: those of the curve.
    pub burst_per_s: f64,
    /// Time of the first bin after the knee. Units: seconds.
    pub knee_s: f64,
    /// Median of the bins after the knee, or after the last one where the rate went on in the
    /// same direction by further steps. Units: those of the curve.
    pub sustained_per_s: f64,
    /// Sustained over burst: below 1 the rate fell, above 1 it rose.
    pub step_ratio: f64,
}

/// Finds the knee of a curve, if its rate changed from one level to another.
///
/// Shape: pairs of time and rate of equally wide bins, the time being that at which a bin begins;
/// at least [`BINS_LEAST`] of them, without a last bin that is only partly filled. A bin should
/// hold some dozens of requests, else counting them is the noise. `None` for fewer bins, for
/// times that do not ascend and for rates that are negative or no number.
///
/// All of this must hold: the best two levels (least squares over the curve without single
/// stalls) have [`LEVEL_BINS_LEAST`] bins each; their medians are 10 % and 4 standard deviations
/// (from the median deviation) apart; at most 10 % of the bins of each are nearer to the other, but for one half way at the knee;
/// a straight line fits clearly worse; and most of the step is taken right at the knee.
///
/// Independent noise passes for a knee in 5 of 1000 curves of 12 bins and in none of 3000 of 30, a ramp
/// with noise in 6 of 100,000 (the tests count); a rate that wanders over five bins does in 2 of 100 curves
/// of 30 bins.
/// Not certain: one pause that lasts to the end of the curve cannot be told from a knee.
///
/// Cost: O(n log n) time and a few copies of the rates.
///
/// Example: 20 bins at 500 and 40 at 100 give the knee at bin 20 and a step ratio of 0.2.
pub fn shape(points: &[[f64; 2]]) -> Option<Shape> {
    let rates = rates(points)?;
    let knees = knees(&rates);
    let (first, last) = (*knees.first()?, *knees.last()?);
    let burst = median(&rates[..first])?;
    let sustained = median(&rates[last..])?;
    Some(Shape {
        burst_per_s: burst,
        knee_s: points[first][0],
        sustained_per_s: sustained,
        step_ratio: sustained / burst,
    })
}

/// The rates of a sound curve.
fn rates(points: &[[f64; 2]]) -> Option<Vec<f64>> {
    let is_sound = points.iter().flatten().all(|number| number.is_finite())
        && points.windows(2).all(|pair| pair[0][0] < pair[1][0])
        && points.iter().all(|point| point[1] >= 0.0);
    is_sound.then(|| points.iter().map(|point| point[1]).collect())
}

/// Indices at which a new level begins, all steps in the direction of the first.
fn knees(rates: &[f64]) -> Vec<usize> {
    let mut knees: Vec<usize> = Vec::new();
    let mut from = 0;
    let mut direction = 0.0;
    while knees.len() < KNEES_MOST {
        let Some(step) = step(&rates[from..]) else { break };
        if step.height * direction < 0.0 {
            break;
        }
        direction = step.height;
        from += step.split;
        knees.push(from);
    }
    knees
}

/// A change of level.
struct Step {
    /// Index of the first bin of the second level.
    split: usize,
    /// Second level less first level.
    height: f64,
}

/// The one clear change of level in these rates.
fn step(rates: &[f64]) -> Option<Step> {
    if rates.len() < BINS_LEAST {
        return None;
    }
    let smooth = without_single_stalls(rates);
    let fit = two_levels(&smooth, LEVEL_BINS_LEAST)?;
    let split = fit.split;
    let (before, after) = rates.split_at(split);
    let (first, second) = (median(before)?, median(after)?);
    let height = second - first;
    // A burst of nothing has no ratio, and a rate that is 0 for long is a stop, not a level.
    let is_level = first > 0.0 && second > 0.0;
    let is_high = height.abs() >= STEP_LEAST * first.max(second);
    let is_above_noise = height.abs() > DEVIATIONS * noise(before, first, after, second)?;
    let middle = first + height / 2.0;
    let misplaced = |level: &[f64], sign: f64| {
        let wrong = level.iter().filter(|rate| (**rate - middle) * sign <= 0.0).count();
        wrong as f64 > MISPLACED_MOST * level.len() as f64
    };
    // The level changes within a bin, which may be half way and on either side of the knee.
    let is_between = |index: usize| (smooth[index] - middle).abs() < height.abs() / 4.0;
    let [last, next] = [split - 1, split].map(|index| usize::from(is_between(index)));
    let is_apart =
        !misplaced(&smooth[..split - last], -height) && !misplaced(&smooth[split + next..], height);
    let is_no_trend = fit.squared_error < LINE_SHARE * line_squared_error(&smooth);
    let near = LEVEL_BINS_LEAST.max(rates.len() / BINS_PER_JUMP_BIN);
    let jump = median(&after[..near.min(after.len())])?
        - median(&before[before.len().saturating_sub(near)..])?;
    let is_sudden = jump / height >= JUMP_SHARE;
    (is_level && is_high && is_above_noise && is_apart && is_no_trend && is_sudden)
        .then_some(Step { split, height })
}

/// Standard deviation of the bins around their own level, from the median deviation; where bins count
/// so little that most of them are alike, from the mean deviation.
fn noise(before: &[f64], first: f64, after: &[f64], second: f64) -> Option<f64> {
    let far = |level: f64| move |rate: &f64| (rate - level).abs();
    let deviations: Vec<f64> =
        before.iter().map(far(first)).chain(after.iter().map(far(second))).collect();
    let mean = deviations.iter().sum::<f64>() / deviations.len() as f64;
    let typical = median(&deviations)? * MAD_TO_SIGMA;
    Some(if typical > 0.0 { typical } else { mean * MEAN_TO_SIGMA })
}

/// The running median of three, which removes what lasts one bin and keeps a step where it is.
fn without_single_stalls(rates: &[f64]) -> Vec<f64> {
    let last = rates.len().saturating_sub(3);
    (0..rates.len())
        .map(|index| {
            let from = index.saturating_sub(1).min(last);
            median(&rates[from..(from + 3).min(rates.len())]).unwrap_or(rates[index])
        })
        .collect()
}

/// Two constant levels fitted to a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TwoLevels {
    /// Index of the first value of the second level.
    split: usize,
    /// Sum of squared distances from the mean of the level.
    squared_error: f64,
}

/// The split with the least squared error, each side having at least `least` values.
///
/// Running sums of the distances from the mean, not of the values: their squares cancel less.
///
/// Source: between-group sum of squares, S² n ÷ (k (n − k)), S being the sum of the first k.
fn two_levels(values: &[f64], least: usize) -> Option<TwoLevels> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (index, value) in values.iter().enumerate() {
        sum += value - mean;
        let k = index + 1;
        if k < least || n - k < least {
            continue;
        }
        let gain = sum * sum * n as f64 / (k as f64 * (n - k) as f64);
        if best.is_none_or(|(_, most)| gain > most) {
            best = Some((k, gain));
        }
    }
    best.map(|(split, gain)| TwoLevels { split, squared_error: (total - gain).max(0.0) })
}

/// Sum of squared distances from the straight line that fits best.
fn line_squared_error(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let centre = (n - 1.0) / 2.0;
    let along = |index: usize| index as f64 - centre;
    let sum_xx: f64 = (0..values.len()).map(|index| along(index).powi(2)).sum();
    let sum_xy: f64 = values.iter().enumerate().map(|(i, value)| along(i) * (value - mean)).sum();
    let slope = if sum_xx > 0.0 { sum_xy / sum_xx } else { 0.0 };
    values.iter().enumerate().map(|(i, value)| (value - mean - slope * along(i)).powi(2)).sum()
}

#[cfg(test)]
mod tests;
