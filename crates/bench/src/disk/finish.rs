//! What the rows of a finished run say together: shares, checks, curves, limits.

use flatout_io::Caching;
use flatout_measure::record::{Outcome, Warning};
use flatout_measure::shape;
use flatout_measure::warning;
use flatout_sys::filesystem::Nature;
use flatout_sys::storage::Layer;
use serde_json::{Value, json};

use super::Terms;
use super::fio;
use super::harness;
use super::limit::{self, Best, Measured};
use super::pattern::{Course, Test};
use super::row::Row;
use super::site::Site;

/// Share of the bytes asked for that the disk must have moved, for the figure to be the disk's.
const MOVED_SHARE: f64 = 0.9;
/// Requests of the disk per request from which on the requests were split.
const SPLIT_RATIO: f64 = 1.5;
/// Others' share of what the disk moved that is said.
const OTHERS_SHARE: f64 = 0.10;
/// Bytes of others below which nobody is disturbed: journals and logs.
const OTHERS_BYTES: f64 = 4_194_304.0;
/// The harness's share of an operation from which on it is a doubt.
const HARNESS_SHARE: f64 = 0.01;
/// Operations per bin of a curve from which on its levels, and its flatness, mean anything.
const KNEE_OPERATIONS: f64 = 12.0;
const PLATEAU_OPERATIONS: f64 = 20.0;
/// How much faster the second read of blocks must be before the first counts as cold.
const COLD_RATIO: f64 = 1.3;

/// Completes the outcomes; `rows` has the row of each, in the same order.
pub(super) fn finish(rows: &[Row], outcomes: &mut [Outcome], site: &Site, terms: &Terms) {
    // A further outcome follows its row's own and has the same harness.
    let mut last: Option<(&Row, f64)> = None;
    for (row, outcome) in rows.iter().zip(outcomes.iter_mut()) {
        for doubt in site.doubts.iter().chain(&row.doubts) {
            warning::add(&mut outcome.warnings, doubt.clone());
        }
        label(row, outcome);
        let harness_ns = match last {
            Some((known, ns)) if known == row => ns,
            _ => harness::ns_per_operation(row),
        };
        last = Some((row, harness_ns));
        derive(row, outcome, site, harness_ns);
        if outcome.median.is_some() {
            check(row, outcome, site, harness_ns);
        }
        if row.rate_per_s.is_none() {
            curves(outcome, site);
        }
        let until = outcome.parameters.get("until").and_then(Value::as_str);
        let nearest = fio::nearest(row, &site.place, site.length_bytes, terms, until);
        for (key, text) in [("fio_command", nearest.command), ("fio_note", nearest.note)] {
            if let Some(text) = text {
                outcome.audit.insert(key.to_owned(), json!(text));
            }
        }
    }
    cold_blocks(outcomes);
    let mut measured: Vec<Measured<'_>> = rows
        .iter()
        .zip(outcomes.iter_mut())
        .map(|(row, outcome)| Measured { row, outcome })
        .collect();
    let best = Best::of(&measured);
    measured.iter_mut().for_each(|one| limit::apply(one, &best, site));
}

fn number(outcome: &Outcome, key: &str) -> Option<f64> {
    outcome.audit.get(key)?.as_f64()
}

fn warn(outcome: &mut Outcome, code: &str, text: String) {
    warning::add(&mut outcome.warnings, Warning::new(code, text));
}

/// Says what kind of row it is where the name alone would mislead.
fn label(row: &Row, outcome: &mut Outcome) {
    let block_bytes = row.tuning.block_bytes;
    if row.tuning.caching != Caching::Direct && block_bytes < 4096 {
        let text = format!(
            "blocks of {block_bytes} bytes through the page cache: system calls and readahead limit \
             this figure, not the disk"
        );
        warn(outcome, warning::READAHEAD_BOUND, text);
    }
    let until = outcome.parameters.get("until").and_then(Value::as_str);
    if until.is_some_and(|until| until != "durable") {
        let text = "the bytes were with the cache or the device, but not yet durable";
        warn(outcome, warning::NOT_DURABLE, text.to_owned());
    }
}

