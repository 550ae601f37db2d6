//! An entry by the rules of cp(1): what bears its name already is written to as it is, be it a
//! symlink, a FIFO or a device, or makes room as the user wants it.
//!
//! Read next: `standing.rs`, what is done about a name; `file/as_found.rs`, where bytes go.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::attributes::{Place, timestamps};
use super::bond::{Alike, Bond};
use super::existing::{has_same_bytes, is_same};
use super::links::Placed;
use super::notices::LINKS_NOT_KEPT;
use super::reason::ELSEWHERE;
use super::special::{leads_to, special, text_of};
use super::standing::{Standing, is_read};
use super::temporary::move_to_free;
use super::{
    Action, Clearing, Copy, Entry, Event, Form, Lane, Outcome, Refusal, Rules, Side, Skip, Trouble,
    Unchanged, file, identity, kind_of, links, mark, mirror, refused, target,
};

pub(super) const LINK: &str = "link";
pub(super) const MAKE_SYMLINK: &str = "make a symlink to the source at";

/// Copies what is no directory.
pub(super) fn copy(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    rules: &Rules,
    kind: FileType,
) -> Result<Outcome, Trouble> {
    let copy = lane.copy;
    if kind.is_file() && rules.form == Form::Copy && entry.pair.found.made.is_new() {
        return bytes(lane, entry, rules, Standing::Free);
    }
    let facts = entry.facts()?;
    if kind_of(facts).is_dir() {
        return Err(Trouble::Became);
    }
    let standing = Standing::of(entry, rules, &facts)?;
    let outcome = match (&standing, rules.form) {
        (Standing::Skipped, _) => return Ok(Outcome::of(Action::Unchanged)),
        (Standing::UpToDate, _) => return up_to_date(lane, entry, &facts),
        (_, Form::HardLink | Form::Symlink) => link(entry, rules, &standing),
        _ if is_read(rules, &facts) => bytes(lane, entry, rules, standing),
        _ => node(entry, rules, (&standing, &facts)),
    }?;
    // A further name of something that was made is no thing of its own (cp records none).
    let is_further = rules.form != Form::HardLink && outcome.action == Action::Linked;
    if !is_further {
        copy.brought.note(entry);
    }
    Ok(outcome)
}

/// What is there stands for the source: further names of that are linked with it, and it with what
/// stands for another one, unless bytes would be lost by that.
fn up_to_date(lane: &mut Lane<'_>, entry: Entry<'_>, facts: &Stat) -> Result<Outcome, Trouble> {
    let alike = |known: Placed<'_>| {
        let is_unlike = is_unlike(lane, entry, known)?;
        Ok(if is_unlike { Alike::NoAndStays } else { Alike::Yes })
    };
    let bond = Bond::if_alike(entry, facts, alike)?;
    bond.or_copied(entry, || Ok(Outcome::of(Action::Unchanged)))
}

/// Whether what bears the name is unlike a copy: a file with other bytes, something of another kind.
pub(super) fn is_unlike(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    known: Placed<'_>,
) -> Result<bool, Trouble> {
    if let Some(found) = entry.in_the_way()?
        && !kind_of(found).is_file()
    {
        let other = links::pin_copy(known.root, known.copy);
        return Ok(!other.is_some_and(|other| is_such(entry, &found, &other)));
    }
    let Some(other) = links::open_copy(known.root, known.copy) else { return Ok(true) };
    let facts = rustix::fs::fstat(&other).map_err(target("examine"))?;
    has_same_bytes(lane, entry, (other.as_fd(), &facts)).map(|is_same| !is_same)
}

/// Whether a copy is of the same kind as what bears the name, and leads to the same or is the same device.
fn is_such(entry: Entry<'_>, found: &Stat, other: &OwnedFd) -> bool {
    let facts = rustix::fs::fstat(other);
    let is_one = |facts: Stat| (kind_of(facts), facts.st_rdev) == (kind_of(found), found.st_rdev);
    let text = || rustix::fs::readlinkat(other, c"", Vec::new());
    facts.is_ok_and(is_one)
        && (!kind_of(found).is_symlink() || text().is_ok_and(|text| leads_to(entry, &text)))
}

