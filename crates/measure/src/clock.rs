//! Time as the measuring code sees it, so that tests can hold it still.

use std::cell::Cell;

/// A steady clock.
pub trait Clock {
    /// Nanoseconds since an arbitrary start; never goes back.
    fn now_ns(&self) -> u64;
}

/// The kernel's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        flatout_sys::clock::monotonic_ns()
    }
}

/// A clock that moves only when it is told to; for tests.
#[derive(Debug, Default)]
pub struct FakeClock {
    now_ns: Cell<u64>,
    step_ns: Cell<u64>,
}

impl FakeClock {
    /// A clock that stands at `now_ns`.
    pub fn new(now_ns: u64) -> Self {
        Self { now_ns: Cell::new(now_ns), step_ns: Cell::new(0) }
    }

    /// Moves the clock to `now_ns`.
    pub fn set(&self, now_ns: u64) {
        self.now_ns.set(now_ns);
    }

    /// Moves the clock on by `by_ns`.
    pub fn advance(&self, by_ns: u64) {
        self.now_ns.set(self.now_ns.get().saturating_add(by_ns));
    }

    /// Makes every reading move the clock on by `step_ns`, as if reading took that long.
    pub fn set_step(&self, step_ns: u64) {
        self.step_ns.set(step_ns);
    }
}

impl Clock for FakeClock {
    fn now_ns(&self) -> u64 {
        let now = self.now_ns.get();
        self.advance(self.step_ns.get());
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fake_stands_still_until_told() {
        let clock = FakeClock::new(5);
        assert_eq!((clock.now_ns(), clock.now_ns()), (5, 5));
        clock.advance(3);
        assert_eq!(clock.now_ns(), 8);
        clock.set(1);
        assert_eq!(clock.now_ns(), 1);
    }

    #[test]
    fn the_fake_can_cost_time_to_read() {
        let clock = FakeClock::default();
        clock.set_step(7);
        assert_eq!((clock.now_ns(), clock.now_ns()), (0, 7));
    }

    #[test]
    fn the_system_clock_does_not_go_back() {
        let first = SystemClock.now_ns();
        assert!(SystemClock.now_ns() >= first);
    }
}
