//! Where the bytes of a file go: to a name that nobody had, to a file that will take the place of the
//! one that is there, or where that cannot be, into that one itself.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use flatout_io::unless_interrupted;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::cut::{close, close_to_others, emptied};
use super::finish::discard;
use super::room::{has_reserved, has_room_in_place};
use super::source::{Opened, when_given_back};
use crate::copy::attributes::{Flags, PRIVATE};
use crate::copy::existing::{Existing, refuse_itself, refuse_protected, replaces_protected};
use crate::copy::temporary::{has_lost_name, is_temporary};
use crate::copy::{
    Appearance, Assurance, Entry, Lane, Made, Preserve, Refusal, Rules, Side, Trouble, kind_of,
    refused, target,
};
use crate::file_data::NEW;

pub(super) const CREATE: &str = "create";

/// Where the bytes go.
pub(in crate::copy) struct Place {
    pub(in crate::copy) file: OwnedFd,
    pub(super) made: Made,
    pub(super) name: Name,
    /// Of the directory that it lies in.
    pub(super) device: u64,
    pub(super) bytes: Bytes,
}

/// Which bytes go there, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Those of a file into a file.
    All,
    /// Those that differ from what is there.
    Different,
    /// The same of what may be the source itself and is as long: nothing is cut off, whoever adds to it meanwhile.
    Own,
    /// What comes, until there is nothing more: a FIFO or device is on one side.
    Stream,
    /// None.
    None,
}

impl Bytes {
    /// Those of this source into something of that kind.
    pub(super) fn of(rules: &Rules, source: &Stat, target: FileType) -> Self {
        match kind_of(source).is_file() && target.is_file() {
            _ if rules.attributes_only => Self::None,
            true => Self::All,
            false => Self::Stream,
        }
    }
}

/// Under which name they go there.
pub(in crate::copy) enum Name {
    /// One that is taken away or moved to its place in the end.
    Temporary(CString, Over),
    /// Its own, which nobody had.
    New,
    /// That of a file that was there.
    Old,
}

/// What a file may take the place of.
pub(in crate::copy) enum Over {
    /// This file, pinned where that tells what of it is kept.
    File(Option<OwnedFd>),
    /// Whatever bears its name by then.
    Anything,
    /// Nothing: it is new.
    Nothing,
}

/// What there is to do.
pub(in crate::copy) enum Where {
    /// Bytes go here.
    Open(Place),
    /// The file is there.
    Done(Stat),
}

impl Place {
    /// The name that the file has now.
    pub(in crate::copy) fn name_now<'p>(&'p self, entry: Entry<'p>) -> &'p CStr {
        match &self.name {
            Name::Temporary(name, _) => name,
            Name::New | Name::Old => entry.target,
        }
    }

    /// Whether it takes the place of a file that was there.
    pub(super) fn replaces(&self) -> bool {
        !matches!(self.name, Name::New | Name::Temporary(_, Over::Nothing))
    }

