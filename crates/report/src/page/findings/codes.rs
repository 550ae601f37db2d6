//! Findings from how the run ended, and from the warning codes of its rows.

use flatout_measure::load;
use flatout_measure::record::{Outcome, Record, Status};
use flatout_measure::{statistics, warning};

use super::Finding;
use super::Severity::{self, Fail, Note, Warn};
use super::machine::is_stolen;
use crate::text::Joined;
use crate::{label, order, quantity};

/// A code, what it says of the rows that have it, and what helps.
pub(super) type Known = (&'static str, &'static str, &'static str);

/// The codes by how much they matter. A code that does not stand here says only how a row was measured.
pub(super) const CODES: [(Severity, &[Known]); 3] = [(Fail, FAIL), (Warn, WARN), (Note, NOTE)];

/// A table of codes, each with both texts.
macro_rules! table {
    ($($code:ident: $text:literal, $advice:literal;)*) => {
        &[$((warning::$code, $text, $advice)),*]
    };
}

const FAIL: &[Known] = table! {
    ABOVE_CEILING: "figures beyond what the hardware can do are not given",
        "the work was not done: look at the warnings of the rows";
    NOT_LINEAR: "twice the work did not take twice the time", "do not use these figures";
    DIGEST_DIFFERS: "the same bytes gave different digests",
        "check memory and disk (memtest, smartctl)";
    MEMORY_FILESYSTEM: "the place lies in memory (tmpfs): no disk was measured",
        "name a place on a disk";
    DIRECT_CACHED: "direct I/O went through the page cache",
        "measure on a filesystem with direct I/O (ext4, xfs)";
    DIRECT_REFUSED: "there was no direct I/O, so the page cache takes part",
        "take whole sectors, or a filesystem with direct I/O (ext4, xfs)";
    LOOP_CACHED: "a loop device reads from the page cache", "losetup --direct-io=on";
    NOT_FROM_DEVICE: "the disk moved fewer bytes than were asked for",
        "a cache answered, or the file has holes, zeros or compressed bytes: use larger files of \
         random bytes";
};

const WARN: &[Known] = table! {
    SPARSE_FILE: "the file has holes, which no disk is read for",
        "write it in full, with random bytes";
    UNWRITTEN_EXTENTS: "the file has space that was never written, which no disk is read for",
        "write it in full, with random bytes";
    COMPRESSED_FILE: "the file is stored compressed: the disk reads fewer bytes than are counted",
        "write it anew with random bytes, or without compression";
    ZERO_BLOCKS: "the data are zeros, which thin storage and compression move for free",
        "use random bytes";
    FITS_IN_CACHE: "what was measured fits into a cache", "use larger files, or allow more memory";
    NETWORK_FILESYSTEM: "the directory lies on another machine",
        "figures include network and server; for the disk, measure there";
    USERSPACE_FILESYSTEM: "a program serves the filesystem (FUSE)",
        "for the disk, measure below it";
    DEVICE_UNKNOWN: "what lies below the directory cannot be seen, nor whether a disk took part",
        "measure where /sys shows the disks (outside of the container)";
    CPU_QUOTA: "the control group's CPU quota is below what the threads could use",
        "raise cpu.max (cpu.cfs_quota_us)";
    IO_LIMIT: "the control group limits the device", "raise io.max (blkio.throttle.*)";
    LOCAL_LOAD: "threads waited for a CPU because of other programs", "stop them and run again";
    DISTURBED: "most trials were disturbed from outside", "run again when the machine is quiet";
    SHARED_DEVICE: "others used the disk meanwhile", "stop them (iotop shows who), run again";
    SHARED_SERVER: "other clients were at the server meanwhile: figures are shares",
        "run alone (`flatout serve --clients 1` has the others wait)";
    CORES_SHARED: "CPUs that count as cores share one",
        "count on half; ask the host for whole cores";
    CLOCK_DRIFT: "the CPU's clock fell during the run",
        "power or temperature: look at cooling and limits (turbostat)";
    BURST: "the rate changed level within the run",
        "plan with the lower level (where it fell, a burst or cache ran out), run longer";
    STALLED: "the storage stood still during one request",
        "run again; if it returns, ask the kernel's log (dmesg) or the provider";
    PLATEAU: "the rate is flat at a round figure",
        "likely a limit that somebody set, such as the volume's class";
    LIMIT_EXCEEDED: "a figure exceeds a limit that somebody set",
        "a burst, or the limit does not hold: run longer";
    CEILING_LOW: "figures exceed the bound that was measured for them",
        "the bound is too low: run again when the machine is quiet";
    NEARLY_FULL: "the filesystem is nearly full, which makes many slower", "free a tenth of it";
    COLD_BLOCKS: "the first pass over the blocks was slower than the second",
        "a volume that loads lazily: read it once before use";
    LATE_STARTS: "the rate that was asked for was not kept",
        "ask for less (--rate), or find out what the figure is without it";
    VDSO_MISSING: "reading the clock is a system call here",
        "use the clock source tsc, or kvm-clock";
    NOT_COLD: "a part of the file stayed in the cache", "run as owner of the file";
    NOT_HOT: "the file did not stay in the cache", "free memory";
    STATE_UNPROVED: "the state of the page cache could not be proved",
        "use plain files on a local disk";
};

const NOTE: &[Known] = table! {
    SIZE_REDUCED: "tests are smaller than wanted", "allow more, or free space or memory";
    RECENT_DELETES: "creating files is slow after many were deleted",
        "wait for the journal, run again";
    URING_REFUSED: "io_uring is not available",
        "allow it: kernel.io_uring_disabled=0, or the container's seccomp profile";
    NO_HUGE_PAGES: "memory could not be had on large pages",
        "free memory, or transparent_hugepage/enabled = madvise";
    NARROW_LOOPS: "the CPU's AVX is not used: there are no loops for it without AVX2 and FMA",
        "its peak may be twice the one shown";
    MEMORY_ELSEWHERE: "memory lay on other nodes than the threads that used it",
        "free memory there: end programs, or drop the page cache";
    DATAGRAMS_LOST: "datagrams were lost", "raise net.core.rmem_max, or send more slowly";
    THREADS_REDUCED: "fewer threads ran than were asked for",
        "take smaller blocks or larger files, or raise the limit of processes (ulimit -u)";
    DEPTH_UNUSED: "fewer requests were in flight than asked for",
        "use --engine uring, or a larger file";
    OVERHEAD: "measuring took more than 1 % of the time",
        "rates are that much too low, times too long";
    CPUS_MOVED: "the host moves CPUs from one cache to another, on which rates of several threads depend",
        "have the CPUs pinned, or trust several runs only";
    OVERLAY_FILESYSTEM: "the directory lies on an overlay",
        "measure on a volume for the disk alone";
};

/// What rows say that other programs disturbed: on a busy machine one finding with who they were.
const OF_LOAD: [&str; 2] = [warning::LOCAL_LOAD, warning::DISTURBED];
/// Share of the figures that may be noisy before it is said as a warning.
const MANY: f64 = 0.25;
/// Longer first errors are cut.
const LONGEST_ERROR: usize = 120;

/// How the run ended.
pub(super) fn of_run(record: &Record) -> Option<Finding> {
    let errors = &record.end.errors;
    let first = errors.first()?;
    let cut: String = first.chars().take(LONGEST_ERROR).collect();
    let text = if cut.len() < first.len() { format!("{cut}…") } else { cut };
    let has_figure =
        |row: &Outcome| label::figure(row).is_some() && row.status != Status::Interrupted;
    let is_whole = !record.results.is_empty() && record.results.iter().all(has_figure);
    let figures = if is_whole { "all figures are there" } else { "figures are missing" };
    let advice = match errors.len() - 1 {
        0 => figures.to_owned(),
        more => format!("and {}; {figures}", quantity::counted(more, "more error")),
    };
    Some(Finding::new(Fail, text, advice))
}

/// What the warnings of rows say, each code once.
pub(super) fn of_rows(record: &Record) -> Vec<Finding> {
    let mut found: Vec<Finding> = contention(record).into_iter().collect();
    let is_told =
        |code: &str| OF_LOAD.contains(&code) && record.end.load.as_ref().is_some_and(load::is_busy);
    let codes =
        CODES.iter().flat_map(|(severity, codes)| codes.iter().map(move |one| (severity, one)));
    let codes = codes.filter(|(_, (code, ..))| !is_told(code));
    found.extend(codes.filter_map(|(severity, (code, text, advice))| {
        let says = |row: &&Outcome| {
            let has = |code| warning::has(&row.warnings, code);
            // In memory there is no direct I/O to be had, and no disk was measured: said already.
            has(code) && !(*code == warning::DIRECT_REFUSED && has(warning::MEMORY_FILESYSTEM))
        };
        let rows: Vec<&Outcome> = record.results.iter().filter(says).collect();
        let areas = order::distinct(rows.iter().map(|row| label::area(&row.id))).join(", ");
        let whose = match &rows[..] {
            [row] => row.id.clone(),
            _ => format!("{areas}, {}", quantity::counted(rows.len(), "row")),
        };
        let text = format!("{text} ({whose})");
        (!rows.is_empty()).then(|| Finding::new(*severity, text, *advice))
    }));
    found.extend(noise(&record.results));
    found.extend(too_few(record));
    found
}

/// How many of the rows say that others disturbed them.
pub(super) fn disturbed_rows(record: &Record) -> usize {
    let is_disturbed =
        |row: &&Outcome| OF_LOAD.iter().any(|code| warning::has(&row.warnings, code));
    record.results.iter().filter(is_disturbed).count()
}

/// How much of the time SMT siblings were busy, from the rows that say it, and what that cost.
fn contention(record: &Record) -> Option<Finding> {
    let rows =
        record.results.iter().filter(|row| warning::has(&row.warnings, warning::SMT_CONTENTION));
    let mut rows = rows.peekable();
    rows.peek()?;
    let shares = statistics::extremes(rows.filter_map(|row| row.fact_number("contention_ratio")));
    let busy = shares
        .filter(|(_, high)| *high > 0.0)
        .map(|ends| format!("busy {} of the time", quantity::range(ends, "–", quantity::percent)));
    let busy = busy.unwrap_or_else(|| "busy".to_owned());
    let cost = cost_of_contention(record);
    let cost = cost.unwrap_or_else(|| "sharing ports and caches".to_owned());
    let text = format!("SMT sibling {busy}, {cost}");
    Some(Finding::new(Warn, text, "a dedicated host, or SMT off, avoids it"))
}

/// What contention took, where the record has both: the rate in slices in which the sibling rested,
/// and that of all of the time. Nothing is said where others than the sibling may have taken it.
fn cost_of_contention(record: &Record) -> Option<String> {
    if record.end.load.as_ref().is_none_or(|seen| load::is_busy(seen) || is_stolen(seen)) {
        return None;
    }
    let rows_of = |id| record.results.iter().filter(move |row| row.id == id);
    let quiet = rows_of("cpu/throughput")
        .filter(|row| warning::has(&row.warnings, warning::SMT_CONTENTION));
    // Sustained rows are those of pinned threads.
    let sustained: Vec<&Outcome> = rows_of("cpu/sustained")
        .filter(|row| !warning::has(&row.warnings, warning::DISTURBED))
        .collect();
    let losses = quiet.filter_map(|quiet| {
        let is_alike = |row: &&&Outcome| {
            row.parameters.iter().all(|(key, value)| quiet.parameters.get(key) == Some(value))
        };
        let all = sustained.iter().find(is_alike)?;
        let is_apart = all.ci95?[1] < quiet.ci95?[0];
        is_apart.then_some(1.0 - label::figure(all)? / label::figure(quiet)?)
    });
    let losses = order::distinct(losses.map(quantity::percent)).join(", ");
    (!losses.is_empty()).then(|| format!("costing the sustained rate {losses}"))
}

/// Figures that are noisy by their own interval, or by that of the rows they are made of.
fn noise(results: &[Outcome]) -> Option<Finding> {
    let all = results.iter().filter(|row| label::figure(row).is_some());
    let is_noisy = |row: &&Outcome| row.status == Status::Unstable && row.ci95.is_some();
    let (noisy, all) = (all.clone().filter(is_noisy).collect::<Vec<_>>(), all.count());
    let severity = if noisy.len() as f64 > MANY * all as f64 { Warn } else { Note };
    let noun = if all == 1 { "figure" } else { "figures" };
    let verb = if noisy.len() == 1 { "is" } else { "are" };
    let text = format!("{} of {all} {noun} {verb} noisy", noisy.len());
    let advice = "a quiet machine, more time (--max-time) or flatout compare --noise narrows them";
    (!noisy.is_empty()).then(|| Finding::new(severity, text, advice))
}

/// Rows without enough trials for an interval, or without any, for want of time, and what would give more,
/// by what was asked for and what ended them. An area that has no figure at all for that is an answer that
/// is missing.
fn too_few(record: &Record) -> Option<Finding> {
    let results = &record.results;
    let having = |code| results.iter().filter(move |row| warning::has(&row.warnings, code));
    let none = || having(warning::TIME_SHORT).filter(|row| label::figure(row).is_none());
    let measured = results.iter().filter(|row| label::figure(row).is_some());
    let measured = order::distinct(measured.map(|row| label::area(&row.id)));
    let mut missing = order::distinct(none().map(|row| label::area(&row.id)));
    missing.retain(|area| !measured.contains(area));
    let none = none().count();
    let few = having(warning::FEW_TRIALS).count();
    let text = match (none, few) {
        (0, 0) => return None,
        (0, few) => format!("rows with too few trials for an interval: {few}"),
        (none, 0) => format!("rows not measured for want of time: {none}"),
        (none, few) => format!("rows not measured: {none}, with too few trials: {few}"),
    };
    let is_given =
        |name: &str| record.start.argv.iter().any(|word| word.split('=').next() == Some(name));
    let has_runs = ["-n", "--runs", "--rounds", "--trials"].into_iter().any(is_given);
    let [is_late, is_limited] =
        [warning::TIME_SHORT, warning::WRITE_LIMIT].map(|code| having(code).next().is_some());
    let helps = [
        (has_runs, "more runs (-n)"),
        (is_late || !has_runs && !is_limited, "more time (--max-time)"),
        (is_limited, "more to be written (--max-write)"),
        (is_given("--quick"), "a run without --quick"),
    ];
    let advice = helps.iter().filter(|(does, _)| *does).map(|(_, what)| what).joined(" or ");
    Some(match missing.is_empty() || measured.is_empty() {
        true => Finding::new(Note, text, advice),
        false => {
            let text = format!("nothing was measured of {}; {text}", missing.join(", "));
            Finding::new(Warn, text, advice)
        }
    })
}
