//! One entry of a directory, and what came of it.

use std::ffi::{CStr, OsString};
use std::sync::Arc;

use flatout_io::digest::Digest;
use flatout_io::quote;
use flatout_io::transfer::Method;
use rustix::fs::{AtFlags, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::attributes::{self, Place};
use super::existing::OVERWRITE;
use super::links::{self, Met, nanoseconds};
use super::peculiar::MADE_UP;
use super::standing::is_read;
use super::{Action, Copy, Directory, Identity, Pair, Refusal, Side, content, identity};
use crate::file_data::{find, kind_of, look};

/// An entry of the source and the name of its copy.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) copy: &'e Copy<'e>,
    pub(super) directory: &'e Arc<Directory>,
    pub(super) pair: &'e Pair,
    pub(super) source: &'e CStr,
    pub(super) target: &'e CStr,
}

impl<'e> Entry<'e> {
    /// Its path, for people.
    pub(super) fn path(&self, side: Side) -> OsString {
        let name = if side == Side::Source { self.source } else { self.target };
        self.directory.path(side, Some(name))
    }

    /// Those of both sides.
    pub(super) fn paths(&self) -> [OsString; 2] {
        [Side::Source, Side::Target].map(|side| self.path(side))
    }

    /// The same in a sentence.
    pub(super) fn shown(&self, side: Side) -> String {
        quote(self.path(side))
    }

    pub(super) fn source_place(&self) -> Place<'e> {
        Place { directory: self.pair.source(), name: self.source }
    }

    pub(super) fn target_place(&self) -> Place<'e> {
        Place { directory: self.pair.target(), name: self.target }
    }

    /// What the source is now.
    pub(super) fn look(&self) -> Result<Stat, Trouble> {
        look(self.pair.source(), self.source).map_err(source("examine"))
    }

    /// What the source is now, followed where the rules of the copy say so.
    pub(super) fn facts(&self) -> Result<Stat, Trouble> {
        match self.copy.follows(self.directory) {
            true => rustix::fs::statat(self.pair.source(), self.source, AtFlags::empty())
                .map_err(source("examine")),
            false => self.look(),
        }
    }

    /// Whether a source is the one that was met like this, and changed since: not one that was made later,
    /// and has its inode. Where a filesystem tells no birth times, size and modification time must be as
    /// they were: rather two files of one than one of two.
    ///
    /// Cost: a statx.
    pub(super) fn was_met(&self, facts: &Stat, met: Met) -> bool {
        let follows = self.copy.follows(self.directory);
        let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        match rustix::fs::statx(self.pair.source(), self.source, flags, StatxFlags::BTIME) {
            Ok(now)
                if now.stx_ino == facts.st_ino && now.stx_mask & StatxFlags::BTIME.bits() != 0 =>
            {
                let born = now.stx_btime;
                nanoseconds(born.tv_sec, born.tv_nsec.into()) <= met.changed_ns
            }
            _ => {
                let is_as_it_was = links::mark(facts).1 == met.mark;
                if !is_as_it_was {
                    self.copy.lose_links(
                        *self,
                        "their source was changed, and its filesystem tells no birth times",
                    );
                }
                is_as_it_was
            }
        }
    }

    /// Whether source and target are one name in one directory.
    pub(super) fn is_one_name(&self) -> bool {
        let found = &self.pair.found;
        self.source == self.target && identity(&found.facts) == found.target
    }

    /// What bears the name in the target; `None`: nothing.
    pub(super) fn in_the_way(&self) -> Result<Option<Stat>, Trouble> {
        self.refuse_made_up()?;
        find(self.pair.target(), self.target).map_err(target("examine"))
    }

    /// Refuses to take for a copy what has another name, and bears this one besides.
    pub(super) fn refuse_made_up(&self) -> Result<(), Trouble> {
        match self.copy.peculiarities.is_made_up(*self) {
            true => Err(refused(OVERWRITE, MADE_UP)),
            false => Ok(()),
        }
    }

    /// Whether what is there becomes what the source is, of whatever kind: in a mirror, but not for what is named.
    pub(super) fn is_mirrored(&self) -> bool {
        self.copy.options.deletion.is_some() && self.directory.parent.is_some()
    }

    /// Whether what is of another kind makes room when what takes its name is complete. A plan asks what would stay.
    pub(super) fn displaces(&self) -> bool {
        self.is_mirrored() && !self.copy.is_plan()
    }

    /// The device that takes its bytes in the target: that of its directory, unless something is mounted
    /// there; by the rules of cp it may be a device, or a symlink that leads elsewhere.
    pub(super) fn device(&self) -> u64 {
        let (at, flags) = (self.pair.target(), AtFlags::SYMLINK_NOFOLLOW);
        let by_rules = self.copy.rules().zip(self.facts().ok());
        if by_rules.is_some_and(|(rules, facts)| is_read(&rules, &facts))
            && let Ok(Some(found)) = self.in_the_way()
            && !kind_of(found).is_file()
            && let Ok(behind) = rustix::fs::statat(at, self.target, AtFlags::empty())
        {
            let is_device = kind_of(behind).is_char_device() || kind_of(behind).is_block_device();
            return if is_device { behind.st_rdev } else { behind.st_dev };
        }
        match rustix::fs::statx(at, self.target, flags, StatxFlags::empty()) {
            Ok(found) if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) => {
                rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor)
            }
            _ => self.pair.found.target.0,
        }
    }
}