/// Whether what stands for another name of a source holds its bytes: it may be newer, and have others.
pub(super) fn may_be_that(
    lane: &mut Lane<'_>,
    opened: &file::Opened<'_>,
    known: Placed<'_>,
) -> Result<Alike, Trouble> {
    let source = (opened.file.as_fd(), &opened.facts);
    if !known.copy.was_there || !kind_of(opened.facts).is_file() {
        return Ok(Alike::Yes);
    }
    // Nobody knows what is in what cannot be read, or where a symlink leads later.
    let Some(other) = links::open_copy(known.root, known.copy) else { return Ok(Alike::No) };
    let facts = rustix::fs::fstat(&other).map_err(target("examine"))?;
    Ok(if is_same(lane, source, (other.as_fd(), &facts))? { Alike::Yes } else { Alike::No })
}

/// Whether a copy that counts as done by its size and time alone may take the place of another file of
/// the target: only if it holds the bytes of the source.
pub(super) fn counts_for(
    lane: &mut Lane<'_>,
    opened: &file::Opened<'_>,
    known: Placed<'_>,
) -> Result<Alike, Trouble> {
    let (copy, entry) = (lane.copy, opened.entry);
    if copy.unchanged() != Unchanged::SizeAndTime || !known.copy.was_there {
        return Ok(Alike::Yes);
    }
    let is_another = |found: Stat| kind_of(found).is_file() && mark(&found) != known.copy.mark;
    if !entry.in_the_way()?.is_some_and(is_another) {
        return Ok(Alike::Yes);
    }
    let alike = may_be_that(lane, opened, known)?;
    if matches!(alike, Alike::No) {
        copy.lose_links(entry, "what counts as done by size and time holds other bytes");
        copy.attributes.is_incomplete(entry.paths(), LINKS_NOT_KEPT, None);
    }
    Ok(alike)
}

/// Makes room, has something made, and gives back what made room where nothing was.
fn in_the_room(
    entry: Entry<'_>,
    standing: &Standing,
    make: impl FnOnce() -> Result<Outcome, Trouble>,
) -> Result<Outcome, Trouble> {
    let copy = entry.copy;
    let backup = match (standing, &copy.backups) {
        (Standing::BackedUp, Some(backups)) => backups.make(entry)?,
        _ => None,
    };
    copy.tell_of_making(entry, backup.as_deref());
    let made = make();
    if let (Err(_), Some(backup)) = (&made, &backup)
        && let Err(errno) = move_to_free(entry.pair.target(), backup, entry.target)
    {
        copy.report(entry, target("put back")(errno));
    }
    made
}

/// A file with the bytes of the source.
fn bytes(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    rules: &Rules,
    standing: Standing,
) -> Result<Outcome, Trouble> {
    let copy = lane.copy;
    let mut opened = file::Opened::open(entry, file::Reading::by(rules, entry))?;
    copy.entrust(entry, &opened.facts)?;
    in_the_room(entry, &standing, || {
        let alike = |known: Placed<'_>| match rules.skip {
            Skip::NotOlder => may_be_that(lane, &opened, known),
            _ => Ok(Alike::Yes),
        };
        let bond = Bond::if_alike(entry, &opened.facts, alike)?;
        let _turn = match &bond {
            Bond::Done(_) => None,
            _ => standing.take_turn(&copy.turns),
        };
        bond.or_copied(entry, || {
            let mut is_there = matches!(standing, Standing::InPlace(_));
            file::until_complete(lane, &mut opened, |_, opened, in_place| {
                if matches!(standing, Standing::Removed) {
                    return file::open_instead(opened, rules, in_place);
                }
                let place = file::open_as_found(opened, (rules, is_there));
                is_there = true;
                place
            })
        })
    })
}

