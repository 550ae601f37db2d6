//! What a user may ask for where that depends on more than one setting; the bounds of a single one
//! are those of its option.

use flatout_io::{Engine, Tuning};
use flatout_measure::{TrialError, size_text};
use flatout_sys::memory;

use crate::Error;

/// Longest block. Each lane needs it in memory.
pub const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Buffers take at most one part in this many of the available memory.
const BUFFER_PART: u64 = 2;

/// Bytes of `count` blocks.
///
/// Errors: more bytes than a file can hold.
pub fn length(count: u64, block_bytes: u64) -> Result<u64, Error> {
    let length = count.checked_mul(block_bytes).filter(|&length| length <= i64::MAX as u64);
    length.ok_or_else(|| {
        Error::Usage(format!(
            "--block-count {count} × --block-size {}: more bytes than a file can hold (2^63 - 1)",
            size_text(block_bytes)
        ))
    })
}

/// Refuses buffers that would push the machine into swapping.
pub fn check_memory(tuning: &Tuning) -> Result<(), Error> {
    let Tuning { block_bytes, depth, threads, engine, .. } = *tuning;
    let Some(available) = memory::available_bytes() else { return Ok(()) };
    let needed = u128::from(block_bytes) * u128::from(depth) * u128::from(threads);
    let allowed = u128::from(available / BUFFER_PART);
    if engine == Engine::Mmap || needed <= allowed {
        return Ok(());
    }
    Err(Error::NoRoom(format!(
        "--threads {threads} × --iodepth {depth} × --block-size {}: {} of buffers, but only {} (half of \
         the available memory) may be taken",
        size_text(block_bytes),
        size_text(u64::try_from(needed).unwrap_or(u64::MAX)),
        size_text(available / BUFFER_PART),
    )))
}

/// The same; where memory is short and nobody asked for so many, fewer requests are in flight.
pub(crate) fn fit_memory(tuning: &mut Tuning, asked: Option<u32>) -> Result<(), Error> {
    while asked.is_none() && tuning.depth > 1 && check_memory(tuning).is_err() {
        tuning.depth /= 2;
    }
    check_memory(tuning)
}

/// [`check_memory`] of a trial, whose row this machine cannot have.
pub(crate) fn check_trial(tuning: &Tuning) -> Result<(), TrialError> {
    check_memory(tuning).map_err(|error| TrialError::Unsupported(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_no_file_has_are_refused() {
        assert!(length(u64::MAX, 2).is_err());
        assert!(length(1 << 40, 1 << 30).is_err());
        assert_eq!(length(3, 1000).unwrap(), 3000);
    }
}
