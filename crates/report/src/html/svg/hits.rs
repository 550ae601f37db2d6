//! Values on hover, without a script: small fields that lie over the picture, each with its text.
//!
//! They are HTML, not SVG, since only HTML takes text from an attribute (`content: attr()`), keeps
//! its size on a small screen, and can be focused by a tap. The style sheet shows the text.

use std::fmt::Write as _;

use super::{Frame, HEIGHT, WIDTH, value_classes};
use crate::chart::plot::{NINES, Plot, PlotLine, Point};
use crate::html::markup::escaped;
use crate::quantity;

/// From so many points on a single line, each point takes its column of the picture.
const COLUMNS_FROM: usize = 40;

/// The fields of all points, in the order of lines and points; empty if there is nothing to draw.
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
