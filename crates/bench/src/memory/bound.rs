//! What the rows of bandwidth are held against, and what follows from several of them.

use std::collections::BTreeMap;

use flatout_measure::{Ceiling, Measured, ceiling, statistics, warning};
use flatout_sys::stream::Kernel;

use super::levels::{Levels, MEMORY};
use super::row::{RateRow, Work};
use super::{fact, stream};
use crate::roofline::{self, Part};
use crate::{counted, workers};

/// What a working set lives in that the curve places in memory, but that the last cache could hold.
pub(super) const CACHE_OR_MEMORY: &str = "last cache or DRAM";

/// What is known of the machine before rates are measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Machine {
    pub(super) levels: Levels,
    /// What the memory modules can deliver together.
    pub(super) modules: Ceiling,
    /// Lines per second, in bytes, that one core was seen to have fetched by chases.
    pub(super) core: Option<Ceiling>,
    /// CPUs that threads could run on when the area began.
    pub(super) cpus: Vec<usize>,
    /// Last caches that these have together.
    pub(super) last_caches: u64,
}

impl Machine {
    pub(super) fn cpu_count(&self) -> u32 {
        (self.cpus.len() as u32).max(1)
    }

    /// Size of the last caches that so many threads may have: of several sockets or clusters of cores
    /// each has one of its own.
    pub(super) fn caches_bytes(&self, threads: u32) -> u64 {
        let count = u64::from(threads).min(self.last_caches).max(1);
        self.levels.last_cache_bytes().saturating_mul(count)
    }

    /// CPUs on which the threads of a row run.
    fn cpus_of(&self, row: &RateRow) -> u32 {
        row.parts.threads.min(self.cpu_count())
    }

    /// Name of the level that a row's data live in; none if nobody knows.
    fn level_of(&self, row: &RateRow) -> Option<&'static str> {
        let last_bytes = self.caches_bytes(row.parts.threads);
        match row.work {
            Work::Stream(_) if warning::has(&row.warnings, warning::FITS_IN_CACHE) => {
                Some(CACHE_OR_MEMORY)
            }
            Work::Stream(_) => Some(MEMORY),
            Work::WorkingSet { bytes, .. } => match self.levels.of(bytes)?.name {
                // Others on a shared cache, or small pages, can make it look like memory in the
                // latency curve; a set that the cache could hold is no evidence of memory's rate.
                MEMORY if bytes < last_bytes.saturating_mul(2) => Some(CACHE_OR_MEMORY),
                name => Some(name),
            },
            Work::Block { .. } | Work::Access(_) => {
                (row.array_bytes() > last_bytes).then_some(MEMORY)
            }
        }
    }
}

