//! What a trial of the disk area tells the sampler: its figures, its facts, its warnings.

use flatout_measure::units::percent;
use flatout_measure::{
    Facts, Further, Key, Latencies, LoopKind, Merge, Sample, Series, Warning, warning,
};
use flatout_sys::CacheState;

use super::fact;
use super::lane::Tally;
use super::pass::{LEAD_NS, Pass};
use super::pattern::Pattern;
use super::place::Kind;
use super::row::{Figure, Row};
use super::test_file::TestFile;
use crate::file_trial::page_cache::{growth_warning, start_warning};
use crate::{CacheStart, Clearing, workers};

/// In a shorter trial its beginning and end weigh: threads start within some 20 µs of each other.
const SHORT_RUN_NS: u64 = 2_000_000;
/// Share of blocks looked at that may be zero before it is said.
const ZERO_SHARE: f64 = 0.01;
/// Share of an open loop's operations that may begin late.
const LATE_SHARE: f64 = 0.01;
/// Bytes by which the cache may grow while direct I/O runs: somebody else's readahead.
const CACHE_GROWTH_BYTES: u64 = 1 << 20;

impl Pass {
    fn amount(&self, row: &Row) -> f64 {
        match row.counts_bytes() {
            true => self.tally.bytes as f64,
            false => self.tally.operations as f64,
        }
    }

    /// The time that `elapsed_ns` stands for in the figure. The latency of a request is the time of
    /// the thread that waits for it. Operations that were meant to begin over some time count over
    /// that time, even if the last of them ended before it was over.
    fn figure_ns(&self, row: &Row, elapsed_ns: u64) -> u64 {
        let span_ns = row.rate_per_s.map_or(0.0, |rate| self.tally.operations as f64 / rate * 1e9);
        match row.test {
            test if test.is_latency() => elapsed_ns.saturating_mul(u64::from(row.tuning.threads)),
            _ if span_ns > 0.0 => elapsed_ns.saturating_sub(LEAD_NS).max(span_ns as u64),
            _ => elapsed_ns,
        }
    }
}

/// The sample of one pass. Of a write, the time until the bytes are durable is a further figure.
pub(super) fn of(row: &Row, file: &TestFile, pass: &Pass) -> Sample {
    let fsynced = |fsynced_ns| Further {
        parameters: Figure::Fsynced.parameters(),
        amount: pass.amount(row),
        elapsed_ns: pass.figure_ns(row, fsynced_ns),
        facts: pass.accounts.times_until_synced().with(fact::ELAPSED_NS, fsynced_ns),
    };
    // Writes that are synced each are durable when the trial ends.
    let fsynced_ns = pass.fsynced_ns.filter(|_| row.is_early(Figure::Own));
    let has_latencies = pass.tally.histogram.operations() > 0;
    let latencies = Latencies {
        histogram: pass.tally.histogram.clone(),
        loop_kind: if row.rate_per_s.is_some() { LoopKind::Open } else { LoopKind::Closed },
    };
    Sample {
        amount: pass.amount(row),
        elapsed_ns: pass.figure_ns(row, pass.elapsed_ns),
        facts: facts(pass),
        warnings: warnings(row, file, pass),
        latencies: has_latencies.then_some(latencies),
        series: has_latencies.then(|| series(row, file, pass)).into_iter().collect(),
        further: fsynced_ns.map(fsynced).into_iter().collect(),
        ..Sample::default()
    }
}

/// The sample of a first read of some blocks; their second read is a further figure.
pub(super) fn of_two(row: &Row, file: &TestFile, first: &Pass, second: &Pass) -> Sample {
    let second = Further {
        parameters: Figure::Second.parameters(),
        amount: second.amount(row),
        elapsed_ns: second.elapsed_ns,
        facts: facts(second),
    };
    Sample { further: vec![second], ..of(row, file, first) }
}

fn facts(pass: &Pass) -> Facts {
    let tally = &pass.tally;
    let mut facts = pass.accounts.facts();
    facts.extend(pass.looks.facts());
    let counts = [
        (fact::BYTES, tally.bytes),
        (fact::OPERATIONS, tally.operations),
        (fact::REQUESTS, tally.requests),
        (fact::READ_BYTES, tally.read_bytes),
        (fact::WRITTEN_BYTES, tally.written_bytes),
        (fact::ELAPSED_NS, pass.elapsed_ns),
        (fact::BLOCKS_SAMPLED, tally.looked_at),
        (fact::ZERO_BLOCKS, tally.zero),
        (Key::sum("late_operations"), tally.late),
        (Key::sum("unstarted_operations"), tally.unstarted),
    ];
    counts.into_iter().for_each(|(key, count)| facts.set(key, count));
    let (before, after) = (pass.cached_before, pass.cached_after);
    facts.set_known(fact::CACHED_BEFORE_BYTES, before.map(|state| state.cached_bytes));
    // Of these, bytes that storage does not have yet.
    let dirty_before = Key::new("dirty_before_bytes", Merge::Mean);
    facts.set_known(dirty_before, before.and_then(|state| state.dirty_bytes));
    facts.set_known(fact::CACHED_AFTER_BYTES, after.map(|state| state.cached_bytes));
    facts
}

fn warnings(row: &Row, file: &TestFile, pass: &Pass) -> Vec<Warning> {
    let blocks = file.length_bytes / row.tuning.block_bytes;
    let idle = workers::idle(row.tuning.threads, blocks);
    let requests = of_requests(&pass.tally, pass.elapsed_ns).into_iter().chain(idle);
    requests.chain(of_cache(row, file, pass)).collect()
}

