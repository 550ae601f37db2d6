//! What proves that a row did what it says: bytes that the device moved, cache, cost, disturbance.
//!
//! Nothing here knows a workload: a column is a key of the audit, and stands where some row has a
//! number for it. Rows of a chart share one line, in which each column tells its range.

use flatout_measure::record::Outcome;
use serde_json::Value;

use super::column;
use super::{Cell, Column, Pairs, PairsKind, Row, Table, Wide};
use crate::{chart::sweep::Sweep, label, quantity};

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Share,
    Unit(&'static str),
    Times,
    Seconds,
    Count,
}

/// The share of the time that measuring took.
const HARNESS: &str = "overhead_ratio";

/// One fact of rows: key of the audit, head, what the head means.
#[derive(Debug)]
pub(crate) struct Fact {
    pub key: &'static str,
    head: &'static str,
    meaning: &'static str,
    spelling: Spelling,
    /// Whether rows with this key prove something that is worth a grid.
    is_proof: bool,
    /// Whether the column is worth its width only where some figure is above zero.
    is_exception: bool,
}

const fn proof(
    key: &'static str,
    head: &'static str,
    spelling: Spelling,
    meaning: &'static str,
) -> Fact {
    Fact { key, head, meaning, spelling, is_proof: true, is_exception: false }
}

/// A fact that has a column only where something is wrong.
const fn exception(
    key: &'static str,
    head: &'static str,
    spelling: Spelling,
    meaning: &'static str,
) -> Fact {
    Fact { is_proof: false, is_exception: true, ..proof(key, head, spelling, meaning) }
}

/// The facts that have a column: first what was moved, then what it cost and who disturbed.
pub(crate) const FACTS: [Fact; 19] = [
    Fact {
        is_proof: false,
        ..proof("bytes", "asked", Spelling::Unit("bytes"), "bytes asked for in all trials")
    },
    proof(
        "disk_share_ratio",
        "by disk",
        Spelling::Share,
        "bytes that the device moved, as a share of those asked for: less came from a cache, \
         more is read-ahead, bookkeeping or another program",
    ),
    proof("cache_hit_ratio", "cached", Spelling::Share, "share that the page cache served"),
    proof(
        "disk_requests_per_request_ratio",
        "splits",
        Spelling::Times,
        "requests that reached the device for each one asked: above 1 they were split, below 1 \
         merged",
    ),
    Fact {
        is_proof: false,
        ..proof("minor_faults", "faults", Spelling::Count, "pages entered into a mapping")
    },
    exception(
        "hole_bytes",
        "holes",
        Spelling::Unit("bytes"),
        "bytes of the file that were never written and have no place on the device",
    ),
    exception(
        "unwritten_bytes",
        "unwritten",
        Spelling::Unit("bytes"),
        "bytes of the file that have a place on the device but were never written",
    ),
    exception(
        "zero_block_ratio",
        "zeros",
        Spelling::Share,
        "share of sampled blocks full of zeros",
    ),
    proof(
        "lost_ratio",
        "lost",
        Spelling::Share,
        "share of the datagrams sent that were lost on the way",
    ),
    proof(
        "dropped_ratio",
        "dropped",
        Spelling::Share,
        "share of the datagrams sent that the receiver's socket dropped",
    ),
    exception(
        "retransmit_ratio",
        "sent again",
        Spelling::Share,
        "share of TCP's segments that were sent again",
    ),
    proof(
        "cpu_s_per_gbit",
        "CPU s/Gbit",
        Spelling::Seconds,
        "CPU seconds for one gigabit: all CPUs of both ends, interrupts included",
    ),
    proof("softirq_s_per_gbit", "softirq", Spelling::Seconds, "of them in deferred interrupts"),
    proof(
        "cpu_ns_per_operation",
        "CPU/op",
        Spelling::Unit("ns"),
        "CPU time of one operation, in the program and in the kernel",
    ),
    proof("cpu_s_per_gib", "CPU s/GiB", Spelling::Seconds, "CPU seconds for one GiB"),
    Fact {
        is_proof: false,
        ..proof(HARNESS, "harness", Spelling::Share, "share of the time that measuring took")
    },
    proof(
        "others_disk_ratio",
        "others",
        Spelling::Share,
        "share of what the device moved that was not for this run",
    ),
    proof(
        "io_pressure_ratio",
        "I/O wait",
        Spelling::Share,
        "share of the time in which some task of the machine waited for I/O (pressure stall)",
    ),
    Fact {
        is_proof: false,
        ..proof(
            "stolen_ratio",
            "stolen",
            Spelling::Share,
            "share of the CPU time that the hypervisor gave to others",
        )
    },
];

