//! Files that the page cache does not hold, read around it.
//!
//! A read through the cache asks for as much as the kernel reads ahead, into pages that lie
//! anywhere; a direct one asks for a huge page at once, spares a copy of the bytes, and leaves in the
//! cache what others need. Whether that is done stands in the flags of the open source, which all
//! threads that share a large file see.
//!
//! Figures, a C probe, AMD EPYC (family 25, model 17), 2 CPUs, virtio disk below ext4 on a loop
//! device with direct I/O, 2026-11-24, not cached, 5 rounds. 512 files of 1 MiB: two threads through
//! the cache 568 ms, eight 413, two that ask 32 MiB ahead 436; direct in blocks of 1 MiB four threads
//! 274, eight 271; of 256 KiB four 369, eight 326. 1 GiB: through the cache 1390 ms, with readahead
//! 925; direct two threads 617, four 553, eight 546, four of 2 MiB as fast as of 1 MiB.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use flatout_io::transfer::{DIRECT_BYTES, End, Method, Moved, Route, TransferError};
use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::filesystem::Nature;
use flatout_sys::page_cache;
use rustix::fs::OFlags;

use super::methods::Pair;
use super::{Content, FileJob};
use crate::lock::lock;

/// Shorter files are read through the cache.
pub(super) const FROM_BYTES: u64 = 256 << 10;
/// A huge page, and a request.
const BLOCK_BYTES: usize = 2 << 20;
/// Blocks of all threads together; who gets none reads in blocks of its own.
const MOST_BLOCKS: usize = 6;
/// So many threads read around the cache where none are asked for: they mostly wait.
const THREADS: u32 = 6;
/// The part at either end of a file that tells whether it is cached.
const LOOK_BYTES: u64 = 1 << 20;

/// Blocks, lent to threads one read after the other.
#[derive(Debug, Default)]
pub(super) struct Blocks(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    free: Vec<AlignedBuffer>,
    count: usize,
}

impl Blocks {
    /// One of them, or none.
    pub(super) fn take(&self) -> Option<AlignedBuffer> {
        let mut made = lock(&self.0);
        if made.free.is_empty() && made.count < MOST_BLOCKS {
            // Where there is no memory the thread has a block of its own already.
            made.free.push(AlignedBuffer::new(BLOCK_BYTES).ok()?);
            made.count += 1;
        }
        made.free.pop()
    }

    pub(super) fn give_back(&self, block: AlignedBuffer) {
        lock(&self.0).free.push(block);
    }
}

/// Whether a range, or what is left of one, is to be read around the page cache. The flags of a short
/// file are not asked for, unless it may be the first piece of a long one.
pub(super) fn is_direct(route: &Route<'_>, is_piece: bool) -> bool {
    let may_be = is_piece || route.offset_bytes > 0 || route.length_bytes >= FROM_BYTES;
    may_be && flags(route.source).contains(OFlags::DIRECT)
}

/// Has a source of that length read through the page cache from now on.
pub(super) fn end(source: BorrowedFd<'_>, length: u64) {
    let flags = if length >= FROM_BYTES { flags(source) } else { OFlags::empty() };
    if flags.contains(OFlags::DIRECT) {
        let _was_possible_before = rustix::fs::fcntl_setfl(source, flags - OFlags::DIRECT);
    }
}

fn flags(source: BorrowedFd<'_>) -> OFlags {
    rustix::fs::fcntl_getfl(source).unwrap_or(OFlags::empty())
}

impl Content<'_> {
    /// Has a file that is not cached read around the page cache, if that can be done. Returns how it is
    /// to be copied.
    ///
    /// Cost: two cachestat for a file of 256 KiB and more.
    pub(super) fn read_around(&self, job: &FileJob<'_>, pair: &Pair, method: Method) -> Method {
        let length = job.facts.st_size as u64;
        let is_free = matches!(method, Method::Sync | Method::CopyFileRange | Method::Splice)
            && self.options.method.is_none()
            && self.options.block_bytes == 0;
        let is_apt = pair.facts.source.nature == Nature::Disk && !pair.facts.source.in_memory;
        // A rate may want pieces that are no direct reads.
        let fits = |piece: u64| piece >= FROM_BYTES && piece.is_multiple_of(DIRECT_BYTES);
        let is_apt = is_apt && self.methods.limits.piece_bytes().is_none_or(fits);
        if !is_free || !is_apt || length < FROM_BYTES || is_cached(job.source, length) {
            return method;
        }
        if rustix::fs::fcntl_setfl(job.source, flags(job.source) | OFlags::DIRECT).is_err() {
            return method;
        }
        (job.waits)(THREADS);
        Method::Sync
    }

    /// Moves a range of a file that is read around the page cache. Where the filesystem wants other
    /// places or lengths, or the file has ended elsewhere, it is read through the cache from now on.
    pub(super) fn range_around(&mut self, route: Route<'_>) -> Result<Moved, TransferError> {
        let mut block = self.methods.blocks.take();
        let lent = block.as_mut().map(AlignedBuffer::as_mut_slice);
        let moved = self.transfer.run_direct(route, lent, &mut self.stop);
        if let Some(block) = block {
            self.methods.blocks.give_back(block);
        }
        if let Ok(Moved { end: End::Unclear, .. }) = moved {
            end(route.source, u64::MAX);
        }
        moved
    }
}

/// Whether some of a file is in the page cache, as far as its ends tell. Who may not know that
/// takes it for cached.
fn is_cached(source: BorrowedFd<'_>, length: u64) -> bool {
    let holds = |offset: u64| {
        let looked = page_cache::state(source, offset, LOOK_BYTES.min(length - offset));
        looked.map_or(true, |state| state.cached_bytes > 0)
    };
    holds(0) || length > LOOK_BYTES && holds(length - LOOK_BYTES)
}
