//! Extended attributes: which of them are carried, and how. Access control lists and file
//! capabilities are among them (xattr(7)).
//!
//! A target that is new has what it inherited; one that was there before may have anything. In both
//! cases it ends with the list of its source, and a file that was there loses what else it had: it
//! would not be a copy. A directory that was there keeps its other attributes, as with `cp -a`, unless it
//! is mirrored.

use std::ffi::CStr;

use flatout_io::digest::{Algorithm, Digest, Hasher};
use flatout_sys::filesystem;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::acl;
use super::inheritance::DefaultAcl;
use super::node::{Names, Node};
use super::remarks::Loss;
use super::{Attributes, Job};
use crate::copy::{Preserve, Refusal};

/// What a filesystem answers, or a kernel to a user without privilege, that cannot have an
/// attribute: not supported; not for this user (`trusted.*`, `security.*`, foreign files); a value
/// that means nothing here, for example an id outside of the user namespace.
pub(in crate::copy) const CANNOT: [Errno; 5] =
    [Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM, Errno::ACCESS, Errno::INVAL];

/// How xfs stores its access control lists. It shows them to root under these names, too; elsewhere
/// they would be waste, and on xfs a second way to set what has been set.
const STORED_LISTS: [&CStr; 2] = [c"trusted.SGI_ACL_FILE", c"trusted.SGI_ACL_DEFAULT"];

/// The operation of a refusal that the source is to blame for.
const READ: &str = super::READ_SOURCE;
const SET: &str = "set the extended attributes of";
const LIST: &str = "list the extended attributes of";
const TOO_MANY: &str = "it has more than the kernel lists (64 KiB of names)";
const REMOVE: &str = "remove an extended attribute of";
const REMOVE_ACL: &str = "remove the access control list of";

/// How the attributes of a file came out.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Whether anything was changed: the mode must be set again, for a list has changed it.
    pub(super) changed: bool,
    /// The list was lost; its group and all others may do no more than this.
    pub(super) without_list: Option<u32>,
    /// An attribute that the target has no room for, or that cannot be listed. The others are carried all
    /// the same.
    pub(super) late: Option<Refusal>,
}

/// Where an attribute belongs.
pub(super) fn loss(name: &CStr) -> Loss {
    match name.to_bytes() {
        b"security.capability" => Loss::Capability,
        b"security.selinux" | b"security.SMACK64" => Loss::Context,
        b"system.posix_acl_access" | b"system.posix_acl_default" => Loss::Acl,
        b"system.nfs4_acl" | b"system.richacl" | b"system.cifs_acl" => Loss::OtherAcl,
        name if name.starts_with(b"user.") => Loss::UserAttribute,
        name if name.starts_with(b"trusted.") => Loss::TrustedAttribute,
        name if name.starts_with(b"security.") => Loss::SecurityAttribute,
        _ => Loss::OtherAttribute,
    }
}

/// Whether it is an access control list.
pub(super) fn is_list(name: &CStr) -> bool {
    matches!(loss(name), Loss::Acl | Loss::OtherAcl)
}

/// What must be asked for so that it is carried; `None`: it never is.
fn wanted_by(name: &CStr) -> Option<Preserve> {
    match loss(name) {
        _ if STORED_LISTS.contains(&name) => None,
        Loss::Acl | Loss::OtherAcl => Some(Preserve::MODE),
        Loss::Context => Some(Preserve::CONTEXT),
        _ => Some(Preserve::XATTR),
    }
}

/// Whether what was there before loses it if its source has not got it. What the system
/// writes by itself (labels, checksums) stays, and so do lists that a server shows of each file (NFSv4), which
/// nobody can remove.
fn is_removable(name: &CStr) -> bool {
    use Loss::{Acl, Capability, TrustedAttribute, UserAttribute};
    matches!(loss(name), Acl | Capability | UserAttribute | TrustedAttribute)
}

