//! One operation of each row, as bare system calls below the descriptor of a directory.

use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use flatout_sys::cause::errno_of;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::test_directory::{self, DIRECTORY, Listing};

const OWNER_ONLY: Mode = Mode::from_raw_mode(0o600);
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const OLD_FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes an empty file. What close(2) says is not heard; there is nothing in it to lose.
pub(super) fn create(directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    rustix::fs::openat(directory, name, NEW_FILE, OWNER_ONLY).map(drop)
}

pub(super) fn stat(directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    let facts = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    std::hint::black_box(facts.st_size);
    Ok(())
}

pub(super) fn open_close(directory: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    rustix::fs::openat(directory, name, OLD_FILE, Mode::empty()).map(drop)
}

/// Makes a file with `content` durable. A short write is carried on, which no local filesystem
/// needs for a few pages.
pub(super) fn create_synced(
    directory: BorrowedFd<'_>,
    name: &CStr,
    content: &[u8],
) -> Result<(), Errno> {
    let mut file = File::from(rustix::fs::openat(directory, name, NEW_FILE, OWNER_ONLY)?);
    let wrote = file.write_all(content);
    wrote.map_err(|error| errno_of(&error))?;
    rustix::fs::fsync(&file)
}

/// Lists a directory, opened anew, and counts its entries but `.` and `..`.
pub(super) fn list(directory: BorrowedFd<'_>, listing: &mut Listing) -> Result<u64, Errno> {
    let opened = rustix::fs::openat(directory, c".", DIRECTORY, Mode::empty())?;
    let mut count = 0;
    test_directory::each_entry(opened.as_fd(), listing, |_| count += 1)?;
    Ok(count)
}
