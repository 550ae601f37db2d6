//! Which rows the page cache area has.

use flatout_io::{Caching, Engine, Split, Tuning};
use flatout_measure::{Label, Row as Measurable, Unit};

use crate::{Extent, between_runs};

/// A row before it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) test: Test,
    pub(super) state: State,
    pub(super) tuning: Tuning,
    /// The phase that measures it, where several phases have such a row.
    pub(super) phase: Option<&'static str>,
}

flatout_sys::words! {
    /// What a row is about.
    pub(super) enum Test: id {
        /// Rate at a block size.
        BlockSweep = "cache/block-sweep",
        /// Rate at a number of threads.
        ThreadSweep = "cache/thread-sweep",
        /// First read of a cleared file.
        First = "cache/series",
        /// Second read of the same.
        Again = "cache/series",
        /// Third read of the same.
        Third = "cache/series",
        /// Read after it was read twice and cleared.
        Cleared = "cache/series",
        /// The ceiling of hot rows: the same XOR over anonymous memory.
        MemoryRead = "cache/memory-read",
        /// The ceiling of cold rows: direct reads with several in flight.
        DeviceRead = "cache/device-read",
    }
}

impl Test {
    fn pass(self) -> Option<&'static str> {
        match self {
            Self::First => Some("1 first"),
            Self::Again => Some("2 again"),
            Self::Third => Some("3 again"),
            Self::Cleared => Some("4 cleared"),
            _ => None,
        }
    }
}

flatout_sys::words! {
    /// What the page cache holds when the clock starts.
    pub(super) enum State: word {
        /// The whole file.
        Hot = "hot",
        /// Nothing of the file.
        Cold = "cold",
        /// Nothing to do with it.
        Apart = "none",
    }
}

/// Engines in the order of the tables.
const ENGINES: [Engine; 3] = [Engine::Sync, Engine::Mmap, Engine::Uring];
/// Largest block of the sweep: 2^22 is 4 MiB.
const LARGEST_BLOCK_LOG2: u32 = 22;
/// Block of the rows that are measured first.
const HEADLINE_BYTES: u64 = 1 << 20;
/// Requests in flight of the uring rows.
const DEPTH: u32 = 16;
/// Threads of the sweep at least, however few the CPUs.
const LEAST_SWEEP_THREADS: u32 = 10;
/// Block of the series: the one that the fast settings use.
const SERIES_BLOCK_BYTES: u64 = 256 << 10;

impl Row {
    pub(super) fn new(
        test: Test,
        state: State,
        engine: Engine,
        block_bytes: u64,
        threads: u32,
    ) -> Self {
        let tuning = Tuning {
            engine,
            caching: Caching::Buffered,
            block_bytes,
            depth: if engine == Engine::Uring { DEPTH } else { 1 },
            threads,
            split: Split::Contiguous,
        };
        Self { test, state, tuning, phase: None }
    }

    /// In short and in long pieces, since either may be faster: on a Zen 4 256 bytes at a time go at
    /// 1.06 times the rate of 1 MiB (AMD EPYC, family 25, model 17, 2026-11-26).
    fn memory_reads(threads: u32) -> [Self; 2] {
        let read = |bytes| Self::new(Test::MemoryRead, State::Apart, Engine::Mmap, bytes, threads);
        [256, 1 << 20].map(read)
    }

    fn device_read() -> Self {
        let row = Self::new(Test::DeviceRead, State::Cold, Engine::Uring, 1 << 20, 1);
        Self { tuning: Tuning { caching: Caching::Direct, ..row.tuning }, ..row }
    }

    /// The same row, as a part of a phase that measures it anew.
    fn during(self, phase: &'static str) -> Self {
        Self { phase: Some(phase), ..self }
    }
}

impl Measurable for Row {
    fn label(&self) -> Label {
        let tuning = self.tuning;
        let is_memory = self.test == Test::MemoryRead;
        let is_special = tuning.caching != Caching::Buffered;
        let is_cold = self.state == State::Cold;
        // Short blocks say less of the cache than of the calls.
        let is_headline = tuning.block_bytes == HEADLINE_BYTES && (is_special || !is_cold);
        Label::new(self.test.id(), Unit::BytesPerSecond)
            .headline_if(is_headline)
            .with_known("engine", (!is_memory).then(|| tuning.engine.to_string()))
            .with_known("cache_state", (!is_memory).then(|| self.state.word()))
            .with("block_bytes", tuning.block_bytes)
            .with("threads", tuning.threads)
            .with_known("depth", (tuning.engine == Engine::Uring).then_some(tuning.depth))
            .with_known("caching", is_special.then(|| tuning.caching.to_string()))
            .with_known("phase", self.phase)
            .with_known("pass", self.test.pass())
            .deviating_by(if is_cold { between_runs::DISK } else { between_runs::CACHE })
    }
}

