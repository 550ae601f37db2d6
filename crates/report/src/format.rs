//! The names of the output forms, and the one function that picks among them.

use std::{fmt, io, str::FromStr};

use flatout_measure::record::Record;

use crate::{csv, html, json, markdown, style::Style, table::table};

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
}

/// A name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; known are table, json, csv, markdown, html")]
pub struct UnknownFormat(pub String);

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 5] = [Self::Table, Self::Json, Self::Csv, Self::Markdown, Self::Html];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Html => "html",
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
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The record in the given form; `style` matters for [`Format::Table`] only.
pub fn render(record: &Record, format: Format, style: &Style) -> String {
    match format {
        Format::Table => table(record, style),
        Format::Json => json::document(record),
        Format::Csv => csv::document(record),
        Format::Markdown => markdown::document(record),
        Format::Html => html::page(record),
    }
}

/// Writes the record in the given form.
///
/// # Errors
///
/// Those of the writer.
pub fn write(
    record: &Record,
    format: Format,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    out.write_all(render(record, format, style).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
