//! Tables of a page: names with their parameters as small labels, figures with their interval below.

use flatout_measure::record::Status;

use super::markup::{class, escaped};
use super::strip;
use super::weight;
use super::writer::Writer;
use crate::label::{self, FEW_TRIALS};
use crate::page::{Align, Cell, Column, Detail, Picture, Row, Table};
use crate::style::Tone;

/// A longer label, such as a file's name, is broken where it meets the edge.
const LONG_CHIP: usize = 32;
/// Tables whose rows become cards on a narrow screen, each figure behind its column's name.
const CARDS: [&str; 6] = ["summary", "latency", "audit", "race", "pairs", "changes"];

impl Writer {
    pub(super) fn table(&mut self, table: &Table) {
        if table.rows.len() > self.detail.rows {
            self.leave_out(weight::ROWS);
        }
        let is_cards = CARDS.contains(&table.name);
        let name = format!("{}{}", table.name, if is_cards { " cards" } else { "" });
        self.line(&format!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"{name}\">\n<thead>"
        ));
        // What belongs to the column before has no column of its own.
        let columns: Vec<&Column> =
            table.columns.iter().filter(|column| column.known.align != Align::Parameters).collect();
        let levels = columns.iter().map(|column| column.heads.len()).max().unwrap_or(0);
        for level in 0..levels {
            let head = |column: &&Column| {
                let head = column.heads.get(level).map_or("", String::as_str);
                let kind = column_class(column);
                format!("<th scope=\"col\"{kind}>{}</th>", escaped(head))
            };
            let heads: String = columns.iter().map(head).collect();
            self.line(&format!("<tr>{heads}</tr>"));
        }
        self.line("</thead>\n<tbody>");
        for row in table.rows.iter().take(self.detail.rows) {
            let place = self.areas.iter().position(|area| *area == row.area);
            let cells = row_cells(table, row, (columns.len(), self.detail.notes), place);
            self.line(&format!("<tr{}>{cells}</tr>", class(row.tone)));
        }
        self.line("</tbody>\n</table></div>");
    }
}

fn column_class(column: &Column) -> &'static str {
    if column.known.align.is_of_numbers() { " class=\"number\"" } else { "" }
}

/// The cells of a row; one that is shorter than the table ends in a cell that takes all the rest.
fn row_cells(
    table: &Table,
    row: &Row,
    (columns, notes): (usize, usize),
    place: Option<usize>,
) -> String {
    let is_full = row.cells.len() == table.columns.len();
    if !is_full && row.cells.len() == 1 {
        let text = escaped(&row.cells[0].text);
        return format!(
            "<th scope=\"rowgroup\" class=\"group-head\" colspan=\"{columns}\">{text}</th>"
        );
    }
    let mut out = String::new();
    let mut pairs = table.columns.iter().zip(&row.cells).peekable();
    let mut used = 0;
    while let Some((column, cell)) = pairs.next() {
        let is_last = pairs.peek().is_none();
        let parameters = pairs.next_if(|(next, _)| next.known.align == Align::Parameters);
        if used == 0 {
            out.push_str(&row_head(row, column, (cell, place), parameters.map(|(_, cell)| cell)));
        } else if is_last && !is_full {
            let (span, content) = (columns - used, content(table, column, cell, notes));
            out.push_str(&format!("<td colspan=\"{span}\" class=\"reason\">{content}</td>"));
        } else {
            let mut title = match column.known.detail {
                Detail::Hover if !cell.detail.is_empty() => {
                    format!(" title=\"{}\"", escaped(&cell.detail))
                }
                _ => String::new(),
            };
            if CARDS.contains(&table.name) && !matches!(cell.text.as_str(), "" | "–") {
                title.push_str(&format!(" data-h=\"{}\"", escaped(&column.heads.join(" "))));
            }
            let content = content(table, column, cell, notes);
            let kind = match cell.picture {
                Some(Picture::Shade(shade)) => format!(" class=\"number shade-{shade}\""),
                _ => column_class(column).to_owned(),
            };
            out.push_str(&format!("<td{kind}{title}>{content}</td>"));
        }
        used += 1;
    }
    out
}

/// The name of a row, and below it what tells it from others as labels that do not break inside.
fn row_head(
    row: &Row,
    column: &Column,
    (name, place): (&Cell, Option<usize>),
    parameters: Option<&Cell>,
) -> String {
    let mut head = escaped(&name.line());
    if let Some(place) = place {
        head = format!("<a href=\"#area-{place}\">{head}</a>");
    }
    if let Some(parameters) = parameters {
        let chip = |word: &String| {
            let long = if word.len() > LONG_CHIP { " long" } else { "" };
            format!("<span class=\"chip{long}\">{}</span>", escaped(word))
        };
        let chips: Vec<String> = parameters.words.iter().map(chip).collect();
        head.push_str(&format!("<div class=\"chips\">{}</div>", chips.join(" ")));
    }
    if !row.remark.is_empty() {
        head.push_str(&format!("<div class=\"remark\">{}</div>", escaped(&row.remark)));
    }
    format!("<th scope=\"row\"{}>{head}</th>", column_class(column))
}

fn content(table: &Table, column: &Column, cell: &Cell, notes: usize) -> String {
    let text = escaped(&cell.text);
    let is_bold =
        table.unit.is_empty() && matches!(cell.tone, Tone::Strong | Tone::Good | Tone::Bad);
    let mut out = match column.known.align {
        Align::Badge => badge(&cell.text, cell.tone),
        _ if cell.tone == Tone::Bad && !table.unit.is_empty() => badge(&cell.text, Tone::Bad),
        // The colour of a change says which way it went; that of a reason is in its badge.
        _ if is_bold && (cell.tone == Tone::Strong || cell.badge.is_empty()) => {
            format!("<b>{text}</b>")
        }
        _ => text,
    };
    let link = |&number: &usize| match number <= notes {
        true => format!("<a href=\"#note-{number}\">{number}</a>"),
        // Of a page that is too long the last notes are left out, which is said there.
        false => format!("<a href=\"#left-out\">{number}</a>"),
    };
    let links: Vec<String> = cell.marks.iter().map(link).collect();
    if !links.is_empty() {
        out.push_str(&format!("<sup class=\"notes\">{}</sup>", links.join(" ")));
    }
    out = match (cell.badge, cell.tone) {
        ("", _) => out,
        // Noise is said, and worth no alarm.
        (word, Tone::Strong) if [label::state(Status::Unstable), FEW_TRIALS].contains(&word) => {
            format!("{out} {}", badge(word, Tone::Dim))
        }
        (word, Tone::Strong) => format!("{out} {}", badge(word, Tone::Warn)),
        (word, tone) => format!("{} {out}", badge(word, tone)),
    };
    match &cell.picture {
        None | Some(Picture::Shade(_)) => {}
        Some(Picture::Share(share)) => out.push_str(&strip::share(*share)),
        Some(Picture::Samples(samples)) => out.push_str(&strip::samples(samples)),
        Some(Picture::Ratio(ratio)) => out.push_str(&strip::ratio(ratio)),
    }
    if !cell.detail.is_empty() && column.known.detail != Detail::Hover {
        out.push_str(&format!("<small class=\"detail\">{}</small>", escaped(&cell.detail)));
    }
    out
}

fn badge(word: &str, tone: Tone) -> String {
    let kind = match tone {
        Tone::Bad => " bad",
        Tone::Good => " good",
        Tone::Warn => "",
        _ => " soft",
    };
    format!("<span class=\"status{kind}\">{}</span>", escaped(word))
}
