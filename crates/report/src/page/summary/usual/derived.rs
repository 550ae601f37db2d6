//! What such hardware gives, worked out from its parts: shares of a bound, lines that a core waits
//! for, cycles of an entry, how a class of disk works. docs/report.md lists all of it.
//!
//! Where a part is not known there is no range: of many cores without known modules, of several
//! disks, of a filesystem behind a network.

use flatout_measure::record::{Better, Outcome, Provenance, Record};
use flatout_measure::warning;
use serde_json::Value;

use super::super::figure;
use super::super::lines::{is, is_paced, level, number};
use super::{Usual, is_disturbed};
use crate::label;
use crate::page::findings::{dear_mitigations, names_of_mitigations};

const MIB: f64 = 1_048_576.0;
const LONG_BYTES: f64 = 65_536.0;
/// A message that is as good as empty.
const SHORT_BYTES: f64 = 1024.0;
/// Cores up to which the lines that they wait for bound the rate, and not the modules.
const FEW_THREADS: f64 = 4.0;
/// A clock, where the run did not measure it.
const CLOCK_HZ: (f64, f64) = (2.5e9, 5e9);
/// What entering and leaving the kernel and a trivial call take, in cycles.
const ENTRY_CYCLES: (f64, f64) = (150.0, 400.0);
/// What limits copies of which the start of the program is most.
const THE_START: &str = "starting the program";
/// Shares of a measured or derived bound that well-made programs reach.
const SHARES: [(&str, f64, f64, &str); 6] = [
    ("cpu/throughput", 0.95, 1.0, "95–100 % of the units' peak"),
    ("cpu/sustained", 0.9, 1.0, "90–100 % of the units' peak for what is sustained"),
    ("cpu/dgemm", 0.85, 0.98, "85–98 % of the peak for DGEMM"),
    ("cpu/linpack", 0.7, 0.9, "70–90 % of the peak for Linpack"),
    (
        "copy/by-count",
        0.4,
        0.9,
        "40–90 % of making files and writing bytes alone: sources are opened and read, too",
    ),
    ("copy/tree", 0.4, 0.9, "40–90 % of making files and writing bytes alone"),
];
const OF_MODULES: (f64, f64, &str) = (0.7, 0.9, "70–90 % of the memory modules' peak");
const OF_LINK: (f64, f64, &str) = (0.9, 0.96, "90–96 % of a link, the rest is frames");
const OF_MAPPED: (f64, f64, &str) =
    (0.7, 1.0, "70–100 % of a bare read of memory for a mapping, whose faults take the rest");
const OF_CACHED: (f64, f64, &str) = (0.5, 0.9, "50–90 % of a bare read of memory for a copy of it");
/// Activating a row and reading a column take 27 to 30 ns whatever the generation (JEDEC), 45 where
/// another row is open; caches, interconnect and controller as much again, or twice that.
const OF_DRAM: (f64, f64, &str) =
    (60.0, 140.0, "DRAM answers in 30–45 ns, the way there and back takes 30–95");

