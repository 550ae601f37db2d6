//! How something goes out of a target: by the descriptor of its directory, looked at just before. No
//! symlink is followed, no mount is entered, and what is excluded stays, with the directories that it
//! lies in.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

use flatout_sys::filesystem;
use rustix::fs::{AtFlags, FileType, Mode, Stat, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::copy::backup::may_be_in;
use crate::copy::directory::DIRECTORY;
use crate::copy::options::Deletion;
use crate::copy::temporary::is_in_use;
use crate::copy::{Copy, Directory, Event, Failure, Pair, Refusal, Side, count, identity};
use crate::directory_stack::DirectoryStack;
use crate::path;
use crate::remove::open_to_empty;
use crate::selection::Ignored;
use crate::spool::names::Names;

const DELETE: &str = "delete";
/// Listings of one directory: of those who leave out half of the rest each time, twenty tell a million. Not
/// measured; others never let a name go.
const MOST_LISTINGS: u32 = 32;

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    Gone,
    /// It would go if more might be deleted.
    Spared,
    /// It, or something in it, is to stay.
    Stays,
    /// It, or something in it, could not be removed.
    Failed,
}

/// Why something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The source does not have it.
    Surplus,
    /// Something else takes its name. What lies in it is surplus.
    Room,
}

/// Removes things in one directory of the target.
pub(super) struct Removal<'c> {
    copy: &'c Copy<'c>,
    deletion: Deletion,
    ignored: Option<Arc<Ignored>>,
    /// The path of the directory, as it is shown.
    shown: OsString,
    /// The path below the operand of what is looked at, and the bytes of it that are the directory's.
    path: Vec<u8>,
    prefix: usize,
    /// Names that are gone.
    removed: u64,
    /// It is only looked what would go.
    rehearses: bool,
}

/// A directory on its way out.
struct Level {
    name: CString,
    /// Directories in it that are still to be gone into.
    below: Names,
    fate: Fate,
    /// The mode that it had, where that was changed.
    mode: Option<Mode>,
    /// How many names were gone when it was listed.
    removed: u64,
    /// How often it was listed before.
    listed: u32,
}

impl<'c> Removal<'c> {
    /// `None`: nothing is to be removed, or nobody knows where it is.
    pub(super) fn of(copy: &'c Copy<'c>, directory: &Directory) -> Option<Self> {
        let deletion = copy.options.deletion?;
        let path = directory.path_below_operand();
        let path = path.map_err(|refusal| copy.fail_source(directory, None, refusal)).ok()?;
        let (ignored, prefix) = (directory.ignored(), path.len());
        let shown = directory.path(Side::Target, None);
        Some(Self { copy, deletion, ignored, shown, path, prefix, removed: 0, rehearses: false })
    }

    /// What would become of something that is to make room.
    pub(super) fn rehearse(self, pair: &Pair, name: &CStr) -> Fate {
        let mut rehearsal = Self { rehearses: true, ..self };
        rehearsal.remove(pair, (name, name), Purpose::Room)
    }

    /// Removes what bears a name, with all that is in it. `called`: the name that it had.
    pub(super) fn remove(
        &mut self,
        pair: &Pair,
        (name, called): (&CStr, &CStr),
        purpose: Purpose,
    ) -> Fate {
        let at = pair.target();
        self.within(called, |removal| {
            let removed = removal.find(at, name).and_then(|found| match is_directory(&found) {
                true => removal.tree(at, name, &found, purpose),
                false => {
                    let at = (at, Some(pair.source()));
                    Ok(removal.unlink(at, name, purpose, AtFlags::empty()))
                }
            });
            removed.unwrap_or_else(|fate| fate)
        })
    }

    /// Does something about a name in what is looked at.
    fn within<T>(&mut self, name: &CStr, act: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        path::push(&mut self.path, name.to_bytes());
        let done = act(self);
        self.path.truncate(length);
        done
    }

    /// Whether what is looked at is excluded, and stays.
    fn is_kept(&self, is_directory: bool) -> bool {
        let selection = &self.copy.selection;
        !self.deletion.takes_excluded
            && selection.has_names()
            && selection.excludes(self.ignored.as_ref(), &self.path, is_directory)
    }

