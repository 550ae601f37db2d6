//! A page for the terminal: lines no wider than asked for.

mod chart;
mod grid;
mod sparkline;
mod summary;
mod table;

pub use self::sparkline::sparkline;
use crate::chart::words;
use crate::page::{Block, Chart, Commands, Curve, Page, Pairs, PairsKind, Part, Section, Shown};
use crate::style::{Extent, Style, Tone};
use crate::{quantity, sign, text};

/// Spaces before what stands inside of a section.
const INDENT: usize = 2;
/// Rows of the drawing area of a chart.
const CHART_HEIGHT: usize = 14;
/// A longer line of characters does not show more.
const WIDEST_CURVE: usize = 60;
/// Lines for the rows of charts that a page shows; the JSON document has them all.
const MOST_CHART_COMMANDS: usize = 6;

/// What was found out comes last, figures and what is wrong with them after what explains them: the end
/// of a long text is what a terminal shows.
const ORDER: [Part; 10] = [
    Part::Load,
    Part::Storage,
    Part::Area,
    Part::Comparison,
    Part::Facts,
    Part::Notes,
    Part::Verdict,
    Part::Summary,
    Part::Findings,
    Part::Errors,
];

/// The page as lines, each ended by a line feed.
pub(crate) fn text(page: &Page, style: &Style) -> String {
    let mut terminal = Terminal { style, room_lines: None, out: String::new() };
    if style.extent == Extent::Summary {
        terminal.screen(page);
    } else {
        terminal.whole(page);
    }
    // Names from data may be empty or end in spaces.
    let out = terminal.out.trim_matches('\n');
    out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Whether the second block follows the first without an empty line.
fn is_joined(first: &Block, second: &Block, part: Part) -> bool {
    match (first, second) {
        (Block::Heading(..), _)
        | (Block::Table(_), Block::Pairs(_) | Block::Text(_, Tone::Dim))
        | (Block::Pairs(_), Block::Notes(_))
        | (Block::Text(_, Tone::Strong), Block::Text(_, Tone::Strong)) => true,
        (_, Block::Folded(_)) => part == Part::Summary,
        (Block::Text(..), Block::Table(_)) => part == Part::Comparison,
        (Block::Text(_, tone), Block::Text(..)) => *tone != Tone::Dim && part != Part::Comparison,
        _ => false,
    }
}

/// a, b, …, z, a2, b2, …
fn letter(index: usize) -> String {
    let base = char::from(b'a' + (index % 26) as u8);
    if index < 26 { base.to_string() } else { format!("{base}{}", index / 26 + 1) }
}

struct Terminal<'a> {
    style: &'a Style,
    /// Lines that findings may take; on a whole page as many as they like.
    room_lines: Option<usize>,
    out: String,
}

