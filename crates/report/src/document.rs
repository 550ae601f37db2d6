//! Reads a record back from a file: the JSON document, or a page that holds one.
//!
//! What comes in is not trusted: it may be cut off, foreign, of a later schema, or made to harm. Its
//! length, its depth and the memory that it takes are bounded, and every figure must be one that
//! flatout could have written. An error is one line that names the file. Which form a file has is
//! told by what is in it, not by its name. First `survey.rs`, then `validity.rs`; results of other programs
//! become records in `foreign.rs`.

mod foreign;
mod survey;
mod validity;

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::Utf8Error;

use flatout_measure::cause_text;
use flatout_measure::record::Record;

use self::survey::Survey;
use crate::text;

/// The longest document that is read. A full run of all areas leaves 2 to 3 MiB.
pub const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// The most memory that a document may take once it is read, as `survey.rs` estimates it.
pub const MAX_MEMORY_BYTES: u64 = 512 << 20;

/// The longest cause that is told: parts of it come from the document.
const MAX_CAUSE_CHARS: usize = 300;

/// Reads the record in a file.
///
/// # Errors
///
/// One line that names the file: it cannot be read, is too long, cut off, foreign, made by a newer
/// flatout, or holds what no run can leave.
///
/// # Cost
///
/// At most [`MAX_DOCUMENT_BYTES`] are read, and three times that is taken besides
/// [`MAX_MEMORY_BYTES`].
pub fn read(path: &Path) -> Result<Record, String> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (facts, file) = opened.map_err(|error| named(path, &cause_text(&error)))?;
    if facts.is_file() && facts.len() > MAX_DOCUMENT_BYTES {
        return Err(named(path, &too_long()));
    }
    parse_from(file, path)
}

/// Reads a record to the end of a stream; `path` is what errors call it, `-` standard input.
///
/// # Errors
///
/// Those of [`read()`].
pub fn parse_from(reader: impl Read, path: &Path) -> Result<Record, String> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| named(path, &cause_text(&error)))?;
    parse(&bytes, path)
}

/// The record in these bytes; `path` is what errors call them, `-` standard input.
///
/// # Errors
///
/// Those of [`read()`].
pub fn parse(bytes: &[u8], path: &Path) -> Result<Record, String> {
    record(bytes).map_err(|cause| named(path, &cause))
}

fn named(path: &Path, cause: &str) -> String {
    match path.to_str() {
        Some("-") => format!("cannot read standard input: {cause}"),
        _ => format!("cannot read {path:?}: {cause}"),
    }
}

fn too_long() -> String {
    format!("it is longer than {} MiB, the most that is read", MAX_DOCUMENT_BYTES >> 20)
}

fn foreign(why: impl Display) -> String {
    format!("it is no flatout record: {why}")
}

fn record(bytes: &[u8]) -> Result<Record, String> {
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(too_long());
    }
    let no_text =
        |error: Utf8Error| foreign(format_args!("byte {} is no text", error.valid_up_to()));
    let text = std::str::from_utf8(bytes).map_err(no_text)?;
    // Some editors put this before everything.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let json = match text.trim_start().chars().next() {
        None => return Err("it is empty".to_owned()),
        Some('<') => embedded(text)?,
        Some(_) => text,
    };
    let bare = behind_notes(json);
    let json = bare.as_deref().unwrap_or(json);
    let survey = Survey::of(json)?;
    let record = match survey.foreign() {
        Some(program) => {
            let document = serde_json::from_str(json).map_err(from_json)?;
            program.record(&document).map_err(|why| shortened(&why))?
        }
        None => {
            survey.expect_record()?;
            Record::parse(json).map_err(from_json)?
        }
    };
    validity::check(&record).map_err(|why| shortened(&why))?;
    Ok(record)
}

/// The document of fio behind notes and errors that it writes before it; these stay as empty lines.
fn behind_notes(text: &str) -> Option<String> {
    let notes = text.find("\n{\n  \"fio version\"").filter(|_| !text.starts_with('{'))? + 1;
    Some("\n".repeat(text[..notes].lines().count()) + &text[notes..])
}

/// The text of the one `script` element of a page that is called `record`.
fn embedded(page: &str) -> Result<&str, String> {
    const TAG: &str = "<script";
    let cut = || "it is cut off: the record in the page has no end".to_owned();
    let mut found = None;
    for (at, _) in page.match_indices(TAG) {
        let (tag, rest) = page[at + TAG.len()..].split_once('>').ok_or_else(cut)?;
        if !tag.contains("id=\"record\"") {
            continue;
        }
        let (json, _) = rest.split_once("</script").ok_or_else(cut)?;
        if found.replace(json).is_some() {
            return Err(foreign("the page holds two"));
        }
    }
    let is_whole = page.trim_end().ends_with("</html>");
    match found {
        Some(json) => Ok(json),
        None if is_whole => Err(foreign("a page that holds none")),
        None => Err(foreign("a page that holds none, or is cut off before it")),
    }
}

/// What the JSON parser says, without the part of the document that it may quote at length.
fn from_json(error: serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if error.is_eof() {
        return format!("it is cut off: the JSON document ends at line {line}, column {column}");
    }
    let said = error.to_string().replace("expected f64", "expected a number");
    let said = shortened(&said.replace("expected u64", "expected a count"));
    match error.classify() {
        serde_json::error::Category::Syntax => foreign(format_args!("no JSON: {said}")),
        _ => said,
    }
}

/// The text on one line, not too long.
fn shortened(said: &str) -> String {
    if said.chars().nth(MAX_CAUSE_CHARS).is_none() {
        return text::visible(said);
    }
    let head: String = said.chars().take(MAX_CAUSE_CHARS / 2).collect();
    let tail: Vec<char> = said.chars().rev().take(MAX_CAUSE_CHARS / 4).collect();
    text::visible(&format!("{head} … {}", tail.into_iter().rev().collect::<String>()))
}

#[cfg(test)]
mod tests;
