//! What the kernel's own accounts say about a write: bytes sent towards storage, pages cached.

use flatout_io::{Caching, Target};
use flatout_measure::warning::{self, Warning};
use flatout_sys::{page_cache, usage};

use super::Measured;

/// Direct writes may leave one part in this many of their bytes in the page cache: odd ends of a
/// file go through it.
const CACHED_PART: u64 = 10;

/// One reading of the accounts; `None` where the kernel keeps none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    device_write_bytes: Option<u64>,
    cached_bytes: Option<u64>,
}

impl Account {
    /// Reads the totals of this process and the share of the file in the page cache.
    ///
    /// Cost: a file of /proc and one cachestat; outside the clock.
    pub(super) fn read(target: &Target, length_bytes: u64) -> Self {
        let state = page_cache::state(target.file(), 0, length_bytes);
        Self {
            device_write_bytes: usage::process_io().map(|totals| totals.device_write_bytes),
            cached_bytes: state.ok().map(|state| state.cached_bytes),
        }
    }

    /// Writes down what changed from `self` to `after`.
    pub(super) fn settle(self, after: Self, caching: Caching, measured: &mut Measured) {
        measured.device_write_bytes = after
            .device_write_bytes
            .zip(self.device_write_bytes)
            .map(|(after, before)| after.saturating_sub(before));
        measured.cached_after_bytes = after.cached_bytes;
        let grown =
            after.cached_bytes.unwrap_or(0).saturating_sub(self.cached_bytes.unwrap_or(u64::MAX));
        if caching == Caching::Direct && grown > measured.bytes / CACHED_PART {
            let text = format!(
                "the page cache grew by {grown} bytes during direct writes: they went through it"
            );
            warning::add(&mut measured.warnings, Warning::new(warning::DIRECT_CACHED, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Account = Account { device_write_bytes: Some(1000), cached_bytes: Some(4096) };

    fn settled(caching: Caching, after: Account) -> Measured {
        let mut measured = Measured { bytes: 100_000, ..Measured::default() };
        BEFORE.settle(after, caching, &mut measured);
        measured
    }

    #[test]
    fn direct_writes_that_fill_the_page_cache_are_doubted() {
        let after = Account { device_write_bytes: Some(101_000), cached_bytes: Some(104_096) };
        let measured = settled(Caching::Direct, after);
        assert!(warning::has(&measured.warnings, warning::DIRECT_CACHED));
        assert_eq!(measured.device_write_bytes, Some(100_000));
        assert_eq!(measured.cached_after_bytes, Some(104_096));
        assert!(settled(Caching::Buffered, after).warnings.is_empty());
    }

    #[test]
    fn an_odd_end_or_an_unknown_cache_is_no_doubt() {
        for cached_bytes in [None, Some(0), Some(4096), Some(4096 + 10_000)] {
            let after = Account { device_write_bytes: None, cached_bytes };
            let measured = settled(Caching::Direct, after);
            assert!(measured.warnings.is_empty(), "{cached_bytes:?}");
            assert_eq!(measured.device_write_bytes, None);
        }
    }
}
