//! A record as a page for the terminal: rows by area, sweeps, footnotes, verdict, errors.
//!
//! Rows that belong to a chart are not listed one by one; see `matrix.rs`. A ceiling is
//! named by a letter whose line below the rows gives its name, value and origin, since no
//! terminal is wide enough for a sentence per row.

mod evidence;
mod foot;
mod rows;
mod stacked;
mod versus;

use std::collections::BTreeSet;

use flatout_measure::record::{Outcome, Record};

use crate::{
    grid::{Cell, Grid},
    label, machine, matrix,
    notes::Notes,
    storage,
    style::{Style, Tone},
    sweep::{self, Sweep},
    text, versus as race,
};

/// The record as text of lines no wider than the style allows, each ended by a line feed.
pub fn table(record: &Record, style: &Style) -> String {
    let mut page = Page {
        style,
        notes: Notes::of(record),
        has_unstable: false,
        has_interval: false,
        left_out: Vec::new(),
        loops: BTreeSet::new(),
        out: String::new(),
    };
    page.head(record);
    let storage_area = storage_area(record);
    if storage_area.is_empty() {
        page.storage(record);
    }
    let sweeps = sweep::sweeps(record);
    let rows_left = sweep::rows_left(record, &sweeps);
    for area in areas(record) {
        let rows: Vec<&Outcome> = rows_left
            .iter()
            .map(|index| &record.results[*index])
            .filter(|outcome| label::area(&outcome.id) == area)
            .collect();
        let own: Vec<&Sweep<'_>> =
            sweeps.iter().filter(|sweep| label::area(&sweep.chart.id) == area).collect();
        page.heading(area);
        if area == storage_area {
            page.storage(record);
        }
        if area == race::AREA {
            page.versus(&rows_of(record, area), &own);
        } else {
            page.area(&rows, &own);
        }
    }
    if record.results.is_empty() {
        page.out.push_str("\nno results\n");
    }
    page.footnotes();
    page.verdict(record);
    page.end(record);
    // Names from data may be empty or end in spaces.
    page.out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The areas in order of first appearance.
pub(crate) fn areas(record: &Record) -> Vec<&str> {
    let mut areas: Vec<&str> = Vec::new();
    for outcome in &record.results {
        let area = label::area(&outcome.id);
        if !areas.contains(&area) {
            areas.push(area);
        }
    }
    areas
}

/// All rows of an area, those of charts included.
pub(crate) fn rows_of<'a>(record: &'a Record, area: &str) -> Vec<&'a Outcome> {
    record.results.iter().filter(|outcome| label::area(&outcome.id) == area).collect()
}

/// The area below whose name the storage is shown; empty where the head of the page is the place.
pub(crate) fn storage_area(record: &Record) -> &str {
    areas(record).into_iter().find(|area| *area == "disk").unwrap_or_default()
}

/// Parameters that a narrow column breaks between, not inside.
pub(crate) fn parameters_cell(outcome: &Outcome, style: &Style) -> Cell {
    let words = label::parameter_words(&outcome.parameters);
    let words: Vec<String> =
        words.iter().map(|word| text::unbroken(&text::shown(word, style))).collect();
    Cell::plain(words.join(", "))
}

/// a, b, …, z, a2, b2, …
pub(crate) fn letter(index: usize) -> String {
    let base = char::from(b'a' + (index % 26) as u8);
    if index < 26 { base.to_string() } else { format!("{base}{}", index / 26 + 1) }
}
/// Spaces before the rows of an area.
const INDENT: usize = 2;

struct Page<'a> {
    style: &'a Style,
    notes: Notes,
    has_unstable: bool,
    has_interval: bool,
    /// Heads of columns that the page was too narrow for.
    left_out: Vec<String>,
    /// What the kinds of loops mean whose latencies the page shows.
    loops: BTreeSet<&'static str>,
    out: String,
}

impl Page<'_> {
    fn shown(&self, text: &str) -> String {
        text::shown(text, self.style)
    }

    /// A wrapped paragraph behind a head; both must be safe already.
    fn hang(&mut self, head: &str, text: &str, tone: Tone) {
        let block = text::hanging(head, text, self.style.width());
        for (index, line) in block.lines().enumerate() {
            match line.strip_prefix(head).filter(|_| index == 0 && !head.trim().is_empty()) {
                Some("") => self.out.push_str(&self.style.paint(head.trim_end(), tone)),
                Some(rest) => {
                    self.out.push_str(&self.style.paint(head, tone));
                    self.out.push_str(rest);
                }
                None => self.out.push_str(line),
            }
            self.out.push('\n');
        }
    }

    fn head(&mut self, record: &Record) {
        let dot = self.style.either(" · ", " | ");
        let mut words = vec![self.shown(&record.start.tool)];
        words.push(self.shown(&record.start.time));
        words.push(format!("seed {}", record.start.seed));
        words.retain(|word| !word.is_empty());
        for line in text::wrap(&words.join(dot), self.style.width()) {
            self.out.push_str(&self.style.paint(&line, Tone::Strong));
            self.out.push('\n');
        }
        let machine = self.shown(&machine::headline(&record.start.environment));
        if !machine.is_empty() {
            self.hang("", &machine, Tone::Plain);
        }
    }

    fn heading(&mut self, area: &str) {
        let name = self.shown(area);
        self.out.push('\n');
        for line in text::wrap(&name, self.style.width()) {
            self.out.push_str(&self.style.paint(&line, Tone::Strong));
            self.out.push('\n');
        }
    }

    /// What the places stand on, one chain each.
    fn storage(&mut self, record: &Record) {
        let gutter = " ".repeat(INDENT);
        let chains = storage::chains(&record.start.environment);
        let is_in_area = !chains.is_empty() && !storage_area(record).is_empty();
        for chain in chains {
            let line = self.shown(&chain.line);
            self.hang(&gutter, &line, Tone::Plain);
            for remark in chain.remarks {
                let remark = self.shown(&remark);
                self.hang(&format!("{gutter}  ! "), &remark, Tone::Warn);
            }
        }
        if is_in_area {
            self.out.push('\n');
        }
    }

    fn area(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        if !rows.is_empty() {
            self.rows(rows);
        }
        self.curves(rows);
        for sweep in sweeps {
            self.out.push('\n');
            self.has_unstable |= matrix::has_unstable(sweep);
            self.out.push_str(&matrix::matrix(sweep, &mut self.notes, self.style));
        }
        self.audit(rows, sweeps);
        self.commands(rows, sweeps);
    }
    /// Leaves out columns, in the order given, until no name or number must be cut.
    fn narrow(&mut self, grid: &mut Grid, first_to_go: &[&str]) {
        for head in first_to_go {
            if grid.least_width() > self.style.width() - INDENT
                && grid.drop_column(head)
                && !self.left_out.iter().any(|known| known == head)
            {
                self.left_out.push((*head).to_owned());
            }
        }
    }
}
