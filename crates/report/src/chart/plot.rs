//! Lines to be drawn, whatever draws them: the common ground of terminal chart and SVG.
//!
//! Which lines can be switched off together is found in [`switch`]; curves that no sweep describes
//! are made in `plot/curve.rs`.

mod curve;
pub mod switch;

use flatout_measure::record::{Outcome, Status};
use flatout_measure::statistics;

use super::axis::{Axis, Spacing};
use super::sweep::{LEAST_POINTS, Sweep};
use crate::{
    label,
    quantity::{self, Scale},
};

/// A picture as data; all y values share one scale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plot {
    /// Name of x, without its unit.
    pub x_name: String,
    /// Base unit of x; empty for counts.
    pub x_unit: String,
    /// Whether x is spaced by powers of two.
    pub x_log2: bool,
    /// Base unit of y.
    pub y_unit: String,
    /// How y is spaced.
    pub y_spacing: YSpacing,
    /// Scale of all y values.
    pub scale: Scale,
    /// The lines in the order of the legend.
    pub lines: Vec<PlotLine>,
    /// What tells the lines apart and can be switched, each with its values.
    pub switches: Vec<switch::Switch>,
    /// Places on the x axis that have a name, such as the sizes of caches.
    pub marks: Vec<Mark>,
    /// Figures that hold over a piece of the x axis, such as a sustained rate.
    pub levels: Vec<Level>,
}

/// How the y axis is spaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum YSpacing {
    /// From zero; by powers of ten where the figures differ too much.
    #[default]
    ByRange,
    /// From zero, whatever the figures.
    Linear,
    /// By powers of ten, where all figures are above zero.
    Logarithmic,
    /// From zero, and by powers of ten for who asks, however close the figures are.
    Either,
}

/// A named place on the x axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Place on the x axis, base unit.
    pub x: f64,
    /// What is there.
    pub name: String,
}

/// A figure over a piece of the x axis; base units.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Where it begins; the axis' foot where it is not finite.
    pub from_x: f64,
    /// Where it ends; the axis' end where it is not finite.
    pub to_x: f64,
    /// The figure.
    pub y: f64,
    /// What it is.
    pub name: String,
}

/// One line of a picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlotLine {
    /// Name in the legend.
    pub name: String,
    /// Which colour: equal for lines that share the value of one switch of the picture.
    pub hue: usize,
    /// Which pattern: equal for lines that share the values of its other switches.
    pub dash: usize,
    /// Whether its points have nothing between them.
    pub is_unjoined: bool,
    /// Its value of each switch of the picture, in their order; empty where it has none.
    pub values: Vec<String>,
    /// Points, x ascending, in runs that a row without figure separates; base units.
    pub runs: Vec<Vec<Point>>,
}

/// Lines of these rows that are points of their own: what was measured, below roofs that were not.
const UNJOINED: [(&str, &str); 1] = [("memory/roofline", "STREAM measured")];
/// Pictures that are read on a logarithmic axis, whatever their range.
const LOGARITHMIC: [&str; 2] = ["memory/roofline", "memory/latency"];
/// A picture goes on to so many times its largest figure for the sake of an interval.
const MOST_BEYOND: f64 = 2.0;
/// From this ratio of the largest to the smallest figure on, both spacings are worth a look.
const TELLING_RATIO: f64 = 3.0;
/// The unit of x in a picture of percentiles: −log₁₀ of the share that is above.
pub(crate) const NINES: &str = "nines";

impl PlotLine {
    /// All points, whatever run they belong to.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.runs.iter().flatten()
    }

    /// Whether a line goes from point to point: two points do not tell what is between them.
    pub fn is_joined(&self) -> bool {
        !self.is_unjoined && self.points().count() >= LEAST_POINTS
    }
}

