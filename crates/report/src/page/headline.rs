//! One row per area that stands for it: the lines of the summary.
//!
//! Which row that is, is data: the first test of the list that has a figure, and of its rows the
//! one that is nearest to a known ceiling; without any ceiling the best figure.

use flatout_measure::record::{Better, Ceiling, Outcome, Record};

use super::column::{self, Column};
use super::{Block, Cell, Part, Row, Section, SummaryLine, Table, race};
use crate::{label, quantity, quantity::Scale, style::Tone};

/// Parameters of a row that are worth their place in a summary.
const MOST_WORDS: usize = 4;

/// Tests that stand for an area, the first that has a figure counts.
const TESTS: [(&str, &[&str]); 7] = [
    ("disk", &["disk/sequential-read", "disk/random-read", "disk/sequential-write"]),
    ("cache", &["cache/thread-sweep", "cache/block-sweep", "cache/series"]),
    ("syscall", &["syscall/read", "syscall/pread", "syscall/lseek"]),
    ("cpu", &["cpu/linpack", "cpu/dgemm", "cpu/throughput"]),
    ("memory", &["memory/stream", "memory/sequential-copy", "memory/working-set"]),
    ("network", &["network/tcp-throughput", "network/udp-throughput"]),
    ("copy", &["copy/tree", "copy/by-count", "copy/single"]),
];

/// A line per area and per list of pairs; none where there is nothing to tell.
pub(super) fn summary(record: &Record, race: &race::Race<'_>) -> Option<Section> {
    let rows = headlines(record).into_iter().map(line);
    let pairs = race.pairs.iter().map(|pairs| SummaryLine {
        area: race::AREA.to_owned(),
        name: pairs.heading.clone(),
        figure: pairs.count(),
        ..SummaryLine::default()
    });
    let lines: Vec<SummaryLine> = rows.chain(pairs).collect();
    let section = Section::new(Part::Summary, "How near to the limit");
    (!lines.is_empty()).then(|| section.with(Block::Summary(lines)))
}

/// The rows that stand for the areas, in the order of the areas. An area without any figure has
/// its first row, so that a reader sees that something is missing.
fn headlines(record: &Record) -> Vec<&Outcome> {
    label::areas(record)
        .into_iter()
        .filter(|area| *area != race::AREA)
        .filter_map(|area| of_area(record, area))
        .collect()
}

fn line(row: &Outcome) -> SummaryLine {
    let words = label::parameter_words(&row.parameters);
    let name = std::iter::once(label::test(&row.id))
        .chain(words.iter().map(String::as_str).take(MOST_WORDS));
    let mut line = SummaryLine {
        area: label::area(&row.id).to_owned(),
        name: name.collect::<Vec<_>>().join(", "),
        ..SummaryLine::default()
    };
    let Some(median) = label::figure(row) else {
        return SummaryLine { status: label::no_figure(row), ..line };
    };
    let half = row.ci95.and_then(|interval| quantity::half_width(median, interval));
    line.interval = half.map_or_else(String::new, quantity::percent);
    let ceiling = row.ceiling.clone().unwrap_or_default();
    line.bottleneck = match (ceiling.limiter.as_str(), ceiling.limiter.strip_prefix("unknown: ")) {
        ("", _) => "unknown".to_owned(),
        (_, Some(why)) => format!("unknown: {why}"),
        (limiter, None) => limiter.to_owned(),
    };
    let scale = Scale::of_all(&row.unit, [median, ceiling.value.unwrap_or(median)]);
    line.figure = format!("{}{}", label::precision_sign(row), scale.text(median));
    line.share = share(row);
    if let (Some(_), Some(value)) = (line.share, ceiling.value) {
        // Of a time the bound is the shortest there could be.
        line.bound = match row.better {
            Better::Higher => scale.text(value),
            Better::Lower => format!("at best {}", scale.text(value)),
        };
        line.origin = format!("{}, {}", ceiling.name, label::provenance(ceiling.provenance));
    }
    line
}

fn of_area<'a>(record: &'a Record, area: &str) -> Option<&'a Outcome> {
    let own = || record.results.iter().filter(move |row| label::area(&row.id) == area);
    let known = TESTS.iter().find(|(name, _)| *name == area).map_or(&[][..], |(_, tests)| tests);
    let of_test = |id: &&str| best(own().filter(|row| row.id == **id));
    known.iter().find_map(of_test).or_else(|| best(own())).or_else(|| own().next())
}

