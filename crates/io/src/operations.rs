//! Operations: requests are submitted and reaped, with timestamps, into a sink.
//!
//! A [`Workload`] says what comes next, fills what is to be written and is told what was done;
//! an engine keeps its requests in flight. Read next: [`Operations::run`].

mod progress;

use std::io;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::ring::{self, Ring};
use rustix::io::Errno;

use self::progress::Progress;
use crate::source::DONTCACHE;
use crate::stop::Stop;
use crate::tuning::Caching;
use rustix::io::ReadWriteFlags;

/// Direction of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Direction.
    pub direction: Direction,
    /// Where in the file.
    pub offset_bytes: u64,
    /// How much; at most the slot size of the engine.
    pub length_bytes: usize,
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

/// What is to be done, and the sink for what was done.
pub trait Workload {
    /// The next request; `None` when there is no more.
    fn next(&mut self) -> Option<Request>;
    /// Fills the bytes of a write before it is submitted.
    fn fill(&mut self, request: &Request, bytes: &mut [u8]);
    /// Takes a request that has ended. `false` ends the run.
    fn done(&mut self, done: Done<'_>) -> bool;
}

/// Whether each request is timed. Cost: two clock readings per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timestamps {
    /// Each request gets its two times.
    Each,
    /// Times are 0.
    None,
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

/// An engine with its buffers, ready to run on one file.
pub struct Operations<'a> {
    file: BorrowedFd<'a>,
    access: Access,
    engine: Prepared,
}

enum Prepared {
    /// Answers at once that all was moved.
    Null(AlignedBuffer),
    Sync(AlignedBuffer),
    Uring(Box<Ring>),
}

impl<'a> Operations<'a> {
    /// One request at a time, by pread(2) and pwrite(2).
    pub fn sync(file: BorrowedFd<'a>, access: Access, slot_bytes: usize) -> io::Result<Self> {
        Ok(Self { file, access, engine: Prepared::Sync(AlignedBuffer::new(slot_bytes)?) })
    }

    /// `depth` requests at a time, by io_uring.
    ///
    /// Errors: those of [`Ring::new`]; `EPERM` and `ENOSYS` say that there is no ring here, see
    /// [`ring::refusal`].
    pub fn uring(
        file: BorrowedFd<'a>,
        access: Access,
        slot_bytes: usize,
        depth: u32,
    ) -> io::Result<Self> {
        let ring = Ring::new(file, depth, slot_bytes)?;
        Ok(Self { file, access, engine: Prepared::Uring(Box::new(ring)) })
    }

    /// Moves nothing and says that it did: what a run costs then is the harness's own share.
    pub fn null(file: BorrowedFd<'a>, slot_bytes: usize) -> io::Result<Self> {
        let engine = Prepared::Null(AlignedBuffer::new(slot_bytes)?);
        Ok(Self { file, access: Access::BUFFERED, engine })
    }

    /// Runs until the workload has no more requests, its sink returns `false`, or the stop is
    /// due. Requests in flight are always waited for and handed to the sink.
    ///
    /// Errors: those of io_uring_enter(2). What goes wrong with a request is the sink's to judge.
    pub fn run(
        &mut self,
        workload: &mut impl Workload,
        timestamps: Timestamps,
        stop: &mut Stop,
    ) -> io::Result<()> {
        let Self { file, access, engine } = self;
        match engine {
            Prepared::Null(buffer) => {
                one_by_one(buffer, workload, timestamps, stop, |request, _, _| {
                    Ok(request.length_bytes)
                });
                Ok(())
            }
            Prepared::Sync(buffer) => {
                one_by_one(buffer, workload, timestamps, stop, |request, bytes, stop| {
                    perform(*file, *access, request, bytes, stop)
                });
                Ok(())
            }
            Prepared::Uring(ring) => several(ring, *access, workload, timestamps, stop),
        }
    }
}

/// Why `error` means that there is no io_uring here; `None` when it means something else.
pub fn uring_refusal(error: &io::Error) -> Option<String> {
    let refused = matches!(
        Errno::from_io_error(error),
        Some(Errno::PERM | Errno::NOSYS | Errno::ACCESS | Errno::OPNOTSUPP)
    );
    refused.then(|| ring::refusal(error))
}

fn now(timestamps: Timestamps) -> u64 {
    if timestamps == Timestamps::Each { monotonic_ns() } else { 0 }
}

fn one_by_one(
    buffer: &mut AlignedBuffer,
    workload: &mut impl Workload,
    timestamps: Timestamps,
    stop: &mut Stop,
    mut perform: impl FnMut(&Request, &mut [u8], &Stop) -> io::Result<usize>,
) {
    while let Some(request) = workload.next() {
        let bytes = &mut buffer.as_mut_slice()[..request.length_bytes];
        if request.direction == Direction::Write {
            workload.fill(&request, bytes);
        }
        let submitted_ns = now(timestamps);
        let result = perform(&request, bytes, stop);
        let completed_ns = now(timestamps);
        let done = Done { request, result, submitted_ns, completed_ns, bytes };
        if !workload.done(done) || stop.is_due() {
            return;
        }
    }
}

