//! A record as a page.

use std::collections::BTreeSet;

use flatout_measure::load;
use flatout_measure::record::{Outcome, Record};

use super::notes::{self, Notes};
use super::race::{self, Race};
use super::{Block, Commands, Folded, Page, Pairs, PairsKind, Part, Section};
use super::{audit, commands, facts, findings, latency, machine};
use super::{pair_matrix, pictures, race_tables};
use super::{rows, storage, summary, trials, units};
use crate::chart::sweep::{self, Sweep};
use crate::style::Tone;
use crate::{label, order, quantity, text};

/// Everything that a record says, and what earlier ones of the same machine say of its figures.
pub(crate) fn of_record(record: &Record, earlier: &[Record]) -> Page {
    let record = &*units::shown(record);
    let earlier: Vec<Record> =
        earlier.iter().map(|record| units::shown(record).into_owned()).collect();
    let start = &record.start;
    let machine = [machine::headline(&start.environment), machine::place(&start.environment)];
    let heading = text::listed(machine, ", ");
    let is_ours = is_ours(record);
    let heading = match heading.is_empty() && !is_ours {
        true => format!("result of {}", start.tool),
        false => heading,
    };
    let end = &record.end;
    let took = (end.elapsed_s > 0.0).then(|| quantity::value("s", end.elapsed_s));
    let code = (end.exit_code != 0).then(|| format!("exit code {}", end.exit_code));
    let seed = is_ours.then(|| format!("seed {}", start.seed));
    let origin = [Some(start.tool.clone()), Some(start.time.clone()), took, code, seed];
    let mut page = Page {
        title: title(record, &heading),
        heading,
        command: start.argv.join(" "),
        origin: origin.into_iter().flatten().filter(|word| !word.is_empty()).collect(),
        sections: Vec::new(),
    };
    let race = race::race(&label::rows_of(record, race::AREA));
    page.sections.extend(Section::of_errors(&record.end.errors));
    if let Some(busy) = record.end.load.as_ref().and_then(load::busy_words) {
        let busy = Block::Text(busy, Tone::Warn);
        page.sections.push(Section::new(Part::Load, "").with(busy));
    }
    page.sections.push(summary::of_record(record, &race, &earlier));
    page.sections.extend(findings::section(record));
    if !record.end.verdict.is_empty() {
        let verdict = Block::Verdict(record.end.verdict.clone());
        page.sections.push(Section::new(Part::Verdict, "Verdict").with(verdict));
    }
    page.sections.extend(facts_of_machine(record).filter(|_| is_ours));
    let mut notes = Notes::default();
    page.sections.extend(areas(record, &race, &mut notes));
    page.sections.extend(footnotes(record, &notes));
    page
}

/// Whether flatout measured it, not another program.
pub(super) fn is_ours(record: &Record) -> bool {
    record.start.tool.starts_with("flatout")
}

/// What the page is: the command, and what it was about.
fn title(record: &Record, machine: &str) -> String {
    if !is_ours(record) {
        return machine.to_owned();
    }
    let is_known = |word: &&String| text::is_among(word, "read write copy bench versus tune sum");
    let command = record.start.argv.iter().skip(1).find(is_known);
    let command = command.map_or("bench", String::as_str);
    let colon = if machine.is_empty() { "" } else { ": " };
    format!("flatout {command}{colon}{machine}")
}

fn facts_of_machine(record: &Record) -> Option<Section> {
    let facts = facts::facts(record);
    let is_told = !facts.is_empty();
    let mut section = Section::new(Part::Facts, "The machine");
    section.push_for_browser(Block::Pairs(Pairs::new(PairsKind::Brief, facts)));
    let members = machine::pairs(&record.start.environment);
    let members = Block::Pairs(Pairs::new(PairsKind::Members, members));
    section.push_for_browser(Block::folded("All that the record knows of it", vec![members]));
    is_told.then_some(section)
}

fn areas(record: &Record, race: &Race<'_>, notes: &mut Notes) -> Vec<Section> {
    let sweeps = sweep::sweeps(record);
    let shown = sweep::rows_shown(&sweeps);
    let areas = order::grouped(record.results.iter().map(|row| (label::area(&row.id), row)));
    let mut sections = Vec::new();
    // Below the name of the area that it is about, or before all.
    if !areas.iter().any(|(area, _)| *area == "disk") {
        let mut section = Section::new(Part::Storage, "");
        storage::push(&mut section, &record.start.environment);
        sections.push(section);
    }
    for (area, all) in areas {
        let mut section = Section::new(Part::Area, area);
        if area == "disk" {
            storage::push(&mut section, &record.start.environment);
        }
        let is_listed = |row: &&Outcome| !shown.contains(&std::ptr::from_ref(*row));
        let rows: Vec<&Outcome> = all.iter().copied().filter(is_listed).collect();
        let sweeps: Vec<&Sweep<'_>> =
            sweeps.iter().filter(|sweep| label::area(&sweep.chart.id) == area).collect();
        if area == race::AREA {
            push_race(&mut section, record, (race, &all, &sweeps), notes);
        } else {
            push_area(&mut section, record, (&rows, &all, &sweeps), notes);
        }
        sections.push(section);
    }
    sections
}

