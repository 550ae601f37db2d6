//! Bare system calls in loops: the kernel's side of a call with as little as possible around it.
//!
//! Every function here repeats one call (or one short sequence) a given number of times, checks
//! each result, and returns at the first surprise, so a loop that did nothing cannot look fast.
//! The hot path is the processor's own instruction, without libc; each function says where that
//! is not so. Nothing is timed here but what only the thread that runs can time (`apart`).
//! Read next: `work` for what there is, `raw` for the instruction, then `baseline` for the loops
//! that are subtracted.

mod apart;
mod baseline;
mod descriptor;
mod hand_over;
mod mapping;
mod path;
mod process;
mod raw;
mod ring;
mod work;

pub use apart::{DescriptorTable, Timed, Window, time_apart};
pub use baseline::empty_loop_time;
pub use hand_over::{Turn, pipe_answer, pipe_ask};
pub use work::{Blocks, Entry, Loop, Subject, Work};

use std::io;

/// Runs `call` as often as asked and stops at the first result that is not `good`.
///
/// The comparison is one fused instruction per turn; the empty loop carries it too.
#[inline(always)]
fn repeat(
    name: &'static str,
    calls: u64,
    mut call: impl FnMut() -> isize,
    good: impl Fn(isize) -> bool,
) -> io::Result<()> {
    for _ in 0..calls {
        let result = call();
        if !good(result) {
            return Err(surprise(name, result));
        }
    }
    Ok(())
}

/// The error for a result that a loop did not expect: the kernel's own, or a short transfer.
#[cold]
fn surprise(name: &'static str, result: isize) -> io::Error {
    match i32::try_from(result) {
        Ok(negative) if (-4095..0).contains(&negative) => io::Error::from_raw_os_error(-negative),
        _ => io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{name} returned {result}, which is not what was asked for"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surprise_names_the_kernels_error_or_the_odd_result() {
        let refused = surprise("read", -(libc::EBADF as isize));
        assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
        assert!(surprise("read", 0).to_string().contains("read returned 0"));
    }

    #[test]
    fn a_loop_stops_at_the_first_bad_result() {
        let mut turns = 0;
        let outcome = repeat(
            "test",
            10,
            || {
                turns += 1;
                if turns == 4 { -(libc::EIO as isize) } else { 0 }
            },
            |result| result == 0,
        );
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(turns, 4);
    }
}
