//! Which rows stand in a summary: what people compare, as data, and what there is room for besides.

use std::collections::HashSet;

use flatout_measure::record::{Better, Outcome, Record};
use flatout_measure::warning;

use super::MOST_LINES;
use crate::page::{race::AREA as RACE, record::is_ours};
use crate::{label, order, text::Joined};

/// More areas than these have one line for each thing that people compare, and no other.
const FEW_AREAS: usize = 2;

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

/// A line of this name for rows of these ids.
const fn line(
    name: &'static str,
    ids: &'static [&'static str],
    told: &'static [&'static str],
) -> Line {
    Line { ids, name, told, fits: |_| true, rank: |_| 0.0, is_further: false }
}

impl Line {
    const fn fits(self, fits: fn(&Outcome) -> bool) -> Self {
        Self { fits, ..self }
    }

    const fn rank(self, rank: fn(&Outcome) -> f64) -> Self {
        Self { rank, ..self }
    }

    const fn further(self) -> Self {
        Self { is_further: true, ..self }
    }
}

const LATENCY: &[&str] = &["memory/latency"];
const READS: &[&str] = &["disk/random-read", "disk/depth-sweep"];
const WRITES: &[&str] = &["disk/random-write"];

const LINES: [Line; 22] = [
    line("CPU peak", &["cpu/throughput"], &["type"]).rank(is_double),
    line("Linpack", &["cpu/linpack"], &["type"]),
    line("CPU sustained", &["cpu/sustained"], &["type"]).rank(is_double).further(),
    line("DGEMM", &["cpu/dgemm"], &[]).further(),
    line("memory", &["memory/stream", "memory/sequential-copy"], &["threads"]),
    line("memory latency", LATENCY, &[])
        .fits(is_beyond_caches)
        .rank(|row| number(row, "working_set_bytes")),
    line("L1 latency", LATENCY, &[]).fits(|row| level(row, "L1")).further(),
    line("L2 latency", LATENCY, &[]).fits(|row| level(row, "L2")).further(),
    line("L3 latency", LATENCY, &[]).fits(|row| level(row, "L3")).further(),
    line("cached read", &["cache/thread-sweep", "cache/block-sweep", "cache/series"], &["engine"])
        .fits(|row| is(row, "cache_state", "hot")),
    line("disk read", &["disk/sequential-read", "cache/device-read"], &[]).rank(is_direct),
    line("disk write", &["disk/sequential-write"], &["until", "sync"]).rank(|row| {
        is_direct(row) + 2.0 * is_durable(row) - 0.5 * flag(is(row, "extents", "written"))
    }),
    line("read IOPS", READS, &["depth"])
        .fits(|row| number(row, "depth") == 1.0 && !is_paced(row))
        .rank(at_small_blocks),
    line("read IOPS", READS, &["depth"])
        .fits(|row| number(row, "depth") > 1.0 && !is_paced(row))
        .rank(|row| at_small_blocks(row) + deepest(row)),
    // Synced once at the end they would look like writes that are synced each.
    line("write IOPS", WRITES, &["depth", "sync"])
        .fits(|row| number(row, "depth") == 1.0)
        .rank(|row| at_small_blocks(row) - is_durable(row))
        .further(),
    line("write IOPS", WRITES, &["depth", "sync"])
        .fits(|row| number(row, "depth") > 1.0 && !is_paced(row))
        .rank(|row| at_small_blocks(row) + deepest(row) - is_durable(row))
        .further(),
    line("new file, fsync", &["disk/fsync"], &[]).further(),
    line("TCP", &["network/tcp-throughput"], &["clients"]),
    line("round trip", &["network/tcp-latency"], &[])
        .rank(|row| 2.0 * flag(is(row, "wait", "blocking")) + flag(is(row, "placement", "apart"))),
    line("system call", &["syscall/getppid", "syscall/read", "syscall/pread"], &[]),
    line("copy", &["copy/by-count", "copy/tree"], &["file_bytes"])
        .fits(|row| row.fact_number(FILES).is_some())
        .rank(|row| row.fact_number(FILES).unwrap_or(0.0)),
    line("copy", &["copy/by-count", "copy/tree", "copy/single", "copy/total"], &["file_bytes"])
        .rank(|row| number(row, "file_bytes"))
        .further(),
];

