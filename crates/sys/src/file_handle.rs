//! What tells one file of a filesystem from another where their numbers do not: a program that serves files
//! (FUSE) may give all of them one. Nothing is opened by it.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::cause::answered;

/// The longest handle (`MAX_HANDLE_SZ`, linux/exportfs.h).
const MOST_BYTES: usize = 128;
/// `AT_HANDLE_FID` (Linux 6.5): nobody wants to open a file by it, so that more filesystems have one.
const ONLY_TELLS: libc::c_int = 0x200;

/// `struct file_handle` (open_by_handle_at(2)).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHandle {
    length_bytes: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; MOST_BYTES],
}

/// The handle of what bears a name in a directory, not followed; without a name, of the file itself. `None`: its
/// filesystem has none, or it is not told.
///
/// Cost: a call, two before Linux 6.5.
pub fn of(directory: BorrowedFd<'_>, name: &CStr) -> Option<FileHandle> {
    [ONLY_TELLS, 0].into_iter().find_map(|flags| ask(directory, name, flags))
}

fn ask(directory: BorrowedFd<'_>, name: &CStr, flags: libc::c_int) -> Option<FileHandle> {
    let length_bytes = MOST_BYTES as libc::c_uint;
    let mut handle = FileHandle { length_bytes, kind: 0, bytes: [0; MOST_BYTES] };
    let mut mount = 0;
    let (at, place) = (directory.as_raw_fd(), (&raw mut handle).cast());
    let flags = flags | libc::AT_EMPTY_PATH;
    // SAFETY: the name ends in a NUL; behind the two numbers, which have the layout of the kernel's structure, there
    // is as much room as they tell; the kernel writes the mount into a number of ours.
    let told = unsafe { libc::name_to_handle_at(at, name.as_ptr(), place, &raw mut mount, flags) };
    answered(told).ok().map(|_| handle)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::of;

    #[test]
    fn names_of_one_file_have_one_handle_and_others_another() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "other"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        std::fs::hard_link(folder.path().join("one"), folder.path().join("link")).unwrap();
        let directory = File::open(folder.path()).unwrap();
        let [one, link, other] =
            [c"one", c"link", c"other"].map(|name| of(directory.as_fd(), name));
        if one.is_none() {
            eprintln!("skipped: the filesystem of temporary files has no handles");
            return;
        }
        assert_eq!(one, link);
        assert_ne!(one, other);
        let open = File::open(folder.path().join("link")).unwrap();
        assert_eq!(of(open.as_fd(), c""), one);
        assert_eq!(of(directory.as_fd(), c"missing"), None);
    }
}
