//! One trial: files are laid out or taken over outside the clock, then each thread works on its
//! share of them.
//!
//! Where an operation takes microseconds, each is timed: the end of one is the start of the next,
//! so the clock is read once per operation. Looking up and opening take less than one, and the
//! clock would be several per cent of them: their rate comes from a stretch in which the clock is
//! read once in many operations, and their latencies from a shorter one behind it, each with one
//! reading of the clock in it.
//!
//! Threads share one descriptor table, as those of most programs do: opening and closing contend
//! for it.

use std::mem::MaybeUninit;

use flatout_measure::case::{Case, Latencies, Plain, Sample, TrialError};
use flatout_measure::histogram::{Histogram, LoopKind};
use flatout_measure::record::Warning;
use flatout_measure::row::Unit;
use flatout_measure::warning;
use flatout_sys::affinity;
use flatout_sys::generator::fill_random;
use flatout_sys::usage::{self, Usage};
use serde_json::{Map, Value, json};

use super::place::LISTING_BYTES;
use super::plot::{Name, Order, Plot, Share};
use super::row::{Row, Test};
use super::site::{self, Site};
use super::stretch::{Pace, Refusal, Stop, Stretch, again, again_in_batches, once};
use super::{Options, fio, operation};
use crate::crew;

/// How long files are looked at.
const LOOKING_NS: u64 = 25_000_000;
/// A trial that changes names ends after this even if not all files had their turn: a network or
/// a slow disk may need milliseconds for each.
const CHANGING_NS: u64 = 500_000_000;

/// The row as a case for the sampler.
pub(super) fn case<'a>(row: Row, site: &'a Site<'a>) -> Case<'a, Plain> {
    Case {
        row: Plain {
            id: row.test.id(),
            parameters: row.parameters(),
            unit: Unit::OperationsPerSecond,
        },
        trial: Box::new(move |seed| sample(&row, site, seed)),
    }
}

fn sample(row: &Row, site: &Site<'_>, seed: u64) -> Result<Sample, TrialError> {
    let options = site.options;
    if options.cancel.is_cancelled() {
        return Err(TrialError::Interrupted);
    }
    let mut plot = site.take(row.test, row.directories)?;
    if row.test.changes_names() {
        site.settle(&plot)?;
    }
    let written_before = usage::process_io();
    let crewed = crew::run(
        row.threads,
        |thread| Desk::prepare(row, options, &plot, thread, seed),
        |_, desk| desk.work(row, options, &plot),
    );
    let written_after = usage::process_io();
    let stretches = crewed.results.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut sample = evaluate(row, site, &stretches);
    if let (Some(before), Some(after)) = (written_before, written_after) {
        let bytes = after.device_write_bytes.saturating_sub(before.device_write_bytes);
        sample.audit.insert("process_write_bytes".to_owned(), bytes.into());
    }
    for number in stretches.iter().flat_map(|stretch| &stretch.changed) {
        let name = &mut plot.files[*number as usize];
        *name = row.test.name_after(*name);
    }
    let noun = if plot.directories == 1 { "directory" } else { "directories" };
    let spread = format!("{} files in {} {noun}", plot.files.len(), plot.directories);
    sample.audit.insert("spread".to_owned(), spread.into());
    site.give_back(row.test, plot);
    Ok(sample)
}

