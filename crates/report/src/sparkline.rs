//! A curve over time in one line of characters, and what it means in words.
//!
//! The line starts at zero, so that a calm curve looks calm.

use flatout_measure::record::{Outcome, Series};
use serde_json::Value;

use crate::{label, quantity, quantity::Scale, style::Style};

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The curves of a row whose x is time; one point makes no curve.
pub(crate) fn over_time(outcome: &Outcome) -> impl Iterator<Item = &Series> {
    let is_time = |series: &&Series| label::unit_of(&series.x) == "s" && series.points.len() > 1;
    outcome.series.iter().filter(is_time)
}

/// The curve in at most `columns` characters; each stands for the mean of its piece of time.
pub(crate) fn sparkline(series: &Series, columns: usize, style: &Style) -> String {
    let means = means(series, columns);
    let largest = means.iter().flatten().copied().fold(0.0_f64, f64::max);
    let signs = if style.unicode { BLOCKS } else { ASCII };
    let sign = |mean: &Option<f64>| match mean {
        None => ' ',
        Some(mean) if largest <= 0.0 || *mean <= 0.0 => signs[0],
        Some(mean) => signs[((mean / largest * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    means.iter().map(sign).collect()
}

/// Means over equal pieces of the time; none where a piece has no point.
fn means(series: &Series, columns: usize) -> Vec<Option<f64>> {
    let points: Vec<[f64; 2]> =
        series.points.iter().copied().filter(|p| p[0].is_finite() && p[1].is_finite()).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let (start, length) = (first[0], last[0] - first[0]);
    let columns = columns.min(points.len()).max(1);
    let mut sums = vec![(0.0, 0_u32); columns];
    for [x, y] in points {
        let place = if length > 0.0 { (x - start) / length } else { 0.0 };
        let column = ((place * columns as f64) as usize).min(columns - 1);
        sums[column].0 += y;
        sums[column].1 += 1;
    }
    sums.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect()
}

/// Least and largest value, and the time: `212 to 639 MiB/s within 29.5 s`.
pub(crate) fn extent(series: &Series) -> String {
    let finite = |axis: usize| {
        series.points.iter().map(move |point| point[axis]).filter(|value| value.is_finite())
    };
    let range = |axis: usize| {
        finite(axis).reduce(f64::min).zip(finite(axis).reduce(f64::max)).unwrap_or_default()
    };
    let ((low, high), (start, end)) = (range(1), range(0));
    let scale = Scale::of(&series.y, high);
    let time = quantity::value("s", end - start);
    format!("{} to {} within {time}", scale.number(low), scale.text(high))
}

/// What became of the rate: `burst 639 MiB/s until 12.0 s, then sustained 212 MiB/s`; none where the
/// audit names neither.
pub(crate) fn sentence(outcome: &Outcome) -> Option<String> {
    let number = |key: &str| outcome.audit.get(key).and_then(Value::as_f64);
    let rate = |key: &str, word: &str| {
        number(key).map(|rate| format!("{word} {}", quantity::value(&outcome.unit, rate)))
    };
    let until = number("knee_s")
        .map_or_else(String::new, |knee| format!(" until {}", quantity::value("s", knee)));
    let rises = number("sustained_per_s") > number("burst_per_s");
    let word = if rises { "slow start" } else { "burst" };
    match (rate("burst_per_s", word), rate("sustained_per_s", "sustained")) {
        (Some(burst), Some(sustained)) => Some(format!("{burst}{until}, then {sustained}")),
        (Some(burst), None) => Some(format!("{burst}{until}")),
        (None, sustained) => sustained,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn series(values: &[f64]) -> Series {
        let points = values.iter().enumerate().map(|(at, y)| [at as f64, *y]).collect();
        let (x, y) = ("time_s".to_owned(), "operations/s".to_owned());
        Series { name: "rate over time".to_owned(), x, y, points }
    }

    #[test]
    fn a_calm_curve_looks_calm() {
        let style = Style::default();
        let ascii = Style { unicode: false, ..style };
        assert_eq!(sparkline(&series(&[100.0, 99.0, 100.0]), 10, &style), "███");
        assert_eq!(sparkline(&series(&[800.0, 800.0, 200.0, 0.0]), 10, &style), "██▂▁");
        assert_eq!(sparkline(&series(&[800.0, 800.0, 200.0, 200.0]), 2, &ascii), "#.");
        assert_eq!(sparkline(&series(&[f64::NAN]), 2, &ascii), "");
        assert_eq!(sparkline(&series(&[0.0, 0.0]), 2, &ascii), "__");
        assert_eq!(extent(&series(&[800.0, 1600.0])), "0.800 to 1.60 kop/s within 1.00 s");
    }

    #[test]
    fn burst_and_knee_are_a_sentence() {
        let of = |audit: Value| {
            let audit = audit.as_object().cloned().unwrap();
            sentence(&Outcome { unit: "operations/s".to_owned(), audit, ..Outcome::default() })
        };
        let all = json!({"burst_per_s": 9000.0, "knee_s": 12.0, "sustained_per_s": 500.0});
        let expected = "burst 9.00 kop/s until 12.0 s, then sustained 500 op/s";
        assert_eq!(of(all).as_deref(), Some(expected));
        assert_eq!(of(json!({"sustained_per_s": 500.0})).as_deref(), Some("sustained 500 op/s"));
        let rising = json!({"burst_per_s": 1.0, "sustained_per_s": 2.0});
        assert_eq!(of(rising).as_deref(), Some("slow start 1.00 op/s, then sustained 2.00 op/s"));
        assert_eq!(of(json!({"knee_s": 1.0})), None);
    }
}
