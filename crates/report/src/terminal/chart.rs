//! A line chart in characters: braille where the terminal has it, plain ASCII where not.
//!
//! Lines are told apart by letters set onto them, colour only helps. The matrix below the chart says which
//! is which.

use crate::chart::axis::Axis;
use crate::chart::plot::{self, Plot, Point};
use crate::{
    style::{Style, Tone},
    text,
};

/// Columns before the page's content.
const INDENT: usize = 2;
/// A wider drawing area does not show more.
const WIDEST: usize = 100;
/// Letters set onto one line at most, so that the line itself stays visible.
const LETTERS_PER_LINE: usize = 5;

/// The chart with axes, `height` rows of drawing area, each line ended by a line feed;
/// empty when there is nothing to draw.
pub fn chart(plot: &Plot, height: usize, style: &Style) -> String {
    let (Some(x_axis), Some(y_axis)) = (plot.x_axis(), plot.y_axis()) else {
        return String::new();
    };
    let height = height.clamp(4, 60);
    let y_ticks: Vec<(usize, String)> = y_axis
        .ticks((height / 2).max(2))
        .into_iter()
        .map(|tick| (cell(y_axis.position(tick), height), plot::y_tick(tick)))
        .collect();
    let label_width = y_ticks.iter().map(|(_, label)| text::width(label)).max().unwrap_or(0);
    let width = style.width().saturating_sub(INDENT + label_width + 2).clamp(8, WIDEST);

    // From 0 to 1 in both directions.
    let place =
        |point: &Point| (x_axis.position(point.x), y_axis.position(point.y / plot.scale.divisor));
    let mut canvas = Canvas::new(width, height, style.unicode);
    for (index, line) in plot.lines.iter().enumerate() {
        for run in &line.runs {
            let places: Vec<_> = run.iter().map(place).collect();
            // What is between points that no line joins is not known.
            let piece = if line.is_joined() { places.len() } else { 1 };
            places.chunks(piece.max(1)).for_each(|places| canvas.draw_line(places, index));
        }
    }
    for (index, line) in plot.lines.iter().enumerate() {
        let places: Vec<(f64, f64)> = line.points().map(place).collect();
        canvas.draw_letters(&places, index, plot.lines.len());
    }

    let gutter = " ".repeat(INDENT);
    let mut out = String::new();
    let names = text::shown(&format!("{} over {}", plot.y_name(), plot.x_name), style);
    for line in text::wrap(&names, style.width() - INDENT) {
        out.push_str(&format!("{gutter}{}\n", style.paint(&line, Tone::Dim)));
    }
    for row in 0..height {
        let tick = y_ticks.iter().find(|(at, _)| *at == height - 1 - row);
        let label = text::pad_left(tick.map_or("", |(_, label)| label), label_width);
        let bar = match tick {
            Some(_) => style.either("┤", "+"),
            None => style.either("│", "|"),
        };
        out.push_str(&gutter);
        out.push_str(&style.paint(&format!("{label} {bar}"), Tone::Dim));
        out.push_str(&canvas.row(row, style));
        out.push('\n');
    }
    push_x_axis(&mut out, plot, &x_axis, label_width, width, style);
    out
}

/// The cell of a place among `cells`.
fn cell(position: f64, cells: usize) -> usize {
    (position * (cells - 1) as f64).round() as usize
}

fn push_x_axis(
    out: &mut String,
    plot: &Plot,
    axis: &Axis,
    label_width: usize,
    width: usize,
    style: &Style,
) {
    let mut rule: Vec<&str> = vec![style.either("─", "-"); width];
    let mut labels = String::new();
    let mut used = 0;
    for tick in plot.x_ticks(axis, width / 8) {
        let at = cell(axis.position(tick), width);
        rule[at] = style.either("┬", "+");
        let label = text::shown(&plot.x_tick(tick), style);
        let label_columns = text::width(&label);
        // One column for the corner of the axes.
        let start = (at + 1)
            .saturating_sub(label_columns / 2)
            .min((width + 1).saturating_sub(label_columns));
        if start >= used {
            labels.push_str(&" ".repeat(start - used));
            labels.push_str(&label);
            used = start + label_columns + 1;
            labels.push(' ');
        }
    }
    let before = " ".repeat(INDENT + label_width + 1);
    let rule = format!("{}{}", style.either("└", "+"), rule.concat());
    out.push_str(&format!("{before}{}\n", style.paint(&rule, Tone::Dim)));
    let labels = format!("{before}{}", labels.trim_end());
    out.push_str(&format!("{}\n", style.paint(&labels, Tone::Dim)));
}

