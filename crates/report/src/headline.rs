//! One row per area that stands for it, for the bars at the top of a page.
//!
//! Which row that is, is data: the first test of the list that has a figure, and of its rows the
//! one that is nearest to a known ceiling; without any ceiling the best figure.

use flatout_measure::record::{Better, Ceiling, Outcome, Record};

use crate::{label, table};

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

/// The rows that stand for the areas, in the order of the areas. An area without any figure has
/// its first row, so that a reader sees that something is missing.
pub(crate) fn headlines(record: &Record) -> Vec<&Outcome> {
    table::areas(record)
        .into_iter()
        .filter(|area| *area != crate::versus::AREA)
        .filter_map(|area| of_area(record, area))
        .collect()
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
pub(crate) fn share(row: &Outcome) -> Option<f64> {
    let known = |ceiling: &Ceiling| ceiling.value.and(ceiling.ratio);
    row.ceiling.as_ref().and_then(known).filter(|ratio| ratio.is_finite())
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
