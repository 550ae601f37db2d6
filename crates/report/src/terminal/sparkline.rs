//! A curve over time in one line of characters. It starts at zero, so that a calm curve looks calm.

use flatout_measure::record::Series;

use crate::style::Style;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// The curve in at most `columns` characters; each stands for the mean of its piece of time.
pub fn sparkline(series: &Series, columns: usize, style: &Style) -> String {
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

#[cfg(test)]
mod tests {
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
    }
}
