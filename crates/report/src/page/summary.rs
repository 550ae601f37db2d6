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
use super::column::{self, Align, Column, Known};
use super::race::Race;
use super::{Block, Cell, Part, Ratio, Row, Section, Table};
use crate::style::Tone;
use crate::text::{self, Joined};
use crate::{label, order, quantity, quantity::Scale};

/// Lines of a summary, at most: with machine, findings and where to read on they fit a screen.
pub(crate) const MOST_LINES: usize = 14;
/// A name is cut behind so many characters: all of ours are shorter, and are wrapped.
const LONGEST_NAME: usize = 120;
/// How the origin of a range begins that other records gave.
const IN_RECORDS: &str = "this machine in ";
const HEADS: [&str; 6] = ["", "median", "±", "limit", "usual", "bottleneck"];

/// Figures worth a line each.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Above name, figure, interval, share of the bound, what is usual, and why.
    pub heads: [&'static str; 6],
    pub lines: Vec<SummaryLine>,
    /// What else there is to say, in a few words: `7 more pairs`.
    pub rest: String,
    /// Of a comparison the verdicts of rows that have no line.
    pub unlisted: Option<Vec<&'static str>>,
}

impl Summary {
    /// What stands below the lines: what the ranges of what is usual come from, unless there are more
    /// origins than these, and the rest.
    pub fn below(&self, most_origins: usize) -> Vec<String> {
        let known = self.lines.iter().filter(|line| !line.usual_origin.is_empty());
        let known: Vec<&SummaryLine> = known.collect();
        let origins = order::distinct(known.iter().map(|line| line.usual_origin.clone()));
        let told = |origin: &String| {
            let of_it = known.iter().filter(|line| line.usual_origin == *origin);
            let names = order::distinct(of_it.map(|line| line.name.clone()));
            format!("usual for {}: {origin}", names.join("; "))
        };
        let origins = match origins.len() {
            0 => Vec::new(),
            1 => vec![format!("usual: {}", origins[0])],
            count if count > most_origins => {
                let of_records = origins.iter().filter(|origin| origin.starts_with(IN_RECORDS));
                let from = match of_records.count() {
                    0 => "worked out from the machine's parts",
                    of_records if of_records == count => "from other records of this machine",
                    _ => "from other records of this machine, or worked out from its parts",
                };
                vec![format!("usual: {from}; --verbose says how")]
            }
            _ => origins.iter().map(told).collect(),
        };
        let rest = Some(self.rest.clone()).filter(|rest| !rest.is_empty());
        rest.into_iter().chain(origins).collect()
    }

    /// What is not among the first lines, in a few words; nothing where all is.
    pub fn left_out(&self, shown: usize) -> String {
        let cut = self.lines.get(shown..).unwrap_or_default();
        let Some(unlisted) = &self.unlisted else {
            return if cut.is_empty() { String::new() } else { format!("{} more", cut.len()) };
        };
        let words: Vec<&str> = cut.iter().map(|line| line.word).chain(unlisted.clone()).collect();
        let counted = order::distinct(words.iter().copied())
            .into_iter()
            .map(|word| format!("{} {word}", words.iter().filter(|other| **other == word).count()));
        let counted = counted.joined(", ");
        if counted.is_empty() { counted } else { format!("not shown: {counted}") }
    }

    /// What is usual has a column of its own where half of the lines know it.
    pub fn usual(&self) -> UsualPlace {
        let known = self.lines.iter().filter(|line| !line.usual.is_empty()).count();
        if known * 2 >= self.lines.len() { UsualPlace::InColumn } else { UsualPlace::InRemark }
    }
}

/// Where what is usual stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsualPlace {
    InColumn,
    InRemark,
}

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
    /// The bound's value: `2,150 MiB/s`, `at best 62.4 ns`.
    pub bound: String,
    /// What the bound is, and where it comes from.
    pub origin: String,
    /// The range of what is usual, in the unit of the figure; empty where nothing is known.
    pub usual: String,
    /// What that range comes from.
    pub usual_origin: String,
    /// What speaks against the figure, in one word: noisy, degraded; or what stands for it.
    pub word: &'static str,
    /// Percentiles and the like.
    pub further: String,
    pub bottleneck: String,
    /// Which of several ways was the fastest; what limits it matters more.
    pub ways: String,
    /// A ratio and its interval, where that is what the line is about.
    pub change: Option<Ratio>,
    pub tone: Tone,
}

