//! Copy of one file in blocks of 4 KiB, by read and write: what a plain loop costs per size.
//!
//! Source and target lie in the page cache and nothing waits for the device, so the figures are
//! those of two system calls and two copies of memory per block, not of a disk. Only the loop is
//! timed: each iteration gets a new, empty target, made before and removed after the clock runs.
//! Criterion shows no CPU time, so each case ends with a line of its own. Up to 2 GiB of disk.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "benches print what they find")]

use std::fs::File;
use std::io::Write;
use std::ops::AddAssign;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, measurement::WallTime};
use flatout_benches::print_machine;
use flatout_io::Stop;
use flatout_io::transfer::{End, Method, Moved, Route, Transfer};
use flatout_report::quantity;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::filesystem::{self, Filesystem};
use flatout_sys::generator::fill_random;
use flatout_sys::usage::usage;

const MIB: u64 = 1 << 20;
const LENGTHS_BYTES: [u64; 4] = [MIB, 10 * MIB, 100 * MIB, 1000 * MIB];
const BLOCK_BYTES: usize = 4096;

/// Block in which sources are filled and targets are compared.
const CHECK_BLOCK_BYTES: usize = 1 << 20;

/// The fewest that Criterion takes: a sample of the largest case is a whole copy, a second or so.
const SAMPLES: usize = 10;

/// Larger cases are left out in test mode, where builds are slow and figures are not wanted.
const TEST_MODE_MOST_BYTES: u64 = 10 * MIB;

/// Where the files lie: below the build, because `/tmp` is memory on many machines.
const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");

fn main() {
    print_machine();
    // The command line comes last, so that it wins.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4))
        .configure_from_args();
    let mut group = criterion.benchmark_group("file_copy");
    group.sample_size(SAMPLES).sampling_mode(SamplingMode::Flat);
    for length_bytes in LENGTHS_BYTES {
        match refusal(length_bytes) {
            Some(why) => eprintln!("file_copy/{}: skipped, {why}", name(length_bytes)),
            None => bench(&mut group, length_bytes),
        }
    }
    group.finish();
    criterion.final_summary();
}

/// Name of a case: always in MiB and without a comma, so that it is easily typed as a filter.
fn name(length_bytes: u64) -> String {
    format!("{} MiB", length_bytes / MIB)
}

/// Why a file of this length is not copied here and now.
fn refusal(length_bytes: u64) -> Option<String> {
    if is_test_mode() && length_bytes > TEST_MODE_MOST_BYTES {
        return Some("too large for a test".to_owned());
    }
    let free_bytes = filesystem_of(&new_file()).free_bytes;
    (free_bytes < 3 * length_bytes)
        .then(|| format!("only {} of disk are free", quantity::rounded_size(free_bytes)))
}

/// Whether each bench runs once, to see that it works: by the rule that Criterion follows.
fn is_test_mode() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    !has("--list") && (has("--test") || !has("--bench"))
}

fn bench(group: &mut BenchmarkGroup<'_, WallTime>, length_bytes: u64) {
    let name = name(length_bytes);
    let mut copier = None;
    let mut calls = Vec::new();
    group.throughput(Throughput::Bytes(length_bytes));
    group.bench_function(&name, |bencher| {
        // Not before Criterion asks: a filter may have left this case out.
        let copier = copier.get_or_insert_with(|| Copier::new(length_bytes));
        bencher.iter_custom(|iterations| {
            let cost = copier.repeat(iterations);
            calls.push(cost);
            Duration::from_nanos(cost.elapsed_ns)
        });
    });
    if let Some(copier) = copier.filter(|_| !is_test_mode()) {
        // Criterion does not say where its warm-up ends, but its samples are the last calls.
        let mut sum = Cost::default();
        calls.iter().rev().take(SAMPLES).for_each(|&cost| sum += cost);
        println!("{}", line(&name, &sum, length_bytes, &filesystem_of(&copier.source)));
    }
}