fn push_area(
    section: &mut Section,
    record: &Record,
    (rows, all, sweeps): (&[&Outcome], &[&Outcome], &[&Sweep<'_>]),
    notes: &mut Notes,
) {
    // Charts have the rows of pairs, and of many processes there are more than anybody reads.
    pair_matrix::push(section, all);
    push_rows(section, rows, notes);
    pictures::push_sweeps(section, sweeps, record, notes);
    pictures::push_for_browser(section, record, (all, &Race::default()), notes);
    pictures::push_curves(section, all, rows);
    push_audit(section, rows, sweeps);
    let of_charts = sweeps.iter().flat_map(|sweep| sweep.outcomes());
    let with_charts: Vec<&Outcome> = rows.iter().copied().chain(of_charts).collect();
    let commands = commands::commands(&with_charts);
    if !commands.is_empty() {
        let of_rows = commands::commands(rows).len();
        section.push(Block::Commands(Commands { commands, of_rows }));
    }
    push_facts(section, rows);
}

fn push_race(
    section: &mut Section,
    record: &Record,
    (race, all, sweeps): (&Race<'_>, &[&Outcome], &[&Sweep<'_>]),
    notes: &mut Notes,
) {
    race_tables::push_contestants(section, race, notes);
    pictures::push_sweeps(section, sweeps, record, notes);
    pictures::push_for_browser(section, record, (all, race), notes);
    pictures::push_curves(section, all, &[]);
    push_rows(section, &race.others, notes);
    let contestants: Vec<&Outcome> = race.entries().map(|entry| entry.outcome).collect();
    push_audit(section, &contestants, &[]);
    race_tables::push_pairs(section, race, notes);
    push_facts(section, &contestants);
}

fn push_rows(section: &mut Section, rows: &[&Outcome], notes: &mut Notes) {
    if !rows.is_empty() {
        section.push(Block::Table(rows::table(rows, notes)));
        latency::push(section, rows);
        trials::push(section, rows);
    }
}

/// What belongs to the figures, and the audit; and both of the rows of charts one by one.
fn push_audit(section: &mut Section, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
    for kind in audit::KINDS {
        let Some((table, legend)) = kind.table(rows, sweeps) else { continue };
        section.push(Block::Heading(kind.heading.to_owned(), Tone::Plain));
        section.push(Block::Table(table));
        section.push(Block::Pairs(legend));
        for sweep in sweeps {
            let Some((table, _)) = kind.table(&sweep.outcomes(), &[]) else { continue };
            let name = format!("{} of each row: {}", kind.name, sweep.title());
            section.push_for_browser(Block::folded(name, vec![Block::Table(table)]));
        }
    }
}

/// Everything that each row tells, audit included.
fn push_facts(section: &mut Section, rows: &[&Outcome]) {
    let told: Vec<&&Outcome> = rows.iter().filter(|outcome| !outcome.audit.is_empty()).collect();
    let mut blocks = Vec::new();
    for outcome in &told {
        if rows.len() > 1 {
            blocks.push(Block::Heading(label::test(&outcome.id).to_owned(), Tone::Plain));
        }
        // The lines for a shell have a place of their own.
        let pairs = crate::summary::pairs(outcome).into_iter();
        let pairs = pairs.filter(|(key, _)| key != commands::HEAD);
        blocks.push(Block::Pairs(Pairs::new(PairsKind::Facts, pairs)));
    }
    let (name, short, is_open) = ("Counted facts".to_owned(), String::new(), rows.len() == 1);
    let facts = Block::Folded(Folded { name, short, is_open, blocks });
    match told.first() {
        None => {}
        Some(first) if label::moves_files(first) => section.push(facts),
        Some(_) => section.push_for_browser(facts),
    }
}

/// Notes, and what signs mean.
fn footnotes(record: &Record, notes: &Notes) -> Option<Section> {
    let figures = || record.results.iter().filter(|row| label::figure(row).is_some());
    let mut legend: Vec<(&str, String)> = Vec::new();
    if figures().any(|row| row.ci95.is_some()) {
        legend.push(("±", quantity::PLUS_MINUS.to_owned()));
    }
    let loops = record.results.iter().filter_map(|row| Some(&*label::latency(row)?.loop_kind));
    let loops: BTreeSet<&str> = loops.collect();
    let meanings = loops.into_iter().filter_map(latency::meaning).map(str::to_owned);
    legend.extend(meanings.chain(notes::outliers(record)).map(|text| ("", text)));
    let footnotes = notes.footnotes();
    if legend.is_empty() && footnotes.is_empty() {
        return None;
    }
    let legend = Block::Pairs(Pairs::new(PairsKind::Legend, legend));
    let section = Section::new(Part::Notes, "Notes").with(legend);
    Some(section.with(Block::Notes(footnotes)))
}
