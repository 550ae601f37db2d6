//! A directory: opened on both sides, listed, and its entries made pieces of work.
//!
//! The directories in it are made before its files, which lets ext4 spread them over the disk. A
//! directory with more names than are kept in memory is listed a second time for its files, piece
//! by piece.

mod early;
mod empty;
mod opening;
mod unfinished;
mod view;

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use flatout_sys::clock::monotonic_ns;
use rustix::fs::{AtFlags, FileType, SeekFrom, Stat, unlinkat};
use rustix::io::Errno;

use super::directory::{Access, Found, Listing, Origin};
use super::listing::Lister;
use super::peculiar;
use super::sieve::Sieve;
use super::temporary::is_temporary;
use super::{
    Action, Copy, Directory, Entry, Event, Lane, Pair, Reach, Refusal, Side, Trouble, Work, count,
    identity, mirror, sequence,
};
use crate::spool::names::{Batch, Names};
use early::hand_out;
use empty::Empty;
pub(super) use empty::look_up;
use opening::{open, open_source};
use unfinished::take_back;
pub(super) use unfinished::{make, mode};

/// Names of files that one listing keeps in memory; what is more is listed a second time.
const MOST_NAMES_BYTES: usize = 512 << 10;
/// Entries of a batch. A lock costs less than one file; larger batches end unevenly.
pub(super) const BATCH_ENTRIES: usize = 32;

const LIST: &str = "list";
pub(super) const MAKE: &str = "make the directory";

/// What a listing found.
struct Listed {
    files: Vec<Batch>,
    fresh: Names,
    existing: Names,
    is_large: bool,
    names: peculiar::Names,
}

/// Begins with a directory that the user named. Its copy may be there.
pub(super) fn begin(lane: &mut Lane<'_>, entry: Entry<'_>) -> Option<Arc<Directory>> {
    let copy = lane.copy;
    let made = match leads_above(copy, entry.directory, entry.pair, entry.source) {
        // Its opening says why it is not copied.
        true => Err(Errno::EXIST),
        false => make(copy, entry.pair, (entry.source, entry.target)),
    };
    let origin = match made {
        Ok(()) => Origin::Fresh,
        Err(Errno::EXIST) => Origin::Existing,
        Err(errno) => {
            let base = (&**entry.directory, entry.pair.found.target.0);
            copy.fail_target(base, Some(entry.target), Refusal::of(MAKE)(errno));
            piece_done(copy, entry.directory);
            return None;
        }
    };
    visit(lane, entry, origin)
}

/// Opens a directory whose copy is there, lists it, and copies the first of what is in it; `None`: it could
/// not be opened.
pub(super) fn visit(
    lane: &mut Lane<'_>,
    entry: Entry<'_>,
    origin: Origin,
) -> Option<Arc<Directory>> {
    let copy = lane.copy;
    let begun_ns = monotonic_ns();
    let parent = entry.directory;
    if origin == Origin::Fresh && copy.stop.is_full(entry.pair.found.target.0) {
        piece_done(copy, parent);
        return None;
    }
    let (origin, opened) = enter(entry, origin);
    let (below, access) = match opened {
        Ok(opened) => opened,
        Err(trouble) => {
            let is_made = origin == Origin::Fresh && !copy.is_plan();
            if is_made && matches!(trouble, Trouble::Source(_)) {
                take_back(entry);
            }
            copy.report(entry, trouble);
            piece_done(copy, parent);
            return None;
        }
    };
    let is_mount = below.found.facts.st_dev != entry.pair.found.facts.st_dev;
    let stays_out =
        is_mount && copy.options.reach == Reach::OneFilesystem && parent.parent.is_some();
    let is_full = copy.stop.is_full(below.found.target.0);
    let directory = copy.held.enter(parent, Arc::new(below), begun_ns, None);
    let first = match access {
        _ if stays_out || is_full => Batch::default(),
        Access::Full => list(lane, &directory, origin),
        // Its attributes are copied all the same, as cp does.
        Access::SearchOnly => {
            copy.fail_source(&directory, None, Refusal::of("open")(Errno::ACCESS));
            Batch::default()
        }
    };
    Some(lane.visited(directory, &first))
}

/// Opens a directory, unless another name is the same in the target. Also tells whether the copy was made.
fn enter(entry: Entry<'_>, mut origin: Origin) -> (Origin, Result<(Pair, Access), Trouble>) {
    let peculiar = entry.copy.peculiarities.of(entry.directory);
    let care = match peculiar.as_ref().map(|names| names.care(entry)).transpose() {
        // Of those that the user names one is merged into the other.
        Err(_) if entry.directory.parent.is_none() => None,
        Err(trouble) => return (origin, Err(trouble)),
        Ok(care) => care.filter(|_| !entry.copy.is_plan()),
    };
    let opened = entry.refuse_made_up().and_then(|()| {
        let (from, facts, access) = open_source(entry)?;
        let aside;
        (origin, aside) = mirror::directory_aside(entry, origin, access)?;
        let name = aside.as_deref().unwrap_or(entry.target);
        let mut opened = open(entry, (origin, name), (from, facts));
        if let Some(name) = &aside {
            opened = opened.and_then(|pair| mirror::put_directory(entry, name).map(|()| pair));
            opened =
                opened.inspect_err(|_| _ = unlinkat(entry.pair.target(), name, AtFlags::REMOVEDIR));
        }
        let pair = opened?;
        care.map_or(Ok(()), |care| care.copied(entry))?;
        Ok((pair, access))
    });
    (origin, opened)
}

