//! Which rows of bandwidth a run has, and how much memory they need.

use flatout_measure::{Case, Label, Row, Sample, TrialError, Unit, Warning, size_text, warning};
use flatout_sys::region::huge_page_bytes;
use flatout_sys::stream::access::Pattern as Access;
use flatout_sys::stream::{GRANULE_BYTES, Kernel};

use super::block::{PATTERNS, Pattern, SIZES, Stores};
use super::bound::Machine;
use super::test_memory::{Extents, Parts, TestMemory};
use super::trial::StreamTest;
use super::{access, block, stream, trial, working_set};
use crate::contention::ContentionProbe;
use crate::{Extent, between_runs, workers};

/// A row before it is measured.
#[derive(Debug, Clone)]
pub(super) struct RateRow {
    pub(super) work: Work,
    pub(super) parts: Parts,
    /// What a trial runs; none for single accesses, and where this CPU has no such kernel.
    pub(super) test: Option<StreamTest>,
    /// What is to be said of it beforehand.
    pub(super) warnings: Vec<Warning>,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Block { pattern: Pattern, block_bytes: u64 },
    Access(Access),
    Stream(Kernel),
    WorkingSet { kernel: Kernel, bytes: u64 },
}

/// What the rows are made from.
#[derive(Debug, Clone)]
pub(super) struct Terms<'a> {
    pub(super) extent: Extent,
    /// Numbers of threads, ascending.
    pub(super) threads: Vec<u32>,
    /// What the CPU quota is worth; none without one.
    pub(super) quota_cpus: Option<f64>,
    /// Bytes that a row of blocks moves.
    pub(super) bytes: u64,
    /// Bytes that all rows together may take.
    pub(super) room_bytes: u64,
    /// Why it is not more.
    pub(super) room_reason: String,
    pub(super) machine: &'a Machine,
}

/// What is kept back for the begins of parts, and for whole large pages of source and target.
pub(super) fn slack_bytes() -> u64 {
    (12 << 20) + 2 * huge_page_bytes() as u64
}
/// Least memory in which anything is measured.
pub(super) const LEAST_BYTES: u64 = 4 << 20;