/// The short sets, with one thread and with as many as CPUs.
pub(super) fn few(extent: Extent, cpus: u32) -> Vec<Row> {
    let cpus = cpus.min(LEAST_SWEEP_THREADS);
    let sizes: &[u32] = match extent {
        Extent::Few => &[0, 12, 20],
        Extent::Quick | Extent::Full => &[0, 4, 8, 12, 14, 16, 18, 20, 22],
    };
    let mut rows = vec![Row::device_read()];
    rows.extend(Row::memory_reads(1));
    for engine in ENGINES {
        let sweep = |log2: &u32| Row::new(Test::BlockSweep, State::Hot, engine, 1 << log2, 1);
        // Of the few rows only one is spent on single bytes.
        let is_wanted = |log2: &&u32| extent != Extent::Few || engine == Engine::Sync || **log2 > 0;
        rows.extend(sizes.iter().filter(is_wanted).map(sweep));
    }
    if extent != Extent::Few {
        let cold = |log2: &u32| Row::new(Test::BlockSweep, State::Cold, Engine::Sync, 1 << log2, 1);
        rows.extend(sizes.iter().map(cold));
    }
    if cpus > 1 {
        rows.extend(Row::memory_reads(cpus));
        let wide = |engine| Row::new(Test::ThreadSweep, State::Hot, engine, 1 << 20, cpus);
        rows.extend(ENGINES.map(wide));
    }
    // The second read tells what the third would.
    rows.extend(
        passes().into_iter().filter(|row| extent != Extent::Few || row.test != Test::Third),
    );
    rows
}

/// All block sizes, engines and states at one number of threads, with their ceilings.
pub(super) fn block_sweep(threads: u32) -> Vec<Row> {
    let phase = if threads == 1 { "blocks, 1 thread" } else { "blocks, best threads" };
    let mut rows = vec![Row::device_read().during(phase)];
    rows.extend(Row::memory_reads(threads).map(|row| row.during(phase)));
    for state in [State::Hot, State::Cold] {
        for engine in ENGINES {
            rows.extend(
                (0..=LARGEST_BLOCK_LOG2)
                    .map(|log2| Row::new(Test::BlockSweep, state, engine, 1 << log2, threads)),
            );
        }
    }
    rows
}

/// 1 … max(10, 2 × CPUs) threads at the best block of each engine, hot and cold.
pub(super) fn thread_sweep(best: &[(Engine, u64)], cpus: u32) -> Vec<Row> {
    let most = LEAST_SWEEP_THREADS.max(2 * cpus);
    let mut rows = vec![Row::device_read().during("threads")];
    rows.extend((1..=most).flat_map(Row::memory_reads).map(|row| row.during("threads")));
    for state in [State::Hot, State::Cold] {
        for &(engine, block_bytes) in best {
            let sweep =
                (1..=most).map(|n| Row::new(Test::ThreadSweep, state, engine, block_bytes, n));
            rows.extend(sweep);
        }
    }
    rows
}

/// First read, again, again, and after clearing, with their ceilings.
pub(super) fn series() -> Vec<Row> {
    let phase = "series";
    let mut rows = vec![Row::device_read().during(phase)];
    rows.extend(Row::memory_reads(1).map(|row| row.during(phase)));
    rows.extend(passes());
    rows
}

fn passes() -> [Row; 4] {
    let pass = |test, state| Row::new(test, state, Engine::Sync, SERIES_BLOCK_BYTES, 1);
    [
        pass(Test::First, State::Cold),
        pass(Test::Again, State::Hot),
        pass(Test::Third, State::Hot),
        pass(Test::Cleared, State::Cold),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rows: &[Row]) -> Vec<String> {
        let mut names: Vec<_> =
            rows.iter().map(|row| format!("{} {:?}", row.test.id(), row.parameters())).collect();
        names.sort();
        names
    }

    #[test]
    fn the_grid_is_complete_and_no_two_rows_are_alike() {
        let sweep = block_sweep(1);
        assert_eq!(sweep.len(), 3 + 2 * 3 * 23);
        let threads = thread_sweep(&[(Engine::Sync, 1), (Engine::Mmap, 2)], 8);
        assert_eq!(threads.len(), 1 + 2 * 16 + 2 * 2 * 16);
        let best = [(Engine::Sync, 1), (Engine::Mmap, 2), (Engine::Uring, 3)];
        let full = [block_sweep(1), thread_sweep(&best, 2), block_sweep(2), series()].concat();
        for rows in [full, threads, few(Extent::Few, 2), few(Extent::Quick, 1)] {
            let mut unique = names(&rows);
            unique.dedup();
            assert_eq!(unique.len(), rows.len());
        }
    }

    #[test]
    fn the_short_set_leaves_room_for_other_areas() {
        assert!(few(Extent::Few, 64).len() <= 30);
    }
}
