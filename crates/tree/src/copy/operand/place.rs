//! Paths as the user wrote them, and the files that they lead to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};

use super::super::job::Operand;
use super::super::options::Reach;

/// Tells a file from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    pub fn of(facts: &Stat) -> Self {
        Self { device: facts.st_dev, number: facts.st_ino }
    }
}

/// The path without slashes at its end.
pub fn without_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}

/// The name that a path gives to what it leads to; `.`, `..` and `/` give none.
pub fn last_name(path: &Path) -> Option<OsString> {
    let bytes = without_slashes(path).as_os_str().as_bytes();
    let start = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = &bytes[start..];
    let is_name = !matches!(name, b"" | b"." | b"..");
    is_name.then(|| OsStr::from_bytes(name).to_owned())
}

/// The directory in which the last name of a path stands.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Whether copying would write a file over itself, however it is named: a hard link, a symlink, a
/// bind mount. A symlink is not what it leads to, but would be lost in place of it.
pub fn is_same(operand: &Operand, source: &Stat, target: &Stat) -> bool {
    let is_link = |facts: &Stat| FileType::from_raw_mode(facts.st_mode).is_symlink();
    let is_one = Inode::of(source) == Inode::of(target);
    match (is_link(source), is_link(target)) {
        (true, true) => is_one && is_same_name(&operand.source, &operand.target),
        (false, false) => is_one,
        _ => followed(&operand.source)
            .is_some_and(|source| followed(&operand.target) == Some(source)),
    }
}

/// Whether two sources that lead to the same file are one: a directory has one name, however it is
/// written; a file may have several.
pub fn is_same_source(one: &Path, other: &Path) -> bool {
    let is_directory = |path| {
        rustix::fs::lstat(path).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode).is_dir())
    };
    is_directory(one) && is_directory(other) || is_same_name(one, other)
}

fn is_same_name(one: &Path, other: &Path) -> bool {
    let home = |path: &Path| followed(&parent(path));
    last_name(one) == last_name(other) && home(one).is_some() && home(one) == home(other)
}

fn followed(path: &Path) -> Option<Inode> {
    rustix::fs::stat(path).ok().map(|facts| Inode::of(&facts))
}

/// Whether a directory lies in another one, or is it: one of the directories above it is the same
/// file. Where the copy stays on the filesystem of the source, one on another filesystem does not
/// count: it is not entered.
///
/// What cannot be looked at is taken to lie outside; the copier notices a directory that it has made
/// itself. So it does where a part of the source is mounted a second time, above which the source
/// does not stand.
pub fn lies_inside(directory: &Path, source: &Stat, reach: Reach) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let wanted = Inode::of(source);
    let Ok(mut here) = rustix::fs::openat(CWD, directory, flags, Mode::empty()) else {
        return false;
    };
    let Ok(facts) = rustix::fs::fstat(&here) else { return false };
    if reach == Reach::OneFilesystem && facts.st_dev != source.st_dev {
        return false;
    }
    let mut inode = Inode::of(&facts);
    loop {
        if inode == wanted {
            return true;
        }
        let above = rustix::fs::openat(&here, "..", flags, Mode::empty());
        let Ok((above, facts)) = above.and_then(|above| {
            let facts = rustix::fs::fstat(&above)?;
            Ok((above, facts))
        }) else {
            return false;
        };
        if Inode::of(&facts) == inode {
            return false;
        }
        (here, inode) = (above, Inode::of(&facts));
    }
}
