//! What a figure of the disk area is held against, and its bottleneck.

use flatout_io::operations::Direction;
use flatout_io::{Caching, Engine, Tuning};
use flatout_measure::ceiling::{self, TOLERANCE};
use flatout_measure::{Ceiling, Evidence, Measured, Provenance, Row as _, warning};
use flatout_sys::Nature;
use flatout_sys::storage::{IoLimit, Link};

use super::fact;
use super::finish::{Finding, findings};
use super::pattern::{IoType, Pattern};
use super::row::{Extents, Figure, Row};
use super::test_file::TestFile;
use crate::file_trial::group_limit;

/// Share of a bound from which on the bound is the limit.
const AT_THE_LIMIT: f64 = 0.9;
/// CPU time of a thread over the time from which on the thread is the limit.
const BUSY_SHARE: f64 = 0.9;

/// Gives each figure its bound and names the bottleneck.
pub(super) fn apply(rows: &mut [Measured<Row>], file: &TestFile) {
    let (around, overwriting) = (Around::of(rows), overwriting(rows));
    for finding in rows.iter_mut().flat_map(findings) {
        let Some(median) = finding.outcome.median else { continue };
        let group = group_limit(&finding, file);
        if let Some((name, value)) = &group {
            let unit = finding.row.unit().name();
            finding.outcome.warn(warning::IO_LIMIT, format!("{name} allows {value:.0} {unit}"));
        }
        let bound = bound(&finding, median, group, (&around, &overwriting), file);
        ceiling::apply(finding.outcome, bound);
    }
}

/// The figures of the run that went around the page cache: bytes and operations per second.
struct Around(Vec<(IoType, [f64; 2])>);

impl Around {
    fn of(rows: &[Measured<Row>]) -> Self {
        let rates = |Measured { row, outcome, further, .. }: &Measured<Row>| {
            let is_around = row.tuning.caching == Caching::Direct
                && !warning::has(&outcome.warnings, warning::DIRECT_CACHED);
            let further = further.iter().map(|further| &further.outcome);
            let medians = std::iter::once(outcome).chain(further).filter_map(|one| one.median);
            let median = medians.reduce(f64::max).filter(|_| is_around)?;
            let block = row.tuning.block_bytes as f64;
            let rates = match row.counts_bytes() {
                true => [median, median / block],
                false => [median * block, median],
            };
            Some((row.test.io_type(), rates))
        };
        Self(rows.iter().filter_map(rates).collect())
    }

    /// Whether something was read or written at a higher rate.
    fn exceeds(&self, bytes_per_s: f64) -> bool {
        let mut one_way = self.0.iter().filter(|one| matches!(one.0, IoType::Read | IoType::Write));
        one_way.any(|(_, [bytes, _])| *bytes > bytes_per_s)
    }

    /// What is best in the unit of a row, to stand beside it; beside the best row itself nothing.
    fn bound(&self, row: &Row, median: f64) -> Ceiling {
        let (io_type, counts_bytes) = (row.test.io_type(), row.counts_bytes());
        let name = match (io_type, counts_bytes) {
            (IoType::Read, true) => "the best direct read",
            (IoType::Read, false) => "the most direct reads a second",
            (IoType::Write, true) => "the best direct write",
            (IoType::Write, false) => "the most direct writes a second",
            (IoType::Copy | IoType::Mixed, _) => return Ceiling::unknown("the device"),
        };
        let alike = self.0.iter().filter(|(of, _)| *of == io_type);
        let best = alike.map(|(_, rates)| rates[usize::from(!counts_bytes)]).reduce(f64::max);
        Ceiling::best_seen(name, best.filter(|&value| value > median * 1.0001))
    }
}

/// A figure of direct writes over blocks that are there, for those that extend their file.
struct Overwriting {
    tuning: Tuning,
    figure: Figure,
    median: f64,
    ci95: Option<[f64; 2]>,
}

