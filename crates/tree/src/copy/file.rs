//! One regular file: its bytes first, then who owns it, and last who may use it.
//!
//! A new file is readable by us only and has a time that is not the source's until it is complete,
//! so that what a crash leaves is never taken for finished. One that was there is replaced as a
//! whole: readers see the old or the new one.
//!
//! Read next: `file/source.rs`, where the bytes come from; `file/place.rs`, where they go;
//! `file/finish.rs`, how a file is completed, or taken back.

mod as_found;
mod cut;
mod finish;
mod place;
mod room;
mod source;
mod together;

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

pub(super) use self::as_found::{open_as_found, open_instead};
use self::cut::is_as_long;
pub(super) use self::place::Place;
use self::place::{Bytes, Where};
use self::source::State;
pub(super) use self::source::{Opened, Reading, reading_flags};
pub(super) use self::together::{Apart, copy_next};
use super::bond::Bond;
use super::content::{Content, Copied, FileJob};
use super::event::{CUT_SHORT, UNSTABLE};
use super::evidence::Known;
use super::existing::has_same_time;
use super::lane::MUCH_BYTES;
use super::temporary::is_temporary;
use super::written::counts_for;
use super::{
    Action, Durability, Entry, Lane, Node, Outcome, Refusal, Trouble, Unchanged, Work, count,
    identity, kind_of, mark, refused, target,
};
use crate::compare::content::Pair;
use crate::file_data::{self, Moment, has_whole_files, is_paged};

/// A file that changes while it is copied is copied again so often.
const ATTEMPTS: u32 = 2;

/// Why an attempt came to nothing.
enum Setback {
    /// The source was written meanwhile: it is worth another attempt.
    Changed,
    /// No new file can take the place of the one that is there.
    Irreplaceable(Errno),
    Trouble(Trouble),
}

impl From<Trouble> for Setback {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// Copies a regular file: opens it, and goes on as often as that is worth it until its copy is
/// complete.
pub(super) fn copy(lane: &mut Lane<'_>, entry: Entry<'_>) -> Result<Outcome, Trouble> {
    if let Some(outcome) = as_it_is(entry)? {
        return Ok(outcome);
    }
    if let Some(references) = &lane.copy.references
        && let Some(linked) = references.link_unopened(lane, entry)?
    {
        return Ok(linked);
    }
    let opened = Opened::open(entry, Reading::FILE)?;
    copy_opened(lane, opened)
}

/// Copies a file that is open, or makes its name a link to a copy.
fn copy_opened(lane: &mut Lane<'_>, mut opened: Opened<'_>) -> Result<Outcome, Trouble> {
    let (copy, entry) = (lane.copy, opened.entry);
    let bond = Bond::if_alike(entry, &opened.facts, |known| counts_for(lane, &opened, known))?;
    bond.or_copied(entry, || {
        if let Some(references) = &copy.references
            && let Some(linked) = references.link(lane, &opened)?
        {
            return Ok(linked);
        }
        until_complete(lane, &mut opened, |lane, opened, in_place| {
            Place::open(lane, opened, in_place)
        })
    })
}

/// A file with one name whose copy counts as done by its size and time, or is known to be: neither is opened.
/// `None`: a closer look is needed.
fn as_it_is(entry: Entry<'_>) -> Result<Option<Outcome>, Trouble> {
    let copy = entry.copy;
    let is_recorded = match copy.unchanged() {
        Unchanged::SizeAndTime => false,
        Unchanged::Recorded if copy.evidence.knows_any() => true,
        _ => return Ok(None),
    };
    let is_new = entry.pair.found.made.is_new();
    if is_new || copy.references.is_some() || copy.attributes.keeps_any() {
        return Ok(None);
    }
    let moment = Moment::now();
    let (Ok(facts), Some(found)) = (entry.look(), entry.in_the_way()?) else { return Ok(None) };
    let is_single = |facts: &Stat| kind_of(facts).is_file() && facts.st_nlink == 1;
    let is_pair = is_single(&facts) && is_single(&found) && identity(&facts) != identity(&found);
    let is_usual = is_pair && !is_temporary(entry.target) && facts.st_size == found.st_size;
    let [from, to] = [(&facts, entry.pair.source()), (&found, entry.pair.target())];
    if is_recorded {
        let is_done = is_usual && copy.evidence.proves(from, to);
        return Ok(is_done.then(|| noted(entry, from, moment, to)));
    }
    if !is_usual || !has_same_time(entry, &facts, &found) {
        return Ok(None);
    }
    let source = Node::Named(entry.source_place());
    copy.attributes.repair(source, entry.target_place(), &facts, &found).map_err(Trouble::of)?;
    Ok(Some(Outcome::of(Action::Unchanged)))
}

/// A file that is known to be what was made of its source stays as it is, and known.
fn noted(entry: Entry<'_>, source: Known<'_>, opened: Moment, found: Known<'_>) -> Outcome {
    entry.copy.evidence.note(source, opened, found);
    Outcome { mark: Some(mark(found.0)), ..Outcome::of(Action::Unchanged) }
}

/// Has a file filled at the place that `find` names, as often as that is worth it. `find` gets the
/// reason why no new file can take the place of the one that is there, if that is known.
pub(super) fn until_complete<'c>(
    lane: &mut Lane<'c>,
    opened: &mut Opened<'_>,
    mut find: impl FnMut(&mut Lane<'c>, &Opened<'_>, Option<Errno>) -> Result<Where, Trouble>,
) -> Result<Outcome, Trouble> {
    let (copy, entry) = (lane.copy, opened.entry);
    let (mut attempt, mut in_place) = (1, None);
    loop {
        let place = match find(lane, opened, in_place)? {
            Where::Open(place) => place,
            Where::Done(found) => return put_right(opened, &found),
        };
        let result = match fill(lane, opened, &place, attempt) {
            Ok(filled) => {
                match filled.1 {
                    State::Touched => opened.meet_again(),
                    // Whoever added to it meanwhile sees its times stay.
                    State::Grew if place.bytes == Bytes::Own => opened.meet_times_again(),
                    _ => {}
                }
                place.finish(opened, filled)
            }
            Err(setback) => Err(place.give_up(opened, setback)),
        };
        match result {
            Ok(outcome) => return Ok(outcome),
            Err(Setback::Trouble(trouble)) => return Err(trouble),
            Err(Setback::Irreplaceable(errno)) => in_place = Some(errno),
            Err(Setback::Changed) => {
                count(&copy.tally.retried);
                copy.tell_of_a_change(entry);
                let again = Opened::open(entry, opened.reading)?;
                // Another file has the name by now: it is another one's links, too.
                if identity(&again.facts) != identity(&opened.facts) {
                    return Err(Trouble::Became);
                }
                *opened = again;
                attempt += 1;
            }
        }
    }
}

