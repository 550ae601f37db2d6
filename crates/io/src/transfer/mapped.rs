//! The mmap method: pwrite(2) straight out of a mapping of the source, one copy of the bytes
//! instead of two.
//!
//! The kernel reads the mapping, not we: where the source was cut short meanwhile, or its device
//! fails, a write ends early or says `FAULT`, and no signal comes. What is mapped of the last page
//! behind the end of a file reads as zeros; so the length of the source is looked at afterwards.

use flatout_sys::cause::errno_of;
use flatout_sys::mapping::Window;
use rustix::io::Errno;

use super::{End, Moved, Route, TransferError};
use crate::interruption::unless_interrupted;
use crate::stop::Stop;

/// Bytes mapped at a time. Mapped pages count as resident memory. Not measured
/// against other lengths yet.
const WINDOW_BYTES: u64 = 2 << 20;
/// Bytes per write, where nothing else is asked for.
const BLOCK_BYTES: u64 = 512 << 10;

/// What mmap(2) says of files that cannot be mapped (`NODEV`, `ACCESS`, `PERM`, `INVAL`, `OVERFLOW`,
/// `OPNOTSUPP`), or not now (`NOMEM`: more windows than there may be, too; `AGAIN`).
const CANNOT: [Errno; 8] = [
    Errno::NODEV,
    Errno::ACCESS,
    Errno::PERM,
    Errno::INVAL,
    Errno::OVERFLOW,
    Errno::OPNOTSUPP,
    Errno::NOMEM,
    Errno::AGAIN,
];

pub(super) fn run(
    route: Route<'_>,
    block_bytes: u64,
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    let moved = through_windows(route, block_bytes, stop)?;
    let reached = route.offset_bytes + moved.bytes;
    let length = rustix::fs::fstat(route.source).map_err(TransferError::Source)?.st_size as u64;
    if length >= reached {
        return Ok(moved);
    }
    // Behind the end there were zeros, which nobody ever wrote.
    Ok(Moved { bytes: length.saturating_sub(route.offset_bytes), end: End::SourceEnded })
}

fn through_windows(
    route: Route<'_>,
    block_bytes: u64,
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    let block_bytes = if block_bytes == 0 { BLOCK_BYTES } else { block_bytes };
    let page_bytes = rustix::param::page_size() as u64;
    let end = route.offset_bytes.saturating_add(route.length_bytes);
    let mut place = route.offset_bytes;
    let moved = |place: u64, end: End| Ok(Moved { bytes: place - route.offset_bytes, end });
    while place < end {
        let start = place - place % page_bytes;
        let window_end = ((start / WINDOW_BYTES + 1) * WINDOW_BYTES).min(end);
        let window = match Window::map(route.source, start, (window_end - start) as usize) {
            Ok(window) => window,
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
                if CANNOT.contains(&errno) {
                    return moved(place, End::Cannot(errno));
                }
                return Err(TransferError::Source(errno));
            }
        };
        while place < window_end {
            if place > route.offset_bytes && (stop.is_cancelled() || stop.is_due()) {
                return moved(place, End::Stopped);
            }
            let wanted = (window_end - place).min(block_bytes) as usize;
            let write = || window.write_to(route.target, place, wanted);
            match unless_interrupted(|| write().map_err(|error| errno_of(&error))) {
                Ok(0) | Err(Errno::FAULT) => return moved(place, End::Unclear),
                Ok(got) => {
                    place += got as u64;
                    route.add(got as u64);
                }
                Err(errno) => return Err(TransferError::Target(errno)),
            }
        }
    }
    moved(place, End::Whole)
}
