//! What belongs to the figures of rows: the same in the words that others use for it, and what proves
//! that a row did what it says (bytes that the device moved, cache, cost, disturbance).
//!
//! Nothing here knows a workload: a column is a key of the audit, and stands where some row has a
//! number for it. Rows of a chart share one line, in which each column tells its range.

use flatout_measure::record::Outcome;
use flatout_measure::sampler::fact::OVERHEAD_RATIO;
use flatout_measure::statistics;

use super::column;
use super::{Cell, Column, Pairs, PairsKind, Row, Table, Wide};
use crate::{chart::sweep::Sweep, label, quantity};

/// What a fact is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// Rows that have it prove something that is worth a table.
    Proof,
    /// It has a column where there is a table.
    Side,
    /// It has a column only where some figure is above zero.
    Exception,
}
use Worth::{Exception, Proof, Side};

/// The share of the time that measuring took.
const HARNESS: &str = OVERHEAD_RATIO.name();

/// One fact of rows.
pub(crate) struct Fact {
    /// Its key in the audit, which ends in its unit.
    pub key: &'static str,
    head: &'static str,
    worth: Worth,
    meaning: &'static str,
}

/// A table of facts: worth, key and head, and what they mean.
macro_rules! facts {
    ($($worth:ident $key:expr, $head:literal: $meaning:literal;)*) => {
        [$(Fact { key: $key, head: $head, worth: $worth, meaning: $meaning }),*]
    };
}

/// Facts that share a table.
pub(crate) struct Kind {
    pub name: &'static str,
    pub heading: &'static str,
    facts: &'static [Fact],
}

/// All tables of facts, in the order of a page.
pub(crate) const KINDS: [Kind; 2] = [
    Kind { name: "Facts", heading: "beside the figures", facts: &BESIDE },
    Kind { name: "Audit", heading: "audit: what really happened", facts: &FACTS },
];

/// The figure in other words, and what it took.
const BESIDE: [Fact; 10] = facts! {
    Proof "calls_per_s", "calls": "calls of all threads in a second";
    Proof "bytes_per_s", "bytes": "bytes that these calls move in a second";
    Proof "ratio_to_empty_call", "function calls":
        "how many calls of an empty function take as long";
    Proof "average_flop_per_s", "average": "mean of the trials";
    Proof "best_flop_per_s", "best": "the fastest trial";
    Proof "best_bytes_per_s", "best": "the fastest trial, as STREAM reports it";
    Proof "bus_bytes_per_s", "bus":
        "bytes that cross the memory bus: ordinary stores read each line first";
    Proof "clock_hz", "clock": "clock of the core, measured inside this load";
    Proof "operations_per_cycle", "per cycle": "operations of a cycle of that clock, all threads";
    Proof "cpu_use_ratio", "CPU use": "CPU time that the threads got, as a share of their time";
};

/// What proves a figure: first what was moved, then what it cost and who disturbed.
const FACTS: [Fact; 19] = facts! {
    Side "bytes", "asked": "bytes asked for in all trials";
    Proof "disk_share_ratio", "by disk":
        "bytes that the device moved, as a share of those asked for: less came from a cache, \
         more is read-ahead, bookkeeping or another program";
    Proof "cache_hit_ratio", "cached": "share that the page cache served";
    Proof "disk_requests_per_request_ratio", "splits":
        "requests that reached the device for each one asked: above 1 they were split, below 1 \
         merged";
    Side "minor_faults", "faults": "pages entered into a mapping";
    Exception "hole_bytes", "holes":
        "bytes of the file that were never written and have no place on the device";
    Exception "unwritten_bytes", "unwritten":
        "bytes of the file that have a place on the device but were never written";
    Exception "zero_block_ratio", "zeros": "share of sampled blocks full of zeros";
    Proof "lost_ratio", "lost": "share of the datagrams sent that were lost on the way";
    Proof "dropped_ratio", "dropped":
        "share of the datagrams sent that the receiver's socket dropped";
    Exception "retransmit_ratio", "retransmits": "share of TCP's segments that were sent again";
    Proof "cpu_s_per_gbit", "CPU s/Gbit":
        "CPU seconds for one gigabit: all CPUs of both ends, interrupts included";
    Proof "softirq_s_per_gbit", "softirq": "of them in deferred interrupts";
    Proof "cpu_ns_per_operation", "CPU/op":
        "CPU time of one operation, in the program and in the kernel";
    Proof "cpu_s_per_gib", "CPU s/GiB": "CPU seconds for one GiB";
    Side HARNESS, "overhead": "share of the time that measuring took";
    Proof "others_disk_ratio", "others": "share of what the device moved that was not for this run";
    Proof "io_pressure_ratio", "I/O wait":
        "share of the time in which some task of the machine waited for I/O (pressure stall)";
    Side "stolen_ratio", "steal": "share of the CPU time that the hypervisor gave to others";
};

