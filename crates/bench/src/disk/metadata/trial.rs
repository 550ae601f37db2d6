//! One trial: files are laid out or taken over outside the clock, then each thread works on its
//! share of them.
//!
//! Where an operation takes microseconds, each is timed: the end of one is the start of the next,
//! so the clock is read once per operation. Looking up and opening take less than one, and the
//! clock would be several per cent of them: their rate comes from a window in which the clock is
//! read once in many operations, and their latencies from a shorter one behind it, each with one
//! reading of the clock in it.
//!
//! Threads share one descriptor table, as those of most programs do: opening and closing contend
//! for it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

use flatout_measure::{
    CLOCK_READS, Case, Histogram, Latencies, LoopKind, Sample, TrialError, Value, Warning, warning,
};
use flatout_sys::cause::errno_of;
use flatout_sys::{Filesystem, affinity, fill_random};
use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, statat, unlinkat};

use super::file_set::{FileSet, Name, Share};
use super::row::{MetadataRow, Test};
use super::test_directory::{DIRECTORY, Listing, create, each_entry, no_listing};
use super::test_files::{self, TestFiles};
use super::timed::{Rounds, Timed, Work};
use super::{MetadataOptions, SMALL_FILE_BYTES, fio};
use crate::disk::fact;
use crate::file_trial::accounting::Scope;
use crate::file_trial::{self, Ran};
use crate::{Watch, go_on, scratch, workers};

/// How long files are looked at.
const LOOKING_NS: u64 = 25_000_000;
/// A trial that changes names ends after this even if not all files had their turn: a network or
/// a slow disk may need milliseconds for each.
pub(super) const CHANGING_NS: u64 = 500_000_000;
const OLD_FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The row as a case for the sampler.
pub(super) fn case<'a>(row: MetadataRow, files: &'a TestFiles<'a>) -> Case<'a, MetadataRow> {
    Case { row, trial: Box::new(move |seed| sample(&row, files, seed)) }
}

fn sample(row: &MetadataRow, files: &TestFiles<'_>, seed: u64) -> Result<Sample, TrialError> {
    let options = files.options;
    go_on(options.cancel)?;
    let mut set = files.take(row.test, row.directories)?;
    if row.test.changes_names() {
        files.settle(&set)?;
    }
    let Ran { results: threads, accounts, .. } = file_trial::run(
        row.threads,
        Scope::Process,
        Watch::NOBODY,
        |thread| Worker::prepare(row, options, &set, thread, seed),
        |_, worker, _| worker.work(row, options, &set),
    )?;
    let mut sample = evaluate(row, files, &threads);
    sample.facts.extend(accounts.times_until_synced());
    let written = accounts.facts().count(fact::PROCESS_WRITE_BYTES);
    sample.facts.set_known(fact::PROCESS_WRITE_BYTES, written);
    let spread = [("files", set.files.len() as u64), ("directories", set.directories.into())];
    sample.facts.set("spread", Value::fields(spread));
    for number in threads.iter().flat_map(|timed| &timed.changed) {
        let name = &mut set.files[*number as usize];
        *name = row.test.name_after(*name);
    }
    files.give_back(row.test, set);
    Ok(sample)
}

impl Test {
    fn changes_names(self) -> bool {
        self.rounds() == Rounds::Once
    }

    fn rounds(self) -> Rounds {
        match self {
            Self::Create | Self::Rename | Self::Fsync | Self::Unlink => Rounds::Once,
            Self::Stat | Self::OpenClose => Rounds::Batches,
            Self::Readdir => Rounds::Many,
        }
    }

    /// What a file is called once the operation was done to it.
    fn name_after(self, name: Name) -> Name {
        match self {
            Self::Create | Self::Fsync => Name::First,
            Self::Unlink => Name::Absent,
            Self::Rename if name == Name::First => Name::Moved,
            Self::Rename => Name::First,
            Self::Stat | Self::OpenClose | Self::Readdir => name,
        }
    }
}

/// What one thread has at hand before the clock runs.
struct Worker {
    share: Share,
    histogram: Histogram,
    listing: Box<Listing>,
    content: Vec<u8>,
}

impl Worker {
    fn prepare(
        row: &MetadataRow,
        options: &MetadataOptions,
        set: &FileSet,
        thread: u32,
        seed: u64,
    ) -> Result<Self, TrialError> {
        let creates = matches!(row.test, Test::Create | Test::Fsync);
        let order_seed = (!creates).then_some(seed);
        let wanted = |name| (name == Name::Absent) == creates;
        let share = set.share(thread, row.threads, order_seed, wanted).map_err(|errno| {
            test_files::failure(options, errno, "open a directory in", &set.path)
        })?;
        let length = if row.test == Test::Fsync { SMALL_FILE_BYTES } else { 0 };
        let mut content = vec![0; length as usize];
        fill_random(&mut content, seed, 0);
        let listing = Box::new(no_listing());
        Ok(Self { share, histogram: Histogram::default(), listing, content })
    }

