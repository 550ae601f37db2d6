//! The order of cp(1). Where something lies in the target already, a symlink or another name of a
//! file may lead from one name to the next, and what comes of both depends on which of them is first:
//! there, by the rules of cp, entries are copied one after the other, each with all that is below it;
//! but for files that no other name has anything to do with. What is copied into a directory that is new or empty is not held up.

use std::collections::{HashSet, VecDeque};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, SeekFrom, Stat};

use super::directory::Listing;
use super::listing::Lister;
use super::sieve::Sieve;
use super::visit::BATCH_ENTRIES;
use super::{
    Copy, Directory, Entry, Form, Identity, Lane, Operand, Pair, Preserve, Refusal, Work, identity,
    kind_of, visit,
};
use crate::file_data::{find, look};
use crate::lock::lock;
use crate::spool::names::Batch;

/// Names of a directory that are put into this order; with more it is any.
const MOST_NAMES_BYTES: usize = 8 << 20;
/// Operands that are looked at and copied at a time.
const MOST_OPERANDS: usize = 1 << 10;
/// What a name takes in memory beside its bytes.
const NAME_BYTES: usize = 40;

/// Lists a directory whose copy was there, if what is in it is to be copied in this order, and makes
/// a piece of work of it.
pub(super) fn begin(lane: &mut Lane<'_>, directory: &Arc<Directory>, pair: &Pair) -> bool {
    let copy = lane.copy;
    if copy.rules().is_none() || is_empty(&mut lane.lister, pair.target()) {
        return false;
    }
    match names(lane, directory, pair) {
        Ok(Some(names)) => {
            directory.is_listed(Listing::Whole);
            directory.go_in_turn(names);
        }
        Ok(None) => return false,
        Err(refusal) => {
            copy.fail_listing(directory, refusal);
            return true;
        }
    }
    visit::remove_leftovers(copy, &mut lane.lister, pair.target());
    directory.expect(1);
    copy.dispatch.offer(vec![Work::InTurn(Arc::clone(directory))]);
    true
}

/// Whether nothing lies in a directory, as far as it can be seen.
fn is_empty(lister: &mut Lister, directory: BorrowedFd<'_>) -> bool {
    let any = |_: &CStr, _| Err(Refusal::because("list", "something is there"));
    lister.each(directory, any).is_ok()
}

/// The names of a directory and what they are, the first one last. cp goes by inode numbers. `None`:
/// there are too many.
fn names(
    lane: &mut Lane<'_>,
    directory: &Directory,
    pair: &Pair,
) -> Result<Option<Vec<(CString, FileType)>>, Refusal> {
    let copy = lane.copy;
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut seen = copy.peculiarities.names(pair);
    let mut sieve = Sieve::of(copy, directory, Some(pair))?;
    let mut more = true;
    while more {
        if copy.stop.is_due() {
            return Err(Refusal::interrupted("list"));
        }
        more = lane.lister.once(pair.source(), |name, kind, inode| {
            let Some(kind) = sieve.taken(pair.source(), name, kind) else { return Ok(()) };
            seen.add(name, kind);
            bytes += name.to_bytes().len() + NAME_BYTES;
            found.push((inode, name.to_owned(), kind));
            Ok::<_, Refusal>(())
        })?;
        if bytes > MOST_NAMES_BYTES {
            rustix::fs::seek(pair.source(), SeekFrom::Start(0)).map_err(Refusal::of("list"))?;
            return Ok(None);
        }
    }
    copy.peculiarities.remember_names(directory.number, seen, pair);
    // Names of one inode stay as they come.
    found.sort_by_key(|(inode, ..)| *inode);
    Ok(Some(found.into_iter().rev().map(|(_, name, kind)| (name, kind)).collect()))
}

/// Copies what comes next: files that have nothing to do with others by all threads, everything else
/// when all before it is done. When that is, this is called again.
pub(super) fn go_on(lane: &mut Lane<'_>, directory: &Arc<Directory>) {
    let copy = lane.copy;
    directory.begin_use();
    match visit::pair(copy, directory) {
        Some(pair) => go_through(lane, directory, &pair),
        None => directory.forget_turns(),
    }
    directory.end_use();
    visit::piece_done(copy, directory);
}