/// What a number of copies took.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    iterations: u64,
    elapsed_ns: u64,
    user_ns: u64,
    system_ns: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.iterations += other.iterations;
        self.elapsed_ns += other.elapsed_ns;
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// Means per copy over all samples; the spread stands in the lines that Criterion prints.
fn line(name: &str, sum: &Cost, length_bytes: u64, filesystem: &Filesystem) -> String {
    let each = |total_ns: u64| quantity::value("ns", total_ns as f64 / sum.iterations as f64);
    let bytes = (length_bytes * sum.iterations) as f64;
    format!(
        "file_copy/{name}: time {}, CPU {} (user {}, system {}), {} iterations, {}, {}{}",
        each(sum.elapsed_ns),
        each(sum.user_ns + sum.system_ns),
        each(sum.user_ns),
        each(sum.system_ns),
        quantity::count(sum.iterations),
        quantity::value("bytes/s", bytes * 1e9 / sum.elapsed_ns as f64),
        filesystem.name,
        if filesystem.in_memory { " (in memory)" } else { "" },
    )
}

/// A source, and what is needed to copy it again and again.
struct Copier {
    source: File,
    length_bytes: u64,
    transfer: Transfer,
}

impl Copier {
    /// Makes the source, and sees once that a copy equals it.
    fn new(length_bytes: u64) -> Self {
        let transfer = Transfer::new(BLOCK_BYTES as u64, 0);
        let mut copier = Self { source: random_file(length_bytes), length_bytes, transfer };
        let target = new_file();
        copier.copy_to(&target);
        assert_equal(&copier.source, &target, length_bytes);
        copier
    }

    /// Copies to one new target after the other, of which there is never more than one.
    fn repeat(&mut self, iterations: u64) -> Cost {
        let mut cost = Cost { iterations, ..Cost::default() };
        for _ in 0..iterations {
            let target = new_file();
            let before = usage();
            let begun_ns = monotonic_ns();
            self.copy_to(&target);
            cost.elapsed_ns += monotonic_ns() - begun_ns;
            let after = usage();
            cost.user_ns += after.user_ns - before.user_ns;
            cost.system_ns += after.system_ns - before.system_ns;
        }
        cost
    }

    fn copy_to(&mut self, target: &File) {
        let route = Route {
            source: self.source.as_fd(),
            target: target.as_fd(),
            offset_bytes: 0,
            length_bytes: self.length_bytes,
            moved: &AtomicU64::new(0),
        };
        let moved = self
            .transfer
            .run(Method::Sync, route, &mut Stop::never())
            .expect("both are regular files of ours, and there was room for them");
        let whole = Moved { bytes: self.length_bytes, end: End::Whole };
        assert_eq!(moved, whole, "the whole file is copied");
    }
}

/// An empty file without a name, so that nothing is left however the bench ends.
fn new_file() -> File {
    tempfile::tempfile_in(FOLDER).expect("Cargo made this folder for the files of benches")
}

fn filesystem_of(file: &File) -> Filesystem {
    filesystem::of(file.as_fd()).expect("fstatfs of an open regular file does not fail")
}

/// A file of random bytes, on the device already: writing it back would disturb the copies.
fn random_file(length_bytes: u64) -> File {
    let mut file = new_file();
    let mut block = vec![0; CHECK_BLOCK_BYTES];
    for offset_bytes in (0..length_bytes).step_by(CHECK_BLOCK_BYTES) {
        fill_random(&mut block, length_bytes, offset_bytes);
        file.write_all(&block).expect("there was room for three such files");
    }
    file.sync_all().expect("the device takes what the filesystem had room for");
    file
}

/// Panics when the two differ. `length_bytes` is a multiple of the block.
fn assert_equal(source: &File, target: &File, length_bytes: u64) {
    let reason = "both files are this long and in the page cache";
    let (mut expected, mut found) = (vec![0; CHECK_BLOCK_BYTES], vec![0; CHECK_BLOCK_BYTES]);
    for offset_bytes in (0..length_bytes).step_by(CHECK_BLOCK_BYTES) {
        source.read_exact_at(&mut expected, offset_bytes).expect(reason);
        target.read_exact_at(&mut found, offset_bytes).expect(reason);
        assert!(expected == found, "the copy differs within 1 MiB from byte {offset_bytes}");
    }
    let target_bytes = target.metadata().expect("fstat of an open file does not fail").len();
    assert_eq!(target_bytes, length_bytes, "the copy is as long as the source");
}
