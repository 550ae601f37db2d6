//! Pictures that no sweep describes: percentiles of latency, runs one after the other, and what a
//! rate over time became.

use flatout_measure::record::{Outcome, Series};

use super::{Level, NINES, Plot, PlotLine, Point, YSpacing, switch};
use crate::chart::words::Levels;
use crate::{label, quantity::Scale};

/// Percentiles that are worth a label.
pub(super) const PERCENTILES: [f64; 8] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999];
/// So many times the usual step between two points of a curve is a gap.
const GAP_STEPS: f64 = 4.0;
/// Decimals of a percentile's name at most: `p99.99999`.
const MOST_DECIMALS: usize = 6;

/// The place of a percentile: how many nines it begins with.
pub(super) fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

/// The name of a percentile by its place: `p99.9`.
pub(super) fn percentile_name(place: f64) -> String {
    let percent = format!("{:.*}", MOST_DECIMALS, 100.0 * (1.0 - 10_f64.powf(-place)));
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

impl Plot {
    /// Percentiles of latency, one line per row that has two of them at least; `None` where no row
    /// has.
    pub(crate) fn of_latencies(rows: &[&Outcome]) -> Option<Self> {
        let timed: Vec<&Outcome> =
            rows.iter().copied().filter(|row| percentiles(row).len() > 1).collect();
        let named = label::short_names(&timed).into_iter().zip(&timed);
        let named =
            named.map(|(name, row)| (label::test(&row.id).to_owned(), name, percentiles(row)));
        Some(Self {
            x_name: "percentile of the operations".to_owned(),
            x_unit: NINES.to_owned(),
            y_spacing: YSpacing::Logarithmic,
            ..Self::of_named("test", "ns", named)?
        })
    }

    /// The samples of each row in the order in which they were taken: run by run. Rows share a
    /// unit.
    pub(crate) fn of_runs(rows: &[(&str, &Outcome)]) -> Option<Self> {
        let unit = &rows.first()?.1.unit;
        let named = rows.iter().map(|(name, row)| {
            let runs = row.samples.iter().enumerate();
            let runs = runs.map(|(at, sample)| [(at + 1) as f64, *sample]).collect();
            ((*name).to_owned(), (*name).to_owned(), runs)
        });
        let (x_name, y_spacing) = ("run".to_owned(), YSpacing::Either);
        Some(Self { x_name, y_spacing, ..Self::of_named("shown", unit, named)? })
    }

    /// A line of each name that has two points at least, to be switched by the word before its name;
    /// `None` where there is no line.
    fn of_named(
        noun: &str,
        unit: &str,
        named: impl Iterator<Item = (String, String, Vec<[f64; 2]>)>,
    ) -> Option<Self> {
        let lines = named.enumerate();
        let lines = lines.map(|(at, (word, name, points))| (vec![word], line(&name, at, points)));
        let (words, lines): (Vec<Vec<String>>, Vec<PlotLine>) =
            lines.filter(|(_, line)| line.points().count() > 1).unzip();
        let is_drawn = !lines.is_empty();
        is_drawn.then(|| switch::add(Self::of_lines(lines, unit), &[noun.to_owned()], &words))
    }

    fn of_lines(lines: Vec<PlotLine>, unit: &str) -> Self {
        let figures = lines.iter().flat_map(PlotLine::points).map(|point| point.y);
        let scale = Scale::of_all(unit, figures);
        Self { y_unit: unit.to_owned(), scale, lines, ..Self::default() }
    }

    /// The picture of a rate over time, with the burst and what was sustained after it.
    pub(crate) fn over_time(series: &Series, outcome: &Outcome) -> Self {
        let mut line = line(&series.name, 0, series.points.clone());
        line.runs = line.runs.iter().flat_map(|points| without_gaps(points)).collect();
        let mut plot = Self {
            x_name: label::noun(&series.x),
            x_unit: label::unit_of(&series.x).to_owned(),
            y_spacing: YSpacing::Linear,
            ..Self::of_lines(vec![line], &series.y)
        };
        if series.y != outcome.unit || label::unit_of(&series.x) != "s" {
            return plot;
        }
        let levels = Levels::of(outcome);
        let knee = levels.knee_s.unwrap_or(f64::NAN);
        let mut level = |y: Option<f64>, name: &str, from_x: f64, to_x: f64| {
            if let Some(y) = y {
                let name = format!("{name} {}", plot.scale.text(y));
                plot.levels.push(Level { from_x, to_x, y, name });
            }
        };
        level(levels.first, levels.first_word(), f64::NAN, knee);
        level(levels.sustained, "sustained", knee, f64::NAN);
        plot
    }
}

fn line(name: &str, at: usize, points: Vec<[f64; 2]>) -> PlotLine {
    let points = points.into_iter().filter(|[x, y]| x.is_finite() && y.is_finite());
    let points = points.map(|[x, y]| Point::bare(x, y)).collect();
    PlotLine { name: name.to_owned(), hue: at, runs: vec![points], ..PlotLine::default() }
}

/// A curve over time in runs: where nothing was seen for much longer than usual, it is parted.
fn without_gaps(points: &[Point]) -> Vec<Vec<Point>> {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| pair[1].x - pair[0].x).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
    let is_near = |a: &Point, b: &Point| b.x - a.x <= GAP_STEPS * usual;
    points.chunk_by(is_near).map(<[Point]>::to_vec).collect()
}

