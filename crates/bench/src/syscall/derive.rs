//! What follows from several rows: rates, the ratio to an empty call, and the floor of each call.

use flatout_measure::record::{Ceiling, Outcome, Provenance, Warning};
use flatout_measure::{ceiling, warning};

use super::row::Call;

/// Adds to the audit of each row `calls_per_s` (all threads together), `bytes_per_s` where bytes
/// move, and `ratio_to_empty_call`; and names its floor, the bare kernel entry.
pub fn finish(outcomes: &mut [Outcome]) {
    let floors = Floors {
        empty_call_ns: median(outcomes, Call::EmptyFunction, 1),
        entry_ns: outcomes
            .iter()
            .filter(|outcome| outcome.id == Call::Getppid.id())
            .filter_map(|outcome| Some((threads(outcome), outcome.median?)))
            .collect(),
    };
    for outcome in outcomes {
        if let Some(call) = Call::from_id(&outcome.id)
            && let Some(each_ns) = outcome.median.filter(|&each_ns| each_ns > 0.0)
        {
            add_rates(outcome, each_ns, floors.empty_call_ns);
            add_ceiling(outcome, call, each_ns, &floors);
        }
    }
}

/// What other rows are held against.
struct Floors {
    empty_call_ns: Option<f64>,
    /// Threads and nanoseconds of each row of the bare kernel entry.
    entry_ns: Vec<(u64, f64)>,
}

impl Floors {
    /// The entry at so many threads, or else at one.
    fn entry(&self, threads: u64) -> Option<(u64, f64)> {
        let at = |wanted| self.entry_ns.iter().find(|&&(threads, _)| threads == wanted).copied();
        at(threads).or_else(|| at(1))
    }
}

fn threads(outcome: &Outcome) -> u64 {
    number(outcome, "threads").unwrap_or(1)
}

fn number(outcome: &Outcome, parameter: &str) -> Option<u64> {
    outcome.parameters.get(parameter)?.as_u64()
}

fn median(outcomes: &[Outcome], call: Call, wanted_threads: u64) -> Option<f64> {
    outcomes
        .iter()
        .find(|outcome| outcome.id == call.id() && threads(outcome) == wanted_threads)?
        .median
}

fn add_rates(outcome: &mut Outcome, each_ns: f64, empty_call_ns: Option<f64>) {
    let calls_per_s = threads(outcome) as f64 * 1e9 / each_ns;
    let bytes_per_s = number(outcome, "block_bytes").map(|bytes| bytes as f64 * calls_per_s);
    let ratio = empty_call_ns.filter(|&empty| empty > 0.0).map(|empty| each_ns / empty);
    let rates = [
        ("calls_per_s", Some(calls_per_s)),
        ("bytes_per_s", bytes_per_s),
        ("ratio_to_empty_call", ratio),
    ];
    for (key, value) in rates {
        if let Some(value) = value {
            outcome.audit.insert(key.to_owned(), value.into());
        }
    }
}

fn add_ceiling(outcome: &mut Outcome, call: Call, each_ns: f64, floors: &Floors) {
    let Some((entry_threads, entry_ns)) = floors.entry(threads(outcome)) else { return };
    if call == Call::VdsoClock && each_ns > 0.9 * entry_ns {
        outcome.warnings.push(Warning::new(
            warning::VDSO_MISSING,
            "the clock costs as much as a system call: its source cannot be read from user space",
        ));
    }
    let limiter = limiter(call, outcome).to_owned();
    let limit = match floor(call, outcome) {
        Floor::None => {
            let name = "none is known: it is what others are held against".to_owned();
            Ceiling { name, limiter, ..Ceiling::default() }
        }
        Floor::Unknown => {
            let name = "a share of the kernel entry of its batch".to_owned();
            Ceiling { name, limiter, ..Ceiling::default() }
        }
        Floor::Entry => Ceiling {
            name: floor_name(entry_threads),
            value: Some(entry_ns),
            provenance: Provenance::Measured,
            limiter,
            ..Ceiling::default()
        },
    };
    ceiling::apply(outcome, limit);
}

