//! One regular file: its bytes first, then who owns it, and last who may use it.
//!
//! A new file is readable by us only and has a time that is not the source's until it is complete,
//! so that what a crash leaves is never taken for finished. One that was there is replaced as a
//! whole: readers see the old or the new one.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use flatout_sys::descriptor;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::Made;
use super::content::{self, FileJob};
use super::directory::{Side, identity};
use super::dispatch::Work;
use super::entry::{Entry, Outcome, Trouble, attribute, look, source, target};
use super::event::Action;
use super::existing::{Existing, refuse_itself, refused};
use super::failure::Refusal;
use super::lane::Lane;
use super::options::{Appearance, Preserve};
use super::tally::count;

/// A file that changes while it is copied is copied again so often.
const ATTEMPTS: u32 = 2;
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
    /// One that is taken away or moved to its place in the end.
    Temporary(CString),
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
enum State {
    Same,
    /// Bytes were added behind those that were read.
    Grew,
    /// It ends earlier than it says, now as before.
    Shorter,
    Changed,
}

/// Whether a file that changes is copied again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Tries,
    TakesWhatIsThere,
}

impl Lane<'_, '_> {
    /// Copies a regular file.
    pub(super) fn regular(&mut self, entry: Entry<'_>) -> Result<Outcome, Trouble> {
        let opened = open(entry)?;
        let facts = opened.facts;
        self.once(entry, &facts, |lane| lane.file(entry, opened))
    }

    fn file(&mut self, entry: Entry<'_>, mut opened: Opened) -> Result<Outcome, Trouble> {
        for attempt in 1.. {
            let place = match self.place(entry, &opened)? {
                Where::Open(place) => place,
                Where::Done(found) => return self.put_right(entry, &opened, &found),
            };
            let patience =
                if attempt < ATTEMPTS { Patience::Tries } else { Patience::TakesWhatIsThere };
            match self.fill(entry, &opened, place, patience) {
                Err(Trouble::Source(refusal)) if refusal == changed() && attempt < ATTEMPTS => {
                    count(&self.copy.tally.retried);
                    self.copy.tell_of_a_change(&entry.path(Side::Source));
                    opened = open(entry)?;
                }
                done => return done,
            }
        }
        Err(Trouble::Source(changed()))
    }

