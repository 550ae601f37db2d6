//! The sync method with an eye for zeros: blocks of them are left out, as holes.

use super::sync::{whole_blocks, write_all};
use super::{Moved, Route, TransferError};
use crate::stop::Stop;

/// Blocks that are looked at, aligned in the file: the block of most filesystems. A smaller hole
/// could not be kept.
pub const ZERO_BLOCK_BYTES: usize = 4096;

pub(super) fn run(
    route: Route<'_>,
    buffer: &mut [u8],
    stop: &mut Stop,
) -> Result<(Moved, u64), TransferError> {
    let mut written = 0;
    let moved = whole_blocks(route, buffer, 1, stop, |block, place| {
        let more = write_runs(route, block, place)?;
        written += more;
        Ok(more)
    })?;
    Ok((moved, written))
}

/// Writes what is not zero, adjacent blocks together.
fn write_runs(route: Route<'_>, bytes: &[u8], place: u64) -> Result<u64, TransferError> {
    let (mut start, mut run, mut written) = (0, 0, 0);
    let mut flush = |run: usize, end: usize| {
        written += (end - run) as u64;
        write_all(route.target, &bytes[run..end], place + run as u64).map_err(TransferError::Target)
    };
    while start < bytes.len() {
        let into_block = ((place + start as u64) % ZERO_BLOCK_BYTES as u64) as usize;
        let end = (start + ZERO_BLOCK_BYTES - into_block).min(bytes.len());
        if is_zero(&bytes[start..end]) {
            if run < start {
                flush(run, start)?;
            }
            run = end;
        }
        start = end;
    }
    if run < bytes.len() {
        flush(run, bytes.len())?;
    }
    Ok(written)
}

/// Whether all bytes are zero. Cost: for most blocks that are not, a look at their first bytes.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(256).all(|chunk| chunk.iter().fold(0, |seen, byte| seen | byte) == 0)
}
