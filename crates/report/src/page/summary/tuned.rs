//! The lines of `tune`: of each kind of work the settings that were picked, and what they bring.

use flatout_measure::record::{Outcome, Record};
use serde_json::Value;

use super::{Heads, MOST_LINES, Summary, SummaryLine};
use crate::{label, order, quantity, text::Joined};

const HEADS: Heads = Heads(["", "picked", "±", "", "", "settings"]);
/// Whether the settings of a row were picked, in its audit.
const CHOSEN: &str = "chosen";
/// Parameters that say what was done, not how.
const WORK: [&str; 5] = ["source_place", "target_place", "files", "file_bytes", "cache_state"];

pub(super) fn summary(record: &Record) -> Summary {
    let groups = order::grouped(record.results.iter().map(|row| (work(row), row)));
    let lines = groups.iter().filter_map(|(name, rows)| line(name, rows)).take(MOST_LINES);
    Summary { heads: HEADS, lines: lines.collect(), ..Summary::default() }
}

/// What was done, in words: `copy, 4 KiB files, cold`.
pub(crate) fn work(row: &Outcome) -> String {
    let told = label::ordered(&row.parameters).into_iter().filter(|(key, _)| WORK.contains(key));
    let words = told.map(|(key, value)| label::parameter(key, value));
    std::iter::once(label::test(&row.id).to_owned()).chain(words).joined(", ")
}

/// How it was done, in words: `mmap, buffered, 1 MiB, 2 threads`.
pub(crate) fn settings(row: &Outcome) -> String {
    let how = label::ordered(&row.parameters).into_iter().filter(|(key, _)| !WORK.contains(key));
    how.map(|(key, value)| label::parameter(key, value)).joined(", ")
}

/// Whether the settings of a row were picked.
pub(crate) fn is_picked(row: &Outcome) -> bool {
    row.audit.get(CHOSEN) == Some(&Value::Bool(true))
}

fn line(name: &str, rows: &[&Outcome]) -> Option<SummaryLine> {
    let row = rows.iter().find(|row| is_picked(row))?;
    let median = label::figure(row)?;
    let figures = || rows.iter().filter_map(|row| label::figure(row));
    let slowest = figures().fold(f64::MAX, f64::min);
    let gain = quantity::value("ratio", median / slowest);
    Some(SummaryLine {
        area: label::area(&row.id).to_owned(),
        name: name.to_owned(),
        figure: quantity::value(&row.unit, median),
        interval: row.half_width().map(quantity::half).unwrap_or_default(),
        further: settings(row),
        bottleneck: format!("{gain} the slowest of {}", figures().count()),
        ..SummaryLine::default()
    })
}