/// The figures of sequential writes over blocks that are there.
fn overwriting(rows: &mut [Measured<Row>]) -> Vec<Overwriting> {
    let figures = rows.iter_mut().flat_map(findings).filter(|finding| {
        let Row { test, extents, rate_per_s, .. } = finding.row;
        let is_sequential = test.io_type() == IoType::Write && !test.is_random();
        is_sequential && *extents == Extents::Written && rate_per_s.is_none()
    });
    let known = figures.filter_map(|Finding { row, figure, outcome, .. }| {
        let (median, ci95) = (outcome.median?, outcome.ci95);
        Some(Overwriting { tuning: row.tuning, figure, median, ci95 })
    });
    known.collect()
}

/// What holds back direct writes that extend their file, by how fast the same run wrote over blocks with
/// the same settings; none where that was no faster. A filesystem may have such writes wait for each other
/// (ext4 does), so that the device never sees the requests in flight that were asked for.
fn extending(
    finding: &Finding<'_>,
    median: f64,
    overwriting: &[Overwriting],
) -> Option<&'static str> {
    let row = finding.row;
    if row.extents != Extents::Fresh || row.tuning.caching != Caching::Direct {
        return None;
    }
    let is_alike = |one: &&Overwriting| one.tuning == row.tuning && one.figure == finding.figure;
    let alike = overwriting.iter().find(is_alike).filter(|_| row.test.io_type() == IoType::Write);
    if alike.is_some_and(|one| median >= AT_THE_LIMIT * one.median) {
        return None;
    }
    let both = finding.outcome.ci95.zip(alike.and_then(|one| one.ci95));
    Some(match both.is_some_and(|(own, over)| own[1] < over[0]) {
        true => "extending the file (the filesystem's work): overwriting is faster",
        false => "the filesystem or the device",
    })
}

/// The bound of a figure: what it cannot be above, as far as anybody knows.
fn bound(
    finding: &Finding<'_>,
    median: f64,
    group: Option<(String, f64)>,
    (around, overwriting): (&Around, &[Overwriting]),
    file: &TestFile,
) -> Ceiling {
    let row = finding.row;
    if row.test.is_latency() {
        return Ceiling::unknown("an empty system call")
            .limited_by("system calls, and readahead where the file is cold");
    }
    let extending = extending(finding, median, overwriting);
    if is_from_memory(row, file) {
        let is_held = file.is_in_memory() || row.test == Pattern::Reread;
        return in_memory(finding, median, extending, is_held);
    }
    let link = link(row, file).filter(|link| is_bound(finding, around, link, file.is_virtual));
    let link = link.map(|link| (link.name.clone(), carried(row, link.bytes_per_s as f64)));
    let bound = known(group, link).unwrap_or_else(|| around.bound(row, median));
    let limiter = limiter(finding, &bound, median, extending);
    bound.limited_by(limiter.unwrap_or("the device, or what lies before it"))
}

/// Whether a link bounds a figure: not where a cache answered, or a hypervisor shows a link that it does not
/// have, since something in this run was faster. Elsewhere a figure above one is judged.
fn is_bound(finding: &Finding<'_>, around: &Around, link: &Link, is_virtual: bool) -> bool {
    let is_crossed = !warning::has(&finding.outcome.warnings, warning::NOT_FROM_DEVICE);
    is_crossed && !(is_virtual && around.exceeds(TOLERANCE * link.bytes_per_s as f64))
}

/// The bound where no storage is involved: the page cache holds the file, also for direct requests, or
/// there is a block device over memory.
fn in_memory(
    finding: &Finding<'_>,
    median: f64,
    extending: Option<&'static str>,
    is_held: bool,
) -> Ceiling {
    let bound = Ceiling::unknown("memory bandwidth");
    let limiter = match finding.row.test.io_type() {
        _ if !is_held => limiter(finding, &bound, median, extending)
            .unwrap_or("the block device over memory, no disk"),
        IoType::Read => "copying out of the page cache",
        IoType::Write => "copying into the page cache",
        IoType::Copy | IoType::Mixed => "copying out of the page cache and into it",
    };
    bound.limited_by(limiter)
}

