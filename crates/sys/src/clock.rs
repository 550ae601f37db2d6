//! The kernel's two steady clocks and those of CPU time, in nanoseconds.
//!
//! Both count from an arbitrary start and never go back. Only differences mean anything.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads `CLOCK_MONOTONIC`, whose rate NTP may steer.
///
/// Units: nanoseconds since an arbitrary start. Cost: one vDSO call, tens of nanoseconds; a
/// real system call where the clock source has no vDSO reader (some virtual machines).
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Reads `CLOCK_MONOTONIC_RAW`, the same hardware counter without NTP's steering.
///
/// Units and cost as [`monotonic_ns`].
pub fn monotonic_raw_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicRaw))
}

/// Reads `CLOCK_THREAD_CPUTIME_ID`: what the calling thread has had of a CPU, up to this moment;
/// getrusage(2) tells it up to the last tick of the scheduler.
///
/// Units: nanoseconds. Cost: one system call.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Reads `CLOCK_PROCESS_CPUTIME_ID`: what all threads of this process have had of the CPUs.
///
/// Units and cost as [`thread_cpu_ns`].
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// So many nanoseconds, as calls with a time-out take them.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Both fields are non-negative for the clocks read here, and 2^64 ns are 584 years of uptime.
fn nanoseconds(time: Timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_nanoseconds_are_joined() {
        assert_eq!(nanoseconds(Timespec { tv_sec: 2, tv_nsec: 5 }), 2_000_000_005);
    }

    #[test]
    fn a_thread_has_no_more_than_the_time() {
        let (start_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
        let mut sum = 0_u64;
        while thread_cpu_ns() == cpu_ns {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(thread_cpu_ns() - cpu_ns <= monotonic_ns() - start_ns + 1_000_000);
    }

    #[test]
    fn neither_clock_goes_back() {
        let (first, first_raw) = (monotonic_ns(), monotonic_raw_ns());
        assert!(monotonic_ns() >= first);
        assert!(monotonic_raw_ns() >= first_raw);
    }
}
