//! One trial: so many calls that they take some 30 ms, less the empty loop.
//! One thread is timed in windows of 1 ms, and the lower quartile of those counts: what calls take
//! while nobody else uses the core. What they took in all of the time stands beside it. Several threads are timed as a whole.

use std::path::Path;
use std::time::Duration;

use flatout_measure::{Facts, Key, Sample, TrialError, Warning, warning};
use flatout_sys::call::{self, DescriptorTable, Window};
use flatout_sys::{Groups, affinity, memory};

use super::row::{Call, Row, Variant};
use super::site::{self, Site};
use super::work::{self, Source};
use super::{crowd, fact, pair};
use crate::calibration::filling;
use crate::contention::{self, ContentionProbe};
use crate::fact::ALL_TIME_NS;
use crate::workers;

/// What a trial should take: long against the start of threads, short against other programs.
const TRIAL_NS: u64 = 30_000_000;
/// A run of this length is enough to work out how many calls fill a trial.
const CALIBRATION_NS: u64 = 4_000_000;
/// First guess, about one trial's worth of the dearest call.
const FIRST_CALLS: u64 = 8;
/// A thirty-second of the calls run beforehand, unmeasured: caches, branches, page tables.
const WARM_UP_SHARE: u64 = 32;

/// What was seen while the calls ran.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Timing {
    /// From the first start to the last finish.
    pub(super) wall: Duration,
    /// The part of it that is not the calls'.
    pub(super) excluded: Duration,
    /// The calls of one thread.
    pub(super) windows: Vec<Window>,
    /// An empty loop of as many turns.
    pub(super) empty_loop: Duration,
    /// What else is known.
    pub(super) facts: Facts,
    /// Warnings.
    pub(super) warnings: Vec<Warning>,
}

impl Timing {
    /// What the calls took: what they would have taken had all of them been as fast as in the quiet
    /// quarter of the windows, where there are some.
    fn own(&self) -> Duration {
        let calls: u64 = self.windows.iter().map(|window| window.calls).sum();
        let quiet_ns =
            contention::quiet_ns(self.windows.iter()).map(|call_ns| call_ns * calls as f64);
        let quiet = quiet_ns.map(|quiet_ns| Duration::from_nanos(quiet_ns as u64));
        let whole = self.wall.saturating_sub(self.excluded);
        quiet.unwrap_or(whole).saturating_sub(self.empty_loop)
    }
}

/// Runs of one trial at most: an interruption of the empty loop can make it look longer than the
/// calls, which says nothing about either.
const ATTEMPTS: u32 = 5;

/// Runs one trial of `row`; `calls` is worked out by the first and kept for the others.
pub(super) fn sample(
    row: &Row,
    site: &Site,
    calls: &mut Option<u64>,
    probe: &ContentionProbe,
    cancelled: &dyn Fn() -> bool,
) -> Result<Sample, TrialError> {
    let count = match *calls {
        Some(count) => count,
        None => *calls.insert(filling(TRIAL_NS, (FIRST_CALLS, CALIBRATION_NS), |count| {
            Ok::<_, TrialError>(nanoseconds(run(row, site, count, cancelled)?.wall))
        })?),
    };
    let mut timing = run(row, site, count, cancelled)?;
    for _ in 1..ATTEMPTS {
        if timing.own().is_zero() {
            timing = run(row, site, count, cancelled)?;
        }
    }
    if !timing.windows.is_empty() {
        let empty_ns = timing.empty_loop.as_nanos() as f64 / count as f64;
        timing.facts.extend(contention::facts(&timing.windows, empty_ns, probe));
    }
    evaluate(row, count, timing)
}

/// Makes `calls` calls per thread.
pub(super) fn run(
    row: &Row,
    site: &Site,
    calls: u64,
    cancelled: &dyn Fn() -> bool,
) -> Result<Timing, TrialError> {
    if cancelled() {
        return Err(TrialError::Interrupted);
    }
    let mut timing = match row.variant {
        Variant::Alone | Variant::Device | Variant::Batch(_) => alone(row, site, calls)?,
        Variant::Threads(..) => crowd::run(row, site, calls)?,
        Variant::Pair(cpus) => pair::run(row.call, cpus, calls)?,
    };
    timing.facts.extend(facts(row, site)?);
    Ok(timing)
}

