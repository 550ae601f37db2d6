//! The owner of a target, and the set-id bits that hang on it.
//!
//! Comes first of all attributes: chown(2) takes set-id bits and file capabilities away.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, Gid, Stat, Uid};
use rustix::io::Errno;

use super::inheritance::{Inheritance, Origin};
use super::remarks::{Loss, Losses};
use super::{Attributes, Job, SET_GROUP_ID, SET_ID_BITS};
use crate::copy::{Preserve, Refusal};

/// What is answered where an owner cannot be set: without privilege; an id that the user namespace
/// does not know, or the mapping of a mount (EOVERFLOW); filesystems without owners.
const CANNOT: [Errno; 5] =
    [Errno::PERM, Errno::INVAL, Errno::OVERFLOW, Errno::OPNOTSUPP, Errno::NOSYS];

const SET: &str = "set the owner of";

/// User and group.
pub(super) type Owner = (u32, u32);

/// Filesystems where new files have the owner that was expected, so that nobody asks again. The
/// last one by each rule is remembered: a copy mostly has one target.
#[derive(Debug, Default)]
pub(super) struct Expectation {
    /// Where the groups by both rules were the same.
    certain: AtomicU64,
    /// Where they were not, and that of the process came true.
    uncertain: AtomicU64,
    /// Where what is set of a symlink would be set of what it leads to.
    followed: AtomicU64,
    /// Where an owner that was set was there afterwards.
    keeps: AtomicU64,
    /// Where a mode, and times, were looked for afterwards.
    pub(super) mode_looked_for: AtomicU64,
    pub(super) times_looked_for: AtomicU64,
    /// The same of each kind of attribute, where it had one.
    pub(super) attributes_looked_for: Losses<AtomicU64>,
}

impl Expectation {
    fn of(&self, inheritance: Inheritance) -> &AtomicU64 {
        if inheritance.group_is_certain { &self.certain } else { &self.uncertain }
    }

    /// Something new was looked at.
    pub(super) fn compare(&self, inheritance: Inheritance, found: &Stat) {
        if (found.st_uid, found.st_gid) == inheritance.owner && found.st_dev == inheritance.device {
            self.of(inheritance).store(inheritance.device, Ordering::Relaxed);
        }
    }
}

