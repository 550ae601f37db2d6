//! What rustix leaves out of a descriptor's life: its end with an answer, the mode of a pinned one, and
//! a name for it.
//!
//! It opens nothing.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use crate::cause::answered;

/// fchmodat2(2), new in Linux 6.6. System calls of that age have one number everywhere.
const FCHMODAT2: libc::c_long = 452;

/// An open file by a name that leads to nothing else, be it a symlink itself: the kernel jumps to the file
/// and goes no further.
pub fn itself(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Closes a descriptor and hears what the kernel says: NFS, FUSE and quotas refuse bytes as late as
/// that.
///
/// Errors: those of close(2). The descriptor is gone nevertheless, so nobody may try again.
pub fn close(descriptor: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned and is given up by `into_raw_fd`: nobody else closes it.
    answered(unsafe { libc::close(descriptor.into_raw_fd()) }).map(drop)
}

/// Sets the mode of what is pinned by `O_PATH`, which fchmod(2) refuses, without /proc.
///
/// Errors: those of fchmodat2(2); `ENOSYS` before Linux 6.6.
pub fn set_mode(pinned: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let (descriptor, path) = (pinned.as_raw_fd(), c"".as_ptr());
    // SAFETY: `path` is a string with its NUL that lives for ever; the kernel writes nothing.
    answered(unsafe { libc::syscall(FCHMODAT2, descriptor, path, mode, libc::AT_EMPTY_PATH) })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn what_is_closed_is_closed() {
        let (mut reader, writer) = io::pipe().unwrap();
        close(writer.into()).unwrap();
        assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_pinned_file_gets_its_mode() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        File::create(&path).unwrap();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let pinned = rustix::fs::open(&path, flags, Mode::empty()).unwrap();
        match set_mode(pinned.as_fd(), 0o640) {
            Ok(()) => {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o7777, 0o640);
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                eprintln!("skipped: this kernel has no fchmodat2");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
