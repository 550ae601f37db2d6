//! A comparison as one page for a browser that needs nothing from anywhere.
//!
//! The page runs no script; the `script` element holds the JSON document as data.

use std::fmt::Write as _;

use flatout_measure::comparison::{Comparison, Row, Verdict};

use super::{Document, value, words};
use crate::{json, markup::escaped};

/// The style of all pages, and what only this one has.
const STYLE_SHEETS: [&str; 2] = [include_str!("../html/page.css"), include_str!("comparison.css")];

/// Half the width of the strip beside a ratio is a factor of this, at most.
const WIDEST: f64 = 4.0;
/// Half the width of the strip is a factor of this, at least.
const NARROWEST: f64 = 1.2;
/// Size of the strip in its own units.
const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 20.0;

/// The page.
pub(super) fn page(document: &Document) -> String {
    let tool = escaped(&document.tool);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"{tool}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>flatout compare</title>\n<style>\n{}</style>\n</head>\n<body>\n<header><h1>flatout compare</h1>\
         <p class=\"meta\">{tool}</p></header>\n<main>\n",
        STYLE_SHEETS.concat()
    );
    if !document.errors.is_empty() {
        out.push_str("<section class=\"errors\" role=\"alert\"><h2>Errors</h2><ul>\n");
        for error in &document.errors {
            line(&mut out, format_args!("<li>{}</li>", escaped(error)));
        }
        out.push_str("</ul></section>\n");
    }
    for comparison in &document.comparisons {
        push_comparison(&mut out, comparison);
    }
    out.push_str("<section id=\"meaning\"><h2>What the columns mean</h2><ul>\n");
    for meaning in words::MEANING {
        line(&mut out, format_args!("<li>{}</li>", escaped(meaning)));
    }
    out.push_str("</ul></section>\n</main>\n");
    line(
        &mut out,
        format_args!(
            "<footer><p>This page holds its document as JSON ({}) in the element <code>comparison</code>.</p></footer>\n\
             <script type=\"application/json\" id=\"comparison\">{}</script>\n</body>\n</html>",
            document.schema,
            embedded(document)
        ),
    );
    out
}

/// The document for a `script` element: no character that HTML could take for markup. They can
/// only stand inside strings.
fn embedded(document: &Document) -> String {
    let text = json::line(&value(document));
    let text = text.trim_end().replace('<', "\\u003c").replace('>', "\\u003e");
    text.replace('&', "\\u0026")
}

fn line(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{line}");
}

fn push_comparison(out: &mut String, comparison: &Comparison) {
    out.push_str("<section class=\"comparison\">\n");
    for (name, side) in [("OLD", &comparison.old), ("NEW", &comparison.new)] {
        line(out, format_args!("<p class=\"side\">{}</p>", escaped(&words::side(name, side))));
    }
    let class = if comparison.same_machine == Some(false) { "two" } else { "one" };
    let machines = escaped(words::machines(comparison));
    line(out, format_args!("<p class=\"machines {class}\">{machines}</p>"));
    push_environment(out, comparison);
    let verdict = class_of(comparison.verdict);
    line(
        out,
        format_args!("<h2 class=\"total {verdict}\">{}</h2>", escaped(&words::total(comparison))),
    );
    line(out, format_args!("<p class=\"meta\">{}</p>", escaped(&words::threshold(comparison))));
    let span = span(comparison);
    for verdict in words::ORDER {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|row| row.verdict == verdict && !words::is_only_counted(row))
            .collect();
        push_rows(out, verdict, &rows, span);
    }
    let counted = words::only_counted(&comparison.rows);
    if !counted.is_empty() {
        line(out, format_args!("<p class=\"meta\">{}</p>", escaped(&counted)));
    }
    for (side, names) in [("OLD", &comparison.only_old), ("NEW", &comparison.only_new)] {
        if names.is_empty() {
            continue;
        }
        line(out, format_args!("<details><summary>only in {side} ({})</summary><ul>", names.len()));
        for name in names {
            line(out, format_args!("<li>{}</li>", escaped(&words::name(name))));
        }
        out.push_str("</ul></details>\n");
    }
    out.push_str("</section>\n");
}