/// One thread, with a descriptor table of its own.
fn alone(row: &Row, site: &Site, calls: u64) -> Result<Timing, TrialError> {
    let with_file = row.call.is_on_file() && row.variant != Variant::Device;
    let source = if with_file { Source::of(site.common()?) } else { Source::None };
    let target = work::Target::of(row)?;
    let work = work::of(row, &target, source, site.block_bytes)?;
    let timed = call::time_apart(work, warm_up(calls), calls)
        .map_err(|error| work::refusal(row.call, &error))?;
    let call::Timed { table, wall, excluded, windows, empty_loop } = timed;
    let mut timing = Timing { wall, excluded, windows, empty_loop, ..Timing::default() };
    if table == DescriptorTable::Shared && row.call.uses_descriptor() {
        timing.warnings.push(Warning::new(
            warning::DESCRIPTOR_TABLE_SHARED,
            "unshare(2) is refused here, so the thread shares its descriptor table with the rest \
             of flatout, and each call counts references that a program with one thread does not",
        ));
    }
    Ok(timing)
}

/// Calls made before the clock starts.
pub(super) fn warm_up(calls: u64) -> u64 {
    calls / WARM_UP_SHARE + 1
}

/// What is known without running: where the file lies, how large the process is.
fn facts(row: &Row, site: &Site) -> Result<Facts, TrialError> {
    let mut facts = Facts::default();
    if row.call.is_on_file() && row.variant != Variant::Device {
        // The filesystem of the file that is worked on.
        facts.set("filesystem", site.common()?.filesystem);
        // Length of the writes that filled that file.
        facts.set("filled_by_writes_of_bytes", site::fill_bytes(site.block_bytes));
    }
    if matches!(row.call, Call::EmptyFunction | Call::VdsoClock) {
        // False for what never enters the kernel.
        facts.set("is_system_call", false);
    }
    if row.call == Call::ForkExit {
        facts.set(fact::PROCESS_RESIDENT_BYTES, memory::process_bytes("self", "VmRSS:"));
    }
    Ok(facts)
}

