//! Trials one by one, of rows that keep more of each than its figure: systems that were solved and
//! matrices that were multiplied, as Linpack prints them.

use flatout_measure::record::Outcome;
use serde_json::{Map, Value};

use super::column::{self, Column, Known};
use super::{Block, Cell, Row, Section, Table};
use crate::{label, style::Tone};

/// The fact that has a list of them.
pub(crate) const KEY: &str = "trials";

/// Fact and head of each column, in the order in which Linpack has them.
const COLUMNS: [(&str, &str, Known); 8] = [
    ("order", "order", column::number("")),
    ("leading_dimension", "leading dimension", Known { short: "LDA", ..column::number("") }),
    ("alignment_bytes", "alignment", column::number("")),
    ("seconds", "time", column::decimal("")),
    ("flop_per_s", "rate", column::decimal("")),
    ("residual", "residual", column::number("")),
    ("normalised_residual", "normalised", column::number("")),
    ("passed", "passed", column::words("")),
];

/// Adds a table for each row that keeps its trials.
pub(super) fn push(section: &mut Section, rows: &[&Outcome]) {
    let names = label::short_names(rows);
    for (name, outcome) in names.into_iter().zip(rows) {
        let trials = outcome.audit.get(KEY).and_then(Value::as_array);
        let trials: Vec<_> = trials.into_iter().flatten().filter_map(Value::as_object).collect();
        if trials.iter().any(|trial| trial.contains_key("normalised_residual")) {
            section.push(Block::Heading(format!("{name}: each trial"), Tone::Plain));
            section.push(Block::Table(table(&trials)));
        }
    }
}

fn table(trials: &[&Map<String, Value>]) -> Table {
    let columns = COLUMNS.map(|(_, head, known)| Column::named(vec![head.to_owned()], known));
    let row = |trial: &&Map<String, Value>| {
        let cell = |(key, ..): &(&str, &str, Known)| {
            Cell::or_dash(trial.get(*key).map(|value| label::plain(key, value)))
        };
        Row::new(COLUMNS.iter().map(cell).collect())
    };
    let rows = trials.iter().map(row).collect();
    Table { name: "trials", columns: columns.into(), rows, ..Table::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Part;
    use super::*;

    #[test]
    fn each_trial_of_linpack_has_its_size_its_residuals_and_whether_it_passed() {
        let audit = json!({"trials": [{"order": 864, "leading_dimension": 872,
            "alignment_bytes": 4096, "seconds": 0.0236, "flop_per_s": 18.27e9,
            "residual": 1.638e-11, "normalised_residual": 0.00362, "passed": true}]});
        let audit = audit.as_object().cloned().unwrap();
        let solved = Outcome { id: "cpu/linpack".to_owned(), audit, ..Outcome::default() };
        let plain = Outcome { id: "cpu/clock".to_owned(), ..Outcome::default() };
        let mut section = Section::new(Part::Area, "cpu");
        push(&mut section, &[&plain, &solved]);
        let [(_, Block::Heading(heading, _)), (_, Block::Table(table))] = &section.blocks[..]
        else {
            panic!("not a heading and a table")
        };
        assert_eq!(heading, "linpack: each trial");
        let texts: Vec<&str> = table.rows[0].cells.iter().map(|cell| &*cell.text).collect();
        let expected =
            ["864", "872", "4 KiB", "23.6 ms", "18.3 GFLOPS", "1.64e-11", "0.00362", "yes"];
        assert_eq!(texts, expected);
    }
}
