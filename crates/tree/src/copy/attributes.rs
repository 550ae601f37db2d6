//! The attributes of a copy: owner, extended attributes, access control lists, capabilities, times
//! and mode, always in this order.
//!
//! chown(2) drops set-id bits and capabilities, so the owner comes first. The mode comes last, when
//! nothing is missing any more: until then a target lets nobody in but its owner. What this user or
//! this filesystem cannot keep is said once and does not fail the entry; where `cp -a` would fail,
//! the entry counts as incomplete. A full disk and a broken one are failures.
//!
//! Flags of chattr(1) and project ids are copied where that is asked for (`attributes/inode_flags.rs`).
//! Otherwise a directory that is immutable or append-only in the source is reason to say so; files
//! are not asked, for that would cost a call each.
//!
//! Read next: `attributes/node.rs`, how a file is reached without following a symlink.

mod acl;
mod difference;
mod extended;
mod heir;
mod inheritance;
mod inode_flags;
mod kept;
mod likeness;
mod node;
mod owner;
mod permissions;
mod remarks;
mod repair;
mod special;
#[cfg(test)]
mod tests;
mod times;

use std::cell::Cell;

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

pub use self::difference::Difference;
pub(super) use self::extended::CANNOT;
pub(crate) use self::extended::digests_of;
use self::extended::without_acl;
use self::inheritance::Origin;
pub use self::inheritance::{Inheritance, Made};
pub use self::inode_flags::{Flags, Unlocked, lock_again};
pub(crate) use self::inode_flags::{all_flags_of, flag_letters, flags_of_letters};
pub use self::node::{Node, pin};
use self::owner::Expectation;
pub use self::permissions::{open_to_owner, open_up, umask};
pub(super) use self::remarks::Losses;
use self::remarks::{Loss, Lost, Remarks};
pub use self::special::Special;
pub(super) use self::times::{are_kept_everywhere, timestamps};
use self::times::{makes_time_another, times};
use super::event::Watch;
use super::{CopyOptions, Event, Preserve, Refusal, kind_of};

/// The permission bits, with set-id and sticky bits.
const MODE_BITS: u32 = 0o7777;
/// What is made is its owner's alone until it is complete.
pub(super) const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
const SET_USER_ID: u32 = 0o4000;
/// A directory hands it on with its group.
const SET_GROUP_ID: u32 = 0o2000;
const SET_ID_BITS: u32 = SET_USER_ID | SET_GROUP_ID;

const LOOK: &str = "read the attributes of";
/// The operation of a [`Refusal`] that the source is to blame for; but for the next, all others are the
/// target's.
pub const READ_SOURCE: &str = "read the extended attributes of";
/// And this one.
pub const READ_FLAGS: &str = "read the flags of";

/// A name in a directory that is held open: one component, which is never followed.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The directory.
    pub directory: BorrowedFd<'a>,
    /// The name.
    pub name: &'a CStr,
}

/// One target that gets the attributes of its source.
struct Job<'a> {
    source: Node<'a>,
    target: Node<'a>,
    facts: &'a Stat,
    kind: FileType,
    made: Made,
    /// What it will be called, where it has another name until it is complete.
    called: Option<&'a CStr>,
    /// What was lost; before anything else, something for which `cp -a` fails.
    lost: Cell<Option<Lost>>,
    /// All that was, as bits.
    losses: Cell<u32>,
}

impl<'a> Job<'a> {
    fn new(source: Node<'a>, target: Node<'a>, facts: &'a Stat, made: Made) -> Self {
        let kind = kind_of(facts);
        let (lost, losses) = (Cell::new(None), Cell::new(0));
        Self { source, target, facts, kind, made, called: None, lost, losses }
    }

    /// Its absolute path, for people.
    fn shown(&self) -> OsString {
        let path = self.target.shown();
        match self.called {
            Some(name) => {
                Path::new(&path).with_file_name(OsStr::from_bytes(name.to_bytes())).into()
            }
            None => path,
        }
    }

    /// Whether the target has all that was asked for, as far as this user may give it. Else something was
    /// lost, which was said.
    fn is_whole(&self) -> bool {
        self.lost.get().is_none()
    }

