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

use super::Terms;
use super::pattern::{Course, Test, Tiny};
use super::place::{Kind, Place};
use super::row::{Extents, Row};
use share::Share;

/// fio needs this long to be steady; our trials are many and shorter.
const LEAST_RUNTIME_NS: u64 = 5_000_000_000;
/// The file that fio makes in a directory; it is removed afterwards.
pub(super) const FILE_NAME: &str = "flatout-fio.tmp";
/// Bytes that fio writes at a time while it fills a file to be measured afterwards.
const LAYOUT_BYTES: u64 = 1 << 20;
/// Smaller blocks than this are not fit to fill a file with.
const LEAST_LAYOUT_BYTES: u64 = 4096;

/// What fio can do to check a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Nearest {
    /// A line for a shell; none where fio has nothing like the row.
    pub(super) command: Option<String>,
    /// What fio does otherwise.
    pub(super) note: Option<String>,
}

/// The command line nearest to a row whose figure was taken at `until` (of a row that writes:
/// cache, device or durable).
pub(super) fn nearest(
    row: &Row,
    place: &Place,
    length_bytes: u64,
    terms: &Terms,
    until: Option<&str>,
) -> Nearest {
    let none = |note: &str| Nearest { command: None, note: Some(note.to_owned()) };
    if row.test.course() == Course::Copy {
        return none("fio has nothing that copies from file to file");
    }
    let path = match place.kind() {
        Kind::Directory => place.path().join(FILE_NAME),
        Kind::File | Kind::Device => place.path().to_owned(),
    };
    let Some(file_name) = word::file_name(&path) else {
        return none("fio cannot be told this name: it would cut it and take another file");
    };
    let is_durable = until == Some("durable");
    let Some(share) = Share::new(row, length_bytes, terms, is_durable) else {
        return none("the file is shorter than a block");
    };
    let kind = place.kind();
    let is_left = kind == Kind::Directory && share.jobs > 1;
    let leftover = path.to_str().filter(|_| is_left).map(str::to_owned);
    let steady_ns = LEAST_RUNTIME_NS;
    let job =
        Job { row, kind, file_name, leftover, length_bytes, terms, share, is_durable, steady_ns };
    let notes = job.notes();
    Nearest {
        command: Some(job.command()),
        note: Some(notes.join("; ")).filter(|note| !note.is_empty()),
    }
}

/// One trial of a row by fio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trial {
    /// What follows fio's name.
    pub(crate) words: Vec<String>,
    /// What fio does otherwise; empty where there is nothing.
    pub(crate) note: String,
}

/// A trial of a row by fio, as long as the row's own; none where fio has nothing like it. The file
/// must be there, unless each trial has a fresh one.
pub(super) fn trial(row: &Row, place: &Place, length_bytes: u64, terms: &Terms) -> Option<Trial> {
    if row.test.course() == Course::Copy {
        return None;
    }
    let kind = place.kind();
    let path = match kind {
        Kind::Directory => place.path().join(FILE_NAME),
        Kind::File | Kind::Device => place.path().to_owned(),
    };
    let file_name = word::file_name(&path)?;
    let share = Share::new(row, length_bytes, terms, false)?;
    let (leftover, is_durable, steady_ns) = (None, false, 0);
    let job =
        Job { row, kind, file_name, leftover, length_bytes, terms, share, is_durable, steady_ns };
    Some(Trial { words: job.words().split_off(1), note: job.notes().join("; ") })
}

/// What the options of a command line depend on.
struct Job<'a> {
    row: &'a Row,
    kind: Kind,
    file_name: String,
    /// The file to be removed after fio's end. Of several jobs the first to end would unlink it,
    /// and the others open it anew at each turn.
    leftover: Option<String>,
    length_bytes: u64,
    terms: &'a Terms,
    share: Share,
    is_durable: bool,
    /// A row that begins again once it is through takes at least this long.
    steady_ns: u64,
}

