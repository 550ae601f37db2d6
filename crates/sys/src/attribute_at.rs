//! Attributes of what bears a name in a directory that is held open, without opening it and without
//! /proc: extended ones (Linux 6.13), and the project that pays for its room (6.17).
//!
//! A symlink is not followed. It decides nothing; what a kernel does not know is `NOSYS`.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::fs::CWD;
use rustix::io::{Errno, Result};

use crate::cause::{answered, errno_of};

// System calls of that age have one number everywhere.
const SETXATTRAT: libc::c_long = 463;
const GETXATTRAT: libc::c_long = 464;
const LISTXATTRAT: libc::c_long = 465;
const REMOVEXATTRAT: libc::c_long = 466;
/// file_getattr(2), and `FS_IOC_FSGETXATTR`: older, and for open files alone.
const READ: (libc::c_long, libc::c_ulong) = (468, 0x801c_581f);
/// file_setattr(2), and `FS_IOC_FSSETXATTR`.
const WRITE: (libc::c_long, libc::c_ulong) = (469, 0x401c_5820);

/// `struct xattr_args` (linux/xattr.h).
#[repr(C)]
struct Value {
    address: u64,
    length_bytes: u32,
    flags: u32,
}

/// Extent size, for new entries, and of what is written to shared ones (`FS_XFLAG_EXTSIZE` and so
/// on, linux/fs.h).
pub const EXTENT_HINTS: u64 = 0x800 | 0x1000 | 0x1_0000;

/// How the extents of a file, or of what is made in a directory, are to be laid out (xfs).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentHints {
    /// Which of [`EXTENT_HINTS`] are set.
    pub flags: u64,
    /// Units: bytes, a multiple of the block size.
    pub extent_bytes: u32,
    /// The same of what is written to shared extents.
    pub cow_extent_bytes: u32,
}

impl ExtentHints {
    /// Whether nothing was said.
    pub fn are_none(self) -> bool {
        self.flags == 0
    }
}

/// What `struct file_attr` and `struct fsxattr` (linux/fs.h) have in common.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Room {
    extent_bytes: u32,
    extents: u32,
    project: u32,
    cow_extent_bytes: u32,
}

/// `struct file_attr`.
#[repr(C)]
#[derive(Default)]
struct FileAttr {
    xflags: u64,
    room: Room,
}

/// `struct fsxattr`.
#[repr(C)]
struct FsXattr {
    xflags: u32,
    room: Room,
    padding: [u8; 8],
}

fn answer(returned: libc::c_long) -> Result<usize> {
    answered(returned).map_err(|error| errno_of(&error))
}

/// Whether the calls for extended attributes exist and are allowed: a container may deny what it
/// does not know. Asked once.
pub fn is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| names(CWD, c"/", &mut []).is_ok())
}

