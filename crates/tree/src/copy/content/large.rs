//! A large file that several threads copy, range by range, and maybe several processes.
//!
//! Where the page cache holds the source and the target has its room, two threads were nearly twice as
//! fast as one in a probe, though the kernel takes the writes of one file one by one. Another process
//! gets the last half of what nobody has begun with, in one range, and shares that likewise.

mod pace;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use flatout_io::transfer::{End, Method, Route};
use flatout_sys::{descriptor, page_cache::begin_writeback};
use rustix::io::Errno;

use super::methods::Pair;
use super::range::Task;
use super::{Content, FileJob, READ, Tally, WRITE, whole_route};
use crate::copy::Refusal;
use crate::copy::shared::Abroad;
use crate::file_data::errno_of;
use crate::lock::lock;

/// Bytes that a thread takes at a time. Small, so that all end at one time.
const RANGE_BYTES: u64 = 4 << 20;
/// So long an owner without ranges waits before it looks whether there are some again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Ranges of a file: the first one, and the one behind the last.
pub(in crate::copy) type Ranges = (u32, u32);

/// The half that stays, and the last one, which goes; `None`: there is too little.
pub(in crate::copy) fn halves((first, end): Ranges) -> Option<(Ranges, Ranges)> {
    let middle = first + end.saturating_sub(first).div_ceil(2);
    (middle < end).then_some(((first, middle), (middle, end)))
}

/// The file, and how far it is.
pub struct Large {
    length_bytes: u64,
    task: Task,
    pair: Arc<Pair>,
    /// Accepted, and not yet told to whoever watches the copy.
    moved: AtomicU64,
    /// What other processes must know to help, if they may.
    pub(in crate::copy) place_abroad: OnceLock<Abroad>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Open while the file is copied; no helper holds them longer.
    files: Option<Arc<Files>>,
    helpers: u32,
    /// Ranges that nobody has taken.
    left: Ranges,
    /// Ranges that other processes have.
    given: u32,
    /// Ranges that another process could not copy.
    returned: Vec<Ranges>,
    /// One thread alone was faster.
    stays_alone: bool,
    /// Other processes could not help.
    stays: bool,
    /// Where the source ended.
    end: u64,
    tally: Tally,
    failure: Option<Refusal>,
}

impl State {
    fn has_more(&self) -> bool {
        self.left.0 < self.left.1
    }

    /// The next range, of those first that never went away.
    fn next(&mut self) -> Option<u32> {
        while !self.has_more() {
            self.left = self.returned.pop()?;
        }
        let first = self.left.0;
        self.left.0 += 1;
        Some(first)
    }

    /// The source ends there. Where a server told too much there may be millions of ranges behind it, and
    /// nothing in them.
    fn ends_at(&mut self, place: u64) {
        self.end = self.end.min(place);
        let behind = u32::try_from(self.end.div_ceil(RANGE_BYTES)).unwrap_or(u32::MAX);
        self.left.1 = self.left.1.min(behind);
        self.returned.iter_mut().for_each(|ranges| ranges.1 = ranges.1.min(behind));
    }

    /// Lets the files go. Some filesystems tell only now that bytes were lost, and only at the first close;
    /// others know of them only now.
    fn close(&mut self) {
        let files = self.files.take().and_then(Arc::into_inner);
        if let Some(Err(error)) = files.map(|files| descriptor::close(files.target)) {
            self.failure.get_or_insert(Refusal::of(WRITE)(errno_of(&error)));
        }
    }

    /// Nobody takes ranges any more.
    fn fail(&mut self, refusal: Refusal) {
        self.failure.get_or_insert(refusal);
        self.left = (0, 0);
        self.returned.clear();
    }
}

/// Descriptors of our own: those of the job end with it.
#[derive(Debug)]
struct Files {
    source: OwnedFd,
    target: OwnedFd,
    is_written_out: bool,
}

