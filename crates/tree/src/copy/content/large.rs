//! A large file that several threads copy, range by range.
//!
//! Where the page cache holds the source and the target has its room, two threads were nearly twice as
//! fast as one in a probe, though the kernel takes the writes of one file one by one.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use flatout_io::transfer::{End, Method, Route};
use flatout_sys::page_cache;
use rustix::io::Errno;

use super::methods::Pair;
use super::{Content, FileJob, INTERRUPTED, READ, Tally, whole_route};
use crate::copy::failure::Refusal;
use crate::copy::options::Durability;
use crate::lock::lock;

/// Bytes that a thread takes at a time. Small, so that all end at one time.
const RANGE_BYTES: u64 = 4 << 20;

/// The file, and how far it is.
#[derive(Debug)]
pub struct Large {
    length_bytes: u64,
    method: Method,
    pair: Arc<Pair>,
    next: AtomicU64,
    /// Where the source ended.
    end: AtomicU64,
    /// Accepted, and not yet told to whoever watches the copy.
    moved: AtomicU64,
    failed: AtomicBool,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug)]
struct State {
    /// Open while the file is copied; no helper holds them longer.
    files: Option<Arc<Files>>,
    helpers: u32,
    tally: Tally,
    failure: Option<Refusal>,
}

/// Descriptors of our own: those of the job end with it.
#[derive(Debug)]
struct Files {
    source: OwnedFd,
    target: OwnedFd,
}

impl Files {
    fn of(job: &FileJob<'_>) -> Result<Self, Errno> {
        let copy = |file| rustix::io::fcntl_dupfd_cloexec(file, 3);
        Ok(Self { source: copy(job.source)?, target: copy(job.target)? })
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
            state.failure.get_or_insert(Refusal::because(READ, INTERRUPTED));
        }
        drop(state);
        self.large.left.notify_all();
    }
}

impl Content<'_> {
    /// Has the kernel begin to write a range to storage, if the copy ends only when it is there: what
    /// else is copied goes on meanwhile.
    fn begin_writing(&self, route: &Route<'_>) {
        if self.options.durability == Durability::Durable {
            let Route { target, offset_bytes, length_bytes, .. } = *route;
            let _told_by_syncfs = page_cache::begin_writeback(target, offset_bytes, length_bytes);
        }
    }
}

/// Copies a file with whoever has nothing to do. Returns where it ended.
pub(super) fn copy(
    content: &mut Content<'_>,
    job: &FileJob<'_>,
    pair: &Arc<Pair>,
    method: Method,
    tally: &mut Tally,
) -> Result<u64, Refusal> {
    let length_bytes = job.facts.st_size as u64;
    let Ok(files) = Files::of(job) else {
        // There are no descriptors for others.
        let moved = content.range(whole_route(job, length_bytes), method, pair, tally)?;
        return Ok(moved.bytes);
    };
    let state =
        State { files: Some(Arc::new(files)), helpers: 0, tally: Tally::default(), failure: None };
    let large = Arc::new(Large {
        length_bytes,
        method,
        pair: Arc::clone(pair),
        next: AtomicU64::new(0),
        end: AtomicU64::new(length_bytes),
        moved: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        state: Mutex::new(state),
        left: Condvar::new(),
    });
    (job.share)(Arc::clone(&large));
    large.work(content, Some(job.moved));
    large.finish(job.moved, tally)
}

impl Large {
    /// Whether there are ranges that nobody has taken.
    pub fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.length_bytes
            && !self.failed.load(Ordering::Relaxed)
    }

    /// Takes ranges until there are none.
    pub fn help(&self, content: &mut Content<'_>) {
        self.work(content, None);
    }

    fn join(&self) -> Option<Helper<'_>> {
        let mut state = lock(&self.state);
        let files = Some(Arc::clone(state.files.as_ref()?));
        state.helpers += 1;
        Some(Helper { large: self, files, tally: Tally::default() })
    }

    fn work(&self, content: &mut Content<'_>, watched: Option<&AtomicU64>) {
        let Some(mut helper) = self.join() else { return };
        let Some(files) = helper.files.clone() else { return };
        while self.has_more() {
            let offset_bytes = self.next.fetch_add(RANGE_BYTES, Ordering::Relaxed);
            if offset_bytes >= self.length_bytes {
                break;
            }
            let route = Route {
                source: files.source.as_fd(),
                target: files.target.as_fd(),
                offset_bytes,
                length_bytes: RANGE_BYTES.min(self.length_bytes - offset_bytes),
                moved: &self.moved,
            };
            let moved = content
                .look()
                .and_then(|()| content.range(route, self.method, &self.pair, &mut helper.tally));
            match moved {
                Ok(moved) => {
                    if moved.end == End::SourceEnded {
                        self.end.fetch_min(offset_bytes + moved.bytes, Ordering::Relaxed);
                    }
                    content.begin_writing(&route);
                }
                Err(refusal) => {
                    self.failed.store(true, Ordering::Relaxed);
                    lock(&self.state).failure.get_or_insert(refusal);
                }
            }
            if let Some(watched) = watched {
                watched.fetch_add(self.moved.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        drop(files);
    }

    /// Waits until all that was taken is done.
    fn finish(&self, watched: &AtomicU64, tally: &mut Tally) -> Result<u64, Refusal> {
        let mut state = lock(&self.state);
        state.files = None;
        while state.helpers > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        watched.fetch_add(self.moved.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        tally.merge(&state.tally);
        match state.failure.take() {
            Some(refusal) => Err(refusal),
            None => Ok(self.end.load(Ordering::Relaxed)),
        }
    }
}
