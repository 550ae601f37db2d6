//! Why a copy ends early: the user, or a target without room.

use std::sync::atomic::{AtomicBool, Ordering};

use flatout_sys::cancel::CancelToken;

/// Looked at between two pieces, and between two entries.
#[derive(Debug)]
pub(super) struct Stop {
    cancel: CancelToken,
    full: AtomicBool,
}

impl Stop {
    pub(super) fn new(cancel: CancelToken) -> Self {
        Self { cancel, full: AtomicBool::new(false) }
    }

    /// There is no room for anything more.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Ends the copy for want of room.
    pub(super) fn fill(&self) {
        self.full.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether nothing more is to be begun.
    pub(super) fn is_due(&self) -> bool {
        self.is_cancelled() || self.is_full()
    }
}