impl Attributes<'_> {
    /// Nothing is set of symlinks of this filesystem any more: it would be set of what they lead to.
    pub(in crate::copy) fn expect_followed(&self, device: u64) {
        self.expectation.followed.store(device, Ordering::Relaxed);
    }

    pub(super) fn is_followed(&self, kind: FileType, device: u64) -> bool {
        let followed = self.expectation.followed.load(Ordering::Relaxed);
        kind.is_symlink() && device != 0 && followed == device
    }

    /// Whether new files of a filesystem were seen to have the owner that is expected here.
    pub(super) fn is_predictable(&self, inheritance: Inheritance) -> bool {
        let proved = self.expectation.of(inheritance);
        // Only a hint that saves a call: any order will do.
        inheritance.device != 0 && proved.load(Ordering::Relaxed) == inheritance.device
    }

    /// The owner that the target has now. No call once the filesystem has proved predictable.
    pub(super) fn current_owner(&self, job: &Job<'_>) -> Result<Owner, Refusal> {
        let expected = job.made.owner;
        let inheritance = job.made.inheritance;
        if job.made.origin != Origin::Expected {
            return Ok(expected);
        }
        if self.is_predictable(inheritance) {
            return Ok(expected);
        }
        let facts = job.target.stat().map_err(Refusal::of("read the attributes of"))?;
        self.expectation.compare(inheritance, &facts);
        Ok((facts.st_uid, facts.st_gid))
    }

    /// The owner that the target is to have.
    pub(super) fn wanted_owner(&self, job: &Job<'_>, current: Owner) -> Owner {
        match self.preserve.has(Preserve::OWNERSHIP) {
            true => (job.facts.st_uid, job.facts.st_gid),
            false => current,
        }
    }

    /// Gives the target the owner of its source, and says which it has then. Only what differs is
    /// set, and if not both can be had, the group alone.
    pub(super) fn own(&self, job: &Job<'_>, current: Owner) -> Result<Owner, Refusal> {
        let wanted = self.wanted_owner(job, current);
        if current == wanted {
            return Ok(current);
        }
        if self.is_followed(job.kind, job.made.inheritance.device) {
            self.lose(job, Loss::Owner, None);
            return Ok(current);
        }
        let user = (current.0 != wanted.0).then(|| Uid::from_raw(wanted.0));
        let group = (current.1 != wanted.1).then(|| Gid::from_raw(wanted.1));
        match job.target.set_owner(user, group) {
            Ok(()) => self.given(job, wanted),
            Err(errno) if CANNOT.contains(&errno) => {
                self.check_lock(job, SET, errno)?;
                // Nobody expects an owner to be kept then: the rule of cp, which is silent.
                let told = [Errno::PERM, Errno::INVAL, Errno::OVERFLOW];
                if self.is_privileged || !told.contains(&errno) {
                    self.lose(job, Loss::Owner, Some(errno));
                }
                let has_group =
                    user.is_some() && group.is_some() && job.target.set_owner(None, group).is_ok();
                Ok((current.0, if has_group { wanted.1 } else { current.1 }))
            }
            Err(errno) => Err(Refusal::of(SET)(errno)),
        }
    }

    /// The owner that the target has once one was set: some filesystems (cifs, many FUSE servers) accept
    /// owners and forget them. No call once the filesystem has proved to keep them, but for set-id bits.
    fn given(&self, job: &Job<'_>, wanted: Owner) -> Result<Owner, Refusal> {
        let device = job.made.inheritance.device;
        // Only a hint that saves a call, as above.
        let is_proved = device == 0 || self.expectation.keeps.load(Ordering::Relaxed) == device;
        if is_proved && job.facts.st_mode & SET_ID_BITS == 0 {
            return Ok(wanted);
        }
        let facts = job.target.stat().map_err(Refusal::of("read the attributes of"))?;
        let given = (facts.st_uid, facts.st_gid);
        if given == wanted {
            self.expectation.keeps.store(device, Ordering::Relaxed);
        } else if self.is_privileged {
            self.lose(job, Loss::Owner, None);
        }
        Ok(given)
    }

    /// The mode without the bits that would lend somebody else's rights: a program that runs as its
    /// owner must not run as another one. A directory lends its group only to what is made in it.
    pub(super) fn without_foreign_rights(&self, job: &Job<'_>, mode: u32, owner: Owner) -> u32 {
        let user_is_kept = owner.0 == job.facts.st_uid;
        let group_is_kept = owner.1 == job.facts.st_gid;
        let lost = match job.kind {
            // As cp: only an owner that was to be kept and is not costs rights, and then all but what protects
            // the files of a directory.
            kind if self.preserve.has(Preserve::WHAT_IS_THERE) => {
                let is_wanted = self.preserve.has(Preserve::OWNERSHIP);
                let all = if kind == FileType::Directory { SET_ID_BITS } else { 0o7000 };
                if is_wanted && !(user_is_kept && group_is_kept) { all } else { 0 }
            }
            FileType::Directory if group_is_kept => 0,
            FileType::Directory => SET_GROUP_ID,
            _ if user_is_kept && group_is_kept => 0,
            _ => SET_ID_BITS,
        };
        if mode & lost != 0 {
            self.lose_set_id(job);
        }
        mode & !lost
    }

    /// Says that set-id bits went with the owner, to whoever may expect owners to be kept.
    pub(super) fn lose_set_id(&self, job: &Job<'_>) {
        if self.is_privileged {
            self.lose(job, Loss::SetId, None);
        }
    }
}
