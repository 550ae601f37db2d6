//! Is a figure good? What such hardware usually gives, as far as the record knows the hardware; or
//! what this machine gave in earlier records.
//!
//! Nothing here comes from other people's machines: a range follows from the speed of a link, the
//! peak of memory modules or of arithmetic units, or from how a class of device works:
//! `usual/derived.rs`, of disks `usual/disk.rs`.

mod derived;
mod disk;

use flatout_measure::comparison::are_one_machine;
use flatout_measure::record::{Outcome, Record};
use flatout_measure::{load, statistics, warning};

pub(super) use self::derived::derived;
use super::lines::rows;
use super::{IN_RECORDS, figure, reservation};
use crate::label;
use crate::page::machine;
use crate::quantity::{self, Scale};

/// Earlier records that make a range.
const LEAST_RECORDS: usize = 2;
/// Areas whose figures are those of a place, and not of the whole machine.
const OF_A_PLACE: [&str; 3] = ["disk", "cache", "copy"];

/// What a line of the same name may have asked for otherwise: those are other figures.
const ALIKE: &str = "block_bytes message_bytes depth threads streams engine caching until extents \
    rate_operations_per_s";

/// A range in the unit of the figure, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usual {
    pub low: f64,
    pub high: f64,
    pub origin: String,
}

impl Usual {
    /// The range in the scale of the figure, without its unit, short: `83–106`, `29k–79k`.
    pub fn text(&self, scale: &Scale) -> String {
        let [low, high] = [self.low, self.high].map(|value| value / scale.divisor);
        let (divisor, sign) = if high >= 999.5 { (1e3, "k") } else { (1.0, "") };
        let number = |value: f64| match value / divisor {
            value if value >= 9.95 => quantity::count(value.round() as u64),
            value if value >= 0.995 || divisor > 1.0 => format!("{value:.1}"),
            value if value >= 0.095 => format!("{value:.2}"),
            value => quantity::number(value),
        };
        format!("{}{sign}–{}{sign}", number(low), number(high))
    }
}

/// Whether others were at work beside a row.
fn is_disturbed(row: &Outcome, record: &Record) -> bool {
    [warning::LOCAL_LOAD, warning::DISTURBED].iter().any(|code| warning::has(&row.warnings, code))
        || record.end.load.as_ref().is_some_and(load::is_busy)
}

/// What this machine, at the same place, gave for the line of that name in earlier records, from the
/// least to the most.
pub(super) fn here(
    name: &str,
    row: &Outcome,
    record: &Record,
    earlier: &[Record],
) -> Option<Usual> {
    let (_, unit) = figure(row)?;
    let is_like = |other: &&Outcome| {
        ALIKE.split(' ').all(|key| row.parameters.get(key) == other.parameters.get(key))
    };
    let is_of_a_place = OF_A_PLACE.contains(&label::area(&row.id));
    let is_here = |other: &Record| {
        let [one, other] = [record, other].map(|record| &record.start.environment);
        are_one_machine(one, other) == Some(true)
            && (!is_of_a_place || machine::are_one_place(one, other))
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
            let row = Some(*row).filter(is_like)?;
            // A figure that its own summary does not trust tells nothing of others, nor does one beside them.
            let (figure, _) = figure(row).filter(|(_, known)| *known == unit)?;
            (reservation(row).is_none() && !is_disturbed(row, other)).then_some(figure)
        })
        .collect();
    let (low, high) = statistics::extremes(&figures).filter(|_| figures.len() >= LEAST_RECORDS)?;
    let origin = format!("{IN_RECORDS}{} other records", figures.len());
    Some(Usual { low, high, origin })
}

#[cfg(test)]
mod tests {
    use flatout_measure::record::{Better, Ceiling, Load, Outcome, Provenance};
    use flatout_measure::warning::Warning;
    use serde_json::{Value, json};

    use super::super::tests::{record, row};
    use super::*;

    fn disk(rotational: bool, transport: &str) -> Value {
        json!({"hypervisor": false, "storage": [{"layers": [{"kind": "mount"},
            {"kind": "disk", "rotational": rotational, "transport": transport}]}]})
    }

