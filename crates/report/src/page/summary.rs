//! The summary: one line per thing that people compare, of each record the same.
//!
//! Which rows these are is data: `summary/lines.rs`. The lines of a race: `summary/race.rs`, of `tune`:
//! `summary/tuned.rs`, of a comparison: `summary/changes.rs`. Whether a figure is good:
//! `summary/usual.rs`.

mod changes;
mod lines;
mod race;
pub(crate) mod tuned;
mod usual;

use flatout_measure::record::{Better, Outcome, Provenance, Record, Status};
use flatout_measure::warning;

pub(super) use self::changes::of_comparison;
use self::lines::{CACHE_OR_MEMORY, FILES, level, number, rows};
use super::column::{self, Column};
use super::race::Race;
use super::{
    Block, Cell, Folded, Pairs, PairsKind, Part, Picture, Ratio, Row, Section, Table, Wide,
};
use crate::style::Tone;
use crate::text::{self, Joined, unless_empty};
use crate::{label, order, quantity, quantity::Scale};

/// Lines of a summary, at most: with machine, findings and where to read on they fit a screen.
pub(crate) const MOST_LINES: usize = 14;
/// A name is cut behind so many characters: all of ours are shorter, and are wrapped.
const LONGEST_NAME: usize = 120;
/// How the origin of a range begins that other records gave.
const IN_RECORDS: &str = "this machine in ";
/// Above name, figure, interval, share of the bound, what is usual, and why.
const HEADS: [&str; 6] = ["", "median", "±", "limit", "usual", "bottleneck"];

/// One thing that people compare.
#[derive(Debug, Default)]
pub(crate) struct SummaryLine {
    pub area: String,
    pub name: String,
    pub figure: String,
    /// Half the width of the interval, or the interval itself.
    pub interval: String,
    /// Share of the bound, where one is known; none beside what is only the best seen.
    pub share: Option<f64>,
    /// What it is a share of: `of 2,150 MiB/s`, `at best 62.4 ns`.
    pub bound: String,
    /// What the bound is, and where it comes from.
    pub origin: String,
    /// The range of what is usual, in the unit of the figure; empty where nothing is known.
    pub usual: String,
    /// What that range comes from.
    pub usual_origin: String,
    /// What speaks against the figure, in one word: noisy, degraded; or what stands for it.
    pub word: &'static str,
    pub bottleneck: String,
    /// What else is said of it, by how much it matters.
    pub remarks: Vec<String>,
    /// A ratio and its interval, where that is what the line is about.
    pub change: Option<Ratio>,
    pub tone: Tone,
}

