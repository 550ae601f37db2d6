//! Operations: requests are submitted and reaped, with timestamps, into a sink.
//!
//! A [`Workload`] says what comes next and when, fills what is to be written and is told what was
//! done; an engine keeps its requests in flight. Read next: [`Operations::run`], then the two
//! loops, `operations/blocking.rs` and `operations/ringed.rs`.

mod blocking;
mod progress;
mod ringed;

pub(crate) use blocking::perform;
pub(crate) use ringed::run as run_ring;

use std::io;
use std::os::fd::BorrowedFd;

use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::ring::{self, Ring};
use rustix::io::{Errno, ReadWriteFlags};

use crate::around::DONTCACHE;
use crate::fallback::Fallback;
use crate::stop::Stop;
use crate::tuning::{Caching, Engine, Tuning};

pub use flatout_sys::ring::Direction;

/// Longest wait before the wish to stop is looked at again, while nothing is in flight.
const NAP_NS: u64 = 50_000_000;
/// The kernel lets a sleeper wake this much late (timer slack, 50 µs by default) or later; the rest
/// of the time before a request is due is spent looking at the clock.
const SPIN_NS: u64 = 100_000;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Direction.
    pub direction: Direction,
    /// Which of the engine's files, from 0 on.
    pub file: u32,
    /// Where in the file.
    pub offset_bytes: u64,
    /// How much; at most the slot size of the engine.
    pub length_bytes: usize,
    /// When it shall begin, by the monotonic clock; 0 as soon as there is room.
    pub due_ns: u64,
}

impl Request {
    /// Reads from the first file as soon as there is room.
    pub fn read(offset_bytes: u64, length_bytes: usize) -> Self {
        Self { direction: Direction::Read, file: 0, offset_bytes, length_bytes, due_ns: 0 }
    }

    /// Writes to the first file as soon as there is room.
    pub fn write(offset_bytes: u64, length_bytes: usize) -> Self {
        Self { direction: Direction::Write, ..Self::read(offset_bytes, length_bytes) }
    }
}

/// A request that has ended.
#[derive(Debug)]
pub struct Done<'a> {
    /// The request.
    pub request: Request,
    /// Bytes moved (fewer than asked only at the end of a file, or where a wish to stop cut a
    /// request that the kernel had put off), or what went wrong.
    pub result: io::Result<usize>,
    /// When it was handed over; 0 without timestamps.
    pub submitted_ns: u64,
    /// When its end was seen; 0 without timestamps.
    pub completed_ns: u64,
    /// What was read or written.
    pub bytes: &'a [u8],
}

/// What follows a request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The next request of the workload, whatever it is.
    Next,
    /// This one, which uses the bytes as they are now: [`Workload::fill`] is not asked.
    Then(Request),
    /// Nothing: the run ends once what is in flight has ended.
    End,
}

/// What is to be done, and the sink for what was done.
pub trait Workload {
    /// The next request; `None` when there is none as long as those in flight have not ended, of
    /// which the last one ends the run.
    fn next(&mut self) -> Option<Request>;
    /// Fills the bytes of a write before it is submitted. They still hold what the slot held
    /// last.
    fn fill(&mut self, request: &Request, bytes: &mut [u8]);
    /// Takes a request that has ended, and says what follows it.
    fn done(&mut self, done: Done<'_>) -> After;
}

/// Whether each request is timed. Cost: two clock readings per batch, when it is handed over and
/// when its end is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// Each request gets its two times.
    Each,
    /// Times are 0.
    None,
}

impl Timestamps {
    fn now(self) -> u64 {
        if self == Self::Each { monotonic_ns() } else { 0 }
    }
}

/// What each request asks of the kernel beside moving bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// How the page cache takes part; direct is a property of the descriptor.
    pub caching: Caching,
    /// When a write counts as done.
    pub completion: Completion,
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// When the kernel has the bytes.
    Accepted,
    /// When they are durable: `RWF_DSYNC`.
    Durable,
}

impl Access {
    /// Through the page cache, done when the kernel has the bytes.
    pub const BUFFERED: Self =
        Self { caching: Caching::Buffered, completion: Completion::Accepted };

