//! The sweeps of two sides in one picture each: before and after, one disk and another.

use flatout_measure::comparison::{Comparison, Figure, Row};
use flatout_measure::record::{Outcome, Record};

use super::notes::Notes;
use super::{Block, Section, pictures, units};
use crate::chart::{sweep, view};

/// The parameter that tells the sides apart.
const SIDE: &str = "side";

/// Adds a picture of each sweep that both sides have; only a browser has room for so many lines.
pub(super) fn push(section: &mut Section, comparison: &Comparison) {
    let results = comparison.rows.iter().flat_map(|row| {
        [("OLD", &row.old), ("NEW", &row.new)].map(|(side, figure)| outcome(row, side, figure))
    });
    // A run that has these rows and pictures, and nothing else.
    let (results, charts) = (results.collect(), comparison.charts.clone());
    let record = Record { results, charts, ..Record::default() };
    let record = units::shown(&record);
    let mut notes = Notes::default();
    let of_record = record.charts.iter().filter_map(|chart| sweep::of(&record.results, chart));
    let rows: Vec<&Outcome> = record.results.iter().collect();
    let derived = view::derived(&record.charts, &rows);
    let of_views = derived.iter().filter_map(|view| sweep::of(&view.results, &view.chart));
    for sweep in of_record.chain(of_views) {
        let mut picture = pictures::chart(&sweep, &record, &mut notes);
        picture.key += &format!(" {}", comparison.new.name);
        section.push_for_browser(Block::Chart(picture));
    }
}

/// A side of a row, as a row of a record.
fn outcome(row: &Row, side: &str, figure: &Figure) -> Outcome {
    let mut parameters = row.parameters.clone();
    parameters.insert(SIDE.to_owned(), side.into());
    Outcome {
        id: row.id.clone(),
        parameters,
        unit: row.unit.clone(),
        better: row.better,
        median: figure.median,
        n: figure.n,
        status: figure.status,
        ..Outcome::default()
    }
}