/// The names of the extended attributes of `name`, each with a NUL, into `list`; as listxattr(2).
///
/// Errors: those of listxattrat(2).
pub fn names(directory: BorrowedFd<'_>, name: &CStr, list: &mut [u8]) -> Result<usize> {
    let (at, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let (list, length) = (list.as_mut_ptr(), list.len());
    // SAFETY: the name ends in a NUL, and the kernel writes no more than the length of the list.
    answer(unsafe { libc::syscall(LISTXATTRAT, at, name.as_ptr(), flags, list, length) })
}

/// The value of an extended attribute, into `value`; as getxattr(2).
///
/// Errors: those of getxattrat(2).
pub fn value(
    directory: BorrowedFd<'_>,
    name: &CStr,
    attribute: &CStr,
    value: &mut [u8],
) -> Result<usize> {
    let place =
        Value { address: value.as_mut_ptr() as u64, length_bytes: value.len() as u32, flags: 0 };
    with_value(GETXATTRAT, directory, name, attribute, place)
}

/// Sets an extended attribute; as setxattr(2).
///
/// Errors: those of setxattrat(2).
pub fn set(directory: BorrowedFd<'_>, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()> {
    let place =
        Value { address: value.as_ptr() as u64, length_bytes: value.len() as u32, flags: 0 };
    with_value(SETXATTRAT, directory, name, attribute, place).map(drop)
}

fn with_value(
    number: libc::c_long,
    directory: BorrowedFd<'_>,
    name: &CStr,
    attribute: &CStr,
    mut place: Value,
) -> Result<usize> {
    let (at, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    let (name, attribute) = (name.as_ptr(), attribute.as_ptr());
    let (place, length) = (&raw mut place, size_of::<Value>());
    // SAFETY: both names end in a NUL; `place` tells where a slice lies that is borrowed for the
    // call, mutably if the kernel writes there, and how long it is.
    answer(unsafe { libc::syscall(number, at, name, flags, attribute, place, length) })
}

/// Takes an extended attribute away; as removexattr(2).
///
/// Errors: those of removexattrat(2).
pub fn remove(directory: BorrowedFd<'_>, name: &CStr, attribute: &CStr) -> Result<()> {
    let (at, flags) = (directory.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
    // SAFETY: both names end in a NUL, and the kernel only reads.
    answer(unsafe { libc::syscall(REMOVEXATTRAT, at, name.as_ptr(), flags, attribute.as_ptr()) })
        .map(drop)
}

/// A file with a project. An empty name means the descriptor itself, which must be open then.
#[derive(Debug, Clone, Copy)]
pub struct Owned<'a> {
    /// Where the name is looked up.
    pub directory: BorrowedFd<'a>,
    /// The name; what it leads to if it is in /proc.
    pub name: &'a CStr,
    /// Whether a symlink of this name is followed.
    pub follows: bool,
}

impl Owned<'_> {
    fn flags(&self) -> libc::c_int {
        let follow = if self.follows { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        if self.name.is_empty() { libc::AT_EMPTY_PATH } else { follow }
    }

    /// Has one of the calls of Linux 6.17 read or write `wanted`, or before that a request of
    /// ioctl(2), which knows open files only.
    fn call(
        &self,
        (number, request): (libc::c_long, libc::c_ulong),
        wanted: &mut FileAttr,
    ) -> Result<()> {
        let (at, name) = (self.directory.as_raw_fd(), self.name.as_ptr());
        let (place, length) = (&raw mut *wanted, size_of::<FileAttr>());
        // SAFETY: the name ends in a NUL; the kernel reads or writes `wanted`, whose length it is
        // told.
        match answer(unsafe { libc::syscall(number, at, name, place, length, self.flags()) }) {
            Err(Errno::NOSYS | Errno::PERM) if self.name.is_empty() => {
                self.request(request, wanted)
            }
            done => done.map(drop),
        }
    }

    fn request(&self, request: libc::c_ulong, wanted: &mut FileAttr) -> Result<()> {
        let mut old = FsXattr { xflags: wanted.xflags as u32, room: wanted.room, padding: [0; 8] };
        // SAFETY: the requests read or write a `struct fsxattr`, which `old` is.
        let done = unsafe { libc::ioctl(self.directory.as_raw_fd(), request, &raw mut old) };
        *wanted = FileAttr { xflags: old.xflags.into(), room: old.room };
        answer(done.into()).map(drop)
    }

    fn attributes(&self) -> Result<FileAttr> {
        let mut found = FileAttr::default();
        self.call(READ, &mut found)?;
        Ok(found)
    }

    /// Its project. By file_getattr(2), or before Linux 6.17 by an ioctl, which asks open files only.
    ///
    /// Errors: those of the calls; `OPNOTSUPP` or `NOTTY` where there are no projects.
    pub fn project(&self) -> Result<u32> {
        self.attributes().map(|found| found.room.project)
    }

    /// Sets its project and nothing else.
    ///
    /// Errors: as [`Owned::project`].
    pub fn set_project(&self, project: u32) -> Result<()> {
        let mut wanted = self.attributes()?;
        wanted.room.project = project;
        self.call(WRITE, &mut wanted)
    }

    /// How its extents are to be laid out. By the same calls.
    ///
    /// Errors: as [`Owned::project`].
    pub fn extent_hints(&self) -> Result<ExtentHints> {
        let FileAttr { xflags, room } = self.attributes()?;
        let Room { extent_bytes, cow_extent_bytes, .. } = room;
        Ok(ExtentHints { flags: xflags & EXTENT_HINTS, extent_bytes, cow_extent_bytes })
    }

    /// Sets how its extents are to be laid out, and nothing else.
    ///
    /// Errors: as [`Owned::project`]; `INVAL` for a file that has extents.
    pub fn set_extent_hints(&self, hints: ExtentHints) -> Result<()> {
        let ExtentHints { flags, extent_bytes, cow_extent_bytes } = hints;
        let mut wanted = self.attributes()?;
        wanted.xflags = wanted.xflags & !EXTENT_HINTS | flags;
        wanted.room = Room { extent_bytes, cow_extent_bytes, ..wanted.room };
        self.call(WRITE, &mut wanted)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn attributes_of_a_name_are_those_of_its_file() {
        let place = tempfile::tempdir().unwrap();
        File::create(place.path().join("file")).unwrap();
        std::os::unix::fs::symlink("file", place.path().join("link")).unwrap();
        let directory = File::open(place.path()).unwrap();
        let at = directory.as_fd();
        if !is_there() {
            return eprintln!("skipped: this kernel has no setxattrat");
        }
        match set(at, c"file", c"user.note", b"text") {
            Err(Errno::OPNOTSUPP) => return eprintln!("skipped: no extended attributes here"),
            set => set.unwrap(),
        }
        let mut list = [0; 64];
        let length = names(at, c"file", &mut list).unwrap();
        assert!(list[..length].windows(10).any(|name| name == b"user.note\0"));
        let mut found = [0; 8];
        assert_eq!(value(at, c"file", c"user.note", &mut found), Ok(4));
        assert_eq!(&found[..4], b"text");
        assert_eq!(value(at, c"file", c"user.note", &mut found[..2]), Err(Errno::RANGE));
        // A symlink is asked itself.
        assert_eq!(value(at, c"link", c"user.note", &mut found), Err(Errno::NODATA));
        remove(at, c"file", c"user.note").unwrap();
        assert_eq!(value(at, c"file", c"user.note", &mut found), Err(Errno::NODATA));
    }

    #[test]
    fn a_project_is_the_same_by_name_and_by_descriptor() {
        let place = tempfile::tempdir().unwrap();
        let file = File::create(place.path().join("file")).unwrap();
        let directory = File::open(place.path()).unwrap();
        let itself = Owned { directory: file.as_fd(), name: c"", follows: false };
        let named = Owned { directory: directory.as_fd(), name: c"file", follows: false };
        let mut old = FileAttr::default();
        let asked = itself.request(READ.1, &mut old);
        match (itself.project(), asked, named.project()) {
            (Ok(project), Ok(()), Ok(again)) => {
                assert_eq!((project, old.room.project), (again, project));
                assert_eq!(itself.set_project(project), Ok(()));
            }
            answers => eprintln!("skipped: {:?} {:?}", answers.0, answers.2),
        }
    }
}
