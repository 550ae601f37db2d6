//! One entry of a directory: what it is now, and who copies it.

use std::ffi::{CStr, OsString};
use std::os::fd::AsFd;
use std::sync::Arc;

use flatout_io::transfer::Method;
use flatout_sys::clock::monotonic_ns;
use rustix::fs::{AtFlags, FileType, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::attributes;
use super::directory::{Directory, Identity, Pair, Side, identity};
use super::event::{Action, Event};
use super::failure::{Failure, Refusal};
use super::lane::Lane;
use super::links::{Claim, mark};
use super::options::Preserve;
use super::tally::count;

/// An entry that turns out to be something else than a moment ago is looked at again so often.
const LOOKS: u32 = 3;

/// An entry of the source and the name of its copy.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) directory: &'e Arc<Directory>,
    pub(super) pair: &'e Pair,
    pub(super) source: &'e CStr,
    pub(super) target: &'e CStr,
}

impl Entry<'_> {
    /// Its path, for people.
    pub(super) fn path(&self, side: Side) -> OsString {
        let name = if side == Side::Source { self.source } else { self.target };
        self.directory.path(side, Some(name))
    }
}

/// What was done with an entry.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) action: Action,
    pub(super) bytes: u64,
    pub(super) method: Option<Method>,
    /// The mark of what was made, where it was looked at.
    pub(super) mark: Option<Identity>,
    /// It is there, but not as it should be.
    pub(super) blemish: Option<Trouble>,
}

impl Outcome {
    pub(super) fn of(action: Action) -> Self {
        Self { action, bytes: 0, method: None, mark: None, blemish: None }
    }
}

/// Why an entry was not copied, and on whose side.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Something about the source.
    Source(Refusal),
    /// Something about the target.
    Target(Refusal),
    /// It is of another kind by now.
    Became,
}

