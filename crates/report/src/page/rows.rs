//! Rows of an area as a table: figures with interval and bound; and latencies.

use flatout_measure::record::Outcome;

use super::column::{self, Column};
use super::notes::Notes;
use super::{Cell, Picture, Row, Samples, Table};
use crate::{label, quantity, quantity::Scale, style::Tone, text::unless_empty};

/// The rows with everything that belongs to their figures.
pub(super) fn table(rows: &[&Outcome], notes: &mut Notes) -> Table {
    let mut columns: Vec<Column> = [
        column::TEST,
        column::PARAMETERS,
        column::MEDIAN,
        column::INTERVAL,
        column::N,
        column::SAMPLES,
    ]
    .map(Column::from)
    .into();
    let has_ceilings = rows.iter().any(|outcome| outcome.ceiling.is_some());
    columns.extend(has_ceilings.then(|| column::CEILING.into()));
    let row = |outcome: &&Outcome| {
        let mut cells = name(outcome).to_vec();
        match figure(outcome, notes) {
            Some(figure) => {
                cells.extend(figure);
                cells.extend([count(outcome), samples(outcome)]);
                cells.extend(has_ceilings.then(|| ceiling(outcome)));
            }
            None => cells.push(notes.reason_cell(outcome)),
        }
        Row::new(cells)
    };
    Table { name: "rows", columns, rows: rows.iter().map(row).collect(), ..Table::default() }
}

/// Test and parameters.
pub(super) fn name(outcome: &Outcome) -> [Cell; 2] {
    let words = label::parameter_words(&outcome.parameters);
    [Cell::plain(label::test(&outcome.id)), Cell::words(words)]
}

/// Median and interval; none where there is no figure.
pub(super) fn figure(outcome: &Outcome, notes: &mut Notes) -> Option<[Cell; 2]> {
    let median = label::figure(outcome)?;
    let badge = label::word(outcome.status, outcome.ci95);
    let scale = Scale::of(&outcome.unit, median);
    let text = scale.text(median);
    let marks = notes.marks(&outcome.warnings);
    let figure = Cell { badge, marks, ..Cell::new(text, Tone::Strong) };
    let mut interval = Cell::or_dash(outcome.half_width().map(quantity::half));
    if let Some([low, high]) = outcome.ci95 {
        interval.detail = format!("{} … {}", scale.number(low), scale.number(high));
    }
    Some([figure, interval])
}

pub(super) fn count(outcome: &Outcome) -> Cell {
    Cell::plain(quantity::count(outcome.n))
}

/// Every sample, to be drawn.
pub(super) fn samples(outcome: &Outcome) -> Cell {
    let picture = label::figure(outcome).filter(|_| outcome.samples.len() > 1).map(|median| {
        Picture::Samples(Samples {
            unit: outcome.unit.clone(),
            median,
            interval: outcome.ci95,
            samples: outcome.samples.clone(),
        })
    });
    Cell { picture, ..Cell::default() }
}

/// The share of the bound; name, value, origin and bottleneck as its detail.
fn ceiling(outcome: &Outcome) -> Cell {
    let Some(ceiling) = &outcome.ceiling else { return Cell::default() };
    let limiter = unless_empty(&ceiling.limiter, |limiter| format!("; limited by {limiter}"));
    let detail = format!("{}{limiter}", label::bound(ceiling, &outcome.unit));
    let picture = ceiling.ratio.filter(|ratio| ratio.is_finite()).map(Picture::Share);
    let share = ceiling.ratio.map_or("?".to_owned(), quantity::percent);
    Cell { picture, ..Cell::plain(share).with_detail(detail) }
}
