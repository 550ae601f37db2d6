//! Whether a flat rate at a round figure looks like a limit that somebody set.
//!
//! A cloud volume, a control group or a network share is often held by a token bucket, and the
//! person who filled in the form chose a round figure. Hardware can be flat and near one by
//! chance, so a plateau is called likely, never certain.

use super::{knees, rates};
use crate::statistics::{mean, median, quantile, sorted};

/// Groups of bins that must be there to speak of a flat curve.
pub const GROUPS_LEAST: usize = 10;
/// Bins that are taken together at most.
const GROUP_BINS_MOST: usize = 3;
/// Standard deviation of the bins over their level up to which a curve is flat.
const SPREAD_MOST: f64 = 0.015;
/// How far below a round figure, relative to it, a rate under that limit may lie.
const BELOW_MOST: f64 = 0.010;
/// How far above it may lie: less, because a limit is approached from below, and only tokens
/// saved before the first bin and the edges of the bins can exceed it.
const ABOVE_MOST: f64 = 0.005;
/// Quantiles between which bins are looked at: a fifth at either end may be stalls.
const INNER: [f64; 2] = [0.2, 0.8];
/// Distance of these quantiles in standard deviations of normal data: 2 Φ⁻¹(0.8).
const INNER_SIGMAS: f64 = 1.683_242_467_145_83;
/// Share of the bins left out at each end before the level is averaged.
const TRIM: f64 = 0.1;

/// Round figures of every power of ten.
const ROUND: [f64; 11] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0];
/// Those of them that are in use with binary prefixes, 125 and 250 MiB/s for example.
const ROUND_BINARY: [f64; 6] = [1.0, 1.25, 2.0, 2.5, 4.0, 5.0];
/// Exponents of the powers of two that are in use with binary prefixes: 16 MiB/s to 16 GiB/s.
const POWERS_OF_TWO: std::ops::RangeInclusive<i32> = 4..=14;
/// Powers of ten by which [`ROUND`] and [`ROUND_BINARY`] are multiplied.
const POWERS_OF_TEN: std::ops::RangeInclusive<i32> = 0..=6;

const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;

/// A flat rate at a round figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// The round figure next to the rate. Units: `unit_words`.
    pub round_figure: f64,
    /// Unit of the round figure: `MB/s`, `MiB/s` or `operations/s`.
    pub unit_words: &'static str,
}

/// Names the round figure at which a curve is flat: likely a limit that somebody set.
///
/// Shape: pairs of time and rate as for [`shape`](super::shape()), at least [`GROUPS_LEAST`] of
/// them; where the rate changes level, what follows the last knee. `unit` is that of the rates,
/// `bytes/s` or `operations/s`; others have no round figures.
///
/// Flat means that bins deviate by at most 1.5 % of their level (standard deviation from the
/// inner three fifths, so that a few stalls do no harm; a median deviation would be 0 as soon as
/// half of the bins are equal, as they are with a bucket). A bucket that is refilled in slices
/// gives bins that alternate between slices more and less; over two or three bins that vanishes,
/// so such groups are judged too. Independent noise shrinks by √bins in a group, and the
/// threshold shrinks with it, so that grouping makes noise no flatter. A bin should hold a
/// hundred requests: of fewer, one more or less is no longer flat.
///
/// The chance that a flat rate of any size lies at a round figure (−1 % to +0.5 % of it): each
/// figure takes ln(1.005 ÷ 0.990) = 1.504 % of ln 10 = 2.303 in every power of ten, that is
/// 0.653 %; eleven of them take 7.2 % of all `operations/s`. For `bytes/s` six more in MiB/s take
/// 3.9 %, and a power of two in every octave 1.504 % ÷ ln 2 = 2.2 %: 13.3 % in all. A test counts
/// both. So one in eight disks without any limit that is as even as this is named wrongly, and
/// whoever words the warning must say "likely".
///
/// Cost: O(n log n) time and a few copies of the rates.
pub fn plateau(points: &[[f64; 2]], unit: &str) -> Option<Plateau> {
    let rates = rates(points)?;
    let from = knees(&rates).last().copied().unwrap_or(0);
    let sustained = &rates[from..];
    round_figure(flat(sustained)?, unit)
}

/// The level of the smallest groups of bins that are flat.
fn flat(rates: &[f64]) -> Option<f64> {
    (1..=GROUP_BINS_MOST).filter(|bins| rates.len() / bins >= GROUPS_LEAST).find_map(|bins| {
        let groups: Vec<f64> =
            rates.chunks_exact(bins).map(|group| group.iter().sum::<f64>() / bins as f64).collect();
        let centre = median(&groups).filter(|centre| *centre > 0.0)?;
        let [low, high] = INNER.map(|share| quantile(&groups, share));
        let spread_ratio = (high? - low?) / INNER_SIGMAS / centre;
        let is_flat = spread_ratio <= SPREAD_MOST / (bins as f64).sqrt();
        is_flat.then(|| level(&groups))?
    })
}

/// The mean without the lowest and the highest tenth: a limit holds the sum of bytes, hence the
/// mean, but a stall must not move it.
fn level(rates: &[f64]) -> Option<f64> {
    let sorted = sorted(rates);
    let cut = (sorted.len() as f64 * TRIM).ceil() as usize;
    mean(sorted.get(cut..sorted.len().checked_sub(cut)?)?)
}

/// The nearest round figure within the tolerance.
fn round_figure(value: f64, unit: &str) -> Option<Plateau> {
    let tens = |round: &'static [f64]| {
        POWERS_OF_TEN.flat_map(move |power| round.iter().map(move |r| r * 10f64.powi(power)))
    };
    let candidates: Vec<(f64, &'static str, f64)> = match unit {
        "bytes/s" => {
            let decimal = tens(&ROUND).map(|figure| (figure, "MB/s", MB));
            let twos = POWERS_OF_TWO.map(|power| 2f64.powi(power));
            let binary = tens(&ROUND_BINARY).chain(twos).map(|figure| (figure, "MiB/s", MIB));
            decimal.chain(binary).collect()
        }
        // Below ten operations a second a bin holds too few of them to be called flat.
        "operations/s" => tens(&ROUND).map(|figure| (figure * 10.0, "operations/s", 1.0)).collect(),
        _ => return None,
    };
    let off = |(figure, _, scale): &(f64, &str, f64)| value / (figure * scale) - 1.0;
    let (round_figure, unit_words, _) = candidates
        .into_iter()
        .filter(|candidate| (-BELOW_MOST..=ABOVE_MOST).contains(&off(candidate)))
        .min_by(|a, b| off(a).abs().total_cmp(&off(b).abs()))?;
    Some(Plateau { round_figure, unit_words })
}

#[cfg(test)]
mod tests;
