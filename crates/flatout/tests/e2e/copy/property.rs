//! Random trees copy to equal trees, with any options that are to make no difference.

use super::copier::{copier, copy, is_control};
use super::forest::{Plan, plant};
use super::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::bin::Folder;
use crate::fixture::{Random, is_full, seed};

/// Whoever reads a file changes when it was read.
const ONCE_READ: Leeway = Leeway::but(&[Aspect::Accessed]);

/// Each of them must come to the same tree.
const OPTIONS: [&[&str]; 10] = [
    &[],
    &["--threads", "1"],
    &["--threads", "8"],
    &["--max-fds", "24"],
    &["--atomic"],
    &["--in-place"],
    &["--verify"],
    &["--sync"],
    &["--max-memory", "1M", "--threads", "3"],
    &["--block-size", "4K"],
];

#[test]
fn random_trees_copy_to_equal_trees() {
    let seed = seed();
    let mut random = Random::new(seed);
    let rounds = if is_full() { 200 } else { 10 };
    let folder = Folder::new();
    for round in 0..rounds {
        let plan = Plan { entries: 20 + random.below(120), ..Plan::new(random.next()) };
        let (tree, target) = (folder.join("tree"), folder.join("copy"));
        plant(&tree, plan);
        let source = Portrait::of(&tree);
        let options = OPTIONS[round % OPTIONS.len()];
        let ran = copy(options, &tree, &target);
        let context = format!("FLATOUT_TEST_SEED={seed} round {round} {plan:?}{ran}");
        if !is_control() {
            ran.exits(0);
            assert_same(&source, &Portrait::of(&target), Leeway::NONE, context);
        }
        let after = Portrait::of(&tree);
        assert_same(&source, &after, ONCE_READ, "the source is not changed");
        std::fs::remove_dir_all(&tree).unwrap();
        std::fs::remove_dir_all(&target).unwrap();
    }
}

/// A second run changes nothing that the first one noted; one over a half of it completes it.
#[test]
fn a_copy_over_a_part_of_the_tree_completes_it() {
    let seed = seed();
    let folder = Folder::new();
    let (tree, target, state) = (folder.join("tree"), folder.join("copy"), folder.join("state"));
    plant(&tree, Plan::new(seed));
    let source = Portrait::of(&tree);
    if is_control() {
        return;
    }
    super::entry::settle(folder.path());
    let copy = || {
        let run = Folder::new();
        let copier = copier(&run, &["-T", "--resume=always"], (&tree, &target));
        copier.with(|command| _ = command.current_dir("/").env("FLATOUT_RESUME", &state)).run()
    };
    copy().exits(0);
    let first = Portrait::of(&target);
    assert_same(&source, &first, Leeway::NONE, format!("seed {seed}"));
    copy().exits(0);
    let second = Portrait::of(&target);
    assert_same(&source, &second, ONCE_READ, format!("seed {seed}, again"));
    // A file with several names is not noted: each further name changes it.
    let kept = first
        .entries
        .iter()
        .all(|(path, entry)| entry.names > 1 || entry.identity == second.entries[path].identity);
    assert!(kept, "seed {seed}: what was done is not done again");
    let names: Vec<String> = Folder::names_in(&target).into_iter().collect();
    for name in names.iter().step_by(2) {
        let path = target.join(name);
        match path.symlink_metadata() {
            Ok(facts) if facts.is_dir() => std::fs::remove_dir_all(&path).unwrap(),
            Ok(_) => std::fs::remove_file(&path).unwrap(),
            // Its name is no UTF-8; it stays.
            Err(_) => {}
        }
    }
    let ran = copy();
    ran.exits(0);
    let context = format!("seed {seed}, completed{ran}");
    assert_same(&source, &Portrait::of(&target), ONCE_READ, context);
}
