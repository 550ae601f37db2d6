//! Symlinks, FIFOs, sockets and devices; and further names of what was copied before.

use std::ffi::{CStr, CString};

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::attributes::Place;
use super::directory::{Identity, identity};
use super::entry::{Entry, Outcome, Trouble, attribute, look, source};
use super::event::Action;
use super::existing::{
    DIRECTORY_OVER, OVERWRITE, in_the_way, refuse_itself, refuse_obstacle, refused,
};
use super::failure::{Cause, Refusal};
use super::lane::Lane;
use super::links::{self, Linking, mark};
use super::options::Appearance;
use super::referent;

impl Entry<'_> {
    pub(super) fn source_place(&self) -> Place<'_> {
        Place { directory: self.pair.source(), name: self.source }
    }

    pub(super) fn target_place(&self) -> Place<'_> {
        Place { directory: self.pair.target(), name: self.target }
    }
}

impl Lane<'_, '_> {
    /// Copies what is neither a file nor a directory.
    pub(super) fn special(&mut self, entry: Entry<'_>) -> Result<Outcome, Trouble> {
        let facts = look(entry)?;
        let kind = FileType::from_raw_mode(facts.st_mode);
        if matches!(kind, FileType::RegularFile | FileType::Directory) {
            return Err(Trouble::Became);
        }
        self.once(entry, &facts, |lane| lane.make(entry, &facts))
    }

    fn make(&mut self, entry: Entry<'_>, facts: &Stat) -> Result<Outcome, Trouble> {
        let text = match FileType::from_raw_mode(facts.st_mode) {
            FileType::Symlink => Some(text_of(entry)?),
            _ => None,
        };
        let attributes = &self.copy.attributes;
        let whole = |name: &CStr| {
            let place = Place { name, ..entry.target_place() };
            attributes.make(place, facts, text.as_deref())?;
            attributes.entry(entry.source_place(), place, facts)
        };
        if self.copy.options.appearance != Appearance::Atomic {
            match attributes.make(entry.target_place(), facts, text.as_deref()) {
                Ok(()) => {
                    attributes
                        .entry(entry.source_place(), entry.target_place(), facts)
                        .map_err(attribute)?;
                    return Ok(Outcome::of(Action::Made));
                }
                Err(refusal) if refusal.cause == Cause::System(Errno::EXIST) => {}
                Err(refusal) => return Err(Trouble::Target(refusal)),
            }
        }
        // What a symlink refers to must not become a symlink between the look at it and the
        // replacement: two that refer to each other's places would both be let in.
        let _one_at_a_time = is_symlink(facts).then(|| self.copy.one_symlink());
        if let Some(found) = in_the_way(entry)? {
            if is_symlink(facts) && identity(&found) == identity(facts) {
                // Two names of one symlink: cp finds nothing to do either.
                return Ok(Outcome::of(Action::Unchanged));
            }
            refuse_loss(entry, facts, &found)?;
            if is_alike(entry, facts, &found, text.as_deref())
                && is_ours(&found)
                && self.is_free(facts, &found)?
            {
                attributes
                    .repair_entry(entry.source_place(), entry.target_place(), facts, &found)
                    .map_err(attribute)?;
                return Ok(Outcome::of(Action::Unchanged));
            }
        }
        let (directory, name) = (entry.pair.target(), entry.target);
        self.copy.temporaries.replace(directory, name, whole).map_err(Trouble::Target)?;
        Ok(Outcome::of(Action::Made))
    }

