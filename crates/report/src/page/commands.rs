//! Lines for a shell with which anybody can check a row by another program, from the audits.
//!
//! A line is never wrapped: what is broken cannot be copied. Rows with the same line share it.

use flatout_measure::record::Outcome;

use crate::{label, order};

/// The key of the audit, and what the block above such lines is called.
pub(crate) const KEY: &str = "fio_command";
/// The head of the block.
pub(crate) const HEAD: &str = "check with fio";

/// One line for a shell and the rows that it checks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub names: Vec<String>,
    pub line: String,
}

/// The distinct lines of these rows, in order of first appearance.
pub(crate) fn commands(rows: &[&Outcome]) -> Vec<Command> {
    let lines = label::short_names(rows).into_iter().zip(rows).filter_map(|(name, outcome)| {
        let line = outcome.fact_text(KEY)?.trim();
        (!line.is_empty()).then_some((line, name))
    });
    let commands = order::grouped(lines).into_iter();
    commands
        .map(|(line, names)| {
            let names = order::distinct(names.into_iter());
            Command { names, line: line.to_owned() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn rows_with_the_same_line_share_it() {
        let row = |test: &str, line: Value| {
            let audit = json!({ KEY: line }).as_object().cloned().unwrap();
            Outcome { id: format!("disk/{test}"), audit, ..Outcome::default() }
        };
        let rows = [
            row("a", json!("fio --rw=read")),
            row("b", json!(null)),
            row("c", json!("fio --rw=read ")),
            row("d", json!("fio --rw=write")),
        ];
        let rows: Vec<&Outcome> = rows.iter().collect();
        let found = commands(&rows);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].names, ["a", "c"]);
        assert_eq!(found[1].line, "fio --rw=write");
    }
}
