//! A large file that several threads copy, range by range, and maybe several processes.
//!
//! Where the page cache holds the source and the target has its room, two threads were nearly twice as
//! fast as one in a probe, though the kernel takes the writes of one file one by one. Another process
//! gets the last half of what nobody has begun with, in one range, and shares that likewise.

mod pace;
mod span;
mod task;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use flatout_io::transfer::{End, Method, Route};
use flatout_sys::{descriptor, page_cache};
use rustix::io::Errno;

use self::span::Span;
pub(in crate::copy) use self::span::{Ranges, halves};
pub(in crate::copy) use self::task::Task;
use super::methods::Pair;
use super::{Content, FileJob, READ, Tally, WRITE, choice, whole_route};
use crate::copy::shared::Abroad;
use crate::copy::{Durability, Refusal};
use crate::file_data::errno_of;
use crate::lock::lock;

/// Bytes that a thread takes at a time. Small, so that all end at one time.
const RANGE_BYTES: u64 = 4 << 20;
/// So long an owner without ranges waits before it looks whether there are some again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The file, and how far it is.
pub struct Large {
    length_bytes: u64,
    task: Task,
    pair: Arc<Pair>,
    /// Ranges that nobody has taken.
    left: Span,
    /// Where the source ended.
    end: AtomicU64,
    /// Accepted, and not yet told to whoever watches the copy.
    moved: AtomicU64,
    failed: AtomicBool,
    /// One thread alone was faster.
    stays_alone: AtomicBool,
    /// What other processes must know to help, if they may.
    pub(in crate::copy) place_abroad: OnceLock<Abroad>,
    /// They could not.
    stays: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Open while the file is copied; no helper holds them longer.
    files: Option<Arc<Files>>,
    helpers: u32,
    /// Ranges that other processes have.
    given: u32,
    /// Ranges that another process could not copy.
    returned: Vec<Ranges>,
    tally: Tally,
    failure: Option<Refusal>,
}

/// Descriptors of our own: those of the job end with it.
#[derive(Debug)]
struct Files {
    source: OwnedFd,
    target: OwnedFd,
    is_written_out: bool,
}

impl Files {
    fn of(job: &FileJob<'_>, pair: &Pair) -> Result<Self, Errno> {
        let copy = |file| rustix::io::fcntl_dupfd_cloexec(file, 3);
        let is_written_out = choice::is_written_out(job, &pair.facts);
        Ok(Self { source: copy(job.source)?, target: copy(job.target)?, is_written_out })
    }
}

/// A thread at work on the file. Where it panics the others do not wait for it.
struct Helper<'a> {
    large: &'a Large,
    files: Option<Arc<Files>>,
    tally: Tally,
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        self.files = None;
        let mut state = lock(&self.large.state);
        state.helpers -= 1;
        state.tally.merge(&self.tally);
        if std::thread::panicking() {
            self.large.failed.store(true, Ordering::Relaxed);
            state.failure.get_or_insert(Refusal::interrupted(READ));
        }
        drop(state);
        self.large.changed.notify_all();
    }
}

/// What came of the ranges that another process had.
#[derive(Debug, Clone)]
pub(in crate::copy) struct Done {
    /// Where the source ended.
    pub(in crate::copy) end: u64,
    /// Bytes by method.
    pub(in crate::copy) tally: Tally,
    pub(in crate::copy) failure: Option<Refusal>,
}

impl Content<'_> {
    /// Has the kernel begin to write a range to storage, if the copy ends only when it is there, or `is_due`:
    /// what else is copied goes on meanwhile.
    fn begin_writing(&self, route: &Route<'_>, is_due: bool) {
        if is_due || self.options.durability == Durability::Durable {
            let Route { target, offset_bytes, length_bytes, .. } = *route;
            let _told_by_syncfs = page_cache::begin_writeback(target, offset_bytes, length_bytes);
        }
    }

    /// Ranges of a file of another process, which may be shared again.
    ///
    /// Errors: nothing was copied.
    pub(in crate::copy) fn part(
        &mut self,
        job: &FileJob<'_>,
        ranges: Ranges,
        method: Method,
        abroad: Abroad,
    ) -> Result<Arc<Large>, Refusal> {
        let pair = self.pair(job)?;
        let files = Files::of(job, &pair).map_err(Refusal::of(READ))?;
        let method = self.read_around(job, &pair, method);
        let large = Large::new(job.facts.st_size as u64, Task::Move(method), pair, (files, ranges));
        let _there_was_none = large.place_abroad.set(abroad);
        Ok(Arc::new(large))
    }
}

