//! The summary: one line per thing that people compare, of each record the same.
//!
//! Which rows these are is data: [`LINES`]. Where a record is of one or two areas, the other rows of
//! these follow, as far as there is room. The lines of a race: `summary/race.rs`, of `tune`:
//! `summary/tuned.rs`, of a comparison: `summary/changes.rs`. Whether a figure is good:
//! `summary/usual.rs`.

mod changes;
mod race;
mod tuned;
mod usual;

use flatout_measure::record::{Better, Ceiling, Outcome, Provenance, Record, Status};
use flatout_measure::warning;
use serde_json::Value;

pub(super) use self::changes::of_comparison;
use super::column::{self, Align, Column, Known};
use super::race::{AREA as RACE, Race};
use super::{Block, Cell, Part, Row, Section, Table};
use crate::{label, order, quantity, quantity::Scale, style::Tone};

/// Lines of a summary, at most: with machine, findings and where to read on they fit a screen.
pub(crate) const MOST_LINES: usize = 14;
/// More areas than these have one line for each thing that people compare, and no other.
const FEW_AREAS: usize = 2;
/// A name is cut behind so many characters.
const LONGEST_NAME: usize = 40;

/// Figures worth a line each.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub heads: Heads,
    pub lines: Vec<SummaryLine>,
    /// What else there is to say, in a few words: `7 more pairs`.
    pub rest: String,
}

/// What stands above the columns: name, figure, interval, share of the bound, what is usual, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads(pub [&'static str; 6]);

impl Default for Heads {
    fn default() -> Self {
        Self(["", "median", "±", "limit", "usual", "bottleneck"])
    }
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
    /// What speaks against the figure, in one word: noisy, degraded; or what stands for it.
    pub word: &'static str,
    /// Percentiles and the like.
    pub further: String,
    pub bottleneck: String,
    pub tone: Tone,
}

