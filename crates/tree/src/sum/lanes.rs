//! How much is on its way at a time: rings with buffers of their own, and windows on files. However
//! many threads there are, memory is promised to be small.

use std::sync::{Condvar, Mutex, PoisonError};

use flatout_io::{Caching, Engine, Split, Tuning};

/// Rings at a time. Two keep a fast device busy while both digest.
pub(super) const MOST_RINGS: u32 = 2;

/// How a large file is read that the page cache does not hold. 4 MiB of buffers. Figure: 1 GiB,
/// BLAKE3, 2 CPUs, virtio disk, 2026-11-22: see docs/performance.md.
pub(super) const TUNING: Tuning = Tuning {
    engine: Engine::Uring,
    caching: Caching::Direct,
    block_bytes: 512 << 10,
    depth: 8,
    threads: 1,
    split: Split::Contiguous,
};

/// So many at a time, whoever they are.
pub(super) struct Permits {
    free: Mutex<u32>,
    freed: Condvar,
}

/// A permit, until it is dropped.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    /// As many as there are.
    pub(super) fn new(most: u32) -> Self {
        Self { free: Mutex::new(most), freed: Condvar::new() }
    }

    /// Waits for one.
    pub(super) fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
