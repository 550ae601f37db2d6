//! What `--verify` compares: a digest of the pieces of a file that are not all zeros, with their
//! places, and of its length. So it is the same however holes lie, and a hole costs nothing.
//!
//! XXH3 with 128 bits: it finds what memory, buses and devices do to bytes, not what an enemy does.

use std::os::fd::{AsFd, BorrowedFd};

use flatout_io::Stop;
use flatout_io::digest::{Algorithm, Digest, Hasher};
use flatout_io::transfer::{Transfer, is_zero, read_full};
use flatout_sys::{filesystem, page_cache};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;

use super::{Content, FileJob, READ, READ_BACK, refusal};
use crate::copy::{Assurance, Inventory, Refusal};
use crate::file_data::{self, errno_of};

/// Pieces that are looked at, aligned in the file. No filesystem here has larger blocks.
pub(super) const PIECE_BYTES: usize = 64 << 10;

/// What was seen of a file, as digests, where they are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Of the pieces that are not all zeros.
    pub(super) pieces: Option<Digest>,
    /// Of all bytes, as any other program computes it.
    pub(super) plain: Option<Digest>,
}

/// What holes are read as.
static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// Takes pieces in the order of the file.
pub(super) struct Fingerprint {
    pieces: Option<Hasher>,
    plain: Option<Hasher>,
    /// How far the plain bytes were taken.
    reached: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self { pieces: Some(Hasher::new(Algorithm::Xxh3)), plain: None, reached: 0 }
    }
}

impl Fingerprint {
    /// With what is wanted; `None`: nothing is.
    pub(super) fn of(assurance: Assurance, inventory: Inventory) -> Option<Self> {
        let verified = assurance == Assurance::Verified;
        let plain = inventory == Inventory::Digests;
        (verified || plain).then(|| Self {
            pieces: verified.then(|| Hasher::new(Algorithm::Xxh3)),
            plain: plain.then(|| Hasher::new(Algorithm::Blake3)),
            reached: 0,
        })
    }

    /// Takes bytes that begin at a piece, and end at one or where the file does. What was left out
    /// before them is a hole.
    pub(super) fn take(&mut self, offset_bytes: u64, bytes: &[u8]) {
        debug_assert!(offset_bytes.is_multiple_of(PIECE_BYTES as u64));
        self.fill(offset_bytes);
        if let Some(plain) = &mut self.plain {
            plain.update(bytes);
            self.reached = offset_bytes + bytes.len() as u64;
        }
        let Some(pieces) = &mut self.pieces else { return };
        let mut place = offset_bytes;
        for piece in bytes.chunks(PIECE_BYTES) {
            if !is_zero(piece) {
                pieces.update(&place.to_le_bytes());
                pieces.update(piece);
            }
            place += piece.len() as u64;
        }
    }

    /// Takes the zeros of a hole.
    fn fill(&mut self, end: u64) {
        let Some(plain) = &mut self.plain else { return };
        while self.reached < end {
            let length = (end - self.reached).min(ZEROS.len() as u64);
            plain.update(&ZEROS[..length as usize]);
            self.reached += length;
        }
    }

    /// The same of one that may be long, unless the user wants to stop.
    fn fill_unless_stopped(
        &mut self,
        end: u64,
        stop: &Stop,
        operation: &'static str,
    ) -> Result<(), Refusal> {
        const STEP_BYTES: u64 = 16 << 20;
        while self.plain.is_some() && self.reached < end {
            if stop.is_cancelled() {
                return Err(Refusal::interrupted(operation));
            }
            self.fill(end.min(self.reached.saturating_add(STEP_BYTES)));
        }
        Ok(())
    }

    pub(super) fn finish(mut self, length_bytes: u64) -> Seen {
        self.fill(length_bytes);
        let pieces = self.pieces.map(|mut pieces| {
            pieces.update(&length_bytes.to_le_bytes());
            pieces.finish()
        });
        Seen { pieces, plain: self.plain.map(Hasher::finish) }
    }
}

impl Content<'_> {
    /// The fingerprint of a source whose bytes we did not see, where one is wanted.
    pub(super) fn digest_of_source(
        &mut self,
        job: &FileJob<'_>,
        length: u64,
    ) -> Result<Seen, Refusal> {
        let Some(fingerprint) = self.fingerprint() else { return Ok(Seen::default()) };
        let buffer = buffer(&mut self.transfer, length)?;
        of(fingerprint, (job.source, length), buffer, &mut self.stop, READ)
    }
}

