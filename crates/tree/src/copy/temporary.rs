//! Names under which files stand until they are complete.
//!
//! A file that will replace another, or that must not appear before it is whole, is made under a
//! name of its own and locked (flock(2)) as long as its maker lives. Whoever comes later removes
//! what bears such a name and is not locked. Under any other name only the very file goes that was made.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_io::unless_interrupted;
use flatout_sys::clock::monotonic_ns;
use rustix::fs::{AtFlags, FlockOperation, RenameFlags, StatxAttributes};
use rustix::io::Errno;

use super::attributes::PRIVATE;
use super::{Identity, Refusal, identity, kind_of};
use crate::file_data::{self, NEW, has_attribute, look};
use crate::lock::lock;

/// How the names begin.
const PREFIX: &str = ".flatout-copy-";
/// How the name begins under which something is looked at before it is removed. Nobody removes what
/// bears such a name: it may be somebody else's.
const ASIDE_PREFIX: &str = ".flatout-aside-";
/// A name that is taken, or taken away by somebody who cleans up, is tried again so often.
const ATTEMPTS: u32 = 16;

/// What a filesystem answers that knows no flags of renameat2(2).
const NO_FLAGS: [Errno; 3] = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];

/// Whether a new file lost its name: it has none, and that is no server's that counts none.
pub(super) fn has_lost_name(file: &OwnedFd, directory: BorrowedFd<'_>, name: &CStr) -> bool {
    let bears = |own| look(directory, name).is_ok_and(|found| identity(&found) == identity(&own));
    rustix::fs::fstat(file).is_ok_and(|own| own.st_nlink == 0 && !bears(own))
}

/// Makes names that nobody else has.
#[derive(Debug, Default)]
pub(super) struct Temporaries {
    made: AtomicU64,
    /// What tells the names of this job of several processes from those of others; 0: it is one.
    job: u64,
    /// What bears such a name for good: its source does, too.
    kept: Mutex<HashSet<Identity>>,
}

impl Temporaries {
    /// Those of several processes, which have this number in common: none of them removes what another
    /// one makes, even where their hosts do not see each other's locks.
    pub(super) fn of_job(job: u64) -> Self {
        Self { job, ..Self::default() }
    }

    /// What this copy has finished stays, though it bears such a name.
    pub(super) fn keep(&self, finished: Identity) {
        lock(&self.kept).insert(finished);
    }

    /// A name that is hardly taken.
    pub(super) fn name(&self) -> CString {
        self.unique(PREFIX)
    }

    fn unique(&self, prefix: &str) -> CString {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let moment = monotonic_ns();
        CString::new(format!("{prefix}{process:x}-{moment:x}-{number:x}"))
            .expect("neither prefixes nor digits have a NUL")
    }

    /// The name under which the file is made that will be called `target`: always the same, so that what
    /// was left of it is found without a listing. `is_listed`: with the number of the job, for a directory
    /// in which leftovers are found by listing it.
    pub(super) fn name_for(&self, target: &CStr, is_listed: bool) -> CString {
        let job = if is_listed { self.job } else { 0 };
        // Two names that meet do no harm: the second one gets another temporary name.
        let number = fnv1a(target.to_bytes().iter().copied());
        CString::new(format!("{PREFIX}{number:x}-{job:x}-0"))
            .expect("neither prefix nor digits have a NUL")
    }

    /// A new file of this name, locked, that only we can read. What a copy left under it that is gone is
    /// removed on the way.
    ///
    /// Cost: statx, openat, flock and fstat.
    /// Errors: those of openat(2); the directory is append-only, where nothing can be removed again.
    pub(super) fn file(
        &self,
        directory: BorrowedFd<'_>,
        mut name: CString,
    ) -> Result<(OwnedFd, CString), Refusal> {
        let refused = Refusal::of("create a temporary file beside");
        // What is made in such a one (chattr(1)) can be neither moved nor removed.
        if has_attribute(directory, StatxAttributes::APPEND) {
            return Err(refused(Errno::PERM));
        }
        for _ in 0..ATTEMPTS {
            let make = || rustix::fs::openat(directory, &name, NEW, PRIVATE);
            let file = match unless_interrupted(make) {
                Ok(file) => file,
                Err(Errno::EXIST) => {
                    if !self.remove_leftover(directory, &name) {
                        name = self.name();
                    }
                    continue;
                }
                Err(errno) => return Err(refused(errno)),
            };
            // Somebody who cleans up may have come between, and be about to take it away.
            // Where there are no locks, nobody can tell that it is alive; it is not removed there
            // either, because the same question is asked.
            let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
            if locked == Err(Errno::WOULDBLOCK) {
                continue;
            }
            if !has_lost_name(&file, directory, &name) {
                return Ok((file, name));
            }
        }
        Err(refused(Errno::EXIST))
    }

