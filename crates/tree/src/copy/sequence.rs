//! The order of cp(1). Where something lies in the target already, a symlink or another name of a
//! file may lead from one name to the next, and what comes of both depends on which of them is first:
//! there, by the rules of cp, entries are copied one after the other, each with all that is below it.
//! What is copied into a directory that is new or empty is not held up.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{FileType, SeekFrom};

use super::directory::{Directory, Pair};
use super::dispatch::Work;
use super::entry::Entry;
use super::failure::Refusal;
use super::job::{Copy, Operand};
use super::lane::Lane;
use super::listing::{Lister, behind};
use super::sieve::Sieve;
use super::{peculiar, visit};
use crate::lock::lock;

/// Names of a directory that are put into this order; with more it is any.
const MOST_NAMES_BYTES: usize = 8 << 20;
/// What a name takes in memory beside its bytes.
const NAME_BYTES: usize = 40;

/// Lists a directory whose copy was there, if what is in it is to be copied in this order, and makes
/// a piece of work of it.
pub(super) fn begin(
    copy: &Copy<'_>,
    lister: &mut Lister,
    directory: &Arc<Directory>,
    pair: &Pair,
) -> bool {
    if copy.rules().is_none() || is_empty(lister, pair.target()) {
        return false;
    }
    match names(copy, lister, directory, pair) {
        Ok(Some(names)) => directory.go_in_turn(names),
        Ok(None) => return false,
        Err(refusal) => {
            // Why it stops is said elsewhere.
            if !(copy.stop.is_due() && refusal.is_interruption()) {
                copy.fail_source(directory, None, refusal);
            }
            return true;
        }
    }
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
    copy: &Copy<'_>,
    lister: &mut Lister,
    directory: &Directory,
    pair: &Pair,
) -> Result<Option<Vec<(CString, FileType)>>, Refusal> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut seen = peculiar::Names::default();
    let follows = copy.follows(directory);
    let mut sieve = Sieve::of(copy, directory, Some(pair))?;
    let mut more = true;
    while more {
        if copy.stop.is_due() {
            return Err(Refusal::interrupted("list"));
        }
        more = lister.once_numbered(pair.source(), |name, kind, inode| {
            let kind = if follows { behind(pair.source(), name, kind) } else { kind };
            if !sieve.takes(name, kind) {
                return Ok(());
            }
            seen.add(name, kind);
            bytes += name.to_bytes().len() + NAME_BYTES;
            found.push((inode, name.to_owned(), kind));
            Ok(())
        })?;
        if bytes > MOST_NAMES_BYTES {
            rustix::fs::seek(pair.source(), SeekFrom::Start(0)).map_err(Refusal::of("list"))?;
            return Ok(None);
        }
    }
    copy.peculiarities.remember(directory.number(), seen.finish());
    // Names of one inode stay as they come.
    found.sort_by_key(|(inode, ..)| *inode);
    Ok(Some(found.into_iter().rev().map(|(_, name, kind)| (name, kind)).collect()))
}

/// Copies what comes next, up to a directory: when that is done, this is called again.
pub(super) fn go_on(lane: &mut Lane<'_, '_>, directory: &Arc<Directory>) {
    let copy = lane.copy;
    directory.begin_use();
    if let Some(pair) = visit::pair(copy, directory) {
        while let Some((name, kind)) = directory.next_in_turn() {
            if copy.stop.is_due_on(pair.found().target.0) {
                break;
            }
            let entry = Entry { directory, pair: &pair, source: &name, target: &name };
            if !kind.is_dir() {
                lane.entry(entry, kind);
                continue;
            }
            directory.expect(1);
            if let Some((below, first)) = visit::begin(copy, &mut lane.lister, entry) {
                lane.visited(below, &first);
                return directory.end_use();
            }
        }
    }
    directory.end_use();
    visit::piece_done(copy, directory);
}

impl Copy<'_> {
    /// The operands to begin with: all, or the first of those that are copied one after the other.
    pub(super) fn in_turn(&self, operands: Vec<Operand>) -> Vec<Operand> {
        let mut all = VecDeque::from(operands);
        let parents = all.iter().map(|operand| operand.target.parent());
        let mut parents: Vec<_> = parents.collect();
        parents.dedup();
        let has_more = |mut list: std::fs::ReadDir| list.next().is_some();
        let is_filled = |path: &std::path::Path| std::fs::read_dir(path).is_ok_and(has_more);
        if self.rules().is_none() || !parents.into_iter().flatten().any(is_filled) {
            return all.into();
        }
        let first = all.pop_front();
        *lock(&self.later) = all;
        first.into_iter().collect()
    }

    /// Another operand was copied.
    pub(super) fn next_operand(&self) {
        let next = lock(&self.later).pop_front();
        self.dispatch.offer(next.into_iter().map(Work::Operand).collect());
    }
}
