//! How many times slower than on a quiet machine work gets done just now: for what is announced.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use flatout_sys::affinity;
use flatout_sys::clock::{monotonic_ns, thread_cpu_ns};
use flatout_sys::pressure::{self, Resource};

/// A probe below this is that of a quiet machine.
const QUIET: f64 = 1.2;
/// CPU time of the probe: several slices of the scheduler, which lets who was asleep go first.
const PROBE_NS: u64 = 10_000_000;

/// For how long an answer holds: areas that are planned one after the other ask once.
const HOLDS_NS: u64 = 1_000_000_000;
/// The last answer, and when it was found.
static LAST: Mutex<Option<(u64, f64)>> = Mutex::new(None);

/// The time that a thread takes for some work, by its CPU time, and how many of the others' waits
/// for I/O came meanwhile; at least 1.
///
/// Cost: 10 ms of a CPU, unless it was asked within the last second.
pub(crate) fn now() -> f64 {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match *last {
        Some((at_ns, answer)) if monotonic_ns() < at_ns + HOLDS_NS => answer,
        _ => {
            let answer = probe();
            *last = Some((monotonic_ns(), answer));
            answer
        }
    }
}

fn probe() -> f64 {
    let io_waited_ns = || pressure::pressure(Path::new("/"), Resource::Io).unwrap_or(0);
    let (waited_ns, begun_ns, cpu_ns) = (io_waited_ns(), monotonic_ns(), thread_cpu_ns());
    while thread_cpu_ns() - cpu_ns < PROBE_NS {
        std::hint::spin_loop();
    }
    let elapsed_ns = (monotonic_ns() - begun_ns).max(PROBE_NS) as f64;
    let io_share = (io_waited_ns() - waited_ns) as f64 / elapsed_ns;
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut words = text.split([' ', '/']);
    let load = words.next().and_then(|word| word.parse().ok());
    let running = words.nth(2).and_then(|word| word.parse().ok());
    let load = Load { minute: load, running: running.unwrap_or(1) };
    shared(elapsed_ns / PROBE_NS as f64, load, affinity::allowed_cpu_count())
        * (1.0 + io_share.min(1.0))
}

/// What /proc/loadavg says.
struct Load {
    /// That of the last minute.
    minute: Option<f64>,
    /// Threads that run or wait for a CPU now, this one included.
    running: u32,
}

/// How many times slower a thread is by the probe and by the load of the last minute: one probe is
/// off by half (10 to 25 in six of them beside 31 threads on 2 CPUs, 2026-11-26), or finds nothing,
/// since who was asleep goes first. A quiet one is believed where no more threads run than there are
/// CPUs: the load may be over.
fn shared(probe: f64, load: Load, cpus: u32) -> f64 {
    let by_load =
        load.minute.map_or(probe, |load| ((load + 1.0) / f64::from(cpus.max(1))).max(1.0));
    if probe < QUIET && load.running <= cpus { probe } else { (probe * by_load).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_held_against_the_load_unless_it_is_quiet() {
        let near = |probe, minute, running, expected: f64| {
            let seen = shared(probe, Load { minute, running }, 2);
            assert!((seen - expected).abs() < 1e-9, "{seen}");
        };
        near(25.0, Some(31.0), 30, 20.0);
        near(1.1, Some(31.0), 2, 1.1);
        near(1.0, Some(31.0), 30, 4.0);
        near(4.0, None, 1, 4.0);
        // It has begun just now.
        near(4.0, Some(0.5), 9, 2.0);
    }
}
