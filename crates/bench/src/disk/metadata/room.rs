//! How much a run leaves in the directory before it tidies up, and whether there is room for it.

use flatout_measure::{Plan, size_text};

use super::row::{self, Directories, Test};
use super::{MetadataOptions, SMALL_FILE_BYTES};
use crate::{Error, scratch};

/// To make a file durable takes as long, and writes as much, as this many other operations: so
/// the trials of fsync take one in so many files, and at least a few.
const FSYNC_PART: u32 = 20;
const FSYNC_LEAST_FILES: u32 = 8;
/// Trials that the sampler may drop as warm-up and repeat.
const WARM_UP_TRIALS: u32 = 2;

/// Bytes written for a file without content, from its creation to its removal: inode, entry and
/// journal. btrfs, which writes most, took up to this much (kernel 6.18, November 2026).
const FILE_BYTES: u64 = 4 << 10;
/// Bytes written for a directory, which may take blocks of its own.
const DIRECTORY_BYTES: u64 = 16 << 10;
/// Bytes written beside the content for one fsync of a new file, by btrfs again; ext4 needs a
/// third of it.
const SYNC_BYTES: u64 = 96 << 10;

/// Below this a trial is over before it says anything.
const LEAST_FILES: u32 = 16;

/// What a run takes at most, should as many trials be repeated as the sampler ever repeats; usually
/// it is a third of that.
#[derive(Debug, Clone, Copy)]
pub(in crate::disk) struct Needs {
    /// Files and directories that exist at the end.
    pub(in crate::disk) inodes: u64,
    /// Bytes that are written to the device; an estimate, because the journal's share differs between
    /// filesystems.
    pub(in crate::disk) bytes: u64,
}

impl Needs {
    pub(in crate::disk) fn of(options: &MetadataOptions) -> Self {
        let synced_bytes = SMALL_FILE_BYTES + SYNC_BYTES;
        let mut needs = Self { inodes: 1, bytes: DIRECTORY_BYTES };
        let mut add = |test, sets: u64, spread: Directories| {
            let (files, directories) = (files_of(test, options), spread.count(options));
            let each_bytes = FILE_BYTES + if test == Test::Fsync { synced_bytes } else { 0 };
            let bytes =
                u64::from(files) * each_bytes + u64::from(directories + 1) * DIRECTORY_BYTES;
            needs.inodes += sets * inodes_of_set(files, directories);
            needs.bytes += sets * bytes;
        };
        // The unlink rows use the files that the create rows left, or as many as those could have
        // made.
        // Trials that the sampler begins at most: those that count, and as many spoiled ones until
        // it sees that quiet ones will not come.
        let counted = super::most_trials(options.extent) + WARM_UP_TRIALS;
        let spoiled = Plan::default().most_spoiled.max(counted + 1);
        let attempts = u64::from(counted + spoiled);
        for row in row::rows(&[Test::Create, Test::Fsync], options) {
            add(row.test, attempts, row.directories);
        }
        Directories::ALL.into_iter().for_each(|spread| add(Test::Stat, 1, spread));
        // A failed trial throws its files away, once per row.
        for row in row::rows(&[Test::Rename], options) {
            add(row.test, 1, row.directories);
        }
        needs
    }
}

/// The same options with as many files as there is room for, at most those asked for, and so few
/// that at most `most_bytes` are written.
///
/// # Errors
/// [`Error::NoRoom`] where not even a few files fit; or the directory cannot be opened.
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
    if free.is_enough(&fitted) {
        return Ok(fitted);
    }
    let needs = Needs::of(&fitted);
    Err(Error::NoRoom(format!(
        "cannot measure metadata in {:?}: up to {} files and directories and {} are needed, but {} and {} may be taken",
        fitted.directory,
        needs.inodes,
        size_text(needs.bytes),
        free.inodes.map_or("any number".to_owned(), |inodes| inodes.to_string()),
        size_text(free.bytes)
    )))
}

/// What may be taken of the filesystem.
struct Free {
    /// `None` where inodes are made as they are needed.
    inodes: Option<u64>,
    bytes: u64,
}

impl Free {
    fn of(options: &MetadataOptions) -> Result<Self, Error> {
        let bytes = scratch::part_of(scratch::free_bytes(&scratch::on(&options.directory)?));
        Ok(Self { inodes: scratch::inodes_part(&options.directory), bytes })
    }

    fn is_enough(&self, options: &MetadataOptions) -> bool {
        let needs = Needs::of(options);
        self.inodes.is_none_or(|most| needs.inodes <= most) && needs.bytes <= self.bytes
    }
}

pub(super) fn files_of(test: Test, options: &MetadataOptions) -> u32 {
    let few = (options.files / FSYNC_PART).max(FSYNC_LEAST_FILES).min(options.files);
    if test == Test::Fsync { few } else { options.files }
}

pub(super) fn inodes_of_set(files: u32, directories: u32) -> u64 {
    u64::from(files) + u64::from(directories) + 1
}
