//! Two trees held against each other, by descriptor: is one a copy of the other, and how faithful?
//!
//! Nothing that is not a regular file is opened for reading, so that a FIFO never blocks; no symlink
//! is followed; depth has no limit. Memory grows with the names of one directory and with the hard
//! links that are not complete yet, not with the tree.

pub(crate) mod content;
mod entry;
mod fidelity;
mod link;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use flatout_io::Error as IoError;
use flatout_sys::cancel::CancelToken;
use rustix::fs::{CWD, OFlags};

use crate::directory_stack::{DIRECTORY, DirectoryStack};
use crate::file_data::{find, open_unseen};
use crate::path;
use content::Comparer;
use link::Links;

pub use content::is_same;
pub use fidelity::{Fidelity, Kind};

/// What is asked of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The kinds of difference that are looked for.
    pub fidelity: Fidelity,
    /// Differences per kind that are named at most.
    pub most_named: usize,
    /// Ends it early.
    pub cancel: CancelToken,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, below the roots; empty for the roots themselves.
    pub path: OsString,
    /// What.
    pub kind: Kind,
    /// The two values, where they say more than the kind; else empty.
    pub detail: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let root = OsString::from(".");
        let path = if self.path.is_empty() { &root } else { &self.path };
        write!(f, "{} {path:?}", self.kind.code().replace('_', " "))?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The first differences of each kind, in the order in which they were found.
    pub named: Vec<Difference>,
    /// All differences, counted.
    pub counts: BTreeMap<Kind, u64>,
    /// Entries of the source that were looked at, its root not counted.
    pub entries: u64,
    /// Whether all was looked at; false after a wish to stop.
    pub is_complete: bool,
}

impl Comparison {
    /// The gravest difference named that breaks what `fidelity` holds: a missing file changes the
    /// time of its directory, but says more.
    pub fn first_of(&self, fidelity: Fidelity) -> Option<&Difference> {
        let broken = self.named.iter().filter(|difference| fidelity.has(difference.kind));
        broken.min_by_key(|difference| difference.kind)
    }
}

/// Compares two trees.
///
/// Errors: a root that cannot be opened, or a tree that is moved meanwhile. What cannot be read
/// below is a difference ([`Kind::Unreadable`]).
/// Cost: both trees read once, in one thread; about ten system calls per file.
pub fn compare(source: &Path, target: &Path, asked: Asked) -> Result<Comparison, IoError> {
    let at_source = DirectoryStack::open(source).map_err(IoError::system("compare", source))?;
    // A link to the source is no copy of it.
    let flags = DIRECTORY | OFlags::NOFOLLOW | OFlags::NOATIME;
    let at_target = open_unseen(CWD, target, flags).map_err(Into::into);
    let at_target =
        at_target.and_then(DirectoryStack::at).map_err(IoError::system("compare", target))?;
    let mut walk = Walk {
        source: at_source,
        target: at_target,
        asked,
        comparer: Comparer::default(),
        links: Links::default(),
        path: Vec::new(),
        found: Comparison { is_complete: true, ..Comparison::default() },
    };
    walk.roots().map_err(IoError::system("compare", source))?;
    walk.run().map_err(IoError::system("compare", source))?;
    Ok(walk.found)
}

/// A comparison on its way.
struct Walk {
    source: DirectoryStack,
    target: DirectoryStack,
    asked: Asked,
    comparer: Comparer,
    links: Links,
    /// Where it stands, below the roots.
    path: Vec<u8>,
    found: Comparison,
}

/// A directory that is not done yet.
struct Pending {
    below: Vec<CString>,
    path_length: usize,
}

impl Walk {
    fn run(&mut self) -> io::Result<()> {
        let mut pending = vec![Pending { below: self.directory(), path_length: 0 }];
        while let Some(lowest) = pending.last_mut() {
            self.path.truncate(lowest.path_length);
            if self.asked.cancel.is_cancelled() {
                self.found.is_complete = false;
                return Ok(());
            }
            let Some(name) = lowest.below.pop() else {
                pending.pop();
                self.source.ascend()?;
                self.target.ascend()?;
                continue;
            };
            self.push(&name);
            if let Err(error) = self.source.descend(&name) {
                self.differ(Kind::Unreadable, || format!("source: {error}"));
                continue;
            }
            if let Err(error) = self.target.descend(&name) {
                self.source.ascend()?;
                self.differ(Kind::Unreadable, || format!("copy: {error}"));
                continue;
            }
            let below = self.directory();
            pending.push(Pending { below, path_length: self.path.len() });
        }
        Ok(())
    }

    /// Compares the directories that the stacks stand at, without what is below; returns the
    /// subdirectories that both have.
    fn directory(&mut self) -> Vec<CString> {
        let mut names = Vec::new();
        let mut below = Vec::new();
        let listed = self.source.entries(|name, _, _| {
            names.extend(name.to_bytes_with_nul());
            Ok(())
        });
        if let Err(error) = listed {
            self.differ(Kind::Unreadable, || format!("source: {error}"));
        }
        let here = self.path.len();
        for name in names.split_inclusive(|&byte| byte == 0) {
            let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
            if self.asked.cancel.is_cancelled() {
                self.found.is_complete = false;
                return Vec::new();
            }
            self.push(name);
            self.found.entries += 1;
            if self.entry(name) {
                below.push(name.to_owned());
            }
            self.path.truncate(here);
        }
        self.extras();
        below
    }

    /// Names that the target has and the source has not.
    fn extras(&mut self) {
        let (mut extra, mut total, mut whose) = (Vec::new(), 0_u64, "copy");
        let listed = self.target.entries(|name, _, _| {
            let found = find(self.source.here(), name).inspect_err(|_| whose = "source")?;
            if found.is_none() {
                total += 1;
                if extra.len() < self.asked.most_named {
                    extra.push(name.to_owned());
                }
            }
            Ok(())
        });
        let here = self.path.len();
        for name in &extra {
            self.push(name);
            self.differ(Kind::Extra, String::new);
            self.path.truncate(here);
        }
        let unnamed = total - extra.len() as u64;
        if unnamed > 0 && self.asked.fidelity.has(Kind::Extra) {
            *self.found.counts.entry(Kind::Extra).or_default() += unnamed;
        }
        if let Err(error) = listed {
            self.differ(Kind::Unreadable, || format!("{whose}: {error}"));
        }
    }

    fn push(&mut self, name: &CStr) {
        path::push(&mut self.path, name.to_bytes());
    }

    /// Writes down a difference, if it is of a kind that is looked for.
    fn differ(&mut self, kind: Kind, detail: impl FnOnce() -> String) {
        if !self.asked.fidelity.has(kind) {
            return;
        }
        let count = self.found.counts.entry(kind).or_default();
        *count += 1;
        if *count <= self.asked.most_named as u64 {
            let path = OsString::from_vec(self.path.clone());
            self.found.named.push(Difference { path, kind, detail: detail() });
        }
    }
}
