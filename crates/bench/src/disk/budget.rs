//! How many bytes a run may yet write. Nothing is written that was not taken from here before.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that may yet be written.
#[derive(Debug)]
pub(super) struct Budget {
    left_bytes: AtomicU64,
}

impl Budget {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self { left_bytes: AtomicU64::new(most_bytes) }
    }

    /// Takes up to `wanted_bytes`, in whole multiples of `unit_bytes`; 0 when not even one is left.
    pub(super) fn take(&self, wanted_bytes: u64, unit_bytes: u64) -> u64 {
        let part = |left: u64| {
            let taken = wanted_bytes.min(left);
            taken - taken % unit_bytes.max(1)
        };
        let order = Ordering::Relaxed;
        let left = self.left_bytes.fetch_update(order, order, |left| Some(left - part(left)));
        part(left.unwrap_or(0))
    }

    /// Puts back what was taken and not written.
    pub(super) fn give_back(&self, bytes: u64) {
        self.left_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_than_there_is_and_only_whole_blocks() {
        let budget = Budget::new(1000);
        assert_eq!(budget.take(400, 100), 400);
        budget.give_back(100);
        assert_eq!(budget.take(10_000, 300), 600);
        assert_eq!((budget.take(300, 300), budget.take(100, 1)), (0, 100));
    }
}
