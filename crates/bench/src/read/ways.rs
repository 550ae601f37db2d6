//! Which of two ways brings a cached file: mapping it, or read(2), as its first shares tell. The page
//! cache holds a file in folios of 4 KiB to 2 MiB, which decides it, and the kernel does not say which.

use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::scan::Scanner;
use flatout_io::{Engine, Fallback, Source, Tuning};

use super::range::SHARE_BYTES;
use crate::Error;

/// How much faster read(2) must be: the times of first shares are single ones.
const WORTH: f64 = 1.05;
/// Shares of a file for each that is read to find out: where mapping is faster, these cost 3 % of the
/// time of 64 at most.
const LEAST_SHARES: u64 = 16;
/// From so many bytes for each page fault on, mapping is not to be beaten: folios of 2 MiB.
const LARGE_BYTES: u64 = 1 << 20;

/// How a share is brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Mapped.
    Mapped,
    /// By read(2), into a buffer.
    Copied,
}

/// What the ways have taken so far.
pub(super) struct Ways {
    lanes: u64,
    begun: AtomicU64,
    faults: AtomicU64,
    mapped: Taken,
    copied: Taken,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: AtomicU64,
    elapsed_ns: AtomicU64,
}

impl Taken {
    fn ns_per_byte(&self) -> f64 {
        self.elapsed_ns.load(Ordering::Relaxed) as f64 / self.bytes.load(Ordering::Relaxed) as f64
    }
}

impl Ways {
    /// For so many lanes that share out so many bytes; `None` where finding out is not worth it.
    pub(super) fn of(lanes: u32, length_bytes: u64) -> Option<Self> {
        let lanes = u64::from(lanes);
        (length_bytes / SHARE_BYTES >= lanes.saturating_mul(LEAST_SHARES)).then(|| Self {
            lanes,
            begun: AtomicU64::default(),
            faults: AtomicU64::default(),
            mapped: Taken::default(),
            copied: Taken::default(),
        })
    }

    /// How the next share is brought: one of each lane either way, since lanes that map at the same
    /// time wait for each other, then all by the faster.
    pub(super) fn next(&self) -> Way {
        let mapped_bytes = self.mapped.bytes.load(Ordering::Relaxed);
        let is_large = mapped_bytes > self.faults.load(Ordering::Relaxed) * LARGE_BYTES;
        match self.begun.fetch_add(1, Ordering::Relaxed) / self.lanes {
            0 => Way::Mapped,
            1 if !is_large => Way::Copied,
            // Not a number where one of them has ended none yet.
            _ if self.copied.ns_per_byte() * WORTH < self.mapped.ns_per_byte() => Way::Copied,
            _ => Way::Mapped,
        }
    }

    /// Notes what a share took, and for how many of its pages the kernel was asked.
    pub(super) fn note(&self, way: Way, bytes: u64, elapsed_ns: u64, faults: u64) {
        let taken = match way {
            Way::Mapped => {
                self.faults.fetch_add(faults, Ordering::Relaxed);
                &self.mapped
            }
            Way::Copied => &self.copied,
        };
        taken.bytes.fetch_add(bytes, Ordering::Relaxed);
        taken.elapsed_ns.fetch_add(elapsed_ns, Ordering::Relaxed);
    }
}

/// What a lane reads by.
pub(super) struct Scanners {
    /// As it was chosen.
    pub(super) usual: Scanner,
    /// What was chosen and could not be.
    pub(super) fallback: Option<Fallback>,
    copier: Option<Scanner>,
}

impl Scanners {
    /// Makes them; the one for [`Way::Copied`] where it `may_copy` and can be had.
    pub(super) fn prepare(source: &Source, tuning: &Tuning, may_copy: bool) -> Result<Self, Error> {
        let (usual, fallback) = Scanner::prepare(source.reopen()?, tuning)?;
        let copies = Tuning { engine: Engine::Sync, ..*tuning };
        let copier = || Some(Scanner::prepare(source.reopen().ok()?, &copies).ok()?.0);
        let copier = (may_copy && fallback.is_none()).then(copier).flatten();
        Ok(Self { usual, fallback, copier })
    }

    pub(super) fn by(&mut self, way: Way) -> &mut Scanner {
        match self.copier.as_mut().filter(|_| way == Way::Copied) {
            Some(copier) => copier,
            None => &mut self.usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_brings_the_rest() {
        for (mapped_ns, copied_ns, rest) in
            [(100, 90, Way::Copied), (100, 97, Way::Mapped), (70, 100, Way::Mapped)]
        {
            let ways = Ways::of(2, 1 << 30).expect("long enough");
            let first: Vec<Way> = (0..4).map(|_| ways.next()).collect();
            assert_eq!(first, [Way::Mapped, Way::Mapped, Way::Copied, Way::Copied]);
            assert_eq!(ways.next(), Way::Mapped, "nothing has ended yet");
            ways.note(Way::Mapped, SHARE_BYTES, mapped_ns, 256);
            assert_eq!(ways.next(), Way::Mapped, "the other has ended nothing yet");
            ways.note(Way::Copied, SHARE_BYTES / 2, copied_ns / 2, 0);
            assert_eq!(ways.next(), rest, "{mapped_ns} {copied_ns}");
        }
    }

    #[test]
    fn where_pages_are_large_nothing_is_tried() {
        let ways = Ways::of(1, 1 << 30).expect("long enough");
        assert_eq!(ways.next(), Way::Mapped);
        ways.note(Way::Mapped, SHARE_BYTES, 100, 9);
        assert_eq!([ways.next(), ways.next()], [Way::Mapped; 2]);
    }

    #[test]
    fn short_files_are_not_worth_finding_out() {
        assert!(Ways::of(2, (512 << 20) - 1).is_none());
        assert!(Ways::of(2, 512 << 20).is_some());
        assert!(Ways::of(64, 1 << 30).is_none());
    }
}
