//! Curves in words, the audit as a table, and the lines that check the rows with fio as a block of code.

use flatout_measure::record::Outcome;

use super::{Part, escaped, push, push_part};
use crate::{
    audit::{self, COLUMNS},
    commands, label, sparkline,
    sweep::Sweep,
    text,
};

/// What became of each rate over time, and within which bounds.
pub(super) fn push_curves(out: &mut String, rows: &[&Outcome]) {
    let names = label::short_names(rows);
    let told: Vec<String> = names
        .iter()
        .zip(rows)
        .filter_map(|(name, outcome)| {
            let curves = sparkline::over_time(outcome)
                .map(|series| format!("{} {}", series.name, sparkline::extent(series)));
            let words: Vec<String> = curves.chain(sparkline::sentence(outcome)).collect();
            (!words.is_empty())
                .then(|| format!("- {}", escaped(&format!("{name}: {}", words.join("; ")))))
        })
        .collect();
    if !told.is_empty() {
        push(out, format_args!("\n{}", told.join("\n")));
    }
}

/// The audit of rows and charts; nothing if they prove nothing.
pub(super) fn push_audit(out: &mut String, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
    let Some(audit) = audit::audit(rows, sweeps) else { return };
    let heads: Vec<&str> = audit.columns.iter().map(|at| COLUMNS[*at].head).collect();
    let mut body = String::new();
    push(&mut body, format_args!("| audit | {} |", heads.join(" | ")));
    push(&mut body, format_args!("|---|{}", "--:|".repeat(heads.len())));
    for row in &audit.rows {
        let cell = |cell: &Option<String>| cell.as_deref().map_or("–".to_owned(), escaped);
        let cells: Vec<String> = row.cells.iter().map(cell).collect();
        push(&mut body, format_args!("| {} | {} |", escaped(&row.name), cells.join(" | ")));
    }
    push_part(out, &Part { heading: "", name: "audit", body: &body });
}

/// The distinct lines in one block, each below the names of its rows.
pub(super) fn push_commands(out: &mut String, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
    let of_charts = sweeps.iter().flat_map(|sweep| sweep.outcomes());
    let all: Vec<&Outcome> = rows.iter().copied().chain(of_charts).collect();
    let commands = commands::commands(&all);
    if commands.is_empty() {
        return;
    }
    push(out, format_args!("\n<details><summary>{}</summary>\n", commands::HEAD));
    let lines: Vec<String> = commands
        .iter()
        .flat_map(|command| [format!("# {}", command.names.join("; ")), command.line.clone()])
        .map(|line| text::visible(&line))
        .collect();
    let fence = fence(&lines);
    push(out, format_args!("{fence}sh\n{}\n{fence}\n\n</details>", lines.join("\n")));
}

/// Longer than any run of backquotes in the lines, so that no line can close the block.
fn fence(lines: &[String]) -> String {
    let run = |line: &String| line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(lines.iter().map(run).max().unwrap_or(0).max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_closes_the_block() {
        assert_eq!(fence(&["fio --rw=read".to_owned()]), "```");
        assert_eq!(fence(&["````".to_owned(), "a`b".to_owned()]), "`````");
    }
}