/// What stands in one cell of the drawing area.
#[derive(Debug, Clone, Copy, Default)]
struct Spot {
    /// Braille dots, or 1 for a dot in ASCII.
    dots: u8,
    letter: Option<usize>,
    line: usize,
}

/// The drawing area, row 0 on top.
struct Canvas {
    width: usize,
    height: usize,
    /// Dots per cell across and down.
    grain: (usize, usize),
    spots: Vec<Spot>,
}

/// Bit of a braille dot by row and column inside its cell (Unicode block 2800).
const BRAILLE: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

impl Canvas {
    fn new(width: usize, height: usize, unicode: bool) -> Self {
        let grain = if unicode { (2, 4) } else { (1, 1) };
        Self { width, height, grain, spots: vec![Spot::default(); width * height] }
    }

    fn dot_of(&self, (x, y): (f64, f64)) -> (i64, i64) {
        let across = self.width * self.grain.0 - 1;
        let down = self.height * self.grain.1 - 1;
        ((x * across as f64).round() as i64, ((1.0 - y) * down as f64).round() as i64)
    }

    fn set(&mut self, x: i64, y: i64, line: usize) {
        let (x, y) = (x.max(0) as usize, y.max(0) as usize);
        let at = (y / self.grain.1).min(self.height - 1) * self.width
            + (x / self.grain.0).min(self.width - 1);
        let spot = &mut self.spots[at];
        if spot.dots == 0 {
            spot.line = line;
        }
        spot.dots |= BRAILLE[y % self.grain.1][x % self.grain.0];
    }

    fn draw_line(&mut self, points: &[(f64, f64)], line: usize) {
        let dots: Vec<(i64, i64)> = points.iter().map(|point| self.dot_of(*point)).collect();
        if let [(x, y)] = dots[..] {
            self.set(x, y, line);
        }
        for pair in dots.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).max(1);
            for step in 0..=steps {
                let along = |a: i64, b: i64| {
                    a + ((b - a) as f64 * step as f64 / steps as f64).round() as i64
                };
                self.set(along(from.0, to.0), along(from.1, to.1), line);
            }
        }
    }

    /// Sets the line's letter onto some of its points, others than those of the lines beside it.
    fn draw_letters(&mut self, points: &[(f64, f64)], line: usize, lines: usize) {
        let stride = points.len().div_ceil(LETTERS_PER_LINE).max(1);
        let first = line * stride / lines.max(1);
        for point in points.iter().skip(first).step_by(stride) {
            let (x, y) = self.dot_of(*point);
            let at = (y as usize / self.grain.1) * self.width + x as usize / self.grain.0;
            let spot = &mut self.spots[at];
            if spot.letter.is_none() {
                *spot = Spot { letter: Some(line), line, ..*spot };
            }
        }
    }

    fn row(&self, row: usize, style: &Style) -> String {
        let spots = &self.spots[row * self.width..(row + 1) * self.width];
        let filled = spots.iter().rposition(|spot| spot.dots != 0 || spot.letter.is_some());
        let mut out = String::new();
        for spot in &spots[..filled.map_or(0, |last| last + 1)] {
            let sign = match (spot.letter, spot.dots) {
                (Some(line), _) => char::from(b'a' + (line % 26) as u8),
                (None, 0) => ' ',
                (None, dots) if style.unicode => {
                    char::from_u32(0x2800 + u32::from(dots)).unwrap_or('.')
                }
                (None, _) => '.',
            };
            match sign {
                ' ' => out.push(' '),
                sign => out.push_str(&style.paint(&sign.to_string(), Tone::Line(spot.line))),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::plot::PlotLine;

    #[test]
    fn nothing_is_drawn_between_points_that_no_line_joins() {
        let dots = |count: u32| {
            let points = (0..count).map(|x| Point::bare(f64::from(x), 1.0)).collect();
            let line = PlotLine { runs: vec![points], ..PlotLine::default() };
            let plot = Plot { lines: vec![line], ..Plot::default() };
            let style = Style { unicode: false, ..Style::default() };
            chart(&plot, 4, &style).matches('.').count()
        };
        assert!(dots(3) > 30, "a line");
        assert!(dots(2) < 5, "two points, each below its letter");
    }
}
