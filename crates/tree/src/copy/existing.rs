//! What bears the name of a copy already, and whether it may go.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::compare::content::{Comparer, Pair};

use super::directory::identity;
use super::entry::{Entry, Trouble, source as source_trouble, target};
use super::failure::Refusal;
use super::lane::Lane;
use super::options::{Preserve, Unchanged};

const SECTOR_BYTES: u64 = 512;

/// What is to be done about an entry that is in the way of a regular file.
pub(super) enum Existing {
    /// It is done already.
    Unchanged(Stat),
    /// It makes room when the new one is complete.
    Replace,
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
        let found = match in_the_way(entry)? {
            Some(found) => found,
            None => return Ok(Existing::Gone),
        };
        refuse_itself(&found, source)?;
        match FileType::from_raw_mode(found.st_mode) {
            // Another name of something else: it would be changed, too, and is no copy of ours.
            FileType::RegularFile if self.is_foreign_link(source, &found) => Ok(Existing::Replace),
            FileType::RegularFile if self.is_unchanged(entry, file, source, &found)? => {
                Ok(Existing::Unchanged(found))
            }
            FileType::RegularFile => Ok(Existing::Replace),
            FileType::Symlink => {
                // It is replaced, never followed; but what dangles was meant for something, and cp
                // does not touch it either.
                match rustix::fs::statat(entry.pair.target(), entry.target, AtFlags::empty()) {
                    Err(Errno::NOENT) => Err(refused("write through", "it is a dangling symlink")),
                    _ => Ok(Existing::Replace),
                }
            }
            FileType::Directory => {
                Err(refused("overwrite", "it is a directory, the source is none"))
            }
            _ => Err(refused("overwrite", "it is a pipe, socket or device, the source is a file")),
        }
    }

    /// Whether a file has several names where its source has one, and that matters.
    pub(super) fn is_foreign_link(&self, source: &Stat, found: &Stat) -> bool {
        self.copy.options.preserve.has(Preserve::LINKS)
            && found.st_nlink > 1
            && source.st_nlink == 1
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
        match self.copy.options.unchanged {
            Unchanged::Never => Ok(false),
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
        return Err(refused("overwrite", "it is the same file as the source"));
    }
    Ok(())
}

pub(super) fn refused(operation: &'static str, reason: &'static str) -> Trouble {
    Trouble::Target(Refusal::because(operation, reason))
}