    /// Makes something under a name of its own and has `put` move it to `target`; what that leaves under the first
    /// name goes.
    ///
    /// Errors: those of both; the directory is append-only.
    pub(super) fn make_aside(
        &self,
        directory: BorrowedFd<'_>,
        target: &CStr,
        mut make: impl FnMut(&CStr) -> Result<(), Refusal>,
        put: impl Fn(&CStr) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        // What is made in such a one (chattr(1)) can be neither moved nor removed.
        if has_attribute(directory, StatxAttributes::APPEND) {
            return Err(Refusal::of("replace")(Errno::PERM));
        }
        let mut last = Refusal::of("replace")(Errno::EXIST);
        let mut name = self.name_for(target, false);
        for _ in 0..ATTEMPTS {
            let made = make(&name);
            if made.as_ref().is_err_and(|refusal| refusal.errno() == Some(Errno::EXIST)) {
                if !self.remove_leftover(directory, &name) {
                    name = self.name();
                }
                continue;
            }
            let done = made.and_then(|()| put(&name));
            // Of two names of one file the kernel renames none.
            let _gone = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
            match done {
                Err(refusal) if refusal.errno() == Some(Errno::NOENT) => last = refusal,
                done => return done,
            }
        }
        Err(last)
    }

    /// Has something new take the place of what bears a name; returns what that is called now. Where the kernel
    /// cannot exchange two names, it has its own again if nothing takes that.
    pub(super) fn displace(
        &self,
        directory: BorrowedFd<'_>,
        new: &CStr,
        target: &CStr,
    ) -> Result<CString, Errno> {
        let rename = |from: &CStr, to: &CStr| rustix::fs::renameat(directory, from, directory, to);
        let flags = RenameFlags::EXCHANGE;
        match rustix::fs::renameat_with(directory, new, directory, target, flags) {
            Err(Errno::NOENT) => {}
            Err(errno) if NO_FLAGS.contains(&errno) => {}
            exchanged => return exchanged.map(|()| new.to_owned()),
        }
        let aside = self.name();
        match rename(target, &aside) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        rename(new, target).inspect_err(|_| _ = rename(&aside, target))?;
        Ok(aside)
    }

    /// Removes what a copy left that is gone: an unfinished file that nobody holds locked, another name
    /// of a file, or something without content. What cannot be removed stays, and what this copy has
    /// finished. Returns whether it is gone.
    pub(super) fn remove_leftover(&self, directory: BorrowedFd<'_>, name: &CStr) -> bool {
        if self.job != 0 && job_of(name) == Some(self.job) {
            return false;
        }
        let facts = match look(directory, name) {
            Ok(facts) => facts,
            Err(Errno::NOENT) => return true,
            Err(_) => return false,
        };
        if lock(&self.kept).contains(&identity(&facts)) {
            return false;
        }
        let kind = kind_of(facts);
        let user = rustix::process::geteuid();
        if kind.is_dir() || !user.is_root() && facts.st_uid != user.as_raw() {
            return false;
        }
        let _locked;
        // Its mode says nothing: a copy may have been killed between the mode and the proper name.
        if kind.is_file() && facts.st_nlink < 2 {
            let Ok(file) = file_data::open(directory, name) else { return false };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return false;
            }
            // Its maker may have ended between the two calls, and another one have begun.
            let now = look(directory, name);
            match (rustix::fs::fstat(&file), now) {
                (Ok(held), Ok(now)) if identity(&held) == identity(&now) => {}
                (_, Err(Errno::NOENT)) => return true,
                _ => return false,
            }
            _locked = file;
        }
        let removed = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        matches!(removed, Ok(()) | Err(Errno::NOENT))
    }

    /// Removes a file under a temporary name, which nobody else knows.
    pub(super) fn discard_temporary(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        file: BorrowedFd<'_>,
    ) -> Discarded {
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Discarded::Gone,
            Err(_) => {
                // Where it must stay it takes no room.
                let _it_does = rustix::fs::ftruncate(file, 0);
                Discarded::Stays
            }
        }
    }

    /// Removes `file` if it is what bears `name`, and nothing else.
    ///
    /// unlink(2) takes a name, whatever bears it by then. So it is moved to a name that nobody knows,
    /// looked at there, and put back if it is somebody else's.
    pub(super) fn discard(
        &self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        file: BorrowedFd<'_>,
    ) -> Discarded {
        let remove = |name: &CStr| self.discard_temporary(directory, name, file);
        // Of what nothing is known nothing is removed.
        let Ok(facts) = rustix::fs::fstat(file) else {
            let _it_takes_room = rustix::fs::ftruncate(file, 0);
            return Discarded::Stays;
        };
        let own = identity(&facts);
        let is_own = |name: &CStr| {
            let found = look(directory, name);
            found.is_ok_and(|found| identity(&found) == own)
        };
        if !is_own(name) {
            return Discarded::Gone;
        }
        let aside = self.unique(ASIDE_PREFIX);
        match rustix::fs::renameat(directory, name, directory, &aside) {
            Ok(()) if is_own(&aside) => remove(&aside),
            Ok(()) => match move_to_free(directory, &aside, name) {
                Ok(()) | Err(Errno::NOENT) => Discarded::Gone,
                Err(_) => Discarded::Aside(aside),
            },
            // btrfs makes no new name when a quota is used up, but removes one. The file could be
            // replaced between the two calls, in some microseconds; that it stays is certain.
            Err(Errno::NOSPC | Errno::DQUOT) if is_own(name) => remove(name),
            Err(_) => {
                let _it_takes_room = rustix::fs::ftruncate(file, 0);
                Discarded::Stays
            }
        }
    }
}

