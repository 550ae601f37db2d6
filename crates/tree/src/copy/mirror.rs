//! What a target has and its source has not: it goes when everything else in its directory is done,
//! and nothing more goes once a source could not be read. Things of another kind make room for what
//! takes their names.
//!
//! Both sides are listed anew for that, and each name that is about to go is looked for in the source
//! once more. Read next: `mirror/removal.rs`, how something goes.

mod removal;
mod room;

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::ffi::{CStr, CString, OsStr};
use std::hash::BuildHasher;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use flatout_sys::storage::fstab_places;
use rustix::fs::{Mode, OFlags, Stat, StatxAttributes};
use rustix::io::Errno;

use self::removal::{Purpose, Removal};
pub(super) use self::room::{directory_aside, move_over, put_directory, replace, would_make_way};
use super::listing::Lister;
use super::options::Deletion;
use super::peculiar::key;
use super::sieve::Sieve;
use super::temporary::is_in_use;
use super::{
    Copy, Directory, Identity, Pair, Refusal, Trouble, Work, identity, kind_of, refused, visit,
};
use crate::directory_stack::DIRECTORY;
use crate::file_data;
use crate::lock::lock;
use crate::spool::names::Names;

/// Names of a source directory that are kept in memory; others are looked up.
const MOST_KNOWN: usize = 1 << 16;
/// Names that a thread takes at a time, and threads that share those of one directory at most.
const BATCH_ENTRIES: usize = 32;
const MOST_SHARED: u64 = 8;

const LIST: &str = "list";
const COMPARE: &str = "compare with its source";
const DELETE_FROM: &str = "delete from";
const UNMOUNTED: &str =
    "its source is empty: what /etc/fstab says of it is not mounted; --max-delete permits it";
const WITHOUT_KEY: &str = "it is encrypted, and its key is not there";

/// Names that are to go, shared by threads.
pub(super) type Surplus = Arc<Mutex<Names>>;

/// What was deleted so far, and whether more may be. Shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// Things deleted.
    pub(super) deleted: AtomicU64,
    /// Things that were permitted to be deleted, by other processes, too.
    permitted: AtomicU64,
    /// Things that stay because enough was deleted.
    pub(super) spared: AtomicU64,
    /// A source could not be read.
    is_incomplete: AtomicBool,
}

