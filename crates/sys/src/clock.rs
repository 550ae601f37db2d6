//! The two clocks of the kernel that a measurement needs.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`. Cost: one vDSO call, no system call on common machines.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`, which nobody steers.
pub fn monotonic_raw_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicRaw))
}

fn nanoseconds(time: Timespec) -> u64 {
    // Both clocks count from boot: neither part is ever negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
