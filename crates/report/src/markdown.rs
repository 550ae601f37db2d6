//! A page as Markdown (GitHub flavour) for an issue, a pull request or a page of documentation.
//!
//! Text from data is escaped, so that a name cannot become markup or break a table.

use std::fmt::Write as _;

use crate::chart::words;
use crate::page::{Block, Cell, Column, Commands, Curve, Detail, Folded, Page, PairsKind};
use crate::page::{Row, Section, Shown, Table, commands};
use crate::style::Tone;
use crate::text::{self, Joined};

/// Lines of a table or list that a reader scrolls past; longer ones are folded.
const OPEN_LINES: usize = 16;

/// The page as a document.
pub(crate) fn document(page: &Page) -> String {
    let mut document = Document::default();
    document.paragraph(&format!("# {}", escaped(&page.title)));
    document.paragraph(&escaped(&page.origin.join(" · ")));
    if !page.title.ends_with(&page.heading) {
        document.paragraph(&escaped(&page.heading));
    }
    page.sections.iter().for_each(|section| document.section(section));
    document.out
}

#[derive(Default)]
struct Document {
    out: String,
    /// The heading of what comes next, which becomes its name where that is folded.
    heading: String,
}

impl Document {
    /// Lines with an empty line before them; nothing for nothing.
    fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            let gap = if self.out.is_empty() { "" } else { "\n" };
            // Writing into a String cannot fail.
            let _ = writeln!(self.out, "{gap}{}", text.trim_end());
        }
    }

    /// Lines below the heading that waits, if one does.
    fn told(&mut self, text: &str) {
        let heading = std::mem::take(&mut self.heading);
        if !heading.is_empty() {
            self.paragraph(&format!("### {}", escaped(&heading)));
        }
        self.paragraph(text);
    }

    /// A piece under its heading; folded when it is long: a pull request shows the name then, and
    /// the rest on a click.
    fn part(&mut self, name: &str, body: &str) {
        if body.lines().count() > OPEN_LINES {
            let heading = std::mem::take(&mut self.heading);
            self.fold(if heading.is_empty() { name } else { &heading }, body);
        } else {
            self.told(body);
        }
    }

    fn fold(&mut self, name: &str, body: &str) {
        let name = in_tag(name);
        // Without the empty lines the table inside would be text.
        self.told(&format!(
            "<details><summary>{name}</summary>\n\n{}\n\n</details>",
            body.trim_end()
        ));
    }

    fn section(&mut self, section: &Section) {
        if section.blocks_but(Shown::InBrowser).next().is_none() {
            return;
        }
        if !section.heading.is_empty() {
            self.paragraph(&format!("## {}", escaped(&section.heading)));
        }
        section.blocks_but(Shown::InBrowser).for_each(|block| self.block(block));
        self.told("");
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Heading(text, _) => {
                self.told("");
                self.heading.clone_from(text);
            }
            Block::Text(text, Tone::Strong) => self.told(&format!("**{}**", escaped(text))),
            Block::Text(text, Tone::Warn) => self.told(&format!("- ⚠ {}", escaped(text))),
            Block::Text(text, _) => self.told(&escaped(text)),
            Block::List(items) => self.part("list", &list(items.iter())),
            Block::Pairs(pairs) => {
                let line = |(key, value): &(String, String)| {
                    let colon = if key.is_empty() { "" } else { ": " };
                    format!("{key}{colon}{value}")
                };
                let list = list(pairs.pairs.iter().map(line));
                match pairs.kind {
                    PairsKind::Legend => self.part("what the columns mean", &list),
                    _ => self.told(&list),
                }
            }
            Block::Table(table) => self.part(table.name, &rows(table)),
            Block::Findings(findings) => {
                let item = |finding: &crate::page::Finding| {
                    let line = escaped(&finding.line());
                    format!("- **{}** {line}", finding.severity.sign().0)
                };
                self.told(&findings.iter().map(item).joined("\n"));
            }
            Block::Chart(chart) => {
                let Some(table) = &chart.table else { return };
                let heading = format!("{}, {}", chart.title, table.unit);
                self.heading = text::with_aside(&heading, &chart.caption);
                self.part("", &rows(table));
            }
            Block::Curve(curve) => self.curve(curve),
            Block::Verdict(answers) => {
                let item = |answer: &flatout_measure::record::Answer| {
                    let mark = crate::sign::of(answer.mark()).drawn;
                    let (question, text) = (escaped(&answer.question), escaped(&answer.text));
                    format!("- {mark} **{question}** {text}")
                };
                self.told(&answers.iter().map(item).joined("\n"));
            }
            Block::Commands(commands) => self.commands(commands),
            Block::Notes(notes) => {
                let line = |note: &crate::page::Footnote| {
                    format!("[{}] {}: {}", note.number, note.code, note.sentence)
                };
                self.part("notes", &list(notes.iter().map(line)));
            }
            Block::Folded(folded) => self.folded(folded),
            // Drawn in a browser only.
            Block::Bars(_) => {}
        }
    }

    fn folded(&mut self, folded: &Folded) {
        let mut inner = Self::default();
        folded.blocks.iter().for_each(|block| inner.block(block));
        if folded.is_open {
            self.heading.clone_from(&folded.name);
            self.told(&inner.out);
        } else {
            self.fold(&folded.name, &inner.out);
        }
    }

    /// What became of each rate over time, and within which bounds.
    fn curve(&mut self, curve: &Curve) {
        let series = curve.series.iter();
        let curves = series.map(|series| format!("{} {}", series.name, words::extent(series)));
        let told = curves.chain(curve.sentence.clone()).joined("; ");
        if !told.is_empty() {
            self.told(&list([format!("{}: {told}", curve.name)]));
        }
    }

    /// The lines in one block, each below the names of its rows.
    fn commands(&mut self, Commands { commands, .. }: &Commands) {
        let lines: Vec<String> = commands
            .iter()
            .flat_map(|command| [format!("# {}", command.names.join("; ")), command.line.clone()])
            .map(|line| text::visible(&line))
            .collect();
        let fence = fence(&lines);
        self.fold(commands::HEAD, &format!("{fence}sh\n{}\n{fence}", lines.join("\n")));
    }
}

