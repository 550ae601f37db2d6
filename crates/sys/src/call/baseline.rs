//! What is not a system call: the loop itself, a function call, and the clock in the vDSO.
//!
//! [`empty_loop_time`] is what a caller subtracts from every other loop in this module tree.

use std::io;
use std::time::{Duration, Instant};

use super::{raw, repeat};

/// Turns the loop that all calls share, with nothing in it.
///
/// Cost: no system call. One turn is a few instructions; it is measured to be subtracted.
#[inline(never)]
pub fn empty_loop(calls: u64) {
    const VALUE: isize = 39;
    // The result cannot be an error: what goes in comes out.
    let _ = repeat("nothing", calls, || raw::nothing(VALUE), |result| result == VALUE);
}

/// The time of an empty loop of so many turns: the shortest of eight parts, scaled, because an
/// interruption here would be subtracted from the calls and flatter them.
pub fn empty_loop_time(calls: u64) -> Duration {
    const PARTS: u64 = 8;
    const LEAST_TURNS: u64 = 1000;
    let turns = (calls / PARTS).max(LEAST_TURNS);
    let time = |_| {
        let start = Instant::now();
        empty_loop(turns);
        start.elapsed()
    };
    let shortest = (0..PARTS).map(time).min().unwrap_or_default();
    shortest.mul_f64(calls as f64 / turns as f64)
}

/// Calls a function without body, by the processor's own call instruction.
///
/// The call stands in assembly because the compiler may drop a call to a function that it can
/// see to be empty, however little it may inline.
#[inline(never)]
pub fn empty_function(calls: u64) {
    for _ in 0..calls {
        call_hollow();
    }
}

#[inline(never)]
extern "C" fn hollow() {}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn call_hollow() {
    // SAFETY: `hollow` follows the C convention whose clobbers are declared, and takes nothing.
    unsafe { std::arch::asm!("call {}", sym hollow, clobber_abi("C")) };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn call_hollow() {
    // SAFETY: `hollow` follows the C convention whose clobbers are declared, and takes nothing.
    unsafe { std::arch::asm!("bl {}", sym hollow, clobber_abi("C")) };
}

/// Reads the monotonic clock through libc, which asks the vDSO: no system call where the
/// kernel's clock source can be read from user space, a system call where it cannot.
///
/// # Errors
/// The error of `clock_gettime`.
#[inline(never)]
pub fn vdso_clock(calls: u64) -> io::Result<()> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    for _ in 0..calls {
        // SAFETY: `now` lives across the call and is writable.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    std::hint::black_box(now.tv_nsec);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_without_system_calls_end() {
        empty_loop(1000);
        empty_function(1000);
        vdso_clock(1000).unwrap();
    }

    #[test]
    fn an_empty_loop_of_no_turns_takes_no_time() {
        assert_eq!(empty_loop_time(0), Duration::ZERO);
        assert!(empty_loop_time(1_000_000) > Duration::ZERO);
    }
}
