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
use super::dispatch::Work;
use super::entry::{Entry, Outcome, Trouble, source, target};
use super::event::Action;
use super::existing::{Existing, refuse_itself, refused};
use super::failure::Refusal;
use super::lane::Lane;
use super::options::Appearance;
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
    /// That of a file that was there.
    Old,
}

/// What there is to do.
enum Where {
    /// Bytes go here.
    Open(Place),
    /// The file is there.
    Done(Stat),
}

type Filled = Result<Outcome, Trouble>;

impl Lane<'_, '_> {
    /// Copies a regular file.
    pub(super) fn regular(&mut self, entry: Entry<'_>) -> Result<Outcome, Trouble> {
        let opened = open(entry)?;
        let facts = opened.facts;
        self.once(entry, &facts, |lane| lane.file(entry, opened))
    }

    fn file(&mut self, entry: Entry<'_>, mut opened: Opened) -> Result<Outcome, Trouble> {
        for attempt in 1..=ATTEMPTS {
            let place = match self.place(entry, &opened)? {
                Where::Open(place) => place,
                Where::Done(found) => return self.put_right(entry, &opened, &found),
            };
            match self.fill(entry, &opened, place) {
                Err(Trouble::Source(refusal)) if refusal == changed() && attempt < ATTEMPTS => {
                    count(&self.copy.tally.retried);
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
        let device = entry.directory.found().target.0;
        if options.appearance != Appearance::Atomic {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            match rustix::fs::openat(directory, entry.target, flags | OFlags::CLOEXEC, PRIVATE) {
                Ok(file) => {
                    let made = Made::new(entry.directory.found().inheritance);
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
        let made = Made::new(entry.directory.found().inheritance);
        Ok(Where::Open(Place { file, made, name: Name::Temporary(name), device }))
    }

    /// Opens an existing file to be written again; `None`: it is a symlink, which is replaced.
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
        // What is written is for the eyes of those who may see the source.
        let _not_ours = rustix::fs::fchmod(&file, PRIVATE);
        rustix::fs::ftruncate(&file, 0).map_err(target("cut"))?;
        let made = Made::found(&facts);
        Ok(Some(Place { file, made, name: Name::Old, device: facts.st_dev }))
    }

    /// Moves the bytes, sets the attributes, gives it its name.
    fn fill(&mut self, entry: Entry<'_>, opened: &Opened, place: Place) -> Filled {
        let result = self.write(opened, &place);
        let Place { file, name, .. } = place;
        // Some filesystems tell only now that bytes were lost.
        let closed = descriptor::close(file)
            .map_err(|error| target("close")(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
        let result = result.and_then(|outcome| closed.map(|()| outcome));
        let directory = entry.pair.target();
        let remove = |name: &CStr| {
            let _stays = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        };
        match (&name, result) {
            (Name::Temporary(name), Ok(outcome)) => {
                let renamed = rustix::fs::renameat(directory, name, directory, entry.target);
                renamed.map_err(|errno| {
                    remove(name);
                    target("replace")(errno)
                })?;
                Ok(outcome)
            }
            (Name::Temporary(name), Err(trouble)) => {
                remove(name);
                Err(trouble)
            }
            (Name::New, Err(trouble)) => {
                remove(entry.target);
                Err(trouble)
            }
            (_, result) => result,
        }
    }

    fn write(&mut self, opened: &Opened, place: &Place) -> Result<Outcome, Trouble> {
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
        let after = rustix::fs::fstat(from).map_err(source("examine"))?;
        let is_short =
            opened.facts.st_size > 0 && copied.length_bytes != opened.facts.st_size as u64;
        if is_short || !is_same_state(&opened.facts, &after) {
            return Err(Trouble::Source(changed()));
        }
        if let Some(expected) = copied.digest {
            let found = self.content.read_back(to, copied.length_bytes).map_err(side_of)?;
            if found != expected {
                return Err(refused("verify", "what was read back is not what was written"));
            }
        }
        self.copy.attributes.file(from, to, &opened.facts, place.made).map_err(Trouble::Target)?;
        self.begin_writing(to);
        Ok(Outcome { action: Action::Copied, bytes: copied.bytes_moved, method: copied.method })
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
            .map_err(Trouble::Target)?;
        Ok(Outcome::of(Action::Unchanged))
    }
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
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = flags | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(entry.pair.source(), entry.source, flags, Mode::empty()) {
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

/// Whether nobody wrote the file meanwhile.
fn is_same_state(before: &Stat, after: &Stat) -> bool {
    before.st_size == after.st_size
        && (before.st_mtime, before.st_mtime_nsec) == (after.st_mtime, after.st_mtime_nsec)
}
