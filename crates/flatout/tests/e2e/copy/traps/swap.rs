//! Somebody exchanges directories and files for symlinks while a copy is under way.
//!
//! A thread of the test swaps as fast as it can. What is outside is neither read nor written,
//! whatever the copy says of the entries that were not there when it looked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::copier::copy;
use super::super::oracle::{Kind, Leeway, Portrait, assert_same};
use super::{pair, under_test};
use crate::bin::Folder;
use crate::fixture::is_full;
use crate::skip::needs;

const SECRET: &[u8] = b"the secret that lies outside";

/// How long a race goes on.
fn patience() -> Duration {
    Duration::from_secs(if is_full() { 60 } else { 1 })
}

/// Exchanges two names, over and over, while `work` is done again and again.
fn race(one: &Path, other: &Path, mut work: impl FnMut()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Fails where the copier has just removed or replaced one of them.
                let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
            }
        });
        let begun = Instant::now();
        while begun.elapsed() < patience() && !swapper.is_finished() {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut work));
            if let Err(failure) = done {
                is_over.store(true, Ordering::Relaxed);
                std::panic::resume_unwind(failure);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

fn plant(root: &Path, text: &[u8]) {
    fs::create_dir_all(root.join("sub/sub")).unwrap();
    for index in 0..20 {
        fs::write(root.join(format!("file{index}")), text).unwrap();
        fs::write(root.join(format!("sub/file{index}")), text).unwrap();
        fs::write(root.join(format!("sub/sub/file{index}")), text).unwrap();
    }
}

#[track_caller]
fn assert_no_secret(target: &Path) {
    let length = SECRET.len() as u64;
    for (path, entry) in &Portrait::of(target).entries {
        let is_secret = entry.kind == Kind::File && entry.length_bytes == length;
        assert!(!is_secret, "the secret arrived as {}", path.escape_ascii());
    }
}

#[test]
fn a_directory_of_the_source_swapped_for_a_symlink_is_not_followed() {
    needs!(under_test());
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree.join("dir"), b"plain");
    plant(&folder.join("outside"), SECRET);
    symlink(folder.join("outside"), folder.join("trap")).unwrap();
    race(&tree.join("dir"), &folder.join("trap"), || {
        let ran = copy::<&str>(&[], &tree, &target);
        assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
        assert_no_secret(&target);
        fs::remove_dir_all(&target).unwrap();
    });
}

#[test]
fn a_file_of_the_source_swapped_for_a_symlink_is_not_followed() {
    needs!(under_test());
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree, b"plain");
    fs::write(folder.join("secret"), SECRET).unwrap();
    symlink(folder.join("secret"), folder.join("trap")).unwrap();
    race(&tree.join("file7"), &folder.join("trap"), || {
        let ran = copy(&["--threads", "2"], &tree, &target);
        assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
        assert_no_secret(&target);
        fs::remove_dir_all(&target).unwrap();
    });
}

/// It is no directory whose contents would have to be somewhere: they may be in either.
#[test]
fn a_directory_of_the_target_swapped_for_a_symlink_is_not_followed() {
    needs!(under_test());
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree.join("dir"), b"plain");
    fs::create_dir_all(target.join("dir")).unwrap();
    fs::create_dir_all(folder.join("outside/sub/sub")).unwrap();
    fs::write(folder.join("outside/file3"), "not yours").unwrap();
    let before = Portrait::of(&folder.join("outside"));
    symlink(folder.join("outside"), folder.join("trap")).unwrap();
    for options in [&["-T", "--always"][..], &["-T", "--always", "--in-place"]] {
        race(&target.join("dir"), &folder.join("trap"), || {
            let ran = copy(options, &tree, &target);
            assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
            assert_same(&before, &Portrait::of(&folder.join("outside")), Leeway::NONE, &ran);
        });
    }
}

#[test]
fn a_file_of_the_target_swapped_for_a_symlink_is_not_written_through() {
    needs!(under_test());
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree, b"plain");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("file7"), "there").unwrap();
    fs::create_dir(folder.join("outside")).unwrap();
    fs::write(folder.join("outside/file"), "not yours").unwrap();
    let before = Portrait::of(&folder.join("outside"));
    symlink(folder.join("outside/file"), folder.join("trap")).unwrap();
    for options in [&["-T", "--always"][..], &["-T", "--always", "--in-place"]] {
        race(&target.join("file7"), &folder.join("trap"), || {
            let ran = copy(options, &tree, &target);
            assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
            assert_same(&before, &Portrait::of(&folder.join("outside")), Leeway::NONE, &ran);
        });
    }
}
