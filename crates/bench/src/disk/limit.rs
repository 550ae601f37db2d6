//! What a figure of the disk area is held against, and what most likely limits it.

use flatout_io::{Caching, Engine};
use flatout_measure::ceiling::{self, TOLERANCE};
use flatout_measure::record::{Ceiling, Outcome, Provenance, Warning};
use flatout_measure::warning;
use flatout_sys::filesystem::Nature;
use flatout_sys::storage::Layer;

use super::pattern::{Course, Test};
use super::row::Row;
use super::site::Site;

/// Share of a ceiling from which on the ceiling is the limit.
const AT_THE_LIMIT: f64 = 0.9;
/// Share of a limit of the control group from which on it is what holds a row back: the kernel
/// hands out a limit in slices.
const AT_THE_GROUPS_LIMIT: f64 = 0.8;
/// CPU time of a thread over the time from which on the thread is the limit.
const BUSY_SHARE: f64 = 0.9;

/// The best figures of the run, by direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Best {
    read_bytes_per_s: Option<f64>,
    write_bytes_per_s: Option<f64>,
    read_operations_per_s: Option<f64>,
    write_operations_per_s: Option<f64>,
}

/// A row with its outcome.
pub(super) struct Measured<'a> {
    pub(super) row: &'a Row,
    pub(super) outcome: &'a mut Outcome,
}

impl Best {
    /// The best of what went around the page cache.
    pub(super) fn of(measured: &[Measured<'_>]) -> Self {
        let mut best = Self::default();
        let keep =
            |best: &mut Option<f64>, value: f64| *best = Some(best.unwrap_or(0.0).max(value));
        for Measured { row, outcome } in measured {
            let Some(median) = outcome.median.filter(|_| row.tuning.caching == Caching::Direct)
            else {
                continue;
            };
            let block = row.tuning.block_bytes as f64;
            let (bytes, operations) = match row.counts_bytes() {
                true => (median, median / block),
                false => (median * block, median),
            };
            match row.test.course() {
                Course::Read => {
                    keep(&mut best.read_bytes_per_s, bytes);
                    keep(&mut best.read_operations_per_s, operations);
                }
                Course::Write => {
                    keep(&mut best.write_bytes_per_s, bytes);
                    keep(&mut best.write_operations_per_s, operations);
                }
                Course::Copy | Course::Mixed => {}
            }
        }
        best
    }

    fn for_row(&self, row: &Row) -> (Option<f64>, &'static str) {
        match (row.test.course(), row.counts_bytes()) {
            (Course::Read, true) => (self.read_bytes_per_s, "the best direct read of this run"),
            (Course::Read, false) => {
                (self.read_operations_per_s, "the most direct reads a second of this run")
            }
            (Course::Write, true) => (self.write_bytes_per_s, "the best direct write of this run"),
            (Course::Write, false) => {
                (self.write_operations_per_s, "the most direct writes a second of this run")
            }
            (Course::Copy | Course::Mixed, _) => (None, "the device"),
        }
    }
}

/// Gives a row its ceiling and names the limiter.
pub(super) fn apply(measured: &mut Measured<'_>, best: &Best, site: &Site) {
    let Measured { row, outcome } = measured;
    let Some(median) = outcome.median else { return };
    if site.chain.nature == Nature::Memory || row.test == Test::Reread {
        let limiter = "copying out of the page cache".to_owned();
        let name = "memory bandwidth".to_owned();
        return ceiling::apply(outcome, Ceiling { name, limiter, ..Ceiling::default() });
    }
    if matches!(row.test, Test::Latency(_)) {
        let limiter = "system calls, and readahead where the file is cold".to_owned();
        let name = "an empty system call".to_owned();
        return ceiling::apply(outcome, Ceiling { name, limiter, ..Ceiling::default() });
    }
    if let Some((name, value)) = group_limit(row, site) {
        note_group_limit(outcome, &name, value);
        let share = median / value;
        if (AT_THE_GROUPS_LIMIT..=TOLERANCE).contains(&share) {
            let limiter = "the control group's limit".to_owned();
            let ceiling = Ceiling {
                name,
                value: Some(value),
                provenance: Provenance::Given,
                limiter,
                ..Ceiling::default()
            };
            return ceiling::apply(outcome, ceiling);
        }
    }
    // A hypervisor may show links that it does not have; elsewhere a figure above one is judged.
    let link = link(row, site).filter(|link| median <= TOLERANCE * link.1 || !site.is_virtual);
    let (ceiling, is_link) = match link {
        Some((name, value)) => {
            let provenance = Provenance::Link;
            (Ceiling { name, value: Some(value), provenance, ..Ceiling::default() }, true)
        }
        None => {
            let (value, name) = best.for_row(row);
            // The best row itself is held against nothing: that would be itself.
            let value = value.filter(|&value| value > median * 1.0001);
            let provenance = value.map_or(Provenance::Unknown, |_| Provenance::Measured);
            (Ceiling { name: name.to_owned(), value, provenance, ..Ceiling::default() }, false)
        }
    };
    let ratio = ceiling.value.map(|value| median / value);
    let limiter = limiter(row, outcome, ratio, is_link);
    ceiling::apply(outcome, Ceiling { limiter: limiter.to_owned(), ..ceiling });
}

/// In words, what most likely holds the row back.
fn limiter(row: &Row, outcome: &Outcome, ratio: Option<f64>, is_link: bool) -> &'static str {
    let fact = |key: &str| outcome.audit.get(key).and_then(serde_json::Value::as_f64);
    let cpu_ns = fact("user_ns").unwrap_or(0.0) + fact("system_ns").unwrap_or(0.0);
    let threads = f64::from(row.tuning.threads);
    let busy = fact("elapsed_ns").map(|elapsed_ns| cpu_ns / (elapsed_ns * threads));
    let is_at_the_limit = ratio.is_some_and(|ratio| ratio >= AT_THE_LIMIT);
    if row.rate_per_s.is_some() && !warning::has(&outcome.warnings, warning::LATE_STARTS) {
        "the rate asked for"
    } else if busy.is_some_and(|busy| busy >= BUSY_SHARE) {
        "the CPU of the threads that ask"
    } else if is_at_the_limit && is_link {
        "the link of the device"
    } else if row.tuning.caching != Caching::Direct && row.test.course() == Course::Read {
        if row.test.is_random() { "the latency of one read at a time" } else { "readahead" }
    } else if row.tuning.caching != Caching::Direct {
        "the page cache and its write-back"
    } else if row.requests_in_flight() == 1 {
        "the latency of one request at a time"
    } else if row.tuning.engine != Engine::Uring && row.tuning.block_bytes < 1 << 20 {
        "the latency of one request per thread at a time"
    } else {
        "the device, or what lies before it"
    }
}

