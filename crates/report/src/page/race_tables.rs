//! A race as tables: contestants workload by workload; pairs, the losses first; who is missing.

use super::column::{self, Column};
use super::notes::Notes;
use super::race::{self, Entry, Pair, Pairs, Race, Test};
use super::{Block, Cell, PairsKind, Row, Section, Table, rows};
use crate::style::Tone;

/// Adds the contestants of each test, and what their columns mean.
pub(super) fn push_contestants(section: &mut Section, race: &Race<'_>, notes: &mut Notes) {
    for test in &race.tests {
        section.push(Block::Heading(test.title(), Tone::Plain));
        section.push(Block::Table(contestants(test, notes)));
    }
    let is_told = |(known, fact): &&FactColumn| {
        !known.meaning.is_empty() && race.entries().any(|entry| fact(entry).is_some())
    };
    let told = FACTS.iter().filter(is_told).map(|(known, _)| (known.head, known.meaning));
    let is_inherited = race.entries().any(Entry::may_be_inherited);
    let inherited = is_inherited.then_some(("≤", race::INHERITED_MEANING));
    section.push(Block::Pairs(super::Pairs::new(PairsKind::Legend, told.chain(inherited))));
}

/// A column and its cell for each who took part.
type FactColumn = (column::Known, fn(&Entry<'_>) -> Option<String>);

const FACTS: [FactColumn; 4] = [
    (column::SPEED, |entry| entry.speed_text()),
    (column::FILES, |entry| entry.files_text()),
    (column::CPU, |entry| entry.cpu()),
    (column::MEMORY, |entry| entry.memory()),
];

fn contestants(test: &Test<'_>, notes: &mut Notes) -> Table {
    let is_told = |(_, fact): &&FactColumn| test.entries().any(|entry| fact(entry).is_some());
    let facts: Vec<&FactColumn> = FACTS.iter().filter(is_told).collect();
    let figure = Column::named(vec![test.figure_head().to_owned()], column::MEDIAN);
    let mut columns = vec![column::CONTESTANT.into(), figure, column::INTERVAL.into()];
    columns.extend(facts.iter().map(|(known, _)| Column::from(*known)));
    columns.extend([column::N, column::SAMPLES].map(Column::from));
    let mut rows = Vec::new();
    for workload in &test.workloads {
        if !workload.words.is_empty() {
            rows.push(Row::new(vec![Cell::new(workload.words.join(", "), Tone::Dim)]));
        }
        for entry in &workload.entries {
            let mut cells = vec![Cell::plain(entry.contestant)];
            match rows::figure(entry.outcome, notes) {
                Some(figure) => {
                    cells.extend(figure);
                    cells.extend(facts.iter().map(|(known, fact)| {
                        let cell = Cell::or_dash(fact(entry));
                        let parts = entry.cpu_parts().filter(|_| known.head == column::CPU.head);
                        cell.with_detail(parts.unwrap_or_default())
                    }));
                    cells.extend([rows::count(entry.outcome), rows::samples(entry.outcome)]);
                }
                None => cells.push(notes.reason_cell(entry.outcome)),
            }
            rows.push(Row::new(cells));
        }
    }
    Table { name: "race", columns, rows, ..Table::default() }
}

/// Adds the lists of pairs, and what cannot be told of some.
pub(super) fn push_pairs(section: &mut Section, race: &Race<'_>, notes: &mut Notes) {
    for pairs in &race.pairs {
        let heading = format!("{}: {}", pairs.heading, pairs.count());
        section.push(Block::Heading(heading, Tone::Plain));
        section.push(Block::Table(pairs_table(pairs, notes)));
    }
    if !race.pairs.is_empty() {
        let meaning = [(column::RATIO.head, column::RATIO.meaning)];
        section.push(Block::Pairs(super::Pairs::new(PairsKind::Legend, meaning)));
    }
    if !race.missing.is_empty() {
        let names = race.missing.join(", ");
        section.push(Block::Text(format!("not installed: {names}"), Tone::Dim));
    }
    if !race.not_raced.is_empty() {
        section.push(Block::Text(race.not_raced.join("; "), Tone::Dim));
    }
    if !race.incomparable.is_empty() {
        section.push(Block::Heading("cannot be compared".to_owned(), Tone::Plain));
        section.push(Block::List(race.incomparable.clone()));
    }
}

fn pairs_table(pairs: &Pairs<'_>, notes: &mut Notes) -> Table {
    let columns = [
        column::words("work"),
        column::PARAMETERS,
        column::CONTESTANT,
        column::RATIO,
        column::AGAINST,
        column::RATIO_INTERVAL,
        column::RESULT,
        column::N,
    ];
    let row = |pair: &Pair<'_>| {
        let (test, parameters) = match pair.work.split_first() {
            Some((test, parameters)) => (test.clone(), parameters.to_vec()),
            None => (String::new(), Vec::new()),
        };
        let marks = notes.marks(&pair.outcome.warnings);
        let ratio = Cell { marks, tone: Tone::Strong, ..Cell::or_dash(pair.ratio()) };
        Row::new(vec![
            Cell::plain(test),
            Cell::words(parameters),
            Cell::plain(pair.subject),
            ratio,
            Cell::plain(pair.against),
            Cell::or_dash(pair.interval()),
            Cell::new(pair.word(), pair.verdict.tone()),
            rows::count(pair.outcome),
        ])
    };
    let rows = pairs.pairs.iter().map(row).collect();
    Table { name: "pairs", columns: columns.map(Column::from).into(), rows, ..Table::default() }
}
