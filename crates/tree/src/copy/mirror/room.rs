//! Room for what takes the name of something of another kind, which stays until that has it where that can be.

use std::ffi::{CStr, CString};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::removal::{Fate, Purpose, Removal};
use crate::copy::backup::{may_be_in, rename_to_free};
use crate::copy::directory::Origin;
use crate::copy::{Entry, Refusal, Rules, Skip, Trouble, count, kind_of, visit};

/// What the kernel answers that cannot exchange two names: a filesystem knows no flags; one is gone.
const NO_EXCHANGE: [Errno; 4] = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOENT];

/// Has what bears the name of a directory, and is none, make room once that can be made. Returns whether the copy
/// was made.
pub(in crate::copy) fn make_way_for_directory(
    entry: Entry<'_>,
    origin: Origin,
) -> Result<Origin, Trouble> {
    let copy = entry.copy;
    let is_named = entry.directory.parent.is_none();
    // What is not to be overwritten stays (`-n`), and the directory is not copied.
    let stays = |rules: Rules| matches!(rules.skip, Skip::Existing | Skip::ExistingFails);
    let may_go = copy.options.deletion.is_some() && !copy.rules().is_some_and(stays);
    if origin == Origin::Fresh || !may_go || is_named {
        return Ok(origin);
    }
    let is_obstacle = entry.in_the_way()?.is_some_and(|found| !kind_of(found).is_dir());
    // Nothing goes for one that cannot be opened at all.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(entry.pair.source(), entry.source, flags, Mode::empty());
    if !is_obstacle || open().is_err() {
        return Ok(origin);
    }
    if copy.is_plan() {
        count(&copy.tally.overwritten);
        return Ok(Origin::Fresh);
    }
    let at = entry.pair.target();
    let make = |name: &CStr| {
        visit::make(copy, entry.pair, (entry.source, name)).map_err(Refusal::of(visit::MAKE))
    };
    let moved = |name: &CStr| rustix::fs::renameat(at, name, at, entry.target);
    let is_copied = |backup: &CStr| may_be_in(entry.pair.source(), backup);
    let put = |name: &CStr| {
        let put = match &copy.backups {
            Some(backups) => backups.move_aside(at, entry.target, is_copied).and_then(|backup| {
                let back = |backup: CString| rename_to_free(at, &backup, entry.target);
                moved(name).inspect_err(|_| _ = backup.map(back))
            }),
            // What was there has the other name then, and goes with that.
            None => match renameat_with(at, name, at, entry.target, RenameFlags::EXCHANGE) {
                Err(errno) if NO_EXCHANGE.contains(&errno) && make_way(entry) => moved(name),
                put => put,
            },
        };
        put.inspect_err(|_| _ = rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR))
    };
    copy.temporaries.make_aside(at, make, put).map_err(Trouble::Target)?;
    Ok(Origin::Fresh)
}

/// Has something of another kind make room for an entry; false where it stays.
pub(in crate::copy) fn make_way(entry: Entry<'_>) -> bool {
    Removal::of(entry.copy, entry.directory).is_some_and(|mut removal| {
        removal.remove(entry.pair, entry.target, Purpose::Room) == Fate::Gone
    })
}
