//! A file that is there and is written anew in its place: cut off, and closed to whom it may not be open
//! meanwhile; or compared with its source, where it may be that itself.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Stat};

use super::place::Bytes;
use super::source::{Opened, is_as_it_was, version};
use crate::copy::attributes::CANNOT;
use crate::copy::existing::OVERWRITE;
use crate::copy::{Entry, Preserve, Refusal, Trouble, identity, refused, source, target};
use crate::file_data;

/// Some count time in steps of two seconds.
const STEP_S: u64 = 2;
/// How often a source is asked what it is, that somebody writes meanwhile.
const MOST_LOOKS: u32 = 100;

/// Cuts off an open file that is to be written anew. One that may be the source itself is compared with it
/// instead: then nothing that is to be read is lost.
pub(super) fn emptied(
    opened: &Opened<'_>,
    (file, facts): (OwnedFd, &Stat),
    bytes: Bytes,
) -> Result<(OwnedFd, Bytes), Trouble> {
    let entry = opened.entry;
    if bytes == Bytes::All && may_be_the_source(opened, (&file, facts))? {
        return Ok((with_reading(entry, (file, facts))?, Bytes::Own));
    }
    close_to_others(opened, &file, facts)?;
    file_data::set_length(file.as_fd(), 0).map_err(target("cut"))?;
    Ok((file, bytes))
}

/// The same file, open for reading, too: by the link of /proc, or where there is none, by its name.
fn with_reading(entry: Entry<'_>, (file, facts): (OwnedFd, &Stat)) -> Result<OwnedFd, Trouble> {
    if rustix::fs::fcntl_getfl(&file).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR) {
        return Ok(file);
    }
    let by_name = || {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(entry.pair.target(), entry.target, flags, Mode::empty())
    };
    let again = file_data::reopen(file.as_fd(), OFlags::RDWR).or_else(|_| by_name());
    let is_it = |again: &OwnedFd| {
        rustix::fs::fstat(again).is_ok_and(|found| identity(&found) == identity(facts))
    };
    let why = || refused(OVERWRITE, "it may be the source, and cannot be read");
    again.ok().filter(is_it).ok_or_else(why)
}

/// Whether what is to be written may be the source under a number that another filesystem gives it. Then
/// both have one length and time, which the kernel may remember otherwise, or the server tell less finely.
fn may_be_the_source(
    opened: &Opened<'_>,
    (file, facts): (&OwnedFd, &Stat),
) -> Result<bool, Trouble> {
    let (devices, both) =
        ((opened.facts.st_dev, facts.st_dev), (opened.file.as_fd(), file.as_fd()));
    if !opened.entry.copy.methods.may_show_one_file(devices, both).map_err(Trouble::Target)? {
        return Ok(false);
    }
    let (source, found) = both_now(opened, (file, facts))?;
    let is_as_late = source.st_mtime.abs_diff(found.st_mtime) <= STEP_S;
    Ok(source.st_size == found.st_size && is_as_late)
}

/// Whether a file that may be the source is as long as that; or was empty, and files of the kernel give more
/// than they say.
pub(super) fn is_as_long(opened: &Opened<'_>, file: &OwnedFd) -> Result<bool, Trouble> {
    if opened.facts.st_size == 0 {
        return Ok(true);
    }
    let (source, found) = both_now(opened, (file, &opened.facts))?;
    Ok(source.st_size == found.st_size)
}

/// Whether a file that might have been the source was written, while that stayed what it was.
pub(super) fn has_become_another(opened: &Opened<'_>, file: &OwnedFd) -> bool {
    let ask = |file| file_data::ask_again(file, &opened.facts).ok();
    ask(&opened.file).zip(ask(file)).is_some_and(|(source, found)| {
        is_as_it_was(&opened.facts, &source) && found.st_mtime.abs_diff(source.st_mtime) > STEP_S
    })
}

/// What the source and a file are at one time: somebody who writes between two answers makes one file look
/// like two.
fn both_now(
    opened: &Opened<'_>,
    (file, facts): (&OwnedFd, &Stat),
) -> Result<(Stat, Stat), Trouble> {
    let ask = || file_data::ask_again(&opened.file, &opened.facts).map_err(source("examine"));
    let mut before = ask()?;
    for _ in 0..MOST_LOOKS {
        if opened.entry.copy.stop.is_due() {
            return Err(Trouble::Source(Refusal::interrupted("examine")));
        }
        let found = file_data::ask_again(file, facts).map_err(target("examine"))?;
        let after = ask()?;
        if version(&before) == version(&after) {
            return Ok((after, found));
        }
        before = after;
    }
    Err(refused(OVERWRITE, "it may be the source, which is written all the time"))
}

/// Closes a file that is about to get other bytes to all whom the source may be closed to. What is
/// alike in owner, mode and lists stays as it is: others may be about to open it.
pub(super) fn close_to_others(
    opened: &Opened<'_>,
    file: &OwnedFd,
    facts: &Stat,
) -> Result<(), Trouble> {
    let (copy, source) = (opened.entry.copy, &opened.facts);
    let who = |facts: &Stat| (facts.st_uid, facts.st_gid, facts.st_mode & 0o777);
    let is_alike = who(facts) == who(source) && !copy.attributes.has_list(file.as_fd());
    if !copy.options.preserve.has(Preserve::MODE) || is_alike {
        return Ok(());
    }
    // Its owner may open it again, as anybody may what is theirs.
    let same_owner = if facts.st_uid == source.st_uid { 0o700 } else { 0 };
    // What lends rights stays where it is to stay: nobody else can run the file meanwhile.
    let stays = if copy.options.preserve.has(Preserve::WHAT_IS_THERE) { 0o7000 } else { 0 };
    // Whoever is not root loses this bit with the first byte, as with cp, but once the group may not execute it.
    let is_lost = facts.st_mode & 0o010 != 0 && !rustix::process::geteuid().is_root();
    let lost = if is_lost { 0o2000 } else { 0 };
    close(file, facts.st_mode & (source.st_mode & same_owner | stays) & !lost)
}

/// Gives a file a mode that closes it, unless it is not ours, or has none.
pub(super) fn close(file: &OwnedFd, mode: u32) -> Result<(), Trouble> {
    match rustix::fs::fchmod(file, Mode::from_raw_mode(mode)) {
        Err(errno) if !CANNOT.contains(&errno) => Err(target("close to others")(errno)),
        _ => Ok(()),
    }
}
