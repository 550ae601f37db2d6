//! A large file that the page cache holds, digested by several threads segment by segment.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use flatout_io::digest::{Cut, Digest, Fold, Part};
use flatout_io::transfer::read_full;
use flatout_sys::mapping::Window;
use rustix::io::Errno;

use super::Failure;
use super::opened::cannot;
use super::reader::Reader;
use crate::file_data::next_extent;
use crate::lock::lock;

/// Parts that may wait for one before them: a thread that was held up holds the others up then,
/// and not their memory.
const MAX_WAITING: usize = 8;

/// Threads that a digest keeps busy which goes from front to end: one digests, one reads.
const SERIAL_THREADS: u32 = 2;

/// The file, and how far it is.
pub(super) struct Large {
    /// The name under which it is shown.
    shown: OsString,
    pub(super) file: OwnedFd,
    pub(super) cut: Cut,
    /// Whether it may have holes, and the filesystem shows where.
    has_holes: bool,
    fold: Mutex<Progress>,
    moved: Condvar,
}

#[derive(Default)]
struct Progress {
    /// The first segment that nobody has taken.
    next: u64,
    /// None while a thread joins parts, and at the end.
    fold: Option<Fold>,
    /// Parts that the fold has not seen.
    parts: VecDeque<(u64, Part)>,
    /// Parts that were handed in and are not joined.
    waiting: usize,
    /// Buffers of a serial digest, to be filled again: new memory costs a fault for each page.
    spare: Vec<Vec<u8>>,
    failure: Option<Failure>,
    /// Threads at work on a segment.
    helpers: u32,
}

impl Progress {
    /// Nobody takes segments any more.
    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.next = u64::MAX;
    }
}

/// A thread at work on the file. Where it panics the others do not wait for it.
struct Helper<'a>(&'a Large);

impl<'a> Helper<'a> {
    fn join(large: &'a Large) -> Self {
        lock(&large.fold).helpers += 1;
        Self(large)
    }
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        let mut progress = lock(&self.0.fold);
        progress.helpers -= 1;
        if std::thread::panicking() {
            progress.fail(Failure::Interrupted);
        }
        drop(progress);
        self.0.moved.notify_all();
    }
}

impl Large {
    pub(super) fn new(shown: &OsStr, file: OwnedFd, cut: Cut, has_holes: bool) -> Self {
        let progress = Progress { fold: Some(Fold::new(&cut)), ..Progress::default() };
        let (fold, moved, shown) = (Mutex::new(progress), Condvar::default(), shown.to_owned());
        Self { shown, file, cut, has_holes, fold, moved }
    }

    /// How many threads of so many have use for it: where parts are joined in order, one has them
    /// ready for the other.
    pub(super) fn useful(&self, threads: u32) -> u32 {
        if self.cut.is_serial() { threads.min(SERIAL_THREADS) } else { threads }
    }

    /// Whether a thread that has nothing else to do finds something here.
    pub(super) fn wants_help(&self) -> bool {
        let progress = lock(&self.fold);
        progress.next < self.cut.segments() && progress.helpers < self.useful(u32::MAX)
    }

    /// Whether there are segments that nobody has taken.
    pub(super) fn has_more(&self) -> bool {
        lock(&self.fold).next < self.cut.segments()
    }

    fn next(&self) -> Option<u64> {
        let next = &mut lock(&self.fold).next;
        let index = *next;
        (index < self.cut.segments()).then(|| {
            *next += 1;
            index
        })
    }

    /// Takes segments until there are none.
    pub(super) fn help(&self, reader: &mut Reader<'_>) {
        let _helper = Helper::join(self);
        while let Some(index) = self.next() {
            let part = if reader.is_cancelled() {
                Err(Failure::Interrupted)
            } else {
                self.part(index, reader)
            };
            self.hand_in(index, part);
        }
    }

