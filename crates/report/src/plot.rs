//! Lines to be drawn, whatever draws them: the common ground of terminal chart and SVG.

use flatout_measure::record::{Outcome, Series, Status};

use crate::{
    axis::{Axis, Spacing},
    label,
    quantity::{self, Scale},
    sweep::Sweep,
};

/// A picture as data; all y values share one scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Name of x, without its unit.
    pub x_name: String,
    /// Base unit of x; empty for counts.
    pub x_unit: String,
    /// Whether x is spaced by powers of two.
    pub x_log2: bool,
    /// Base unit of y.
    pub y_unit: String,
    /// Scale of all y values.
    pub scale: Scale,
    /// The lines in the order of the legend.
    pub lines: Vec<PlotLine>,
}

/// One line of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotLine {
    /// Name in the legend.
    pub name: String,
    /// Which colour: equal for lines that share the value of the first line parameter.
    pub hue: usize,
    /// Which pattern: equal for lines that share the values of the other line parameters.
    pub dash: usize,
    /// Points, x ascending, in runs that a row without figure separates; base units.
    pub runs: Vec<Vec<Point>>,
}

impl PlotLine {
    /// All points, whatever run they belong to.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.runs.iter().flatten()
    }
}

/// One point; base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place on the x axis.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// 95 % interval of the figure.
    pub interval: Option<[f64; 2]>,
    /// Samples behind the figure; 0 where the curve does not say.
    pub n: u64,
    /// Whether the figure is to be used as it is.
    pub status: Status,
}

impl Plot {
    /// The picture of a sweep; rows without a figure leave a gap.
    pub fn of_sweep(sweep: &Sweep<'_>) -> Self {
        let mut hues: Vec<&str> = Vec::new();
        let mut dashes: Vec<&[String]> = Vec::new();
        let lines = sweep.lines.iter().map(|line| {
            let (first, rest) = match line.labels.split_first() {
                Some((first, rest)) => (first.as_str(), rest),
                None => ("", &[][..]),
            };
            PlotLine {
                name: line.name(),
                hue: position_or_push(&mut hues, first),
                dash: position_or_push(&mut dashes, rest),
                runs: runs(&sweep.x_values, &line.points),
            }
        });
        Self {
            x_name: label::noun(&sweep.chart.x_parameter),
            x_unit: label::unit_of(&sweep.chart.x_parameter).to_owned(),
            x_log2: sweep.chart.x_log2,
            y_unit: sweep.unit.to_owned(),
            scale: sweep.scale(),
            lines: lines.collect(),
        }
    }

    /// The picture of one curve of an outcome.
    pub fn of_series(series: &Series) -> Self {
        let points = series.points.iter().filter(|[x, y]| x.is_finite() && y.is_finite());
        let points =
            points.map(|[x, y]| Point { x: *x, y: *y, interval: None, n: 0, status: Status::Ok });
        let runs = vec![points.collect()];
        Self {
            x_name: label::noun(&series.x),
            x_unit: label::unit_of(&series.x).to_owned(),
            x_log2: false,
            y_unit: series.y.clone(),
            scale: Scale::of_all(&series.y, series.points.iter().map(|point| point[1])),
            lines: vec![PlotLine { name: series.name.clone(), hue: 0, dash: 0, runs }],
        }
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(PlotLine::points)
    }

    pub(crate) fn x_axis(&self) -> Option<Axis> {
        Axis::for_x(self.points().map(|point| point.x), self.x_log2)
    }

    /// At most about `most` labels; whole numbers only where x is counted.
    pub(crate) fn x_ticks(&self, axis: &Axis, most: usize) -> Vec<f64> {
        let counted = self.x_unit.is_empty() && self.points().all(|point| point.x.fract() == 0.0);
        let mut ticks = axis.ticks(most);
        ticks.retain(|tick| !counted || tick.fract() == 0.0);
        ticks
    }

    /// The y axis in the shown unit, so that labels are round numbers there.
    pub(crate) fn y_axis(&self) -> Option<Axis> {
        Axis::for_y(self.points().map(|point| point.y / self.scale.divisor))
    }

    /// A label of the x axis, as short as axis labels are: `4K`, `1M`, `8`.
    pub(crate) fn x_tick(&self, x: f64) -> String {
        match self.x_unit.as_str() {
            _ if x == 0.0 => "0".to_owned(),
            "bytes" => {
                let size = quantity::size(x as u64);
                size.replace("iB", "").replace(" B", "").replace(' ', "")
            }
            "" if x.fract() == 0.0 => quantity::number(x).replace(".00", "").replace(".0", ""),
            "" => quantity::number(x),
            unit => quantity::value(unit, x),
        }
    }

    /// Name of the y axis, for example `MiB/s (logarithmic)`.
    pub(crate) fn y_name(&self) -> String {
        match self.y_axis().map(|axis| axis.spacing) {
            Some(Spacing::Log10 | Spacing::Log2) => format!("{} (logarithmic)", self.scale.unit),
            _ => self.scale.unit.clone(),
        }
    }
}

/// A label of the y axis; the value is in the shown unit already.
pub(crate) fn y_tick(value: f64) -> String {
    let text = quantity::number(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn runs(x_values: &[f64], outcomes: &[Option<&Outcome>]) -> Vec<Vec<Point>> {
    let points: Vec<Option<Point>> = x_values
        .iter()
        .zip(outcomes)
        .map(|(x, outcome)| {
            let outcome = (*outcome)?;
            let y = label::figure(outcome)?;
            Some(Point { x: *x, y, interval: outcome.ci95, n: outcome.n, status: outcome.status })
        })
        .collect();
    let runs = points.split(Option::is_none).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().copied().flatten().collect()).collect()
}

fn position_or_push<T: PartialEq>(known: &mut Vec<T>, item: T) -> usize {
    known.iter().position(|other| *other == item).unwrap_or_else(|| {
        known.push(item);
        known.len() - 1
    })
}
