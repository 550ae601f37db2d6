//! The record as one page for a browser, needing nothing from anywhere: picture and data at once.
//!
//! The page runs no script, and forbids it by its own policy; the `script` element that holds the
//! record is data. [`extract`] gets the record back. Names that identify the machine are left out
//! unless asked for: see [`crate::identity`].

mod evidence;
mod rows;
mod sweep_figure;
mod versus;

use std::fmt::{Arguments, Write as _};

use flatout_measure::record::{Outcome, Record};

use crate::{
    identity::{self, Identity},
    json, label, machine,
    markup::escaped,
    notes::Notes,
    quantity, sweep, table, versus as race,
};

const STYLE_SHEET: &str = include_str!("html/page.css");
const RECORD_OPENS: &str = "<script type=\"application/json\" id=\"record\">";
const RECORD_CLOSES: &str = "</script>";

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

fn assembled(record: &Record, identity: Identity) -> String {
    let mut page = Page { out: String::new(), notes: Notes::of(record) };
    page.head(record, identity);
    page.verdict(record);
    page.errors(record);
    page.areas(record);
    page.footnotes(record);
    page.environment(record);
    page.foot(record);
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
}

impl Page {
    fn line(&mut self, line: Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.out, "{line}");
    }

    fn head(&mut self, record: &Record, identity: Identity) {
        let machine = escaped(&machine::headline(&record.start.environment));
        let title = escaped(&title(record));
        let tool = escaped(&record.start.tool);
        let time = escaped(&record.start.time);
        let command = escaped(&record.start.argv.join(" "));
        let seed = record.start.seed;
        self.line(format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"{tool}\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>\n{STYLE_SHEET}</style>\n</head>\n<body>\n<header>"
        ));
        let heading = if machine.is_empty() { &tool } else { &machine };
        self.line(format_args!("<h1>{heading}</h1>"));
        self.line(format_args!("<p class=\"command\"><code>{command}</code></p>"));
        let elapsed = escaped(&quantity::value("s", record.end.elapsed_s));
        self.line(format_args!(
            "<p class=\"meta\">{tool} · <time>{time}</time> · {elapsed} · seed {seed}</p>"
        ));
        if identity == Identity::Hidden {
            self.line(format_args!(
                "<p class=\"meta\"><small>Host name and paths are left out of pages; \
                 the JSON (<code>--format json</code>) has them.</small></p>"
            ));
        }
        let areas = table::areas(record);
        if areas.len() > 1 {
            self.line(format_args!("<nav aria-label=\"Areas\">"));
            for (index, area) in areas.iter().enumerate() {
                self.line(format_args!("<a href=\"#area-{index}\">{}</a>", escaped(area)));
            }
            self.line(format_args!("<a href=\"#machine\">machine</a>\n</nav>"));
        }
        self.line(format_args!("</header>\n<main>"));
    }

    fn verdict(&mut self, record: &Record) {
        if record.end.verdict.is_empty() {
            return;
        }
        self.line(format_args!(
            "<section id=\"verdict\">\n<h2>Verdict</h2>\n<ul class=\"verdict\">"
        ));
        for answer in &record.end.verdict {
            let (class, mark, word) =
                if answer.good { ("good", "✓", "good") } else { ("bad", "✗", "look here") };
            let rests_on: Vec<String> = answer
                .rests_on
                .iter()
                .map(|field| format!("<code>{}</code>", escaped(field)))
                .collect();
            self.line(format_args!(
                "<li class=\"{class}\"><span class=\"mark\" role=\"img\" aria-label=\"{word}\">{mark}</span>\
                 <div><h3>{}</h3><p>{}</p><p class=\"rests\">{}</p></div></li>",
                escaped(&answer.question),
                escaped(&answer.text),
                rests_on.join(" ")
            ));
        }
        self.line(format_args!("</ul>\n</section>"));
    }

    fn errors(&mut self, record: &Record) {
        if record.end.errors.is_empty() {
            return;
        }
        let code = record.end.exit_code;
        self.line(format_args!("<section class=\"errors\" role=\"alert\">\n<h2>Errors</h2>\n<ul>"));
        for error in &record.end.errors {
            self.line(format_args!("<li>{}</li>", escaped(error)));
        }
        self.line(format_args!("</ul>\n<p class=\"meta\">exit code {code}</p>\n</section>"));
    }

    fn areas(&mut self, record: &Record) {
        let sweeps = sweep::sweeps(record);
        let rows_left = sweep::rows_left(record, &sweeps);
        let storage_area = table::storage_area(record);
        if storage_area.is_empty() {
            self.storage(record);
        }
        for (index, area) in table::areas(record).into_iter().enumerate() {
            let in_area = |outcome: &&Outcome| label::area(&outcome.id) == area;
            let rows: Vec<&Outcome> =
                rows_left.iter().map(|at| &record.results[*at]).filter(in_area).collect();
            self.line(format_args!("<section id=\"area-{index}\">\n<h2>{}</h2>", escaped(area)));
            if area == storage_area {
                self.storage(record);
            }
            let own: Vec<&sweep::Sweep<'_>> =
                sweeps.iter().filter(|sweep| label::area(&sweep.chart.id) == area).collect();
            if area == race::AREA {
                self.versus(&table::rows_of(record, area), &own);
                self.line(format_args!("</section>"));
                continue;
            }
            if !rows.is_empty() {
                self.rows(&rows);
                self.latencies(&rows);
            }
            for sweep in &own {
                self.sweep(sweep);
            }
            for outcome in &rows {
                self.series(outcome);
            }
            self.audit(&rows, &own);
            self.commands(&rows, &own);
            self.facts(&rows);
            self.line(format_args!("</section>"));
        }
        if record.results.is_empty() {
            self.line(format_args!("<p>No results.</p>"));
        }
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

    fn foot(&mut self, record: &Record) {
        self.line(format_args!(
            "</main>\n<footer><p>This page holds its record as JSON ({}, {} results) in the \
             element <code>record</code>.</p></footer>\n{RECORD_OPENS}{}{RECORD_CLOSES}\n</body>\n</html>",
            escaped(&record.schema),
            record.results.len(),
            json::embeddable(record)
        ));
    }
}
