//! What a copy would do (`--dry-run`): the same walk and the same decisions, and nothing is opened for
//! writing. A directory that would be made has the descriptor of the nearest one above it that is
//! there, and nothing is looked up in it.

pub(super) mod by_rules;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::bond::Alike;
use super::directory::{Access, Found, Named};
use super::existing::{
    Existing, is_compared_with_itself, refuse_loss, refuse_obstacle, refuse_to_replace,
};
use super::file::{Opened, Reading};
use super::links::{self, Claim, Placed, Source, Ticket};
use super::special::{self, text_of};
use super::written::counts_for;
use super::{
    Action, Copy, Effect, Entry, Lane, Made, Outcome, Pair, Preserve, Trouble, count, kind_of,
    mark, source, target,
};
use crate::file_data::{self, find, is_sparse};

/// The device of what is not there yet: no other one has this number.
const NOT_THERE: u64 = u64::MAX;

impl Copy<'_> {
    /// Whether nothing is to be done.
    pub(super) fn is_plan(&self) -> bool {
        self.options.effect == Effect::Planned
    }

    /// Whether it completes and clears away what a stopped one left in the target; cp leaves no marks.
    pub(super) fn completes(&self) -> bool {
        !self.is_plan() && !self.options.preserve.has(Preserve::WHAT_IS_THERE)
    }
}

/// Another descriptor of a directory of the target, for one in it that is not there.
pub(super) fn stand_in(target: BorrowedFd<'_>) -> Result<(OwnedFd, Access), Errno> {
    rustix::io::fcntl_dupfd_cloexec(target, 3).map(|target| (target, Access::Full))
}

/// Whether a directory of this name would be made.
///
/// Errors: as those of mkdir(2).
pub(super) fn would_be_made(pair: &Pair, name: &CStr) -> Result<(), Errno> {
    if pair.found.made.is_new() {
        return Ok(());
    }
    if find(pair.target(), name)?.is_some() { Err(Errno::EXIST) } else { Ok(()) }
}

/// The pair of a directory that would be made.
pub(super) fn pair(entry: Entry<'_>, (from, facts): (OwnedFd, Stat)) -> Result<Pair, Trouble> {
    let copy = entry.copy;
    let (to, _) = stand_in(entry.pair.target()).map_err(target("hold"))?;
    let Found { target, inheritance, .. } = entry.pair.found;
    copy.tell_of_directory(entry, &facts, None);
    copy.tell_of_making(entry, None);
    let named = Named { source: entry.source.to_owned(), target: entry.target.to_owned() };
    let made = Made::new(inheritance);
    Ok(Pair { source: from, target: to, found: Found { named, facts, target, inheritance, made } })
}

/// What would become of an entry that is no directory. `room`: whether what bears its name would have
/// made room.
pub(super) fn copy(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    kind: FileType,
    room: Room,
) -> Result<Outcome, Trouble> {
    let opened = kind.is_file().then(|| Opened::open(entry, Reading::FILE)).transpose()?;
    let facts = match &opened {
        Some(opened) => opened.facts,
        None => entry.look()?,
    };
    if kind_of(facts) != kind {
        return Err(Trouble::Became);
    }
    let copy = lane.copy;
    let is_free = room == Room::Made || entry.pair.found.made.is_new();
    let found = if is_free { None } else { entry.in_the_way()? };
    // What has to make room first is tried again; only then is it the first of its names. A symlink may be
    // the very one that is wanted, and stay.
    match &found {
        Some(found) if is_compared_with_itself(copy, &facts, found) => {}
        Some(found) if kind.is_file() => refuse_obstacle(entry, &facts, found)?,
        Some(found) if !kind_of(found).is_symlink() => refuse_loss(entry, &facts, found)?,
        _ => {}
    }
    let (ticket, is_again) = match claim(entry, &facts)? {
        Some(Claim::Known(known)) if !is_other(lane, opened.as_ref(), &known)? => {
            return link(entry, &facts, (&known, found), room);
        }
        Some(Claim::Known(_)) => (None, true),
        Some(Claim::First(ticket)) => (Some(ticket), false),
        None => (None, false),
    };
    let linked = match (&opened, &copy.references) {
        (Some(opened), Some(references)) => {
            references.unchanged(lane, opened)?.map(|(_, found)| found.facts)
        }
        _ => None,
    };
    if let (Some(linked), Some(_)) = (&linked, &found) {
        refuse_to_replace(entry, (&facts, linked))?;
    }
    let is_that = found.as_ref().map(mark) == linked.as_ref().map(mark);
    let stands = match (found, &opened) {
        _ if linked.is_some() => linked,
        (None, _) => None,
        (Some(_), Some(opened)) => match Existing::of(lane, opened)? {
            Existing::Unchanged(found) => Some(found),
            _ => None,
        },
        (Some(found), None) => {
            let is_link = kind.is_symlink();
            let text = if is_link { Some(text_of(entry)?) } else { None };
            special::stands(entry, &facts, (&found, text.as_deref()))?.then_some(found)
        }
    };
    if is_again || ticket.is_some() {
        note(ticket, entry, &facts, stands.as_ref())?;
    }
    let action = match (stands.is_some(), kind.is_file()) {
        (true, _) if linked.is_some() && !is_that => Action::Linked,
        (true, _) => Action::Unchanged,
        (false, true) => Action::Copied,
        (false, false) => Action::Made,
    };
    if action != Action::Unchanged && (found.is_some() || room == Room::Made) {
        count(&copy.tally.overwritten);
    }
    let bytes = match (action, &opened) {
        (Action::Copied, Some(opened)) => bytes_in(opened)?,
        _ => 0,
    };
    copy.tally.bytes.fetch_add(bytes, Ordering::Relaxed);
    Ok(Outcome { bytes, ..Outcome::of(action) })
}

