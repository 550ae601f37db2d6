//! Reading from front to end what has no length: pipes, /proc files, devices, empty files.

use flatout_sys::cancel::{Ready, wait_readable};
use flatout_sys::view::ByteView;
use rustix::io::Errno;

use super::{Pass, Plan};
use crate::error::Error;
use crate::interruption::MAX_INTERRUPTIONS;
use crate::source::{Kind, Source};
use crate::stop::Stop;

pub(super) fn run(
    source: &Source,
    buffer: &mut [u8],
    plan: &Plan,
    stop: &mut Stop,
    consumer: &mut impl FnMut(u64, ByteView<'_>),
) -> Result<Pass, Error> {
    let mut pass = Pass::default();
    let mut offset = plan.start_bytes;
    while offset < plan.end_bytes {
        let length = (buffer.len() as u64).min(plan.end_bytes - offset) as usize;
        let (got, more) = fill(source, &mut buffer[..length], stop, |buffer| {
            rustix::io::read(source.file(), buffer)
        })?;
        if got > 0 {
            consumer(offset, ByteView::of(&buffer[..got]));
            pass.add(got);
            offset += got as u64;
        }
        match more {
            More::End => break,
            More::Stop => {
                pass.stopped = true;
                break;
            }
            More::Yes if stop.is_due() => {
                pass.stopped = offset < plan.end_bytes;
                break;
            }
            More::Yes => {}
        }
    }
    Ok(pass)
}

enum More {
    Yes,
    End,
    Stop,
}

/// Fills a block as far as the stream goes.
fn fill(
    source: &Source,
    buffer: &mut [u8],
    stop: &Stop,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<(usize, More), Error> {
    let (mut got, mut refusals) = (0, 0);
    while got < buffer.len() {
        if source.kind() == Kind::Stream {
            let ready = wait_readable(source.file(), stop.remaining_ns())
                .map_err(Error::system("wait for", source.path()))?;
            if ready != Ready::Readable {
                return Ok((got, More::Stop));
            }
        }
        match read(&mut buffer[got..]) {
            Ok(0) => return Ok((got, More::End)),
            Ok(more) => (got, refusals) = (got + more, 0),
            Err(Errno::INTR) if stop.is_cancelled() => return Ok((got, More::Stop)),
            // Somebody else may have taken what there was to read.
            Err(Errno::INTR | Errno::AGAIN) if refusals < MAX_INTERRUPTIONS => refusals += 1,
            Err(errno) => return Err(Error::system("read", source.path())(errno)),
        }
    }
    Ok((got, More::Yes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_answers_try_again_time_and_again_is_given_up() {
        let source = Source::open(Path::new("/dev/zero")).unwrap();
        for errno in [Errno::INTR, Errno::AGAIN] {
            let mut calls = 0;
            let mut read = |_: &mut [u8]| {
                calls += 1;
                assert!(calls < 10_000, "for ever");
                // What comes in between is no refusal.
                if calls == 900 { Ok(1) } else { Err(errno) }
            };
            let answer = fill(&source, &mut [0; 4], &Stop::never(), &mut read);
            assert!(answer.is_err() && calls > 1500, "{errno}: {calls} calls");
        }
    }
}
