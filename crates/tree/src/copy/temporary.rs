//! Names under which files stand until they are complete.
//!
//! A file that will replace another, or that must not appear before it is whole, is made under a
//! name of its own and locked (flock(2)) as long as its maker lives. Whoever comes later removes
//! what bears such a name and is not locked.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_sys::clock::monotonic_ns;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::failure::{Cause, Refusal};

/// How the names begin.
const PREFIX: &[u8] = b".flatout-copy-";
/// A name that is taken, or taken away by somebody who cleans up, is tried again so often.
const ATTEMPTS: u32 = 16;

/// Makes names that nobody else has.
#[derive(Debug, Default)]
pub(super) struct Temporaries {
    made: AtomicU64,
}

impl Temporaries {
    /// A name that is hardly taken.
    pub(super) fn name(&self) -> CString {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let process = u64::from(std::process::id());
        let moment = monotonic_ns();
        let name = format!("{process:x}-{moment:x}-{number:x}");
        CString::new([PREFIX, name.as_bytes()].concat()).expect("hexadecimal digits")
    }

    /// A new file, locked, that only we can read.
    ///
    /// Errors: those of openat(2).
    pub(super) fn file(&self, directory: BorrowedFd<'_>) -> Result<(OwnedFd, CString), Refusal> {
        let refused = Refusal::of("create a temporary file beside");
        for _ in 0..ATTEMPTS {
            let name = self.name();
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let mode = Mode::RUSR | Mode::WUSR;
            let made = rustix::fs::openat(directory, &name, flags | OFlags::CLOEXEC, mode);
            let file = match made {
                Ok(file) => file,
                Err(Errno::EXIST | Errno::INTR) => continue,
                Err(errno) => return Err(refused(errno)),
            };
            // Where there are no locks, nobody can tell that it is alive; it is not removed there
            // either, because the same question is asked.
            let _unlockable = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
            // Somebody who cleans up may have come between.
            match rustix::fs::fstat(&file) {
                Ok(facts) if facts.st_nlink == 0 => {}
                _ => return Ok((file, name)),
            }
        }
        Err(refused(Errno::EXIST))
    }

    /// Makes something under a name of its own and moves it to `target`, over what is there.
    ///
    /// Errors: those of `make` and of renameat(2).
    pub(super) fn replace(
        &self,
        directory: BorrowedFd<'_>,
        target: &CStr,
        mut make: impl FnMut(&CStr) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut last = Errno::EXIST;
        for _ in 0..ATTEMPTS {
            let name = self.name();
            if let Err(refusal) = make(&name) {
                // It may have come into being before it was refused, but what was there is not ours.
                if refusal.cause != Cause::System(Errno::EXIST) {
                    let _gone = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
                }
                return Err(refusal);
            }
            match rustix::fs::renameat(directory, &name, directory, target) {
                Ok(()) => {
                    // Two names of one file: then the kernel renames nothing.
                    let _gone = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
                    return Ok(());
                }
                Err(Errno::NOENT) => last = Errno::NOENT,
                Err(errno) => {
                    let _gone = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
                    return Err(Refusal::of("replace")(errno));
                }
            }
        }
        Err(Refusal::of("replace")(last))
    }
}

/// Whether a name is one of ours.
pub(super) fn is_temporary(name: &CStr) -> bool {
    name.to_bytes().starts_with(PREFIX)
}

/// Removes what a copy left that is gone: a file that nobody holds locked, or something without
/// content. What cannot be removed stays.
pub(super) fn remove_leftover(directory: BorrowedFd<'_>, name: &CStr, kind: FileType) {
    if kind.is_dir() {
        return;
    }
    if kind.is_file() {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let _stays = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        return;
    }
    let _stays = rustix::fs::unlinkat(directory, name, AtFlags::empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_locked_stays_and_what_is_not_goes() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let temporaries = Temporaries::default();
        let (file, name) = temporaries.file(directory.as_fd()).unwrap();
        assert!(is_temporary(&name));
        remove_leftover(directory.as_fd(), &name, FileType::RegularFile);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_ok());
        drop(file);
        remove_leftover(directory.as_fd(), &name, FileType::RegularFile);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_err());
    }

    #[test]
    fn what_was_made_and_then_refused_leaves_no_name() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let at = directory.as_fd();
        let refused = Refusal::of("set the times of")(Errno::IO);
        let replaced = Temporaries::default().replace(at, c"a", |name| {
            rustix::fs::symlinkat(c"nowhere", at, name).unwrap();
            Err(refused.clone())
        });
        assert_eq!(replaced, Err(refused));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_to_the_same_file_leaves_no_second_name() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        std::fs::write(place.path().join("a"), "x").unwrap();
        let at = directory.as_fd();
        Temporaries::default()
            .replace(at, c"a", |name| {
                rustix::fs::linkat(at, c"a", at, name, AtFlags::empty()).map_err(Refusal::of("link"))
            })
            .unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