impl Test {
    fn changes_names(self) -> bool {
        matches!(self, Self::Create | Self::Rename | Self::Fsync | Self::Unlink)
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
struct Desk {
    share: Share,
    histogram: Histogram,
    listing: Vec<MaybeUninit<u8>>,
    content: Vec<u8>,
}

impl Desk {
    fn prepare(
        row: &Row,
        options: &Options,
        plot: &Plot,
        thread: u32,
        seed: u64,
    ) -> Result<Self, TrialError> {
        let creates = matches!(row.test, Test::Create | Test::Fsync);
        let order = if creates { Order::Ascending } else { Order::Random(seed) };
        let wanted = |name| (name == Name::Absent) == creates;
        let share = plot
            .share(thread, row.threads, order, wanted)
            .map_err(|errno| site::failure(options, errno, "open a directory in", &plot.path))?;
        let length = if row.test == Test::Fsync { options.small_file_bytes } else { 0 };
        let mut content = vec![0; length as usize];
        fill_random(&mut content, seed, 0);
        let listing = vec![MaybeUninit::uninit(); LISTING_BYTES];
        Ok(Self { share, histogram: Histogram::new(), listing, content })
    }

    fn work(&mut self, row: &Row, options: &Options, plot: &Plot) -> Result<Stretch, TrialError> {
        let Self { share, histogram, listing, content } = self;
        let cancel = options.cancel;
        let (changing, looking) = (Pace::new(CHANGING_NS, cancel), Pace::new(LOOKING_NS, cancel));
        let files = share.items.len();
        let at = |index: usize| {
            let item = &share.items[index];
            (share.directory(item), item)
        };
        let before = usage::usage();
        let done = match row.test {
            Test::Create => once(files, changing, histogram, |index| {
                let (directory, item) = at(index);
                operation::create(directory, &item.name)
            }),
            Test::Rename => once(files, changing, histogram, |index| {
                let (directory, item) = at(index);
                operation::rename(directory, &item.name, &item.new_name)
            }),
            Test::Unlink => once(files, changing, histogram, |index| {
                let (directory, item) = at(index);
                operation::unlink(directory, &item.name)
            }),
            Test::Fsync => once(files, changing, histogram, |index| {
                let (directory, item) = at(index);
                operation::create_synced(directory, &item.name, content)
            }),
            Test::Stat => again_in_batches(files, looking, histogram, |index| {
                let (directory, item) = at(index);
                operation::stat(directory, &item.name)
            }),
            Test::OpenClose => again_in_batches(files, looking, histogram, |index| {
                let (directory, item) = at(index);
                operation::open_close(directory, &item.name)
            }),
            Test::Readdir => again(share.directories.len(), looking, histogram, |slot| {
                let listed = operation::list(share.directory_at(slot), listing)?;
                let wanted = share.entries[slot];
                if listed == wanted { Ok(listed) } else { Err(Refusal::Entries(listed, wanted)) }
            }),
        };
        let after = usage::usage();
        let mut stretch = done.map_err(|stop| match stop {
            Stop::Cancelled => TrialError::Interrupted,
            Stop::Refused(_, Refusal::Entries(listed, wanted)) => TrialError::Failed(format!(
                "a directory in {:?} was listed with {listed} of its {wanted} entries",
                plot.path
            )),
            Stop::Refused(index, Refusal::Kernel(errno)) => {
                let item = share.items.get(index).filter(|_| row.test != Test::Readdir);
                let path = item.map_or(plot.path.clone(), |item| plot.path_of(item));
                site::failure(options, errno, row.test.verb(), &path)
            }
        })?;
        if row.test.changes_names() {
            let done = share.items.iter().take(stretch.requests as usize);
            stretch.changed = done.map(|item| item.number).collect();
        }
        stretch.usage = (before, after);
        stretch.histogram = std::mem::take(histogram);
        Ok(stretch)
    }
}

/// Joins what the threads did; one that had no file says nothing about the time.
fn evaluate(row: &Row, site: &Site<'_>, stretches: &[Stretch]) -> Sample {
    let busy = || stretches.iter().filter(|stretch| stretch.amount > 0);
    let start_ns = busy().map(|stretch| stretch.start_ns).min().unwrap_or(0);
    let end_ns = busy().map(|stretch| stretch.end_ns).max().unwrap_or(0);
    let sum = |of: fn(&Stretch) -> u64| stretches.iter().map(of).sum::<u64>();
    let mut histogram = Histogram::new();
    stretches.iter().for_each(|stretch| histogram.merge(&stretch.histogram));
    let requests = sum(|stretch| stretch.requests);
    // Threads read the clock at the same time.
    let clock_reads = stretches.iter().map(|stretch| stretch.clock_reads).max().unwrap_or(0);
    let mut audit = Map::new();
    let mut set = |key: &str, value: Value| audit.insert(key.to_owned(), value);
    set("requests", json!(requests));
    set("clock_reads", json!(clock_reads));
    // Of the whole process, so from the first start to the last end.
    let used = |of: fn(&Usage) -> u64| {
        let before = stretches.iter().map(|stretch| of(&stretch.usage.0)).min();
        let after = stretches.iter().map(|stretch| of(&stretch.usage.1)).max();
        after.unwrap_or(0).saturating_sub(before.unwrap_or(0))
    };
    set("user_ns", json!(used(|usage| usage.user_ns)));
    set("system_ns", json!(used(|usage| usage.system_ns)));
    set("threads_ns", json!(sum(|stretch| stretch.busy_ns)));
    set("operation", row.test.operation().into());
    if row.test == Test::Fsync {
        set("bytes", json!(requests * site.options.small_file_bytes));
    }
    for (key, text) in fio::audit(row, site.options) {
        set(key, text.into());
    }
    Sample {
        amount: sum(|stretch| stretch.amount) as f64,
        elapsed_ns: end_ns.saturating_sub(start_ns),
        audit,
        warnings: warnings(row, site),
        latencies: Some(Latencies { histogram, loop_kind: LoopKind::Closed }),
        ..Sample::default()
    }
}

fn warnings(row: &Row, site: &Site<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(text) = row.test.durability_doubt() {
        warnings.push(Warning::new(warning::NOT_DURABLE, text));
    }
    if site.filesystem.in_memory {
        let text =
            format!("files of {} live in memory: no storage is involved", site.filesystem.name);
        warnings.push(Warning::new(warning::MEMORY_FILESYSTEM, text));
    }
    warnings.extend(crew::oversubscribed(row.threads, affinity::allowed_cpu_count()));
    warnings
}
