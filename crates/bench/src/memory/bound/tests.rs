//! Ceilings and traffic, on machines whose modules are known and on those where they are not.

use flatout_measure::fact::Facts;
use flatout_measure::record::Provenance;
use flatout_measure::{Outcome, Status, Warning, blank, warning};

use super::super::levels::Level;
use super::super::row::Terms;
use super::*;
use crate::Extent;

/// A server with 8 channels of DDR4-3200 and 32 MiB of last cache (AMD Zen 3).
fn zen() -> Machine {
    let level = |name, bytes| Level {
        name,
        bytes,
        latency_ns: None,
        provenance: Provenance::Measured,
        declared_bytes: bytes,
    };
    let sizes = [("L1", Some(32 << 10)), ("L2", Some(512 << 10)), ("L3", Some(32 << 20))];
    let sizes = sizes.into_iter().chain([(MEMORY, None)]);
    let levels = sizes.map(|(name, bytes)| level(name, bytes)).collect();
    let modules = Ceiling::known("8 channels of 25.6 GB/s", Some(204.8e9), Provenance::Smbios);
    let levels = Levels { levels, largest_declared_bytes: Some(32 << 20) };
    Machine { levels, modules, core: None, cpus: (0..16).collect(), last_caches: 1 }
}

/// The rows as if measured: every line crosses the bus at `core` bytes per second and thread.
fn measured(machine: &Machine, core: f64) -> Vec<Measured<RateRow>> {
    let terms = Terms {
        extent: Extent::Full,
        threads: vec![1, 16],
        quota_cpus: None,
        bytes: 1_280_000_000,
        room_bytes: 64 << 30,
        room_reason: String::new(),
        machine,
    };
    let measured = |row: RateRow| {
        let (moved, crossed) = row.kernel().and_then(traffic).unwrap_or((1.0, 1.0));
        let median = core * f64::from(row.parts.threads) * moved / crossed;
        let (samples, n) = (vec![median, median * 1.1], 2);
        let outcome = Outcome { median: Some(median), samples, n, ..blank(&row) };
        let facts = Facts::default().with(fact::APPLICATION_BYTES, 1200_u64);
        Measured { row, outcome, facts, further: Vec::new() }
    };
    terms.rows().unwrap().into_iter().map(measured).collect()
}

fn finished(machine: &Machine, core: f64) -> Vec<Measured<RateRow>> {
    let mut rows = measured(machine, core);
    apply(&mut rows, machine, None);
    rows
}

fn of(rows: &[Measured<RateRow>], wanted: Work, threads: u32) -> &Measured<RateRow> {
    let is_it =
        |one: &&Measured<RateRow>| one.row.work == wanted && one.row.parts.threads == threads;
    rows.iter().find(is_it).unwrap()
}

fn bound(measured: &Measured<RateRow>) -> Ceiling {
    measured.outcome.ceiling.clone().unwrap()
}

#[test]
fn many_cores_are_held_against_what_the_modules_deliver() {
    let rows = finished(&zen(), 10e9);
    for (kernel, share) in
        [(Kernel::Triad, 0.75), (Kernel::NtTriad, 1.0), (Kernel::Copy, 2.0 / 3.0)]
    {
        let ceiling = bound(of(&rows, Work::Stream(kernel), 16));
        assert_eq!((ceiling.value, ceiling.provenance), (Some(204.8e9), Provenance::Smbios));
        assert!((ceiling.ratio.unwrap() - share * 160.0 / 204.8).abs() < 1e-9);
    }
}

#[test]
fn a_rate_that_the_modules_cannot_deliver_is_refused() {
    let status = |core| of(&finished(&zen(), core), Work::Stream(Kernel::Triad), 16).outcome.status;
    // 182 GB/s of the program: more than modules give whose lines are read before they are written, and
    // what a CPU reaches that does not do that.
    assert_ne!(status(182e9 / 12.0), Status::Invalid);
    assert_eq!(status(214e9 / 12.0), Status::Invalid);
}

#[test]
fn arrays_that_a_cache_may_hold_are_no_evidence_of_memory() {
    let machine = zen();
    let mut rows = measured(&machine, 20e9);
    for one in &mut rows {
        if let Work::Stream(_) = one.row.work {
            one.row.warnings.push(Warning::new(warning::FITS_IN_CACHE, "memory is short"));
        }
    }
    apply(&mut rows, &machine, None);
    let triad = of(&rows, Work::Stream(Kernel::Triad), 16);
    assert_eq!(triad.facts.text(fact::LEVEL), Some(CACHE_OR_MEMORY));
    // More than the modules deliver: it came from a cache, and is none of theirs.
    assert!(triad.outcome.median.is_some_and(|rate| rate > 204.8e9), "{triad:?}");
    assert_eq!(bound(triad).limiter, CACHE_OR_MEMORY);
    let is_roof = |part: &Part| matches!(part, Part::Rate { .. });
    assert!(!roofline(triad, &machine).iter().any(is_roof));
}

