//! The pictures of an area: what the record names and what it has rows for, as data.

use std::collections::HashSet;

use flatout_measure::record::{Outcome, Record, Status};
use flatout_measure::shape::KNEE_S;
use flatout_measure::statistics;

use super::column::{self, Column};
use super::notes::Notes;
use super::race::Race;
use super::{Block, Cell, Chart, Curve, Row, Section, Shown, Table, Wide, pair_matrix};
use crate::chart::plot::{Mark, Plot, Point};
use crate::chart::sweep::{self, LEAST_POINTS, Sweep};
use crate::chart::{bars, view, words};
use crate::quantity::{self, Scale};
use crate::{label, order, style::Tone, text::Joined};

/// Rows with percentiles that one picture takes; more get a picture per test.
const MOST_LATENCY_LINES: usize = 8;
/// Pictures of runs that stand open; more are folded.
const MOST_OPEN_RUNS: usize = 4;
/// Sizes of working sets, and the rows whose audit tells how large a cache was found to be.
const WORKING_SET: &str = "working_set_bytes";
const LEVELS: &str = "memory/level";
/// Tests whose single runs are worth a picture: the same work again and again.
const RUNS: [&str; 4] = ["copy/deviation", "copy/single", "copy/memory", "copy/tree"];

/// Adds a picture for each sweep of the record, with its figures.
pub(super) fn push_sweeps(
    section: &mut Section,
    sweeps: &[&Sweep<'_>],
    record: &Record,
    notes: &mut Notes,
) {
    for sweep in sweeps {
        let chart = Block::Chart(chart(sweep, record, notes));
        // Numbers of processes are names: a browser has a matrix instead.
        match sweep.chart.id.starts_with(pair_matrix::PAIRS) {
            true => section.blocks.push((Shown::InText, chart)),
            false => section.push(chart),
        }
    }
}

pub(super) fn chart(sweep: &Sweep<'_>, record: &Record, notes: &mut Notes) -> Chart {
    let plot = Plot { marks: marks(sweep, record), ..Plot::of_sweep(sweep) };
    let only = plot.lines.iter().filter(|line| plot.lines.len() == 1 && line.name != "all");
    let words = only.map(|line| line.name.clone()).chain(sweep.constants.iter().cloned());
    // Forms without pictures show the figures alone.
    let rows = sweep.outcomes().into_iter().filter(|row| label::figure(row).is_some());
    let widths = statistics::extremes(rows.filter_map(Outcome::half_width));
    let doubt = widths
        .map(|ends| format!("95 % intervals ± {}", quantity::range(ends, "–", quantity::half)));
    Chart {
        key: format!("{} by {}", sweep.chart.id, sweep.chart.x_parameter),
        title: sweep.title().to_owned(),
        caption: words.chain(doubt).joined(", "),
        table: Some(matrix(sweep, notes)),
        plot,
    }
}

/// Where the measured levels of memory end, if the sweep is over sizes of working sets.
fn marks(sweep: &Sweep<'_>, record: &Record) -> Vec<Mark> {
    if sweep.chart.x_parameter != WORKING_SET {
        return Vec::new();
    }
    let levels = record.results.iter().filter(|row| row.id == LEVELS);
    let mark = |row: &Outcome| {
        let bytes = row.fact_count("measured_bytes")?;
        let level = row.parameter_text("level")?;
        let name = format!("{level} {}", quantity::rounded_size(bytes));
        Some(Mark { x: bytes as f64, name })
    };
    levels.filter_map(mark).collect()
}

/// Adds what only a browser draws: bars, pictures that the record does not name, percentiles, runs.
pub(super) fn push_for_browser(
    section: &mut Section,
    record: &Record,
    (rows, race): (&[&Outcome], &Race<'_>),
    notes: &mut Notes,
) {
    let bars = bars::of_rows(&record.charts, rows).into_iter().chain(bars::of_race(race));
    bars.for_each(|bars| section.push_for_browser(Block::Bars(bars)));
    for view in view::derived(&record.charts, rows) {
        if let Some(sweep) = sweep::of(&view.results, &view.chart) {
            section.push_for_browser(Block::Chart(chart(&sweep, record, notes)));
        }
    }
    let drawn = |key: &str, (title, plot): (String, Plot)| {
        let (key, caption) = (format!("{key} {title}"), String::new());
        Block::Chart(Chart { key, title, caption, plot, table: None })
    };
    for plot in latency_plots(rows) {
        section.push_for_browser(drawn("latency", plot));
    }
    let runs = runs_of_race(race).into_iter().chain(runs_of_rows(rows));
    let runs: Vec<Block> = runs.map(|plot| drawn("runs", plot)).collect();
    if runs.len() > MOST_OPEN_RUNS {
        section.push_for_browser(Block::folded(format!("Each run: {} charts", runs.len()), runs));
    } else {
        runs.into_iter().for_each(|block| section.push_for_browser(block));
    }
}

/// Each run of each contestant, a picture per workload.
fn runs_of_race(race: &Race<'_>) -> Vec<(String, Plot)> {
    let mut plots: Vec<(String, Plot)> = Vec::new();
    for test in &race.tests {
        for workload in &test.workloads {
            let entries = workload.entries.iter();
            let rows: Vec<(&str, &Outcome)> =
                entries.map(|entry| (entry.contestant, entry.outcome)).collect();
            let words = std::iter::once(test.title()).chain(workload.words.iter().cloned());
            let title = format!("Each run: {}", words.joined(", "));
            plots.extend(Plot::of_runs(&rows).map(|plot| (title, plot)));
        }
    }
    plots
}

fn runs_of_rows(rows: &[&Outcome]) -> Vec<(String, Plot)> {
    let of_test = |id: &str| {
        let own: Vec<&Outcome> = rows.iter().copied().filter(|row| row.id == id).collect();
        let names = label::short_names(&own);
        let named: Vec<(&str, &Outcome)> =
            names.iter().map(String::as_str).zip(own.iter().copied()).collect();
        let title = format!("Each run: {}", label::test(id));
        Plot::of_runs(&named).map(|plot| (title, plot))
    };
    RUNS.into_iter().filter_map(of_test).collect()
}

/// Percentiles of an area: one picture, or one per test where there are many rows.
fn latency_plots(rows: &[&Outcome]) -> Vec<(String, Plot)> {
    let timed: Vec<&Outcome> =
        rows.iter().copied().filter(|row| label::latency(row).is_some()).collect();
    if timed.len() <= MOST_LATENCY_LINES {
        let plot = Plot::of_latencies(&timed);
        return plot.map(|plot| ("Latency percentiles".to_owned(), plot)).into_iter().collect();
    }
    let of_test = |(id, own): (&str, Vec<&Outcome>)| {
        let title = format!("Latency percentiles: {}", label::test(id).replace('-', " "));
        Plot::of_latencies(&own).map(|plot| (title, plot))
    };
    let tests = order::grouped(timed.into_iter().map(|row| (row.id.as_str(), row)));
    tests.into_iter().filter_map(of_test).collect()
}

/// Adds the curves of each row of an area, those where a rate broke in before others: that is what a
/// curve is for. Those of rows that are not listed are for a browser.
pub(super) fn push_curves(section: &mut Section, rows: &[&Outcome], listed: &[&Outcome]) {
    let names = label::short_names(rows);
    let mut named: Vec<(String, &Outcome)> = names.into_iter().zip(rows.iter().copied()).collect();
    named.sort_by_key(|(_, row)| !row.audit.contains_key(KNEE_S.name()));
    let listed: HashSet<*const Outcome> =
        listed.iter().map(|row| std::ptr::from_ref(*row)).collect();
    for (name, row) in named {
        let Some(curve) = curve_of(name, row).map(Block::Curve) else { continue };
        if listed.contains(&std::ptr::from_ref(row)) {
            section.push(curve);
        } else {
            section.push_for_browser(curve);
        }
    }
}

fn curve_of(name: String, row: &Outcome) -> Option<Curve> {
    let sentence = words::sentence(row);
    let first = row.series.iter().find(|series| series.points.len() >= LEAST_POINTS);
    let series: Vec<_> = words::over_time(row).cloned().collect();
    if sentence.is_none() && first.is_none() {
        return None;
    }
    let median = label::figure(row).map_or_else(String::new, |median| {
        format!(", median {}", quantity::value(&row.unit, median))
    });
    Some(Curve {
        caption: format!("{}{median}", label::parameters(&row.parameters)),
        sentence,
        series,
        plot: first.map(|series| (series.name.clone(), Plot::over_time(series, row))),
        name,
    })
}

/// All figures of the sweep, in one unit.
fn matrix(sweep: &Sweep<'_>, notes: &mut Notes) -> Table {
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
