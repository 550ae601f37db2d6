//! Symlinks, FIFOs, sockets and devices: made, and given their attributes.
//!
//! They cannot be held open from their making on, so what bears the name by then is looked at: it may
//! be another program's.

use std::ffi::CStr;
use std::os::fd::AsFd;

use flatout_sys::filesystem;
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::inheritance::{Inheritance, Made, Origin};
use super::node::pin;
use super::{
    Attributes, Job, LOOK, Node, PRIVATE, Place, are_kept_everywhere, kind_of, timestamps,
};
use crate::copy::{Preserve, Refusal};

/// One that is copied.
#[derive(Debug, Clone, Copy)]
pub struct Special<'a> {
    /// Where it lies.
    pub place: Place<'a>,
    /// What it is.
    pub facts: &'a Stat,
    /// Where a symlink leads; others have none.
    pub text: Option<&'a CStr>,
    /// What its copy will be called.
    pub called: &'a CStr,
}

impl Attributes<'_> {
    /// Makes a symlink, FIFO, socket or device, for its owner alone.
    ///
    /// Errors: `EXIST` as it is, and all others; a kind that is not made like that.
    pub fn make(&self, source: &Special<'_>, target: Place<'_>) -> Result<(), Refusal> {
        let kind = kind_of(source.facts);
        let Place { directory, name } = target;
        let operation = match kind {
            FileType::Symlink => "make the symlink",
            FileType::Fifo => "make the FIFO",
            FileType::Socket => "make the socket",
            FileType::CharacterDevice | FileType::BlockDevice => "make the device",
            _ => return Err(Refusal::because("make", "it is of a kind that is not known")),
        };
        let made = match (kind, source.text) {
            (FileType::Symlink, Some(text)) => rustix::fs::symlinkat(text, directory, name),
            (FileType::Symlink, None) => Err(Errno::INVAL),
            (FileType::Fifo | FileType::Socket, _) => {
                rustix::fs::mknodat(directory, name, kind, PRIVATE, 0)
            }
            // The device that it stands for, not the one that it lies on.
            _ => rustix::fs::mknodat(directory, name, kind, PRIVATE, source.facts.st_rdev as _),
        };
        made.map_err(Refusal::of(operation))
    }

    /// Finishes a symlink, FIFO, socket or device that was just made; `alone` is what it inherited from a
    /// directory that lets nobody else in, and `may_be_new` says whether it may have so many names.
    ///
    /// Errors: as [`Attributes::file`]; something else bears the name by now.
    pub fn entry(
        &self,
        source: &Special<'_>,
        target: Place<'_>,
        alone: Option<Inheritance>,
        may_be_new: impl FnOnce(&Stat) -> bool,
    ) -> Result<(), Refusal> {
        let facts = source.facts;
        let kind = kind_of(facts);
        let alone = alone.filter(|_| kind.is_symlink());
        if alone.is_some_and(|inherited| self.gives_times_alone(source, target, inherited)) {
            return Ok(());
        }
        let pinned = pin(target).map_err(Refusal::of(LOOK))?;
        let node = Node::Pinned(pinned.as_fd());
        let found = node.stat().map_err(Refusal::of(LOOK))?;
        let is_device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
        // What has other names already is not what was just made, but maybe somebody else's.
        if kind_of(found) != kind
            || is_device && found.st_rdev != facts.st_rdev
            || !may_be_new(&found)
            || !leads_as(source, Place { directory: pinned.as_fd(), name: c"" })
        {
            return Err(replaced());
        }
        if let Some(inherited) = alone {
            self.expectation.compare(inherited, &found);
        }
        // What it inherited is found on it. A symlink inherits nothing.
        let made = match kind {
            FileType::Symlink => Made::entry(&found, Origin::Known),
            _ => Made {
                inheritance: Inheritance::of(target.directory),
                ..Made::entry(&found, Origin::Uncertain)
            },
        };
        let called = Some(source.called);
        let job = Job { called, ..Job::new(Node::Named(source.place), node, facts, made) };
        self.apply(&job, None)?;
        self.carry_project(&job)
    }

    /// Gives a new symlink its times by its name, if there is nothing else to be done about it. `false`: there
    /// is, or they could not be set. It is not read: that would be another 1.09 of the time (20,000 in 20
    /// directories, ext4 in memory, Emerald Rapids, 2026-11-29, 9 rounds), and change when it was last read.
    ///
    /// Figures: 20,000 symlinks in 20 directories, cached, new ext4 in memory, AMD EPYC (family 25, model 17),
    /// 2026-11-27, 9 rounds: opening each of them 1.11 of the CPU time.
    fn gives_times_alone(
        &self,
        source: &Special<'_>,
        target: Place<'_>,
        inherited: Inheritance,
    ) -> bool {
        let facts = source.facts;
        let keeps = |what| self.preserve.has(what);
        let is_owned =
            (facts.st_uid, facts.st_gid) == inherited.owner || !keeps(Preserve::OWNERSHIP);
        let is_usual = is_owned
            && self.is_predictable(inherited)
            && !keeps(Preserve::PROJECT)
            && !self.is_followed(FileType::Symlink, inherited.device);
        is_usual
            && self.has_none(Node::Named(source.place))
            && (!keeps(Preserve::TIMESTAMPS)
                || are_kept_everywhere(facts)
                    && rustix::fs::utimensat(
                        target.directory,
                        target.name,
                        &timestamps(facts),
                        AtFlags::SYMLINK_NOFOLLOW,
                    )
                    .is_ok())
    }
}

/// Whether what is there leads where the source does, if that is a symlink, or its server may have made
/// another text of it. What cannot be read does.
fn leads_as(source: &Special<'_>, target: Place<'_>) -> bool {
    let Some(text) = source.text else { return true };
    let found = rustix::fs::readlinkat(target.directory, target.name, Vec::new());
    let is_another = match found {
        Ok(found) => *found != *text,
        Err(errno) => matches!(errno, Errno::NOENT | Errno::INVAL),
    };
    !is_another || filesystem::of(target.directory).is_ok_and(|found| found.is_served())
}

pub(super) fn replaced() -> Refusal {
    Refusal::because("set the attributes of", "something else took its name meanwhile")
}
