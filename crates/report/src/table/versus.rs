//! A race on the terminal: contestants by heat, curves by size, pairs with the losses first.

use flatout_measure::record::{Outcome, Status};

use super::{INDENT, Page};
use crate::{
    grid::{Align, Cell, Grid, Row},
    label, matrix, quantity,
    style::Tone,
    sweep::Sweep,
    text,
    versus::{self, Entry, Pair, Pairs, Race, Test, Verdict},
};

/// Columns that a page too narrow for all goes without, the least important first.
const FIRST_TO_GO: [&str; 3] = ["n", "memory", "CPU"];

impl Page<'_> {
    pub(super) fn versus(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        let race = versus::race(rows);
        for (index, test) in race.tests.iter().enumerate() {
            if index > 0 {
                self.out.push('\n');
            }
            self.test(test);
        }
        self.meanings(&race);
        for sweep in sweeps {
            self.out.push('\n');
            self.has_unstable |= matrix::has_unstable(sweep);
            self.out.push_str(&matrix::matrix(sweep, &mut self.notes, self.style));
        }
        if !race.others.is_empty() {
            self.out.push('\n');
            self.rows(&race.others);
        }
        self.audit(&race.contestants(), &[]);
        for pairs in &race.pairs {
            self.pairs(pairs);
        }
        if !race.pairs.is_empty() {
            let meaning = self.shown(versus::RATIO_MEANING);
            self.hang("    ratio  ", &meaning, Tone::Dim);
        }
        self.remarks(&race);
    }

    /// A heading within an area.
    fn subheading(&mut self, text: &str) {
        let text = self.shown(text);
        for line in text::wrap(&text, self.style.width() - INDENT) {
            let line = self.style.paint(&line, Tone::Strong);
            self.out.push_str(&format!("{}{line}\n", " ".repeat(INDENT)));
        }
    }

    fn test(&mut self, test: &Test<'_>) {
        self.subheading(&test.title());
        let has_speed = test.entries().any(|entry| entry.speed_text().is_some());
        let has_cpu = test.entries().any(|entry| entry.cpu().is_some());
        let has_memory = test.entries().any(|entry| entry.memory().is_some());
        let has_notes = test.entries().any(|entry| has_note(entry.outcome));
        let heads = [
            ("contestant", Align::Words, true),
            (test.figure_head(), Align::Decimal, true),
            (self.style.either("±", "+-"), Align::Right, true),
            ("speed", Align::Decimal, has_speed),
            ("CPU", Align::Decimal, has_cpu),
            ("memory", Align::Right, has_memory),
            ("n", Align::Right, true),
            ("notes", Align::Words, has_notes),
        ];
        let told = heads.iter().filter(|(_, _, is_told)| *is_told);
        let heads = told.map(|(head, align, _)| ((*head).to_owned(), *align)).collect();
        let mut grid = Grid { heads, rows: Vec::new() };
        for heat in &test.heats {
            if !heat.words.is_empty() {
                let words = self.shown(&heat.words.join(", "));
                grid.rows.push(vec![Cell::new(words, Tone::Dim)]);
            }
            let indent = if heat.words.is_empty() { "" } else { "\u{a0}\u{a0}" };
            for entry in &heat.entries {
                let name = format!("{indent}{}", self.shown(entry.contestant));
                let row = self.entry_row(entry, name, &[has_speed, has_cpu, has_memory, has_notes]);
                grid.rows.push(row);
            }
        }
        self.narrow(&mut grid, &FIRST_TO_GO);
        self.out.push_str(&grid.render(INDENT, self.style));
    }

    /// A row with the columns that the test has: speed, CPU, memory, notes.
    fn entry_row(&mut self, entry: &Entry<'_>, name: String, has: &[bool; 4]) -> Row {
        let mut row = vec![Cell::plain(name)];
        let Some(median) = label::figure(entry.outcome) else {
            row.push(self.reason_cell(entry.outcome));
            return row;
        };
        let mut figure = Vec::new();
        self.figure_cells(&mut figure, entry.outcome, median);
        let n = figure.pop();
        row.append(&mut figure);
        let [has_speed, has_cpu, has_memory, has_notes] = *has;
        let facts =
            [(has_speed, entry.speed_text()), (has_cpu, entry.cpu()), (has_memory, entry.memory())];
        let dash = self.style.either("–", "-");
        for (_, fact) in facts.into_iter().filter(|(is_told, _)| *is_told) {
            row.push(match fact {
                Some(fact) => Cell::plain(text::shown(&fact, self.style)),
                None => Cell::new(dash, Tone::Dim),
            });
        }
        row.extend(n);
        if has_notes {
            row.push(self.notes_cell(entry.outcome));
        }
        row
    }

    /// What the columns of the contestants mean.
    fn meanings(&mut self, race: &Race<'_>) {
        let entries = || race.tests.iter().flat_map(|test| test.entries());
        let mut meanings = Vec::new();
        if entries().any(|entry| entry.cpu().is_some()) {
            meanings.push(("CPU", versus::CPU_MEANING));
        }
        if entries().any(|entry| entry.memory().is_some()) {
            meanings.push(("memory", versus::MEMORY_MEANING));
        }
        if entries().any(Entry::may_be_inherited) {
            meanings.push(("", versus::INHERITED_MEANING));
        }
        for (head, meaning) in meanings {
            let head = format!("    {}  ", text::pad_right(head, 6));
            let meaning = self.shown(meaning);
            self.hang(&head, &meaning, Tone::Dim);
        }
    }

    fn pairs(&mut self, pairs: &Pairs<'_>) {
        self.out.push('\n');
        self.subheading(&format!("{}: {}", pairs.heading, pairs.count()));
        let has_notes = pairs.pairs.iter().any(|pair| has_note(pair.outcome));
        let heads = [
            ("", Align::Words),
            ("ratio", Align::Right),
            ("", Align::Words),
            ("95 % interval", Align::Words),
            ("result", Align::Words),
            ("work", Align::Words),
            ("n", Align::Right),
            ("notes", Align::Words),
        ];
        let heads = heads.iter().filter(|(head, _)| has_notes || *head != "notes");
        let heads = heads.map(|(head, align)| ((*head).to_owned(), *align)).collect();
        let mut grid = Grid { heads, rows: Vec::new() };
        for pair in &pairs.pairs {
            let row = self.pair_row(pair, has_notes);
            grid.rows.push(row);
        }
        self.narrow(&mut grid, &FIRST_TO_GO);
        self.out.push_str(&grid.render(INDENT, self.style));
    }

    fn pair_row(&mut self, pair: &Pair<'_>, has_notes: bool) -> Row {
        let dash = self.style.either("–", "-");
        let ratio = pair.ratio().map(|ratio| self.shown(&ratio));
        self.has_unstable |= pair.outcome.status == Status::Unstable && ratio.is_some();
        let tone = match pair.verdict {
            Verdict::Loss => Tone::Bad,
            Verdict::Win => Tone::Good,
            Verdict::Tie => Tone::Plain,
            Verdict::Undecided | Verdict::None => Tone::Dim,
        };
        let work: Vec<String> =
            pair.work.iter().map(|word| text::unbroken(&self.shown(word))).collect();
        let interval = pair.interval().map(|interval| text::unbroken(&interval));
        let mut row = vec![
            Cell::plain(self.shown(pair.subject)),
            Cell::new(ratio.unwrap_or_else(|| dash.to_owned()), Tone::Strong),
            Cell::plain(self.shown(pair.against)),
            Cell::plain(interval.unwrap_or_else(|| dash.to_owned())),
            Cell::new(pair.word(), tone),
            Cell::plain(work.join(", ")),
            Cell::plain(quantity::count(pair.outcome.n)),
        ];
        if has_notes {
            let marks = self.notes.marks(&pair.outcome.warnings);
            row.push(Cell::new(marks, Tone::Warn));
        }
        row
    }

    /// Who is missing, and what cannot be compared.
    fn remarks(&mut self, race: &Race<'_>) {
        let gutter = " ".repeat(INDENT);
        if !race.missing.is_empty() {
            let names: Vec<&str> =
                race.missing.iter().map(|missing| missing.text.as_str()).collect();
            let names = self.shown(&names.join(", "));
            self.out.push('\n');
            self.hang(&format!("{gutter}not installed: "), &names, Tone::Dim);
        }
        if !race.not_raced.is_empty() {
            let sentences = self.shown(&race.not_raced.join("; "));
            self.out.push('\n');
            self.hang(&gutter, &sentences, Tone::Dim);
        }
        if race.incomparable.is_empty() {
            return;
        }
        self.out.push('\n');
        self.subheading("cannot be compared");
        for incomparable in &race.incomparable {
            let against = self.shown(&incomparable.against);
            let sentence = self.shown(&incomparable.sentence());
            let text = format!("{against}: {sentence}");
            self.hang(&format!("{gutter}{} ", self.style.either("–", "-")), &text, Tone::Plain);
        }
    }
}

/// Whether a row with a figure has something to say in a column of notes.
fn has_note(outcome: &Outcome) -> bool {
    !matches!(outcome.status, Status::Ok | Status::Unstable) || !outcome.warnings.is_empty()
}
