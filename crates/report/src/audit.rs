//! What proves that a row did what it says: bytes that the device moved, cache, cost, disturbance.
//!
//! Nothing here knows a workload: a column is a key of the audit, and stands where some row has a
//! number for it. Rows of a chart share one line, in which each column tells its range.

use flatout_measure::record::Outcome;
use serde_json::Value;

use crate::{label, quantity, sweep::Sweep};

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Share,
    Unit(&'static str),
    Times,
    Seconds,
    Count,
}

/// One column: key of the audit, head, what the head means.
#[derive(Debug)]
pub(crate) struct Column {
    pub key: &'static str,
    pub head: &'static str,
    pub meaning: &'static str,
    spelling: Spelling,
    /// Whether rows with this key prove something that is worth a grid.
    is_proof: bool,
    /// Whether the column is worth its width only where some figure is above zero.
    is_exception: bool,
}

const fn column(
    key: &'static str,
    head: &'static str,
    spelling: Spelling,
    meaning: &'static str,
) -> Column {
    Column { key, head, meaning, spelling, is_proof: true, is_exception: false }
}

/// A column that stands only where something is wrong.
const fn exception(
    key: &'static str,
    head: &'static str,
    spelling: Spelling,
    meaning: &'static str,
) -> Column {
    Column { is_proof: false, is_exception: true, ..column(key, head, spelling, meaning) }
}