    /// Empties a directory, and removes it if nothing in it stays.
    ///
    /// Errors: what becomes of it where it cannot be gone through.
    fn tree(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        found: &Statx,
        purpose: Purpose,
    ) -> Result<Fate, Fate> {
        let (root, mode) = self.open(at, name, found)?;
        let is_served = filesystem::of(root.as_fd()).is_ok_and(|home| home.is_served());
        let mut stack = DirectoryStack::at(root).map_err(|error| self.fail_io(&error))?;
        let mut levels = vec![self.list(&stack, CString::default(), mode)];
        while let Some(level) = levels.last_mut() {
            let Some(name) = self.next_below(level) else {
                // Servers may leave out names while others are removed.
                let is_tried = level.removed < self.removed && level.listed < MOST_LISTINGS;
                if is_served && level.fate == Fate::Gone && is_tried {
                    let again = self.list(&stack, std::mem::take(&mut level.name), level.mode);
                    *level = Level { listed: level.listed + 1, ..again };
                    continue;
                }
                let Some(done) = levels.pop() else { break };
                let left = self.leave_level(&mut stack, done, (at, name, purpose));
                let fate = left.map_err(|error| self.fail_io(&error))?;
                let Some(above) = levels.last_mut() else { return Ok(fate) };
                above.fate = above.fate.max(fate);
                self.leave();
                continue;
            };
            path::push(&mut self.path, name.to_bytes());
            match self.descend(&mut stack, &name) {
                Ok(mode) => {
                    let level = self.list(&stack, name, mode);
                    levels.push(level);
                }
                Err(fate) => {
                    level.fate = level.fate.max(fate);
                    self.leave();
                }
            }
        }
        Ok(Fate::Gone)
    }

    /// A directory in this one that is still to be gone into.
    fn next_below(&self, level: &mut Level) -> Option<CString> {
        match level.below.take_back(1) {
            Ok(batch) => batch.iter().next().map(|(name, _)| name.to_owned()),
            Err(refusal) => {
                (level.below, level.fate) = (Names::default(), self.fail(refusal));
                None
            }
        }
    }

