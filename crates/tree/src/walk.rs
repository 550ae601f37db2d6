//! The regular files of a tree, in an order that does not change: names by their bytes, a
//! directory's files where its name stands.
//!
//! No symlink inside the tree is followed, and nothing but directories is opened. A directory is
//! held by descriptor and its entries are looked up in it, so a name that is exchanged meanwhile
//! leads nowhere else. Trees may be deeper than any path or the limit of descriptors (`directory_stack`).

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;

use crate::copy::{Identity, identity};
use crate::directory_stack::{DIRECTORY, DirectoryStack};
use crate::file_data::{self, kind_of};
use crate::item::{Item, Place, Wanted};
use crate::path;
use crate::sum::Failure;

/// Bytes of a path that the kernel takes in one piece, with the zero byte at its end
/// (path_resolution(7)).
const PATH_MAX_BYTES: usize = 4096;

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
    left_out: Vec<Identity>,
    /// From the top to where the walk is.
    stack: Option<DirectoryStack>,
    levels: Vec<Level>,
    /// The path of the innermost level as it is shown.
    shown: Vec<u8>,
}

/// A name, what bears it, and the inode number that the directory has.
type Entry = (OsString, FileType, u64);

/// What is known of a directory on the way.
struct Level {
    /// What has not been walked yet, the last one first.
    entries: Vec<Entry>,
    /// How long the shown path of the parent is.
    parent_bytes: usize,
}

impl Walk {
    /// A walk over `path`, which may be a symlink to a directory. Anything else than a directory
    /// is yielded as it is.
    pub fn new(path: PathBuf, wanted: Wanted) -> Self {
        Self {
            start: Some(path),
            wanted,
            left_out: Vec::new(),
            stack: None,
            levels: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// Leaves out the file with this device and inode number: the one into which the results go.
    #[must_use]
    pub fn without(mut self, device: u64, inode: u64) -> Self {
        self.left_out.push((device, inode));
        self
    }

    /// Opens what was given.
    fn begin(&mut self, path: PathBuf) -> Option<Yielded> {
        match DirectoryStack::open(&path) {
            Ok(stack) => {
                self.shown = path.into_os_string().into_encoded_bytes();
                self.stack = Some(stack);
                self.enter(self.shown.len())
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                let shown = path.clone().into_os_string();
                let wanted = self.wanted.clone();
                Some(Ok(Item { place: Place::Path(path), shown, wanted }))
            }
            Err(error) => Some(Err(failure(path.into_os_string(), "open", error))),
        }
    }

    /// Lists the directory that the stack has come to. `parent_bytes` is how long the shown path was
    /// before its name.
    fn enter(&mut self, parent_bytes: usize) -> Option<Yielded> {
        let mut entries = Vec::new();
        let result = self.stack.as_ref()?.entries(|name, kind, inode| {
            if matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Unknown) {
                entries.push((OsStr::from_bytes(name.to_bytes()).to_owned(), kind, inode));
            }
            Ok(())
        });
        sort(&mut entries);
        self.levels.push(Level { entries, parent_bytes });
        result.err().map(|error| Err(failure(self.shown(), "read", error)))
    }

    fn shown(&self) -> OsString {
        OsStr::from_bytes(&self.shown).to_owned()
    }

    /// Goes into a directory of the innermost level.
    fn descend(&mut self, name: &OsStr) -> Option<Yielded> {
        let parent_bytes = self.shown.len();
        path::push(&mut self.shown, name.as_bytes());
        let stack = self.stack.as_mut()?;
        let opened = stack.descend(name).or_else(|error| match Errno::from_io_error(&error) {
            // Others need descriptors too: one parent is enough to go on.
            Some(Errno::MFILE | Errno::NFILE) => {
                stack.let_go();
                stack.descend(name)
            }
            _ => Err(error),
        });
        match opened {
            Ok(()) => self.enter(parent_bytes),
            Err(error) => {
                let shown = self.shown();
                self.shown.truncate(parent_bytes);
                Some(Err(failure(shown, "open", error)))
            }
        }
    }

    /// Goes back from the innermost level, whose entries are used up.
    fn ascend(&mut self) -> Option<Yielded> {
        let child = self.levels.pop()?;
        self.shown.truncate(child.parent_bytes);
        let parent = self.levels.last_mut()?;
        match self.stack.as_mut()?.ascend() {
            Err(error) if !parent.entries.is_empty() => {
                parent.entries.clear();
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::STALE);
                Some(Err(failure(self.shown(), "return to", errno.into())))
            }
            _ => None,
        }
    }

