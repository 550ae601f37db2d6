//! The mode of a target: the last attribute that it gets.

use std::io::Read;
use std::os::fd::BorrowedFd;

use flatout_sys::caller;
use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;

use super::inheritance::{DefaultAcl, Inheritance};
use super::node::Node;
use super::owner::Owner;
use super::remarks::Loss;
use super::{Attributes, Job, MODE_BITS, PRIVATE, SET_GROUP_ID, SET_ID_BITS, SET_USER_ID, acl};
use crate::copy::{Preserve, Refusal};

const STICKY: u32 = 0o1000;
const SPECIAL_BITS: u32 = 0o7000;
const PERMISSIONS: u32 = 0o777;
const OWNER_BITS: u32 = 0o700;
const GROUP_BITS: u32 = 0o070;
const GROUP_AND_OTHERS: u32 = 0o077;

const SET: &str = "set the mode of";

impl Attributes<'_> {
    /// The mode that the target shall have; `None` where it has none, or keeps its own.
    pub(super) fn mode(
        &self,
        job: &Job<'_>,
        owner: Owner,
        without_list: Option<u32>,
    ) -> Option<u32> {
        if job.kind == FileType::Symlink {
            return None;
        }
        if self.preserve.has(Preserve::MODE) {
            let mode = job.facts.st_mode & MODE_BITS;
            // The group bits of a file with a list are the mask. Where the list is lost, the group
            // would get what only the named users had.
            let kept = without_list.map_or(!0, |allowed| !GROUP_AND_OTHERS | allowed);
            let mode = self.without_foreign_rights(job, mode & kept, owner);
            return Some(mode | self.kept_bits(job));
        }
        if let Some(found) = job.made.found_mode() {
            if self.preserve.has(Preserve::WHAT_IS_THERE) {
                return None;
            }
            // Bits that lend rights do not stay with a file whose owner changed.
            let lends = job.kind == FileType::RegularFile && owner != job.made.owner;
            let kept = if lends { found & !SET_ID_BITS } else { found };
            // What was there may be somebody else's, to whom its mode belongs.
            let is_as_found = || job.target.stat().is_ok_and(|now| now.st_mode & MODE_BITS == kept);
            let is_untouched = job.was_there() && is_as_found();
            return (!is_untouched).then_some(kept);
        }
        // As any new one: what the directory hands on decides, but never beyond the umask.
        let allowed = match job.made.inheritance.acl {
            DefaultAcl::Present(permissions) => permissions | SPECIAL_BITS,
            DefaultAcl::Absent | DefaultAcl::Unknown => MODE_BITS,
        };
        Some(self.mode_unkept(job.kind, job.facts) & allowed | self.kept_bits(job))
    }

    /// The mode with which a copy can be made so that nothing is left to be done about owner and mode:
    /// where both will be as they are to be, its owner may complete it after a kill, and no list is
    /// handed down. `None`: it cannot. Not for what has attributes, nor for what was there.
    pub fn mode_of_new(&self, facts: &Stat, inheritance: Inheritance) -> Option<Mode> {
        let mode = match self.preserve.has(Preserve::MODE) {
            true => facts.st_mode & MODE_BITS,
            false => self.mode_unkept(FileType::RegularFile, facts),
        };
        let is_owned = (facts.st_uid, facts.st_gid) == inheritance.owner
            || !self.preserve.has(Preserve::OWNERSHIP);
        let is_given = mode & !self.unmasked() == 0 && mode & PRIVATE.bits() == PRIVATE.bits();
        let is_certain = inheritance.acl == DefaultAcl::Absent && self.is_predictable(inheritance);
        (is_owned && is_given && is_certain).then_some(Mode::from_raw_mode(mode))
    }

    /// The mode of something new of this kind where that of its source is not kept.
    pub fn mode_unkept(&self, kind: FileType, facts: &Stat) -> u32 {
        let is_plain = self.preserve.has(Preserve::PLAIN_MODE);
        let new = match kind {
            FileType::Directory | FileType::Socket if is_plain => PERMISSIONS,
            _ if is_plain => 0o666,
            _ => facts.st_mode & PERMISSIONS,
        };
        // As with cp, which has mknod(2) give it all bits, and chown(2) take one away.
        let special = match kind {
            FileType::Directory | FileType::RegularFile => 0,
            _ if self.preserve.has(Preserve::OWNERSHIP) => SPECIAL_BITS & !SET_USER_ID,
            _ => SPECIAL_BITS,
        };
        new & self.unmasked() | facts.st_mode & special
    }

    /// The mode with which a file is made by the rules of cp. Where neither owner nor mode are kept, it is as open
    /// as it will be: the next copy would leave what a kill left as it is.
    pub fn mode_of_begun(&self, facts: &Stat) -> Mode {
        match [Preserve::MODE, Preserve::OWNERSHIP].iter().any(|&it| self.preserve.has(it)) {
            true => PRIVATE,
            false => PRIVATE | Mode::from_raw_mode(self.mode_unkept(FileType::RegularFile, facts)),
        }
    }

    /// Bits of a directory that its source does not decide about: an existing one keeps the set-group-ID
    /// bit, by which people share it, and the sticky bit, which protects their files; a new one whose
    /// mode is not copied keeps the one that it inherited, and the sticky bit of its source, as with cp.
    pub(super) fn kept_bits(&self, job: &Job<'_>) -> u32 {
        if self.preserve.has(Preserve::WHAT_IS_THERE.with(Preserve::MODE)) {
            return self.bits_that_stay(job);
        }
        match (job.kind, job.made.found_mode()) {
            (FileType::Directory, Some(found)) => found & (SET_GROUP_ID | STICKY),
            (FileType::Directory, None) if !self.preserve.has(Preserve::MODE) => {
                let inherited = job.target.stat().map_or(0, |facts| facts.st_mode & SET_GROUP_ID);
                inherited | job.facts.st_mode & STICKY
            }
            _ => 0,
        }
    }

    /// Special bits that stay where the source has none, as with cp, which sets the permissions alone
    /// then.
    fn bits_that_stay(&self, job: &Job<'_>) -> u32 {
        let is_new = job.made.found_mode().is_none();
        if job.facts.st_mode & SPECIAL_BITS != 0 || is_new && job.kind != FileType::Directory {
            return 0;
        }
        let found = job.target.stat().map_or(0, |facts| facts.st_mode & SPECIAL_BITS);
        if is_new { found & SET_GROUP_ID } else { found }
    }

    /// Closes what was there to all but its owner where it gives rights that its source does not
    /// give: a new owner or group must not have them, for however short a time. Says whether it did.
    pub(super) fn restrict(&self, job: &Job<'_>) -> bool {
        let Some(found) = job.made.found_mode() else { return false };
        let wanted = job.facts.st_mode;
        job.kind != FileType::Symlink
            && self.preserve.has(Preserve::MODE)
            && found & !wanted & PERMISSIONS != 0
            // Whoever may not do that may not give it another owner, either.
            && job.target.set_mode(found & wanted & OWNER_BITS | self.kept_bits(job)).is_ok()
    }

    /// Takes from a directory that was there the permissions that its source does not give to others,
    /// before anything is copied into it: what is safe behind the source must not be seen until the
    /// directory is complete. Where it is not ours, that is left to the end.
    ///
    /// Cost: a call, and another one where something is taken.
    pub fn narrow(&self, target: BorrowedFd<'_>, facts: &Stat, found: &Stat) {
        if !self.preserve.has(Preserve::MODE) {
            return;
        }
        let node = Node::of_directory(target);
        let mut given = facts.st_mode;
        // The same bits are for others, where the group is another or a list names somebody.
        let has_list = || node.list(acl::ACCESS) != Ok(None);
        if facts.st_gid != found.st_gid || has_list() {
            given &= !GROUP_BITS;
        }
        let surplus = found.st_mode & !given & GROUP_AND_OTHERS;
        if surplus != 0 {
            let _not_ours = node.set_mode(found.st_mode & MODE_BITS & !surplus);
        }
    }

    /// Opens a file that was just made to its owner, where the umask or a default ACL did not let
    /// openat(2) do so: what a kill leaves of it must not keep out who completes it. Where that is
    /// refused, it is as it was made. No call where the owner has what is needed. (What one file got
    /// tells nothing of the next one: filesystems that are mounted in the target may know no umask.)
    pub fn let_owner_in(&self, file: BorrowedFd<'_>, inheritance: Inheritance) {
        if !self.given_to_new(inheritance).contains(PRIVATE) {
            let _refused = rustix::fs::fchmod(file, PRIVATE);
        }
    }

    /// What the umask or a default ACL lets new files and directories have at most.
    pub(in crate::copy) fn given_to_new(&self, inheritance: Inheritance) -> Mode {
        Mode::from_raw_mode(match inheritance.acl {
            DefaultAcl::Absent => self.unmasked(),
            DefaultAcl::Present(permissions) => permissions,
            DefaultAcl::Unknown => 0,
        })
    }

    /// Permissions that the umask leaves to new files. Where nobody has told: read, since other threads
    /// create files meanwhile;
    /// where it cannot be (there is no /proc, or no descriptor is left), set and set back: what is
    /// made meanwhile is for its owner alone in any case.
    pub(in crate::copy) fn unmasked(&self) -> u32 {
        *self.unmasked.get_or_init(|| 0o777 & !told_umask().unwrap_or_else(umask))
    }

    pub(super) fn set_mode(&self, job: &Job<'_>, mode: u32) -> Result<(), Refusal> {
        let has = |mode| job.target.stat().is_ok_and(|facts| facts.st_mode & MODE_BITS == mode);
        match job.target.set_mode(mode) {
            Ok(()) => {}
            Err(errno @ (Errno::OPNOTSUPP | Errno::NOSYS)) => {
                self.lose(job, Loss::Mode, Some(errno));
            }
            // Nothing was to be changed. By the rules of cp that is tried.
            Err(Errno::ROFS) if has(mode) => {}
            Err(Errno::PERM) if !self.preserve.has(Preserve::WHAT_IS_THERE) && has(mode) => {}
            Err(Errno::PERM) => {
                self.check_lock(job, SET, Errno::PERM)?;
                // Who owns a file may set its mode, wherever there are modes (vfat has none).
                let user = rustix::process::geteuid();
                let is_own = || job.target.stat().is_ok_and(|facts| facts.st_uid == user.as_raw());
                if !user.is_root() && !is_own() {
                    return Err(Refusal::of(SET)(Errno::PERM));
                }
                self.lose(job, Loss::Mode, Some(Errno::PERM));
            }
            Err(errno) => return Err(Refusal::of(SET)(errno)),
        }
        // chmod(2) drops the set-group-ID bit silently when the group is not one of ours.
        if mode & SET_ID_BITS != 0
            && job
                .target
                .stat()
                .is_ok_and(|facts| facts.st_mode & SET_ID_BITS != mode & SET_ID_BITS)
        {
            self.lose_set_id(job);
        }
        Ok(())
    }
}