/// Figures, and the ends of their intervals as far as a picture follows them: an interval that goes on to
/// many times all figures would press these flat.
pub(crate) fn figures_and_ends(points: &[Point]) -> impl Iterator<Item = f64> {
    let figures = points.iter().map(|point| point.y);
    let [least, most] = [f64::min, f64::max].map(|of| MOST_BEYOND * figures.clone().fold(0.0, of));
    let ends = points.iter().filter_map(|point| point.interval).flatten();
    figures.chain(ends.map(move |end| end.clamp(least, most)))
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

impl Point {
    /// The figure of a row, if it has one.
    pub fn of(x: f64, outcome: &Outcome) -> Option<Self> {
        let y = label::figure(outcome)?;
        Some(Self { x, y, interval: outcome.ci95, n: outcome.n, status: outcome.status })
    }

    /// A point of a curve, of which nothing more is known.
    pub fn bare(x: f64, y: f64) -> Self {
        Self { x, y, interval: None, n: 0, status: Status::Ok }
    }

    /// Figure, interval, number of samples, and the status unless it is ok.
    pub fn told(&self, scale: &Scale) -> String {
        let mut text = scale.text(self.y);
        if let Some([low, high]) = self.interval {
            text.push_str(&format!(" ({} … {})", scale.number(low), scale.number(high)));
        }
        if self.n > 0 {
            text.push_str(&format!(", n {}", self.n));
        }
        match label::word(self.status, self.interval) {
            "" => {}
            word => text.push_str(&format!(", {word}")),
        }
        text
    }
}

impl Plot {
    /// The picture of a sweep; rows without a figure leave a gap.
    pub fn of_sweep(sweep: &Sweep<'_>) -> Self {
        let lines = sweep.lines.iter().enumerate().map(|(hue, line)| {
            let first = line.labels.first().map_or("", String::as_str);
            let is_it =
                |(id, start): &(&str, &str)| *id == sweep.chart.id && first.starts_with(start);
            let is_unjoined = UNJOINED.iter().any(is_it);
            let runs = runs(&sweep.x_values, &line.points);
            PlotLine { name: line.name(), hue, is_unjoined, runs, ..PlotLine::default() }
        });
        let is_logarithmic = LOGARITHMIC.contains(&sweep.chart.id.as_str());
        let plot = Self {
            x_name: label::noun(&sweep.chart.x_parameter),
            x_unit: label::unit_of(&sweep.chart.x_parameter).to_owned(),
            x_log2: sweep.chart.x_log2,
            y_unit: sweep.unit.to_owned(),
            y_spacing: if is_logarithmic { YSpacing::Logarithmic } else { YSpacing::ByRange },
            scale: sweep.scale(),
            lines: lines.collect(),
            ..Self::default()
        };
        let labels: Vec<Vec<String>> = sweep.lines.iter().map(|line| line.labels.clone()).collect();
        let nouns: Vec<String> = sweep.line_parameters.iter().map(|key| label::noun(key)).collect();
        switch::add(plot, &nouns, &labels)
    }

    /// Whether figures by powers of ten would tell more than from zero, or the other way round:
    /// all are above zero, and the largest is several times the smallest. Not where zero must show.
    pub(crate) fn has_two_spacings(&self) -> bool {
        if self.y_spacing == YSpacing::Linear {
            return false;
        }
        let figures = self.points().map(|point| point.y).filter(|y| y.is_finite());
        let ratio = if self.y_spacing == YSpacing::Either { 1.0 } else { TELLING_RATIO };
        statistics::extremes(figures).is_some_and(|(low, high)| low > 0.0 && high >= ratio * low)
    }

    /// Whether the y axis is by powers of ten.
    pub(crate) fn is_logarithmic(&self) -> bool {
        self.y_axis().is_some_and(|axis| axis.spacing == Spacing::Log10)
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(PlotLine::points)
    }

    pub(crate) fn x_axis(&self) -> Option<Axis> {
        Axis::for_x(self.points().map(|point| point.x), self.x_log2)
    }

    /// At most about `most` labels; whole numbers only where x is counted.
    pub(crate) fn x_ticks(&self, axis: &Axis, most: usize) -> Vec<f64> {
        let counted = self.x_unit.is_empty() && self.points().all(|point| point.x.fract() == 0.0);
        if self.x_unit == NINES {
            let known = curve::PERCENTILES.iter().map(|percent| curve::nines(*percent));
            return known.filter(|at| (axis.low..=axis.high).contains(at)).collect();
        }
        let mut ticks = axis.ticks(most);
        ticks.retain(|tick| !counted || tick.fract() == 0.0);
        if ticks.len() < 2 {
            // Between two powers: the ends, where figures are.
            ticks = vec![axis.low, axis.high];
        }
        ticks
    }

    /// The y axis in the shown unit, so that labels are round numbers there.
    pub(crate) fn y_axis(&self) -> Option<Axis> {
        let figures = self.points().map(|point| point.y / self.scale.divisor);
        match self.y_spacing {
            YSpacing::ByRange => Axis::for_y(figures),
            YSpacing::Linear | YSpacing::Either => Axis::from_zero(figures),
            YSpacing::Logarithmic => Axis::by_tens(figures),
        }
    }

    /// The y axis with room for intervals and levels too; spaced as [`Plot::y_axis`].
    pub(crate) fn y_axis_with_intervals(&self) -> Option<Axis> {
        let spacing = self.y_axis()?.spacing;
        let levels = self.levels.iter().map(|level| level.y);
        let points: Vec<Point> = self.points().copied().collect();
        let all = figures_and_ends(&points).chain(levels);
        let all = all.map(|y| y / self.scale.divisor);
        match spacing {
            // The end of an interval that is not above zero has no place on this axis.
            Spacing::Log10 => Axis::by_tens(all.filter(|y| *y > 0.0)),
            Spacing::Linear | Spacing::Log2 => Axis::from_zero(all),
        }
    }

    /// A label of the x axis, as short as axis labels are: `4K`, `1M`, `8`.
    pub(crate) fn x_tick(&self, x: f64) -> String {
        match self.x_unit.as_str() {
            NINES => curve::percentile_name(x),
            _ if x == 0.0 => "0".to_owned(),
            "bytes" => {
                let size = quantity::size(x as u64);
                size.replace("iB", "").replace(" B", "").replace(' ', "")
            }
            "" => y_tick(x),
            unit => {
                let text = quantity::value(unit, x);
                text.replace(".00 ", " ").replace(".0 ", " ")
            }
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
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The points of a line; a row without figure parts them, an x at which the line has no row does
/// not.
fn runs(x_values: &[f64], outcomes: &[Option<&Outcome>]) -> Vec<Vec<Point>> {
    let rows = x_values.iter().zip(outcomes).filter_map(|(x, outcome)| Some((*x, (*outcome)?)));
    let points: Vec<Option<Point>> = rows.map(|(x, outcome)| Point::of(x, outcome)).collect();
    let runs = points.split(Option::is_none).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().copied().flatten().collect()).collect()
}