    fn step(&mut self) -> Option<Yielded> {
        let level = self.levels.last_mut()?;
        let Some((name, kind, inode)) = level.entries.pop() else {
            return self.ascend();
        };
        let stack = self.stack.as_ref()?;
        let look = || file_data::look(stack.here(), &name);
        let kind = match kind {
            FileType::Unknown => match look() {
                Ok(facts) => kind_of(facts),
                // Removed since the directory was read.
                Err(Errno::NOENT) => return None,
                Err(errno) => {
                    return Some(Err(failure(joined(&self.shown, &name), "stat", errno.into())));
                }
            },
            kind => kind,
        };
        match kind {
            FileType::Directory => self.descend(&name),
            FileType::RegularFile => {
                // What is listed is a hint: an overlay lists numbers of its layers, of several devices.
                let may_be_left_out = self.left_out.iter().any(|(_, number)| *number == inode);
                let is_left_out = |facts| self.left_out.contains(&identity(&facts));
                if may_be_left_out && look().is_ok_and(is_left_out) {
                    return None;
                }
                let shown = joined(&self.shown, &name);
                let place = Place::In { directory: Arc::clone(stack.lowest()), name };
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

/// By the bytes of the names, the first one last.
fn sort(entries: &mut Vec<Entry>) {
    entries.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    // Servers may list a name twice, and others where it is taken by another file meanwhile.
    entries.dedup_by(|one, other| one.0 == other.0);
}

/// A path with one more name.
fn joined(parent: &[u8], name: &OsStr) -> OsString {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.len());
    path.extend_from_slice(parent);
    path::push(&mut path, name.as_bytes());
    OsString::from_vec(path)
}

fn failure(shown: OsString, operation: &'static str, source: io::Error) -> (OsString, Failure) {
    // What is gone could not be opened, whatever was tried with it.
    let is_gone = source.kind() == io::ErrorKind::NotFound;
    let operation = if is_gone { "open" } else { operation };
    (shown.clone(), Failure::System { operation, shown, source })
}

/// Where a path as the user gave it leads: the path itself, or, where it is longer than the
/// kernel takes in one piece, its last name in a directory that was reached by steps. Symlinks on
/// the way are followed.
pub fn place_of(path: &Path) -> Place {
    if path.as_os_str().len() < PATH_MAX_BYTES {
        return Place::Path(path.to_owned());
    }
    match open_by_steps(path) {
        Ok((directory, name)) => Place::In { directory: Arc::new(directory), name },
        // Whoever opens it is told why it cannot be.
        Err(_) => Place::Path(path.to_owned()),
    }
}

/// Opens the directory of a path of any length, and names what lies in it.
fn open_by_steps(path: &Path) -> Result<(OwnedFd, OsString), Errno> {
    let bytes = path.as_os_str().as_bytes();
    let cut = bytes.iter().rposition(|&byte| byte == b'/').ok_or(Errno::NAMETOOLONG)?;
    let name = OsStr::from_bytes(&bytes[cut + 1..]).to_owned();
    let start: &[u8] = if bytes[0] == b'/' { b"/" } else { b"." };
    let mut directory = rustix::fs::openat(CWD, start, DIRECTORY, Mode::empty())?;
    let mut rest = &bytes[..cut];
    while let Some(first) = rest.iter().position(|&byte| byte != b'/') {
        rest = &rest[first..];
        let piece = if rest.len() < PATH_MAX_BYTES {
            rest
        } else {
            let slash = rest[..PATH_MAX_BYTES - 1].iter().rposition(|&byte| byte == b'/');
            &rest[..slash.ok_or(Errno::NAMETOOLONG)?]
        };
        directory = rustix::fs::openat(&directory, piece, DIRECTORY, Mode::empty())?;
        rest = &rest[piece.len()..];
    }
    Ok((directory, name))
}
