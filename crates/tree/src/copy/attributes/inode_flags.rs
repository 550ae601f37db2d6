//! Flags of chattr(1), and project ids (quotas), where they are asked for.
//!
//! Some flags mean nothing once a file has bytes or a directory has names: they are set before.
//! Those that lock an inode come after everything else, its name and its further names included.
//! What locks the copy of an earlier run is lifted where the source has the same lock: a rerun
//! would fail otherwise.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use flatout_sys::attribute_at::{ExtentHints, Owned};
use rustix::fs::{IFlags, Stat, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;

use super::remarks::Loss;
use super::{Attributes, Job, Made, Node, Origin, Place, READ_FLAGS};
use crate::copy::{Overwrite, Preserve, Refusal, identity, kind_of};
use crate::file_data;

/// Immutable, append-only.
const LOCKS: u32 = 0x30;
/// No copy on write, compression or none of it, direct access, names without case: decided while a
/// file is empty.
const EARLY: u32 = 0x0080_0000 | 0x0000_0004 | 0x0000_0400 | 0x0200_0000 | 0x4000_0000;
/// Secure and recoverable deletion, synchronous, no dump, no access times, journalled data, no tail,
/// synchronous directory, top of a hierarchy (linux/fs.h).
const LATE: u32 = 0x0000_0001 | 0x2 | 0x8 | 0x40 | 0x80 | 0x4000 | 0x8000 | 0x1_0000 | 0x2_0000;
/// No compression: btrfs sets it by itself where writing a file out turns out not to compress it.
const OF_THE_KERNEL: u32 = 0x400;
/// New entries get the project of their directory.
const INHERITS_PROJECT: u32 = 0x2000_0000;

/// All that are kept, as lsattr(1) shows them.
const LETTERS: [(u32, u8); 16] = [
    (0x1, b's'),
    (0x2, b'u'),
    (0x4, b'c'),
    (0x8, b'S'),
    (0x10, b'i'),
    (0x20, b'a'),
    (0x40, b'd'),
    (0x80, b'A'),
    (0x400, b'm'),
    (0x4000, b'j'),
    (0x8000, b't'),
    (0x1_0000, b'D'),
    (0x2_0000, b'T'),
    (0x80_0000, b'C'),
    (0x200_0000, b'x'),
    (0x4000_0000, b'F'),
];

const SET_FLAGS: &str = "set the flags of";
const SET_PROJECT: &str = "set the project of";

/// What says that a filesystem, a kernel or a user cannot have a flag, or a project.
const CANNOT: [Errno; 7] = [
    Errno::OPNOTSUPP,
    Errno::NOTTY,
    Errno::NOSYS,
    Errno::PERM,
    Errno::ACCESS,
    Errno::INVAL,
    Errno::BADF,
];

/// Flags and extent size hints of a source, as far as they are to be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    flags: u32,
    hints: ExtentHints,
    /// Why they are not known: its copy is not complete.
    unknown: Option<Errno>,
}

impl Flags {
    /// Whether nobody may write or remove it, or only add to it.
    pub fn is_locked(self) -> bool {
        self.flags & LOCKS != 0
    }
}

/// A target whose locks were lifted.
#[derive(Debug)]
pub struct Unlocked {
    file: OwnedFd,
    flags: u32,
}

impl Unlocked {
    /// Locks it again: it was not replaced, or keeps other names.
    pub fn lock(self) {
        lock_again(self.file.as_fd(), self.flags);
    }

    /// Whether it is what bears a name.
    pub fn bears(&self, place: Place<'_>) -> bool {
        let [own, found] = [Node::Open(self.file.as_fd()), Node::Named(place)].map(Node::stat);
        own.is_ok_and(|own| found.is_ok_and(|found| identity(&own) == identity(&found)))
    }
}

/// The flags of an open file or directory.
fn flags(file: BorrowedFd<'_>) -> Result<u32, Errno> {
    ioctl_getflags(file).map(|flags| flags.bits())
}

/// What was asked for; the least of it where nobody can have any. What else goes wrong says nothing about
/// the file.
fn or_none<T: Default>(found: Result<T, Errno>) -> Result<T, Errno> {
    found.or_else(|errno| if CANNOT.contains(&errno) { Ok(T::default()) } else { Err(errno) })
}

fn set(file: BorrowedFd<'_>, flags: u32) -> Result<(), Errno> {
    ioctl_setflags(file, IFlags::from_bits_retain(flags))
}

/// The flags of a regular file or a directory, as far as they can be kept and nobody but a user sets
/// them; `None`: it may not be opened. Cost: three calls.
///
/// Errors: those of the kernel, but for those that say that there are none.
pub(crate) fn all_flags_of(node: Node<'_>) -> Result<Option<u32>, Errno> {
    let found = match node {
        Node::Open(file) => Ok(flags(file)),
        Node::Named(Place { directory, name }) => {
            file_data::open(directory, name).map(|file| flags(file.as_fd()))
        }
        Node::Pinned(directory) => file_data::open(directory, c".").map(|file| flags(file.as_fd())),
    };
    let Ok(found) = found else { return Ok(None) };
    Ok(Some(or_none(found)? & (LOCKS | EARLY | LATE) & !OF_THE_KERNEL))
}