    /// Opens what the bytes go to; or finds that the file is there already.
    fn place(&mut self, entry: Entry<'_>, opened: &Opened) -> Result<Where, Trouble> {
        let options = self.copy.options;
        let directory = entry.pair.target();
        let device = entry.pair.found().target.0;
        if options.appearance != Appearance::Atomic {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            match rustix::fs::openat(directory, entry.target, flags | OFlags::CLOEXEC, PRIVATE) {
                Ok(file) => {
                    let made = Made::new(entry.pair.found().inheritance);
                    return Ok(Where::Open(Place { file, made, name: Name::New, device }));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(target("create")(errno)),
            }
        }
        match self.existing(entry, opened.file.as_fd(), &opened.facts)? {
            Existing::Unchanged(found) => return Ok(Where::Done(found)),
            Existing::Replace if options.appearance == Appearance::InPlace => {
                if let Some(place) = self.cut(entry, &opened.facts)? {
                    return Ok(Where::Open(place));
                }
            }
            Existing::Replace | Existing::Gone => {}
        }
        let (file, name) = self.copy.temporaries.file(directory).map_err(Trouble::Target)?;
        let made = Made::new(entry.pair.found().inheritance);
        Ok(Where::Open(Place { file, made, name: Name::Temporary(name), device }))
    }

    /// Opens an existing file to be written again; `None`: it is a symlink, or has other names, and
    /// is replaced.
    fn cut(&self, entry: Entry<'_>, source: &Stat) -> Result<Option<Place>, Trouble> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = flags | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(entry.pair.target(), entry.target, flags, Mode::empty())
        {
            Ok(file) => file,
            Err(Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(target("open")(errno)),
        };
        let facts = rustix::fs::fstat(&file).map_err(target("examine"))?;
        if !FileType::from_raw_mode(facts.st_mode).is_file() {
            return Err(refused("overwrite", "it is no file any more"));
        }
        refuse_itself(&facts, source)?;
        if self.copy.options.preserve.has(Preserve::LINKS) && facts.st_nlink > 1 {
            return Ok(None);
        }
        // What is written is for the eyes of those who may see the source.
        let _not_ours = rustix::fs::fchmod(&file, PRIVATE);
        rustix::fs::ftruncate(&file, 0).map_err(target("cut"))?;
        let made = Made::found(&facts);
        let mode = Mode::from_raw_mode(facts.st_mode & 0o7777);
        Ok(Some(Place { file, made, name: Name::Old(mode), device: facts.st_dev }))
    }

    /// Moves the bytes, sets the attributes, gives it its name.
    fn fill(
        &mut self,
        entry: Entry<'_>,
        opened: &Opened,
        place: Place,
        patience: Patience,
    ) -> Result<Outcome, Trouble> {
        let result = self.write(opened, &place, patience);
        let directory = entry.pair.target();
        let remove = |name: &CStr| {
            let _stays = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        };
        let Place { file, name, .. } = place;
        let outcome = match (name, result) {
            (Name::Temporary(name), Ok(outcome)) => {
                // The lock stays until it has its name.
                let done = rustix::io::fcntl_dupfd_cloexec(&file, 3)
                    .map_err(target("close"))
                    .and_then(closed)
                    .and_then(|()| {
                        rustix::fs::renameat(directory, &name, directory, entry.target)
                            .map_err(target("replace"))
                    });
                return match done {
                    Ok(()) => Ok(outcome),
                    Err(trouble) => {
                        remove(&name);
                        Err(trouble)
                    }
                };
            }
            (Name::Temporary(name), Err(trouble)) => {
                remove(&name);
                return Err(trouble);
            }
            (Name::New, Err(trouble)) => {
                remove(entry.target);
                return Err(trouble);
            }
            (Name::Old(mode), Err(trouble)) => {
                let _not_ours = rustix::fs::fchmod(&file, mode);
                return Err(trouble);
            }
            (Name::New | Name::Old(_), Ok(outcome)) => outcome,
        };
        // Some filesystems tell only now that bytes were lost.
        closed(file).map(|()| outcome)
    }

    fn write(
        &mut self,
        opened: &Opened,
        place: &Place,
        patience: Patience,
    ) -> Result<Outcome, Trouble> {
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
        let mut blemish = match state {
            State::Same => None,
            // What was there when it was opened is a state that a file has which is only added to.
            State::Grew if patience == Patience::TakesWhatIsThere => {
                let reason = "it grew while it was copied: what was added is not in the copy";
                Some(Trouble::Source(Refusal::because("copy all of", reason)))
            }
            State::Shorter => {
                // Files of the kernel say how long they might be.
                rustix::fs::ftruncate(to, copied.length_bytes).map_err(target("cut"))?;
                None
            }
            State::Grew | State::Changed => return Err(Trouble::Source(changed())),
        };
        if let Some(expected) = copied.digest {
            let found = self.content.read_back(to, copied.length_bytes).map_err(side_of)?;
            if found != expected {
                return Err(refused("verify", "what was read back is not what was written"));
            }
        }
        // Bytes that are all there are not thrown away for an attribute.
        if let Err(refusal) = copy.attributes.file(from, to, &opened.facts, place.made) {
            blemish = Some(attribute(refusal));
        }
        self.begin_writing(to);
        let identity = match opened.facts.st_nlink {
            0 | 1 => None,
            _ => Some(identity(&rustix::fs::fstat(to).map_err(target("examine"))?)),
        };
        let (action, bytes, method) = (Action::Copied, copied.bytes_moved, copied.method);
        Ok(Outcome { action, bytes, method, identity, blemish })
    }

    /// A file that is there already may still have another owner, mode or attribute.
    fn put_right(
        &mut self,
        entry: Entry<'_>,
        opened: &Opened,
        found: &Stat,
    ) -> Result<Outcome, Trouble> {
        let place = entry.target_place();
        self.copy
            .attributes
            .repair(opened.file.as_fd(), place, &opened.facts, found)
            .map_err(attribute)?;
        Ok(Outcome { identity: Some(identity(found)), ..Outcome::of(Action::Unchanged) })
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

fn changed() -> Refusal {
    Refusal::because("copy", "it changed while it was copied")
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
