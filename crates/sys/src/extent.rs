//! What of a file lies on its disk: data, holes, and space that was given but never written.
//!
//! FIEMAP tells all three; see the kernel's `Documentation/filesystems/fiemap.rst`. Filesystems
//! without it may answer `SEEK_DATA` and `SEEK_HOLE`, for which unwritten space is a hole.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::cause::answered;

/// `_IOWR('f', 11, struct fiemap)`, the same on all architectures that are built for.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

/// Write back first, so that data without a place yet gets one.
const FIEMAP_FLAG_SYNC: u32 = 1;

const FIEMAP_EXTENT_LAST: u32 = 1;
/// Stored in another form than it is read in; beside `DATA_ENCRYPTED` that costs no bytes.
const FIEMAP_EXTENT_ENCODED: u32 = 0x8;
const FIEMAP_EXTENT_DATA_ENCRYPTED: u32 = 0x80;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;

/// Extents asked for at a time: 56 bytes each.
const BATCH_EXTENTS: usize = 256;

/// What a range of a file is made of. The three add up to the length of the range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extents {
    /// Bytes that were written, as far as the filesystem can tell: in whole blocks.
    pub data_bytes: u64,
    /// Bytes without any place on the disk; they read as zeros at the speed of memory.
    pub hole_bytes: u64,
    /// Bytes with a place that was never written (fallocate); they read as zeros too. `None`
    /// where the filesystem cannot tell, and counts them as holes.
    pub unwritten_bytes: Option<u64>,
    /// Bytes of the data that are stored compressed; `None` where it cannot be told.
    pub compressed_bytes: Option<u64>,
    /// Pieces that the data and the unwritten space are in; `None` where it cannot be told.
    pub extents: Option<u64>,
}

/// What the given range of a file is made of; `None` where no method works: block devices, some
/// network filesystems.
///
/// A range may go past the end of the file, where there may be unwritten space too. Dirty data of
/// the file is written back by this call. `SEEK_DATA` moves the file's position, which is
/// put back afterwards: no other thread may use the position meanwhile.
///
/// Errors: those of the calls, except where they say that a method is not known here.
/// Cost: one ioctl per 256 extents, or two lseeks per piece.
pub fn extents(
    descriptor: BorrowedFd<'_>,
    offset_bytes: u64,
    length_bytes: u64,
) -> io::Result<Option<Extents>> {
    let end = offset_bytes.saturating_add(length_bytes);
    match mapped(descriptor, offset_bytes..end, FIEMAP_FLAG_SYNC, usize::MAX) {
        Err(error) if is_refusal(&error) => {}
        known => return known.map(Some),
    }
    match by_seeking(descriptor, offset_bytes..end, u32::MAX) {
        Err(error) if is_refusal(&error) => Ok(None),
        known => known.map(Some),
    }
}

/// Bytes of the first pieces of a file that are stored compressed; `None` where FIEMAP does not tell.
/// Nothing is written back: what has no place yet does not count.
///
/// Cost: 16 ioctls at most, for 4096 pieces.
pub fn compressed_bytes(descriptor: BorrowedFd<'_>, length_bytes: u64) -> Option<u64> {
    const MOST_BATCHES: usize = 16;
    mapped(descriptor, 0..length_bytes, 0, MOST_BATCHES).ok()?.compressed_bytes
}

/// The errors by which a filesystem says that it does not know the method, or a policy that it may not be asked.
fn is_refusal(error: &io::Error) -> bool {
    use libc::{EACCES, EBADR, EINVAL, ENOSYS, ENOTTY, EOPNOTSUPP, EPERM, ESPIPE};
    let refusals = [EOPNOTSUPP, ENOTTY, ENOSYS, EINVAL, EBADR, ESPIPE, EPERM, EACCES];
    error.raw_os_error().is_some_and(|code| refusals.contains(&code))
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for a batch of extents behind it.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; BATCH_EXTENTS],
}

const _: () = assert!(size_of::<Extent>() == 56);
const _: () = assert!(size_of::<Request>() == 32 + 56 * BATCH_EXTENTS);

