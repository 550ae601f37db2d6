//! Looks at the page cache while others work on a file, for what is gone when they have ended: a
//! filesystem that buffers direct writes (btrfs with checksums, in Linux 6.18) writes the pages back
//! and drops them before each call returns, so that the cache is empty before and after.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use flatout_measure::{Facts, Key, Merge};
use flatout_sys::CacheState;

use super::page_cache::Pages;
use crate::Watch;

/// Looks that were taken while the work ran, and those that found more pages of the file in the
/// cache than there were before.
pub(crate) const CACHE_LOOKS: Key = Key::sum("cache_looks");
pub(crate) const CACHE_LOOKS_FILLED: Key = Key::sum("cache_looks_filled");
/// The most that a look found.
pub(crate) const CACHED_DURING_BYTES: Key = Key::new("cached_during_bytes", Merge::Max);

/// Looks in a trial of usual length; one costs a microsecond where the cache is empty.
const LOOKS: u32 = 20;
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// What is looked at, and how often.
#[derive(Clone, Copy)]
pub(crate) struct CacheWatch<'a> {
    pages: Pages<'a>,
    before_bytes: u64,
    interval: Duration,
}

/// What was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    taken: u64,
    filled: u64,
    most_bytes: u64,
}

impl<'a> CacheWatch<'a> {
    /// Of pages of which `before` were cached. None where only mincore(2) tells: it walks every page,
    /// which would be a disturbance.
    pub(crate) fn new(
        pages: Pages<'a>,
        before: Option<CacheState>,
        runtime_ns: u64,
    ) -> Option<Self> {
        let before = before.filter(|before| before.dirty_bytes.is_some())?;
        let interval = (Duration::from_nanos(runtime_ns) / LOOKS).max(LEAST_INTERVAL);
        Some(Self { pages, before_bytes: before.cached_bytes, interval })
    }

    /// Runs `work` and looks between the moments that it reports. Without a watch, and where no thread
    /// can be started, nobody looks.
    pub(crate) fn during<T>(watch: Option<Self>, work: impl FnOnce(Watch<'_>) -> T) -> (T, Looks) {
        let Some(watch) = watch else { return (work(Watch::NOBODY), Looks::default()) };
        let (report, reports) = mpsc::channel();
        thread::scope(|scope| {
            // Not counted: it looks at work now and then.
            let look = move || watch.look_until_ended(&reports);
            let looking = flatout_sys::thread::spawn(scope, thread::Builder::new(), look);
            // Nobody hears it where there is no such thread.
            let tell = || _ = report.send(());
            let done = work(Watch { begins: &tell, ended: &tell });
            drop(report);
            let looks = looking.ok().and_then(|looking| looking.join().ok());
            (done, looks.unwrap_or_default())
        })
    }

    /// Looks from the first report to the second, or until there can be none.
    fn look_until_ended(&self, reports: &Receiver<()>) -> Looks {
        let mut looks = Looks::default();
        if reports.recv().is_ok() {
            while reports.recv_timeout(self.interval) == Err(RecvTimeoutError::Timeout) {
                looks.take(self.pages.held(), self.before_bytes);
            }
        }
        looks
    }
}

impl Looks {
    fn take(&mut self, held: Option<CacheState>, before_bytes: u64) {
        let Some(held) = held else { return };
        self.taken += 1;
        self.filled += u64::from(held.cached_bytes > before_bytes);
        self.most_bytes = self.most_bytes.max(held.cached_bytes);
    }

    pub(crate) fn facts(&self) -> Facts {
        if self.taken == 0 {
            return Facts::default();
        }
        Facts::default()
            .with(CACHE_LOOKS, self.taken)
            .with(CACHE_LOOKS_FILLED, self.filled)
            .with(CACHED_DURING_BYTES, self.most_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_look_counts_as_filled_where_there_is_more_than_before() {
        let held = |cached_bytes| Some(CacheState { cached_bytes, dirty_bytes: Some(0) });
        let mut looks = Looks::default();
        for state in [held(4096), held(8192), None, held(0)] {
            looks.take(state, 4096);
        }
        assert_eq!(looks, Looks { taken: 3, filled: 1, most_bytes: 8192 });
        assert_eq!(looks.facts().count(CACHE_LOOKS_FILLED), Some(1));
        assert_eq!(Looks::default().facts(), Facts::default(), "nobody looked");
    }

    #[test]
    fn nobody_looks_before_the_work_begins_or_once_it_has_ended() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 8192]).unwrap();
        let pages = Pages { file: file.as_fd(), path: Path::new("x"), length_bytes: 8192 };
        let watch = CacheWatch { pages, before_bytes: 0, interval: Duration::from_nanos(1) };
        let (done, looks) = CacheWatch::during(Some(watch), |_| 7);
        assert_eq!((done, looks), (7, Looks::default()), "it never began");
        // It begins, and nothing more is needed than that the looking ends with it.
        let (done, looks) = CacheWatch::during(Some(watch), |watch| {
            (watch.begins)();
            (watch.ended)();
        });
        assert_eq!(done, ());
        assert_eq!(looks.filled, looks.taken, "the file is cached all the time");
        assert!(CacheWatch::new(pages, None, 1).is_none());
        let mincore = CacheState { cached_bytes: 0, dirty_bytes: None };
        assert!(CacheWatch::new(pages, Some(mincore), 1).is_none());
    }
}
