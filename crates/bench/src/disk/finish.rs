//! What the rows of a finished run say together: shares, checks, curves; `bound` gives them limits.

use flatout_io::Caching;
use flatout_measure::case::within_run;
use flatout_measure::overhead::OVERHEAD_SHARE;
use flatout_measure::units::percent;
use flatout_measure::{
    EVIDENCE, Evidence, Facts, Happened, Key, Measured, Outcome, shape, warning,
};
use flatout_sys::Nature;
use flatout_sys::storage::Layer;

use super::pattern::{IoType, Pattern};
use super::row::{Figure, Row};
use super::test_file::TestFile;
use super::{Terms, bound, fact, fio, overhead, test_file};
use crate::counted;
use crate::file_trial::evidence::{self, ratio};

/// Requests of the disk per request from which on the requests were split.
const SPLIT_RATIO: f64 = 1.5;
/// Others' share of what the disk moved that is said.
const OTHERS_SHARE: f64 = 0.10;
/// Bytes of others below which nobody is disturbed: journals and logs.
const OTHERS_BYTES: f64 = 4_194_304.0;
/// How much faster the second read of blocks must be before the first counts as cold.
const COLD_RATIO: f64 = 1.3;
/// Storage stood still in a request that took so long, this share of the row's time, and so many times the
/// median: a deep queue, or a limit, makes all of them long.
const STALL_NS: f64 = 1e9;
const STALL_SHARE: f64 = 0.10;
const STALL_SHARE_OF_FEW: f64 = 0.5;
const STALL_MEDIANS: f64 = 100.0;

/// A figure of a row, with what is known of it.
pub(super) struct Finding<'a> {
    pub(super) row: &'a Row,
    pub(super) figure: Figure,
    pub(super) outcome: &'a mut Outcome,
    pub(super) facts: &'a mut Facts,
}

/// The figures of a row: its own, then the further ones of its trials.
pub(super) fn findings(measured: &mut Measured<Row>) -> impl Iterator<Item = Finding<'_>> {
    let Measured { row, outcome, facts, further } = measured;
    let row = &*row;
    let further = further.iter_mut().map(|further| {
        let (outcome, facts) = (&mut further.outcome, &mut further.facts);
        Finding { row, figure: row.further(), outcome, facts }
    });
    std::iter::once(Finding { row, figure: Figure::Own, outcome, facts }).chain(further)
}

/// Completes the rows.
pub(super) fn apply(rows: &mut [Measured<Row>], file: &TestFile, terms: &Terms) {
    for measured in &mut *rows {
        let harness_ns = overhead::ns_per_operation(&measured.row);
        for mut finding in findings(measured) {
            finding.label(file);
            finding.derive(file, harness_ns);
            if finding.outcome.median.is_some() {
                finding.prove(file.chain.ground(), file.is_in_memory());
                finding.look_for_others();
                finding.check_requests(file);
                finding.check_overhead(harness_ns);
                finding.look_for_stall();
            }
            if finding.row.rate_per_s.is_none() {
                finding.look_at_curve(file);
            }
            let (row, length_bytes) = (finding.row, file.length_bytes);
            let nearest = fio::nearest(row, &file.place, length_bytes, terms, finding.figure);
            finding.facts.extend(nearest);
        }
        compare_passes(measured);
    }
    bound::apply(rows, file);
}

