//! Latencies of an area's rows as tables: percentiles across, one row per timed figure.

use flatout_measure::record::{Latency, Outcome};
use serde_json::Value;

use super::column::{self, Column};
use super::{Block, Cell, Row, Section, Table, rows};
use crate::{label, order, quantity, style::Tone};

/// What a loop of this kind counts from; none for a kind that is not known here.
pub(super) fn meaning(kind: &str) -> Option<&'static str> {
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

/// Adds a table for each way of pacing operations that were timed one by one: figures of different
/// loops cannot be held against each other.
pub(super) fn push(section: &mut Section, rows: &[&Outcome]) {
    let timed = rows.iter().filter_map(|row| Some((*row, label::latency(row)?)));
    let timed = timed.map(|(row, latency)| (latency.loop_kind.as_str(), (row, latency)));
    for (kind, timed) in order::grouped(timed) {
        // The tables above have medians of trials: of operations with two speeds another figure.
        let of = "latency of single operations, all trials together";
        let head = if kind.is_empty() { of.to_owned() } else { format!("{of} ({kind})") };
        section.push(Block::Heading(head, Tone::Plain));
        section.push(Block::Table(table(&timed)));
    }
}

fn table(timed: &[(&Outcome, &Latency)]) -> Table {
    let names = label::percentiles(timed.iter().map(|(_, latency)| *latency));
    let mut columns: Vec<Column> =
        [column::TEST, column::PARAMETERS, column::LEAST].map(Column::from).into();
    columns.extend(names.iter().map(|name| Column::named(vec![name.clone()], column::PERCENTILE)));
    columns.extend([column::MOST, column::OPERATIONS].map(Column::from));
    let row = |(outcome, latency): &(&Outcome, &Latency)| {
        let time = |ns: f64| quantity::value("ns", ns);
        let percentile = |name: &String| {
            Cell::or_dash(latency.percentiles_ns.get(name).and_then(Value::as_f64).map(time))
        };
        let mut cells = rows::name(outcome).to_vec();
        cells.push(Cell::plain(time(latency.min_ns)));
        cells.extend(names.iter().map(percentile));
        cells.push(Cell::plain(time(latency.max_ns)));
        cells.push(Cell::plain(quantity::count(latency.operations)));
        Row::new(cells)
    };
    Table { name: "latency", columns, rows: timed.iter().map(row).collect(), ..Table::default() }
}