#[test]
fn one_core_is_held_against_its_own_chases_or_its_fastest_row() {
    let core =
        |value| Ceiling::known("parallel chases, one core", Some(value), Provenance::Measured);
    let bounds = |core: Option<Ceiling>| {
        let machine = Machine { core, ..zen() };
        let mut rows = measured(&machine, 10e9);
        // One row is faster than all others.
        let fast = rows.iter().position(|one| {
            one.row.work == Work::Stream(Kernel::NtTriad) && one.row.parts.threads == 1
        });
        rows[fast.unwrap()].outcome.median = Some(20e9);
        apply(&mut rows, &machine, None);
        let at = |kernel| bound(of(&rows, Work::Stream(kernel), 1));
        (at(Kernel::Triad), at(Kernel::NtTriad))
    };
    let (triad, fastest) = bounds(Some(core(40e9)));
    assert_eq!((triad.ratio, fastest.ratio), (Some(0.25), Some(0.5)));
    assert_eq!(triad.name, "parallel chases, one core");
    let (triad, fastest) = bounds(Some(core(12e9)));
    assert_eq!((triad.value, fastest.value), (Some(15e9), None), "a row is not beside itself");
    assert_eq!((triad.ratio, triad.provenance), (None, Provenance::BestSeen), "and is no bound");
    assert_eq!(triad.name, "fastest memory traffic of 1 CPU");
    let (triad, fastest) = bounds(None);
    assert_eq!((triad.value, fastest.value), (Some(15e9), None));
}

#[test]
fn caches_have_a_name_and_no_ceiling() {
    let rows = finished(&zen(), 50e9);
    for (bytes, name) in [(16 << 10, "L1"), (256 << 10, "L2"), (16 << 20, "L3")] {
        let row = of(&rows, Work::WorkingSet { kernel: Kernel::Read, bytes }, 1);
        assert_eq!(row.facts.text(fact::LEVEL), Some(name));
        assert_eq!((bound(row).value, bound(row).limiter.as_str()), (None, name));
        assert_eq!(row.facts.value(fact::BUS_BYTES), None);
    }
    let bytes = 128 << 20;
    let row = of(&rows, Work::WorkingSet { kernel: Kernel::Copy, bytes }, 1);
    assert_eq!(row.facts.text(fact::LEVEL), Some(MEMORY));
    assert_eq!(row.facts.count(fact::BUS_BYTES), Some(1800), "each line written is read first");
}

#[test]
fn what_a_microcode_does_is_not_guessed() {
    let rows = finished(&zen(), 10e9);
    for kernel in [Kernel::RepMovsb, Kernel::Memcpy] {
        let row = of(&rows, Work::WorkingSet { kernel, bytes: 128 << 20 }, 1);
        assert_eq!((row.facts.value(fact::BUS_BYTES), bound(row).value), (None, None));
    }
}

#[test]
fn the_best_run_stands_beside_the_median_with_what_a_roofline_needs() {
    let rows = finished(&zen(), 10e9);
    let facts = &of(&rows, Work::Stream(Kernel::Triad), 1).facts;
    let number = |key| facts.number(key).unwrap();
    assert!((number(fact::BEST_BYTES_PER_S) - 8.25e9).abs() < 1.0);
    assert!((number(roofline::FLOP_PER_BYTE) - 1.0 / 12.0).abs() < 1e-12);
    assert!((number(fact::FLOP_PER_S) - 7.5e9 / 12.0).abs() < 1.0);
}

#[test]
fn a_roofline_has_the_caches_and_the_memory_as_roofs_and_plain_kernels_as_points() {
    let machine = zen();
    let rows = finished(&machine, 10e9);
    let of = |work| roofline(of(&rows, work, 1), &machine);
    let is_point = |part: &Part| matches!(part, Part::Loop { .. });
    let triad = of(Work::Stream(Kernel::Triad));
    assert_eq!((triad.len(), triad.iter().filter(|part| is_point(part)).count()), (2, 1));
    assert_eq!(of(Work::Stream(Kernel::NtTriad)).iter().filter(|part| is_point(part)).count(), 0);
    let set = |bytes| of(Work::WorkingSet { kernel: Kernel::Read, bytes });
    let is_roof = |parts: Vec<Part>, wanted| matches!(parts[..], [Part::Rate { level, .. }] if level == wanted);
    assert!(is_roof(set(16 << 10), "L1"));
    assert_eq!(set(32 << 21), [], "what may be either is no roof");
}
