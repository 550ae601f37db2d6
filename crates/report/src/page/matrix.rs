//! The figures of a sweep as a table: x values down, one column per line.

use flatout_measure::record::{Outcome, Status};

use super::column::{self, Column};
use super::notes::Notes;
use super::{Cell, Row, Table, Wide};
use crate::chart::plot::Point;
use crate::chart::sweep::Sweep;
use crate::{label, quantity::Scale, style::Tone};

/// All figures of the sweep, in one unit.
pub(super) fn table(sweep: &Sweep<'_>, notes: &mut Notes) -> Table {
    let scale = sweep.scale();
    let mut heads: Vec<String> = sweep.line_parameters.iter().map(|key| label::noun(key)).collect();
    // The last head stands beside the values of x.
    heads.pop();
    heads.push(label::noun(&sweep.chart.x_parameter));
    let first = Column::named(heads, column::decimal(""));
    let lines = sweep.lines.iter().map(|line| Column::named(line.labels.clone(), column::POINT));
    let columns = std::iter::once(first).chain(lines).collect();
    let row = |(at, x): (usize, &f64)| {
        let points = sweep.lines.iter().map(|line| line.points[at]);
        let cells = points.map(|point| match point {
            None => Cell::default(),
            Some(outcome) => cell(outcome, &scale, notes),
        });
        Row::new(std::iter::once(Cell::plain(sweep.x_text(*x))).chain(cells).collect())
    };
    let rows = sweep.x_values.iter().enumerate().map(row).collect();
    let unit = scale.unit.clone();
    Table { name: "matrix", unit, columns, rows, wide: Wide::Split, ..Table::default() }
}

fn cell(outcome: &Outcome, scale: &Scale, notes: &mut Notes) -> Cell {
    let marks = notes.marks(&outcome.warnings);
    let Some(point) = Point::of(0.0, outcome) else {
        let tone = label::tone(outcome.status);
        return Cell { marks, ..Cell::new(label::no_figure(outcome.status), tone) };
    };
    let tone = if outcome.status == Status::Unstable { Tone::Warn } else { Tone::Plain };
    let text = scale.number(point.y);
    Cell { marks, ..Cell::new(text, tone).with_detail(point.told(scale)) }
}