/// What such hardware gives, in the unit of the row's figure, where it is known: of rows whose
/// blocks, requests under way and pattern are those that the range is made of.
pub(in super::super) fn derived(row: &Outcome, record: &Record) -> Option<Usual> {
    // A bound that was measured too low makes no range, nor do threads that share CPUs.
    let is_told = |code| warning::has(&row.warnings, code);
    if is_paced(row) || is_told(warning::CEILING_LOW) || is_told(warning::OVERSUBSCRIBED) {
        return None;
    }
    let from = row.ceiling.as_ref().map(|ceiling| ceiling.provenance);
    if from == Some(Provenance::Measured) && is_disturbed(row, record) {
        // A bound that was measured beside others says what they leave, not what is usual.
        return None;
    }
    let bound = bound(row);
    let test = label::test(&row.id);
    if let Some((_, low, high, origin)) = SHARES.iter().find(|(id, ..)| *id == row.id) {
        let is_known = matches!(from, Some(Provenance::Inferred | Provenance::Measured));
        // The start of a program is no part of the bound.
        let is_start = row.ceiling.as_ref().is_some_and(|ceiling| ceiling.limiter == THE_START);
        // A share of a bound on speed is so many times the least time.
        let is_time = figure(row)?.1 == row.unit && row.better == Better::Lower;
        let (low, high) = if is_time { (1.0 / high, 1.0 / low) } else { (*low, *high) };
        return of(bound.filter(|_| is_known && !is_start)?, (low, high, origin));
    }
    match (label::area(&row.id), from) {
        ("memory", Some(Provenance::Smbios)) if test != "latency" => of(bound?, OF_MODULES),
        ("memory", _) if test == "latency" => latency(row, record),
        ("memory", _) => lines(row, record),
        ("cache", Some(Provenance::Measured)) if is(row, "cache_state", "hot") && is_long(row) => {
            of(bound?, if is(row, "engine", "mmap") { OF_MAPPED } else { OF_CACHED })
        }
        ("syscall", _) if test == "getppid" && number(row, "threads") <= 1.0 => entry(record),
        // A share of what is usual for one client says nothing.
        ("network", _) if warning::has(&row.warnings, warning::SHARED_SERVER) => None,
        ("network", _) if row.parameters.contains_key("clients") => None,
        ("network", Some(Provenance::Link)) if test == "tcp-throughput" && is_long(row) => {
            of(bound?, OF_LINK)
        }
        ("network", _) if warning::has(&row.warnings, warning::LOOPBACK) => loopback(row, record),
        // A limit that somebody set says more.
        ("disk", Some(Provenance::Given)) => None,
        ("disk", _) if is(row, "caching", "direct") => super::disk::derived(row, record),
        _ => None,
    }
}

pub(super) fn of(value: f64, (low, high, origin): (f64, f64, &str)) -> Option<Usual> {
    Some(Usual { low: low * value, high: high * value, origin: origin.to_owned() })
}

/// Whether a block is so long that what it takes to ask for it does not matter.
fn is_long(row: &Outcome) -> bool {
    number(row, "block_bytes") >= LONG_BYTES
}

/// The bound in the unit of the figure.
fn bound(row: &Outcome) -> Option<f64> {
    let ceiling = row.ceiling.as_ref()?;
    match figure(row)? {
        (_, unit) if unit == row.unit => ceiling.value,
        // A time that is told as a rate.
        (median, _) => ceiling.ratio.map(|share| median / share),
    }
}

pub(super) fn is_virtual(record: &Record) -> bool {
    record.start.environment.get("hypervisor") != Some(&Value::Bool(false))
}

/// The time of so many cycles at the clock that the run found, or at any that is likely.
fn cycles_ns(record: &Record, low: f64, high: f64) -> (f64, f64) {
    let clocks = record.results.iter().filter_map(|row| row.fact_number("clock_hz"));
    let found = clocks.reduce(f64::max);
    let (slowest, fastest) = found.map_or(CLOCK_HZ, |clock| (clock, clock));
    (low / fastest * 1e9, high / slowest * 1e9)
}

/// Of memory and of caches.
fn latency(row: &Outcome, record: &Record) -> Option<Usual> {
    let (low, high, name) = match () {
        () if level(row, "DRAM") => return of(1.0, OF_DRAM),
        () if level(row, "L1") => (4.0, 5.0, "L1"),
        () if level(row, "L2") => (12.0, 20.0, "L2"),
        // Where cores share a ring 40 to 75, on the meshes of servers 70 to 130.
        () if level(row, "L3") => (40.0, 130.0, "L3"),
        () => return None,
    };
    let origin = format!("{low}–{high} cycles for {name}");
    let (low, high) = cycles_ns(record, low, high);
    Some(Usual { low, high, origin })
}

