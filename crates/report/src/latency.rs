//! Latencies of an area's rows as grids: percentiles across, one row per timed figure.

use flatout_measure::record::{Latency, Outcome};
use serde_json::Value;

use crate::{
    grid::{Align, Cell, Grid},
    label, quantity,
    style::{Style, Tone},
    table, text,
};

/// Rows whose operations were timed one by one, by how these were paced, in order of appearance.
///
/// Figures of different loops cannot be held against each other, so each gets a grid of its own.
pub(crate) fn by_loop<'a>(rows: &[&'a Outcome]) -> Vec<(&'a str, Vec<(&'a Outcome, &'a Latency)>)> {
    let mut loops: Vec<(&str, Vec<(&Outcome, &Latency)>)> = Vec::new();
    for outcome in rows {
        let Some(latency) = &outcome.latency else { continue };
        let kind = latency.loop_kind.as_str();
        match loops.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, timed)) => timed.push((outcome, latency)),
            None => loops.push((kind, vec![(outcome, latency)])),
        }
    }
    loops
}

/// What a loop of this kind counts from; none for a kind that is not known here.
pub(crate) fn meaning(kind: &str) -> Option<&'static str> {
    match kind {
        "closed" => Some(
            "closed loop: an operation starts when one before it is done, so time spent waiting \
             to start is not counted",
        ),
        "open" => Some(
            "open loop: counted from the intended start, so time spent waiting to start is \
             included",
        ),
        _ => None,
    }
}

/// A grid for each kind of loop.
pub(crate) fn grids(rows: &[&Outcome], style: &Style) -> Vec<Grid> {
    by_loop(rows).into_iter().map(|(kind, timed)| grid(kind, &timed, style)).collect()
}

fn grid(kind: &str, timed: &[(&Outcome, &Latency)], style: &Style) -> Grid {
    let names = label::percentiles(timed.iter().map(|(_, latency)| *latency));
    let mut heads = vec![
        (text::shown(&head(kind), style), Align::Words),
        ("parameters".to_owned(), Align::Words),
    ];
    let numbers = names.iter().map(String::as_str).chain(["max"]);
    heads.extend(numbers.map(|name| (text::shown(name, style), Align::Right)));
    let mut previous = "";
    let mut grid = Grid { heads, rows: Vec::new() };
    for (outcome, latency) in timed {
        let test = label::test(&outcome.id);
        let name = if test == previous { String::new() } else { text::shown(test, style) };
        previous = test;
        let mut row = vec![Cell::plain(name), table::parameters_cell(outcome, style)];
        row.extend(names.iter().map(|name| {
            let value = latency.percentiles_ns.get(name).and_then(Value::as_f64);
            duration(value, style)
        }));
        row.push(duration(Some(latency.max_ns), style));
        grid.rows.push(row);
    }
    grid
}

/// The word for the corner of a grid: `latency (open)`.
pub(crate) fn head(kind: &str) -> String {
    if kind.is_empty() { "latency".to_owned() } else { format!("latency ({kind})") }
}

fn duration(ns: Option<f64>, style: &Style) -> Cell {
    match ns {
        Some(ns) => Cell::plain(text::shown(&quantity::value("ns", ns), style)),
        None => Cell::new(style.either("–", "-"), Tone::Dim),
    }
}