impl SummaryLine {
    /// The same behind what is usual, for where that has no column.
    pub fn remark_with_usual(&self) -> String {
        let usual = format!("usual {}", self.usual);
        let words = [if self.usual.is_empty() { "" } else { &usual }, &self.remark()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// What is said of the figure in words.
    pub fn remark(&self) -> String {
        let words = [self.word, &self.further, &self.bottleneck];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// A line that every record has that has such a row.
struct Line {
    /// Of the ids the first that has a row counts.
    ids: &'static [&'static str],
    name: &'static str,
    /// Parameters whose words belong to the name.
    told: &'static [&'static str],
    /// Which rows can stand for it.
    fits: fn(&Outcome) -> bool,
    /// Which of them does: those with the largest rank, and of these the best figure.
    rank: fn(&Outcome) -> f64,
    /// Whether it is there only where few areas are.
    is_further: bool,
}

const LINE: Line =
    Line { ids: &[], name: "", told: &[], fits: |_| true, rank: |_| 0.0, is_further: false };

const LINES: [Line; 21] = [
    Line {
        ids: &["cpu/throughput"],
        name: "CPU peak",
        told: &["type"],
        rank: |row| flag(is(row, "type", "f64")) + flag(is(row, "operation", "multiply-add")),
        ..LINE
    },
    Line { ids: &["cpu/linpack"], name: "Linpack", told: &["type"], ..LINE },
    Line {
        ids: &["cpu/sustained"],
        name: "CPU sustained",
        told: &["type"],
        is_further: true,
        ..LINE
    },
    Line { ids: &["cpu/dgemm"], name: "DGEMM", is_further: true, ..LINE },
    Line {
        ids: &["memory/stream", "memory/sequential-copy"],
        name: "memory",
        told: &["threads"],
        ..LINE
    },
    Line {
        ids: &["memory/latency"],
        name: "memory latency",
        rank: |row| number(row, "working_set_bytes"),
        ..LINE
    },
    Line { ids: &["memory/latency"], name: "L1 latency", fits: |row| level(row, "L1"), ..FURTHER },
    Line { ids: &["memory/latency"], name: "L2 latency", fits: |row| level(row, "L2"), ..FURTHER },
    Line { ids: &["memory/latency"], name: "L3 latency", fits: |row| level(row, "L3"), ..FURTHER },
    Line {
        ids: &["cache/thread-sweep", "cache/block-sweep", "cache/series"],
        name: "cached read",
        told: &["engine"],
        fits: |row| is(row, "cache_state", "hot"),
        ..LINE
    },
    Line {
        ids: &["disk/sequential-read", "cache/device-read"],
        name: "disk read",
        rank: |row| flag(is(row, "caching", "direct")),
        ..LINE
    },
    Line {
        ids: &["disk/sequential-write"],
        name: "disk write",
        told: &["until"],
        rank: |row| {
            flag(is(row, "caching", "direct")) + 2.0 * flag(is(row, "until", "durable"))
                - 0.5 * flag(is(row, "extents", "written"))
        },
        ..LINE
    },
    Line {
        ids: &["disk/random-read", "disk/depth-sweep"],
        name: "read IOPS",
        told: &["depth"],
        fits: |row| number(row, "depth") == 1.0 && !is_paced(row),
        rank: at_small_blocks,
        ..LINE
    },
    Line {
        ids: &["disk/random-read", "disk/depth-sweep"],
        name: "read IOPS",
        told: &["depth"],
        fits: |row| number(row, "depth") > 1.0 && !is_paced(row),
        rank: |row| at_small_blocks(row) + deepest(row),
        ..LINE
    },
    Line {
        ids: &["disk/random-write"],
        name: "write IOPS",
        told: &["depth", "until"],
        fits: |row| number(row, "depth") == 1.0,
        rank: |row| at_small_blocks(row) + flag(is(row, "until", "durable")),
        is_further: true,
    },
    Line {
        ids: &["disk/random-write"],
        name: "write IOPS",
        told: &["depth", "until"],
        fits: |row| number(row, "depth") > 1.0 && !is_paced(row),
        rank: |row| at_small_blocks(row) + deepest(row) + flag(is(row, "until", "durable")),
        is_further: true,
    },
    Line { ids: &["network/tcp-throughput"], name: "TCP", ..LINE },
    Line {
        ids: &["network/tcp-latency"],
        name: "round trip",
        rank: |row| flag(is(row, "placement", "apart")),
        ..LINE
    },
    Line {
        ids: &["syscall/getppid", "syscall/call", "syscall/read", "syscall/pread"],
        name: "system call",
        told: &["call"],
        rank: |row| flag(is(row, "call", "empty")),
        ..LINE
    },
    Line {
        ids: &["copy/by-count", "copy/tree"],
        name: "copy",
        told: &["file_bytes"],
        fits: |row| label::fact(row, FILES).is_some(),
        rank: |row| label::fact(row, FILES).unwrap_or(0.0),
        ..LINE
    },
    Line {
        ids: &["copy/by-count", "copy/tree", "copy/single"],
        name: "copy",
        told: &["file_bytes"],
        rank: |row| number(row, "file_bytes"),
        is_further: true,
        ..LINE
    },
];

const FURTHER: Line = Line { is_further: true, ..LINE };
/// How the bottleneck of a latency begins that says no more than its name.
const LATENCY: &str = "latency of ";
/// The rate of a copy in files, a fact beside its time.
const FILES: &str = "files_per_s";
/// Requests in flight that people compare.
const USUAL_DEPTH: f64 = 64.0;
const USUAL_BLOCK_BYTES: f64 = 4096.0;

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn is(row: &Outcome, key: &str, word: &str) -> bool {
    row.parameters.get(key).and_then(Value::as_str) == Some(word)
}

fn number(row: &Outcome, key: &str) -> f64 {
    row.parameters.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

fn level(row: &Outcome, name: &str) -> bool {
    row.audit.get("level").and_then(Value::as_str) == Some(name)
}

/// Requests of the usual size.
fn at_small_blocks(row: &Outcome) -> f64 {
    4.0 * flag(number(row, "block_bytes") == USUAL_BLOCK_BYTES)
}

/// Whether requests are asked for at a rate, however fast they are answered.
fn is_paced(row: &Outcome) -> bool {
    row.parameters.contains_key("rate_operations_per_s")
}

/// The usual depth first, then the deepest.
fn deepest(row: &Outcome) -> f64 {
    let depth = number(row, "depth");
    if depth == USUAL_DEPTH { 3.0 } else { 2.0 * depth / (depth + USUAL_DEPTH) }
}

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
        true => Block::Text("no results".to_owned(), Tone::Plain),
    });
    section
}

