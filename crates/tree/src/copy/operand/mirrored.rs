//! What may not be mirrored: a target in which a source lies, or to which something else goes.

use std::collections::HashMap;
use std::path::Path;

use rustix::fs::FileType;

use super::Plan;
use super::place::{Inode, parent, way_up};
use crate::copy::job::Operand;

const HOLDS_SOURCE: &str = "a source lies in it";
const SHARED: &str = "something else is copied into it, too";

/// An operand in whose target nothing can be deleted, and why: what is to stay may lie there.
///
/// Cost: a system call for each directory above an operand.
pub fn obstacle(plan: &Plan) -> Option<(&Operand, &'static str)> {
    let operands: Vec<&Operand> = plan.rounds.iter().flatten().collect();
    let inode = |path: &Path| rustix::fs::stat(path).ok().map(|facts| Inode::of(&facts));
    let is_directory = |path: &Path| {
        rustix::fs::lstat(path).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode).is_dir())
    };
    let mut mirrored: HashMap<Inode, usize> = HashMap::new();
    for (index, operand) in operands.iter().enumerate() {
        if is_directory(&operand.source)
            && let Some(target) = inode(&operand.target)
            && mirrored.insert(target, index).is_some()
        {
            return Some((operand, SHARED));
        }
    }
    for (index, operand) in operands.iter().enumerate() {
        let source = match is_directory(&operand.source) {
            true => way_up(&operand.source),
            false => way_up(&parent(&operand.source)),
        };
        if let Some(&holder) = source.iter().find_map(|inode| mirrored.get(inode)) {
            return Some((operands[holder], HOLDS_SOURCE));
        }
        let holders = way_up(&parent(&operand.target));
        let mut holders = holders.iter().filter_map(|inode| mirrored.get(inode));
        if let Some(&holder) = holders.find(|&&holder| holder != index) {
            return Some((operands[holder], SHARED));
        }
    }
    None
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
        let obstacle = |operands: &[(&str, &str)]| {
            let operand = |&(source, target): &(&str, &str)| Operand {
                source: at(source),
                target: at(target),
            };
            let rounds = vec![operands.iter().map(operand).collect()];
            obstacle(&Plan { rounds, ..Plan::default() }).map(|(_, why)| why)
        };
        for (operands, expected) in [
            (&[("a", "there")][..], None),
            (&[("a", "new")], None),
            (&[("a", "there/a"), ("b", "there/b"), ("file", "there/file")], None),
            (&[("a/.", "there/."), ("b/.", "there/.")], Some(SHARED)),
            (&[("a/.", "there/."), ("b", "there/b")], Some(SHARED)),
            (&[("a/.", "there/."), ("file", "there/file")], Some(SHARED)),
            (&[("there/in/side", "there")], Some(HOLDS_SOURCE)),
            (&[("a", "there"), ("there/in/side", "new")], Some(HOLDS_SOURCE)),
        ] {
            assert_eq!(obstacle(operands), expected, "{operands:?}");
        }
    }
}
