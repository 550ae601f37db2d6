//! Attributes of what bears a name in a directory that is held open, without opening it and without
//! /proc: extended ones (Linux 6.13), and the project that pays for its room (6.17).
//!
//! A symlink is not followed. It decides nothing; what a kernel does not know is `NOSYS`.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::fs::CWD;
use rustix::io::{Errno, Result};

// System calls of that age have one number everywhere.
const SETXATTRAT: libc::c_long = 463;
const GETXATTRAT: libc::c_long = 464;
const LISTXATTRAT: libc::c_long = 465;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_GETATTR: libc::c_long = 468;
const FILE_SETATTR: libc::c_long = 469;
/// `FS_IOC_FSGETXATTR` and `FS_IOC_FSSETXATTR`: older, and for open files alone.
const FSGETXATTR: libc::c_ulong = 0x801c_581f;
const FSSETXATTR: libc::c_ulong = 0x401c_5820;

/// `struct xattr_args` (linux/xattr.h).
#[repr(C)]
struct Value {
    address: u64,
    length_bytes: u32,
    flags: u32,
}

/// Extent size, for new entries, and of what is written to shared ones (`FS_XFLAG_EXTSIZE` and so
/// on, linux/fs.h).
const EXTENT_HINTS: u64 = 0x800 | 0x1000 | 0x1_0000;

/// How the extents of a file, or of what is made in a directory, are to be laid out (xfs).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtentHints {
    flags: u64,
    extent_bytes: u32,
    cow_extent_bytes: u32,
}

impl ExtentHints {
    /// What was said in a directory to be the extent size of new entries.
    ///
    /// Units: bytes, a multiple of the block size.
    pub fn for_new_entries(extent_bytes: u32) -> Self {
        Self { flags: 0x1000, extent_bytes, cow_extent_bytes: 0 }
    }

    /// The extent size of a file that is empty yet. Units: as above.
    pub fn of_a_file(extent_bytes: u32) -> Self {
        Self { flags: 0x800, extent_bytes, cow_extent_bytes: 0 }
    }

    /// Whether nothing was said.
    pub fn are_none(self) -> bool {
        self.flags == 0
    }
}

/// `struct file_attr` (linux/fs.h).
#[repr(C)]
#[derive(Default)]
struct FileAttr {
    xflags: u64,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    cow_extent_bytes: u32,
}

/// `struct fsxattr` (linux/fs.h).
#[repr(C)]
#[derive(Default)]
struct FsXattr {
    xflags: u32,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    cow_extent_bytes: u32,
    padding: [u8; 8],
}

fn answer(returned: libc::c_long) -> Result<usize> {
    usize::try_from(returned)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
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
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the name ends in a NUL, and the kernel writes no more than the length of the list.
    answer(unsafe {
        libc::syscall(
            LISTXATTRAT,
            directory.as_raw_fd(),
            name.as_ptr(),
            flags,
            list.as_mut_ptr(),
            list.len(),
        )
    })
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
    let mut place =
        Value { address: value.as_mut_ptr() as u64, length_bytes: value.len() as u32, flags: 0 };
    // SAFETY: both names end in a NUL; `place` tells where `value` lies, which is borrowed for the
    // call, and how long it is.
    answer(unsafe {
        libc::syscall(
            GETXATTRAT,
            directory.as_raw_fd(),
            name.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            attribute.as_ptr(),
            &raw mut place,
            size_of::<Value>(),
        )
    })
}

