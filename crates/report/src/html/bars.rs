//! A picture of bars as HTML: names and values stay text, and keep their size on a small screen.

use std::fmt::Write as _;

use super::markup::escaped;
use super::svg::HUES;
use super::writer::Writer;
use crate::chart::axis::Axis;
use crate::chart::bars::{Bar, Bars};
use crate::chart::plot;
use crate::{label, text::unless_empty};

/// More bars of one group take the whole width.
const MOST_BARS_BESIDE: usize = 16;

impl Writer {
    pub(super) fn bars(&mut self, bars: &Bars) {
        let Some(axis) = bars.axis() else { return };
        if !self.has_room() {
            return;
        }
        let count = bars.bars().count();
        let longest = bars.groups.iter().map(|group| group.bars.len()).max().unwrap_or(0);
        let is_wide = bars.groups.len() > 2 || longest > MOST_BARS_BESIDE;
        let caption = format!("{}; the thin line is the 95\u{a0}% interval", bars.scale.unit);
        self.open_figure(&bars.key, &bars.title, &[&caption], (count, is_wide));
        self.line("<div class=\"bars\">");
        let ticks = axis_row(&axis);
        for group in &bars.groups {
            self.line("<div class=\"group\">");
            if !group.name.is_empty() {
                self.line(&format!("<h4>{}</h4>", escaped(&group.name)));
            }
            for bar in &group.bars {
                self.line(&bar_row(bars, bar, &axis));
            }
            self.line(&format!("{ticks}</div>"));
        }
        self.line("</div>\n</figure>");
    }
}

fn bar_row(bars: &Bars, bar: &Bar, axis: &Axis) -> String {
    let at = |base: f64| 100.0 * axis.position(base / bars.scale.divisor);
    let scale = &bars.scale;
    let interval = bar.point.interval.map_or_else(String::new, |[low, high]| {
        let (from, width) = (at(low), (at(high) - at(low)).max(0.3));
        // One that goes on beyond the picture ends in an arrow.
        let beyond = if high / scale.divisor > axis.high { " beyond" } else { "" };
        format!("<span class=\"ci{beyond}\" style=\"left:{from:.1}%;width:{width:.1}%\"></span>")
    });
    let told = format!("{}: {}", bar.name, bar.point.told(scale));
    let word = label::word(bar.point.status, bar.point.interval);
    let word = unless_empty(word, |word| format!(" <small>{word}</small>"));
    format!(
        "<div class=\"bar-row hue-{}\" tabindex=\"-1\" data-v=\"{}\"><span class=\"bar-name\">{}{word}</span>\
         <span class=\"bar-track\"><span class=\"bar-fill\" style=\"width:{:.1}%\"></span>{interval}</span>\
         <span class=\"bar-value\">{}</span></div>",
        bar.hue % HUES,
        escaped(&told),
        escaped(&bar.name),
        at(bar.point.y),
        escaped(&scale.text(bar.point.y)),
    )
}

fn axis_row(axis: &Axis) -> String {
    let mut out = String::from(
        "<div class=\"bar-row bar-axis\" aria-hidden=\"true\"><span class=\"bar-name\"></span><span class=\"bar-track\">",
    );
    for tick in axis.ticks(2) {
        let (left, text) = (100.0 * axis.position(tick), escaped(&plot::y_tick(tick)));
        let _ = write!(out, "<span class=\"bar-tick\" style=\"left:{left:.1}%\">{text}</span>");
    }
    out.push_str("</span><span class=\"bar-value\"></span></div>\n");
    out
}
