//! A copy that several processes share, each with threads of its own.
//!
//! Nothing is split beforehand: the first process begins with the operands, and one that has nothing
//! to do asks another for pieces. What is given away stays a thing to be done in the giver's
//! directory, until the taker says that it is done: so a directory gets its attributes when all in
//! it is complete, whoever copied it, and the first process knows when everything is done. The names
//! of one file all go to one process, which a hash of its inode number decides: it copies the file
//! and makes the links.
//!
//! Read next: `shared/member.rs`, what the processes say to each other; `shared/bound.rs`, files with
//! several names; `shared/parcel.rs`, work on its way.

mod account;
mod bound;
mod member;
mod parcel;
mod part;
mod question;
mod silence;
#[cfg(test)]
mod tests;
mod thief;

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use flatout_sys::clock::monotonic_ns;
use rustix::fs::OFlags;

pub use account::{Reporter, Wanted};
pub use member::Post;
pub(super) use parcel::{Parcel, Part, Piece};
pub(super) use part::Abroad;
pub use silence::Silence;
pub(super) use thief::share;

use super::content::{Done, Large, Ranges};
use super::directory::{self, Closed, DIRECTORY, Guest};
use super::rules::opening;
use super::sieve::Sieve;
use super::tally::Snapshot;
use super::temporary::Temporaries;
use super::{Copy, Directory, Failure, Pair, Refusal, Side, Work, lane, visit};
use crate::lock::lock;
use crate::spool::names::BatchIter;
use crate::wire::message;

const FOLLOW: &str = "follow the other processes to";
/// Pieces of one answer at most.
const MOST_GIVEN: usize = 16;

/// One of the processes of a copy.
#[derive(Debug, Clone)]
pub struct Membership {
    /// Its number, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// A number that all of them have, and no other job: temporary names carry it.
    pub job: u64,
    /// Inode numbers of files that stay with the first one, which the user named: their copies may have
    /// other names, and by the rules of cp it matters which of them was made before.
    pub kept: Vec<u64>,
}

/// What this process shares with the others.
#[derive(Default)]
pub(super) struct Shared {
    rank: usize,
    size: usize,
    kept: HashSet<u64>,
    given: Mutex<Given>,
    /// Names among them that one process has, and no other.
    bound: AtomicUsize,
    /// What other threads have for the one that speaks with the other processes.
    outbox: Mutex<Vec<Letter>>,
    /// Another process has asked for work, and there was none to give.
    is_wanted: AtomicBool,
    /// What the others have done, as far as they told.
    others: Mutex<Vec<Option<(Snapshot, u64)>>>,
    /// Messages sent.
    sent: AtomicU64,
    questions: question::Questions,
    /// What happens here, if another process tells the user.
    reporter: Option<Arc<Reporter>>,
}

/// What was given away and is not done.
#[derive(Default)]
struct Given {
    next: u64,
    out: HashMap<u64, Out>,
}

/// A parcel on its way.
enum Out {
    /// So many pieces of a directory; names that one process has, and no other, are bound.
    Pieces { directory: Arc<Directory>, count: usize, is_bound: bool },
    /// Ranges of a file, and what came of them as far as that is known.
    Part(Arc<Large>, Ranges, Option<Done>),
}

/// Something to be sent.
enum Letter {
    /// Names that this process is to copy, and no other.
    Bound(usize, Parcel),
    /// This message.
    Message(usize, Vec<u8>),
}

impl Shared {
    /// This process is the one of this rank among so many; the first one tells the user, the others
    /// tell it by their reporter.
    pub(super) fn new(member: Membership, reporter: Option<Arc<Reporter>>) -> Self {
        let Membership { rank, size, kept, .. } = member;
        Self {
            rank,
            size,
            kept: kept.into_iter().collect(),
            others: Mutex::new(vec![None; size]),
            reporter,
            ..Self::default()
        }
    }

    /// What the others have done, added to what was done here.
    pub(super) fn with_others(&self, own: Snapshot) -> Snapshot {
        lock(&self.others).iter().flatten().fold(own, |sum, (other, _)| sum.with(other))
    }

