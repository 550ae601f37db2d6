//! Calls that a signal has interrupted: they are made again, but not without end, and not where it was a wish to
//! stop: whoever serves a file slowly would be waited for once more.

use flatout_sys::cancel::CancelToken;
use rustix::io::Errno;

/// Times in a row that a call is made again. Not measured: signals come one by one, and so many calls take
/// some milliseconds, so that a server (FUSE) which answers nothing else is soon an error.
pub const MAX_INTERRUPTIONS: u32 = 1000;

/// Makes a call again that a signal has interrupted.
///
/// Errors: those of the call; `EINTR` where a signal asks for the end, or nothing else came of
/// [`MAX_INTERRUPTIONS`] tries.
pub fn unless_interrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..MAX_INTERRUPTIONS {
        match call() {
            Err(Errno::INTR) if !CancelToken::signals().is_cancelled() => {}
            done => return done,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_made_again_but_not_without_end() {
        let mut answers = [Err(Errno::INTR), Err(Errno::INTR), Ok(7)].into_iter();
        assert_eq!(unless_interrupted(|| answers.next().unwrap()), Ok(7));
        let mut calls = 0;
        let interrupted = || {
            calls += 1;
            Err::<(), _>(Errno::INTR)
        };
        assert_eq!(unless_interrupted(interrupted), Err(Errno::INTR));
        assert_eq!(calls, MAX_INTERRUPTIONS);
    }
}