    /// Whether the target may have other attributes than a new file.
    fn was_there(&self) -> bool {
        matches!(self.made.origin, Origin::Uncertain | Origin::Found(_))
    }
}

/// Carries attributes over. Shared by all threads.
pub struct Attributes<'a> {
    preserve: Preserve,
    pub(super) remarks: Remarks<'a>,
    expectation: Expectation,
    /// Permissions that the umask leaves to new files.
    unmasked: OnceLock<u32>,
    /// Whether the kernel would let us give files away, as far as cp asks: who is not root expects
    /// no owner to be kept.
    is_privileged: bool,
    /// Directories that were there lose what their sources have not got, as files do.
    is_mirror: bool,
    incomplete: AtomicU64,
    losses: Losses<AtomicU64>,
}

impl<'a> Attributes<'a> {
    /// Attributes of this set are kept; the watch hears what cannot be. Without a umask that is known
    /// it is looked up when it is needed.
    pub fn new(preserve: Preserve, umask: Option<u32>, watch: &'a dyn Watch) -> Self {
        Self {
            preserve,
            remarks: Remarks::new(watch),
            expectation: Expectation::default(),
            unmasked: umask.map_or_else(OnceLock::new, |umask| OnceLock::from(0o777 & !umask)),
            is_privileged: rustix::process::geteuid().is_root(),
            is_mirror: false,
            incomplete: AtomicU64::new(0),
            losses: Losses::default(),
        }
    }

    /// Those of a copy with these options.
    pub(super) fn of(options: &CopyOptions, watch: &'a dyn Watch) -> Self {
        let is_mirror = options.deletion.is_some();
        Self { is_mirror, ..Self::new(options.preserve, options.umask, watch) }
    }

    /// Entries that were copied without something of their source for which `cp -a` would fail: an
    /// access control list, an owner that root cannot give, a mode, times, hard links.
    pub fn incomplete(&self) -> u64 {
        self.incomplete.load(Ordering::Relaxed)
    }

    /// How many entries lost something, by what.
    pub(super) fn losses(&self) -> Losses<u64> {
        std::array::from_fn(|index| self.losses[index].load(Ordering::Relaxed))
    }

    /// An entry was copied, from one path to another, without something for which `cp -a` would fail.
    pub(super) fn is_incomplete(
        &self,
        [source, target]: [OsString; 2],
        code: &'static str,
        cause: Option<Errno>,
    ) {
        self.incomplete.fetch_add(1, Ordering::Relaxed);
        self.remarks.watch.event(&Event::Incomplete { source, target, code, cause });
    }

    /// Takes from a new directory the lists that it inherited, before anything is made in it: its
    /// entries would inherit them again. No call where nothing was inherited, or modes are not kept.
    ///
    /// Errors: a list stays, and could let somebody in.
    pub fn bare(&self, target: BorrowedFd<'_>, inheritance: Inheritance) -> Result<(), Refusal> {
        if inheritance.has_default_acl() && self.preserve.has(Preserve::MODE) {
            let target = Node::of_directory(target);
            without_acl(target, acl::ACCESS)?;
            without_acl(target, acl::DEFAULT)?;
        }
        Ok(())
    }

    /// Finishes a regular file, new or written again. The target is its owner's alone until then; it will be
    /// `called` so, where it has another name now. Says whether nothing was lost.
    ///
    /// Cost of a new file: flistxattr of the source, futimens and fchmod, and fchown when the owner
    /// is to be another. What else a call is made for: each attribute of the source; a directory
    /// with a default ACL; set-id bits; the first file on a filesystem.
    ///
    /// Errors: the kernel refuses for reasons that have to do with this file or with storage.
    pub fn file(
        &self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        facts: &Stat,
        made: Made,
        called: Option<&CStr>,
    ) -> Result<bool, Refusal> {
        let job = Job::new(Node::Open(source), Node::Open(target), facts, made);
        // Its source may be a FIFO or device.
        let job = Job { called, kind: FileType::RegularFile, ..job };
        self.apply(&job, None)?;
        Ok(job.is_whole())
    }

