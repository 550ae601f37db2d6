//! The names of the output forms, and the one function that picks among them.

use std::{fmt, str::FromStr};

use flatout_measure::record::Record;

use crate::export::{csv, fio_json, go_bench, json, openmetrics};
use crate::{html, identity::Identity, markdown, page, style::Style, terminal};

/// A form in which a record can be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Text for a terminal.
    #[default]
    Table,
    /// The record itself.
    Json,
    /// One line per result.
    Csv,
    /// Tables for an issue or a page of documentation.
    Markdown,
    /// A page for a browser, with the record inside.
    Html,
    /// Metrics for a collector of Prometheus.
    OpenMetrics,
    /// The lines of Go's benchmarks, for benchstat.
    GoBench,
    /// The rows of a disk as fio writes them.
    FioJson,
}

/// A name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; known are {}", known.join(", "))]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
    /// Those that are.
    pub known: Vec<&'static str>,
}

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 8] = [
        Self::Table,
        Self::Json,
        Self::Csv,
        Self::Markdown,
        Self::Html,
        Self::OpenMetrics,
        Self::GoBench,
        Self::FioJson,
    ];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::OpenMetrics => "openmetrics",
            Self::GoBench => "go-bench",
            Self::FioJson => "fio-json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        named(Self::ALL, Self::name, name)
    }
}

/// The one of these that is called so.
pub(crate) fn named<T: Copy, const N: usize>(
    all: [T; N],
    name_of: fn(T) -> &'static str,
    name: &str,
) -> Result<T, UnknownFormat> {
    let known = all.map(name_of).to_vec();
    let found = all.into_iter().find(|one| name_of(*one) == name);
    found.ok_or_else(|| UnknownFormat { name: name.to_owned(), known })
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
        Format::Csv => csv::document(record),
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
