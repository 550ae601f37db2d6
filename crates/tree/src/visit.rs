//! Every entry of a tree, one after the other, in the order of the filesystem.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat};

use crate::directory_stack::DirectoryStack;
use crate::file_data;

/// An entry, as it is handed out.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The directory that it is in.
    pub directory: BorrowedFd<'a>,
    /// Its name there.
    pub name: &'a CStr,
    /// What is known of it; of a symlink, not of what it points at.
    pub facts: Stat,
}

impl Entry<'_> {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.facts.st_mode).is_file()
    }

    /// Opens it for reading. A FIFO does not block, a symlink is not followed.
    ///
    /// Errors: those of the kernel.
    pub fn open(&self) -> io::Result<std::os::fd::OwnedFd> {
        Ok(file_data::open(self.directory, self.name)?)
    }
}

/// Calls `each` with every entry below `root`, a directory before what is in it.
///
/// Errors: the first that comes, of the kernel or of `each`; it ends the visit.
pub fn visit(root: &Path, each: impl FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    climb(DirectoryStack::open(root)?, each)
}

/// As [`visit`], and nobody can tell: access times of directories stay as they are.
///
/// Errors: as there; `EPERM` at the first directory of another user, unless this one may do what
/// owners may (`CAP_FOWNER`).
pub fn visit_unseen(root: &Path, each: impl FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    climb(DirectoryStack::open_unseen(root)?, each)
}

fn climb(
    mut stack: DirectoryStack,
    mut each: impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut levels = vec![level(&stack, &mut each)?];
    while let Some(below) = levels.last_mut() {
        if let Some(name) = below.pop() {
            stack.descend(&name)?;
            levels.push(level(&stack, &mut each)?);
        } else {
            levels.pop();
            stack.ascend()?;
        }
    }
    Ok(())
}

/// Visits what is in the directory where the stack stands; returns the directories among it.
fn level(
    stack: &DirectoryStack,
    each: &mut impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<Vec<CString>> {
    let mut below = Vec::new();
    stack.entries(|name, _| {
        let facts = rustix::fs::statat(stack.here(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(facts.st_mode).is_dir() {
            below.push(name.to_owned());
        }
        each(&Entry { directory: stack.here(), name, facts })
    })?;
    Ok(below)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn everything_is_seen_once_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        fs::write(place.path().join("a/b/file"), "12345").unwrap();
        std::os::unix::fs::symlink("a", place.path().join("link")).unwrap();
        let mut seen = Vec::new();
        let mut bytes = 0;
        visit(place.path(), |entry| {
            seen.push(entry.name.to_str().unwrap().to_owned());
            if entry.is_file() {
                bytes += rustix::fs::fstat(entry.open()?)?.st_size;
            }
            Ok(())
        })
        .unwrap();
        seen.sort();
        assert_eq!(seen, ["a", "b", "file", "link"]);
        assert_eq!(bytes, 5);
        assert!(visit(&place.path().join("a"), |_| Err(io::Error::other("no"))).is_err());
    }
}
