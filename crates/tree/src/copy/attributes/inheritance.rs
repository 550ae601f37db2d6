//! What a directory gives to what is made in it: its group, and its default ACL.
//!
//! Asked once per directory, so that a new file need not be asked for what can be known before.

use std::os::fd::BorrowedFd;

use rustix::fs::Stat;

use super::node::Node;
use super::{MODE_BITS, SET_GROUP_ID, acl};
use crate::wire::{goes_by_fields, goes_by_variants};

/// What new entries of a directory get from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inheritance {
    /// Where the directory lies; 0: not known.
    pub(super) device: u64,
    /// User and group that a new entry should have. Mount options (`grpid`) and filesystems that
    /// know one user only may have it otherwise; [`super::Attributes`] makes sure once per
    /// filesystem and rule.
    pub(super) owner: (u32, u32),
    /// Whether the group is the same by both rules, that of the process and that of the directory.
    pub(super) group_is_certain: bool,
    pub(super) acl: DefaultAcl,
}

/// The default ACL of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultAcl {
    Absent,
    /// There is one; these are the permissions that it lets a new file have.
    Present(u32),
    /// It could not be read.
    Unknown,
}

impl Inheritance {
    /// Looks at a directory in which something is to be made. Three calls.
    ///
    /// It cannot fail: what is not known is taken for the worst.
    pub fn of(directory: BorrowedFd<'_>) -> Self {
        let process = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let acl = match Node::of_directory(directory).list(acl::DEFAULT) {
            Ok(None) => DefaultAcl::Absent,
            Ok(Some(value)) => {
                acl::permissions(&value).map_or(DefaultAcl::Unknown, DefaultAcl::Present)
            }
            Err(_) => DefaultAcl::Unknown,
        };
        let Ok(facts) = rustix::fs::fstat(directory) else {
            return Self { device: 0, owner: process, group_is_certain: false, acl };
        };
        let hands_on = facts.st_mode & SET_GROUP_ID != 0;
        let owner = (process.0, if hands_on { facts.st_gid } else { process.1 });
        let group_is_certain = owner.1 == facts.st_gid;
        Self { device: facts.st_dev as _, owner, group_is_certain, acl }
    }

    /// Whether new entries get an ACL.
    pub fn has_default_acl(&self) -> bool {
        self.acl != DefaultAcl::Absent
    }

    /// What a directory hands on that was just made here and has no default ACL, be it that none
    /// was inherited or that it was taken away. Spares the calls of [`Inheritance::of`].
    pub fn inside_new(self) -> Self {
        Self { acl: DefaultAcl::Absent, ..self }
    }

    /// The same by the number that the device has on this host.
    pub fn on_device(self, device: u64) -> Self {
        Self { device: if self.device == 0 { 0 } else { device }, ..self }
    }
}

/// How a target came to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// User and group that it has.
    pub(super) owner: (u32, u32),
    /// What it got from its directory.
    pub(super) inheritance: Inheritance,
    pub(super) origin: Origin,
    /// Permissions of the file whose place it takes, if they are to stay.
    pub(super) successor_mode: Option<u32>,
    /// Locks (chattr(1)) that were lifted of a directory, which keeps them.
    pub locks: u32,
}

/// What is known of a target before its attributes are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// New; its owner is what is to be expected.
    Expected,
    /// New; its owner was seen.
    Known,
    /// New; its owner was seen, and it may have inherited anything.
    Uncertain,
    /// It was there before with these permissions, and may have any attribute.
    Found(u32),
}

impl Made {
    /// It was just made in a directory that hands this on.
    pub fn new(inheritance: Inheritance) -> Self {
        let owner = inheritance.owner;
        Self { owner, inheritance, origin: Origin::Expected, successor_mode: None, locks: 0 }
    }

    /// It was just made there, and these facts were read of it.
    pub fn seen(inheritance: Inheritance, facts: &Stat) -> Self {
        Self {
            owner: (facts.st_uid, facts.st_gid),
            origin: Origin::Known,
            ..Self::new(inheritance)
        }
    }

    /// A copy that was killed has made it there: it may have any of its attributes, or none.
    pub fn unfinished(inheritance: Inheritance, facts: &Stat) -> Self {
        Self { origin: Origin::Uncertain, ..Self::seen(inheritance, facts) }
    }

    /// It was there before: a directory that is merged into, a file that is written again. The
    /// facts are those from before it was touched.
    pub fn found(facts: &Stat) -> Self {
        Self::entry(facts, Origin::Found(facts.st_mode & MODE_BITS))
    }

    /// Whether this copy has made it, so that nothing of others is in it.
    pub fn is_new(&self) -> bool {
        matches!(self.origin, Origin::Expected | Origin::Known)
    }

    /// Of a directory of which nothing is known.
    pub(super) fn entry(facts: &Stat, origin: Origin) -> Self {
        let owner = (facts.st_uid, facts.st_gid);
        let acl = if origin == Origin::Known { DefaultAcl::Absent } else { DefaultAcl::Unknown };
        let device = facts.st_dev as _;
        let inheritance = Inheritance { device, owner, group_is_certain: true, acl };
        Self { origin, ..Self::new(inheritance) }
    }

    /// The permissions that it had before, or that the file had whose place it takes.
    pub(super) fn found_mode(&self) -> Option<u32> {
        match self.origin {
            Origin::Found(mode) => Some(mode),
            Origin::Expected | Origin::Known | Origin::Uncertain => self.successor_mode,
        }
    }
}

goes_by_variants!(DefaultAcl { 1 => Absent, 2 => Present(permissions), 3 => Unknown });
goes_by_fields!(Inheritance { device, owner, group_is_certain, acl });
goes_by_variants!(Origin { 1 => Expected, 2 => Known, 3 => Uncertain, 4 => Found(mode) });
goes_by_fields!(Made { owner, inheritance, origin, successor_mode, locks });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{message, take};

    #[test]
    fn what_is_packed_comes_back() {
        for acl in [DefaultAcl::Absent, DefaultAcl::Present(0o7777), DefaultAcl::Unknown] {
            for group_is_certain in [false, true] {
                let inheritance =
                    Inheritance { device: u64::MAX, owner: (1, u32::MAX), group_is_certain, acl };
                assert_eq!(take(&mut &message(&[&inheritance])[..]), Some(inheritance));
                for origin in [
                    Origin::Expected,
                    Origin::Known,
                    Origin::Uncertain,
                    Origin::Found(0),
                    Origin::Found(0o4755),
                ] {
                    let owner = (u32::MAX, 2);
                    let made =
                        Made { owner, inheritance, origin, successor_mode: None, locks: 0x30 };
                    assert_eq!(take(&mut &message(&[&made])[..]), Some(made));
                }
            }
        }
    }
}
