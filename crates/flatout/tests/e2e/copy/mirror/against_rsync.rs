//! The same changes, mirrored by rsync and by flatout, come to the same trees.

use std::path::Path;
use std::process::Command;

use super::garden::change;
use crate::bin::Folder;
use crate::copy::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::filesystem::{needs_program, needs_root};
use crate::fixture::{Random, is_full, seed};
use crate::skip::needs;

/// rsync keeps no links without -H, and takes times of one second for one unless told otherwise; who reads changes when it was read; rsync knows no holes.
const LEEWAY: Leeway = Leeway::but(&[Aspect::Accessed, Aspect::Links, Aspect::Holes, Aspect::Room]);

/// What stays because it is excluded was made by somebody at another time in each target.
const WITH_RULES: Leeway =
    Leeway::but(&[Aspect::Accessed, Aspect::Links, Aspect::Holes, Aspect::Room, Aspect::Modified]);

/// Rules whose meaning both have.
const RULES: [&[&str]; 9] = [
    &[],
    &["--exclude=*.o"],
    &["--exclude=/tmp"],
    &["--exclude=tmp/"],
    &["--exclude=a/keep", "--exclude=*.tmp"],
    &["--include=keep", "--exclude=[a-k]*"],
    &["--include=*/", "--include=*.txt", "--exclude=*"],
    &["--exclude=/a/**", "--exclude=b.o/***"],
    &["--exclude=**/d.tmp", "--exclude=tmp/*/a", "--delete-excluded"],
];

#[test]
fn a_changing_tree_is_mirrored_as_rsync_does_it() {
    needs!(needs_root("keeping owners"));
    needs!(needs_program("rsync"));
    let seed = seed();
    let mut random = Random::new(seed);
    for series in 0..if is_full() { 60 } else { RULES.len() } {
        let rules = RULES[series % RULES.len()];
        let folder = Folder::new();
        let [source, ours, theirs] = ["source", "ours", "theirs"].map(|name| folder.join(name));
        for path in [&source, &ours, &theirs] {
            std::fs::create_dir(path).unwrap();
        }
        for round in 0..if is_full() { 10 } else { 5 } {
            change(&source, &mut random, if round == 0 { 60 } else { 10 });
            // Somebody works in the target, too: the same in both.
            let disturbance = random.next();
            for target in [&ours, &theirs] {
                change(target, &mut Random::new(disturbance), 12);
            }
            let context =
                format!("FLATOUT_TEST_SEED={seed} series {series} round {round} {rules:?}");
            let is_done = rsync(&source, &theirs, rules, &context);
            let words = [&["copy", "-T", "--delete", "source", "ours"], rules].concat();
            let ran = folder.flatout(words).leaves("ours").run();
            // What must stay is in the way of something else.
            ran.exits(if is_done { 0 } else { 1 });
            let [ours, theirs] = [&ours, &theirs].map(|path| Portrait::of(path));
            let leeway = if rules.is_empty() { LEEWAY } else { WITH_RULES };
            assert_same(&theirs, &ours, leeway, format!("{context}{ran}"));
        }
    }
}

/// Returns whether everything could be done.
fn rsync(source: &Path, target: &Path, rules: &[&str], context: &str) -> bool {
    let mut from = source.as_os_str().to_owned();
    from.push("/");
    let rsync = ["-aI", "--delete", "--modify-window=-1"].iter().chain(rules);
    let ran = Command::new("rsync").args(rsync).arg(from).arg(target).output().unwrap();
    let complaints = String::from_utf8_lossy(&ran.stderr);
    let is_in_the_way = complaints.contains("could not make way");
    assert!(ran.status.success() != is_in_the_way, "{context}: {complaints}");
    !is_in_the_way
}
