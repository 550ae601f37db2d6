//! What follows from several rows: rates, the ratio to an empty call, and the floor of each call.

use std::collections::BTreeMap;

use flatout_measure::{Ceiling, Measured, Warning, ceiling, warning};

use super::fact;
use super::row::{Call, Descriptor, ENTRY, Floor, Row, Variant};
use crate::counted;
use crate::fact::CPUS_SHARE_CORE;

/// Adds the rates and the ratio to an empty call to the facts of each row, and names its floor,
/// the bare kernel entry.
pub(super) fn apply(rows: &mut [Measured<Row>]) {
    let figures = |call| {
        let of_call = rows.iter().filter(move |measured| measured.row.call == call);
        of_call.filter_map(|measured| Some((measured.row.threads(), measured.outcome.median?)))
    };
    let empty_call_ns = figures(Call::EmptyFunction).next().map(|(_, each_ns)| each_ns);
    let entries_ns: BTreeMap<u32, f64> = figures(Call::Nonexistent).collect();
    for measured in rows {
        if let Some(each_ns) = measured.outcome.median.filter(|&each_ns| each_ns > 0.0) {
            add_rates(measured, each_ns, empty_call_ns);
            add_floor(measured, each_ns, &entries_ns);
        }
    }
}

fn add_rates(measured: &mut Measured<Row>, each_ns: f64, empty_call_ns: Option<f64>) {
    let Measured { row, facts, .. } = measured;
    let calls_per_s = f64::from(row.threads()) * 1e9 / each_ns;
    facts.set(fact::CALLS_PER_S, calls_per_s);
    if row.call.moves_bytes() {
        facts.set(fact::BYTES_PER_S, row.block_bytes as f64 * calls_per_s);
    }
    let empty_ns = empty_call_ns.filter(|&empty| empty > 0.0);
    facts.set_known(fact::RATIO_TO_EMPTY_CALL, empty_ns.map(|empty| each_ns / empty));
}

/// `entries_ns` are the bare kernel entries by threads: that at as many counts, or else that at one.
fn add_floor(measured: &mut Measured<Row>, each_ns: f64, entries_ns: &BTreeMap<u32, f64>) {
    let Measured { row, outcome, facts, .. } = measured;
    let at = |threads| entries_ns.get_key_value(&threads);
    let Some((&entry_threads, &entry_ns)) = at(row.threads()).or_else(|| at(1)) else { return };
    if row.call == Call::VdsoClock && each_ns > 0.9 * entry_ns {
        outcome.warnings.push(Warning::new(
            warning::VDSO_MISSING,
            "the clock costs as much as a system call: its source cannot be read from user space",
        ));
    }
    let entry = format!("a call that does nothing, {}", counted(entry_threads, "thread"));
    let limit = match floor(row) {
        Floor::Own => Ceiling::unknown("none is known: it is what others are held against"),
        Floor::Unknown => Ceiling::unknown("none is known: it does more than enter the kernel"),
        Floor::Entry => Ceiling::measured(entry, Some(entry_ns)),
    };
    let is_crowded = warning::has(&outcome.warnings, warning::OVERSUBSCRIBED);
    let resident_bytes = facts.count(fact::PROCESS_RESIDENT_BYTES);
    let limiter = match (is_crowded, resident_bytes) {
        (true, _) => "threads take turns on too few CPUs".to_owned(),
        _ if facts.flag(CPUS_SHARE_CORE) == Some(true) => {
            "scheduler wake-up of the other hardware thread of the core".to_owned()
        }
        // The figure is that of a process of this size: a smaller one is forked in less time.
        (false, Some(bytes)) if row.call == Call::ForkExit => {
            format!("page tables of this process, {} MiB resident", bytes.div_ceil(1 << 20))
        }
        _ => limiter(row).to_owned(),
    };
    ceiling::apply(outcome, limit.limited_by(limiter));
}

fn floor(row: &Row) -> Floor {
    // One request in a batch is one entry.
    if row.variant == Variant::Batch(1) { Floor::Entry } else { row.call.limits().0 }
}

