//! Why a copy ends early: the user, or a target without room.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use flatout_io::MAX_INTERRUPTIONS;
use flatout_sys::cancel::CancelToken;
use rustix::io::Errno;

use crate::lock::lock;

/// Looked at between two pieces, and between two entries.
#[derive(Debug, Default)]
pub(super) struct Stop {
    cancel: CancelToken,
    /// A thread panicked: what is left is not done.
    broken: AtomicBool,
    has_full: AtomicBool,
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

    /// Does something once more that a signal has interrupted, unless that was the wish to stop. Servers,
    /// and programs that serve files, may give up at any signal, and the kernel does not ask them again.
    pub(super) fn unless_due<T>(&self, act: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        let mut tries = 0;
        loop {
            match act() {
                Err(Errno::INTR) if tries < MAX_INTERRUPTIONS && !self.is_due() => tries += 1,
                done => return done,
            }
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
