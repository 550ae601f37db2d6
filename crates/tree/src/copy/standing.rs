//! What cp(1) does about something that bears the name already: nothing is made, or it is written
//! to, removed, or kept under another name. Nothing is changed before the source proved to be there.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

use super::backup::Naming;
use super::existing::{OVERWRITE, is_bound};
use super::reason::{DIRECTORY_OVER, IS_THERE, JUST_MADE, SAME_FILE};
use super::{
    Clearing, Copy, Entry, Follow, Form, Identity, Preserve, Rules, Skip, Specials, Trouble,
    identity, kind_of, obstacle, refused, target,
};
use crate::lock::lock;

/// To write, where that goes through a symlink.
pub(super) const WRITE_THROUGH: &str = "write through";

/// What there is to be done about a name.
pub(super) enum Standing {
    /// Nothing bears it.
    Free,
    /// Something does that is written to as it is; which file that is, as far as it can be seen.
    InPlace(Option<Identity>),
    /// Something does that has to go first.
    Removed,
    /// Something does that is kept under another name.
    BackedUp,
    /// Nothing is made.
    Skipped,
    /// Nothing is made: what is there stands for the source.
    UpToDate,
}

/// Files that are being written in place, by their numbers; others with one of these wait, too.
pub(super) type Turns = [Mutex<()>; 256];

/// What was made under names that the user gave: the directory, the name, and what it is.
#[derive(Debug, Default)]
pub(super) struct Brought {
    state: RandomState,
    /// As numbers: there may be as many as words of a command line.
    keys: Mutex<HashSet<u64>>,
}

impl Brought {
    /// Notes what bears a name that the user gave.
    pub(super) fn note(&self, entry: Entry<'_>) {
        if entry.directory.parent.is_none()
            && let Ok(Some(found)) = entry.in_the_way()
        {
            lock(&self.keys).insert(self.key(entry, &found));
        }
    }

    /// Whether that is what bears a name that the user gave.
    pub(super) fn has(&self, entry: Entry<'_>, found: &Stat) -> bool {
        entry.directory.parent.is_none() && lock(&self.keys).contains(&self.key(entry, found))
    }

    fn key(&self, entry: Entry<'_>, found: &Stat) -> u64 {
        self.state.hash_one((entry.pair.found.target, entry.target, identity(found)))
    }
}

/// Whether an entry of the source is read, so that a file comes of it.
pub(super) fn is_read(rules: &Rules, source: &Stat) -> bool {
    let kind = kind_of(source);
    kind.is_file() || rules.specials == Specials::Read && !kind.is_symlink()
}

impl Standing {
    /// Looks at what bears the name. `source`: what is copied, followed as the rules say.
    ///
    /// Errors: it may not be overwritten by this source.
    pub(super) fn of(entry: Entry<'_>, rules: &Rules, source: &Stat) -> Result<Self, Trouble> {
        let copy = entry.copy;
        if entry.pair.found.made.is_new() {
            // The directory was just made.
            return Ok(Self::Free);
        }
        let is_written = is_read(rules, source)
            && rules.form == Form::Copy
            && copy.backups.is_none()
            && rules.clearing != Clearing::First
            && !entry.is_mirrored();
        let flags = if is_written { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let found = match rustix::fs::statat(entry.pair.target(), entry.target, flags) {
            Ok(found) => found,
            // A symlink may be there that leads nowhere.
            Err(Errno::NOENT) => {
                refuse_just_made_symlink(entry)?;
                return Ok(Self::Free);
            }
            Err(Errno::LOOP) if rules.clearing == Clearing::Refused => {
                return Ok(Self::InPlace(None));
            }
            Err(errno) => return Err(target("examine")(errno)),
        };
        if rules.skip == Skip::Existing {
            return Ok(Self::Skipped);
        }
        let same = sameness(entry, rules, (source, &found));
        match rules.skip {
            _ if same == Sameness::Refused => return Err(refused("copy to", SAME_FILE)),
            Skip::NotOlder if !is_older(entry, &found, source) => return Ok(Self::UpToDate),
            Skip::ExistingFails => return Err(refused(OVERWRITE, IS_THERE)),
            _ => {}
        }
        if rules.asks && !copy.watch.consents(&entry.path(super::directory::Side::Target)) {
            return Ok(Self::Skipped);
        }
        if same == Sameness::Done {
            return Ok(Self::Skipped);
        }
        if kind_of(found).is_dir() {
            let removed = entry.displaces().then_some(Self::Removed);
            return removed.ok_or_else(|| obstacle(OVERWRITE, DIRECTORY_OVER));
        }
        refuse_just_made(entry, &found)?;
        if let Some(backups) = &copy.backups {
            backups.refuse_source(entry, source)?;
            return Ok(Self::BackedUp);
        }
        let is_special = !kind_of(source).is_file();
        // Two sources may go to two names of one file, which only cp writes one over the other.
        let is_cp = copy.options.preserve.has(Preserve::WHAT_IS_THERE);
        let is_bound = found.st_nlink > 1 && (!is_cp || is_bound(copy, &found));
        let is_replaced = is_bound
            || is_special && (entry.is_mirrored() || rules.follow == Follow::Never)
            || entry.is_mirrored() && !kind_of(found).is_file();
        Ok(match rules.clearing {
            Clearing::First => Self::Removed,
            _ if is_replaced && !rules.attributes_only => Self::Removed,
            _ => Self::InPlace(Some(identity(&found))),
        })
    }

    /// Waits until nobody else writes to what is there, under whichever of its names: two that do
    /// would leave a mixture.
    pub(super) fn take_turn<'t>(&self, turns: &'t Turns) -> Option<MutexGuard<'t, ()>> {
        let Self::InPlace(Some((_, number))) = self else { return None };
        Some(lock(&turns[*number as usize % turns.len()]))
    }
}

