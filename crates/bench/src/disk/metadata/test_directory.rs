//! The directory below which all names of a run lie: made fresh, reached by descriptor, removed.
//! It is locked as long as its run lives: what is not is left over from one that was killed, and goes.
//!
//! Only names that flatout gives are removed. If somebody else put something in there, it
//! cannot be removed, and that becomes an error.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir};
use rustix::io::{Errno, retry_on_intr};

use crate::place::remove_entry;
use crate::{Error, IoError};

/// First letters of all names in the directory.
const NAMES: [&[u8]; 3] = [b"set-", b"d-", b"file-"];
/// Bytes that getdents64 may fill at a time; the C library's size.
const LISTING_BYTES: usize = 32 << 10;

/// What getdents64 fills.
pub(crate) type Listing = [MaybeUninit<u8>; LISTING_BYTES];
/// An empty one.
pub(crate) const fn no_listing() -> Listing {
    [MaybeUninit::uninit(); LISTING_BYTES]
}

/// What the names of such directories begin with; two numbers follow.
const PREFIX: &str = ".flatout-";
/// Times that a directory is made which others remove at once.
const TRIES: u32 = 16;

const OWNER_ONLY: Mode = Mode::from_raw_mode(0o700);

/// How directories are opened: never through a symbolic link.
pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A fresh directory. [`TestDirectory::finish`] removes it with all that flatout put into it.
pub(crate) struct TestDirectory {
    parent: OwnedFd,
    own: OwnedFd,
    name: CString,
    path: PathBuf,
    is_removed: bool,
}

/// A name that flatout gives.
pub(crate) fn c_string(name: impl Into<Vec<u8>>) -> CString {
    CString::new(name).expect("letters, digits and dashes hold no zero byte")
}

impl TestDirectory {
    /// Makes a directory of a name that nobody has, in `directory`. Removes those of runs that are
    /// gone; what cannot be removed is no hindrance.
    ///
    /// Errors: `directory` cannot be opened or written to.
    pub(crate) fn make(directory: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(directory, flags, Mode::empty())
            .map_err(IoError::system("open the directory", directory))?;
        let _unread = remove_leftovers(parent.as_fd());
        for _ in 0..TRIES {
            // Nobody has this name: a process does not live twice at a time.
            let now_ns = flatout_sys::clock::monotonic_ns();
            let text = format!("{PREFIX}{}-{now_ns}", std::process::id());
            let name = c_string(text.as_str());
            let made = rustix::fs::mkdirat(&parent, &name, OWNER_ONLY);
            let own = made.and_then(|()| open_empty(parent.as_fd(), &name));
            match own.and_then(|own| Ok(is_ours(parent.as_fd(), &name, &own)?.then_some(own))) {
                Ok(Some(own)) => {
                    let path = directory.join(text);
                    return Ok(Self { parent, own, name, path, is_removed: false });
                }
                // Somebody who looked for leftovers came before the lock.
                Ok(None) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    return Err(IoError::system("make a directory in", directory)(errno).into());
                }
            }
        }
        Err(IoError::system("make a directory in", directory)(Errno::NOENT).into())
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// For messages; nothing is opened by it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes all that flatout put into it.
    ///
    /// Errors: what could not be removed first.
    pub(crate) fn empty(&self) -> Result<(), Error> {
        Ok(empty(self.own.as_fd()).map_err(IoError::system("empty", &self.path))?)
    }

    /// Removes the directory and all that flatout put into it.
    ///
    /// Errors: what could not be removed first; as much as possible is gone nevertheless.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.is_removed = true;
        Ok(self.remove().map_err(IoError::system("remove", &self.path))?)
    }

    fn remove(&self) -> io::Result<()> {
        let emptied = empty(self.own.as_fd());
        let removed =
            retry_on_intr(|| rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR));
        // What stopped the emptying says more than "not empty".
        removed.map_err(|errno| emptied.err().unwrap_or(errno.into()))
    }
}

impl Drop for TestDirectory {
    /// For panics only: everybody else calls [`TestDirectory::finish`] and reads what it says.
    fn drop(&mut self) {
        if !self.is_removed {
            let _unread = self.remove();
        }
    }
}

