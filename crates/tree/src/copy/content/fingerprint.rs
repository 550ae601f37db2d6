//! What `--verify` compares: a digest of the pieces of a file that are not all zeros, with their
//! places, and of its length. So it is the same however holes lie, and a hole costs nothing.
//!
//! XXH3 with 128 bits: it finds what memory, buses and devices do to bytes, not what an enemy does.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use flatout_io::Stop;
use flatout_io::digest::{Algorithm, Digest, Hasher};
use flatout_io::transfer::is_zero;
use flatout_sys::{filesystem, page_cache};
use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;

use super::{INTERRUPTED, READ_BACK};
use crate::copy::failure::Refusal;
use crate::file_data;

/// Pieces that are looked at, aligned in the file. No filesystem here has larger blocks.
pub(super) const PIECE_BYTES: usize = 64 << 10;

/// Takes pieces in the order of the file.
pub(super) struct Fingerprint(Hasher);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(Hasher::new(Algorithm::Xxh3))
    }
}

impl Fingerprint {
    /// Takes bytes that begin at a piece, and end at one or where the file does.
    pub(super) fn take(&mut self, offset_bytes: u64, bytes: &[u8]) {
        debug_assert!(offset_bytes.is_multiple_of(PIECE_BYTES as u64));
        let mut place = offset_bytes;
        for piece in bytes.chunks(PIECE_BYTES) {
            if !is_zero(piece) {
                self.0.update(&place.to_le_bytes());
                self.0.update(piece);
            }
            place += piece.len() as u64;
        }
    }

    pub(super) fn finish(mut self, length_bytes: u64) -> Digest {
        self.0.update(&length_bytes.to_le_bytes());
        self.0.finish()
    }
}

/// The fingerprint of the first `length_bytes` of a file, read through `buffer`, which is whole
/// pieces long.
pub(super) fn of(
    file: BorrowedFd<'_>,
    length_bytes: u64,
    buffer: &mut [u8],
    stop: &mut Stop,
    operation: &'static str,
) -> Result<Digest, Refusal> {
    let mut fingerprint = Fingerprint::default();
    let mut place = 0;
    while let Some((start, end)) = pieces(file, place, length_bytes, operation)? {
        place = start;
        while place < end {
            if stop.is_cancelled() {
                return Err(Refusal::because(operation, INTERRUPTED));
            }
            // Whole pieces are asked for, as direct reads need; the end of the file cuts the last.
            let wanted = (end - place).next_multiple_of(PIECE_BYTES as u64);
            let wanted = wanted.min(buffer.len() as u64) as usize;
            let got = file_data::read(file, &mut buffer[..wanted], place)
                .map_err(Refusal::of(operation))?
                .min((length_bytes - place) as usize);
            fingerprint.take(place, &buffer[..got]);
            if got < wanted {
                place = end;
                break;
            }
            place += got as u64;
        }
    }
    Ok(fingerprint.finish(length_bytes))
}

/// The next data of a file from `place` on, grown to whole pieces, as its begin and end.
fn pieces(
    file: BorrowedFd<'_>,
    place: u64,
    length: u64,
    operation: &'static str,
) -> Result<Option<(u64, u64)>, Refusal> {
    if place >= length {
        return Ok(None);
    }
    let extent = file_data::next_extent(file, place, length).map_err(Refusal::of(operation))?;
    let Some((data, hole)) = extent else { return Ok(None) };
    let piece = PIECE_BYTES as u64;
    let (start, end) = (data - data % piece, hole.next_multiple_of(piece).min(length));
    Ok((start < length).then_some((start, end)))
}

/// The fingerprint of a target as its device has it: see [`super::Content::read_back`].
pub(super) fn read_back(
    target: BorrowedFd<'_>,
    length_bytes: u64,
    buffer: &mut [u8],
    stop: &mut Stop,
) -> Result<Digest, Refusal> {
    let size = seek(target, SeekFrom::End(0)).map_err(Refusal::of(READ_BACK))?;
    if size != length_bytes {
        // What it holds does not matter any more, but the answer must differ.
        return Ok(Fingerprint::default().finish(size));
    }
    match page_cache::evict(target, 0, 0) {
        Ok(left) if left.cached_bytes == 0 => {
            return of(target, length_bytes, buffer, stop, READ_BACK);
        }
        Err(error) if !is_unknowable(&error) => {
            return Err(Refusal::of(READ_BACK)(errno_of(&error)));
        }
        // Somebody maps it, reads it, or the cache cannot be asked.
        Ok(_) | Err(_) => {}
    }
    let home = filesystem::of(target).map_err(|error| Refusal::of(READ_BACK)(errno_of(&error)))?;
    if home.in_memory {
        return of(target, length_bytes, buffer, stop, READ_BACK);
    }
    let reason = "its pages stay in the page cache, and it cannot be read around it";
    let direct = around_the_cache(target).map_err(|_| Refusal::because(READ_BACK, reason))?;
    of(direct.as_fd(), length_bytes, buffer, stop, READ_BACK)
}

/// Whether the kernel only does not tell what it holds.
fn is_unknowable(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL | Errno::NODEV)
    )
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The same file again, for direct reads. The link of /proc leads to the inode, not to its name.
fn around_the_cache(file: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECT;
    rustix::fs::open(format!("/proc/self/fd/{}", file.as_raw_fd()), flags, Mode::empty())
}