/// What became of a file that was made here and is not wanted any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Discarded {
    /// It has no name here any more.
    Gone,
    /// The directory does not let it go; it is empty.
    Stays,
    /// Something of somebody else's lies under this name now: something new bears its own.
    Aside(CString),
}

/// Gives something another name, unless something bears that by now.
pub(super) fn move_to_free(
    directory: BorrowedFd<'_>,
    from: &CStr,
    name: &CStr,
) -> Result<(), Errno> {
    let flags = RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(directory, from, directory, name, flags) {
        Err(errno) if NO_FLAGS.contains(&errno) => {}
        moved => return moved,
    }
    match rustix::fs::linkat(directory, from, directory, name, AtFlags::empty()) {
        Ok(()) => rustix::fs::unlinkat(directory, from, AtFlags::empty()),
        // It can neither make links nor tell that a name is free (servers of objects).
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP)
            if matches!(file_data::find(directory, name), Ok(None)) =>
        {
            rustix::fs::renameat(directory, from, directory, name)
        }
        Err(errno) => Err(errno),
    }
}

/// The job in a name that [`Temporaries::name_for`] made.
fn job_of(name: &CStr) -> Option<u64> {
    let name = name.to_str().ok()?.strip_prefix(PREFIX)?;
    let (_, job) = name.strip_suffix("-0")?.split_once('-')?;
    u64::from_str_radix(job, 16).ok()
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
pub(super) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Whether somebody makes the file that bears a temporary name: it is locked.
pub(super) fn is_held(directory: BorrowedFd<'_>, name: &CStr) -> bool {
    file_data::open(directory, name).is_ok_and(|file| {
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        locked == Err(Errno::WOULDBLOCK)
    })
}

/// Whether another copy is at work on what bears a name, or has to put it back where it was.
pub(super) fn is_in_use(directory: BorrowedFd<'_>, name: &CStr) -> bool {
    name.to_bytes().starts_with(ASIDE_PREFIX.as_bytes())
        || is_temporary(name) && is_held(directory, name)
}

/// Whether a name has the very form of ours: three numbers after the prefix.
pub(super) fn is_temporary(name: &CStr) -> bool {
    let Some(numbers) = name.to_bytes().strip_prefix(PREFIX.as_bytes()) else { return false };
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = |part: &[u8]| (1..=16).contains(&part.len()) && part.iter().all(is_digit);
    let parts = || numbers.split(|&byte| byte == b'-');
    parts().count() == 3 && parts().all(is_number)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn what_is_locked_stays_and_what_is_not_goes() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let temporaries = Temporaries::default();
        let (file, name) =
            temporaries.file(directory.as_fd(), temporaries.name_for(c"target", false)).unwrap();
        assert!(is_temporary(&name));
        temporaries.remove_leftover(directory.as_fd(), &name);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_ok());
        drop(file);
        temporaries.remove_leftover(directory.as_fd(), &name);
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
        let make = |name: &CStr| {
            rustix::fs::symlinkat(c"nowhere", at, name).unwrap();
            Err(refused.clone())
        };
        let replaced = Temporaries::default().make_aside(at, c"a", make, |_| Ok(()));
        assert_eq!(replaced, Err(refused));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_lacked_nothing_but_its_name_goes_too() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let temporaries = Temporaries::default();
        let (file, name) =
            temporaries.file(directory.as_fd(), temporaries.name_for(c"target", false)).unwrap();
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644)).unwrap();
        drop(file);
        temporaries.remove_leftover(directory.as_fd(), &name);
        assert!(rustix::fs::statat(&directory, &name, AtFlags::empty()).is_err());
    }

    #[test]
    fn a_link_to_the_same_file_leaves_no_second_name() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        std::fs::write(place.path().join("a"), "x").unwrap();
        let at = directory.as_fd();
        let make = |name: &CStr| {
            rustix::fs::linkat(at, c"a", at, name, AtFlags::empty()).map_err(Refusal::of("link"))
        };
        let put =
            |name: &CStr| rustix::fs::renameat(at, name, at, c"a").map_err(Refusal::of("replace"));
        Temporaries::default().make_aside(at, c"a", make, put).unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_was_left_of_a_file_makes_room_for_the_next_one_of_its_name() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let temporaries = Temporaries::default();
        let make = |target: &CStr| {
            temporaries.file(directory.as_fd(), temporaries.name_for(target, false)).unwrap()
        };
        let (left, first) = make(c"file");
        drop(left);
        let (held, second) = make(c"file");
        assert_eq!(first, second, "the name is free again");
        let (_other, third) = make(c"file");
        assert_ne!(second, third, "two that are alive have a name each");
        assert_ne!(make(c"other").1, second);
        drop(held);
        assert!(is_temporary(&first) && is_temporary(&third));
    }

    #[test]
    fn what_was_finished_under_such_a_name_stays() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let at = directory.as_fd();
        let temporaries = Temporaries::default();
        let name = temporaries.name_for(c"file", false);
        std::fs::write(place.path().join(name.to_str().unwrap()), "finished").unwrap();
        let facts = rustix::fs::statat(at, &name, AtFlags::empty()).unwrap();
        temporaries.keep(identity(&facts));
        assert!(!temporaries.remove_leftover(at, &name));
        assert_ne!(
            temporaries.file(at, temporaries.name_for(c"file", false)).unwrap().1,
            name,
            "it takes another name"
        );
        // What bears it by now is not removed by its name.
        let other = tempfile::tempfile().unwrap();
        assert_eq!(temporaries.discard(at, &name, other.as_fd()), Discarded::Gone);
        assert!(rustix::fs::statat(at, &name, AtFlags::empty()).is_ok());
    }

    #[test]
    fn what_another_process_of_the_job_makes_stays() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let at = directory.as_fd();
        let [own, other] = [7, 8].map(Temporaries::of_job);
        // Its maker lives on another host, and its lock is not seen here.
        let (_, name) = own.file(at, own.name_for(c"file", true)).unwrap();
        assert!(!own.remove_leftover(at, &name));
        assert!(is_temporary(&name));
        assert_ne!(other.file(at, other.name_for(c"file", true)).unwrap().1, name);
        assert!(other.remove_leftover(at, &name));
        assert!(Temporaries::default().remove_leftover(at, &name));
    }

    #[test]
    fn only_what_was_made_here_is_discarded() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let at = directory.as_fd();
        let facts = |name: &CStr| rustix::fs::statat(at, name, AtFlags::empty());
        let temporaries = Temporaries::default();
        for name in ["own", "foreign"] {
            std::fs::write(place.path().join(name), name).unwrap();
        }
        let own = std::fs::File::open(place.path().join("own")).unwrap();
        let own = own.as_fd();
        assert_eq!(temporaries.discard(at, c"foreign", own), Discarded::Gone);
        assert_eq!(std::fs::read(place.path().join("foreign")).unwrap(), b"foreign");
        assert_eq!(temporaries.discard(at, c"own", own), Discarded::Gone);
        assert_eq!(facts(c"own").unwrap_err(), Errno::NOENT);
        assert_eq!(temporaries.discard(at, c"own", own), Discarded::Gone, "it is gone already");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_put_back_replaces_nothing() {
        let place = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(place.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        std::fs::write(place.path().join("aside"), "first").unwrap();
        move_to_free(directory.as_fd(), c"aside", c"name").unwrap();
        assert_eq!(std::fs::read(place.path().join("name")).unwrap(), b"first");
        std::fs::write(place.path().join("aside"), "second").unwrap();
        assert_eq!(move_to_free(directory.as_fd(), c"aside", c"name"), Err(Errno::EXIST));
        assert_eq!(std::fs::read(place.path().join("name")).unwrap(), b"first");
        assert_eq!(std::fs::read(place.path().join("aside")).unwrap(), b"second");
    }
}