fn list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    items.into_iter().map(|item| format!("- {}", escaped(item.as_ref()))).joined("\n")
}

/// A table line by line; of a row that has fewer cells the rest is empty.
fn rows(table: &Table) -> String {
    let columns = table.columns_of_text();
    let has_notes = table.has_notes() || table.rows.iter().any(|row| !row.remark.is_empty());
    let mut heads: Vec<String> =
        columns.iter().map(|at| escaped(&head(&table.columns[*at]))).collect();
    let is_of_numbers = |at: &usize| table.columns[*at].known.align.is_of_numbers();
    let rule = |at: &usize| if is_of_numbers(at) { "--:" } else { "---" };
    let mut rules: Vec<&str> = columns.iter().map(rule).collect();
    if has_notes {
        heads.push("notes".to_owned());
        rules.push("---");
    }
    let line = |row: &Row| {
        let mut texts: Vec<String> = columns
            .iter()
            .map(|at| row.cells.get(*at).map_or_else(String::new, |cell| content(table, cell)))
            .collect();
        if row.cells.len() == 1 && table.columns.len() > 1 {
            texts[0] = format!("**{}**", texts[0]);
        }
        if has_notes {
            texts.push(notes(table, row));
        }
        format!("| {} |", texts.join(" | "))
    };
    let top = [format!("| {} |", heads.join(" | ")), format!("|{}|", rules.join("|"))];
    top.into_iter().chain(table.rows.iter().map(line)).joined("\n")
}

fn head(column: &Column) -> String {
    // What stands beside the rows has one name, and the names of the heads above it are not its own.
    match column.known.detail {
        Detail::Hover => text::listed(&column.heads, ", "),
        _ => column.heads.last().cloned().unwrap_or_default(),
    }
}

fn content(table: &Table, cell: &Cell) -> String {
    let mut text = escaped(&cell.line());
    if !table.unit.is_empty() {
        return with_marks(&text, cell);
    }
    if !cell.badge.is_empty() && cell.tone != Tone::Strong {
        let colon = if text.is_empty() { "" } else { ": " };
        text = format!("{}{colon}{text}", cell.badge);
    }
    text::with_aside(&text, &escaped(&cell.detail))
}

fn notes(table: &Table, row: &Row) -> String {
    let told = row.cells.iter().filter(|cell| table.unit.is_empty() && cell.has_note());
    let words = told.map(|cell| {
        let badge = if cell.tone == Tone::Strong { cell.badge } else { "" };
        with_marks(badge, cell)
    });
    text::listed(words.chain([escaped(&row.remark)]), "; ")
}

/// Words and the marks behind them, as literal brackets that no one takes for a link.
fn with_marks(words: &str, cell: &Cell) -> String {
    match cell.numbers().as_str() {
        "" => words.to_owned(),
        numbers => format!("{words} \\[{numbers}\\]").trim().to_owned(),
    }
}

/// Longer than any run of backquotes in the lines, so that no line can close the block.
fn fence(lines: &[String]) -> String {
    let run = |line: &String| line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(lines.iter().map(run).max().unwrap_or(0).max(2) + 1)
}

/// Text inside of a tag, where Markdown's own characters mean nothing.
fn in_tag(text: &str) -> String {
    text::visible(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text from data with control characters spelled out and Markdown's own characters escaped.
fn escaped(text: &str) -> String {
    let is_own = |c| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$');
    text::replaced(&in_tag(text), |c| is_own(c).then(|| format!("\\{c}").into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Pairs, Part};

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped("a|b <i> *x*\n"), "a\\|b &lt;i&gt; \\*x\\*\\\\n");
    }

    #[test]
    fn a_heading_stands_above_its_own_and_nothing_else() {
        let pairs = |value: &str| {
            let pairs = vec![("key".to_owned(), value.to_owned())];
            Block::Pairs(Pairs { kind: PairsKind::Facts, pairs })
        };
        let heading = |text: &str| Block::Heading(text.to_owned(), Tone::Plain);
        let text = Block::Text("words".to_owned(), Tone::Dim);
        let blocks = [heading("one"), pairs("1"), heading("two"), pairs("2"), heading("3"), text];
        let mut section = Section::new(Part::Area, "");
        blocks.into_iter().for_each(|block| section.push(block));
        let mut document = Document::default();
        document.section(&section);
        let expected = "### one\n\n- key: 1\n\n### two\n\n- key: 2\n\n### 3\n\nwords\n";
        assert_eq!(document.out, expected);
    }

    #[test]
    fn no_line_closes_the_block() {
        assert_eq!(fence(&["fio --rw=read".to_owned()]), "```");
        assert_eq!(fence(&["````".to_owned(), "a`b".to_owned()]), "`````");
    }
}