fn push_environment(out: &mut String, comparison: &Comparison) {
    if comparison.environment.is_empty() {
        return;
    }
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"differences\">\n<thead><tr><th scope=\"col\">differs</th>\
         <th scope=\"col\">OLD</th><th scope=\"col\">NEW</th></tr></thead>\n<tbody>\n",
    );
    for difference in &comparison.environment {
        let [name, old, new] = words::difference(difference).map(|cell| escaped(&cell));
        line(
            out,
            format_args!("<tr><th scope=\"row\">{name}</th><td>{old}</td><td>{new}</td></tr>"),
        );
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn push_rows(out: &mut String, verdict: Verdict, rows: &[&Row], span: f64) {
    if rows.is_empty() {
        return;
    }
    let heading = escaped(&words::heading(verdict, rows.len()));
    line(
        out,
        format_args!(
            "<h3 class=\"{}\">{heading}</h3>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>\
             <th scope=\"col\">test</th><th scope=\"col\" class=\"number\">old</th>\
             <th scope=\"col\" class=\"number\">new</th><th scope=\"col\" class=\"number\">ratio</th>\
             <th scope=\"col\">worse <small>·</small> better</th><th scope=\"col\" class=\"number\">95&nbsp;% interval</th>\
             <th scope=\"col\" class=\"number\">p</th><th scope=\"col\" class=\"number\">within</th>\
             <th scope=\"col\" class=\"number\">shows</th></tr></thead>\n<tbody>",
            class_of(verdict)
        ),
    );
    for row in rows {
        push_row(out, row, span);
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn push_row(out: &mut String, row: &Row, span: f64) {
    let cells = words::cells(row);
    let direction = Some(words::direction(row).to_owned()).filter(|word| !word.is_empty());
    let chips: Vec<String> = words::parameters(row)
        .iter()
        .chain(&direction)
        .map(|word| format!("<span class=\"chip\">{}</span>", escaped(word)))
        .collect();
    let remark = match cells.remark.as_str() {
        "" => String::new(),
        remark => format!("<div class=\"remark\">{}</div>", escaped(remark)),
    };
    let number = |text: &str| format!("<td class=\"number\">{}</td>", escaped(text));
    line(
        out,
        format_args!(
            "<tr class=\"{}\"><th scope=\"row\">{}<div class=\"chips\">{}</div>{remark}</th>{}{}\
             <td class=\"number\"><b>{}</b></td><td>{}</td>{}{}{}{}</tr>",
            class_of(row.verdict),
            escaped(&row.id),
            chips.join(" "),
            number(&cells.old),
            number(&cells.new),
            escaped(&cells.ratio),
            strip(row, span),
            number(&cells.interval),
            number(&cells.p),
            number(&cells.within),
            number(&cells.shows),
        ),
    );
}

/// The interval on a logarithmic scale, better to the right, over the band that counts as the same.
fn strip(row: &Row, span: f64) -> String {
    let (Some(ratio), Some([low, high])) = (row.ratio, row.ci95) else { return String::new() };
    let turn = if words::direction(row).is_empty() { 1.0 } else { -1.0 };
    let at = |log: f64| WIDTH / 2.0 * (1.0 + (log / span).clamp(-1.0, 1.0));
    let (low, high) = (at(turn * low.ln()), at(turn * high.ln()));
    let (low, high) = (low.min(high), low.max(high));
    let band = row.threshold_ratio.ln_1p();
    let (left, right) = (at(-band), at(band));
    let cells = words::cells(row);
    let (middle, y) = (WIDTH / 2.0, HEIGHT / 2.0);
    format!(
        "<svg class=\"ratio\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"ratio {0}, interval {1}\">\
         <title>{0} ({1})</title><rect class=\"same\" x=\"{left:.1}\" y=\"2\" width=\"{2:.1}\" height=\"16\"/>\
         <path class=\"one\" d=\"M{middle} 0V{HEIGHT}\"/><path class=\"interval\" d=\"M{low:.1} {y}H{high:.1}\"/>\
         <circle cx=\"{3:.1}\" cy=\"{y}\" r=\"3.2\"/></svg>",
        escaped(&cells.ratio),
        escaped(&cells.interval),
        right - left,
        at(turn * ratio.ln()),
    )
}

/// The logarithm that half of a strip is wide: one scale for all rows.
fn span(comparison: &Comparison) -> f64 {
    let ends = comparison.rows.iter().filter_map(|row| row.ci95).flatten();
    let widest = ends.map(|end| end.ln().abs()).fold(NARROWEST.ln(), f64::max);
    widest.min(WIDEST.ln())
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        // The style of all pages has a class of that name already.
        Verdict::Incomparable => "unjudged",
        other => other.word(),
    }
}