    fn range(row: &Outcome, environment: &Value) -> Option<(f64, f64)> {
        let mut record = record(Vec::new());
        record.start.environment = environment.clone();
        derived(row, &record).map(|usual| (usual.low, usual.high))
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
        assert_eq!(range(&read, &virtual_machine), Some((6.7e3, 2e4)));
        let mut encrypted = disk(false, "nvme");
        encrypted["storage"][0]["layers"][0]["kind"] = json!("dm");
        assert_eq!(range(&read, &encrypted), None);
        let mut paced = read.clone();
        paced.parameters.insert("rate_operations_per_s".to_owned(), json!(5000));
        assert_eq!(range(&paced, &disk(true, "sata")), None);
        let told = |caching, block: u64, depth: u64| {
            let parameters = json!({"caching": caching, "block_bytes": block, "depth": depth,
                "threads": 1, "engine": "sync"});
            row("disk/sequential-read", parameters, Some(1.0))
        };
        let stream = |caching| told(caching, 1 << 20, 16);
        for (block, depth) in [(512, 1), (512, 4096), (1 << 20, 1)] {
            let small = told("direct", block, depth);
            assert_eq!(range(&small, &disk(false, "nvme")), None, "{block} bytes, depth {depth}");
        }
        assert_eq!(range(&stream("buffered"), &disk(true, "sata")), None);
        assert_eq!(range(&stream("direct"), &disk(true, "sata")), Some((1e8, 2.8e8)));
        let mut linked = disk(false, "nvme");
        linked["storage"][0]["layers"][1]["link"] = json!({"bytes_per_s": 1e10});
        assert_eq!(range(&stream("direct"), &linked), Some((5e9, 9e9)));
    }

    #[test]
    fn shares_of_known_bounds_are_usual() {
        let bounded = |id: &str, provenance| {
            let ceiling = Ceiling { value: Some(100.0), provenance, ..Ceiling::default() };
            let parameters = json!({"block_bytes": 65_536});
            Outcome { ceiling: Some(ceiling), ..row(id, parameters, Some(1.0)) }
        };
        let range = |id, provenance| range(&bounded(id, provenance), &Value::Null);
        assert_eq!(range("cpu/linpack", Provenance::Inferred), Some((70.0, 90.0)));
        assert_eq!(range("memory/stream", Provenance::Smbios), Some((70.0, 90.0)));
        assert_eq!(range("memory/stream", Provenance::BestSeen), None);
        assert_eq!(range("network/tcp-throughput", Provenance::Link), Some((90.0, 96.0)));
        assert_eq!(range("disk/random-read", Provenance::Link), None);
        assert_eq!(range("syscall/read", Provenance::Measured), None);
    }

    fn told(id: &str, parameters: Value, facts: Value, median: f64) -> Outcome {
        let audit = facts.as_object().cloned().unwrap_or_default();
        Outcome { audit, ..row(id, parameters, Some(median)) }
    }

    #[test]
    fn a_time_is_usually_longer_than_the_least() {
        let copy = |limiter: &str| {
            let ceiling = Ceiling::measured("files made", Some(1000.0)).limited_by(limiter);
            let (unit, better) = ("ns".to_owned(), Better::Lower);
            let row = row("copy/by-count", json!({"files": 1}), Some(1500.0));
            Outcome { unit, better, ceiling: Some(ceiling), ..row }
        };
        let record = record(Vec::new());
        let usual = derived(&copy("moving bytes"), &record).unwrap();
        assert_eq!((usual.low, usual.high), (1000.0 / 0.9, 1000.0 / 0.4));
        assert_eq!(derived(&copy("starting the program"), &record), None);
        let mut beside = copy("moving bytes");
        beside.warnings.push(Warning::new(warning::LOCAL_LOAD, ""));
        assert_eq!(derived(&beside, &record), None, "so is its bound");
        let mut busy = record;
        busy.end.load = Some(Load { cpus: 2, others_cpus: Some(1.6), ..Load::default() });
        assert_eq!(derived(&copy("moving bytes"), &busy), None);
    }