/// Of streams: each core waits for so many lines at once, each as long as memory's latency; a store
/// that goes past the caches waits for none (Little's law).
fn lines(row: &Outcome, record: &Record) -> Option<Usual> {
    const LINE_BYTES: f64 = 64.0;
    let model = record.start.environment.get("cpu_model")?.as_str()?;
    // Misses under way in the first cache, and with prefetching in the second.
    let (first, second) = match model {
        model if model.contains("AMD") => (24.0, 64.0),
        model if model.contains("Intel") => (12.0, 48.0),
        _ => return None,
    };
    let in_memory = record.results.iter().filter(|row| row.id == "memory/latency");
    let in_memory = in_memory.filter(|row| level(row, "DRAM"));
    let latency_ns = in_memory.filter_map(|row| row.median).reduce(f64::min)?;
    let threads = number(row, "threads");
    let moved = row.fact_number("application_bytes")?;
    let fetched = row.fact_number("read_bytes")? + row.fact_number("bus_bytes")? - moved;
    if !(1.0..=FEW_THREADS).contains(&threads) || fetched <= 0.0 {
        return None;
    }
    let apart = record.results.iter().find(|row| row.id == "cpu/core-sharing");
    let are_cores = threads == 1.0 || apart.and_then(|row| row.median).is_some_and(|n| n > 1.5);
    let least_cores = if are_cores { threads } else { (threads / 2.0).ceil() };
    let rate = |cores: f64, lines: f64| cores * lines * LINE_BYTES / latency_ns * 1e9;
    let origin = format!("a core waits for {first}–{second} lines at once, each memory's latency");
    let (low, high) = (rate(least_cores, first), rate(threads, second));
    Some(Usual { low: low * moved / fetched, high: high * moved / fetched, origin })
}

/// Of a call that does nothing much.
fn entry(record: &Record) -> Option<Usual> {
    let dear = dear_mitigations(&record.start.environment);
    let (mut low, mut high) = ENTRY_CYCLES;
    for (_, least, most) in &dear {
        (low, high) = (low + least, high + most);
    }
    let with = match dear.is_empty() {
        true => String::new(),
        false => format!(" with {}", names_of_mitigations(&dear)),
    };
    let origin = format!("{low}–{high} cycles for entry and exit{with}");
    let (low, high) = cycles_ns(record, low, high);
    Some(Usual { low, high, origin })
}

/// Of one stream or round trip over loopback.
fn loopback(row: &Outcome, record: &Record) -> Option<Usual> {
    if row.unit == "ns" {
        if number(row, "message_bytes") > SHORT_BYTES || row.parameters.contains_key("load_streams")
        {
            return None;
        }
        let wake_us = match (is(row, "wait", "blocking"), row.parameter_text("placement")) {
            (true, Some("apart")) if is_virtual(record) => (6.0, 20.0),
            (true, Some("apart")) => (2.0, 8.0),
            (true, Some("together")) => (1.0, 3.0),
            _ => return None,
        };
        let origin = format!(
            "two wake-ups of {}–{} µs, and four ways through the network stack of 0.5–2 µs",
            wake_us.0, wake_us.1
        );
        let of_both = |wake_us: f64, stack_us: f64| (2.0 * wake_us + 4.0 * stack_us) * 1e3;
        return Some(Usual { low: of_both(wake_us.0, 0.5), high: of_both(wake_us.1, 2.0), origin });
    }
    const SEGMENT_BYTES: f64 = 65_536.0;
    let is_one = label::test(&row.id) == "tcp-throughput" && number(row, "streams") == 1.0;
    if !is_one || !is_long(row) {
        return None;
    }
    // The two copies of a byte overlap on two CPUs; each is what a cached read does.
    let is_copy = |row: &&Outcome| {
        label::area(&row.id) == "cache"
            && is(row, "cache_state", "hot")
            && is(row, "engine", "sync")
            && number(row, "block_bytes") == MIB
            && number(row, "threads") == 1.0
    };
    let copied =
        record.results.iter().find(is_copy).filter(|row| !is_disturbed(row, record))?.median?;
    let origin = "each 64 KiB is copied as a cached read is, and takes 3–12 µs of network stack";
    let rate = |stack_s: f64| 8.0 * SEGMENT_BYTES / (SEGMENT_BYTES / copied + stack_s);
    Some(Usual { low: rate(12e-6), high: rate(3e-6), origin: origin.to_owned() })
}
