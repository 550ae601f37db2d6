//! Trees deeper than a path can say.

use std::ffi::CStr;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::super::copier::{copier, copy};
use super::super::forest::directory;
use super::super::oracle::{Leeway, Portrait, assert_same};
use super::{copies_whole, pair, under_test};
use crate::bin::Folder;
use crate::filesystem::needs_program;
use crate::skip::needs;

/// Seven times PATH_MAX with names of nine bytes, and more levels than a process has descriptors.
const LEVELS: usize = 3000;

/// A directory in a directory and so on, a file in each hundredth one.
fn plant(root: &Path) {
    const NAME: &CStr = c"directory";
    std::fs::create_dir(root).unwrap();
    let mut held = openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for level in 0..LEVELS {
        if level % 100 == 99 {
            let flags = OFlags::CREATE | OFlags::WRONLY;
            let file = openat(&held, c"file", flags, Mode::RUSR).unwrap();
            rustix::io::write(&file, level.to_string().as_bytes()).unwrap();
        }
        mkdirat(&held, NAME, Mode::RWXU).unwrap();
        held = directory(&held, NAME);
    }
}

/// The standard library holds a descriptor for each level, so it cannot take this down.
fn fell(root: &Path) {
    let removed = std::process::Command::new("rm").arg("-rf").arg(root).status().unwrap();
    assert!(removed.success());
}

#[test]
fn a_tree_deeper_than_a_path_can_say_is_copied() {
    needs!(under_test());
    needs!(needs_program("rm"));
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree);
    for options in [&["--threads", "1"][..], &["--threads", "4"], &["--max-fds", "16"]] {
        // The first one only: after that it has been read.
        let before = Portrait::of(&tree);
        let ran = copy(options, &tree, &target);
        ran.exits(0);
        let read = Leeway::but(&[super::super::oracle::Aspect::Accessed]);
        assert_same(&before, &Portrait::of(&target), read, &ran);
        fell(&target);
    }
    fell(&tree);
}

#[test]
fn a_listed_path_that_the_kernel_does_not_take_in_one_piece_is_found() {
    needs!(needs_program("rm"));
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    plant(&tree);
    let list = folder.join("list");
    let deep = "directory/".repeat(499);
    std::fs::write(&list, format!("{deep}file\n{deep}directory\n")).unwrap();
    let options = ["--files-from", list.to_str().unwrap()];
    let ran = copy(&options, &tree, &target);
    assert!(ran.exits(0).complaints().is_empty(), "{ran}");
    std::fs::write(&list, format!("{deep}nowhere\n")).unwrap();
    copy(&options, &tree, &target).complains(1, &["nowhere"]);
    fell(&target);
    fell(&tree);
}

/// Hard links are made by name, and the first name may lie deep.
#[test]
fn a_name_beyond_the_reach_of_a_path_gets_its_other_names() {
    needs!(under_test());
    use rustix::fs::{AtFlags, linkat};
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("z"), "linked").unwrap();
    let name = std::ffi::CString::new(vec![b'n'; 255]).unwrap();
    let mut held = openat(CWD, &tree, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..18 {
        mkdirat(&held, &name, Mode::RWXU).unwrap();
        held = directory(&held, &name);
        linkat(CWD, tree.join("z"), &held, c"again", AtFlags::empty()).unwrap();
    }
    copies_whole(&[], &tree, &target);
    copies_whole(&["--threads", "5"], &tree, &folder.join("threads"));
}

#[test]
fn a_tree_is_copied_with_64_descriptors() {
    needs!(under_test());
    use flatout_sys::launcher::{Resource, limit};
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    super::super::forest::plant(&tree, super::super::forest::Plan::new(64));
    // Wide as well as deep.
    for index in 0..300 {
        std::fs::create_dir_all(tree.join(format!("wide/{index}/below"))).unwrap();
        std::fs::write(tree.join(format!("wide/{index}/below/file")), "x").unwrap();
    }
    let before = Portrait::of(&tree);
    let program = Folder::new();
    let ran = copier(&program, &["--threads", "16"], (&tree, &target))
        .with(|command| {
            limit(command, Resource::Descriptors, 64);
        })
        .run();
    ran.exits(0);
    assert_same(&before, &Portrait::of(&target), Leeway::NONE, &ran);
}
