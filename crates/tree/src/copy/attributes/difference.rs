//! How the attributes of what is there differ from those that it is to have.

use rustix::fs::{FileType, Stat};

use super::extended::is_list;
use super::node::Node;
use super::{Attributes, Job, MODE_BITS, Made, times};
use crate::copy::Preserve;

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
    /// How a target that is there differs from its source in what is kept of that.
    ///
    /// Cost: a list of names on both sides, and the values of what is among them.
    pub fn difference(&self, nodes: [Node<'_>; 2], facts: &Stat, found: &Stat) -> Difference {
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
        let [lists, extended] = self.differing_attributes(&job);
        let is_symlink = job.kind == FileType::Symlink;
        let wanted = facts.st_mode & MODE_BITS | self.kept_bits(&job);
        Difference {
            time: has(Preserve::TIMESTAMPS) && times(facts)[1] != times(found)[1],
            mode: has(Preserve::MODE) && !is_symlink && wanted != found.st_mode & MODE_BITS,
            user: owns && self.is_privileged && facts.st_uid != found.st_uid,
            group: owns && facts.st_gid != found.st_gid && may_be_of(facts.st_gid),
            lists,
            extended,
        }
    }

    /// Whether lists differ, and other attributes.
    fn differing_attributes(&self, job: &Job<'_>) -> [bool; 2] {
        let mut differ = [false; 2];
        let Ok(names) = self.source_names(job) else { return differ };
        for name in names.iter().filter(|name| self.carries(name)) {
            let values = [job.source, job.target].map(|node| node.value(name).ok().flatten());
            differ[usize::from(!is_list(name))] |= values[0] != values[1];
        }
        differ[1] |= self.lacks_some(&names);
        if let (true, Ok(found)) = (self.wants_extended(), job.target.known_names()) {
            differ[1] |= self.has_unknown_surplus(&found, &names, job.kind);
            for name in found.iter().filter(|name| self.is_surplus(name, &names, job.kind)) {
                differ[usize::from(!is_list(name))] = true;
            }
        }
        differ
    }
}
