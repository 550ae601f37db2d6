//! Is a figure good? What such hardware usually gives, as far as the record knows the hardware; or
//! what this machine gave in earlier records.
//!
//! Nothing here comes from other people's machines: a range follows from the speed of a link, the
//! peak of memory modules or of arithmetic units, or from how a class of device works.

use flatout_measure::comparison::are_one_machine;
use flatout_measure::record::{Outcome, Provenance, Record};
use serde_json::Value;

use super::figure;
use super::lines::{is, number, rows};
use crate::{label, quantity::Scale};

/// Shares of a bound that well-made programs reach, and where that is from.
const OF_MODULES: (f64, f64, &str) = (0.7, 0.9, "70–90 % of the memory modules' peak");
const OF_PEAK: (f64, f64, &str) = (0.7, 0.9, "70–90 % of the peak for Linpack");
const OF_LINK: (f64, f64, &str) = (0.9, 0.96, "90–96 % of a link, the rest is frames");
/// A seek takes 4 to 9 ms, half a turn at 7,200 rpm 4 ms.
const OF_HEADS: (f64, f64, &str) = (70.0, 120.0, "a seek and half a turn for each request");
/// Reading a page of flash takes 40 to 100 µs, and way and kernel 20 µs.
const OF_FLASH: (f64, f64, &str) = (8e3, 16e3, "flash answers in 60–120 µs");
/// The outer tracks of disks with 7,200 rpm pass by at twice the rate of the inner ones.
const OF_TRACKS: (f64, f64, &str) = (1e8, 2.8e8, "tracks at 7,200 rpm");
/// Earlier records that make a range.
const LEAST_RECORDS: usize = 2;

/// A range in the unit of the figure, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usual {
    pub low: f64,
    pub high: f64,
    pub origin: String,
}

impl Usual {
    /// The range with as many digits as the figure, without its unit.
    pub fn text(&self, scale: &Scale) -> String {
        format!("{}–{}", scale.number(self.low), scale.number(self.high))
    }
}

/// What this machine gave for the line of that name in earlier records, from the least to the most.
pub(super) fn here(name: &str, record: &Record, earlier: &[Record]) -> Option<Usual> {
    let is_here = |other: &Record| {
        are_one_machine(&record.start.environment, &other.start.environment) == Some(true)
    };
    // A record may lie in a folder twice.
    let begun = |record: &Record| (record.start.time.clone(), record.start.seed);
    let mut seen = vec![begun(record)];
    let mut is_new = |other: &Record| {
        let is_new = !seen.contains(&begun(other));
        seen.push(begun(other));
        is_new
    };
    let figures: Vec<f64> = earlier
        .iter()
        .filter(|other| is_here(other) && is_new(other))
        .filter_map(|other| {
            let rows = rows(other);
            let (_, row) = rows.iter().find(|(known, _)| known == name)?;
            Some(figure(row)?.0)
        })
        .collect();
    let low = figures.iter().copied().fold(f64::MAX, f64::min);
    let high = figures.iter().copied().fold(f64::MIN, f64::max);
    let count = figures.len();
    let origin = format!("this machine in {count} earlier records");
    (count >= LEAST_RECORDS).then_some(Usual { low, high, origin })
}