/// Flags as letters of lsattr(1).
pub(crate) fn flag_letters(flags: u32) -> String {
    let is_set = |(mask, _): &&(u32, u8)| flags & mask != 0;
    LETTERS.iter().filter(is_set).map(|&(_, letter)| char::from(letter)).collect()
}

/// Reads them again, as [`all_flags_of`] has them; `None`: one is none.
pub(crate) fn flags_of_letters(letters: &[u8]) -> Option<u32> {
    letters.iter().try_fold(0, |flags, letter| {
        let known = LETTERS.iter().find(|(_, known)| known == letter)?;
        Some(flags | known.0 & !OF_THE_KERNEL)
    })
}

fn owned(file: BorrowedFd<'_>) -> Owned<'_> {
    Owned { directory: file, name: c"", follows: false }
}

/// Gives an open inode the flags that [`Attributes::unlock_open`] found.
pub fn lock_again(file: BorrowedFd<'_>, flags: u32) {
    let _who_may_lift_may_lock = set(file, flags);
}

impl Attributes<'_> {
    /// The flags that are kept, as a mask.
    fn kept_flags(&self) -> u32 {
        let of = |what, mask| if self.preserve.has(what) { mask } else { 0 };
        of(Preserve::FLAGS, LOCKS | EARLY | LATE) | of(Preserve::PROJECT, INHERITS_PROJECT)
    }

    /// Whether flags are kept.
    pub fn keeps_flags(&self) -> bool {
        self.preserve.has(Preserve::FLAGS)
    }

    /// Whether flags or project ids are kept, which stat(2) does not tell.
    pub fn keeps_any(&self) -> bool {
        self.kept_flags() != 0
    }

    /// The flags of an open source, and its extent size hints. Two calls; none where they are not
    /// kept.
    pub fn flags_of(&self, source: BorrowedFd<'_>) -> Flags {
        let mask = self.kept_flags();
        if mask == 0 {
            return Flags::default();
        }
        let hints = match self.keeps_flags() {
            true => owned(source).extent_hints(),
            false => Ok(ExtentHints::default()),
        };
        let (found, hints) = (or_none(flags(source)), or_none(hints));
        Flags {
            flags: found.unwrap_or(0) & mask,
            hints: hints.unwrap_or_default(),
            unknown: found.err().or(hints.err()),
        }
    }

    /// Sets what must be set while the target is empty. Whether it came to be is seen in the end.
    pub fn begin_flags(&self, target: BorrowedFd<'_>, wanted: Flags) {
        if !wanted.hints.are_none() {
            let _or_it_is_said_in_the_end = owned(target).set_extent_hints(wanted.hints);
        }
        if wanted.flags & EARLY != 0
            && let Ok(found) = flags(target)
        {
            let early = found & !(EARLY & self.kept_flags()) | wanted.flags & EARLY;
            let _or_one_by_one_in_the_end = set(target, early);
        }
    }

    /// Gives a complete target its project and its flags. What it cannot have is said once; returns whether
    /// nothing was.
    ///
    /// Cost: where they are kept, a call for each side and kind, and one for what differs.
    pub fn end_flags(
        &self,
        (source, target): (BorrowedFd<'_>, BorrowedFd<'_>),
        facts: &Stat,
        wanted: Flags,
        made: Made,
    ) -> Result<bool, Refusal> {
        if !self.keeps_any() {
            return Ok(true);
        }
        if let Some(errno) = wanted.unknown {
            return Err(Refusal::of(READ_FLAGS)(errno));
        }
        let is_directory = kind_of(facts).is_dir();
        let node = |file| if is_directory { Node::of_directory(file) } else { Node::Open(file) };
        let job = Job::new(node(source), node(target), facts, made);
        self.carry_project(&job)?;
        self.carry_flags(&job, target, wanted)?;
        Ok(job.is_whole())
    }

    fn carry_flags(
        &self,
        job: &Job<'_>,
        target: BorrowedFd<'_>,
        wanted: Flags,
    ) -> Result<(), Refusal> {
        if !wanted.hints.are_none() && owned(target).extent_hints() != Ok(wanted.hints) {
            let set = owned(target).set_extent_hints(wanted.hints);
            if set.is_err() || owned(target).extent_hints() != Ok(wanted.hints) {
                self.lose(job, Loss::Flags, set.err());
            }
        }
        let found = match flags(target) {
            Ok(found) => found,
            Err(_) if wanted == Flags::default() => return Ok(()),
            Err(errno) if CANNOT.contains(&errno) => {
                self.lose(job, Loss::Flags, Some(errno));
                return Ok(());
            }
            Err(errno) => return Err(Refusal::of(SET_FLAGS)(errno)),
        };
        // A directory that was there keeps what it has besides, as of extended attributes.
        let was_found = matches!(job.made.origin, Origin::Found(_));
        let is_merged = was_found && job.kind.is_dir();
        let surplus = if is_merged { 0 } else { self.kept_flags() };
        let goal = found & !surplus | job.made.locks | wanted.flags;
        if goal != found {
            self.reach_flags(job, target, (found, goal))?;
        }
        Ok(())
    }

    fn reach_flags(
        &self,
        job: &Job<'_>,
        target: BorrowedFd<'_>,
        (found, goal): (u32, u32),
    ) -> Result<(), Refusal> {
        let mut refused = None;
        match set(target, goal) {
            Ok(()) => {}
            Err(errno) if CANNOT.contains(&errno) => {
                let mut now = found;
                // One by one, locks last.
                let bits = (0..32).map(|bit| 1 << bit).filter(|bit| (found ^ goal) & bit != 0);
                let (locks, others): (Vec<u32>, Vec<u32>) = bits.partition(|bit| bit & LOCKS != 0);
                for bit in others.into_iter().chain(locks) {
                    match set(target, now ^ bit) {
                        Ok(()) => now ^= bit,
                        Err(errno) if CANNOT.contains(&errno) => refused = Some(errno),
                        Err(errno) => return Err(Refusal::of(SET_FLAGS)(errno)),
                    }
                }
            }
            Err(errno) => return Err(Refusal::of(SET_FLAGS)(errno)),
        }
        // Some are taken and not set: btrfs makes no file with bytes one without copy on write.
        let is_whole = flags(target).is_ok_and(|now| now & goal == goal);
        if !is_whole {
            self.lose(job, Loss::Flags, refused);
        }
        Ok(())
    }

    /// Has the target paid for by the project of the source.
    pub(super) fn carry_project(&self, job: &Job<'_>) -> Result<(), Refusal> {
        if !self.preserve.has(Preserve::PROJECT) {
            return Ok(());
        }
        // A source that has none has 0, as all that nobody has given to one.
        let wanted = or_none(job.source.project()).map_err(Refusal::of(READ_FLAGS))?;
        let set = match job.target.project() {
            Ok(found) if found == wanted => return Ok(()),
            Ok(_) => job.target.set_project(wanted),
            Err(_) if wanted == 0 => return Ok(()),
            Err(errno) => Err(errno),
        };
        match set {
            Ok(()) => Ok(()),
            Err(errno) if CANNOT.contains(&errno) => {
                self.lose(job, Loss::Project, Some(errno));
                Ok(())
            }
            Err(errno) => Err(Refusal::of(SET_PROJECT)(errno)),
        }
    }

    /// Lifts the locks of a regular file, if there are any and its source has them, too; or where
    /// protected files are to be replaced.
    pub fn unlock(
        &self,
        place: Place<'_>,
        source: Flags,
        overwrite: Overwrite,
    ) -> Option<Unlocked> {
        if !self.keeps_flags() {
            return None;
        }
        let file = file_data::open(place.directory, place.name).ok()?;
        self.unlock_open(file.as_fd(), source, overwrite).map(|flags| Unlocked { file, flags })
    }

    /// Lifts the locks of a directory that is merged into, and says which.
    pub fn unlock_directory(
        &self,
        (source, target): (BorrowedFd<'_>, BorrowedFd<'_>),
        overwrite: Overwrite,
    ) -> u32 {
        let lifted = self.unlock_open(target, self.flags_of(source), overwrite);
        lifted.map_or(0, |flags| flags & LOCKS)
    }

    /// The same of what is open; tells what its flags were.
    pub fn unlock_open(
        &self,
        target: BorrowedFd<'_>,
        source: Flags,
        overwrite: Overwrite,
    ) -> Option<u32> {
        let found = flags(target).ok().filter(|_| self.keeps_flags())?;
        let is_copy = found & LOCKS & !source.flags == 0;
        let may = is_copy || overwrite == Overwrite::Protected;
        (found & LOCKS != 0 && may && set(target, found & !LOCKS).is_ok()).then_some(found)
    }

    /// Puts project and flags right of a regular file that is up to date.
    pub(super) fn repair_flags(
        &self,
        source: Node<'_>,
        (place, found): (Place<'_>, &Stat),
        facts: &Stat,
    ) -> Result<(), Refusal> {
        let Node::Open(source) = source else { return Ok(()) };
        if !self.keeps_any() {
            return Ok(());
        }
        let Ok(target) = file_data::open(place.directory, place.name) else { return Ok(()) };
        if !rustix::fs::fstat(&target).is_ok_and(|now| identity(&now) == identity(found)) {
            return Ok(());
        }
        let wanted = self.flags_of(source);
        self.end_flags((source, target.as_fd()), facts, wanted, Made::found(found)).map(drop)
    }

    /// Whether another file has the flags and the project of a source, as far as they are kept.
    pub(super) fn has_flags(&self, source: BorrowedFd<'_>, found: BorrowedFd<'_>) -> bool {
        let project = |file| or_none(Node::Open(file).project());
        let flags = self.flags_of(source);
        flags.unknown.is_none()
            && flags == self.flags_of(found)
            && (!self.preserve.has(Preserve::PROJECT)
                || project(source).is_ok() && project(source) == project(found))
    }
}
