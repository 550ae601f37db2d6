//! A picture of lines as a figure: heading, switches, the drawing with its values, legend.
//!
//! Switches are plain inputs, and rules of the style sheet hide what they switch off (`:has()`): a
//! page needs no script. A browser that lacks `:has()` shows all lines on the usual axis.

use std::fmt::Write as _;

use super::markup::escaped;
use super::svg;
use super::weight;
use super::writer::Writer;
use crate::chart::plot::{Plot, Point, YSpacing};
use crate::page::{Chart, Curve};

/// Values that the style sheet has rules for, `.k0` and `.v0` to `.k39` and `.v39`.
const MOST_VALUES: usize = 40;
/// From so many lines on a picture takes the whole width.
const WIDE_FROM_LINES: usize = 7;
/// Lines whose names stand open; those of more are folded: the switches tell them apart.
const MOST_IN_LEGEND: usize = 16;
/// Pictures of more points are drawn on one axis only.
const MOST_POINTS_TWICE: usize = 150;

fn size(plot: &Plot) -> (usize, bool) {
    (plot.points().count(), plot.lines.len() >= WIDE_FROM_LINES)
}

impl Writer {
    /// Whether the section may have one more picture.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.room[0] > 0;
        self.room[0] = self.room[0].saturating_sub(1);
        if !has_room {
            self.leave_out(weight::CHARTS);
        }
        has_room
    }

    /// A picture; its figures unfold below it.
    pub(super) fn chart(&mut self, chart: &Chart) {
        if !self.has_room() {
            return;
        }
        self.open_figure(&chart.key, &chart.title, &[&chart.caption], size(&chart.plot));
        self.drawing(&chart.title, &chart.plot);
        let legend = svg::legend(&chart.plot);
        match chart.plot.lines.len() {
            lines if lines > MOST_IN_LEGEND => self.line(&format!(
                "<details>\n<summary>{lines} lines: which is which</summary>\n{legend}</details>"
            )),
            _ => self.line(&legend),
        }
        if let Some(table) = &chart.table {
            let unit = escaped(&table.unit);
            self.line(&format!("<details>\n<summary>All figures in {unit}</summary>"));
            self.table(table);
            self.line("</details>");
        }
        self.line("</figure>");
    }

    /// The opening tag and the caption; `key` names the picture for programs. Of how many points it is,
    /// and whether it takes the whole width.
    pub(super) fn open_figure(
        &mut self,
        key: &str,
        title: &str,
        captions: &[&str],
        (count, is_wide): (usize, bool),
    ) {
        let wide = if is_wide { " class=\"wide\"" } else { "" };
        let (key, title) = (escaped(key), escaped(title));
        self.figures += 1;
        let captions: String = captions
            .iter()
            .filter(|caption| !caption.is_empty())
            .map(|caption| format!("<p>{}</p>", escaped(caption)))
            .collect();
        self.line(&format!(
            "<figure{wide} data-chart=\"{key}\" data-points=\"{count}\">\n\
             <figcaption><h3>{title}</h3>{captions}</figcaption>"
        ));
    }

    /// Switches and drawing, on both axes where both tell something.
    fn drawing(&mut self, name: &str, plot: &Plot) {
        let count = plot.points().count();
        let is_log = plot.is_logarithmic();
        let twice =
            self.detail.has_both_axes && count <= MOST_POINTS_TWICE && plot.has_two_spacings();
        let switches = self.switches(plot, twice, is_log);
        self.line(&switches);
        let (usual, other, spacing) = match is_log {
            true => ("log", "other linear", YSpacing::Linear),
            false => ("linear", "other log", YSpacing::Logarithmic),
        };
        let other = twice.then(|| (other, Plot { y_spacing: spacing, ..plot.clone() }));
        for (class, plot) in [(usual, plot)].into_iter().chain(other.iter().map(|(c, p)| (*c, p))) {
            let (chart, hits) = (svg::chart(plot, name), svg::hits(plot));
            self.line(&format!("<div class=\"plot {class}\">{chart}{hits}</div>"));
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

    /// The first curve of a row.
    pub(super) fn curve(&mut self, curve: &Curve) {
        let Some((name, plot)) = &curve.plot else { return };
        if self.room[1] == 0 {
            return self.leave_out(weight::CURVES);
        }
        self.room[1] -= 1;
        let title = format!("{}: {name}", curve.name);
        let captions = [curve.caption.as_str(), curve.sentence.as_deref().unwrap_or_default()];
        let plot = self.thinned(plot);
        self.open_figure(&format!("curve {title}"), &title, &captions, size(&plot));
        self.drawing(&title, &plot);
        self.line("</figure>");
    }

    /// The curve with about as many points as the page takes: means over equal numbers of points, none
    /// across a gap.
    fn thinned(&mut self, plot: &Plot) -> Plot {
        let most = self.detail.curve_points;
        let count = plot.points().count();
        let mut plot = plot.clone();
        if count > most {
            self.leave_out(weight::POINTS);
            let mean = |piece: &[Point]| {
                let mean =
                    |of: fn(&Point) -> f64| piece.iter().map(of).sum::<f64>() / piece.len() as f64;
                Point { x: mean(|point| point.x), y: mean(|point| point.y), ..piece[0] }
            };
            let each = count.div_ceil(most);
            for run in plot.lines.iter_mut().flat_map(|line| &mut line.runs) {
                *run = run.chunks(each).map(mean).collect();
            }
        }
        plot
    }
}
