//! One regular file: its bytes first, then who owns it, and last who may use it.
//!
//! A new file is readable by us only and has a time that is not the source's until it is complete,
//! so that what a crash leaves is never taken for finished. One that was there is replaced as a
//! whole: readers see the old or the new one.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use flatout_sys::descriptor;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::{Made, Predecessor};
use super::content::{self, FileJob};
use super::directory::Side;
use super::dispatch::Work;
use super::entry::{Entry, Outcome, Trouble, attribute, look, source, target};
use super::event::Action;
use super::existing::{Existing, in_the_way, refuse_itself, refused};
use super::failure::{Cause, Refusal};
use super::lane::Lane;
use super::links::mark;
use super::options::{Appearance, Assurance, Preserve, Unchanged};
use super::tally::count;

/// A file that changes while it is copied is copied again so often.
const ATTEMPTS: u32 = 2;
/// The unit of `st_blocks`, whatever the block size of the filesystem.
const SECTOR_BYTES: u64 = 512;
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A source that is open, and what was known of it then.
struct Opened {
    file: OwnedFd,
    facts: Stat,
}

/// Where the bytes go.
struct Place {
    file: OwnedFd,
    made: Made,
    name: Name,
    /// Of the directory that it lies in.
    device: u64,
}

/// Under which name they go there.
enum Name {
    /// One that is taken away or moved to its place in the end, where this file was.
    Temporary(CString, Option<Predecessor>),
    /// Its own, which nobody had.
    New,
    /// That of a file that was there, which had this mode.
    Old(Mode),
}

/// What there is to do.
enum Where {
    /// Bytes go here.
    Open(Place),
    /// The file is there.
    Done(Stat),
}