    /// Opens what the bytes go to; or finds that the file is there already. `in_place`: why no new
    /// file can take the place of one that is there.
    pub(super) fn open(
        lane: &mut Lane<'_>,
        opened: &Opened<'_>,
        in_place: Option<Errno>,
    ) -> Result<Where, Trouble> {
        let (copy, entry) = (lane.copy, opened.entry);
        let directory = entry.pair.target();
        let device = entry.pair.found.target.0;
        let inheritance = entry.pair.found.inheritance;
        let made = Made::new(inheritance);
        if copy.options.appearance != Appearance::Atomic && in_place.is_none() {
            let create = || rustix::fs::openat(directory, entry.target, NEW, PRIVATE);
            // Programs that serve files may give up at any signal, and the kernel does not ask them again.
            match unless_interrupted(create) {
                Ok(file) => {
                    copy.attributes.let_owner_in(file.as_fd(), inheritance);
                    copy.attributes.begin_flags(file.as_fd(), opened.flags);
                    if is_temporary(entry.target) {
                        claim(&file, entry)?;
                    }
                    let (name, bytes) = (Name::New, Bytes::All);
                    return Ok(Where::Open(Self { file, made, name, device, bytes }));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(target(CREATE)(errno)),
            }
        }
        match Existing::of(lane, opened)? {
            Existing::Unchanged(found) => Ok(Where::Done(found)),
            Existing::Replace(found) => Self::successor(opened, &found, in_place).map(Where::Open),
            Existing::Another => {
                let (file, name) = temporary(entry, opened.flags).map_err(Trouble::Target)?;
                let name = Name::Temporary(name, Over::Anything);
                Ok(Where::Open(Self { file, made, name, device, bytes: Bytes::All }))
            }
        }
    }

    /// Opens what the bytes go to where a file is in the way: a new file that will take its place, or
    /// where that cannot be, the file itself.
    fn successor(
        opened: &Opened<'_>,
        found: &Stat,
        in_place: Option<Errno>,
    ) -> Result<Self, Trouble> {
        let copy = opened.entry.copy;
        let appearance = copy.options.appearance;
        // What is written into one name is in all others, and two sources may go to two of them.
        let is_bound = found.st_nlink > 1;
        let bytes = match appearance {
            Appearance::InPlace => Some(Bytes::All),
            Appearance::Amended => Some(Bytes::Different),
            _ => None,
        };
        if let Some(bytes) = bytes.filter(|_| in_place.is_none() && !is_bound) {
            let is_closed = |trouble: &Trouble| trouble.target_errno() == Some(Errno::ACCESS);
            // It may be written but not read.
            let all = |trouble| {
                if is_closed(&trouble) { Self::cut(opened, Bytes::All) } else { Err(trouble) }
            };
            let cut = Self::cut(opened, bytes).or_else(all);
            if !cut.as_ref().is_err_and(is_closed) || !replaces_protected(copy) {
                return cut;
            }
        }
        let why = match in_place {
            Some(errno) => errno,
            None => match Self::new_file(opened, found)? {
                Ok(place) => return Ok(place),
                Err(errno) => errno,
            },
        };
        // Whoever wants files to appear as a whole does not want that.
        if is_bound || appearance == Appearance::Atomic {
            return Err(target("replace")(why));
        }
        let place = match why {
            Errno::NOSPC | Errno::DQUOT => Self::refill(opened, why)?,
            _ => Self::cut(opened, Bytes::All)?,
        };
        copy.tell_in_place(opened.entry, why);
        Ok(place)
    }

    /// Makes the file that will take the place of another one; or says why there can be none.
    fn new_file(opened: &Opened<'_>, found: &Stat) -> Result<Result<Self, Errno>, Trouble> {
        let entry = opened.entry;
        let source = &opened.facts;
        let device = entry.pair.found.target.0;
        let (file, name) = match temporary(entry, opened.flags) {
            Ok(made) => made,
            Err(refusal) => match refusal.errno() {
                Some(errno)
                    if needs_no_directory(errno)
                        || has_room_in_place(entry, source, found, errno) =>
                {
                    return Ok(Err(errno));
                }
                _ => return Err(Trouble::Target(refusal)),
            },
        };
        let old = (entry.target_place(), found);
        let inheritance = entry.pair.found.inheritance;
        let preceded = entry.copy.attributes.precede(file.as_fd(), old, source, inheritance);
        let refused = match preceded {
            Ok(None) if !goes(opened) => Ok(Err(Errno::PERM)),
            Ok(preceded) => {
                // As with rsync, one of somebody else goes where its directory lets it.
                let (made, predecessor) = preceded.unwrap_or((Made::new(inheritance), None));
                let name = Name::Temporary(name, Over::File(predecessor));
                return Ok(Ok(Self { file, made, name, device, bytes: Bytes::All }));
            }
            Err(refusal) => Err(Trouble::Target(refusal)),
        };
        discard(entry, &file, Some(&name));
        refused
    }

    /// Opens an existing file to be written again: empty, unless what is there is to be compared.
    fn cut(opened: &Opened<'_>, bytes: Bytes) -> Result<Self, Trouble> {
        let copy = opened.entry.copy;
        let reads = match copy.options.assurance {
            Assurance::Accepted if bytes == Bytes::All => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        let (file, facts) = Self::open_old(opened, reads)?;
        let (file, bytes) = match bytes {
            Bytes::All => emptied(opened, (file, &facts), bytes)?,
            bytes => {
                close_to_others(opened, &file, &facts)?;
                (file, bytes)
            }
        };
        Ok(Self::old(file, &facts, bytes))
    }

    /// Opens an existing file to be written over where there is no room for a second one, once all
    /// blocks that it will need are its own: what it gave up, another thread or program might take,
    /// and then neither the old bytes nor the new ones would be there. While it is neither, it is
    /// closed to others.
    fn refill(opened: &Opened<'_>, why: Errno) -> Result<Self, Trouble> {
        let (file, facts) = Self::open_old(opened, OFlags::RDWR)?;
        if !has_reserved(&file, &facts, opened) {
            return Err(target("replace")(why));
        }
        if opened.entry.copy.options.preserve.has(Preserve::MODE) {
            close(&file, facts.st_mode & PRIVATE.bits())?;
        }
        Ok(Self::old(file, &facts, Bytes::Different))
    }

    fn old(file: OwnedFd, facts: &Stat, bytes: Bytes) -> Self {
        Self { file, made: Made::found(facts), name: Name::Old, device: facts.st_dev, bytes }
    }

    /// Opens an existing file as it is.
    fn open_old(opened: &Opened<'_>, reads: OFlags) -> Result<(OwnedFd, Stat), Trouble> {
        let entry = opened.entry;
        let flags = reads | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = unlocked(opened, || {
            let at = (entry.pair.target(), entry.target);
            when_given_back(entry, Side::Target, || {
                rustix::fs::openat(at.0, at.1, flags, Mode::empty())
            })
            .map_err(target("open"))
        })?;
        let facts = examined(opened, &file)?;
        match kind_of(facts).is_file() {
            true => Ok((file, facts)),
            false => Err(refused("overwrite", "it is no file any more")),
        }
    }
}

/// Whether a file of somebody else makes room in a mirror: this user may not write it.
fn goes(opened: &Opened<'_>) -> bool {
    opened.entry.copy.options.deletion.is_some()
        && refuse_protected(opened.entry, opened.flags).is_err()
}

/// What something is that was opened to be written to. It may lie on another filesystem than its
/// directory: a mounted file, or one to which a symlink leads.
///
/// Errors: it is the source.
pub(super) fn examined(opened: &Opened<'_>, file: &OwnedFd) -> Result<Stat, Trouble> {
    let entry = opened.entry;
    let facts = rustix::fs::fstat(file).map_err(target("examine"))?;
    refuse_itself(&facts, &opened.facts)?;
    if facts.st_dev != entry.pair.found.target.0 {
        entry.copy.targets.will_sync_file(file.as_fd(), facts.st_dev).map_err(target("hold"))?;
    }
    Ok(facts)
}

/// Makes a file under a name of ours.
pub(super) fn temporary(entry: Entry<'_>, flags: Flags) -> Result<(OwnedFd, CString), Refusal> {
    let copy = entry.copy;
    let (directory, temporaries) = (entry.pair.target(), &copy.temporaries);
    let name = match copy.peculiarities.has_temporary(entry.directory) {
        true => temporaries.name(),
        // What the user names lies in a directory that nobody lists.
        false => temporaries.name_for(entry.target, entry.directory.parent.is_some()),
    };
    let (file, name) = temporaries.file(directory, name)?;
    copy.attributes.let_owner_in(file.as_fd(), entry.pair.found.inheritance);
    copy.attributes.begin_flags(file.as_fd(), flags);
    Ok((file, name))
}

/// Does something with a file that is in the way; once more without its locks if they are what
/// refuses it, and may be lifted.
pub(super) fn unlocked<T>(
    opened: &Opened<'_>,
    act: impl Fn() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let done = act();
    if !done.as_ref().is_err_and(|trouble| trouble.target_errno() == Some(Errno::PERM)) {
        return done;
    }
    let copy = opened.entry.copy;
    let (place, overwrite) = (opened.entry.target_place(), copy.options.overwrite);
    let lifted = copy.attributes.unlock(place, opened.flags, overwrite);
    let Some(lifted) = lifted else { return done };
    let done = act();
    // What is written to stays unlocked; what was replaced may have other names.
    if done.is_err() || !lifted.bears(place) {
        lifted.lock();
    }
    done
}

/// Locks a file that bears a temporary name for good until it is complete, so that nobody takes it for
/// what somebody left.
fn claim(file: &OwnedFd, entry: Entry<'_>) -> Result<(), Trouble> {
    let _where_there_are_locks = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    if has_lost_name(file, entry.pair.target(), entry.target) {
        return Err(refused(CREATE, "it was taken for what a copy has left, and removed"));
    }
    Ok(())
}

/// Whether a refusal has to do with the directory, or with the name in it, so that the file may be
/// written all the same: it is mounted (`EBUSY`), the directory is not to be written to, or takes no name of ours
/// (`EINVAL`: msdos, for the dot with which they begin).
pub(super) fn needs_no_directory(errno: Errno) -> bool {
    use Errno as E;
    matches!(errno, E::BUSY | E::ACCESS | E::PERM | E::ROFS | E::INVAL)
}