/// Shares and costs from the totals.
fn derive(row: &Row, outcome: &mut Outcome, site: &Site, harness_ns: f64) {
    let get = |key: &str| number(outcome, key);
    let ratio = |part: Option<f64>, whole: Option<f64>| {
        part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| part / whole)
    };
    let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    let (asked, operations) = (get("bytes"), get("operations"));
    let trials = get("trials_summed");
    let asked_moved = sum(get("read_bytes"), get("written_bytes"));
    let disk_bytes = sum(get("disk_read_bytes"), get("disk_write_bytes"));
    // Requests of the other direction are somebody else's.
    let disk_requests = match row.test.course() {
        Course::Read => get("disk_read_requests"),
        Course::Write => get("disk_write_requests"),
        Course::Copy | Course::Mixed => sum(get("disk_read_requests"), get("disk_write_requests")),
    };
    let own_bytes = sum(get("process_read_bytes"), get("process_write_bytes"));
    let cpu_ns = sum(get("user_ns"), get("system_ns"));
    // Mirrors, parity and copies on write move more for us than we ask for.
    let others = disk_bytes
        .zip(own_bytes)
        .filter(|_| moves_what_is_asked(site))
        .map(|(disk, own)| (disk - own).max(0.0));
    let reads_through_cache =
        row.test.course() == Course::Read && row.tuning.caching != Caching::Direct;
    let knows_reads = !site.chain.disks().is_empty() || site.chain.nature == Nature::Memory;
    let missed = ratio(get("process_read_bytes"), get("read_bytes"));
    let hits = missed.map(|missed| (1.0 - missed).max(0.0));
    let spread = |key: &str| ratio(get(key), trials);
    let facts = [
        ("disk_share_ratio", ratio(disk_bytes, asked_moved)),
        ("disk_requests", disk_requests),
        ("disk_requests_per_request_ratio", ratio(disk_requests, get("requests"))),
        ("cache_hit_ratio", hits.filter(|_| reads_through_cache && knows_reads)),
        ("zero_block_ratio", ratio(get("zero_blocks"), get("blocks_sampled"))),
        ("others_disk_ratio", ratio(others, disk_bytes)),
        ("others_disk_bytes", others),
        ("io_pressure_ratio", ratio(get("io_pressure_ns"), get("elapsed_ns"))),
        ("stolen_ratio", ratio(get("stolen_ns"), get("elapsed_ns").map(|ns| ns * site.cpus))),
        ("cpu_ns_per_operation", ratio(cpu_ns, operations)),
        ("cpu_s_per_gib", ratio(cpu_ns.map(|ns| ns / 1e9), asked.map(|b| b / (1u64 << 30) as f64))),
        ("harness_ns_per_operation", Some(harness_ns)),
        ("overhead_ratio", overhead_ratio(row, outcome, harness_ns)),
        ("cached_before_bytes", spread("cached_before_bytes")),
        ("cached_after_bytes", spread("cached_after_bytes")),
        ("dirty_before_bytes", spread("dirty_before_bytes")),
    ];
    for (key, value) in facts {
        if let Some(value) = value {
            outcome.audit.insert(key.to_owned(), json!(value));
        }
    }
    outcome.audit.remove("harness_overhead_ns");
    outcome.audit.insert("file_bytes".to_owned(), json!(site.length_bytes));
    if let Some(extents) = site.extents {
        outcome.audit.insert("hole_bytes".to_owned(), json!(extents.hole_bytes));
        outcome.audit.insert("unwritten_bytes".to_owned(), json!(extents.unwritten_bytes));
    }
}

/// Whether the layers below hand on each byte once.
fn moves_what_is_asked(site: &Site) -> bool {
    let multiplies = |layer: &Layer| match layer {
        Layer::Raid { .. } | Layer::Stacked { .. } => true,
        Layer::Mount { filesystem, .. } => {
            ["btrfs", "zfs", "bcachefs"].contains(&filesystem.as_str())
        }
        _ => false,
    };
    site.chain.disks().len() == 1 && !site.chain.layers.iter().any(multiplies)
}

/// The harness's share of the time of the threads.
fn overhead_ratio(row: &Row, outcome: &Outcome, harness_ns: f64) -> Option<f64> {
    let operations = number(outcome, "operations")?;
    let elapsed_ns = number(outcome, "elapsed_ns")?;
    let time_ns = elapsed_ns * f64::from(row.tuning.threads);
    (time_ns > 0.0).then(|| operations * harness_ns / time_ns)
}