/// A symlink, FIFO, socket or device like the source.
fn node(
    entry: Entry<'_>,
    rules: &Rules,
    (standing, facts): (&Standing, &Stat),
) -> Result<Outcome, Trouble> {
    let copy = entry.copy;
    copy.entrust(entry, facts)?;
    let is_symlink = kind_of(facts).is_symlink();
    let text = if is_symlink { Some(text_of(entry)?) } else { None };
    in_the_room(entry, standing, || {
        let bond = Bond::of(entry, facts)?;
        let (from, to) = (special(&entry, facts, text.as_deref()), entry.target_place());
        let whole = |name: &CStr| {
            let place = Place { name, ..to };
            copy.attributes.make(&from, place)?;
            copy.attributes.entry(&from, place, None, |made| entry.may_be_new(made))
        };
        bond.or_copied(entry, || {
            // What bears the name is left alone by the next run, or gets what made room back.
            let is_kept = rules.skip != Skip::Nothing || copy.backups.is_some();
            let is_whole = matches!(standing, Standing::BackedUp)
                || matches!(standing, Standing::Free) && is_kept;
            let put = |name: &CStr| {
                let moved = move_to_free(to.directory, name, to.name);
                moved.map_err(Refusal::of("replace"))
            };
            let made = match is_whole
                .then(|| copy.temporaries.make_aside(to.directory, to.name, whole, put))
            {
                Some(Err(refusal)) if refusal.errno() == Some(Errno::PERM) => whole(to.name),
                Some(made) => made,
                None => whole(to.name),
            };
            // What has to go stays until something can take its place.
            let gives_way = matches!(standing, Standing::Removed)
                || is_symlink && rules.clearing == Clearing::Refused;
            let is_it = |text: &CString| rules.skip == Skip::NotOlder && leads_to(entry, text);
            let made = match made {
                Err(refusal) if refusal.errno() == Some(Errno::EXIST) && gives_way => {
                    mirror::replace(entry, whole)
                }
                Err(refusal) if refusal.errno() == Some(Errno::EXIST) => {
                    if text.as_ref().is_some_and(is_it) { Ok(()) } else { Err(refusal) }
                }
                made => made,
            };
            made.map_err(Trouble::of)?;
            Ok(Outcome::of(Action::Made))
        })
    })
}

/// Whether a link takes the place of what bears its name.
pub(super) fn replaces(rules: &Rules, standing: &Standing) -> bool {
    let asks = rules.form == Form::HardLink && rules.asks;
    rules.clearing == Clearing::Refused || asks || matches!(standing, Standing::Removed)
}

/// A hard link of the source, or a symlink that leads to it.
fn link(entry: Entry<'_>, rules: &Rules, standing: &Standing) -> Result<Outcome, Trouble> {
    let copy = entry.copy;
    let directory = entry.pair.target();
    let is_hard = rules.form == Form::HardLink;
    let text = match is_hard {
        true => CString::default(),
        // As cp, which tries it.
        false => text_to(entry).inspect_err(|_| copy.tell_of_making(entry, None))?,
    };
    let flags = match copy.follows(entry.directory) {
        true => AtFlags::SYMLINK_FOLLOW,
        false => AtFlags::empty(),
    };
    let operation = if is_hard { LINK } else { MAKE_SYMLINK };
    let replaces = replaces(rules, standing);
    let make = |name: &CStr| {
        let made = match is_hard {
            true => rustix::fs::linkat(entry.pair.source(), entry.source, directory, name, flags),
            false => rustix::fs::symlinkat(text.as_c_str(), directory, name),
        };
        made.map_err(Refusal::of(operation))
    };
    in_the_room(entry, standing, || {
        let made = match make(entry.target) {
            Err(refusal) if refusal.errno() == Some(Errno::EXIST) && replaces => {
                mirror::replace(entry, make)
            }
            made => made,
        };
        made.map_err(Trouble::Target)?;
        if !is_hard && copy.keeps_times() {
            let (times, flags) = (timestamps(&entry.facts()?), AtFlags::SYMLINK_NOFOLLOW);
            rustix::fs::utimensat(directory, entry.target, &times, flags)
                .map_err(target("set the times of"))?;
        }
        Ok(Outcome::of(if is_hard { Action::Linked } else { Action::Made }))
    })
}

/// The text of a symlink that leads from the target to the source.
pub(super) fn text_to(entry: Entry<'_>) -> Result<CString, Trouble> {
    let text = entry.path(Side::Source).into_vec();
    let is_new = entry.pair.found.made.is_new();
    let is_here = || {
        let here = rustix::fs::stat(".").map(|here| identity(&here));
        here.is_ok_and(|here| here == entry.pair.found.target)
    };
    if !text.starts_with(b"/") && (is_new || !is_here()) {
        return Err(refused(MAKE_SYMLINK, ELSEWHERE));
    }
    CString::new(text).map_err(|_| target(MAKE_SYMLINK)(Errno::INVAL))
}

impl Copy<'_> {
    /// Says what is made of what.
    pub(super) fn tell_of_making(&self, entry: Entry<'_>, backup: Option<&CStr>) {
        if !self.watch.wants_each() {
            return;
        }
        let backup = backup.map(|name| entry.directory.path(Side::Target, Some(name)));
        let [source, target] = entry.paths();
        self.watch.event(&Event::Making { source, target, backup });
    }
}
