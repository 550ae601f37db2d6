//! What would become of an entry by the rules of cp(1).

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::{NOT_THERE, Room, bytes_in, claim, is_that, note};
use crate::copy::bond::Alike;
use crate::copy::existing::has_same_bytes;
use crate::copy::file::{Opened, Reading};
use crate::copy::links::{self, Claim, Placed, Source};
use crate::copy::reason::LEADS_NOWHERE;
use crate::copy::standing::{Standing, WRITE_THROUGH, is_read};
use crate::copy::written::{is_unlike, may_be_that, replaces, text_to};
use crate::copy::{
    Action, Entry, Form, Lane, Outcome, Rules, Skip, Trouble, count, kind_of, refused, target,
};

/// As [`super::copy`].
pub(in crate::copy) fn copy(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    rules: &Rules,
    room: Room,
) -> Result<Outcome, Trouble> {
    let copy = lane.copy;
    let facts = entry.facts()?;
    let kind = kind_of(facts);
    if kind.is_dir() {
        return Err(Trouble::Became);
    }
    let standing = match room {
        Room::Made => Standing::Free,
        Room::Unasked => Standing::of(entry, rules, &facts)?,
    };
    let is_there = !matches!(standing, Standing::Free);
    let is_in_the_way =
        is_there && !matches!(standing, Standing::BackedUp) && !replaces(rules, &standing);
    let makes = !matches!(standing, Standing::Skipped | Standing::UpToDate);
    let is_new = room == Room::Made || entry.pair.found.made.is_new();
    let is_free = matches!(standing, Standing::Free) && !is_new;
    if is_free && !rules.through_dangling && is_read(rules, &facts) && entry.in_the_way()?.is_some()
    {
        return Err(refused(WRITE_THROUGH, LEADS_NOWHERE));
    }
    if makes && rules.form == Form::Symlink {
        text_to(entry)?;
    }
    let mut outcome = Outcome::of(match (&standing, rules.form) {
        (Standing::Skipped, _) => return Ok(Outcome::of(Action::Unchanged)),
        (Standing::UpToDate, _) => Action::Unchanged,
        (_, Form::HardLink | Form::Symlink) if is_in_the_way => {
            return Err(target("link")(Errno::EXIST));
        }
        (_, Form::HardLink) => Action::Linked,
        (_, Form::Copy) if is_read(rules, &facts) => Action::Copied,
        _ => Action::Made,
    });
    if rules.form == Form::Copy {
        let found = if is_there { entry.in_the_way()? } else { None };
        match claim(entry, &facts)? {
            Some(Claim::Known(known)) if is_that(found.as_ref(), &known) => {
                return Ok(Outcome::of(Action::Unchanged));
            }
            Some(Claim::Known(known))
                if matches!(standing, Standing::UpToDate) && stays(lane, entry, rules, &known)? =>
            {
                return Ok(Outcome::of(Action::Unchanged));
            }
            Some(Claim::Known(known)) if is_other(lane, entry, rules, &known)? => {
                let path =
                    entry.directory.path_below_base(entry.target).map_err(Trouble::Target)?;
                let mark = (NOT_THERE, facts.st_ino);
                let _or_told_once_more = copy.links.copied_again(Source::of(&facts), &path, mark);
            }
            Some(Claim::Known(known)) => {
                outcome = Outcome { link_of: Some(known.path), ..Outcome::of(Action::Linked) };
            }
            Some(Claim::First(ticket)) => {
                let stands = found.filter(|_| outcome.action == Action::Unchanged);
                note(Some(ticket), entry, &facts, stands.as_ref())?;
            }
            None => {}
        }
    }
    if outcome.action == Action::Copied && !rules.attributes_only && kind.is_file() {
        outcome.bytes = bytes_in(&opened(entry, rules)?)?;
        copy.tally.bytes.fetch_add(outcome.bytes, Ordering::Relaxed);
    }
    if (is_there || room == Room::Made) && outcome.action != Action::Unchanged {
        count(&copy.tally.overwritten);
    }
    if outcome.action != Action::Unchanged {
        copy.tell_of_making(entry, None);
    }
    Ok(outcome)
}

/// The source, as it would be read.
fn opened<'e>(entry: Entry<'e>, rules: &Rules) -> Result<Opened<'e>, Trouble> {
    Opened::open(entry, Reading::by(rules, entry))
}

/// Whether what is up to date under another name holds other bytes than the source, which is copied.
fn is_other(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    rules: &Rules,
    known: &links::Copy,
) -> Result<bool, Trouble> {
    match lane.copy.targets.links_root(entry.directory) {
        Some(root) if rules.skip == Skip::NotOlder && known.was_there => {
            let known = Placed { root, copy: known, file: None };
            Ok(matches!(may_be_that(lane, &opened(entry, rules)?, known)?, Alike::No))
        }
        _ => Ok(false),
    }
}

/// Whether what is up to date holds other bytes than the copy of another name has, or would have.
fn stays(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    rules: &Rules,
    known: &links::Copy,
) -> Result<bool, Trouble> {
    match lane.copy.targets.links_root(entry.directory) {
        Some(root) if known.mark.0 != NOT_THERE => {
            is_unlike(lane, entry, Placed { root, copy: known, file: None })
        }
        _ => {
            let opened = opened(entry, rules)?;
            let source = (opened.file.as_fd(), &opened.facts);
            has_same_bytes(lane, entry, source).map(|is_same| !is_same)
        }
    }
}
