//! The length of the target, and its room on the device.

use std::os::fd::BorrowedFd;

use flatout_io::unless_interrupted;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::WRITE;
use crate::copy::Refusal;
use crate::file_data;

/// What says that a filesystem does not preallocate, or a policy.
const NO_PREALLOCATION: [Errno; 5] =
    [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NODEV, Errno::INVAL, Errno::PERM];

/// Gives the file its room before it is written, where that can be had. No room at all is an error.
pub(super) fn preallocate(target: BorrowedFd<'_>, length: u64) -> Result<(), Refusal> {
    // The length grows with what is written: after a power cut a file that is not whole does not look
    // as if it were.
    let flags = FallocateFlags::KEEP_SIZE;
    match unless_interrupted(|| rustix::fs::fallocate(target, flags, 0, length)) {
        Err(errno) if !NO_PREALLOCATION.contains(&errno) => Err(Refusal::of(WRITE)(errno)),
        _ => Ok(()),
    }
}

pub(super) fn set_length(target: BorrowedFd<'_>, length: u64) -> Result<(), Refusal> {
    file_data::set_length(target, length).map_err(Refusal::of(WRITE))
}
