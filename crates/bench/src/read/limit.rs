//! What bounds a read: the best that was measured here, and where most of its time goes. Pure.

use flatout_io::{Caching, Engine, ProfileEntry, Tuning};
use flatout_measure::Ceiling;

use crate::file_trial::measured;

/// From this share of the bytes on, the device has given most of them.
const MOST: f64 = 0.5;
/// From this share of its CPUs on, a read hardly waits.
const BUSY: f64 = 0.9;
const PAGE_BYTES: u64 = 4096;

/// What is known of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) tuning: Tuning,
    /// Share of the bytes that storage was asked for.
    pub(super) fetched_ratio: f64,
    /// CPU time, as a share of what its threads could have got.
    pub(super) busy_ratio: Option<f64>,
    /// Its threads had what the quota of the control group gives, and could have used more.
    pub(super) is_held_back: bool,
}

/// Whether threads that had so many CPUs were held back by a quota below that: shorter than its period
/// (0.1 s) they may have had more of it than it gives in the long run, or waited for the next.
pub(super) fn is_held_back(own_cpus: f64, quota_cpus: f64) -> bool {
    (BUSY..=1.0 / BUSY).contains(&(own_cpus / quota_cpus))
}

impl Way {
    pub(super) fn is_fetched(&self) -> bool {
        self.fetched_ratio >= MOST
    }

    /// The bound, and what limits the figure: that of the control `group`, or what was measured of files like
    /// this one.
    pub(super) fn ceiling(&self, group: Option<Ceiling>, best: Option<&ProfileEntry>) -> Ceiling {
        let alike = best.filter(|entry| entry.key.cached != self.is_fetched());
        let bound = group.unwrap_or_else(|| measured::earlier("read", alike));
        if bound.limiter.is_empty() { bound.limited_by(self.limiter()) } else { bound }
    }

    fn limiter(&self) -> &'static str {
        let Tuning { engine, caching, block_bytes, .. } = self.tuning;
        let is_small = block_bytes < PAGE_BYTES;
        match (self.is_fetched(), caching, engine) {
            _ if self.is_held_back => "the CPU quota",
            (true, ..) if self.busy_ratio.is_some_and(|share| share >= BUSY) => "the CPU",
            (true, Caching::Direct, _) => "the device",
            (true, ..) if is_small => "readahead and system calls",
            (true, ..) => "the device, and readahead depth",
            (false, Caching::Direct, _) => "what answers direct requests without the device",
            (false, _, Engine::Mmap) if is_small => "the loop over blocks",
            (false, _, Engine::Mmap) => "page faults and memory",
            (false, ..) if is_small => "the system call, and finding the page",
            (false, ..) => "copying out of the page cache",
        }
    }
}

#[cfg(test)]
mod tests {
    use flatout_io::{Evidence, ProfileKey, SizeClass, Split, Work};
    use flatout_measure::Provenance;

    use super::*;

    fn way(engine: Engine, caching: Caching, block_bytes: u64, fetched_ratio: f64) -> Way {
        let split = Split::Contiguous;
        let tuning = Tuning { engine, caching, block_bytes, depth: 1, threads: 1, split };
        Way { tuning, fetched_ratio, busy_ratio: Some(0.2), is_held_back: false }
    }

    #[test]
    fn what_limits_a_read_follows_from_where_its_bytes_came_from() {
        let direct = way(Engine::Uring, Caching::Direct, 1 << 20, 1.0);
        assert_eq!(direct.limiter(), "the device");
        let hole = Way { fetched_ratio: 0.0, ..direct };
        assert_eq!(hole.limiter(), "what answers direct requests without the device");
        let busy = Way { busy_ratio: Some(0.95), ..direct };
        assert_eq!(busy.limiter(), "the CPU", "a digest slower than the device");
        let quota = Way { is_held_back: true, ..hole };
        assert_eq!(quota.limiter(), "the CPU quota");
        let of = |engine, block, fetched| way(engine, Caching::Buffered, block, fetched).limiter();
        assert_eq!(of(Engine::Sync, 1, 1.2), "readahead and system calls");
        assert_eq!(of(Engine::Sync, 1 << 16, 1.0), "the device, and readahead depth");
        assert_eq!(of(Engine::Sync, 1, 0.0), "the system call, and finding the page");
        assert_eq!(of(Engine::Sync, 1 << 16, 0.1), "copying out of the page cache");
        assert_eq!(of(Engine::Mmap, 1 << 20, 0.0), "page faults and memory");
        assert_eq!(of(Engine::Mmap, 16, 0.0), "the loop over blocks");
    }

    #[test]
    fn a_quota_holds_back_who_had_all_of_it_and_no_more() {
        assert!(is_held_back(0.48, 0.5) && is_held_back(0.52, 0.5));
        assert!(!is_held_back(1.9, 0.5), "within a period");
        assert!(!is_held_back(0.2, 0.5), "something else was waited for");
    }

    #[test]
    fn a_read_is_held_against_what_was_measured_in_the_same_state_of_the_cache() {
        let key = ProfileKey {
            machine: String::new(),
            kernel: String::new(),
            cpus: 0,
            work: Work::Read,
            size: SizeClass::Large,
            cached: true,
            source: String::new(),
            target: String::new(),
        };
        let time = "2026-11-29T12:00:00+00:00".to_owned();
        let cached = way(Engine::Mmap, Caching::Buffered, 1 << 20, 0.0);
        let entry = ProfileEntry {
            key,
            tuning: cached.tuning,
            limit_bytes_per_s: 20e9,
            file_bytes: 1 << 28,
            evidence: Evidence { time, n: 6, ci95: Some([19e9, 21e9]) },
        };
        let bound = cached.ceiling(None, Some(&entry));
        assert_eq!((bound.value, bound.provenance), (Some(21e9), Provenance::Earlier));
        assert_eq!(bound.name, "the best read here, by flatout tune of 2026-11-29");
        let fetched = Way { fetched_ratio: 1.0, ..cached };
        assert_eq!(fetched.ceiling(None, Some(&entry)).value, None, "it was not cached after all");
        let bound = cached.ceiling(None, None);
        assert_eq!((bound.value, bound.provenance), (None, Provenance::Unknown));
        assert_eq!(bound.name, "the best read here, which flatout tune measures");
        assert_eq!(bound.limiter, "page faults and memory");
    }
}
