//! The summary of a page, which must be understood in ten seconds, and the verdict.

use flatout_measure::record::Answer;

use super::markup::{class, escaped};
use super::strip;
use super::writer::Writer;
use crate::page::{Block, Finding, Folded, Pairs, PairsKind, Summary, SummaryLine, UsualPlace};
use crate::quantity;
use crate::sign::{self, Sign};
use crate::style::Tone;
use crate::text::{self, Joined, unless_empty};

/// A gist is not cut before so many characters: `No: ` says too little.
const SHORTEST_GIST: usize = 12;

impl Writer {
    /// Per figure one line, with a bar against its bound and what limits it; where bound and what is
    /// usual come from is folded, so that what is wrong stands on the same screen.
    pub(super) fn summary(&mut self, summary: &Summary) {
        let has_bars = summary.lines.iter().any(|line| line.share.is_some());
        let has_changes = summary.lines.iter().any(|line| line.change.is_some());
        let (class, share) = match (has_bars, has_changes) {
            (_, true) => (" changes", "worse · better"),
            (true, _) => ("", summary.heads[3]),
            (false, false) => (" plain", ""),
        };
        self.line(&format!("<ul class=\"summary{class}\">"));
        self.line(&heads(summary, share));
        for line in &summary.lines {
            let place = self.areas.iter().position(|area| *area == line.area);
            self.line(&summary_item(line, place));
        }
        self.line("</ul>");
        let origins = summary.lines.iter().map(|line| (line.name.as_str(), origins(line)));
        let origins = Pairs::new(PairsKind::Facts, origins.filter(|(_, told)| !told.is_empty()));
        if !origins.pairs.is_empty() {
            let name = "Where limits and what is usual come from".to_owned();
            self.folded(&Folded { name, is_open: false, blocks: vec![Block::Pairs(origins)] });
        }
        for below in [&summary.rest, &summary.left_out(summary.lines.len())] {
            if !below.is_empty() {
                self.line(&format!("<p>{}</p>", escaped(below)));
            }
        }
    }

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

/// What stands above the columns.
fn heads(summary: &Summary, share: &str) -> String {
    let [_, figure, interval, .., why] = summary.heads.map(escaped);
    let share = unless_empty(share, |share| format!("<span class=\"share\">{share}</span>"));
    let between = if interval.starts_with('±') || interval.is_empty() { " " } else { " · " };
    format!(
        "<li class=\"heads\" aria-hidden=\"true\"><span class=\"what\"></span>\
         <span class=\"figure\">{figure}{between}{interval}</span>{share}<span class=\"why\">{why}</span></li>"
    )
}

/// One figure: a bar where there is a bound, and none where there is none.
fn summary_item(line: &SummaryLine, place: Option<usize>) -> String {
    let name = escaped(&line.name);
    let name = match place {
        Some(place) => format!("<a href=\"#area-{place}\">{name}</a>"),
        None => name,
    };
    let sign = if line.interval.ends_with('%') { "± " } else { "" };
    let interval =
        unless_empty(&line.interval, |text| format!(" <small>{sign}{}</small>", escaped(text)));
    let figure = escaped(&line.figure);
    let usual = unless_empty(&line.usual, |usual| format!("usual {usual}"));
    let remark = escaped(&text::listed([line.remark(UsualPlace::InColumn), usual], "; "));
    let tone = class(if line.change.is_some() { line.tone } else { Tone::Plain });
    let track = match (&line.change, line.share) {
        (Some(change), _) => strip::ratio(change),
        (None, Some(share)) => {
            let (bar, percent) = (strip::share("track", share), quantity::percent(share));
            let joint = if line.bound.starts_with("at best") { ", " } else { " of " };
            let of = unless_empty(&line.bound, |bound| format!("{joint}{}", escaped(bound)));
            format!("{bar}{percent}{of}")
        }
        (None, None) => String::new(),
    };
    let track = unless_empty(&track, |track| format!("<span class=\"share\">{track}</span>"));
    format!(
        "<li{tone}><span class=\"what\">{name}</span><span class=\"figure\"><b>{figure}</b>{interval}</span>\
         {track}<span class=\"why\">{remark}</span></li>"
    )
}

/// Where a limit and what is usual come from.
fn origins(line: &SummaryLine) -> String {
    let limit = unless_empty(&line.origin, |origin| format!("limit: {origin}"));
    let usual = unless_empty(&line.usual_origin, |origin| format!("usual: {origin}"));
    text::listed([limit, usual], "; ")
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
