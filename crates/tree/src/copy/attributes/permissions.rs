//! The mode of a target: the last attribute that it gets.

use rustix::fs::FileType;
use rustix::io::Errno;

use super::inheritance::DefaultAcl;
use super::owner::Owner;
use super::remarks::Loss;
use super::{Attributes, Job, MODE_BITS};
use crate::copy::failure::Refusal;
use crate::copy::options::Preserve;

const SET_ID_BITS: u32 = 0o6000;
const GROUP_BITS: u32 = 0o070;

const SET: &str = "set the mode of";

impl Attributes<'_> {
    /// The mode that the target shall have; `None` where it has none, or keeps its own.
    pub(super) fn mode(
        &self,
        job: &Job<'_>,
        owner: Owner,
        group_permissions: Option<u32>,
    ) -> Option<u32> {
        if job.kind == FileType::Symlink {
            return None;
        }
        if self.preserve.has(Preserve::MODE) {
            let mode = job.facts.st_mode & MODE_BITS;
            // The group bits of a file with a list are the mask. Where the list is lost, the group
            // would get what only the named users had.
            let kept = group_permissions.map_or(!0, |group| !GROUP_BITS | group << 3);
            return Some(self.without_foreign_rights(job, mode & kept, owner));
        }
        // As any new file, or as it was before.
        let new = if job.kind == FileType::Directory { 0o777 } else { 0o666 };
        let allowed = match job.made.inheritance.acl {
            DefaultAcl::Present(permissions) => permissions,
            DefaultAcl::Absent | DefaultAcl::Unknown => self.unmasked,
        };
        match job.made.found_mode() {
            Some(mode) => Some(self.kept_mode(job.kind, (mode, job.made), owner)),
            None => Some(new & allowed),
        }
    }

    pub(super) fn set_mode(&self, job: &Job<'_>, mode: u32) -> Result<(), Refusal> {
        match job.target.set_mode(mode) {
            Ok(()) => {}
            Err(errno @ (Errno::OPNOTSUPP | Errno::NOSYS)) => {
                self.lose(job, Loss::Mode, Some(errno));
            }
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
            self.lose(job, Loss::SetId, None);
        }
        Ok(())
    }
}

/// The permissions that the umask of the process leaves. Read, not set and set back: other threads
/// create files meanwhile. Where it cannot be read, the owner alone gets any.
pub(super) fn unmasked() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    0o777 & !mask.unwrap_or(0o077)
}
