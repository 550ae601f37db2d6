//! Threads that meet without sleeping: a product of order 500 takes some milliseconds, and a thread
//! that sleeps is woken late.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use flatout_sys::{affinity, monotonic_ns, thread_cpu_ns};

use crate::cores;
use crate::workers::{self, ThreadError, lock};

/// Looks before a thread gives its CPU away between two of them, where threads are more than CPUs.
const LOOKS: u32 = 1 << 13;
/// How often it does that before it sleeps: who is away for longer has no CPU, and where a quota is the
/// reason this thread would use up what is left of it.
const YIELDS: u32 = 64;
const NAP: Duration = Duration::from_micros(50);

/// Where threads wait for each other, time and again. One that panics in between would be waited
/// for: what lies between is arithmetic.
pub(super) struct Meeting {
    count: u32,
    arrived: AtomicU32,
}

impl Meeting {
    /// For so many threads.
    pub(super) fn of(count: u32) -> Self {
        Self { count, arrived: 0.into() }
    }

    /// Waits for the others; `turn` is 1 for the first time.
    pub(super) fn wait(&self, turn: u32) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let is_whole = || self.arrived.load(Ordering::Acquire) >= self.count * turn;
        let mut yields = 0;
        spin_until(is_whole, || {
            yields += 1;
            if yields < YIELDS {
                std::thread::yield_now()
            } else {
                flatout_sys::thread::sleep(NAP)
            }
            false
        });
    }
}

/// What work took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timed {
    /// From the first start to the last end.
    pub(super) elapsed_ns: u64,
    /// CPU time of all threads meanwhile.
    pub(super) cpu_ns: u64,
}

/// The CPU on which a thread of so many begins; none where threads are more than CPUs.
fn cpu_of(index: u32, count: usize) -> Option<usize> {
    static ORDER: OnceLock<Vec<usize>> = OnceLock::new();
    let order = ORDER.get_or_init(|| cores::in_order().unwrap_or_default());
    order.get(index as usize).copied().filter(|_| (2..=order.len()).contains(&count))
}

/// Runs `work` in as many threads as there are rooms, each with one of them, and returns what it took
/// with all threads there and awake: waiting for them takes CPU time, too, and is not the work's.
///
/// Errors: not all of them can be started.
pub(super) fn timed<R: Send>(
    rooms: &mut [R],
    work: impl Fn(u32, &mut R) + Sync,
) -> Result<Timed, ThreadError> {
    let start = Meeting::of(rooms.len() as u32);
    let rooms: Vec<Mutex<&mut R>> = rooms.iter_mut().map(Mutex::new).collect();
    let (times, _) = workers::each(rooms.len() as u32, |index| {
        let mut room = lock(&rooms[index as usize]);
        // The kernel starts threads on one CPU, and takes milliseconds to part them: a product of order
        // 500 had half of its rate by two of two CPUs (Emerald Rapids, Linux 6.18, 2026-11-28). Where a
        // CPU is not to be had, it stays as it is.
        let _ = cpu_of(index, rooms.len()).map(affinity::move_to);
        start.wait(1);
        let (start_cpu_ns, start_ns) = (thread_cpu_ns(), monotonic_ns());
        work(index, &mut **room);
        (start_ns, monotonic_ns(), thread_cpu_ns() - start_cpu_ns)
    })?;
    let first_ns = times.iter().map(|time| time.0).min().unwrap_or(0);
    let last_ns = times.iter().map(|time| time.1).max().unwrap_or(0);
    let cpu_ns = times.iter().map(|time| time.2).sum();
    Ok(Timed { elapsed_ns: last_ns.saturating_sub(first_ns), cpu_ns })
}

/// Looks until it is so, and does `instead` when that takes long; ends when one of them says so.
pub(super) fn spin_until(is_so: impl Fn() -> bool, mut instead: impl FnMut() -> bool) {
    let mut looks = 0;
    while !is_so() {
        looks += 1;
        if looks < LOOKS {
            spin_loop();
        } else if instead() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        let meeting = Meeting::of(3);
        let sum = AtomicU32::new(0);
        let turns = |meeting: &Meeting| {
            for turn in 1..50 {
                sum.fetch_add(1, Ordering::SeqCst);
                meeting.wait(2 * turn - 1);
                assert_eq!(sum.load(Ordering::SeqCst), 3 * turn);
                meeting.wait(2 * turn);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| turns(&meeting));
            }
            turns(&meeting);
        });
    }
}
