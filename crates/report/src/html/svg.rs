//! Line charts for the page.
//!
//! Own code, since no crate was found that gives all of: powers of two on the x axis, colours left
//! to the page (dark mode), exact values on every point, intervals as bands and whiskers. Colour is
//! never the only sign: lines differ in marker and pattern too. Values on hover lie over the
//! picture.

use std::fmt::Write as _;

use flatout_measure::record::Status;

use super::markup::escaped;
use crate::chart::axis::Axis;
use crate::chart::plot::{self, NINES, Plot, PlotLine, Point};
use crate::{quantity, text::unless_empty};

/// Size of a chart in its own units; the page scales it.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 56.0;
/// Texts so near to an end of the x axis could leave the picture on a small screen.
const MARGIN: f64 = 40.0;
/// Labels of the x axis, at most, and how wide one of their letters is.
const MOST_X_TICKS: usize = 13;
const LETTER: f64 = 8.5;
/// Colours that the style sheet defines as `--line-0` and so on.
pub(crate) const HUES: usize = 6;
/// Beyond so many points a line is only a line.
const MOST_MARKERS: usize = 60;
/// From so many points on a single line, each point takes its column of the picture.
const COLUMNS_FROM: usize = 40;
/// Stroke patterns by the `dash` of a line; the first is solid.
const DASHES: [&str; 4] = ["", "7 4", "2 4", "10 3 2 3"];

/// Writes a line; into a String that cannot fail.
macro_rules! line {
    ($out:ident, $($told:tt)*) => {
        let _ = writeln!($out, $($told)*);
    };
}

/// The chart as an `svg` element whose colours come from the page; empty if there is nothing to
/// draw. `name` is read out by screen readers.
pub fn chart(plot: &Plot, name: &str) -> String {
    let Some(frame) = Frame::of(plot) else { return String::new() };
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escaped(name)
    );
    frame.push_axes(&mut out);
    frame.push_notes(&mut out);
    for (index, line) in plot.lines.iter().enumerate() {
        frame.push_line(&mut out, line, index);
    }
    out.push_str("</svg>\n");
    out
}

/// The legend of a chart as an HTML list, each entry with a piece of its line.
///
/// A picture of one line that nothing tells apart has none.
pub(crate) fn legend(plot: &Plot) -> String {
    if plot.lines.len() == 1 {
        return String::new();
    }
    let mut out = String::from("<ul class=\"legend\">\n");
    for (index, line) in plot.lines.iter().enumerate() {
        line!(
            out,
            "<li class=\"{}\"><svg class=\"swatch\" viewBox=\"0 0 34 12\" aria-hidden=\"true\"><g class=\"{}\">\
                 {}<path class=\"marker\" d=\"{}\"/></g></svg>{}</li>",
            value_classes(plot, line).trim_start(),
            hue_class(line),
            stroke(line),
            marker(index, 17.0, 6.0),
            escaped(&line.name)
        );
    }
    out.push_str("</ul>\n");
    out
}

/// What takes part in drawing: the picture and its axes.
struct Frame<'a> {
    plot: &'a Plot,
    x: Axis,
    y: Axis,
}

impl<'a> Frame<'a> {
    fn of(plot: &'a Plot) -> Option<Self> {
        Some(Self { plot, x: plot.x_axis()?, y: plot.y_axis_with_intervals()? })
    }

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

    /// As many labels as stand beside each other.
    fn x_ticks(&self) -> Vec<f64> {
        let is_apart = |ticks: &Vec<f64>| {
            let half = |tick: f64| self.plot.x_tick(tick).chars().count() as f64 * LETTER / 2.0;
            ticks.windows(2).all(|pair| {
                let between = self.x_at(pair[1]) - self.x_at(pair[0]);
                between >= half(pair[0]) + half(pair[1]) + LETTER
            })
        };
        let fewer = (2..=MOST_X_TICKS).rev().map(|most| self.plot.x_ticks(&self.x, most));
        fewer.clone().find(is_apart).unwrap_or_else(|| self.plot.x_ticks(&self.x, 2))
    }