fn evaluate(row: &Row, calls: u64, mut timing: Timing) -> Result<Sample, TrialError> {
    let own = timing.own();
    if own.is_zero() {
        return Err(TrialError::Failed(format!(
            "{}: the calls took no longer than an empty loop",
            row.call.id()
        )));
    }
    let facts = &mut timing.facts;
    facts.set(fact::CALLS, calls * u64::from(row.threads()));
    // Time of an empty loop of as many turns, which the figure does not contain.
    facts.set(Key::sum("empty_loop_ns"), nanoseconds(timing.empty_loop));
    if !timing.windows.is_empty() {
        facts.set(ALL_TIME_NS, nanoseconds(timing.wall.saturating_sub(timing.excluded)));
    }
    if !timing.excluded.is_zero() {
        // Other time of the harness that the figure does not contain.
        facts.set(Key::sum("excluded_ns"), nanoseconds(timing.excluded));
    }
    let busy_threads = match row.variant {
        Variant::Threads(threads, _) | Variant::Pair(threads) => threads,
        _ => 1,
    };
    let cpus = affinity::allowed_cpu_count();
    let quota_cpus = Groups::discover(Path::new("/")).cpu_quota_cpus();
    timing.warnings.extend(workers::oversubscribed(busy_threads, cpus));
    timing.warnings.extend(workers::contained(row.threads(), cpus, quota_cpus));
    Ok(Sample {
        amount: calls as f64,
        elapsed_ns: nanoseconds(own),
        facts: timing.facts,
        warnings: timing.warnings,
        ..Sample::default()
    })
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscall::row;
    use crate::tests::waiting;

    /// Runs each row that `wanted` picks with a few calls on a real directory.
    fn run_rows(wanted: impl Fn(&Row) -> bool) {
        let place = tempfile::tempdir().unwrap();
        let site = Site::new(place.path(), 3);
        for row in row::all(1).into_iter().filter(wanted) {
            let timing = match run(&row, &site, 40, &|| false) {
                Ok(timing) => timing,
                Err(TrialError::Unsupported(text)) => {
                    eprintln!("skipped: {row:?}: {text}");
                    continue;
                }
                Err(error) => panic!("{row:?}: {error}"),
            };
            assert!(timing.wall >= timing.excluded, "{row:?}: {timing:?}");
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn getppid_and_pairs_tell_that_they_waited() {
        let place = tempfile::tempdir().unwrap();
        let site = Site::new(place.path(), 3);
        let run = |variant| {
            let row = row::all(1).into_iter().find(|row| row.variant == variant).unwrap();
            // Each turn of a pair may wait for a loop's.
            let calls = if variant == Variant::Alone { 10_000 } else { 50 };
            if let Err(error) = run(&row, &site, calls, &|| false) {
                assert!(matches!(error, TrialError::Unsupported(_)), "{error}");
            }
        };
        let mut trials: Vec<Box<dyn FnMut()>> =
            vec![Box::new(|| run(Variant::Alone)), Box::new(|| run(Variant::Pair(1)))];
        if affinity::allowed_cpus().unwrap().len() > 1 {
            trials.push(Box::new(|| run(Variant::Pair(2))));
        }
        let test = "syscall::trial::tests::getppid_and_pairs_tell_that_they_waited";
        waiting::is_seen(test, trials);
    }

    #[test]
    fn rows_of_one_thread_complete() {
        run_rows(|row| !matches!(row.variant, Variant::Threads(..) | Variant::Pair(_)));
    }

    #[test]
    fn rows_of_several_threads_complete() {
        run_rows(|row| matches!(row.variant, Variant::Threads(..)));
    }

    #[test]
    fn rows_of_a_pair_complete() {
        run_rows(|row| matches!(row.variant, Variant::Pair(_)));
    }

    #[test]
    fn blocks_larger_than_the_least_file_are_read_and_written() {
        let place = tempfile::tempdir().unwrap();
        let site = Site::new(place.path(), (4 << 20) + 1);
        for row in row::all(1).into_iter().filter(|row| {
            matches!(row.call, Call::Read | Call::Write) && row.threads() == row::MAX_THREADS
        }) {
            run(&row, &site, 3, &|| false).unwrap();
        }
    }

    /// A window of ten calls of so many nanoseconds each.
    fn window(call_ns: u64) -> Window {
        let elapsed = Duration::from_nanos(10 * call_ns);
        Window { calls: 10, elapsed, issued_per_cycle: None }
    }

    #[test]
    fn the_quiet_quarter_of_the_windows_makes_the_figure() {
        let windows: Vec<Window> = (1..=8).map(window).collect();
        let timing = Timing { windows, wall: Duration::from_secs(1), ..Timing::default() };
        assert_eq!(timing.own(), Duration::from_nanos(8 * 10 * 2));
        let few = Timing { windows: vec![window(50)], ..timing };
        assert_eq!(few.own(), Duration::from_nanos(500), "of few all count");
    }

    #[test]
    fn loop_and_excluded_time_are_subtracted() {
        let row = row::all(1)[0];
        let timing = Timing {
            wall: Duration::from_nanos(1000),
            excluded: Duration::from_nanos(300),
            empty_loop: Duration::from_nanos(100),
            ..Timing::default()
        };
        let sample = evaluate(&row, 6, timing.clone()).unwrap();
        assert_eq!((sample.amount, sample.elapsed_ns), (6.0, 600));
        let nothing_left = Timing { wall: Duration::from_nanos(400), ..timing };
        assert!(matches!(evaluate(&row, 6, nothing_left), Err(TrialError::Failed(_))));
    }

    #[test]
    fn more_threads_than_cpus_are_called_oversubscribed() {
        let crowded =
            Row { call: Call::Getppid, variant: Variant::Threads(100_000, None), block_bytes: 1 };
        let timing = Timing { wall: Duration::from_millis(1), ..Timing::default() };
        let sample = evaluate(&crowded, 1, timing).unwrap();
        assert_eq!(sample.warnings[0].code, "oversubscribed");
    }
}