    fn work(
        &mut self,
        row: &MetadataRow,
        options: &MetadataOptions,
        set: &FileSet,
    ) -> Result<Timed, TrialError> {
        let Self { share, histogram, listing, content } = self;
        let one = |index: usize| -> Result<u64, TrialError> {
            let failed = |errno, path: &Path| {
                test_files::failure(options, errno, row.test.described().0, path)
            };
            if row.test == Test::Readdir {
                let mut listed = 0;
                openat(&share.directories[index], c".", DIRECTORY, Mode::empty())
                    .and_then(|opened| each_entry(opened.as_fd(), listing, |_| listed += 1))
                    .map_err(|errno| failed(errno, &set.path))?;
                let wanted = share.entries[index];
                if listed != wanted {
                    return Err(TrialError::Failed(format!(
                        "a directory in {:?} was listed with {listed} of its {wanted} entries",
                        set.path
                    )));
                }
                return Ok(listed);
            }
            let item = &share.items[index];
            let directory = share.directory(item);
            let name = &item.name;
            let done = match row.test {
                Test::Create => create(directory, name).map(drop),
                Test::Rename => renameat(directory, name, directory, &item.new_name),
                Test::Unlink => unlinkat(directory, name, AtFlags::empty()),
                Test::Fsync => create(directory, name).and_then(|file| {
                    let mut file = File::from(file);
                    file.write_all(content).map_err(|error| errno_of(&error))?;
                    fsync(&file)
                }),
                Test::OpenClose => openat(directory, name, OLD_FILE, Mode::empty()).map(drop),
                Test::Stat | Test::Readdir => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|facts| _ = std::hint::black_box(facts.st_size)),
            };
            done.map(|()| 1).map_err(|errno| failed(errno, &set.path_of(item)))
        };
        let is_listing = row.test == Test::Readdir;
        let work = Work {
            rounds: row.test.rounds(),
            operations: if is_listing { share.directories.len() } else { share.items.len() },
            most_ns: if row.test.changes_names() { CHANGING_NS } else { LOOKING_NS },
            cancel: options.cancel,
        };
        let mut timed = work.run(histogram, one)?;
        if row.test.changes_names() {
            let done = share.items.iter().take(timed.requests as usize);
            timed.changed = done.map(|item| item.number).collect();
        }
        timed.histogram = std::mem::take(histogram);
        Ok(timed)
    }
}

/// Joins what the threads did; one that had no file says nothing about the time.
fn evaluate(row: &MetadataRow, files: &TestFiles<'_>, threads: &[Timed]) -> Sample {
    let busy = || threads.iter().filter(|timed| timed.amount > 0);
    let start_ns = busy().map(|timed| timed.start_ns).min().unwrap_or(0);
    let end_ns = busy().map(|timed| timed.end_ns).max().unwrap_or(0);
    let sum = |of: fn(&Timed) -> u64| threads.iter().map(of).sum::<u64>();
    let mut histogram = Histogram::default();
    threads.iter().for_each(|timed| histogram.merge(&timed.histogram));
    let requests = sum(|timed| timed.requests);
    let mut facts = fio::facts(row, files)
        .with("operation", row.test.described().1)
        .with(fact::REQUESTS, requests)
        // Threads read the clock at the same time.
        .with(CLOCK_READS, threads.iter().map(|timed| timed.clock_reads).max().unwrap_or(0))
        .with(fact::THREADS_NS, sum(|timed| timed.busy_ns));
    if row.test == Test::Fsync {
        facts.set(fact::BYTES, requests * SMALL_FILE_BYTES);
    }
    Sample {
        amount: sum(|timed| timed.amount) as f64,
        elapsed_ns: end_ns.saturating_sub(start_ns),
        facts,
        warnings: warnings(row, files),
        latencies: Some(Latencies { histogram, loop_kind: LoopKind::Closed }),
        ..Sample::default()
    }
}

fn warnings(row: &MetadataRow, files: &TestFiles<'_>) -> Vec<Warning> {
    let unsynced = row.test.not_durable().map(|text| Warning::new(warning::NOT_DURABLE, text));
    let Filesystem { name, nature, .. } = files.filesystem;
    let crowd = workers::oversubscribed(row.threads, affinity::allowed_cpu_count());
    [unsynced, scratch::nature_warning(name, nature), crowd].into_iter().flatten().collect()
}
