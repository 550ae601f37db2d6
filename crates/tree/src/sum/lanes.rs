//! How much is on its way at a time: rings with buffers of their own, and windows on files. However
//! many threads there are, memory is promised to be small.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::lock::lock;
use flatout_io::digest::{MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES};
use flatout_io::{Caching, Engine, ProfileEntry, Split, Tuning};

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

/// Bytes that a ring may have on their way, whatever was measured: memory is promised to be small.
const MOST_RING_BYTES: u64 = 8 << 20;

/// The settings measured for files like this one, where they are those of a ring: whoever reads
/// with one request at a time would digest while the device rests.
pub(super) fn tuning(measured: Option<&ProfileEntry>) -> Tuning {
    let segments = MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES;
    let usable = |tuning: &Tuning| {
        let Tuning { engine, caching, block_bytes, depth, .. } = *tuning;
        (engine, caching) == (Engine::Uring, Caching::Direct)
            && block_bytes.is_power_of_two()
            && segments.contains(&block_bytes)
            && block_bytes * u64::from(depth) <= MOST_RING_BYTES
    };
    let measured = measured.map(|entry| entry.tuning).filter(usable);
    measured.map_or(TUNING, |tuning| Tuning { threads: 1, split: Split::Contiguous, ..tuning })
}

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
        let mut free = lock(&self.free);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::{Evidence, ProfileKey, SizeClass, Work};

    use super::*;

    #[test]
    fn what_was_measured_is_taken_where_it_is_a_ring_of_segments_that_fits() {
        let entry = |tuning| ProfileEntry {
            key: ProfileKey {
                machine: String::new(),
                kernel: String::new(),
                cpus: 0,
                work: Work::Read,
                size: SizeClass::Large,
                cached: false,
                source: String::new(),
                target: String::new(),
            },
            tuning,
            limit_bytes_per_s: 1.0,
            file_bytes: 1,
            evidence: Evidence { time: String::new(), n: 6, ci95: None },
        };
        let good = Tuning { block_bytes: 1 << 20, depth: 4, threads: 3, ..TUNING };
        assert_eq!(tuning(Some(&entry(good))), Tuning { threads: 1, ..good });
        assert_eq!(tuning(None), TUNING);
        for other in [
            Tuning { engine: Engine::Sync, ..good },
            Tuning { caching: Caching::Buffered, ..good },
            Tuning { block_bytes: 3 << 18, ..good },
            Tuning { block_bytes: 1 << 30, ..good },
            Tuning { depth: 32, ..good },
        ] {
            assert_eq!(tuning(Some(&entry(other))), TUNING, "{other:?}");
        }
    }
}
