//! The uring method: reads linked with writes, many blocks on their way at a time.
//!
//! A read that fails or comes short cancels its write. What was cut short is sent again from where
//! it stopped; the range counts as moved up to the first block that is not there.

use flatout_sys::pair_ring::{Block, MAX_PAIRS, PairEnd, PairRing};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{End, Moved, Route, TransferError};
use crate::stop::Stop;

/// Blocks in flight and their length, where nothing else is asked for: 2 MiB of buffers a lane.
/// Not measured against others yet.
const DEPTH: u32 = 16;
const BLOCK_BYTES: u64 = 128 << 10;
/// Memory of a ring, whatever is asked for.
const MOST_RING_BYTES: u64 = 64 << 20;

/// Times that the kernel may put off one block before another method is tried.
const MAX_RETRIES: u32 = 1000;

/// What the kernel says where there is no ring for us (`NOSYS`, `PERM`, `ACCESS`, `INVAL`, no
/// memory or descriptors), or it does not do these requests on these files (`INVAL`, `OPNOTSUPP`).
const CANNOT: [Errno; 9] = [
    Errno::NOSYS,
    Errno::PERM,
    Errno::ACCESS,
    Errno::INVAL,
    Errno::OPNOTSUPP,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
    Errno::AGAIN,
];

/// The ring of a lane, made when it is needed first.
pub(super) fn ring(
    slot: &mut Option<PairRing>,
    block_bytes: u64,
    depth: u32,
) -> Result<&mut PairRing, Errno> {
    let ring = match slot.take() {
        Some(ring) => ring,
        None => {
            let block_bytes = if block_bytes == 0 { BLOCK_BYTES } else { block_bytes };
            let depth = if depth == 0 { DEPTH } else { depth.min(MAX_PAIRS) };
            let depth = (MOST_RING_BYTES / block_bytes).clamp(1, u64::from(depth)) as u32;
            PairRing::new(depth, block_bytes as usize)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?
        }
    };
    Ok(slot.insert(ring))
}

/// A block and how far it is.
#[derive(Clone, Copy, Default)]
struct Flight {
    block: Block,
    read: usize,
    written: usize,
    retries: u32,
}

/// Why no more blocks are sent.
#[derive(Clone, Copy)]
enum Trouble {
    Failed(TransferError),
    Ended(End),
}

struct Run<'a> {
    route: Route<'a>,
    flights: Vec<Flight>,
    idle: Vec<u32>,
    /// Bytes of the range that were sent out.
    sent: u64,
    /// Bytes of the range before which all is written, once something is missing.
    hole: u64,
    trouble: Option<Trouble>,
}

pub(super) fn run(
    route: Route<'_>,
    ring: &mut PairRing,
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    let cannot = |error: std::io::Error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
        Ok(Moved { bytes: 0, end: End::Cannot(errno) })
    };
    // A descriptor that must not wait makes the kernel put off each block that is not in memory.
    for file in [route.source, route.target] {
        if let Ok(flags) = rustix::fs::fcntl_getfl(file)
            && flags.contains(OFlags::NONBLOCK)
        {
            let _as_it_was = rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK);
        }
    }
    if let Err(error) = ring.hold(route.source, route.target) {
        return cannot(error);
    }
    let mut run = Run {
        route,
        flights: vec![Flight::default(); ring.depth() as usize],
        idle: (0..ring.depth()).rev().collect(),
        sent: 0,
        hole: u64::MAX,
        trouble: None,
    };
    run.launch_idle(ring);
    while ring.in_flight() > 0 {
        if let Err(error) = ring.submit_and_wait(1) {
            // What is in flight is drained by the ring; nobody knows how far it came.
            return cannot(error);
        }
        while let Some(end) = ring.reap() {
            run.landed(ring, &end);
        }
        if run.trouble.is_none() && (stop.is_cancelled() || stop.is_due()) {
            run.give_up(run.sent, Trouble::Ended(End::Stopped));
        }
        run.launch_idle(ring);
    }
    let released = ring.release();
    let bytes = run.hole.min(run.sent);
    match run.trouble {
        Some(Trouble::Failed(error)) => Err(error),
        Some(Trouble::Ended(End::Stopped)) if bytes == route.length_bytes => {
            Ok(Moved { bytes, end: End::Whole })
        }
        Some(Trouble::Ended(end)) => Ok(Moved { bytes, end }),
        None => released.map(|()| Moved { bytes, end: End::Whole }).map_err(|error| {
            TransferError::Target(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }),
    }
}

