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

use super::failure::Refusal;

/// How the names begin.
const PREFIX: &[u8] = b".flatout-copy-";
/// A name that is taken, or taken away by somebody who cleans up, is tried again so often.
const ATTEMPTS: u32 = 16;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

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
            let made = rustix::fs::openat(directory, &name, flags | OFlags::CLOEXEC, PRIVATE);
            let file = match made {
                Ok(file) => file,
                Err(Errno::EXIST | Errno::INTR) => continue,
                Err(errno) => return Err(refused(errno)),
            };
            // Somebody who cleans up may have come between, and be about to take it away.
            // Where there are no locks, nobody can tell that it is alive; it is not removed there
            // either, because the same question is asked.
            let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
            if locked == Err(Errno::WOULDBLOCK) {
                continue;
            }
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
            make(&name).inspect_err(|_| {
                let _gone = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
            })?;
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

/// Whether a name has the very form of ours: three numbers after the prefix.
pub(super) fn is_temporary(name: &CStr) -> bool {
    let Some(numbers) = name.to_bytes().strip_prefix(PREFIX) else { return false };
    let mut parts = numbers.split(|&byte| byte == b'-');
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|part| {
            let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            (1..=16).contains(&part.len()) && part.iter().all(is_digit)
        })
    };
    is_number(parts.next())
        && is_number(parts.next())
        && is_number(parts.next())
        && parts.next().is_none()
}

/// Removes what a copy left that is gone: an unfinished file that nobody holds locked, another name
/// of a file, or something without content. What cannot be removed stays.
pub(super) fn remove_leftover(directory: BorrowedFd<'_>, name: &CStr) {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let Ok(facts) = rustix::fs::statat(directory, name, flags) else { return };
    let kind = FileType::from_raw_mode(facts.st_mode);
    let user = rustix::process::geteuid();
    if kind.is_dir() || !user.is_root() && facts.st_uid != user.as_raw() {
        return;
    }
    // Its mode says nothing: a copy may have been killed between the mode and the proper name.
    if kind.is_file() && facts.st_nlink < 2 {
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
        remove_leftover(directory.as_fd(), &name);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_ok());
        drop(file);
        remove_leftover(directory.as_fd(), &name);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_err());
    }

    #[test]
    fn names_of_others_are_not_ours() {
        for name in [c".flatout-copy-notes.txt", c".flatout-copy-1-2", c".flatout-copy-1-2-3-4"] {
            assert!(!is_temporary(name), "{name:?}");
        }
        assert!(is_temporary(c".flatout-copy-1a-2b-0"));
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
    fn what_lacked_nothing_but_its_name_goes_too() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let (file, name) = Temporaries::default().file(directory.as_fd()).unwrap();
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644)).unwrap();
        drop(file);
        remove_leftover(directory.as_fd(), &name);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_err());
    }

    #[test]
    fn a_link_to_the_same_file_leaves_no_second_name() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        std::fs::write(place.path().join("a"), "x").unwrap();
        let at = directory.as_fd();
        Temporaries::default()
            .replace(at, c"a", |name| {
                rustix::fs::linkat(at, c"a", at, name, AtFlags::empty())
                    .map_err(Refusal::of("link"))
            })
            .unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
