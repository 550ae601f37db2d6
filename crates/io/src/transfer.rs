//! Transfer: the bytes of one file go to the same place of another.
//!
//! Each method moves a range and says how far it came; none knows when it is the right one. What a
//! method cannot do here is a value ([`End::Cannot`]), and the errors that mean so stand in one
//! list in the method's own file. Which method is taken, holes and whole files: the caller.

mod copy_file_range;
mod mapped;
mod pieces;
mod reflink;
mod ringed;
mod splice;
mod sync;
mod zeros;

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::ring::Ring;
use rustix::io::Errno;

use crate::stop::Stop;
use pieces::Pieces;

pub use sync::{read_full, write_all};
pub use zeros::{ZERO_BLOCK_BYTES, is_zero};

/// Buffer of the sync method for large files, where none is asked for.
pub const BUFFER_BYTES: usize = 1 << 20;
/// A range from which on it is worth its pages, which are touched once.
const LARGE_BYTES: u64 = 4 << 20;
/// Buffer for what is shorter, and most that is written at once of what is read direct.
const MIDDLE_BUFFER_BYTES: usize = 256 << 10;
/// Longest buffer of a thread that has seen small files only: as long as the longest of them.
const SMALL_BUFFER_BYTES: usize = 64 << 10;
const LEAST_BUFFER_BYTES: usize = 4 << 10;
/// Direct reads begin, and ask for, multiples of this: a page, or what storage with large sectors
/// wants.
pub const DIRECT_BYTES: u64 = 4096;
/// Longest block that lies in memory, whatever is asked for.
const MOST_BLOCK_BYTES: u64 = 1 << 30;

flatout_sys::words! {
    /// How bytes get across.
    #[derive(Hash)]
    pub enum Method: name, ALL, text {
        /// Extents are shared: FICLONE of the whole file.
        Reflink = "reflink",
        /// copy_file_range(2): the kernel copies.
        CopyFileRange = "copy-file-range",
        /// splice(2) through a pipe of 1 MiB.
        Splice = "splice",
        /// pread(2) into a buffer, pwrite(2) out of it.
        Sync = "sync",
        /// pwrite(2) straight out of a mapping of the source.
        Mmap = "mmap",
        /// io_uring: each block read and then written, many at a time.
        Uring = "uring",
    }
}

impl Method {
    /// Its place in [`Method::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Which side of a transfer failed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferError {
    /// Reading the source, or getting memory for a block of it.
    Source(Errno),
    /// Writing the target.
    Target(Errno),
}

/// A range of one file, and the file that gets it, at the same place.
#[derive(Debug, Clone, Copy)]
pub struct Route<'a> {
    /// Open for reading.
    pub source: BorrowedFd<'a>,
    /// Open for writing.
    pub target: BorrowedFd<'a>,
    /// Where the range begins.
    pub offset_bytes: u64,
    /// How long it is; it may go past the end of the source.
    pub length_bytes: u64,
    /// Is raised by what the kernel has taken, while it goes on.
    pub moved: &'a AtomicU64,
}

impl Route<'_> {
    /// What is left of the range behind its first `bytes`.
    pub fn behind(self, bytes: u64) -> Self {
        Self {
            offset_bytes: self.offset_bytes + bytes,
            length_bytes: self.length_bytes - bytes,
            ..self
        }
    }

    fn add(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// How far a transfer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Bytes of the range, from its begin on, that are in the target.
    pub bytes: u64,
    /// Why not more.
    pub end: End,
}

/// What ended a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of the range is there.
    Whole,
    /// The source has no more bytes.
    SourceEnded,
    /// This method does not get on, and cannot say whether the source has ended: reading can.
    Unclear,
    /// The stop was due.
    Stopped,
    /// The kernel, the filesystem or a policy does not do it in this way.
    Cannot(Errno),
}

/// The methods with what they need of memory; serves any number of files, one after the other.
///
/// Cost: nothing until a method is used. Then one block for sync, a pipe for splice, and blocks for each
/// request in flight for uring.
#[derive(Default)]
pub struct Transfer {
    block_bytes: u64,
    depth: u32,
    is_one_of_many: bool,
    buffer: Option<AlignedBuffer>,
    pieces: Option<Pieces>,
    pipe: Option<splice::Pipe>,
    pieces_of_pipe: Pieces,
    ring: Option<Ring>,
}

impl Transfer {
    /// Gets ready to move bytes in blocks of `block_bytes`, with `depth` blocks in flight where the
    /// method has such; 0: what is best for the method.
    pub fn new(block_bytes: u64, depth: u32) -> Self {
        let pieces = (block_bytes == 0).then(Pieces::default);
        let block_bytes = block_bytes.min(MOST_BLOCK_BYTES);
        Self { block_bytes, depth, pieces, ..Self::default() }
    }

    /// Keeps the buffer short, also for long ranges, where no length is asked for: many threads have one
    /// each.
    pub fn be_one_of_many(&mut self) {
        self.is_one_of_many = true;
    }

