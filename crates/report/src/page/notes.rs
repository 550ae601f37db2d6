//! Footnotes: each warning once, under a number that the rows refer to.

use std::collections::{BTreeMap, BTreeSet};

use flatout_measure::{
    record::{Outcome, Record, Status},
    warning::{self, Warning},
};

use super::{Cell, Footnote};
use crate::{label, quantity};

/// Sentences shown for one code; further ones of that code share a note that counts them.
const MOST_SENTENCES_PER_CODE: usize = 3;

/// Codes that only say what kind of row it is, each with the sentence that stands for those of
/// all its rows, which differ by a number only: of bytes, threads or trials.
const LABELS: [(&str, &str); 6] = [
    (warning::UNSTABLE, "noisy: the 95 % interval is wider than ±25 %"),
    (warning::FEW_TRIALS, "too few trials count for a 95 % interval"),
    (warning::SYSCALL_BOUND, "small blocks: system calls limit these figures, not memory"),
    (
        warning::READAHEAD_BOUND,
        "blocks below a page: readahead and system calls limit these figures, not the disk",
    ),
    (warning::REQUESTS_SPLIT, "the device takes less at once than was asked: requests were split"),
    (warning::OVERSUBSCRIBED, "more threads than CPUs: they wait for each other"),
];

/// Code and sentence: what makes a warning the same as another.
type Key = (String, String);

/// The warnings met so far.
#[derive(Default)]
pub(super) struct Notes {
    notes: Vec<Note>,
    by_warning: BTreeMap<Key, usize>,
    /// How many sentences a code has, and where its note is that takes further ones.
    codes: BTreeMap<String, (usize, Option<usize>)>,
    /// Rows of the record that carry each warning, so that asking for a mark counts nothing.
    rows: BTreeMap<Key, usize>,
    /// Reasons for which rows have no figure, and how many each.
    reasons: BTreeMap<Key, usize>,
    rows_with_outliers: usize,
}

/// One footnote.
struct Note {
    code: String,
    /// The sentence; none where the note stands for many different ones.
    text: Option<String>,
    /// Rows that it is about.
    rows: usize,
    is_reason: bool,
}

fn key(warning: &Warning) -> Key {
    (warning.code.clone(), warning.text.clone())
}

impl Notes {
    /// No notes yet, but each row of the record counted once.
    pub fn of(record: &Record) -> Self {
        let mut notes = Self::default();
        for outcome in &record.results {
            let keys: BTreeSet<Key> = outcome.warnings.iter().map(key).collect();
            for key in keys {
                *notes.rows.entry(key).or_default() += 1;
            }
            let has_outliers = warning::has(&outcome.warnings, warning::OUTLIERS);
            notes.rows_with_outliers += usize::from(has_outliers);
            let reason = outcome.warnings.first().filter(|_| label::figure(outcome).is_none());
            reason.into_iter().for_each(|why| *notes.reasons.entry(key(why)).or_default() += 1);
        }
        notes
    }

    fn is_repeated_reason(&self, key: &Key) -> bool {
        self.reasons.get(key).is_some_and(|rows| *rows > 1)
    }

    /// The number of the note for this warning; the first is 1.
    fn mark(&mut self, warning: &Warning) -> usize {
        let key = key(warning);
        if let Some(at) = self.by_warning.get(&key) {
            return at + 1;
        }
        let at = self.place(warning, &key);
        self.notes[at].rows += self.rows.get(&key).copied().unwrap_or(0);
        self.by_warning.insert(key, at);
        at + 1
    }

    /// Where the sentence goes: a note of its own, or one that it shares.
    fn place(&mut self, warning: &Warning, key: &Key) -> usize {
        let code = warning.code.as_str();
        let own = Some(warning.text.clone());
        if self.is_repeated_reason(key) {
            return self.push(code, own, true);
        }
        let label = LABELS.iter().find(|(label, _)| *label == code);
        let (sentences, shared) = self.codes.entry(code.to_owned()).or_default();
        *sentences += 1;
        let is_full = *sentences > MOST_SENTENCES_PER_CODE;
        if let Some(at) = *shared {
            if let Some((_, sentence)) = label {
                self.notes[at].text = Some((*sentence).to_owned());
            }
            return at;
        }
        *shared = (is_full || label.is_some()).then_some(self.notes.len());
        self.push(code, own.filter(|_| !is_full), false)
    }

    fn push(&mut self, code: &str, text: Option<String>, is_reason: bool) -> usize {
        self.notes.push(Note { code: code.to_owned(), text, rows: 0, is_reason });
        self.notes.len() - 1
    }

    /// The numbers of the notes for several warnings, ascending.
    pub fn marks(&mut self, warnings: &[Warning]) -> Vec<usize> {
        // Outliers are counted: on a shared machine nearly every row has some.
        let told = |warning: &&Warning| warning.code != warning::OUTLIERS;
        let numbers: BTreeSet<usize> =
            warnings.iter().filter(told).map(|warning| self.mark(warning)).collect();
        numbers.into_iter().collect()
    }