/// Rows that share one line, under one name.
struct Group<'a> {
    name: String,
    outcomes: Vec<&'a Outcome>,
}

/// The audit of rows, each by itself, and of sweeps, one line each, with what its columns mean; none
/// if no row proves a thing.
pub(super) fn audit(rows: &[&Outcome], sweeps: &[&Sweep<'_>]) -> Option<(Table, Pairs)> {
    let names = label::short_names(rows);
    let mut groups: Vec<Group<'_>> = names
        .into_iter()
        .zip(rows)
        .map(|(name, outcome)| Group { name, outcomes: vec![*outcome] })
        .collect();
    groups.extend(sweeps.iter().map(|sweep| {
        let outcomes = sweep.outcomes();
        let name = format!("{}, {} rows", label::test(&sweep.chart.id), outcomes.len());
        Group { name, outcomes }
    }));
    let all = || groups.iter().flat_map(|group| &group.outcomes);
    if !all().any(|outcome| proves(outcome)) {
        return None;
    }
    let facts = facts_told(&groups);
    let head = |fact: &&Fact| Column::named(vec![fact.head.to_owned()], column::number(""));
    let columns = std::iter::once(column::TEST.into()).chain(facts.iter().map(head));
    let row = |group: &Group<'_>| {
        let ranges: Vec<Option<String>> =
            facts.iter().map(|fact| range(&group.outcomes, fact)).collect();
        ranges.iter().any(Option::is_some).then(|| {
            let words = group.name.split(", ").map(str::to_owned).collect();
            let name = Cell::words(words);
            Row::new(std::iter::once(name).chain(ranges.into_iter().map(Cell::or_dash)).collect())
        })
    };
    let table = Table {
        name: "audit",
        columns: columns.collect(),
        rows: groups.iter().filter_map(row).collect(),
        wide: Wide::Split,
        ..Table::default()
    };
    let own_cost = own_cost(all().copied());
    let meaning = |fact: &&Fact| match (&own_cost, fact.key) {
        (Some(cost), HARNESS) => {
            format!("{}: {cost} per operation, with an engine that moves nothing", fact.meaning)
        }
        _ => fact.meaning.to_owned(),
    };
    let pairs = facts.iter().map(|fact| (fact.head.to_owned(), meaning(fact))).collect();
    Some((table, Pairs { kind: PairsKind::Legend, pairs }))
}

