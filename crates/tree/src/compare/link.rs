//! Hard links: names that are one file in the source must be one in the copy, and no others.

use std::collections::HashMap;

use rustix::fs::Stat;

use crate::copy::{Identity, identity};

/// Linked files that are remembered at a time; beyond it they are not compared, so that memory has
/// a limit. An entry is let go when all names of its file were seen.
const MOST_FILES: usize = 1 << 20;

/// Linked files of which not all names were seen yet.
#[derive(Debug, Default)]
pub(super) struct Links {
    known: HashMap<Identity, Known>,
    /// The same by the identity of the copy.
    source_of: HashMap<Identity, Identity>,
}

#[derive(Debug)]
struct Known {
    target: Identity,
    names_to_come: u64,
}

impl Links {
    /// What is wrong with the links of two files of one name, if anything is.
    pub(super) fn complaint(&mut self, source: &Stat, target: &Stat) -> Option<&'static str> {
        // How wide a number of links is differs between architectures.
        let [names, copies]: [u64; 2] = [source, target].map(|facts| facts.st_nlink as _);
        if names <= 1 {
            return (copies > 1).then_some("linked in the copy only");
        }
        let (from, to) = (identity(source), identity(target));
        if let Some(known) = self.known.get_mut(&from) {
            let is_same = known.target == to;
            known.names_to_come -= 1;
            if known.names_to_come == 0 {
                let done = known.target;
                self.known.remove(&from);
                self.source_of.remove(&done);
            }
            return (!is_same).then_some("a file of its own in the copy");
        }
        if self.source_of.get(&to).is_some_and(|&other| other != from) {
            return Some("linked to another file in the copy");
        }
        if self.known.len() < MOST_FILES {
            self.known.insert(from, Known { target: to, names_to_come: names - 1 });
            self.source_of.insert(to, from);
        }
        // Names outside of the tree are no fault of the copy.
        (copies > names).then_some("more names in the copy")
    }
}
