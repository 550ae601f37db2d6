//! What a little work takes in a directory just now: tried before it is announced how long much will
//! take. All is done with files without a name, but for what copying takes: `tried/copying.rs`.

mod copying;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use flatout_measure::statistics::median;
use flatout_sys::usage::process_io;
use flatout_sys::{fill_random, monotonic_ns};

use crate::corpus::Corpus;
use crate::scratch;
use crate::slowdown;
use crate::versus::state;
pub use copying::Copying;

/// On a machine that is no slower than this, storage is as quick as a few files tell: beside others who was
/// asleep goes first.
const QUIET: f64 = 1.2;
/// Bytes written at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// A file is made durable so often, with so many chunks each, to see what that takes; with few, and twice at
/// most, where those take long.
const TURNS: usize = 3;
const CHUNKS: usize = 16;
const FEW_CHUNKS: usize = 4;
const LONG_NS: f64 = 25e6;
/// Where less may be written, what is tried would take a large part of it.
const WORTHWHILE_BYTES: u64 = 1 << 30;
/// So many files are removed to see what that takes, each so long.
const REMOVED_FILES: usize = 32;
const SMALL_BYTES: usize = 4096;
/// Starting the program, beside what a copy of nothing waits for storage: 2.2 ms on 2 vCPUs of an Emerald
/// Rapids, 2026-11-28.
const START_NS: f64 = 2.2e6;
/// A copy with all around it takes so many times what is tried of an entry (cp -a and flatout in turn: 2.5 on
/// tmpfs, 3.4 on btrfs, 1 to 2 on ext4 and on an overlay; the same machine and day).
const ENTRY_PART: f64 = 2.0;
/// A file is found to be unchanged: 2.2 µs by flatout, 6 by rsync (20,000 files, Emerald Rapids, 2026-11-29).
const LOOK_NS: f64 = 4e3;

/// What work takes in a directory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Nanoseconds for a byte of a file that is made, and for one that a trial makes durable.
    pub making_byte_ns: f64,
    /// The least of a few, since the first may wait for what others left.
    pub durable_byte_ns: f64,
    /// Waiting until what anybody wrote there lies on the device.
    pub settle_ns: f64,
    /// Removing a file whose bytes lie on the device: each may wait for it (ext4 without a journal, mounted
    /// with `discard`: 0.04 ms on a quiet machine, at times 4, and 2 to 6 beside a writer; 2 CPUs, 2026-11-28).
    pub removing_file_ns: f64,
    /// What copying and comparing takes.
    pub copying: Copying,
    /// Whether files live in memory: no storage becomes slower when its own memory is full.
    pub in_memory: bool,
    /// How many times slower than on a quiet machine the CPUs get work done.
    pub slowdown: f64,
}

impl Tried {
    /// Where nothing is tried. A test file of 256 MiB took 0.7 s on ext4 on a virtual disk (2 vCPUs of an AMD
    /// EPYC, busy with other work, 2026-11-23), one of 500 MB 1.25 s on ext4 on a loop in memory (quiet,
    /// 2026-11-26).
    pub const USUAL: Self = Self {
        making_byte_ns: 2.5,
        durable_byte_ns: 0.9,
        settle_ns: 0.0,
        removing_file_ns: 0.0,
        copying: Copying::USUAL,
        in_memory: false,
        slowdown: 1.0,
    };

    /// A little of the work in this directory, except copying; as usual where nothing can be written.
    ///
    /// Cost: 0.3 s as a rule, 0.8 s beside a writer; 60 MiB written at most.
    pub fn of(directory: &Path) -> Self {
        Self::in_place(directory).unwrap_or_else(Self::nothing)
    }

    /// The same with copying; as usual where less than a GiB may be written.
    ///
    /// Cost: 0.1 s more as a rule, half a second beside a writer; 110 MiB written at most, which
    /// [`left_of`] takes off.
    pub fn with_copying(directory: &Path, most_write_bytes: Option<u64>) -> Self {
        if most_write_bytes.is_some_and(|most| most < WORTHWHILE_BYTES) {
            return Self::nothing();
        }
        let tried = Self::of(directory);
        Self { copying: Copying::of(directory).unwrap_or(tried.copying), ..tried }
    }

    fn in_place(directory: &Path) -> Option<Self> {
        let slowdown = slowdown::now();
        // What others left to be written is waited for by whatever comes first.
        settle_ns(directory)?;
        let durable_byte_ns = durable_byte_ns(directory)?;
        // What is made is thought of, too.
        let making_byte_ns = durable_byte_ns + filling_byte_ns()?;
        let (settle_ns, removing_file_ns) = removing_ns(directory)?;
        let in_memory = scratch::on(directory).ok()?.in_memory;
        let is_sure = slowdown < QUIET || in_memory;
        let least_ns = if is_sure { 0.0 } else { Self::USUAL.durable_byte_ns };
        let durable_byte_ns = durable_byte_ns.max(least_ns);
        Some(Self {
            making_byte_ns,
            durable_byte_ns,
            settle_ns,
            removing_file_ns,
            copying: Copying::USUAL,
            in_memory,
            slowdown,
        })
    }

