//! A record as a page for the terminal: rows by area, sweeps, footnotes, verdict, errors.
//!
//! Rows that belong to a chart are not listed one by one; see `matrix.rs`. A ceiling is
//! named by a letter whose line below the rows gives its name, value and origin, since no
//! terminal is wide enough for a sentence per row.

use flatout_measure::record::{Ceiling, Outcome, Record, Status};

use crate::{
    grid::{Align, Cell, Grid},
    label, latency, machine, matrix,
    notes::Notes,
    quantity,
    style::{Style, Tone},
    sweep::{self, Sweep},
    text,
};

/// The record as text of lines no wider than the style allows, each ended by a line feed.
pub fn table(record: &Record, style: &Style) -> String {
    let mut page = Page {
        style,
        notes: Notes::of(record),
        has_unstable: false,
        has_interval: false,
        left_out: Vec::new(),
        out: String::new(),
    };
    page.head(record);
    let sweeps = sweep::sweeps(record);
    let rows_left = sweep::rows_left(record, &sweeps);
    for area in areas(record) {
        let rows: Vec<&Outcome> = rows_left
            .iter()
            .map(|index| &record.results[*index])
            .filter(|outcome| label::area(&outcome.id) == area)
            .collect();
        let own = sweeps.iter().filter(|sweep| label::area(&sweep.chart.id) == area);
        page.area(area, &rows, own);
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

/// Ceilings of one area, each with its letter.
#[derive(Default)]
struct Ceilings {
    legends: Vec<String>,
}

impl Ceilings {
    fn letter(&mut self, legend: String) -> String {
        let at = self.legends.iter().position(|known| *known == legend).unwrap_or_else(|| {
            self.legends.push(legend);
            self.legends.len() - 1
        });
        letter(at)
    }
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
const CEILING: &str = "ceiling";
/// Columns that a page too narrow for all goes without, the least important first.
const FIRST_TO_GO: [&str; 2] = ["n", CEILING];

/// Whether the limiter has a column of its own or stands with the ceiling below the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limiter {
    Column,
    Legend,
}

struct Page<'a> {
    style: &'a Style,
    notes: Notes,
    has_unstable: bool,
    has_interval: bool,
    /// Heads of columns that the page was too narrow for.
    left_out: Vec<String>,
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

    fn area<'b>(
        &mut self,
        area: &str,
        rows: &[&Outcome],
        sweeps: impl Iterator<Item = &'b Sweep<'b>>,
    ) {
        let name = self.shown(area);
        self.out.push('\n');
        for line in text::wrap(&name, self.style.width()) {
            self.out.push_str(&self.style.paint(&line, Tone::Strong));
            self.out.push('\n');
        }
        if !rows.is_empty() {
            self.rows(rows);
        }
        for sweep in sweeps {
            self.out.push('\n');
            self.has_unstable |= matrix::has_unstable(sweep);
            self.out.push_str(&matrix::matrix(sweep, &mut self.notes, self.style));
        }
    }

    fn rows(&mut self, rows: &[&Outcome]) {
        let mut ceilings = Ceilings::default();
        let mut grid = self.grid(rows, Limiter::Column, &mut ceilings);
        let width = self.style.width() - INDENT;
        if grid.natural_width() > width {
            ceilings = Ceilings::default();
            grid = self.grid(rows, Limiter::Legend, &mut ceilings);
        }
        self.narrow(&mut grid, &FIRST_TO_GO);
        if !grid.heads.iter().any(|(head, _)| head == CEILING) {
            ceilings.legends.clear();
        }
        self.out.push_str(&grid.render(INDENT, self.style));
        for (index, legend) in ceilings.legends.iter().enumerate() {
            self.hang(&format!("    {}  ", letter(index)), legend, Tone::Dim);
        }
        if let Some(mut latencies) = latency::grid(rows, self.style) {
            self.out.push('\n');
            let heads: Vec<String> = latencies.heads.iter().map(|(head, _)| head.clone()).collect();
            let numbers = heads.iter().map(String::as_str).skip(3).filter(|head| *head != "max");
            self.narrow(&mut latencies, &numbers.rev().collect::<Vec<&str>>());
            self.out.push_str(&latencies.render(INDENT, self.style));
        }
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

    fn grid(&mut self, rows: &[&Outcome], limiter: Limiter, ceilings: &mut Ceilings) -> Grid {
        let plus_minus = self.style.either("±", "+-");
        let mut heads: Vec<(String, Align)> = [
            ("test", Align::Words),
            ("parameters", Align::Words),
            ("median", Align::Decimal),
            (plus_minus, Align::Right),
            ("n", Align::Right),
        ]
        .map(|(head, align)| (head.to_owned(), align))
        .into();
        let has_ceilings = rows.iter().any(|outcome| outcome.ceiling.is_some());
        if has_ceilings {
            heads.push((CEILING.to_owned(), Align::Right));
        }
        let has_limiters = limiter == Limiter::Column
            && rows.iter().any(|o| o.ceiling.as_ref().is_some_and(|c| !c.limiter.is_empty()));
        if has_limiters {
            heads.push(("limited by".to_owned(), Align::Words));
        }
        if rows
            .iter()
            .any(|o| !matches!(o.status, Status::Ok | Status::Unstable) || !o.warnings.is_empty())
        {
            heads.push(("notes".to_owned(), Align::Words));
        }
        let mut grid = Grid { heads, rows: Vec::new() };
        let mut previous = "";
        for outcome in rows {
            let test = label::test(&outcome.id);
            let name = if test == previous { String::new() } else { self.shown(test) };
            previous = test;
            let mut row = vec![Cell::plain(name), parameters_cell(outcome, self.style)];
            match label::figure(outcome) {
                Some(median) => {
                    self.figure_cells(&mut row, outcome, median);
                    if has_ceilings {
                        row.push(self.ceiling_cell(outcome, limiter, ceilings));
                    }
                    if has_limiters {
                        let limiter = outcome.ceiling.as_ref().map_or("", |c| c.limiter.as_str());
                        row.push(Cell::plain(self.shown(limiter)));
                    }
                    if row.len() < grid.heads.len() {
                        row.push(self.notes_cell(outcome));
                    }
                }
                None => row.push(self.reason_cell(outcome)),
            }
            grid.rows.push(row);
        }
        grid
    }

    fn figure_cells(&mut self, row: &mut Vec<Cell>, outcome: &Outcome, median: f64) {
        let unstable = if outcome.status == Status::Unstable { "~" } else { "" };
        self.has_unstable |= !unstable.is_empty();
        let figure = format!("{unstable}{}", quantity::value(&outcome.unit, median));
        row.push(Cell::new(self.shown(&figure), Tone::Strong));
        let half = outcome.ci95.and_then(|interval| quantity::half_width(median, interval));
        self.has_interval |= half.is_some();
        let tone = if outcome.status == Status::Unstable { Tone::Warn } else { Tone::Plain };
        let none = self.style.either("–", "-").to_owned();
        row.push(Cell::new(half.map_or(none, quantity::percent), tone));
        row.push(Cell::plain(quantity::count(outcome.n)));
    }

    fn ceiling_cell(&self, outcome: &Outcome, limiter: Limiter, ceilings: &mut Ceilings) -> Cell {
        let Some(ceiling) = &outcome.ceiling else { return Cell::default() };
        let share = ceiling.ratio.map_or("?".to_owned(), quantity::percent);
        let legend = self.shown(&ceiling_legend(ceiling, &outcome.unit, limiter));
        Cell::plain(format!("{share} {}", ceilings.letter(legend)))
    }

    fn notes_cell(&mut self, outcome: &Outcome) -> Cell {
        let marks = self.notes.marks(&outcome.warnings);
        let (word, tone) = match outcome.status {
            Status::Ok | Status::Unstable => ("", Tone::Warn),
            Status::Failed | Status::Invalid => (label::status(outcome.status), Tone::Bad),
            other => (label::status(other), Tone::Warn),
        };
        let gap = if word.is_empty() || marks.is_empty() { "" } else { " " };
        Cell::new(format!("{word}{gap}{marks}"), tone)
    }

    fn reason_cell(&mut self, outcome: &Outcome) -> Cell {
        let reason = self.notes.reason(outcome);
        let marks = reason.marks;
        let tone = match outcome.status {
            Status::Failed | Status::Invalid => Tone::Bad,
            _ => Tone::Dim,
        };
        let gap = if marks.is_empty() { "" } else { " " };
        let words = self.shown(&label::reason(outcome, reason.text.as_deref()));
        Cell::new(format!("{words}{gap}{marks}"), tone)
    }

    fn footnotes(&mut self) {
        let notes: Vec<(usize, String, String)> = self
            .notes
            .iter()
            .map(|(number, note)| (number, self.shown(&note.code), self.shown(&note.sentence())))
            .collect();
        let outliers = self.notes.outliers();
        let has_legend = self.has_interval
            || self.has_unstable
            || outliers.is_some()
            || !self.left_out.is_empty();
        if !notes.is_empty() || has_legend {
            self.out.push('\n');
        }
        if self.has_interval {
            let head = text::pad_right(self.style.either("±", "+-"), 5);
            self.hang(&head, quantity::PLUS_MINUS, Tone::Dim);
        }
        if !self.left_out.is_empty() {
            let heads = self.left_out.join(", ");
            let text = format!("columns left out of this narrow page: {heads}");
            self.hang("     ", &text, Tone::Dim);
        }
        if let Some(text) = outliers {
            self.hang("     ", &text, Tone::Dim);
        }
        if self.has_unstable {
            let text = "unstable: the time budget ended before the interval was narrow";
            self.hang("~    ", text, Tone::Warn);
        }
        for (number, code, sentence) in notes {
            let head = text::pad_right(&format!("[{number}]"), 5);
            self.hang(&head, &format!("{code}: {sentence}"), Tone::Warn);
        }
    }

    fn verdict(&mut self, record: &Record) {
        if record.end.verdict.is_empty() {
            return;
        }
        self.out.push('\n');
        self.out.push_str(&self.style.paint("verdict", Tone::Strong));
        self.out.push('\n');
        for answer in &record.end.verdict {
            let (mark, tone) = match answer.good {
                true => (self.style.either("✓", "ok"), Tone::Good),
                false => (self.style.either("✗", "!!"), Tone::Bad),
            };
            let question = self.shown(&answer.question);
            let text = self.shown(&answer.text);
            self.hang(&format!("  {mark} "), &format!("{question} {text}"), tone);
        }
    }

    fn end(&mut self, record: &Record) {
        if !record.end.errors.is_empty() {
            self.out.push('\n');
        }
        for error in &record.end.errors {
            let error = self.shown(error);
            self.hang("error: ", &error, Tone::Bad);
        }
        let elapsed = self.shown(&quantity::value("s", record.end.elapsed_s));
        let end = match record.end.exit_code {
            0 => format!("{elapsed} in all"),
            code => format!("{elapsed} in all, exit code {code}"),
        };
        self.out.push('\n');
        self.out.push_str(&self.style.paint(&end, Tone::Dim));
        self.out.push('\n');
    }
}

/// Name, value and origin of a ceiling, and the limiter where it has no column.
fn ceiling_legend(ceiling: &Ceiling, unit: &str, limiter: Limiter) -> String {
    let name = if ceiling.name.is_empty() { "unnamed ceiling" } else { &ceiling.name };
    let mut legend = name.to_owned();
    if let Some(value) = ceiling.value {
        legend = format!("{legend}: {}", quantity::value(unit, value));
    }
    legend = format!("{legend} ({})", label::provenance(ceiling.provenance));
    if limiter == Limiter::Legend && !ceiling.limiter.is_empty() {
        legend = format!("{legend}; limited by {}", ceiling.limiter);
    }
    legend
}