    /// Lets the sync method write its blocks in shorter pieces where that turns out to be faster, as
    /// it does where no length is asked for.
    pub fn adapt(&mut self) {
        self.pieces.get_or_insert_default();
    }

    /// Moves a range.
    ///
    /// Errors: those of the calls, except where they say that the method is not for these files.
    pub fn run(
        &mut self,
        method: Method,
        route: Route<'_>,
        stop: &mut Stop,
    ) -> Result<Moved, TransferError> {
        match method {
            Method::Reflink => reflink::run(route),
            Method::CopyFileRange => copy_file_range::run(route, self.block_bytes, stop),
            Method::Splice => {
                let pieces = (self.block_bytes == 0).then_some(&mut self.pieces_of_pipe);
                splice::run(route, &mut self.pipe, (self.block_bytes, pieces), stop)
            }
            Method::Sync => {
                sync::run(route, self.tools(route.length_bytes)?, 1, stop, &mut |_, _| {})
            }
            Method::Mmap => mapped::run(route, self.block_bytes, stop),
            Method::Uring => {
                let ring = ringed::ring(&mut self.ring, self.block_bytes, self.depth);
                let ring = match ring {
                    Ok(ring) => ring,
                    Err(errno) => return Ok(Moved { bytes: 0, end: End::Cannot(errno) }),
                };
                let moved = ringed::run(route, ring, stop);
                // One that does not answer any more is dropped, which waits as long as there is hope.
                if ring.in_flight() > 0 {
                    self.ring = None;
                }
                moved
            }
        }
    }

    /// Moves a range by the sync method where the source is open with `O_DIRECT`, through a block of
    /// the caller's or one of its own. The range begins at, and the block is, a multiple of
    /// [`DIRECT_BYTES`] long; the range may end anywhere.
    ///
    /// What the filesystem refuses for its alignment, as behind the end of a source that was cut
    /// meanwhile, is [`End::Unclear`].
    ///
    /// Errors: as [`Transfer::run`].
    pub fn run_direct(
        &mut self,
        route: Route<'_>,
        block: Option<&mut [u8]>,
        stop: &mut Stop,
    ) -> Result<Moved, TransferError> {
        let tools = match block {
            Some(buffer) => sync::Tools { buffer, pieces: self.pieces.as_mut() },
            None => self.tools(u64::MAX)?,
        };
        sync::run(route, tools, DIRECT_BYTES, stop, &mut |_, _| {})
    }

    /// Most requests of the uring method that were in the kernel's hands at once.
    pub fn most_in_flight(&self) -> u32 {
        self.ring.as_ref().map_or(0, Ring::most_in_flight)
    }

    /// Moves a range by the sync method, and shows each block on its way with its offset. Blocks
    /// are whole buffers but for the last one, whatever read(2) gives at a time.
    pub fn run_seen(
        &mut self,
        route: Route<'_>,
        stop: &mut Stop,
        seen: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<Moved, TransferError> {
        sync::run(route, self.tools(route.length_bytes)?, 1, stop, seen)
    }

    /// Moves a range by the sync method, but for blocks of [`ZERO_BLOCK_BYTES`] without a byte that
    /// is not zero: the target keeps its hole there. Tells the bytes written, too.
    pub fn run_without_zeros(
        &mut self,
        route: Route<'_>,
        stop: &mut Stop,
    ) -> Result<(Moved, u64), TransferError> {
        zeros::run(route, self.buffer(route.length_bytes)?, stop)
    }

    fn tools(&mut self, length_bytes: u64) -> Result<sync::Tools<'_>, TransferError> {
        self.buffer(length_bytes)?;
        let buffer = self.buffer.as_mut().map_or(&mut [][..], AlignedBuffer::as_mut_slice);
        Ok(sync::Tools { buffer, pieces: self.pieces.as_mut() })
    }

    /// The buffer of the sync method, for callers that move bytes in a way of their own: as long as is
    /// good for a range of `length_bytes`.
    ///
    /// Errors: no memory.
    pub fn buffer(&mut self, length_bytes: u64) -> Result<&mut [u8], TransferError> {
        let wanted = match self.block_bytes {
            // Many programs copy one small file and end.
            0 if length_bytes <= SMALL_BUFFER_BYTES as u64 => {
                (length_bytes as usize).next_power_of_two().max(LEAST_BUFFER_BYTES)
            }
            0 if length_bytes < LARGE_BYTES || self.is_one_of_many => MIDDLE_BUFFER_BYTES,
            0 => BUFFER_BYTES,
            bytes => bytes as usize,
        };
        let buffer = match self.buffer.take() {
            Some(buffer) if buffer.as_slice().len() >= wanted => buffer,
            _ => AlignedBuffer::new(wanted).map_err(|error| {
                TransferError::Source(Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))
            })?,
        };
        Ok(self.buffer.insert(buffer).as_mut_slice())
    }
}

#[cfg(test)]
mod tests;
