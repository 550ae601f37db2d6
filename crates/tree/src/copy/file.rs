//! One regular file: its bytes first, then who owns it, and last who may use it.
//!
//! A new file is readable by us only and has a time that is not the source's until it is complete,
//! so that what a crash leaves is never taken for finished. One that was there is replaced as a
//! whole: readers see the old or the new one.
//!
//! Read next: `file/place.rs`, where the bytes go; `file/source.rs`, where they come from.

mod place;
mod source;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use flatout_sys::descriptor;
use rustix::fs::{Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use self::place::{Name, PRIVATE, Place, Where, errno_of, has_room_in_place, needs_no_directory};
use self::source::{Opened, State, open, state_of};
use super::attributes::Completeness;
use super::content::{self, FileJob};
use super::directory::{Side, identity};
use super::dispatch::Work;
use super::entry::{Entry, Outcome, Trouble, attribute, target};
use super::event::Action;
use super::existing::{in_the_way, refused};
use super::failure::Refusal;
use super::lane::{Lane, MUCH_BYTES};
use super::links::mark;
use super::options::Unchanged;
use super::tally::count;
use super::temporary::Discarded;
use crate::compare::content::{Comparer, Pair};

/// A file that changes while it is copied is copied again so often.
const ATTEMPTS: u32 = 2;

/// How an attempt to copy a file goes about it.
#[derive(Clone, Copy)]
struct Attempt {
    /// From 1 on.
    number: u32,
    /// Why a file that is there must be written in place.
    in_place: Option<Errno>,
}

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

/// A copy that is complete.
struct Written {
    outcome: Outcome,
    /// What was read is what the source was all the time.
    is_certain: bool,
}

impl Lane<'_, '_> {
    /// Copies a regular file.
    pub(super) fn regular(&mut self, entry: Entry<'_>) -> Result<Outcome, Trouble> {
        let opened = open(entry, &self.copy.stop)?;
        let facts = opened.facts;
        self.once(entry, &facts, |lane| lane.file(entry, opened))
    }

    fn file(&mut self, entry: Entry<'_>, mut opened: Opened) -> Result<Outcome, Trouble> {
        let mut attempt = Attempt { number: 1, in_place: None };
        loop {
            let place = match self.place(entry, &opened, attempt)? {
                Where::Open(place) => place,
                Where::Done(found) => return self.put_right(entry, &opened, &found),
            };
            match self.fill(entry, &opened, place, attempt) {
                Err(Setback::Changed) => {
                    count(&self.copy.tally.retried);
                    self.copy.tell_of_a_change(&entry.path(Side::Source));
                    let again = open(entry, &self.copy.stop)?;
                    // Another file has the name by now: it is another one's links, too.
                    if identity(&again.facts) != identity(&opened.facts) {
                        return Err(Trouble::Became);
                    }
                    opened = again;
                    attempt.number += 1;
                }
                Err(Setback::Irreplaceable(errno)) => attempt.in_place = Some(errno),
                Err(Setback::Trouble(trouble)) => return Err(trouble),
                Ok(outcome) => return Ok(outcome),
            }
        }
    }

    /// Moves the bytes, sets the attributes, gives it its name.
    fn fill(
        &mut self,
        entry: Entry<'_>,
        opened: &Opened,
        place: Place,
        attempt: Attempt,
    ) -> Result<Outcome, Setback> {
        let result = self.write(entry, opened, &place, attempt);
        let Place { file, name, .. } = place;
        let written = match result {
            Ok(written) => written,
            Err(setback) => return Err(self.give_up(entry, opened, (file, name), setback)),
        };
        let Name::Temporary(temporary, predecessor) = name else {
            // What is written in place may have been the same a moment ago, with other bytes.
            let made =
                matches!(name, Name::New).then(|| self.made(opened, &file, &written)).flatten();
            // Some filesystems tell only now that bytes were lost.
            closed(file).inspect_err(|_| {
                if matches!(name, Name::New) {
                    unfinish(entry, opened);
                }
            })?;
            self.note(entry, opened, made);
            return Ok(written.outcome);
        };
        // The lock stays until it has its name.
        let done = rustix::io::fcntl_dupfd_cloexec(&file, 3)
            .map_err(target("close"))
            .and_then(closed)
            .and_then(|()| {
                let directory = entry.pair.target();
                rustix::fs::renameat(directory, &temporary, directory, entry.target)
                    .map_err(target("replace"))
            });
        match done {
            Ok(()) => {
                self.note(entry, opened, self.made(opened, &file, &written));
                Ok(written.outcome)
            }
            Err(trouble) => {
                self.discard(entry, &file, Some(&temporary));
                match (errno_of(&trouble), predecessor) {
                    (Some(errno), Some(_)) if needs_no_directory(errno) => {
                        Err(Setback::Irreplaceable(errno))
                    }
                    _ => Err(trouble.into()),
                }
            }
        }
    }

    /// Takes back what was begun. What had no room beside an old file may have it in its place.
    fn give_up(
        &self,
        entry: Entry<'_>,
        opened: &Opened,
        (file, name): (OwnedFd, Name),
        setback: Setback,
    ) -> Setback {
        match &name {
            Name::Temporary(temporary, _) => self.discard(entry, &file, Some(temporary)),
            Name::New => self.discard(entry, &file, None),
            // It may hold a part of the source by now, and stays closed to whom that is closed. Room
            // behind its end is given back.
            Name::Old => {
                let length = rustix::fs::fstat(&file).map(|facts| facts.st_size as u64);
                let _kept = length.and_then(|length| rustix::fs::ftruncate(&file, length));
            }
        }
        drop(file);
        match (&name, &setback) {
            (Name::Temporary(_, Some(_)), Setback::Trouble(trouble)) => {
                let found = in_the_way(entry).ok().flatten();
                match (errno_of(trouble), found) {
                    (Some(errno), Some(found))
                        if has_room_in_place(entry, &opened.facts, &found, errno) =>
                    {
                        Setback::Irreplaceable(errno)
                    }
                    _ => setback,
                }
            }
            _ => setback,
        }
    }

    /// Removes a file that was made here under a temporary name, or its own: then only if it is what
    /// bears that.
    fn discard(&self, entry: Entry<'_>, file: &OwnedFd, temporary: Option<&CStr>) {
        let (directory, temporaries) = (entry.pair.target(), &self.copy.temporaries);
        let discarded = match temporary {
            Some(name) => temporaries.discard_temporary(directory, name, file.as_fd()),
            None => temporaries.discard(directory, entry.target, file.as_fd()),
        };
        match discarded {
            Discarded::Gone => {}
            Discarded::Stays => self.copy.tell_of_a_remainder(&entry.path(Side::Target)),
            Discarded::Aside(aside) => {
                self.copy.tell_of_something_aside(&entry.path(Side::Target), &aside);
            }
        }
    }

    fn write(
        &mut self,
        entry: Entry<'_>,
        opened: &Opened,
        place: &Place,
        attempt: Attempt,
    ) -> Result<Written, Setback> {
        let copy = self.copy;
        let (from, to) = (opened.file.as_fd(), place.file.as_fd());
        let copied = self
            .content
            .copy(FileJob {
                source: from,
                target: to,
                facts: &opened.facts,
                target_device: place.device,
                share: &|large| copy.dispatch.offer(vec![Work::Large(large)]),
                moved: &copy.tally.bytes,
            })
            .map_err(side_of)?;
        let mut state = state_of(opened, copied.length_bytes)?;
        if state == State::Grew && !self.is_prefix(opened, to, copied.length_bytes)? {
            state = State::Changed;
        }
        match state {
            // What was there when it was opened is a state that a file has which is only added to.
            State::Same | State::Grew => {}
            // Files of the kernel say how long they might be.
            State::Shorter => {
                rustix::fs::ftruncate(to, copied.length_bytes).map_err(target("cut"))?;
            }
            State::Changed if attempt.number < ATTEMPTS => return Err(Setback::Changed),
            State::Changed => copy.tell_of_unrest(&entry.path(Side::Source)),
        }
        if let Some(expected) = copied.digest {
            let found = self.content.read_back(to, copied.length_bytes).map_err(side_of)?;
            if found != expected {
                let reason = "what was read back is not what was written";
                return Err(refused("verify", reason).into());
            }
        }
        // Bytes that are all there are not thrown away for an attribute.
        let finished = self.finish_attributes(opened, place);
        let is_complete = finished == Ok(Completeness::Whole);
        let blemish = finished.err().map(attribute);
        self.begin_writing(to);
        let mark = match opened.facts.st_nlink {
            0 | 1 => None,
            _ => Some(mark(&rustix::fs::fstat(to).map_err(target("examine"))?)),
        };
        let (action, bytes, method) = (Action::Copied, copied.bytes_moved, copied.method);
        let is_certain = state == State::Same && is_complete;
        let outcome = Outcome { action, bytes, method, mark, blemish };
        Ok(Written { outcome, is_certain })
    }

    fn finish_attributes(&self, opened: &Opened, place: &Place) -> Result<Completeness, Refusal> {
        let attributes = &self.copy.attributes;
        let (from, to) = (opened.file.as_fd(), place.file.as_fd());
        if let Name::Temporary(_, Some(predecessor)) = &place.name {
            attributes.succeed(predecessor, to, place.made)?;
        }
        attributes.file(from, to, &opened.facts, place.made)
    }

    /// Whether a source that grew begins with what was copied of it: then it was only added to.
    fn is_prefix(
        &mut self,
        opened: &Opened,
        target: BorrowedFd<'_>,
        length_bytes: u64,
    ) -> Result<bool, Trouble> {
        let pair = Pair {
            source: opened.file.as_fd(),
            target,
            length_bytes,
            // Holes are read as the zeros that they are.
            sparse: [false; 2],
        };
        let stop = &self.copy.stop;
        let comparer = self.comparer.get_or_insert_with(Comparer::new);
        match comparer.first_difference(pair, || !stop.is_due()) {
            _ if stop.is_due() => Err(Trouble::Source(Refusal::interrupted("compare"))),
            Ok(difference) => Ok(difference.is_none()),
            // One that is written in place may not be readable: nobody knows.
            Err(_) => Ok(false),
        }
    }

    /// What a complete file is now, where that is to be noted. A call, but only then.
    fn made(&self, opened: &Opened, file: &OwnedFd, written: &Written) -> Option<Stat> {
        // A large file may take so long that the time to note has come meanwhile.
        if opened.facts.st_size as u64 >= MUCH_BYTES {
            self.copy.evidence.look_at_the_clock();
        }
        let is_wanted = self.copy.evidence.is_noting() && written.is_certain;
        is_wanted.then(|| rustix::fs::fstat(file).ok())?
    }

    /// Notes that a file is complete, for a run to come.
    fn note(&self, entry: Entry<'_>, opened: &Opened, made: Option<Stat>) {
        // A file of an overlay has another device than its directory.
        let devices = (opened.facts.st_dev, entry.pair.found().target.0);
        if let Some(made) = made
            && self.copy.methods.keep_change_times(devices)
        {
            self.copy.evidence.note(&opened.facts, opened.moment, &made);
        }
    }

    /// A file that is there already may still have another owner, mode or attribute; not if it is
    /// known to be what was made of this source.
    fn put_right(
        &mut self,
        entry: Entry<'_>,
        opened: &Opened,
        found: &Stat,
    ) -> Result<Outcome, Trouble> {
        if self.copy.unchanged() == Unchanged::Recorded {
            self.copy.evidence.note(&opened.facts, opened.moment, found);
            return Ok(Outcome { mark: Some(mark(found)), ..Outcome::of(Action::Unchanged) });
        }
        let place = entry.target_place();
        let attributes = &self.copy.attributes;
        attributes.repair(opened.file.as_fd(), place, &opened.facts, found).map_err(attribute)?;
        Ok(Outcome::of(Action::Unchanged))
    }
}

/// Has a file that was complete but for what its filesystem said last look as one that is not: it is
/// private, and has a time of its own. It cannot be removed: its descriptor is gone, and with it what
/// tells it from a file that somebody else has put there meanwhile.
fn unfinish(entry: Entry<'_>, opened: &Opened) {
    let (at, name) = (entry.pair.target(), entry.target);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(at, name, flags, Mode::empty()) else { return };
    let time = |facts: &Stat| (facts.st_mtime, facts.st_mtime_nsec);
    let is_made = |found: &Stat| found.st_nlink == 1 && time(found) == time(&opened.facts);
    if rustix::fs::fstat(&file).is_ok_and(|found| is_made(&found)) {
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _as_far_as_it_goes =
            (rustix::fs::fchmod(&file, PRIVATE), rustix::fs::futimens(&file, &times));
    }
}

/// Closes a file and hears what its filesystem has to say to that.
fn closed(file: OwnedFd) -> Result<(), Trouble> {
    descriptor::close(file)
        .map_err(|error| target("close")(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
}

/// Whose fault it is that bytes did not get across.
fn side_of(refusal: Refusal) -> Trouble {
    match refusal.operation {
        content::READ => Trouble::Source(refusal),
        _ => Trouble::Target(refusal),
    }
}