impl Mirror {
    /// Whether a source could not be read.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    /// A source could not be read.
    pub(super) fn found_incomplete(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    /// Takes one of those that may be deleted.
    pub(super) fn permit(&self, deletion: Option<Deletion>) -> bool {
        let most = deletion.and_then(|deletion| deletion.most).unwrap_or(u64::MAX);
        let more = |permitted: u64| (permitted < most).then_some(permitted + 1);
        self.permitted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives one back.
    pub(super) fn return_permit(&self) -> bool {
        self.permitted.fetch_sub(1, Ordering::Relaxed) > 0
    }
}

impl Copy<'_> {
    /// Something of a source could not be read: what the target has besides may be in there. `is_there`: whether
    /// it bears its name all the same.
    pub(super) fn incomplete_source(&self, refusal: &Refusal, is_there: impl FnOnce() -> bool) {
        // What is gone is not there, but what a symlink leads to may come back.
        if refusal.errno() != Some(Errno::NOENT) || is_there() {
            self.mirror.found_incomplete();
        }
    }

    /// Whether things may be deleted. Where they may not, it is said why.
    fn may_delete(&self) -> bool {
        let is_incomplete = self.mirror.is_incomplete();
        if is_incomplete && !self.stop.is_due() {
            self.tell_that_nothing_is_deleted();
        }
        !is_incomplete && !self.stop.is_due()
    }
}

/// Compares a directory with its source, when all that is in the source is copied. Returns whether
/// something is to go: it waits for that.
pub(super) fn begin(copy: &Copy<'_>, directory: &Arc<Directory>) -> bool {
    if copy.options.deletion.is_none() || !directory.begin_mirroring() {
        return false;
    }
    let Some(pair) = visit::pair(copy, directory) else { return false };
    let device = pair.found.target.0;
    if pair.found.made.is_new() || copy.stop.is_full(device) || !copy.may_delete() {
        return false;
    }
    let surplus = match surplus(copy, directory, &pair) {
        Ok(surplus) => surplus,
        Err(trouble) => {
            copy.fail_directory((directory, device), None, trouble);
            return false;
        }
    };
    let pieces = surplus.count().div_ceil(BATCH_ENTRIES as u64).min(MOST_SHARED) as usize;
    let surplus = Arc::new(Mutex::new(surplus));
    directory.expect(pieces);
    let piece = |_| Work::Surplus(Arc::clone(directory), Arc::clone(&surplus));
    copy.dispatch.offer((0..pieces).map(piece));
    pieces > 0
}

/// The names of a target directory that its source does not have.
fn surplus(copy: &Copy<'_>, directory: &Directory, pair: &Pair) -> Result<Names, Trouble> {
    let mut sieve = Sieve::of(copy, directory, None).map_err(Trouble::Source)?;
    let mut lister = Lister::default();
    let known = Known::of(&mut lister, &mut sieve, pair).map_err(Trouble::Source)?;
    let deletion = copy.options.deletion;
    let stays = deletion.is_none_or(|deletion| !deletion.takes_excluded);
    let is_bounded = deletion.is_some_and(|deletion| deletion.most.is_some());
    let is_missing = || !is_bounded && known.is_empty && is_unmounted(pair.source());
    let mut surplus = Names::default();
    let mut respelled = None;
    let target = pair.target();
    let listing = anew(target).map_err(Trouble::Target)?;
    let listed = lister.each(listing.as_fd(), |name, kind| {
        if copy.stop.is_due() {
            return Err(Trouble::Target(Refusal::interrupted(LIST)));
        }
        let is_backup = copy.backups.as_ref().is_some_and(|backups| backups.has_made(name));
        if known.has(name)
            || is_backup
            || stays && sieve.excludes(name, kind)
            || is_in_use(target, name)
        {
            return Ok(());
        }
        let is_alike = is_in_source(&mut sieve, pair, name)
            .and_then(|is_there| Ok(is_there || is_another_spelling(&mut respelled, pair, name)?));
        if !is_alike.map_err(Trouble::Source)? {
            surplus.push(name, kind)?;
        }
        Ok(())
    });
    match listed {
        Err(Trouble::Target(refusal)) if copy.stop.is_due() && refusal.is_interruption() => {
            return Ok(Names::default());
        }
        listed => listed?,
    }
    if !surplus.is_empty() && is_missing() {
        return Err(refused(DELETE_FROM, UNMOUNTED));
    }
    if !surplus.is_empty() && is_without_key(target) {
        return Err(refused(DELETE_FROM, WITHOUT_KEY));
    }
    Ok(surplus)
}

/// Whether nothing is mounted on a directory for which /etc/fstab has a filesystem.
fn is_unmounted(directory: BorrowedFd<'_>) -> bool {
    let is_mounted = file_data::has_attribute(directory, StatxAttributes::MOUNT_ROOT);
    let is_declared = |path: &Path| fstab_places(Path::new("/")).iter().any(|place| place == path);
    let path = file_data::path_of(directory);
    !is_mounted && path.is_some_and(|path| is_declared(Path::new(OsStr::from_bytes(&path))))
}

/// Whether a directory is encrypted and its key is not there (fscrypt): what it lists are no names, and none
/// can be made, but each can be deleted.
fn is_without_key(directory: BorrowedFd<'_>) -> bool {
    let is_encrypted = file_data::has_attribute(directory, StatxAttributes::ENCRYPTED);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let make = || rustix::fs::openat(directory, c".", flags, Mode::RUSR | Mode::WUSR);
    is_encrypted && make().is_err_and(|errno| errno == Errno::NOKEY)
}

/// Whether the source has a name by now, that is taken.
fn is_in_source(sieve: &mut Sieve<'_>, pair: &Pair, name: &CStr) -> Result<bool, Refusal> {
    let found = find(pair.source(), name)?;
    Ok(found.is_some_and(|facts| sieve.taken(pair.source(), name, kind_of(facts)).is_some()))
}

/// What the target has of the source under another spelling: it is there, and not listed so.
#[derive(Default)]
struct Respelled {
    found: HashSet<Identity>,
    keys: HashSet<u64>,
}

impl Respelled {
    fn of(pair: &Pair) -> Result<Self, Refusal> {
        let (mut lister, mut respelled) = (Lister::default(), Self::default());
        let mut listed = Known::default();
        lister.each(anew(pair.target())?.as_fd(), |name, _| {
            listed.add(name);
            Ok::<_, Refusal>(())
        })?;
        lister.each(anew(pair.source())?.as_fd(), |name, _| {
            if !listed.has(name)
                && let Some(facts) = find(pair.target(), name)?
            {
                respelled.found.insert(identity(&facts));
                respelled.keys.insert(key(name));
            }
            Ok::<_, Refusal>(())
        })?;
        Ok(respelled)
    }
}

/// What bears a name; nothing where there can be none like it: some filesystems say so of names that are long,
/// have a backslash (cifs), or are no UTF-8.
fn find(directory: BorrowedFd<'_>, name: &CStr) -> Result<Option<Stat>, Refusal> {
    match file_data::find(directory, name) {
        Err(Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ) => Ok(None),
        found => found.map_err(Refusal::of(COMPARE)),
    }
}

/// Whether the target takes a name of the source for this one. `respelled` remembers those of a target
/// that may have several spellings of a name.
fn is_another_spelling(
    respelled: &mut Option<Respelled>,
    pair: &Pair,
    name: &CStr,
) -> Result<bool, Refusal> {
    let Some(facts) = find(pair.target(), name)? else { return Ok(false) };
    if respelled.is_none() {
        // Of letters with marks only the target knows how else they are written.
        let is_there = |other: &CString| !matches!(find(pair.target(), other), Ok(None));
        if name.to_bytes().is_ascii() && !spellings(name).iter().any(is_there) {
            return Ok(false);
        }
        *respelled = Some(Respelled::of(pair)?);
    }
    // Another name of a file that has several need be no spelling; and a server may number each one.
    let is_lone = facts.st_nlink == 1 || kind_of(facts).is_dir();
    Ok(respelled.as_ref().is_some_and(|all| {
        is_lone && all.found.contains(&identity(&facts)) || all.keys.contains(&key(name))
    }))
}

/// A name in other letters, and with a dot behind it, as some filesystems take it for the same.
fn spellings(name: &CStr) -> Vec<CString> {
    let Ok(text) = name.to_str() else { return Vec::new() };
    let others = [text.to_uppercase(), text.to_lowercase(), format!("{text}.")];
    let others = others.into_iter().filter(|other| other != text);
    others.filter_map(|other| CString::new(other).ok()).collect()
}

/// Names of a directory, as numbers.
#[derive(Default)]
struct Known {
    state: RandomState,
    names: HashSet<u64>,
    /// Nothing was listed, be it taken or not.
    is_empty: bool,
}

impl Known {
    /// Those of a source directory that are taken. One that is missing is looked up.
    fn of(lister: &mut Lister, sieve: &mut Sieve<'_>, pair: &Pair) -> Result<Self, Refusal> {
        let mut known = Self { is_empty: true, ..Self::default() };
        lister.each(anew(pair.source())?.as_fd(), |name, kind| {
            known.is_empty = false;
            if known.names.len() < MOST_KNOWN && sieve.taken(pair.source(), name, kind).is_some() {
                known.add(name);
            }
            Ok::<_, Refusal>(())
        })?;
        Ok(known)
    }

