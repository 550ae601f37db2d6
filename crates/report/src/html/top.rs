//! What is wrong, and the verdict.

use flatout_measure::record::Answer;

use super::markup::escaped;
use super::writer::Writer;
use crate::page::Finding;
use crate::sign::{self, Sign};
use crate::text::Joined;

/// A gist is not cut before so many characters: `No: ` says too little.
const SHORTEST_GIST: usize = 12;

impl Writer {
    /// What is wrong, and what to do.
    pub(super) fn findings(&mut self, findings: &[Finding]) {
        let item = |finding: &Finding| {
            let (sign, _) = finding.severity.sign();
            let (text, advice) = (escaped(&finding.text), escaped(&finding.advice));
            let class = sign.to_ascii_lowercase();
            format!(
                "<li class=\"{class}\"><b>{sign}</b><span>{text}<small>{advice}</small></span></li>"
            )
        };
        self.element("ul class=\"findings\"", findings.iter().map(item));
    }

    pub(super) fn verdict(&mut self, answers: &[Answer]) {
        self.element("ul class=\"verdict\"", answers.iter().map(answer_item));
    }
}

/// The answer in short; where it has more to say, the whole of it unfolds.
fn answer_item(answer: &Answer) -> String {
    let Sign { class, drawn, word, .. } = sign::of(answer.mark());
    let fields = answer.rests_on.iter().map(|field| format!("<code>{}</code>", escaped(field)));
    let (question, gist) = (escaped(&answer.question), escaped(gist(&answer.text)));
    format!(
        "<li class=\"{class}\"><span class=\"mark\" role=\"img\" aria-label=\"{word}\">{drawn}</span>\
         <details><summary><b>{question}</b> <span class=\"gist\">{gist}</span></summary>\
         <p>{}</p><p class=\"rests\">{}</p></details></li>",
        escaped(&answer.text),
        fields.joined(" ")
    )
}

/// The first statement of an answer, as far as the names of rows that follow it.
fn gist(text: &str) -> &str {
    let ends = [". ", ": ", "; "].into_iter();
    let cuts = ends.flat_map(|end| text.match_indices(end).map(|(at, _)| at));
    let cut = cuts.filter(|at| *at >= SHORTEST_GIST).min();
    cut.map_or(text, |at| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_ends_before_the_names() {
        let known = [
            ("No: 60 rows, no error, exit code 0.", "No: 60 rows, no error, exit code 0."),
            ("Not shown for 35 of 60 rows: cache/a (±6 %), b", "Not shown for 35 of 60 rows"),
            ("Doubtful for cpu/x (not_linear).", "Doubtful for cpu/x (not_linear)."),
            ("21 of 40 rows are above half; the others: x", "21 of 40 rows are above half"),
            ("", ""),
        ];
        for (text, short) in known {
            assert_eq!(gist(text), short);
        }
    }
}
