//! What the room writes: golden files from hand-made records, and what must hold for any record.
//!
//! `SNAPSHOTS=overwrite cargo test -p flatout-report` writes the golden files anew.

#![forbid(unsafe_code)]

#[path = "report/browser.rs"]
mod browser;
#[path = "report/golden.rs"]
mod golden;
#[path = "report/page.rs"]
mod page;
#[path = "report/safety.rs"]
mod safety;
#[path = "report/sample.rs"]
mod sample;
#[path = "report/weight.rs"]
mod weight;

use std::path::Path;

use flatout_measure::record::Record;

/// The hand-made records in `tests/fixtures`.
const FIXTURES: [&str; 7] = ["bench", "disk", "versus", "read", "write", "hostile", "empty"];

fn record(name: &str) -> Record {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
    let text = std::fs::read_to_string(&path).expect("fixtures are part of the repository");
    serde_json::from_str(&text).expect("fixtures follow the schema")
}
