//! When a scan ends before its work is done: a deadline or a wish to stop.

use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;

/// Time that may pass between two looks at the clock.
const LOOK_EVERY_NS: u64 = 20_000;
/// Blocks between two looks at most, so that a slow block after many fast ones is noticed.
const MAX_STRIDE: u32 = 4096;

/// Asked after each block. Cost: a decrement; the clock is read about every 20 µs.
#[derive(Debug, Clone)]
pub struct Stop {
    deadline_ns: u64,
    cancel: CancelToken,
    countdown: u32,
    stride: u32,
    looked_ns: u64,
}

impl Stop {
    /// Stops when the token says so, or at `deadline_ns` of the monotonic clock.
    pub fn new(cancel: CancelToken, deadline_ns: Option<u64>) -> Self {
        let deadline_ns = deadline_ns.unwrap_or(u64::MAX);
        Self { deadline_ns, cancel, countdown: 1, stride: 1, looked_ns: 0 }
    }

    /// Never stops.
    pub fn never() -> Self {
        Self::new(CancelToken::manual(), None)
    }

    /// Whether to stop now.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.passed(1)
    }

    /// Blocks that may pass before [`Stop::passed`] has to be called; at least 1.
    #[inline]
    pub fn burst(&self) -> u32 {
        self.countdown
    }

    /// Whether to stop now, after `blocks` more blocks, at most those of [`Stop::burst`].
    #[inline]
    pub fn passed(&mut self, blocks: u32) -> bool {
        self.countdown -= blocks;
        self.countdown == 0 && self.look()
    }

    /// Nanoseconds until the deadline; `None` without one.
    pub fn remaining_ns(&self) -> Option<u64> {
        (self.deadline_ns != u64::MAX).then(|| self.deadline_ns.saturating_sub(monotonic_ns()))
    }

    /// Whether somebody asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) -> bool {
        let now_ns = monotonic_ns();
        let passed_ns = now_ns - self.looked_ns;
        self.looked_ns = now_ns;
        self.stride = match passed_ns {
            0..LOOK_EVERY_NS => (self.stride * 2).min(MAX_STRIDE),
            _ => (self.stride / 2).max(1),
        };
        self.countdown = self.stride;
        now_ns >= self.deadline_ns || self.cancel.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_deadline_stops_at_once_and_a_cancel_soon() {
        assert!(Stop::new(CancelToken::manual(), Some(1)).is_due());
        let token = CancelToken::manual();
        let mut stop = Stop::new(token, None);
        assert!(!(0..100_000).any(|_| stop.is_due()));
        token.cancel();
        assert!((0..=MAX_STRIDE).any(|_| stop.is_due()));
    }
}
