//! How far one request has come, and what each answer of the kernel means for it: one policy for
//! all engines.

use std::io;
use std::ops::ControlFlow;

use rustix::io::Errno;

use super::{Access, Direction, Request};
use crate::interruption::MAX_INTERRUPTIONS;
use crate::stop::Stop;
use crate::tuning::Caching;

/// How far a request has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Bytes moved so far.
    pub(super) moved: usize,
    /// Times in a row that it was put off (`EINTR`, `EAGAIN`). A regular file puts nothing off.
    put_off: u32,
}

impl Progress {
    /// Takes an answer of the kernel in. `Break` holds the result of the request, `Continue` says
    /// that the rest of it has to be asked for again.
    pub(super) fn take(
        &mut self,
        (request, access): (&Request, Access),
        answer: io::Result<usize>,
        stop: &Stop,
    ) -> ControlFlow<io::Result<usize>> {
        let error = match answer {
            Ok(0) if request.direction == Direction::Write && request.length_bytes > 0 => {
                return ControlFlow::Break(Err(io::ErrorKind::WriteZero.into()));
            }
            Ok(0) => return ControlFlow::Break(Ok(self.moved)),
            Ok(more) => {
                self.moved += more;
                self.put_off = 0;
                return match self.moved < request.length_bytes {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(Ok(self.moved)),
                };
            }
            Err(error) => error,
        };
        match Errno::from_io_error(&error) {
            Some(Errno::INTR | Errno::AGAIN) if stop.is_cancelled() => {
                ControlFlow::Break(Ok(self.moved))
            }
            Some(Errno::INTR | Errno::AGAIN) if self.put_off < MAX_INTERRUPTIONS => {
                self.put_off += 1;
                ControlFlow::Continue(())
            }
            // A direct read that stopped within a sector has met the end of the file.
            Some(Errno::INVAL)
                if self.moved > 0
                    && request.direction == Direction::Read
                    && access.caching == Caching::Direct =>
            {
                ControlFlow::Break(Ok(self.moved))
            }
            _ => ControlFlow::Break(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::cancel::CancelToken;

    use super::*;

    const READ: Request = Request {
        direction: Direction::Read,
        file: 0,
        offset_bytes: 0,
        length_bytes: 100,
        due_ns: 0,
    };
    const WRITE: (&Request, Access) =
        (&Request { direction: Direction::Write, ..READ }, Access::BUFFERED);

    fn put_off(errno: Errno) -> io::Result<usize> {
        Err(errno.into())
    }

    fn ended(step: ControlFlow<io::Result<usize>>) -> io::Result<usize> {
        step.break_value().expect("the request has ended")
    }

    #[test]
    fn a_short_request_goes_on_until_all_is_moved() {
        let (mut progress, stop) = (Progress::default(), Stop::never());
        assert!(progress.take(WRITE, Ok(60), &stop).is_continue());
        assert_eq!(ended(progress.take(WRITE, Ok(40), &stop)).unwrap(), 100);
    }

    #[test]
    fn a_write_of_nothing_is_an_error_and_a_read_of_nothing_the_end() {
        let stop = Stop::never();
        let error = ended(Progress::default().take(WRITE, Ok(0), &stop)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        let mut progress = Progress::default();
        assert!(progress.take((&READ, Access::BUFFERED), Ok(60), &stop).is_continue());
        assert_eq!(ended(progress.take((&READ, Access::BUFFERED), Ok(0), &stop)).unwrap(), 60);
    }

    #[test]
    fn a_read_that_stopped_within_a_sector_has_met_the_end() {
        let stop = Stop::never();
        let refused = || Err(Errno::INVAL.into());
        let direct = Access { caching: Caching::Direct, ..Access::BUFFERED };
        let cases = [
            ((&READ, direct), true),
            ((&READ, Access::BUFFERED), false),
            ((WRITE.0, direct), false),
        ];
        for (request, is_end) in cases {
            let mut progress = Progress::default();
            assert!(ended(progress.take(request, refused(), &stop)).is_err());
            assert!(progress.take(request, Ok(60), &stop).is_continue());
            assert_eq!(ended(progress.take(request, refused(), &stop)).is_ok(), is_end);
        }
    }

    #[test]
    fn a_request_that_is_put_off_for_ever_is_an_error() {
        for errno in [Errno::AGAIN, Errno::INTR] {
            let (mut progress, stop) = (Progress::default(), Stop::never());
            for _ in 0..MAX_INTERRUPTIONS {
                assert!(progress.take(WRITE, put_off(errno), &stop).is_continue());
            }
            let error = ended(progress.take(WRITE, put_off(errno), &stop)).unwrap_err();
            assert_eq!(Errno::from_io_error(&error), Some(errno));
        }
    }

    #[test]
    fn being_put_off_counts_anew_after_progress() {
        let (mut progress, stop) = (Progress::default(), Stop::never());
        for _ in 0..50 {
            for _ in 0..MAX_INTERRUPTIONS {
                assert!(progress.take(WRITE, put_off(Errno::INTR), &stop).is_continue());
            }
            assert!(progress.take(WRITE, Ok(1), &stop).is_continue());
        }
    }

    #[test]
    fn a_wish_to_stop_ends_a_request_that_is_put_off() {
        let token = CancelToken::manual();
        let (mut progress, stop) = (Progress::default(), Stop::new(token, None));
        assert!(progress.take(WRITE, Ok(60), &stop).is_continue());
        token.cancel();
        assert_eq!(ended(progress.take(WRITE, put_off(Errno::AGAIN), &stop)).unwrap(), 60);
    }
}
