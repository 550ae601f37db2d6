//! What the trials of a run share: the place, and the plots that earlier trials left.

use std::cell::{Cell, RefCell};
use std::path::Path;

use flatout_io::Error as IoError;
use flatout_measure::case::TrialError;
use flatout_sys::filesystem::{self, Filesystem};
use rustix::io::Errno;

use super::operation;
use super::place::Place;
use super::plot::{Layout, Name, Order, Plot};
use super::row::{Directories, Test};
use super::{Options, room};
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

/// Place and plots.
pub(super) struct Site<'a> {
    pub(super) options: &'a Options,
    pub(super) filesystem: Filesystem,
    place: Place,
    plots_made: Cell<u32>,
    inodes_made: Cell<u64>,
    /// Files that are looked at and never change.
    standing: Both<RefCell<Option<Plot>>>,
    /// Files that are renamed to and fro.
    moving: Both<RefCell<Option<Plot>>>,
    /// What the create rows left for the unlink rows.
    created: Both<RefCell<Vec<Plot>>>,
}

impl<'a> Site<'a> {
    /// Makes the place.
    ///
    /// Errors: the directory is not there or cannot be written to.
    pub(super) fn make(options: &'a Options) -> Result<Self, Error> {
        let place = Place::make(&options.directory)?;
        let filesystem = filesystem::of(place.descriptor())
            .map_err(IoError::system("examine", &options.directory))?;
        Ok(Self {
            options,
            filesystem,
            place,
            plots_made: Cell::new(0),
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

    /// The fewer of the plots that wait to be unlinked, of both ways of spreading.
    pub(super) fn least_left(&self) -> usize {
        self.created.one.borrow().len().min(self.created.many.borrow().len())
    }

    /// Files for a trial of `test`: none yet for those that create.
    pub(super) fn take(&self, test: Test, spread: Directories) -> Result<Plot, TrialError> {
        let kept = match test {
            Test::Create | Test::Fsync => return self.fresh(test, spread),
            Test::Stat | Test::OpenClose | Test::Readdir => self.standing.of(spread).take(),
            Test::Rename => self.moving.of(spread).take(),
            Test::Unlink => self.created.of(spread).borrow_mut().pop(),
        };
        match kept {
            Some(plot) => Ok(plot),
            None => self.populated(test, spread),
        }
    }

    /// Keeps the plot of a trial that went well for those that can use it.
    pub(super) fn give_back(&self, test: Test, plot: Plot) {
        let spread = plot.spread;
        match test {
            Test::Create => self.created.of(spread).borrow_mut().push(plot),
            Test::Stat | Test::OpenClose | Test::Readdir => {
                self.standing.of(spread).replace(Some(plot));
            }
            Test::Rename => {
                self.moving.of(spread).replace(Some(plot));
            }
            Test::Fsync | Test::Unlink => {}
        }
    }

    /// Writes back what earlier trials left in the journal, so that it is not this one that pays.
    pub(super) fn settle(&self, plot: &Plot) -> Result<(), TrialError> {
        let settled = plot.first_directory().and_then(|directory| rustix::fs::fsync(&directory));
        match settled {
            Err(errno) if !CANNOT_SYNC_DIRECTORIES.contains(&errno) => {
                Err(failure(self.options, errno, "sync", &plot.path))
            }
            _ => Ok(()),
        }
    }

    /// Directories without files.
    fn fresh(&self, test: Test, spread: Directories) -> Result<Plot, TrialError> {
        let files = room::files_of(test, self.options);
        let directories = spread.count(self.options);
        let inodes = self.inodes_made.get() + room::inodes_of_plot(files, directories);
        if inodes > room::inodes(self.options) {
            let text = "more trials had to be repeated than files were announced for";
            return Err(TrialError::Failed(text.to_owned()));
        }
        self.inodes_made.set(inodes);
        let number = self.plots_made.get();
        self.plots_made.set(number + 1);
        Plot::make(&self.place, Layout { number, files, directories, spread })
            .map_err(|errno| failure(self.options, errno, "make directories in", self.place.path()))
    }

    /// Directories with files, made outside the clock.
    fn populated(&self, test: Test, spread: Directories) -> Result<Plot, TrialError> {
        let mut plot = self.fresh(test, spread)?;
        let failed = |errno| failure(self.options, errno, "create files in", &plot.path);
        let share = plot.share(0, 1, Order::Ascending, |_| true).map_err(failed)?;
        for item in &share.items {
            if self.options.cancel.is_cancelled() {
                return Err(TrialError::Interrupted);
            }
            operation::create(share.directory(item), &item.name).map_err(failed)?;
        }
        plot.files.fill(Name::First);
        Ok(plot)
    }
}

/// The kernel's answer in one line. An interrupted call of a user who stops is no failure.
pub(super) fn failure(
    options: &Options,
    errno: Errno,
    verb: &'static str,
    path: &Path,
) -> TrialError {
    if errno == Errno::INTR && options.cancel.is_cancelled() {
        return TrialError::Interrupted;
    }
    TrialError::Failed(IoError::system(verb, path)(errno).to_string())
}
