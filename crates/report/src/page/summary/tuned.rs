//! The lines of `tune`: of each kind of work the settings that were picked, and what they bring.

use flatout_measure::record::{Outcome, Record};
use serde_json::Value;

use super::{Lines, MOST_LINES, SummaryLine};
use crate::{label, order, quantity, text::Joined};

const HEADS: [&str; 6] = ["", "picked", "±", "", "", "settings"];
/// Whether the settings of a row were picked, in its audit.
const CHOSEN: &str = "chosen";
/// Where it was done, of several directories.
const PLACES: [&str; 2] = ["source_place", "target_place"];
/// Parameters that say what was done, not how.
const WORK: [&str; 3] = ["files", "file_bytes", "cache_state"];

pub(super) fn lines(record: &Record) -> Lines {
    let groups = order::grouped(record.results.iter().map(|row| (work(row), row)));
    let mut lines: Vec<_> = groups.iter().filter_map(|(name, rows)| line(name, rows)).collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    let has_places = record.results.iter().any(|row| !places(row).is_empty());
    let mut rest = Vec::new();
    rest.extend(has_places.then(|| "1, 2, …: the directories, in the order given".to_owned()));
    rest.extend((more > 0).then(|| format!("{more} more")));
    (HEADS, lines, rest.join("; "))
}

/// Where it was done, where that was one of several directories: `1 to 2`.
fn places(row: &Outcome) -> String {
    let known = PLACES.iter().filter_map(|key| row.parameters.get(*key));
    known.map(Value::to_string).collect::<Vec<_>>().join(" to ")
}

/// What was done, in words: `copy, 4 KiB files, cold`. Where it was done stands first: ends are cut.
pub(crate) fn work(row: &Outcome) -> String {
    let told = label::ordered(&row.parameters).into_iter().filter(|(key, _)| WORK.contains(key));
    let words = told.map(|(key, value)| label::parameter(key, value));
    let test = format!("{} {}", label::test(&row.id), places(row)).trim_end().to_owned();
    std::iter::once(test).chain(words).joined(", ")
}

/// How it was done, in words: `mmap, buffered, 1 MiB, 2 threads`.
pub(crate) fn settings(row: &Outcome) -> String {
    let is_how = |key: &str| !WORK.contains(&key) && !PLACES.contains(&key);
    let how = label::ordered(&row.parameters).into_iter().filter(|(key, _)| is_how(key));
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
        bottleneck: settings(row),
        remarks: vec![format!("{gain} the slowest of {}", figures().count())],
        ..SummaryLine::default()
    })
}
