//! Files without a name: where they may be, and how they are written and read.
//!
//! Nobody can open such a file, and nothing of it is left behind, even after SIGKILL. (Where
//! `O_TMPFILE` is not known, it has a name between two system calls.)

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use flatout_io::transfer::{read_full, write_all};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::copy::failure::Refusal;
use crate::file_data;

/// Asked in this order after `$TMPDIR`. `/tmp` is the last one,
/// for it is often in memory.
const FOLDERS: [&str; 2] = ["/var/tmp", "/tmp"];
/// Names that are tried in a folder where a file needs one for a moment.
const ATTEMPTS: u32 = 100;

const MAKE: &str = "make a temporary file for";
const WRITE: &str = "write the temporary file for";
pub(super) const READ: &str = "read the temporary file for";

/// Makes a file in a directory, which is not changed by that. `O_EXCL` says that it shall never get a name.
///
/// # Errors
///
/// Those of the kernel; `O_TMPFILE` is not known.
pub(crate) fn without_a_name(directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(directory, c".", flags, Mode::RUSR | Mode::WUSR)
}

/// Makes a file without a name in `folder`, for its maker to write and read.
///
/// # Errors
///
/// Those of the kernel.
pub fn unnamed_file(folder: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    without_a_name(folder.as_fd()).or_else(|_| named_for_a_moment(folder.as_fd()))
}

/// Where `O_TMPFILE` is not known: made exclusively, so that nothing planted is opened, and
/// unlinked at once.
fn named_for_a_moment(folder: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    for attempt in 0..ATTEMPTS {
        let name = format!(".flatout-spool-{}-{attempt}", std::process::id());
        match rustix::fs::openat(folder, &name, file_data::NEW, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                rustix::fs::unlinkat(folder, &name, AtFlags::empty())?;
                return Ok(file);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

/// A file without a name.
#[derive(Debug)]
pub(crate) struct Unnamed(OwnedFd);

impl Unnamed {
    /// Makes a file in `$TMPDIR`, else in `/var/tmp`, else in `/tmp`.
    ///
    /// Errors: the last answer of the kernel, if it can be made nowhere.
    pub(crate) fn new() -> Result<Self, Refusal> {
        let own = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
        let mut answer = Errno::NOENT;
        for folder in own.into_iter().chain(FOLDERS.map(OsString::from)) {
            match unnamed_file(Path::new(&folder)) {
                Ok(file) => return Ok(Self(file)),
                Err(errno) => answer = errno,
            }
        }
        Err(Refusal::aside(MAKE)(answer))
    }

    /// Writes all `bytes`.
    ///
    /// Errors: the kernel's answer; how much was written is not known then.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        write_all(self.0.as_fd(), bytes, offset).map_err(Refusal::aside(WRITE))
    }

    /// Fills `into`.
    ///
    /// Errors: the kernel's answer, or the file is too short.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        match read_full(self.0.as_fd(), into, offset) {
            Ok(filled) if filled < into.len() => Err(Refusal::because(READ, "it is too short")),
            Ok(_) => Ok(()),
            Err(errno) => Err(Refusal::aside(READ)(errno)),
        }
    }

    /// Says that the file is read here and there. Read ahead, it would lie in the cache in large
    /// folios, and ext4 goes through all blocks of a folio at each small write: 800,000 links in a
    /// table on disk cost 13.6 s in the kernel so, and 4.0 s without (one run each, debug build on a
    /// busy machine with 2 CPUs, Linux 6.18, 2026-11-22).
    pub(crate) fn expect_random_reads(&self) {
        // A hint: where it is not understood, nothing is lost.
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::Random);
    }

    /// Makes the file as long as this; what is new is zero and takes no room.
    ///
    /// Errors: the kernel's answer.
    pub(crate) fn set_length(&self, length_bytes: u64) -> Result<(), Refusal> {
        file_data::set_length(self.0.as_fd(), length_bytes).map_err(Refusal::aside(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_without_a_name_or_with_one_for_a_moment() {
        let place = tempfile::tempdir().unwrap();
        let open = || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(place.path(), flags, Mode::empty()).unwrap()
        };
        let files = [
            Unnamed(without_a_name(open().as_fd()).unwrap()),
            Unnamed::new().unwrap(),
            Unnamed(named_for_a_moment(open().as_fd()).unwrap()),
        ];
        for file in files {
            file.write(3, b"abc").unwrap();
            let mut found = [1; 6];
            file.read(0, &mut found).unwrap();
            assert_eq!(&found, b"\0\0\0abc");
            assert!(file.read(1, &mut found).is_err(), "one byte too many");
            assert_eq!(rustix::fs::fstat(&file.0).unwrap().st_nlink, 0);
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
