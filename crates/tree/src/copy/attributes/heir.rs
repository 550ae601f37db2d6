//! What a new file keeps of the one whose place it takes: all that was not asked to change. cp, which
//! writes into the old file, leaves it its owner, mode, list and attributes in the same way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Stat, Uid};

use super::extended::{CANNOT, without_acl};
use super::inheritance::Origin;
use super::node::{Node, pin};
use super::{
    Attributes, Inheritance, LOOK, MODE_BITS, Made, Place, SET_ID_BITS, acl, special::replaced,
};
use crate::copy::{Preserve, Refusal};

const KEEP: &str = "keep the attributes of";
const CAPABILITY: &[u8] = b"security.capability";

impl Attributes<'_> {
    /// Prepares a new file to take the place of `found`, which bears the name `old`: it gets the owner
    /// that it would have had if it had been written into. `None`: that owner cannot be given, and a
    /// new file would be somebody else's; one with several names is not written into, and goes. The old one is
    /// pinned where something of it is kept that only it can tell.
    ///
    /// Cost: a call where the owners differ; others only where attributes are not carried over.
    /// Errors: something else bears the name by now.
    pub fn precede(
        &self,
        new: BorrowedFd<'_>,
        (old, found): (Place<'_>, &Stat),
        source: &Stat,
        inheritance: Inheritance,
    ) -> Result<Option<(Made, Option<OwnedFd>)>, Refusal> {
        let mut made = Made::new(inheritance);
        let owner = (found.st_uid, found.st_gid);
        let wanted = (source.st_uid, source.st_gid);
        let is_root = rustix::process::geteuid().is_root();
        let will_get_another = is_root && self.preserve.has(Preserve::OWNERSHIP);
        if owner != made.owner && !will_get_another {
            let user = (owner.0 != made.owner.0).then(|| Uid::from_raw(owner.0));
            let group = (owner.1 != made.owner.1).then(|| Gid::from_raw(owner.1));
            // As cp, which writes into a file with one name, and removes one with several.
            let is_parted = found.st_nlink > 1 && self.preserve.has(Preserve::LINKS);
            match Node::Open(new).set_owner(user, group) {
                Ok(()) => made = Made { owner, origin: Origin::Known, ..made },
                Err(_) if is_parted => {}
                Err(_) => return Ok(None),
            }
        }
        let [keeps_mode, keeps_extended] = [
            !self.preserve.has(Preserve::MODE),
            !self.preserve.has(Preserve::XATTR) || !self.preserve.has(Preserve::CONTEXT),
        ];
        if keeps_mode {
            // Whoever writes into a file without privilege loses these bits: they do not come back.
            let is_given_away = self.preserve.has(Preserve::OWNERSHIP) && wanted != owner;
            let kept = if is_root && !is_given_away { MODE_BITS } else { MODE_BITS & !SET_ID_BITS };
            made.successor_mode = Some(found.st_mode & kept);
        }
        if !keeps_mode && !keeps_extended {
            return Ok(Some((made, None)));
        }
        let file = pin(old).map_err(Refusal::of(LOOK))?;
        let now = rustix::fs::fstat(&file).map_err(Refusal::of(LOOK))?;
        if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino) {
            return Err(replaced());
        }
        Ok(Some((made, Some(file))))
    }

    /// Gives a new file what it keeps of its predecessor; to be called when its bytes are complete and
    /// before [`Attributes::file`].
    ///
    /// Errors: something cannot be kept, for example the list that says who may use the file.
    pub fn succeed(
        &self,
        predecessor: Option<&OwnedFd>,
        new: BorrowedFd<'_>,
        made: Made,
    ) -> Result<(), Refusal> {
        let Some(file) = predecessor else { return Ok(()) };
        let (old, new) = (Node::Pinned(file.as_fd()), Node::Open(new));
        let names = old.names().map_err(Refusal::of(KEEP))?;
        for name in names.iter().filter(|name| !self.carries(name)) {
            // Lists come last: as soon as one is there, others may get in.
            if name == acl::ACCESS || name.to_bytes() == CAPABILITY {
                continue;
            }
            let set =
                |value: Option<Vec<u8>>| value.map_or(Ok(()), |value| new.set_value(name, &value));
            match old.value(name).and_then(set) {
                // What is hidden from this user, or cannot be set by it, is not of its making.
                Err(errno) if !CANNOT.contains(&errno) => return Err(Refusal::of(KEEP)(errno)),
                _ => {}
            }
        }
        if self.preserve.has(Preserve::MODE) {
            return Ok(());
        }
        match old.list(acl::ACCESS) {
            Ok(Some(list)) => new.set_value(acl::ACCESS, &list).map_err(Refusal::of(KEEP)),
            Ok(None) if made.inheritance.has_default_acl() => without_acl(new, acl::ACCESS),
            Ok(None) => Ok(()),
            Err(errno) => Err(Refusal::of(KEEP)(errno)),
        }
    }

    /// Whether a list says who may use a file, besides its mode. A call.
    pub fn has_list(&self, file: BorrowedFd<'_>) -> bool {
        Node::Open(file).list(acl::ACCESS) != Ok(None)
    }
}