impl Attributes<'_> {
    /// The names that the source has: one call, none when none are asked for.
    pub(super) fn source_names(&self, job: &Job<'_>) -> Result<Names, Refusal> {
        if !self.wants_extended() {
            return Ok(Names::none());
        }
        match job.source.known_names() {
            // Without /proc nobody can ask a file that is not open.
            Err(errno @ (Errno::NOENT | Errno::ACCESS | Errno::PERM)) => {
                self.lose(job, Loss::OtherAttribute, Some(errno));
                // Whoever may not list them asks for those that say what others may do.
                let is_asked = errno != Errno::NOENT && job.kind != FileType::Symlink;
                Ok(if is_asked { job.source.names_that_tell() } else { Names::none() })
            }
            listed => listed.map_err(Refusal::of(READ)),
        }
    }

    /// Those that the target has; `None`: this user may not ask, or nobody can without /proc.
    pub(super) fn target_names(&self, job: &Job<'_>) -> Result<Option<Names>, Refusal> {
        match job.target.known_names() {
            Ok(names) => Ok(Some(names)),
            Err(Errno::NOENT | Errno::ACCESS | Errno::PERM) => Ok(None),
            Err(errno) => Err(Refusal::of(LIST)(errno)),
        }
    }

    /// Whether a source has nothing that would have to be asked for and set.
    pub fn has_none(&self, source: Node<'_>) -> bool {
        !self.wants_extended() || source.has_no_names()
    }

    pub(super) fn wants_extended(&self) -> bool {
        [Preserve::MODE, Preserve::XATTR, Preserve::CONTEXT]
            .into_iter()
            .any(|one| self.preserve.has(one))
    }

    /// Takes the lists away that a new target got from its directory and its source has not got.
    /// Before anything else: they could let somebody in as soon as the mode is set.
    pub(super) fn strip(&self, job: &Job<'_>, names: &Names) -> Result<(), Refusal> {
        let inherited = job.made.inheritance.acl != DefaultAcl::Absent;
        if job.was_there() || !inherited || !self.preserve.has(Preserve::MODE) {
            return Ok(());
        }
        for list in [acl::ACCESS, acl::DEFAULT] {
            if (list == acl::ACCESS || job.kind == FileType::Directory) && !names.has(list) {
                without_acl(job.target, list)?;
            }
        }
        Ok(())
    }

    /// A list that the source has and the target cannot have leaves none behind that the target
    /// got from its directory, and group and others may do no more than by the list; nothing at all
    /// where it is not known what it says.
    fn go_without(
        &self,
        job: &Job<'_>,
        name: &CStr,
        value: Option<&[u8]>,
        carried: &mut Carried,
    ) -> Result<(), Refusal> {
        if name != acl::ACCESS && name != acl::DEFAULT {
            return Ok(());
        }
        if name == acl::ACCESS {
            carried.without_list = Some(value.and_then(acl::without_list).unwrap_or(0));
            carried.changed = true;
        }
        if job.made.inheritance.acl != DefaultAcl::Absent {
            if name == acl::ACCESS && job.was_there() {
                close_group(job);
            }
            without_acl(job.target, name)?;
        }
        Ok(())
    }

    /// Gives the target the attributes of its source.
    pub(super) fn extend(&self, job: &Job<'_>, names: &Names) -> Result<Carried, Refusal> {
        let mut carried = Carried::default();
        if job.was_there() {
            self.remove_others(job, names, &mut carried)?;
        }
        for name in names.iter().filter(|name| self.carries(name)) {
            let value = match job.source.value(name) {
                Ok(Some(value)) => value,
                // It went away meanwhile.
                Ok(None) => continue,
                Err(errno) if CANNOT.contains(&errno) => {
                    self.lose(job, loss(name), Some(errno));
                    self.go_without(job, name, None, &mut carried)?;
                    continue;
                }
                Err(errno) => return Err(Refusal::of(READ)(errno)),
            };
            let is_there = |found| matches!(found, Ok(Some(found)) if found == value);
            if job.was_there() && is_there(job.target.value(name)) {
                continue;
            }
            self.set(job, name, &value, &mut carried)?;
        }
        if self.lacks_some(names) {
            carried.late = Some(Refusal::because(READ, TOO_MANY));
        }
        Ok(carried)
    }

    fn set(
        &self,
        job: &Job<'_>,
        name: &CStr,
        value: &[u8],
        carried: &mut Carried,
    ) -> Result<(), Refusal> {
        if loss(name) == Loss::Capability {
            write_out(job.target)?;
        }
        if name == acl::ACCESS {
            look_finished(job);
        }
        match insist(job, carried, || job.target.set_value(name, value)) {
            Ok(()) if self.forgets(job, name, value) => {
                self.lose(job, loss(name), None);
                self.go_without(job, name, Some(value), carried)?;
            }
            Ok(()) => carried.changed = true,
            // 9p removes what gets no value, which is not there yet.
            Err(errno) if CANNOT.contains(&errno) || errno == Errno::NODATA => {
                self.check_lock(job, SET, errno)?;
                if !acl::is_mode(name, value) {
                    self.lose(job, loss(name), Some(errno));
                }
                self.go_without(job, name, Some(value), carried)?;
            }
            // ext4 says that when the value does not fit beside the inode and in a block, however
            // much space there is: the file has failed, but the disk is not full.
            Err(Errno::NOSPC | Errno::TOOBIG) if has_space(job.target) => {
                self.go_without(job, name, Some(value), carried)?;
                carried.late = Some(Refusal::because(SET, "they are too large for the filesystem"));
            }
            Err(errno) => return Err(Refusal::of(SET)(errno)),
        }
        Ok(())
    }

    /// Removes what a target that was there has besides.
    fn remove_others(
        &self,
        job: &Job<'_>,
        names: &Names,
        carried: &mut Carried,
    ) -> Result<(), Refusal> {
        if !self.wants_extended() {
            return Ok(());
        }
        let Some(found) = self.target_names(job)? else { return Ok(()) };
        if self.has_unknown_surplus(&found, names, job.kind) {
            carried.late = Some(Refusal::because(LIST, TOO_MANY));
        }
        for name in found.iter().filter(|name| self.is_surplus(name, names, job.kind)) {
            if name == acl::ACCESS {
                close_group(job);
            }
            let removed = insist(job, carried, || job.target.remove(name));
            removed.map_err(Refusal::of(if is_list(name) { REMOVE_ACL } else { REMOVE }))?;
            carried.changed = true;
        }
        Ok(())
    }

    /// Whether the target must lose an attribute.
    pub(super) fn is_surplus(&self, name: &CStr, names: &Names, kind: FileType) -> bool {
        let is_merged = kind == FileType::Directory && !self.is_mirror;
        let may_stay = self.preserve.has(Preserve::WHAT_IS_THERE) || is_merged;
        let must_go = is_list(name) || !may_stay && !names.is_part();
        self.carries(name) && is_removable(name) && must_go && !names.has(name)
    }

    /// Whether a source has attributes that are asked for and that nobody can list.
    pub(super) fn lacks_some(&self, names: &Names) -> bool {
        names.is_part() && self.preserve.has(Preserve::XATTR)
    }

    /// Whether a target that has too many attributes for a list should lose some of them.
    pub(super) fn has_unknown_surplus(&self, found: &Names, names: &Names, kind: FileType) -> bool {
        found.is_part() && self.is_surplus(c"user.", names, kind)
    }

    pub(super) fn carries(&self, name: &CStr) -> bool {
        wanted_by(name).is_some_and(|wanted| self.preserve.has(wanted))
    }
}