impl Kind {
    /// These facts of rows, each by itself, and of sweeps, one line each, with what the columns mean;
    /// none if no row has one that is worth a table.
    pub(super) fn table<'a>(
        &self,
        rows: &[&'a Outcome],
        sweeps: &[&Sweep<'a>],
    ) -> Option<(Table, Pairs)> {
        let of_row = |(name, outcome): (String, &&'a Outcome)| (name, vec![*outcome]);
        let of_sweep = |sweep: &&Sweep<'a>| {
            let outcomes = sweep.outcomes();
            (format!("{}, {} rows", label::test(&sweep.chart.id), outcomes.len()), outcomes)
        };
        // Rows that share one line, under one name.
        let named = label::short_names(rows).into_iter().zip(rows).map(of_row);
        let groups: Vec<Group<'_>> = named.chain(sweeps.iter().map(of_sweep)).collect();
        let all = || groups.iter().flat_map(|(_, outcomes)| outcomes);
        if !all().any(|outcome| self.is_worth_a_table(outcome)) {
            return None;
        }
        // The facts that some row has a figure for.
        let is_told = |fact: &&Fact| {
            let mut numbers = all().filter_map(|outcome| outcome.fact_number(fact.key));
            numbers.any(|number| fact.worth != Exception || number > 0.0)
        };
        let facts: Vec<&Fact> = self.facts.iter().filter(is_told).collect();
        let own_cost = own_cost(all().copied());
        let meaning = |fact: &&Fact| match (&own_cost, fact.key) {
            (Some(cost), HARNESS) => {
                format!("{}: {cost} per operation, with an engine that moves nothing", fact.meaning)
            }
            _ => fact.meaning.to_owned(),
        };
        let pairs = facts.iter().map(|fact| (fact.head, meaning(fact)));
        Some((lines(&groups, &facts), Pairs::new(PairsKind::Legend, pairs)))
    }

    /// Whether a row carries a fact that is worth a table.
    pub(crate) fn is_worth_a_table(&self, outcome: &Outcome) -> bool {
        let is_there = |fact: &Fact| outcome.fact_number(fact.key).is_some();
        self.facts.iter().any(|fact| fact.worth == Proof && is_there(fact))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.facts.iter().any(|fact| fact.key == key)
    }
}

/// Rows that share one line, under one name.
type Group<'a> = (String, Vec<&'a Outcome>);

fn lines(groups: &[Group<'_>], facts: &[&Fact]) -> Table {
    let head = |fact: &&Fact| Column::named(vec![fact.head.to_owned()], column::number(""));
    let columns = std::iter::once(column::TEST.into()).chain(facts.iter().map(head));
    let row = |(name, outcomes): &Group<'_>| {
        let ranges: Vec<Option<String>> = facts.iter().map(|fact| range(outcomes, fact)).collect();
        ranges.iter().any(Option::is_some).then(|| {
            let name = Cell::words(name.split(", ").map(str::to_owned).collect());
            Row::new(std::iter::once(name).chain(ranges.into_iter().map(Cell::or_dash)).collect())
        })
    };
    Table {
        name: "audit",
        columns: columns.collect(),
        rows: groups.iter().filter_map(row).collect(),
        wide: Wide::Split,
        ..Table::default()
    }
}

/// What measuring itself costs per operation, from the cheapest row to the dearest.
fn own_cost<'a>(rows: impl Iterator<Item = &'a Outcome>) -> Option<String> {
    let costs = rows.filter_map(|row| row.fact_number("harness_ns_per_operation"));
    let ends = statistics::extremes(costs)?;
    Some(quantity::range(ends, " to ", |ns| quantity::value("ns", ns)))
}

