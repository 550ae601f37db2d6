//! Paths as the user wrote them, and the files that they lead to.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::failed;
use crate::copy::{Failure, Identity, Operand, Reach, identity, kind_of};

const ABOVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The path without slashes at its end, but for that of `/`.
pub fn without_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let end =
        bytes.iter().rposition(|&byte| byte != b'/').map_or(bytes.len().min(1), |last| last + 1);
    Path::new(OsStr::from_bytes(&bytes[..end]))
}

/// The name that a path gives to what it leads to; `.`, `..` and `/` give none.
pub fn last_name(path: &Path) -> Option<&OsStr> {
    let bytes = without_slashes(path).as_os_str().as_bytes();
    let start = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = &bytes[start..];
    let is_name = !matches!(name, b"" | b"." | b"..");
    is_name.then(|| OsStr::from_bytes(name))
}

/// The directory in which the last name of a path stands.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The name that `-T`, or a target that is no directory, means. Slashes at its end say that it is a
/// directory, or is to become one. `making`: what is made of the source, in the words of a failure.
pub(super) fn exact_target(
    path: &Path,
    source: &Stat,
    making: &'static str,
) -> Result<PathBuf, Failure> {
    let is_dot = last_name(path).is_none();
    let stripped = without_slashes(path);
    if stripped.as_os_str() == path.as_os_str() && !is_dot {
        return Ok(path.to_owned());
    }
    match rustix::fs::lstat(path) {
        // What the slash follows is followed by everybody.
        Ok(_) => Ok(path.to_owned()),
        Err(Errno::NOENT) if !is_dot => {
            match rustix::fs::stat(parent(stripped)) {
                // There is nothing in which it could be made.
                Err(Errno::NOENT) => Err(failed(making, path)(Errno::NOENT)),
                _ if kind_of(source).is_dir() => Ok(stripped.to_owned()),
                _ if making == "create" => Err(failed(making, path)(Errno::NOTDIR)),
                _ => Err(failed(making, path)(Errno::NOENT)),
            }
        }
        Err(Errno::NOTDIR) => Err(failed("stat", path)(Errno::NOTDIR)),
        Err(errno) => Err(failed("create", path)(errno)),
    }
}

/// Whether copying would write a file over itself, however it is named: a hard link, a symlink, a
/// bind mount. A symlink is not what it leads to, but would be lost in place of it.
pub fn is_same(operand: &Operand, source: &Stat, target: &Stat) -> bool {
    let is_link = |facts: &Stat| kind_of(facts).is_symlink();
    let is_one = identity(source) == identity(target);
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
    let is_directory = |path| rustix::fs::lstat(path).is_ok_and(|facts| kind_of(facts).is_dir());
    is_directory(one) && is_directory(other) || is_same_name(one, other)
}

fn is_same_name(one: &Path, other: &Path) -> bool {
    let home = |path: &Path| followed(&parent(path));
    last_name(one) == last_name(other) && home(one).is_some() && home(one) == home(other)
}

fn followed(path: &Path) -> Option<Identity> {
    rustix::fs::stat(path).ok().map(|facts| identity(&facts))
}

/// Whether a directory lies in another one, or is it: one of the directories above it is the same
/// file. Where the copy stays on the filesystem of the source, one on another filesystem does not
/// count: it is not entered.
///
/// What cannot be looked at is taken to lie outside; the copier notices a directory that it has made
/// itself. So it does where a part of the source is mounted a second time, above which the source
/// does not stand.
pub fn lies_inside(directory: &Path, source: &Stat, reach: Reach) -> bool {
    let above = way_up(directory);
    let is_elsewhere = above.first().is_some_and(|found| found.0 != source.st_dev);
    !(reach == Reach::OneFilesystem && is_elsewhere) && above.contains(&identity(source))
}

/// A directory, and those above it up to the root, as far as they can be looked at.
pub fn way_up(directory: &Path) -> Vec<Identity> {
    way_up_from(rustix::fs::openat(CWD, directory, ABOVE, Mode::empty()))
}

/// The same of one that is open.
pub fn way_up_from(mut next: Result<OwnedFd, Errno>) -> Vec<Identity> {
    let mut found: Vec<Identity> = Vec::new();
    while let Ok(here) = next {
        let Ok(facts) = rustix::fs::fstat(&here) else { break };
        // Nothing is above the root.
        if found.last() == Some(&identity(&facts)) {
            break;
        }
        found.push(identity(&facts));
        next = rustix::fs::openat(&here, "..", ABOVE, Mode::empty());
    }
    found
}

/// What an operand reads: the source itself, and the directories in which it lies.
///
/// `parents` knows those above the last source that was asked for: most have the same.
pub fn way_to(
    source: &Path,
    facts: &Stat,
    parents: &mut (PathBuf, Vec<Identity>),
) -> Vec<Identity> {
    let is_directory = kind_of(facts).is_dir();
    let is_plain =
        without_slashes(source).as_os_str() == source.as_os_str() && last_name(source).is_some();
    if is_directory && !is_plain {
        return way_up(source);
    }
    let above = parent(source);
    if parents.0 != above {
        *parents = (above.clone(), way_up(&above));
    }
    std::iter::once(identity(facts)).chain(parents.1.iter().copied()).collect()
}

/// Whether something is there, be it a symlink that leads nowhere.
pub fn is_there(path: &Path) -> Result<bool, Failure> {
    match rustix::fs::lstat(path) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(errno) => Err(failed("stat", path)(errno)),
    }
}