impl Files {
    fn of(job: &FileJob<'_>) -> Result<Self, Errno> {
        let copy = |file| rustix::io::fcntl_dupfd_cloexec(file, 3);
        let (source, target) = (copy(job.source)?, copy(job.target)?);
        Ok(Self { source, target, is_written_out: job.is_written_out })
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
            state.fail(Refusal::interrupted(READ));
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
        let files = Files::of(job).map_err(Refusal::of(READ))?;
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
    let (Ok(files), Some(ranges)) = (Files::of(job), ranges) else {
        // There are no descriptors for others.
        let moved = content.task(task, whole_route(job, length_bytes), pair, tally)?;
        return Ok(moved.bytes);
    };
    let large = Arc::new(Large::new(length_bytes, task, Arc::clone(pair), (files, (0, ranges))));
    large.share(content, job);
    large.finish(content, job, tally)
}

impl Large {
    fn new(length_bytes: u64, task: Task, pair: Arc<Pair>, (files, left): (Files, Ranges)) -> Self {
        let files = Some(Arc::new(files));
        let state = State { files, left, end: length_bytes, ..State::default() };
        Self {
            length_bytes,
            task,
            pair,
            moved: AtomicU64::new(0),
            place_abroad: OnceLock::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Whether there are ranges that nobody has taken.
    pub fn has_more(&self) -> bool {
        lock(&self.state).has_more()
    }

    /// How many there are for others.
    pub(in crate::copy) fn remaining(&self) -> u32 {
        let state = lock(&self.state);
        if state.stays_alone { 0 } else { state.left.1.saturating_sub(state.left.0) }
    }

    /// What other processes must know to help, if they may.
    pub(in crate::copy) fn abroad(&self) -> Option<&Abroad> {
        let may_go = self.method().is_some() && !lock(&self.state).stays;
        self.place_abroad.get().filter(|_| may_go)
    }

    /// What moves the bytes; `None`: they are compared, which another process does not do.
    pub(in crate::copy) fn method(&self) -> Option<Method> {
        if let Task::Move(method) = self.task { Some(method) } else { None }
    }

    /// Takes the last half of the ranges that nobody has taken, for another process.
    pub(in crate::copy) fn give(&self) -> Option<Ranges> {
        self.abroad()?;
        let mut state = lock(&self.state);
        state.files.as_ref()?;
        let (stays, goes) = halves(state.left)?;
        state.left = stays;
        state.given += 1;
        Some(goes)
    }

    /// Ranges that were given away are done; or not at all.
    pub(in crate::copy) fn came_back(&self, ranges: Ranges, done: Option<&Done>) {
        let mut state = lock(&self.state);
        state.given = state.given.saturating_sub(1);
        match done {
            Some(Done { end, tally, failure }) => {
                state.ends_at(*end);
                state.tally.merge(tally);
                if let Some(refusal) = failure {
                    state.fail(refusal.clone());
                }
            }
            None => {
                state.stays = true;
                if state.failure.is_none() {
                    state.returned.push(ranges);
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ranges of another process are done, as far as they are this one's: what came of them, once.
    pub(in crate::copy) fn completed(&self) -> Option<Done> {
        let mut state = lock(&self.state);
        if state.helpers > 0 || state.given > 0 || state.has_more() || !state.returned.is_empty() {
            return None;
        }
        state.files.as_ref()?;
        state.close();
        Some(Done { end: state.end, tally: state.tally, failure: state.failure.take() })
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
        let offset_bytes = u64::from(lock(&self.state).next()?) * RANGE_BYTES;
        let rest_bytes = self.length_bytes.saturating_sub(offset_bytes);
        Some((offset_bytes, RANGE_BYTES.min(rest_bytes)))
    }

    /// Takes ranges until there are none for others. `watched` is raised by what was moved; without it
    /// whoever owns the file tells.
    pub fn help(&self, content: &mut Content<'_>, watched: Option<&AtomicU64>) {
        self.work(content, watched, |_| !lock(&self.state).stays_alone);
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
                        lock(&self.state).ends_at(offset_bytes + moved.bytes);
                    }
                    // What else is copied goes on meanwhile.
                    if files.is_written_out {
                        let _told_later = begin_writeback(route.target, offset_bytes, length_bytes);
                    }
                }
                Err(refusal) => lock(&self.state).fail(refusal),
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
                        let mut state = lock(&self.state);
                        (state.given, state.files) = (0, None);
                        state.fail(Refusal::interrupted(READ));
                    }
                    state = lock(&self.state);
                }
                None => {
                    let waited = self.changed.wait_timeout(state, LOOK_EVERY);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        state.close();
        job.moved.fetch_add(self.moved.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        tally.merge(&state.tally);
        match state.failure.take() {
            Some(refusal) => Err(refusal),
            None => Ok(state.end),
        }
    }
}
