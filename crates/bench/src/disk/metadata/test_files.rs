//! What the trials of a run share: the place, and the file_sets that earlier trials left.

use std::cell::{Cell, RefCell};
use std::path::Path;

use flatout_measure::{TrialError, Warning, warning};
use flatout_sys::{Filesystem, filesystem};
use rustix::io::Errno;

use super::file_set::{FileSet, Name};
use super::row::{Directories, Test};
use super::test_directory::{TestDirectory, create};
use super::{MetadataOptions, room};
use crate::place::spread_directories;
use crate::{Error, IoError, go_on};

/// What fsync(2) says of a directory where the filesystem has no such thing.
const CANNOT_SYNC_DIRECTORIES: [Errno; 4] =
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::BADF];

/// The directory of a run, and its file_sets.
pub(super) struct TestFiles<'a> {
    pub(super) options: &'a MetadataOptions,
    pub(super) filesystem: Filesystem,
    place: TestDirectory,
    inodes_made: Cell<u64>,
    /// What earlier trials left for others, by the test that takes it: what is looked at never changes,
    /// and is that of the stat rows.
    kept: RefCell<Vec<(Test, FileSet)>>,
}

impl<'a> TestFiles<'a> {
    /// Makes the place.
    ///
    /// Errors: the directory is not there or cannot be written to.
    pub(super) fn make(options: &'a MetadataOptions) -> Result<Self, Error> {
        let place = TestDirectory::make(&options.directory)?;
        spread_directories(place.descriptor());
        let filesystem = filesystem::of(place.descriptor())
            .map_err(IoError::system("examine", &options.directory))?;
        Ok(Self { options, filesystem, place, inodes_made: Cell::new(0), kept: RefCell::default() })
    }

    /// Removes everything.
    ///
    /// Errors: the first thing that could not be removed.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.place.finish()
    }

    /// The fewer of the sets that wait to be unlinked, of both ways of spreading.
    pub(super) fn least_left(&self) -> usize {
        let kept = self.kept.borrow();
        let left = |spread| {
            kept.iter().filter(|(of, set)| *of == Test::Unlink && set.spread == spread).count()
        };
        Directories::ALL.map(left).into_iter().min().unwrap_or(0)
    }

    /// Files for a trial of `test`: none yet for those that create.
    pub(super) fn take(&self, test: Test, spread: Directories) -> Result<FileSet, TrialError> {
        let wanted = match test {
            Test::Create | Test::Fsync => return self.fresh(test, spread),
            Test::OpenClose | Test::Readdir => Test::Stat,
            Test::Stat | Test::Rename | Test::Unlink => test,
        };
        let mut kept = self.kept.borrow_mut();
        let found = kept.iter().rposition(|(of, set)| *of == wanted && set.spread == spread);
        match found {
            Some(index) => Ok(kept.remove(index).1),
            None => self.populated(test, spread),
        }
    }

    /// Keeps the files of a trial that went well for those that can use them.
    pub(super) fn give_back(&self, test: Test, set: FileSet) {
        let next = match test {
            Test::Create => Test::Unlink,
            Test::OpenClose | Test::Readdir => Test::Stat,
            Test::Stat | Test::Rename => test,
            Test::Fsync | Test::Unlink => return,
        };
        self.kept.borrow_mut().push((next, set));
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
        if inodes > room::Needs::of(self.options).inodes {
            let text = "more trials had to be repeated than files were announced for";
            return Err(TrialError::NoMore(Warning::new(warning::WRITE_LIMIT, text)));
        }
        self.inodes_made.set(inodes);
        FileSet::make(&self.place, files, directories, spread)
            .map_err(|errno| failure(self.options, errno, "make directories in", self.place.path()))
    }

    /// Directories with files, made outside the clock.
    fn populated(&self, test: Test, spread: Directories) -> Result<FileSet, TrialError> {
        let mut file_set = self.fresh(test, spread)?;
        let failed = |errno| failure(self.options, errno, "create files in", &file_set.path);
        let share = file_set.share(0, 1, None, |_| true).map_err(failed)?;
        for item in &share.items {
            go_on(self.options.cancel)?;
            create(share.directory(item), &item.name).map_err(failed)?;
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
    let text = IoError::system(verb, path)(errno).to_string();
    if errno == Errno::MFILE { TrialError::Unsupported(text) } else { TrialError::Failed(text) }
}