    fn push_axes(&self, out: &mut String) {
        let (right, foot) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        out.push_str("<g class=\"axis\">\n");
        for tick in self.y.ticks(6) {
            let at = self.y_at_shown(tick);
            line!(out, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
            let (x, y) = (LEFT - 8.0, at + 4.5);
            let text = escaped(&plot::y_tick(tick));
            line!(out, "<text class=\"y\" x=\"{x}\" y=\"{y:.1}\">{text}</text>");
        }
        for (index, tick) in self.x_ticks().into_iter().enumerate() {
            let at = self.x_at(tick);
            line!(out, "<path class=\"tick\" d=\"M{at:.1} {foot}v5\"/>");
            // On a small screen every second tick has its text, and those at the ends stay inside.
            let minor = if index % 2 == 1 { " minor" } else { "" };
            let place = match (at - LEFT < MARGIN, WIDTH - RIGHT - at < MARGIN) {
                (true, _) => " first",
                (_, true) => " last",
                _ => "",
            };
            let text = escaped(&self.plot.x_tick(tick));
            let y = foot + 22.0;
            line!(out, "<text class=\"x{minor}{place}\" x=\"{at:.1}\" y=\"{y}\">{text}</text>");
        }
        line!(out, "<path class=\"base\" d=\"M{LEFT} {foot}H{right}\"/>");
        let name = escaped(&self.plot.y_name());
        line!(out, "<text class=\"name\" x=\"6\" y=\"17\">{name}</text>");
        let name = escaped(&self.plot.x_name);
        let y = HEIGHT - 7.0;
        line!(out, "<text class=\"name end\" x=\"{right}\" y=\"{y}\">{name}</text>");
        out.push_str("</g>\n");
    }

    /// Names of places on the x axis, at the head of the picture, and figures that hold for a while.
    fn push_notes(&self, out: &mut String) {
        let within = |x: f64| (self.x.low..=self.x.high).contains(&x);
        for mark in self.plot.marks.iter().filter(|mark| within(mark.x)) {
            let (x, foot) = (self.x_at(mark.x), HEIGHT - BOTTOM);
            let (class, text) = if x > WIDTH * 0.8 { (" end", x - 5.0) } else { ("", x + 5.0) };
            let name = escaped(&mark.name);
            line!(out, "<path class=\"mark\" d=\"M{x:.1} {TOP}V{foot}\"/>");
            let y = TOP + 12.0;
            line!(out, "<text class=\"note{class}\" x=\"{text:.1}\" y=\"{y}\">{name}</text>");
        }
        for level in &self.plot.levels {
            let ends = |x: f64, end: f64| if x.is_finite() { self.x_at(x) } else { end };
            let (from, to) = (ends(level.from_x, LEFT), ends(level.to_x, WIDTH - RIGHT));
            let y = self.y_at(level.y);
            let name = escaped(&level.name);
            line!(out, "<path class=\"level\" d=\"M{from:.1} {y:.1}H{to:.1}\"/>");
            let (x, y) = (from + 6.0, y - 7.0);
            line!(out, "<text class=\"note\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>");
        }
    }

    fn push_line(&self, out: &mut String, line: &PlotLine, index: usize) {
        let class = format!("{}{}", hue_class(line), value_classes(self.plot, line));
        line!(out, "<g class=\"{class}\">");
        for run in &line.runs {
            self.push_intervals(out, line, run);
            if line.is_joined() {
                let path = path(run.iter().map(|point| (self.x_at(point.x), self.y_at(point.y))));
                line!(out, "<path class=\"run\"{} d=\"{path}\"/>", dash(line));
            }
        }
        let count = line.points().count();
        if count <= MOST_MARKERS {
            for (class, is_ok) in [("marker", true), ("marker hollow", false)] {
                let own = line.points().filter(|point| (point.status == Status::Ok) == is_ok);
                let path: String =
                    own.map(|p| marker(index, self.x_at(p.x), self.y_at(p.y))).collect();
                if !path.is_empty() {
                    line!(out, "<path class=\"{class}\" d=\"{path}\"/>");
                }
            }
        }
        out.push_str("</g>\n");
    }

    /// The 95 % intervals of a run: a whisker at each point that has one, and a band between points
    /// that a line joins.
    fn push_intervals(&self, out: &mut String, line: &PlotLine, run: &[Point]) {
        let mut whiskers = String::new();
        for piece in run.split(|point| point.interval.is_none()) {
            let edge = |which: usize| {
                piece
                    .iter()
                    .filter_map(move |p| Some((self.x_at(p.x), self.y_at(p.interval?[which]))))
            };
            if line.is_joined() && piece.len() > 1 {
                let back: Vec<(f64, f64)> = edge(0).collect();
                let path = path(edge(1).chain(back.into_iter().rev()));
                line!(out, "<path class=\"interval-band\" d=\"{path}Z\"/>");
            }
            let is_beyond = |[_, high]: [f64; 2]| high / self.plot.scale.divisor > self.y.high;
            let beyond = piece.iter().filter_map(|point| point.interval.map(is_beyond));
            for (((x, low), (_, high)), is_beyond) in edge(0).zip(edge(1)).zip(beyond) {
                let (left, right) = (x - 3.0, x + 3.0);
                let _ =
                    write!(whiskers, "M{x:.1} {low:.1}V{high:.1}M{left:.1} {low:.1}H{right:.1}");
                // One that goes on beyond the picture ends in an arrow.
                let _ = match is_beyond {
                    true => write!(whiskers, "M{x:.1} {high:.1}m-4 6l4 -6l4 6"),
                    false => write!(whiskers, "M{left:.1} {high:.1}H{right:.1}"),
                };
            }
        }
        if !whiskers.is_empty() {
            line!(out, "<path class=\"whisker\" d=\"{whiskers}\"/>");
        }
    }
}

/// One class per switch of the picture: the number of the value that the line has there.
pub(crate) fn value_classes(plot: &Plot, line: &PlotLine) -> String {
    let mut classes = String::new();
    let mut first = 0;
    for (switch, value) in plot.switches.iter().zip(&line.values) {
        if let Some(at) = switch.values.iter().position(|known| known == value) {
            let _ = write!(classes, " v{}", first + at);
        }
        first += switch.values.len();
    }
    classes
}

/// Straight from place to place.
fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let verbs = std::iter::once('M').chain(std::iter::repeat('L'));
    verbs.zip(places).map(|(verb, (x, y))| format!("{verb}{x:.1} {y:.1}")).collect()
}

