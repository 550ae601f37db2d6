//! What a trial of the disk area tells the sampler: its figures, its facts, its doubts.

use flatout_io::Caching;
use flatout_measure::case::{Further, Latencies, Sample};
use flatout_measure::fact::Facts;
use flatout_measure::histogram::LoopKind;
use flatout_measure::record::{Series, Warning};
use flatout_measure::row::Parameters;
use flatout_measure::warning;
use flatout_sys::filesystem::Nature;
use serde_json::{Map, Value, json};

use super::Terms;
use super::pass::{LEAD_NS, Pass};
use super::pattern::Test;
use super::row::Row;
use super::site::Site;

/// The guard sees stolen time in ticks of 10 ms: shorter trials cannot be judged.
const SHORT_RUN_NS: u64 = 20_000_000;
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
            Test::Latency(_) => elapsed_ns.saturating_mul(u64::from(row.tuning.threads)),
            _ if span_ns > 0.0 => elapsed_ns.saturating_sub(LEAD_NS).max(span_ns as u64),
            _ => elapsed_ns,
        }
    }
}

/// The sample of one pass. Of a write, the time until the bytes are durable is a further figure.
pub(super) fn of(row: &Row, site: &Site, pass: &Pass) -> Sample {
    let further = pass.durable_ns.map(|durable_ns| {
        let parameters = Parameters::default().with("until", "durable");
        let mut audit = pass.bill.usage_until_synced();
        audit.insert("elapsed_ns".to_owned(), json!(durable_ns));
        let elapsed_ns = pass.figure_ns(row, durable_ns);
        Further { parameters, amount: pass.amount(row), elapsed_ns, audit, facts: Facts::default() }
    });
    let has_latencies = pass.tally.histogram.operations() > 0;
    let latencies = Latencies {
        histogram: pass.tally.histogram.clone(),
        loop_kind: if row.rate_per_s.is_some() { LoopKind::Open } else { LoopKind::Closed },
    };
    Sample {
        amount: pass.amount(row),
        elapsed_ns: pass.figure_ns(row, pass.elapsed_ns),
        facts: Facts::default(),
        audit: facts(pass),
        warnings: doubts(row, site, pass),
        latencies: has_latencies.then_some(latencies),
        series: has_latencies.then(|| series(row, site, pass)).into_iter().collect(),
        further: further.into_iter().filter(|_| row.writes()).collect(),
        spoil: None,
    }
}

/// The sample of a first read of some blocks; their second read is a further figure.
pub(super) fn of_two(row: &Row, site: &Site, first: &Pass, second: &Pass) -> Sample {
    let parameters = Parameters::default().with("pass", "second");
    let (amount, elapsed_ns) = (second.amount(row), second.elapsed_ns);
    let audit = facts(second);
    let further = vec![Further { parameters, amount, elapsed_ns, audit, facts: Facts::default() }];
    Sample { further, ..of(row, site, first) }
}

/// Why a row that writes gets no more trials.
pub(super) fn write_limit(terms: &Terms) -> Warning {
    let text = format!("the limit of {} bytes written was reached", terms.most_write_bytes);
    Warning::new(warning::WRITE_LIMIT, text)
}

/// Why the cold-blocks row gets no more trials.
pub(super) fn no_more_cold_blocks() -> Warning {
    let text = "every piece of the file was read once: none is cold any more";
    Warning::new(warning::FEW_TRIALS, text)
}

fn facts(pass: &Pass) -> Map<String, Value> {
    let tally = &pass.tally;
    let mut facts = pass.bill.facts();
    let mut insert = |key: &str, value: u64| facts.insert(key.to_owned(), json!(value));
    insert("bytes", tally.bytes);
    insert("operations", tally.operations);
    insert("requests", tally.requests);
    insert("read_bytes", tally.read_bytes);
    insert("written_bytes", tally.written_bytes);
    insert("elapsed_ns", pass.elapsed_ns);
    insert("blocks_sampled", tally.looked_at);
    insert("zero_blocks", tally.zero);
    insert("late_operations", tally.late);
    insert("unstarted_operations", tally.unstarted);
    insert("trials_summed", 1);
    if let Some(state) = pass.cached_before {
        insert("cached_before_bytes", state.cached_bytes);
        if let Some(dirty) = state.dirty_bytes {
            insert("dirty_before_bytes", dirty);
        }
    }
    if let Some(state) = pass.cached_after {
        insert("cached_after_bytes", state.cached_bytes);
    }
    facts
}

