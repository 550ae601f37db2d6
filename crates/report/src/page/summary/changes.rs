//! The lines of a comparison: the verdict, and the largest differences.

use flatout_measure::comparison::{Comparison, Row, Verdict};

use super::{MOST_LINES, SummaryLine};
use crate::page::comparison::{Strip, tone};
use crate::page::{Block, Part, Section, units, words};
use crate::style::Tone;
use crate::{label, quantity, text::Joined};

const HEADS: [&str; 6] = ["", "NEW", "NEW ÷ OLD (95 %)", "", "", "verdict"];

/// What a comparison comes to.
pub(in crate::page) fn of_comparison(comparison: &Comparison) -> Section {
    let mut section = Section::new(Part::Summary, "");
    let names = format!("OLD {} · NEW {}", comparison.old.name, comparison.new.name);
    section.push(Block::Text(names, Tone::Plain));
    section.push(Block::Text(words::total(comparison), tone(comparison.verdict)));
    if let Some(load) = words::load(comparison) {
        section.push(Block::Text(load, Tone::Warn));
    }
    if comparison.same_machine != Some(true) || comparison.same_run {
        section.push(Block::Text(words::machines(comparison).to_owned(), Tone::Warn));
    }
    if let Some(names) = words::differing(comparison) {
        section.push(Block::Text(names, Tone::Plain));
    }
    let named = comparison.rows.iter().map(|row| (row.id.as_str(), &row.parameters));
    let own = label::own_words(&named.collect::<Vec<_>>());
    let mut rows: Vec<(&Row, Vec<String>)> = comparison.rows.iter().zip(own).collect();
    rows.retain(|(row, _)| !matches!(row.verdict, Verdict::Same | Verdict::Incomparable));
    let rank = |row: &Row| words::ORDER.iter().position(|known| *known == row.verdict);
    let size = |row: &Row| row.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    rows.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a))));
    let more = rows.len().saturating_sub(MOST_LINES);
    let more = (more > 0).then(|| quantity::counted(more, "more row"));
    if !rows.is_empty() {
        let strip = Strip::of(comparison);
        let line = |(row, own): (&Row, Vec<String>)| SummaryLine {
            name: words::named(row, own),
            change: strip.picture(row),
            ..line(row)
        };
        let lines: Vec<_> = rows.into_iter().take(MOST_LINES).map(line).collect();
        super::push(&mut section, HEADS, &lines, &more.unwrap_or_default());
    }
    let sides = [(&comparison.only_old, "OLD"), (&comparison.only_new, "NEW")];
    let sides = sides.iter().filter(|(names, _)| !names.is_empty());
    let sides = sides.map(|(names, side)| format!("{} only in {side}", names.len())).joined(", ");
    if !sides.is_empty() {
        section.push(Block::Text(format!("not compared: {sides}"), Tone::Plain));
    }
    let advice = words::threshold(comparison).pop().unwrap_or_default();
    section.with(Block::Text(advice, Tone::Dim))
}

fn line(row: &Row) -> SummaryLine {
    let (unit, factor) = units::unit(&row.id, &row.unit);
    let figure = row.new.median.map(|median| quantity::value(unit, median * factor));
    let ratio = row.ratio.map(words::ratio_text);
    let interval = row.ci95.map(|interval| interval.map(words::ratio_text).join("–"));
    SummaryLine {
        area: label::area(&row.id).to_owned(),
        figure: figure.unwrap_or_else(|| label::no_figure(row.new.status).to_owned()),
        interval: match (ratio, interval) {
            (Some(ratio), Some(interval)) => format!("{ratio} ({interval})"),
            (ratio, _) => ratio.unwrap_or_default(),
        },
        word: row.verdict.word(),
        tone: tone(row.verdict),
        ..SummaryLine::default()
    }
}
