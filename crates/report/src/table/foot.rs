//! What stands below all areas: footnotes, verdict, errors, elapsed time.

use flatout_measure::record::Record;

use super::Page;
use crate::{quantity, style::Tone, text};

impl Page<'_> {
    pub(super) fn footnotes(&mut self) {
        let notes: Vec<(usize, String, String)> = self
            .notes
            .iter()
            .map(|(number, note)| (number, self.shown(&note.code), self.shown(&note.sentence())))
            .collect();
        let outliers = self.notes.outliers();
        let has_legend = self.has_interval
            || self.has_unstable
            || outliers.is_some()
            || !self.loops.is_empty()
            || !self.left_out.is_empty();
        if !notes.is_empty() || has_legend {
            self.out.push('\n');
        }
        if self.has_interval {
            let head = text::pad_right(self.style.either("±", "+-"), 5);
            self.hang(&head, quantity::PLUS_MINUS, Tone::Dim);
        }
        for meaning in std::mem::take(&mut self.loops) {
            self.hang("     ", meaning, Tone::Dim);
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

    pub(super) fn verdict(&mut self, record: &Record) {
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

    pub(super) fn end(&mut self, record: &Record) {
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