    /// As usual, on a machine that is as busy as it is now.
    ///
    /// Cost: that of [`slowdown::now`].
    pub fn nothing() -> Self {
        Self { slowdown: slowdown::now(), ..Self::USUAL }
    }

    /// The time for making so much, until storage has it.
    pub fn making_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.making_byte_ns) as u64
    }

    /// The same with care: a machine that others use is no quicker than it usually is beside them, whatever
    /// was seen in a moment.
    pub fn surely_making_ns(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.sure_byte_ns()) as u64
    }

    /// Bytes that are made in so much time, with the same care.
    pub fn surely_made_bytes(&self, time_ns: u64) -> u64 {
        (time_ns as f64 / self.sure_byte_ns()) as u64
    }

    fn sure_byte_ns(&self) -> f64 {
        let least_ns = if self.in_memory { 0.0 } else { Self::USUAL.making_byte_ns };
        self.making_byte_ns.max(least_ns * self.slowdown)
    }

    /// The time that a copy of this tree takes on a quiet machine, with all around it: the state of the cache,
    /// the comparison, the emptying.
    pub(crate) fn copy_s(&self, corpus: &Corpus, shared_from_bytes: Option<u64>) -> f64 {
        let Copying {
            byte_ns, shared_byte_ns, shared_entry_ns, compared_byte_ns, entry_ns, ..
        } = self.copying;
        let (byte_ns, more_ns) = match corpus.is_shared(shared_from_bytes) {
            true => (shared_byte_ns, shared_entry_ns),
            false => (byte_ns + compared_byte_ns, 0.0),
        };
        let bytes_ns = corpus.data_bytes() as f64 * byte_ns;
        let entries_ns = corpus.entries as f64 * (entry_ns * ENTRY_PART + more_ns);
        (START_NS + self.settle_ns + bytes_ns + entries_ns) / 1e9
    }

    /// The time in which a copy of this tree is found to be the same by size and time, and is compared.
    pub(crate) fn look_s(&self, corpus: &Corpus) -> f64 {
        let Copying { compared_byte_ns, made_ns, entry_ns, .. } = self.copying;
        let of_entry_ns = (entry_ns - made_ns).max(0.0) * ENTRY_PART + LOOK_NS;
        let bytes_ns = corpus.data_bytes() as f64 * compared_byte_ns;
        (START_NS + self.settle_ns + bytes_ns + corpus.entries as f64 * of_entry_ns) / 1e9
    }

    /// The time for removing so many files.
    pub fn removing_ns(&self, files: u64) -> u64 {
        (files as f64 * self.removing_file_ns) as u64
    }

    /// How many times slower short programs and trials are, which go first as often as they have waited: by all
    /// of the slowdown `tune` wrote 1.21 to 1.56 of what it announced, and `versus` was done in 0.34 to 1.01 of
    /// its time (beside two loops, 2 vCPUs of an AMD EPYC, 2026-11-30).
    pub fn waiting_slowdown(&self) -> f64 {
        self.slowdown.sqrt()
    }

    /// How many times slower than usual storage takes what is written.
    pub fn storage_slowdown(&self) -> f64 {
        (self.durable_byte_ns / Self::USUAL.durable_byte_ns).max(1.0)
    }
}

/// Bytes that this process has written by now: what was tried counts among those that are announced.
pub fn written_bytes() -> u64 {
    process_io().map_or(0, |io| io.device_write_bytes)
}

/// What is left of the bytes that may be written, where something was tried.
pub fn left_of(most_write_bytes: Option<u64>) -> Option<u64> {
    let left = |most: u64| match most < WORTHWHILE_BYTES {
        true => most,
        false => most.saturating_sub(written_bytes()),
    };
    most_write_bytes.map(left)
}

/// What waiting for storage takes after one small write.
pub(crate) fn settle_ns(directory: &Path) -> Option<f64> {
    let mut file = scratch::open_unnamed(directory).ok()?;
    file.write_all(&[1; SMALL_BYTES]).ok()?;
    nanoseconds(|| state::settle(directory).ok())
}

/// The random content of a byte.
fn filling_byte_ns() -> Option<f64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let fill = |chunk: &mut [u8]| fill_random(chunk, 1, 0);
    fill(&mut chunk);
    let filled_ns = nanoseconds(|| {
        fill(&mut chunk);
        Some(())
    });
    Some(filled_ns? / CHUNK_BYTES as f64)
}

