//! The bytes that lanes read, and how they are handed out.

use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::scan::Plan;
use flatout_io::{Engine, Lane, Split, Tuning};

/// Bytes that a lane gets at a time where the lanes share a file out as they become free: what is
/// mapped at a time.
pub(super) const SHARE_BYTES: u64 = 16 << 20;

/// Bytes to be read, and how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) start_bytes: u64,
    pub(super) end_bytes: u64,
    pub(super) repeats: u64,
}

impl Range {
    pub(super) fn length_bytes(&self) -> u64 {
        self.end_bytes.saturating_sub(self.start_bytes)
    }

    /// One pass in which the lane that is free gets the next share: none waits at the end for one
    /// that was held up. `None`: each lane has its part from the beginning. A ring would run empty
    /// between shares.
    pub(super) fn shared(&self, tuning: &Tuning) -> Option<Shared> {
        let Tuning { engine, block_bytes, threads, split, .. } = *tuning;
        let is_even = split == Split::Contiguous && engine != Engine::Uring && threads > 1;
        let least_bytes = u64::from(threads).saturating_mul(2 * SHARE_BYTES.max(block_bytes));
        (is_even && self.length_bytes() >= least_bytes).then(|| Shared {
            start_bytes: self.start_bytes,
            end_bytes: self.end_bytes,
            block_bytes,
            taken: AtomicU64::default(),
        })
    }
}

/// A range of which lanes take shares.
pub(super) struct Shared {
    start_bytes: u64,
    end_bytes: u64,
    block_bytes: u64,
    taken: AtomicU64,
}

impl Shared {
    /// The next share: whole blocks, but for the end.
    pub(super) fn take(&self) -> Option<Plan> {
        let share_bytes = (SHARE_BYTES / self.block_bytes).max(1) * self.block_bytes;
        let place = self.taken.fetch_add(1, Ordering::Relaxed).checked_mul(share_bytes)?;
        let start_bytes = self.start_bytes.checked_add(place)?;
        (start_bytes < self.end_bytes).then(|| Plan {
            start_bytes,
            end_bytes: self.end_bytes.min(start_bytes.saturating_add(share_bytes)),
            block_bytes: self.block_bytes,
            split: Split::Contiguous,
            lane: Lane::ONLY,
        })
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::Caching;

    use super::*;

    fn tuning(block_bytes: u64, threads: u32) -> Tuning {
        Tuning {
            engine: Engine::Mmap,
            caching: Caching::Buffered,
            block_bytes,
            depth: 1,
            threads,
            split: Split::Contiguous,
        }
    }

    #[test]
    fn shares_cover_each_block_once() {
        let range = Range { start_bytes: 1000, end_bytes: (200 << 20) + 7, repeats: 1 };
        for block_bytes in [1, 4096, 3 << 20, 40 << 20] {
            let shared = range.shared(&tuning(block_bytes, 2)).expect("long enough");
            let mut end = range.start_bytes;
            while let Some(plan) = shared.take() {
                assert_eq!(plan.start_bytes, end);
                assert_eq!((plan.start_bytes - range.start_bytes) % block_bytes, 0);
                end = plan.end_bytes;
                assert!(
                    end == range.end_bytes || (end - plan.start_bytes).is_multiple_of(block_bytes)
                );
            }
            assert_eq!(end, range.end_bytes);
            assert_eq!(shared.take(), None);
        }
    }

    #[test]
    fn what_is_short_or_otherwise_split_is_not_shared() {
        let range = Range { start_bytes: 0, end_bytes: 64 << 20, repeats: 1 };
        let usual = tuning(4096, 2);
        assert!(range.shared(&usual).is_some());
        for other in [
            tuning(4096, 1),
            tuning(4096, 3),
            tuning(64 << 20, 2),
            Tuning { engine: Engine::Uring, ..usual },
            Tuning { split: Split::Interleaved, ..usual },
        ] {
            assert!(range.shared(&other).is_none(), "{other:?}");
        }
        let stream = Range { end_bytes: u64::MAX, ..range };
        assert!(stream.shared(&tuning(4096, 1)).is_none());
    }
}