    /// Finishes a directory, new or merged into, after all that is in it.
    ///
    /// Cost and errors: as [`Attributes::file`], and three calls more: the flags of the source, and
    /// on both sides, how the descriptor was opened.
    pub fn directory(
        &self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        facts: &Stat,
        made: Made,
    ) -> Result<(), Refusal> {
        let [from, to] = [source, target].map(Node::of_directory);
        let job = Job::new(from, to, facts, made);
        if !self.keeps_flags() && from.is_locked() {
            self.lose(&job, Loss::Locked, None);
        }
        self.apply(&job, None)?;
        self.end_flags((source, target), facts, self.flags_of(source), made).map(drop)
    }

    /// Sets all attributes, or where it is known what was found, those that differ. Says whether
    /// anything was set. What the target cannot keep makes it one of [`Attributes::incomplete`].
    fn apply(&self, job: &Job<'_>, found: Option<&Stat>) -> Result<bool, Refusal> {
        let applied = self.set_all(job, found);
        // One that failed is counted as such.
        if let (Ok(_), Some((loss, cause))) = (&applied, job.lost.get())
            && self.fails(loss)
        {
            let both = [job.source.shown(), job.shown()];
            self.is_incomplete(both, loss.code(), cause);
        }
        applied
    }

    fn set_all(&self, job: &Job<'_>, found: Option<&Stat>) -> Result<bool, Refusal> {
        let names = self.source_names(job)?;
        self.strip(job, &names)?;
        let current = self.current_owner(job)?;
        let is_restricted = current != self.wanted_owner(job, current) && self.restrict(job);
        let owner = self.own(job, current)?;
        let carried = self.extend(job, &names)?;
        let mut changed = owner != current || is_restricted || carried.changed;
        let mode = self.mode(job, owner, carried.without_list);
        // What was set so far may have changed the mode.
        let sets_mode = changed || found.is_none_or(|f| Some(f.st_mode & MODE_BITS) != mode);
        if self.preserve.has(Preserve::TIMESTAMPS) {
            changed |= self.set_times(job, found)?;
        }
        if let Some(mode) = mode.filter(|_| sets_mode) {
            self.set_mode(job, mode)?;
            changed = true;
            if self.preserve.has(Preserve::TIMESTAMPS) && makes_time_another(job, mode) {
                self.set_times(job, None)?;
            }
        }
        self.look_whether_kept(job, mode);
        carried.late.map_or(Ok(changed), Err)
    }

    /// Whether `cp -a` has failed where it cannot keep this. What else is lost is said, no more.
    fn fails(&self, loss: Loss) -> bool {
        match loss.code() {
            "xattr_not_kept" | "capability_not_kept" => self.preserve.has(Preserve::DEMANDED),
            _ => matches!(loss, Loss::Owner | Loss::Mode | Loss::Times | Loss::Acl),
        }
    }

    /// Says once that something is not kept on the filesystem of the target.
    fn lose(&self, job: &Job<'_>, loss: Loss, cause: Option<Errno>) {
        let graver = job.lost.get().filter(|(lost, _)| self.fails(*lost) && !self.fails(loss));
        job.lost.set(graver.or(Some((loss, cause))));
        let (before, bit) = (job.losses.get(), 1 << loss as u32);
        if before & bit == 0 {
            job.losses.set(before | bit);
            self.losses[loss as usize].fetch_add(1, Ordering::Relaxed);
        }
        let device = match job.made.inheritance.device {
            0 => job.target.stat().map_or(0, |facts| facts.st_dev as _),
            device => device,
        };
        self.remarks.say((loss, cause), device, || job.shown());
    }

    /// A refusal if chattr(1) has locked what was there before: nothing that was made by us is.
    fn check_lock(
        &self,
        job: &Job<'_>,
        operation: &'static str,
        errno: Errno,
    ) -> Result<(), Refusal> {
        if errno == Errno::PERM && job.was_there() && job.target.is_locked() {
            return Err(Refusal::because(operation, "it is immutable or append-only (chattr)"));
        }
        Ok(())
    }
}
