//! `flatout sum -r`: what is in a tree, in which order, and what is not read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};

use super::{ABC, EMPTY};
use crate::bin::{Folder, executable};
use crate::filesystem::{Kind, Mounted, is_root, needs_program};
use crate::input::as_nobody;
use crate::skip::needs;

fn names(stdout: &str) -> Vec<&str> {
    stdout.lines().map(|line| &line[66..]).collect()
}

#[test]
fn a_tree_is_read_in_the_order_of_its_names() {
    let folder = Folder::new();
    for directory in ["tree/b/c", "tree/a", "tree/a.b", "tree/empty"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
    }
    for file in ["b/c/x", "b/a", "a/z", "a.b/y", "a!", "B"] {
        fs::write(folder.join("tree").join(file), "abc").unwrap();
    }
    let ran = folder.flatout(["sum", "-r", "tree"]).run();
    let order = ["tree/B", "tree/a/z", "tree/a!", "tree/a.b/y", "tree/b/a", "tree/b/c/x"];
    assert_eq!(names(&ran.exits(0).stdout), order);
    assert!(ran.stdout.lines().all(|line| line.starts_with(ABC)), "{ran}");
    for threads in ["1", "5"] {
        let again = folder.flatout(["sum", "-r", "tree", "--threads", threads]).run();
        assert_eq!(again.exits(0).stdout, ran.stdout, "{threads} threads");
    }
    let mixed = folder.flatout(["sum", "-r", "tree/b/", "tree/B", "tree/a"]).run();
    assert_eq!(names(&mixed.exits(0).stdout), ["tree/b/a", "tree/b/c/x", "tree/B", "tree/a/z"]);
    folder.flatout(["sum", "tree"]).run().complains(1, &["\"tree\": Is a directory", "-r reads"]);
}

#[test]
fn links_and_pipes_in_a_tree_are_left_out() {
    let folder = Folder::new();
    fs::create_dir(folder.join("tree")).unwrap();
    fs::write(folder.join("tree/file"), "abc").unwrap();
    symlink("/etc", folder.join("tree/directory")).unwrap();
    symlink("file", folder.join("tree/link")).unwrap();
    symlink("tree", folder.join("to-tree")).unwrap();
    mknodat(CWD, folder.join("tree/fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let ran = folder.flatout(["sum", "-r", "tree", "to-tree"]).run();
    assert_eq!(names(&ran.exits(0).stdout), ["tree/file", "to-tree/file"]);
    assert_eq!(ran.stderr, "");
}

/// Its files have other device numbers than its directories.
#[test]
fn the_list_itself_is_left_out_of_an_overlay_too() {
    let memory = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let folder = Folder::new();
    fs::write(folder.join("file"), "abc").unwrap();
    let mounted = needs!(Mounted::overlay(folder.path(), &memory.path()));
    let tree = mounted.path();
    let list = || fs::File::create(tree.join("list")).unwrap();
    let path = tree.to_str().unwrap();
    folder.flatout(["sum", "-r", path]).stdout(list()).run().exits(0);
    let listed = fs::read_to_string(tree.join("list")).unwrap();
    assert_eq!(names(&listed), [format!("{path}/file")]);
    mounted.finish();
    memory.finish();
}

#[test]
fn a_directory_that_may_not_be_read_does_not_stop_the_rest() {
    let folder = Folder::new();
    for directory in ["tree/a", "tree/b", "tree/c"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
        fs::write(folder.join(directory).join("file"), "").unwrap();
    }
    fs::set_permissions(folder.join("tree/b"), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = if is_root() {
        needs!(needs_program("setpriv"));
        as_nobody(&folder, "sum -r tree").run()
    } else {
        folder.flatout(["sum", "-r", "tree"]).run()
    };
    fs::set_permissions(folder.join("tree/b"), PermissionsExt::from_mode(0o755)).unwrap();
    ran.complains(1, &["cannot open \"tree/b\": Permission denied"]);
    assert_eq!(names(&ran.stdout), ["tree/a/file", "tree/c/file"]);
}

/// Directories in each other, with a file before and one behind the way down in each.
fn deep(top: &Path, depth: usize, name: &str) {
    let mut directory = openat(CWD, top, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..depth {
        for file in ["a", "z"] {
            openat(&directory, file, OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
        }
        mkdirat(&directory, name, Mode::RWXU).unwrap();
        directory = openat(&directory, name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn a_tree_deeper_than_any_path_is_read_and_checked() {
    let folder = Folder::new();
    fs::create_dir(folder.join("tree")).unwrap();
    deep(&folder.join("tree"), 130, &"m".repeat(100));
    let ran = folder.flatout(["sum", "-r", "tree", "--output", "SUMS"]).leaves("SUMS").run();
    assert_eq!(ran.exits(0).stderr, "");
    let manifest = fs::read_to_string(folder.join("SUMS")).unwrap();
    assert_eq!(manifest.lines().count(), 260);
    assert!(manifest.lines().any(|line| line.len() > 3 * 4096));
    assert!(manifest.lines().all(|line| line.starts_with(EMPTY)));
    let ran = folder.flatout(["sum", "-c", "SUMS"]).run();
    assert_eq!(ran.exits(0).stdout.lines().filter(|line| line.ends_with(": OK")).count(), 260);
}

#[test]
fn a_tree_deeper_than_the_limit_of_descriptors_is_read() {
    let folder = Folder::new();
    fs::create_dir(folder.join("tree")).unwrap();
    deep(&folder.join("tree"), 500, "m");
    let script = "ulimit -n 256; exec \"$0\" sum -r tree";
    let words = ["-c".into(), script.into(), executable().into()].to_vec();
    let ran = folder.program("sh".as_ref(), words).run();
    assert_eq!(ran.exits(0).stderr, "");
    assert_eq!(ran.stdout.lines().count(), 1000);
}

#[test]
fn the_file_of_the_results_is_no_part_of_the_tree() {
    let folder = Folder::new();
    fs::create_dir(folder.join("tree")).unwrap();
    fs::write(folder.join("tree/abc"), "abc").unwrap();
    fs::write(folder.join("tree/SUMS"), "old").unwrap();
    folder.flatout(["sum", "-r", "tree", "--output", "tree/SUMS"]).run().exits(0);
    let line = format!("{ABC}  tree/abc\n");
    assert_eq!(fs::read_to_string(folder.join("tree/SUMS")).unwrap(), line);
    let redirected = fs::File::create(folder.join("tree/SUMS")).unwrap();
    folder.flatout(["sum", "-r", "tree"]).stdout(redirected).run().exits(0);
    assert_eq!(fs::read_to_string(folder.join("tree/SUMS")).unwrap(), line);
}

#[test]
fn many_files_come_out_once_each() {
    let folder = Folder::new();
    let mut expected = BTreeMap::new();
    for index in 0..2000 {
        let directory = folder.join(&format!("tree/{:02}", index % 20));
        fs::create_dir_all(&directory).unwrap();
        let (path, text) = (directory.join(index.to_string()), format!("contents {index}"));
        fs::write(&path, &text).unwrap();
        let name = path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
        expected.insert(name, crate::fixture::xor32_hex(text.as_bytes()));
    }
    let ran = folder.flatout(["sum", "-r", "--digest", "xor32", "tree"]).run();
    let found: BTreeMap<String, String> = ran
        .exits(0)
        .stdout
        .lines()
        .map(|line| (line[10..].to_owned(), line[..8].to_owned()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(ran.stdout.lines().count(), 2000);
}