/// Completes the facts of the rows and gives each its bound; `huge_ratio` is the share of their
/// memory on large pages.
pub(super) fn apply(rows: &mut [Measured<RateRow>], machine: &Machine, huge_ratio: Option<f64>) {
    for measured in &mut *rows {
        add_facts(measured, machine, huge_ratio);
    }
    let best = Best::of(rows, machine);
    for (index, Measured { row, outcome, .. }) in rows.iter_mut().enumerate() {
        ceiling::apply(outcome, best.bound(index, row, machine));
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

/// What is known of a row without its trials, or follows from all of them.
fn add_facts(measured: &mut Measured<RateRow>, machine: &Machine, huge_ratio: Option<f64>) {
    let Measured { row, outcome, facts, .. } = measured;
    let level = machine.level_of(row);
    facts.set_known(fact::LEVEL, level);
    // Share of the memory on large pages.
    facts.set_known("huge_page_ratio", huge_ratio);
    // Length of each array, all threads together.
    facts.set("array_bytes", row.array_bytes());
    // Whether threads were tied to CPUs.
    facts.set("pinned", workers::untied().is_none());
    let Some(test) = row.test else { return };
    let kernel = test.stream.kernel();
    facts.set(fact::KERNEL, kernel.name());
    // The widest instructions that it uses.
    facts.set("instruction_set", test.stream.level().name());
    // In which order it goes over an array.
    facts.set("order", test.stream.reach().name());
    let crossed = traffic(kernel).filter(|_| level == Some(MEMORY));
    let crossed = crossed.map(|(moved, crossed)| crossed / moved);
    let of = |figure: Option<f64>| Some(figure? * crossed?);
    let bus_bytes = of(facts.number(fact::APPLICATION_BYTES));
    facts.set_known(fact::BUS_BYTES, bus_bytes.map(|bytes| bytes.round() as u64));
    facts.set_known(fact::BUS_BYTES_PER_S, of(outcome.median));
    if let Work::Stream(kernel) = row.work {
        let operations = stream::operations_per_byte(kernel);
        facts.set(roofline::FLOP_PER_BYTE, operations);
        facts.set_known(fact::FLOP_PER_S, outcome.median.map(|median| median * operations));
        facts.set_known(fact::BEST_BYTES_PER_S, statistics::max(&outcome.samples));
    }
}

/// What a row is to the roofline: a roof, and of STREAM a point.
pub(super) fn roofline(measured: &Measured<RateRow>, machine: &Machine) -> Vec<Part> {
    let Measured { row, outcome, .. } = measured;
    let Some(bytes_per_s) = outcome.median.filter(|rate| *rate > 0.0) else { return Vec::new() };
    let threads = row.parts.threads;
    let rate = |level| Part::Rate { level, threads, bytes_per_s };
    match row.work {
        Work::Stream(kernel) => {
            let flop_per_byte = stream::operations_per_byte(kernel);
            // Kernels that go past the caches have the same operations per byte.
            let is_point = flop_per_byte > 0.0 && !kernel.is_non_temporal();
            let point = is_point.then(|| Part::Loop {
                threads,
                flop_per_byte,
                outcome: Box::new(outcome.clone()),
            });
            let roof = machine.level_of(row).filter(|level| *level == MEMORY).map(rate);
            roof.into_iter().chain(point).collect()
        }
        // Memory is STREAM's, with arrays that are longer; what may be either is no roof.
        Work::WorkingSet { .. } => {
            let level = machine.level_of(row);
            let cache = level.filter(|name| ![MEMORY, CACHE_OR_MEMORY].contains(name));
            cache.map(rate).into_iter().collect()
        }
        Work::Block { .. } | Work::Access(_) => Vec::new(),
    }
}

/// The fastest traffic of so many CPUs over the memory bus in this run, and whose it is.
struct Best(BTreeMap<u32, (usize, f64)>);

impl Best {
    fn of(rows: &[Measured<RateRow>], machine: &Machine) -> Self {
        let mut best: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
        for (index, Measured { row, outcome, .. }) in rows.iter().enumerate() {
            if machine.level_of(row) != Some(MEMORY) {
                continue;
            }
            let Some((moved, crossed)) = row.kernel().and_then(traffic) else { continue };
            let Some(median) = outcome.median else { continue };
            let rate = median * crossed / moved;
            let known = best.entry(machine.cpus_of(row)).or_insert((index, rate));
            if rate > known.1 {
                *known = (index, rate);
            }
        }
        Self(best)
    }

    /// What bounds the row at `index`.
    ///
    /// In memory: the modules, where they are known and more than one core takes part; otherwise
    /// the fastest traffic of as many CPUs in this run, or of chases in one core, turned into bytes of
    /// the program by what its kernel moves per byte on the bus.
    fn bound(&self, index: usize, row: &RateRow, machine: &Machine) -> Ceiling {
        let level = machine.level_of(row);
        let limiter = match (level, row.parts.threads) {
            (Some(MEMORY), 1) => "requests that one core keeps under way",
            (Some(MEMORY), _) => "memory bandwidth",
            (Some(cache), _) => cache,
            (None, _) => "caches or memory",
        };
        let traffic = row.kernel().and_then(traffic).filter(|_| level == Some(MEMORY));
        let bound = traffic.and_then(|(moved, crossed)| {
            let bound = self.bus_bound(index, machine.cpus_of(row), machine)?;
            // Some CPUs do not read lines first that are written as a whole (SpecI2M of Ice Lake and
            // later): what the modules cannot deliver is more than each byte of the program once.
            let is_bound = ceiling::is_derived(bound.provenance);
            let share = if is_bound { 1.0 } else { moved / crossed };
            Some(Ceiling { value: bound.value.map(|value| value * share), ..bound })
        });
        bound.unwrap_or_default().limited_by(limiter)
    }

    /// What bounds the traffic of so many CPUs over the bus.
    fn bus_bound(&self, index: usize, cpus: u32, machine: &Machine) -> Option<Ceiling> {
        if cpus > 1 && machine.modules.value.is_some() {
            return Some(machine.modules.clone());
        }
        let best = self.0.get(&cpus);
        let core = machine.core.as_ref().filter(|_| cpus == 1);
        let is_above_all = |core: &&Ceiling| core.value > best.map(|(_, rate)| *rate);
        if let Some(core) = core.filter(is_above_all) {
            return Some(core.clone());
        }
        // A row is no bound of itself.
        let (_, rate) = best.filter(|(owner, _)| *owner != index)?;
        let name = format!("fastest memory traffic of {}", counted(cpus, "CPU"));
        Some(Ceiling::best_seen(name, Some(*rate)))
    }
}

#[cfg(test)]
mod tests;
