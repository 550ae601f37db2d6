//! What a copy is told besides its options, before it begins.

use std::path::PathBuf;
use std::sync::Arc;

use super::Copy;
use crate::copy::backup::Backups;
use crate::copy::evidence::Evidence;
use crate::copy::parents::Parents;
use crate::copy::shared::{Membership, Reporter, Shared};
use crate::copy::temporary::Temporaries;
use crate::selection::Selection;

impl Copy<'_> {
    /// The same copy, which knows what earlier ones made and notes what it makes.
    pub fn with_evidence(self, evidence: Evidence) -> Self {
        Self { evidence, ..self }
    }

    /// The same copy, of some things only.
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// What of the sources is copied.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The same copy, of operands that may lie in each other: a name that is copied twice must not
    /// count for two, or the last name of its file would be a file of its own.
    pub fn with_repeated_names(self) -> Self {
        Self { links: self.links.for_repeated_names(), ..self }
    }

    /// The same copy, which keeps what it overwrites.
    pub fn with_backups(self, backups: Option<Backups>) -> Self {
        Self { backups, ..self }
    }

    /// The same copy, of operands that go to the same paths below this directory; those above them
    /// are made like those of the sources (`--parents`).
    pub fn with_parents(self, below: Option<PathBuf>) -> Self {
        Self { parents: Parents::new(below), ..self }
    }

    /// The same copy, shared by several processes, of which this is one. The first one tells the user;
    /// the others have a `reporter`, which is their `watch`, too.
    pub fn with_members(self, member: Membership, reporter: Option<Arc<Reporter>>) -> Self {
        let temporaries = Temporaries::of_job(member.job);
        Self { shared: Some(Shared::new(member, reporter)), temporaries, ..self }
    }
}