/// Has the bytes moved, and looks at the source again; reads the copy back where that is asked for.
fn fill(
    lane: &mut Lane<'_>,
    opened: &Opened<'_>,
    place: &Place,
    attempt: u32,
) -> Result<(Copied, State), Setback> {
    let (copy, hire, to) = (lane.copy, lane.hire, place.file.as_fd());
    let meanwhile = |content: &mut Content<'_>| copy.meanwhile(content);
    let job = FileJob {
        source: opened.file.as_fd(),
        target: to,
        facts: &opened.facts,
        target_device: place.device,
        is_written_out: place.replaces() || copy.options.durability == Durability::Durable,
        share: &|large| {
            copy.let_others_help(opened, place, &large);
            copy.dispatch.offer(vec![Work::Large(large)]);
            copy.find_hands(hire);
        },
        meanwhile: copy.shared.is_some().then_some(&meanwhile),
        waits: &|threads| copy.want_threads(threads),
        moved: &copy.tally.bytes,
    };
    if place.bytes != Bytes::All || copy.references.is_some() {
        hire.takes_time();
    }
    match place.bytes {
        Bytes::All | Bytes::Different | Bytes::Own => {}
        Bytes::Stream => {
            let copied = lane.content.stream(job).map_err(Trouble::of)?;
            return Ok((copied, State::Same));
        }
        Bytes::None => return Ok((Copied::default(), State::Same)),
    }
    let _shown_to_whoever_asks = copy.tally.begin(opened.entry, &opened.facts);
    let taken = match (place.bytes, &copy.references) {
        (Bytes::Different | Bytes::Own, _) => {
            Some(lane.content.amend(job, place.bytes == Bytes::Own).map_err(Trouble::of)?)
        }
        (_, Some(references)) => references.clone(lane, opened, job)?,
        _ => None,
    };
    let mut copied = match taken {
        Some(copied) => copied,
        None => lane.content.copy(job, || hire.takes_time()).map_err(Trouble::of)?,
    };
    // What is that long may be on its way to storage by now.
    if copied.bytes_moved >= MUCH_BYTES {
        flatout_sys::page_cache::written_back(to).map_err(target("write"))?;
    }
    let mut state = state(lane, opened, copied.length_bytes)?;
    if matches!(state, State::Grew | State::Untold | State::Touched) {
        let is_prefix = is_prefix(lane, opened, to, copied.length_bytes)?;
        // The next attempt can tell by the times.
        if is_prefix.is_none() && state == State::Untold && attempt < ATTEMPTS {
            opened.wait_for_a_step();
        }
        if is_prefix != Some(true) {
            state = State::Changed;
        }
    }
    // Nothing is cut off what may be the source: another file has its length by itself, or gets it next time.
    if place.bytes == Bytes::Own && !is_as_long(opened, &place.file)? {
        state = State::Changed;
    }
    match state {
        State::Same => {}
        // What was there when it was opened is a state that a file has which is only added to. Who shared
        // its extents may have more. Files of the kernel say how long they might be.
        State::Grew | State::Shorter | State::Untold | State::Touched => {
            if place.bytes != Bytes::Own {
                file_data::set_length(to, copied.length_bytes).map_err(target("cut"))?;
            }
        }
        State::Changed if attempt < ATTEMPTS => return Err(Setback::Changed),
        State::Changed => copy.tell_of_unrest(opened.entry, UNSTABLE),
    }
    if state != State::Same {
        // Nobody knows whether what was read the second time was what was copied.
        copied.plain = None;
    }
    if copied.digest.is_some() {
        let found = lane.content.read_back(to, copied.length_bytes).map_err(Trouble::of)?;
        if found != copied.digest {
            return Err(refused("verify", "what was read back is not what was written").into());
        }
    }
    Ok((copied, state))
}

