//! What the threads have yet to do, and what they have found, put in order again.
//!
//! Bounded: so many batches are on their way at most, from the walk to the answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::item::Item;

use super::Summed;
use super::large::Large;

/// Batches on their way. Each holds the names of its files: a few hundred KiB in all.
const MAX_BATCHES: u64 = 128;
/// Files of a batch, once there are many. A lock and a look at the thread's account cost less than
/// one file; larger batches would let the last one end late.
const BATCH_FILES: usize = 32;
/// Batches of a single file at the start, which may be a few large ones.
const SINGLE_BATCHES: u64 = 16;

/// A file, or what is known of it already.
pub(super) type Entry = Result<Item, Summed>;

/// Files that one thread reads.
pub(super) struct Batch {
    number: u64,
    entries: Vec<Entry>,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn take(&mut self) -> impl Iterator<Item = Entry> + use<> {
        std::mem::take(&mut self.entries).into_iter()
    }
}

/// What a thread does next.
pub(super) enum Job {
    /// Read these files.
    Batch(Batch),
    /// Help with this one.
    Large(Arc<Large>),
}

/// Work and answers.
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is work, or there will be none: for threads that are awake.
    work: Condvar,
    /// More threads may be awake, or there will be no work: for the others, whom each batch would
    /// disturb else. Figure: 20,000 files of 4 KiB, hot, 2 CPUs, 2026-11-22: 0.09 s instead of
    /// 0.13 s.
    dawn: Condvar,
    /// There are answers, or room.
    answers: Condvar,
}

struct State {
    batches: VecDeque<Batch>,
    large: Vec<Arc<Large>>,
    answers: BTreeMap<u64, Vec<Summed>>,
    /// Number of the next batch to be added, and of the next to be answered.
    added: u64,
    answered: u64,
    /// Threads that came, and how many of them may be awake.
    entered: u32,
    awake: u32,
    closed: bool,
    /// A thread died.
    broken: bool,
}

/// A thread at work. Where it panics, nobody waits for its answers.
pub(super) struct Watch<'a> {
    queue: &'a Queue,
    index: u32,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.queue.lock();
            (state.broken, state.closed) = (true, true);
            self.queue.work.notify_all();
            self.queue.dawn.notify_all();
            self.queue.answers.notify_all();
        }
    }
}

impl Queue {
    pub(super) fn new(awake: u32) -> Self {
        let state = State {
            batches: VecDeque::new(),
            large: Vec::new(),
            answers: BTreeMap::new(),
            added: 0,
            answered: 0,
            entered: 0,
            awake,
            closed: false,
            broken: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            dawn: Condvar::new(),
            answers: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread comes to work.
    pub(super) fn enter(&self) -> Watch<'_> {
        let mut state = self.lock();
        state.entered += 1;
        Watch { queue: self, index: state.entered - 1 }
    }

    /// What the thread does next; `None` when there is no more.
    pub(super) fn next(&self, watch: &Watch<'_>) -> Option<Job> {
        let mut state = self.lock();
        loop {
            let is_awake = watch.index < state.awake;
            if is_awake {
                state.large.retain(|large| large.has_more());
                if let Some(large) = state.large.first() {
                    return Some(Job::Large(Arc::clone(large)));
                }
                if let Some(batch) = state.batches.pop_front() {
                    return Some(Job::Batch(batch));
                }
            }
            if state.closed {
                return None;
            }
            let bell = if is_awake { &self.work } else { &self.dawn };
            state = bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Threads that may be awake.
    pub(super) fn awake(&self) -> u32 {
        self.lock().awake
    }

    /// Twice as many threads may be awake, up to `most`.
    pub(super) fn wake_more(&self, most: u32) {
        let mut state = self.lock();
        if state.awake < most {
            state.awake = (state.awake * 2).min(most);
            self.dawn.notify_all();
        }
    }

    /// Lets others help with a file.
    pub(super) fn share(&self, large: &Arc<Large>) {
        self.lock().large.push(Arc::clone(large));
        self.work.notify_all();
    }

    /// Whether a batch can be added.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        state.added - state.answered < MAX_BATCHES && !state.answers.contains_key(&state.answered)
    }

    /// Adds a batch; false when there is nothing more.
    pub(super) fn add(&self, entries: &mut impl Iterator<Item = Entry>) -> bool {
        let number = self.lock().added;
        let most = if number < SINGLE_BATCHES { 1 } else { BATCH_FILES };
        // The walk is not held up by the lock, nor the threads by the walk.
        let entries: Vec<Entry> = entries.take(most).collect();
        if entries.is_empty() {
            return false;
        }
        let more = entries.len() == most;
        let mut state = self.lock();
        state.added += 1;
        state.batches.push_back(Batch { number, entries });
        drop(state);
        self.work.notify_one();
        more
    }

    /// Gives in the answers of a batch.
    pub(super) fn finish(&self, batch: &Batch, answers: Vec<Summed>) {
        let mut state = self.lock();
        state.answers.insert(batch.number, answers);
        let is_next = batch.number == state.answered;
        drop(state);
        if is_next {
            self.answers.notify_all();
        }
    }

    /// The answers of the next batch in order; `None` when all are given and there will be no
    /// `more`. While there are more files to come and room for them, the answer may be empty.
    pub(super) fn answers(&self, more: bool) -> Option<Vec<Summed>> {
        let mut state = self.lock();
        loop {
            assert!(!state.broken, "a thread that reads files died");
            let number = state.answered;
            if let Some(answers) = state.answers.remove(&number) {
                state.answered += 1;
                return Some(answers);
            }
            if state.answered == state.added {
                return more.then(Vec::new);
            }
            state = self.answers.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// There will be no more work; what is not begun is dropped.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.batches.clear();
        drop(state);
        self.work.notify_all();
        self.dawn.notify_all();
    }
}
