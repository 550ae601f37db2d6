//! Work for the threads of one process.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ready::{Ready, first};
use super::{Dispatch, Near, Work};
use crate::copy::directory::Identity;
use crate::copy::failure::Refusal;
use crate::copy::links::{Claim, Links};
use crate::copy::stop::Stop;

/// How long a thread without work waits before it looks whether the copy is stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Pieces of work, shared by threads.
pub(in crate::copy) struct Pool {
    state: Mutex<State>,
    /// There is work, or there will be none.
    changed: Condvar,
    links: Links,
    stop: Arc<Stop>,
}

#[derive(Default)]
struct State {
    ready: Ready,
    /// Threads that have a piece, and may find more.
    busy: usize,
    /// Threads that wait for one.
    idle: usize,
}

impl Pool {
    pub(in crate::copy) fn new(links: Links, stop: Arc<Stop>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), links, stop }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatch for Pool {
    fn next_batch(&self, near: Near<'_>) -> Option<Work> {
        let mut state = self.state();
        loop {
            if self.stop.is_due() {
                return None;
            }
            if let Some(work) = state.ready.next(near, &mut first) {
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

    fn offer(&self, found: Vec<Work>) {
        if found.is_empty() {
            return;
        }
        let mut state = self.state();
        let several = found.len() > 1;
        found.into_iter().for_each(|work| state.ready.add(work));
        let idle = state.idle;
        drop(state);
        match (idle, several) {
            (0, _) => {}
            (1, _) | (_, false) => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    fn finished(&self) {
        let mut state = self.state();
        state.busy -= 1;
        if state.busy == 0 && state.idle > 0 {
            drop(state);
            self.changed.notify_all();
        }
    }

    fn claim_link(&self, identity: Identity, names: u64) -> Result<Claim<'_>, Refusal> {
        self.links.claim(identity, names)
    }
}