/// What most likely makes the call dearer than a bare entry.
fn limiter(row: &Row) -> &'static str {
    const COPYING_BYTES: u64 = 16 << 10;
    let shared = match (row.call, row.descriptor()) {
        _ if row.threads() == 1 => None,
        (Call::Lseek | Call::Read | Call::Write, Some(Descriptor::Shared)) => {
            Some("lock of the shared file position")
        }
        (Call::Pread, Some(Descriptor::Shared)) => Some("reference count of the shared descriptor"),
        (Call::Write, Some(Descriptor::Private)) => Some("lock of the shared inode"),
        (Call::Read | Call::Pread, Some(Descriptor::Private)) => {
            Some("reference count of the shared page")
        }
        _ => None,
    };
    shared.unwrap_or(match row.variant {
        Variant::Batch(1) | Variant::Device => ENTRY,
        Variant::Pair(1) => "context switch",
        _ if row.call.moves_bytes() && row.block_bytes >= COPYING_BYTES => "copying",
        _ => row.call.limits().1,
    })
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;
    use flatout_measure::fact::Facts;
    use flatout_measure::record::{Provenance, Status};

    use super::*;

    fn measured(call: Call, variant: Variant, each_ns: f64) -> Measured<Row> {
        let row = Row { call, variant, block_bytes: 100 };
        let mut outcome = blank(&row);
        outcome.median = Some(each_ns);
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    fn threads(count: u32, descriptor: Option<Descriptor>) -> Variant {
        Variant::Threads(count, descriptor)
    }

    fn bound(measured: &Measured<Row>) -> Ceiling {
        measured.outcome.ceiling.clone().unwrap()
    }

    #[test]
    fn rates_and_ratio_follow_from_the_median() {
        let mut rows = [
            measured(Call::EmptyFunction, Variant::Alone, 2.0),
            measured(Call::Read, threads(4, Some(Descriptor::OwnFile)), 200.0),
        ];
        apply(&mut rows);
        let number = |key| rows[1].facts.number(key);
        assert_eq!(number(fact::CALLS_PER_S), Some(2e7));
        assert_eq!(number(fact::BYTES_PER_S), Some(2e9));
        assert_eq!(number(fact::RATIO_TO_EMPTY_CALL), Some(100.0));
        assert_eq!(rows[1].outcome.ceiling, None, "no floor was measured");
        assert_eq!(rows[0].facts.number(fact::BYTES_PER_S), None, "it moves none");
    }

    #[test]
    fn the_floor_is_the_entry_at_as_many_threads() {
        let mut rows = [
            measured(Call::Nonexistent, Variant::Alone, 50.0),
            measured(Call::Nonexistent, threads(2, None), 60.0),
            measured(Call::Read, threads(2, Some(Descriptor::Shared)), 120.0),
            measured(Call::Fstat, Variant::Alone, 400.0),
            measured(Call::UringNop, Variant::Batch(8), 25.0),
            measured(Call::PipePingPong, Variant::Pair(1), 900.0),
        ];
        apply(&mut rows);
        assert_eq!(bound(&rows[0]).value, None);
        let bounds: Vec<_> = rows[2..].iter().map(bound).collect();
        assert_eq!((bounds[0].value, bounds[0].ratio), (Some(60.0), Some(0.5)));
        assert_eq!(bounds[0].limiter, "lock of the shared file position");
        assert_eq!(bounds[0].name, "a call that does nothing, 2 threads");
        assert_eq!((bounds[1].value, bounds[1].ratio), (Some(50.0), Some(0.125)));
        assert_eq!(bounds[1].name, "a call that does nothing, 1 thread");
        assert!(bounds[..2].iter().all(|one| one.provenance == Provenance::Measured));
        assert_eq!((bounds[2].value, bounds[2].ratio), (None, None));
        assert_eq!(bounds[2].limiter, "handling of each request");
        assert_eq!(bounds[3].limiter, "context switch");
    }

    #[test]
    fn a_pair_on_one_core_says_so() {
        let limiter = |is_one_core: bool| {
            let mut rows = [
                measured(Call::Nonexistent, Variant::Alone, 50.0),
                measured(Call::PipePingPong, Variant::Pair(2), 9000.0),
            ];
            rows[1].facts.set(CPUS_SHARE_CORE, is_one_core);
            apply(&mut rows);
            bound(&rows[1]).limiter.clone()
        };
        assert_eq!(limiter(false), "scheduler wake-up of the other CPU");
        assert!(limiter(true).ends_with("the other hardware thread of the core"));
    }

    #[test]
    fn a_fork_says_how_large_the_process_is_that_is_forked() {
        let mut rows = [
            measured(Call::Nonexistent, Variant::Alone, 50.0),
            measured(Call::ForkExit, Variant::Alone, 2e5),
        ];
        rows[1].facts.set(fact::PROCESS_RESIDENT_BYTES, 13_836_288_u64);
        apply(&mut rows);
        assert_eq!(bound(&rows[1]).limiter, "page tables of this process, 14 MiB resident");
    }

    #[test]
    fn a_kernel_entry_that_was_measured_too_slow_refuses_no_row() {
        for call in Call::ALL {
            let mut rows = [
                measured(Call::Nonexistent, Variant::Alone, 1000.0),
                measured(call, Variant::Batch(32), 40.0),
            ];
            apply(&mut rows);
            assert_eq!(rows[1].outcome.median, Some(40.0), "{call:?}");
            assert_ne!(rows[1].outcome.status, Status::Invalid, "{call:?}");
        }
    }

    #[test]
    fn a_row_below_its_floor_and_a_clock_that_enters_the_kernel_get_warnings() {
        let mut rows = [
            measured(Call::Nonexistent, Variant::Alone, 50.0),
            measured(Call::Lseek, Variant::Alone, 40.0),
            measured(Call::VdsoClock, Variant::Alone, 70.0),
        ];
        apply(&mut rows);
        assert_eq!(rows[1].outcome.warnings[0].code, warning::CEILING_LOW);
        assert_eq!(
            (rows[1].outcome.status, rows[1].outcome.median),
            (Status::Degraded, Some(40.0))
        );
        assert_eq!(rows[2].outcome.warnings[0].code, warning::VDSO_MISSING);
        assert_eq!(bound(&rows[2]).value, None);
    }

    #[test]
    fn a_row_without_a_figure_stays_as_it_is() {
        let mut failed = measured(Call::Read, Variant::Alone, 5.0);
        failed.outcome.median = None;
        let mut rows = [measured(Call::Nonexistent, Variant::Alone, 50.0), failed];
        let before = rows[1].clone();
        apply(&mut rows);
        assert_eq!(rows[1], before);
    }
}
