//! The length of the target, and its room on the device.

use std::os::fd::BorrowedFd;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::WRITE;
use crate::copy::failure::Refusal;

/// What says that a filesystem does not preallocate, or a policy.
const NO_PREALLOCATION: [Errno; 5] =
    [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NODEV, Errno::INVAL, Errno::PERM];

/// Gives the file its room before it is written, where that can be had. No room at all is an error.
pub(super) fn preallocate(target: BorrowedFd<'_>, length: u64) -> Result<(), Refusal> {
    loop {
        // The length grows with what is written: after a power cut a file that is not whole does
        // not look as if it were.
        match rustix::fs::fallocate(target, FallocateFlags::KEEP_SIZE, 0, length) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) if NO_PREALLOCATION.contains(&errno) => return Ok(()),
            Err(errno) => return Err(Refusal::of(WRITE)(errno)),
        }
    }
}

pub(super) fn set_length(target: BorrowedFd<'_>, length: u64) -> Result<(), Refusal> {
    loop {
        match rustix::fs::ftruncate(target, length) {
            Err(Errno::INTR) => {}
            result => return result.map_err(Refusal::of(WRITE)),
        }
    }
}
