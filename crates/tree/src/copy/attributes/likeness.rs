//! Whether another file has the attributes that a copy would have.

use rustix::fs::Stat;
use rustix::process::geteuid;

use super::node::Node;
use super::{Attributes, Job, MODE_BITS, Made, SET_ID_BITS};
use crate::copy::Preserve;

impl Attributes<'_> {
    /// Whether a file has all that a copy of this source would get: owner, mode and extended attributes, and
    /// flags of what is open, as far as they are kept. Where that cannot be seen it has not. Nothing is changed.
    ///
    /// Cost: a call for each side, and two for each attribute.
    pub(in crate::copy) fn is_as_copied(
        &self,
        source: Node<'_>,
        found: Node<'_>,
        facts: &Stat,
        found_facts: &Stat,
    ) -> bool {
        let job = Job::new(source, found, facts, Made::found(found_facts));
        self.has_owner_and_mode(facts, found_facts)
            && self.has_extended(&job)
            && match (source, found) {
                (Node::Open(source), Node::Open(found)) => self.has_flags(source, found),
                _ => !self.keeps_any(),
            }
    }

    /// Who is not root expects no owner to be kept: what is theirs will do, without set-id bits.
    fn has_owner_and_mode(&self, facts: &Stat, found: &Stat) -> bool {
        let is_kept = (facts.st_uid, facts.st_gid) == (found.st_uid, found.st_gid);
        let will_do = || !self.is_privileged && found.st_uid == geteuid().as_raw();
        if self.preserve.has(Preserve::OWNERSHIP) && !is_kept && !will_do() {
            return false;
        }
        let lost = if is_kept { 0 } else { SET_ID_BITS };
        let wanted = facts.st_mode & MODE_BITS & !lost;
        !self.preserve.has(Preserve::MODE) || found.st_mode & MODE_BITS == wanted
    }

    fn has_extended(&self, job: &Job<'_>) -> bool {
        if !self.wants_extended() {
            return true;
        }
        let names = match job.source {
            // Nothing is said of what can be asked once it is open.
            Node::Named(_) => job.source.names().ok(),
            _ => self.source_names(job).ok(),
        };
        let (Some(names), Ok(found)) = (names, job.target.names()) else { return false };
        let is_alike = |name| {
            let (source, found) = (job.source.value(name), job.target.value(name));
            source.is_ok() && source == found
        };
        let all = names.iter().chain(found.iter());
        !self.lacks_some(&names) && all.filter(|name| self.carries(name)).all(is_alike)
    }
}
