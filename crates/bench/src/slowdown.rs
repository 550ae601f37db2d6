//! How many times slower than on a quiet machine work gets done just now: for what is announced.

use std::path::Path;

use flatout_sys::clock::{monotonic_ns, thread_cpu_ns};
use flatout_sys::pressure::{self, Resource};

/// CPU time of the probe: several slices of the scheduler, which lets who was asleep go first.
const PROBE_NS: u64 = 10_000_000;

/// The time that a thread takes for some work, by its CPU time, and how many of the others' waits
/// for I/O came meanwhile; at least 1.
///
/// Cost: 10 ms of a CPU.
pub(crate) fn now() -> f64 {
    let io_waited_ns =
        || pressure::pressure(Path::new("/"), Resource::Io).map_or(0, |io| io.some_ns);
    let (waited_ns, begun_ns, cpu_ns) = (io_waited_ns(), monotonic_ns(), thread_cpu_ns());
    while thread_cpu_ns() - cpu_ns < PROBE_NS {
        std::hint::spin_loop();
    }
    let elapsed_ns = (monotonic_ns() - begun_ns).max(PROBE_NS) as f64;
    let io_share = (io_waited_ns() - waited_ns) as f64 / elapsed_ns;
    elapsed_ns / PROBE_NS as f64 * (1.0 + io_share.min(1.0))
}