impl Finding<'_> {
    /// Says what kind of row it is where the name alone would mislead.
    fn label(&mut self, file: &TestFile) {
        let known = file.warnings.iter().chain(&self.row.warnings).cloned();
        warning::add_all(&mut self.outcome.warnings, known);
        let block_bytes = self.row.tuning.block_bytes;
        if self.row.tuning.caching != Caching::Direct && block_bytes < 4096 {
            let text = format!(
                "blocks of {} through the page cache: system calls and readahead limit this figure, \
                 not the disk",
                counted(block_bytes, "byte")
            );
            self.outcome.warn(warning::READAHEAD_BOUND, text);
        }
        if self.row.is_early(self.figure) {
            let text = "the bytes were with the cache or the device, but not yet durable";
            self.outcome.warn(warning::NOT_DURABLE, text.to_owned());
        }
    }

    /// Shares and costs from the totals.
    fn derive(&mut self, file: &TestFile, harness_ns: f64) {
        let Self { row, outcome, facts, .. } = self;
        let get = |key| facts.number(key);
        let sum = |a, b| Some(get(a)? + get(b)?);
        let (operations, elapsed_ns) = (get(fact::OPERATIONS), get(fact::ELAPSED_NS));
        let read_bytes = get(fact::READ_BYTES);
        let disk_bytes = sum(fact::DISK_READ_BYTES, fact::DISK_WRITE_BYTES);
        // Requests of the other direction are somebody else's.
        let disk_requests = match row.test.io_type() {
            IoType::Read => get(fact::DISK_READ_REQUESTS),
            IoType::Write => get(fact::DISK_WRITE_REQUESTS),
            IoType::Copy | IoType::Mixed => {
                sum(fact::DISK_READ_REQUESTS, fact::DISK_WRITE_REQUESTS)
            }
        };
        // Mirrors, parity and copies on write move more for us than we ask for.
        let others = disk_bytes
            .zip(sum(fact::PROCESS_READ_BYTES, fact::PROCESS_WRITE_BYTES))
            .filter(|_| moves_what_is_asked(file))
            .map(|(disk, own)| (disk - own).max(0.0));
        let reads_through_cache =
            row.test.io_type() == IoType::Read && row.tuning.caching != Caching::Direct;
        let knows_reads = !file.chain.disks.is_empty() || file.is_in_memory();
        let hits = ratio(get(fact::PROCESS_READ_BYTES), read_bytes)
            .filter(|_| reads_through_cache && knows_reads)
            .map(|missed| (1.0 - missed).max(0.0));
        let cpu_ns = sum(fact::USER_NS, fact::SYSTEM_NS);
        let gib = get(fact::BYTES).map(|bytes| bytes / (1u64 << 30) as f64);
        let threads_ns = elapsed_ns.map(|ns| ns * f64::from(row.tuning.threads));
        let derived = [
            (
                Key::last("disk_share_ratio"),
                ratio(disk_bytes, sum(fact::READ_BYTES, fact::WRITTEN_BYTES)),
            ),
            (Key::last("disk_requests"), disk_requests),
            (fact::DISK_REQUESTS_PER_REQUEST_RATIO, ratio(disk_requests, get(fact::REQUESTS))),
            (Key::last("cache_hit_ratio"), hits),
            (
                Key::last("zero_block_ratio"),
                ratio(get(fact::ZERO_BLOCKS), get(fact::BLOCKS_SAMPLED)),
            ),
            (fact::OTHERS_DISK_RATIO, ratio(others, disk_bytes)),
            (fact::OTHERS_DISK_BYTES, others),
            (Key::last("io_pressure_ratio"), ratio(get(fact::IO_PRESSURE_NS), elapsed_ns)),
            (
                Key::last("stolen_ratio"),
                ratio(get(fact::STOLEN_NS), elapsed_ns.map(|ns| ns * file.cpus)),
            ),
            (Key::last("cpu_ns_per_operation"), ratio(cpu_ns, operations)),
            (Key::last("cpu_s_per_gib"), ratio(cpu_ns.map(|ns| ns / 1e9), gib)),
            (Key::last("harness_ns_per_operation"), Some(harness_ns)),
            (fact::OVERHEAD_RATIO, ratio(operations.map(|count| count * harness_ns), threads_ns)),
        ];
        derived.into_iter().for_each(|(key, value)| facts.set_known(key, value));
        facts.take(fact::HARNESS_OVERHEAD_NS);
        facts.set_known("trials_summed", Some(outcome.n).filter(|&trials| trials > 0));
        facts.set("file_bytes", file.length_bytes);
        facts.set_known("hole_bytes", file.extents.map(|extents| extents.hole_bytes));
        if let Some(extents) = file.extents {
            facts.set("unwritten_bytes", extents.unwritten_bytes);
        }
    }

    /// Says what shows that the row did what its name says, and warns where it did not.
    fn prove(&mut self, ground: Option<Nature>, is_in_memory: bool) {
        let evidence = self.evidence(ground);
        warning::add_all(&mut self.outcome.warnings, evidence::against(&evidence));
        // Whatever lies at the bottom: a file in memory is its pages.
        let buffered = self.buffered().filter(|found| found.happened == Happened::No);
        if let Some(found) = buffered.filter(|_| !is_in_memory) {
            self.outcome.warn(warning::DIRECT_CACHED, found.text.to_string());
        }
        self.facts.set(EVIDENCE, evidence);
    }

    /// What speaks against direct requests.
    fn buffered(&self) -> Option<Evidence> {
        let written_bytes = self.facts.number(fact::WRITTEN_BYTES).unwrap_or(0.0);
        let is_direct = self.row.tuning.caching == Caching::Direct;
        is_direct.then(|| evidence::buffered(self.facts, written_bytes)).flatten()
    }

    fn evidence(&self, ground: Option<Nature>) -> Evidence {
        let number = |key| self.facts.number(key);
        let sum = |keys: &[Key]| keys.iter().map(|&key| number(key)).sum::<Option<f64>>();
        let [read_bytes, written_bytes] =
            [fact::READ_BYTES, fact::WRITTEN_BYTES].map(|key| number(key).unwrap_or(0.0));
        if self.row.test == Pattern::Reread {
            return evidence::hot(read_bytes, number(fact::PROCESS_READ_BYTES));
        }
        let (disk, process): (&[Key], &[Key]) = match self.row.test.io_type() {
            IoType::Read => (&[fact::DISK_READ_BYTES], &[fact::PROCESS_READ_BYTES]),
            IoType::Write => (&[fact::DISK_WRITE_BYTES], &[fact::PROCESS_WRITE_BYTES]),
            IoType::Copy | IoType::Mixed => (
                &[fact::DISK_READ_BYTES, fact::DISK_WRITE_BYTES],
                &[fact::PROCESS_READ_BYTES, fact::PROCESS_WRITE_BYTES],
            ),
        };
        let moved = evidence::moved(read_bytes + written_bytes, [sum(disk), sum(process)], ground);
        match moved.happened {
            Happened::Yes => self.buffered().unwrap_or(moved),
            _ => moved,
        }
    }

    /// Looks for others who used the disk in the same time. Where each write is synced, its journal is most of
    /// what is not its own.
    fn look_for_others(&mut self) {
        let row = self.row;
        let others = self.facts.number(fact::OTHERS_DISK_BYTES).unwrap_or(0.0);
        let is_tiny = row.tuning.block_bytes < 512;
        if self.others_share() > OTHERS_SHARE
            && others > OTHERS_BYTES
            && !is_tiny
            && !row.syncs_each()
            && row.tuning.caching == Caching::Direct
        {
            let share = percent(self.others_share());
            let text = format!("{share} of what the disk moved was for somebody else");
            self.outcome.warn(warning::SHARED_DEVICE, text);
        }
    }

    fn others_share(&self) -> f64 {
        self.facts.number(fact::OTHERS_DISK_RATIO).unwrap_or(0.0)
    }

    /// Whether requests were split. Where others ask much, the count of requests is theirs, and where each is
    /// synced there are flushes and the journal in it; what the queue takes at once is not.
    fn check_requests(&mut self, file: &TestFile) {
        let counted = self
            .facts
            .number(fact::DISK_REQUESTS_PER_REQUEST_RATIO)
            .filter(|&ratio| ratio > SPLIT_RATIO && self.others_share() <= OTHERS_SHARE)
            .filter(|_| !self.row.syncs_each());
        let block_bytes = self.row.tuning.block_bytes;
        let largest_bytes = file.disks().filter_map(|disk| disk.max_request_bytes).min();
        let text = match (counted, largest_bytes) {
            (Some(ratio), _) => format!("each request became {ratio:.1} requests of the disk"),
            (None, Some(most)) if block_bytes > most => format!(
                "requests of {block_bytes} bytes are split: the disk takes at most {most} at once"
            ),
            _ => return,
        };
        if self.row.tuning.caching == Caching::Direct {
            self.outcome.warn(warning::REQUESTS_SPLIT, text);
        }
    }

    fn check_overhead(&mut self, harness_ns: f64) {
        let share = self.facts.number(fact::OVERHEAD_RATIO).filter(|&share| share > OVERHEAD_SHARE);
        if let Some(share) = share {
            let text = format!(
                "the harness takes {} of the threads' time ({harness_ns:.0} ns per operation)",
                percent(share)
            );
            self.outcome.warn(warning::OVERHEAD, text);
        }
    }

    /// Looks for one request in which the storage stood still.
    fn look_for_stall(&mut self) {
        let Some(latency) = &self.outcome.latency else { return };
        let Some(elapsed_ns) = self.facts.number(fact::ELAPSED_NS) else { return };
        let median_ns = latency.percentiles_ns.get("p50").and_then(serde_json::Value::as_f64);
        // Of so few that there is no median, it is most of the time.
        let (share, usual_ns, of_all) = match median_ns {
            Some(median_ns) => (STALL_SHARE, median_ns, "half of all took"),
            None => (STALL_SHARE_OF_FEW, latency.min_ns, "the shortest took"),
        };
        let least_ns = STALL_NS.max(share * elapsed_ns).max(STALL_MEDIANS * usual_ns);
        if latency.max_ns >= least_ns {
            let text = format!(
                "one request took {:.1} s, of {:.1} s in which the row was measured; {of_all} \
                 {:.0} µs or less",
                latency.max_ns / 1e9,
                elapsed_ns / 1e9,
                usual_ns / 1e3
            );
            self.outcome.warn(warning::STALLED, text);
        }
    }

    /// What the rate over time says: a burst that ended, a plateau at a round figure.
    fn look_at_curve(&mut self, file: &TestFile) {
        let Some(series) = self.outcome.series.first().cloned() else { return };
        let points = &series.points;
        if file.chain.ground() == Some(Nature::Memory) || points.is_empty() {
            return;
        }
        if let Some(found) = shape::shape(points) {
            self.facts.set(fact::BURST_PER_S, found.burst_per_s);
            self.facts.set(fact::KNEE_S, found.knee_s);
            self.facts.set(fact::SUSTAINED_PER_S, found.sustained_per_s);
            let text = format!(
                "the rate changed {:.1} s after the run began, to {:.0} % of what it was before",
                found.knee_s,
                found.step_ratio * 100.0
            );
            self.outcome.warn(warning::BURST, text);
        }
        if let Some(flat) = shape::plateau(points, &series.y) {
            let text = format!(
                "the rate is flat at about {} {}: likely a limit that somebody set (a token bucket)",
                flat.round_figure, flat.unit_words
            );
            self.outcome.warn(warning::PLATEAU, text);
        }
    }
}