/// The tighter one of the limit that was set and the link. The limit stays one where a row is far
/// below it, or bursts above it.
fn known(group: Option<(String, f64)>, link: Option<(String, f64)>) -> Option<Ceiling> {
    let of = |from| move |(name, value)| Ceiling::known(name, Some(value), from);
    let both = [group.map(of(Provenance::Given)), link.map(of(Provenance::Link))];
    both.into_iter()
        .flatten()
        .min_by(|a, b| f64::total_cmp(&a.value.unwrap_or(0.0), &b.value.unwrap_or(0.0)))
}

/// Whether no storage is involved.
fn is_from_memory(row: &Row, file: &TestFile) -> bool {
    file.chain.ground() == Some(Nature::Memory) || row.test == Pattern::Reread
}

/// In words, what most likely holds the row back; none where nothing does before the device.
fn limiter(
    finding: &Finding<'_>,
    bound: &Ceiling,
    median: f64,
    extending: Option<&'static str>,
) -> Option<&'static str> {
    let reaches = |provenance, share| {
        bound.provenance == provenance && bound.value.is_some_and(|value| median >= share * value)
    };
    let (row, facts) = (finding.row, &*finding.facts);
    let fact = |key| facts.number(key).unwrap_or(0.0);
    let cpu_ns = fact(fact::USER_NS) + fact(fact::SYSTEM_NS);
    let threads_ns = fact(fact::ELAPSED_NS) * f64::from(row.tuning.threads);
    Some(if reaches(Provenance::Given, group_limit::REACHED) {
        group_limit::LIMITER
    } else if warning::has(&finding.outcome.warnings, warning::DIRECT_CACHED) {
        "the page cache, through which direct requests go here"
    } else if row.rate_per_s.is_some()
        && !warning::has(&finding.outcome.warnings, warning::LATE_STARTS)
    {
        "the rate asked for"
    } else if threads_ns > 0.0 && cpu_ns / threads_ns >= BUSY_SHARE {
        "the CPU of the threads that ask"
    } else if reaches(Provenance::Link, AT_THE_LIMIT) {
        "the link of the device"
    } else if let Some(extending) = extending {
        extending
    } else if row.tuning.caching != Caching::Direct && row.test.io_type() == IoType::Read {
        if row.test.is_random() { "device latency, one read at a time" } else { "readahead" }
    } else if row.tuning.caching != Caching::Direct {
        "the page cache and its write-back"
    } else if Evidence::is_missing(facts) {
        // Perhaps a cache below answers.
        return None;
    } else if row.tuning.threads == 1
        && (row.tuning.engine != Engine::Uring || row.tuning.depth == 1)
    {
        "device latency, one request at a time"
    } else if row.tuning.engine != Engine::Uring && row.tuning.block_bytes < 1 << 20 {
        "device latency, one request per thread at a time"
    } else {
        return None;
    })
}

/// The tightest limit that the control groups set on what the row does, in its unit.
fn group_limit(finding: &Finding<'_>, file: &TestFile) -> Option<(String, f64)> {
    let row = finding.row;
    // What the cache takes reaches the device later.
    let is_to_cache = row.is_early(finding.figure) && row.tuning.caching != Caching::Direct;
    if is_from_memory(row, file) || is_to_cache || row.test.is_latency() {
        return None;
    }
    tightest(finding, &file.limits)
}