impl Job<'_> {
    fn command(&self) -> String {
        let words = self.words();
        let mut line = words.iter().map(|word| word::quoted(word)).collect::<Vec<_>>().join(" ");
        if let Some(path) = &self.leftover {
            line.push_str("; rm -f -- ");
            line.push_str(&word::quoted(path));
        }
        line
    }

    fn words(&self) -> Vec<String> {
        let mut words = vec!["fio".to_owned()];
        let is_filled_first = self.fills_first();
        if is_filled_first {
            words.extend(self.layout());
        }
        words.push(format!("--name={}", self.row.test.id().trim_start_matches("disk/")));
        if is_filled_first {
            words.push("--stonewall".to_owned());
        }
        words.push(format!("--filename={}", self.file_name));
        words.extend(self.rails());
        words.extend(self.requests());
        words.extend(self.share.words());
        words.extend(self.rate());
        words.extend(self.file_and_cache());
        words.extend(self.end());
        words.extend(["--thread", "--group_reporting"].map(str::to_owned));
        words
    }

    /// Whether the file has to be written before, by a job of its own: the row's own job would
    /// do it with the row's tiny blocks.
    fn fills_first(&self) -> bool {
        self.kind == Kind::Directory
            && self.row.writes()
            && self.row.extents == Extents::Written
            && self.row.tuning.block_bytes < LEAST_LAYOUT_BYTES
    }

    fn layout(&self) -> Vec<String> {
        vec![
            "--name=layout".to_owned(),
            format!("--filename={}", self.file_name),
            "--rw=write".to_owned(),
            format!("--bs={LAYOUT_BYTES}"),
            format!("--size={}", self.length_bytes),
            "--fallocate=none".to_owned(),
            "--end_fsync=1".to_owned(),
            "--thread".to_owned(),
        ]
    }

    /// What keeps a slip of the hand from doing harm.
    fn rails(&self) -> Option<String> {
        let word = match (self.kind, self.row.writes()) {
            (Kind::Directory, _) => {
                return self.leftover.is_none().then(|| "--unlink=1".to_owned());
            }
            (Kind::File | Kind::Device, false) => "--readonly",
            (Kind::File | Kind::Device, true) => "--allow_file_create=0",
        };
        Some(word.to_owned())
    }

    /// Direction, length, engine and caching of requests.
    fn requests(&self) -> Vec<String> {
        let Tuning { engine, caching, block_bytes, depth, .. } = self.row.tuning;
        // fio fills a file to be read in blocks of the size of writes. Its buffers have the larger
        // of both sizes, so that this is for tiny blocks only.
        let is_in_directory = self.kind == Kind::Directory && !self.row.writes();
        let layout = if is_in_directory && block_bytes < LEAST_LAYOUT_BYTES {
            format!(",{LAYOUT_BYTES}")
        } else {
            String::new()
        };
        let engine_name = match (engine, caching) {
            (Engine::Uring, _) => "io_uring",
            (_, Caching::Dontcache) => "pvsync2",
            (_, Caching::Direct | Caching::Buffered) => "psync",
        };
        let mut words = vec![
            format!("--rw={}{}", direction(self.row.test), self.share.step_word()),
            format!("--bs={block_bytes}{layout}"),
            format!("--ioengine={engine_name}"),
        ];
        if engine == Engine::Uring {
            words.push(format!("--iodepth={depth}"));
        }
        words.push(format!("--direct={}", u8::from(caching == Caching::Direct)));
        if caching == Caching::Dontcache {
            words.push("--uncached=1".to_owned());
        }
        if self.row.test == Test::Mixed {
            words.push(format!("--rwmixread={}", self.row.read_percent));
        }
        if self.row.test.is_random() {
            words.push("--randrepeat=0".to_owned());
        }
        words
    }

    /// The pace of each job. fio counts whole operations, or whole bytes, per second.
    fn rate(&self) -> Option<String> {
        let of_job = self.row.rate_per_s? / self.share.jobs as f64;
        let read = f64::from(self.row.read_percent) / 100.0;
        let rates = match self.row.test {
            Test::Mixed => vec![of_job * read, of_job * (1.0 - read)],
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
        Some(format!("--{name}={}", numbers.join(",")))
    }

    /// What fio does with file and page cache before it starts the clock.
    fn file_and_cache(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.row.test == Test::Reread {
            words.extend(["--pre_read=1", "--invalidate=0"]);
        }
        // The cache of a device holds the metadata of whoever has mounted it.
        if self.kind == Kind::Device && self.row.tuning.caching == Caching::Direct {
            words.push("--invalidate=0");
        }
        let writes_over = self.row.writes() && self.row.extents == Extents::Written;
        if writes_over && !self.fills_first() {
            words.push("--overwrite=1");
        }
        words.extend(["--fallocate=none", "--fadvise_hint=0"]);
        words.into_iter().map(str::to_owned).collect()
    }

    /// When the clock stops.
    fn end(&self) -> Vec<String> {
        let runtime_ns = self.terms.runtime_ns;
        let is_steady = share::repeats(self.row) && !self.is_durable;
        let is_long = is_steady || self.row.test == Test::ColdBlocks;
        let runtime_ns = if is_long { runtime_ns.max(self.steady_ns) } else { runtime_ns };
        let mut words = vec![format!("--runtime={}", word::duration(runtime_ns))];
        if is_steady && !self.row.writes() {
            words.push("--time_based".to_owned());
        }
        // Within fio's runtime: only where the row's time includes it, too.
        if self.is_durable {
            words.push("--end_fsync=1".to_owned());
        }
        words
    }
}

fn direction(test: Test) -> &'static str {
    match test {
        Test::SequentialWrite | Test::Rewrite | Test::Latency(Tiny::Write) => "write",
        Test::RandomRead | Test::Latency(Tiny::RandomRead) => "randread",
        Test::RandomWrite | Test::Latency(Tiny::RandomWrite) => "randwrite",
        Test::Mixed => "randrw",
        _ => "read",
    }
}

#[cfg(test)]
mod tests;