fn range(outcomes: &[&Outcome], fact: &Fact) -> Option<String> {
    let numbers = outcomes.iter().filter_map(|outcome| outcome.fact_number(fact.key));
    Some(quantity::range(statistics::extremes(numbers)?, "–", |value| fact.text(value)))
}

impl Fact {
    fn text(&self, value: f64) -> String {
        match label::unit_of(self.key) {
            "share" => quantity::percent(value),
            // The head has the unit.
            "s" => quantity::number(value),
            "" if self.key.ends_with("_per_cycle") => quantity::number(value),
            "" if !self.key.contains("ratio") => quantity::count(value.max(0.0) as u64),
            // So many times as many.
            "" if value > 0.0 && value < 0.01 => "<0.01×".to_owned(),
            "" => quantity::value("ratio", value),
            unit => quantity::value(unit, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const AUDIT: &Kind = &KINDS[1];

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
        let (audit, legend) = AUDIT.table(&[&first, &second, &third], &[]).unwrap();
        let heads: Vec<&str> = legend.pairs.iter().map(|(head, _)| head.as_str()).collect();
        assert_eq!(heads, ["asked", "by disk"]);
        assert_eq!(audit.rows.len(), 2, "a row without facts has no line");
        let [name, asked, by_disk] = &audit.rows[1].cells[..] else { panic!("three cells") };
        assert_eq!(name.words, ["write", "fsynced"]);
        assert_eq!((asked.text.as_str(), by_disk.text.as_str()), ("8.00 KiB", "–"));
    }

    #[test]
    fn a_call_is_told_in_calls_and_bytes_of_a_second_and_in_calls_of_a_function() {
        let facts =
            json!({"calls_per_s": 4.75e6, "bytes_per_s": 4.75e6, "ratio_to_empty_call": 168.6});
        let (beside, legend) = KINDS[0].table(&[&row("read", "", facts)], &[]).unwrap();
        let heads: Vec<&str> = legend.pairs.iter().map(|(head, _)| head.as_str()).collect();
        assert_eq!(heads, ["calls", "bytes", "function calls"]);
        let texts: Vec<&str> = beside.rows[0].cells[1..].iter().map(|cell| &*cell.text).collect();
        assert_eq!(texts, ["4.75 M/s", "4.53 MiB/s", "169×"]);
    }

    #[test]
    fn holes_have_a_column_only_where_there_are_some() {
        let heads = |bytes: u64| {
            let facts = json!({"disk_share_ratio": 1.0, "hole_bytes": bytes});
            let (audit, _) = AUDIT.table(&[&row("read", "", facts)], &[]).unwrap();
            let heads = audit.columns.into_iter().skip(1).flat_map(|column| column.heads);
            heads.collect::<Vec<String>>()
        };
        assert_eq!(heads(0), ["by disk"]);
        assert_eq!(heads(4096), ["by disk", "holes"]);
    }

    #[test]
    fn what_every_row_has_proves_nothing() {
        let plain = row("read", "", json!({"bytes": 1, "overhead_ratio": 0.1}));
        assert!(AUDIT.table(&[&plain], &[]).is_none() && AUDIT.table(&[], &[]).is_none());
    }

    #[test]
    fn rows_of_a_chart_tell_their_range() {
        let rows = [0.97, 1.0].map(|share| row("r", "", json!({"disk_share_ratio": share})));
        let column = &FACTS[1];
        assert_eq!(range(&[&rows[0], &rows[1]], column).as_deref(), Some("97–100 %"));
        assert_eq!(range(&[&rows[0], &rows[0]], column).as_deref(), Some("97 %"));
        let rows = [12e6, 1.2e9].map(|ns| row("r", "", json!({"cpu_ns_per_operation": ns})));
        let column = FACTS.iter().find(|fact| fact.key == "cpu_ns_per_operation").unwrap();
        assert_eq!(range(&[&rows[0], &rows[1]], column).as_deref(), Some("12.0 ms–1.20 s"));
        assert_eq!(FACTS[3].text(1.0 / 3.0), "0.333×");
        assert_eq!(FACTS[3].text(0.001), "<0.01×");
    }
}