    #[test]
    fn a_core_fetches_what_it_may_wait_for() {
        let latency = told("memory/latency", json!({}), json!({"level": "DRAM"}), 100.0);
        let stream = |threads: u32| {
            let facts = json!({"application_bytes": 300, "read_bytes": 200, "bus_bytes": 300});
            told("memory/stream", json!({ "threads": threads }), facts, 1.0)
        };
        let mut record = record(vec![latency]);
        record.start.environment = json!({"cpu_model": "AMD EPYC"});
        let of =
            |threads, record: &Record| derived(&stream(threads), record).map(|usual| usual.low);
        let one = 24.0 * 64.0 / 100e-9 * 1.5;
        assert_eq!(of(1, &record), Some(one));
        assert_eq!(of(2, &record), Some(one), "two threads may share a core");
        record.results.push(told("cpu/core-sharing", json!({}), json!({}), 2.0));
        assert_eq!(of(2, &record), Some(2.0 * one));
        assert_eq!(of(64, &record), None, "the modules bound these");
        record.start.environment = json!({"cpu_model": "Neoverse"});
        assert_eq!(of(1, &record), None);
    }

    #[test]
    fn an_entry_takes_what_its_mitigations_add() {
        let clock = told("cpu/throughput", json!({}), json!({"clock_hz": 2e9}), 1.0);
        let mut record = record(vec![clock]);
        let call = row("syscall/getppid", json!({}), Some(1.0));
        let of = |record: &Record| derived(&call, record).map(|usual| (usual.low, usual.high));
        assert_eq!(of(&record), Some((75.0, 200.0)));
        record.start.environment = json!({"mitigations": {"meltdown": "Mitigation: PTI"}});
        assert_eq!(of(&record), Some((175.0, 450.0)));
    }

    #[test]
    fn a_loopback_copies_and_passes_the_stack() {
        let copy =
            json!({"cache_state": "hot", "engine": "sync", "block_bytes": 1 << 20, "threads": 1});
        let record = record(vec![row("cache/block-sweep", copy, Some(65_536.0 / 8e-6))]);
        let loopback = |id, parameters| Outcome {
            warnings: vec![Warning::new(warning::LOOPBACK, "")],
            ..row(id, parameters, Some(1.0))
        };
        let stream = |block: u64| {
            loopback("network/tcp-throughput", json!({"streams": 1, "block_bytes": block}))
        };
        assert_eq!(derived(&stream(64), &record), None, "calls, not copies");
        let stream = stream(65_536);
        let usual = derived(&stream, &record).unwrap();
        assert!((usual.low - 8.0 * 65_536.0 / 20e-6).abs() < 1.0, "{usual:?}");
        let parameters = json!({"wait": "blocking", "placement": "apart"});
        let mut trip = loopback("network/tcp-latency", parameters);
        trip.unit = "ns".to_owned();
        let usual = derived(&trip, &record).unwrap();
        assert_eq!((usual.low, usual.high), (14_000.0, 48_000.0));
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
        let here =
            |name, now: &Record, earlier: &[Record]| here(name, &now.results[0], now, earlier);
        let usual = here("disk read", &now, &earlier).unwrap();
        assert_eq!((usual.low, usual.high), (3.0, 5.0));
        assert_eq!(usual.origin, "this machine in 2 other records");
        assert_eq!(usual.text(&Scale::of("ns", 4.0)), "3.0–5.0");
        assert_eq!(usual.text(&Scale::of("ns", 1e6)), "0.00000300–0.00000500");
        assert_eq!(here("disk read", &now, &earlier[..3]), None);
        assert_eq!(here("disk write", &now, &earlier), None);
        let mut small = now.clone();
        small.results[0].parameters.insert("block_bytes".to_owned(), json!(512));
        assert_eq!(here("disk read", &small, &earlier), None, "other blocks");
        let refused = |change: &dyn Fn(&mut Record)| {
            let mut earlier = earlier.clone();
            change(&mut earlier[3]);
            assert_eq!(here("disk read", &now, &earlier), None);
        };
        refused(&|other| other.start.environment["storage"] = json!([{"filesystem": "xfs"}]));
        refused(&|other| other.results[0].unit = "operations/s".to_owned());
        refused(&|other| {
            other.results[0].warnings = vec![Warning::new(warning::MEMORY_FILESYSTEM, "")];
        });
        refused(&|other| {
            other.end.load = Some(Load { cpus: 2, others_cpus: Some(1.6), ..Load::default() });
        });
    }
}
