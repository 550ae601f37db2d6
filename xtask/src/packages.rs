//! Packages: how many of them a bare `cargo build` compiles, and the limit to that.

use std::collections::BTreeSet;

use crate::metadata::Graph;

/// The most packages that the default build may consist of, the own rooms included.
pub const LIMIT_PACKAGES: usize = 150;

/// Ids of all packages that the default members need, without what only tests use.
pub fn default_build(graph: &Graph) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = graph.default_members.iter().map(String::as_str).collect();
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(graph.needs.get(id).into_iter().flatten().map(String::as_str));
        }
    }
    found
}

/// A complaint when the default build has grown past the limit.
pub fn complaint(count: usize) -> Option<String> {
    (count > LIMIT_PACKAGES).then(|| {
        format!("the default build has {count} packages, {LIMIT_PACKAGES} are allowed (see `cargo tree`)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_build_is_what_the_default_members_reach() {
        let mut graph = Graph { default_members: vec!["own".into()], ..Graph::default() };
        for (id, needed) in [("own", ["a", "b"]), ("a", ["b", "c"]), ("xtask", ["d", "e"])] {
            graph.needs.insert(id.into(), needed.iter().map(|&name| name.into()).collect());
        }
        let found: Vec<&str> = default_build(&graph).into_iter().collect();
        assert_eq!(found, ["a", "b", "c", "own"]);
    }

    #[test]
    fn only_a_count_above_the_limit_is_named() {
        assert_eq!(complaint(LIMIT_PACKAGES), None);
        assert!(complaint(LIMIT_PACKAGES + 1).unwrap().contains("has 151 packages"));
    }
}