    /// Numbers a parcel.
    fn send_out(&self, out: Out, way: Vec<Closed>, pieces: Vec<Piece>) -> Parcel {
        let mut given = lock(&self.given);
        let number = given.next;
        given.next += 1;
        given.out.insert(number, out);
        Parcel { number, is_bound: false, way, pieces }
    }
}

/// What each of several processes did, and how many messages it sent.
pub type Contribution = (Snapshot, u64);

impl Copy<'_> {
    /// The same copy, shared by several processes, of which this is one. The first one tells the user;
    /// the others have a `reporter`, which is their `watch`, too.
    pub fn with_members(mut self, member: Membership, reporter: Option<Arc<Reporter>>) -> Self {
        self.temporaries = Temporaries::of_job(member.job);
        self.shared = Some(Shared::new(member, reporter));
        self
    }

    /// Whether other processes copy, too.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// What each process did, as far as this one knows: the first one, at the end, everything.
    pub fn contributions(&self) -> Vec<Option<Contribution>> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let mut parts = lock(&shared.others).clone();
        parts[shared.rank] = Some((self.own_progress(), shared.sent.load(Ordering::Relaxed)));
        parts
    }

    /// Pieces for a process that has none, as parcels.
    fn parcels(&self, shared: &Shared) -> Vec<Parcel> {
        // Names that need care are known here only; bound ones stay.
        let may_go = |work: &Work| match work {
            Work::Entries(directory, _) => !self.peculiarities.knows(directory),
            _ => true,
        };
        let mut by_directory: Vec<(Arc<Directory>, Vec<Piece>)> = Vec::new();
        for work in self.dispatch.spare(MOST_GIVEN, &may_go) {
            let (directory, piece) = match work {
                Work::Entries(directory, names) => (directory, Piece::Entries(names)),
                Work::Visit(directory, name, origin) => (directory, Piece::Visit(name, origin)),
                other => {
                    self.dispatch.offer(vec![other]);
                    continue;
                }
            };
            match by_directory.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &directory)) {
                Some((_, pieces)) => pieces.push(piece),
                None => by_directory.push((directory, vec![piece])),
            }
        }
        let mut parcels = Vec::new();
        for (directory, pieces) in by_directory {
            let way = directory.way();
            // Whoever takes a directory to begin with uses the one above it.
            for _ in pieces.iter().filter(|piece| matches!(piece, Piece::Visit(..))) {
                directory.end_use();
            }
            match way {
                Ok(way) => {
                    let out = Out::Pieces { directory, count: pieces.len(), is_bound: false };
                    parcels.push(shared.send_out(out, way, pieces));
                }
                Err(refusal) => {
                    self.fail_source(&directory, None, refusal);
                    pieces.iter().for_each(|_| visit::piece_done(self, &directory));
                }
            }
        }
        if parcels.is_empty() {
            parcels.extend(self.part_of_a_file(shared));
        }
        shared.is_wanted.store(parcels.is_empty(), Ordering::Relaxed);
        parcels
    }

    /// Whether another process has nothing to do while these names wait for this thread.
    pub(super) fn is_asked_for(&self, rest: &BatchIter<'_>) -> bool {
        let Some(shared) = &self.shared else { return false };
        shared.is_wanted.load(Ordering::Relaxed)
            && rest.clone().nth(1).is_some()
            && shared.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Another process has done a parcel.
    fn returned(&self, shared: &Shared, number: u64) {
        let work = match lock(&shared.given).out.remove(&number) {
            Some(Out::Pieces { directory, count, is_bound }) => {
                let bound = if is_bound { count } else { 0 };
                shared.bound.fetch_sub(bound, Ordering::Relaxed);
                Work::Returned(directory, count)
            }
            Some(Out::Part(large, ranges, done)) => {
                large.came_back(ranges, done.as_ref());
                Work::Joined(large)
            }
            None => return,
        };
        self.dispatch.offer(vec![work]);
    }

    /// A parcel of another process is done. What could not be read here, that one deletes nothing for.
    pub(super) fn parcel_is_done(&self, guest: Guest) {
        let done = message(&[&member::DONE, &guest.number, &self.mirror.is_incomplete()]);
        if let Some(shared) = &self.shared {
            lock(&shared.outbox).push(Letter::Message(guest.giver, done));
        }
    }

    /// Opens the directory of a parcel and makes its pieces work of this process.
    pub(super) fn unpack(&self, giver: usize, parcel: Parcel) {
        let guest = Guest { giver, number: parcel.number, is_bound: parcel.is_bound };
        let directory = match self.guest(&parcel.way, guest) {
            Ok(directory) => directory,
            Err(failure) => {
                // Ranges that are not copied go back to whoever has the rest.
                if !matches!(parcel.pieces[..], [Piece::Part(_)]) {
                    self.fail(failure);
                }
                return self.parcel_is_done(guest);
            }
        };
        let work = |piece| {
            directory.expect(1);
            match piece {
                Piece::Entries(names) => Work::Entries(Arc::clone(&directory), names),
                Piece::Visit(name, origin) => {
                    directory.begin_use();
                    Work::Visit(Arc::clone(&directory), name, origin)
                }
                Piece::Part(part) => {
                    directory.begin_use();
                    Work::Part(Arc::clone(&directory), Box::new(part))
                }
            }
        };
        self.dispatch.offer(parcel.pieces.into_iter().map(work).collect::<Vec<_>>());
        directory.end_use();
        visit::piece_done(self, &directory);
    }

    /// Goes the way of a parcel, name by name.
    fn guest(&self, way: &[Closed], guest: Guest) -> Result<Arc<Directory>, Failure> {
        let (first, below) = way.split_first().expect("a parcel has a way");
        let [source, target] = [&first.named.source, &first.named.target]
            .map(|path| Path::new(OsStr::from_bytes(path.to_bytes())));
        let is_last = below.is_empty();
        let (mut here, mut pair) = lane::base(self, source, target, is_last.then_some(guest))?;
        for (depth, step) in below.iter().enumerate() {
            let path = here.path(Side::Source, Some(&step.named.source));
            let failed = |refusal| Failure::of(refusal, path);
            let opened = Arc::new(self.follow(step, (&here, &pair), depth == 0).map_err(failed)?);
            pair = Arc::clone(&opened);
            let is_last = depth + 1 == below.len();
            let next = self.held.enter(&here, opened, monotonic_ns(), is_last.then_some(guest));
            // What its .gitignore says counts below it.
            Sieve::of(self, &next, Some(&pair))
                .map_err(|refusal| Failure::of(refusal, next.path(Side::Source, None)))?;
            if depth > 0 {
                here.end_use();
            }
            here = next;
        }
        Ok(here)
    }

    /// One step of a way.
    fn follow(
        &self,
        step: &Closed,
        (directory, above): (&Directory, &Pair),
        is_top: bool,
    ) -> Result<Pair, Refusal> {
        let mut by_name = DIRECTORY | OFlags::NOATIME;
        by_name.set(OFlags::NOFOLLOW, !self.follows(directory));
        let examine = |file| rustix::fs::fstat(file).map_err(Refusal::of(FOLLOW));
        let open =
            |at, name: &CStr, flags| directory::open(at, name, flags).map_err(Refusal::of(FOLLOW));
        let (source, _) = open(above.source(), &step.named.source, by_name)?;
        let (target, _) = open(above.target(), &step.named.target, opening(&self.options).1)?;
        let (from, to) = (examine(source.as_fd())?, examine(target.as_fd())?);
        if (from.st_ino, to.st_ino) != (step.source.1, step.target.1) {
            return Err(Refusal::because(FOLLOW, "this process finds another directory there"));
        }
        if is_top || to.st_dev != above.found.target.0 {
            let held = self.targets.will_sync(target.as_fd(), to.st_dev);
            held.map_err(Refusal::of("hold"))?;
        }
        if is_top {
            self.targets.remember_top(&from, &to);
        }
        Ok(Pair { source, target, found: step.clone().found_here(from, &to) })
    }
}
