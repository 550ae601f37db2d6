//! The summary of a page, which must be understood in ten seconds, and the verdict.

use flatout_measure::record::Answer;

use super::markup::escaped;
use super::writer::Writer;
use crate::page::SummaryLine;
use crate::sign::{self, Sign};
use crate::{order, quantity};

/// A gist is not cut before so many characters: `No: ` says too little.
const SHORTEST_GIST: usize = 12;

impl Writer {
    /// Per area one bar against its bound, with what limits it.
    pub(super) fn summary(&mut self, lines: &[SummaryLine]) {
        self.line("<ul class=\"summary\">");
        let areas = order::distinct(lines.iter().map(|line| line.area.as_str()));
        for line in lines {
            let index = areas.iter().position(|area| *area == line.area).unwrap_or(0);
            self.line(&summary_item(line, index));
        }
        self.line("</ul>");
    }

    pub(super) fn verdict(&mut self, answers: &[Answer]) {
        self.line("<ul class=\"verdict\">");
        for answer in answers {
            self.line(&answer_item(answer));
        }
        self.line("</ul>");
    }
}

fn summary_item(line: &SummaryLine, area_index: usize) -> String {
    let (area, name) = (escaped(&line.area), escaped(&line.name));
    let what = format!(
        "<span class=\"what\"><a href=\"#area-{area_index}\">{area}</a> <small>{name}</small></span>"
    );
    if !line.status.is_empty() {
        return format!(
            "<li class=\"none\">{what}<span class=\"track\"></span>\
             <span class=\"figure\"><span class=\"status\">{}</span></span></li>",
            line.status
        );
    }
    let figure = escaped(&line.figure);
    if line.bottleneck.is_empty() {
        return format!(
            "<li class=\"pairs\">{what}<span class=\"figure\"><b>{figure}</b></span></li>"
        );
    }
    let interval = match line.interval.as_str() {
        "" => String::new(),
        half => format!(" <small>± {}</small>", escaped(half)),
    };
    let bottleneck = escaped(&line.bottleneck);
    let Some(share) = line.share else {
        return format!(
            "<li class=\"none\">{what}<span class=\"track\"></span>\
             <span class=\"figure\"><b>{figure}</b>{interval} ceiling unknown</span>\
             <span class=\"why\">limited by {bottleneck}</span></li>"
        );
    };
    let width = (share * 100.0).clamp(0.0, 100.0);
    let over = if share > 1.02 { " over" } else { "" };
    let (share, bound) = (quantity::percent(share), escaped(&line.bound));
    let of = if line.bound.starts_with("at best") { "," } else { " of" };
    format!(
        "<li>{what}<span class=\"track{over}\"><span style=\"width:{width:.1}%\"></span></span>\
         <span class=\"figure\"><b>{share}</b> · <b>{figure}</b>{interval}{of} {bound}</span>\
         <span class=\"why\">limited by {bottleneck} <small>ceiling: {}</small></span></li>",
        escaped(&line.origin)
    )
}

/// The answer in short; where it has more to say, the whole of it unfolds.
fn answer_item(answer: &Answer) -> String {
    let Sign { class, drawn, word, .. } = sign::of(answer.mark());
    let fields: Vec<String> =
        answer.rests_on.iter().map(|field| format!("<code>{}</code>", escaped(field))).collect();
    let (question, gist) = (escaped(&answer.question), escaped(gist(&answer.text)));
    format!(
        "<li class=\"{class}\"><span class=\"mark\" role=\"img\" aria-label=\"{word}\">{drawn}</span>\
         <details><summary><b>{question}</b> <span class=\"gist\">{gist}</span></summary>\
         <p>{}</p><p class=\"rests\">{}</p></details></li>",
        escaped(&answer.text),
        fields.join(" ")
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
