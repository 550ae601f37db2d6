//! The way back to a copy, and a link of it: nothing that was swapped meanwhile is followed, and
//! what gets the new name is the very inode that was written.
//!
//! The path may be longer than the kernel takes in one call. It is walked by openat2(2), which
//! refuses symlinks everywhere in it; where that is missing, directory by directory.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use flatout_sys::file_handle::{self, FileHandle};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Copy, Placed, mark};
use crate::copy::Refusal;
use crate::file_data;

/// openat2(2) was refused once: it will be refused always.
static OPENAT2_IS_MISSING: AtomicBool = AtomicBool::new(false);

const LINK: &str = "link";
const ODD_PATH: &str = "its path in the target is none";

/// What came of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::copy) enum Linking {
    /// The name was made.
    Made,
    /// It is there already.
    WasThere,
    /// This filesystem makes none, or none more of this file: it is to be copied.
    Cannot(Errno),
    /// The copy is not where it was made, or something on the way there is a symlink now: it is to be
    /// copied again.
    Lost,
}

impl Linking {
    /// Why there is no link.
    pub(in crate::copy) fn cause(self) -> &'static str {
        match self {
            Self::Lost => "its copy was moved or replaced meanwhile",
            _ => "the target takes no (more) links to it",
        }
    }
}

/// Answers of linkat(2) that mean that a link cannot be had here: too many of them, another filesystem or mount, a
/// filesystem without links (ENOSYS comes from FUSE), a file that may not get any (`fs.protected_hardlinks`, an
/// immutable one).
const CANNOT: [Errno; 5] = [Errno::MLINK, Errno::XDEV, Errno::PERM, Errno::OPNOTSUPP, Errno::NOSYS];

/// Makes `name` in the directory `to` another name of a copy.
///
/// Errors: `name` is there already (`EEXIST`); others of the kernel.
pub(in crate::copy) fn link(
    known: Placed<'_>,
    to: BorrowedFd<'_>,
    name: &CStr,
) -> Result<Linking, Refusal> {
    let opened = match known.file {
        Some(_) => None,
        None => open_so(known.root, known.copy, OFlags::PATH)?,
    };
    let file = known.file.or(opened.as_ref().map(AsFd::as_fd));
    let Some(source) = file else { return Ok(Linking::Lost) };
    match link_inode(source, to, name) {
        Ok(()) => Ok(Linking::Made),
        Err(errno) if CANNOT.contains(&errno) => Ok(Linking::Cannot(errno)),
        // Its last name was removed between the two calls.
        Err(Errno::NOENT) => Ok(Linking::Lost),
        Err(errno) => Err(Refusal::of(LINK)(errno)),
    }
}

/// Opens a copy for reading; `None`: it is not where it was made, or may not be read.
pub(in crate::copy) fn open_copy(root: BorrowedFd<'_>, copy: &Copy) -> Option<OwnedFd> {
    open_so(root, copy, OFlags::RDONLY | OFlags::NONBLOCK).ok().flatten()
}

/// A copy as it is, of whatever kind, not opened; `None`: it is not where it was made.
pub(in crate::copy) fn pin_copy(root: BorrowedFd<'_>, copy: &Copy) -> Option<OwnedFd> {
    open_so(root, copy, OFlags::PATH).ok().flatten()
}

/// What tells a copy from other files that have its number.
pub(in crate::copy) fn handle(root: BorrowedFd<'_>, copy: &Copy) -> Option<FileHandle> {
    let file = pin_copy(root, copy)?;
    file_handle::of(file.as_fd(), c"")
}

fn open_so(root: BorrowedFd<'_>, copy: &Copy, flags: OFlags) -> Result<Option<OwnedFd>, Refusal> {
    let Some((directory, leaf)) = open_below(root, &copy.path)? else { return Ok(None) };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&directory, &leaf, flags, Mode::empty());
    let Some(source) = found(opened)? else { return Ok(None) };
    let facts = rustix::fs::fstat(&source).map_err(Refusal::of(LINK))?;
    // For a second after a file was closed cifs shows a time of its own, unless the server is asked.
    let is_it = mark(&facts) == copy.mark
        || rustix::fs::major(facts.st_dev) == 0
            && file_data::ask_again(&source, &facts).is_ok_and(|facts| mark(&facts) == copy.mark);
    Ok(is_it.then_some(source))
}

/// Gives an open inode a name, whatever its other names are by now.
///
/// An empty path needs CAP_DAC_READ_SEARCH before Linux 6.10 and is answered by ENOENT without it;
/// then it goes through /proc, where a descriptor is a link that leads to the inode itself, also
/// to that of a symlink. Not the other way round: /proc may be something else here.
fn link_inode(source: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match rustix::fs::linkat(source, c"", to, name, AtFlags::EMPTY_PATH) {
        Err(Errno::NOENT) => link_through_proc(source, to, name),
        answer => answer,
    }
}

fn link_through_proc(source: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    rustix::fs::linkat(CWD, file_data::itself(source), to, name, AtFlags::SYMLINK_FOLLOW)
}

/// Opens the directory that the last component of `path` is in, and says what that is; `None` where
/// nothing leads there.
///
/// Errors: a component is `..`; others of the kernel.
pub(in crate::copy) fn open_below(
    root: BorrowedFd<'_>,
    path: &[u8],
) -> Result<Option<(OwnedFd, CString)>, Refusal> {
    let Some(directory) = resolve(root, path)? else { return Ok(None) };
    let leaf = components(path).last().and_then(|leaf| CString::new(leaf).ok());
    let leaf = leaf.ok_or(Refusal::because(LINK, ODD_PATH))?;
    Ok(Some((directory, leaf)))
}

/// Opens the directory that the last component of `path` is in, as a place to look names up in
/// (`O_PATH`); `None` where a component is missing, no directory, or a symlink. No symlink is followed,
/// whichever component it is; `path` is as long as it likes.
///
/// Errors: a component is `..`; others of the kernel.
fn resolve(root: BorrowedFd<'_>, path: &[u8]) -> Result<Option<OwnedFd>, Refusal> {
    let parts: Vec<&[u8]> = components(path).collect();
    match parts.split_last() {
        Some((_, parts)) if !parts.contains(&&b".."[..]) => found(descend(root, parts)),
        _ => Err(Refusal::because(LINK, ODD_PATH)),
    }
}

/// What was opened; `None`: a symlink, no directory, or nothing stands where something was made.
fn found(opened: Result<OwnedFd, Errno>) -> Result<Option<OwnedFd>, Refusal> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => Ok(None),
        Err(errno) => Err(Refusal::of(LINK)(errno)),
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Goes down some directories: at once, or where the kernel does not take that, one by one.
fn descend(from: BorrowedFd<'_>, parts: &[&[u8]]) -> Result<OwnedFd, Errno> {
    let open =
        |at: BorrowedFd<'_>, name: &[u8]| rustix::fs::openat(at, name, DIRECTORY, Mode::empty());
    if !parts.is_empty() && !OPENAT2_IS_MISSING.load(Ordering::Relaxed) {
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path = parts.join(&b'/');
        match rustix::fs::openat2(from, path, DIRECTORY, Mode::empty(), rules) {
            // Old kernels do not know it, and container runtimes deny what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => OPENAT2_IS_MISSING.store(true, Ordering::Relaxed),
            // One name may be too long, or all of them together.
            Err(Errno::NAMETOOLONG) => {}
            answer => return answer,
        }
    }
    let start = open(from, b".")?;
    parts.iter().try_fold(start, |here, part| open(here.as_fd(), part))
}

#[cfg(test)]
mod tests;