/// What became of a source while it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    /// Bytes were added behind those that were read.
    Grew,
    /// It ends earlier than it says, now as before.
    Shorter,
    Changed,
}

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
        let opened = open(entry)?;
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
                    opened = open(entry)?;
                    attempt.number += 1;
                }
                Err(Setback::Irreplaceable(errno)) => attempt.in_place = Some(errno),
                Err(Setback::Trouble(trouble)) => return Err(trouble),
                Ok(outcome) => return Ok(outcome),
            }
        }
    }

    /// Opens what the bytes go to; or finds that the file is there already.
    fn place(
        &mut self,
        entry: Entry<'_>,
        opened: &Opened,
        attempt: Attempt,
    ) -> Result<Where, Trouble> {
        let directory = entry.pair.target();
        let device = entry.pair.found().target.0;
        let made = Made::new(entry.pair.found().inheritance);
        if self.copy.options.appearance != Appearance::Atomic && attempt.in_place.is_none() {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            match rustix::fs::openat(directory, entry.target, flags | OFlags::CLOEXEC, PRIVATE) {
                Ok(file) => {
                    return Ok(Where::Open(Place { file, made, name: Name::New, device }));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(target("create")(errno)),
            }
        }
        match self.existing(entry, opened.file.as_fd(), &opened.facts)? {
            Existing::Unchanged(found) => Ok(Where::Done(found)),
            Existing::Replace(found) => {
                self.successor(entry, &opened.facts, &found, attempt.in_place).map(Where::Open)
            }
            Existing::ReplaceSymlink | Existing::Gone => {
                let temporaries = &self.copy.temporaries;
                let (file, name) =
                    temporaries.file(directory, entry.target).map_err(Trouble::Target)?;
                let name = Name::Temporary(name, None);
                Ok(Where::Open(Place { file, made, name, device }))
            }
        }
    }

    /// Opens what the bytes go to where a file is in the way: a new file that will take its place, or
    /// where that cannot be, the file itself.
    fn successor(
        &mut self,
        entry: Entry<'_>,
        source: &Stat,
        found: &Stat,
        in_place: Option<Errno>,
    ) -> Result<Place, Trouble> {
        let appearance = self.copy.options.appearance;
        // What is written into one name is in all others.
        let is_bound = self.is_bound(found);
        let why = match in_place {
            Some(errno) => errno,
            None if appearance == Appearance::InPlace && !is_bound => {
                return self.cut(entry, source);
            }
            None => match self.new_file(entry, source, found)? {
                Ok(place) => return Ok(place),
                Err(errno) => errno,
            },
        };
        // Whoever wants files to appear as a whole does not want that.
        if is_bound || appearance == Appearance::Atomic {
            return Err(target("replace")(why));
        }
        let place = self.cut(entry, source)?;
        self.copy.tell_in_place(&entry.path(Side::Target), why);
        Ok(place)
    }

    /// Makes the file that will take the place of another one; or says why there can be none.
    fn new_file(
        &self,
        entry: Entry<'_>,
        source: &Stat,
        found: &Stat,
    ) -> Result<Result<Place, Errno>, Trouble> {
        let (directory, device) = (entry.pair.target(), entry.pair.found().target.0);
        let (file, name) = match self.copy.temporaries.file(directory, entry.target) {
            Ok(made) => made,
            Err(Refusal { cause: Cause::System(errno), .. }) if needs_no_directory(errno) => {
                return Ok(Err(errno));
            }
            Err(Refusal { cause: Cause::System(errno), .. })
                if has_room_in_place(entry, source, found, errno) =>
            {
                return Ok(Err(errno));
            }
            Err(refusal) => return Err(Trouble::Target(refusal)),
        };
        let old = (entry.target_place(), found);
        let inheritance = entry.pair.found().inheritance;
        let preceded = self.copy.attributes.precede(file.as_fd(), old, source, inheritance);
        let refused = match preceded {
            Ok(Some((made, predecessor))) => {
                let name = Name::Temporary(name, Some(predecessor));
                return Ok(Ok(Place { file, made, name, device }));
            }
            Ok(None) => Ok(Err(Errno::PERM)),
            Err(refusal) => Err(Trouble::Target(refusal)),
        };
        self.discard(entry, &file, &name);
        refused
    }

    /// Opens an existing file to be written again.
    fn cut(&self, entry: Entry<'_>, source: &Stat) -> Result<Place, Trouble> {
        let reads = match self.copy.options.assurance {
            Assurance::Verified => OFlags::RDWR,
            Assurance::Accepted => OFlags::WRONLY,
        };
        let flags = reads | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(entry.pair.target(), entry.target, flags, Mode::empty())
            .map_err(target("open"))?;
        let facts = rustix::fs::fstat(&file).map_err(target("examine"))?;
        if !FileType::from_raw_mode(facts.st_mode).is_file() {
            return Err(refused("overwrite", "it is no file any more"));
        }
        refuse_itself(&facts, source)?;
        // What is written is for the eyes of those only who may see both files.
        let mode = Mode::from_raw_mode(facts.st_mode & 0o7777);
        let narrow = Mode::from_raw_mode(facts.st_mode & source.st_mode & 0o777);
        if narrow != mode && self.copy.options.preserve.has(Preserve::MODE) {
            let _not_ours = rustix::fs::fchmod(&file, narrow);
        }
        rustix::fs::ftruncate(&file, 0).map_err(target("cut"))?;
        let made = Made::found(&facts);
        Ok(Place { file, made, name: Name::Old(mode), device: facts.st_dev })
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
            let made = self.made(&file, &written);
            // Some filesystems tell only now that bytes were lost.
            closed(file)?;
            self.note(&opened.facts, made);
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
                self.note(&opened.facts, self.made(&file, &written));
                Ok(written.outcome)
            }
            Err(trouble) => {
                self.discard(entry, &file, &temporary);
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
            Name::Temporary(temporary, _) => self.discard(entry, &file, temporary),
            Name::New => self.discard(entry, &file, entry.target),
            Name::Old(mode) => {
                let _not_ours = rustix::fs::fchmod(&file, *mode);
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

    /// Removes a file that was made here, if it is what bears the name.
    fn discard(&self, entry: Entry<'_>, file: &OwnedFd, name: &CStr) {
        let directory = entry.pair.target();
        if let Some(aside) = self.copy.temporaries.discard(directory, name, file.as_fd()) {
            self.copy.tell_of_something_aside(&entry.path(Side::Target), &aside);
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
        let state = state_of(opened, copied.length_bytes)?;
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
        let blemish = self.finish_attributes(opened, place).err().map(attribute);
        self.begin_writing(to);
        let mark = match opened.facts.st_nlink {
            0 | 1 => None,
            _ => Some(mark(&rustix::fs::fstat(to).map_err(target("examine"))?)),
        };
        let (action, bytes, method) = (Action::Copied, copied.bytes_moved, copied.method);
        let is_certain = state == State::Same && blemish.is_none();
        let outcome = Outcome { action, bytes, method, mark, blemish };
        Ok(Written { outcome, is_certain })
    }

    fn finish_attributes(&self, opened: &Opened, place: &Place) -> Result<(), Refusal> {
        let attributes = &self.copy.attributes;
        let (from, to) = (opened.file.as_fd(), place.file.as_fd());
        if let Name::Temporary(_, Some(predecessor)) = &place.name {
            attributes.succeed(predecessor, to, place.made)?;
        }
        attributes.file(from, to, &opened.facts, place.made)
    }

    /// What a complete file is now, where that is to be noted. A call, but only then.
    fn made(&self, file: &OwnedFd, written: &Written) -> Option<Stat> {
        let is_wanted = self.copy.evidence.is_noting() && written.is_certain;
        is_wanted.then(|| rustix::fs::fstat(file).ok())?
    }

    /// Notes that a file is complete, for a run to come.
    pub(super) fn note(&self, source: &Stat, made: Option<Stat>) {
        if let Some(made) = made
            && self.copy.methods.keep_change_times((source.st_dev, made.st_dev))
        {
            self.copy.evidence.note(source, &made);
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
            self.copy.evidence.note(&opened.facts, found);
            return Ok(Outcome { mark: Some(mark(found)), ..Outcome::of(Action::Unchanged) });
        }
        let place = entry.target_place();
        let attributes = &self.copy.attributes;
        attributes.repair(opened.file.as_fd(), place, &opened.facts, found).map_err(attribute)?;
        Ok(Outcome::of(Action::Unchanged))
    }
}

/// Whether a refusal has to do with the directory, or with the name in it, so that the file may be
/// written all the same: it is mounted (`EBUSY`), or the directory is not to be written to.
fn needs_no_directory(errno: Errno) -> bool {
    matches!(errno, Errno::BUSY | Errno::ACCESS | Errno::PERM | Errno::ROFS)
}

/// Whether a file that has no room beside the old one has it in its place. A guess that is too high
/// would cost the old one.
fn has_room_in_place(entry: Entry<'_>, source: &Stat, found: &Stat, errno: Errno) -> bool {
    let free_bytes = match errno {
        Errno::NOSPC => rustix::fs::fstatvfs(entry.pair.target())
            .map_or(0, |facts| facts.f_bavail.saturating_mul(facts.f_frsize)),
        Errno::DQUOT => 0,
        _ => return false,
    };
    let held = |facts: &Stat| (facts.st_blocks as u64).saturating_mul(SECTOR_BYTES);
    let needed = held(source).max(source.st_size as u64);
    let is_regular = FileType::from_raw_mode(found.st_mode).is_file();
    is_regular && found.st_nlink == 1 && needed <= held(found).saturating_add(free_bytes)
}

/// What the kernel said.
fn errno_of(trouble: &Trouble) -> Option<Errno> {
    match trouble {
        Trouble::Target(Refusal { cause: Cause::System(errno), .. }) => Some(*errno),
        _ => None,
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

/// Opens the source. A pipe that took its place does not block, a symlink is not followed.
fn open(entry: Entry<'_>) -> Result<Opened, Trouble> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::openat(entry.pair.source(), entry.source, flags, Mode::empty());
    let file = match open(flags | OFlags::NONBLOCK) {
        // Somebody holds a lease on it (fcntl(2)), and is asked to give it back.
        Err(Errno::AGAIN) if FileType::from_raw_mode(look(entry)?.st_mode).is_file() => open(flags),
        opened => opened,
    };
    let file = match file {
        Ok(file) => file,
        // A symlink, a socket.
        Err(Errno::LOOP | Errno::NXIO) => return Err(Trouble::Became),
        Err(errno) => return Err(source("open")(errno)),
    };
    let facts = rustix::fs::fstat(&file).map_err(source("examine"))?;
    if !FileType::from_raw_mode(facts.st_mode).is_file() {
        return Err(Trouble::Became);
    }
    Ok(Opened { file, facts })
}

/// Looks what became of a source while it was read, `length_bytes` of it.
fn state_of(opened: &Opened, length_bytes: u64) -> Result<State, Trouble> {
    let before = &opened.facts;
    let after = rustix::fs::fstat(&opened.file).map_err(source("examine"))?;
    let all = before.st_size as u64;
    let is_written =
        (before.st_mtime, before.st_mtime_nsec) != (after.st_mtime, after.st_mtime_nsec);
    if after.st_size > before.st_size && length_bytes == all {
        return Ok(State::Grew);
    }
    if is_written || after.st_size != before.st_size {
        return Ok(State::Changed);
    }
    if all > 0 && length_bytes < all {
        let ends = rustix::io::pread(&opened.file, &mut [0_u8], length_bytes);
        return Ok(if ends == Ok(0) { State::Shorter } else { State::Changed });
    }
    Ok(State::Same)
}