/// Lists a directory and makes pieces of its entries; returns the first one.
fn list(lane: &mut Lane<'_>, directory: &Arc<Directory>, origin: Origin) -> Batch {
    let copy = lane.copy;
    let Some(pair) = pair(copy, directory) else { return Batch::default() };
    if origin == Origin::Existing && sequence::begin(lane, directory, &pair) {
        return Batch::default();
    }
    let is_empty = origin == Origin::Fresh && !copy.is_plan();
    let mut empty = Empty::of(is_empty.then(|| pair.target()));
    let mut listed = match read_names(lane, directory, (&pair, &mut empty)) {
        Ok(listed) => listed,
        Err(refusal) => {
            copy.fail_listing(directory, refusal);
            return Batch::default();
        }
    };
    directory.is_listed(Listing::Whole);
    let names = std::mem::take(&mut listed.names);
    copy.peculiarities.remember_names(directory.number, names, &pair);
    if origin == Origin::Existing {
        remove_leftovers(copy, &mut lane.lister, pair.target());
    }
    let below = listed.fresh.count() + listed.existing.count();
    directory.expect(below as usize);
    directory.leave_for_later(listed.fresh, listed.existing);
    let (first, mut found) = empty.pieces(directory, listed.files);
    if listed.is_large {
        directory.expect(1);
        // How far it is listed is known to the descriptor only.
        directory.begin_use();
        found.push(Work::Listing(Arc::clone(directory)));
    }
    if below > 0 {
        found.push(Work::Below(Arc::clone(directory)));
    }
    copy.dispatch.offer(found);
    first
}

/// Batches of a directory as pieces of work, which it waits for from now on.
pub(super) fn offered(
    directory: &Arc<Directory>,
    batches: impl Iterator<Item = Batch>,
) -> Vec<Work> {
    let work = |names| {
        directory.expect(1);
        Work::Entries(Arc::clone(directory), names)
    };
    batches.map(work).collect()
}

/// Whether a directory is a symlink, which is followed, to one in which it lies.
fn leads_above(copy: &Copy<'_>, directory: &Directory, pair: &Pair, name: &CStr) -> bool {
    copy.follows(directory)
        && rustix::fs::statat(pair.source(), name, AtFlags::empty())
            .is_ok_and(|facts| directory.is_within(identity(&facts)))
}

