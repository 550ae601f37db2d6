//! Ranges of a large file that nobody has taken, in one word for several threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Ranges of a file: the first one, and the one behind the last.
pub(in crate::copy) type Ranges = (u32, u32);

/// The half that stays, and the last one, which goes; `None`: there is too little.
pub(in crate::copy) fn halves((first, end): Ranges) -> Option<(Ranges, Ranges)> {
    let middle = first + end.saturating_sub(first).div_ceil(2);
    (middle < end).then_some(((first, middle), (middle, end)))
}

/// The same, for several threads.
#[derive(Debug)]
pub(super) struct Span(AtomicU64);

impl Span {
    pub(super) fn new((first, end): Ranges) -> Self {
        Self(AtomicU64::new(u64::from(first) << 32 | u64::from(end)))
    }

    pub(super) fn get(&self) -> Ranges {
        Self::unpacked(self.0.load(Ordering::Relaxed))
    }

    fn unpacked(word: u64) -> Ranges {
        ((word >> 32) as u32, word as u32)
    }

    /// Puts in the place of the ranges what `rest` leaves of them; returns what there was before.
    pub(super) fn take(&self, rest: impl Fn(Ranges) -> Option<Ranges>) -> Option<Ranges> {
        let next = |word| {
            let (first, end) = rest(Self::unpacked(word))?;
            Some(u64::from(first) << 32 | u64::from(end))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().map(Self::unpacked)
    }
}
