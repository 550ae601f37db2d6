//! Targets that are full, or that may not take more.

use std::fs;
use std::path::Path;

use super::super::copier::copy;
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::{ENGINES, assert_no_litter, pair, under_test};
use crate::bin::Folder;
use crate::filesystem::{Backing, Kind, Mounted, needs_program};
use crate::fixture::random_bytes;
use crate::skip::needs;

/// Twenty files of 1 MiB, more than any target here takes.
fn plant(tree: &Path) {
    fs::create_dir(tree).unwrap();
    for index in 0..20 {
        fs::write(tree.join(format!("file{index:02}")), random_bytes(1 << 20, index)).unwrap();
    }
}

/// Copies into a target without room: it ends with one error or a few, and leaves nothing odd.
fn overfill(target: &Path, words: &str, engine: &str) {
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    plant(&tree);
    fs::create_dir(target).unwrap();
    fs::write(target.join("file19"), "the old one").unwrap();
    // Each thread may be in the middle of a file, and there are as many as CPUs where nobody asks.
    let ran = copy(&["-T", "--threads=4", "--engine", engine], &tree, target);
    ran.exits(1);
    assert!(ran.stderr.contains(words), "{ran}");
    assert!(ran.stderr.lines().count() <= 8, "it stops, and does not try all others{ran}");
    let old = fs::read(target.join("file19")).unwrap();
    assert!(old == b"the old one" || old == random_bytes(1 << 20, 19), "{ran}");
    assert_no_litter(&tree, target);
    // What is there and looks finished is finished.
    let (before, after) = (Portrait::of(&tree), Portrait::of(target));
    for (path, entry) in after.entries.iter().filter(|(path, _)| path.as_slice() != b"file19") {
        let source = &before.entries[path];
        let looks_done = !path.is_empty() && entry.modified == source.modified;
        assert!(!looks_done || entry.digest == source.digest, "{}{ran}", path.escape_ascii());
    }
    fs::remove_dir_all(target).unwrap();
}

#[test]
fn a_full_target_in_memory_ends_the_copy() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Tmpfs(6 << 20)));
    for engine in ENGINES {
        overfill(&mounted.path().join("copy"), "No space left", engine);
    }
    mounted.finish();
}

#[test]
fn a_full_target_on_storage_ends_the_copy_and_a_rerun_completes_it() {
    needs!(under_test());
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 24 << 20, Backing::Cached));
    let ballast = mounted.path().join("ballast");
    fs::write(&ballast, random_bytes(8 << 20, 99)).unwrap();
    for engine in ["auto", "sync"] {
        overfill(&mounted.path().join("copy"), "No space left", engine);
    }
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    for index in 0..14 {
        fs::write(tree.join(index.to_string()), random_bytes(1 << 20, index)).unwrap();
    }
    let target = mounted.path().join("copy");
    let before = Portrait::of(&tree);
    copy::<&str>(&[], &tree, &target).exits(1);
    fs::remove_file(&ballast).unwrap();
    let ran = copy(&["-T"], &tree, &target);
    let read = Leeway::but(&[Aspect::Accessed]);
    assert_same(&before, &Portrait::of(&target), read, ran.exits(0));
    mounted.finish();
}

#[test]
fn a_quota_that_is_used_up_ends_the_copy() {
    needs!(under_test());
    needs!(needs_program("btrfs"));
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let volume = mounted.path().join("volume");
    let btrfs = |words: &[&str], path: &Path| {
        let mut command = std::process::Command::new("btrfs");
        let output = command.args(words).arg(path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    btrfs(&["subvolume", "create"], &volume);
    btrfs(&["quota", "enable"], &mounted.path());
    btrfs(&["qgroup", "limit", "8M"], &volume);
    for engine in ["auto", "sync", "uring"] {
        overfill(&volume.join(engine), "quota", engine);
    }
    mounted.finish();
}