    /// Makes another name of a copy; `None` where that cannot be had: it is to be copied again.
    pub(super) fn link(
        &mut self,
        entry: Entry<'_>,
        root: std::os::fd::BorrowedFd<'_>,
        known: &links::Copy,
        facts: &Stat,
    ) -> Result<Option<Outcome>, Trouble> {
        let directory = entry.pair.target();
        let _one_at_a_time = is_symlink(facts).then(|| self.copy.one_symlink());
        let made = match links::link(root, known, directory, entry.target) {
            Err(refusal) if refusal.cause == Cause::System(Errno::EXIST) => {
                if let Some(done) = self.link_over(entry, known.mark, facts)? {
                    return Ok(Some(done));
                }
                let mut made = Linking::Made;
                let replaced = self.copy.temporaries.replace(directory, entry.target, |name| {
                    made = links::link(root, known, directory, name)?;
                    match made {
                        Linking::Made => Ok(()),
                        Linking::Cannot(_) | Linking::Lost => Err(Refusal::because("link", "")),
                    }
                });
                match made {
                    Linking::Made => replaced.map(|()| made),
                    Linking::Cannot(_) | Linking::Lost => Ok(made),
                }
            }
            done => done,
        };
        match made.map_err(Trouble::Target)? {
            Linking::Made => Ok(Some(Outcome::of(Action::Linked))),
            Linking::Cannot(_) => {
                self.copy.lose_links("the target takes no (more) links to it");
                Ok(None)
            }
            Linking::Lost => {
                self.copy.lose_links("its copy was moved or replaced meanwhile");
                Ok(None)
            }
        }
    }

    /// Looks at what bears the name of a link to be. `Some`: it is that link.
    fn link_over(
        &self,
        entry: Entry<'_>,
        copy: Identity,
        facts: &Stat,
    ) -> Result<Option<Outcome>, Trouble> {
        let Some(found) = in_the_way(entry)? else { return Ok(None) };
        if mark(&found) == copy {
            return Ok(Some(Outcome::of(Action::Unchanged)));
        }
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::RegularFile => refuse_obstacle(entry, facts, &found)?,
            _ => refuse_loss(entry, facts, &found)?,
        }
        Ok(None)
    }
}

fn is_symlink(facts: &Stat) -> bool {
    FileType::from_raw_mode(facts.st_mode).is_symlink()
}

/// Refuses what something else than a file may not take the place of: a directory, the source
/// itself, what a symlink refers to. In that place the symlink would lead to itself, and what it
/// referred to be gone.
fn refuse_loss(entry: Entry<'_>, facts: &Stat, found: &Stat) -> Result<(), Trouble> {
    if FileType::from_raw_mode(found.st_mode).is_dir() {
        return Err(refused(OVERWRITE, DIRECTORY_OVER));
    }
    if !is_symlink(facts) {
        refuse_itself(found, facts)?;
        let (at, name) = (entry.pair.target(), entry.target);
        return match rustix::fs::statat(at, name, AtFlags::empty()) {
            Ok(behind) if is_symlink(found) => refuse_itself(&behind, facts),
            _ => Ok(()),
        };
    }
    let text = text_of(entry)?;
    match referent::is_on_the_way(entry.pair.source(), &text, found) {
        Ok(false) => Ok(()),
        Ok(true) => Err(refused(OVERWRITE, "the source is a symlink that refers to it")),
        Err(errno) => Err(source("follow")(errno)),
    }
}

/// Where a symlink points.
fn text_of(entry: Entry<'_>) -> Result<CString, Trouble> {
    match rustix::fs::readlinkat(entry.pair.source(), entry.source, Vec::new()) {
        Ok(text) => Ok(text),
        // It is none any more.
        Err(Errno::INVAL) => Err(Trouble::Became),
        Err(errno) => Err(source("read the symlink")(errno)),
    }
}

/// Whether this user may set the attributes of something that is there.
fn is_ours(found: &Stat) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || found.st_uid == user.as_raw()
}

/// Whether what is there is what would be made.
fn is_alike(entry: Entry<'_>, facts: &Stat, found: &Stat, text: Option<&CStr>) -> bool {
    let kind = FileType::from_raw_mode(facts.st_mode);
    if FileType::from_raw_mode(found.st_mode) != kind {
        return false;
    }
    match (kind, text) {
        (FileType::Symlink, Some(text)) => {
            let at = entry.pair.target();
            rustix::fs::readlinkat(at, entry.target, Vec::new()).is_ok_and(|there| *there == *text)
        }
        (FileType::CharacterDevice | FileType::BlockDevice, _) => facts.st_rdev == found.st_rdev,
        _ => true,
    }
}
