//! What the rows of bandwidth are held against, and what follows from several of them.

use std::collections::BTreeMap;

use flatout_measure::ceiling;
use flatout_measure::record::{Ceiling, Outcome, Provenance};
use flatout_measure::statistics;
use flatout_sys::stream::{Kernel, Reach};
use serde_json::{Value, json};

use super::levels::{Levels, MEMORY};
use super::row::{Row, Work};
use super::stream;

/// What a working set lives in that the curve places in memory, but that the last cache could hold.
const CACHE_OR_MEMORY: &str = "last cache or DRAM";

/// What bounds memory from outside of these rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Limits {
    /// What the memory modules can deliver together.
    pub(super) modules: Ceiling,
    /// Lines per second, in bytes, that one core was seen to have fetched by chases.
    pub(super) core: Option<Ceiling>,
    /// CPUs that threads may run on: how many, and which they were when the area began.
    pub(super) cpus: u32,
    pub(super) allowed: Vec<usize>,
    /// Share of the memory on large pages.
    pub(super) huge_ratio: Option<f64>,
}

/// Completes the outcomes; `rows` has the row of each, in the same order.
pub(super) fn finish(rows: &[Row], outcomes: &mut [Outcome], levels: &Levels, limits: &Limits) {
    for (row, outcome) in rows.iter().zip(outcomes.iter_mut()) {
        say(row, outcome, levels, limits);
    }
    let best = Best::of(rows, outcomes, levels, limits);
    for (index, (row, outcome)) in rows.iter().zip(outcomes.iter_mut()).enumerate() {
        let ceiling = best.ceiling(index, row, levels, limits);
        ceiling::apply(outcome, ceiling);
    }
}

/// Arrays that the program moves, and arrays that cross the memory bus: an ordinary store reads
/// the line before it writes it. None where the CPU or the library chooses the way.
fn traffic(kernel: Kernel) -> Option<(f64, f64)> {
    match kernel {
        Kernel::Read | Kernel::NtWrite => Some((1.0, 1.0)),
        Kernel::Write => Some((1.0, 2.0)),
        Kernel::Copy | Kernel::Scale => Some((2.0, 3.0)),
        Kernel::NtCopy => Some((2.0, 2.0)),
        Kernel::Add | Kernel::Triad => Some((3.0, 4.0)),
        Kernel::NtTriad => Some((3.0, 3.0)),
        Kernel::RepMovsb | Kernel::Memcpy => None,
    }
}

/// Name of the level that a row's data live in; none if nobody knows.
fn level<'l>(row: &Row, levels: &'l Levels) -> Option<&'l str> {
    match row.work {
        Work::Stream(_) => Some(MEMORY),
        Work::WorkingSet { bytes, .. } => match levels.of(bytes)?.name {
            // Neighbours on a shared cache, or small pages, can make it look like memory in the
            // latency curve; a set that the cache could hold is no evidence of memory's rate.
            MEMORY if levels.last_cache_bytes().is_some_and(|cache| bytes < 2 * cache) => {
                Some(CACHE_OR_MEMORY)
            }
            name => Some(name),
        },
        Work::Block { .. } | Work::Access(_) => {
            let total = row.share_bytes * u64::from(row.threads);
            let is_memory = levels.last_cache_bytes().is_some_and(|bytes| total > bytes);
            is_memory.then_some(MEMORY)
        }
    }
}

