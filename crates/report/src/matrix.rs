//! A sweep on the terminal: the chart, then x values down and one column per line.
//!
//! All cells share one unit. Lines carry the same letter in the chart and above their column.

use std::ops::Range;

use flatout_measure::record::{Outcome, Status};

use crate::{
    chart,
    grid::{Align, Cell, Grid, Row},
    label,
    notes::Notes,
    plot::Plot,
    quantity::Scale,
    style::{Style, Tone},
    sweep::{Line, Sweep},
    table, text,
};

/// Rows of the drawing area of a chart.
const CHART_HEIGHT: usize = 14;

/// Chart and matrix of a sweep, indented by two columns, each line ended by a line feed.
pub(crate) fn matrix(sweep: &Sweep<'_>, notes: &mut Notes, style: &Style) -> String {
    let scale = sweep.scale();
    let mut out = heading(sweep, style);
    let columns: Vec<Vec<Cell>> = sweep
        .lines
        .iter()
        .enumerate()
        .map(|(index, line)| column(index, line, &scale, notes, style))
        .collect();
    let plot = Plot::of_sweep(sweep);
    out.push_str(&chart::chart(&plot, CHART_HEIGHT, style));
    out.push('\n');
    let first = x_column(sweep, &scale, style);
    for (part, chunk) in
        chunks(&first, &columns, style.width().saturating_sub(2)).into_iter().enumerate()
    {
        if part > 0 {
            out.push('\n');
        }
        let chosen: Vec<&Vec<Cell>> = std::iter::once(&first).chain(&columns[chunk]).collect();
        out.push_str(&grid(&chosen).render(2, style));
    }
    out
}

fn heading(sweep: &Sweep<'_>, style: &Style) -> String {
    let title = text::shown(sweep.title(), style);
    let mut out = String::new();
    for line in text::wrap(&title, style.width() - 2) {
        out.push_str(&format!("  {}\n", style.paint(&line, Tone::Strong)));
    }
    if !sweep.constants.is_empty() {
        let constants = text::shown(&sweep.constants.join(", "), style);
        for line in text::wrap(&constants, style.width() - 2) {
            out.push_str(&format!("  {}\n", style.paint(&line, Tone::Dim)));
        }
    }
    out
}

/// The letter row, one row per line parameter, then one per x.
fn x_column(sweep: &Sweep<'_>, scale: &Scale, style: &Style) -> Vec<Cell> {
    let dim = |text: String| Cell::new(text::shown(&text, style), Tone::Dim);
    let mut cells = vec![dim(scale.unit.clone())];
    cells.extend(sweep.line_parameters.iter().map(|key| dim(label::noun(key))));
    if let Some(last) = cells.last_mut() {
        last.text = text::shown(&label::noun(&sweep.chart.x_parameter), style);
    }
    cells.extend(sweep.x_values.iter().map(|x| Cell::plain(text::shown(&sweep.x_text(*x), style))));
    cells
}

/// The letter, the values of the line parameters, then the figures.
fn column(
    index: usize,
    line: &Line<'_>,
    scale: &Scale,
    notes: &mut Notes,
    style: &Style,
) -> Vec<Cell> {
    let mut cells = vec![Cell::new(table::letter(index), Tone::Line(index))];
    cells.extend(line.labels.iter().map(|word| Cell::new(text::shown(word, style), Tone::Dim)));
    cells.extend(line.points.iter().map(|point| match point {
        None => Cell::new("", Tone::Dim),
        Some(outcome) => cell(outcome, scale, notes, style),
    }));
    cells
}

fn cell(outcome: &Outcome, scale: &Scale, notes: &mut Notes, style: &Style) -> Cell {
    let marks = notes.marks(&outcome.warnings);
    let (text, tone) = match label::figure(outcome) {
        Some(median) if outcome.status == Status::Unstable => {
            (format!("~{}", scale.number(median)), Tone::Warn)
        }
        Some(median) => (scale.number(median), Tone::Plain),
        None => match outcome.status {
            Status::Failed => ("failed".to_owned(), Tone::Bad),
            Status::Invalid => ("invalid".to_owned(), Tone::Bad),
            Status::Unsupported => ("unsupp.".to_owned(), Tone::Dim),
            Status::Interrupted => ("stopped".to_owned(), Tone::Dim),
            _ => (style.either("–", "-").to_owned(), Tone::Dim),
        },
    };
    Cell::new(format!("{text}{marks}"), tone)
}

/// Ranges of columns that fit beside the first column, as even as possible; at least one each.
fn chunks(first: &Vec<Cell>, columns: &[Vec<Cell>], width: usize) -> Vec<Range<usize>> {
    let fits = |range: &Range<usize>| {
        let chosen: Vec<&Vec<Cell>> =
            std::iter::once(first).chain(&columns[range.clone()]).collect();
        range.len() == 1 || grid(&chosen).natural_width() <= width
    };
    let split = |parts: usize| -> Vec<Range<usize>> {
        let size = columns.len().div_ceil(parts);
        (0..columns.len()).step_by(size).map(|at| at..(at + size).min(columns.len())).collect()
    };
    (1..=columns.len()).map(split).find(|ranges| ranges.iter().all(fits)).unwrap_or_default()
}

/// Columns turned into a grid without heads; the head rows are ordinary rows.
fn grid(columns: &[&Vec<Cell>]) -> Grid {
    let heads = columns.iter().map(|_| (String::new(), Align::Decimal)).collect();
    let height = columns.first().map_or(0, |column| column.len());
    let rows = (0..height)
        .map(|row| columns.iter().map(|column| column[row].clone()).collect::<Row>())
        .collect();
    Grid { heads, rows }
}

/// Whether a cell carries the sign of an unstable figure.
pub(crate) fn has_unstable(sweep: &Sweep<'_>) -> bool {
    let mut all = sweep.lines.iter().flat_map(|line| line.points.iter().flatten());
    all.any(|outcome| outcome.status == Status::Unstable && label::figure(outcome).is_some())
}
