//! Writes a page section by section, block by block.

use std::collections::BTreeSet;

use flatout_measure::record::Answer;

use super::markup::{class, escaped};
use super::weight::{self, Detail};
use crate::identity::Identity;
use crate::page::{Block, Finding, Folded, Footnote, Page, Pairs, PairsKind, Part, Section, Shown};
use crate::sign::{self, Sign};
use crate::text::Joined;

const STYLE_SHEET: &str = include_str!("page.css");

/// A gist is not cut before so many characters: `No: ` says too little.
const SHORTEST_GIST: usize = 12;

/// The attributes of a section; areas are numbered instead, so that the summary can point at them.
fn attributes(part: Part) -> Option<&'static str> {
    Some(match part {
        Part::Errors => "class=\"errors\" role=\"alert\"",
        Part::Load => "class=\"load\" role=\"note\"",
        Part::Summary => "id=\"summary\"",
        Part::Findings => "id=\"findings\"",
        Part::Verdict => "id=\"verdict\"",
        Part::Facts => "id=\"facts\"",
        Part::Storage => "class=\"storage\"",
        Part::Area => return None,
        Part::Comparison => "class=\"comparison\"",
        Part::Notes => "id=\"notes\"",
    })
}

/// What a page holds for programs.
pub(super) struct Data<'a> {
    pub id: &'static str,
    pub what: String,
    pub json: Option<&'a str>,
}

/// A page as far as it is written.
pub(super) struct Writer {
    pub(super) out: String,
    pub(super) detail: Detail,
    /// What a reader would look for and does not find here, a sentence each.
    left_out: BTreeSet<&'static str>,
    /// The areas that have a section.
    pub(super) areas: Vec<String>,
    /// Pictures so far; the next one's number.
    pub(super) figures: usize,
    /// Pictures, and curves, that the section may still have.
    pub(super) room: [usize; 2],
}