/// Holds the accounts against what the row says that it did.
fn check(row: &Row, outcome: &mut Outcome, site: &Site, harness_ns: f64) {
    let has_disks = !site.chain.disks().is_empty();
    let is_cold_read = row.test.course() == Course::Read && row.test != Test::Reread;
    let is_tiny = row.tuning.block_bytes < 512;
    // The disk's account holds what others asked for, and the process's what a loop device served:
    // the smaller one is what can be proved.
    let moved = [number(outcome, "disk_read_bytes"), number(outcome, "process_read_bytes")];
    let moved = moved.into_iter().flatten().reduce(f64::min);
    let asked = number(outcome, "read_bytes").filter(|&bytes| bytes > 0.0);
    if let Some(share) = moved.zip(asked).map(|(moved, asked)| moved / asked)
        && has_disks
        && is_cold_read
        && share < MOVED_SHARE
    {
        let text = format!(
            "the disk moved {:.1} % of the bytes that were read: the rest came from somewhere else",
            share * 100.0
        );
        warn(outcome, warning::NOT_FROM_DEVICE, text);
    }
    let others_share = number(outcome, "others_disk_ratio").unwrap_or(0.0);
    // Where others ask much, the count of requests is theirs; what the queue takes at once is not.
    let counted = number(outcome, "disk_requests_per_request_ratio");
    let counted = counted.filter(|&ratio| ratio > SPLIT_RATIO && others_share <= OTHERS_SHARE);
    let is_direct = row.tuning.caching == Caching::Direct;
    match (counted, largest_request_bytes(site)) {
        (Some(ratio), _) if is_direct => {
            let text = format!("each request became {ratio:.1} requests of the disk");
            warn(outcome, warning::REQUESTS_SPLIT, text);
        }
        (None, Some(most)) if is_direct && row.tuning.block_bytes > most => {
            let text = format!(
                "requests of {} bytes are split: the disk takes at most {most} at once",
                row.tuning.block_bytes
            );
            warn(outcome, warning::REQUESTS_SPLIT, text);
        }
        _ => {}
    }
    let others = number(outcome, "others_disk_bytes").unwrap_or(0.0);
    if others_share > OTHERS_SHARE
        && others > OTHERS_BYTES
        && !is_tiny
        && row.tuning.caching == Caching::Direct
    {
        let text =
            format!("{:.0} % of what the disk moved was for somebody else", others_share * 100.0);
        warn(outcome, warning::SHARED_DEVICE, text);
    }
    if let Some(share) = number(outcome, "overhead_ratio")
        && share > HARNESS_SHARE
    {
        let text = format!(
            "the harness takes {:.1} % of the threads' time ({harness_ns:.0} ns per operation)",
            share * 100.0
        );
        warn(outcome, warning::OVERHEAD, text);
    }
}

/// The largest request that the disks take.
fn largest_request_bytes(site: &Site) -> Option<u64> {
    let of_layer = |layer: &Layer| match layer {
        Layer::Disk(disk) => disk.max_request_bytes,
        _ => None,
    };
    site.chain.layers.iter().filter_map(of_layer).min()
}

/// What the rate over time says: a burst that ended, a plateau at a round figure.
fn curves(outcome: &mut Outcome, site: &Site) {
    let Some(series) = outcome.series.first() else { return };
    if site.chain.nature == Nature::Memory || series.points.is_empty() {
        return;
    }
    let (points, unit) = (series.points.clone(), series.y.clone());
    // Counting a few requests per bin is noise, or looks like a figure that is not there.
    let operations = number(outcome, "operations").unwrap_or(0.0);
    let per_bin = operations / points.len() as f64;
    if per_bin < KNEE_OPERATIONS {
        return;
    }
    if let Some(found) = shape::shape(&points) {
        let facts = [
            ("burst_per_s", found.burst_per_s),
            ("knee_s", found.knee_s),
            ("sustained_per_s", found.sustained_per_s),
        ];
        for (key, value) in facts {
            outcome.audit.insert(key.to_owned(), json!(value));
        }
        let text = format!(
            "the rate changed {:.1} s after the run began, to {:.0} % of what it was before",
            found.knee_s,
            found.step_ratio * 100.0
        );
        warn(outcome, warning::BURST, text);
    }
    let flat = shape::plateau(&points, &unit).filter(|_| per_bin >= PLATEAU_OPERATIONS);
    if let Some(flat) = flat {
        let text = format!(
            "the rate is flat at about {} {}: likely a limit that somebody set (a token bucket)",
            flat.round_figure, flat.unit_words
        );
        warn(outcome, warning::PLATEAU, text);
    }
}

/// Compares the first read of blocks with the second one.
fn cold_blocks(outcomes: &mut [Outcome]) {
    let of = |outcomes: &[Outcome], pass: &str| {
        outcomes
            .iter()
            .filter(|outcome| outcome.id == Test::ColdBlocks.id())
            .find(|outcome| outcome.parameters.get("pass").and_then(Value::as_str) == Some(pass))
            .and_then(|outcome| Some((outcome.median?, outcome.ci95)))
    };
    let (Some(first), Some(second)) = (of(outcomes, "first"), of(outcomes, "second")) else {
        return;
    };
    let ratio = second.0 / first.0;
    let apart = match (first.1, second.1) {
        (Some(first), Some(second)) => second[0] > first[1],
        _ => true,
    };
    if ratio < COLD_RATIO || !apart {
        return;
    }
    let text = format!(
        "the second read of the same blocks is {ratio:.1} times as fast as the first: they were cold \
         in the device or behind it"
    );
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.id == Test::ColdBlocks.id()) {
        warn(outcome, warning::COLD_BLOCKS, text.clone());
    }
}
