//! Whether a name of a file may be copied more often than the file has names.

use std::collections::HashSet;
use std::path::Path;

use flatout_sys::storage::MountTable;

use super::Plan;

impl Plan {
    /// Whether that may be: operands may lie in each other, and a tree in which a filesystem is mounted
    /// once more shows what is there again.
    ///
    /// Cost: the mount table is read for a directory that is the only operand.
    pub fn repeats_names(&self) -> bool {
        let mut operands = self.rounds.iter().flatten();
        match (operands.next(), operands.next()) {
            (Some(operand), None) => match operand.source.canonicalize() {
                Ok(source) => {
                    source.is_dir() && shows_again(&MountTable::read("/".as_ref()), &source)
                }
                Err(_) => false,
            },
            (_, second) => second.is_some(),
        }
    }
}

/// Whether a tree lies on a filesystem that is mounted in it, too, or two mounts in it are of one.
fn shows_again(table: &MountTable, tree: &Path) -> bool {
    let mut seen = HashSet::new();
    let mut mounts = table.above(tree, |_| true).into_iter().chain(table.below(tree));
    mounts.any(|mount| !seen.insert((mount.device.major, mount.device.minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_is_shown_again_where_two_mounts_of_a_tree_are_of_it() {
        let table = MountTable::parse(
            b"1 0 8:1 / / rw - ext4 /dev/a rw\n\
              2 1 8:2 / /a rw - ext4 /dev/b rw\n\
              3 2 8:1 /x /a/x rw - ext4 /dev/a rw\n\
              4 1 8:2 /y /b/y rw - ext4 /dev/b rw\n\
              5 1 8:3 / /b/z rw - ext4 /dev/c rw\n",
        );
        for (tree, again) in [("/", true), ("/a", false), ("/b", false), ("/c", false)] {
            assert_eq!(shows_again(&table, tree.as_ref()), again, "{tree}");
        }
        let bound = MountTable::parse(
            b"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:1 /t/one /t/two rw - ext4 /dev/a rw\n",
        );
        assert!(shows_again(&bound, "/t".as_ref()));
        assert!(!shows_again(&bound, "/t/one".as_ref()));
    }
}