fn tightest(finding: &Finding<'_>, limits: &[IoLimit]) -> Option<(String, f64)> {
    let (row, block) = (finding.row, finding.row.tuning.block_bytes as f64);
    // The page cache makes requests of its own length.
    let request_bytes = (row.tuning.caching == Caching::Direct).then_some(block);
    let of = |(direction, share): (Direction, f64)| {
        let least = group_limit::tightest(limits, finding.facts, direction, request_bytes);
        let (bytes_per_s, name, _) = least.filter(|_| share > 0.0)?;
        Some((name, bytes_per_s / share / if row.counts_bytes() { 1.0 } else { block }))
    };
    let both = [Direction::Read, Direction::Write].into_iter().zip(shares(row));
    both.filter_map(of).min_by(|one, other| one.1.total_cmp(&other.1))
}

/// The shares of the figure that are read and written.
fn shares(row: &Row) -> [f64; 2] {
    let reads = f64::from(row.read_percent) / 100.0;
    match row.test.io_type() {
        IoType::Read => [1.0, 0.0],
        IoType::Write => [0.0, 1.0],
        IoType::Copy => [1.0; 2],
        IoType::Mixed => [reads, 1.0 - reads],
    }
}

/// The link of the only disk, over which direct requests go. Several disks share the work, so a
/// filesystem on many has no such bound.
fn link<'a>(row: &Row, file: &'a TestFile) -> Option<&'a Link> {
    let disks: Vec<_> = file.disks().collect();
    let [disk] = disks[..] else { return None };
    disk.link.as_ref().filter(|_| row.tuning.caching == Caching::Direct)
}

