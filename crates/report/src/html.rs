//! The record as one page for a browser, needing nothing from anywhere: picture and data at once.
//!
//! The page runs no script, and forbids it by its own policy; the `script` element that holds the
//! record is data. [`extract`] gets the record back. Names that identify the machine are left out
//! unless asked for: see [`crate::identity`]. A page is at most [`MOST_BYTES`] long; what a long
//! record loses for it is decided in `html/weight.rs` and said on the page.

mod area;
mod bar_figure;
mod evidence;
mod figure;
mod rows;
mod sweep_figure;
mod top;
mod versus;
mod weight;

use std::{
    collections::BTreeSet,
    fmt::{Arguments, Write as _},
};

use flatout_measure::record::Record;

use self::weight::{Detail, Embedded};
use crate::{
    identity::{self, Identity},
    json, label, machine,
    markup::escaped,
    notes::Notes,
    quantity,
};

const STYLE_SHEET: &str = include_str!("html/page.css");
const RECORD_OPENS: &str = "<script type=\"application/json\" id=\"record\">";
const RECORD_CLOSES: &str = "</script>";
/// No page is longer: it can be sent by mail, and opens at once.
pub const MOST_BYTES: usize = 1 << 20;

/// The page without host name, serial numbers and paths.
pub fn page(record: &Record) -> String {
    page_with(record, Identity::Hidden)
}

/// The page, telling as much about its origin as is said.
pub fn page_with(record: &Record, identity: Identity) -> String {
    match identity {
        Identity::Hidden => assembled(&identity::hidden(record), identity),
        Identity::Shown => assembled(record, identity),
    }
}

/// The record that a page holds; none if the text is no such page.
pub fn extract(html: &str) -> Option<Record> {
    let (_, rest) = html.split_once(RECORD_OPENS)?;
    let (record, _) = rest.split_once(RECORD_CLOSES)?;
    serde_json::from_str(record).ok()
}

/// The page with as much as fits into [`MOST_BYTES`].
fn assembled(record: &Record, identity: Identity) -> String {
    let json = json::embeddable(record);
    let embedded = Embedded::of(record, json);
    let fitting = |detail: &Detail, embedded: &Embedded| {
        let page = with_detail(record, identity, detail, embedded);
        (page.len() <= MOST_BYTES).then_some(page)
    };
    let [whole, shorter @ ..] = &weight::STEPS;
    if let Some(page) = fitting(whole, &embedded) {
        return page;
    }
    let nothing = Embedded::nothing();
    let Some(least) = fitting(&weight::LEAST, &nothing) else { return weight::bare(record) };
    let with_record = shorter.iter().find_map(|detail| fitting(detail, &embedded));
    let without = || weight::STEPS.iter().find_map(|detail| fitting(detail, &nothing));
    with_record.or_else(without).unwrap_or(least)
}

fn with_detail(
    record: &Record,
    identity: Identity,
    detail: &Detail,
    embedded: &Embedded,
) -> String {
    let left_out = embedded.left_out.iter().copied().collect();
    let notes = Notes::of(record);
    let mut page = Page { out: String::new(), notes, detail: *detail, left_out, figures: 0 };
    page.head(record, identity);
    page.errors(record);
    page.top(record);
    page.areas(record);
    page.footnotes(record);
    page.environment(record);
    page.foot(record, embedded);
    page.out
}

/// What the page is: the command, and what it was about.
fn title(record: &Record) -> String {
    let moved = record.results.first().filter(|outcome| label::moves_a_file(outcome));
    let (command, about) = match moved {
        Some(first) => {
            let mut files: Vec<&str> = record.results.iter().filter_map(label::file).collect();
            files.dedup();
            let name = files.first().map_or("", |file| identity::base_name(file)).to_owned();
            let about = match files.len() {
                0 | 1 => name,
                count => format!("{name} and {} more", count - 1),
            };
            (label::area(&first.id), about)
        }
        None => {
            let known =
                |word: &&String| ["read", "write", "bench", "versus"].contains(&word.as_str());
            let command = record.start.argv.iter().skip(1).find(known);
            let machine = machine::headline(&record.start.environment);
            (command.map_or("bench", String::as_str), machine)
        }
    };
    let colon = if about.is_empty() { "" } else { ": " };
    format!("flatout {command}{colon}{about}")
}

/// The page as far as it is written, and the notes that it refers to.
struct Page {
    out: String,
    notes: Notes,
    detail: Detail,
    /// What a reader would look for and does not find here, a sentence each.
    left_out: BTreeSet<&'static str>,
    /// Pictures so far; the next one's number.
    figures: usize,
}

impl Page {
    fn line(&mut self, line: Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.out, "{line}");
    }

    fn footnotes(&mut self, record: &Record) {
        let notes: Vec<String> = self
            .notes
            .iter()
            .map(|(number, note)| {
                format!(
                    "<li id=\"note-{number}\"><code>{}</code> {}</li>",
                    escaped(&note.code),
                    escaped(&note.sentence())
                )
            })
            .collect();
        let notes = self.bounded(&notes, self.detail.notes, weight::NOTES).to_vec();
        let has_interval =
            record.results.iter().any(|o| label::figure(o).is_some() && o.ci95.is_some());
        if notes.is_empty() && !has_interval {
            return;
        }
        self.line(format_args!("<section id=\"notes\">\n<h2>Notes</h2>"));
        if has_interval {
            self.line(format_args!("<p class=\"meta\">±: {}</p>", quantity::PLUS_MINUS));
        }
        if !notes.is_empty() {
            self.line(format_args!("<ol>\n{}\n</ol>", notes.join("\n")));
        }
        self.line(format_args!("</section>"));
    }

    fn environment(&mut self, record: &Record) {
        self.line(format_args!(
            "<section id=\"machine\">\n<h2>Machine</h2>\n<dl class=\"machine\">"
        ));
        for (key, value) in machine::pairs(&record.start.environment) {
            self.line(format_args!(
                "<div><dt>{}</dt><dd>{}</dd></div>",
                escaped(&key),
                escaped(&value)
            ));
        }
        self.line(format_args!("</dl>\n</section>"));
    }

    fn foot(&mut self, record: &Record, embedded: &Embedded) {
        self.line(format_args!("</main>\n<footer>"));
        if !self.left_out.is_empty() {
            let sentences: Vec<&str> = self.left_out.iter().copied().collect();
            self.line(format_args!(
                "<p id=\"left-out\">Left out to keep this page below 1 MiB: {}. The JSON document has it all.</p>",
                sentences.join("; ")
            ));
        }
        if let Some(json) = &embedded.json {
            self.line(format_args!(
                "<p>This page holds its record as JSON ({}, {} results) in the element \
                 <code>record</code>.</p></footer>\n{RECORD_OPENS}{json}{RECORD_CLOSES}",
                escaped(&record.schema),
                record.results.len(),
            ));
        } else {
            self.line(format_args!("</footer>"));
        }
        self.line(format_args!("</body>\n</html>"));
    }

    /// The first so many of a list; if there are more, the page says what is missing.
    fn bounded<'a, T>(&mut self, list: &'a [T], most: usize, what: &'static str) -> &'a [T] {
        if list.len() > most {
            self.left_out.insert(what);
        }
        &list[..list.len().min(most)]
    }
}
