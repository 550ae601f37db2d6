//! Entries that are no plain files, names that are no plain names, files that say nothing of
//! their length.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::super::copier::copy;
use super::super::oracle::{Kind, Portrait};
use super::{ENGINES, copies_whole, pair, under_test};
use crate::bin::Folder;
use crate::filesystem::needs_root;
use crate::skip::needs;

#[test]
fn odd_names_are_names() {
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    let long = [b'x'; 255];
    let names: [&[u8]; 8] =
        [&long, b"new\nline", b"\n", b"\xff\xfe", b"-rf", b"--", b" ", b"* ? [a]"];
    for name in names {
        let name = OsStr::from_bytes(name);
        fs::write(tree.join(name), name.as_bytes()).unwrap();
    }
    for name in [&b"-dir\n\xff"[..], &[b'd'; 255]] {
        fs::create_dir(tree.join(OsStr::from_bytes(name))).unwrap();
        symlink("-x", tree.join(OsStr::from_bytes(name)).join("\n")).unwrap();
    }
    copies_whole(&[], &tree, &target);
    copies_whole(&["--atomic"], &tree, &folder.join("whole-names"));
}

/// With a temporary beside it, a name of 255 bytes leaves no room for more.
#[test]
fn a_file_with_the_longest_name_is_replaced() {
    needs!(under_test());
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    let long = "y".repeat(255);
    for (place, text) in [(&tree, "new one"), (&target, "old")] {
        fs::create_dir(place).unwrap();
        fs::write(place.join(&long), text).unwrap();
    }
    copies_whole(&["-T"], &tree, &target);
}

#[test]
fn pipes_and_sockets_are_made_and_not_opened() {
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    for (name, kind) in [("fifo", FileType::Fifo), ("socket", FileType::Socket)] {
        mknodat(CWD, tree.join(name), kind, Mode::RWXU, 0).unwrap();
    }
    fs::write(tree.join("zzz"), "after").unwrap();
    copies_whole(&[], &tree, &target);
    // As operands, too.
    copies_whole(&[], &tree.join("fifo"), &folder.join("fifo"));
    copies_whole(&[], &tree.join("socket"), &folder.join("socket"));
}

#[test]
fn a_device_stands_for_what_the_source_stood_for() {
    needs!(needs_root("makes devices"));
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    let kinds = [FileType::CharacterDevice, FileType::BlockDevice];
    for (index, (major, minor)) in [(1, 3), (259, 262_143), (511, 0)].into_iter().enumerate() {
        let name = tree.join(index.to_string());
        mknodat(CWD, name, kinds[index % 2], Mode::RUSR, makedev(major, minor)).unwrap();
    }
    copies_whole(&[], &tree, &target);
    assert_eq!(Portrait::of(&target).entry("1").kind, Kind::BlockDevice);
}

#[test]
fn empty_directories_are_there() {
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir_all(tree.join("a/b/c")).unwrap();
    fs::create_dir_all(tree.join("d")).unwrap();
    copies_whole(&[], &tree, &target);
}

/// Their length is said to be 0.
#[test]
fn files_of_the_kernel_are_copied_to_their_end() {
    needs!(under_test());
    let folder = Folder::new();
    for source in ["/proc/version", "/proc/filesystems", "/proc/kallsyms"] {
        if !Path::new(source).exists() && source != "/proc/version" {
            continue;
        }
        for engine in ENGINES {
            let target = folder.join(engine);
            // What others load into the kernel meanwhile stands in them.
            let unchanged = (0..10).find_map(|_| {
                let wanted = fs::read(source).unwrap();
                assert!(!wanted.is_empty() && fs::metadata(source).unwrap().len() == 0);
                copy(&["--engine", engine], Path::new(source), &target).exits(0);
                let copied = fs::read(&target).unwrap();
                fs::remove_file(&target).unwrap();
                (wanted == fs::read(source).unwrap()).then_some((wanted, copied))
            });
            let (wanted, copied) = unchanged.expect("it changes all the time");
            assert!(copied == wanted, "{source} by {engine}");
        }
    }
}

/// Their length is said to be a page, and is not.
#[test]
fn files_of_the_kernel_that_are_shorter_than_said_end_where_they_end() {
    needs!(under_test());
    let folder = Folder::new();
    let source = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    let Ok(wanted) = fs::read(source) else { crate::skip::skip!("no {}", source.display()) };
    for engine in ENGINES {
        let target = folder.join(engine);
        let ran = copy(&["--engine", engine], source, &target);
        assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
        assert!(ran.code == Some(1) || fs::read(&target).unwrap() == wanted, "{engine}{ran}");
    }
}