    /// Why the row has no figure. A reason that no other row has stands in the row itself, and
    /// only further warnings are notes.
    pub fn reason_cell(&mut self, outcome: &Outcome) -> Cell {
        // What was digested has no figure of its own.
        if let Some(digest) = outcome.fact_text("digest").filter(|_| outcome.status == Status::Ok) {
            return Cell::plain(digest);
        }
        let (text, marks) = match outcome.warnings.split_first() {
            Some((first, others)) if !self.is_repeated_reason(&key(first)) => {
                (first.text.clone(), self.marks(others))
            }
            _ => (String::new(), self.marks(&outcome.warnings)),
        };
        let badge = label::no_figure(outcome.status);
        Cell { badge, marks, ..Cell::new(text, label::tone(outcome.status)) }
    }

    /// One line about all rows that have outliers; `None` when no row has.
    pub fn outliers(&self) -> Option<String> {
        let verb = if self.rows_with_outliers == 1 { "has" } else { "have" };
        let rows = quantity::counted(self.rows_with_outliers, "row");
        let rest = "samples far from the others; they are kept, and named in the record";
        (self.rows_with_outliers > 0).then(|| format!("{rows} {verb} {rest}"))
    }

    /// All notes in the order of their numbers.
    pub fn footnotes(&self) -> Vec<Footnote> {
        let footnote = |(note, number): (&Note, usize)| {
            let (code, sentence) = (note.code.clone(), note.sentence());
            Footnote { number, code, sentence }
        };
        self.notes.iter().zip(1..).map(footnote).collect()
    }
}

impl Note {
    /// The sentence, or how many others this note stands for.
    fn sentence(&self) -> String {
        match &self.text {
            Some(text) if self.is_reason => format!("{} rows: {text}", self.rows),
            Some(text) => text.clone(),
            None if self.rows == 1 => "1 more row; the record holds its sentence".to_owned(),
            None => format!("{} more rows; the record holds the sentence of each", self.rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{End, SCHEMA, Start};

    use super::*;

    fn record(results: Vec<Outcome>) -> Record {
        Record {
            schema: SCHEMA.to_owned(),
            start: Start {
                tool: String::new(),
                argv: Vec::new(),
                seed: 0,
                time: String::new(),
                environment: serde_json::Value::Null,
            },
            results,
            charts: Vec::new(),
            end: End::default(),
        }
    }

    fn row(code: &str, text: impl Into<String>) -> Outcome {
        let warnings = vec![Warning::new(code, text)];
        Outcome { median: Some(1.0), warnings, ..Outcome::default() }
    }

    /// The notes after every row asked for its marks twice, as a table that is set twice does.
    fn notes_of(results: Vec<Outcome>) -> Notes {
        let record = record(results);
        let mut notes = Notes::of(&record);
        for outcome in record.results.iter().chain(&record.results) {
            notes.marks(&outcome.warnings);
        }
        notes
    }

    fn sentences(notes: &Notes) -> Vec<String> {
        notes.footnotes().into_iter().map(|note| note.sentence).collect()
    }

    #[test]
    fn equal_warnings_share_a_number_and_many_share_one() {
        let mut rows = vec![row("few_trials", "only three"), row("few_trials", "only three")];
        rows.extend((0..9).map(|number| row("wide", format!("row {number}"))));
        let rest = "6 more rows; the record holds the sentence of each";
        assert_eq!(sentences(&notes_of(rows)), ["only three", "row 0", "row 1", "row 2", rest]);
    }

    #[test]
    fn labels_of_many_rows_share_one_note() {
        let of = |block: u32| row(warning::SYSCALL_BOUND, format!("blocks of {block} bytes"));
        let many = sentences(&notes_of(vec![of(1), of(2), of(4)]));
        assert_eq!(many, ["small blocks: system calls limit these figures, not memory"]);
        assert_eq!(sentences(&notes_of(vec![of(1), of(1)])), ["blocks of 1 bytes"]);
    }

    #[test]
    fn a_row_with_outliers_is_counted_once() {
        let one = notes_of(vec![row(warning::OUTLIERS, "1 of 9"), row("wide", "wide")]);
        assert!(one.outliers().unwrap().starts_with("1 row has samples"));
        let two = notes_of(vec![row(warning::OUTLIERS, "1 of 9"), row(warning::OUTLIERS, "x")]);
        assert!(two.outliers().unwrap().starts_with("2 rows have samples"));
        assert_eq!(notes_of(Vec::new()).outliers(), None);
    }

    #[test]
    fn a_reason_of_several_rows_is_one_note_with_their_number() {
        let failed = |text: &str| Outcome { status: Status::Failed, ..row(warning::FAILED, text) };
        let results = vec![failed("no space"), failed("no space"), failed("no memory")];
        let record = record(results);
        let mut notes = Notes::of(&record);
        let cells: Vec<Cell> = record.results.iter().map(|row| notes.reason_cell(row)).collect();
        let told: Vec<(&str, &[usize])> =
            cells.iter().map(|cell| (cell.text.as_str(), &cell.marks[..])).collect();
        assert_eq!(told, [("", &[1][..]), ("", &[1]), ("no memory", &[])]);
        assert!(cells.iter().all(|cell| cell.badge == "failed"));
        assert_eq!(sentences(&notes), ["2 rows: no space"]);
    }
}
