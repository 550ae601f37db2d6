//! How much a run will likely write, by how busy the machine is: for what is announced.

use std::path::Path;

use flatout_io::{Caching, Existing, Target, TargetOptions};
use flatout_sys::{AlignedBuffer, page_cache};

use super::estimate::of_trial;
use super::pattern::IoType;
use super::row::Row;
use crate::Scratch;
use crate::tried::Tried;

/// What a trial needs besides its own time, on storage and in memory.
const SET_UP_NS: f64 = 30e6;
const MEMORY_SET_UP_NS: f64 = 35e6;
/// What a row of large blocks and one of small ones likely write in a second, with requests in
/// flight and one at a time: for the announcement. Slower disks write less.
const STREAM_BYTES_PER_S: f64 = 2e9;
const RANDOM_BYTES_PER_S: f64 = 400e6;
const SINGLE_BYTES_PER_S: f64 = 50e6;

/// How many times slower direct writes are that the filesystem buffers: 0.35 to 0.43 GB/s of large blocks
/// and 53 MB/s of small ones (btrfs with checksums on a loop in memory, Linux 6.18, Zen 4, 2026-11-27).
const BUFFERED_PART: f64 = 5.0;
/// Bytes of the write that shows it: the kernel counts dirty pages in lots of up to 125.
const PROBE_BYTES: usize = 2 << 20;

/// How fast things go here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    /// What was seen when a little was tried.
    pub(super) tried: Tried,
    /// Whether direct writes are buffered nevertheless.
    pub(super) is_buffered: bool,
}

/// Whether a direct write to a file in this directory makes pages dirty.
pub(super) fn buffers_direct_writes(directory: &Path) -> bool {
    let dirtied = || page_cache::dirtied_bytes(Path::new("/"));
    let probe = || {
        let scratch = Scratch::empty(directory).ok()?;
        let (existing, caching) = (Existing::Overwrite, Caching::Direct);
        let options = TargetOptions { existing, caching, block_bytes: PROBE_BYTES as u64 };
        let (target, fallback) = Target::open(&scratch.path(), options).ok()?;
        let buffer = AlignedBuffer::new(PROBE_BYTES).ok()?;
        let before = dirtied().filter(|_| fallback.is_none())?;
        rustix::io::pwrite(target.file(), buffer.as_slice(), 0).ok()?;
        Some(dirtied()?.saturating_sub(before) >= PROBE_BYTES as u64 / 2)
    };
    probe().unwrap_or(false)
}

/// Bytes that are likely written, and the time for it.
pub(super) type Likely = (f64, f64);

/// One trial of a row.
pub(super) fn likely_trial(row: &Row, cap_bytes: u64, runtime_ns: u64, speed: Speed) -> Likely {
    let Speed { tried, is_buffered } = speed;
    let is_single = row.tuning.depth.saturating_mul(row.tuning.threads) == 1;
    let rate = match (row.test.is_random(), is_single) {
        _ if tried.in_memory => 1e9 / tried.durable_byte_ns,
        (false, _) => STREAM_BYTES_PER_S,
        (true, false) => RANDOM_BYTES_PER_S,
        (true, true) => SINGLE_BYTES_PER_S,
    };
    let part = match row.test.io_type() {
        IoType::Read => 0.0,
        IoType::Mixed => 1.0 - f64::from(row.read_percent) / 100.0,
        IoType::Write | IoType::Copy => 1.0,
    };
    let slower = tried.slowdown
        * match row.tuning.caching {
            Caching::Direct if is_buffered => BUFFERED_PART,
            _ if tried.in_memory => 1.0,
            _ => tried.storage_slowdown(),
        };
    let (bytes_per_ns, runtime_ns) = (rate * part / slower / 1e9, runtime_ns as f64);
    let bytes = (bytes_per_ns * runtime_ns).min(of_trial(row, cap_bytes) as f64);
    let time_ns = if part > 0.0 { bytes / bytes_per_ns } else { runtime_ns };
    let set_up_ns = if tried.in_memory { MEMORY_SET_UP_NS } else { SET_UP_NS };
    (bytes, time_ns + set_up_ns * tried.slowdown)
}

/// What a run will likely do.
#[derive(Clone, Copy, Default)]
pub(super) struct Forecast {
    /// A round of all rows, as it usually is and as it is just now.
    pub(super) usual: Likely,
    pub(super) now: Likely,
    /// Time for what is beside the rows.
    pub(super) beside_ns: u64,
    pub(super) trials: u32,
    /// Trials of a row at most; as many as that where a number was asked for.
    pub(super) max_trials: u32,
    pub(super) is_exact: bool,
}

impl Forecast {
    /// What these rows do, before anybody says how often.
    pub(super) fn of(rows: &[Row], cap_bytes: u64, runtime_ns: u64, speed: Speed) -> Self {
        let round = |slowdown| {
            let speed = Speed { tried: Tried { slowdown, ..speed.tried }, ..speed };
            let each = rows.iter().map(|row| likely_trial(row, cap_bytes, runtime_ns, speed));
            each.fold((0.0, 0.0), |sum: Likely, one| (sum.0 + one.0, sum.1 + one.1))
        };
        let (usual, now) = (round(1.0), round(speed.tried.slowdown));
        Self { usual, now, ..Self::default() }
    }

    /// Time that it usually takes.
    pub(super) fn usual_ns(&self) -> u64 {
        self.beside_ns.saturating_add((self.usual.1 * f64::from(self.trials)) as u64)
    }