impl Terminal<'_> {
    fn shown(&self, text: &str) -> String {
        text::shown(text, self.style)
    }

    /// A wrapped paragraph behind a head, of which the head has the tone.
    fn hang(&mut self, head: &str, text: &str, tone: Tone) {
        let (head, text) = (self.shown(head), self.shown(text));
        let (sign, indent) = (head.trim_end(), text::width(&head));
        let mut before = self.style.paint(sign, tone) + &head[sign.len()..];
        for line in text::wrap(&text, self.style.width().saturating_sub(indent)) {
            self.out.push_str(&format!("{before}{line}\n"));
            before = " ".repeat(indent);
        }
    }

    /// A wrapped paragraph in one tone.
    fn paragraph(&mut self, indent: usize, text: &str, tone: Tone) {
        let text = self.shown(text);
        for line in text::wrap(&text, self.style.width() - indent) {
            let line = self.style.paint(&line, tone);
            self.out.push_str(&format!("{}{line}\n", " ".repeat(indent)));
        }
    }

    /// An empty line, unless there is one or nothing above.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// All parts in their order.
    fn whole(&mut self, page: &Page) {
        self.head(page);
        for part in ORDER {
            self.sections(page, part);
        }
    }

    fn head(&mut self, page: &Page) {
        if page.heading.is_empty() && page.command.is_empty() {
            return;
        }
        self.paragraph(0, &page.origin.join(" · "), Tone::Strong);
        if !page.heading.is_empty() {
            self.paragraph(0, &page.heading, Tone::Plain);
        }
    }

    fn section(&mut self, section: &Section) {
        if section.blocks_but(Shown::InBrowser).next().is_none() {
            return;
        }
        self.gap();
        // Everybody sees what the others are.
        let named = [Part::Verdict, Part::Area, Part::Comparison];
        if named.contains(&section.part) && !section.heading.is_empty() {
            let tone = if section.tone == Tone::Plain { Tone::Strong } else { section.tone };
            self.paragraph(0, &section.heading, tone);
            if section.part == Part::Comparison {
                self.gap();
            }
        }
        let mut blocks = section.blocks_but(Shown::InBrowser).peekable();
        while let Some(block) = blocks.next() {
            self.block(block, section.part);
            if !blocks.peek().is_some_and(|next| is_joined(block, next, section.part)) {
                self.gap();
            }
        }
    }

    fn block(&mut self, block: &Block, part: Part) {
        let indent = match part {
            Part::Area | Part::Storage => INDENT,
            _ => 0,
        };
        let gutter = " ".repeat(INDENT);
        match block {
            Block::Heading(text, tone) => {
                let tone = if *tone == Tone::Plain { Tone::Strong } else { *tone };
                self.paragraph(indent, text, tone);
            }
            Block::Text(text, Tone::Warn) => self.hang(&format!("{gutter}  ! "), text, Tone::Warn),
            Block::Text(text, tone) => self.paragraph(indent, text, *tone),
            Block::List(items) if part == Part::Errors => {
                items.iter().for_each(|error| self.hang("error: ", error, Tone::Bad));
            }
            Block::List(items) => {
                items.iter().for_each(|item| self.hang(&format!("{gutter}– "), item, Tone::Plain));
            }
            Block::Pairs(pairs) => self.pairs(pairs, part),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => self.chart(chart),
            Block::Curve(curve) => self.curve(curve),
            Block::Findings(findings) => self.findings(findings),
            Block::Verdict(answers) => {
                for answer in answers {
                    let sign = sign::of(answer.mark());
                    let (mark, tone) = (self.style.either(sign.drawn, sign.plain), sign.tone);
                    let text = format!("{} {}", answer.question, answer.text);
                    self.hang(&format!("  {mark} "), &text, tone);
                }
            }
            Block::Commands(commands) => self.commands(commands),
            Block::Notes(notes) => {
                for note in notes {
                    let head = text::pad_right(&format!("[{}]", note.number), 4);
                    let text = format!("{}: {}", note.code, note.sentence);
                    self.hang(&format!("{head} "), &text, Tone::Warn);
                }
            }
            // A screen has no room for it, and a narrow one none for what it explains.
            Block::Folded(folded) if self.style.extent == Extent::Summary => {
                if self.out.contains("usual") {
                    self.paragraph(INDENT, &folded.short, Tone::Dim);
                }
            }
            Block::Folded(folded) => {
                self.gap();
                self.paragraph(indent, &folded.name, Tone::Strong);
                folded.blocks.iter().for_each(|block| self.block(block, part));
            }
            // Drawn in a browser only.
            Block::Bars(_) => {}
        }
    }

    fn pairs(&mut self, Pairs { kind, pairs }: &Pairs, part: Part) {
        // A record may be made to harm.
        let most = self.style.width() * 2 / 3;
        let clipped = |(key, _): &(String, String)| text::clip(&self.shown(key), most, self.style);
        let keys: Vec<String> = pairs.iter().map(clipped).collect();
        let widest = keys.iter().map(|key| text::width(key)).max().unwrap_or(0);
        // Notes have their numbers above their sentences.
        let widest = if part == Part::Notes { widest.max(3) } else { widest };
        let indent = if part == Part::Notes { "" } else { "    " };
        let tone = if *kind == PairsKind::Legend { Tone::Dim } else { Tone::Plain };
        for (key, (_, value)) in keys.iter().zip(pairs) {
            self.hang(&format!("{indent}{}  ", text::pad_right(key, widest)), value, tone);
        }
    }

    fn chart(&mut self, chart: &Chart) {
        let Some(table) = &chart.table else { return };
        self.paragraph(INDENT, &chart.title, Tone::Strong);
        if !chart.caption.is_empty() {
            self.paragraph(INDENT, &chart.caption, Tone::Dim);
        }
        self.out.push_str(&chart::chart(&chart.plot, CHART_HEIGHT, self.style));
        self.out.push('\n');
        self.table(table);
    }

    /// One line of characters per curve, least and largest, and what became of the rate.
    fn curve(&mut self, curve: &Curve) {
        let gutter = " ".repeat(INDENT);
        if curve.series.is_empty() && curve.sentence.is_none() {
            return;
        }
        self.hang(&gutter, &format!("{}, over time", curve.name), Tone::Plain);
        let columns = (self.style.width() - 2 * INDENT).min(WIDEST_CURVE);
        for series in &curve.series {
            let line = sparkline(series, columns, self.style);
            let line = self.style.paint(&line, Tone::Line(0));
            self.out.push_str(&format!("{gutter}{gutter}{line}\n"));
            let text = format!("{}: {}", series.name, words::extent(series));
            self.hang(&gutter.repeat(2), &text, Tone::Plain);
        }
        if let Some(sentence) = &curve.sentence {
            self.hang(&gutter.repeat(2), sentence, Tone::Plain);
        }
    }

    /// Each line for a shell on a line of its own, however long it is: what is broken cannot be
    /// copied.
    fn commands(&mut self, Commands { commands, of_rows }: &Commands) {
        self.paragraph(INDENT, crate::page::commands::HEAD, Tone::Dim);
        let most = of_rows + MOST_CHART_COMMANDS;
        for command in commands.iter().take(most) {
            self.remark(&command.names.join("; "));
            let line = self.shown(&command.line);
            self.out.push_str(&format!("{}{line}\n", " ".repeat(INDENT)));
        }
        let left = commands.len().saturating_sub(most);
        if left > 0 {
            let left = quantity::counted(left, "more line");
            self.remark(&format!("{left} of charts: --format html, csv and json have them"));
        }
    }

    /// A remark for people that a shell skips, on every line that it takes.
    fn remark(&mut self, text: &str) {
        let sign = format!("{}# ", " ".repeat(INDENT));
        let text = self.shown(text);
        for line in text::wrap(&text, self.style.width() - sign.len()) {
            self.out.push_str(&self.style.paint(&format!("{sign}{line}"), Tone::Dim));
            self.out.push('\n');
        }
    }
}