fn doubts(row: &Row, site: &Site, pass: &Pass) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let mut doubt = |code: &str, text: String| doubts.push(Warning::new(code, text));
    let tally = &pass.tally;
    if pass.elapsed_ns < SHORT_RUN_NS {
        let text = format!(
            "a trial lasted {:.1} ms: too short to tell whether something disturbed it",
            pass.elapsed_ns as f64 / 1e6
        );
        doubt(warning::SHORT_RUN, text);
    }
    if tally.looked_at > 0 && tally.zero as f64 > ZERO_SHARE * tally.looked_at as f64 {
        let share = 100.0 * tally.zero as f64 / tally.looked_at as f64;
        let text = format!(
            "{share:.0} % of the blocks looked at hold nothing but zeros, which thin storage need \
             not read"
        );
        doubt(warning::ZERO_BLOCKS, text);
    }
    let (late, meant) = (tally.late + tally.unstarted, tally.operations + tally.unstarted);
    if late as f64 > LATE_SHARE * meant as f64 {
        let share = 100.0 * late as f64 / meant as f64;
        let text = format!(
            "{share:.0} % of the operations began more than 1 ms after their time, or not at all: \
             the rate is above what this place can do"
        );
        doubt(warning::LATE_STARTS, text);
    }
    let in_memory = site.chain.nature == Nature::Memory;
    let before = pass.cached_before.map_or(0, |state| state.cached_bytes);
    let after = pass.cached_after.map_or(0, |state| state.cached_bytes);
    let is_device = site.directory().is_none() && site.extents.is_none();
    let is_cold = row.test != Test::Reread && !in_memory && !is_device;
    if is_cold && before > 0 {
        let text = format!("{before} bytes of the file were still in the page cache");
        doubt(warning::NOT_COLD, text);
    }
    if is_cold && pass.cached_before.is_none() {
        let text = "what the page cache holds of the file is not told here: it may not be cold";
        doubt(warning::NOT_COLD, text.to_owned());
    }
    let read_bytes = tally.read_bytes.min(site.length_bytes);
    if row.test == Test::Reread && pass.cached_before.is_some() && before < read_bytes {
        let text =
            format!("only {before} bytes of the file were in the page cache: memory is short");
        doubt(warning::NOT_HOT, text);
    }
    let blocks = site.length_bytes / row.tuning.block_bytes;
    if blocks < u64::from(row.tuning.threads) {
        let text = format!(
            "the file has {blocks} blocks for {} threads: the others have nothing to do",
            row.tuning.threads
        );
        doubt(warning::THREADS_REDUCED, text);
    }
    let is_direct = row.tuning.caching == Caching::Direct;
    if is_cold && is_direct && after > before + CACHE_GROWTH_BYTES {
        let text = format!(
            "direct I/O was accepted, but {} bytes of the file came into the page cache",
            after - before
        );
        doubt(warning::DIRECT_CACHED, text);
    }
    doubts
}

/// The rate over time: of each whole bin of the trial, at the time since the run began at which
/// the bin begins. The first bin, in which the queue fills, and the last, which is cut, are left
/// out.
fn series(row: &Row, site: &Site, pass: &Pass) -> Series {
    let column = usize::from(row.counts_bytes());
    let width_s = pass.bin_ns as f64 / 1e9;
    let start_s = pass.epoch_ns.saturating_sub(site.began_ns) as f64 / 1e9;
    let bins = &pass.tally.bins;
    let whole = (pass.elapsed_ns / pass.bin_ns.max(1)) as usize;
    let points = (1..bins.len().min(whole))
        .map(|index| [start_s + index as f64 * width_s, bins[index][column] as f64 / width_s])
        .collect();
    let y = if row.counts_bytes() { "bytes/s" } else { "operations/s" };
    Series { name: "rate over time".to_owned(), x: "time_s".to_owned(), y: y.to_owned(), points }
}
