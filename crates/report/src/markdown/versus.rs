//! A race in Markdown: contestants by heat, pairs with the losses first, curves by size.

use flatout_measure::record::{Outcome, Status};

use super::{escaped, evidence, push, push_rows, push_sweep, remark};
use crate::{
    label,
    notes::Notes,
    quantity,
    sweep::Sweep,
    versus::{self, Entry, Pairs, Race, Test},
};

pub(super) fn push_race(
    out: &mut String,
    rows: &[&Outcome],
    sweeps: &[&Sweep<'_>],
    notes: &mut Notes,
) {
    let race = versus::race(rows);
    for test in &race.tests {
        push_test(out, test, notes);
    }
    if race.tests.iter().flat_map(Test::entries).any(Entry::may_be_inherited) {
        push(out, format_args!("\n{}", escaped(versus::INHERITED_MEANING)));
    }
    for pairs in &race.pairs {
        push_pairs(out, pairs, notes);
    }
    if !race.pairs.is_empty() {
        push(out, format_args!("\nratio: {}", escaped(versus::RATIO_MEANING)));
    }
    push_remarks(out, &race);
    for sweep in sweeps {
        push_sweep(out, sweep, notes);
    }
    if !race.others.is_empty() {
        push(out, format_args!(""));
        push_rows(out, &race.others, notes);
    }
    evidence::push_audit(out, &race.contestants(), &[]);
}

fn push_test(out: &mut String, test: &Test<'_>, notes: &mut Notes) {
    push(out, format_args!("\n### {}\n", escaped(&test.title())));
    let figure = test.figure_head();
    push(
        out,
        format_args!("| work | contestant | {figure} | ± | speed | CPU | memory | n | notes |"),
    );
    push(out, format_args!("|---|---|--:|--:|--:|--:|--:|--:|---|"));
    for heat in &test.heats {
        let work = escaped(&heat.words.join(", "));
        for entry in &heat.entries {
            let cells = entry_cells(entry, notes);
            push(out, format_args!("| {work} | {} | {cells} |", escaped(entry.contestant)));
        }
    }
}

fn entry_cells(entry: &Entry<'_>, notes: &mut Notes) -> String {
    let outcome = entry.outcome;
    let Some(median) = label::figure(outcome) else {
        let reason = notes.reason(outcome);
        let words = escaped(&label::reason(outcome, reason.text.as_deref()));
        return format!("– | | | | | | {}", remark(&words, &reason.marks));
    };
    let half = outcome.ci95.and_then(|interval| quantity::half_width(median, interval));
    let status = if outcome.status == Status::Ok { "" } else { label::status(outcome.status) };
    let fact = |fact: Option<String>| fact.as_deref().map_or_else(String::new, escaped);
    format!(
        "{} | {} | {} | {} | {} | {} | {}",
        escaped(&quantity::value(&outcome.unit, median)),
        half.map_or_else(|| "–".to_owned(), quantity::percent),
        fact(entry.speed_text()),
        fact(entry.cpu()),
        fact(entry.memory()),
        quantity::count(outcome.n),
        remark(status, &notes.marks(&outcome.warnings)),
    )
}

fn push_pairs(out: &mut String, pairs: &Pairs<'_>, notes: &mut Notes) {
    push(out, format_args!("\n### {}: {}\n", escaped(&pairs.heading), pairs.count()));
    push(
        out,
        format_args!(
            "| contestant | ratio | against | 95 % interval | result | work | n | notes |"
        ),
    );
    push(out, format_args!("|---|--:|---|---|---|---|--:|---|"));
    for pair in &pairs.pairs {
        let or_dash = |text: Option<String>| text.map_or("–".to_owned(), |text| escaped(&text));
        push(
            out,
            format_args!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                escaped(pair.subject),
                or_dash(pair.ratio()),
                escaped(pair.against),
                or_dash(pair.interval()),
                pair.word(),
                escaped(&pair.work.join(", ")),
                quantity::count(pair.outcome.n),
                remark("", &notes.marks(&pair.outcome.warnings)),
            ),
        );
    }
}

fn push_remarks(out: &mut String, race: &Race<'_>) {
    if !race.missing.is_empty() {
        let names: Vec<String> =
            race.missing.iter().map(|missing| escaped(&missing.text)).collect();
        push(out, format_args!("\nnot installed: {}", names.join(", ")));
    }
    if !race.not_raced.is_empty() {
        push(out, format_args!("\n{}", escaped(&race.not_raced.join("; "))));
    }
    if race.incomparable.is_empty() {
        return;
    }
    push(out, format_args!("\n### cannot be compared\n"));
    for incomparable in &race.incomparable {
        let (against, sentence) =
            (escaped(&incomparable.against), escaped(&incomparable.sentence()));
        push(out, format_args!("- {against}: {sentence}"));
    }
}