impl Terms<'_> {
    /// The rows; an error in one line where there is no room for any.
    pub(super) fn rows(&self) -> Result<Vec<RateRow>, String> {
        let usable = self.room_bytes.saturating_sub(slack_bytes());
        if usable < LEAST_BYTES {
            return Err(format!(
                "cannot measure memory: {} may be taken ({}), and {} are needed",
                size_text(self.room_bytes),
                self.room_reason,
                size_text(slack_bytes() + LEAST_BYTES)
            ));
        }
        // One half to read from and one to write to; of arrays, two are read and one is written.
        let bytes = self.bytes.min(usable / 2);
        // Where time is short, it is for the first.
        let mut rows = self.stream_rows(usable / 4);
        rows.extend(self.block_rows(bytes));
        rows.extend(self.working_set_rows(usable / 2));
        Ok(rows)
    }

    fn block_rows(&self, bytes: u64) -> Vec<RateRow> {
        let sizes: &[u64] = match self.extent {
            Extent::Few => return Vec::new(),
            Extent::Quick => &SIZES[..2],
            Extent::Full => &SIZES,
        };
        let blocks = |block_bytes| PATTERNS.map(|pattern| Work::Block { pattern, block_bytes });
        let blocks = sizes.iter().copied().flat_map(blocks);
        let works: Vec<Work> = blocks.chain(Access::ALL.map(Work::Access)).collect();
        let row = |threads| {
            works.iter().map(move |&work| self.row(work, threads, part(bytes, threads), bytes))
        };
        self.threads.iter().copied().flat_map(row).collect()
    }

    fn stream_rows(&self, most_bytes: u64) -> Vec<RateRow> {
        let kernels: &[Kernel] = match self.extent {
            Extent::Few | Extent::Quick => &[Kernel::Triad, Kernel::NtTriad],
            Extent::Full => &stream::KERNELS,
        };
        // More threads than CPUs say nothing about memory, unless nothing else was asked for.
        let cpus = self.machine.cpu_count();
        let fitting: Vec<u32> =
            self.threads.iter().copied().filter(|&threads| threads <= cpus).collect();
        let threads = if fitting.is_empty() { &self.threads } else { &fitting };
        let row = |(threads, kernel)| {
            let wanted = stream::TIMES_CACHE.saturating_mul(self.machine.caches_bytes(threads));
            let array_bytes = wanted.min(most_bytes);
            let share_bytes = part(array_bytes, threads);
            let mut row = self.row(Work::Stream(kernel), threads, share_bytes, self.bytes);
            row.warnings.extend(self.machine.levels.assumed());
            if array_bytes < wanted {
                let text = format!(
                    "arrays have {}, not four times the last cache ({}): {}",
                    size_text(array_bytes),
                    size_text(wanted),
                    self.room_reason
                );
                // All of them, one after the other, are beyond caches that hold half of it.
                let is_beyond = (1 + row.parts.sources) * array_bytes >= wanted / 2;
                let code = if is_beyond { warning::SIZE_REDUCED } else { warning::FITS_IN_CACHE };
                row.warn(code, text);
            }
            row
        };
        threads
            .iter()
            .flat_map(|&threads| kernels.iter().map(move |&kernel| (threads, kernel)))
            // A few rows: of one thread only the plain kernel, beside that of all.
            .filter(|&(count, kernel)| {
                self.extent != Extent::Few
                    || kernel == Kernel::Triad
                    || Some(&count) == threads.last()
            })
            .map(row)
            .collect()
    }

    fn working_set_rows(&self, most_bytes: u64) -> Vec<RateRow> {
        let mut points = working_set::points(self.extent, &self.machine.levels);
        let count = points.len();
        points.retain(|(bytes, _)| *bytes <= most_bytes);
        let (left_out, last) = (points.len() < count, points.last().map(|(bytes, _)| *bytes));
        let row = |bytes, &kernel: &Kernel| {
            let share_bytes = working_set::share_bytes(kernel, bytes);
            let mut row = self.row(Work::WorkingSet { kernel, bytes }, 1, share_bytes, self.bytes);
            if left_out && Some(bytes) == last {
                let text = format!("larger working sets are left out: {}", self.room_reason);
                row.warn(warning::SIZE_REDUCED, text);
            }
            row
        };
        let rows = |(bytes, kernels): (u64, &'static [Kernel])| {
            kernels.iter().map(move |kernel| row(bytes, kernel))
        };
        points.into_iter().flat_map(rows).collect()
    }

    /// A row whose threads have arrays of `share_bytes`; `bytes` are used instead of what was asked
    /// for.
    fn row(&self, work: Work, threads: u32, share_bytes: u64, bytes: u64) -> RateRow {
        let stores = Stores::for_bytes(bytes, self.machine.caches_bytes(threads));
        let second = |kernel: Kernel| u64::from(kernel.uses().second);
        let (test, sources) = match work {
            Work::Block { pattern, block_bytes } => (block::test(pattern, block_bytes, stores), 1),
            Work::Access(_) => (None, 1),
            Work::Stream(kernel) => (stream::test(kernel), 1 + second(kernel)),
            Work::WorkingSet { kernel, bytes } => {
                (working_set::test(kernel, bytes, &self.machine.levels), 1 + second(kernel))
            }
        };
        let parts = Parts { threads, share_bytes, sources };
        let mut row = RateRow { work, parts, test, warnings: self.warnings(threads, bytes) };
        if let Work::Block { block_bytes, .. } = work {
            if share_bytes < block_bytes {
                let text = format!(
                    "a thread's part has {}: blocks are no longer than that",
                    size_text(share_bytes)
                );
                row.warn(warning::SIZE_REDUCED, text);
            }
            if stores == Stores::ThroughCaches {
                let text = format!("{} fit into the last cache", size_text(bytes));
                row.warn(warning::FITS_IN_CACHE, text);
            }
        }
        row
    }

    /// What is to be said of a row with so many threads that uses `bytes` instead of what was
    /// asked for.
    fn warnings(&self, threads: u32, bytes: u64) -> Vec<Warning> {
        let cpus = self.machine.cpu_count();
        let crowd = workers::oversubscribed(threads, cpus);
        let contained = workers::contained(threads, cpus, self.quota_cpus);
        let mut warnings: Vec<Warning> = crowd.into_iter().chain(contained).collect();
        if bytes < self.bytes {
            let [taken, asked] = [bytes, self.bytes].map(size_text);
            let text = format!("{taken} instead of {asked}: {}", self.room_reason);
            warnings.push(Warning::new(warning::SIZE_REDUCED, text));
        }
        warnings
    }
}

