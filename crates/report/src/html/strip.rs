//! Pictures inside of tables: the samples around a median, a ratio around 1.

use std::{collections::BTreeSet, fmt::Write as _};

use flatout_measure::statistics;

use super::markup::escaped;
use crate::page::{Ratio, Samples};
use crate::quantity;

/// A strip shows this share of the median to either side.
const REACH: f64 = 0.05;
const WIDTH: f64 = 104.0;

/// Every sample of a row as a stroke on a scale from 5 % below to 5 % above the median, the
/// interval as a band. Strips of different rows can be compared by eye; samples beyond the scale
/// stand at its end.
pub(super) fn samples(of: &Samples) -> String {
    let median = of.median;
    if median == 0.0 {
        return String::new();
    }
    let place = |value: f64| {
        let share = (value / median - 1.0) / REACH;
        ((share.clamp(-1.0, 1.0) + 1.0) / 2.0 * (WIDTH - 4.0) + 2.0, share.abs() > 1.0)
    };
    let unit = |value: f64| quantity::value(&of.unit, value);
    let Some((low, high)) = statistics::extremes(&of.samples) else { return String::new() };
    let title = format!("{} samples, {} to {}", of.samples.len(), unit(low), unit(high));
    let mut out = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} 20\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>",
        escaped(&title)
    );
    if let Some([low, high]) = of.interval {
        let (low, high) = (place(low).0, place(high).0);
        let width = (high - low).max(1.0);
        let _ = write!(
            out,
            "<rect class=\"band\" x=\"{low:.1}\" y=\"2\" width=\"{width:.1}\" height=\"16\"/>"
        );
    }
    // Strokes at the same place are one, so that a strip of thousands of samples stays short.
    let places: BTreeSet<(bool, i64)> = of
        .samples
        .iter()
        .map(|sample| place(*sample))
        .map(|(x, beyond)| (beyond, (x * 2.0).round() as i64))
        .collect();
    for (class, beyond) in [("sample", false), ("sample beyond", true)] {
        let own = places.iter().filter(|(is_beyond, _)| *is_beyond == beyond);
        let path: String = own.map(|(_, x)| format!("M{} 5v10", *x as f64 / 2.0)).collect();
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    let _ = write!(out, "<path class=\"median\" d=\"M{:.1} 1v18\"/></svg>", place(median).0);
    out
}

/// A share as a bar; one beyond the bound is marked.
pub(super) fn share(share: f64) -> String {
    let (width, over) =
        ((share * 100.0).clamp(0.0, 100.0), if share > 1.02 { " over" } else { "" });
    format!("<span class=\"bar{over}\"><span style=\"width:{width:.1}%\"></span></span>")
}

/// Size of the picture of a ratio in its own units.
const RATIO_WIDTH: f64 = 160.0;
const RATIO_HEIGHT: f64 = 20.0;

/// The interval on a logarithmic scale, better to the right, over the band that counts as the same.
pub(super) fn ratio(of: &Ratio) -> String {
    let at = |log: f64| RATIO_WIDTH / 2.0 * (1.0 + (log / of.span).clamp(-1.0, 1.0));
    let ([low, high], left, right) = (of.interval.map(at), at(-of.same), at(of.same));
    let (middle, y) = (RATIO_WIDTH / 2.0, RATIO_HEIGHT / 2.0);
    // An interval that goes on beyond the picture ends in an arrow.
    let [from, to] = of.interval;
    let left_end = if from < -of.span { "m5 -4l-5 4l5 4m-5 -4" } else { "" };
    let right_end = if to > of.span { "m-5 -4l5 4l-5 4" } else { "" };
    format!(
        "<svg class=\"ratio\" viewBox=\"0 0 {RATIO_WIDTH} {RATIO_HEIGHT}\" role=\"img\" aria-label=\"{0}\">\
         <title>{0}</title><rect class=\"same\" x=\"{left:.1}\" y=\"2\" width=\"{1:.1}\" height=\"16\"/>\
         <path class=\"one\" d=\"M{middle} 0V{RATIO_HEIGHT}\"/><path class=\"interval\" d=\"M{low:.1} {y}{left_end}H{high:.1}{right_end}\"/>\
         <circle cx=\"{2:.1}\" cy=\"{y}\" r=\"3.2\"/></svg>",
        escaped(&of.text),
        right - left,
        at(of.ratio),
    )
}