/// The rate of a copy in files, a fact beside its time.
pub(super) const FILES: &str = "files_per_s";
/// Requests in flight that people compare.
const USUAL_DEPTH: f64 = 64.0;
const USUAL_BLOCK_BYTES: f64 = 4096.0;

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Multiply-adds of doubles: peak and what is sustained of it are compared with each other.
fn is_double(row: &Outcome) -> f64 {
    flag(is(row, "type", "f64")) + flag(is(row, "operation", "multiply-add"))
}

fn is_direct(row: &Outcome) -> f64 {
    flag(is(row, "caching", "direct"))
}

fn is_durable(row: &Outcome) -> f64 {
    flag(is(row, "until", "durable"))
}

pub(super) fn is(row: &Outcome, key: &str, word: &str) -> bool {
    row.parameter_text(key) == Some(word)
}

pub(super) fn number(row: &Outcome, key: &str) -> f64 {
    row.parameter_number(key).unwrap_or(0.0)
}

pub(super) fn level(row: &Outcome, name: &str) -> bool {
    row.fact_text("level") == Some(name)
}

/// The level of what is larger than all caches that were found, and smaller than the one that the CPU
/// declares, which a virtual machine may have a part of.
pub(super) const CACHE_OR_MEMORY: &str = "last cache or DRAM";

/// Whether a working set is memory's, or may be: as its level says, or, where that was not found, as wanted.
fn is_beyond_caches(row: &Outcome) -> bool {
    match row.fact_text("level") {
        Some("unknown") | None => !warning::has(&row.warnings, warning::SIZE_REDUCED),
        Some(level) => ["DRAM", CACHE_OR_MEMORY].contains(&level),
    }
}

/// Requests of the usual size, then of one thread: the depth is that of a thread.
fn at_small_blocks(row: &Outcome) -> f64 {
    10.0 * flag(number(row, "block_bytes") == USUAL_BLOCK_BYTES) + 5.0 * flag(!has_threads(row))
}

fn has_threads(row: &Outcome) -> bool {
    number(row, "threads") > 1.0
}

/// Whether requests are asked for at a rate, however fast they are answered.
pub(super) fn is_paced(row: &Outcome) -> bool {
    ["rate_operations_per_s", "rate_bytes_per_s", "questions_per_s"]
        .iter()
        .any(|key| row.parameters.contains_key(*key))
}

/// The usual depth first, then the deepest.
fn deepest(row: &Outcome) -> f64 {
    let depth = number(row, "depth");
    if depth == USUAL_DEPTH { 3.0 } else { 2.0 * depth / (depth + USUAL_DEPTH) }
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
            && is_new(&found, row)
        {
            found.push((line.name_of(row), row));
        }
    }
    if is_few {
        // Of what another program measured nobody knows which rows people compare.
        fill(&mut found, &all, all.len() <= MOST_LINES || !is_ours(record));
    } else {
        found.extend(other_areas(record, &found));
    }
    found.truncate(MOST_LINES);
    found
}

fn is_new(found: &[(String, &Outcome)], row: &Outcome) -> bool {
    !found.iter().any(|(_, known)| std::ptr::eq(*known, row))
}