/// Digests of the extended attributes of an entry and of its lists, and of what only root sees
/// (`trusted.*`); `None`: it has none. What the system writes by itself (labels, checksums) is not
/// among them.
///
/// Errors: they cannot be read.
pub(crate) fn digests_of(node: Node<'_>) -> std::io::Result<[Option<Digest>; 2]> {
    let names = node.names()?;
    let told = [Loss::Acl, Loss::OtherAcl, Loss::Capability, Loss::UserAttribute];
    let visible = digest_of(node, &names, |name| told.contains(&loss(name)))?;
    let is_hidden =
        |name: &CStr| loss(name) == Loss::TrustedAttribute && !STORED_LISTS.contains(&name);
    Ok([visible, digest_of(node, &names, is_hidden)?])
}

fn digest_of(
    node: Node<'_>,
    names: &Names,
    is_told: impl Fn(&CStr) -> bool,
) -> std::io::Result<Option<Digest>> {
    let mut names: Vec<&CStr> = names.iter().filter(|name| is_told(name)).collect();
    names.sort_unstable();
    let mut hasher = Hasher::new(Algorithm::Blake3);
    for name in &names {
        // One that went away meanwhile is as one that is empty: the next look tells.
        let value = node.value(name)?.unwrap_or_default();
        hasher.update(name.to_bytes_with_nul());
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(&value);
    }
    Ok((!names.is_empty()).then(|| hasher.finish()))
}

/// Removes a list. Where there are none there is nothing to remove.
pub(super) fn without_acl(target: Node<'_>, list: &CStr) -> Result<(), Refusal> {
    match target.remove(list) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(Refusal::of(REMOVE_ACL)(errno)),
    }
}

/// Takes the mark of what is unfinished from a new directory that gets a list: whoever is stopped behind that
/// leaves it with the permissions of the list, and it would be taken for a sticky one of somebody else.
fn look_finished(job: &Job<'_>) {
    if job.kind.is_dir() && job.made.found_mode().is_none() {
        // The mode that is set in the end says what does not work.
        let _refused = job.target.set_mode(0o700);
    }
}

/// Takes the permissions of the group of a file that loses its list: they are the mask until then,
/// and would be the group's from then on. The mode is set afterwards.
fn close_group(job: &Job<'_>) {
    if let Ok(facts) = job.target.stat() {
        // Who may not do that may not remove the list.
        let _refused = job.target.set_mode(facts.st_mode & 0o7777 & !0o070);
    }
}

/// Has a server get what it has not got yet: bytes that come later take a file's capabilities away, as each
/// write does.
fn write_out(target: Node<'_>) -> Result<(), Refusal> {
    match target {
        Node::Open(file) if filesystem::of(file).is_ok_and(|found| found.is_served()) => {
            rustix::fs::fdatasync(file).map_err(Refusal::of("write"))
        }
        _ => Ok(()),
    }
}

/// Does something, and once more after it has let the owner write: without privilege, `user.*` may be
/// written by whoever may write the file, and by nobody else, its owner included. The mode is set
/// afterwards.
fn insist(
    job: &Job<'_>,
    carried: &mut Carried,
    act: impl Fn() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let done = act();
    let own = if job.kind == FileType::Directory { 0o700 } else { 0o600 };
    let opens_up = |facts: Stat| {
        facts.st_mode & own != own && job.target.set_mode(facts.st_mode & 0o7777 | own).is_ok()
    };
    if done != Err(Errno::ACCESS) || !job.target.stat().is_ok_and(opens_up) {
        return done;
    }
    carried.changed = true;
    act()
}

fn has_space(target: Node<'_>) -> bool {
    let (Node::Open(file) | Node::Pinned(file)) = target else {
        return false;
    };
    rustix::fs::fstatfs(file).is_ok_and(|facts| facts.f_bavail > 0)
}