/// The lines of figures, and below them where the ranges of what is usual are from.
fn figures(record: &Record, earlier: &[Record]) -> Summary {
    let mut summary = Summary::default();
    let mut origins: Vec<String> = Vec::new();
    for (name, row) in rows(record) {
        let mut line = line(&name, row);
        let known = usual::here(&name, record, earlier);
        let known = known.or_else(|| usual::derived(row, &record.start.environment));
        if let (Some(known), Some((median, unit))) = (known, figure(row)) {
            line.usual = known.text(&Scale::of(unit, median));
            origins.push(known.origin);
        }
        summary.lines.push(line);
    }
    let origins = order::distinct(origins.into_iter());
    if !origins.is_empty() {
        summary.rest = format!("usual: {}", origins.join("; "));
    }
    summary
}

/// The rows that a summary shows, each with its name.
pub(super) fn rows(record: &Record) -> Vec<(String, &Outcome)> {
    let with_figure = |row: &&Outcome| label::figure(row).is_some();
    let all: Vec<&Outcome> = record.results.iter().filter(with_figure).collect();
    let areas = label::areas(record).into_iter().filter(|area| *area != RACE).count();
    let is_few = areas <= FEW_AREAS;
    let mut found: Vec<(String, &Outcome)> = Vec::new();
    for line in LINES.iter().filter(|line| is_few || !line.is_further) {
        if let Some(row) = line.pick(&all)
            && !found.iter().any(|(_, known)| std::ptr::eq(*known, row))
        {
            found.push((line.name_of(row), row));
        }
    }
    if is_few {
        fill(&mut found, &all);
    } else {
        found.extend(other_areas(record, &found));
    }
    found.truncate(MOST_LINES);
    found
}

/// Rows without a line yet: all where all have room, else the best of each test.
fn fill<'a>(found: &mut Vec<(String, &'a Outcome)>, all: &[&'a Outcome]) {
    let names = label::short_names(all);
    let is_new = |found: &[(String, &Outcome)], row: &Outcome| {
        !found.iter().any(|(_, known)| std::ptr::eq(*known, row))
    };
    let has_room = all.len() <= MOST_LINES;
    for (name, row) in names.into_iter().zip(all) {
        let is_told = found.iter().any(|(_, known)| known.id == row.id);
        let is_best = || best(all.iter().copied().filter(|other| other.id == row.id), |_| 0.0);
        let stands = has_room || !is_told && is_best().is_some_and(|best| std::ptr::eq(best, *row));
        if stands && is_new(found, row) {
            found.push((name, row));
        }
    }
}

/// The best row of each area that has no line yet.
fn other_areas<'a>(record: &'a Record, found: &[(String, &Outcome)]) -> Vec<(String, &'a Outcome)> {
    let is_told = |area: &str| found.iter().any(|(_, row)| label::area(&row.id) == area);
    let areas = label::areas(record).into_iter().filter(|area| !is_told(area));
    let best_of = |area: &str| {
        let row = best(label::rows_of(record, area).into_iter(), |_| 0.0)?;
        Some((row.id.clone(), row))
    };
    areas.filter_map(best_of).collect()
}

impl Line {
    fn pick<'a>(&self, all: &[&'a Outcome]) -> Option<&'a Outcome> {
        self.ids.iter().find_map(|id| {
            best(all.iter().copied().filter(|row| row.id == *id && (self.fits)(row)), self.rank)
        })
    }

    fn name_of(&self, row: &Outcome) -> String {
        let told = |key: &&&str| row.parameters.contains_key(**key);
        let words = self.told.iter().filter(told).map(|key| match (*key, &row.parameters[*key]) {
            ("file_bytes", value) => format!("{} files", label::plain("file_bytes", value)),
            (key, value) => label::parameter(key, value),
        });
        let name = std::iter::once(self.name.to_owned()).chain(words).collect::<Vec<_>>();
        let is_loopback = warning::has(&row.warnings, warning::LOOPBACK);
        format!("{}{}", if is_loopback { "loopback " } else { "" }, name.join(", "))
    }
}

