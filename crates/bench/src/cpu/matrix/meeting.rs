//! Threads that meet without sleeping: a product of order 500 takes some milliseconds, and a thread
//! that sleeps is woken late.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Looks before a thread gives its CPU away between two of them, where threads are more than CPUs.
const LOOKS: u32 = 1 << 13;

/// Where threads wait for each other, time and again. One that panics in between would be waited
/// for: what lies between is arithmetic.
pub(super) struct Meeting {
    count: AtomicU32,
    arrived: AtomicU32,
}

impl Meeting {
    /// For so many threads; for as many as [`Self::expect`] will say where that is 0.
    pub(super) fn of(count: u32) -> Self {
        let count = if count == 0 { u32::MAX } else { count };
        Self { count: count.into(), arrived: 0.into() }
    }

    /// Says how many there are.
    pub(super) fn expect(&self, count: u32) {
        self.count.store(count, Ordering::Release);
    }

    /// Waits for the others; `turn` is 1 for the first time.
    pub(super) fn wait(&self, turn: u32) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let is_whole = || {
            let all = self.count.load(Ordering::Acquire).saturating_mul(turn);
            self.arrived.load(Ordering::Acquire) >= all
        };
        spin_until(is_whole, || {
            std::thread::yield_now();
            false
        });
    }
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
        let meeting = Meeting::of(0);
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
            meeting.expect(3);
            turns(&meeting);
        });
    }
}
