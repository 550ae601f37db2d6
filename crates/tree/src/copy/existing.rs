//! What bears the name of a copy already, and whether it may go.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::compare::content::{Comparer, Pair};

use super::directory::identity;
use super::entry::{Entry, Trouble, source as source_trouble, target};
use super::failure::Refusal;
use super::lane::Lane;
use super::options::{Overwrite, Preserve, Unchanged};
use super::temporary::{is_held, is_temporary};

/// The unit of `st_blocks`, whatever the block size of the filesystem.
pub(super) const SECTOR_BYTES: u64 = 512;
pub(super) const OVERWRITE: &str = "overwrite";
const SAME_FILE: &str = "it is the same file as the source";
pub(super) const DIRECTORY_OVER: &str = "it is a directory, the source is none";

/// What is to be done about an entry that is in the way of a regular file.
pub(super) enum Existing {
    /// It is done already.
    Unchanged(Stat),
    /// A file that makes room when the new one is complete.
    Replace(Stat),
    /// A symlink that makes room when the new one is complete. What it leads to stays as it is.
    ReplaceSymlink,
    /// It is gone by now.
    Gone,
}

impl Lane<'_, '_> {
    /// Looks at what is in the way of a regular file.
    ///
    /// Errors: it is the source itself, or nothing that a file may take the place of.
    pub(super) fn existing(
        &mut self,
        entry: Entry<'_>,
        file: BorrowedFd<'_>,
        source: &Stat,
    ) -> Result<Existing, Trouble> {
        let Some(found) = in_the_way(entry)? else { return Ok(Existing::Gone) };
        refuse_obstacle(entry, source, &found)?;
        if is_temporary(entry.target) && is_held(entry.pair.target(), entry.target) {
            return Err(refused(OVERWRITE, "another copy is at work on it"));
        }
        if FileType::from_raw_mode(found.st_mode).is_symlink() {
            return Ok(Existing::ReplaceSymlink);
        }
        if self.is_unchanged(entry, file, source, &found)? && self.is_free(source, &found)? {
            return Ok(Existing::Unchanged(found));
        }
        // As cp, which writes into a file with one name, and removes one with several.
        if !self.is_bound(&found) {
            self.refuse_protected(entry)?;
        }
        Ok(Existing::Replace(found))
    }

    /// Whether something has several names, and that matters: what happens to one happens to all.
    pub(super) fn is_bound(&self, found: &Stat) -> bool {
        found.st_nlink > 1 && self.copy.options.preserve.has(Preserve::LINKS)
    }

    /// Whether what bears the name in the target may stand for this source. Another name of something
    /// else is no copy of ours; and what has several names is the copy of one source only, or names
    /// that hold different bytes would become one.
    pub(super) fn is_free(&self, source: &Stat, found: &Stat) -> Result<bool, Trouble> {
        if !self.is_bound(found) {
            return Ok(true);
        }
        if source.st_nlink == 1 {
            return Ok(false);
        }
        self.copy.taken.take(identity(found), identity(source)).map_err(Trouble::Target)
    }

    /// A file that this user may not write is protected, and stays unless it is to be replaced by
    /// all means.
    fn refuse_protected(&self, entry: Entry<'_>) -> Result<(), Trouble> {
        if self.copy.options.overwrite == Overwrite::Protected {
            return Ok(());
        }
        let (at, name) = (entry.pair.target(), entry.target);
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        match rustix::fs::accessat(at, name, Access::WRITE_OK, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Before Linux 5.8.
            Err(Errno::NOSYS) => {
                let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let opened = rustix::fs::openat(at, name, flags, Mode::empty());
                opened.map(drop).map_err(target(OVERWRITE))
            }
            Err(errno) => Err(target(OVERWRITE)(errno)),
        }
    }

    fn is_unchanged(
        &mut self,
        entry: Entry<'_>,
        file: BorrowedFd<'_>,
        source: &Stat,
        found: &Stat,
    ) -> Result<bool, Trouble> {
        if source.st_size != found.st_size {
            return Ok(false);
        }
        match self.copy.unchanged() {
            Unchanged::Never => Ok(false),
            Unchanged::Recorded => Ok(self.copy.evidence.proves(source, found)),
            Unchanged::Content => self.is_same_content(entry, file, source, found),
            Unchanged::SizeAndTime => {
                let directory = entry.pair.target();
                let temporaries = &self.copy.temporaries;
                let granularity = &self.copy.granularity;
                Ok(granularity.is_same_time(source, found, directory, temporaries)
                    && !granularity.is_untouched(found, directory, temporaries))
            }
        }
    }

    fn is_same_content(
        &mut self,
        entry: Entry<'_>,
        file: BorrowedFd<'_>,
        source: &Stat,
        found: &Stat,
    ) -> Result<bool, Trouble> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(copy) = rustix::fs::openat(entry.pair.target(), entry.target, flags, Mode::empty())
        else {
            return Ok(false);
        };
        let length_bytes = source.st_size as u64;
        let has_holes = |facts: &Stat| (facts.st_blocks as u64) * SECTOR_BYTES < length_bytes;
        let pair = Pair {
            source: file,
            target: copy.as_fd(),
            length_bytes,
            sparse: [has_holes(source), has_holes(found)],
        };
        let stop = &self.copy.stop;
        let comparer = self.comparer.get_or_insert_with(Comparer::new);
        let difference = comparer.first_difference(pair, || !stop.is_due()).map_err(|error| {
            source_trouble("compare")(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        if stop.is_due() {
            return Err(Trouble::Source(Refusal::interrupted("compare")));
        }
        Ok(difference.is_none())
    }
}

/// What bears the name in the target; `None`: nothing.
pub(super) fn in_the_way(entry: Entry<'_>) -> Result<Option<Stat>, Trouble> {
    match rustix::fs::statat(entry.pair.target(), entry.target, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(target("examine")(errno)),
    }
}

/// A source that is its own target loses nothing.
pub(super) fn refuse_itself(found: &Stat, source: &Stat) -> Result<(), Trouble> {
    if identity(found) == identity(source) {
        return Err(refused(OVERWRITE, SAME_FILE));
    }
    Ok(())
}

/// Refuses what a regular file may not take the place of, under whichever of its names it comes:
/// the source itself, a directory, what is written to and not replaced; a symlink that leads to one
/// of these, or nowhere. As cp, which follows the symlink.
pub(super) fn refuse_obstacle(
    entry: Entry<'_>,
    source: &Stat,
    found: &Stat,
) -> Result<(), Trouble> {
    refuse_itself(found, source)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => {
            match rustix::fs::statat(entry.pair.target(), entry.target, AtFlags::empty()) {
                Err(Errno::NOENT) => Err(refused("write through", "it is a dangling symlink")),
                Err(errno) => Err(target("follow")(errno)),
                Ok(behind) if FileType::from_raw_mode(behind.st_mode).is_dir() => {
                    let reason = "it is a symlink to a directory, the source is none";
                    Err(refused(OVERWRITE, reason))
                }
                Ok(behind) => refuse_itself(&behind, source),
            }
        }
        FileType::Directory => Err(refused(OVERWRITE, DIRECTORY_OVER)),
        _ => Err(refused(OVERWRITE, "it is a pipe, socket or device, the source is a file")),
    }
}

pub(super) fn refused(operation: &'static str, reason: &'static str) -> Trouble {
    Trouble::Target(Refusal::because(operation, reason))
}