/// A buffer for a file of that length, whole pieces long: each thread that reads back has one.
pub(super) fn buffer(transfer: &mut Transfer, length_bytes: u64) -> Result<&mut [u8], Refusal> {
    transfer.buffer(length_bytes.max(PIECE_BYTES as u64)).map_err(refusal)
}

/// The fingerprint of the first `length_bytes` of a file, read through `buffer`, which is whole
/// pieces long.
pub(super) fn of(
    mut fingerprint: Fingerprint,
    (file, length_bytes): (BorrowedFd<'_>, u64),
    buffer: &mut [u8],
    stop: &mut Stop,
    operation: &'static str,
) -> Result<Seen, Refusal> {
    let (mut place, mut is_told) = (0, None);
    while let Some((start, end)) = pieces((file, &mut is_told), (place, length_bytes), operation)? {
        place = start;
        fingerprint.fill_unless_stopped(start, stop, operation)?;
        while place < end {
            if stop.is_cancelled() {
                return Err(Refusal::interrupted(operation));
            }
            // Whole pieces are asked for, as direct reads need; the end of the file cuts the last.
            let wanted = (end - place).next_multiple_of(PIECE_BYTES as u64);
            // No file goes farther.
            let wanted = wanted.min(buffer.len() as u64).min(i64::MAX as u64 - place) as usize;
            let got = read_full(file, &mut buffer[..wanted], place)
                .map_err(Refusal::of(operation))?
                .min((length_bytes - place) as usize);
            fingerprint.take(place, &buffer[..got]);
            if got < wanted {
                // What ends too early is as long as it says to whoever copied it, and has other bytes here.
                if place + (got as u64) < end {
                    fingerprint.plain = None;
                }
                place = end;
                break;
            }
            place += got as u64;
        }
    }
    fingerprint.fill_unless_stopped(length_bytes, stop, operation)?;
    Ok(fingerprint.finish(length_bytes))
}

/// The next data of a file from `place` on, grown to whole pieces, as its begin and end. `is_told` remembers whether
/// there are none where the file says so.
fn pieces(
    (file, is_told): (BorrowedFd<'_>, &mut Option<bool>),
    (place, length): (u64, u64),
    operation: &'static str,
) -> Result<Option<(u64, u64)>, Refusal> {
    if place >= length {
        return Ok(None);
    }
    let extent = file_data::next_extent(file, place, length).map_err(Refusal::of(operation))?;
    let shows =
        || rustix::fs::fstat(file).is_ok_and(|facts| file_data::shows_its_holes(file, &facts));
    if extent != Some((place, length)) && !*is_told.get_or_insert_with(shows) {
        return Ok(Some((place - place % PIECE_BYTES as u64, length)));
    }
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
) -> Result<Option<Digest>, Refusal> {
    let mut read = |file: BorrowedFd<'_>| {
        let seen = of(Fingerprint::default(), (file, length_bytes), buffer, stop, READ_BACK);
        seen.map(|seen| seen.pieces)
    };
    let size = seek(target, SeekFrom::End(0)).map_err(Refusal::of(READ_BACK))?;
    if size != length_bytes {
        // What it holds does not matter any more, but the answer must differ.
        return Ok(Fingerprint::default().finish(size).pieces);
    }
    match page_cache::evict(target, 0) {
        Ok(left) if left.cached_bytes == 0 => {
            return read(target);
        }
        Err(error) if !is_unknowable(&error) => {
            return Err(Refusal::of(READ_BACK)(errno_of(&error)));
        }
        // Somebody maps it, reads it, or the cache cannot be asked.
        Ok(_) | Err(_) => {}
    }
    let home = filesystem::of(target).map_err(|error| Refusal::of(READ_BACK)(errno_of(&error)))?;
    if home.in_memory {
        return read(target);
    }
    let reason = "its pages stay in the page cache, and it cannot be read around it";
    let direct = file_data::reopen(target, OFlags::DIRECT)
        .map_err(|_| Refusal::because(READ_BACK, reason))?;
    read(direct.as_fd())
}

/// Whether the kernel only does not tell what it holds.
fn is_unknowable(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL | Errno::NODEV)
    )
}
