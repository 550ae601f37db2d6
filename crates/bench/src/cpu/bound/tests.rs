//! Rows of recorded and imagined machines.

use flatout_measure::{Status, blank};
use flatout_sys::throughput::Level;

use super::super::ports::of_single;
use super::*;

const KERNEL: Kernel =
    Kernel { number: Number::F64, operation: Operation::MultiplyAdd, level: Level::Avx2 };

fn topology(cpus: usize) -> Topology {
    Topology { cpus: (0..cpus).collect(), ..Topology::default() }
}

fn counts(per_cycle: f64) -> BTreeMap<Kernel, Count> {
    let count = Count { per_cycle, ports: of_single(per_cycle), is_trusted: true };
    BTreeMap::from([(KERNEL, count)])
}

fn throughput(threads: u32) -> UnitRow {
    let setting = Setting { threads, placement: Placement::Pinned };
    UnitRow::Units { kernel: KERNEL, setting }
}

fn measured(row: UnitRow, per_s: f64, facts: Facts) -> Measured<UnitRow> {
    let samples = vec![per_s; 2];
    let outcome = Outcome { median: Some(per_s), samples, n: 2, ..blank(&row) };
    Measured { row, outcome, facts, further: Vec::new() }
}

/// The row of an AMD Zen 2 at 3.3 GHz: 52.8 GFLOPS per core.
fn zen(threads: u32, per_s: f64) -> Measured<UnitRow> {
    let facts = Facts::default()
        .with(fact::CLOCK_HZ, 3.3e9)
        .with(fact::CLOCK_BEFORE_HZ, 3.3e9)
        .with(fact::CLOCK_AFTER_HZ, 3.29e9)
        .with(fact::CHAIN_AGREEMENT_RATIO, 0.998)
        .with(fact::CPU_USE_RATIO, 0.999)
        .with(fact::CPUS_GOT, f64::from(threads))
        .with(fact::DOUBLING_RATIO, 2.001)
        .with(fact::OPERATIONS_PER_CYCLE, per_s / 3.3e9)
        .with(fact::OPERATIONS_PER_CYCLE_BEST_DECILE, per_s / 3.3e9)
        .with(fact::STOLEN_RATIO, 0.0)
        .with(fact::STOLEN_TICKS, 0_u64);
    measured(throughput(threads), per_s, facts)
}

/// The row after all, on a machine of so many CPUs whose ports do so many steps per cycle.
fn bounded(row: Measured<UnitRow>, topology: &Topology, per_cycle: f64) -> Measured<UnitRow> {
    let mut rows = [row];
    apply(&mut rows, topology, &counts(per_cycle));
    let [row] = rows;
    row
}

fn bound(row: &Measured<UnitRow>) -> &Ceiling {
    row.outcome.ceiling.as_ref().unwrap()
}

