//! Calls that look a name up: one path component below an open directory.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{raw, repeat};

/// How far places in [`Attributes`] lie apart: in as many windows as a trial has each is had once.
const STEP_BYTES: usize = 128;
/// Where places begin anew: to stores and loads of `rep movsb`, addresses that far apart look alike.
const PAGE_BYTES: usize = 4096;

/// Room for any `struct stat` and for `struct statx`, at another place of its page in each loop; what
/// the kernel writes is not looked at.
///
/// A copy of `statx` from the kernel's stack to a place up to 128 bytes further within the page took
/// 907 ns instead of 618, to any other place 614 to 632 (AMD EPYC, family 25, Linux 6.18,
/// 2026-11-27): where a thread's stack lies would decide for the whole of a trial.
#[repr(align(4096))]
pub(super) struct Attributes {
    bytes: [u8; PAGE_BYTES + 512],
    place: usize,
}

impl Attributes {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self { bytes: [0; PAGE_BYTES + 512], place: 0 })
    }

    /// Where the kernel may write 512 bytes; good for as long as `self` is neither moved nor dropped.
    pub(super) fn next_address(&mut self) -> usize {
        self.place = (self.place + STEP_BYTES) % PAGE_BYTES;
        self.bytes[self.place..].as_mut_ptr() as usize
    }
}

/// Opens the file `name` in `directory` for reading and closes it: two system calls.
///
/// # Errors
/// The kernel's error at the first call that fails.
#[inline(never)]
pub fn open_close(directory: BorrowedFd<'_>, name: &CStr, calls: u64) -> io::Result<()> {
    let directory = directory.as_raw_fd() as usize;
    let name = name.as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    for _ in 0..calls {
        // SAFETY: `name` is a string with its NUL, borrowed for the whole loop.
        let opened = unsafe { raw::call4(libc::SYS_openat, directory, name, flags, 0) };
        if opened < 0 {
            return Err(super::surprise("open", opened));
        }
        // SAFETY: the descriptor was opened just above and nobody else knows it.
        let closed = unsafe { raw::call1(libc::SYS_close, opened as usize) };
        if closed != 0 {
            return Err(super::surprise("close", closed));
        }
    }
    Ok(())
}

/// Reads the attributes of `name` in `directory`, by `newfstatat`, which libc's `stat` is today.
///
/// # Errors
/// The kernel's error at the first call that fails.
#[inline(never)]
pub(super) fn stat(
    directory: BorrowedFd<'_>,
    name: &CStr,
    attributes: &mut Attributes,
    calls: u64,
) -> io::Result<()> {
    let directory = directory.as_raw_fd() as usize;
    let (name, start) = (name.as_ptr() as usize, attributes.next_address());
    // SAFETY: `name` is a string with its NUL; the kernel writes one `struct stat` into
    // `attributes`, which is larger. Both outlive the loop.
    let call = || unsafe { raw::call4(libc::SYS_newfstatat, directory, name, start, 0) };
    repeat("stat", calls, call, |result| result == 0)
}

/// Reads the basic attributes of `name` in `directory`, by `statx`.
///
/// # Errors
/// The kernel's error at the first call that fails.
#[inline(never)]
pub(super) fn statx(
    directory: BorrowedFd<'_>,
    name: &CStr,
    attributes: &mut Attributes,
    calls: u64,
) -> io::Result<()> {
    let directory = directory.as_raw_fd() as usize;
    let (name, start) = (name.as_ptr() as usize, attributes.next_address());
    let mask = libc::STATX_BASIC_STATS as usize;
    // SAFETY: `name` is a string with its NUL; the kernel writes 256 bytes into
    // `attributes`, which is larger. Both outlive the loop.
    let call = || unsafe { raw::call5(libc::SYS_statx, directory, name, 0, mask, start) };
    repeat("statx", calls, call, |result| result == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn names_are_looked_up_and_a_missing_one_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        File::create(place.path().join("here")).unwrap();
        let directory = File::open(place.path()).unwrap();
        let mut room = Attributes::new();
        let mut looks_up = |name: &CStr| {
            let directory = directory.as_fd();
            [
                open_close(directory, name, 20),
                stat(directory, name, &mut room, 20),
                statx(directory, name, &mut room, 20),
            ]
        };
        for result in looks_up(c"here") {
            result.unwrap();
        }
        for result in looks_up(c"gone") {
            assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::ENOENT));
        }
    }

    #[test]
    fn no_place_in_a_page_decides_more_than_one_window_in_32() {
        let mut room = Attributes::new();
        let mut places: Vec<usize> = (0..32).map(|_| room.next_address() % PAGE_BYTES).collect();
        places.sort_unstable();
        assert!(places.iter().copied().eq((0..32).map(|window| window * STEP_BYTES)));
    }

    #[test]
    fn every_opened_descriptor_is_closed_again() {
        let directory = File::open("/").unwrap();
        // Far more than the limit of open files that a process has by default.
        open_close(directory.as_fd(), c"proc", 70_000).unwrap();
    }
}