/// What such hardware gives, where it is known.
pub(super) fn derived(row: &Outcome, environment: &Value) -> Option<Usual> {
    let bound = row.ceiling.as_ref().and_then(|ceiling| Some((ceiling.provenance, ceiling.value?)));
    let of = |value: f64, (low, high, origin): (f64, f64, &str)| Usual {
        low: low * value,
        high: high * value,
        origin: origin.to_owned(),
    };
    match (row.id.as_str(), bound) {
        ("cpu/linpack", Some((Provenance::Inferred | Provenance::Measured, peak))) => {
            Some(of(peak, OF_PEAK))
        }
        ("memory/stream", Some((Provenance::Smbios, peak))) => Some(of(peak, OF_MODULES)),
        (_, Some((Provenance::Link, link))) => Some(of(link, OF_LINK)),
        (id, _) if label::area(id) == "disk" && is(row, "caching", "direct") => {
            let class = class(environment)?;
            match (label::test(id), class) {
                ("sequential-read" | "sequential-write", Class::Rotating) => {
                    Some(of(1.0, OF_TRACKS))
                }
                ("random-read", Class::Rotating) if is_single(row) => Some(of(1.0, OF_HEADS)),
                ("random-read", Class::Flash) if is_single(row) => Some(of(1.0, OF_FLASH)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// One small request at a time.
fn is_single(row: &Outcome) -> bool {
    number(row, "depth") == 1.0
        && number(row, "threads") == 1.0
        && number(row, "block_bytes") == 4096.0
}

/// How a disk works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Rotating,
    Flash,
}

/// The class of the one disk below; none of a virtual one, of several, or behind a network.
fn class(environment: &Value) -> Option<Class> {
    let place = environment.get("storage")?.get(0)?;
    let layers = place.get("layers")?.as_array()?;
    let kind = |layer: &Value| layer.get("kind").and_then(Value::as_str).map(str::to_owned);
    let plain =
        |layer: &Value| matches!(kind(layer).as_deref(), Some("mount" | "partition" | "disk"));
    let disks: Vec<&Value> =
        layers.iter().filter(|layer| kind(layer).as_deref() == Some("disk")).collect();
    let [disk] = disks[..] else { return None };
    let is_virtual = environment.get("hypervisor") != Some(&Value::Bool(false));
    if is_virtual || !layers.iter().all(plain) {
        return None;
    }
    let transport = disk.get("transport").and_then(Value::as_str);
    match (disk.get("rotational")?.as_bool()?, transport) {
        (true, Some("sata" | "ata" | "sas")) => Some(Class::Rotating),
        (false, Some("nvme" | "pcie" | "sata" | "ata" | "sas")) => Some(Class::Flash),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::Ceiling;
    use serde_json::json;

    use super::super::tests::{record, row};
    use super::*;

    fn disk(rotational: bool, transport: &str) -> Value {
        json!({"hypervisor": false, "storage": [{"layers": [{"kind": "mount"},
            {"kind": "disk", "rotational": rotational, "transport": transport}]}]})
    }

    fn range(row: &Outcome, environment: &Value) -> Option<(f64, f64)> {
        derived(row, environment).map(|usual| (usual.low, usual.high))
    }

    #[test]
    fn a_class_of_disk_gives_what_its_mechanics_allow() {
        let parameters =
            json!({"caching": "direct", "depth": 1, "threads": 1, "block_bytes": 4096});
        let read = row("disk/random-read", parameters, Some(1.0));
        assert_eq!(range(&read, &disk(true, "sata")), Some((70.0, 120.0)));
        assert_eq!(range(&read, &disk(false, "nvme")), Some((8e3, 16e3)));
        assert_eq!(range(&read, &disk(false, "virtio")), None);
        let mut virtual_machine = disk(false, "nvme");
        virtual_machine["hypervisor"] = json!(true);
        assert_eq!(range(&read, &virtual_machine), None);
        let mut encrypted = disk(false, "nvme");
        encrypted["storage"][0]["layers"][0]["kind"] = json!("dm");
        assert_eq!(range(&read, &encrypted), None);
        let cached = row("disk/sequential-read", json!({"caching": "buffered"}), Some(1.0));
        assert_eq!(range(&cached, &disk(true, "sata")), None);
    }

    #[test]
    fn shares_of_known_bounds_are_usual() {
        let bounded = |id: &str, provenance| {
            let ceiling = Ceiling { value: Some(100.0), provenance, ..Ceiling::default() };
            Outcome { ceiling: Some(ceiling), ..row(id, json!({}), Some(1.0)) }
        };
        let range = |id, provenance| range(&bounded(id, provenance), &Value::Null);
        assert_eq!(range("cpu/linpack", Provenance::Inferred), Some((70.0, 90.0)));
        assert_eq!(range("memory/stream", Provenance::Smbios), Some((70.0, 90.0)));
        assert_eq!(range("memory/stream", Provenance::BestSeen), None);
        assert_eq!(range("network/tcp-throughput", Provenance::Link), Some((90.0, 96.0)));
        assert_eq!(range("syscall/read", Provenance::Measured), None);
    }

    #[test]
    fn earlier_records_of_the_same_machine_make_a_range() {
        let of = |seed: u64, cpu: &str, figure: f64| {
            let mut made = record(vec![row("disk/sequential-read", json!({}), Some(figure))]);
            made.start.environment = json!({ "cpu_model": cpu });
            made.start.seed = seed;
            made
        };
        let now = of(1, "a", 9.0);
        let earlier =
            [of(1, "a", 9.0), of(2, "a", 3.0), of(2, "a", 3.0), of(3, "a", 5.0), of(4, "b", 99.0)];
        let usual = here("disk read", &now, &earlier).unwrap();
        assert_eq!((usual.low, usual.high), (3.0, 5.0));
        assert_eq!(usual.origin, "this machine in 2 earlier records");
        assert_eq!(usual.text(&Scale::of("ns", 4.0)), "3.00–5.00");
        assert_eq!(here("disk read", &now, &earlier[..3]), None);
        assert_eq!(here("disk write", &now, &earlier), None);
    }
}
