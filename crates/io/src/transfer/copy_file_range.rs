//! The copy-file-range method: the kernel copies. See copy_file_range(2).

use rustix::io::Errno;

use super::pieces::Pieces;
use super::{End, Moved, Route, TransferError};
use crate::stop::Stop;

/// Bytes per call, where nothing else is asked for: about ten milliseconds, after which progress
/// and the wish to stop are looked at. The kernel ends a call when a signal comes, too.
const CALL_BYTES: u64 = 32 << 20;
/// The block that is timed, so that trying another way costs little of a large file.
const TIMED_BYTES: u64 = 4 << 20;

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

/// In pieces as long as is best just now, if there is somebody to tell that ([`Pieces`]).
pub(super) fn run(
    route: Route<'_>,
    block_bytes: u64,
    mut pieces: Option<&mut Pieces>,
    stop: &mut Stop,
) -> Result<Moved, TransferError> {
    let call_bytes = if block_bytes == 0 { CALL_BYTES } else { block_bytes };
    let mut copy = Copy { route, call_bytes, moved: 0, stop };
    let mut ended = Ok(());
    while ended.is_ok() && copy.moved < route.length_bytes {
        let begin = copy.moved;
        ended = match &mut pieces {
            None => copy.go_on(route.length_bytes),
            Some(pieces) => {
                let block = (route.length_bytes - begin).min(TIMED_BYTES) as usize;
                pieces.write(block, |piece| copy.go_on(begin + piece.end as u64))
            }
        };
    }
    match ended {
        Ok(()) => Ok(Moved { bytes: copy.moved, end: End::Whole }),
        Err(Ended::Here(end)) => Ok(Moved { bytes: copy.moved, end }),
        Err(Ended::Failed(error)) => Err(error),
    }
}

/// A range that is being copied.
struct Copy<'c> {
    route: Route<'c>,
    /// Most bytes of a call.
    call_bytes: u64,
    moved: u64,
    stop: &'c mut Stop,
}

/// Why it is not copied to its end.
enum Ended {
    Here(End),
    Failed(TransferError),
}

impl Copy<'_> {
    /// Copies until so many bytes of the range are there.
    fn go_on(&mut self, end: u64) -> Result<(), Ended> {
        while self.moved < end {
            if self.moved > 0 && (self.stop.is_cancelled() || self.stop.is_due()) {
                return Err(Ended::Here(End::Stopped));
            }
            let Route { source, target, offset_bytes, .. } = self.route;
            let wanted = (end - self.moved).min(self.call_bytes) as usize;
            let (mut from, mut to) = (offset_bytes + self.moved, offset_bytes + self.moved);
            let (from, to) = (Some(&mut from), Some(&mut to));
            match rustix::fs::copy_file_range(source, from, target, to, wanted) {
                // The files of /proc have bytes that the call does not see.
                Ok(0) => return Err(Ended::Here(End::Unclear)),
                Ok(got) => {
                    self.moved += got as u64;
                    self.route.add(got as u64);
                }
                Err(Errno::INTR) => {}
                Err(errno) if CANNOT.contains(&errno) => {
                    return Err(Ended::Here(End::Cannot(errno)));
                }
                Err(errno) => {
                    return Err(Ended::Failed(side(self.route.behind(self.moved), errno)));
                }
            }
        }
        Ok(())
    }
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
