//! Room for what takes the name of something of another kind, which stays until that has it where that can be.

use std::ffi::{CStr, CString};

use rustix::fs::{AtFlags, StatxAttributes};
use rustix::io::Errno;

use super::removal::{Fate, Purpose, Removal};
use crate::copy::backup::may_be_in;
use crate::copy::directory::{Access, Origin};
use crate::copy::existing::OVERWRITE;
use crate::copy::temporary::move_to_free;
use crate::copy::{Entry, Refusal, Rules, Skip, Trouble, count, kind_of, target, visit};
use crate::file_data::has_attribute;

const REPLACE: &str = "replace";

/// Makes a directory that is to take the place of something of another kind, under a name of ours. Says whether
/// there is, or would be, one. `access`: nothing goes for a directory that cannot be read.
pub(in crate::copy) fn directory_aside(
    entry: Entry<'_>,
    origin: Origin,
    access: Access,
) -> Result<(Origin, Option<CString>), Trouble> {
    let copy = entry.copy;
    // What is not to be overwritten stays (`-n`), and the directory is not copied.
    let stays = |rules: Rules| matches!(rules.skip, Skip::Existing | Skip::ExistingFails);
    let may_go = entry.is_mirrored() && !copy.rules().is_some_and(stays);
    if origin == Origin::Fresh
        || !may_go
        || access != Access::Full
        || entry.in_the_way()?.is_none_or(|found| kind_of(found).is_dir())
    {
        return Ok((origin, None));
    }
    if copy.is_plan() {
        count(&copy.tally.overwritten);
        return Ok((Origin::Fresh, None));
    }
    if has_attribute(entry.pair.target(), StatxAttributes::APPEND) {
        return Err(target(REPLACE)(Errno::PERM));
    }
    let name = copy.temporaries.name();
    visit::make(copy, entry.pair, (entry.source, &name)).map_err(target(visit::MAKE))?;
    Ok((Origin::Fresh, Some(name)))
}

/// Has it take that place, once it is open.
pub(in crate::copy) fn put_directory(entry: Entry<'_>, name: &CStr) -> Result<(), Trouble> {
    let (copy, at) = (entry.copy, entry.pair.target());
    let is_copied = |backup: &CStr| may_be_in(entry.pair.source(), backup);
    let put = match &copy.backups {
        Some(backups) => backups.move_aside(at, entry.target, is_copied).and_then(|backup| {
            let back = |backup: CString| move_to_free(at, &backup, entry.target);
            let moved = rustix::fs::renameat(at, name, at, entry.target);
            moved.inspect_err(|_| _ = backup.map(back))
        }),
        // Where it cannot be removed, that is said, and a later mirror removes it.
        None => copy.temporaries.displace(at, name, entry.target).map(|old| {
            remove(entry, &old);
        }),
    };
    put.map_err(target(REPLACE))
}

/// Whether something of another kind would make room for an entry.
pub(in crate::copy) fn would_make_way(entry: Entry<'_>) -> bool {
    entry.is_mirrored() && remove(entry, entry.target)
}

/// Has something of another kind go that has this name now; false where it stays.
fn remove(entry: Entry<'_>, name: &CStr) -> bool {
    Removal::of(entry.copy, entry.directory).is_some_and(|mut removal| {
        removal.remove(entry.pair, (name, entry.target), Purpose::Room) == Fate::Gone
    })
}

/// Makes something under a name of ours that takes the place of what is there.
pub(in crate::copy) fn replace(
    entry: Entry<'_>,
    make: impl FnMut(&CStr) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let put = |name: &CStr| move_over(entry, name);
    entry.copy.temporaries.make_aside(entry.pair.target(), entry.target, make, put)
}

/// Has what is complete under this name take the place of what is there.
pub(in crate::copy) fn move_over(entry: Entry<'_>, name: &CStr) -> Result<(), Refusal> {
    let at = entry.pair.target();
    match rustix::fs::renameat(at, name, at, entry.target) {
        Err(Errno::ISDIR) if entry.displaces() => take_place(entry, name),
        moved => moved.map_err(Refusal::of(REPLACE)),
    }
}

/// Has it take the place of a directory, which then goes with all that is in it. Where something of that is to
/// stay, it stays.
fn take_place(entry: Entry<'_>, name: &CStr) -> Result<(), Refusal> {
    let (at, temporaries) = (entry.pair.target(), &entry.copy.temporaries);
    let removal = Removal::of(entry.copy, entry.directory);
    match removal.map(|removal| removal.rehearse(entry.pair, entry.target)) {
        Some(Fate::Gone) => {
            let old = temporaries.displace(at, name, entry.target).map_err(Refusal::of(REPLACE))?;
            if remove(entry, &old) {
                return Ok(());
            }
            if let Ok(file) = temporaries.displace(at, &old, entry.target) {
                let _gone = rustix::fs::unlinkat(at, &file, AtFlags::empty());
            }
        }
        // What went wrong in looking may go right the next time, and all be gone.
        Some(Fate::Failed) | None => {}
        Some(Fate::Stays | Fate::Spared) => _ = remove(entry, entry.target),
    }
    Err(Refusal::because(OVERWRITE, "what is there stays"))
}