/// Adds the lines as a table, and what else there is to say in a few words.
pub(super) fn push(
    section: &mut Section,
    heads: [&'static str; 6],
    lines: &[SummaryLine],
    rest: &str,
) {
    // What is usual has a column of its own where a quarter of the lines know it: as a remark it is
    // the first to be cut.
    let known = lines.iter().filter(|line| !line.usual.is_empty()).count();
    let narrow = table(heads, lines, false);
    section.push(Block::Table(match 4 * known >= lines.len() {
        true => Table { narrow: Some(Box::new(narrow)), ..table(heads, lines, true) },
        false => narrow,
    }));
    if !rest.is_empty() {
        section.push(Block::Text(rest.to_owned(), Tone::Dim));
    }
    let origin = |line: &SummaryLine| {
        let limit = unless_empty(&line.origin, |origin| format!("limit: {origin}"));
        let usual = unless_empty(&line.usual_origin, |origin| format!("usual: {origin}"));
        (line.name.clone(), text::listed([limit, usual], "; "))
    };
    let told: Vec<_> = lines.iter().map(origin).filter(|(_, told)| !told.is_empty()).collect();
    if !told.is_empty() {
        let name = "Where limits and what is usual come from".to_owned();
        let blocks = vec![Block::Pairs(Pairs::new(PairsKind::Facts, told))];
        let short = origins(lines);
        section.push(Block::Folded(Folded { name, short, is_open: false, blocks }));
    }
}

/// Where the ranges of what is usual come from, in a line; nothing where none is known.
fn origins(lines: &[SummaryLine]) -> String {
    let known = lines.iter().map(|line| line.usual_origin.as_str());
    let known = order::distinct(known.filter(|origin| !origin.is_empty()));
    let of_records = known.iter().filter(|origin| origin.starts_with(IN_RECORDS)).count();
    let from = match known[..] {
        [] => return String::new(),
        [only] => return format!("usual: {only}"),
        _ if of_records == 0 => "worked out from the machine's parts",
        _ if of_records == known.len() => "from other records of this machine",
        _ => "from other records of this machine, or worked out from its parts",
    };
    format!("usual: {from}; --verbose says how")
}

/// What is usual has a column of its own, or is a remark.
fn table(
    [what, figure, interval, limit, usual, why]: [&'static str; 6],
    lines: &[SummaryLine],
    has_usual: bool,
) -> Table {
    let has_shares = lines.iter().any(|line| line.share.is_some());
    let has_changes = lines.iter().any(|line| line.change.is_some());
    let columns = [
        Some(column::words(what)),
        Some(column::number(figure)),
        Some(column::number(interval)),
        has_shares.then_some(column::number(limit)),
        has_changes.then_some(column::CHANGE_STRIP),
        has_usual.then_some(column::number(usual)),
        Some(column::words(why)),
    ];
    let row = |line: &SummaryLine| {
        let share = line.share.map(quantity::percent).unwrap_or_default();
        let share = Cell::plain(share).with_detail(line.bound.as_str());
        let change = line.change.clone().map(Picture::Ratio);
        let usual = unless_empty(&line.usual, |usual| format!("usual {usual}"));
        let usual = if has_usual { String::new() } else { usual };
        let words = [line.word.to_owned(), line.bottleneck.clone(), usual];
        let words = words.into_iter().chain(line.remarks.iter().cloned());
        let cells = [
            Some(Cell::plain(line.name.as_str())),
            Some(Cell::new(line.figure.as_str(), Tone::Strong)),
            Some(Cell::plain(line.interval.as_str())),
            has_shares.then(|| Cell { picture: line.share.map(Picture::Share), ..share }),
            has_changes.then(|| Cell { picture: change, ..Cell::default() }),
            has_usual.then(|| Cell::plain(line.usual.as_str())),
            Some(Cell::new(text::listed(words, "; "), line.tone)),
        ];
        let (area, cells) = (line.area.clone(), cells.into_iter().flatten().collect());
        let tone = if line.change.is_some() { line.tone } else { Tone::Plain };
        Row { area, tone, ..Row::new(cells) }
    };
    let columns = columns.into_iter().flatten().map(Column::from).collect();
    let (rows, wide) = (lines.iter().map(row).collect(), Wide::Wrapped);
    Table { name: "summary", columns, rows, wide, ..Table::default() }
}

/// The word in the bottleneck of a latency that says no more than its name.
const LATENCY: &str = "latency";
/// The lines of a record; of one without any figure a sentence.
pub(super) fn of_record(record: &Record, race: &Race<'_>, earlier: &[Record]) -> Section {
    let mut section = Section::new(Part::Summary, "");
    let (heads, lines, rest) = match race.pairs.is_empty() {
        false => race::lines(race),
        true if label::areas(record) == ["tune"] => tuned::lines(record),
        true => (HEADS, figures(record, earlier), String::new()),
    };
    match lines.is_empty() {
        false => push(&mut section, heads, &lines, &rest),
        true => section.push(Block::Text(nothing(record).to_owned(), Tone::Plain)),
    }
    section
}

/// Heads, lines, and what else there is to say.
type Lines = ([&'static str; 6], Vec<SummaryLine>, String);

/// Why there is no line.
fn nothing(record: &Record) -> &'static str {
    match record.results.iter().any(|row| label::figure(row).is_some()) {
        _ if record.results.is_empty() => "no results",
        false => "no row has a figure",
        true if label::areas(record) == ["tune"] => "no settings were picked",
        true => "no figure but those that follow from others",
    }
}

/// The lines of figures, and what is usual for them.
fn figures(record: &Record, earlier: &[Record]) -> Vec<SummaryLine> {
    let line = |(name, row): (String, &Outcome)| {
        let mut line = line(&name, row);
        let here = usual::here(&name, row, record, earlier);
        let known = here.or_else(|| usual::derived(row, record));
        if let (Some(known), Some((median, unit))) = (known, figure(row)) {
            line.usual = known.text(&Scale::of(unit, median));
            line.usual_origin = known.origin;
        }
        line
    };
    rows(record).into_iter().map(line).collect()
}

/// The figure that a line shows, and its unit.
pub(super) fn figure(row: &Outcome) -> Option<(f64, &str)> {
    let median = label::figure(row)?;
    let area = label::area(&row.id);
    Some(match (area, row.unit.as_str()) {
        ("copy", "ns") if number(row, "files") > 1.0 && row.fact_number(FILES).is_some() => {
            (row.fact_number(FILES).unwrap_or(median), "files/s")
        }
        _ => (median, &row.unit),
    })
}

fn line(name: &str, row: &Outcome) -> SummaryLine {
    let (median, unit) = figure(row).unwrap_or((f64::NAN, ""));
    let scale = Scale::of(unit, median);
    let reservation = reservation(row);
    let mut line = SummaryLine {
        area: label::area(&row.id).to_owned(),
        name: name.chars().take(LONGEST_NAME).collect(),
        figure: scale.text(median),
        interval: row.half_width().map(quantity::half).unwrap_or_default(),
        word: reservation.unwrap_or_else(|| label::word(row.status, row.ci95)),
        remarks: [percentile(row), fastest_way(row)].into_iter().flatten().collect(),
        tone: label::tone(row.status),
        ..SummaryLine::default()
    };
    if line.word == label::state(Status::Degraded)
        && warning::has(&row.warnings, warning::LOCAL_LOAD)
    {
        // The bottleneck says what stood in the way.
        line.word = "";
    }
    if line.word.is_empty() && row.ci95.is_none() && (1..=2).contains(&row.samples.len()) {
        // Without an interval it looks as sure as a figure that needs none.
        line.word = label::FEW_TRIALS;
    }
    // What is no figure of its line is not limited by what limits that either.
    let Some(ceiling) = row.ceiling.as_ref().filter(|_| reservation.is_none()) else { return line };
    let gist = gist(&ceiling.limiter);
    // A latency is not limited by itself.
    let is_itself = row.unit == "ns" && gist.split(' ').any(|word| word == LATENCY);
    if gist != "unknown" && !is_itself {
        line.bottleneck = gist.to_owned();
    }
    let is_bound = !matches!(ceiling.provenance, Provenance::BestSeen | Provenance::Unknown);
    let value = ceiling.value.filter(|_| is_bound);
    line.share = ceiling.ratio.filter(|ratio| value.is_some() && ratio.is_finite());
    if let (Some(_), Some(value)) = (line.share, value) {
        let bound = match unit == row.unit {
            true => quantity::value(unit, value),
            // A time is told as a rate, and so is its bound.
            false => quantity::value(unit, median / line.share.unwrap_or(1.0)),
        };
        // Of a time the bound is the shortest there could be.
        line.bound = match row.better {
            Better::Lower if unit == row.unit => format!("at best {bound}"),
            _ => format!("of {bound}"),
        };
        line.origin = format!("{}, {}", ceiling.name, label::provenance(ceiling.provenance));
    }
    line
}

/// Warnings that a figure is not that of what its line is named after, in a word.
const RESERVATIONS: [(&str, &str); 15] = [
    (warning::NOT_LINEAR, "not linear"),
    (warning::MEMORY_FILESYSTEM, "in memory"),
    (warning::DIRECT_CACHED, "buffered"),
    (warning::DIRECT_REFUSED, "buffered"),
    (warning::LOOP_CACHED, "cached"),
    (warning::SPARSE_FILE, "holes"),
    (warning::UNWRITTEN_EXTENTS, "never written"),
    (warning::COMPRESSED_FILE, "compressed"),
    (warning::NOT_FROM_DEVICE, "cached"),
    (warning::DEVICE_UNKNOWN, "device unknown"),
    (warning::FITS_IN_CACHE, "in cache"),
    (warning::NOT_COLD, "not cold"),
    (warning::NOT_HOT, "not cached"),
    (warning::DONE_OTHERWISE, "done otherwise"),
    (warning::KEEPS_LESS, "one keeps less"),
];

pub(super) fn reservation(row: &Outcome) -> Option<&'static str> {
    let found = RESERVATIONS.iter().find(|(code, _)| warning::has(&row.warnings, code));
    let (_, word) = found.filter(|_| label::figure(row).is_some())?;
    // Nobody knows which of them had a stream that a cache could hold.
    Some(if level(row, CACHE_OR_MEMORY) { CACHE_OR_MEMORY } else { word })
}

/// The time that all but one in a hundred requests of a disk took at most.
fn percentile(row: &Outcome) -> Option<String> {
    let ns = label::latency(row).filter(|_| row.unit == "IOPS")?;
    Some(format!("p99 {}", quantity::value("ns", ns.percentiles_ns.get("p99")?.as_f64()?)))
}

/// Of what was measured in several ways, the fastest of which it is.
fn fastest_way(row: &Outcome) -> Option<String> {
    let ways = row.fact_number("ways_compared").filter(|&ways| ways > 1.0)?;
    let words = ["sender", "placement"].into_iter().filter_map(|fact| row.fact_text(fact));
    Some(format!("fastest of {ways} ways: {}", words.joined(", ")))
}

/// The first statement of what limits a figure.
pub(crate) fn gist(limiter: &str) -> &str {
    let limiter = limiter.strip_prefix("the ").unwrap_or(limiter);
    let ends = [", ", "; ", ": ", " ("].into_iter().filter_map(|end| limiter.find(end));
    let counted = limiter
        .match_indices(" in ")
        .map(|(at, _)| at)
        .find(|at| limiter[at + " in ".len()..].starts_with(|first: char| first.is_ascii_digit()));
    ends.chain(counted).min().map_or(limiter, |end| &limiter[..end])
}

#[cfg(test)]
mod tests;
