//! A file that is opened to be digested, and what is said where that fails.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use flatout_io::Error as IoError;
use flatout_sys::filesystem;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Failure;
use crate::file_data::{Moment, kind_of, wait_for_a_write};

/// A file that is open.
pub(super) struct Opened {
    pub(super) file: OwnedFd,
    pub(super) facts: Stat,
}

/// Opens a file without waiting for anybody, and looks at what it is.
pub(super) fn open(directory: impl AsFd, name: &OsStr, extra: OFlags) -> Result<Opened, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK | extra;
    let moment = Moment::now();
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let facts = rustix::fs::fstat(&file)?;
    match kind_of(facts) {
        FileType::Directory => Err(Errno::ISDIR),
        // A tree was walked: a name that became something else since is not what was meant.
        kind if extra.contains(OFlags::NOFOLLOW) && kind != FileType::RegularFile => {
            Err(Errno::OPNOTSUPP)
        }
        kind => {
            if kind.is_file() {
                wait_for_a_write(&file, &facts, moment);
            }
            Ok(Opened { file, facts })
        }
    }
}

/// Whether it is a FIFO in a directory, not a pipe that some program has given us (`/dev/stdin`).
pub(super) fn is_named_fifo(opened: &Opened) -> bool {
    let home = || filesystem::of(opened.file.as_fd());
    kind_of(opened.facts).is_fifo() && !home().is_ok_and(|home| home.name == "pipefs")
}

pub(super) fn cannot(
    operation: &'static str,
    shown: &OsStr,
    cause: impl Into<std::io::Error>,
) -> Failure {
    Failure::System { operation, shown: shown.to_owned(), source: cause.into() }
}

pub(super) fn io_failure(shown: &OsStr) -> impl FnOnce(IoError) -> Failure {
    let shown = shown.to_owned();
    move |error| match error {
        IoError::System { operation, source, .. } => cannot(operation, &shown, source),
        IoError::Truncated { .. } => Failure::Changed { shown },
        IoError::Refused { operation, reason, .. } => {
            cannot(operation, &shown, std::io::Error::other(reason))
        }
    }
}