    /// Time for as many trials as each row has at most.
    pub(super) fn most_ns(&self) -> u64 {
        self.beside_ns.saturating_add((self.now.1 * f64::from(self.max_trials)) as u64)
    }

    /// Bytes that trials likely write in so much time, shared out as usual.
    pub(super) fn trials_bytes(&self, time_ns: u64) -> u64 {
        let most = f64::from(self.max_trials);
        let rows_ns = self.usual.1 * f64::from(self.trials);
        let share = rows_ns / (self.beside_ns as f64 + rows_ns).max(1.0);
        let rounds = time_ns as f64 * share / self.now.1.max(1.0);
        (self.now.0 * if self.is_exact { most } else { rounds.min(most) }) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;
    use super::*;

    const QUIET: Speed = Speed { tried: Tried::USUAL, is_buffered: false };

    #[test]
    fn what_is_likely_written_follows_from_the_time_and_is_bounded_by_the_trials() {
        // A round of these rows writes 100 bytes in 50 ns, on a busy machine 60 bytes in 100 ns.
        let forecast = Forecast {
            usual: (100.0, 50.0),
            now: (100.0, 50.0),
            beside_ns: 500,
            trials: 10,
            max_trials: 20,
            is_exact: false,
        };
        assert_eq!(forecast.usual_ns(), 1000);
        let bytes = |forecast: &Forecast| [1000, 250, 1 << 60].map(|ns| forecast.trials_bytes(ns));
        assert_eq!(bytes(&forecast), [1000, 250, 2000]);
        let busy = Forecast { now: (60.0, 100.0), ..forecast };
        assert_eq!(bytes(&busy), [300, 75, 1200]);
        assert_eq!([forecast, busy].map(|forecast| forecast.most_ns()), [1500, 2500]);
        let exact = Forecast { max_trials: 3, is_exact: true, ..busy };
        assert_eq!(bytes(&exact), [180; 3]);
    }

    #[test]
    fn a_row_likely_writes_what_it_may_or_what_there_is_time_for() {
        let mut row = super::super::plan::tests_rows().remove(1);
        assert!(row.writes() && !row.test.is_random());
        let second = 1_000_000_000;
        let likely_trial = |row: &Row, cap_bytes, runtime_ns, slowdown| {
            let tried = Tried { slowdown, ..Tried::USUAL };
            likely_trial(row, cap_bytes, runtime_ns, Speed { tried, ..QUIET })
        };
        assert_eq!(likely_trial(&row, 150_000_000, second, 1.0), (150e6, 75e6 + SET_UP_NS));
        assert_eq!(likely_trial(&row, 150_000_000, second, 5.0), (150e6, 375e6 + 5.0 * SET_UP_NS));
        row.test = Pattern::RandomWrite;
        assert_eq!(likely_trial(&row, u64::MAX, second, 1.0), (400e6, 1e9 + SET_UP_NS));
        assert_eq!(likely_trial(&row, u64::MAX, second, 2.0), (200e6, 1e9 + 2.0 * SET_UP_NS));
        row.test = Pattern::RandomRead;
        assert_eq!(likely_trial(&row, u64::MAX, second, 1.0), (0.0, 1e9 + SET_UP_NS));
    }
    #[test]
    fn direct_writes_that_are_buffered_write_less_and_others_as_much() {
        let rows = super::super::plan::tests_rows();
        let bytes = |row: &Row, is_buffered| {
            let speed = Speed { is_buffered, ..QUIET };
            likely_trial(row, u64::MAX, 1_000_000_000, speed).0
        };
        for row in rows.iter().filter(|row| row.writes()) {
            let part = if row.tuning.caching == Caching::Direct { BUFFERED_PART } else { 1.0 };
            assert!((bytes(row, false) / bytes(row, true) - part).abs() < 1e-9, "{row:?}");
        }
    }

    #[test]
    fn storage_that_was_seen_to_be_slow_is_written_less() {
        let row = super::super::plan::tests_rows().remove(1);
        let tried =
            |durable_byte_ns| Speed { tried: Tried { durable_byte_ns, ..Tried::USUAL }, ..QUIET };
        let time_ns = |speed| likely_trial(&row, 150_000_000, 1_000_000_000, speed).1 - SET_UP_NS;
        assert_eq!([time_ns(QUIET), time_ns(tried(0.3)), time_ns(tried(3.6))], [75e6, 75e6, 300e6]);
    }

    #[test]
    fn files_in_memory_are_written_as_quickly_as_was_seen() {
        let rows = super::super::plan::tests_rows();
        let row = rows.iter().find(|row| row.writes()).unwrap();
        let time_ns = |durable_byte_ns| {
            let tried = Tried { durable_byte_ns, in_memory: true, ..Tried::USUAL };
            likely_trial(row, 64 << 20, 1_000_000_000, Speed { tried, ..QUIET }).1
        };
        let taken = [0.25, 0.5].map(|ns| (time_ns(ns) - MEMORY_SET_UP_NS) / (64 << 20) as f64);
        assert!((taken[0] - 0.25).abs() < 1e-6 && (taken[1] - 0.5).abs() < 1e-6, "{taken:?}");
    }

    #[test]
    fn a_probe_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        // By the filesystem that the tests run on, either is right.
        let _ = buffers_direct_writes(directory.path());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(!buffers_direct_writes(&directory.path().join("missing")));
    }
}
