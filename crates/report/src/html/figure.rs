//! A picture of lines as a figure: heading, switches, the drawing with its values, legend.
//!
//! Switches are plain inputs, and rules of the style sheet hide what they switch off (`:has()`): a
//! page needs no script. A browser that lacks `:has()` shows all lines on the usual axis.

use std::fmt::Write as _;

use flatout_measure::record::{Outcome, Series};

use super::{
    Page,
    weight::{self, Spacings},
};
use crate::{
    label,
    markup::escaped,
    plot::{Plot, YSpacing},
    quantity, sparkline, svg,
};

/// Values that the style sheet has rules for, `.k0` and `.v0` to `.k39` and `.v39`.
const MOST_VALUES: usize = 40;
/// From so many lines on a picture takes the whole width.
const WIDE_FROM_LINES: usize = 7;
/// Pictures of more points are drawn on one axis only.
const MOST_POINTS_TWICE: usize = 150;

impl Page {
    /// A picture that has no table of its own.
    pub(super) fn plot_figure(&mut self, key: &str, title: &str, plot: &Plot) {
        self.open_figure(&format!("{key} {title}"), plot);
        self.line(format_args!("<figcaption><h3>{}</h3></figcaption>", escaped(title)));
        self.drawing(title, plot);
        self.line(format_args!("{}</figure>", svg::legend(plot)));
    }

    /// The opening tag; `key` names the picture for programs.
    pub(super) fn open_figure(&mut self, key: &str, plot: &Plot) {
        let wide = if plot.lines.len() >= WIDE_FROM_LINES { " class=\"wide\"" } else { "" };
        let count = plot.lines.iter().flat_map(|line| line.points()).count();
        let key = escaped(key);
        self.figures += 1;
        self.line(format_args!("<figure{wide} data-chart=\"{key}\" data-points=\"{count}\">"));
    }

    /// Switches and drawing, on both axes where both tell something.
    pub(super) fn drawing(&mut self, name: &str, plot: &Plot) {
        let count = plot.lines.iter().flat_map(|line| line.points()).count();
        let is_log = plot.is_logarithmic();
        let twice = self.detail.spacings == Spacings::Both
            && count <= MOST_POINTS_TWICE
            && plot.has_two_spacings();
        let switches = self.switches(plot, twice, is_log);
        self.line(format_args!("{switches}"));
        let usual = if is_log { "log" } else { "linear" };
        self.line(format_args!(
            "<div class=\"plot {usual}\">{}{}</div>",
            svg::chart(plot, name),
            svg::hits(plot)
        ));
        if twice {
            let (other, spacing) = match is_log {
                true => ("linear", YSpacing::Linear),
                false => ("log", YSpacing::Logarithmic),
            };
            let plot = plot.spaced(spacing);
            self.line(format_args!(
                "<div class=\"plot other {other}\">{}{}</div>",
                svg::chart(&plot, name),
                svg::hits(&plot)
            ));
        }
    }

    fn switches(&self, plot: &Plot, twice: bool, is_log: bool) -> String {
        let mut out = String::new();
        let mut first = 0;
        for switch in &plot.switches {
            if first + switch.values.len() > MOST_VALUES {
                break;
            }
            let _ = write!(out, "<fieldset><legend>{}</legend>", escaped(&switch.noun));
            for (at, value) in switch.values.iter().enumerate() {
                let (number, value) = (first + at, escaped(value));
                let _ = write!(
                    out,
                    "<label><input type=\"checkbox\" class=\"k{number}\" checked=\"\"/>{value}</label>"
                );
            }
            out.push_str("</fieldset>");
            first += switch.values.len();
        }
        if twice {
            let figure = self.figures;
            out.push_str("<fieldset><legend>axis</legend>");
            for (word, is_usual) in [("linear", !is_log), ("log", is_log)] {
                let checked = if is_usual { " checked=\"\"" } else { "" };
                let _ = write!(
                    out,
                    "<label><input type=\"radio\" name=\"axis-{figure}\" class=\"to-{word}\"{checked}/>{word}</label>"
                );
            }
            out.push_str("</fieldset>");
        }
        if out.is_empty() { out } else { format!("<div class=\"switches\">{out}</div>") }
    }

    /// Curves of single rows, those over time before others; one point makes no curve.
    pub(super) fn curves(&mut self, rows: &[&Outcome]) {
        let of_row = |row: &&'_ Outcome| {
            let curves = row.series.iter().filter(|series| series.points.len() > 1);
            curves.count()
        };
        let with_curves: Vec<&Outcome> =
            rows.iter().copied().filter(|row| of_row(row) > 0).collect();
        let first: Vec<(&Outcome, &Series)> = with_curves
            .iter()
            .filter_map(|row| Some((*row, row.series.iter().find(|one| one.points.len() > 1)?)))
            .collect();
        let names = label::short_names(&with_curves);
        let most = self.detail.curves.min(first.len());
        // Where a rate broke in comes first, since that is what a curve is for.
        let mut order: Vec<usize> = (0..first.len()).collect();
        order.sort_by_key(|at| !first[*at].0.audit.contains_key("knee_s"));
        for at in self.bounded(&order, most, weight::CURVES) {
            let (row, series) = first[*at];
            self.curve(row, series, &names[*at]);
        }
    }

    fn curve(&mut self, row: &Outcome, series: &Series, name: &str) {
        let series = self.thinned(series);
        let plot = Plot::over_time(&series, row);
        let title = format!("{name}: {}", series.name);
        self.open_figure(&format!("curve {title}"), &plot);
        let became = sparkline::sentence(row)
            .map_or_else(String::new, |sentence| format!("<p>{}</p>", escaped(&sentence)));
        let parameters = label::parameters(&row.parameters);
        let median = label::figure(row).map_or_else(String::new, |median| {
            format!(", median {}", quantity::value(&row.unit, median))
        });
        self.line(format_args!(
            "<figcaption><h3>{}</h3><p>{}</p>{became}</figcaption>",
            escaped(&title),
            escaped(&format!("{parameters}{median}")),
        ));
        self.drawing(&title, &plot);
        self.line(format_args!("</figure>"));
    }

    /// The curve with no more points than the page takes: means over equal numbers of neighbours.
    fn thinned(&mut self, series: &Series) -> Series {
        let most = self.detail.curve_points;
        if series.points.len() <= most {
            return series.clone();
        }
        self.left_out.insert(weight::POINTS);
        let each = series.points.len().div_ceil(most);
        let mean = |piece: &[[f64; 2]]| {
            let sum = |axis: usize| piece.iter().map(|point| point[axis]).sum::<f64>();
            [sum(0) / piece.len() as f64, sum(1) / piece.len() as f64]
        };
        Series { points: series.points.chunks(each).map(mean).collect(), ..series.clone() }
    }
}
