//! What the trials of a run share: the place, and the file_sets that earlier trials left.

use std::cell::{Cell, RefCell};
use std::path::Path;

use flatout_io::Error as IoError;
use flatout_measure::case::TrialError;
use flatout_sys::filesystem::{self, Filesystem};
use rustix::io::Errno;

use super::file_set::{FileSet, Layout, Name, Order};
use super::operation;
use super::row::{Directories, Test};
use super::test_directory::TestDirectory;
use super::{MetadataOptions, room};
use crate::error::Error;

/// What fsync(2) says of a directory where the filesystem has no such thing.
const CANNOT_SYNC_DIRECTORIES: [Errno; 4] =
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::BADF];

/// One of something for each way of spreading files.
#[derive(Debug, Default)]
struct Both<T> {
    one: T,
    many: T,
}

impl<T> Both<T> {
    fn of(&self, spread: Directories) -> &T {
        match spread {
            Directories::One => &self.one,
            Directories::Many => &self.many,
        }
    }
}

/// TestDirectory and file_sets.
pub(super) struct TestFiles<'a> {
    pub(super) options: &'a MetadataOptions,
    pub(super) filesystem: Filesystem,
    place: TestDirectory,
    sets_made: Cell<u32>,
    inodes_made: Cell<u64>,
    /// Files that are looked at and never change.
    standing: Both<RefCell<Option<FileSet>>>,
    /// Files that are renamed to and fro.
    moving: Both<RefCell<Option<FileSet>>>,
    /// What the create rows left for the unlink rows.
    created: Both<RefCell<Vec<FileSet>>>,
}

impl<'a> TestFiles<'a> {
    /// Makes the place.
    ///
    /// Errors: the directory is not there or cannot be written to.
    pub(super) fn make(options: &'a MetadataOptions) -> Result<Self, Error> {
        let place = TestDirectory::make(&options.directory)?;
        let filesystem = filesystem::of(place.descriptor())
            .map_err(IoError::system("examine", &options.directory))?;
        Ok(Self {
            options,
            filesystem,
            place,
            sets_made: Cell::new(0),
            inodes_made: Cell::new(0),
            standing: Both::default(),
            moving: Both::default(),
            created: Both::default(),
        })
    }

    /// Removes everything.
    ///
    /// Errors: the first thing that could not be removed.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.place.finish()
    }

    /// The fewer of the file_sets that wait to be unlinked, of both ways of spreading.
    pub(super) fn least_left(&self) -> usize {
        self.created.one.borrow().len().min(self.created.many.borrow().len())
    }

    /// Files for a trial of `test`: none yet for those that create.
    pub(super) fn take(&self, test: Test, spread: Directories) -> Result<FileSet, TrialError> {
        let kept = match test {
            Test::Create | Test::Fsync => return self.fresh(test, spread),
            Test::Stat | Test::OpenClose | Test::Readdir => self.standing.of(spread).take(),
            Test::Rename => self.moving.of(spread).take(),
            Test::Unlink => self.created.of(spread).borrow_mut().pop(),
        };
        match kept {
            Some(file_set) => Ok(file_set),
            None => self.populated(test, spread),
        }
    }

    /// Keeps the file_set of a trial that went well for those that can use it.
    pub(super) fn give_back(&self, test: Test, file_set: FileSet) {
        let spread = file_set.spread;
        match test {
            Test::Create => self.created.of(spread).borrow_mut().push(file_set),
            Test::Stat | Test::OpenClose | Test::Readdir => {
                self.standing.of(spread).replace(Some(file_set));
            }
            Test::Rename => {
                self.moving.of(spread).replace(Some(file_set));
            }
            Test::Fsync | Test::Unlink => {}
        }
    }

    /// Writes back what earlier trials left in the journal, so that it is not this one that pays.
    pub(super) fn settle(&self, file_set: &FileSet) -> Result<(), TrialError> {
        let settled =
            file_set.first_directory().and_then(|directory| rustix::fs::fsync(&directory));
        match settled {
            Err(errno) if !CANNOT_SYNC_DIRECTORIES.contains(&errno) => {
                Err(failure(self.options, errno, "sync", &file_set.path))
            }
            _ => Ok(()),
        }
    }

    /// Directories without files.
    fn fresh(&self, test: Test, spread: Directories) -> Result<FileSet, TrialError> {
        let files = room::files_of(test, self.options);
        let directories = spread.count(self.options);
        let inodes = self.inodes_made.get() + room::inodes_of_set(files, directories);
        if inodes > room::inodes(self.options) {
            let text = "more trials had to be repeated than files were announced for";
            return Err(TrialError::Failed(text.to_owned()));
        }
        self.inodes_made.set(inodes);
        let number = self.sets_made.get();
        self.sets_made.set(number + 1);
        FileSet::make(&self.place, Layout { number, files, directories, spread })
            .map_err(|errno| failure(self.options, errno, "make directories in", self.place.path()))
    }

    /// Directories with files, made outside the clock.
    fn populated(&self, test: Test, spread: Directories) -> Result<FileSet, TrialError> {
        let mut file_set = self.fresh(test, spread)?;
        let failed = |errno| failure(self.options, errno, "create files in", &file_set.path);
        let share = file_set.share(0, 1, Order::Ascending, |_| true).map_err(failed)?;
        for item in &share.items {
            if self.options.cancel.is_cancelled() {
                return Err(TrialError::Interrupted);
            }
            operation::create(share.directory(item), &item.name).map_err(failed)?;
        }
        file_set.files.fill(Name::First);
        Ok(file_set)
    }
}

/// The kernel's answer in one line. An interrupted call of a user who stops is no failure.
pub(super) fn failure(
    options: &MetadataOptions,
    errno: Errno,
    verb: &'static str,
    path: &Path,
) -> TrialError {
    if errno == Errno::INTR && options.cancel.is_cancelled() {
        return TrialError::Interrupted;
    }
    TrialError::Failed(IoError::system(verb, path)(errno).to_string())
}