fn durable_byte_ns(directory: &Path) -> Option<f64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    fill_random(&mut chunk, 1, 0);
    let byte_ns = |chunks: usize| {
        let mut file = scratch::open_unnamed(directory).ok()?;
        let all = || {
            (0..chunks).try_for_each(|_| file.write_all(&chunk)).ok()?;
            file.sync_data().ok()
        };
        Some(nanoseconds(all)? / (chunks * CHUNK_BYTES) as f64)
    };
    let few_ns = byte_ns(FEW_CHUNKS)?;
    if few_ns * (FEW_CHUNKS * CHUNK_BYTES) as f64 > LONG_NS {
        return byte_ns(FEW_CHUNKS).map(|again_ns| again_ns.min(few_ns));
    }
    (0..TURNS).filter_map(|_| byte_ns(CHUNKS)).reduce(f64::min)
}

/// What waiting for storage takes, and removing a file that lies there.
fn removing_ns(directory: &Path) -> Option<(f64, f64)> {
    let mut files: Vec<File> = Vec::new();
    for _ in 0..REMOVED_FILES {
        let mut file = scratch::open_unnamed(directory).ok()?;
        file.write_all(&[1; SMALL_BYTES]).ok()?;
        files.push(file);
    }
    let mut waits = vec![nanoseconds(|| state::settle(directory).ok())?];
    for _ in 1..TURNS {
        waits.push(settle_ns(directory)?);
    }
    let removed_ns = nanoseconds(|| {
        drop(files);
        Some(())
    })?;
    Some((median(&waits)?, removed_ns / REMOVED_FILES as f64))
}

fn nanoseconds(work: impl FnOnce() -> Option<()>) -> Option<f64> {
    let begun_ns = monotonic_ns();
    work()?;
    Some((monotonic_ns() - begun_ns) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_leaves_nothing_and_finds_a_time_for_everything() {
        let directory = tempfile::tempdir().unwrap();
        let tried = Tried::in_place(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let Tried { durable_byte_ns, settle_ns, removing_file_ns, slowdown, .. } = tried;
        let all = [durable_byte_ns, settle_ns, removing_file_ns];
        assert!(all.iter().all(|&ns| ns > 0.0 && ns < 60e9) && slowdown >= 1.0, "{tried:?}");
        let nowhere = Tried::of(&directory.path().join("missing"));
        assert_eq!(Tried { slowdown: 1.0, ..nowhere }, Tried::USUAL);
        let limited = Tried::with_copying(directory.path(), Some(WORTHWHILE_BYTES - 1));
        assert_eq!(Tried { slowdown: 1.0, ..limited }, Tried::USUAL);
    }

    #[test]
    fn slow_storage_takes_longer_and_a_quick_one_is_not_called_quicker() {
        let tried = |durable_byte_ns| Tried { durable_byte_ns, ..Tried::USUAL };
        assert_eq!([0.3, 0.9, 3.6].map(|ns| tried(ns).storage_slowdown()), [1.0, 1.0, 4.0]);
        assert_eq!(Tried::USUAL.making_ns(400), 1000);
        let made = |making_byte_ns, slowdown| {
            let tried = Tried { making_byte_ns, slowdown, ..Tried::USUAL };
            assert_eq!(tried.surely_making_ns(tried.surely_made_bytes(1000)), 1000);
            tried.surely_made_bytes(1000)
        };
        assert_eq!([made(0.5, 1.0), made(0.5, 4.0), made(20.0, 4.0)], [400, 100, 50]);
        assert_eq!(Tried { removing_file_ns: 5e6, ..Tried::USUAL }.removing_ns(200), 1_000_000_000);
    }

    #[test]
    fn a_copy_takes_what_its_bytes_and_its_files_took_and_memory_is_as_quick_as_it_was_seen() {
        let copying = Copying {
            byte_ns: 0.5,
            shared_byte_ns: 0.25,
            shared_entry_ns: 50e3,
            compared_byte_ns: 0.25,
            made_ns: 10e3,
            entry_ns: 30e3,
        };
        let tried = Tried { copying, settle_ns: 1e6, ..Tried::USUAL };
        let corpus = crate::corpus::name::uniform(1000, 1 << 20, 0).unwrap();
        let beside_ns = START_NS + 1e6 + corpus.entries as f64 * 30e3 * ENTRY_PART;
        let of_bytes_ns = |from_bytes| tried.copy_s(&corpus, from_bytes) * 1e9 - beside_ns;
        let bytes = (1000_u64 << 20) as f64;
        assert!((of_bytes_ns(None) / (0.75 * bytes) - 1.0).abs() < 1e-6);
        let waited_ns = corpus.entries as f64 * 50e3;
        assert!((of_bytes_ns(Some(0)) / (0.25 * bytes + waited_ns) - 1.0).abs() < 1e-6);
        let memory = Tried { in_memory: true, making_byte_ns: 0.5, durable_byte_ns: 0.3, ..tried };
        assert_eq!(memory.surely_making_ns(1000), 500);
        let sparse = crate::corpus::name::parse(&["sparse".to_owned()]).unwrap().remove(0);
        assert!(
            sparse.bytes == 1 << 30 && tried.copy_s(&sparse, None) < 0.02,
            "holes take nothing"
        );
        assert!(sparse.written_bytes(None) < 32 << 20 && sparse.copy_bytes() > 1 << 30);
    }
}
