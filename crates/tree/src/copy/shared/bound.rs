//! Files that are met under several names, hard links or by symlinks that are followed: all names of one
//! go to one process, which a hash of its inode number decides. It copies the file once and makes the
//! links.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flatout_sys::generator::SplitMix64;
use rustix::fs::{FileType, Stat};

use super::{Letter, Out, Parcel, Piece, Shared};
use crate::copy::dispatch::ready::Ready;
use crate::copy::visit::BATCH_ENTRIES;
use crate::copy::{Copy, Directory, Entry, Lane, Trouble, kind_of};
use crate::lock::lock;
use crate::spool::names::Batch;

/// Names that a process has given to those that copy all names of their files, at most; so many to
/// each where there are many processes.
pub(super) const MOST_BOUND: usize = 1024;
const LEAST_BOUND: usize = 8;

impl Shared {
    /// Which process has all names of the file with this inode number.
    pub(super) fn owner(&self, inode: u64) -> usize {
        // Inode numbers of one directory differ in their last bits only.
        let hash = SplitMix64::new(inode).next_u64();
        if self.kept.contains(&inode) { 0 } else { (hash % self.size as u64) as usize }
    }

    /// Puts a name to others of its directory that are about to be sent to the same process; false:
    /// there are none.
    fn adds_to_a_letter(&self, entry: Entry<'_>, kind: FileType, owner: usize) -> bool {
        let mut outbox = lock(&self.outbox);
        let parcel = outbox.iter_mut().rev().find_map(|letter| match letter {
            Letter::Bound(to, parcel) if *to == owner => Some(parcel),
            _ => None,
        });
        let Some(Parcel { number, pieces, .. }) = parcel else { return false };
        let mut given = lock(&self.given);
        let out = given.out.get_mut(number);
        let (Some(Out::Pieces { directory, count, .. }), [Piece::Entries(names)]) =
            (out, &mut pieces[..])
        else {
            return false;
        };
        let is_fitting = Arc::ptr_eq(directory, entry.directory) && *count < BATCH_ENTRIES;
        if !is_fitting || names.push(entry.source, kind).is_err() {
            return false;
        }
        *count += 1;
        directory.expect(1);
        self.bound.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl Copy<'_> {
    /// Leaves an entry whose file has several names, or may be met again, to the process that copies all
    /// of them, if that is another one. To be called before anything is done about the entry.
    pub(in crate::copy) fn entrust(&self, entry: Entry<'_>, facts: &Stat) -> Result<(), Trouble> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.is_bound(entry, facts)) else {
            return Ok(());
        };
        let owner = shared.owner(facts.st_ino);
        // What the user named may have another name in the target.
        let is_named = entry.directory.parent.is_none();
        if owner == shared.rank || entry.directory.is_bound() || is_named {
            return Ok(());
        }
        let kind = kind_of(facts);
        if shared.adds_to_a_letter(entry, kind, owner) {
            return Err(Trouble::Entrusted);
        }
        let mut names = Batch::default();
        names.push(entry.source, kind).map_err(Trouble::Source)?;
        let way = entry.directory.way().map_err(Trouble::Source)?;
        entry.directory.expect(1);
        shared.bound.fetch_add(1, Ordering::Relaxed);
        let directory = Arc::clone(entry.directory);
        let out = Out::Pieces { directory, count: 1, is_bound: true };
        let parcel = shared.send_out(out, way, vec![Piece::Entries(names)]);
        lock(&shared.outbox).push(Letter::Bound(owner, Parcel { is_bound: true, ..parcel }));
        Err(Trouble::Entrusted)
    }
}

impl Lane<'_> {
    /// Does what other processes wait for, as long as they have too many names of this one: they do the
    /// same.
    pub(in crate::copy) fn let_others_go_first(&mut self, directory: &Directory) {
        let copy = self.copy;
        let Some(shared) = copy.shared.as_ref().filter(|_| !directory.is_bound()) else { return };
        let most = (MOST_BOUND / shared.size).max(LEAST_BOUND);
        while shared.bound.load(Ordering::Relaxed) > most && !copy.stop.is_due() {
            if let Some(work) = copy.dispatch.meanwhile(Ready::bound) {
                self.piece(work);
            }
        }
    }
}
