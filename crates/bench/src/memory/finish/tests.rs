//! Ceilings and traffic, on machines whose modules are known and on those where they are not.

use flatout_measure::record::Status;

use super::super::levels::Level;
use super::super::row::Terms;
use super::*;
use crate::area::Extent;

/// A server with 8 channels of DDR4-3200 and 32 MiB of last cache (AMD Zen 3).
fn zen() -> (Levels, Limits) {
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
    let modules = Ceiling {
        name: "8 channels of 25.6 GB/s".to_owned(),
        value: Some(204.8e9),
        provenance: Provenance::Smbios,
        ..Ceiling::default()
    };
    let levels = Levels { levels, largest_declared_bytes: Some(32 << 20) };
    (levels, Limits { modules, cpus: 16, ..Limits::default() })
}

fn rows(levels: &Levels) -> Vec<Row> {
    let terms = Terms {
        extent: Extent::Full,
        threads: vec![1, 16],
        cpus: 16,
        quota_cpus: None,
        bytes: 1_280_000_000,
        room_bytes: 64 << 30,
        room_reason: String::new(),
        levels,
    };
    terms.rows().unwrap()
}

/// The rows as if measured: every line crosses the bus at `core` bytes per second and thread.
fn measured(rows: &[Row], core: f64) -> Vec<Outcome> {
    let outcome = |row: &Row| {
        let (moved, crossed) = row.kernel().and_then(traffic).unwrap_or((1.0, 1.0));
        let median = core * f64::from(row.threads) * moved / crossed;
        let mut outcome = Outcome {
            id: row.id().to_owned(),
            parameters: row.parameters(),
            median: Some(median),
            samples: vec![median, median * 1.1],
            n: 2,
            ..Outcome::default()
        };
        outcome.audit.insert("application_bytes".to_owned(), json!(1200));
        outcome
    };
    rows.iter().map(outcome).collect()
}

fn of<'o>(rows: &[Row], outcomes: &'o [Outcome], wanted: Work, threads: u32) -> &'o Outcome {
    let is_it = |row: &Row| row.work == wanted && row.threads == threads;
    &outcomes[rows.iter().position(is_it).unwrap()]
}

#[test]
fn many_cores_are_held_against_the_modules_in_bytes_of_the_program() {
    let (levels, limits) = zen();
    let rows = rows(&levels);
    let mut outcomes = measured(&rows, 10e9);
    finish(&rows, &mut outcomes, &levels, &limits);
    for (kernel, share) in
        [(Kernel::Triad, 0.75), (Kernel::NtTriad, 1.0), (Kernel::Copy, 2.0 / 3.0)]
    {
        let outcome = of(&rows, &outcomes, Work::Stream(kernel), 16);
        let ceiling = outcome.ceiling.as_ref().unwrap();
        assert!((ceiling.value.unwrap() - 204.8e9 * share).abs() < 1.0);
        assert_eq!(ceiling.provenance, Provenance::Smbios);
        assert!((ceiling.ratio.unwrap() - 160.0 / 204.8).abs() < 1e-9, "the same for all");
    }
}

#[test]
fn a_rate_that_the_modules_cannot_deliver_is_refused() {
    let (levels, limits) = zen();
    let rows = rows(&levels);
    let mut outcomes = measured(&rows, 14e9);
    finish(&rows, &mut outcomes, &levels, &limits);
    let outcome = of(&rows, &outcomes, Work::Stream(Kernel::Triad), 16);
    assert_eq!((outcome.status, outcome.median), (Status::Invalid, None));
}

#[test]
fn one_core_is_held_against_its_own_chases_or_its_fastest_row() {
    let (levels, limits) = zen();
    let rows = rows(&levels);
    let core = |value| Ceiling {
        name: "parallel chases, one core".to_owned(),
        value: Some(value),
        provenance: Provenance::Measured,
        ..Ceiling::default()
    };
    let ceiling = |limits: &Limits| {
        let mut outcomes = measured(&rows, 10e9);
        // One row is faster than all others.
        let fast = |row: &Row| row.work == Work::Stream(Kernel::NtTriad) && row.threads == 1;
        outcomes[rows.iter().position(fast).unwrap()].median = Some(20e9);
        finish(&rows, &mut outcomes, &levels, limits);
        let at = |kernel| {
            let outcome = of(&rows, &outcomes, Work::Stream(kernel), 1);
            outcome.ceiling.clone().unwrap()
        };
        (at(Kernel::Triad), at(Kernel::NtTriad))
    };
    let (triad, fastest) = ceiling(&Limits { core: Some(core(40e9)), ..limits.clone() });
    assert_eq!((triad.ratio, fastest.ratio), (Some(0.25), Some(0.5)));
    assert_eq!(triad.name, "parallel chases, one core");
    let (triad, fastest) = ceiling(&Limits { core: Some(core(12e9)), ..limits.clone() });
    assert_eq!((triad.ratio, fastest.ratio), (Some(0.5), None), "a row is no bound of itself");
    assert_eq!(triad.name, "fastest memory traffic of 1 CPU in this run");
    let (triad, fastest) = ceiling(&limits);
    assert_eq!((triad.ratio, fastest.ratio), (Some(0.5), None));
}

#[test]
fn caches_have_a_name_and_no_ceiling() {
    let (levels, limits) = zen();
    let rows = rows(&levels);
    let mut outcomes = measured(&rows, 50e9);
    finish(&rows, &mut outcomes, &levels, &limits);
    for (bytes, name) in [(16 << 10, "L1"), (256 << 10, "L2"), (16 << 20, "L3")] {
        let outcome = of(&rows, &outcomes, Work::WorkingSet { kernel: Kernel::Read, bytes }, 1);
        assert_eq!(outcome.audit["level"], json!(name));
        let ceiling = outcome.ceiling.as_ref().unwrap();
        assert_eq!((ceiling.value, ceiling.limiter.as_str()), (None, name));
        assert!(!outcome.audit.contains_key("bus_bytes"));
    }
    let bytes = 128 << 20;
    let outcome = of(&rows, &outcomes, Work::WorkingSet { kernel: Kernel::Copy, bytes }, 1);
    assert_eq!(outcome.audit["level"], json!(MEMORY));
    assert_eq!(outcome.audit["bus_bytes"], json!(1800), "each line written is read first");
}

#[test]
fn what_a_microcode_does_is_not_guessed() {
    let (levels, limits) = zen();
    let rows = rows(&levels);
    let mut outcomes = measured(&rows, 10e9);
    finish(&rows, &mut outcomes, &levels, &limits);
    for kernel in [Kernel::RepMovsb, Kernel::Memcpy] {
        let outcome = of(&rows, &outcomes, Work::WorkingSet { kernel, bytes: 128 << 20 }, 1);
        assert!(!outcome.audit.contains_key("bus_bytes"));
        assert_eq!(outcome.ceiling.as_ref().unwrap().value, None);
    }
}

#[test]
fn the_best_run_stands_beside_the_median_with_what_a_roofline_needs() {
    let (levels, limits) = zen();
    let rows = rows(&levels);
    let mut outcomes = measured(&rows, 10e9);
    finish(&rows, &mut outcomes, &levels, &limits);
    let outcome = of(&rows, &outcomes, Work::Stream(Kernel::Triad), 1);
    let number = |key: &str| outcome.audit[key].as_f64().unwrap();
    assert!((number("best_bytes_per_s") - 8.25e9).abs() < 1.0);
    assert!((number("flop_per_byte") - 1.0 / 12.0).abs() < 1e-12);
    assert!((number("flop_per_s") - 7.5e9 / 12.0).abs() < 1.0);
}
