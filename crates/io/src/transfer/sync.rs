//! The sync method: pread(2) into a buffer, pwrite(2) out of it. Works everywhere.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::{End, Moved, Route, TransferError};
use crate::stop::Stop;

pub(super) fn run(
    route: Route<'_>,
    buffer: &mut [u8],
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    let mut moved = 0;
    while moved < route.length_bytes {
        if moved > 0 && (stop.is_cancelled() || stop.is_due()) {
            return Ok(Moved { bytes: moved, end: End::Stopped });
        }
        let wanted = (route.length_bytes - moved).min(buffer.len() as u64) as usize;
        let place = route.offset_bytes + moved;
        let got = match rustix::io::pread(route.source, &mut buffer[..wanted], place) {
            Ok(0) => return Ok(Moved { bytes: moved, end: End::SourceEnded }),
            Ok(got) => got,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(TransferError::Source(errno)),
        };
        write_all(route.target, &buffer[..got], place)?;
        route.add(got as u64);
        moved += got as u64;
    }
    Ok(Moved { bytes: moved, end: End::Whole })
}

pub(super) fn run_seen(
    route: Route<'_>,
    buffer: &mut [u8],
    stop: &mut Stop,
    seen: &mut dyn FnMut(u64, &[u8]),
) -> Result<Moved, TransferError> {
    let mut moved = 0;
    while moved < route.length_bytes {
        if stop.is_cancelled() || stop.is_due() {
            return Ok(Moved { bytes: moved, end: End::Stopped });
        }
        let wanted = (route.length_bytes - moved).min(buffer.len() as u64) as usize;
        let place = route.offset_bytes + moved;
        let got =
            read_full(route.source, &mut buffer[..wanted], place).map_err(TransferError::Source)?;
        seen(place, &buffer[..got]);
        write_all(route.target, &buffer[..got], place)?;
        route.add(got as u64);
        moved += got as u64;
        if got < wanted {
            return Ok(Moved { bytes: moved, end: End::SourceEnded });
        }
    }
    Ok(Moved { bytes: moved, end: End::Whole })
}

/// Fills the buffer as far as the file goes.
pub(super) fn read_full(
    source: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset_bytes: u64,
) -> Result<usize, Errno> {
    let mut got = 0;
    while got < buffer.len() {
        match rustix::io::pread(source, &mut buffer[got..], offset_bytes + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(got)
}

/// Writes all of the bytes: a write may take less than it was given, and the next one says why.
pub(super) fn write_all(
    target: BorrowedFd<'_>,
    bytes: &[u8],
    offset_bytes: u64,
) -> Result<(), TransferError> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::pwrite(target, &bytes[written..], offset_bytes + written as u64) {
            // No reason is given, and there is none to try for ever.
            Ok(0) => return Err(TransferError::Target(Errno::IO)),
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(TransferError::Target(errno)),
        }
    }
    Ok(())
}
