//! How the attributes of what is there differ from those that it is to have.

use rustix::fs::{FileType, Stat};

use super::acl;
use super::extended::is_list;
use super::node::Node;
use super::{Attributes, Job, MODE_BITS, Made, times};
use crate::copy::{Preserve, Refusal};

/// What of it will be another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// The modification time.
    pub time: bool,
    /// Permissions and special bits.
    pub mode: bool,
    /// The user, where this one may give files away.
    pub user: bool,
    /// The group, where this user may set it.
    pub group: bool,
    /// Access control lists.
    pub lists: bool,
    /// Other extended attributes.
    pub extended: bool,
}

impl Attributes<'_> {
    /// The same where what cannot be looked at does not differ: it fails when it is copied.
    pub fn difference(&self, nodes: [Node<'_>; 2], facts: &Stat, found: &Stat) -> Difference {
        self.differs(nodes, facts, found).unwrap_or_default()
    }

    /// How a target that is there differs from its source in what is kept of that.
    ///
    /// Cost: a list of names on both sides, and the values of what is among them.
    pub(super) fn differs(
        &self,
        nodes: [Node<'_>; 2],
        facts: &Stat,
        found: &Stat,
    ) -> Result<Difference, Refusal> {
        let [source, target] = nodes;
        let job = Job::new(source, target, facts, Made::found(found));
        let has = |one| self.preserve.has(one);
        let owns = has(Preserve::OWNERSHIP);
        let may_be_of = |group| {
            self.is_privileged
                || rustix::process::getegid().as_raw() == group
                || rustix::process::getgroups()
                    .is_ok_and(|groups| groups.iter().any(|one| one.as_raw() == group))
        };
        let [lists, extended] = self.differing_attributes(&job)?;
        let is_symlink = job.kind == FileType::Symlink;
        let wanted = facts.st_mode & MODE_BITS | self.kept_bits(&job);
        Ok(Difference {
            time: has(Preserve::TIMESTAMPS) && times(facts)[1] != times(found)[1],
            mode: has(Preserve::MODE) && !is_symlink && wanted != found.st_mode & MODE_BITS,
            user: owns && self.is_privileged && facts.st_uid != found.st_uid,
            group: owns && facts.st_gid != found.st_gid && may_be_of(facts.st_gid),
            lists,
            extended,
        })
    }

    /// Whether lists differ, and other attributes.
    fn differing_attributes(&self, job: &Job<'_>) -> Result<[bool; 2], Refusal> {
        let mut differ = [false; 2];
        let names = self.source_names(job)?;
        for name in names.iter().filter(|name| self.carries(name)) {
            let (wanted, found) = (job.source.value(name), job.target.value(name));
            // A target that has such lists gets the source's; elsewhere the mode says it.
            let is_mode = !matches!(found, Ok(Some(_)))
                && matches!(&wanted, Ok(Some(value)) if acl::is_mode(name, value));
            differ[usize::from(!is_list(name))] |= !is_mode && (wanted.is_err() || wanted != found);
        }
        differ[1] |= self.lacks_some(&names);
        let found = if self.wants_extended() { self.target_names(job)? } else { None };
        if let Some(found) = found {
            differ[1] |= self.has_unknown_surplus(&found, &names, job.kind);
            for name in found.iter().filter(|name| self.is_surplus(name, &names, job.kind)) {
                differ[usize::from(!is_list(name))] = true;
            }
        }
        Ok(differ)
    }
}
