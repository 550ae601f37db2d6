//! The fio command line that comes nearest to a row, so that anybody can check the figure.
//!
//! Options stand here where fio's default would change what is measured. `--refill_buffers` need
//! not: fio's buffers hold random bytes, and it changes them a little before each write, as rows
//! do. `share` says which part of the file each job has, `note` what fio does otherwise, `word`
//! how fio and a shell read a name. Tried with fio 3.33.

mod note;
mod share;
pub(super) mod word;

use flatout_io::{Caching, Engine, Tuning};
use flatout_measure::{Facts, Value};

use super::pattern::{IoType, Pattern};
use super::place::{Kind, Place};
use super::row::{Extents, Figure, Row};
use super::{Terms, fact};
use share::Share;

/// What lets malloc(3) ask for huge pages, as which fio has its buffers: see "The GNU C Library
/// Reference Manual", memory allocation tunables.
const HUGE_PAGES: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
/// fio needs this long to be steady; our trials are many and shorter.
const LEAST_RUNTIME_NS: u64 = 5_000_000_000;
/// Requests, and bytes, that rows hand over at once; of the page cache bytes alone count.
const BATCH_REQUESTS: u64 = 4;
const BATCH_BYTES: u64 = 128 << 10;
/// As long as so many trials is one line that goes through its blocks once.
const TRIALS_AT_ONCE: u64 = 4;
/// The file that fio makes in a directory; it is removed afterwards.
const FILE_NAME: &str = "flatout-fio.tmp";
/// Bytes that fio writes at a time while it fills a file to be measured afterwards.
const LAYOUT_BYTES: u64 = 1 << 20;
/// fio spends 0.2 us on a request, without clock readings 0.1 (Zen 4, 2026-11-26); a call that copies
/// fewer bytes than these takes no more.
const LEAST_CACHED_BYTES: u64 = 4096;
/// Smaller blocks than this are not fit to fill a file with.
const LEAST_LAYOUT_BYTES: u64 = 4096;

/// Options of a job of fio: a name and a value each; that of a flag is empty.
type JobOptions = Vec<(&'static str, String)>;

/// The command line nearest to a figure of a row, the options of the job that does the row, and what
/// fio does otherwise, or why it has nothing like it.
pub(super) fn nearest(
    row: &Row,
    place: &Place,
    length_bytes: u64,
    terms: &Terms,
    figure: Figure,
) -> Facts {
    let mut facts = Facts::default();
    let is_once = !share::repeats(row, place.is_in_memory) || figure == Figure::Fsynced;
    let terms = &if is_once { terms.several() } else { terms.clone() };
    let job = match Job::new(row, place, length_bytes, terms, figure) {
        Ok(job) => job,
        Err(why) => return facts.with(fact::FIO_NOTE, why),
    };
    let set = |value: String| if value.is_empty() { "1".to_owned() } else { value };
    let options = job.options().into_iter().map(|(name, value)| (name, set(value)));
    facts.set(fact::FIO_OPTIONS, Value::fields(options));
    facts.set(fact::FIO_COMMAND, job.command());
    let note = job.notes().join("; ");
    facts.set_known(fact::FIO_NOTE, Some(note).filter(|note| !note.is_empty()));
    facts
}

/// What follows fio's name, and what it does otherwise; empty where there is nothing.
pub(crate) type Trial = (Vec<String>, String);

/// A trial of a row by fio, as long as the row's own; none where fio has nothing like it. The file
/// must be there, unless each trial has a fresh one.
pub(super) fn trial(row: &Row, place: &Place, length_bytes: u64, terms: &Terms) -> Option<Trial> {
    let job = Job::new(row, place, length_bytes, terms, Figure::Own).ok()?;
    let job = Job { leftover: None, steady_ns: 0, registers: false, ..job };
    Some((job.words(), job.notes().join("; ")))
}

impl Terms {
    /// Those of a line that goes through its blocks once: fio counts whole milliseconds, and its first
    /// requests with the time in which it begins, some 10 ms (3.33).
    fn several(&self) -> Self {
        let trial_write_bytes = self.trial_write_bytes.saturating_mul(TRIALS_AT_ONCE);
        Self {
            runtime_ns: self.runtime_ns.saturating_mul(TRIALS_AT_ONCE),
            trial_write_bytes: trial_write_bytes.min(self.most_write_bytes),
            ..self.clone()
        }
    }
}

/// What the options of a command line depend on.
struct Job<'a> {
    row: &'a Row,
    place: &'a Place,
    file_name: String,
    /// The file to be removed after fio's end. Of several jobs the first to end would unlink it,
    /// and the others open it anew at each turn.
    leftover: Option<String>,
    length_bytes: u64,
    terms: &'a Terms,
    share: Share,
    /// Whether it begins again once it is through.
    repeats: bool,
    is_fsynced: bool,
    /// A row that begins again once it is through takes at least this long.
    steady_ns: u64,
    /// Whether requests go in batches, and files and buffers are registered with the ring, as those of
    /// rows. A race is against fio as most people call it.
    registers: bool,
}

