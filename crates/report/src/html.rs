//! A report as one page for a browser, needing nothing from anywhere: picture and data at once.
//!
//! The page runs no script, and forbids it by its own policy; the `script` element that holds the
//! record is data. [`crate::document`] gets the record back. Names that identify the machine are left out
//! unless asked for: see [`crate::identity`]. A page is at most [`MOST_BYTES`] long; what a long
//! record loses for it is decided in `html/weight.rs` and said on the page.

mod bars;
mod figure;
mod markup;
mod strip;
mod svg;
mod table;
mod weight;
mod writer;

use flatout_measure::record::Record;

use self::weight::Embedded;
use self::writer::{Data, Writer};
use crate::comparison::Document;
use crate::export::{json, told};
use crate::identity::Identity;
use crate::page;

const RECORD: &str = "record";
const COMPARISON: &str = "comparison";
/// No page of a record is longer: it can be sent by mail, and opens at once.
pub const MOST_BYTES: usize = 1 << 20;

/// The page of comparisons, with their document inside.
pub(crate) fn page_of_comparisons(document: &Document) -> String {
    let json = json::embeddable(document);
    let what = format!("its document as JSON ({})", document.schema);
    let data = Data { id: COMPARISON, what, json: Some(&json) };
    let page = page::of_comparisons(document);
    Writer::new(weight::STEPS[0], &[]).page(&page, Identity::Shown, &data)
}

/// The page, as much as fits into [`MOST_BYTES`], with what is usual in earlier records of the same
/// machine, telling as much about its origin as is said.
pub(crate) fn page(record: &Record, earlier: &[Record], identity: Identity) -> String {
    let record = &*told(record, identity);
    let page = page::of_record(record, earlier);
    let what = format!("its record as JSON ({}, {} results)", record.schema, record.results.len());
    let fitting = |(json, left_out): &Embedded| {
        let left_out: Vec<&'static str> = left_out.iter().copied().collect();
        weight::STEPS.into_iter().find_map(|detail| {
            let data = Data { id: RECORD, what: what.clone(), json: json.as_deref() };
            let page = Writer::new(detail, &left_out).page(&page, identity, &data);
            (page.len() <= MOST_BYTES).then_some(page)
        })
    };
    let fitted = fitting(&weight::embedded(record)).or_else(|| fitting(&weight::NO_RECORD));
    fitted.unwrap_or_else(|| {
        let data = Data { id: RECORD, what: what.clone(), json: None };
        let writer = Writer::new(weight::LEAST, &[weight::EVERYTHING]);
        writer.page(&weight::bare(record), Identity::Shown, &data)
    })
}