impl Run<'_> {
    fn launch_idle(&mut self, ring: &mut PairRing) {
        while self.trouble.is_none() && self.sent < self.route.length_bytes {
            let Some(slot) = self.idle.pop() else { break };
            let left = self.route.length_bytes - self.sent;
            let length_bytes = left.min(ring.slot_bytes() as u64) as usize;
            let offset_bytes = self.route.offset_bytes + self.sent;
            let block = Block { slot, offset_bytes, length_bytes };
            self.flights[slot as usize] = Flight { block, ..Flight::default() };
            self.sent += length_bytes as u64;
            ring.send(block, 0);
        }
    }

    /// Says that the range is not there from `bytes` on. A failure is told before all else, then
    /// what happened first in the file.
    fn give_up(&mut self, bytes: u64, trouble: Trouble) {
        let is_failure = |trouble: &Trouble| matches!(trouble, Trouble::Failed(_));
        let is_first = bytes < self.hole && !self.trouble.as_ref().is_some_and(is_failure);
        if self.trouble.is_none() || is_failure(&trouble) || is_first {
            self.trouble = Some(trouble);
        }
        self.hole = self.hole.min(bytes);
    }

    /// Takes the answers of a block in, and sends the rest of it again.
    fn landed(&mut self, ring: &mut PairRing, end: &PairEnd) {
        let flight = &mut self.flights[end.slot as usize];
        let reads = end.read.is_some();
        match &end.read {
            Some(Ok(got)) => flight.read += *got as usize,
            Some(Err(error)) => {
                let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
                return self.refused(ring, end.slot, TransferError::Source(errno));
            }
            None => {}
        }
        let missing = flight.block.length_bytes - flight.read;
        if reads && missing > 0 {
            // The write was cancelled.
            if matches!(end.read, Some(Ok(0))) {
                return self.source_ended(ring, end.slot);
            }
            ring.send(flight.block, flight.read);
            return;
        }
        match &end.written {
            Ok(0) => self.refused(ring, end.slot, TransferError::Target(Errno::IO)),
            Ok(got) => {
                flight.written += *got as usize;
                self.route.add(u64::from(*got));
                if flight.written < flight.block.length_bytes {
                    ring.send_write(flight.block, flight.written);
                } else {
                    self.idle.push(end.slot);
                }
            }
            Err(error) => {
                let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
                self.refused(ring, end.slot, TransferError::Target(errno));
            }
        }
    }

    /// The source has no more bytes than the block got; these are written alone.
    fn source_ended(&mut self, ring: &mut PairRing, slot: u32) {
        let flight = &mut self.flights[slot as usize];
        flight.block.length_bytes = flight.read;
        let reached = flight.block.offset_bytes + flight.read as u64 - self.route.offset_bytes;
        if flight.read > 0 {
            ring.send_write(flight.block, 0);
        } else {
            self.idle.push(slot);
        }
        self.give_up(reached, Trouble::Ended(End::SourceEnded));
    }

    /// A request that failed: sent again when the kernel only put it off, else the end of the run.
    fn refused(&mut self, ring: &mut PairRing, slot: u32, error: TransferError) {
        let (TransferError::Source(errno)
        | TransferError::Target(errno)
        | TransferError::Memory(errno)) = error;
        let flight = &mut self.flights[slot as usize];
        let Flight { block, read, written, .. } = *flight;
        let again = matches!(errno, Errno::INTR | Errno::AGAIN | Errno::CANCELED);
        if again && flight.retries < MAX_RETRIES && self.trouble.is_none() {
            flight.retries += 1;
            if read < block.length_bytes {
                ring.send(block, read);
            } else {
                ring.send_write(block, written);
            }
            return;
        }
        let reached = block.offset_bytes + written as u64 - self.route.offset_bytes;
        self.idle.push(slot);
        let trouble = if again || CANNOT.contains(&errno) {
            Trouble::Ended(End::Cannot(errno))
        } else {
            Trouble::Failed(error)
        };
        self.give_up(reached, trouble);
    }
}
