//! Directories that are made and not filled: how they look, and how they go.

use std::ffi::CStr;

use rustix::fs::{AtFlags, Mode, Stat};
use rustix::io::Errno;

use crate::copy::{Copy, Entry, Inheritance, Pair, Preserve, plan};
use crate::file_data;

/// Only we may look into a directory until it is complete. The sticky bit means nothing where nobody
/// else may write: it tells what a copy was killed over from what somebody keeps for himself.
const UNFINISHED: Mode = Mode::RWXU.union(Mode::SVTX);

/// What others may do in a directory before it is complete, at most, by the rules of cp.
const OPEN: Mode = Mode::RGRP.union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);

/// The mode with which the copy of a directory is made. By the rules of cp it has no mark: what a stopped
/// copy leaves is open to whom it will be where modes are not kept, for the next one changes none.
pub(in crate::copy) fn mode(
    copy: &Copy<'_>,
    above: Inheritance,
    source: impl FnOnce() -> Result<Stat, Errno>,
) -> Mode {
    let has = |what| copy.options.preserve.has(what);
    let unmasked = Mode::from_raw_mode(copy.attributes.unmasked());
    let given = match copy.rules() {
        None => return UNFINISHED,
        Some(_) if has(Preserve::MODE) || has(Preserve::OWNERSHIP) => Mode::empty(),
        // Its owner has to be let in first.
        Some(_) if !copy.attributes.given_to_new(above).contains(Mode::RWXU) => Mode::empty(),
        Some(_) if has(Preserve::PLAIN_MODE) => OPEN,
        Some(_) => source().map_or(Mode::empty(), |facts| Mode::from_raw_mode(facts.st_mode)),
    };
    Mode::RWXU | given & unmasked & OPEN
}

/// Makes a directory of this name like the source of the other, or finds out that it would be made.
pub(in crate::copy) fn make(
    copy: &Copy<'_>,
    pair: &Pair,
    (source, name): (&CStr, &CStr),
) -> Result<(), Errno> {
    let facts = || rustix::fs::statat(pair.source(), source, AtFlags::empty());
    match copy.is_plan() {
        true => plan::would_be_made(pair, name),
        false => {
            rustix::fs::mkdirat(pair.target(), name, mode(copy, pair.found.inheritance, facts))
        }
    }
}

/// Whether a directory that was there is one that a copy was killed over: it has the mode with which
/// they are made, as far as a umask or a default ACL lets it. Its times say little: they are set
/// before the mode.
pub(super) fn is_unfinished(entry: Entry<'_>, found: &Stat, source: &Stat) -> bool {
    // Its owner is the first attribute that is set.
    is_as_made(found, UNFINISHED)
        && (belongs_to_us(found) || found.st_uid == source.st_uid)
        && shares_as_above(entry, found)
        && !is_as_merged(entry, found, source)
}

/// Whether a directory that shares its group is as it was left when a private one was merged into it.
fn is_as_merged(entry: Entry<'_>, found: &Stat, source: &Stat) -> bool {
    let permissions = |facts: &Stat| Mode::from_raw_mode(facts.st_mode & 0o777);
    let modified = |facts: &Stat| (facts.st_mtime, facts.st_mtime_nsec);
    shares(found)
        && entry.copy.options.preserve.has(Preserve::MODE.with(Preserve::TIMESTAMPS))
        && permissions(found) == permissions(source)
        && modified(found) == modified(source)
}

/// Whether a directory has the set-group-ID bit only where it would have inherited it. Without it, the one above
/// may have got its bit since.
fn shares_as_above(entry: Entry<'_>, found: &Stat) -> bool {
    // What the user names as `DIR/.` is the name `.` in itself.
    let above = if entry.target == c"." { c".." } else { c"." };
    rustix::fs::statat(entry.pair.target(), above, AtFlags::empty())
        .is_ok_and(|above| !shares(found) || shares(&above))
}

fn shares(facts: &Stat) -> bool {
    Mode::from_raw_mode(facts.st_mode).contains(Mode::SGID)
}

fn is_as_made(found: &Stat, made: Mode) -> bool {
    let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
    mode.contains(made & Mode::SVTX) && made.union(Mode::SGID).contains(mode)
}

fn belongs_to_us(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

/// Takes back a directory that was just made, where its source cannot be opened after all: cp makes
/// none then. What else bears the name by now is not as it was made, or not empty.
pub(super) fn take_back(entry: Entry<'_>) {
    let (at, name) = (entry.pair.target(), entry.target);
    let found = file_data::look(at, name);
    let made = if entry.copy.rules().is_some() { Mode::RWXU | OPEN } else { UNFINISHED };
    if found.is_ok_and(|found| is_as_made(&found, made) && belongs_to_us(&found)) {
        let _stays = rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR);
    }
}