/// Reads all names, and makes the directories among them.
fn read_names(
    lane: &mut Lane<'_>,
    directory: &Arc<Directory>,
    (pair, empty): (&Pair, &mut Empty<'_>),
) -> Result<Listed, Refusal> {
    let (copy, hire) = (lane.copy, lane.hire);
    let mut listed = Listed {
        files: Vec::new(),
        fresh: Names::default(),
        existing: Names::default(),
        is_large: false,
        names: copy.peculiarities.names(pair),
    };
    let mut bytes = 0;
    let device = pair.found.target.0;
    let mut sieve = Sieve::of(copy, directory, Some(pair))?;
    let result = lane.lister.each(pair.source(), |name, kind| {
        let Some(kind) = sieve.taken(pair.source(), name, kind) else { return Ok(()) };
        if copy.stop.is_due() {
            return Err(Refusal::interrupted(LIST));
        }
        listed.names.add(name, kind);
        if !kind.is_dir() {
            empty.will_have(name);
            if listed.is_large {
                return Ok(());
            }
            bytes += name.to_bytes().len() + 2;
            add(&mut listed.files, name, kind)?;
            listed.is_large = bytes > MOST_NAMES_BYTES;
            if listed.is_large {
                empty.has_more_than(listed.files.drain(..));
            }
            return Ok(());
        }
        if leads_above(copy, directory, pair, name) {
            return listed.existing.push(name, kind);
        }
        let refusal = match make(copy, pair, (name, name)) {
            Ok(()) => {
                listed.fresh.push(name, kind)?;
                return hand_out(copy, hire, directory, &mut listed.fresh);
            }
            Err(Errno::EXIST) => return listed.existing.push(name, kind),
            // That there is no room was said.
            Err(_) if copy.stop.is_full(device) => return Ok(()),
            Err(errno) => Refusal::of(MAKE)(errno),
        };
        copy.fail_target((directory, device), Some(name), refusal);
        Ok(())
    });
    if listed.is_large {
        rustix::fs::seek(pair.source(), SeekFrom::Start(0)).map_err(Refusal::of(LIST))?;
    }
    result.map(|()| listed)
}

/// Takes the next names of a large directory.
pub(super) fn go_on_listing(lane: &mut Lane<'_>, directory: &Arc<Directory>) {
    let copy = lane.copy;
    let mut files = Vec::new();
    let mut is_over = true;
    if let Some(pair) = pair(copy, directory) {
        let result = Sieve::of(copy, directory, None).and_then(|mut sieve| {
            lane.lister.once(pair.source(), |name, kind, _| {
                match sieve.taken(pair.source(), name, kind) {
                    Some(kind) if !kind.is_dir() => add(&mut files, name, kind),
                    _ => Ok(()),
                }
            })
        });
        match result {
            Ok(more) => is_over = !more,
            Err(refusal) => {
                directory.is_listed(Listing::Partial);
                copy.fail_source(directory, None, refusal);
            }
        }
    }
    let mut found = offered(directory, files.into_iter());
    if !is_over {
        found.push(Work::Listing(Arc::clone(directory)));
        return copy.dispatch.offer(found);
    }
    copy.dispatch.offer(found);
    directory.end_use();
    piece_done(copy, directory);
}

/// Removes what a copy left that is gone.
pub(super) fn remove_leftovers(copy: &Copy<'_>, lister: &mut Lister, target: BorrowedFd<'_>) {
    // Whether anything lies there was looked at before.
    if !copy.completes() || rustix::fs::seek(target, SeekFrom::Start(0)).is_err() {
        return;
    }
    let _unread = lister.each(target, |name, _| {
        if copy.stop.is_due() {
            return Err(Refusal::interrupted(LIST));
        }
        if is_temporary(name) {
            let _stays_or_goes = copy.temporaries.remove_leftover(target, name);
        }
        Ok(())
    });
}

/// The pair of a directory that is in use; `None`: it cannot be found again, which is reported.
pub(super) fn pair(copy: &Copy<'_>, directory: &Arc<Directory>) -> Option<Arc<Pair>> {
    let pair = copy.held.pair(directory);
    pair.map_err(|trouble| copy.fail_directory((directory, 0), None, trouble)).ok()
}

/// A piece of a directory is done. After the last one it gets its attributes, and so does the one
/// above it when that was its last, and so on.
pub(super) fn piece_done(copy: &Copy<'_>, directory: &Arc<Directory>) {
    let mut directory = Arc::clone(directory);
    while directory.is_last() {
        if directory.has_more_in_turn() {
            directory.expect(1);
            return copy.dispatch.offer(vec![Work::InTurn(directory)]);
        }
        if let Some(guest) = directory.guest {
            copy.held.leave(&directory);
            return copy.parcel_is_done(guest);
        }
        let Some(parent) = directory.parent.clone() else { return };
        if mirror::begin(copy, &directory) || copy.waits_for_others(&directory) {
            return;
        }
        complete(copy, &directory);
        if parent.parent.is_none() {
            copy.next_operand();
        }
        directory = parent;
    }
}

/// Gives a directory its attributes, and leaves it.
pub(super) fn complete(copy: &Copy<'_>, directory: &Arc<Directory>) {
    give_attributes(copy, directory);
    copy.held.leave(directory);
}

fn give_attributes(copy: &Copy<'_>, directory: &Arc<Directory>) {
    copy.peculiarities.forget(directory.number);
    if copy.stop.is_due() {
        return;
    }
    let Some(pair) = pair(copy, directory) else { return };
    let Found { facts, made, target: (device, _), .. } = &pair.found;
    // By the rules of cp it gets what it is to have all the same: the next copy may change nothing of it.
    if copy.stop.is_full(*device) && copy.rules().is_none() {
        return;
    }
    let result = match copy.is_plan() {
        true => Ok(()),
        false => copy.attributes.directory(pair.source(), pair.target(), facts, *made).map(drop),
    };
    if let Err(refusal) = result {
        return copy.fail_directory((directory, *device), None, Trouble::of(refusal));
    }
    // cp does not look.
    if copy.rules().is_none() && has_changed(&pair) {
        copy.tell_of_a_changed_directory(directory);
    }
    count(&copy.tally.directories);
    copy.list_directory(directory, pair.target());
    if copy.watch.wants_each() {
        let source = directory.path(Side::Source, None);
        let action = Action::Directory;
        let elapsed_ns = monotonic_ns() - directory.begun_ns;
        copy.watch.event(&Event::Done { action, source, bytes: 0, method: None, elapsed_ns });
    }
}

/// Whether the names of the source are not those that were listed.
fn has_changed(pair: &Pair) -> bool {
    let modified = |facts: &Stat| (facts.st_mtime, facts.st_mtime_nsec);
    rustix::fs::fstat(pair.source()).is_ok_and(|now| modified(&now) != modified(&pair.found.facts))
}

/// Adds a name to the last batch, or begins another.
fn add(batches: &mut Vec<Batch>, name: &CStr, kind: FileType) -> Result<(), Refusal> {
    match batches.last_mut() {
        Some(last) if last.count() < BATCH_ENTRIES => last.push(name, kind),
        _ => {
            let mut batch = Batch::default();
            batch.push(name, kind)?;
            batches.push(batch);
            Ok(())
        }
    }
}
