//! A directory is opened on both sides, and neither may be the other one.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, OFlags, Stat};
use rustix::io::Errno;

use super::unfinished::is_unfinished;
use super::view::{self, Overlap};
use crate::copy::attributes::{self};
use crate::copy::directory::{self, Access, DIRECTORY, Found, Named, Origin};
use crate::copy::file::reading_flags;
use crate::copy::reason::{HOLDS_SOURCE, INSIDE, LOOPS, OTHER_OVER, SAME_DIRECTORY};
use crate::copy::rules::opening;
use crate::copy::{
    Copy, CopyOptions, Entry, Inheritance, Made, Pair, Preserve, Refusal, Trouble, identity, plan,
    refused, source, target,
};

/// Opens the source. Also tells what it is, and what may be done with it.
pub(super) fn open_source(entry: Entry<'_>) -> Result<(OwnedFd, Stat, Access), Trouble> {
    let copy = entry.copy;
    let mut flags = DIRECTORY | reading_flags(copy, entry.pair);
    flags.set(OFlags::NOFOLLOW, !copy.follows(entry.directory));
    let opened = directory::open(entry.pair.source(), entry.source, flags);
    let (from, access) = opened.map_err(|errno| match errno {
        Errno::LOOP | Errno::NOTDIR => {
            Trouble::Source(Refusal::because("open", "it is no directory any more"))
        }
        errno => source("open")(errno),
    })?;
    let facts = rustix::fs::fstat(&from).map_err(source("examine"))?;
    if copy.follows(entry.directory) && entry.directory.is_within(identity(&facts)) {
        return Err(Trouble::Source(Refusal::because("copy", LOOPS)));
    }
    if copy.targets.is_copy(&facts) {
        return Err(Trouble::Source(Refusal::because("copy", "it is the copy itself")));
    }
    Ok((from, facts, access))
}

/// Opens the target, too, which has this name now.
pub(super) fn open(
    entry: Entry<'_>,
    (origin, name): (Origin, &CStr),
    (from, facts): (OwnedFd, Stat),
) -> Result<Pair, Trouble> {
    let copy = entry.copy;
    if origin == Origin::Fresh && copy.is_plan() {
        return plan::pair(entry, (from, facts));
    }
    let mut to = open_target((entry.pair.target(), name), &copy.options)?;
    let found = rustix::fs::fstat(&to).map_err(target("examine"))?;
    let number = identity(&found);
    if number == identity(&facts) {
        return Err(refused("copy to", SAME_DIRECTORY));
    }
    if copy.targets.is_source(number) {
        return Err(refused("copy to", "it is the source itself"));
    }
    refuse_overlap(entry, (&from, facts.st_dev), (&to, found.st_dev), origin)?;
    if copy.is_snapshot(number) {
        return Err(refused("copy to", "it is a snapshot"));
    }
    let was_there = (origin == Origin::Existing).then_some((&found, [from.as_fd(), to.as_fd()]));
    copy.tell_of_directory(entry, &facts, was_there);
    let above = entry.pair.found.inheritance;
    let is_top = entry.directory.parent.is_none();
    let is_ours =
        origin == Origin::Fresh || copy.completes() && is_unfinished(entry, &found, &facts);
    if is_ours {
        attributes::open_up(to.as_fd(), &found);
    }
    let (inheritance, made) = match origin {
        Origin::Fresh => {
            copy.attributes.begin_flags(to.as_fd(), copy.attributes.flags_of(from.as_fd()));
            copy.attributes.bare(to.as_fd(), above).map_err(Trouble::Target)?;
            let keeps_modes = copy.options.preserve.has(Preserve::MODE);
            let inside = if keeps_modes { above.inside_new() } else { above };
            // Its owner was seen: somebody may have put a directory of his own there.
            (inside, Made::seen(above, &found))
        }
        Origin::Existing if is_ours => {
            (Inheritance::of(to.as_fd()), Made::unfinished(above, &found))
        }
        Origin::Existing => {
            let made;
            (to, made) = prepared(copy, (&from, to), (&facts, &found))?;
            (Inheritance::of(to.as_fd()), made)
        }
    };
    if found.st_dev != entry.pair.found.target.0 || is_top {
        copy.targets.will_sync(to.as_fd(), found.st_dev).map_err(target("hold"))?;
    }
    if is_top {
        copy.targets.remember_top(&facts, &found);
    }
    if origin == Origin::Fresh {
        copy.tell_of_making(entry, None);
    }
    let named = Named { source: entry.source.to_owned(), target: entry.target.to_owned() };
    let found = Found { named, facts, target: identity(&found), inheritance, made };
    Ok(Pair { source: from, target: to, found })
}

/// Makes a directory that was there ready to be filled.
fn prepared(
    copy: &Copy<'_>,
    (from, to): (&OwnedFd, OwnedFd),
    (facts, found): (&Stat, &Stat),
) -> Result<(OwnedFd, Made), Trouble> {
    let mut made = Made::found(found);
    if copy.is_plan() {
        return Ok((to, made));
    }
    // Locked, it would take nothing. It gets its flags in the end.
    let both = (from.as_fd(), to.as_fd());
    made.locks = copy.attributes.unlock_directory(both, copy.options.overwrite);
    copy.attributes.narrow(to.as_fd(), facts, found);
    // As rsync, which updates what its owner has closed. It gets its mode in the end.
    if copy.options.deletion.is_some() && attributes::open_to_owner(to.as_fd(), found) {
        return Ok((open_target((to.as_fd(), c"."), &copy.options)?, made));
    }
    Ok((to, made))
}

/// Neither side may lie in the other, whatever filesystem shows it there; but a source in a target of which
/// nothing is deleted.
fn refuse_overlap(
    entry: Entry<'_>,
    (source, from): (&OwnedFd, u64),
    (target, to): (&OwnedFd, u64),
    origin: Origin,
) -> Result<(), Trouble> {
    let copy = entry.copy;
    let is_entered = || entry.directory.parent.is_none() || from != entry.pair.found.facts.st_dev;
    // Below, both are as they were there.
    if from == to || !is_entered() || copy.is_plan() {
        return Ok(());
    }
    let refusal = match view::overlap(copy, (source, target)) {
        Some(Overlap::Same) => refused("copy to", SAME_DIRECTORY),
        Some(Overlap::TargetInSource) => refused("copy to", INSIDE),
        Some(Overlap::SourceInTarget) if copy.options.deletion.is_some() => {
            refused("mirror", HOLDS_SOURCE)
        }
        _ => return Ok(()),
    };
    if origin == Origin::Fresh {
        let _gone = rustix::fs::unlinkat(entry.pair.target(), entry.target, AtFlags::REMOVEDIR);
    }
    Err(refusal)
}

/// Opens a directory of the target. It is enough if it may be searched.
fn open_target(
    (at, name): (BorrowedFd<'_>, &CStr),
    options: &CopyOptions,
) -> Result<OwnedFd, Trouble> {
    match directory::open(at, name, opening(options).1) {
        Ok((opened, _)) => Ok(opened),
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => Err(refused("overwrite", OTHER_OVER)),
        Err(errno) => Err(target("open")(errno)),
    }
}
