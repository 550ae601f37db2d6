//! The record as a JSON document that is safe to print and safe to embed in a page.
//!
//! Nothing is lost: what would be unsafe on a terminal or inside a `script` element is written
//! as a `\u` escape, which every JSON parser reads as the character itself.

use flatout_measure::record::{End, Outcome, SCHEMA, Start};
use serde::Serialize;

use crate::text;

/// The document, indented, with a line feed at its end.
pub fn document(document: &impl Serialize) -> String {
    format!("{}\n", safe(serde_json::to_string_pretty(document)))
}

/// The beginning of a document whose rows are not kept: [`streamed_row`] for each of them, then
/// [`streamed_end`].
pub fn streamed_start(start: &Start) -> String {
    let start = serde_json::to_string(start);
    format!("{{\"schema\":\"{SCHEMA}\",\n\"start\":{},\n\"results\":[\n", safe(start))
}

/// A row of a document; `index` counts from 0.
pub fn streamed_row(outcome: &Outcome, index: u64) -> String {
    let comma = if index == 0 { "" } else { ",\n" };
    format!("{comma}{}", safe(serde_json::to_string(outcome)))
}

/// The end of a document.
pub fn streamed_end(end: &End) -> String {
    format!("\n],\n\"end\":{}}}\n", safe(serde_json::to_string(end)))
}

/// A value on a line of its own, for a log.
pub fn line(value: &impl Serialize) -> String {
    format!("{}\n", safe(serde_json::to_string(value)))
}

fn safe(json: serde_json::Result<String>) -> String {
    let json = json.expect("string keys and derived serialization, which cannot fail");
    // Line feeds stand between tokens.
    escaped(&json, |c| c != '\n' && text::is_unsafe(c))
}

/// The document for a `script` element: no character that HTML could take for markup.
pub(crate) fn embeddable(document: &impl Serialize) -> String {
    escaped(&safe(serde_json::to_string(document)), |c| matches!(c, '<' | '>' | '&'))
}

/// Replaces characters that can only stand inside strings by `\u` escapes.
fn escaped(json: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let spelled = |c: char| -> String {
        c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    };
    text::replaced(json, |c| is_unsafe(c).then(|| spelled(c).into()))
}