/// Whether what bears the name of an entry would have made room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It was not asked.
    Unasked,
    /// It would have.
    Made,
}

/// Remembers what the first name of a source would come to, or one that is copied again: what stands for
/// it, or something that is not there yet.
fn note(
    ticket: Option<Ticket<'_>>,
    entry: Entry<'_>,
    facts: &Stat,
    stands: Option<&Stat>,
) -> Result<(), Trouble> {
    let made = stands.map_or((NOT_THERE, facts.st_ino), mark);
    let path = entry.directory.path_below_base(entry.target).map_err(Trouble::Target)?;
    let was_there = stands.is_some();
    let _or_they_are_copied = match ticket {
        Some(ticket) if was_there => ticket.of_what_was_there().done(&path, made),
        Some(ticket) => ticket.done(&path, made),
        None => {
            let source = Source { was_there, ..Source::of(facts) };
            entry.copy.links.copied_again(source, &path, made)
        }
    };
    Ok(())
}

/// Whether what bears the name is the copy of another name.
fn is_that(found: Option<&Stat>, known: &links::Copy) -> bool {
    found.is_some_and(|found| mark(found) == known.mark)
}

/// What is known of other names of a source; `None`: there are none, or they do not matter.
fn claim<'c>(entry: Entry<'c>, facts: &Stat) -> Result<Option<Claim<'c>>, Trouble> {
    let copy = entry.copy;
    if !copy.is_bound(entry, facts) || copy.targets.links_root(entry.directory).is_none() {
        return Ok(None);
    }
    let is_still = |met| entry.was_met(facts, met);
    copy.links.claim(Source::of(facts), is_still).map(Some).map_err(Trouble::Source)
}

/// Whether what counts as done under another name would not take the place of what bears this one.
fn is_other(
    lane: &mut Lane<'_>,
    opened: Option<&Opened<'_>>,
    known: &links::Copy,
) -> Result<bool, Trouble> {
    let Some(opened) = opened else { return Ok(false) };
    let Some(root) = lane.copy.targets.links_root(opened.entry.directory) else { return Ok(false) };
    Ok(matches!(counts_for(lane, opened, Placed { root, copy: known, file: None })?, Alike::No))
}

/// A further name of something.
fn link(
    entry: Entry<'_>,
    facts: &Stat,
    (known, found): (&links::Copy, Option<Stat>),
    room: Room,
) -> Result<Outcome, Trouble> {
    if is_that(found.as_ref(), known) {
        return Ok(Outcome::of(Action::Unchanged));
    }
    if let Some(found) = found.filter(|found| kind_of(found).is_symlink()) {
        refuse_loss(entry, facts, &found)?;
    }
    if found.is_some() || room == Room::Made {
        count(&entry.copy.tally.overwritten);
    }
    Ok(Outcome { link_of: Some(known.path.clone()), ..Outcome::of(Action::Linked) })
}

/// Bytes of a file without its holes.
fn bytes_in(opened: &Opened<'_>) -> Result<u64, Trouble> {
    let length = opened.facts.st_size as u64;
    if !is_sparse(&opened.facts) {
        return Ok(length);
    }
    let (mut place, mut bytes) = (0, 0);
    while place < length {
        let extent = file_data::next_extent(opened.file.as_fd(), place, length);
        let Some((data, hole)) = extent.map_err(source("read"))? else { break };
        (place, bytes) = (hole, bytes + hole - data);
    }
    Ok(bytes)
}