    /// Waits until all that was taken is handed in, and closes the file.
    pub(super) fn finish(&self) -> Result<Digest, Failure> {
        let mut progress = lock(&self.fold);
        let is_done = |progress: &Progress| {
            let joined = progress.fold.as_ref().is_some_and(Fold::is_whole);
            progress.helpers == 0 && (joined || progress.failure.is_some())
        };
        while !is_done(&progress) {
            progress = self.moved.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        match (progress.failure.take(), progress.fold.take()) {
            (None, Some(fold)) => Ok(fold.finish()),
            (failure, _) => Err(failure.unwrap_or(Failure::Interrupted)),
        }
    }

    fn hand_in(&self, index: u64, part: Result<Part, Failure>) {
        let mut progress = lock(&self.fold);
        match part {
            Err(failure) => progress.fail(failure),
            Ok(part) => {
                progress.parts.push_back((index, part));
                progress.waiting += 1;
                progress = self.join(progress);
            }
        }
        self.moved.notify_all();
        while progress.waiting > MAX_WAITING && progress.failure.is_none() {
            progress = self.moved.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Joins what is there, unless another thread does so: nobody holds the lock meanwhile, so that a
    /// digest from front to end is worked out by one thread while others read.
    fn join<'p>(&'p self, mut progress: MutexGuard<'p, Progress>) -> MutexGuard<'p, Progress> {
        let Some(mut fold) = progress.fold.take() else { return progress };
        while let Some((index, part)) = progress.parts.pop_front() {
            drop(progress);
            fold.take(index, part);
            progress = lock(&self.fold);
            progress.spare.extend(fold.spent());
            let waiting = progress.parts.len() + fold.waiting();
            let before = std::mem::replace(&mut progress.waiting, waiting);
            // Who waits is woken for several segments at once.
            if before > MAX_WAITING / 2 && waiting <= MAX_WAITING / 2 {
                self.moved.notify_all();
            }
        }
        progress.fold = Some(fold);
        progress
    }

    /// Maps a segment; reads it where it has a hole (tmpfs would fill a mapped one) or its bytes are wanted.
    fn part(&self, index: u64, reader: &mut Reader<'_>) -> Result<Part, Failure> {
        let (offset, length) = self.cut.segment(index);
        let whole = Some((offset, offset + length as u64));
        let told = || next_extent(self.file.as_fd(), offset, offset + length as u64);
        let data = if self.has_holes { told().unwrap_or(whole) } else { whole };
        // Behind the end of a file that was cut short there are no data either.
        let is_cut = |facts: rustix::fs::Stat| (facts.st_size as u64) < self.cut.length_bytes;
        if data.is_none() && rustix::fs::fstat(&self.file).is_ok_and(is_cut) {
            return Err(Failure::Changed { shown: self.shown.clone() });
        }
        if data.is_none() && !self.cut.is_serial() {
            return Ok(reader.cutter.part_of_zeros(&self.cut, index));
        }
        let _permit = reader.sum.windows.take();
        if data == whole
            && !self.cut.is_serial()
            && let Ok(window) = Window::map(self.file.as_fd(), offset, length)
        {
            let part = reader.cutter.part(&self.cut, index, window.view(offset, length));
            if !window.was_cut_short() {
                return Ok(part);
            }
        }
        // A page that is not there, or that the device cannot read: read(2) says which.
        let mut bytes = lock(&self.fold).spare.pop().unwrap_or_default();
        if data.is_none() {
            bytes.clear();
        }
        bytes.resize(length, 0);
        match data.map_or(Ok(length), |_| read_full(self.file.as_fd(), &mut bytes, offset)) {
            Ok(got) if got < length => return Err(Failure::Changed { shown: self.shown.clone() }),
            Ok(_) => {}
            Err(Errno::INTR) if reader.is_cancelled() => return Err(Failure::Interrupted),
            Err(errno) => return Err(cannot("read", &self.shown, errno)),
        }
        Ok(reader.cutter.part_of(&self.cut, index, bytes))
    }
}
