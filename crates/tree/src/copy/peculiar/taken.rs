//! What a copy has brought under names that are alike, and how a directory spells them.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::Mode;

use crate::copy::listing::Lister;
use crate::copy::{Entry, Identity, Pair, Refusal};
use crate::directory_stack::DIRECTORY;

/// What was brought under names that the target may take for one, each with its source.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// By what bears the name: as what it was brought.
    found: HashMap<Identity, (Identity, CString)>,
    /// Names by directory and key, where each spelling may have an inode number of its own.
    names: HashMap<(Identity, u64), HashMap<CString, Identity>>,
}

impl Taken {
    /// Notes what was brought under a name, which has this key.
    pub(super) fn note(
        &mut self,
        pair: &Pair,
        (name, key): (&CStr, u64),
        [source, made]: [Identity; 2],
    ) {
        self.found.insert(made, (source, name.to_owned()));
        if may_number_spellings(pair.target()) {
            let alike = self.names.entry((pair.found.target, key)).or_default();
            alike.insert(name.to_owned(), source);
        }
    }

    /// Whether what bears the name of an entry, which has this key, was brought for another source.
    pub(super) fn is_taken(
        &self,
        (entry, key): (Entry<'_>, u64),
        source: Identity,
        found: Identity,
    ) -> bool {
        // Another name of the same file is no loss; what operands bring to one name is no matter of names.
        if let Some((from, name)) = self.found.get(&found) {
            return *from != source && **name != *entry.target;
        }
        let Some(names) = self.names.get(&(entry.pair.found.target, key)) else { return false };
        let others =
            names.iter().filter(|(name, from)| ***name != *entry.target && **from != source);
        let mut all: Vec<&CStr> = others.map(|(name, _)| name.as_c_str()).collect();
        if all.is_empty() {
            return false;
        }
        all.push(entry.target);
        !has_spellings(entry.pair.target(), &all)
    }
}

/// Whether a filesystem may number each spelling of a name, as programs behind FUSE do, and clients of
/// servers that tell no numbers, and a file anew that it had forgotten, as Linux does on FAT: two numbers do not
/// prove two files there.
fn may_number_spellings(directory: BorrowedFd<'_>) -> bool {
    flatout_sys::filesystem::of(directory)
        .is_ok_and(|found| found.is_served() || matches!(found.name, "vfat" | "exfat"))
}

/// Whether a directory lists all of these names, spelled so; not known means no.
///
/// Cost: it is listed.
fn has_spellings(directory: BorrowedFd<'_>, names: &[&CStr]) -> bool {
    let mut missing: HashSet<&CStr> = names.iter().copied().collect();
    let has_all = |name: &CStr| missing.remove(name) && missing.is_empty();
    lists(directory, has_all) == Some(true)
}

/// Whether a directory lists names until `is_last` says so; `None`: it cannot be listed.
pub(super) fn lists(
    directory: BorrowedFd<'_>,
    mut is_last: impl FnMut(&CStr) -> bool,
) -> Option<bool> {
    let mut is_over = false;
    let opened = rustix::fs::openat(directory, c".", DIRECTORY, Mode::empty()).ok()?;
    let listed = Lister::default().each(opened.as_fd(), |name, _| {
        is_over = is_last(name);
        if is_over { Err(Refusal::because("list", "all were found")) } else { Ok(()) }
    });
    (is_over || listed.is_ok()).then_some(is_over)
}
