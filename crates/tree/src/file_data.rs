//! What an open file holds: its bytes at a place, and where they are.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::{Errno, retry_on_intr};

/// What lseek(2) says where a filesystem does not know of holes.
const NO_HOLES: [Errno; 3] = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS];

/// What the kernel said; an error of ours is one of input and output.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Opens what bears a name for reading, be it a FIFO, which does not block; a symlink is not followed.
pub(crate) fn open(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Whether an open directory has no name any more, so that it cannot be listed.
pub(crate) fn is_removed(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|facts| facts.st_nlink == 0)
}

/// Opens an open file once more, in another way: the link of /proc leads to the inode, not to its name.
pub(crate) fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(itself, flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Cuts an open file off, or makes it longer by a hole.
pub(crate) fn set_length(file: BorrowedFd<'_>, length_bytes: u64) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::ftruncate(file, length_bytes))
}

/// Fills `into` with what begins at `offset`, as far as the file goes. Returns how much that was.
pub(crate) fn read(file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < into.len() {
        match rustix::io::pread(file, &mut into[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            // A direct read that stopped within a sector has met the end of the file.
            Err(Errno::INVAL) if filled > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}

/// Where data begins at or after `place`; `None`: nowhere before `length`. Where the filesystem does
/// not tell, everything is data.
pub(crate) fn next_data(
    file: BorrowedFd<'_>,
    place: u64,
    length: u64,
) -> Result<Option<u64>, Errno> {
    match seek(file, SeekFrom::Data(place)) {
        Err(Errno::NXIO) => Ok(None),
        Err(errno) if NO_HOLES.contains(&errno) => Ok(Some(place)),
        found => Ok(Some(found?.max(place)).filter(|&data| data < length)),
    }
}

/// The same with the end of that data.
pub(crate) fn next_extent(
    file: BorrowedFd<'_>,
    place: u64,
    length: u64,
) -> Result<Option<(u64, u64)>, Errno> {
    let Some(data) = next_data(file, place, length)? else { return Ok(None) };
    let hole = match seek(file, SeekFrom::Hole(data)) {
        // It became shorter between the two calls, or nobody knows; reading finds out where it ends.
        Err(errno) if errno == Errno::NXIO || NO_HOLES.contains(&errno) => length,
        found => found?.min(length),
    };
    Ok(Some((data, if hole > data { hole } else { length })))
}
