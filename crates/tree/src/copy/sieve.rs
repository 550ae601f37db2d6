//! Which names of one directory are selected, in the source, and which are excluded, in the target.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::FileType;

use super::listing::behind;
use super::{Copy, Directory, Pair, Refusal};
use crate::selection::{Ignored, Selection};

/// Names that are remembered take so much memory at most: some 30,000.
const MOST_SEEN_BYTES: usize = 2 << 20;
/// What one takes beside its bytes.
const SEEN_BYTES: usize = 48;

const READ_RULES: &str = "read the .gitignore in";

/// What is asked about the names of a directory. Costs nothing where all of them are taken.
pub(super) struct Sieve<'c> {
    selection: Option<&'c Selection>,
    /// Symlinks of the source stand for what they lead to.
    follows: bool,
    ignored: Option<Arc<Ignored>>,
    /// The path below the operand, with what is asked for behind it.
    path: Vec<u8>,
    /// Bytes before the name.
    prefix: usize,
    /// Names that were there already, where they may come again.
    seen: Option<Seen>,
}

/// Names of one directory as they are listed.
#[derive(Default)]
struct Seen {
    names: HashSet<CString>,
    bytes: usize,
}

impl Seen {
    /// Whether a name comes for the first time, as far as is remembered.
    fn is_new(&mut self, name: &CStr) -> bool {
        if self.names.contains(name) {
            return false;
        }
        if self.bytes < MOST_SEEN_BYTES {
            self.bytes += name.to_bytes().len() + SEEN_BYTES;
            self.names.insert(name.to_owned());
        }
        true
    }
}

impl<'c> Sieve<'c> {
    /// That of a directory. `begun`: its pair, where it is listed for the first time: then it is
    /// looked for rules of its own.
    ///
    /// Errors: they cannot be read; or a name on the way to it cannot.
    pub(super) fn of(
        copy: &'c Copy<'_>,
        directory: &Directory,
        begun: Option<&Pair>,
    ) -> Result<Self, Refusal> {
        let follows = copy.follows(directory);
        let may_repeat = begun.is_some_and(|pair| copy.may_repeat_names(pair));
        let seen = may_repeat.then(Seen::default);
        let selection = Some(&copy.selection).filter(|selection| selection.has_names());
        let Some(rules) = selection else {
            let (ignored, path, prefix) = (None, Vec::new(), 0);
            return Ok(Self { selection, follows, ignored, path, prefix, seen });
        };
        let mut path = directory.path_below_operand()?;
        if let Some(pair) = begun.filter(|_| rules.obeys_gitignore) {
            let above = directory.parent.as_ref().and_then(|parent| parent.ignored());
            let ignored = Ignored::of(pair.source(), &path, above);
            directory.ignore(ignored.map_err(Refusal::of(READ_RULES))?);
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        let (ignored, prefix) = (directory.ignored(), path.len());
        Ok(Self { selection, follows, ignored, path, prefix, seen })
    }

    /// What a name of this directory of the source is to the copier; `None`: it is not taken, or was before.
    pub(super) fn taken(
        &mut self,
        source: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
    ) -> Option<FileType> {
        let kind = if self.follows { behind(source, name, kind) } else { kind };
        let takes =
            self.takes(name, kind) && self.seen.as_mut().is_none_or(|seen| seen.is_new(name));
        takes.then_some(kind)
    }

    fn takes(&mut self, name: &CStr, kind: FileType) -> bool {
        self.selection.is_none_or(|selection| {
            put(&mut self.path, self.prefix, name);
            selection.takes(self.ignored.as_ref(), &self.path, kind.is_dir())
        })
    }

    /// Whether a name is excluded, in the source or in the target.
    pub(super) fn excludes(&mut self, name: &CStr, kind: FileType) -> bool {
        self.selection.is_some_and(|selection| {
            put(&mut self.path, self.prefix, name);
            selection.excludes(self.ignored.as_ref(), &self.path, kind.is_dir())
        })
    }
}

fn put(path: &mut Vec<u8>, prefix: usize, name: &CStr) {
    path.truncate(prefix);
    path.extend_from_slice(name.to_bytes());
}
