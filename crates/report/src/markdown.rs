//! The record as Markdown tables (GitHub flavour) for an issue or a page of documentation.
//!
//! Text from data is escaped, so that a name cannot become markup or break a table.

mod evidence;
mod versus;

use std::fmt::Write as _;

use flatout_measure::record::{Latency, Outcome, Record, Status};
use serde_json::Value;

use crate::{
    label, latency, machine, markup, notes::Notes, quantity, storage, summary, sweep, sweep::Sweep,
    table, text, versus as race,
};

/// Lines of a table or list that a reader scrolls past; longer ones are folded.
const OPEN_LINES: usize = 16;

/// The record as a Markdown document.
pub fn document(record: &Record) -> String {
    let mut out = String::new();
    let mut notes = Notes::of(record);
    let title = escaped(&record.start.tool);
    push(
        &mut out,
        format_args!("# {title}\n\n{}, seed {}", escaped(&record.start.time), record.start.seed),
    );
    let machine = machine::headline(&record.start.environment);
    if !machine.is_empty() {
        push(&mut out, format_args!("\n{}", escaped(&machine)));
    }
    push_verdict(&mut out, record);
    let sweeps = sweep::sweeps(record);
    let rows_left = sweep::rows_left(record, &sweeps);
    let storage_area = table::storage_area(record);
    if storage_area.is_empty() {
        let mut chains = String::new();
        if push_storage(&mut chains, record) {
            push(&mut out, format_args!("\n{}", chains.trim_end()));
        }
    }
    for area in table::areas(record) {
        push(&mut out, format_args!("\n## {}\n", escaped(area)));
        if area == storage_area && push_storage(&mut out, record) {
            push(&mut out, format_args!(""));
        }
        let in_area = |outcome: &&Outcome| label::area(&outcome.id) == area;
        let own: Vec<&Sweep<'_>> =
            sweeps.iter().filter(|sweep| label::area(&sweep.chart.id) == area).collect();
        if area == race::AREA {
            versus::push_race(&mut out, &table::rows_of(record, area), &own, &mut notes);
            continue;
        }
        let rows: Vec<&Outcome> =
            rows_left.iter().map(|i| &record.results[*i]).filter(in_area).collect();
        if !rows.is_empty() {
            push_rows(&mut out, &rows, &mut notes);
            push_latencies(&mut out, &rows);
            evidence::push_curves(&mut out, &rows);
            push_facts(&mut out, &rows);
        }
        for sweep in &own {
            push_sweep(&mut out, sweep, &mut notes);
        }
        evidence::push_audit(&mut out, &rows, &own);
        evidence::push_commands(&mut out, &rows, &own);
    }
    let mut all = String::new();
    for (number, note) in notes.iter() {
        let (code, sentence) = (escaped(&note.code), escaped(&note.sentence()));
        push(&mut all, format_args!("- \\[{number}\\] {code}: {sentence}"));
    }
    if !all.is_empty() {
        push_part(&mut out, &Part { heading: "", name: "notes", body: &all });
    }
    push_errors(&mut out, record);
    out
}

/// A piece of a document that may be long.
struct Part<'a> {
    /// The line above it while it is open, already escaped; may be empty.
    heading: &'a str,
    /// What it is called when it is folded.
    name: &'a str,
    body: &'a str,
}

/// Writes the piece, folded when it is long: a pull request shows the name then, and the rest on a
/// click.
fn push_part(out: &mut String, part: &Part<'_>) {
    let Part { heading, name, body } = part;
    if body.lines().count() > OPEN_LINES {
        let name = markup::escaped(name);
        // Without the empty lines the table inside would be text.
        push(out, format_args!("\n<details><summary>{name}</summary>\n\n{body}\n</details>"));
    } else if heading.is_empty() {
        push(out, format_args!("\n{}", body.trim_end()));
    } else {
        push(out, format_args!("\n{heading}\n\n{}", body.trim_end()));
    }
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{line}");
}

/// What the places stand on; whether there is something to say.
fn push_storage(out: &mut String, record: &Record) -> bool {
    let chains = storage::chains(&record.start.environment);
    for chain in &chains {
        push(out, format_args!("- {}", escaped(&chain.line)));
        for remark in &chain.remarks {
            push(out, format_args!("  - {}", escaped(remark)));
        }
    }
    !chains.is_empty()
}

fn push_rows(out: &mut String, rows: &[&Outcome], notes: &mut Notes) {
    push(
        out,
        format_args!(
            "| test | parameters | median | 95 % interval | n | ceiling | limited by | notes |"
        ),
    );
    push(out, format_args!("|---|---|--:|--:|--:|---|---|---|"));
    for outcome in rows {
        let name = escaped(label::test(&outcome.id));
        let parameters = escaped(&label::parameters(&outcome.parameters));
        let Some(median) = label::figure(outcome) else {
            let reason = notes.reason(outcome);
            let words = escaped(&label::reason(outcome, reason.text.as_deref()));
            let remark = remark(&words, &reason.marks);
            push(out, format_args!("| {name} | {parameters} | – | | | | | {remark} |"));
            continue;
        };
        let scale = quantity::Scale::of(&outcome.unit, median);
        let interval = outcome.ci95.map_or_else(
            || "–".to_owned(),
            |[low, high]| format!("{} … {}", scale.number(low), scale.number(high)),
        );
        let (ceiling, limiter) = ceiling_cells(outcome);
        let status = if outcome.status == Status::Ok { "" } else { label::status(outcome.status) };
        let remark = remark(status, &notes.marks(&outcome.warnings));
        push(
            out,
            format_args!(
                "| {name} | {parameters} | {} | {interval} | {} | {ceiling} | {limiter} | {remark} |",
                escaped(&scale.text(median)),
                quantity::count(outcome.n),
            ),
        );
    }
}

