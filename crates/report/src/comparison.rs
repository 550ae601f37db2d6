//! A comparison of runs shown: terminal table, Markdown, JSON document, HTML page.
//!
//! What it says is put together in `page/comparison.rs`, once for all forms. Nothing here measures or
//! judges: that is `flatout_measure::comparison`.

use flatout_measure::comparison::trend::Trend;
use flatout_measure::comparison::{Comparison, SCHEMA};
use serde::Serialize;

use crate::{Format, export::json, html, markdown, page, style::Style, terminal};

/// What `flatout compare` leaves: one comparison for each new side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// Program and version.
    pub tool: String,
    /// In the order of the command line.
    pub comparisons: Vec<Comparison>,
    /// What many runs of one machine show instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
    /// Why there is no comparison, or an incomplete one; one sentence each.
    pub errors: Vec<String>,
    /// 0 same or better, 1 worse, 2 wrong use, 3 nothing matches, 4 unclear.
    pub exit_code: i32,
}

impl Document {
    /// A document of the current schema.
    pub fn new(tool: &str, comparisons: Vec<Comparison>, errors: Vec<String>, code: i32) -> Self {
        let tool = tool.to_owned();
        Self { schema: SCHEMA, tool, comparisons, trend: None, errors, exit_code: code }
    }
}

/// The forms in which comparisons can be written.
pub const FORMATS: [Format; 4] = [Format::Table, Format::Markdown, Format::Json, Format::Html];

/// The document in one of [`FORMATS`], as itself in any other; `style` matters for [`Format::Table`] only.
pub fn render(document: &Document, format: Format, style: &Style) -> String {
    match format {
        Format::Table => terminal::text(&page::of_comparisons(document), style),
        Format::Markdown => markdown::document(&page::of_comparisons(document)),
        Format::Html => html::page_of_comparisons(document),
        _ => json::document(document),
    }
}