    fn add(&mut self, name: &CStr) {
        self.names.insert(self.state.hash_one(name));
    }

    /// Whether it is there. Of two names with one number the other one is taken to be there, too:
    /// something stays then.
    fn has(&self, name: &CStr) -> bool {
        self.names.contains(&self.state.hash_one(name))
    }
}

/// A directory to be listed from its first name on. sshfs tells the names once for each descriptor, and behind
/// lseek(2) none.
fn anew(directory: BorrowedFd<'_>) -> Result<OwnedFd, Refusal> {
    file_data::open_unseen(directory, c".", DIRECTORY | OFlags::NOATIME).map_err(Refusal::of(LIST))
}

/// Deletes names of a directory until there are none.
pub(super) fn delete(copy: &Copy<'_>, directory: &Arc<Directory>, surplus: &Mutex<Names>) {
    directory.begin_use();
    if let Some(pair) = visit::pair(copy, directory)
        && let Some(mut removal) = Removal::of(copy, directory)
    {
        while copy.may_delete() {
            let batch = match lock(surplus).take_back(BATCH_ENTRIES) {
                Ok(batch) if batch.is_empty() => break,
                Ok(batch) => batch,
                Err(refusal) => {
                    copy.fail_target((directory, pair.found.target.0), None, refusal);
                    break;
                }
            };
            for (name, _) in batch.iter() {
                removal.remove(&pair, (name, name), Purpose::Surplus);
            }
        }
    }
    directory.end_use();
    visit::piece_done(copy, directory);
}

#[cfg(test)]
mod tests;
