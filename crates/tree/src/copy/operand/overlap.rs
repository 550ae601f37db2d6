//! Two sources that go to the same place: what both would bring there.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::super::failure::{Failure, Refusal};
use crate::ladder::Ladder;

/// What two sources have in common.
#[derive(Debug, PartialEq, Eq)]
pub enum Overlap {
    /// One of them is not there at all.
    Nothing,
    /// Directories only: their trees can be merged, one after the other.
    Directories,
    /// The first name, from the sources on, that is in both and not a directory in both.
    Clash(PathBuf),
}

/// Looks at both trees. No symlink in them is followed.
///
/// Cost: the names of the other tree where the first has directories of these names, and one
/// fstatat(2) for each; memory for the names of common directories on the way.
pub fn of(one: &Path, other: &Path) -> Result<Overlap, Failure> {
    let (Some(one_facts), Some(other_facts)) = (facts(one)?, facts(other)?) else {
        return Ok(Overlap::Nothing);
    };
    if !is_directory(&one_facts) || !is_directory(&other_facts) {
        return Ok(Overlap::Clash(PathBuf::new()));
    }
    let found = search(one, other).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        failure("compare", other, errno)
    })?;
    Ok(found.map_or(Overlap::Directories, Overlap::Clash))
}

/// A path and what stands below it, as it is best read.
pub fn joined(path: &Path, below: &Path) -> PathBuf {
    path.join(below).components().collect()
}

fn failure(operation: &'static str, path: &Path, errno: Errno) -> Failure {
    Failure { refusal: Refusal::of(operation)(errno), path: path.as_os_str().to_owned() }
}

fn facts(path: &Path) -> Result<Option<Stat>, Failure> {
    match rustix::fs::lstat(path) {
        Ok(facts) => Ok(Some(facts)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failure("stat", path, errno)),
    }
}

fn is_directory(facts: &Stat) -> bool {
    FileType::from_raw_mode(facts.st_mode).is_dir()
}

fn search(one: &Path, other: &Path) -> io::Result<Option<PathBuf>> {
    let (mut one, mut other) = (Ladder::open(one)?, Ladder::open(other)?);
    let mut path = PathBuf::new();
    let mut common = vec![level(&one, &other)?];
    while let Some(level_found) = common.last_mut() {
        if let Some(clash) = level_found.clash.take() {
            return Ok(Some(path.join(os(&clash))));
        }
        if let Some(name) = level_found.directories.pop() {
            one.descend(&name)?;
            other.descend(&name)?;
            path.push(os(&name));
            common.push(level(&one, &other)?);
        } else {
            common.pop();
            path.pop();
            one.ascend()?;
            other.ascend()?;
        }
    }
    Ok(None)
}

#[derive(Default)]
struct Level {
    directories: Vec<CString>,
    clash: Option<CString>,
}

/// What the directories in which both ladders stand have in common.
fn level(one: &Ladder, other: &Ladder) -> io::Result<Level> {
    let mut found = Level::default();
    other.entries(|name, _| {
        let look = |ladder: &Ladder| match rustix::fs::statat(
            ladder.here(),
            name,
            AtFlags::SYMLINK_NOFOLLOW,
        ) {
            Ok(facts) => Ok(Some(is_directory(&facts))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(io::Error::from(errno)),
        };
        match (look(one)?, look(other)?) {
            (Some(true), Some(true)) => found.directories.push(name.to_owned()),
            (Some(_), Some(_)) => found.clash = Some(name.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
