//! Whether a large file is copied faster by several threads than by one, tried with its first ranges.
//!
//! Out of a pipe one thread copies each byte once; several read and write, which copies it twice, but at
//! the same time. Which is faster depends on what else the CPUs do. Of the time of one thread two took 0.68
//! on a quiet machine (256 MiB, ext4, cached, 2 CPUs, Emerald Rapids, 9 rounds, 2026-11-28), and beside one
//! busy loop 1.30, of 1 GiB 1.59 (5 rounds); tried, these became 1.14 and 1.14.

use std::sync::Arc;

use flatout_io::transfer::Method;
use flatout_sys::clock::monotonic_ns;

use super::super::range::Task;
use super::{Content, FileJob, Large};
use crate::lock::lock;

/// Files of this size on are tried: in shorter ones there would be little left.
pub(super) const TRIED_FROM_BYTES: u64 = 128 << 20;
/// What one thread copies first.
pub(super) const ALONE_BYTES: u64 = 16 << 20;
/// What is then copied by several, before they are held against that.
const SHARED_BYTES: u64 = 32 << 20;

impl Large {
    /// The part of whoever owns the file: has others help, unless that turns out to be slower.
    pub(super) fn share(self: &Arc<Self>, content: &mut Content<'_>, job: &FileJob<'_>) {
        let is_tried = self.length_bytes >= TRIED_FROM_BYTES
            && self.task == Task::Move(Method::Splice)
            && job.meanwhile.is_none();
        let mut pace = is_tried.then(|| {
            let begun_ns = monotonic_ns();
            self.work(content, Some(job.moved), |bytes| bytes < ALONE_BYTES);
            Pace::after(monotonic_ns() - begun_ns)
        });
        (job.share)(Arc::clone(self));
        self.work(content, Some(job.moved), |bytes| {
            let is_worse =
                |pace: &mut Pace| pace.is_worse_shared(monotonic_ns(), bytes, self.is_shared());
            if pace.as_mut().is_some_and(is_worse) {
                lock(&self.state).stays_alone = true;
            }
            true
        });
    }
}

/// What is known so far.
#[derive(Debug)]
struct Pace {
    /// Nanoseconds of a byte by one thread.
    alone: f64,
    /// When several had begun, and how many bytes were moved then.
    shared_from: Option<(u64, u64)>,
    is_known: bool,
}

impl Pace {
    /// One thread alone took so long for [`ALONE_BYTES`].
    fn after(alone_ns: u64) -> Self {
        let alone = alone_ns as f64 / ALONE_BYTES as f64;
        Self { alone, shared_from: None, is_known: false }
    }

    /// Whether several have turned out to be slower: true once. `bytes` were moved since they might help.
    fn is_worse_shared(&mut self, now_ns: u64, bytes: u64, is_shared: bool) -> bool {
        let Some((from_ns, from_bytes)) = self.shared_from.filter(|_| is_shared) else {
            self.shared_from = is_shared.then_some((now_ns, bytes));
            return false;
        };
        if self.is_known || bytes - from_bytes < SHARED_BYTES {
            return false;
        }
        self.is_known = true;
        (now_ns - from_ns) as f64 / (bytes - from_bytes) as f64 > self.alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_are_sent_away_where_they_were_slower() {
        const MIB: u64 = 1 << 20;
        for (shared_ns, is_worse) in [(8, false), (12, true)] {
            let mut pace = Pace::after(10 * ALONE_BYTES);
            let mut now_ns = 1000;
            let mut at = |bytes: u64, ns: u64, is_shared| {
                now_ns += ns;
                pace.is_worse_shared(now_ns, bytes, is_shared)
            };
            assert!(!at(0, 0, false) && !at(4 * MIB, 1, false), "nobody has come yet");
            assert!(!at(8 * MIB, 1, true), "from here on");
            assert!(!at(24 * MIB, shared_ns * 16 * MIB, true));
            assert_eq!(at(40 * MIB, shared_ns * 16 * MIB, true), is_worse);
            assert!(!at(80 * MIB, 12 * 40 * MIB, true), "once");
        }
    }
}