/// Removes what bears the name of a copy.
pub(super) fn remove(entry: Entry<'_>) -> Result<(), Trouble> {
    match rustix::fs::unlinkat(entry.pair.target(), entry.target, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(target("remove")(errno)),
    }
}

/// What another operand has put there is not to be lost, nor written through.
fn refuse_just_made(entry: Entry<'_>, found: &Stat) -> Result<(), Trouble> {
    let copy = entry.copy;
    let is_numbered =
        copy.backups.as_ref().is_some_and(|backups| backups.naming == Naming::Numbered);
    if !is_numbered && copy.brought.has(entry, found) {
        return Err(refused(OVERWRITE, JUST_MADE));
    }
    refuse_just_made_symlink(entry)
}

/// A symlink that another operand has brought is not written through, be there something behind it
/// or not.
fn refuse_just_made_symlink(entry: Entry<'_>) -> Result<(), Trouble> {
    let copy = entry.copy;
    if copy.backups.is_none()
        && entry.directory.parent.is_none()
        && let Some(name) = entry.in_the_way()?
        && kind_of(name).is_symlink()
        && copy.brought.has(entry, &name)
    {
        return Err(refused(WRITE_THROUGH, JUST_MADE));
    }
    Ok(())
}

/// Whether what is there is older than the source. One that was given the time of the source is not, however
/// fine the times of its filesystem are.
fn is_older(entry: Entry<'_>, found: &Stat, source: &Stat) -> bool {
    let [there, wanted] = [found, source].map(|facts| (facts.st_mtime, facts.st_mtime_nsec));
    // What a symlink leads to may lie elsewhere.
    let may_be_coarser = entry.copy.keeps_times() && found.st_dev == entry.pair.found.target.0;
    there < wanted && !(may_be_coarser && entry.is_same_time(source, found))
}

/// Whether source and target are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sameness {
    /// They are not, or nothing would be lost.
    None,
    /// They are, and there is nothing to do.
    Done,
    /// The source would be lost.
    Refused,
}

/// Whether source and target are one file, as cp sees it (`same_file_ok`): also by symlinks that are
/// followed, or that would be put in the place of what they lead to.
fn sameness(entry: Entry<'_>, rules: &Rules, (source, found): (&Stat, &Stat)) -> Sameness {
    use Sameness::{Done, None, Refused};
    let is_symlink = |facts: &Stat| kind_of(facts).is_symlink();
    let is_same = |one: &Stat, other: &Stat| identity(one) == identity(other);
    let (is_link, is_backed_up) = (rules.form == Form::HardLink, entry.copy.backups.is_some());
    let one_unless = |fine: bool| if fine { None } else { Refused };
    if is_same(source, found) && is_link {
        return Done;
    }
    let (source_name, found_name) = if rules.follow == Follow::Never {
        if is_symlink(source) && is_symlink(found) {
            return match (entry.is_one_name(), is_same(source, found)) {
                (true, _) => Refused,
                (false, true) if !is_backed_up => Done,
                _ => None,
            };
        }
        (*source, *found)
    } else {
        if !is_same(source, found) {
            return None;
        }
        let (Ok(source), Ok(Some(found))) = (entry.look(), entry.in_the_way()) else {
            return None;
        };
        if is_symlink(&source) && is_symlink(&found) && rules.clearing == Clearing::First {
            return None;
        }
        (source, found)
    };
    let is_one = is_same(&source_name, &found_name);
    let [source_is_link, found_is_link] = [is_symlink(&source_name), is_symlink(&found_name)];
    if is_backed_up {
        // What a symlink leads to would not be there any more when it is read.
        let is_moved_away = rules.follow != Follow::Never && source_is_link && !found_is_link;
        return one_unless(if is_one { !entry.is_one_name() } else { !is_moved_away });
    }
    if rules.clearing == Clearing::First
        && (found_is_link || is_one && found_name.st_nlink > 1 && !entry.is_one_name())
    {
        return None;
    }
    if !source_is_link && !found_is_link && !is_one {
        return None;
    }
    if rules.form == Form::Symlink && found_is_link {
        return None;
    }
    if rules.follow == Follow::Never {
        let behind = |at, name| rustix::fs::statat(at, name, AtFlags::empty());
        let source = behind(entry.pair.source(), entry.source);
        let target = behind(entry.pair.target(), entry.target);
        let (Ok(source), Ok(target)) = (source, target) else { return None };
        if !is_same(&source, &target) {
            return None;
        }
        if is_link {
            return if found_is_link { None } else { Done };
        }
    }
    Refused
}

impl Copy<'_> {
    /// Whether times of what is made are those of its source.
    pub(super) fn keeps_times(&self) -> bool {
        self.options.preserve.has(Preserve::TIMESTAMPS)
    }
}