impl Writer {
    pub(super) fn new(detail: Detail, left_out: &[&'static str]) -> Self {
        let left_out = left_out.iter().copied().collect();
        let areas = Vec::new();
        Self { out: String::new(), detail, left_out, areas, figures: 0, room: [0, 0] }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// An element with a line for each of the items in it.
    pub(super) fn element(&mut self, opening: &str, items: impl Iterator<Item = String>) {
        self.line(&format!("<{opening}>"));
        items.for_each(|item| self.line(&item));
        let name = opening.split(' ').next().unwrap_or(opening);
        self.line(&format!("</{name}>"));
    }

    /// Remembers that something is missing.
    pub(super) fn leave_out(&mut self, what: &'static str) {
        self.left_out.insert(what);
    }

    pub(super) fn page(mut self, page: &Page, identity: Identity, data: &Data<'_>) -> String {
        let areas = || page.sections.iter().filter(|section| section.part == Part::Area);
        self.areas = areas().map(|area| area.heading.clone()).collect();
        self.head(page);
        if areas().count() > 1 {
            self.line("<nav aria-label=\"Areas\">");
            for (index, area) in areas().enumerate() {
                let name = escaped(&area.heading);
                self.line(&format!("<a href=\"#area-{index}\">{name}</a>"));
            }
            self.line("<a href=\"#facts\">machine</a>\n</nav>");
        }
        self.line("</header>\n<main>");
        let (mut areas, mut known) = (0.., BTreeSet::new());
        for section in &page.sections {
            let attributes = match attributes(section.part) {
                // Of several comparisons each has a summary.
                Some(name) if name.starts_with("id=") && !known.insert(name) => String::new(),
                Some(attributes) => attributes.to_owned(),
                None => format!("id=\"area-{}\"", areas.next().unwrap_or(0)),
            };
            self.section(section, &attributes);
        }
        self.foot(identity, data);
        self.out
    }

    fn head(&mut self, page: &Page) {
        let tool = escaped(page.origin.first().map_or("", String::as_str));
        let title = escaped(&page.title);
        let heading = if page.heading.is_empty() { &page.title } else { &page.heading };
        let heading = escaped(heading);
        self.line(&format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"{tool}\">\n\
             <meta name=\"description\" content=\"{heading}\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE_SHEET}</style>\n</head>\n<body>\n<header>"
        ));
        self.line(&format!("<h1>{heading}</h1>"));
        if !page.command.is_empty() {
            let command = escaped(&page.command);
            self.line(&format!("<p class=\"command\"><code>{command}</code></p>"));
        }
        let origin = escaped(&page.origin.join(" · "));
        self.line(&format!("<p class=\"meta\">{origin}</p>"));
    }

    fn section(&mut self, section: &Section, attributes: &str) {
        if section.blocks.is_empty() {
            return;
        }
        self.line(&format!("<section {attributes}>"));
        if !section.heading.is_empty() {
            let class = class(section.tone);
            self.line(&format!("<h2{class}>{}</h2>", escaped(&section.heading)));
        }
        self.room = [self.detail.charts, self.detail.curves];
        self.blocks(section.blocks_but(Shown::InText));
        self.line("</section>");
    }

    /// Pictures first, but for where the figures come from.
    fn blocks<'a>(&mut self, blocks: impl Iterator<Item = &'a Block>) {
        let (drawn, told): (Vec<&Block>, Vec<&Block>) = blocks.partition(|block| is_drawn(block));
        let is_origin = |block: &&&Block| matches!(block, Block::Text(..) | Block::Folded(_));
        let origin = told.iter().take_while(is_origin).count();
        told[..origin].iter().for_each(|block| self.block(block));
        if !drawn.is_empty() {
            self.line("<div class=\"gallery\">");
            let (bars, others): (Vec<&Block>, Vec<&Block>) =
                drawn.iter().partition(|block| matches!(block, Block::Bars(_)));
            bars.iter().chain(&others).for_each(|block| self.block(block));
            self.line("</div>");
        }
        told[origin..].iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text, tone) => {
                self.line(&format!("<h3{}>{}</h3>", class(*tone), escaped(text)));
            }
            Block::Text(text, tone) => {
                self.line(&format!("<p{}>{}</p>", class(*tone), escaped(text)));
            }
            Block::List(items) => {
                self.element("ul", items.iter().map(|item| format!("<li>{}</li>", escaped(item))));
            }
            Block::Pairs(pairs) => self.pairs(pairs),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => self.chart(chart),
            Block::Curve(curve) => self.curve(curve),
            Block::Bars(bars) => self.bars(bars),
            Block::Findings(findings) => self.findings(findings),
            Block::Verdict(answers) => self.verdict(answers),
            Block::Commands(commands) => {
                if self.folds_are_shown() {
                    self.line("<details class=\"commands\">\n<summary>Check with fio</summary>");
                    for command in &commands.commands {
                        let (names, line) =
                            (escaped(&command.names.join("; ")), escaped(&command.line));
                        self.line(&format!("<p>{names}</p>\n<pre><code>{line}</code></pre>"));
                    }
                    self.line("</details>");
                }
            }
            Block::Notes(notes) => self.notes(notes),
            Block::Folded(folded) => self.folded(folded),
        }
    }

    fn folds_are_shown(&mut self) -> bool {
        if !self.detail.has_folded {
            self.leave_out(weight::FOLDED);
        }
        self.detail.has_folded
    }

    fn pairs(&mut self, Pairs { kind, pairs }: &Pairs) {
        let (class, open, close) = match kind {
            PairsKind::Legend => ("facts meta", "", ""),
            PairsKind::Facts => ("facts", "", ""),
            PairsKind::Brief => ("brief", "<div>", "</div>"),
            PairsKind::Members => ("machine", "<div>", "</div>"),
        };
        if pairs.is_empty() {
            return;
        }
        let item = |(key, value): &(String, String)| {
            let (key, value) = (escaped(key), escaped(value));
            format!("{open}<dt>{key}</dt><dd>{value}</dd>{close}")
        };
        self.element(&format!("dl class=\"{class}\""), pairs.iter().map(item));
    }

    fn notes(&mut self, notes: &[Footnote]) {
        if notes.len() > self.detail.notes {
            self.leave_out(weight::NOTES);
        }
        if notes.is_empty() {
            return;
        }
        let item = |Footnote { number, code, sentence }: &Footnote| {
            let (code, sentence) = (escaped(code), escaped(sentence));
            format!("<li id=\"note-{number}\"><code>{code}</code> {sentence}</li>")
        };
        self.element("ol", notes.iter().take(self.detail.notes).map(item));
    }

    fn folded(&mut self, folded: &Folded) {
        if !self.folds_are_shown() {
            return;
        }
        let open = if folded.is_open { " open" } else { "" };
        let name = escaped(&folded.name);
        self.line(&format!("<details{open}>\n<summary>{name}</summary>"));
        self.blocks(folded.blocks.iter());
        self.line("</details>");
    }

    /// What is wrong, and what to do.
    fn findings(&mut self, findings: &[Finding]) {
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

    fn verdict(&mut self, answers: &[Answer]) {
        self.element("ul class=\"verdict\"", answers.iter().map(answer_item));
    }

    fn foot(&mut self, identity: Identity, data: &Data<'_>) {
        self.line("</main>\n<footer>");
        if identity == Identity::Hidden {
            self.line(
                "<p>Host name and paths are left out of pages; \
                 the JSON (<code>--format json</code>) has them.</p>",
            );
        }
        if !self.left_out.is_empty() {
            self.line(&format!(
                "<p id=\"left-out\">Left out to keep this page below 1 MiB: {}. The JSON document has it all.</p>",
                self.left_out.iter().copied().joined("; ")
            ));
        }
        if let Some(json) = data.json {
            let (what, id) = (escaped(&data.what), data.id);
            self.line(&format!(
                "<p>This page holds {what} in the element <code>{id}</code>.</p></footer>\n\
                 <script type=\"application/json\" id=\"{id}\">{json}</script>"
            ));
        } else {
            self.line("</footer>");
        }
        self.line("</body>\n</html>");
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

fn is_drawn(block: &Block) -> bool {
    matches!(block, Block::Chart(_) | Block::Curve(_) | Block::Bars(_))
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