/// Rows without a line yet: all where `takes_all`, else the best of each test; as many as have room.
fn fill<'a>(found: &mut Vec<(String, &'a Outcome)>, all: &[&'a Outcome], takes_all: bool) {
    let names = label::short_names(all);
    let tests = order::grouped(all.iter().map(|row| (row.id.as_str(), *row))).into_iter();
    let bests = tests.filter_map(|(_, rows)| best(rows.into_iter(), wholeness));
    let bests: HashSet<*const Outcome> = bests.map(std::ptr::from_ref).collect();
    for (name, row) in names.into_iter().zip(all) {
        if found.len() >= MOST_LINES {
            return;
        }
        let is_told = found.iter().any(|(_, known)| known.id == row.id);
        // What is derived of other rows, or has a line under another name, says nothing new.
        let is_told_already = || found.iter().any(|(_, known)| known.median == row.median);
        let is_derived = row.samples.is_empty() || !takes_all && is_told_already();
        let is_best = bests.contains(&std::ptr::from_ref(*row));
        let stands = !is_derived && (takes_all || !is_told && is_best);
        if stands && is_new(found, row) {
            found.push((name, row));
        }
    }
}

/// A row of all processes of a job says more than one of some of them, or of a part of the time.
fn wholeness(row: &Outcome) -> f64 {
    let is_of_one = ["process", "from"].iter().any(|key| row.parameters.contains_key(*key));
    let is_of_all = !row.parameters.contains_key("across") && !is_of_one;
    f64::from(u8::from(is_of_all) + u8::from(row.parameter_text("until") == Some("wear-out")))
}

/// The best row of each area that has no line yet.
fn other_areas<'a>(record: &'a Record, found: &[(String, &Outcome)]) -> Vec<(String, &'a Outcome)> {
    let is_told = |area: &str| found.iter().any(|(_, row)| label::area(&row.id) == area);
    let areas = order::grouped(record.results.iter().map(|row| (label::area(&row.id), row)));
    let areas = areas.into_iter().filter(|(area, _)| !is_told(area));
    let best_of = |(area, rows): (&str, Vec<&'a Outcome>)| {
        let row = best(rows.iter().copied(), wholeness)?;
        // The latency of a cache is not called that of memory, and no two lines are called the same.
        let line = LINES.iter().find(|line| line.is_of(row)).map(|line| line.name_of(row));
        let line = line.filter(|name| found.iter().all(|(known, _)| known != name));
        let named = || {
            let names = label::short_names(&rows).into_iter().zip(&rows);
            let mut own = names.filter(|(_, known)| std::ptr::eq(**known, row));
            own.next().map(|(name, _)| format!("{area}/{name}"))
        };
        Some((line.or_else(named)?, row))
    };
    areas.filter_map(best_of).take(MOST_LINES).collect()
}

impl Line {
    fn pick<'a>(&self, all: &[&'a Outcome]) -> Option<&'a Outcome> {
        self.ids.iter().find_map(|id| {
            let own = all.iter().copied().filter(|row| row.id == *id && self.is_of(row));
            best(own, self.rank)
        })
    }

    fn is_of(&self, row: &Outcome) -> bool {
        self.ids.contains(&row.id.as_str()) && (self.fits)(row)
    }

    fn name_of(&self, row: &Outcome) -> String {
        let told = |key: &&&str| row.parameters.contains_key(**key);
        let words = self.told.iter().filter(told).map(|key| match (*key, &row.parameters[*key]) {
            ("file_bytes", value) => format!("{} files", label::plain("file_bytes", value)),
            (key, value) => label::parameter(key, value),
        });
        let is_of_threads = self.name.ends_with("IOPS") && has_threads(row);
        let threads =
            is_of_threads.then(|| label::parameter("threads", &row.parameters["threads"]));
        let name = std::iter::once(self.name.to_owned()).chain(words).chain(threads);
        let has = |code| warning::has(&row.warnings, code);
        let path = match (has(warning::LOOPBACK), has(warning::ONE_MACHINE)) {
            (true, _) => "loopback ",
            (false, true) => "one machine, ",
            (false, false) => "",
        };
        format!("{path}{}", name.joined(", "))
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
