//! Which rows there are, and what one operation of each consists of.

use flatout_measure::{Label, Row as Measurable, Unit};

use super::MetadataOptions;
use crate::between_runs;

flatout_sys::words! {
    /// What is done to the files.
    pub(super) enum Test: id {
        Create = "disk/create",
        Stat = "disk/stat",
        OpenClose = "disk/open-close",
        Rename = "disk/rename",
        Readdir = "disk/readdir",
        Fsync = "disk/fsync",
        Unlink = "disk/unlink",
    }
}

impl Test {
    /// The tests that delete nothing; they are interleaved.
    pub(super) const FIRST_PHASE: [Self; 6] =
        [Self::Create, Self::Stat, Self::OpenClose, Self::Rename, Self::Readdir, Self::Fsync];

    /// Its verb in messages, and the system calls of one operation, which files they meet, and in which
    /// order. Every name is one component, looked up below a descriptor of its directory that was opened
    /// before.
    ///
    /// The directory is not synced in the fsync row: ext4, xfs and btrfs make the entry of a new
    /// file durable together with the file, few programs do more, and fio's job does the same.
    /// POSIX does not promise it; on other filesystems the entry may still be lost.
    pub(super) fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => (
                "create",
                "openat(O_CREAT | O_EXCL | O_WRONLY), close; empty files, in order of their names",
            ),
            Self::Stat => (
                "stat",
                "newfstatat; in random order over and over, so names and inodes are in memory",
            ),
            Self::OpenClose => (
                "open",
                "openat(O_RDONLY), close; in random order over and over, so names and inodes are in \
                 memory",
            ),
            Self::Rename => {
                ("rename", "renameat to a new name in the same directory; in random order")
            }
            Self::Readdir => (
                "list",
                "one entry of a listing (openat, getdents64 with 32 KiB to the end, close), over \
                 and over; the latency is that of a whole directory",
            ),
            Self::Fsync => (
                "create, write and sync",
                "openat(O_CREAT | O_EXCL | O_WRONLY), write, fsync, close; the directory is not \
                 synced by itself",
            ),
            Self::Unlink => (
                "remove",
                "unlinkat of empty files; in random order. What the filesystem frees later (xfs \
                 does) is not in it",
            ),
        }
    }

    /// Why the figure is not about durable names, for the tests that change some.
    pub(super) fn not_durable(self) -> Option<&'static str> {
        let text = "the names change in memory and in the journal; nothing was synced";
        matches!(self, Self::Create | Self::Rename | Self::Unlink).then_some(text)
    }
}

flatout_sys::words! {
    /// Over how many directories the files are spread.
    pub(super) enum Directories: word, ALL {
        One = "one",
        Many = "many",
    }
}

/// Directories over which files are spread at least.
const MANY: u32 = 16;

impl Directories {
    /// The number of directories; for `Many` so many that threads have equal shares.
    pub(super) fn count(self, options: &MetadataOptions) -> u32 {
        match self {
            Self::One => 1,
            Self::Many => {
                let threads = options.threads.last().copied().unwrap_or(1);
                MANY.next_multiple_of(threads.max(1))
            }
        }
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MetadataRow {
    pub(super) test: Test,
    pub(super) directories: Directories,
    pub(super) threads: u32,
}

impl Measurable for MetadataRow {
    fn label(&self) -> Label {
        Label::new(self.test.id(), Unit::OperationsPerSecond)
            .with("directories", self.directories.word())
            .with("threads", self.threads)
            .deviating_by(match self.test {
                Test::Stat | Test::OpenClose | Test::Readdir => between_runs::LOOKUP,
                _ => between_runs::DISK,
            })
    }
}

/// The rows of `tests`.
pub(super) fn rows(tests: &[Test], options: &MetadataOptions) -> Vec<MetadataRow> {
    let spread = tests.iter().flat_map(|&test| Directories::ALL.map(|spread| (test, spread)));
    let rows = |(test, directories)| {
        options.threads.iter().map(move |&threads| MetadataRow { test, directories, threads })
    };
    spread.flat_map(rows).collect()
}
