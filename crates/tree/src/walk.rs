//! The regular files of a tree, in an order that does not change: names by their bytes, a
//! directory's files where its name stands.
//!
//! No symlink inside the tree is followed, and nothing but directories is opened. A directory is
//! held by descriptor and its entries are looked up in it, so a name that is exchanged meanwhile
//! leads nowhere else. Trees may be deeper than any path or the limit of descriptors: `walk/level`
//! says how.

mod level;
mod listing;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::item::{Item, Place, Wanted};
use crate::sum::Failure;
use level::{Inode, Level};
use listing::Lister;

/// Directories held open at a time. More are let go of, the outermost first, and found again
/// through `..`.
const HELD_DIRECTORIES: usize = 64;

/// The regular files below a directory, or a single file.
///
/// Cost: one openat(2), one fstat(2) and a few getdents64(2) per directory, nothing per file
/// where the filesystem tells the kind of an entry. Memory: the names of the directories on the
/// way from the top to where the walk is. Descriptors: at most 64, and those of directories whose
/// items are still in use.
pub struct Walk {
    /// What is given, until the walk begins.
    start: Option<PathBuf>,
    wanted: Wanted,
    left_out: Vec<Inode>,
    lister: Lister,
    /// From the top to where the walk is.
    levels: Vec<Level>,
    /// Levels before this one, except the top, have been let go of.
    first_held: usize,
    /// The path of the innermost level as it is shown.
    shown: Vec<u8>,
}

impl Walk {
    /// A walk over `path`, which may be a symlink to a directory. Anything else than a directory
    /// is yielded as it is.
    pub fn new(path: PathBuf, wanted: Wanted) -> Self {
        Self {
            start: Some(path),
            wanted,
            left_out: Vec::new(),
            lister: Lister::default(),
            levels: Vec::new(),
            first_held: 1,
            shown: Vec::new(),
        }
    }

    /// Leaves out the file with this device and inode number: the one into which the results go.
    #[must_use]
    pub fn without(mut self, device: u64, inode: u64) -> Self {
        self.left_out.push(Inode { device, inode });
        self
    }

    /// Opens what was given.
    fn begin(&mut self, path: PathBuf) -> Option<Yielded> {
        match level::open_top(&path) {
            Ok(directory) => {
                self.shown = path.into_os_string().into_encoded_bytes();
                let shown_bytes = self.shown.len();
                self.enter(directory, shown_bytes)
            }
            Err(Errno::NOTDIR) => {
                let shown = path.clone().into_os_string();
                let wanted = self.wanted.clone();
                Some(Ok(Item { place: Place::Path(path), shown, wanted }))
            }
            Err(error) => Some(Err(failure(path.into_os_string(), "open", error))),
        }
    }

    /// Makes a directory that is open the innermost level. `parent_bytes` is how long the shown
    /// path was before its name.
    fn enter(&mut self, directory: rustix::fd::OwnedFd, parent_bytes: usize) -> Option<Yielded> {
        let inode = match level::inode_of(&directory) {
            Ok(inode) => inode,
            Err(error) => return Some(Err(self.leave_unread(parent_bytes, "stat", error))),
        };
        let (listing, result) = self.lister.list(&directory);
        let directory = Some(Arc::new(directory));
        self.levels.push(Level { directory, inode, listing, parent_bytes });
        if self.levels.len() - self.first_held > HELD_DIRECTORIES - 1 {
            self.let_go(self.first_held + 1);
        }
        let shown = || OsStr::from_bytes(&self.shown).to_owned();
        result.err().map(|error| Err(failure(shown(), "read", error)))
    }

    /// Closes the levels before `first_held`, except the top.
    fn let_go(&mut self, first_held: usize) {
        for level in &mut self.levels[self.first_held..first_held] {
            level.directory = None;
        }
        self.first_held = first_held;
    }

    fn leave_unread(
        &mut self,
        parent_bytes: usize,
        operation: &'static str,
        error: Errno,
    ) -> (OsString, Failure) {
        let shown = OsStr::from_bytes(&self.shown).to_owned();
        self.shown.truncate(parent_bytes);
        failure(shown, operation, error)
    }

