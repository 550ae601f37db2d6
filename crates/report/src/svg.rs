//! Pictures for the page: line charts, and the strip of samples beside a figure.
//!
//! Own code, since no crate was found that gives all of: powers of two on the x axis, colours left
//! to the page (dark mode), a `title` with exact values on every point, intervals as whiskers.
//! Colour is never the only sign: lines differ in marker and pattern too.

use std::fmt::Write as _;

use flatout_measure::record::{Outcome, Status};

use crate::{
    axis::Axis,
    label,
    markup::escaped,
    plot::{self, Plot, PlotLine, Point},
    quantity,
};

/// Size of a chart in its own units; the page scales it.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 56.0;
/// Colours that the style sheet defines as `--line-0` and so on.
pub(crate) const HUES: usize = 6;
/// Stroke patterns by the `dash` of a line; the first is solid.
const DASHES: [&str; 4] = ["", "7 4", "2 4", "10 3 2 3"];

/// The chart as an `svg` element whose colours come from the page; empty if there is nothing to
/// draw. `name` is read out by screen readers.
pub fn chart(plot: &Plot, name: &str) -> String {
    let (Some(x), Some(y)) = (plot.x_axis(), plot.y_axis()) else { return String::new() };
    let frame = Frame { plot, x, y };
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(name)
    );
    frame.push_axes(&mut out);
    for (index, line) in plot.lines.iter().enumerate() {
        frame.push_line(&mut out, line, index);
    }
    out.push_str("</svg>\n");
    out
}

/// The legend of a chart as an HTML list, each entry with a piece of its line.
pub(crate) fn legend(plot: &Plot) -> String {
    let mut out = String::from("<ul class=\"legend\">\n");
    for (index, line) in plot.lines.iter().enumerate() {
        push(
            &mut out,
            format_args!(
                "<li><svg class=\"swatch\" viewBox=\"0 0 34 12\" aria-hidden=\"true\"><g class=\"{}\">\
                 <path class=\"run\"{} d=\"M1 6H33\"/>{}</g></svg>{}</li>",
                hue_class(line),
                dash(line),
                marker(index, 17.0, 6.0),
                escaped(&line.name)
            ),
        );
    }
    out.push_str("</ul>\n");
    out
}

struct Frame<'a> {
    plot: &'a Plot,
    x: Axis,
    y: Axis,
}

impl Frame<'_> {
    fn x_at(&self, x: f64) -> f64 {
        LEFT + self.x.position(x) * (WIDTH - LEFT - RIGHT)
    }

    /// The height of a value in base units.
    fn y_at(&self, y: f64) -> f64 {
        self.y_at_shown(y / self.plot.scale.divisor)
    }

    fn y_at_shown(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.position(y) * (HEIGHT - TOP - BOTTOM)
    }

    fn push_axes(&self, out: &mut String) {
        let (right, foot) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        out.push_str("<g class=\"axis\">\n");
        for tick in self.y.ticks(6) {
            let at = self.y_at_shown(tick);
            push(out, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>"));
            let (x, y) = (LEFT - 8.0, at + 4.5);
            let text = escaped(&plot::y_tick(tick));
            push(out, format_args!("<text class=\"y\" x=\"{x}\" y=\"{y:.1}\">{text}</text>"));
        }
        for (index, tick) in self.plot.x_ticks(&self.x, 13).into_iter().enumerate() {
            let at = self.x_at(tick);
            push(out, format_args!("<path class=\"tick\" d=\"M{at:.1} {foot}v5\"/>"));
            let minor = if index % 2 == 1 { " minor" } else { "" };
            let text = escaped(&self.plot.x_tick(tick));
            let y = foot + 22.0;
            push(
                out,
                format_args!("<text class=\"x{minor}\" x=\"{at:.1}\" y=\"{y}\">{text}</text>"),
            );
        }
        push(out, format_args!("<path class=\"base\" d=\"M{LEFT} {foot}H{right}\"/>"));
        let name = escaped(&self.plot.y_name());
        push(out, format_args!("<text class=\"name\" x=\"6\" y=\"17\">{name}</text>"));
        let name = escaped(&self.plot.x_name);
        let y = HEIGHT - 7.0;
        push(out, format_args!("<text class=\"name end\" x=\"{right}\" y=\"{y}\">{name}</text>"));
        out.push_str("</g>\n");
    }

    fn push_line(&self, out: &mut String, line: &PlotLine, index: usize) {
        push(out, format_args!("<g class=\"{}\">", hue_class(line)));
        for run in &line.runs {
            let mut path = String::new();
            for (at, point) in run.iter().enumerate() {
                let verb = if at == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{verb}{:.1} {:.1}", self.x_at(point.x), self.y_at(point.y));
            }
            push(out, format_args!("<path class=\"run\"{} d=\"{path}\"/>", dash(line)));
        }
        for point in line.points() {
            let (x, y) = (self.x_at(point.x), self.y_at(point.y));
            let hollow = if point.status == Status::Ok { "" } else { " hollow" };
            let title = escaped(&self.title(line, point));
            push(out, format_args!("<g class=\"point{hollow}\"><title>{title}</title>"));
            if let Some([low, high]) = point.interval {
                let (low, high) = (self.y_at(low), self.y_at(high));
                let (left, right) = (x - 3.0, x + 3.0);
                push(
                    out,
                    format_args!(
                        "<path class=\"whisker\" d=\"M{x:.1} {low:.1}V{high:.1}\
                         M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}\"/>"
                    ),
                );
            }
            push(out, format_args!("{}", marker(index, x, y)));
            push(
                out,
                format_args!("<circle class=\"hit\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"10\"/></g>"),
            );
        }
        out.push_str("</g>\n");
    }

    /// Rounded for reading, and exact in the base unit.
    fn title(&self, line: &PlotLine, point: &Point) -> String {
        let scale = &self.plot.scale;
        let mut title = format!("{}, {}: {}", line.name, self.x_text(point.x), scale.text(point.y));
        if let Some([low, high]) = point.interval {
            let _ = write!(title, " ({} … {})", scale.number(low), scale.number(high));
        }
        if point.n > 0 {
            let _ = write!(title, ", n {}", point.n);
        }
        if point.status != Status::Ok {
            let _ = write!(title, ", {}", label::status(point.status));
        }
        if scale.divisor != 1.0 {
            let _ = write!(title, "; exactly {}", point.y);
            let _ = write!(title, " {}", self.plot.y_unit);
        }
        title
    }

    fn x_text(&self, x: f64) -> String {
        match self.plot.x_unit.as_str() {
            "bytes" => quantity::size(x as u64),
            _ => format!("{} {}", self.plot.x_name, self.plot.x_tick(x)),
        }
    }
}