fn hue_class(line: &PlotLine) -> String {
    format!("hue-{}", line.hue % HUES)
}

/// The piece of line in the legend; none where points are not joined.
fn stroke(line: &PlotLine) -> String {
    match line.is_joined() {
        true => format!("<path class=\"run\"{} d=\"M1 6H33\"/>", dash(line)),
        false => String::new(),
    }
}

/// Where there are more lines than colours, the second round has another pattern.
fn dash(line: &PlotLine) -> String {
    let pattern = DASHES[(line.dash + line.hue / HUES) % DASHES.len()];
    unless_empty(pattern, |pattern| format!(" stroke-dasharray=\"{pattern}\""))
}

/// One of five shapes around a place, as a piece of a path.
fn marker(index: usize, x: f64, y: f64) -> String {
    let moves = match index % 5 {
        0 => "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z",
        1 => "m-3.2 -3.2h6.4v6.4h-6.4z",
        2 => "m0 -4.4l4.2 7.4h-8.4z",
        3 => "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",
        _ => "m0 4.4l4.2 -7.4h-8.4z",
    };
    format!("M{x:.1} {y:.1}{moves}")
}

/// Values on hover, without a script: small fields that lie over the picture, each with its text, in the order of
/// lines and points. They are HTML, not SVG, since only HTML takes text from an attribute (`content: attr()`),
/// keeps its size on a small screen, and can be focused by a tap. The style sheet shows the text.
pub(crate) fn hits(plot: &Plot) -> String {
    let Some(frame) = Frame::of(plot) else { return String::new() };
    let mut out = String::from("<div class=\"hits\">\n");
    let count = plot.points().count();
    let in_columns = plot.lines.len() == 1 && count >= COLUMNS_FROM;
    for line in &plot.lines {
        let classes = value_classes(plot, line);
        let width = if in_columns { 100.0 / count as f64 } else { 0.0 };
        for point in line.points() {
            let (left, top) = (frame.x_at(point.x) / WIDTH, frame.y_at(point.y) / HEIGHT);
            let (left, top) = (100.0 * left, 100.0 * top);
            let side = if left > 50.0 { "w" } else { "e" };
            let below = if top < 35.0 { " s" } else { "" };
            let (kind, place) = match in_columns {
                true => (" col", format!("left:{left:.2}%;width:{width:.2}%;--y:{top:.1}%")),
                false => ("", format!("left:{left:.2}%;top:{top:.2}%")),
            };
            let text = escaped(&text(&frame, line, point));
            // Writing into a String cannot fail.
            let _ = writeln!(
                out,
                "<i class=\"{side}{below}{kind}{classes}\" style=\"{place}\" tabindex=\"-1\" data-v=\"{text}\"></i>"
            );
        }
    }
    out.push_str("</div>\n");
    out
}

/// Rounded for reading, and exact in the base unit.
fn text(frame: &Frame<'_>, line: &PlotLine, point: &Point) -> String {
    let scale = &frame.plot.scale;
    let name = if line.name.is_empty() { "" } else { &format!("{}, ", line.name) };
    let mut text = format!("{name}{}: {}", x_text(frame.plot, point.x), point.told(scale));
    if scale.divisor != 1.0 && point.n > 0 {
        let _ = write!(text, "; exactly {} {}", point.y, frame.plot.y_unit);
    }
    text
}

fn x_text(plot: &Plot, x: f64) -> String {
    match plot.x_unit.as_str() {
        "bytes" => quantity::size(x as u64),
        NINES => plot.x_tick(x),
        _ => format!("{} {}", plot.x_name, plot.x_tick(x)),
    }
}
