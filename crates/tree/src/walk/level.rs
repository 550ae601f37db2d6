//! A directory on the way from the top of a tree to where a walk is, and how it is opened.
//!
//! A level whose descriptor was let go of is found again as the `..` of its child, and only if
//! device and inode number are the ones that it had: a directory that somebody moves while it is
//! walked must not lead the walk out of its tree.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::listing::Listing;

/// Bytes of a path that the kernel takes in one piece, with the zero byte at its end
/// (path_resolution(7)).
pub const PATH_MAX_BYTES: usize = 4096;

/// What a file is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    pub device: u64,
    pub inode: u64,
}

/// A directory that a walk is in.
pub struct Level {
    /// `None`: let go of.
    pub directory: Option<Arc<OwnedFd>>,
    pub inode: Inode,
    /// What has not been walked yet.
    pub listing: Listing,
    /// How long the shown path of the parent is.
    pub parent_bytes: usize,
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens what the user named; symlinks are followed. ENOTDIR, and no waiting, for anything but a
/// directory.
pub fn open_top(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, FLAGS, Mode::empty())
}

/// Opens a directory in another, and nothing that took its name.
pub fn open_in(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(parent, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens the parent of a directory if it is still the one expected.
///
/// Errors: ESTALE when the directory lies elsewhere now.
pub fn open_parent(child: &OwnedFd, expected: Inode) -> Result<OwnedFd, Errno> {
    let parent = open_in(child, OsStr::new(".."))?;
    if inode_of(&parent)? == expected { Ok(parent) } else { Err(Errno::STALE) }
}

/// Device and inode number of what is open.
pub fn inode_of(file: &OwnedFd) -> Result<Inode, Errno> {
    let facts = fstat(file)?;
    Ok(Inode { device: facts.st_dev, inode: facts.st_ino })
}

/// What a name in a directory is, where reading the directory did not tell.
pub fn kind_of(directory: &OwnedFd, name: &OsStr) -> Result<FileType, Errno> {
    let facts = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(facts.st_mode))
}

/// Opens the directory of a path of any length, and names what lies in it.
pub fn open_by_steps(path: &Path) -> Result<(OwnedFd, OsString), Errno> {
    let bytes = path.as_os_str().as_bytes();
    let cut = bytes.iter().rposition(|&byte| byte == b'/').ok_or(Errno::NAMETOOLONG)?;
    let name = OsStr::from_bytes(&bytes[cut + 1..]).to_owned();
    let start: &[u8] = if bytes[0] == b'/' { b"/" } else { b"." };
    let mut directory = openat(CWD, start, FLAGS, Mode::empty())?;
    let mut rest = &bytes[..cut];
    while let Some(first) = rest.iter().position(|&byte| byte != b'/') {
        rest = &rest[first..];
        let piece = if rest.len() < PATH_MAX_BYTES {
            rest
        } else {
            let slash = rest[..PATH_MAX_BYTES - 1].iter().rposition(|&byte| byte == b'/');
            &rest[..slash.ok_or(Errno::NAMETOOLONG)?]
        };
        directory = openat(&directory, piece, FLAGS, Mode::empty())?;
        rest = &rest[piece.len()..];
    }
    Ok((directory, name))
}
