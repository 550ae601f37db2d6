//! One request at a time, by system calls that wait.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::clock::monotonic_ns;

use super::progress::Progress;
use super::{Access, After, Direction, Done, NAP_NS, Request, SPIN_NS, Timestamps, Workload};
use crate::stop::Stop;

pub(super) fn run(
    buffer: &mut AlignedBuffer,
    workload: &mut impl Workload,
    timestamps: Timestamps,
    stop: &mut Stop,
    mut perform: impl FnMut(&Request, &mut [u8], &Stop) -> io::Result<usize>,
) {
    let mut follows = None;
    loop {
        let (request, is_filled) = match follows.take() {
            Some(request) => (request, true),
            None => match workload.next() {
                Some(request) => (request, false),
                None => return,
            },
        };
        if request.due_ns > 0 && !wait_until(request.due_ns, stop) {
            return;
        }
        let bytes = &mut buffer.as_mut_slice()[..request.length_bytes];
        if request.direction == Direction::Write && !is_filled {
            workload.fill(&request, bytes);
        }
        let submitted_ns = timestamps.now();
        let result = perform(&request, bytes, stop);
        let completed_ns = timestamps.now();
        let done = Done { request, result, submitted_ns, completed_ns, bytes };
        match workload.done(done) {
            After::Next if stop.is_due() => return,
            After::Next => {}
            After::Then(request) => follows = Some(request),
            After::End => return,
        }
    }
}

/// Waits until a time of the monotonic clock; false when the stop comes first.
fn wait_until(due_ns: u64, stop: &Stop) -> bool {
    loop {
        let now_ns = monotonic_ns();
        if now_ns >= due_ns {
            return true;
        }
        if stop.is_cancelled() || stop.remaining_ns() == Some(0) {
            return false;
        }
        let left_ns = due_ns - now_ns;
        if left_ns > SPIN_NS {
            flatout_sys::thread::sleep(Duration::from_nanos((left_ns - SPIN_NS).min(NAP_NS)));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// One request by system calls; a short one goes on where it stopped.
pub(crate) fn perform(
    file: BorrowedFd<'_>,
    access: Access,
    request: &Request,
    bytes: &mut [u8],
    stop: &Stop,
) -> io::Result<usize> {
    let flags = access.flags(request.direction);
    let mut progress = Progress::default();
    loop {
        let offset = request.offset_bytes + progress.moved as u64;
        let rest = &mut bytes[progress.moved..];
        let answer = match (request.direction, flags.is_empty()) {
            (Direction::Read, true) => rustix::io::pread(file, rest, offset),
            (Direction::Write, true) => rustix::io::pwrite(file, rest, offset),
            (Direction::Read, false) => {
                rustix::io::preadv2(file, &mut [io::IoSliceMut::new(rest)], offset, flags)
            }
            (Direction::Write, false) => {
                rustix::io::pwritev2(file, &[io::IoSlice::new(rest)], offset, flags)
            }
        };
        if let ControlFlow::Break(result) =
            progress.take((request, access), answer.map_err(io::Error::from), stop)
        {
            return result;
        }
    }
}
