//! What is to be done in a directory yet: directories below it, or all of it, one after the other.

use std::ffi::CString;

use rustix::fs::FileType;

use super::{Directory, Origin, State};
use crate::copy::Refusal;
use crate::lock::lock;
use crate::spool::names::Names;

/// What is to be done in it yet.
pub(super) enum Below {
    /// Directories to be visited: those made by us, and those that were there.
    Later { fresh: Names, existing: Names },
    /// All that there is in it, one after the other, from the last on.
    InTurn(Vec<(CString, FileType)>),
}

impl Directory {
    /// Directories below it are to be visited.
    pub(in crate::copy) fn leave_for_later(&self, fresh: Names, existing: Names) {
        if !fresh.is_empty() || !existing.is_empty() {
            lock(&self.state).below = Some(Box::new(Below::Later { fresh, existing }));
        }
    }

    /// One of the directories below it that nobody has begun with. It is in use then.
    ///
    /// Errors: the name lies in a file, which cannot be read.
    pub(in crate::copy) fn take_below(&self) -> Result<Option<(CString, Origin)>, Refusal> {
        let mut state = lock(&self.state);
        let State { below, users, .. } = &mut *state;
        let Some(Below::Later { fresh, existing }) = below.as_deref_mut() else {
            return Ok(None);
        };
        for origin in [Origin::Fresh, Origin::Existing] {
            let names = if origin == Origin::Fresh { &mut *fresh } else { &mut *existing };
            let batch = names.take_back(1)?;
            if let Some((name, _)) = batch.iter().next() {
                *users += 1;
                let name = name.to_owned();
                if fresh.is_empty() && existing.is_empty() {
                    *below = None;
                }
                return Ok(Some((name, origin)));
            }
        }
        Ok(None)
    }

    /// What is in it is copied in this order, from the last on ([`crate::copy::sequence`]).
    pub(in crate::copy) fn go_in_turn(&self, names: Vec<(CString, FileType)>) {
        lock(&self.state).below = Some(Box::new(Below::InTurn(names)));
    }

    /// Whether something is left of what is copied one after the other.
    pub(in crate::copy) fn has_more_in_turn(&self) -> bool {
        let state = lock(&self.state);
        matches!(state.below.as_deref(), Some(Below::InTurn(names)) if !names.is_empty())
    }

    /// The next of what is copied one after the other.
    pub(in crate::copy) fn next_in_turn(&self) -> Option<(CString, FileType)> {
        match lock(&self.state).below.as_deref_mut() {
            Some(Below::InTurn(names)) => names.pop(),
            _ => None,
        }
    }

    /// It has to wait, and comes next.
    pub(in crate::copy) fn put_back(&self, name: CString, kind: FileType) {
        if let Some(Below::InTurn(names)) = lock(&self.state).below.as_deref_mut() {
            names.push((name, kind));
        }
    }

    /// Nothing more comes in turn.
    pub(in crate::copy) fn forget_turns(&self) {
        lock(&self.state).below = None;
    }

    /// Directories below it that nobody has begun with.
    pub(in crate::copy) fn count_below(&self) -> u64 {
        match lock(&self.state).below.as_deref() {
            Some(Below::Later { fresh, existing }) => fresh.count() + existing.count(),
            _ => 0,
        }
    }
}