/// Whether the layers below hand on each byte once.
fn moves_what_is_asked(file: &TestFile) -> bool {
    let multiplies = |layer: &Layer| matches!(layer, Layer::Raid { .. } | Layer::Stacked { .. });
    let layers = &file.chain.layers;
    file.chain.disks.len() == 1
        && !(layers.iter().any(multiplies) || test_file::copies_on_write(layers))
}

/// Compares the first read of cold blocks with the second one.
fn compare_passes(measured: &mut Measured<Row>) {
    let first = &measured.outcome;
    let Some(further) = measured.further.first() else { return };
    let (Some(once), Some(again)) = (first.median, further.outcome.median) else { return };
    let ends = within_run(first, &measured.facts).zip(within_run(&further.outcome, &further.facts));
    let apart = ends.is_none_or(|(first, second)| second[0] > first[1]);
    let ratio = again / once;
    if measured.row.test != Pattern::ColdBlocks || ratio < COLD_RATIO || !apart {
        return;
    }
    let text = format!(
        "the second read of the same blocks is {ratio:.1} times as fast as the first: they were cold \
         in the device or behind it"
    );
    for finding in findings(measured) {
        finding.outcome.warn(warning::COLD_BLOCKS, text.clone());
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;
    use flatout_measure::record::Latency;
    use flatout_measure::sampler::fact::BETWEEN_RUNS;
    use flatout_measure::{MeasuredFurther, Value};

    use super::*;
    use crate::disk::plan::tests_rows;
    use crate::file_trial::cache_watch::{CACHE_LOOKS, CACHE_LOOKS_FILLED};

    /// In both intervals is what runs differ by, which moves both reads of a run alike.
    #[test]
    fn a_second_read_that_is_faster_in_each_trial_makes_the_first_a_cold_one() {
        let row = Row { test: Pattern::ColdBlocks, ..tests_rows().remove(0) };
        let warned = |deviation: f64| {
            let facts = || {
                let known = Value::fields([("deviation", deviation)]);
                Facts::default().with(BETWEEN_RUNS, known)
            };
            let read = |median: f64| {
                let (median, ci95) = (Some(median), Some([median * 0.78, median / 0.78]));
                Outcome { median, ci95, ..blank(&row) }
            };
            let (outcome, facts, parameters) = (read(1.4), facts(), Default::default());
            let second = MeasuredFurther { parameters, outcome, facts: facts.clone() };
            let (row, outcome, further) = (row.clone(), read(1.0), vec![second]);
            let mut measured = Measured { row, outcome, facts, further };
            compare_passes(&mut measured);
            warning::has(&measured.outcome.warnings, warning::COLD_BLOCKS)
        };
        assert_eq!([0.12, 0.0].map(warned), [true, false]);
    }

    /// As read on btrfs with checksums on a loop device in memory, and with `chattr +C`.
    #[test]
    fn direct_requests_that_are_buffered_are_said_whatever_lies_below() {
        let row =
            tests_rows().into_iter().find(|row| row.test == Pattern::SequentialWrite).unwrap();
        let warned = |filled: u64, ground, is_in_memory| {
            let facts = Facts::default()
                .with(fact::WRITTEN_BYTES, 381_681_664_u64)
                .with(CACHE_LOOKS, 45_u64)
                .with(CACHE_LOOKS_FILLED, filled);
            let (row, outcome) = (row.clone(), blank(&row));
            let mut measured = Measured { row, outcome, facts, further: Vec::new() };
            findings(&mut measured).next().unwrap().prove(ground, is_in_memory);
            warning::has(&measured.outcome.warnings, warning::DIRECT_CACHED)
        };
        for ground in [Some(Nature::Memory), Some(Nature::Disk), None] {
            assert!(warned(45, ground, false), "{ground:?}");
            assert!(!warned(0, ground, false), "{ground:?}");
        }
        assert!(!warned(45, Some(Nature::Memory), true), "a file on tmpfs is its pages");
    }

    /// As seen of a device that was suspended for 12 s.
    #[test]
    fn a_request_in_which_storage_stood_still_is_said() {
        let row = tests_rows().into_iter().find(|row| row.test == Pattern::RandomRead).unwrap();
        let warned = |max_ns: f64, usual: (&str, f64), elapsed_ns: u64| {
            let percentiles_ns = serde_json::Map::from_iter([(usual.0.to_owned(), usual.1.into())]);
            let latency =
                Some(Latency { max_ns, min_ns: usual.1, percentiles_ns, ..Latency::default() });
            let outcome = Outcome { latency, ..blank(&row) };
            let facts = Facts::default().with(fact::ELAPSED_NS, elapsed_ns);
            let mut measured = Measured { row: row.clone(), outcome, facts, further: Vec::new() };
            findings(&mut measured).next().unwrap().look_for_stall();
            warning::has(&measured.outcome.warnings, warning::STALLED)
        };
        assert!(warned(12e9, ("p50", 3e5), 13_000_000_000));
        assert!(!warned(12e9, ("p50", 3e5), 600_000_000_000), "little of a long row");
        assert!(!warned(2.5e9, ("p50", 2e9), 10_000_000_000), "all of them wait in a deep queue");
        assert!(!warned(3e8, ("p50", 3e5), 1_000_000_000));
        assert!(warned(12e9, ("", 3e6), 13_000_000_000), "of so few there is no median");
        assert!(!warned(2e9, ("", 3e6), 13_000_000_000), "others of the few took as long");
    }
}