/// Facts that are no sums over trials.
fn say(row: &Row, outcome: &mut Outcome, levels: &Levels, limits: &Limits) {
    let level = level(row, levels);
    let application_bytes = outcome.audit.get("application_bytes").and_then(Value::as_f64);
    let mut set = |key: &str, value: Value| outcome.audit.insert(key.to_owned(), value);
    if let Some(level) = level {
        set("level", json!(level));
    }
    if let Some(ratio) = limits.huge_ratio {
        set("huge_page_ratio", json!(ratio));
    }
    set("array_bytes", json!(row.share_bytes * u64::from(row.threads)));
    set("pinned", json!(true));
    let Some(job) = row.job else { return };
    let kernel = job.stream.kernel();
    set("kernel", json!(kernel.name()));
    set("instruction_set", json!(job.stream.level().name()));
    let order = match job.stream.reach() {
        Reach::Near => "first to last",
        Reach::Far => "eight pages side by side",
    };
    set("order", json!(order));
    let bus = traffic(kernel).zip(application_bytes).filter(|_| level == Some(MEMORY));
    if let Some(((moved, crossed), bytes)) = bus {
        set("bus_bytes", json!((bytes * crossed / moved).round() as u64));
    }
    if let Work::Stream(kernel) = row.work {
        let operations = stream::operations_per_byte(kernel);
        set("flop_per_byte", json!(operations));
        if let Some(median) = outcome.median {
            set("flop_per_s", json!(median * operations));
        }
        if let Some(best) = statistics::max(&outcome.samples) {
            set("best_bytes_per_s", json!(best));
        }
    }
}

/// The fastest traffic of so many CPUs over the memory bus in this run, and whose it is.
struct Best(BTreeMap<u32, (usize, f64)>);

impl Best {
    fn of(rows: &[Row], outcomes: &[Outcome], levels: &Levels, limits: &Limits) -> Self {
        let mut best: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
        for (index, (row, outcome)) in rows.iter().zip(outcomes).enumerate() {
            if level(row, levels) != Some(MEMORY) {
                continue;
            }
            let Some((moved, crossed)) = row.kernel().and_then(traffic) else { continue };
            let Some(median) = outcome.median else { continue };
            let rate = median * crossed / moved;
            let known = best.entry(row.threads.min(limits.cpus)).or_insert((index, rate));
            if rate > known.1 {
                *known = (index, rate);
            }
        }
        Self(best)
    }

    /// What bounds the row at `index`.
    ///
    /// In memory: the modules, where they are known and more than one core takes part; otherwise
    /// the fastest traffic of as many CPUs in this run, or of chases in one core. Either is turned
    /// into bytes of the program by what its kernel moves per byte on the bus.
    fn ceiling(&self, index: usize, row: &Row, levels: &Levels, limits: &Limits) -> Ceiling {
        let level = level(row, levels);
        let limiter = match (level, row.threads) {
            (Some(MEMORY), 1) => "requests that one core keeps under way",
            (Some(MEMORY), _) => "memory bandwidth",
            (Some(cache), _) => cache,
            (None, _) => "caches or memory",
        };
        let unknown = || Ceiling { limiter: limiter.to_owned(), ..Ceiling::default() };
        let Some((moved, crossed)) = row.kernel().and_then(traffic) else { return unknown() };
        if level != Some(MEMORY) {
            return unknown();
        }
        let scaled = |ceiling: &Ceiling| Ceiling {
            value: ceiling.value.map(|value| value * moved / crossed),
            limiter: limiter.to_owned(),
            ..ceiling.clone()
        };
        let cpus = row.threads.min(limits.cpus);
        if cpus > 1 && limits.modules.value.is_some() {
            return scaled(&limits.modules);
        }
        let best = self.0.get(&cpus).filter(|(owner, _)| *owner != index).map(|(_, rate)| *rate);
        let core = limits.core.as_ref().filter(|_| cpus == 1);
        let core_rate = core.and_then(|core| core.value);
        match (best, core) {
            (best, Some(core)) if core_rate > best && self.owner(cpus, core_rate) => scaled(core),
            (Some(rate), _) => {
                let noun = if cpus == 1 { "CPU" } else { "CPUs" };
                scaled(&Ceiling {
                    name: format!("fastest memory traffic of {cpus} {noun} in this run"),
                    value: Some(rate),
                    provenance: Provenance::Measured,
                    ..Ceiling::default()
                })
            }
            (None, _) => unknown(),
        }
    }

    /// Whether `rate` is above everything that the rows reached.
    fn owner(&self, cpus: u32, rate: Option<f64>) -> bool {
        self.0.get(&cpus).is_none_or(|(_, best)| rate > Some(*best))
    }
}

#[cfg(test)]
mod tests;