    /// Goes into a directory of the innermost level.
    fn descend(&mut self, name: &OsStr) -> Option<Yielded> {
        let parent_bytes = self.shown.len();
        push_name(&mut self.shown, name);
        let parent = self.levels.last()?.directory.clone()?;
        let opened = level::open_in(&parent, name).or_else(|error| match error {
            // Others need descriptors too: one parent is enough to go on.
            Errno::MFILE | Errno::NFILE => {
                self.let_go(self.first_held.max(self.levels.len() - 1));
                level::open_in(&parent, name)
            }
            error => Err(error),
        });
        match opened {
            Ok(directory) => self.enter(directory, parent_bytes),
            Err(error) => Some(Err(self.leave_unread(parent_bytes, "open", error))),
        }
    }

    /// Goes back from the innermost level, whose entries are used up.
    fn ascend(&mut self) -> Option<Yielded> {
        let child = self.levels.pop()?;
        self.shown.truncate(child.parent_bytes);
        let count = self.levels.len();
        let parent = self.levels.last_mut()?;
        if parent.directory.is_some() {
            return None;
        }
        self.first_held = self.first_held.min(count - 1).max(1);
        let result = match &child.directory {
            Some(directory) => level::open_parent(directory, parent.inode),
            // The way back was lost further down.
            None => Err(Errno::STALE),
        };
        match result {
            Ok(directory) => {
                parent.directory = Some(Arc::new(directory));
                None
            }
            Err(_) if parent.listing.is_used_up() => None,
            Err(error) => {
                parent.listing.clear();
                Some(Err(failure(OsStr::from_bytes(&self.shown).to_owned(), "return to", error)))
            }
        }
    }

    fn step(&mut self) -> Option<Yielded> {
        let level = self.levels.last_mut()?;
        let Some((name, kind, inode)) = level.listing.next() else {
            return self.ascend();
        };
        let name = OsStr::from_bytes(name).to_owned();
        let directory = level.directory.as_ref()?;
        let kind = match kind {
            FileType::Unknown => match level::kind_of(directory, &name) {
                Ok(kind) => kind,
                // Removed since the directory was read.
                Err(Errno::NOENT) => return None,
                Err(error) => {
                    return Some(Err(failure(joined(&self.shown, &name), "stat", error)));
                }
            },
            kind => kind,
        };
        match kind {
            FileType::Directory => self.descend(&name),
            FileType::RegularFile => {
                let found = Inode { device: level.inode.device, inode };
                if self.left_out.contains(&found) {
                    return None;
                }
                let shown = joined(&self.shown, &name);
                let place = Place::In { directory: Arc::clone(directory), name };
                Some(Ok(Item { place, shown, wanted: self.wanted.clone() }))
            }
            _ => None,
        }
    }
}

/// What a walk yields: a file, or what cannot be read, by its name.
pub type Yielded = Result<Item, (OsString, Failure)>;

impl Iterator for Walk {
    type Item = Yielded;

    fn next(&mut self) -> Option<Yielded> {
        if let Some(path) = self.start.take()
            && let Some(first) = self.begin(path)
        {
            return Some(first);
        }
        while !self.levels.is_empty() {
            if let Some(yielded) = self.step() {
                return Some(yielded);
            }
        }
        None
    }
}

/// A path with one more name.
fn joined(parent: &[u8], name: &OsStr) -> OsString {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.len());
    path.extend_from_slice(parent);
    push_name(&mut path, name);
    OsString::from_vec(path)
}

fn push_name(path: &mut Vec<u8>, name: &OsStr) {
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_bytes());
}

fn failure(shown: OsString, operation: &'static str, error: Errno) -> (OsString, Failure) {
    // What is gone could not be opened, whatever was tried with it.
    let operation = if error == Errno::NOENT { "open" } else { operation };
    let failure = Failure::System { operation, shown: shown.clone(), source: error.into() };
    (shown, failure)
}

/// Where a path as the user gave it leads: the path itself, or, where it is longer than the
/// kernel takes in one piece, its last name in a directory that was reached by steps. Symlinks on
/// the way are followed.
pub fn place_of(path: &Path) -> Place {
    if path.as_os_str().len() < level::PATH_MAX_BYTES {
        return Place::Path(path.to_owned());
    }
    match level::open_by_steps(path) {
        Ok((directory, name)) => Place::In { directory: Arc::new(directory), name },
        // Whoever opens it is told why it cannot be.
        Err(_) => Place::Path(path.to_owned()),
    }
}