/// What so many batches of extents tell; what lies behind them counts as a hole.
fn mapped(
    descriptor: BorrowedFd<'_>,
    Range { start, end }: Range<u64>,
    mut flags: u32,
    most_batches: usize,
) -> io::Result<Extents> {
    let mut tally = Tally { position: start, end, ..Tally::default() };
    for _ in 0..most_batches {
        if tally.position >= end {
            break;
        }
        let mut request = Box::new(Request {
            start: tally.position,
            length: end - tally.position,
            flags,
            mapped_extents: 0,
            extent_count: BATCH_EXTENTS as u32,
            reserved: 0,
            extents: [Extent::default(); BATCH_EXTENTS],
        });
        // SAFETY: FS_IOC_FIEMAP reads and writes one `struct fiemap` and at most `extent_count`
        // extents behind it; `Request` is laid out so and is exclusively borrowed meanwhile.
        answered(unsafe {
            libc::ioctl(descriptor.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *request)
        })?;
        // Only the first batch needs to wait for the write-back.
        flags = 0;
        let count = (request.mapped_extents as usize).min(BATCH_EXTENTS);
        let before = tally.position;
        let batch = &request.extents[..count];
        batch.iter().for_each(|extent| tally.add(extent));
        let is_last = batch.last().is_none_or(|last| last.flags & FIEMAP_EXTENT_LAST != 0);
        // A batch that leads nowhere would come back for ever.
        if is_last || tally.position == before {
            break;
        }
    }
    Ok(tally.finish())
}

/// Sums of extents that come in the order of the file.
#[derive(Default)]
struct Tally {
    position: u64,
    end: u64,
    extents: u64,
    found: Extents,
    unwritten_bytes: u64,
    compressed_bytes: u64,
}

impl Tally {
    fn add(&mut self, extent: &Extent) {
        let start = extent.logical.clamp(self.position, self.end);
        let stop = extent.logical.saturating_add(extent.length).clamp(start, self.end);
        self.found.hole_bytes += start - self.position;
        if extent.flags & FIEMAP_EXTENT_UNWRITTEN != 0 {
            self.unwritten_bytes += stop - start;
        } else {
            self.found.data_bytes += stop - start;
        }
        if extent.flags & (FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED)
            == FIEMAP_EXTENT_ENCODED
        {
            self.compressed_bytes += stop - start;
        }
        self.extents += u64::from(stop > start);
        self.position = stop;
    }

    fn finish(mut self) -> Extents {
        self.found.hole_bytes += self.end - self.position;
        self.found.unwritten_bytes = Some(self.unwritten_bytes);
        self.found.compressed_bytes = Some(self.compressed_bytes);
        self.found.extents = Some(self.extents);
        self.found
    }
}

/// Data and holes of a range, as far as so many pieces go. Nothing is written back; else as [`extents`].
///
/// Cost: two lseeks per piece.
pub fn by_seeking(
    descriptor: BorrowedFd<'_>,
    range: Range<u64>,
    most_pieces: u32,
) -> io::Result<Extents> {
    let position = seek(descriptor, SeekFrom::Current(0))?;
    let found = pieces(descriptor, range, most_pieces);
    seek(descriptor, SeekFrom::Start(position))?;
    found
}

fn pieces(
    descriptor: BorrowedFd<'_>,
    Range { start, end }: Range<u64>,
    most_pieces: u32,
) -> io::Result<Extents> {
    let mut found = Extents::default();
    let mut position = start;
    for _ in 0..most_pieces {
        let data = match seek(descriptor, SeekFrom::Data(position)) {
            // Nothing but a hole, or nothing at all, behind the position.
            Err(Errno::NXIO) => end,
            known => known?.clamp(position, end),
        };
        found.hole_bytes += data - position;
        position = data;
        if position == end {
            break;
        }
        let hole = match seek(descriptor, SeekFrom::Hole(position)) {
            Err(Errno::NXIO) => position,
            known => known?.clamp(position, end),
        };
        if hole == position {
            // The file became shorter meanwhile.
            found.hole_bytes += end - position;
            break;
        }
        found.data_bytes += hole - position;
        position = hole;
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
