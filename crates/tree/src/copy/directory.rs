//! A directory that is being copied: the pair of descriptors that is held, and what is still to
//! come before its attributes can be set.
//!
//! When many are open, those that nobody uses just now are let go, the outermost first. Whoever
//! finishes a directory opens the pair above it again through `..`; where that cannot be, it is
//! opened name by name from above. Either way it must be the one that it was: no path is ever put
//! together, and a tree may be deeper than any path. With its pair goes what is known of it
//! ([`closed`]): what stays in memory of a directory that waits is some 100 bytes.

mod below;
mod closed;
mod held;
mod path;
mod turn;

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::{Inheritance, Made, Refusal};
use crate::file_data::open_unseen;
use crate::lock::lock;
use crate::selection::Ignored;

use below::Below;
pub(super) use closed::Closed;
use closed::Record;
#[cfg(test)]
pub(super) use closed::tests::closed as closed_of_tests;
pub(super) use held::{Held, moved};
use turn::Turn;

/// How directories are opened.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const GO_BACK: &str = "go back to";

/// Opens a directory. One that may be searched but not read is pinned by `O_PATH`: names in it can be
/// looked up, made and replaced, but not listed (open(2)).
pub(super) fn open(
    at: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: OFlags,
) -> Result<(OwnedFd, Access), Errno> {
    let open = |flags| open_unseen(at, name, flags);
    match open(flags) {
        Err(Errno::ACCESS) => Ok((open(flags | OFlags::PATH)?, Access::SearchOnly)),
        opened => Ok((opened?, Access::Full)),
    }
}

/// What may be done with a directory that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It can be listed.
    Full,
    /// Names can be looked up in it, if anything.
    SearchOnly,
}

/// Device and inode number.
pub(crate) type Identity = (u64, u64);

/// The identity in what the kernel says of a file.
pub(crate) fn identity(facts: &Stat) -> Identity {
    (facts.st_dev, facts.st_ino)
}

/// A directory of the source and the one that becomes its copy, open, and what is known of them.
/// Either may be an `O_PATH` descriptor: see [`open`].
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) source: OwnedFd,
    pub(super) target: OwnedFd,
    pub(super) found: Found,
}

impl Pair {
    pub(super) fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }

    pub(super) fn target(&self) -> BorrowedFd<'_> {
        self.target.as_fd()
    }
}

/// Names of both sides: they differ only for what the user named.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) source: CString,
    pub(super) target: CString,
}

/// Whether the target was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was made by this copy.
    Fresh,
    /// It was there.
    Existing,
}

/// What is known of a directory when it is opened.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) named: Named,
    /// What the source was when it was opened.
    pub(super) facts: Stat,
    pub(super) target: Identity,
    /// What the target hands on to what is made in it.
    pub(super) inheritance: Inheritance,
    /// How the target came to be there.
    pub(super) made: Made,
}

/// A parcel of another process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guest {
    pub(super) giver: usize,
    /// By it the giver knows it again.
    pub(super) number: u64,
    /// Nothing of it is given away.
    pub(super) is_bound: bool,
}

/// A directory on its way.
pub(super) struct Directory {
    /// `None`: what the user named lies in it; it is not copied itself.
    pub(super) parent: Option<Arc<Directory>>,
    /// What tells it from the others that are copied at this time.
    pub(super) number: u64,
    /// The parcel of another process of which pieces are done here: it completes the directory itself.
    pub(super) guest: Option<Guest>,
    /// When its visit began, on the system's clock.
    pub(super) begun_ns: u64,
    /// What must be done before it is finished: its listing, batches, directories below it.
    pending: AtomicUsize,
    /// See [`Listing`].
    listing: AtomicU8,
    state: Mutex<State>,
    turn: Turn,
}

struct State {
    kept: Kept,
    /// Threads that work in it, and a listing that is to go on.
    users: u32,
    /// Directories below it that nobody has begun with.
    below: Option<Box<Below>>,
    /// What `.gitignore` files say about what lies in it.
    ignored: Option<Arc<Ignored>>,
}

/// What is known of the names in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// Nothing, or not all of them.
    Partial,
    /// All of them were read.
    Whole,
    /// The same, and what the target has besides is gone, or stays.
    Mirrored,
}

/// What there is of a directory.
enum Kept {
    /// It is open.
    Open(Arc<Pair>),
    /// It was let go, and is known there.
    Recorded(Record),
    /// Likewise, where nothing can be put away.
    Here(Box<Closed>),
    /// It is finished.
    Nothing,
}

impl Directory {
    /// The number that all bases have.
    pub(super) const NUMBER_OF_BASES: u64 = 0;

