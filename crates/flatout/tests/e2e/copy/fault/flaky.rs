//! A filesystem in memory, served over FUSE by a thread of the tests, in which one request goes
//! wrong: the n-th of its kind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::BackgroundSession;

use super::answer::{Server, State};
use super::request::{Counter, Kind, Trap};
use super::store::Store;
use crate::filesystem::MountPoint;

/// The filesystem, mounted until `finish`.
pub struct Flaky {
    state: Arc<Mutex<State>>,
    point: MountPoint,
    session: BackgroundSession,
}

impl Flaky {
    /// Mounts it, or says why that cannot be done here.
    pub fn new() -> Result<Self, String> {
        let state = State { store: Store::new(), counter: Counter::default(), is_uncached: false };
        let state = Arc::new(Mutex::new(state));
        let (point, session) = MountPoint::served(Server(state.clone()), "flaky", None)?;
        Ok(Self { state, point, session })
    }

    pub fn path(&self) -> &Path {
        self.point.path()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Whether files are read and written around the page cache from now on.
    pub fn is_uncached(&self, is_uncached: bool) {
        self.state().is_uncached = is_uncached;
    }

    /// Takes everything out of it.
    pub fn clear(&self) {
        self.state().store.clear();
    }

    /// Counts from zero, and sets a trap or none.
    pub fn set(&self, trap: Option<Trap>) {
        self.state().counter = Counter { trap, ..Counter::default() };
    }

    /// Requests since [`Flaky::set`], by kind.
    pub fn seen(&self) -> BTreeMap<Kind, u32> {
        self.state().counter.seen.clone()
    }

    /// Takes the trap away. Says whether anything fell into it.
    pub fn disarm(&self) -> bool {
        let counter = &mut self.state().counter;
        counter.trap = None;
        counter.sprung
    }

    /// Unmounts it; fails the test when something still holds on to it.
    pub fn finish(self) {
        self.point.finish();
        self.session.join().unwrap();
    }
}
