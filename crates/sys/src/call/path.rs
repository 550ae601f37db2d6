//! Calls that look a name up: one path component below an open directory.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{raw, repeat};

/// Room for any `struct stat` and for `struct statx`; what the kernel writes is not looked at.
#[repr(align(64))]
pub(super) struct Attributes([u8; 512]);

impl Default for Attributes {
    fn default() -> Self {
        Self([0; 512])
    }
}

impl Attributes {
    /// Where the kernel may write; good for as long as `self` is neither moved nor dropped.
    pub(super) fn address(&mut self) -> usize {
        self.0.as_mut_ptr() as usize
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
pub fn stat(directory: BorrowedFd<'_>, name: &CStr, calls: u64) -> io::Result<()> {
    let directory = directory.as_raw_fd() as usize;
    let mut attributes = Attributes::default();
    let (name, start) = (name.as_ptr() as usize, attributes.address());
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
pub fn statx(directory: BorrowedFd<'_>, name: &CStr, calls: u64) -> io::Result<()> {
    let directory = directory.as_raw_fd() as usize;
    let mut attributes = Attributes::default();
    let (name, start) = (name.as_ptr() as usize, attributes.address());
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
        for call in [open_close, stat, statx] {
            call(directory.as_fd(), c"here", 20).unwrap();
            let error = call(directory.as_fd(), c"gone", 20).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        }
    }

    #[test]
    fn every_opened_descriptor_is_closed_again() {
        let directory = File::open("/").unwrap();
        // Far more than the limit of open files that a process has by default.
        open_close(directory.as_fd(), c"proc", 70_000).unwrap();
    }
}