/// What the requests of a trial say against it.
fn of_requests(tally: &Tally, elapsed_ns: u64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if elapsed_ns < SHORT_RUN_NS {
        let text = format!(
            "a trial lasted {:.1} ms: how it began and ended weighs in its figure",
            elapsed_ns as f64 / 1e6
        );
        warnings.push(Warning::new(warning::SHORT_RUN, text));
    }
    if tally.looked_at > 0 && tally.zero as f64 > ZERO_SHARE * tally.looked_at as f64 {
        let share = percent(tally.zero as f64 / tally.looked_at as f64);
        let text = format!(
            "{share} of the blocks looked at hold nothing but zeros, which thin storage need \
             not read"
        );
        warnings.push(Warning::new(warning::ZERO_BLOCKS, text));
    }
    let (late, meant) = (tally.late + tally.unstarted, tally.operations + tally.unstarted);
    if late as f64 > LATE_SHARE * meant as f64 {
        let share = percent(late as f64 / meant as f64);
        let text = format!(
            "{share} of the operations began more than 1 ms after their time, or not at all: \
             the rate is above what this place can do beside what else goes on"
        );
        warnings.push(Warning::new(warning::LATE_STARTS, text));
    }
    warnings
}

/// What the page cache holds and should not, or the other way round.
fn of_cache(row: &Row, file: &TestFile, pass: &Pass) -> Vec<Warning> {
    let before = pass.cached_before;
    if row.test == Pattern::Reread {
        let read_bytes = pass.tally.read_bytes.min(file.length_bytes);
        return start_warning(CacheStart::Hot, before, read_bytes).into_iter().collect();
    }
    // The cache of a device holds the metadata of whoever has mounted it.
    if file.place.kind == Kind::Device || file.is_in_memory() {
        return Vec::new();
    }
    let bytes = |held: Option<CacheState>| held.map(|held| held.cached_bytes);
    let (caching, after) = (row.tuning.caching, bytes(pass.cached_after));
    let grown = growth_warning(caching, bytes(before), after, CACHE_GROWTH_BYTES);
    start_warning(CacheStart::Cold(Clearing::File), before, 0).into_iter().chain(grown).collect()
}

/// Operations that a point of the rate over time stands for in the mean: of few, the curve would show
/// which bin the next one fell into.
const POINT_OPERATIONS: f64 = 20.0;

/// The rate over time: of the whole bins of the trial, at the time since the run began at which a
/// bin begins; of slow operations several bins make a point. The first bin, in which the queue
/// fills, and the last, which is cut, are left out.
fn series(row: &Row, file: &TestFile, pass: &Pass) -> Series {
    let start_s = pass.epoch_ns.saturating_sub(file.began_ns) as f64 / 1e9;
    let whole = ((pass.elapsed_ns / pass.bin_ns.max(1)) as usize).min(pass.tally.bins.len());
    let bins = pass.tally.bins.get(1..whole).unwrap_or_default();
    let points = points(bins, pass.bin_ns as f64 / 1e9, usize::from(row.counts_bytes()));
    let points = points.into_iter().map(|[at_s, rate]| [start_s + at_s, rate]).collect();
    let y = if row.counts_bytes() { "bytes/s" } else { "operations/s" };
    Series { name: "rate over time".to_owned(), x: "time_s".to_owned(), y: y.to_owned(), points }
}

/// Times since the first bin but one began, and rates, of bins of operations and bytes.
fn points(bins: &[[u64; 2]], width_s: f64, column: usize) -> Vec<[f64; 2]> {
    let operations: u64 = bins.iter().map(|bin| bin[0]).sum();
    let per_bin = operations as f64 / bins.len().max(1) as f64;
    let joined = (POINT_OPERATIONS / per_bin).ceil().clamp(1.0, bins.len().max(1) as f64) as usize;
    let rate = |(index, part): (usize, &[[u64; 2]])| {
        let sum: u64 = part.iter().map(|bin| bin[column]).sum();
        [(1 + index * joined) as f64 * width_s, sum as f64 / (joined as f64 * width_s)]
    };
    bins.chunks_exact(joined).enumerate().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_is_too_short_is_named() {
        let codes = |elapsed_ns| {
            let warnings = of_requests(&Tally::default(), elapsed_ns);
            warnings.into_iter().map(|warning| warning.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(SHORT_RUN_NS - 1), [warning::SHORT_RUN]);
        assert!(codes(SHORT_RUN_NS).is_empty());
    }

    #[test]
    fn a_point_stands_for_so_many_operations_that_single_ones_do_not_show() {
        let fast = [[30, 3000], [40, 4000]];
        assert_eq!(points(&fast, 0.5, 0), [[0.5, 60.0], [1.0, 80.0]]);
        assert_eq!(points(&fast, 0.5, 1), [[0.5, 6000.0], [1.0, 8000.0]]);
        // Eight a bin, now seven and now nine: three bins make a point.
        let slow = [[7, 0], [9, 0], [8, 0], [9, 0], [7, 0], [8, 0], [9, 0]];
        assert_eq!(points(&slow, 1.0, 0), [[1.0, 8.0], [4.0, 8.0]]);
        assert_eq!(points(&[[1, 0], [0, 0]], 1.0, 0), [[1.0, 0.5]], "hardly any");
        assert_eq!(points(&[], 1.0, 0), [[0.0; 2]; 0]);
        assert_eq!(points(&[[0, 0]], 1.0, 0), [[1.0, 0.0]]);
    }
}
