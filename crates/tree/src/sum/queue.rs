//! What the threads have yet to do, and what they have found, put in order again.
//!
//! Bounded: so many batches are on their way at most, from the walk to the answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::item::{Item, Place};
use crate::lock::lock;

use super::Summed;
use super::large::Large;

/// Batches on their way. Each holds the names of its files: a few hundred KiB in all.
const MAX_BATCHES: u64 = 128;
/// Directories that the files on their way hold open, and a batch more. With those of the walk and a
/// file per thread that is less than the 256 descriptors that some systems give.
const MAX_DIRECTORIES: usize = 64;
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
    pub(super) entries: Vec<Entry>,
    directories: usize,
}

/// What a thread does next.
pub(super) enum Task {
    /// Read these files.
    Batch(Batch),
    /// Help with this one.
    Large(Arc<Large>),
}

/// Work and answers.
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is work, or there will be none.
    work: Condvar,
    /// There are answers, or more threads are wanted.
    answers: Condvar,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    large: Vec<Arc<Large>>,
    answers: BTreeMap<u64, Vec<Summed>>,
    /// Number of the next batch to be added, and of the next to be answered.
    added: u64,
    answered: u64,
    /// Threads that were hired, how many there should be, and how many there may be without a
    /// sign that they wait.
    hired: u32,
    wanted: u32,
    usual: u32,
    /// Directories that batches on their way hold open.
    directories: usize,
    closed: bool,
    /// A thread died.
    broken: bool,
}

/// A thread at work. Where it panics, nobody waits for its answers.
pub(super) struct Watch<'a>(pub(super) &'a Queue);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = lock(&self.0.state);
            (state.broken, state.closed) = (true, true);
            self.0.work.notify_all();
            self.0.answers.notify_all();
        }
    }
}

impl Queue {
    /// Threads that are not held up are worth having up to the `usual` number.
    pub(super) fn new(usual: u32) -> Self {
        let state = State { wanted: 1, usual, ..State::default() };
        Self { state: Mutex::new(state), work: Condvar::new(), answers: Condvar::new() }
    }

    /// What a thread does next; `None` when there is no more.
    pub(super) fn next(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            state.large.retain(|large| large.has_more());
            // All threads should come then, rather than begin with files of their own.
            if let Some(large) = state.large.iter().find(|large| !large.cut.is_serial()) {
                return Some(Task::Large(Arc::clone(large)));
            }
            if let Some(batch) = state.batches.pop_front() {
                return Some(Task::Batch(batch));
            }
            if let Some(large) = state.large.iter().find(|large| large.wants_help()) {
                return Some(Task::Large(Arc::clone(large)));
            }
            if state.closed {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next files to be read, by a thread that is alone.
    pub(super) fn next_batch(&self) -> Option<Batch> {
        lock(&self.state).batches.pop_front()
    }

    /// Threads to be hired now. They count as hired, whether they come or not.
    pub(super) fn to_hire(&self) -> u32 {
        let mut state = lock(&self.state);
        let more = state.wanted.saturating_sub(state.hired);
        state.hired += more;
        more
    }

    /// Threads that share the memory of windows.
    pub(super) fn usual(&self) -> u32 {
        lock(&self.state).usual
    }

    /// Asks for twice as many threads, up to `most`.
    pub(super) fn want_more(&self, most: u32) {
        let mut state = lock(&self.state);
        // Not before those that were asked for are there.
        if state.hired == state.wanted && state.wanted < most {
            state.wanted = (state.wanted * 2).min(most);
            self.answers.notify_all();
        }
    }

    /// Lets others help with a file.
    pub(super) fn share(&self, large: &Arc<Large>) {
        let mut state = lock(&self.state);
        state.large.push(Arc::clone(large));
        state.wanted = state.wanted.max(large.useful(state.usual));
        drop(state);
        self.work.notify_all();
        self.answers.notify_all();
    }

    /// Whether a batch can be added.
    pub(super) fn has_room(&self) -> bool {
        let state = lock(&self.state);
        state.added - state.answered < MAX_BATCHES
            && state.directories < MAX_DIRECTORIES
            && !state.answers.contains_key(&state.answered)
    }

    /// Adds a batch; false when there is nothing more.
    pub(super) fn add(&self, entries: &mut impl Iterator<Item = Entry>) -> bool {
        let number = lock(&self.state).added;
        let most = if number < SINGLE_BATCHES { 1 } else { BATCH_FILES };
        // The walk is not held up by the lock, nor the threads by the walk.
        let entries: Vec<Entry> = entries.take(most).collect();
        if entries.is_empty() {
            return false;
        }
        let more = entries.len() == most;
        let directories = held(&entries);
        let mut state = lock(&self.state);
        state.added += 1;
        state.directories += directories;
        state.batches.push_back(Batch { number, entries, directories });
        let waiting = u32::try_from(state.batches.len()).unwrap_or(u32::MAX);
        state.wanted = state.wanted.max(waiting.min(state.usual));
        drop(state);
        self.work.notify_one();
        more
    }

    /// Gives in the answers of a batch.
    pub(super) fn finish(&self, batch: &Batch, answers: Vec<Summed>) {
        let mut state = lock(&self.state);
        state.directories -= batch.directories;
        state.answers.insert(batch.number, answers);
        let is_next = batch.number == state.answered;
        drop(state);
        if is_next {
            self.answers.notify_all();
        }
    }

    /// The answers of the next batch in order; `None` when all are given and there will be no
    /// `more`. While there are more files to come and room for them, or threads are to be hired, the
    /// answer may be empty.
    pub(super) fn answers(&self, more: bool) -> Option<Vec<Summed>> {
        let mut state = lock(&self.state);
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
            if state.wanted > state.hired {
                return Some(Vec::new());
            }
            state = self.answers.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// There will be no more work; what is not begun is dropped.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.batches.clear();
        drop(state);
        self.work.notify_all();
    }
}

/// Directories that entries hold open; those of one directory lie behind each other.
fn held(entries: &[Entry]) -> usize {
    let directory = |entry: &Entry| match entry {
        Ok(Item { place: Place::In { directory, .. }, .. }) => Some(Arc::as_ptr(directory)),
        _ => None,
    };
    let mut directories: Vec<_> = entries.iter().filter_map(directory).collect();
    directories.dedup();
    directories.len()
}