/// Copies a file with whoever has nothing to do. Returns where it ended.
pub(super) fn copy(
    content: &mut Content<'_>,
    job: &FileJob<'_>,
    pair: &Arc<Pair>,
    task: Task,
    tally: &mut Tally,
) -> Result<u64, Refusal> {
    let length_bytes = job.facts.st_size as u64;
    let ranges = u32::try_from(length_bytes.div_ceil(RANGE_BYTES)).ok();
    let (Ok(files), Some(ranges)) = (Files::of(job, pair), ranges) else {
        // There are no descriptors for others.
        let moved = content.task(task, whole_route(job, length_bytes), pair, tally)?;
        return Ok(moved.bytes);
    };
    let large = Arc::new(Large::new(length_bytes, task, Arc::clone(pair), (files, (0, ranges))));
    large.share(content, job);
    large.finish(content, job, tally)
}

impl Large {
    fn new(
        length_bytes: u64,
        task: Task,
        pair: Arc<Pair>,
        (files, ranges): (Files, Ranges),
    ) -> Self {
        let state = State { files: Some(Arc::new(files)), ..State::default() };
        Self {
            length_bytes,
            task,
            pair,
            left: Span::new(ranges),
            end: AtomicU64::new(length_bytes),
            moved: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            stays_alone: AtomicBool::new(false),
            place_abroad: OnceLock::new(),
            stays: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Whether there are ranges that nobody has taken.
    pub fn has_more(&self) -> bool {
        let (first, end) = self.left.get();
        first < end && !self.failed.load(Ordering::Relaxed)
    }

    /// How many there are for others.
    pub(in crate::copy) fn remaining(&self) -> u32 {
        let (first, end) = self.left.get();
        let is_offered = self.has_more() && !self.stays_alone.load(Ordering::Relaxed);
        if is_offered { end.saturating_sub(first) } else { 0 }
    }

    /// What other processes must know to help, if they may.
    pub(in crate::copy) fn abroad(&self) -> Option<&Abroad> {
        let may_go = self.method().is_some() && !self.stays.load(Ordering::Relaxed);
        self.place_abroad.get().filter(|_| may_go)
    }

    /// What moves the bytes; `None`: they are compared, which another process does not do.
    pub(in crate::copy) fn method(&self) -> Option<Method> {
        if let Task::Move(method) = self.task { Some(method) } else { None }
    }

    /// Takes the last half of the ranges that nobody has taken, for another process.
    pub(in crate::copy) fn give(&self) -> Option<Ranges> {
        let may_go = self.abroad().is_some() && self.has_more();
        let mut state = lock(&self.state);
        state.files.as_ref().filter(|_| may_go)?;
        let before = self.left.take(|left| halves(left).map(|(stays, _)| stays))?;
        state.given += 1;
        halves(before).map(|(_, goes)| goes)
    }

    /// Ranges that were given away are done; or not at all.
    pub(in crate::copy) fn came_back(&self, ranges: Ranges, done: Option<&Done>) {
        let mut state = lock(&self.state);
        state.given = state.given.saturating_sub(1);
        match done {
            Some(Done { end, tally, failure }) => {
                self.end.fetch_min(*end, Ordering::Relaxed);
                state.tally.merge(tally);
                if let Some(refusal) = failure {
                    self.failed.store(true, Ordering::Relaxed);
                    state.failure.get_or_insert_with(|| refusal.clone());
                }
            }
            None => {
                self.stays.store(true, Ordering::Relaxed);
                state.returned.push(ranges);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ranges of another process are done, as far as they are this one's: what came of them, once.
    pub(in crate::copy) fn completed(&self) -> Option<Done> {
        let mut state = lock(&self.state);
        if state.helpers > 0 || state.given > 0 || self.has_more() || !state.returned.is_empty() {
            return None;
        }
        let files = Arc::into_inner(state.files.take()?)?;
        // Some filesystems tell only now that bytes were lost, and others know of them only now.
        if let Err(error) = descriptor::close(files.target) {
            state.failure.get_or_insert(Refusal::of(WRITE)(errno_of(&error)));
        }
        let State { tally, failure, .. } = &mut *state;
        Some(Done { end: self.end.load(Ordering::Relaxed), tally: *tally, failure: failure.take() })
    }

    fn join(&self) -> Option<Helper<'_>> {
        let mut state = lock(&self.state);
        let files = Some(Arc::clone(state.files.as_ref()?));
        state.helpers += 1;
        Some(Helper { large: self, files, tally: Tally::default() })
    }

    /// Whether another thread has a part of it just now.
    fn is_shared(&self) -> bool {
        lock(&self.state).helpers > 1
    }

    /// The next range, as its place and length.
    fn next(&self) -> Option<(u64, u64)> {
        let first = |(first, end): Ranges| (first < end).then_some((first + 1, end));
        while self.has_more() || self.take_returned() {
            if let Some((first, _)) = self.left.take(first) {
                let offset_bytes = u64::from(first) * RANGE_BYTES;
                let rest_bytes = self.length_bytes.saturating_sub(offset_bytes);
                return Some((offset_bytes, RANGE_BYTES.min(rest_bytes)));
            }
        }
        None
    }

    /// Goes on with ranges that came back as they went.
    fn take_returned(&self) -> bool {
        let mut state = lock(&self.state);
        if self.failed.load(Ordering::Relaxed) {
            state.returned.clear();
        }
        // Nobody else begins others: that is done under the lock.
        let (first, end) = self.left.get();
        let Some(ranges) = state.returned.pop() else { return false };
        if first < end {
            state.returned.push(ranges);
            return true;
        }
        self.left.take(|_| Some(ranges)).is_some()
    }

    /// Takes ranges until there are none for others. `watched` is raised by what was moved; without it
    /// whoever owns the file tells.
    pub fn help(&self, content: &mut Content<'_>, watched: Option<&AtomicU64>) {
        self.work(content, watched, |_| !self.stays_alone.load(Ordering::Relaxed));
    }

    /// Takes ranges until there are none, or `goes_on` says no; it is told what was moved since this began,
    /// by all, as far as this thread tells it.
    fn work(
        &self,
        content: &mut Content<'_>,
        watched: Option<&AtomicU64>,
        mut goes_on: impl FnMut(u64) -> bool,
    ) {
        let Some(mut helper) = self.join() else { return };
        let Some(files) = helper.files.clone() else { return };
        let mut told_bytes = 0;
        while goes_on(told_bytes) {
            let Some((offset_bytes, length_bytes)) = self.next() else { break };
            let route = Route {
                source: files.source.as_fd(),
                target: files.target.as_fd(),
                offset_bytes,
                length_bytes,
                moved: &self.moved,
            };
            let task = match self.task {
                // One reads while the other writes, of which the kernel takes one at a time.
                Task::Move(Method::Splice) if self.is_shared() => Task::Move(Method::Sync),
                task => task,
            };
            let moved = content
                .look()
                .and_then(|()| content.task(task, route, &self.pair, &mut helper.tally));
            match moved {
                Ok(moved) => {
                    if moved.end == End::SourceEnded {
                        self.end.fetch_min(offset_bytes + moved.bytes, Ordering::Relaxed);
                    }
                    content.begin_writing(&route, files.is_written_out);
                }
                Err(refusal) => {
                    self.failed.store(true, Ordering::Relaxed);
                    lock(&self.state).failure.get_or_insert(refusal);
                }
            }
            if let Some(watched) = watched {
                let bytes = self.moved.swap(0, Ordering::Relaxed);
                told_bytes += bytes;
                watched.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        drop(files);
    }

    /// Waits until all that was taken is done; helps meanwhile where other processes have some of it.
    fn finish(
        &self,
        content: &mut Content<'_>,
        job: &FileJob<'_>,
        tally: &mut Tally,
    ) -> Result<u64, Refusal> {
        let mut state = lock(&self.state);
        while state.helpers > 0 || state.given > 0 || !state.returned.is_empty() {
            match job.meanwhile.filter(|_| state.given > 0 || !state.returned.is_empty()) {
                Some(meanwhile) => {
                    drop(state);
                    self.help(content, Some(job.moved));
                    // Whoever was to copy the rest is not waited for when the user wants to stop.
                    if !meanwhile(content) {
                        self.failed.store(true, Ordering::Relaxed);
                        let mut state = lock(&self.state);
                        (state.given, state.files) = (0, None);
                        state.returned.clear();
                        state.failure.get_or_insert(Refusal::interrupted(READ));
                    }
                    state = lock(&self.state);
                }
                None => {
                    let waited = self.changed.wait_timeout(state, LOOK_EVERY);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        state.files = None;
        job.moved.fetch_add(self.moved.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        tally.merge(&state.tally);
        match state.failure.take() {
            Some(refusal) => Err(refusal),
            None => Ok(self.end.load(Ordering::Relaxed)),
        }
    }
}
