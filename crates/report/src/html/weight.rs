//! What a page leaves out so that it stays small: first what is folded or drawn twice, last the
//! record.
//!
//! Pages of usual records are whole. A step is taken only when the page before was too long, and
//! each thing that is missing is named in the foot of the page.

use flatout_measure::record::Record;

use super::MOST_BYTES;
use crate::{export::json, page::Page};

/// How much of a record a page shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detail {
    /// Points of one curve.
    pub curve_points: usize,
    /// Curves of one area.
    pub curves: usize,
    /// Pictures of one area, curves not counted.
    pub charts: usize,
    /// Rows of one table.
    pub rows: usize,
    /// Footnotes.
    pub notes: usize,
    /// What a reader has to unfold: counted facts, audits row by row, lines for a shell.
    pub has_folded: bool,
    /// Pictures on two axes where both tell something.
    pub has_both_axes: bool,
}

pub(super) const CURVES: &str = "curves over time beyond the first of an area";
pub(super) const POINTS: &str = "points of long curves, of which means are drawn";
pub(super) const CHARTS: &str = "charts beyond the first of an area";
pub(super) const ROWS: &str = "rows of tables beyond the first of an area";
pub(super) const NOTES: &str = "notes beyond the first";
pub(super) const FOLDED: &str =
    "what unfolds: counted facts, audits of single rows, lines for a shell, many charts of runs";
const RECORD: &str =
    "the record itself, which alone is too long, so that no program can read it out of this page";
pub(super) const EVERYTHING: &str =
    "everything, since this record holds texts so long that no page can show them";
const RECORD_CURVES: &str = "the curves over time of the embedded record";

const WHOLE: Detail = Detail {
    curve_points: usize::MAX,
    curves: usize::MAX,
    charts: usize::MAX,
    rows: usize::MAX,
    notes: usize::MAX,
    has_folded: true,
    has_both_axes: true,
};

/// From everything to the least.
pub(super) const STEPS: [Detail; 8] = [
    WHOLE,
    Detail { curve_points: 60, has_both_axes: false, ..WHOLE },
    Detail { curve_points: 60, curves: 8, has_folded: false, has_both_axes: false, ..WHOLE },
    Detail { curves: 4, charts: 36, rows: 400, notes: 400, ..LEAST },
    Detail { curves: 2, charts: 28, rows: 400, notes: 300, ..LEAST },
    Detail { curves: 2, charts: 16, rows: 200, notes: 200, ..LEAST },
    Detail { curves: 2, charts: 6, rows: 100, notes: 200, ..LEAST },
    LEAST,
];
pub(super) const LEAST: Detail = Detail {
    curve_points: 40,
    curves: 1,
    charts: 2,
    rows: 25,
    notes: 100,
    has_folded: false,
    has_both_axes: false,
};

/// The record inside a page, and what is missing of it.
pub(super) type Embedded = (Option<String>, Option<&'static str>);

/// Of a page without a record.
pub(super) const NO_RECORD: Embedded = (None, Some(RECORD));

/// What a page with few rows takes besides its record.
const PAGE_BYTES: usize = 128 << 10;

/// The record whole where it fits; else without its curves, on which no comparison rests; else nothing.
pub(super) fn embedded(record: &Record) -> Embedded {
    let fits = |json: &String| json.len() <= MOST_BYTES - PAGE_BYTES;
    if let Some(json) = Some(json::embeddable(record)).filter(fits) {
        return (Some(json), None);
    }
    let mut record = record.clone();
    record.results.iter_mut().for_each(|outcome| outcome.series.clear());
    let json = Some(json::embeddable(&record)).filter(fits);
    json.map_or(NO_RECORD, |json| (Some(json), Some(RECORD_CURVES)))
}

/// Characters of a text on the page of a record that fits into none.
const BARE_CHARS: usize = 2000;

/// The page of a record of which not even a part can be shown: that it is so, and of which command.
pub(super) fn bare(record: &Record) -> Page {
    let cut = |text: &str| -> String { text.chars().take(BARE_CHARS).collect() };
    let tool = cut(&record.start.tool);
    let results = format!("{} results", record.results.len());
    let command = cut(&record.start.argv.join(" "));
    Page { title: tool.clone(), command, origin: vec![tool, results], ..Page::default() }
}
