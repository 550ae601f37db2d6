//! What a class of disk gives by how it works.

use flatout_measure::record::{Outcome, Record};
use serde_json::Value;

use super::super::lines::number;
use super::Usual;
use super::derived::{is_virtual, of};
use crate::label;

/// A seek takes 4 to 9 ms, half a turn at 7,200 rpm 4 ms.
const HEADS: Range = (70.0, 120.0, "a seek and half a turn for each request");
/// The drive chooses among 32 requests which is nearest.
const SORTED_HEADS: Range = (120.0, 250.0, "shorter seeks where 32 requests may be sorted");
/// The outer tracks of disks with 7,200 rpm pass by at twice the rate of the inner ones.
const TRACKS: Range = (1e8, 2.8e8, "tracks at 7,200 rpm");
/// Reading a page of flash takes 40 to 100 µs, and way and kernel 20 µs.
const FLASH: Range = (8e3, 16e3, "flash answers in 60–120 µs");
/// 16 dies at work at least, and 1.5 µs of a CPU for each request.
const DEEP_FLASH: Range = (1.6e5, 6.6e5, "16 dies of flash and more, a CPU for 1.5 µs a request");
/// 32 requests at most; 6 Gbit/s carry 146,000 pages of 4 KiB.
const DEEP_SATA: Range = (5e4, 1e5, "at most 32 requests under way on SATA");
/// The way through a hypervisor takes 10 to 50 µs, flash behind it 40 to 100 µs.
const FLASH_BEHIND: Range = (6.7e3, 2e4, "flash behind a hypervisor answers in 50–150 µs");
const DEEP_BEHIND: Range =
    (1e5, 2.5e5, "16 dies of flash behind a hypervisor, a CPU for 4 µs a request");
/// PCIe 3.0 and 4.0 with four lanes.
const LANES: (f64, f64) = (3.94e9, 7.88e9);
/// Shares of its link that a drive of flash reads and writes at.
const READ_SHARE: (f64, f64) = (0.5, 0.9);
const WRITE_SHARE: (f64, f64) = (0.25, 0.8);

/// Smallest request of a stream, and least of it under way at once: at 8 GB/s and 100 µs a drive of
/// flash needs 0.8 MB, and the next request while it answers the first.
const STREAM_BLOCK_BYTES: f64 = 131_072.0;
const STREAM_BYTES: f64 = 2_097_152.0;

/// Low, high, and where that is from.
type Range = (f64, f64, &'static str);

/// What the class of the disk gives in rows of whole streams and of single pages.
pub(super) fn derived(row: &Outcome, record: &Record) -> Option<Usual> {
    let (class, link) = class(record)?;
    let share = match label::test(&row.id) {
        "sequential-read" => READ_SHARE,
        "sequential-write" => WRITE_SHARE,
        "random-read" | "depth-sweep" => return pages(row, class),
        _ => return None,
    };
    if !is_stream(row) {
        return None;
    }
    if class == Class::Rotating {
        return of(1.0, TRACKS);
    }
    let (low, high) = link.map_or(LANES, |link| (link, link));
    let from = match (class, link) {
        (Class::Virtual, _) => "one drive of flash on 4 lanes of PCIe 3.0–4.0 behind a hypervisor",
        (_, Some(_)) => "flash at its link",
        _ => "flash on 4 lanes of PCIe 3.0–4.0",
    };
    let word = if share == READ_SHARE { "reads" } else { "writes" };
    let origin =
        format!("{from} {word} at {:.0}–{:.0} % of that", 100.0 * share.0, 100.0 * share.1);
    Some(Usual { low: low * share.0, high: high * share.1, origin })
}

/// Whether a stream keeps a disk busy: shares of a link are those of large requests, some at once.
fn is_stream(row: &Outcome) -> bool {
    let block_bytes = number(row, "block_bytes");
    let under_way_bytes = block_bytes * number(row, "threads") * number(row, "depth");
    block_bytes >= STREAM_BLOCK_BYTES && under_way_bytes >= STREAM_BYTES
}

/// Requests of 4 KiB: one at a time, or 64.
fn pages(row: &Outcome, class: Class) -> Option<Usual> {
    let is_plain = number(row, "threads") == 1.0 && number(row, "block_bytes") == 4096.0;
    let range = match (class, number(row, "depth")) {
        _ if !is_plain => return None,
        (Class::Rotating, 1.0) => HEADS,
        (Class::Sata | Class::Nvme, 1.0) => FLASH,
        (Class::Virtual, 1.0) => FLASH_BEHIND,
        (Class::Rotating, 64.0) => SORTED_HEADS,
        (Class::Sata, 64.0) => DEEP_SATA,
        (Class::Nvme, 64.0) => DEEP_FLASH,
        (Class::Virtual, 64.0) => DEEP_BEHIND,
        _ => return None,
    };
    of(1.0, range)
}

/// How a disk works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Rotating,
    Sata,
    Nvme,
    /// What lies behind it nobody knows: it is held against flash.
    Virtual,
}

/// The class of the one disk below, and the rate of its link; none of several, or behind a network.
fn class(record: &Record) -> Option<(Class, Option<f64>)> {
    let layers = record.start.environment["storage"][0]["layers"].as_array()?;
    let is_plain =
        |layer: &Value| matches!(layer["kind"].as_str(), Some("mount" | "partition" | "disk"));
    let disks: Vec<&Value> = layers.iter().filter(|layer| layer["kind"] == "disk").collect();
    let [disk] = disks[..] else { return None };
    if !layers.iter().all(is_plain) {
        return None;
    }
    let link = || disk["link"]["bytes_per_s"].as_f64();
    let rotates = disk["rotational"].as_bool();
    let transport = disk["transport"].as_str()?;
    Some(match (rotates, transport) {
        (_, "virtio" | "nvme" | "scsi") if is_virtual(record) => (Class::Virtual, None),
        _ if is_virtual(record) => return None,
        (Some(true), "sata" | "ata" | "sas") => (Class::Rotating, None),
        (Some(false), "sata" | "ata" | "sas") => (Class::Sata, Some(link().unwrap_or(6e8))),
        (Some(false), "nvme" | "pcie") => (Class::Nvme, link()),
        _ => return None,
    })
}