    fn flags(self, direction: Direction) -> ReadWriteFlags {
        let mut flags = ReadWriteFlags::empty();
        if self.caching == Caching::Dontcache {
            flags |= DONTCACHE;
        }
        if self.completion == Completion::Durable && direction == Direction::Write {
            flags |= ReadWriteFlags::DSYNC;
        }
        flags
    }
}

/// An engine with its buffers, ready to run on its files.
pub struct Operations<'a> {
    files: Vec<BorrowedFd<'a>>,
    access: Access,
    engine: Prepared,
}

enum Prepared {
    /// Of no files: it answers at once that all was moved.
    Sync(AlignedBuffer),
    Uring(Box<Ring>),
}

impl<'a> Operations<'a> {
    /// One request at a time, by pread(2) and pwrite(2).
    pub fn sync(files: &[BorrowedFd<'a>], access: Access, slot_bytes: usize) -> io::Result<Self> {
        let engine = Prepared::Sync(AlignedBuffer::new(slot_bytes)?);
        Ok(Self { files: files.to_vec(), access, engine })
    }

    /// `depth` requests at a time, by io_uring.
    ///
    /// Errors: those of [`Ring::new`]; `EPERM` and `ENOSYS` say that there is no ring here, see
    /// [`ring::refusal`].
    pub fn uring(
        files: &[BorrowedFd<'a>],
        access: Access,
        slot_bytes: usize,
        depth: u32,
    ) -> io::Result<Self> {
        let ring = Ring::new(files, depth, slot_bytes)?;
        Ok(Self { files: files.to_vec(), access, engine: Prepared::Uring(Box::new(ring)) })
    }

    /// The engine of `tuning`, with its buffers; one without requests (mmap) becomes sync. So does a
    /// ring that is refused, and the fallback says why.
    ///
    /// Errors: no memory for the buffers.
    pub fn prepare(
        files: &[BorrowedFd<'a>],
        access: Access,
        tuning: &Tuning,
    ) -> io::Result<(Self, Option<Fallback>)> {
        let slot_bytes = tuning.block_bytes as usize;
        if tuning.engine != Engine::Uring {
            return Ok((Self::sync(files, access, slot_bytes)?, None));
        }
        match Self::uring(files, access, slot_bytes, tuning.depth) {
            Ok(operations) => Ok((operations, None)),
            Err(error) => {
                let Some(why) = uring_refusal(&error) else { return Err(error) };
                let instead = "one request at a time by sync";
                let fallback = Fallback::new("uring_refused", "io_uring", why, instead);
                Ok((Self::sync(files, access, slot_bytes)?, Some(fallback)))
            }
        }
    }

    /// Moves nothing and says that it did: what a run costs then is the harness's own share.
    pub fn null(slot_bytes: usize) -> io::Result<Self> {
        Self::sync(&[], Access::BUFFERED, slot_bytes)
    }

    /// How the kernel is asked.
    pub fn engine(&self) -> Engine {
        match self.engine {
            Prepared::Sync(_) => Engine::Sync,
            Prepared::Uring(_) => Engine::Uring,
        }
    }

    /// Hands each buffer of the engine out once, so that what a workload writes need not be made
    /// while it runs.
    pub fn prime(&mut self, mut fill: impl FnMut(&mut [u8])) {
        match &mut self.engine {
            Prepared::Sync(buffer) => fill(buffer.as_mut_slice()),
            Prepared::Uring(ring) => (0..ring.depth()).for_each(|slot| fill(ring.bytes_mut(slot))),
        }
    }

    /// Runs until the workload has no more requests, its sink ends the run, or the stop is due.
    /// Requests in flight are always waited for and handed to the sink.
    ///
    /// Errors: those of io_uring_enter(2). What goes wrong with a request is the sink's to judge.
    pub fn run(
        &mut self,
        workload: &mut impl Workload,
        timestamps: Timestamps,
        stop: &mut Stop,
    ) -> io::Result<()> {
        let Self { files, access, engine } = self;
        match engine {
            Prepared::Sync(buffer) => {
                blocking::run(buffer, workload, timestamps, stop, |request, bytes, stop| {
                    if files.is_empty() {
                        return Ok(request.length_bytes);
                    }
                    let file = files[request.file as usize];
                    perform(file, *access, request, bytes, stop)
                });
                Ok(())
            }
            Prepared::Uring(ring) => ringed::run(ring, *access, workload, timestamps, stop),
        }
    }
}

/// Why `error` means that there is no io_uring here; `None` when it means something else.
pub fn uring_refusal(error: &io::Error) -> Option<String> {
    let refused = matches!(
        Errno::from_io_error(error),
        Some(Errno::PERM | Errno::NOSYS | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOMEM)
    );
    refused.then(|| ring::refusal(error))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use flatout_sys::cancel::CancelToken;

    use super::*;

    /// Writes each block of a range, then remembers what came back.
    struct Blocks {
        direction: Direction,
        next: u64,
        end: u64,
        seen: Vec<(u64, usize)>,
        sum: u64,
    }

    impl Workload for Blocks {
        fn next(&mut self) -> Option<Request> {
            let offset_bytes = self.next;
            (offset_bytes < self.end).then(|| {
                self.next += 1000;
                Request { direction: self.direction, ..Request::read(offset_bytes, 1000) }
            })
        }

        fn fill(&mut self, request: &Request, bytes: &mut [u8]) {
            bytes.fill((request.offset_bytes / 1000) as u8);
        }

        fn done(&mut self, done: Done<'_>) -> After {
            let moved = done.result.unwrap();
            assert!(done.completed_ns >= done.submitted_ns && done.submitted_ns > 0);
            self.seen.push((done.request.offset_bytes, moved));
            self.sum += done.bytes[..moved].iter().map(|&byte| u64::from(byte)).sum::<u64>();
            After::Next
        }
    }

    fn blocks(direction: Direction, end: u64) -> Blocks {
        Blocks { direction, next: 0, end, seen: Vec::new(), sum: 0 }
    }

    #[test]
    fn every_engine_does_each_request_once() {
        let expected: u64 = (0..50).map(|block| block * 1000).sum();
        for depth in [0, 1, 7, 64] {
            let file = tempfile::tempfile().unwrap();
            let made = |file| match depth {
                0 => Operations::sync(&[file], Access::BUFFERED, 1000),
                _ => Operations::uring(&[file], Access::BUFFERED, 1000, depth),
            };
            let mut engine = match made(file.as_fd()) {
                Ok(engine) => engine,
                Err(error) if uring_refusal(&error).is_some() => continue,
                Err(error) => panic!("{error}"),
            };
            for direction in [Direction::Write, Direction::Read] {
                let mut work = blocks(direction, 50_000);
                engine.run(&mut work, Timestamps::Each, &mut Stop::never()).unwrap();
                work.seen.sort_unstable();
                let offsets: Vec<_> = (0..50).map(|block| (block * 1000, 1000)).collect();
                assert_eq!(work.seen, offsets, "depth {depth}");
                assert_eq!(work.sum, expected, "depth {depth}, {direction:?}");
            }
            let mut beyond = blocks(Direction::Read, 53_000);
            engine.run(&mut beyond, Timestamps::Each, &mut Stop::never()).unwrap();
            assert_eq!(beyond.seen.iter().map(|seen| seen.1).sum::<usize>(), 50_000);
        }
    }

    /// Reads each block of the first file and writes what it read to the second.
    struct Copy {
        next: u64,
        end: u64,
        written: u64,
    }

    impl Workload for Copy {
        fn next(&mut self) -> Option<Request> {
            let offset_bytes = self.next;
            (offset_bytes < self.end).then(|| {
                self.next += 1000;
                Request::read(offset_bytes, 1000)
            })
        }

        fn fill(&mut self, _: &Request, _: &mut [u8]) {
            panic!("what was read is written as it is");
        }

        fn done(&mut self, done: Done<'_>) -> After {
            let moved = done.result.unwrap();
            match done.request.direction {
                Direction::Read => After::Then(Request {
                    file: 1,
                    ..Request::write(done.request.offset_bytes, moved)
                }),
                Direction::Write => {
                    self.written += moved as u64;
                    After::Next
                }
            }
        }
    }

    #[test]
    fn a_request_may_be_followed_by_another_on_the_same_bytes() {
        use std::io::{Read, Seek, Write};
        let bytes: Vec<u8> = (0..50_000_u32).map(|i| (i / 7) as u8).collect();
        for depth in [0, 1, 7] {
            let (mut source, mut target) =
                (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            source.write_all(&bytes).unwrap();
            let files = [source.as_fd(), target.as_fd()];
            let mut engine = match depth {
                0 => Operations::sync(&files, Access::BUFFERED, 1000).unwrap(),
                _ => match Operations::uring(&files, Access::BUFFERED, 1000, depth) {
                    Ok(engine) => engine,
                    Err(_) => continue,
                },
            };
            let mut copy = Copy { next: 0, end: 50_000, written: 0 };
            engine.run(&mut copy, Timestamps::None, &mut Stop::never()).unwrap();
            assert_eq!(copy.written, 50_000);
            let mut copied = Vec::new();
            target.rewind().unwrap();
            target.read_to_end(&mut copied).unwrap();
            assert!(copied == bytes, "depth {depth}");
        }
    }

    /// Reads the same block at given times.
    struct Paced {
        due_ns: Vec<u64>,
        begun: usize,
        early: usize,
        ended: usize,
    }

    impl Workload for Paced {
        fn next(&mut self) -> Option<Request> {
            let due_ns = *self.due_ns.get(self.begun)?;
            self.begun += 1;
            Some(Request { due_ns, ..Request::read(0, 1000) })
        }

        fn fill(&mut self, _: &Request, _: &mut [u8]) {}

        fn done(&mut self, done: Done<'_>) -> After {
            self.early += usize::from(done.submitted_ns < done.request.due_ns);
            self.ended += 1;
            After::Next
        }
    }

    #[test]
    fn no_request_begins_before_it_is_due() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1000).unwrap();
        for depth in [0, 1, 4] {
            let mut engine = match depth {
                0 => Operations::sync(&[file.as_fd()], Access::BUFFERED, 1000).unwrap(),
                _ => match Operations::uring(&[file.as_fd()], Access::BUFFERED, 1000, depth) {
                    Ok(engine) => engine,
                    Err(_) => continue,
                },
            };
            let start_ns = monotonic_ns();
            let due_ns = (0..10).map(|index| start_ns + index * 200_000).collect();
            let mut work = Paced { due_ns, begun: 0, early: 0, ended: 0 };
            engine.run(&mut work, Timestamps::Each, &mut Stop::never()).unwrap();
            assert_eq!((work.early, work.ended), (0, 10), "depth {depth}");
            // A request far away does not outlive the end of the time.
            let far_ns = monotonic_ns() + 3_600_000_000_000;
            let mut work = Paced { due_ns: vec![far_ns], begun: 0, early: 0, ended: 0 };
            let deadline_ns = Some(monotonic_ns() + 1_000_000);
            let mut stop = Stop::new(CancelToken::manual(), deadline_ns);
            engine.run(&mut work, Timestamps::Each, &mut stop).unwrap();
            assert_eq!(work.ended, 0, "depth {depth}");
        }
    }

    /// Has a next request only while none is in flight.
    struct OneByOne {
        left: u32,
        in_flight: u32,
    }

    impl Workload for OneByOne {
        fn next(&mut self) -> Option<Request> {
            if self.left == 0 || self.in_flight > 0 {
                return None;
            }
            self.in_flight += 1;
            Some(Request::read(0, 1000))
        }

        fn fill(&mut self, _: &Request, _: &mut [u8]) {}

        fn done(&mut self, _: Done<'_>) -> After {
            self.in_flight -= 1;
            self.left -= 1;
            After::Next
        }
    }

    #[test]
    fn a_workload_that_has_nothing_for_now_is_asked_again() {
        let file = tempfile::tempfile().unwrap();
        for depth in [0, 1, 7] {
            let mut engine = match depth {
                0 => Operations::sync(&[file.as_fd()], Access::BUFFERED, 1000).unwrap(),
                _ => match Operations::uring(&[file.as_fd()], Access::BUFFERED, 1000, depth) {
                    Ok(engine) => engine,
                    Err(_) => continue,
                },
            };
            let mut work = OneByOne { left: 20, in_flight: 0 };
            engine.run(&mut work, Timestamps::None, &mut Stop::never()).unwrap();
            assert_eq!(work.left, 0, "depth {depth}");
        }
    }

    #[test]
    fn the_null_engine_moves_nothing() {
        let file = tempfile::tempfile().unwrap();
        let mut engine = Operations::null(1000).unwrap();
        let mut work = blocks(Direction::Write, 10_000);
        engine.run(&mut work, Timestamps::Each, &mut Stop::never()).unwrap();
        assert_eq!(work.seen.len(), 10);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
