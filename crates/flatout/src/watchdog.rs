//! Says that a request of storage stands still (`watchdog/standstill.rs`), and ends a run in which nothing
//! happens any more: storage that never answers, a far end that is gone, a fault of our own.
//!
//! It ends the run as an interrupt does, so that what was measured is still written down. Where
//! not even that helps, the second signal ends the process at once.

mod standstill;

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use flatout_sys::cancel;
use flatout_sys::lock::lock;
use flatout_sys::memory::room_for_thread;

use crate::output;
use standstill::Standstill;

/// What the kernel, too, takes for a hung task.
const SILENCE: Duration = Duration::from_secs(120);
/// Time for ending in order.
const ORDERLY: Duration = Duration::from_secs(10);

/// The silence of one look: what is longer, this process was stopped (Ctrl-Z, a frozen control
/// group, a suspended machine) and nothing could happen.
const LOOK: Duration = Duration::from_secs(1);

/// Watches until it is dropped.
pub struct Watchdog(Arc<Watched>);

struct Watched {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// For how long nothing happened while this process ran.
    silent: Duration,
    /// What began before that.
    what: String,
    is_over: bool,
}

impl Watchdog {
    /// Ends this process when nothing happened for two minutes more than the whole run is to take.
    pub fn over(expected: Duration) -> Self {
        Self::begin(SILENCE.saturating_add(expected), ORDERLY, || {
            // That this process cannot be told leaves it as it was.
            let _ = cancel::end_by(Signal::TERM);
        })
    }

    /// Only says that a request stands still.
    pub fn of_requests() -> Self {
        Self::begin(Duration::MAX, ORDERLY, || {})
    }

    /// Calls `end` after `limit` without a [`Watchdog::beat`], and once more after `orderly`.
    fn begin(limit: Duration, orderly: Duration, end: impl Fn() + Send + 'static) -> Self {
        let state = State::of("the preparation");
        let watched = Arc::new(Watched { state: Mutex::new(state), changed: Condvar::new() });
        let own = Arc::clone(&watched);
        // Without a thread to spare nobody watches, and the run is as good.
        if room_for_thread().is_err() {
            return Self(watched);
        }
        let watch = move || {
            if let Some(what) = own.silence(limit) {
                let seconds = limit.as_secs();
                output::complain(&format!(
                    "nothing happened for {seconds} s since {what} began: ending as after an interrupt"
                ));
                end();
                if own.silence(orderly).is_some() {
                    end();
                }
            }
        };
        let builder = Builder::new().name("watchdog".to_owned());
        let _ = cancel::without_signals(|| builder.spawn(watch));
        Self(watched)
    }

    /// Something happened: `what` begins now.
    pub fn beat(&self, what: &str) {
        let mut state = lock(&self.0.state);
        state.silent = Duration::ZERO;
        what.clone_into(&mut state.what);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.changed.notify_all();
    }
}

impl State {
    fn of(what: &str) -> Self {
        Self { silent: Duration::ZERO, what: what.to_owned(), is_over: false }
    }

    /// A look was over after this time.
    fn looked(&mut self, passed: Duration) {
        self.silent = self.silent.saturating_add(passed.min(LOOK));
    }
}

impl Watched {
    /// Waits until nothing happened for `limit`, from the last beat or from now on, whichever is
    /// later; says what began last. `None`: the run is over.
    fn silence(&self, limit: Duration) -> Option<String> {
        let mut state = lock(&self.state);
        let mut standstill = Standstill::default();
        state.silent = Duration::ZERO;
        loop {
            if state.is_over {
                return None;
            }
            let left = limit.saturating_sub(state.silent);
            if left.is_zero() {
                return Some(state.what.clone());
            }
            let begun = Instant::now();
            let woken = self.changed.wait_timeout(state, left.min(LOOK));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let passed = begun.elapsed().min(LOOK);
            state.looked(passed);
            if passed == LOOK {
                drop(state);
                standstill.look(passed);
                state = lock(&self.state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn silence_ends_the_run_and_more_silence_ends_it_at_once() {
        let (told, ends) = channel();
        let watchdog = Watchdog::begin(Duration::ZERO, Duration::ZERO, move || {
            told.send(()).unwrap();
        });
        ends.recv_timeout(LONG).unwrap();
        ends.recv_timeout(LONG).unwrap();
        drop(watchdog);
        assert_eq!(ends.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected), "it ended twice");
    }

    #[test]
    fn a_run_that_is_over_is_not_ended() {
        let (told, ends) = channel();
        let watchdog = Watchdog::begin(LONG, LONG, move || told.send(()).unwrap());
        watchdog.beat("a trial");
        drop(watchdog);
        assert_eq!(ends.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn the_time_of_a_stopped_process_is_no_silence() {
        let mut state = State::of("a");
        state.looked(Duration::from_millis(900));
        state.looked(LONG);
        assert_eq!(state.silent, Duration::from_millis(1900));
    }

    #[test]
    fn it_says_what_began_last() {
        let state = Mutex::new(State::of("a"));
        let watched = Arc::new(Watched { state, changed: Condvar::new() });
        lock(&Watchdog(Arc::clone(&watched)).0.state).what = "b".to_owned();
        lock(&watched.state).is_over = false;
        assert_eq!(watched.silence(Duration::ZERO).as_deref(), Some("b"));
        lock(&watched.state).is_over = true;
        assert_eq!(watched.silence(LONG), None);
    }
}