/// The facts that some row has a figure for.
fn facts_told(groups: &[Group<'_>]) -> Vec<&'static Fact> {
    let all = || groups.iter().flat_map(|group| &group.outcomes);
    let is_told = |fact: &&Fact| {
        let mut numbers = all().filter_map(|outcome| number(outcome, fact));
        numbers.any(|number| !fact.is_exception || number > 0.0)
    };
    FACTS.iter().filter(is_told).collect()
}

/// What measuring itself costs per operation, from the cheapest row to the dearest.
fn own_cost<'a>(rows: impl Iterator<Item = &'a Outcome>) -> Option<String> {
    let costs = rows.filter_map(|row| row.audit.get("harness_ns_per_operation")?.as_f64());
    let (least, most) = costs.fold(None, |range: Option<(f64, f64)>, ns| match range {
        Some((least, most)) => Some((least.min(ns), most.max(ns))),
        None => Some((ns, ns)),
    })?;
    let text = |ns| quantity::value("ns", ns);
    Some(match text(least) == text(most) {
        true => text(least),
        false => format!("{} to {}", text(least), text(most)),
    })
}

/// Whether a row carries a fact that proves something about its figure.
pub(crate) fn proves(outcome: &Outcome) -> bool {
    FACTS.iter().any(|fact| fact.is_proof && number(outcome, fact).is_some())
}

fn number(outcome: &Outcome, fact: &Fact) -> Option<f64> {
    outcome.audit.get(fact.key).and_then(Value::as_f64)
}

fn range(outcomes: &[&Outcome], fact: &Fact) -> Option<String> {
    let numbers = || outcomes.iter().filter_map(|outcome| number(outcome, fact));
    let low = numbers().reduce(f64::min)?;
    let high = numbers().reduce(f64::max)?;
    let (low, high) = (fact.text(low), fact.text(high));
    if low == high {
        return Some(low);
    }
    // One unit is enough where both have it.
    let unit = high.split_once(' ').map_or("", |(_, unit)| unit);
    let low = low.strip_suffix(unit).map_or(low.as_str(), str::trim_end);
    Some(format!("{low}–{high}"))
}

impl Fact {
    fn text(&self, value: f64) -> String {
        match self.spelling {
            Spelling::Share => quantity::percent(value),
            Spelling::Unit(unit) => quantity::value(unit, value),
            Spelling::Times if value > 0.0 && value < 0.01 => "<0.01×".to_owned(),
            Spelling::Times => format!("{value:.2}×"),
            Spelling::Seconds => quantity::number(value),
            Spelling::Count => quantity::count(value.max(0.0) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(test: &str, until: &str, audit: Value) -> Outcome {
        let parameters = json!({"depth": 1, "until": until}).as_object().cloned().unwrap();
        let audit = audit.as_object().cloned().unwrap();
        Outcome { id: format!("disk/{test}"), parameters, audit, ..Outcome::default() }
    }

    #[test]
    fn a_column_stands_where_some_row_has_a_number() {
        let first = row("write", "cache", json!({"bytes": 4096, "disk_share_ratio": 1.0}));
        let second = row("write", "durable", json!({"bytes": 8192, "cache_hit_ratio": null}));
        let third = row("read", "", json!({"trials_run": 3}));
        let (audit, legend) = audit(&[&first, &second, &third], &[]).unwrap();
        let heads: Vec<&str> = legend.pairs.iter().map(|(head, _)| head.as_str()).collect();
        assert_eq!(heads, ["asked", "by disk"]);
        assert_eq!(audit.rows.len(), 2, "a row without facts has no line");
        let [name, asked, by_disk] = &audit.rows[1].cells[..] else { panic!("three cells") };
        assert_eq!(name.words, ["write", "until durable"]);
        assert_eq!((asked.text.as_str(), by_disk.text.as_str()), ("8.00 KiB", "–"));
    }

    #[test]
    fn holes_have_a_column_only_where_there_are_some() {
        let heads = |bytes: u64| {
            let facts = json!({"disk_share_ratio": 1.0, "hole_bytes": bytes});
            let (audit, _) = audit(&[&row("read", "", facts)], &[]).unwrap();
            let heads = audit.columns.into_iter().skip(1).flat_map(|column| column.heads);
            heads.collect::<Vec<String>>()
        };
        assert_eq!(heads(0), ["by disk"]);
        assert_eq!(heads(4096), ["by disk", "holes"]);
    }

    #[test]
    fn what_every_row_has_proves_nothing() {
        let plain = row("read", "", json!({"bytes": 1, "overhead_ratio": 0.1}));
        assert!(audit(&[&plain], &[]).is_none() && audit(&[], &[]).is_none());
    }

    #[test]
    fn rows_of_a_chart_tell_their_range() {
        let rows = [0.97, 1.0].map(|share| row("r", "", json!({"disk_share_ratio": share})));
        let column = &FACTS[1];
        assert_eq!(range(&[&rows[0], &rows[1]], column).as_deref(), Some("97–100 %"));
        assert_eq!(range(&[&rows[0], &rows[0]], column).as_deref(), Some("97 %"));
        assert_eq!(FACTS[3].text(1.0 / 3.0), "0.33×");
        assert_eq!(FACTS[3].text(0.001), "<0.01×");
    }
}