/// The umask, as /proc tells it.
fn told_umask() -> Option<u32> {
    // It stands in the second line.
    let mut start = [0; 512];
    let length = std::fs::File::open("/proc/self/status").and_then(|mut it| it.read(&mut start));
    let status = String::from_utf8_lossy(&start[..length.ok()?]);
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

/// The umask, set and set back: for programs in which no other thread makes files meanwhile. What is
/// made is for its owner alone. Where it may not be set, and /proc does not tell it, nothing is for others.
pub fn umask() -> u32 {
    match caller::set_umask(GROUP_AND_OTHERS) {
        Some(found) => {
            caller::set_umask(found);
            found
        }
        None => told_umask().unwrap_or(GROUP_AND_OTHERS),
    }
}

/// Opens a directory that this copy has made to its owner, where the umask or a default ACL did not
/// let mkdirat(2) do so. No call where it has all permissions for its owner. Where that is refused,
/// what is copied into it will tell.
///
/// What bears the name may be something else by now. So only what is the user's own and lets nobody
/// else in is touched, as what was made is, and it lets nobody else in afterwards.
pub fn open_up(target: BorrowedFd<'_>, found: &Stat) {
    if found.st_mode & GROUP_AND_OTHERS == 0 {
        open_to_owner(target, found);
    }
}

/// The same of a directory that was there, whoever else may use it. Returns whether it had not all permissions
/// for its owner, who is the user.
pub fn open_to_owner(target: BorrowedFd<'_>, found: &Stat) -> bool {
    let node = Node::of_directory(target);
    let is_closed = found.st_mode & OWNER_BITS != OWNER_BITS
        && found.st_uid == rustix::process::geteuid().as_raw();
    // It may have been closed to others since.
    let mode = || node.stat().map_or(found.st_mode, |now| now.st_mode) & MODE_BITS;
    is_closed && node.set_mode(mode() | OWNER_BITS).is_ok()
}