    /// Leaves a directory that is emptied as far as may be, and removes it if nothing is in it. One
    /// that stays has the mode again that it had. `root`: where the first one lies.
    fn leave_level(
        &mut self,
        stack: &mut DirectoryStack,
        level: Level,
        root: (BorrowedFd<'_>, &CStr, Purpose),
    ) -> io::Result<Fate> {
        let changed = level.mode.map(|mode| (Arc::clone(stack.lowest()), mode));
        let is_root = level.name.is_empty();
        let left = if is_root { Ok(()) } else { stack.ascend() };
        let fate = left.map(|()| {
            let below = || (stack.here(), level.name.as_c_str(), Purpose::Surplus);
            let (at, name, purpose) = if is_root { root } else { below() };
            match level.fate {
                Fate::Gone => self.unlink((at, None), name, purpose, AtFlags::REMOVEDIR),
                Fate::Spared => self.spare(purpose),
                stays => stays,
            }
        });
        // One that is gone from here may have been moved elsewhere.
        if let Some((directory, mode)) = changed {
            let _as_far_as_it_goes = rustix::fs::fchmod(&*directory, mode);
        }
        fate
    }

    fn leave(&mut self) {
        let end = self.path.iter().rposition(|&byte| byte == b'/');
        self.path.truncate(end.unwrap_or(0));
    }

    /// Goes down into a directory; returns the mode that it had, where it was changed.
    fn descend(&self, stack: &mut DirectoryStack, name: &CStr) -> Result<Option<Mode>, Fate> {
        if self.copy.stop.is_due() {
            return Err(Fate::Stays);
        }
        let found = self.find(stack.here(), name)?;
        let (opened, mode) = self.open(stack.here(), name, &found)?;
        stack.enter(opened).map_err(|error| self.fail_io(&error))?;
        Ok(mode)
    }

    /// What bears a name; or what becomes of it where that cannot be seen.
    fn find(&self, at: BorrowedFd<'_>, name: &CStr) -> Result<Statx, Fate> {
        look(at, name).map_err(|errno| match errno {
            Errno::NOENT => Fate::Gone,
            errno => self.fail(Refusal::of("examine")(errno)),
        })
    }

    /// Opens a directory that was just looked at.
    fn open(
        &self,
        at: BorrowedFd<'_>,
        name: &CStr,
        found: &Statx,
    ) -> Result<(OwnedFd, Option<Mode>), Fate> {
        let refuse = |reason| self.fail(Refusal::because(DELETE, reason));
        if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Err(refuse("something is mounted there"));
        }
        let number = (rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino);
        if self.copy.targets.is_source(number) {
            return Err(refuse("it is a source"));
        }
        if self.copy.is_snapshot(number) {
            return Err(refuse("it is a snapshot"));
        }
        let opened = match self.copy.is_plan() {
            true => rustix::fs::openat(at, name, DIRECTORY, Mode::empty()).map(|it| (it, None)),
            false => open_to_empty(at, name),
        };
        let (opened, mode) = opened.map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => refuse("it is no directory any more"),
            errno => self.fail(Refusal::of("open")(errno)),
        })?;
        let facts: Stat = rustix::fs::fstat(opened.as_fd())
            .map_err(|errno| self.fail(Refusal::of("examine")(errno)))?;
        if identity(&facts) != number {
            return Err(refuse("something else took its place"));
        }
        Ok((opened, mode))
    }

    /// Removes what is in a directory and is none itself.
    fn list(&mut self, stack: &DirectoryStack, name: CString, mode: Option<Mode>) -> Level {
        let (mut below, mut fate, removed) = (Names::default(), Fate::Gone, self.removed);
        let listed = stack.entries(|name, kind, _| {
            let kind = match kind {
                FileType::Unknown => look(stack.here(), name)
                    .map_or(kind, |found| FileType::from_raw_mode(u32::from(found.stx_mode))),
                kind => kind,
            };
            let one = self.within(name, |removal| {
                let backups = removal.copy.backups.as_ref();
                if removal.copy.stop.is_due()
                    || backups.is_some_and(|backups| backups.has_made(name))
                    || removal.is_kept(kind.is_dir())
                    || is_in_use(stack.here(), name)
                {
                    return Fate::Stays;
                }
                if kind.is_dir() {
                    let added = below.push(name, kind);
                    return added.map_or_else(|refusal| removal.fail(refusal), |()| Fate::Gone);
                }
                removal.unlink((stack.here(), None), name, Purpose::Surplus, AtFlags::empty())
            });
            fate = fate.max(one);
            Ok(())
        });
        if let Err(error) = listed {
            fate = self.fail_io(&error);
        }
        Level { name, below, fate, mode, removed, listed: 0 }
    }

    /// Removes one name, if it may go; `source` is the directory of the source, if there is one.
    fn unlink(
        &mut self,
        (at, source): (BorrowedFd<'_>, Option<BorrowedFd<'_>>),
        name: &CStr,
        purpose: Purpose,
        flags: AtFlags,
    ) -> Fate {
        let counts = purpose == Purpose::Surplus;
        let backups = self.copy.backups.as_ref().filter(|_| flags.is_empty());
        // In its directory something stays.
        let gone = if counts && backups.is_some() { Fate::Stays } else { Fate::Gone };
        if self.rehearses {
            return gone;
        }
        let most = self.deletion.most.filter(|_| counts);
        if most.is_some() && !self.copy.may_delete_one() {
            return self.spare(purpose);
        }
        let done = match (self.copy.is_plan(), backups) {
            (true, _) => Ok(()),
            (false, Some(backups)) => {
                let is_copied = |backup: &CStr| source.is_some_and(|at| may_be_in(at, backup));
                backups.move_aside(at, name, is_copied).map(drop)
            }
            (false, None) => rustix::fs::unlinkat(at, name, flags),
        };
        if done.is_err() && most.is_some() {
            self.copy.return_permit();
        }
        match done {
            Ok(()) => {
                self.removed += u64::from(!self.copy.is_plan());
                if counts {
                    count(&self.copy.mirror.deleted);
                    self.tell(flags.contains(AtFlags::REMOVEDIR));
                }
                gone
            }
            Err(Errno::NOENT) => Fate::Gone,
            Err(errno) => self.fail(Refusal::of(DELETE)(errno)),
        }
    }

    /// Leaves something, since no more may be deleted.
    fn spare(&self, purpose: Purpose) -> Fate {
        if purpose == Purpose::Surplus {
            count(&self.copy.mirror.spared);
        }
        Fate::Spared
    }

    fn tell(&self, is_directory: bool) {
        if self.copy.watch.wants_each() {
            let (target, below) = (self.whole_path(), self.path.clone());
            self.copy.watch.event(&Event::Deleted { target, below, is_directory });
        }
    }

    /// The path of what is looked at, as it is shown.
    fn whole_path(&self) -> OsString {
        let mut path = self.shown.as_bytes().to_vec();
        let rest = self.path.get(self.prefix..).unwrap_or_default();
        path::push(&mut path, rest.strip_prefix(b"/").unwrap_or(rest));
        OsString::from_vec(path)
    }

    fn fail(&self, refusal: Refusal) -> Fate {
        self.copy.fail(Failure::of(refusal, self.whole_path()));
        Fate::Failed
    }

    fn fail_io(&self, error: &io::Error) -> Fate {
        self.fail(match Errno::from_io_error(error) {
            Some(errno) => Refusal::of(DELETE)(errno),
            None => Refusal::because(DELETE, "it was moved meanwhile"),
        })
    }
}

fn look(at: BorrowedFd<'_>, name: &CStr) -> Result<Statx, Errno> {
    rustix::fs::statx(at, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
}

fn is_directory(found: &Statx) -> bool {
    FileType::from_raw_mode(u32::from(found.stx_mode)).is_dir()
}
