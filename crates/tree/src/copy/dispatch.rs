//! What is to be done next, and by whom: pieces of work for the threads of one process.
//!
//! Work is cut into pieces that can be done in any order: entries of one directory, a part of a
//! large listing, a directory to begin with, a large file that others may help with. A directory
//! is complete when all of its pieces are; its attributes are set then.

mod piece;
pub(super) mod ready;

use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::content::{Large, Ranges};
use super::directory::Origin;
use super::mirror::Surplus;
use super::shared::{self, Parcel, Part};
use super::stop::Stop;
use super::{Directory, Operand, Refusal};
use crate::lock::lock;
use crate::spool::names::Batch;
use ready::Ready;

/// How long a thread without work waits before it looks whether the copy is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long one that waits for another process waits before it looks what has become of that.
const MOMENT: Duration = Duration::from_micros(500);

/// A piece of work.
pub(super) enum Work {
    /// What the user named.
    Operand(Operand),
    /// Names that lie in one directory, none of them a directory.
    Entries(Arc<Directory>, Batch),
    /// The same, to be looked up before any of them is made.
    Looking(Arc<Directory>, Vec<Batch>),
    /// A large directory, from where its listing stands.
    Listing(Arc<Directory>),
    /// What comes next in a directory whose entries are copied one after the other.
    InTurn(Arc<Directory>),
    /// A directory below this one, to begin with.
    Visit(Arc<Directory>, CString, Origin),
    /// Directories below this one are to be visited, as soon as somebody has time.
    Below(Arc<Directory>),
    /// So many directories below this one are forgotten: their names cannot be read back.
    Lost(Arc<Directory>, Refusal, u64),
    /// Names of a target directory that are to go.
    Surplus(Arc<Directory>, Surplus),
    /// A large file that somebody copies.
    Large(Arc<Large>),
    /// Ranges of a large file that another process gave to this one.
    Part(Arc<Directory>, Box<Part>),
    /// Such ranges of which another one has done some.
    Joined(Arc<Large>),
    /// Pieces that another process gave to this one.
    Parcel(usize, Box<Parcel>),
    /// So many pieces of this directory that another process has done.
    Returned(Arc<Directory>, usize),
}

/// Pieces of work, shared by threads.
pub(super) struct Dispatch {
    state: Mutex<State>,
    /// There is work, or there will be none.
    changed: Condvar,
    stop: Arc<Stop>,
}

#[derive(Default)]
struct State {
    ready: Ready<Work>,
    /// Threads that have a piece, and may find more.
    busy: usize,
    /// Threads that wait for one.
    idle: usize,
    /// Busy ones that wait for another process, and would do a part of a large file meanwhile.
    paused: usize,
}

impl Dispatch {
    pub(super) fn new(stop: Arc<Stop>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), stop }
    }

    /// The next piece for this thread, which has none; waits for one. `None`: everything is done, or the
    /// copy was stopped.
    pub(super) fn first(&self) -> Option<Work> {
        self.take(lock(&self.state), None)
    }

    /// The same for a thread that has done its piece; `near` is the directory in which it was.
    pub(super) fn next(&self, near: Option<&Arc<Directory>>) -> Option<Work> {
        let mut state = lock(&self.state);
        state.busy -= 1;
        self.take(state, near)
    }

    fn take(
        &self,
        mut state: MutexGuard<'_, State>,
        near: Option<&Arc<Directory>>,
    ) -> Option<Work> {
        loop {
            if self.stop.is_due() {
                drop(state);
                self.changed.notify_all();
                return None;
            }
            if let Some(work) = state.ready.next(near) {
                state.busy += 1;
                return Some(work);
            }
            if state.busy == 0 {
                drop(state);
                self.changed.notify_all();
                return None;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }

    /// This thread found more to do, for itself or others.
    pub(super) fn offer(&self, found: impl IntoIterator<Item = Work>) {
        let mut state = lock(&self.state);
        let mut count = 0;
        found.into_iter().for_each(|work| (count, _) = (count + 1, state.ready.add(work)));
        let idle = state.idle;
        drop(state);
        match (idle, count) {
            (0, _) | (_, 0) => {}
            (1, _) | (_, 1) => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    /// Threads without work wait for some until [`Dispatch::finished`]: it may come from elsewhere.
    pub(super) fn hold(&self) {
        lock(&self.state).busy += 1;
    }

    /// Whether there is no work, and nobody who may find some, while [`Dispatch::hold`] is in force.
    pub(super) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.busy == 1 && state.ready.count() == 0
    }

    /// Whether nobody has anything to do, while [`Dispatch::hold`] is in force: who waits for another
    /// process has not, either.
    pub(super) fn is_hungry(&self) -> bool {
        let state = lock(&self.state);
        state.busy - state.paused == 1 && state.ready.count() == 0
    }

    /// A piece of some kind for a thread that waits for another process; after a moment, none.
    pub(super) fn meanwhile(&self, take: fn(&mut Ready<Work>) -> Option<Work>) -> Option<Work> {
        let mut state = lock(&self.state);
        if let Some(work) = take(&mut state.ready) {
            return Some(work);
        }
        state.paused += 1;
        let waited = self.changed.wait_timeout(state, MOMENT);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.paused -= 1;
        take(&mut state.ready)
    }

    /// Half of what is left of the large file of which the most is, for another process.
    pub(super) fn spare_part(&self) -> Option<(Arc<Large>, Ranges)> {
        let state = lock(&self.state);
        let may_go = |work: &Work| matches!(work, Work::Large(it) if it.abroad().is_some());
        let Some(Work::Large(large)) = state.ready.largest(may_go) else { return None };
        let large = Arc::clone(large);
        drop(state);
        let ranges = large.give()?;
        Some((large, ranges))
    }

    /// Half of the pieces that wait, and may go, but at most so many: for others, elsewhere.
    pub(super) fn spare(&self, most: usize, may_go: &dyn Fn(&Work) -> bool) -> Vec<Work> {
        let mut state = lock(&self.state);
        let count = shared::share(state.ready.divisible(), most);
        state.ready.give(count, may_go)
    }

    /// Pieces that wait and nobody is free to take.
    pub(super) fn waiting(&self) -> usize {
        let state = lock(&self.state);
        state.ready.count().saturating_sub(state.idle)
    }

    /// This thread has done its piece.
    pub(super) fn finished(&self) {
        let mut state = lock(&self.state);
        state.busy -= 1;
        if state.busy == 0 && state.idle > 0 {
            drop(state);
            self.changed.notify_all();
        }
    }
}