fn floor_name(threads: u64) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("getppid, bare kernel entry, {threads} thread{plural}")
}

/// What a row cannot be faster than.
enum Floor {
    /// Makes no system call (a page fault enters the kernel by another door), or is the floor.
    None,
    /// One bare entry, as it was measured in this run.
    Entry,
    /// Makes system calls, but less than one for each of what is counted.
    Unknown,
}

/// The floor is one measured entry also for calls that need several: a product of a noisy figure
/// is no derivation that would justify to refuse a row which beats it.
fn floor(call: Call, outcome: &Outcome) -> Floor {
    match call {
        Call::EmptyFunction | Call::VdsoClock | Call::Getppid | Call::MinorFault => Floor::None,
        Call::UringNop if number(outcome, "batch_requests").unwrap_or(1) > 1 => Floor::Unknown,
        Call::FutexWake
        | Call::Lseek
        | Call::Read
        | Call::Pread
        | Call::Write
        | Call::Fstat
        | Call::Stat
        | Call::Statx
        | Call::OpenClose
        | Call::MmapMunmap
        | Call::UringNop
        | Call::FutexPingPong
        | Call::PipePingPong
        | Call::ThreadCreateJoin
        | Call::ForkExit => Floor::Entry,
    }
}

/// What most likely makes the call dearer than a bare entry.
fn limiter(call: Call, outcome: &Outcome) -> &'static str {
    const COPYING_BYTES: u64 = 16 << 10;
    let text = |parameter: &str| outcome.parameters.get(parameter).and_then(|value| value.as_str());
    if outcome.warnings.iter().any(|warning| warning.code == warning::OVERSUBSCRIBED) {
        return "threads take turns on too few CPUs";
    }
    let crowded = threads(outcome) > 1;
    match (call, text("descriptor")) {
        (Call::Lseek | Call::Read | Call::Write, Some("shared")) if crowded => {
            return "lock of the shared file position";
        }
        (Call::Pread, Some("shared")) if crowded => {
            return "reference count of the shared descriptor";
        }
        (Call::Write, Some("private")) if crowded => return "lock of the shared inode",
        (Call::Read | Call::Pread, Some("private")) if crowded => {
            return "reference count of the shared page";
        }
        _ => {}
    }
    match call {
        Call::Read | Call::Pread | Call::Write
            if number(outcome, "block_bytes").unwrap_or(1) >= COPYING_BYTES
                && text("target") == Some("file") =>
        {
            "copying"
        }
        Call::Read | Call::Pread if text("target") == Some("file") => "page-cache lookup",
        Call::Write if text("target") == Some("file") => "write path of the file system",
        Call::Read | Call::Write | Call::Pread | Call::Lseek => "system call entry",
        Call::Fstat => "copying out the attributes",
        Call::Stat | Call::Statx => "path walk",
        Call::OpenClose => "path walk and making the open file",
        Call::MmapMunmap => "bookkeeping of mappings",
        Call::FutexWake => "futex lookup",
        Call::UringNop if number(outcome, "batch_requests") == Some(1) => "system call entry",
        Call::UringNop => "handling of each request",
        Call::FutexPingPong | Call::PipePingPong if number(outcome, "cpus") == Some(1) => {
            "context switch"
        }
        Call::FutexPingPong | Call::PipePingPong => "scheduler wake-up of the other CPU",
        Call::ThreadCreateJoin => "making and waking a thread",
        Call::ForkExit => "page-table work",
        Call::EmptyFunction => "the CPU's clock and its call and return",
        Call::VdsoClock => "reading the time-stamp counter",
        Call::Getppid => "kernel entry and exit, mitigations included",
        Call::MinorFault => "exception entry, zeroing and mapping a page",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_measure::record::{Better, Status};
    use serde_json::{Value, json};

    fn outcome(call: Call, parameters: Value, each_ns: f64) -> Outcome {
        let Value::Object(parameters) = parameters else { panic!("an object is needed") };
        Outcome {
            id: call.id().to_owned(),
            parameters,
            unit: "ns".to_owned(),
            better: Better::Lower,
            median: Some(each_ns),
            ..Outcome::default()
        }
    }

    #[test]
    fn rates_and_ratio_follow_from_the_median() {
        let mut outcomes = [
            outcome(Call::EmptyFunction, json!({}), 2.0),
            outcome(Call::Read, json!({"threads": 4, "block_bytes": 100, "target": "file"}), 200.0),
        ];
        finish(&mut outcomes);
        assert_eq!(outcomes[1].audit["calls_per_s"], 2e7);
        assert_eq!(outcomes[1].audit["bytes_per_s"], 2e9);
        assert_eq!(outcomes[1].audit["ratio_to_empty_call"], 100.0);
        assert_eq!(outcomes[1].ceiling, None, "no floor was measured");
    }

    #[test]
    fn the_floor_is_the_entry_at_as_many_threads() {
        let mut outcomes = [
            outcome(Call::Getppid, json!({"threads": 1}), 50.0),
            outcome(Call::Getppid, json!({"threads": 2}), 60.0),
            outcome(Call::Read, json!({"threads": 2, "descriptor": "shared"}), 120.0),
            outcome(Call::OpenClose, json!({}), 400.0),
            outcome(Call::UringNop, json!({"batch_requests": 8}), 25.0),
        ];
        finish(&mut outcomes);
        assert_eq!(outcomes[0].ceiling.as_ref().and_then(|ceiling| ceiling.value), None);
        let ceilings: Vec<_> =
            outcomes[2..].iter().map(|one| one.ceiling.clone().unwrap()).collect();
        assert_eq!((ceilings[0].value, ceilings[0].ratio), (Some(60.0), Some(0.5)));
        assert_eq!(ceilings[0].limiter, "lock of the shared file position");
        assert_eq!(ceilings[0].name, "getppid, bare kernel entry, 2 threads");
        assert_eq!((ceilings[1].value, ceilings[1].ratio), (Some(50.0), Some(0.125)));
        assert_eq!(ceilings[1].name, "getppid, bare kernel entry, 1 thread");
        assert!(ceilings[..2].iter().all(|one| one.provenance == Provenance::Measured));
        assert_eq!((ceilings[2].value, ceilings[2].ratio), (None, None));
        assert_eq!(ceilings[2].limiter, "handling of each request");
    }

    #[test]
    fn a_kernel_entry_that_was_measured_too_slow_refuses_no_row() {
        for call in Call::ALL {
            let mut outcomes = [
                outcome(Call::Getppid, json!({"threads": 1}), 1000.0),
                outcome(call, json!({"batch_requests": 32}), 40.0),
            ];
            finish(&mut outcomes);
            assert_eq!(outcomes[1].median, Some(40.0), "{call:?}");
            assert_ne!(outcomes[1].status, Status::Invalid, "{call:?}");
        }
    }

    #[test]
    fn a_row_below_its_floor_and_a_clock_that_enters_the_kernel_are_doubted() {
        let mut outcomes = [
            outcome(Call::Getppid, json!({"threads": 1}), 50.0),
            outcome(Call::Lseek, json!({"threads": 1}), 40.0),
            outcome(Call::VdsoClock, json!({}), 70.0),
        ];
        finish(&mut outcomes);
        assert_eq!(outcomes[1].warnings[0].code, warning::CEILING_LOW);
        assert_eq!((outcomes[1].status, outcomes[1].median), (Status::Degraded, Some(40.0)));
        assert_eq!(outcomes[2].warnings[0].code, warning::VDSO_MISSING);
        assert_eq!(outcomes[2].ceiling.as_ref().and_then(|ceiling| ceiling.value), None);
    }

    #[test]
    fn rows_without_a_figure_and_rows_of_other_areas_stay_as_they_are() {
        let mut other = outcome(Call::Read, json!({}), 5.0);
        other.id = "disk/random-read".to_owned();
        let mut failed = outcome(Call::Read, json!({}), 5.0);
        failed.median = None;
        let mut outcomes = [outcome(Call::Getppid, json!({}), 50.0), other, failed];
        let before = outcomes[1..].to_vec();
        finish(&mut outcomes);
        assert_eq!(outcomes[1..], before[..]);
    }
}