/// The row with the largest rank, and of these the one with the best figure.
fn best<'a>(
    rows: impl Iterator<Item = &'a Outcome>,
    rank: fn(&Outcome) -> f64,
) -> Option<&'a Outcome> {
    let figure = |row: &Outcome| {
        let figure = label::figure(row)?;
        Some(if row.better == Better::Lower { -figure } else { figure })
    };
    let ranked = rows.filter_map(|row| Some((rank(row), figure(row)?, row)));
    let ranked: Vec<(f64, f64, &Outcome)> = ranked.collect();
    let unit = ranked.first()?.2.unit.as_str();
    let comparable = ranked.iter().filter(|(_, _, row)| row.unit == unit);
    let best = comparable.reduce(|best, next| {
        if next.0.total_cmp(&best.0).then(next.1.total_cmp(&best.1)).is_gt() { next } else { best }
    });
    best.map(|(_, _, row)| *row)
}

/// The figure that a line shows, and its unit.
pub(super) fn figure(row: &Outcome) -> Option<(f64, &str)> {
    let median = label::figure(row)?;
    let area = label::area(&row.id);
    Some(match (area, row.unit.as_str()) {
        ("copy", "ns") if number(row, "files") > 1.0 && label::fact(row, FILES).is_some() => {
            (label::fact(row, FILES).unwrap_or(median), "files/s")
        }
        _ => (median, &row.unit),
    })
}

fn line(name: &str, row: &Outcome) -> SummaryLine {
    let (median, unit) = figure(row).unwrap_or((f64::NAN, ""));
    let half = label::figure(row)
        .zip(row.ci95)
        .and_then(|(median, interval)| quantity::half_width(median, interval));
    let scale = Scale::of(unit, median);
    let mut line = SummaryLine {
        area: label::area(&row.id).to_owned(),
        name: name.chars().take(LONGEST_NAME).collect(),
        figure: scale.text(median),
        interval: half.map(quantity::percent).unwrap_or_default(),
        word: word(row.status),
        further: percentile(row).unwrap_or_default(),
        tone: label::tone(row.status),
        ..SummaryLine::default()
    };
    let Some(ceiling) = &row.ceiling else { return line };
    line.bottleneck = Some(gist(&ceiling.limiter))
        .filter(|gist| *gist != "unknown")
        .unwrap_or_default()
        .to_owned();
    if row.unit == "ns" && line.bottleneck.starts_with(LATENCY) {
        // A latency is not limited by itself.
        line.bottleneck.clear();
    }
    line.share = share(ceiling);
    if let (Some(_), Some(value)) = (line.share, ceiling.value) {
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

/// The share of a known bound.
fn share(ceiling: &Ceiling) -> Option<f64> {
    let is_bound = !matches!(ceiling.provenance, Provenance::BestSeen | Provenance::Unknown);
    ceiling.ratio.filter(|ratio| is_bound && ceiling.value.is_some() && ratio.is_finite())
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "",
        other => label::state(other),
    }
}

/// The time that all but one in a hundred requests of a disk took at most.
fn percentile(row: &Outcome) -> Option<String> {
    let ns = row.latency.as_ref().filter(|_| row.unit == "IOPS")?;
    Some(format!("p99 {}", quantity::value("ns", ns.percentiles_ns.get("p99")?.as_f64()?)))
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

/// The lines as a table, for forms that draw no bars.
pub(crate) fn summary_table(summary: &Summary) -> Table {
    let has_shares = summary.lines.iter().any(|line| line.share.is_some());
    let usual = summary.lines.iter().filter(|line| !line.usual.is_empty()).count();
    let has_usual = usual * 2 >= summary.lines.len();
    let known = [
        Some(column::WHAT),
        Some(column::MEDIAN),
        Some(column::INTERVAL),
        has_shares.then_some(column::OF_BOUND),
        has_usual.then_some(column::USUAL),
        Some(column::BOTTLENECK),
    ];
    let named = known.into_iter().zip(summary.heads.0);
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
        let remark = if has_usual { line.remark() } else { line.remark_with_usual() };
        cells.push(Cell::new(remark, line.tone));
        Row::new(cells)
    };
    let rows = summary.lines.iter().map(row).collect();
    Table { name: "summary", columns: columns.collect(), rows, ..Table::default() }
}

#[cfg(test)]
mod tests;
