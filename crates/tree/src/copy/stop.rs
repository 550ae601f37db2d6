//! Why a copy ends early: the user, or a target without room.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatout_io::unless_interrupted;
use flatout_sys::cancel::CancelToken;
use rustix::io::Errno;

use crate::lock::lock;

/// A lease that is not given back is taken away by the kernel, by default after 45 s
/// (/proc/sys/fs/lease-break-time).
const WAIT: Duration = Duration::from_millis(10);
const MOST_WAITS: u32 = 60_000;
const TOLD_AFTER: u32 = 200;

/// Looked at between two pieces, and between two entries.
#[derive(Debug, Default)]
pub(super) struct Stop {
    cancel: CancelToken,
    /// A thread panicked: what is left is not done.
    broken: AtomicBool,
    has_full: AtomicBool,
    /// A lease was not given back in all the time that there is for it: none is waited for any more.
    is_impatient: AtomicBool,
    /// Devices of the target without room. A mount inside of it may be full, and the rest not.
    full: Mutex<Vec<u64>>,
}

impl Stop {
    pub(super) fn new(cancel: CancelToken) -> Self {
        Self { cancel, ..Self::default() }
    }

    /// Whether a filesystem of the target has no room.
    pub(super) fn has_full(&self) -> bool {
        self.has_full.load(Ordering::Relaxed)
    }

    /// Whether this device has no room for anything more.
    pub(super) fn is_full(&self, device: u64) -> bool {
        self.has_full() && lock(&self.full).contains(&device)
    }

    /// There is no room on this device: nothing more is begun there.
    pub(super) fn fill(&self, device: u64) {
        let mut full = lock(&self.full);
        if !full.contains(&device) {
            full.push(device);
        }
        self.has_full.store(true, Ordering::Relaxed);
    }

    /// Nothing more is done at all.
    pub(super) fn break_off(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Opens something. Where somebody holds a lease on it (fcntl(2)) he was asked to give it back: that is waited
    /// for here and not by the kernel, for a FIFO may bear the name meanwhile. Once that was in vain it is a server
    /// who says so, or somebody whom nobody makes give up: it is not waited for again. `tell` is called when it takes
    /// long.
    pub(super) fn when_given_back<T>(
        &self,
        open: impl Fn() -> Result<T, Errno>,
        tell: impl FnOnce(),
    ) -> Result<T, Errno> {
        let (mut waits, mut tell) = (0, Some(tell));
        loop {
            let opened = unless_interrupted(&open);
            let is_held = matches!(opened, Err(Errno::AGAIN));
            if !is_held || self.is_impatient.load(Ordering::Relaxed) || self.is_due() {
                return opened;
            }
            waits += 1;
            if waits >= TOLD_AFTER {
                tell.take().into_iter().for_each(|tell| tell());
            }
            if waits >= MOST_WAITS {
                self.is_impatient.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(WAIT);
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether nothing more is to be begun.
    pub(super) fn is_due(&self) -> bool {
        self.is_cancelled() || self.broken.load(Ordering::Relaxed)
    }

    /// Whether nothing more is to be begun on this device.
    pub(super) fn is_due_on(&self, device: u64) -> bool {
        self.is_due() || self.is_full(device)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn who_waited_in_vain_for_a_lease_waits_for_no_other_one() {
        let stop = Stop::new(CancelToken::manual());
        let asked = Cell::new(0);
        let open = |given_back: u32| {
            asked.set(0);
            let open = || {
                asked.set(asked.get() + 1);
                if asked.get() > given_back { Ok(()) } else { Err(Errno::AGAIN) }
            };
            stop.when_given_back(open, || unreachable!("it does not take long"))
        };
        assert_eq!((open(1), asked.get()), (Ok(()), 2));
        stop.is_impatient.store(true, Ordering::Relaxed);
        assert_eq!((open(1), asked.get()), (Err(Errno::AGAIN), 1));
        assert_eq!((open(0), asked.get()), (Ok(()), 1));
    }
}