fn push_latencies(out: &mut String, rows: &[&Outcome]) {
    for (kind, timed) in latency::by_loop(rows) {
        push_loop(out, kind, &timed);
    }
}

fn push_loop(out: &mut String, kind: &str, timed: &[(&Outcome, &Latency)]) {
    let names = label::percentiles(timed.iter().map(|(_, latency)| *latency));
    let heads: Vec<String> = names.iter().map(|name| escaped(name)).collect();
    let corner = escaped(&latency::head(kind));
    push(out, format_args!("\n| {corner} | parameters | {} | max |", heads.join(" | ")));
    push(out, format_args!("|---|---|{}--:|", "--:|".repeat(names.len())));
    for (outcome, latency) in timed {
        let percentile = |name: &String| latency.percentiles_ns.get(name).and_then(Value::as_f64);
        let cells: Vec<String> = names
            .iter()
            .map(percentile)
            .chain([Some(latency.max_ns)])
            .map(|ns| ns.map_or("–".to_owned(), |ns| quantity::value("ns", ns)))
            .collect();
        let name = escaped(label::test(&outcome.id));
        let parameters = escaped(&label::parameters(&outcome.parameters));
        push(out, format_args!("| {name} | {parameters} | {} |", cells.join(" | ")));
    }
}

/// Everything that a read or write tells, as a list per file.
fn push_facts(out: &mut String, rows: &[&Outcome]) {
    for outcome in rows.iter().filter(|outcome| label::moves_a_file(outcome)) {
        push(out, format_args!("\n### details\n"));
        for (key, value) in summary::pairs(outcome) {
            push(out, format_args!("- {}: {}", escaped(&key), escaped(&value)));
        }
    }
}

fn ceiling_cells(outcome: &Outcome) -> (String, String) {
    let Some(ceiling) = &outcome.ceiling else { return (String::new(), String::new()) };
    let (name, origin) = (escaped(&ceiling.name), label::provenance(ceiling.provenance));
    let text = match ceiling.ratio {
        Some(ratio) => format!("{} of {name} ({origin})", quantity::percent(ratio)),
        None => format!("unknown share of {name} ({origin})"),
    };
    (text, escaped(&ceiling.limiter))
}

fn push_sweep(out: &mut String, sweep: &Sweep<'_>, notes: &mut Notes) {
    let scale = sweep.scale();
    let constants = if sweep.constants.is_empty() {
        String::new()
    } else {
        format!(" ({})", sweep.constants.join(", "))
    };
    let name = format!("{}, {}{constants}", sweep.title(), scale.unit);
    let mut body = String::new();
    let names: Vec<String> = sweep.lines.iter().map(|line| escaped(&line.name())).collect();
    let x_name = escaped(&label::noun(&sweep.chart.x_parameter));
    push(&mut body, format_args!("| {x_name} | {} |", names.join(" | ")));
    push(&mut body, format_args!("|--:|{}", "--:|".repeat(names.len())));
    for (at, x) in sweep.x_values.iter().enumerate() {
        let cells: Vec<String> = sweep
            .lines
            .iter()
            .map(|line| match line.points[at] {
                None => String::new(),
                Some(outcome) => {
                    let marks = notes.marks(&outcome.warnings);
                    let text = match (label::figure(outcome), outcome.status) {
                        (Some(median), Status::Unstable) => format!("~{}", scale.number(median)),
                        (Some(median), _) => scale.number(median),
                        (None, status) => label::status(status).to_owned(),
                    };
                    remark(&text, &marks)
                }
            })
            .collect();
        push(&mut body, format_args!("| {} | {} |", escaped(&sweep.x_text(*x)), cells.join(" | ")));
    }
    let heading = format!("### {}", escaped(&name));
    push_part(out, &Part { heading: &heading, name: &name, body: &body });
}

fn push_verdict(out: &mut String, record: &Record) {
    if !record.end.verdict.is_empty() {
        push(out, format_args!("\n## verdict\n"));
    }
    for answer in &record.end.verdict {
        let mark = if answer.good { "✓" } else { "✗" };
        push(
            out,
            format_args!("- {mark} **{}** {}", escaped(&answer.question), escaped(&answer.text)),
        );
    }
}

fn push_errors(out: &mut String, record: &Record) {
    if !record.end.errors.is_empty() {
        push(out, format_args!("\n## errors\n"));
    }
    for error in &record.end.errors {
        push(out, format_args!("- {}", escaped(error)));
    }
}

/// Words and the marks behind them, as literal brackets that no one takes for a link.
fn remark(words: &str, marks: &str) -> String {
    let marks = marks.replace('[', "\\[").replace(']', "\\]");
    format!("{words} {marks}").trim().to_owned()
}

/// Text from data with control characters spelled out and Markdown's own characters escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped("a|b <i> *x*\n"), "a\\|b &lt;i&gt; \\*x\\*\\\\n");
    }
}