/// What each of so many, threads or arrays, gets of `bytes`, in whole steps.
pub(super) fn part(bytes: u64, count: u32) -> u64 {
    let granule = GRANULE_BYTES as u64;
    bytes / u64::from(count.max(1)) / granule * granule
}

/// The memory that these rows need.
pub(super) fn extents(rows: &[RateRow]) -> Extents {
    rows.iter().map(|row| Extents::of(row.parts)).fold(Extents::default(), Extents::or)
}

impl RateRow {
    fn warn(&mut self, code: &str, text: String) {
        warning::add(&mut self.warnings, Warning::new(code, text));
    }

    pub(super) fn kernel(&self) -> Option<Kernel> {
        self.test.map(|test| test.stream.kernel())
    }

    /// Bytes of an array, all threads together.
    pub(super) fn array_bytes(&self) -> u64 {
        self.parts.share_bytes * u64::from(self.parts.threads)
    }

    /// The same with the kernels that are the fastest over its arrays.
    pub(super) fn raced(self, memory: &TestMemory) -> Self {
        let test = self.test.map(|test| test.fastest(memory, self.parts));
        Self { test, ..self }
    }

    /// The row as a case for the sampler.
    pub(super) fn case<'m>(
        self,
        memory: &'m TestMemory,
        probe: &'m ContentionProbe,
    ) -> Case<'m, Self> {
        let row = self.clone();
        let is_held_back = warning::has(&row.warnings, warning::CPU_QUOTA);
        let cpus = memory.cpus(row.parts.threads);
        // By the rules of STREAM.
        let mut drops_first = matches!(row.work, Work::Stream(_));
        let trial = move |seed: u64| {
            if std::mem::take(&mut drops_first) {
                row.sample(memory, seed.wrapping_add(1))?;
            }
            let mut sample = probe.around(cpus, is_held_back, || row.sample(memory, seed))?;
            let known = row.warnings.iter().chain(&memory.warnings).cloned();
            warning::add_all(&mut sample.warnings, known);
            Ok(sample)
        };
        Case { row: self, trial: Box::new(trial) }
    }

    fn sample(&self, memory: &TestMemory, seed: u64) -> Result<Sample, TrialError> {
        let mut sample = match (self.work, &self.test) {
            (Work::Access(pattern), _) => access::run(memory, pattern, self.parts, seed),
            (_, Some(test)) => trial::run(memory, test, self.parts, seed),
            (_, None) => {
                let text = "this CPU has no such instructions, or nobody has written the kernel";
                Err(TrialError::Unsupported(text.to_owned()))
            }
        }?;
        sample.warnings.extend(memory.changed_cpus());
        Ok(sample)
    }
}

impl Row for RateRow {
    fn label(&self) -> Label {
        let of = |id, unit| Label::new(id, unit).deviating_by(between_runs::MEMORY);
        let rate = |id| of(id, Unit::BytesPerSecond);
        let threads = self.parts.threads;
        match self.work {
            Work::Block { pattern, block_bytes } => {
                rate(pattern.id).with("block_bytes", block_bytes).with("threads", threads)
            }
            Work::Access(pattern) => of("memory/access", Unit::Nanoseconds)
                .with("pattern", pattern.name())
                .with("block_bytes", access::BYTES)
                .with("threads", threads),
            Work::Stream(kernel) => {
                let is_headline = [Kernel::Triad, Kernel::NtTriad].contains(&kernel);
                let row = rate(stream::ID).with("kernel", kernel.name()).with("threads", threads);
                row.headline_if(is_headline)
            }
            Work::WorkingSet { kernel, bytes } => {
                rate(working_set::ID).with("kernel", kernel.name()).with("working_set_bytes", bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests;
