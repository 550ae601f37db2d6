//! Attributes of what was there already and is up to date: only what differs is touched.
//!
//! The target is looked at by name and changed by a descriptor that pins it, after it proved to be
//! what was looked at. It need not be readable for that, nor be opened.

use std::os::fd::AsFd;

use rustix::fs::Stat;

use super::node::{Node, pin};
use super::{Attributes, Difference, Flags, Job, LOOK, Made, Place, special::replaced, times};
use crate::copy::{Overwrite, Refusal, kind_of};

impl Attributes<'_> {
    /// Puts right what differs on something that was there and is up to date, and says whether
    /// anything did. `found` is what was seen under the name; it works whatever the mode is.
    ///
    /// Cost: two calls when nothing differs.
    ///
    /// Errors: as [`Attributes::file`]; something else bears the name by now.
    pub fn repair(
        &self,
        source: Node<'_>,
        target: Place<'_>,
        facts: &Stat,
        found: &Stat,
    ) -> Result<bool, Refusal> {
        let kind = kind_of(facts);
        if kind_of(found) != kind {
            return Err(replaced());
        }
        // That the source was read meanwhile is no difference: else a tree that is in use would have all of its
        // copies opened and changed (20,000 short files, Zen 4, 2026-11-30: 2.9 times the CPU time).
        let differs = self.differs([source, Node::Named(target)], facts, found)?;
        if differs == Difference::default() {
            return self.repair_flags(source, (target, found), facts).map(|()| false);
        }
        let flags = match source {
            Node::Open(source) => self.flags_of(source),
            _ => Flags::default(),
        };
        let unlocked = flags.is_locked().then(|| self.unlock(target, flags, Overwrite::Writable));
        let pinned = pin(target).map_err(Refusal::of(LOOK))?;
        let node = Node::Pinned(pinned.as_fd());
        let now = node.stat().map_err(Refusal::of(LOOK))?;
        if identity(&now) != identity(found) {
            return Err(replaced());
        }
        let applied = self.apply(&Job::new(source, node, facts, Made::found(&now)), Some(&now));
        if let (Err(_), Some(unlocked)) = (&applied, unlocked.flatten()) {
            unlocked.lock();
        }
        let is_changed = applied?;
        self.repair_flags(source, (target, &now), facts).map(|()| is_changed)
    }
}

/// What must be the same for a file to be the one that was up to date. Filesystems give the number
/// of a file that is gone to the next one, so the number alone says little.
fn identity(facts: &Stat) -> impl PartialEq {
    let [_, modified] = times(facts);
    let kind = kind_of(facts);
    (facts.st_dev, facts.st_ino, kind, facts.st_size, modified)
}
