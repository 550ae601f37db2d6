//! What may not be mirrored: a target in which a source lies, or to which something else goes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Plan;
use super::place::{last_name, parent, way_up};
use crate::copy::reason::HOLDS_SOURCE;
use crate::copy::{Identity, Operand, identity, kind_of};

const HOLDS_SNAPSHOT: &str = "a snapshot lies in it";
const SHARED: &str = "something else is copied into it, too";

/// An operand in whose target nothing can be deleted, and why: what is to stay may lie there.
/// `follows`: a source that is a symlink stands for what it leads to. `kept`: directories to which
/// nothing may happen.
///
/// Cost: a system call for each directory above an operand.
pub fn obstacle<'p>(
    plan: &'p Plan,
    follows: bool,
    kept: &[PathBuf],
) -> Option<(&'p Operand, &'static str)> {
    let operands: Vec<&Operand> = plan.rounds.iter().flatten().collect();
    let is_directory = |path: &Path| {
        let facts = if follows { rustix::fs::stat(path) } else { rustix::fs::lstat(path) };
        facts.is_ok_and(|facts| kind_of(facts).is_dir())
    };
    let mut mirrored: HashMap<Mirrored, usize> = HashMap::new();
    for (index, operand) in operands.iter().enumerate() {
        if is_directory(&operand.source)
            && let Some(target) = Mirrored::of(&operand.target)
            && mirrored.insert(target, index).is_some()
        {
            return Some((operand, SHARED));
        }
    }
    let holder = |inode: &Identity| mirrored.get(&Mirrored::There(*inode)).copied();
    let holder_of_kept = kept.iter().flat_map(|path| way_up(path)).find_map(|inode| holder(&inode));
    if let Some(holder) = holder_of_kept {
        return Some((operands[holder], HOLDS_SNAPSHOT));
    }
    for (index, operand) in operands.iter().enumerate() {
        let source = match is_directory(&operand.source) {
            true => way_up(&operand.source),
            false => way_up(&parent(&operand.source)),
        };
        if let Some(holder) = source.iter().find_map(holder) {
            return Some((operands[holder], HOLDS_SOURCE));
        }
        let holders = way_up(&parent(&operand.target));
        if let Some(holder) = holders.iter().filter_map(holder).find(|&holder| holder != index) {
            return Some((operands[holder], SHARED));
        }
    }
    None
}

/// A directory of the target that is to be as its source is.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Mirrored {
    There(Identity),
    /// Its name, and the directory in which it will be made.
    New(Identity, OsString),
}

impl Mirrored {
    fn of(target: &Path) -> Option<Self> {
        let inode = |path: &Path| rustix::fs::stat(path).ok().map(|facts| identity(&facts));
        inode(target)
            .map(Self::There)
            .or_else(|| Some(Self::New(inode(&parent(target))?, last_name(target)?.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_holds_a_source_or_gets_something_else_is_not_mirrored() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["a", "b", "there/a", "there/b", "there/in/side"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink(at("there/in"), at("link")).unwrap();
        let obstacle = |follows: bool, operands: &[(&str, &str)]| {
            let operand = |&(source, target): &(&str, &str)| Operand {
                source: at(source),
                target: at(target),
            };
            let rounds = vec![operands.iter().map(operand).collect()];
            obstacle(&Plan { rounds, ..Plan::default() }, follows, &[]).map(|(_, why)| why)
        };
        for (operands, expected) in [
            (&[("a", "there")][..], None),
            (&[("a", "new")], None),
            (&[("a", "new"), ("b", "new")], Some(SHARED)),
            (&[("a", "new"), ("b", "other"), ("file", "new-file")], None),
            (&[("a", "there/a"), ("b", "there/b"), ("file", "there/file")], None),
            (&[("a/.", "there/."), ("b/.", "there/.")], Some(SHARED)),
            (&[("a/.", "there/."), ("b", "there/b")], Some(SHARED)),
            (&[("a/.", "there/."), ("file", "there/file")], Some(SHARED)),
            (&[("there/in/side", "there")], Some(HOLDS_SOURCE)),
            (&[("a", "there"), ("there/in/side", "new")], Some(HOLDS_SOURCE)),
        ] {
            assert_eq!(obstacle(false, operands), expected, "{operands:?}");
            assert_eq!(obstacle(true, operands), expected, "{operands:?}");
        }
        for (operands, expected) in [
            (&[("link", "there")][..], HOLDS_SOURCE),
            (&[("a", "there"), ("link", "there")], SHARED),
            (&[("a", "new"), ("link", "new")], SHARED),
        ] {
            assert_eq!(obstacle(true, operands), Some(expected), "{operands:?}");
        }
        assert_eq!(obstacle(false, &[("link", "there/link")]), None, "a symlink is one");
    }
}