impl<'a> Job<'a> {
    /// Errors: why fio has nothing like the row.
    fn new(
        row: &'a Row,
        place: &'a Place,
        length_bytes: u64,
        terms: &'a Terms,
        figure: Figure,
    ) -> Result<Self, &'static str> {
        if row.test.io_type() == IoType::Copy {
            return Err("fio has nothing that copies from file to file");
        }
        let Tuning { engine, caching, block_bytes, .. } = row.tuning;
        if caching != Caching::Direct && block_bytes < LEAST_CACHED_BYTES {
            return Err("fio's own work for a request takes longer than so short a one");
        }
        if place.is_in_memory && engine == Engine::Uring {
            return Err(
                "threads of the kernel do the requests of a ring to files in memory, and how they \
                        are woken decides: no two programs do that alike",
            );
        }
        let path = match place.kind {
            Kind::Directory => place.path.join(FILE_NAME),
            Kind::File | Kind::Device => place.path.clone(),
        };
        let file_name = word::file_name(&path)
            .ok_or("fio cannot be told this name: it would cut it and take another file")?;
        let is_fsynced = figure == Figure::Fsynced;
        let repeats = share::repeats(row, place.is_in_memory);
        let share = Share::new(row, length_bytes, terms, repeats, is_fsynced)
            .ok_or("the file is shorter than a block")?;
        let is_left = place.kind == Kind::Directory && share.jobs > 1;
        let leftover = path.to_str().filter(|_| is_left).map(str::to_owned);
        Ok(Self {
            row,
            place,
            file_name,
            leftover,
            length_bytes,
            terms,
            share,
            repeats,
            is_fsynced,
            steady_ns: LEAST_RUNTIME_NS,
            registers: true,
        })
    }

    fn command(&self) -> String {
        let words = std::iter::once("fio".to_owned()).chain(self.words());
        let mut line = words.map(|word| word::quoted(&word)).collect::<Vec<_>>().join(" ");
        if self.is_on_huge_pages() {
            line = format!("{HUGE_PAGES} {line}");
        }
        if let Some(path) = &self.leftover {
            line.push_str("; rm -f -- ");
            line.push_str(&word::quoted(path));
        }
        line
    }

    /// What follows fio's name.
    fn words(&self) -> Vec<String> {
        let word = |(name, value): (&str, String)| match value.is_empty() {
            true => format!("--{name}"),
            false => format!("--{name}={value}"),
        };
        let layout = if self.fills_first() { self.layout() } else { Vec::new() };
        layout.into_iter().chain(self.options()).map(word).collect()
    }

    /// The job of the row.
    fn options(&self) -> JobOptions {
        let name = self.row.test.id().trim_start_matches("disk/");
        let mut options = vec![("name", name.to_owned())];
        options.extend(self.fills_first().then(|| flag("stonewall")));
        options.push(("filename", self.file_name.clone()));
        options.extend(self.rails());
        options.extend(self.requests());
        options.extend(self.share.options());
        options.extend(self.rate());
        options.extend(self.file_and_cache());
        options.extend(self.end());
        options.extend([flag("thread"), flag("group_reporting")]);
        options
    }

    /// Whether the file has to be written before, by a job of its own: the row's own job would
    /// do it with the row's tiny blocks.
    fn fills_first(&self) -> bool {
        self.place.kind == Kind::Directory
            && self.row.writes()
            && self.row.extents == Extents::Written
            && self.row.tuning.block_bytes < LEAST_LAYOUT_BYTES
    }

    fn layout(&self) -> JobOptions {
        vec![
            ("name", "layout".to_owned()),
            ("filename", self.file_name.clone()),
            ("rw", "write".to_owned()),
            ("bs", LAYOUT_BYTES.to_string()),
            ("size", self.length_bytes.to_string()),
            ("fallocate", "none".to_owned()),
            ("end_fsync", "1".to_owned()),
            flag("thread"),
        ]
    }

    /// What keeps a slip of the hand from doing harm.
    fn rails(&self) -> Option<(&'static str, String)> {
        match (self.place.kind, self.row.writes()) {
            (Kind::Directory, _) => self.leftover.is_none().then(|| ("unlink", "1".to_owned())),
            (Kind::File | Kind::Device, false) => Some(flag("readonly")),
            (Kind::File | Kind::Device, true) => Some(("allow_file_create", "0".to_owned())),
        }
    }

    /// Direction, length, engine and caching of requests.
    fn requests(&self) -> JobOptions {
        let Tuning { engine, caching, block_bytes, depth, .. } = self.row.tuning;
        // fio fills a file to be read in blocks of the size of writes. Its buffers have the larger
        // of both sizes, so that this is for tiny blocks only.
        let is_in_directory = self.place.kind == Kind::Directory && !self.row.writes();
        let block = match is_in_directory && block_bytes < LEAST_LAYOUT_BYTES {
            true => format!("{block_bytes},{LAYOUT_BYTES}"),
            false => block_bytes.to_string(),
        };
        let engine_name = match (engine, caching) {
            (Engine::Uring, _) => "io_uring",
            (_, Caching::Dontcache) => "pvsync2",
            (_, Caching::Direct | Caching::Buffered) => "psync",
        };
        let mut options = vec![
            ("rw", format!("{}{}", direction(self.row.test), self.share.step())),
            ("bs", block),
            ("ioengine", engine_name.to_owned()),
        ];
        if engine == Engine::Uring {
            options.push(("iodepth", depth.to_string()));
            if self.registers {
                // For buffers fio takes away the limit of locked memory, or fails.
                options.push(flag("registerfiles"));
                options.extend(rustix::process::geteuid().is_root().then(|| flag("fixedbufs")));
            }
            if self.registers && depth > 1 {
                // One call for each request is fio's default: 4 us of CPU time for 2 (4 KiB, a disk in
                // memory, Zen 4, 2026-11-26).
                let most = if caching == Caching::Direct { BATCH_REQUESTS } else { u64::MAX };
                let batch = (BATCH_BYTES / block_bytes).clamp(1, most.min(depth.into()));
                options.push(("iodepth_batch", batch.to_string()));
                options.push(("iodepth_batch_complete_max", depth.to_string()));
            }
        }
        options.push(("direct", u8::from(caching == Caching::Direct).to_string()));
        if caching == Caching::Dontcache {
            options.push(("uncached", "1".to_owned()));
        }
        if self.row.syncs_each() {
            options.push(("sync", "dsync".to_owned()));
        }
        if self.row.test.io_type() == IoType::Mixed {
            options.push(("rwmixread", self.row.read_percent.to_string()));
        }
        let is_random = self.row.test.is_random();
        options.extend(is_random.then(|| ("randrepeat", "0".to_owned())));
        if self.place.is_in_memory {
            // A call takes a microsecond there: what fio does around it shows.
            options.push(("gtod_reduce", "1".to_owned()));
            options.extend(is_random.then(|| flag("norandommap")));
        }
        options
    }

    /// The pace of each job. fio counts whole operations, or whole bytes, per second.
    fn rate(&self) -> Option<(&'static str, String)> {
        let of_job = self.row.rate_per_s? / self.share.jobs as f64;
        let read = f64::from(self.row.read_percent) / 100.0;
        let rates = match self.row.test.io_type() {
            IoType::Mixed => vec![of_job * read, of_job * (1.0 - read)],
            _ => vec![of_job],
        };
        let is_whole = |rate: &f64| (rate - rate.round()).abs() < 1e-9;
        let (name, unit) = match rates.iter().all(is_whole) {
            true => ("rate_iops", 1.0),
            false => ("rate", self.row.tuning.block_bytes as f64),
        };
        // fio takes 0 for no limit.
        let number = |rate: &f64| ((rate * unit + 1e-6).floor() as u64).max(u64::from(*rate > 0.0));
        let numbers: Vec<_> = rates.iter().map(|rate| number(rate).to_string()).collect();
        Some((name, numbers.join(",")))
    }

    /// What fio does with file and page cache before it starts the clock.
    fn file_and_cache(&self) -> JobOptions {
        let mut options = Vec::new();
        if self.row.test == Pattern::Reread {
            options.extend([("pre_read", "1"), ("invalidate", "0")]);
        }
        // The cache of a device holds the metadata of whoever has mounted it.
        if self.place.kind == Kind::Device && self.row.tuning.caching == Caching::Direct {
            options.push(("invalidate", "0"));
        }
        let writes_over = self.row.writes() && self.row.extents == Extents::Written;
        if writes_over && !self.fills_first() {
            options.push(("overwrite", "1"));
        }
        options.extend([("fallocate", "none"), ("fadvise_hint", "0")]);
        options.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// When the clock stops.
    fn end(&self) -> JobOptions {
        let runtime_ns = self.terms.runtime_ns;
        let is_steady = self.repeats && !self.is_fsynced;
        let is_long = is_steady || self.row.test == Pattern::ColdBlocks;
        let runtime_ns = if is_long { runtime_ns.max(self.steady_ns) } else { runtime_ns };
        let mut options = vec![("runtime", word::duration(runtime_ns))];
        if is_steady && !self.row.writes() {
            options.push(flag("time_based"));
        }
        // Within fio's runtime: only where the row's time includes it, too.
        if self.is_fsynced {
            options.push(("end_fsync", "1".to_owned()));
        }
        options
    }
}

/// An option without a value.
fn flag(name: &'static str) -> (&'static str, String) {
    (name, String::new())
}

fn direction(test: Pattern) -> &'static str {
    match test {
        Pattern::SequentialWrite | Pattern::Rewrite => "write",
        Pattern::RandomRead => "randread",
        Pattern::RandomWrite => "randwrite",
        Pattern::Mixed => "randrw",
        Pattern::SequentialMixed => "readwrite",
        _ => "read",
    }
}

#[cfg(test)]
mod tests;
