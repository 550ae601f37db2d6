//! Attributes of what was there already and is up to date: only what differs is touched.
//!
//! The target is looked at by name and changed by a descriptor that pins it, after it proved to be
//! what was looked at. It need not be readable for that, nor be opened.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};

use super::node::{Node, pin};
use super::{Attributes, Flags, Job, LOOK, MODE_BITS, Made, Place, special::replaced, times};
use crate::copy::{Overwrite, Preserve, Refusal, kind_of};

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
        let looked_at = Job::new(source, Node::Named(target), facts, Made::found(found));
        if self.same_attributes(facts, found) && self.same_extended(&looked_at)? {
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

    /// Whether owner, mode and times, as far as they are kept, are the same already. Extended
    /// attributes are not looked at.
    fn same_attributes(&self, facts: &Stat, found: &Stat) -> bool {
        let is_symlink = kind_of(facts) == FileType::Symlink;
        let [same_owner, same_mode, same_times] = [
            (facts.st_uid, facts.st_gid) == (found.st_uid, found.st_gid),
            is_symlink || facts.st_mode & MODE_BITS == found.st_mode & MODE_BITS,
            times(facts) == times(found),
        ];
        (same_owner || !self.preserve.has(Preserve::OWNERSHIP))
            && (same_mode || !self.preserve.has(Preserve::MODE))
            && (same_times || !self.preserve.has(Preserve::TIMESTAMPS))
    }

    /// Whether neither side has attributes that matter; where one has, a closer look is taken.
    fn same_extended(&self, job: &Job<'_>) -> Result<bool, Refusal> {
        let names = self.source_names(job)?;
        if !self.wants_extended()
            || self.lacks_some(&names)
            || names.iter().any(|name| self.carries(name))
        {
            return Ok(!self.wants_extended());
        }
        let Some(found) = self.target_names(job)? else { return Ok(true) };
        Ok(!self.has_unknown_surplus(&found, &names, job.kind)
            && !found.iter().any(|name| self.is_surplus(name, &names, job.kind)))
    }
}

/// What must be the same for a file to be the one that was up to date. Filesystems give the number
/// of a file that is gone to the next one, so the number alone says little.
fn identity(facts: &Stat) -> impl PartialEq {
    let [_, modified] = times(facts);
    let kind = kind_of(facts);
    (facts.st_dev, facts.st_ino, kind, facts.st_size, modified)
}
