//! What would become of an entry by the rules of cp(1).

use std::sync::atomic::Ordering;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Claimed, Room, bytes_in, claim, is_that, note};
use crate::copy::entry::{Entry, Outcome, Trouble, refused, target};
use crate::copy::event::Action;
use crate::copy::file::{Opened, Reading};
use crate::copy::job::Copy;
use crate::copy::reason::LEADS_NOWHERE;
use crate::copy::rules::{Form, Rules};
use crate::copy::standing::{Standing, WRITE_THROUGH, is_read};
use crate::copy::tally::count;
use crate::copy::written::{replaces, text_to};

/// As [`super::copy`].
pub(in crate::copy) fn copy(
    copy: &Copy<'_>,
    entry: Entry<'_>,
    rules: &Rules,
    room: Room,
) -> Result<Outcome, Trouble> {
    let facts = entry.facts(copy)?;
    let kind = FileType::from_raw_mode(facts.st_mode);
    if kind.is_dir() {
        return Err(Trouble::Became);
    }
    let standing = match room {
        Room::Made => Standing::Free,
        Room::Unasked => Standing::of(copy, entry, rules, &facts)?,
    };
    let is_there = !matches!(standing, Standing::Free);
    let is_in_the_way =
        is_there && !matches!(standing, Standing::BackedUp) && !replaces(rules, &standing);
    let makes = !matches!(standing, Standing::Skipped | Standing::UpToDate);
    let is_new = room == Room::Made || entry.pair.found().made.is_new();
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
        (_, Form::Copy | Form::Attributes) if is_read(rules, &facts) => Action::Copied,
        _ => Action::Made,
    });
    if matches!(rules.form, Form::Copy | Form::Attributes) {
        let found = if is_there { entry.in_the_way()? } else { None };
        match claim(copy, entry, &facts)? {
            Claimed::Known(known) if is_that(found.as_ref(), &known) => {
                return Ok(Outcome::of(Action::Unchanged));
            }
            Claimed::Known(known) => {
                outcome = Outcome { link_of: Some(known.path), ..Outcome::of(Action::Linked) };
            }
            Claimed::First(ticket) => {
                let stands = found.filter(|_| outcome.action == Action::Unchanged);
                note(ticket, entry, &facts, stands.as_ref())?;
            }
            Claimed::None => {}
        }
    }
    if outcome.action == Action::Copied && rules.form == Form::Copy && kind.is_file() {
        let reading = Reading::by(rules, copy.follows(entry.directory));
        outcome.bytes = bytes_in(&Opened::open(entry, copy, reading)?)?;
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