/// The tightest limit that the control groups set on what the row does, in its unit.
fn group_limit(row: &Row, site: &Site) -> Option<(String, f64)> {
    let block = row.tuning.block_bytes as f64;
    let in_unit = |bytes: Option<u64>, operations: Option<u64>| {
        let bytes = bytes.map(|bytes| bytes as f64);
        let operations = operations.map(|operations| operations as f64);
        let (bytes, operations) = match row.counts_bytes() {
            true => (bytes, operations.map(|count| count * block)),
            false => (bytes.map(|bytes| bytes / block), operations),
        };
        [bytes, operations].into_iter().flatten().reduce(f64::min)
    };
    let tightest = |limit: &flatout_sys::storage::IoLimit| {
        let read = in_unit(limit.read_bytes_per_s, limit.read_operations_per_s);
        let write = in_unit(limit.write_bytes_per_s, limit.write_operations_per_s);
        match row.test.course() {
            Course::Read => read,
            Course::Write => write,
            Course::Copy => [read, write].into_iter().flatten().reduce(f64::min),
            Course::Mixed => {
                let reads = f64::from(row.read_percent) / 100.0;
                let whole = |limit: Option<f64>, share: f64| {
                    limit.filter(|_| share > 0.0).map(|limit| limit / share)
                };
                [whole(read, reads), whole(write, 1.0 - reads)]
                    .into_iter()
                    .flatten()
                    .reduce(f64::min)
            }
        }
    };
    site.limits
        .iter()
        .filter_map(|limit| Some((limit, tightest(limit)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(limit, value)| {
            (format!("the I/O limit of the control group {}", limit.group), value)
        })
}

fn note_group_limit(outcome: &mut Outcome, name: &str, value: f64) {
    let unit = if outcome.unit == "ns" { "operations/s" } else { outcome.unit.as_str() };
    let text = format!("{name} allows {value:.0} {unit}");
    warning::add(&mut outcome.warnings, Warning::new(warning::IO_LIMIT, text));
}

/// What the slowest link of the disks carries, in the unit of the row. Several disks share the
/// work, so a filesystem on many has no such bound.
fn link(row: &Row, site: &Site) -> Option<(String, f64)> {
    let disks: Vec<_> = site
        .chain
        .layers
        .iter()
        .filter_map(|layer| match layer {
            Layer::Disk(disk) => Some(disk),
            _ => None,
        })
        .collect();
    let [disk] = disks[..] else { return None };
    let link = disk.link.as_ref()?;
    let bytes_per_s = link.bytes_per_s as f64;
    let value = match row.counts_bytes() {
        true => bytes_per_s,
        false => bytes_per_s / row.tuning.block_bytes as f64,
    };
    (row.tuning.caching == Caching::Direct).then(|| (link.name.clone(), value))
}
