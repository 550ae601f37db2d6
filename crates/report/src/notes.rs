//! Footnotes: each warning once, under a number that the rows refer to.

use std::collections::BTreeMap;

use flatout_measure::warning::{self, Warning};

/// Sentences shown for one code; further ones of that code share a note that counts them.
const MOST_SENTENCES_PER_CODE: usize = 3;

/// Codes without a note of their own: an unstable figure has a mark, and outliers are counted,
/// because on a shared machine nearly every row has some.
const TOLD_OTHERWISE: [&str; 2] = [warning::UNSTABLE, warning::OUTLIERS];

/// The warnings met so far.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Vec<Note>,
    by_warning: BTreeMap<(String, String), usize>,
    sentences: BTreeMap<String, usize>,
    overflow: BTreeMap<String, usize>,
    rows_with_outliers: usize,
}

/// One footnote.
#[derive(Debug)]
pub(crate) struct Note {
    /// The stable code.
    pub code: String,
    /// The sentence; none where the note stands for many different ones.
    pub text: Option<String>,
    /// Rows that refer to it.
    pub uses: usize,
}

impl Notes {
    /// The number of the note for this warning; the first is 1.
    pub fn mark(&mut self, warning: &Warning) -> usize {
        let key = (warning.code.clone(), warning.text.clone());
        let at = match self.by_warning.get(&key) {
            Some(at) => *at,
            None => {
                let at = self.place(warning);
                self.by_warning.insert(key, at);
                at
            }
        };
        self.notes[at].uses += 1;
        at + 1
    }

    fn place(&mut self, warning: &Warning) -> usize {
        let sentences = self.sentences.entry(warning.code.clone()).or_default();
        *sentences += 1;
        let full = *sentences > MOST_SENTENCES_PER_CODE;
        if let Some(at) = self.overflow.get(&warning.code).filter(|_| full) {
            return *at;
        }
        let at = self.notes.len();
        if full {
            self.overflow.insert(warning.code.clone(), at);
        }
        let text = (!full).then(|| warning.text.clone());
        self.notes.push(Note { code: warning.code.clone(), text, uses: 0 });
        at
    }

    /// Marks of several warnings: `[1,2]`; empty for none.
    pub fn marks(&mut self, warnings: &[Warning]) -> String {
        self.rows_with_outliers += usize::from(warning::has(warnings, warning::OUTLIERS));
        let told = |warning: &&Warning| !TOLD_OTHERWISE.contains(&warning.code.as_str());
        let mut numbers: Vec<usize> =
            warnings.iter().filter(told).map(|warning| self.mark(warning)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        if numbers.is_empty() { String::new() } else { format!("[{}]", numbers.join(",")) }
    }

    /// One line about all rows that have outliers; `None` when no row has.
    pub fn outliers(&self) -> Option<String> {
        (self.rows_with_outliers > 0).then(|| {
            format!(
                "{} rows have samples far from the others; they are kept, and named in the record",
                self.rows_with_outliers
            )
        })
    }

    /// All notes in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Note)> {
        self.notes.iter().enumerate().map(|(at, note)| (at + 1, note))
    }
}

impl Note {
    /// The sentence, or how many others this note stands for.
    pub fn sentence(&self) -> String {
        match &self.text {
            Some(text) => text.clone(),
            None => format!("{} more rows; the record holds the sentence of each", self.uses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_warnings_share_a_number_and_many_share_one() {
        let mut notes = Notes::default();
        let same = Warning::new("few_trials", "only three trials");
        assert_eq!(notes.marks(&[same.clone(), same.clone()]), "[1]");
        for row in 0..9 {
            notes.mark(&Warning::new("wide", format!("row {row}")));
        }
        assert_eq!(notes.iter().count(), 5);
        let last = notes.iter().last().unwrap().1;
        assert_eq!((last.uses, last.text.as_deref()), (6, None));
    }
}
