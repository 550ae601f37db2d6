//! Lines to be drawn, whatever draws them: the common ground of terminal chart and SVG.

use flatout_measure::record::Series;

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
    /// Points, x ascending; base units.
    pub points: Vec<Point>,
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
}

impl Plot {
    /// The picture of a sweep; rows without a figure leave a gap.
    pub fn of_sweep(sweep: &Sweep<'_>) -> Self {
        let line = |line: &crate::sweep::Line<'_>| {
            let points = sweep.x_values.iter().zip(&line.points);
            let points = points.filter_map(|(x, outcome)| {
                let outcome = (*outcome)?;
                let y = label::figure(outcome)?;
                Some(Point { x: *x, y, interval: outcome.ci95 })
            });
            PlotLine { name: line.name(), points: points.collect() }
        };
        Self {
            x_name: label::noun(&sweep.chart.x_parameter),
            x_unit: label::unit_of(&sweep.chart.x_parameter).to_owned(),
            x_log2: sweep.chart.x_log2,
            scale: sweep.scale(),
            lines: sweep.lines.iter().map(line).collect(),
        }
    }

    /// The picture of one curve of an outcome.
    pub fn of_series(series: &Series) -> Self {
        let points = series.points.iter().filter(|[x, y]| x.is_finite() && y.is_finite());
        let points = points.map(|[x, y]| Point { x: *x, y: *y, interval: None });
        Self {
            x_name: label::noun(&series.x),
            x_unit: label::unit_of(&series.x).to_owned(),
            x_log2: false,
            scale: Scale::of_all(&series.y, series.points.iter().map(|point| point[1])),
            lines: vec![PlotLine { name: series.name.clone(), points: points.collect() }],
        }
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    pub(crate) fn x_axis(&self) -> Option<Axis> {
        Axis::for_x(self.points().map(|point| point.x), self.x_log2)
    }

    /// The y axis in the shown unit, so that labels are round numbers there.
    pub(crate) fn y_axis(&self) -> Option<Axis> {
        Axis::for_y(self.points().map(|point| point.y / self.scale.divisor))
    }

    /// A label of the x axis, as short as axis labels are: `4K`, `1M`, `8`.
    pub(crate) fn x_tick(&self, x: f64) -> String {
        match self.x_unit.as_str() {
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