fn hue_class(line: &PlotLine) -> String {
    format!("hue-{}", line.hue % HUES)
}

fn dash(line: &PlotLine) -> String {
    match DASHES[line.dash % DASHES.len()] {
        "" => String::new(),
        pattern => format!(" stroke-dasharray=\"{pattern}\""),
    }
}

/// One of five shapes around a place.
fn marker(index: usize, x: f64, y: f64) -> String {
    let path = |moves: &str| format!("<path class=\"marker\" d=\"M{x:.1} {y:.1}{moves}\"/>");
    match index % 5 {
        0 => format!("<circle class=\"marker\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"),
        1 => path("m-3.2 -3.2h6.4v6.4h-6.4z"),
        2 => path("m0 -4.4l4.2 7.4h-8.4z"),
        3 => path("m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z"),
        _ => path("m0 4.4l4.2 -7.4h-8.4z"),
    }
}

/// A strip shows this share of the median to either side.
pub(crate) const STRIP_REACH: f64 = 0.05;
const STRIP_WIDTH: f64 = 104.0;

/// Every sample of a row as a stroke on a scale from 5 % below to 5 % above the median, the
/// interval as a band. Strips of different rows can be compared by eye; samples beyond the scale
/// stand at its end.
pub(crate) fn strip(outcome: &Outcome) -> String {
    let Some(median) = label::figure(outcome).filter(|median| *median != 0.0) else {
        return String::new();
    };
    if outcome.samples.len() < 2 {
        return String::new();
    }
    let place = |value: f64| {
        let share = (value / median - 1.0) / STRIP_REACH;
        ((share.clamp(-1.0, 1.0) + 1.0) / 2.0 * (STRIP_WIDTH - 4.0) + 2.0, share.abs() > 1.0)
    };
    let unit = |value: f64| quantity::value(&outcome.unit, value);
    let low = outcome.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let high = outcome.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let title = format!("{} samples, {} to {}", outcome.samples.len(), unit(low), unit(high));
    let mut out = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {STRIP_WIDTH} 20\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>",
        escaped(&title)
    );
    if let Some([low, high]) = outcome.ci95 {
        let (low, high) = (place(low).0, place(high).0);
        let width = (high - low).max(1.0);
        let _ = write!(
            out,
            "<rect class=\"band\" x=\"{low:.1}\" y=\"2\" width=\"{width:.1}\" height=\"16\"/>"
        );
    }
    for sample in &outcome.samples {
        let (x, beyond) = place(*sample);
        let class = if beyond { "sample beyond" } else { "sample" };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1} 5v10\"/>");
    }
    let _ = write!(out, "<path class=\"median\" d=\"M{:.1} 1v18\"/></svg>", place(median).0);
    out
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{line}");
}
