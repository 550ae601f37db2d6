//! What a user may ask for: the bounds of each setting, and the one line that refuses the rest.

use flatout_io::{Engine, Tuning};
use flatout_measure::size_text;
use flatout_sys::memory;
use flatout_sys::ring::MAX_DEPTH;

use crate::Error;
use crate::choice::Wishes;
use crate::workers::MAX_THREADS;

/// Longest block. Each lane needs it in memory.
pub const MAX_BLOCK_BYTES: u64 = 1 << 30;
/// Buffers take at most one part in this many of the available memory.
const BUFFER_PART: u64 = 2;

/// Refuses settings out of bounds. The file is not touched before.
pub fn check(wishes: &Wishes) -> Result<(), Error> {
    within_size("--block-size", wishes.block_bytes, MAX_BLOCK_BYTES)?;
    within("--threads", wishes.threads.map(u64::from), u64::from(MAX_THREADS))?;
    within("--iodepth", wishes.depth.map(u64::from), u64::from(MAX_DEPTH))
}

pub fn within(option: &str, value: Option<u64>, most: u64) -> Result<(), Error> {
    match value {
        Some(value) if value == 0 || value > most => {
            Err(Error::Usage(format!("{option} {value}: it must be from 1 to {most}")))
        }
        _ => Ok(()),
    }
}

pub fn within_size(option: &str, value: Option<u64>, most: u64) -> Result<(), Error> {
    match value {
        Some(value) if value == 0 || value > most => {
            let [value, most] = [value, most].map(size_text);
            Err(Error::Usage(format!("{option} {value}: it must be from 1 byte to {most}")))
        }
        _ => Ok(()),
    }
}

/// Bytes of `count` blocks.
///
/// Errors: no blocks, or more bytes than a file can hold.
pub fn length(count: u64, block_bytes: u64) -> Result<u64, Error> {
    within("--block-count", Some(count), i64::MAX as u64)?;
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
    Err(Error::Usage(format!(
        "--threads {threads} × --iodepth {depth} × --block-size {}: {} of buffers, but only {} (half of \
         the available memory) may be taken",
        size_text(block_bytes),
        size_text(u64::try_from(needed).unwrap_or(u64::MAX)),
        size_text(available / BUFFER_PART),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_named_in_the_refusal() {
        for (wishes, option) in [
            (Wishes { block_bytes: Some(0), ..Wishes::default() }, "--block-size 0"),
            (Wishes { block_bytes: Some(1 << 63), ..Wishes::default() }, "--block-size 8192 PiB"),
            (Wishes { threads: Some(100_000), ..Wishes::default() }, "--threads 100000"),
            (Wishes { depth: Some(0), ..Wishes::default() }, "--iodepth 0"),
        ] {
            let text = check(&wishes).unwrap_err().to_string();
            assert!(text.starts_with(option) && text.contains("from 1 "), "{text}");
        }
    }

    #[test]
    fn lengths_that_no_file_has_are_refused() {
        assert!(length(u64::MAX, 2).is_err());
        assert!(length(1 << 40, 1 << 30).is_err());
        assert_eq!(length(3, 1000).unwrap(), 3000);
    }
}