fn go_through(lane: &mut Lane<'_>, directory: &Arc<Directory>, pair: &Arc<Pair>) {
    let copy = lane.copy;
    let has_hands = may_part(copy);
    let mut batch = Batch::default();
    loop {
        if copy.stop.is_due_on(pair.found.target.0) {
            return directory.forget_turns();
        }
        let next = directory.next_in_turn();
        if let Some((name, kind)) = &next {
            let both = ((pair.source(), name.as_c_str()), (pair.target(), name.as_c_str()));
            if has_hands && kind.is_file() && alone(copy, both.0, both.1).is_some() {
                if batch.push(name, *kind).is_ok() && batch.count() == BATCH_ENTRIES {
                    let whole = std::mem::take(&mut batch);
                    copy.dispatch.offer(visit::offered(directory, std::iter::once(whole)));
                    copy.find_hands(lane.hire);
                }
                continue;
            }
        }
        if !batch.is_empty() {
            directory.expect(1);
            lane.entries(directory, &std::mem::take(&mut batch));
        }
        let Some((name, kind)) = next else { return };
        if directory.has_others_at_work() {
            return directory.put_back(name, kind);
        }
        let entry = Entry { copy, directory, pair, source: &name, target: &name };
        if !kind.is_dir() {
            lane.entry(entry, kind);
            continue;
        }
        directory.expect(1);
        if visit::begin(lane, entry).is_some() {
            return;
        }
    }
}

/// Whether files may be copied by several threads: nobody looks at the order.
fn may_part(copy: &Copy<'_>) -> bool {
    copy.rules().is_some_and(|rules| {
        rules.form == Form::Copy
            && !rules.asks
            && copy.backups.is_none()
            && copy.parents.below().is_none()
            && !copy.watch.wants_each()
    })
}

/// Whether the only name of a file goes to a name that is free, or the only one of another file: what
/// comes of it does not depend on what is copied before or after it, unless by a symlink, which waits.
/// Returns what they are.
fn alone(
    copy: &Copy<'_>,
    (from, source): (BorrowedFd<'_>, &CStr),
    (to, target): (BorrowedFd<'_>, &CStr),
) -> Option<(Identity, Option<Identity>)> {
    let is_file = |facts: &Stat| kind_of(facts).is_file();
    let facts = look(from, source).ok().filter(is_file)?;
    if facts.st_nlink > 1 && copy.options.preserve.has(Preserve::LINKS) {
        return None;
    }
    let source = identity(&facts);
    match find(to, target) {
        Ok(None) => Some((source, None)),
        Ok(Some(found)) if is_file(&found) && found.st_nlink == 1 && identity(&found) != source => {
            Some((source, Some(identity(&found))))
        }
        _ => None,
    }
}

/// Operands that wait until those before them are done.
#[derive(Debug, Default)]
pub(super) struct Later {
    waiting: VecDeque<Operand>,
    at_work: usize,
}

impl Copy<'_> {
    /// The operands to begin with: all, or the first of those that are copied one after the other.
    pub(super) fn in_turn(&self, operands: Vec<Operand>) -> Vec<Operand> {
        let parents = operands.iter().map(|operand| operand.target.parent());
        let mut parents: Vec<_> = parents.collect();
        parents.dedup();
        let mut lister = Lister::default();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let is_filled = |path: &Path| {
            rustix::fs::open(path, flags, Mode::empty())
                .is_ok_and(|parent| !is_empty(&mut lister, parent.as_fd()))
        };
        if self.rules().is_none() || !parents.into_iter().flatten().any(is_filled) {
            return operands;
        }
        let mut later = lock(&self.later);
        later.waiting = operands.into();
        self.next_in_turn(&mut later)
    }

    /// Another operand was copied.
    pub(super) fn next_operand(&self) {
        let mut later = lock(&self.later);
        later.at_work = later.at_work.saturating_sub(1);
        let next = if later.at_work == 0 { self.next_in_turn(&mut later) } else { Vec::new() };
        drop(later);
        self.dispatch.offer(next.into_iter().map(Work::Operand));
    }

    /// The next operand, or several that have nothing to do with each other.
    fn next_in_turn(&self, later: &mut Later) -> Vec<Operand> {
        let (mut files, mut names) = (HashSet::new(), HashSet::new());
        let may_part = may_part(self);
        let mut next = Vec::new();
        while let Some(operand) = later.waiting.front() {
            let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
            let both = path(&operand.source).zip(path(&operand.target)).filter(|_| may_part);
            let is_alone = both.is_some_and(|(source, target)| {
                alone(self, (CWD, &source), (CWD, &target)).is_some_and(|(source, found)| {
                    files.insert(source)
                        && found.is_none_or(|found| files.insert(found))
                        && names.insert(target)
                })
            });
            if !is_alone && !next.is_empty() || next.len() == MOST_OPERANDS {
                break;
            }
            next.extend(later.waiting.pop_front());
            if !is_alone {
                break;
            }
        }
        later.at_work = next.len();
        next
    }
}