/// Sets an extended attribute; as setxattr(2).
///
/// Errors: those of setxattrat(2).
pub fn set(directory: BorrowedFd<'_>, name: &CStr, attribute: &CStr, value: &[u8]) -> Result<()> {
    let place =
        Value { address: value.as_ptr() as u64, length_bytes: value.len() as u32, flags: 0 };
    // SAFETY: as in `value`; the kernel only reads.
    answer(unsafe {
        libc::syscall(
            SETXATTRAT,
            directory.as_raw_fd(),
            name.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            attribute.as_ptr(),
            &raw const place,
            size_of::<Value>(),
        )
    })
    .map(drop)
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

    fn attributes(&self) -> Result<FileAttr> {
        let mut found = FileAttr::default();
        // SAFETY: the name ends in a NUL; the kernel writes the length of `found` at most.
        let got = answer(unsafe {
            libc::syscall(
                FILE_GETATTR,
                self.directory.as_raw_fd(),
                self.name.as_ptr(),
                &raw mut found,
                size_of::<FileAttr>(),
                self.flags(),
            )
        });
        got.map(|_| found)
    }

    fn old_attributes(&self) -> Result<FsXattr> {
        let mut found = FsXattr::default();
        // SAFETY: the request writes a `struct fsxattr`, which `found` is.
        let got = unsafe { libc::ioctl(self.directory.as_raw_fd(), FSGETXATTR, &raw mut found) };
        answer(got.into()).map(|_| found)
    }

    /// Its project. By file_getattr(2), or before Linux 6.17 by an ioctl, which asks open files only.
    ///
    /// Errors: those of the calls; `OPNOTSUPP` or `NOTTY` where there are no projects.
    pub fn project(&self) -> Result<u32> {
        match self.attributes() {
            Err(Errno::NOSYS | Errno::PERM) if self.name.is_empty() => {
                self.old_attributes().map(|found| found.project)
            }
            found => found.map(|found| found.project),
        }
    }

    /// Sets its project and nothing else.
    ///
    /// Errors: as [`Owned::project`].
    pub fn set_project(&self, project: u32) -> Result<()> {
        self.set(|old| FsXattr { project, ..old }, |found| FileAttr { project, ..found })
    }

    /// How its extents are to be laid out. By the same calls.
    ///
    /// Errors: as [`Owned::project`].
    pub fn extent_hints(&self) -> Result<ExtentHints> {
        let of = |xflags, extent_bytes, cow_extent_bytes| ExtentHints {
            flags: xflags & EXTENT_HINTS,
            extent_bytes,
            cow_extent_bytes,
        };
        match self.attributes() {
            Err(Errno::NOSYS | Errno::PERM) if self.name.is_empty() => self
                .old_attributes()
                .map(|old| of(old.xflags.into(), old.extent_bytes, old.cow_extent_bytes)),
            found => {
                found.map(|found| of(found.xflags, found.extent_bytes, found.cow_extent_bytes))
            }
        }
    }

    /// Sets how its extents are to be laid out, and nothing else.
    ///
    /// Errors: as [`Owned::project`]; `INVAL` for a file that has extents.
    pub fn set_extent_hints(&self, hints: ExtentHints) -> Result<()> {
        let ExtentHints { flags, extent_bytes, cow_extent_bytes } = hints;
        self.set(
            |old| FsXattr {
                xflags: old.xflags & !(EXTENT_HINTS as u32) | flags as u32,
                extent_bytes,
                cow_extent_bytes,
                ..old
            },
            |found| FileAttr {
                xflags: found.xflags & !EXTENT_HINTS | flags,
                extent_bytes,
                cow_extent_bytes,
                ..found
            },
        )
    }

    fn set(
        &self,
        old: impl FnOnce(FsXattr) -> FsXattr,
        new: impl FnOnce(FileAttr) -> FileAttr,
    ) -> Result<()> {
        let wanted = match self.attributes() {
            Err(Errno::NOSYS | Errno::PERM) if self.name.is_empty() => {
                let wanted = old(self.old_attributes()?);
                // SAFETY: the request reads a `struct fsxattr`, which `wanted` is.
                let set = unsafe {
                    libc::ioctl(self.directory.as_raw_fd(), FSSETXATTR, &raw const wanted)
                };
                return answer(set.into()).map(drop);
            }
            found => new(found?),
        };
        // SAFETY: the name ends in a NUL; the kernel reads `wanted`, whose length it is told.
        answer(unsafe {
            libc::syscall(
                FILE_SETATTR,
                self.directory.as_raw_fd(),
                self.name.as_ptr(),
                &raw const wanted,
                size_of::<FileAttr>(),
                self.flags(),
            )
        })
        .map(drop)
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
        match (itself.project(), itself.old_attributes(), named.project()) {
            (Ok(project), Ok(old), Ok(again)) => {
                assert_eq!((project, old.project), (again, project));
                assert_eq!(itself.set_project(project), Ok(()));
            }
            answers => eprintln!("skipped: {:?} {:?}", answers.0, answers.2),
        }
    }
}