/// What was done with an entry.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) action: Action,
    pub(super) bytes: u64,
    pub(super) method: Option<Method>,
    /// Of the bytes of a file, where it was made.
    pub(super) digest: Option<Digest>,
    /// The mark of what was made, where it was looked at.
    pub(super) mark: Option<Identity>,
    /// The path below the base of which it became another name.
    pub(super) link_of: Option<Vec<u8>>,
    /// It is there, but not as it should be.
    pub(super) blemish: Option<Trouble>,
}

impl Outcome {
    pub(super) fn of(action: Action) -> Self {
        Self {
            action,
            bytes: 0,
            method: None,
            digest: None,
            mark: None,
            link_of: None,
            blemish: None,
        }
    }
}

/// Why an entry was not copied, and on whose side.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Something about the source.
    Source(Refusal),
    /// Something about the target.
    Target(Refusal),
    /// Something bears the name that may not be replaced, unless the target is to be the same as the
    /// source.
    Obstacle(Refusal),
    /// It is of another kind by now.
    Became,
    /// Another process copies it.
    Entrusted,
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::of(refusal)
    }
}

impl Trouble {
    /// Puts a refusal on the side that its operation is to blame for.
    pub(super) fn of(refusal: Refusal) -> Self {
        match refusal.operation {
            attributes::READ_SOURCE | attributes::READ_FLAGS | content::READ => {
                Self::Source(refusal)
            }
            _ => Self::Target(refusal),
        }
    }

    /// What the kernel said of the target.
    pub(super) fn target_errno(&self) -> Option<Errno> {
        match self {
            Self::Target(refusal) | Self::Obstacle(refusal) => refusal.errno(),
            _ => None,
        }
    }
}

/// Puts a refusal on the side of the source; made for `map_err`.
pub(super) fn source(operation: &'static str) -> impl FnOnce(Errno) -> Trouble {
    move |errno| Trouble::Source(Refusal::of(operation)(errno))
}

/// Puts a refusal on the side of the target; made for `map_err`.
pub(super) fn target(operation: &'static str) -> impl FnOnce(Errno) -> Trouble {
    move |errno| Trouble::Target(Refusal::of(operation)(errno))
}

/// Something of another kind is in the way.
pub(super) fn obstacle(operation: &'static str, reason: &'static str) -> Trouble {
    Trouble::Obstacle(Refusal::because(operation, reason))
}

/// A reason of ours not to touch what is in the target.
pub(super) fn refused(operation: &'static str, reason: &'static str) -> Trouble {
    Trouble::Target(Refusal::because(operation, reason))
}
