//! How many times slower than on a quiet machine work gets done just now: for what is announced.

use std::path::Path;
use std::sync::Mutex;

use flatout_sys::pressure::{self, Resource};
use flatout_sys::{affinity, attribute, monotonic_ns, thread_cpu_ns};

use crate::workers::lock;

/// A probe below this is that of a quiet machine.
const QUIET: f64 = 1.2;
/// Time of the probe: several slices of the scheduler, which lets who was asleep go first; and where
/// the machine is not quiet, in which each of a dozen threads has its turn.
const LOOK_NS: u64 = 10_000_000;
const PROBE_NS: u64 = 100_000_000;
/// How often it is looked how many threads run.
const SAMPLE_NS: u64 = 5_000_000;

/// For how long an answer holds: areas that are planned one after the other ask once.
const HOLDS_NS: u64 = 1_000_000_000;
/// The last answer, and when it was found.
static LAST: Mutex<Option<(u64, f64)>> = Mutex::new(None);

/// The time that a thread takes for some work, by its CPU time, and how many of the others' waits
/// for I/O came meanwhile; at least 1.
///
/// Cost: 10 ms of a CPU, 0.1 s on a busy machine, unless it was asked within the last second.
pub fn now() -> f64 {
    let mut last = lock(&LAST);
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
    let cpus = affinity::allowed_cpu_count();
    let (mut loads, mut next_ns) = (Vec::new(), LOOK_NS);
    let slower = loop {
        let elapsed_ns = monotonic_ns() - begun_ns;
        if elapsed_ns < next_ns {
            std::hint::spin_loop();
            continue;
        }
        next_ns = elapsed_ns + SAMPLE_NS;
        loads.extend(Load::now());
        // The clock of the thread may be ahead by a little.
        let slower = elapsed_ns as f64 / (thread_cpu_ns() - cpu_ns).max(1) as f64;
        let slower = slower.max(1.0);
        if is_quiet(slower, &loads, cpus) || elapsed_ns >= PROBE_NS {
            break slower;
        }
    };
    let elapsed_ns = (monotonic_ns() - begun_ns) as f64;
    let io_share = io_waited_ns().saturating_sub(waited_ns) as f64 / elapsed_ns;
    shared(slower, &loads, cpus) * (1.0 + io_share.min(1.0))
}

/// What /proc/loadavg says.
#[derive(Clone, Copy)]
struct Load {
    /// That of the last minute.
    minute: f64,
    /// Threads that run or wait for a CPU now, this one included.
    running: f64,
}

impl Load {
    fn now() -> Option<Self> {
        let text = attribute::text(Path::new("/proc"), "loadavg")?;
        let mut words = text.split([' ', '/']).map(|word| word.parse().ok());
        Some(Self { minute: words.next()??, running: words.nth(2)?? })
    }
}

/// Whether a probe saw nobody, and no more threads run than there are CPUs: the load of the last
/// minute may be over.
fn is_quiet(slower: f64, loads: &[Load], cpus: u32) -> bool {
    slower < QUIET && loads.iter().all(|load| load.running <= f64::from(cpus))
}

/// How many times slower a thread is by the probe, and one on each CPU by how many others there are, now and,
/// with a quarter of the weight, within the last minute: one probe is off by half (10 to 25 in six of them
/// beside 31 threads on 2 CPUs, 2026-11-26), or finds nothing, since who was asleep goes first.
fn shared(slower: f64, loads: &[Load], cpus: u32) -> f64 {
    if loads.is_empty() || is_quiet(slower, loads, cpus) {
        return slower;
    }
    let others = loads.iter().map(|load| (3.0 * (load.running - 1.0).max(0.0) + load.minute) / 4.0);
    let by_load = 1.0 + others.sum::<f64>() / loads.len() as f64 / f64::from(cpus.max(1));
    (slower * by_load).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_held_against_the_load_unless_it_is_quiet() {
        let near = |slower, minute, running: &[f64], expected: f64| {
            let loads: Vec<Load> =
                running.iter().map(|&running| Load { minute, running }).collect();
            let seen = shared(slower, &loads, 2);
            assert!((seen - expected).abs() < 1e-9, "{seen}");
        };
        near(25.0, 31.0, &[30.0, 34.0], (25.0 * 16.5_f64).sqrt());
        near(1.1, 31.0, &[2.0], 1.1);
        near(1.0, 30.0, &[31.0], 4.0);
        near(1.2, 2.0, &[3.0], 2.4_f64.sqrt());
        // It has begun just now.
        near(4.0, 3.0, &[8.0, 12.0], 4.0 * (4.75_f64 / 4.0).sqrt());
        near(3.0, 0.0, &[1.0], 3.0_f64.sqrt());
        near(3.0, 0.0, &[], 3.0);
    }
}
