//! Which rows of bandwidth a run has, and how much memory they need.

use flatout_measure::case::{Case, Plain, Sample, TrialError};
use flatout_measure::row::Unit;
use flatout_measure::warning::{self, Warning};
use flatout_sys::stream::access::Pattern as Access;
use flatout_sys::stream::{GRANULE_BYTES, Kernel};
use serde_json::{Map, Value, json};

use super::block::{Pattern, SIZES, Stores};
use super::levels::Levels;
use super::site::{Extents, Site};
use super::trial::Job;
use super::{access, block, stream, trial, working_set};
use crate::area::Extent;
use crate::crew;

/// A row before it is measured.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) work: Work,
    pub(super) threads: u32,
    /// Bytes of each array of one thread.
    pub(super) share_bytes: u64,
    /// What a trial runs; none for single accesses, and where this CPU has no such kernel.
    pub(super) job: Option<Job>,
    /// What is to be said of it beforehand.
    pub(super) doubts: Vec<Warning>,
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
    /// CPUs that threads may run on.
    pub(super) cpus: u32,
    /// What the CPU quota is worth; none without one.
    pub(super) quota_cpus: Option<f64>,
    /// Bytes that a row of blocks moves.
    pub(super) bytes: u64,
    /// Bytes that all rows together may take.
    pub(super) room_bytes: u64,
    /// Why it is not more.
    pub(super) room_reason: String,
    pub(super) levels: &'a Levels,
}

/// What is kept back for the begins of parts and for whole large pages.
const SLACK_BYTES: u64 = 16 << 20;
/// Least memory in which anything is measured.
const LEAST_BYTES: u64 = 4 << 20;

impl Terms<'_> {
    /// The rows; an error in one line where there is no room for any.
    pub(super) fn rows(&self) -> Result<Vec<Row>, String> {
        let usable = self.room_bytes.saturating_sub(SLACK_BYTES);
        if usable < LEAST_BYTES {
            return Err(format!(
                "cannot measure memory: {} bytes may be taken ({}), and {} are needed",
                self.room_bytes,
                self.room_reason,
                SLACK_BYTES + LEAST_BYTES
            ));
        }
        // One half to read from and one to write to; of arrays, two are read and one is written.
        let bytes = self.bytes.min(usable / 2);
        let array_bytes = stream::array_bytes(self.last_cache_bytes()).min(usable / 4);
        let mut rows = self.block_rows(bytes);
        rows.extend(self.stream_rows(array_bytes));
        rows.extend(self.working_set_rows(usable / 2));
        Ok(rows)
    }

    fn last_cache_bytes(&self) -> Option<u64> {
        self.levels.last_cache_bytes()
    }

    fn block_rows(&self, bytes: u64) -> Vec<Row> {
        let sizes: &[u64] = match self.extent {
            Extent::Few => return Vec::new(),
            Extent::Quick => &SIZES[..2],
            Extent::Full => &SIZES,
        };
        let mut rows = Vec::new();
        for &threads in &self.threads {
            for &block_bytes in sizes {
                for pattern in Pattern::ALL {
                    rows.push(self.block_row(pattern, block_bytes, threads, bytes));
                }
            }
            for pattern in access::ALL {
                let share_bytes = part(bytes, threads);
                let doubts = self.doubts(threads, bytes);
                let work = Work::Access(pattern);
                rows.push(Row { work, threads, share_bytes, job: None, doubts });
            }
        }
        rows
    }

    fn block_row(&self, pattern: Pattern, block_bytes: u64, threads: u32, bytes: u64) -> Row {
        let share_bytes = part(bytes, threads);
        let mut doubts = self.doubts(threads, bytes);
        if share_bytes < block_bytes {
            let text =
                format!("a thread's part has {share_bytes} bytes: blocks are no longer than that");
            warning::add(&mut doubts, Warning::new(warning::SIZE_REDUCED, text));
        }
        let stores = Stores::for_bytes(bytes, self.last_cache_bytes());
        if stores == Stores::ThroughCaches {
            let text = format!("{bytes} bytes fit into the last cache");
            warning::add(&mut doubts, Warning::new(warning::FITS_IN_CACHE, text));
        }
        let job = block::job(pattern, block_bytes, threads, share_bytes, stores);
        Row { work: Work::Block { pattern, block_bytes }, threads, share_bytes, job, doubts }
    }

    fn stream_rows(&self, array_bytes: u64) -> Vec<Row> {
        let kernels: &[Kernel] = match self.extent {
            Extent::Few | Extent::Quick => &[Kernel::Triad, Kernel::NtTriad],
            Extent::Full => &stream::KERNELS,
        };
        // More threads than CPUs say nothing about memory, unless nothing else was asked for.
        let fitting: Vec<u32> =
            self.threads.iter().copied().filter(|&threads| threads <= self.cpus).collect();
        let threads = if fitting.is_empty() { &self.threads } else { &fitting };
        let row = |threads: u32, kernel: Kernel| {
            let share_bytes = part(array_bytes, threads);
            let mut doubts = self.doubts(threads, self.bytes);
            let wanted = stream::array_bytes(self.last_cache_bytes());
            if array_bytes < wanted {
                let text = format!(
                    "arrays have {array_bytes} bytes, not four times the last cache ({wanted}): {}",
                    self.room_reason
                );
                warning::add(&mut doubts, Warning::new(warning::FITS_IN_CACHE, text));
            }
            let job = stream::job(kernel, threads, share_bytes);
            Row { work: Work::Stream(kernel), threads, share_bytes, job, doubts }
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
            .map(|(threads, kernel)| row(threads, kernel))
            .collect()
    }

    fn working_set_rows(&self, most_bytes: u64) -> Vec<Row> {
        let mut points = working_set::points(self.extent, self.levels);
        let count = points.len();
        points.retain(|(bytes, _)| *bytes <= most_bytes);
        let (left_out, last) = (points.len() < count, points.last().map(|(bytes, _)| *bytes));
        let mut rows = Vec::new();
        for (bytes, kernels) in points {
            for &kernel in kernels {
                let mut doubts = self.doubts(1, self.bytes);
                if left_out && Some(bytes) == last {
                    let text = format!("larger working sets are left out: {}", self.room_reason);
                    warning::add(&mut doubts, Warning::new(warning::SIZE_REDUCED, text));
                }
                let job = working_set::job(kernel, bytes, self.levels);
                let share_bytes = working_set::share_bytes(kernel, bytes);
                let work = Work::WorkingSet { kernel, bytes };
                rows.push(Row { work, threads: 1, share_bytes, job, doubts });
            }
        }
        rows
    }

    /// What is to be said of a row with so many threads that uses `bytes` instead of what was
    /// asked for.
    fn doubts(&self, threads: u32, bytes: u64) -> Vec<Warning> {
        let crowd = crew::oversubscribed(threads, self.cpus);
        let contained = crew::contained(threads, self.cpus, self.quota_cpus);
        let mut doubts: Vec<Warning> = crowd.into_iter().chain(contained).collect();
        if bytes < self.bytes {
            let text = format!("{bytes} bytes instead of {}: {}", self.bytes, self.room_reason);
            doubts.push(Warning::new(warning::SIZE_REDUCED, text));
        }
        doubts
    }
}