/// The figure of a row at which one direction of a link carries as much as it can: it carries both at once.
fn carried(row: &Row, bytes_per_s: f64) -> f64 {
    let [reads, writes] = shares(row);
    let bytes_per_s = bytes_per_s / reads.max(writes);
    if row.counts_bytes() { bytes_per_s } else { bytes_per_s / row.tuning.block_bytes as f64 }
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::blank;
    use flatout_measure::fact::Facts;

    use super::*;
    use crate::disk::plan::tests_rows;
    use crate::disk::row::Figure;

    fn measured(row: Row) -> Measured<Row> {
        let mut outcome = blank(&row);
        outcome.median = Some(if row.counts_bytes() { 1e9 } else { 1e5 });
        Measured { row, outcome, facts: Facts::default(), further: Vec::new() }
    }

    #[test]
    fn a_row_is_held_against_the_best_of_its_direction_and_the_best_against_nothing() {
        let rows: Vec<_> = tests_rows().into_iter().map(measured).collect();
        let best = Around::of(&rows);
        let of = |test: Pattern| rows.iter().find(|measured| measured.row.test == test).unwrap();
        let read = best.bound(&of(Pattern::RandomRead).row, 5e4);
        assert_eq!((read.value, read.provenance), (Some(1e5), Provenance::BestSeen));
        let write = best.bound(&of(Pattern::SequentialWrite).row, 1e9);
        assert_eq!((write.value, write.provenance), (None, Provenance::Unknown));
        assert_eq!(best.bound(&of(Pattern::Mixed).row, 1.0).name, "the device");
    }

    #[test]
    fn a_limit_that_was_set_is_the_bound_below_and_above_it() {
        let group = || Some(("the I/O limit of the control group /a".to_owned(), 104.9e6));
        let link = |value| Some(("PCIe 3.0 x4".to_owned(), value));
        let bound = known(group(), link(4e9)).unwrap();
        assert_eq!((bound.value, bound.provenance), (Some(104.9e6), Provenance::Given));
        assert_eq!(known(group(), link(60e6)).unwrap().provenance, Provenance::Link);
        assert_eq!(known(None, None), None);
        let mut row = measured(tests_rows().remove(0));
        let finding = findings(&mut row).next().unwrap();
        let limiter = |median| limiter(&finding, &bound, median, None);
        assert_eq!(limiter(100e6), Some("the control group's limit"));
        assert_eq!(limiter(154e6), Some("the control group's limit"), "a burst");
        assert_eq!(limiter(20e6), None, "the device");
    }

    #[test]
    fn a_limit_of_requests_counts_those_of_the_row_or_those_that_the_page_cache_makes() {
        let limit = IoLimit {
            read_bytes_per_s: Some(50_000_000),
            read_operations_per_s: Some(100),
            ..IoLimit::default()
        };
        let of = |test: Pattern, caching, requests: u64| {
            let row = tests_rows().into_iter().find(|row| row.test == test).unwrap();
            let tuning = Tuning { caching, block_bytes: 4096, ..row.tuning };
            let mut row = measured(Row { tuning, ..row });
            row.facts.set(fact::DISK_READ_BYTES, 1_310_720_u64);
            row.facts.set(fact::DISK_READ_REQUESTS, requests);
            let found = tightest(&findings(&mut row).next().unwrap(), std::slice::from_ref(&limit));
            found.map(|(_, value)| value)
        };
        let read = Pattern::SequentialRead;
        assert_eq!(of(read, Caching::Direct, 10), Some(409_600.0));
        assert_eq!(of(read, Caching::Direct, 640), Some(204_800.0), "each was split in two");
        assert_eq!(of(read, Caching::Buffered, 10), Some(13_107_200.0), "128 KiB each");
        assert_eq!(of(read, Caching::Buffered, 0), Some(50e6), "nobody counted any");
        assert_eq!(of(Pattern::RandomRead, Caching::Direct, 10), Some(100.0));
        assert_eq!(of(Pattern::RandomRead, Caching::Buffered, 10), Some(3200.0));
    }

    /// As qemu shows it of an emulated NVMe disk, `PCIe 1.0 x1`: 4.9 kIOPS of 4 KiB were 8 % of it, beside 3.2 GB/s.
    #[test]
    fn a_link_bounds_what_went_over_it_unless_it_is_made_up() {
        let mut rows: Vec<_> = tests_rows().into_iter().map(measured).collect();
        let around = Around::of(&rows);
        let mut slow = measured(Row { test: Pattern::RandomRead, ..rows.remove(0).row });
        let finding = findings(&mut slow).next().unwrap();
        let link = |bytes_per_s| Link { name: "PCIe 1.0 x1".into(), bytes_per_s };
        let is_bound =
            |bytes_per_s, is_virtual| is_bound(&finding, &around, &link(bytes_per_s), is_virtual);
        assert!(is_bound(4_000_000_000, true) && is_bound(4_000_000_000, false));
        assert!(!is_bound(250_000_000, true) && is_bound(250_000_000, false));
        // A loop device through the page cache: 9 GB/s of memory are no error.
        finding.outcome.warn(warning::NOT_FROM_DEVICE, "");
        assert!(!super::is_bound(&finding, &around, &link(4_000_000_000), false));
    }

    #[test]
    fn a_link_carries_what_a_mix_reads_beside_what_it_writes() {
        let of = |test| Row { test, read_percent: 70, ..tests_rows().remove(0) };
        let read = of(Pattern::SequentialRead);
        assert_eq!(carried(&read, 4e9), 4e9);
        assert_eq!(carried(&of(Pattern::SequentialCopy), 4e9), 4e9, "each byte goes either way");
        assert_eq!(carried(&of(Pattern::SequentialMixed), 4e9), 4e9 / 0.7);
        let writes = Row { read_percent: 25, ..of(Pattern::SequentialMixed) };
        assert_eq!(carried(&writes, 4e9), 4e9 / 0.75);
        let operations = carried(&of(Pattern::Mixed), 4e9) * read.tuning.block_bytes as f64;
        assert!((operations - 4e9 / 0.7).abs() < 1.0, "{operations}");
    }

    #[test]
    fn threads_that_are_busy_are_the_limit() {
        let mut row = measured(tests_rows().remove(0));
        row.facts.set(fact::ELAPSED_NS, 1000_u64);
        row.facts.set(fact::SYSTEM_NS, 100_u64);
        for (user_ns, expected) in [(100_u64, None), (850, Some("the CPU of the threads that ask"))]
        {
            row.facts.set(fact::USER_NS, user_ns);
            let finding = findings(&mut row).next().unwrap();
            let unknown = Ceiling::unknown("the device");
            let limiter = limiter(&finding, &unknown, 1e9, None);
            assert_eq!((finding.figure, limiter), (Figure::Own, expected));
        }
    }

    /// Rates as measured on ext4: 16 requests of 1 MiB in flight, of which the disk saw two.
    #[test]
    fn writes_that_extend_their_file_are_held_against_overwriting_in_the_same_run() {
        let with = |row: &Row, median, ci95| {
            let mut measured = measured(row.clone());
            (measured.outcome.median, measured.outcome.ci95) = (Some(median), Some(ci95));
            measured
        };
        let rows = tests_rows();
        let of = |test, extents| rows.iter().find(|row| (row.test, row.extents) == (test, extents));
        let fresh = of(Pattern::SequentialWrite, Extents::Fresh).unwrap();
        let written = of(Pattern::SequentialWrite, Extents::Written).unwrap();
        let copy = of(Pattern::SequentialCopy, Extents::Fresh).unwrap();
        let limiter = |row: &Row, median, ci95, others: &mut [Measured<Row>]| {
            let (mut own, over) = (with(row, median, ci95), overwriting(others));
            let finding = findings(&mut own).next().unwrap();
            let extending = extending(&finding, median, &over);
            limiter(&finding, &Ceiling::unknown("the device"), median, extending)
        };
        let mut others = [with(written, 3.4e9, [2.5e9, 4.5e9])];
        let slower = limiter(fresh, 1.6e9, [1.2e9, 2.1e9], &mut others).unwrap();
        assert!(slower.starts_with("extending the file"), "{slower}");
        let either = Some("the filesystem or the device");
        assert_eq!(limiter(fresh, 1.6e9, [1.2e9, 2.6e9], &mut others), either, "not clearly");
        assert_eq!(limiter(fresh, 3.2e9, [2.4e9, 4.2e9], &mut others), None, "as fast");
        assert_eq!(limiter(fresh, 1.6e9, [1.2e9, 2.1e9], &mut []), either, "nobody knows");
        assert_eq!(limiter(copy, 0.8e9, [0.6e9, 1.1e9], &mut others), either, "it reads, too");
        assert_eq!(limiter(written, 1.6e9, [1.2e9, 2.1e9], &mut others), None);
        // One request at a time is the device's latency only where overwriting takes as long.
        let single = |row: &Row| Row { tuning: Tuning { depth: 1, ..row.tuning }, ..row.clone() };
        let mut others = [with(&single(written), 1.0e9, [0.9e9, 1.1e9])];
        let latency = limiter(&single(fresh), 0.95e9, [0.9e9, 1.0e9], &mut others);
        assert_eq!(latency, Some("device latency, one request at a time"));
        let slower = limiter(&single(fresh), 0.5e9, [0.4e9, 0.6e9], &mut others).unwrap();
        assert!(slower.starts_with("extending the file"), "{slower}");
    }

    #[test]
    fn over_memory_a_device_is_named_and_copying_where_there_is_none() {
        let limiter = |test, is_held, code: Option<&str>| {
            let row = tests_rows().into_iter().find(|row| row.test == test).unwrap();
            let mut own = measured(row);
            let finding = findings(&mut own).next().unwrap();
            code.into_iter().for_each(|code| finding.outcome.warn(code, String::new()));
            in_memory(&finding, 1e9, None, is_held).limiter
        };
        assert_eq!(limiter(Pattern::SequentialRead, true, None), "copying out of the page cache");
        assert_eq!(limiter(Pattern::RandomWrite, true, None), "copying into the page cache");
        let over = "the block device over memory, no disk";
        assert_eq!(limiter(Pattern::RandomWrite, false, None), over);
        let cached = limiter(Pattern::RandomWrite, false, Some(warning::DIRECT_CACHED));
        assert!(cached.starts_with("the page cache, through which"), "{cached}");
    }
}