/// Locks the directory that was just made; false where it is gone meanwhile. Where there are no
/// locks nobody takes it for a leftover.
fn is_ours(parent: BorrowedFd<'_>, name: &CStr, own: &OwnedFd) -> Result<bool, Errno> {
    // Whoever has the lock now only looks whether there is anything left over.
    let _unread = retry_on_intr(|| rustix::fs::flock(own, FlockOperation::LockExclusive));
    let here = rustix::fs::fstat(own)?;
    let named = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((here.st_dev, here.st_ino) == (named.st_dev, named.st_ino))
}

/// Removes the directories of runs that are gone, as far as flatout has put something into them.
///
/// Errors: the directory cannot be listed.
fn remove_leftovers(parent: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut names = Vec::new();
    // The position of `parent` is that of whoever opened it.
    let listed = rustix::fs::openat(parent, c".", DIRECTORY, Mode::empty())?;
    each_entry(listed.as_fd(), &mut no_listing(), |name| {
        names.extend(is_a_runs(name).then(|| name.to_owned()));
    })?;
    for name in names {
        let Ok(left) = rustix::fs::openat(parent, &name, DIRECTORY, Mode::empty()) else {
            continue;
        };
        let owner = rustix::fs::fstat(&left).map(|facts| facts.st_uid);
        if owner != Ok(rustix::process::geteuid().as_raw())
            || rustix::fs::flock(&left, FlockOperation::NonBlockingLockExclusive).is_err()
        {
            continue;
        }
        if empty(left.as_fd()).is_ok() {
            let _unread = rustix::fs::unlinkat(parent, &name, AtFlags::REMOVEDIR);
        }
    }
    Ok(())
}

/// Removes what runs that are gone left in `directory`; what cannot be removed stays.
pub(crate) fn remove_abandoned(directory: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(parent) = rustix::fs::open(directory, flags, Mode::empty()) {
        let _the_next_run_does = remove_leftovers(parent.as_fd());
    }
}

/// Whether a name is one that a run gives: the prefix, and two numbers.
fn is_a_runs(name: &CStr) -> bool {
    let numbers = name.to_str().ok().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, time)| is_number(process) && is_number(time))
}

/// Opens the directory that was just made. One with something in it is not ours: somebody put it
/// there in between.
fn open_empty(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let own = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    let mut is_empty = true;
    each_entry(own.as_fd(), &mut no_listing(), |_| is_empty = false)?;
    if is_empty { Ok(own) } else { Err(Errno::NOTEMPTY) }
}

/// Makes the directory `name` and opens it.
pub(crate) fn make_directory(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    rustix::fs::mkdirat(parent, name, OWNER_ONLY)?;
    rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
}

/// Makes a file. What close(2) says of an empty one is not heard; there is nothing in it to lose.
pub(super) fn create(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Calls `each` with the names of all entries but `.` and `..`.
pub(crate) fn each_entry(
    directory: BorrowedFd<'_>,
    buffer: &mut Listing,
    mut each: impl FnMut(&CStr),
) -> Result<(), Errno> {
    let mut entries = RawDir::new(directory, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            each(entry.file_name());
        }
    }
    Ok(())
}

/// Removes what flatout made in `directory`, and goes on after an error; the first is returned.
fn empty(directory: BorrowedFd<'_>) -> io::Result<()> {
    let mut names = Vec::new();
    rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(0))?;
    each_entry(directory, &mut no_listing(), |name| {
        let is_ours = NAMES.iter().any(|known| name.to_bytes().starts_with(known));
        names.extend(is_ours.then(|| name.to_owned()));
    })?;
    let removed = names.iter().map(|name| remove_entry(directory, name.as_c_str()));
    removed.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_a_killed_run_left_goes_and_what_is_in_use_or_not_ours_stays() {
        let place = tempfile::tempdir().unwrap();
        let used = TestDirectory::make(place.path()).unwrap();
        let left = place.path().join(".flatout-4711-99");
        fs::create_dir_all(left.join("set-0/d-1")).unwrap();
        fs::write(left.join("set-0/d-1/file-7"), "").unwrap();
        let others = [".flatout-4711-x", ".flatout-versus", ".flatout-5-6/mine"];
        others.iter().for_each(|name| fs::create_dir_all(place.path().join(name)).unwrap());
        let next = TestDirectory::make(place.path()).unwrap();
        assert!(!left.exists() && used.path().exists() && next.path().exists());
        assert!(others.iter().all(|name| place.path().join(name).exists()));
        used.finish().unwrap();
        next.finish().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), others.len());
    }
}
