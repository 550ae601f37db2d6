//! The copy-file-range method: the kernel copies. See copy_file_range(2).

use rustix::io::Errno;

use super::{End, Moved, Route, TransferError};
use crate::interruption::unless_interrupted;
use crate::stop::Stop;

/// Bytes per call, where nothing else is asked for: about ten milliseconds, after which progress
/// and the wish to stop are looked at. The kernel ends a call when a signal comes, too.
const CALL_BYTES: u64 = 32 << 20;

/// What the kernel says where it does not copy: no such call (`NOSYS`), two types of filesystem
/// (`XDEV`), a filesystem or a file that does not know how (`OPNOTSUPP`, `INVAL`, `BADF`), a swap
/// file (`TXTBSY`), a policy (`PERM`, `ACCESS`).
const CANNOT: [Errno; 8] = [
    Errno::NOSYS,
    Errno::XDEV,
    Errno::OPNOTSUPP,
    Errno::INVAL,
    Errno::BADF,
    Errno::TXTBSY,
    Errno::PERM,
    Errno::ACCESS,
];

pub(super) fn run(
    route: Route<'_>,
    block_bytes: u64,
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    let call_bytes = if block_bytes == 0 { CALL_BYTES } else { block_bytes };
    let Route { source, target, offset_bytes, length_bytes, .. } = route;
    let mut moved = 0;
    while moved < length_bytes {
        if moved > 0 && (stop.is_cancelled() || stop.is_due()) {
            return Ok(Moved { bytes: moved, end: End::Stopped });
        }
        let wanted = (length_bytes - moved).min(call_bytes) as usize;
        let copied = unless_interrupted(|| {
            let (mut from, mut to) = (offset_bytes + moved, offset_bytes + moved);
            rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), wanted)
        });
        match copied {
            // The files of /proc have bytes that the call does not see.
            Ok(0) => return Ok(Moved { bytes: moved, end: End::Unclear }),
            Ok(got) => {
                moved += got as u64;
                route.add(got as u64);
            }
            Err(errno) if CANNOT.contains(&errno) => {
                return Ok(Moved { bytes: moved, end: End::Cannot(errno) });
            }
            Err(errno) => return Err(side(route.behind(moved), errno)),
        }
    }
    Ok(Moved { bytes: moved, end: End::Whole })
}

/// Which side an error came from: the call does not say, reading one byte does.
#[cold]
fn side(rest: Route<'_>, errno: Errno) -> TransferError {
    const OF_TARGETS: [Errno; 4] = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::ROFS];
    if OF_TARGETS.contains(&errno) {
        return TransferError::Target(errno);
    }
    match rustix::io::pread(rest.source, &mut [0; 1], rest.offset_bytes) {
        Err(errno) if errno != Errno::INTR => TransferError::Source(errno),
        _ => TransferError::Target(errno),
    }
}
