//! The names of the output forms, and the one function that picks among them.

use flatout_measure::record::Record;

use crate::export::{csv, fio_json, go_bench, json, openmetrics};
use crate::{html, identity::Identity, markdown, page, style::Style, terminal};

flatout_measure::words! {
    /// A form in which a record can be written.
    #[derive(Default)]
    pub enum Format: name, ALL, text {
        /// Text for a terminal.
        #[default]
        Table = "table",
        /// The record itself.
        Json = "json",
        /// One line per result.
        Csv = "csv",
        /// Tables for an issue or a page of documentation.
        Markdown = "markdown",
        /// A page for a browser, with the record inside.
        Html = "html",
        /// Metrics for a collector of Prometheus.
        OpenMetrics = "openmetrics",
        /// The lines of Go's benchmarks, for benchstat.
        GoBench = "go-bench",
        /// The rows of a disk as fio writes them.
        FioJson = "fio-json",
    }
}

/// The record in the given form; `style` matters for [`Format::Table`] only. Host name, serial
/// numbers and paths stay out of the forms that are made to be passed on: see [`render_beside`].
pub fn render(record: &Record, format: Format, style: &Style) -> String {
    render_beside(record, &[], format, style, Identity::Hidden)
}

/// The record in the given form. Table, Markdown and page say what is usual in earlier records of the
/// same machine. `identity` is obeyed by the page, metrics, Go lines and fio's JSON; a table, JSON,
/// CSV and Markdown hold everything that they can.
pub fn render_beside(
    record: &Record,
    earlier: &[Record],
    format: Format,
    style: &Style,
    identity: Identity,
) -> String {
    match format {
        Format::Table => terminal::text(&page::of_record(record, earlier), style),
        Format::Json => json::document(record),
        Format::Csv => csv::document(&[(None, record)]),
        Format::Markdown => markdown::document(&page::of_record(record, earlier)),
        Format::Html => html::page(record, earlier, identity),
        Format::OpenMetrics => openmetrics::document(record, identity),
        Format::GoBench => go_bench::document(record, identity),
        Format::FioJson => fio_json::document(record, identity),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "xml".parse::<Format>().unwrap_err().to_string();
        assert!(error.ends_with("html, openmetrics, go-bench, fio-json"), "{error}");
    }
}