/// The row nearest to its ceiling; without ceilings the best of those that share a unit.
fn best<'a>(rows: impl Iterator<Item = &'a Outcome>) -> Option<&'a Outcome> {
    let rows: Vec<&Outcome> = rows.filter(|row| label::figure(row).is_some()).collect();
    let near = rows.iter().filter_map(|row| Some((share(row)?, *row)));
    if let Some((_, row)) = near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        return Some(row);
    }
    let first = rows.first()?;
    let better = |a: &Outcome, b: &Outcome| match (label::figure(a), label::figure(b)) {
        (Some(a), Some(b)) if first.better == Better::Lower => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => std::cmp::Ordering::Equal,
    };
    rows.iter().copied().filter(|row| row.unit == first.unit).max_by(|a, b| better(a, b))
}

/// The share of a known ceiling.
fn share(row: &Outcome) -> Option<f64> {
    let known = |ceiling: &Ceiling| ceiling.value.and(ceiling.ratio);
    row.ceiling.as_ref().and_then(known).filter(|ratio| ratio.is_finite())
}

/// The lines as a table, for forms that draw no bars.
pub(crate) fn summary_table(lines: &[SummaryLine]) -> Table {
    let columns = [
        column::TEST,
        column::PARAMETERS,
        column::MEDIAN,
        column::INTERVAL,
        column::OF_BOUND,
        column::BOTTLENECK,
    ];
    let row = |line: &SummaryLine| {
        let mut cells = vec![Cell::plain(line.area.as_str()), Cell::words(vec![line.name.clone()])];
        if !line.status.is_empty() {
            cells.push(Cell { badge: line.status, ..Cell::default() });
        } else if line.bottleneck.is_empty() {
            cells.push(Cell::new(line.figure.as_str(), Tone::Strong));
        } else {
            let interval = Some(line.interval.clone()).filter(|text| !text.is_empty());
            let share = line.share.map(quantity::percent);
            cells.push(Cell::new(line.figure.as_str(), Tone::Strong));
            cells.extend([Cell::or_dash(interval), Cell::or_dash(share)]);
            cells.push(Cell::plain(line.bottleneck.as_str()));
        }
        Row::new(cells)
    };
    let rows = lines.iter().map(row).collect();
    Table { name: "summary", columns: columns.map(Column::from).into(), rows, ..Table::default() }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{End, Start};
    use serde_json::json;

    use super::*;

    fn row(id: &str, median: Option<f64>, ratio: Option<f64>) -> Outcome {
        let ceiling = ratio.map(|_| Ceiling { value: Some(1.0), ratio, ..Ceiling::default() });
        let unit = "bytes/s".to_owned();
        Outcome { id: id.to_owned(), unit, median, ceiling, ..Outcome::default() }
    }

    fn found(results: Vec<Outcome>) -> Vec<(String, Option<f64>)> {
        let (tool, time) = (String::new(), String::new());
        let start = Start { tool, argv: Vec::new(), seed: 0, time, environment: json!({}) };
        let record =
            Record { schema: String::new(), start, results, charts: vec![], end: End::default() };
        headlines(&record).into_iter().map(|row| (row.id.clone(), row.median)).collect()
    }

    #[test]
    fn the_row_nearest_to_its_ceiling_stands_for_its_area() {
        let rows = vec![
            row("cpu/throughput", Some(9.0), Some(0.99)),
            row("cpu/linpack", Some(5.0), Some(0.4)),
            row("cpu/linpack", Some(4.0), Some(0.6)),
            row("disk/sequential-read", None, None),
            row("disk/random-read", Some(1.0), None),
            row("disk/random-read", Some(3.0), None),
            row("odd/test", None, None),
        ];
        let expected = [
            ("cpu/linpack".to_owned(), Some(4.0)),
            ("disk/random-read".to_owned(), Some(3.0)),
            ("odd/test".to_owned(), None),
        ];
        assert_eq!(found(rows), expected);
        assert!(found(Vec::new()).is_empty());
    }

    #[test]
    fn the_shortest_time_is_the_best() {
        let mut rows =
            vec![row("syscall/read", Some(9.0), None), row("syscall/read", Some(7.0), None)];
        rows.iter_mut().for_each(|row| row.better = Better::Lower);
        assert_eq!(found(rows), [("syscall/read".to_owned(), Some(7.0))]);
    }
}
