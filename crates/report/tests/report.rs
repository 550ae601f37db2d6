//! What the room writes: golden files from hand-made records, and what must hold for any record.
//!
//! `SNAPSHOTS=overwrite cargo test -p flatout-report` writes the golden files anew.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "shown with the test that fails")]

#[path = "report/browser.rs"]
mod browser;
#[path = "report/comparison.rs"]
mod comparison;
#[path = "report/exchange.rs"]
mod exchange;
#[path = "report/golden.rs"]
mod golden;
#[path = "report/input.rs"]
mod input;
#[path = "report/page.rs"]
mod page;
#[path = "report/safety.rs"]
mod safety;
#[path = "report/sample.rs"]
mod sample;
#[path = "report/summary.rs"]
mod summary;
#[path = "report/weight.rs"]
mod weight;

use std::path::Path;

use flatout_measure::record::Record;
use flatout_report::{Extent, Format, Identity, Style, render, render_beside};

/// The hand-made records in `tests/fixtures`.
const FIXTURES: [&str; 9] =
    ["whole", "bench", "disk", "tune", "versus", "read", "write", "hostile", "empty"];

/// Everything, in 80 plain columns.
const FULL: Style = Style { width_columns: 80, color: false, unicode: true, extent: Extent::Full };

fn record(name: &str) -> Record {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
    flatout_report::document::read(&path).expect("fixtures are records")
}

/// The page of a record as it is passed on.
fn page_of(record: &Record) -> String {
    render(record, Format::Html, &FULL)
}

fn page_with(record: &Record, identity: Identity) -> String {
    render_beside(record, &[], Format::Html, &FULL, identity)
}

/// The record that a page holds.
fn extract(page: &str) -> Option<Record> {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"record\">")?;
    serde_json::from_str(rest.split_once("</script>")?.0).ok()
}