/// Whose fault it is that an attribute is not as it should be.
pub(super) fn attribute(refusal: Refusal) -> Trouble {
    match refusal.operation {
        attributes::READ_SOURCE => Trouble::Source(refusal),
        _ => Trouble::Target(refusal),
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

impl Lane<'_, '_> {
    /// Copies an entry that is no directory, and counts what came of it. Returns the bytes moved.
    pub(super) fn entry(&mut self, entry: Entry<'_>, kind: FileType) -> u64 {
        let wants_each = self.copy.watch.wants_each();
        let begun_ns = if wants_each { monotonic_ns() } else { 0 };
        let outcome = match self.carefully(entry, kind) {
            Ok(outcome) => outcome,
            Err(trouble) => {
                self.report(entry, trouble);
                return 0;
            }
        };
        if let Some(trouble) = outcome.blemish {
            self.report(entry, trouble);
            return outcome.bytes;
        }
        let tally = &self.copy.tally;
        count(match outcome.action {
            Action::Copied => &tally.files,
            Action::Unchanged => &tally.unchanged,
            Action::Linked => &tally.linked,
            Action::Made => &tally.others,
            Action::Directory => &tally.directories,
        });
        if let Some(method) = outcome.method {
            tally.moved(method, outcome.bytes);
        }
        if wants_each {
            self.copy.watch.event(&Event::Done {
                action: outcome.action,
                source: entry.path(Side::Source),
                bytes: outcome.bytes,
                method: outcome.method,
                elapsed_ns: monotonic_ns() - begun_ns,
            });
        }
        outcome.bytes
    }

    /// Tells why an entry was not copied.
    pub(super) fn report(&self, entry: Entry<'_>, trouble: Trouble) {
        let (refusal, side) = match trouble {
            // Said once, for the whole copy.
            Trouble::Source(refusal) | Trouble::Target(refusal)
                if self.copy.stop.is_cancelled() && refusal.is_interruption() =>
            {
                return;
            }
            Trouble::Source(refusal) => (refusal, Side::Source),
            Trouble::Target(refusal) => (refusal, Side::Target),
            Trouble::Became => {
                let reason = "it changes its kind again and again";
                (Refusal::because("copy", reason), Side::Source)
            }
        };
        let failure = Failure { refusal, path: entry.path(side) };
        match side {
            // A source without room is no reason to stop.
            Side::Source => self.copy.fail_one(&failure),
            Side::Target => self.copy.fail_on(device_of(entry), &failure),
        }
    }

    pub(super) fn one(&mut self, entry: Entry<'_>, mut kind: FileType) -> Result<Outcome, Trouble> {
        for _ in 0..LOOKS {
            let result = match kind {
                FileType::RegularFile => self.regular(entry),
                FileType::Directory => {
                    let reason = "it became a directory while its names were read";
                    return Err(Trouble::Source(Refusal::because("copy", reason)));
                }
                _ => self.special(entry),
            };
            match result {
                Err(Trouble::Became) => {
                    let facts = look(entry)?;
                    kind = FileType::from_raw_mode(facts.st_mode);
                }
                done => return done,
            }
        }
        Err(Trouble::Became)
    }

    /// Where an entry is one of several names of a file, and another was copied: links to the copy.
    /// Otherwise calls `copy`, and remembers what it made.
    pub(super) fn once(
        &mut self,
        entry: Entry<'_>,
        facts: &Stat,
        copy: impl FnOnce(&mut Self) -> Result<Outcome, Trouble>,
    ) -> Result<Outcome, Trouble> {
        let names: u64 = facts.st_nlink as _;
        if names < 2 || !self.copy.options.preserve.has(Preserve::LINKS) {
            return copy(self);
        }
        let root = self.copy.targets.links_root.get();
        let Some((root, _)) = root.filter(|(_, base)| entry.directory.is_below(*base)) else {
            return copy(self);
        };
        let dispatch = &self.copy.dispatch;
        match dispatch.claim_link(identity(facts), names).map_err(Trouble::Source)? {
            Claim::Known(known, again) => match self.link(entry, root.as_fd(), &known, facts)? {
                Some(outcome) => Ok(outcome),
                // A file of its own, of which the names to come are links.
                None => {
                    let outcome = copy(self)?;
                    // One that is not as it should be gets no other names here, either.
                    if outcome.blemish.is_none()
                        && let Ok(made) = self.made_of(entry, &outcome)
                    {
                        let path = entry.directory.path_below_base(entry.target);
                        // Where that cannot be remembered, the next one is a file of its own, too.
                        let _forgotten = path.and_then(|path| again.copied(&path, made));
                    }
                    Ok(outcome)
                }
            },
            Claim::First(ticket) => {
                let result = copy(self);
                match result.as_ref().map(|outcome| self.made_of(entry, outcome)) {
                    // One that is not as it should be, maybe somebody else's, gets no other names.
                    Ok(_) if result.as_ref().is_ok_and(|outcome| outcome.blemish.is_some()) => {
                        ticket.failed();
                    }
                    Ok(Ok(made)) => {
                        let path = entry.directory.path_below_base(entry.target);
                        if path.and_then(|path| ticket.done(&path, made)).is_err() {
                            self.copy.lose_links("they cannot be remembered");
                        }
                    }
                    // It is not known what the other names are to be links of.
                    Ok(Err(errno)) => return Err(target("examine")(errno)),
                    Err(_) => ticket.failed(),
                }
                result
            }
        }
    }

    /// The mark of what was made of an entry.
    fn made_of(&self, entry: Entry<'_>, outcome: &Outcome) -> Result<Identity, Errno> {
        if let Some(mark) = outcome.mark {
            return Ok(mark);
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let facts = rustix::fs::statat(entry.pair.target(), entry.target, flags)?;
        Ok(mark(&facts))
    }
}

/// The device that an entry of the target lies on: that of its directory, unless something is mounted
/// there.
fn device_of(entry: Entry<'_>) -> u64 {
    let (at, flags) = (entry.pair.target(), AtFlags::SYMLINK_NOFOLLOW);
    match rustix::fs::statx(at, entry.target, flags, StatxFlags::empty()) {
        Ok(found) if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) => {
            rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor)
        }
        _ => entry.pair.found().target.0,
    }
}

/// What an entry is now.
pub(super) fn look(entry: Entry<'_>) -> Result<Stat, Trouble> {
    rustix::fs::statat(entry.pair.source(), entry.source, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(source("examine"))
}