/// One request by system calls; a short one goes on where it stopped.
fn perform(
    file: BorrowedFd<'_>,
    access: Access,
    request: &Request,
    bytes: &mut [u8],
    stop: &Stop,
) -> io::Result<usize> {
    let flags = access.flags(request.direction);
    let mut progress = Progress::default();
    loop {
        let offset = request.offset_bytes + progress.moved as u64;
        let rest = &mut bytes[progress.moved..];
        let answer = match (request.direction, flags.is_empty()) {
            (Direction::Read, true) => rustix::io::pread(file, rest, offset),
            (Direction::Write, true) => rustix::io::pwrite(file, rest, offset),
            (Direction::Read, false) => {
                rustix::io::preadv2(file, &mut [io::IoSliceMut::new(rest)], offset, flags)
            }
            (Direction::Write, false) => {
                rustix::io::pwritev2(file, &[io::IoSlice::new(rest)], offset, flags)
            }
        };
        if let ControlFlow::Break(result) =
            progress.take(request, answer.map_err(io::Error::from), stop)
        {
            return result;
        }
    }
}

/// A request in flight.
#[derive(Clone, Copy)]
struct Flight {
    request: Request,
    submitted_ns: u64,
    progress: Progress,
}

fn several(
    ring: &mut Ring,
    access: Access,
    workload: &mut impl Workload,
    timestamps: Timestamps,
    stop: &mut Stop,
) -> io::Result<()> {
    let mut flights: Vec<Option<Flight>> = vec![None; ring.depth() as usize];
    let mut open = true;
    for slot in 0..ring.depth() {
        open &= !stop.is_cancelled();
        if open {
            open = launch(ring, &mut flights, slot, workload, timestamps, access);
        }
    }
    while ring.in_flight() > 0 {
        ring.submit_and_wait(1)?;
        while let Some(done) = ring.reap() {
            let index = done.slot as usize;
            let mut flight = flights[index].expect("a completion belongs to a request in flight");
            let answer = done.result.map(|more| more as usize);
            let ControlFlow::Break(result) = flight.progress.take(&flight.request, answer, stop)
            else {
                submit(ring, &mut flights, done.slot, flight, access);
                continue;
            };
            let Flight { request, submitted_ns, .. } = flight;
            let bytes = &ring.bytes(done.slot)[..request.length_bytes];
            let completed_ns = now(timestamps);
            let done_request = Done { request, result, submitted_ns, completed_ns, bytes };
            open &= workload.done(done_request);
            open &= !stop.is_due();
            if open {
                open = launch(ring, &mut flights, done.slot, workload, timestamps, access);
            }
        }
        open &= !stop.is_cancelled();
    }
    Ok(())
}

/// Submits the next request of the workload; false when there is none.
fn launch(
    ring: &mut Ring,
    flights: &mut [Option<Flight>],
    slot: u32,
    workload: &mut impl Workload,
    timestamps: Timestamps,
    access: Access,
) -> bool {
    let Some(request) = workload.next() else { return false };
    if request.direction == Direction::Write {
        workload.fill(&request, &mut ring.bytes_mut(slot)[..request.length_bytes]);
    }
    let flight = Flight { request, submitted_ns: now(timestamps), progress: Progress::default() };
    submit(ring, flights, slot, flight, access);
    true
}

fn submit(
    ring: &mut Ring,
    flights: &mut [Option<Flight>],
    slot: u32,
    flight: Flight,
    access: Access,
) {
    let Flight { request, progress: Progress { moved, .. }, .. } = flight;
    let (offset, length) = (request.offset_bytes + moved as u64, request.length_bytes - moved);
    let flags = access.flags(request.direction).bits();
    match request.direction {
        Direction::Read => ring.read(slot, offset, moved, length, flags),
        Direction::Write => ring.write(slot, offset, moved, length, flags),
    }
    flights[slot as usize] = Some(flight);
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

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
                Request { direction: self.direction, offset_bytes, length_bytes: 1000 }
            })
        }

        fn fill(&mut self, request: &Request, bytes: &mut [u8]) {
            bytes.fill((request.offset_bytes / 1000) as u8);
        }

        fn done(&mut self, done: Done<'_>) -> bool {
            let moved = done.result.unwrap();
            assert!(done.completed_ns >= done.submitted_ns && done.submitted_ns > 0);
            self.seen.push((done.request.offset_bytes, moved));
            self.sum += done.bytes[..moved].iter().map(|&byte| u64::from(byte)).sum::<u64>();
            true
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
                0 => Operations::sync(file, Access::BUFFERED, 1000),
                _ => Operations::uring(file, Access::BUFFERED, 1000, depth),
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

    #[test]
    fn the_null_engine_moves_nothing() {
        let file = tempfile::tempfile().unwrap();
        let mut engine = Operations::null(file.as_fd(), 1000).unwrap();
        let mut work = blocks(Direction::Write, 10_000);
        engine.run(&mut work, Timestamps::Each, &mut Stop::never()).unwrap();
        assert_eq!(work.seen.len(), 10);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
