//! Footnotes: each warning once, under a number that the rows refer to.

use std::collections::{BTreeMap, BTreeSet};

use flatout_measure::{
    record::{Outcome, Record, Status},
    warning::{self, Warning},
};

use super::{Cell, Footnote};
use crate::{label, quantity};

/// Sentences shown for one code; further ones of that code share a note.
const MOST_SENTENCES_PER_CODE: usize = 3;
/// What that note says.
const OTHERS: &str = "further rows; the record holds the sentence of each";

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

/// The warnings met so far.
#[derive(Default)]
pub(super) struct Notes {
    /// Code and sentence of each.
    notes: Vec<(String, String)>,
    by_warning: BTreeMap<(String, String), usize>,
    /// How many sentences a code has, and where its note is that takes further ones.
    codes: BTreeMap<String, (usize, Option<usize>)>,
}

impl Notes {
    /// The number of the note for this warning; the first is 1.
    fn mark(&mut self, warning: &Warning) -> usize {
        let key = (warning.code.clone(), warning.text.clone());
        if let Some(at) = self.by_warning.get(&key) {
            return at + 1;
        }
        let at = self.place(warning);
        self.by_warning.insert(key, at);
        at + 1
    }

    /// Where the sentence goes: a note of its own, or one that it shares.
    fn place(&mut self, warning: &Warning) -> usize {
        let code = warning.code.as_str();
        let label = LABELS.iter().find(|(label, _)| *label == code);
        let (sentences, shared) = self.codes.entry(code.to_owned()).or_default();
        *sentences += 1;
        if let Some(at) = *shared {
            if let Some((_, sentence)) = label {
                self.notes[at].1 = (*sentence).to_owned();
            }
            return at;
        }
        let at = self.notes.len();
        let is_full = *sentences > MOST_SENTENCES_PER_CODE;
        *shared = (is_full || label.is_some()).then_some(at);
        let sentence = if is_full { OTHERS } else { warning.text.as_str() };
        self.notes.push((code.to_owned(), sentence.to_owned()));
        at
    }

    /// The numbers of the notes for several warnings, ascending.
    pub fn marks(&mut self, warnings: &[Warning]) -> Vec<usize> {
        // Outliers are counted: on a shared machine nearly every row has some.
        let told = |warning: &&Warning| warning.code != warning::OUTLIERS;
        let numbers: BTreeSet<usize> =
            warnings.iter().filter(told).map(|warning| self.mark(warning)).collect();
        numbers.into_iter().collect()
    }

    /// Why the row has no figure; further warnings are notes.
    pub fn reason_cell(&mut self, outcome: &Outcome) -> Cell {
        // What was digested has no figure of its own.
        if let Some(digest) = outcome.fact_text("digest").filter(|_| outcome.status == Status::Ok) {
            return Cell::plain(digest);
        }
        let badge = label::no_figure(outcome.status);
        let (text, others) = match outcome.warnings.split_first() {
            Some((first, others)) => (first.text.as_str(), others),
            None => ("", &[][..]),
        };
        let marks = self.marks(others);
        Cell { badge, marks, ..Cell::new(text, label::tone(outcome.status)) }
    }

    /// All notes in the order of their numbers.
    pub fn footnotes(&self) -> Vec<Footnote> {
        let footnote = |((code, sentence), number): (&(String, String), usize)| {
            let (code, sentence) = (code.clone(), sentence.clone());
            Footnote { number, code, sentence }
        };
        self.notes.iter().zip(1..).map(footnote).collect()
    }
}

/// One line about all rows that have outliers; `None` when no row has.
pub(super) fn outliers(record: &Record) -> Option<String> {
    let has_some = |row: &&Outcome| warning::has(&row.warnings, warning::OUTLIERS);
    let count = record.results.iter().filter(has_some).count();
    let verb = if count == 1 { "has" } else { "have" };
    let rows = quantity::counted(count, "row");
    let rest = "samples far from the others; they are kept, and named in the record";
    (count > 0).then(|| format!("{rows} {verb} {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(code: &str, text: impl Into<String>) -> Outcome {
        let warnings = vec![Warning::new(code, text)];
        Outcome { median: Some(1.0), warnings, ..Outcome::default() }
    }

    /// The notes after every row asked for its marks twice, as a table that is set twice does.
    fn notes_of(results: Vec<Outcome>) -> Notes {
        let mut notes = Notes::default();
        for outcome in results.iter().chain(&results) {
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
        let all = ["only three", "row 0", "row 1", "row 2", OTHERS];
        assert_eq!(sentences(&notes_of(rows)), all);
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
        let of = |results| outliers(&Record { results, ..Record::default() });
        let one = of(vec![row(warning::OUTLIERS, "1 of 9"), row("wide", "wide")]);
        assert!(one.unwrap().starts_with("1 row has samples"));
        let two = of(vec![row(warning::OUTLIERS, "1 of 9"), row(warning::OUTLIERS, "x")]);
        assert!(two.unwrap().starts_with("2 rows have samples"));
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn why_there_is_no_figure_stands_in_the_row() {
        let mut failed = Outcome { status: Status::Failed, ..row(warning::FAILED, "no space") };
        failed.warnings.push(Warning::new("wide", "wide"));
        let mut notes = Notes::default();
        let cell = notes.reason_cell(&failed);
        assert_eq!((cell.badge, &*cell.text, &cell.marks[..]), ("failed", "no space", &[1][..]));
        assert_eq!(sentences(&notes), ["wide"]);
    }
}