impl SummaryLine {
    /// What is said of the figure in words by how much it matters: what speaks against it, what limits
    /// it, what is usual where that has no column, and the rest.
    pub fn remark(&self, usual: UsualPlace) -> String {
        self.statements(usual).join("; ")
    }

    /// As much of it as fits into so many columns, in whole statements.
    pub fn remark_within(&self, usual: UsualPlace, columns: usize) -> String {
        let mut statements = self.statements(usual);
        while statements.len() > 1 && text::width(&statements.join("; ")) > columns {
            // The width of the interval and the findings say as much; that there is no interval does not
            // say why.
            let told = [Status::Unstable, Status::Degraded].map(label::state);
            let told = statements.iter().position(|word| told.contains(&word.as_str()));
            statements.remove(told.unwrap_or(statements.len() - 1));
        }
        statements.join("; ")
    }

    fn statements(&self, usual: UsualPlace) -> Vec<String> {
        let usual = match usual == UsualPlace::InColumn || self.usual.is_empty() {
            true => String::new(),
            false => format!("usual {}", self.usual),
        };
        let Self { word, further, bottleneck, ways, .. } = self;
        let words = [(*word).to_owned(), bottleneck.clone(), usual, further.clone(), ways.clone()];
        words.into_iter().filter(|word| !word.is_empty()).collect()
    }
}

/// The word in the bottleneck of a latency that says no more than its name.
const LATENCY: &str = "latency";
/// The lines of a record; of one without any figure a sentence.
pub(super) fn of_record(record: &Record, race: &Race<'_>, earlier: &[Record]) -> Section {
    let mut section = Section::new(Part::Summary, "");
    let summary = match race.pairs.is_empty() {
        false => race::summary(race),
        true if label::areas(record) == ["tune"] => tuned::summary(record),
        true => figures(record, earlier),
    };
    section.push(match summary.lines.is_empty() {
        false => Block::Summary(summary),
        true => Block::Text(nothing(record).to_owned(), Tone::Plain),
    });
    section
}

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
fn figures(record: &Record, earlier: &[Record]) -> Summary {
    let mut summary = Summary { heads: HEADS, ..Summary::default() };
    for (name, row) in rows(record) {
        let mut line = line(&name, row);
        let here = usual::here(&name, row, record, earlier);
        let known = here.or_else(|| usual::derived(row, record));
        if let (Some(known), Some((median, unit))) = (known, figure(row)) {
            line.usual = known.text(&Scale::of(unit, median));
            line.usual_origin = known.origin;
        }
        summary.lines.push(line);
    }
    summary
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
        further: percentile(row).unwrap_or_default(),
        ways: fastest_way(row).unwrap_or_default(),
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
            _ => bound,
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

/// Figures of many units stand at their right end.
fn align(known: Known) -> Align {
    if known.align == Align::Decimal { Align::Right } else { known.align }
}

/// The lines as a table, for forms that draw no bars; what is usual in a column of its own or in
/// front of the bottleneck.
pub(crate) fn summary_table(summary: &Summary, usual: UsualPlace) -> Table {
    let has_shares = summary.lines.iter().any(|line| line.share.is_some());
    let has_usual = usual == UsualPlace::InColumn;
    let known = [
        Some(column::WHAT),
        Some(column::MEDIAN),
        Some(column::INTERVAL),
        has_shares.then_some(column::OF_BOUND),
        has_usual.then_some(column::USUAL),
        Some(column::BOTTLENECK),
    ];
    let named = known.into_iter().zip(summary.heads);
    let columns = named.filter_map(|(known, head)| {
        let short = head;
        Some(Column::named(
            vec![head.to_owned()],
            Known { head, short, meaning: "", align: align(known?), ..known? },
        ))
    });
    let row = |line: &SummaryLine| {
        let mut cells = vec![
            Cell::plain(line.name.as_str()),
            Cell::new(line.figure.as_str(), Tone::Strong),
            Cell::plain(line.interval.as_str()),
        ];
        let share = line.share.map(quantity::percent).unwrap_or_default();
        cells.extend(has_shares.then(|| Cell::plain(share)));
        cells.extend(has_usual.then(|| Cell::plain(line.usual.as_str())));
        cells.push(Cell::new(line.remark(usual), line.tone));
        Row::new(cells)
    };
    let rows = summary.lines.iter().map(row).collect();
    Table { name: "summary", columns: columns.collect(), rows, ..Table::default() }
}

#[cfg(test)]
mod tests;