/// The columns; the first [`MOVED`] tell what was moved, the others what it cost and who disturbed.
pub(crate) const COLUMNS: [Column; 19] = [
    Column {
        is_proof: false,
        ..column("bytes", "asked", Spelling::Unit("bytes"), "bytes asked for in all trials")
    },
    column(
        "disk_share_ratio",
        "by disk",
        Spelling::Share,
        "bytes that the device moved, as a share of those asked for: less came from a cache, \
         more is read-ahead, bookkeeping or another program",
    ),
    column("cache_hit_ratio", "cached", Spelling::Share, "share that the page cache served"),
    column(
        "disk_requests_per_request_ratio",
        "splits",
        Spelling::Times,
        "requests that reached the device for each one asked: above 1 they were split, below 1 \
         merged",
    ),
    Column {
        is_proof: false,
        ..column("minor_faults", "faults", Spelling::Count, "pages entered into a mapping")
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
    column(
        "lost_ratio",
        "lost",
        Spelling::Share,
        "share of the datagrams sent that were lost on the way",
    ),
    column(
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
    column(
        "cpu_s_per_gbit",
        "CPU s/Gbit",
        Spelling::Seconds,
        "CPU seconds for one gigabit: all CPUs of both ends, interrupts included",
    ),
    column("softirq_s_per_gbit", "softirq", Spelling::Seconds, "of them in deferred interrupts"),
    column(
        "cpu_ns_per_operation",
        "CPU/op",
        Spelling::Unit("ns"),
        "CPU time of one operation, in the program and in the kernel",
    ),
    column("cpu_s_per_gib", "CPU s/GiB", Spelling::Seconds, "CPU seconds for one GiB"),
    Column {
        is_proof: false,
        ..column(
            "overhead_ratio",
            "harness",
            Spelling::Share,
            "share of the time that measuring took",
        )
    },
    column(
        "others_disk_ratio",
        "others",
        Spelling::Share,
        "share of what the device moved that was not for this run",
    ),
    column(
        "io_pressure_ratio",
        "I/O wait",
        Spelling::Share,
        "share of the time in which some task of the machine waited for I/O (pressure stall)",
    ),
    Column {
        is_proof: false,
        ..column(
            "stolen_ratio",
            "stolen",
            Spelling::Share,
            "share of the CPU time that the hypervisor gave to others",
        )
    },
];

/// How many of [`COLUMNS`] tell what was moved.
pub(crate) const MOVED: usize = 11;

/// Heads that a narrow page goes without, the least important first.
pub(crate) const FIRST_TO_GO: [&str; 9] =
    ["faults", "stolen", "I/O wait", "CPU s/GiB", "asked", "harness", "splits", "others", "cached"];

/// The audit of one area.
#[derive(Debug)]
pub(crate) struct Audit {
    /// The columns that some row has a figure for, as places in [`COLUMNS`].
    pub columns: Vec<usize>,
    /// Name of the row, what tells it from its neighbours, and one text per column.
    pub rows: Vec<AuditRow>,
}

/// One line of an audit.
#[derive(Debug)]
pub(crate) struct AuditRow {
    pub name: String,
    /// One per entry of [`Audit::columns`]; none where the record knows nothing.
    pub cells: Vec<Option<String>>,
}

/// Rows that share one line, under one name.
struct Group<'a> {
    name: String,
    outcomes: Vec<&'a Outcome>,
}

/// The audit of rows, each by itself, and of sweeps, one line each; none if no row proves a thing.
pub(crate) fn audit(rows: &[&Outcome], sweeps: &[&Sweep<'_>]) -> Option<Audit> {
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
    audit_of(&groups)
}

/// The audit of rows without groups.
pub(crate) fn audit_of_each(rows: &[&Outcome]) -> Option<Audit> {
    audit(rows, &[])
}

fn audit_of(groups: &[Group<'_>]) -> Option<Audit> {
    let all = || groups.iter().flat_map(|group| &group.outcomes);
    if !all().any(|outcome| proves(outcome)) {
        return None;
    }
    let has = |at: &usize| {
        let column = &COLUMNS[*at];
        let mut numbers = all().filter_map(|outcome| number(outcome, column));
        numbers.any(|number| !column.is_exception || number > 0.0)
    };
    let columns: Vec<usize> = (0..COLUMNS.len()).filter(has).collect();
    let row = |group: &Group<'_>| AuditRow {
        name: group.name.clone(),
        cells: columns.iter().map(|at| range(&group.outcomes, &COLUMNS[*at])).collect(),
    };
    let rows = groups.iter().map(row).filter(|row| row.cells.iter().any(Option::is_some)).collect();
    Some(Audit { columns, rows })
}

/// Whether a row carries a fact that proves something about its figure.
pub(crate) fn proves(outcome: &Outcome) -> bool {
    COLUMNS.iter().any(|column| column.is_proof && number(outcome, column).is_some())
}

fn number(outcome: &Outcome, column: &Column) -> Option<f64> {
    outcome.audit.get(column.key).and_then(Value::as_f64)
}

fn range(outcomes: &[&Outcome], column: &Column) -> Option<String> {
    let numbers = || outcomes.iter().filter_map(|outcome| number(outcome, column));
    let low = numbers().reduce(f64::min)?;
    let high = numbers().reduce(f64::max)?;
    let (low, high) = (column.text(low), column.text(high));
    if low == high {
        return Some(low);
    }
    // One unit is enough where both have it.
    let unit = high.split_once(' ').map_or("", |(_, unit)| unit);
    let low = low.strip_suffix(unit).map_or(low.as_str(), str::trim_end);
    Some(format!("{low}–{high}"))
}

impl Column {
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
        let audit = audit_of_each(&[&first, &second, &third]).unwrap();
        let heads: Vec<&str> = audit.columns.iter().map(|at| COLUMNS[*at].head).collect();
        assert_eq!(heads, ["asked", "by disk"]);
        assert_eq!(audit.rows.len(), 2, "a row without facts has no line");
        assert_eq!(audit.rows[1].name, "write, until durable");
        assert_eq!(audit.rows[1].cells, [Some("8.00 KiB".to_owned()), None]);
    }

    #[test]
    fn holes_have_a_column_only_where_there_are_some() {
        let heads = |bytes: u64| {
            let facts = json!({"disk_share_ratio": 1.0, "hole_bytes": bytes});
            let audit = audit_of_each(&[&row("read", "", facts)]).unwrap();
            audit.columns.iter().map(|at| COLUMNS[*at].head).collect::<Vec<_>>()
        };
        assert_eq!(heads(0), ["by disk"]);
        assert_eq!(heads(4096), ["by disk", "holes"]);
    }

    #[test]
    fn what_every_row_has_proves_nothing() {
        let plain = row("read", "", json!({"bytes": 1, "overhead_ratio": 0.1}));
        assert!(audit_of_each(&[&plain]).is_none() && audit_of_each(&[]).is_none());
    }

    #[test]
    fn rows_of_a_chart_tell_their_range() {
        let rows = [0.97, 1.0].map(|share| row("r", "", json!({"disk_share_ratio": share})));
        let column = &COLUMNS[1];
        assert_eq!(range(&[&rows[0], &rows[1]], column).as_deref(), Some("97–100 %"));
        assert_eq!(range(&[&rows[0], &rows[0]], column).as_deref(), Some("97 %"));
        assert_eq!(COLUMNS[3].text(1.0 / 3.0), "0.33×");
        assert_eq!(COLUMNS[3].text(0.001), "<0.01×");
    }
}