/// Places and nanoseconds of the percentiles that a row has, ascending.
fn percentiles(row: &Outcome) -> Vec<[f64; 2]> {
    let Some(latency) = label::latency(row) else { return Vec::new() };
    let mut points: Vec<[f64; 2]> = latency
        .percentiles_ns
        .iter()
        .filter_map(|(name, ns)| {
            let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
            let within = (0.0..100.0).contains(&percent);
            within.then_some(())?;
            Some([nines(percent), ns.as_f64().filter(|ns| *ns > 0.0)?])
        })
        .collect();
    points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    points
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{Latency, Status};
    use serde_json::json;

    use super::super::y_tick;
    use super::*;

    #[test]
    fn percentiles_stand_at_their_nines() {
        for (percent, name) in [(50.0, "p50"), (99.0, "p99"), (99.99, "p99.99")] {
            assert_eq!(percentile_name(nines(percent)), name);
        }
        let told = json!({"p50": 100.0, "p99.9": 900, "p100": 5, "pnone": 1, "p90": null});
        let percentiles_ns = told.as_object().cloned().unwrap();
        let latency = Some(Latency { percentiles_ns, ..Latency::default() });
        let id = "disk/random-read".to_owned();
        let row = Outcome { id, latency, median: Some(1.0), ..Outcome::default() };
        let plot = Plot::of_latencies(&[&row, &Outcome::default()]).unwrap();
        let points: Vec<(f64, f64)> = plot.lines[0].points().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(nines(50.0), 100.0), (nines(99.9), 900.0)]);
        assert_eq!(plot.lines.len(), 1);
        let refused = Outcome { status: Status::Invalid, ..row };
        assert_eq!(Plot::of_latencies(&[&refused]), None);
        assert_eq!(Plot::of_latencies(&[&Outcome::default()]), None);
    }

    #[test]
    fn a_burst_ends_at_the_knee() {
        let audit = json!({"burst_per_s": 900.0, "knee_s": 2.0, "sustained_per_s": 300.0});
        let unit = "operations/s".to_owned();
        let audit = audit.as_object().cloned().unwrap();
        let row = Outcome { unit: unit.clone(), audit, ..Outcome::default() };
        let points = vec![[0.0, 900.0], [4.0, 300.0]];
        let series = Series { x: "time_s".to_owned(), y: unit, points, ..Series::default() };
        let plot = Plot::over_time(&series, &row);
        let levels: Vec<(f64, &str)> =
            plot.levels.iter().map(|level| (level.y, level.name.as_str())).collect();
        assert_eq!(levels, [(900.0, "burst 900 op/s"), (300.0, "sustained 300 op/s")]);
        assert_eq!((plot.levels[0].to_x, plot.levels[1].from_x), (2.0, 2.0));
        let other = Series { y: "ns".to_owned(), ..series };
        assert!(Plot::over_time(&other, &row).levels.is_empty());
    }

    #[test]
    fn an_axis_between_two_powers_has_labels() {
        let points = [80.0, 100.0, 120.0].map(|mib| [mib * 1_048_576.0, 1.0]).to_vec();
        let plot = Plot::of_lines(vec![line("", 0, points)], "ns");
        let plot = Plot { x_log2: true, x_unit: "bytes".to_owned(), ..plot };
        let ticks = plot.x_ticks(&plot.x_axis().unwrap(), 8).into_iter();
        assert_eq!(ticks.map(|tick| plot.x_tick(tick)).collect::<Vec<_>>(), ["80M", "120M"]);
        assert_eq!([1e20, 2.5, 300.0, 0.25].map(y_tick), ["1.00e20", "2.5", "300", "0.25"]);
    }

    #[test]
    fn runs_keep_their_order() {
        let row =
            Outcome { samples: vec![3.0, 1.0, 2.0], unit: "ns".to_owned(), ..Outcome::default() };
        let plot = Plot::of_runs(&[("cp-a", &row)]).unwrap();
        let points: Vec<(f64, f64)> = plot.lines[0].points().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(1.0, 3.0), (2.0, 1.0), (3.0, 2.0)]);
        assert_eq!(Plot::of_runs(&[]), None);
    }
}
