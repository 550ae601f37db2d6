//! Where the bytes of a file go by the rules of cp(1): into what bears the name, as it is.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::cut::emptied;
use super::place::{
    Bytes, CREATE, Name, Over, Place, Where, examined, needs_no_directory, temporary,
};
use super::source::{Opened, when_given_back};
use crate::copy::reason::LEADS_NOWHERE;
use crate::copy::standing::{WRITE_THROUGH, remove};
use crate::copy::{
    Assurance, Clearing, Entry, Made, Refusal, Rules, Side, Skip, Trouble, kind_of, refused, target,
};
use crate::file_data::NEW;

/// How often it is looked whether somebody reads from a FIFO.
const WAIT: Duration = Duration::from_millis(10);
/// What has nothing to do with what could not be opened: a new file could not be opened either, and what is there
/// would be lost.
const PASSING: [Errno; 4] = [Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOMEM];

/// Opens what bears the name, or makes a file where nothing does.
pub(in crate::copy) fn open_as_found(
    opened: &Opened<'_>,
    (rules, is_there): (&Rules, bool),
) -> Result<Where, Trouble> {
    let entry = opened.entry;
    if is_there {
        match open(opened, (rules, OFlags::empty())) {
            Err(trouble) => match trouble.target_errno() {
                Some(Errno::NOENT) => {}
                Some(errno) if rules.clearing == Clearing::Refused && !PASSING.contains(&errno) => {
                    remove(entry)?;
                }
                _ => return Err(trouble),
            },
            place => return place,
        }
    }
    match make(opened, rules) {
        Ok(made) => Ok(new(opened, rules, made)),
        Err(Errno::EXIST) if !entry.in_the_way()?.is_some_and(|it| kind_of(it).is_symlink()) => {
            Err(target(CREATE)(Errno::EXIST))
        }
        Err(Errno::EXIST) if rules.through_dangling => open(opened, (rules, OFlags::CREATE)),
        Err(Errno::EXIST) => Err(refused(WRITE_THROUGH, LEADS_NOWHERE)),
        Err(errno) => Err(target(CREATE)(errno)),
    }
}

/// Makes a file that takes the place of what has to go when it is complete. Where that cannot be, for want of room
/// beside it for example, what is there goes first.
pub(in crate::copy) fn open_instead(
    opened: &Opened<'_>,
    rules: &Rules,
    in_place: Option<Errno>,
) -> Result<Where, Trouble> {
    let entry = opened.entry;
    let made = match in_place {
        None => temporary(entry, opened.flags),
        Some(errno) => Err(Refusal::of(CREATE)(errno)),
    };
    let gives_way =
        |errno| needs_no_directory(errno) || matches!(errno, Errno::NOSPC | Errno::DQUOT);
    match made {
        Ok((file, name)) => Ok(new(opened, rules, (file, Name::Temporary(name, Over::File(None))))),
        Err(refusal) if !refusal.errno().is_some_and(gives_way) => Err(Trouble::Target(refusal)),
        Err(_) => {
            remove(entry)?;
            open_as_found(opened, (rules, false))
        }
    }
}

/// A file of this name, to be filled.
fn new(opened: &Opened<'_>, rules: &Rules, (file, name): (OwnedFd, Name)) -> Where {
    let found = &opened.entry.pair.found;
    let bytes = Bytes::of(rules, &opened.facts, FileType::RegularFile);
    let (made, device) = (Made::new(found.inheritance), found.target.0);
    Where::Open(Place { file, made, name, device, bytes })
}

/// Makes a file. Where what is there may stay as it is, one that is not complete must not be taken for
/// that by the next run: it gets its name when it is, but in a directory that lets no name go.
fn make(opened: &Opened<'_>, rules: &Rules) -> Result<(OwnedFd, Name), Errno> {
    let entry = opened.entry;
    let directory = entry.pair.target();
    if rules.skip != Skip::Nothing && !rules.attributes_only {
        if entry.in_the_way().is_ok_and(|found| found.is_some()) {
            return Err(Errno::EXIST);
        }
        match temporary(entry, opened.flags) {
            Ok((file, name)) => return Ok((file, Name::Temporary(name, Over::Nothing))),
            Err(refusal) => match refusal.errno() {
                Some(Errno::PERM) | None => {}
                Some(errno) => return Err(errno),
            },
        }
    }
    let mode = entry.copy.attributes.mode_of_begun(&opened.facts);
    let file = rustix::fs::openat(directory, entry.target, NEW, mode)?;
    entry.copy.attributes.let_owner_in(file.as_fd(), entry.pair.found.inheritance);
    Ok((file, Name::New))
}

/// Opens what bears the name; a file is cut off, unless it is the source.
fn open(opened: &Opened<'_>, (rules, more): (&Rules, OFlags)) -> Result<Where, Trouble> {
    let entry = opened.entry;
    let copy = entry.copy;
    // What is read back is a file; a FIFO that is open for reading, too, has nobody who reads from it.
    let reads = copy.options.assurance == Assurance::Verified && !is(entry, |kind| !kind.is_file());
    let access = if reads { OFlags::RDWR } else { OFlags::WRONLY };
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    // As any new one: it is not private while it is written, for it may lie anywhere.
    let unkept = copy.attributes.mode_unkept(FileType::RegularFile, &opened.facts);
    let mode = Mode::from_raw_mode(unkept);
    let file = loop {
        let open = || rustix::fs::openat(entry.pair.target(), entry.target, flags, mode);
        match when_given_back(entry, Side::Target, open) {
            // A FIFO that nobody reads from. A signal must not find this waiting in the kernel.
            Err(Errno::NXIO) if is(entry, |kind| kind.is_fifo()) => {
                if copy.stop.is_due() {
                    return Err(Trouble::Target(Refusal::interrupted(CREATE)));
                }
                std::thread::sleep(WAIT);
            }
            opened => break opened.map_err(target(CREATE))?,
        }
    };
    let facts = examined(opened, &file)?;
    let kind = kind_of(facts);
    let bytes = Bytes::of(rules, &opened.facts, kind);
    let (file, bytes) = match bytes {
        bytes if kind.is_file() && bytes != Bytes::None => emptied(opened, (file, &facts), bytes)?,
        bytes => (file, bytes),
    };
    let (made, device) = (Made::found(&facts), facts.st_dev);
    Ok(Where::Open(Place { file, made, name: Name::Old, device, bytes }))
}

/// Whether what bears the name, or a symlink of that name leads to, is of such a kind.
fn is(entry: Entry<'_>, kind: impl Fn(FileType) -> bool) -> bool {
    let found = rustix::fs::statat(entry.pair.target(), entry.target, rustix::fs::AtFlags::empty());
    found.is_ok_and(|found| kind(kind_of(found)))
}
