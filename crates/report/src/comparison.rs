//! A comparison of runs shown: terminal table, Markdown, JSON document, HTML page.
//!
//! What it says is put together in `page/comparison.rs`, once for all forms. Nothing here measures or
//! judges: that is `flatout_measure::comparison`.

use flatout_measure::comparison::trend::Trend;
use flatout_measure::comparison::{Comparison, SCHEMA};
use serde::Serialize;

use crate::{export::json, html, markdown, page, style::Style, terminal};

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

    /// A document of many runs of one machine.
    pub fn of_trend(tool: &str, trend: Trend, code: i32) -> Self {
        Self { trend: Some(trend), ..Self::new(tool, Vec::new(), Vec::new(), code) }
    }
}

flatout_measure::words! {
    /// A form in which a comparison can be written.
    #[derive(Default)]
    pub enum Form: name, ALL, text {
        /// Text for a terminal.
        #[default]
        Table = "table",
        /// Tables for a pull request.
        Markdown = "markdown",
        /// The document itself.
        Json = "json",
        /// A page for a browser, with the document inside.
        Html = "html",
    }
}

/// The document in the given form; `style` matters for [`Form::Table`] only.
pub fn render(document: &Document, form: Form, style: &Style) -> String {
    match form {
        Form::Table => terminal::text(&page::of_comparisons(document), style),
        Form::Markdown => markdown::document(&page::of_comparisons(document)),
        Form::Json => json::pretty(&value(document)),
        Form::Html => html::page_of_comparisons(document, &value(document)),
    }
}

/// The document with its keys sorted.
fn value(document: &Document) -> serde_json::Value {
    serde_json::to_value(document)
        .expect("string keys and derived serialization of finite numbers, which cannot fail")
}
