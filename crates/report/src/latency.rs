//! Latencies of an area's rows as a grid: percentiles across, one row per timed figure.

use flatout_measure::record::{Latency, Outcome};
use serde_json::Value;

use crate::{
    grid::{Align, Cell, Grid},
    label, quantity,
    style::{Style, Tone},
    table, text,
};

/// The grid of all rows whose operations were timed one by one; none if there are no such rows.
pub(crate) fn grid(rows: &[&Outcome], style: &Style) -> Option<Grid> {
    let timed: Vec<(&Outcome, &Latency)> =
        rows.iter().filter_map(|outcome| Some((*outcome, outcome.latency.as_ref()?))).collect();
    if timed.is_empty() {
        return None;
    }
    let names = label::percentiles(timed.iter().map(|(_, latency)| *latency));
    let mut heads = vec![
        (text::shown("latency", style), Align::Words),
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
    Some(grid)
}

fn duration(ns: Option<f64>, style: &Style) -> Cell {
    match ns {
        Some(ns) => Cell::plain(text::shown(&quantity::value("ns", ns), style)),
        None => Cell::new(style.either("–", "-"), Tone::Dim),
    }
}