/// What each of `threads` gets of `bytes`, in whole steps.
pub(super) fn part(bytes: u64, threads: u32) -> u64 {
    let granule = GRANULE_BYTES as u64;
    bytes / u64::from(threads.max(1)) / granule * granule
}

/// The memory that these rows need.
pub(super) fn extents(rows: &[Row]) -> Extents {
    let of = |row: &Row| {
        let sources = match row.work {
            Work::Access(_) => 1,
            Work::Block { .. } => 1,
            Work::Stream(kernel) | Work::WorkingSet { kernel, .. } => {
                1 + u64::from(kernel.uses().second)
            }
        };
        Extents::of(row.threads, row.share_bytes, sources)
    };
    rows.iter().map(of).fold(Extents::default(), Extents::or)
}

impl Row {
    pub(super) fn id(&self) -> &'static str {
        match self.work {
            Work::Block { pattern, .. } => pattern.id(),
            Work::Access(_) => "memory/access",
            Work::Stream(_) => stream::ID,
            Work::WorkingSet { .. } => working_set::ID,
        }
    }

    pub(super) fn kernel(&self) -> Option<Kernel> {
        self.job.map(|job| job.stream.kernel())
    }

    /// What tells the row from others with the same id.
    pub(super) fn parameters(&self) -> Map<String, Value> {
        let mut parameters = Map::new();
        let mut set = |key: &str, value: Value| parameters.insert(key.to_owned(), value);
        match self.work {
            Work::Block { block_bytes, .. } => {
                set("block_bytes", json!(block_bytes));
                set("threads", json!(self.threads));
            }
            Work::Access(pattern) => {
                set("pattern", json!(access::name(pattern)));
                set("block_bytes", json!(access::BYTES));
                set("threads", json!(self.threads));
            }
            Work::Stream(kernel) => {
                set("kernel", json!(kernel.name()));
                set("threads", json!(self.threads));
            }
            Work::WorkingSet { kernel, bytes } => {
                set("kernel", json!(kernel.name()));
                set("working_set_bytes", json!(bytes));
            }
        }
        parameters
    }

    /// The row as a case for the sampler.
    pub(super) fn case<'a>(&self, site: &'a Site) -> Case<'a, Plain> {
        let is_time = matches!(self.work, Work::Access(_));
        Case {
            row: Plain {
                id: self.id(),
                parameters: self.parameters(),
                unit: if is_time { Unit::Nanoseconds } else { Unit::BytesPerSecond },
            },
            trial: self.trial(site),
        }
    }

    fn trial<'a>(&self, site: &'a Site) -> Box<dyn FnMut(u64) -> Result<Sample, TrialError> + 'a> {
        let doubts: Vec<Warning> = self.doubts.iter().chain(&site.doubts).cloned().collect();
        let (work, threads, share_bytes, job) =
            (self.work, self.threads, self.share_bytes, self.job);
        // By the rules of STREAM.
        let mut drops_first = matches!(work, Work::Stream(_));
        Box::new(move |seed| {
            let run = |seed| match (work, &job) {
                (Work::Access(pattern), _) => {
                    access::run(site, pattern, threads, share_bytes, seed)
                }
                (_, Some(job)) => trial::run(site, job, seed),
                (_, None) => {
                    let text =
                        "this CPU has no such instructions, or nobody has written the kernel";
                    Err(TrialError::Unsupported(text.to_owned()))
                }
            };
            if std::mem::take(&mut drops_first) {
                run(seed.wrapping_add(1))?;
            }
            let mut sample = run(seed)?;
            for doubt in &doubts {
                warning::add(&mut sample.warnings, doubt.clone());
            }
            Ok(sample)
        })
    }
}

#[cfg(test)]
mod tests;
