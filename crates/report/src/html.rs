//! The record as one page for a browser, with the record itself inside.

use flatout_measure::record::Record;

use crate::{json, machine, text};

/// The page.
pub fn page(record: &Record) -> String {
    let environment: String = machine::pairs(&record.start.environment)
        .iter()
        .map(|(key, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(key), escaped(value)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<title>flatout</title>\n\
         <dl>\n{environment}</dl>\n\
         <script type=\"application/json\" id=\"record\">{}</script>\n</html>\n",
        json::embeddable(record)
    )
}

/// Text from data, safe in element content and in quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