fn codes(row: &Measured<UnitRow>) -> Vec<&str> {
    row.outcome.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn a_row_at_its_peak_says_how_the_peak_came_about() {
    let row = bounded(zen(1, 52.5e9), &topology(4), 1.99);
    let bound = bound(&row);
    assert!((bound.value.unwrap() - 52.8e9).abs() < 1.0);
    assert_eq!(bound.provenance, Provenance::Inferred);
    assert!((bound.ratio.unwrap() - 52.5 / 52.8).abs() < 1e-9);
    assert_eq!(bound.limiter, "execution ports");
    assert!(row.facts.text(fact::PEAK).unwrap().contains("3.300 GHz"));
    assert!(row.outcome.warnings.is_empty(), "{:?}", row.outcome.warnings);
    assert_eq!(row.outcome.status, Status::Ok);
}

#[test]
fn a_pair_above_its_counted_ports_is_given() {
    let kernel = Kernel { number: Number::I32, ..KERNEL };
    let setting = Setting { threads: 1, placement: Placement::Pinned };
    let row = UnitRow::Units { kernel, setting };
    let facts = Facts::default().with(fact::CLOCK_HZ, 3.7e9);
    // 1.54 pairs a cycle, where the counting loop had 1.49.
    let mut rows = [measured(row, 1.54 * 16.0 * 3.7e9, facts)];
    let ports = super::super::ports::of_pair(1.49, of_single(4.0));
    let count = Count { per_cycle: 1.49, ports, is_trusted: true };
    apply(&mut rows, &topology(2), &BTreeMap::from([(kernel, count)]));
    assert!(rows[0].outcome.median.is_some());
    assert!(codes(&rows[0]).contains(&warning::CEILING_LOW), "{:?}", rows[0].outcome.warnings);
}

#[test]
fn a_peak_is_never_below_what_was_sustained() {
    let sustained = |per_s| {
        let Measured { facts, .. } = zen(2, per_s);
        let setting = Setting { threads: 2, placement: Placement::Sustained };
        measured(UnitRow::Units { kernel: KERNEL, setting }, per_s, facts)
    };
    let settled = |own, all| {
        let mut rows = [zen(2, own), sustained(all), zen(1, 20e9)];
        apply(&mut rows, &topology(1), &counts(2.0));
        rows.map(|row| (row.outcome.median, row.facts.number(fact::OWN_TRIALS_PER_S)))
    };
    let [peak, all, other] = settled(49e9, 52e9);
    assert_eq!((peak, all), ((Some(52e9), Some(49e9)), (Some(52e9), None)));
    assert_eq!(other, (Some(20e9), None), "of as many threads only");
    assert_eq!(settled(52e9, 49e9)[0], (Some(52e9), None));
}

#[test]
fn a_figure_above_its_peak_is_not_given() {
    let row = bounded(zen(1, 60e9), &topology(4), 2.0);
    assert_eq!((row.outcome.median, row.outcome.status), (None, Status::Invalid));
    assert_eq!(codes(&row), [warning::ABOVE_CEILING]);
}

#[test]
fn ports_that_are_no_whole_number_leave_the_peak_unknown() {
    let row = bounded(zen(1, 52.5e9), &topology(4), 1.78);
    assert_eq!((bound(&row).value, bound(&row).provenance), (None, Provenance::Unknown));
    assert!(bound(&row).name.contains("1.78 steps per cycle"), "{}", bound(&row).name);
    assert_eq!(row.outcome.median, Some(52.5e9));
}

#[test]
fn siblings_that_only_the_measurement_shows_halve_the_peak() {
    let pair = |worth| {
        let row = UnitRow::Sharing { first: 0, second: 1 };
        measured(row, worth, Facts::default())
    };
    let mut rows = [zen(2, 52.6e9), pair(1.01)];
    apply(&mut rows, &topology(2), &counts(2.0));
    assert_eq!(rows[1].facts.text(fact::VERDICT), Some("they share one core"));
    assert!((bound(&rows[0]).value.unwrap() - 52.8e9).abs() < 1.0);
    assert_eq!(codes(&rows[0]), [warning::CORES_SHARED]);
    let mut apart = [zen(2, 104e9), pair(1.99)];
    apply(&mut apart, &topology(2), &counts(2.0));
    assert!((bound(&apart[0]).value.unwrap() - 105.6e9).abs() < 1.0);
    assert!(apart[0].outcome.warnings.is_empty());
}

#[test]
fn siblings_that_the_kernel_knows_are_no_surprise() {
    let siblings = vec![vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
    let row = bounded(zen(8, 4.0 * 52.5e9), &Topology { siblings, ..topology(8) }, 2.0);
    assert!((bound(&row).value.unwrap() - 4.0 * 52.8e9).abs() < 1.0);
    assert_eq!((bound(&row).provenance, codes(&row).len()), (Provenance::Inferred, 0));
}

#[test]
fn cpus_that_were_not_measured_share_cores_as_those_that_were() {
    let bounds = |per_s, verdicts: &[((usize, usize), f64)]| {
        let pair = |&((first, second), worth): &((usize, usize), f64)| {
            measured(UnitRow::Sharing { first, second }, worth, Facts::default())
        };
        let mut rows = vec![zen(8, per_s)];
        rows.extend(verdicts.iter().map(pair));
        apply(&mut rows, &topology(8), &counts(2.0));
        let row = rows.swap_remove(0);
        ((bound(&row).value.unwrap() / 52.8e9).round(), row)
    };
    // A hypervisor that shows the threads of four cores as eight CPUs: there was time for one pair.
    let (cores, row) = bounds(4.0 * 52.5e9, &[((0, 1), 1.0)]);
    assert_eq!((cores, bound(&row).limiter.as_str()), (4.0, "execution ports"));
    assert_eq!(bounds(4.0 * 52.5e9, &[((0, 1), 1.99), ((0, 4), 1.01)]).0, 4.0);
    assert_eq!(bounds(6.0 * 52.5e9, &[((0, 1), 1.0), ((2, 3), 2.0), ((4, 5), 1.5)]).0, 5.0);
    assert_eq!(bounds(8.0 * 52.5e9, &[((0, 1), 1.99)]).0, 8.0);
    // It may move them meanwhile: what was reached is given.
    let (_, row) = bounds(8.0 * 52.5e9, &[((0, 1), 1.0)]);
    assert!(row.outcome.median.is_some());
    assert!(codes(&row).contains(&warning::CEILING_LOW), "{:?}", row.outcome.warnings);
}

#[test]
fn a_figure_that_is_a_little_above_the_peak_of_a_quota_is_given() {
    // The clock was read before and after alone, and was 3 % higher in between.
    let row = zen(1, 0.5 * 1.03 * 52.8e9);
    let facts = row.facts.with(fact::CPUS_GOT, 0.5);
    let quota = Topology { quota_cpus: Some(0.5), ..topology(2) };
    let row = bounded(Measured { facts, ..row }, &quota, 2.0);
    assert!(row.outcome.median.is_some());
    assert!(codes(&row).contains(&warning::CEILING_LOW), "{:?}", row.outcome.warnings);
}

#[test]
fn a_container_with_a_quota_is_held_against_its_share() {
    let mut row = zen(4, 78e9);
    row.facts.set(fact::CPUS_GOT, 1.49);
    let row = bounded(row, &Topology { quota_cpus: Some(1.5), ..topology(8) }, 2.0);
    assert!((bound(&row).value.unwrap() - 1.5 * 52.8e9).abs() < 1.0);
    assert_eq!(bound(&row).limiter, "the CPU quota", "not the ports of cores that are idle");
    assert!(codes(&row).contains(&warning::CPU_QUOTA));
}

#[test]
fn clocks_that_disagree_degrade_the_row_and_a_falling_one_is_named() {
    let mut row = zen(1, 50e9);
    row.facts.set(fact::CHAIN_AGREEMENT_RATIO, 0.97);
    row.facts.set(fact::CLOCK_AFTER_HZ, 3.1e9);
    let row = bounded(row, &topology(4), 2.0);
    assert_eq!(row.outcome.status, Status::Degraded);
    assert_eq!(codes(&row), [warning::CLOCK_DISAGREES, warning::CLOCK_DRIFT]);
}

#[test]
fn twice_the_work_in_less_than_twice_the_time_is_said() {
    let mut row = zen(1, 50e9);
    row.facts.set(fact::DOUBLING_RATIO, 1.4);
    let row = bounded(row, &topology(4), 2.0);
    assert_eq!(codes(&row), [warning::NOT_LINEAR]);
    assert_eq!(row.outcome.status, Status::Degraded);
}

#[test]
fn contention_forgives_a_time_that_is_not_quite_twice() {
    let mut row = zen(1, 50e9);
    row.outcome.warn(warning::SMT_CONTENTION, "90 %");
    row.facts.set(fact::DOUBLING_RATIO, 2.1);
    let found = bounded(row.clone(), &topology(4), 2.0);
    assert_eq!(codes(&found), [warning::SMT_CONTENTION]);
    // Of two trials one is enough to be that much off.
    row.facts.set(fact::DOUBLING_RATIO, 2.4);
    row.outcome.n = 2;
    assert_eq!(codes(&bounded(row.clone(), &topology(4), 2.0)), [warning::SMT_CONTENTION]);
    row.outcome.n = 3;
    let both = [warning::SMT_CONTENTION, warning::NOT_LINEAR];
    assert_eq!(codes(&bounded(row, &topology(4), 2.0)), both);
}

#[test]
fn what_took_the_time_is_named() {
    let limiter = |facts: Facts| {
        let mut row = zen(1, 45e9);
        row.facts.extend(facts);
        bound(&bounded(row, &topology(4), 2.0)).limiter.clone()
    };
    let facts = Facts::default().with(fact::CONTENTION_RATIO, 0.5);
    let stolen = facts.clone().with(fact::STOLEN_RATIO, 0.1);
    assert!(limiter(stolen.clone().with(fact::STOLEN_TICKS, 6_u64)).contains("stolen"));
    assert!(limiter(stolen).contains("SMT sibling"), "no tick is none");
    // What is told first is the whole of it.
    let others = limiter(facts.clone().with(fact::CPU_USE_RATIO, 0.8));
    assert!(others.starts_with("other programs or the hypervisor, "), "{others}");
    assert!(limiter(facts).contains("SMT sibling all the time"));
    let unwatched = limiter(Facts::default());
    assert!(unwatched.contains("an SMT sibling, interrupts"), "nobody looked: {unwatched}");
}

#[test]
fn contention_that_comes_and_goes_is_told_by_the_best_trials() {
    let mut row = zen(1, 48e9);
    row.facts.set(fact::CONTENTION_RATIO, 0.5);
    row.facts.set(fact::OPERATIONS_PER_CYCLE_BEST_DECILE, 52.5 / 3.3);
    let row = bounded(row, &topology(4), 2.0);
    let limiter = &bound(&row).limiter;
    assert!(limiter.contains("the best tenth of the trials reaches 99.4 %"), "{limiter}");
    let ratio = row.facts.number(fact::PER_CYCLE_RATIO).unwrap();
    assert!((ratio - 48.0 / 52.8).abs() < 1e-9);
}

#[test]
fn more_threads_than_cpus_are_held_against_the_cpus() {
    let row = bounded(zen(8, 208e9), &topology(4), 2.0);
    assert!((bound(&row).value.unwrap() - 211.2e9).abs() < 10.0);
    let limiter = |cpus_got: f64| {
        let mut row = zen(8, 150e9);
        row.facts.set(fact::CPUS_GOT, cpus_got);
        bound(&bounded(row, &topology(4), 2.0)).limiter.clone()
    };
    assert_eq!(limiter(3.9), "threads take turns on too few CPUs");
    assert!(limiter(2.5).contains("other programs"), "they had 1.5 of the 4 CPUs");
}

#[test]
fn the_peak_for_matrices_is_that_of_the_row_with_as_many_threads() {
    let rows = [bounded(zen(2, 104e9), &topology(4), 2.0)];
    let peak = double_peak(&rows, 2);
    assert!((peak.value.unwrap() - 105.6e9).abs() < 1.0);
    assert_eq!((peak.provenance, peak.ratio), (Provenance::Inferred, None));
    assert_eq!(peak.name, "peak of f64 multiply-add, 2 threads");
    assert_eq!(double_peak(&rows, 1).value, None);
}

#[test]
fn narrower_instructions_are_no_peak_of_matrices() {
    let wide = Kernel { level: Level::Avx512, ..KERNEL };
    let setting = Setting { threads: 1, placement: Placement::Pinned };
    let facts = Facts::default().with(fact::CLOCK_HZ, 3e9);
    let rows = |status| {
        let mut row = measured(UnitRow::Units { kernel: wide, setting }, 90e9, facts.clone());
        row.outcome.status = status;
        // The ports of the wider instructions could not be counted, those of the narrower ones could.
        let mut rows = [zen(1, 52e9), row];
        apply(&mut rows, &topology(4), &counts(2.0));
        double_peak(&rows, 1).value
    };
    assert_eq!(rows(Status::Ok), None);
    assert!((rows(Status::Unsupported).unwrap() - 52.8e9).abs() < 1.0, "there are none here");
}

#[test]
fn a_row_that_cannot_run_has_no_warnings_of_its_own() {
    let row = throughput(1);
    let outcome = Outcome { status: Status::Unsupported, ..blank(&row) };
    let row = Measured { row, outcome, facts: Facts::default(), further: Vec::new() };
    let row = bounded(row, &topology(1), 2.0);
    assert_eq!((row.outcome.status, row.outcome.warnings.len()), (Status::Unsupported, 0));
}

#[test]
fn a_machine_of_several_kinds_of_cores_has_no_peak_and_no_row_above_it() {
    let mixed = Topology { is_mixed: true, ..topology(8) };
    // On a strong core, by the ports of a weak one: 150 % of its peak.
    let row = bounded(zen(1, 1.5 * 52.8e9), &mixed, 2.0);
    assert_eq!((row.outcome.status, row.outcome.median), (Status::Ok, Some(1.5 * 52.8e9)));
    assert_eq!(bound(&row).value, None);
    assert!(bound(&row).name.contains("several kinds"), "{row:?}");
}
