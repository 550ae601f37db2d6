//! Scan: a consumer sees the blocks of a file, borrowed, in any order, with their offset.
//!
//! One [`Scanner`] is one lane. It is made before the clock starts (descriptor, buffers, ring)
//! and can run several times. Read next: one engine, for example `scan/blocking.rs`.

mod blocking;
mod mapped;
mod ringed;
mod streamed;
mod tally;

use std::os::fd::BorrowedFd;

use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::filesystem;
use flatout_sys::mapping::Window;
use flatout_sys::ring::Ring;
use flatout_sys::view::ByteView;

use crate::error::Error;
use crate::fallback::Fallback;
use crate::operations::uring_refusal;
use crate::source::{Kind, Source};
use crate::stop::Stop;
use crate::tuning::{Caching, Engine, Lane, Split, Tuning};

pub use tally::{Tally, Zeros};

/// Which bytes are scanned and how they are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// First byte.
    pub start_bytes: u64,
    /// End (exclusive). A stream is read up to it or to its own end.
    pub end_bytes: u64,
    /// Bytes per block; the last block may be shorter.
    pub block_bytes: u64,
    /// Which blocks a lane gets.
    pub split: Split,
    /// This lane.
    pub lane: Lane,
}

impl Plan {
    /// Number of blocks of all lanes together.
    #[inline]
    pub fn blocks(&self) -> u64 {
        self.end_bytes.saturating_sub(self.start_bytes).div_ceil(self.block_bytes)
    }

    /// Offset and length of a block.
    #[inline]
    fn block(&self, index: u64) -> (u64, usize) {
        let offset = self.start_bytes + index * self.block_bytes;
        (offset, self.block_bytes.min(self.end_bytes - offset) as usize)
    }
}

/// Bytes to ask for so that `length` of them arrive: direct I/O takes whole sectors only, so the
/// last block of a file is asked for whole and comes back short.
fn request_length(source: &Source, plan: &Plan, length: usize) -> usize {
    if source.caching() == Caching::Direct { plan.block_bytes as usize } else { length }
}

/// What one run of a scanner did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pass {
    /// Bytes that the consumer saw.
    pub bytes: u64,
    /// Blocks that the consumer saw; a short last block counts.
    pub blocks: u64,
    /// Whether the stop was due before the plan was done.
    pub stopped: bool,
}

impl Pass {
    #[inline]
    fn add(&mut self, length_bytes: usize) {
        self.bytes += length_bytes as u64;
        self.blocks += 1;
    }
}

/// One lane, ready to run.
pub struct Scanner {
    source: Source,
    engine: Prepared,
}

enum Prepared {
    Blocking(AlignedBuffer),
    /// A place for the largest window, held until the first run: lanes that are all made before one
    /// runs do not take it from each other.
    Mapped(Option<Window>),
    Ringed(Box<Ring>),
    Streamed(AlignedBuffer),
}

/// Largest block that the engines with buffers of their own take.
pub const MAX_BUFFER_BYTES: u64 = 1 << 31;

impl Scanner {
    /// Makes buffers, or a ring, for scanning `source` with `tuning`. Sources without a known
    /// length are read from front to end, whatever engine is asked for.
    ///
    /// Errors: no memory for the buffers. A ring or a mapping that is refused becomes the sync engine,
    /// and the fallback says why.
    pub fn prepare(source: Source, tuning: &Tuning) -> Result<(Self, Option<Fallback>), Error> {
        let path = source.path().to_owned();
        let no_memory = || Error::system("get memory for", &path);
        let length = tuning.block_bytes.min(MAX_BUFFER_BYTES) as usize;
        let buffer = || AlignedBuffer::new(length).map_err(no_memory());
        if source.kind() != Kind::Sized {
            return Ok((Self { source, engine: Prepared::Streamed(buffer()?) }, None));
        }
        let instead = "read with sync";
        let no_ring = |why: &str| Fallback::new("uring_refused", "io_uring", why, instead);
        let prepared = match tuning.engine {
            Engine::Sync => Ok(Prepared::Blocking(buffer()?)),
            Engine::Mmap => match mapped::reserve(&source, length) {
                Ok(window) => Ok(Prepared::Mapped(Some(window))),
                Err(why) => Err(Fallback::new("mmap_refused", "mmap", why, instead)),
            },
            Engine::Uring if may_answer_short(source.file()) => Err(no_ring(SERVED)),
            Engine::Uring => match Ring::new(&[source.file()], tuning.depth, length) {
                Ok(ring) => Ok(Prepared::Ringed(Box::new(ring))),
                Err(error) => match uring_refusal(&error) {
                    Some(why) => Err(no_ring(&why)),
                    None => return Err(Error::system("make a ring for", &path)(error)),
                },
            },
        };
        Ok(match prepared {
            Ok(engine) => (Self { source, engine }, None),
            Err(fallback) => {
                (Self { source, engine: Prepared::Blocking(buffer()?) }, Some(fallback))
            }
        })
    }

    /// The engine that this lane uses; `None` for streams.
    pub fn engine(&self) -> Option<Engine> {
        match self.engine {
            Prepared::Blocking(_) => Some(Engine::Sync),
            Prepared::Mapped(_) => Some(Engine::Mmap),
            Prepared::Ringed(_) => Some(Engine::Uring),
            Prepared::Streamed(_) => None,
        }
    }

    /// Hands each block of the lane to `consumer`, until the plan is done or the stop is due.
    ///
    /// Errors: what the kernel answers, and [`Error::Truncated`] when a file of known length ends
    /// before the plan does.
    pub fn run(
        &mut self,
        plan: &Plan,
        stop: &mut Stop,
        mut consumer: impl FnMut(u64, ByteView<'_>),
    ) -> Result<Pass, Error> {
        match &mut self.engine {
            Prepared::Blocking(buffer) => {
                blocking::run(&self.source, buffer.as_mut_slice(), plan, stop, &mut consumer)
            }
            Prepared::Mapped(reserved) => {
                *reserved = None;
                mapped::run(&self.source, plan, stop, &mut consumer)
            }
            Prepared::Ringed(ring) => ringed::run(&self.source, ring, plan, stop, &mut consumer),
            Prepared::Streamed(buffer) => {
                streamed::run(&self.source, buffer.as_mut_slice(), plan, stop, &mut consumer)
            }
        }
    }
}

/// A lane that moves nothing: the consumer sees one buffer, at least a block long, over and over.
/// What this costs is the harness's own share.
pub fn null(
    buffer: &[u8],
    plan: &Plan,
    stop: &mut Stop,
    mut consumer: impl FnMut(u64, ByteView<'_>),
) -> Pass {
    let mut pass = Pass::default();
    let (first, end, step) = plan.lane.blocks(plan.blocks(), plan.split);
    let mut index = first;
    while index < end {
        let (offset, length) = plan.block(index);
        consumer(offset, ByteView::of(&buffer[..length]));
        pass.add(length);
        index = index.saturating_add(step);
        if stop.is_due() {
            pass.stopped = index < end;
            break;
        }
    }
    pass
}

/// Whether a ring would take less than was asked for as the whole.
pub fn may_answer_short(file: BorrowedFd<'_>) -> bool {
    filesystem::of(file).is_ok_and(|filesystem| filesystem.may_answer_short())
}

/// Why such a file has no ring.
pub const SERVED: &str = "the filesystem is served by a program, and may answer short";

/// What a lane says when the file ended too early.
fn truncated(source: &Source, plan: &Plan) -> Error {
    Error::Truncated { path: source.path().to_owned(), expected_bytes: plan.end_bytes }
}