/// Looks what became of a source of which so much was read.
fn state(lane: &Lane<'_>, opened: &Opened<'_>, length_bytes: u64) -> Result<State, Trouble> {
    match opened.state(length_bytes)? {
        // This kernel alone knows how long it is.
        State::Shorter if lane.content.source().is_some_and(is_paged) => {
            Err(Trouble::Source(Refusal::because("read", file_data::ENDED_EARLY)))
        }
        State::Shorter if lane.content.source().is_some_and(has_whole_files) => {
            lane.copy.tell_of_unrest(opened.entry, CUT_SHORT);
            Ok(State::Shorter)
        }
        state => Ok(state),
    }
}

/// Whether a source begins with what was copied of it: if it grew, it was only added to. `None`: the copy
/// cannot be read.
fn is_prefix(
    lane: &mut Lane<'_>,
    opened: &Opened<'_>,
    target: BorrowedFd<'_>,
    length_bytes: u64,
) -> Result<Option<bool>, Trouble> {
    // One that is written in place may not be open for reading.
    let again = match rustix::fs::fcntl_getfl(target) {
        Ok(flags) if flags & OFlags::RWMODE == OFlags::WRONLY => {
            file_data::reopen(target, OFlags::empty()).ok()
        }
        _ => None,
    };
    let target = again.as_ref().map_or(target, AsFd::as_fd);
    // Holes are read as the zeros that they are.
    let pair = Pair { source: opened.file.as_fd(), target, length_bytes, sparse: [false; 2] };
    let difference = lane.copy.first_difference(&mut lane.comparer, pair)?;
    Ok(difference.ok().map(|difference| difference.is_none()))
}

/// A file that is there already may still have another owner, mode or attribute; not if it is known
/// to be what was made of this source.
fn put_right(opened: &Opened<'_>, found: &Stat) -> Result<Outcome, Trouble> {
    let entry = opened.entry;
    let copy = entry.copy;
    if copy.unchanged() == Unchanged::Recorded {
        let [from, to] = [(&opened.facts, entry.pair.source()), (found, entry.pair.target())];
        return Ok(noted(entry, from, opened.moment, to));
    }
    let place = entry.target_place();
    let source = Node::Open(opened.file.as_fd());
    copy.attributes.repair(source, place, &opened.facts, found).map_err(Trouble::of)?;
    Ok(Outcome::of(Action::Unchanged))
}
