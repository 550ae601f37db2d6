//! The uring method: a workload whose blocks are read and then written, many on their way at a
//! time. The range counts as moved up to the first block that is not there.

use flatout_sys::cause::errno_of;
use flatout_sys::ring::{Direction, Ring};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{End, Moved, Route, TransferError};
use crate::operations::{Access, After, Done, Request, Timestamps, Workload, run_ring};
use crate::stop::Stop;

/// Blocks in flight and their length, where nothing else is asked for: 2 MiB of buffers a lane.
/// Not measured against others yet.
const DEPTH: u32 = 16;
const BLOCK_BYTES: u64 = 128 << 10;
/// Memory of a ring, whatever is asked for.
const MOST_RING_BYTES: u64 = 64 << 20;

/// What the kernel says where there is no ring for us (`NOSYS`, `PERM`, `ACCESS`, `INVAL`, no
/// memory or descriptors), or it does not do these requests on these files (`INVAL`, `OPNOTSUPP`,
/// `AGAIN` and `INTR` time and again).
const CANNOT: [Errno; 10] = [
    Errno::NOSYS,
    Errno::PERM,
    Errno::ACCESS,
    Errno::INVAL,
    Errno::OPNOTSUPP,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
    Errno::AGAIN,
    Errno::INTR,
];

/// The ring of a lane, made when it is needed first.
pub(super) fn ring(
    slot: &mut Option<Ring>,
    block_bytes: u64,
    depth: u32,
) -> Result<&mut Ring, Errno> {
    let ring = match slot.take() {
        Some(ring) => ring,
        None => {
            let block_bytes = if block_bytes == 0 { BLOCK_BYTES } else { block_bytes };
            let depth = if depth == 0 { DEPTH } else { depth };
            let depth = (MOST_RING_BYTES / block_bytes).clamp(1, u64::from(depth)) as u32;
            Ring::new(&[], depth, block_bytes as usize).map_err(|error| errno_of(&error))?
        }
    };
    Ok(slot.insert(ring))
}

/// The blocks of a range: what was read is written.
struct Blocks<'a> {
    route: Route<'a>,
    block_bytes: u64,
    /// Asked whether a block that came short was given up.
    stop: Stop,
    /// Bytes of the range that were sent out.
    sent: u64,
    /// Bytes of the range before which all is written, once something is missing.
    hole: u64,
    /// Why no more blocks are sent.
    trouble: Option<Result<End, TransferError>>,
}

pub(super) fn run(
    route: Route<'_>,
    ring: &mut Ring,
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    // A descriptor that must not wait makes the kernel put off each block that is not in memory.
    for file in [route.source, route.target] {
        if let Ok(flags) = rustix::fs::fcntl_getfl(file)
            && flags.contains(OFlags::NONBLOCK)
        {
            let _as_it_was = rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK);
        }
    }
    let mut blocks = Blocks {
        route,
        block_bytes: ring.slot_bytes() as u64,
        stop: stop.clone(),
        sent: 0,
        hole: u64::MAX,
        trouble: None,
    };
    let ended = ring.with_files(&[route.source, route.target], |ring| {
        run_ring(ring, Access::BUFFERED, &mut blocks, Timestamps::None, stop)
    });
    if let Err(error) = ended {
        // What is in flight is drained by the ring; nobody knows how far it came.
        return Ok(Moved { bytes: 0, end: End::Cannot(errno_of(&error)) });
    }
    let bytes = blocks.hole.min(blocks.sent);
    let end = match blocks.trouble {
        Some(end) => end?,
        None if bytes < route.length_bytes => End::Stopped,
        None => End::Whole,
    };
    Ok(Moved { bytes, end })
}

impl Blocks<'_> {
    /// Says that the range is not there from `bytes` on. A failure is told before all else, then
    /// what happened first in the file.
    fn give_up(&mut self, bytes: u64, trouble: Result<End, TransferError>) {
        let is_first = bytes < self.hole && !matches!(self.trouble, Some(Err(_)));
        if self.trouble.is_none() || trouble.is_err() || is_first {
            self.trouble = Some(trouble);
        }
        self.hole = self.hole.min(bytes);
    }
}

impl Workload for Blocks<'_> {
    fn next(&mut self) -> Option<Request> {
        let left = self.route.length_bytes - self.sent;
        if left == 0 || self.trouble.is_some() {
            return None;
        }
        let offset_bytes = self.route.offset_bytes + self.sent;
        let length_bytes = left.min(self.block_bytes);
        self.sent += length_bytes;
        Some(Request::read(offset_bytes, length_bytes as usize))
    }

    fn fill(&mut self, _: &Request, _: &mut [u8]) {}

    fn done(&mut self, done: Done<'_>) -> After {
        let Done { request, result, .. } = done;
        let reached = request.offset_bytes - self.route.offset_bytes;
        let moved = match result {
            Ok(moved) => moved,
            Err(error) => {
                let trouble = match (errno_of(&error), request.direction) {
                    (errno, _) if CANNOT.contains(&errno) => Ok(End::Cannot(errno)),
                    (errno, Direction::Read) => Err(TransferError::Source(errno)),
                    (errno, Direction::Write) => Err(TransferError::Target(errno)),
                };
                self.give_up(reached, trouble);
                return After::Next;
            }
        };
        if moved < request.length_bytes {
            let end = if self.stop.is_cancelled() { End::Stopped } else { End::SourceEnded };
            self.give_up(reached + moved as u64, Ok(end));
        }
        match request.direction {
            Direction::Read if moved > 0 => {
                After::Then(Request { file: 1, ..Request::write(request.offset_bytes, moved) })
            }
            Direction::Read => After::Next,
            Direction::Write => {
                self.route.add(moved as u64);
                After::Next
            }
        }
    }
}