    /// The directory above an operand: held as long as the copy goes on, and never finished.
    pub(super) fn base(pair: Pair, guest: Option<Guest>) -> (Arc<Self>, Arc<Pair>) {
        let pair = Arc::new(pair);
        let base = Self::open(None, (Self::NUMBER_OF_BASES, 0), Arc::clone(&pair), guest);
        (Arc::new(base), pair)
    }

    /// A directory that is in use by whoever opened it. Its listing counts as a thing to be done.
    fn open(
        parent: Option<Arc<Self>>,
        (number, begun_ns): (u64, u64),
        pair: Arc<Pair>,
        guest: Option<Guest>,
    ) -> Self {
        let state =
            Mutex::new(State { kept: Kept::Open(pair), users: 1, below: None, ignored: None });
        let listing = AtomicU8::new(Listing::Partial as u8);
        let (pending, turn) = (AtomicUsize::new(1), Turn::default());
        Self { parent, number, guest, begun_ns, pending, listing, state, turn }
    }

    /// Whether what is done in it is for this process only.
    pub(super) fn is_bound(&self) -> bool {
        self.guest.is_some_and(|guest| guest.is_bound)
    }

    /// What is known of the directories from the operand's to this one.
    ///
    /// Errors: it cannot be read back.
    pub(super) fn way(&self) -> Result<Vec<Closed>, Refusal> {
        let mut way = self.upwards().map(Self::known).collect::<Result<Vec<_>, _>>()?;
        way.reverse();
        Ok(way)
    }

    /// This directory and those above it, its base last.
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |directory| directory.parent.as_deref())
    }

    /// The same without the base.
    fn upwards_below_base(&self) -> impl Iterator<Item = &Self> {
        self.upwards().filter(|directory| directory.parent.is_some())
    }

    /// The directory in which what the user named lies.
    pub(super) fn base_above(&self) -> &Self {
        self.upwards().last().unwrap_or(self)
    }

    /// The pair, if it is not let go.
    fn pair(&self) -> Option<Arc<Pair>> {
        match &lock(&self.state).kept {
            Kept::Open(pair) => Some(Arc::clone(pair)),
            _ => None,
        }
    }

    /// What is known of it, be it open or not.
    fn known(&self) -> Result<Closed, Refusal> {
        match &lock(&self.state).kept {
            Kept::Open(pair) => Ok(Closed::of(&pair.found)),
            Kept::Recorded(record) => record.read(),
            Kept::Here(closed) => Ok(Closed::clone(closed)),
            Kept::Nothing => Err(Refusal::because(GO_BACK, "it is finished")),
        }
    }

    /// The pair is needed until [`Directory::end_use`].
    pub(super) fn begin_use(&self) {
        lock(&self.state).users += 1;
    }

    /// The pair is not needed any more.
    pub(super) fn end_use(&self) {
        lock(&self.state).users -= 1;
    }

    /// Whether somebody else works in it, or is to begin with what lies below it.
    pub(super) fn is_shared(&self) -> bool {
        lock(&self.state).users > 1
    }

    /// Whoever makes several names waits for this: threads that make one name each in turn wait longer, for
    /// the kernel's lock of the directory and for what the other CPU has changed of it.
    pub(super) fn making(&self) -> MutexGuard<'_, ()> {
        self.turn.take()
    }

    /// More is to be done before it is finished.
    pub(super) fn expect(&self, more: usize) {
        self.pending.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether anything is to be done in it but one thing.
    pub(super) fn has_others_at_work(&self) -> bool {
        self.pending.load(Ordering::Acquire) > 1
    }

    /// One thing is done; true when it was the last.
    pub(super) fn is_last(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// All names of the source were read; or not, after all.
    pub(super) fn is_listed(&self, listing: Listing) {
        self.listing.store(listing as u8, Ordering::Relaxed);
    }

    /// Whether all names of the source were read, and the target was not compared with them so far.
    /// From now on it was.
    pub(super) fn begin_mirroring(&self) -> bool {
        let (from, to) = (Listing::Whole as u8, Listing::Mirrored as u8);
        self.listing.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// What `.gitignore` files say about what lies in it.
    pub(super) fn ignored(&self) -> Option<Arc<Ignored>> {
        lock(&self.state).ignored.clone()
    }

    /// Sets what [`Directory::ignored`] says.
    pub(super) fn ignore(&self, ignored: Option<Arc<Ignored>>) {
        lock(&self.state).ignored = ignored;
    }
}

impl Named {
    fn on(&self, side: Side) -> &CStr {
        if side == Side::Source { &self.source } else { &self.target }
    }
}

/// Which of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// What is read.
    Source,
    /// What is written.
    Target,
}

impl Drop for Directory {
    /// One after the other: a chain may be deeper than the stack.
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(directory) = above {
            above = Arc::into_inner(directory).and_then(|mut directory| directory.parent.take());
        }
    }
}
