//! A comparison as Markdown tables (GitHub flavour) for a pull request.

use flatout_measure::comparison::{Comparison, Row, RowName, Verdict};

use super::{Document, words};
use crate::markdown::escaped;

/// The document; long tables fold away, but for what is worse or better.
pub(super) fn document(document: &Document) -> String {
    let mut lines: Vec<String> = Vec::new();
    for error in &document.errors {
        lines.push(format!("**error:** {}\n", escaped(error)));
    }
    for comparison in &document.comparisons {
        push_comparison(&mut lines, comparison);
    }
    if document.comparisons.iter().any(|comparison| !comparison.rows.is_empty()) {
        let meaning = words::MEANING.map(|line| format!("- {}", escaped(line))).join("\n");
        lines.push(folded("what the columns mean", &meaning));
    }
    lines.join("\n") + "\n"
}

fn push_comparison(lines: &mut Vec<String>, comparison: &Comparison) {
    lines.push(format!("### {}\n", escaped(&words::total(comparison))));
    lines.push(format!("- {}", escaped(&words::side("OLD", &comparison.old))));
    lines.push(format!("- {}\n", escaped(&words::side("NEW", &comparison.new))));
    lines.push(format!("{}\n", escaped(words::machines(comparison))));
    if !comparison.environment.is_empty() {
        lines.push("| | OLD | NEW |\n|---|---|---|".to_owned());
        for difference in &comparison.environment {
            let cells = words::difference(difference).map(|cell| escaped(&cell));
            lines.push(format!("| {} |", cells.join(" | ")));
        }
        lines.push(String::new());
    }
    lines.push(format!("{}\n", escaped(&words::threshold(comparison))));
    for verdict in words::ORDER {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|row| row.verdict == verdict && !words::is_only_counted(row))
            .collect();
        if rows.is_empty() {
            continue;
        }
        let heading = words::heading(verdict, rows.len());
        let table = rows_table(&rows);
        if matches!(verdict, Verdict::Better | Verdict::Worse) {
            lines.push(format!("#### {}\n\n{table}\n", escaped(&heading)));
        } else {
            lines.push(folded(&heading, &table));
        }
    }
    let counted = words::only_counted(&comparison.rows);
    if !counted.is_empty() {
        lines.push(format!("{}\n", escaped(&counted)));
    }
    for (side, names) in [("OLD", &comparison.only_old), ("NEW", &comparison.only_new)] {
        if !names.is_empty() {
            let line = |name: &RowName| format!("- {}", escaped(&words::name(name)));
            let list: Vec<String> = names.iter().map(line).collect();
            lines.push(folded(&format!("only in {side} ({})", names.len()), &list.join("\n")));
        }
    }
}

fn folded(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n\n{content}\n\n</details>\n", escaped(summary))
}

fn rows_table(rows: &[&Row]) -> String {
    let mut out = "| test | old | new | ratio | 95 % interval | p | within | shows | |\n\
                   |---|--:|--:|--:|--:|--:|--:|--:|---|"
        .to_owned();
    for row in rows {
        let cells = words::cells(row);
        let mut name = vec![row.id.clone()];
        name.extend(words::parameters(row));
        let remark = [words::direction(row), &cells.remark];
        let remark: Vec<&str> = remark.into_iter().filter(|word| !word.is_empty()).collect();
        let columns = [
            name.join(", "),
            cells.old,
            cells.new,
            cells.ratio,
            cells.interval,
            cells.p,
            cells.within,
            cells.shows,
            remark.join("; "),
        ];
        out.push_str(&format!("\n| {} |", columns.map(|cell| escaped(&cell)).join(" | ")));
    }
    out
}
