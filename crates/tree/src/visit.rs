//! Every entry of a tree, one after the other, in the order of the filesystem.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::copy::failure::Refusal;
use crate::directory_stack::DirectoryStack;
use crate::file_data::{self, kind_of};
use crate::path;
use crate::selection::{Ignored, Selection};
use crate::spool::names::Names;

/// An entry, as it is handed out.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The directory that it is in.
    pub directory: BorrowedFd<'a>,
    /// The path of that directory, from the root of the visit on.
    pub above: &'a [u8],
    /// Its name there.
    pub name: &'a CStr,
    /// What is known of it; of a symlink, not of what it points at.
    pub facts: Stat,
}

impl Entry<'_> {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        kind_of(self.facts).is_file()
    }

    /// Opens it for reading. A FIFO does not block, a symlink is not followed.
    ///
    /// Errors: those of the kernel.
    pub fn open(&self) -> io::Result<OwnedFd> {
        Ok(file_data::open(self.directory, self.name)?)
    }
}

/// Calls `each` with every entry below `root`, a directory before what is in it.
///
/// Errors: the first that comes, of the kernel or of `each`; it ends the visit.
pub fn visit(root: &Path, each: impl FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    climb(DirectoryStack::open(root)?, &Selection::default(), each)
}

/// As [`visit`], of what is selected, and nobody can tell: access times of directories stay as they
/// are.
///
/// Errors: as there; `EPERM` at the first directory of another user, unless this one may do what
/// owners may (`CAP_FOWNER`).
pub fn visit_unseen(
    root: &Path,
    selection: &Selection,
    each: impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    climb(DirectoryStack::open_strictly(root)?, selection, each)
}

/// A directory on the way: what is still to be gone into, and what files of rules say there.
struct Level {
    below: Names,
    ignored: Option<Arc<Ignored>>,
    /// Bytes of its path.
    length: usize,
}

/// As [`visit`], from where a stack stands, of what is selected.
///
/// Errors: as there.
pub(crate) fn climb(
    mut stack: DirectoryStack,
    selection: &Selection,
    mut each: impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut path = Vec::new();
    let mut levels = vec![level(&stack, selection, (&mut path, None), &mut each)?];
    while let Some(above) = levels.last_mut() {
        path.truncate(above.length);
        let next = above.below.take_back(1).map_err(told)?;
        if let Some((name, _)) = next.iter().next() {
            stack.descend(name)?;
            let ignored = above.ignored.clone();
            path::push(&mut path, name.to_bytes());
            levels.push(level(&stack, selection, (&mut path, ignored), &mut each)?);
        } else {
            levels.pop();
            stack.ascend()?;
        }
    }
    Ok(())
}

fn told(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.cause.to_string())
}

/// Visits what is in the directory where the stack stands, whose path is given with what is said above
/// it.
fn level(
    stack: &DirectoryStack,
    selection: &Selection,
    (path, above): (&mut Vec<u8>, Option<Arc<Ignored>>),
    each: &mut impl FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<Level> {
    let mut below = Names::default();
    let ignored = match selection.obeys_gitignore {
        true => Ignored::of(stack.here(), path, above)?,
        false => None,
    };
    let length = path.len();
    let has_names = selection.has_names();
    stack.entries(|name, _, _| {
        let facts = file_data::look(stack.here(), name)?;
        let is_directory = kind_of(facts).is_dir();
        if has_names {
            path::push(path, name.to_bytes());
            let is_taken = selection.takes(ignored.as_ref(), path, is_directory);
            path.truncate(length);
            if !is_taken {
                return Ok(());
            }
        }
        if !selection.is_within(&facts) {
            return Ok(());
        }
        if is_directory {
            below.push(name, FileType::Directory).map_err(told)?;
        }
        each(&Entry { directory: stack.here(), above: path, name, facts })
    })?;
    Ok(Level { below, ignored, length })
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
