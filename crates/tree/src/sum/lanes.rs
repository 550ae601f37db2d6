//! How many files are read around the page cache at a time: each has a ring with buffers of its
//! own, and memory is promised to be small.

use std::sync::{Condvar, Mutex, PoisonError};

use flatout_io::{Caching, Engine, Split, Tuning};

/// Rings at a time. Two keep a fast device busy while both digest.
const MOST: u32 = 2;

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

/// The lanes that are free.
#[derive(Default)]
pub(super) struct Lanes {
    taken: Mutex<u32>,
    freed: Condvar,
}

/// A lane that is taken, until it is dropped.
pub(super) struct Lane<'a>(&'a Lanes);

impl Lanes {
    /// Waits for a lane.
    pub(super) fn take(&self) -> Lane<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken >= MOST {
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += 1;
        Lane(self)
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}
