//! How much a run leaves in the directory before it tidies up, and whether there is room for it.

use rustix::fs::{Mode, OFlags};

use flatout_io::Error as IoError;

use super::row::{self, Directories, Test};
use super::{Extent, MetadataOptions};
use crate::error::Error;
use crate::scratch;

/// To make a file durable takes as long, and writes as much, as this many other operations: so
/// the trials of fsync take one in so many files, and at least a few.
const FSYNC_PART: u32 = 20;
const FSYNC_LEAST_FILES: u32 = 8;
/// Trials that the sampler may drop as warm-up and repeat.
const WARM_UP_TRIALS: u32 = 2;
/// Spoiled trials that the sampler repeats even where they are few.
const SPOILED_TRIALS: u32 = 6;

/// Bytes written for a file without content, from its creation to its removal: inode, entry and
/// journal. btrfs, which writes most, took up to this much (kernel 6.18, November 2026).
const FILE_BYTES: u64 = 4 << 10;
/// Bytes written for a directory, which may take blocks of its own.
const DIRECTORY_BYTES: u64 = 16 << 10;
/// Bytes written beside the content for one fsync of a new file, by btrfs again; ext4 needs a
/// third of it.
const SYNC_BYTES: u64 = 96 << 10;
/// Files take whole blocks.
const BLOCK_BYTES: u64 = 4 << 10;

/// Free inodes that are taken at most: one part in this many.
const INODES_PART: u64 = 2;
/// Below this a trial is over before it says anything.
const LEAST_FILES: u32 = 16;
/// Files and directories that exist at the end at most, should as many trials be repeated as the
/// sampler ever repeats; usually it is a third of that.
pub(super) fn inodes(options: &MetadataOptions) -> u64 {
    1 + file_sets(options)
        .iter()
        .map(|set| set.count * inodes_of_set(set.files, set.directories))
        .sum::<u64>()
}

/// Bytes that are written to the device at most, counted as [`inodes`]; an estimate, because the
/// journal's share differs between filesystems.
///
/// Units: bytes.
pub(in crate::disk) fn write_bytes(options: &MetadataOptions) -> u64 {
    let content_bytes = options.small_file_bytes.next_multiple_of(BLOCK_BYTES) + SYNC_BYTES;
    let of_set = |set: &FileSets| {
        let each = if set.test == Test::Fsync { content_bytes } else { 0 };
        u64::from(set.files) * (FILE_BYTES + each)
            + u64::from(set.directories + 1) * DIRECTORY_BYTES
    };
    DIRECTORY_BYTES + file_sets(options).iter().map(|set| set.count * of_set(set)).sum::<u64>()
}

/// Refuses what makes no sense and what the filesystem has not the inodes or the room for.
/// Nothing is written.
///
/// # Errors
/// [`Error::NoRoom`]; or the directory cannot be opened.
pub(in crate::disk) fn check(options: &MetadataOptions) -> Result<(), Error> {
    Free::of(options)?.refuse_unless_enough(options)
}

/// The same options with as many files as there is room for, at most those asked for, and so few
/// that at most `most_bytes` are written.
///
/// # Errors
/// As [`check`], where not even a few files fit.
pub(in crate::disk) fn fitted(
    options: &MetadataOptions,
    most_bytes: Option<u64>,
) -> Result<MetadataOptions, Error> {
    let free = Free::of(options)?;
    let free = Free { bytes: free.bytes.min(most_bytes.unwrap_or(u64::MAX)), ..free };
    let mut fitted = options.clone();
    while !free.is_enough(&fitted) && fitted.files / 2 >= LEAST_FILES {
        fitted.files /= 2;
    }
    free.refuse_unless_enough(&fitted)?;
    Ok(fitted)
}

/// What may be taken of the filesystem.
struct Free {
    /// `None` where inodes are made as they are needed.
    inodes: Option<u64>,
    bytes: u64,
}

impl Free {
    fn of(options: &MetadataOptions) -> Result<Self, Error> {
        let directory = &options.directory;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty())
            .map_err(IoError::system("open the directory", directory))?;
        let facts = rustix::fs::fstatvfs(&opened).map_err(IoError::system("examine", directory))?;
        let bytes = scratch::part_of(facts.f_bavail.saturating_mul(facts.f_frsize));
        // Filesystems without a fixed number of inodes show zero, or as many free as there are.
        let inodes = (facts.f_files > 0).then_some(facts.f_favail / INODES_PART);
        Ok(Self { inodes, bytes })
    }

    fn is_enough(&self, options: &MetadataOptions) -> bool {
        self.inodes.is_none_or(|most| inodes(options) <= most) && write_bytes(options) <= self.bytes
    }

    fn refuse_unless_enough(&self, options: &MetadataOptions) -> Result<(), Error> {
        if self.is_enough(options) {
            return Ok(());
        }
        Err(Error::NoRoom(format!(
            "cannot measure metadata in {:?}: up to {} files and directories and {} bytes are \
             needed, but {} and {} may be taken",
            options.directory,
            inodes(options),
            write_bytes(options),
            self.inodes.map_or("any number".to_owned(), |inodes| inodes.to_string()),
            self.bytes
        )))
    }
}

/// FileSets of one kind.
struct FileSets {
    test: Test,
    count: u64,
    files: u32,
    directories: u32,
}

/// All file_sets of a run. The unlink rows use those that the create rows left, or as many as those
/// could have made.
fn file_sets(options: &MetadataOptions) -> Vec<FileSets> {
    let rows = row::rows(&[Test::Create, Test::Fsync], options);
    let attempts = u64::from(attempts_most(options.extent));
    let fresh = rows.iter().map(|row| (row.test, attempts, row.directories));
    let standing = Directories::ALL.map(|spread| (Test::Stat, 1, spread));
    // A failed trial throws its files away, once per row.
    let moving = row::rows(&[Test::Rename], options);
    let moving = moving.iter().map(|row| (row.test, 1, row.directories));
    fresh
        .chain(standing)
        .chain(moving)
        .map(|(test, count, spread)| FileSets {
            test,
            count,
            files: files_of(test, options),
            directories: spread.count(options),
        })
        .collect()
}

/// Trials of a row that the sampler begins at most: those that count, and as many spoiled ones
/// until it sees that quiet ones will not come.
fn attempts_most(extent: Extent) -> u32 {
    let counted = extent.most_trials() + WARM_UP_TRIALS;
    counted + SPOILED_TRIALS.max(counted + 1)
}

pub(super) fn files_of(test: Test, options: &MetadataOptions) -> u32 {
    let few = (options.files / FSYNC_PART).max(FSYNC_LEAST_FILES).min(options.files);
    if test == Test::Fsync { few } else { options.files }
}

pub(super) fn inodes_of_set(files: u32, directories: u32) -> u64 {
    u64::from(files) + u64::from(directories) + 1
}
