//! The reflink method: both files share their extents. See ioctl_ficlone(2).
//!
//! The kernel first writes back what of the source is dirty, and clones the file as it is then,
//! holes included.

use rustix::io::Errno;

use super::{End, Moved, Route, TransferError};
use crate::interruption::unless_interrupted;

/// What the kernel says where files cannot share extents: another filesystem (`XDEV`), one that
/// does not know how (`OPNOTSUPP`, `NOTTY`, `NOSYS`), files that differ in how they store data
/// (`INVAL`), a swap file (`TXTBSY`), a policy (`PERM`, `ACCESS`). `IO`, `NOSPC` and `DQUOT` are not
/// among them: other ways would meet the same.
const CANNOT: [Errno; 8] = [
    Errno::XDEV,
    Errno::OPNOTSUPP,
    Errno::NOTTY,
    Errno::NOSYS,
    Errno::INVAL,
    Errno::TXTBSY,
    Errno::PERM,
    Errno::ACCESS,
];

/// Clones whole files: the range must begin where the files do.
pub(super) fn run(route: Route<'_>) -> Result<Moved, TransferError> {
    if route.offset_bytes != 0 {
        return Ok(Moved { bytes: 0, end: End::Cannot(Errno::INVAL) });
    }
    match unless_interrupted(|| rustix::fs::ioctl_ficlone(route.target, route.source)) {
        Ok(()) => {
            route.add(route.length_bytes);
            Ok(Moved { bytes: route.length_bytes, end: End::Whole })
        }
        Err(errno) if CANNOT.contains(&errno) => Ok(Moved { bytes: 0, end: End::Cannot(errno) }),
        Err(errno) => Err(TransferError::Target(errno)),
    }
}
