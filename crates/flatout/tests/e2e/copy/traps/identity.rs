//! Sources and targets that are one and the same, or one inside the other.

use std::fs;
use std::os::unix::fs::symlink;

use super::super::copier::{copier, copy};
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::under_test;
use crate::bin::Folder;
use crate::filesystem::Mounted;
use crate::skip::needs;

const READ: Leeway = Leeway::but(&[Aspect::Accessed]);

fn planted(folder: &Folder) {
    fs::create_dir_all(folder.join("tree/sub")).unwrap();
    fs::write(folder.join("tree/file"), "precious").unwrap();
    fs::write(folder.join("tree/sub/file"), "too").unwrap();
}

#[test]
fn a_target_inside_the_source_is_refused() {
    needs!(under_test());
    let folder = Folder::new();
    planted(&folder);
    symlink("tree/sub", folder.join("way")).unwrap();
    let before = Portrait::of(&folder.join("tree"));
    for target in ["tree/new", "tree/sub", "tree/sub/new", "way", "tree"] {
        let ran = copy::<&str>(&[], &folder.join("tree"), &folder.join(target));
        ran.complains(1, &["tree"]);
        let after = Portrait::of(&folder.join("tree"));
        assert_same(&before, &after, READ, format!("into {target}{ran}"));
    }
}

#[test]
fn a_target_inside_the_source_is_refused_through_a_bind_mount() {
    needs!(under_test());
    let folder = Folder::new();
    planted(&folder);
    let shown = needs!(Mounted::shown_again(&folder.join("tree/sub")));
    let before = Portrait::of(&folder.join("tree"));
    let ran = copy::<&str>(&[], &folder.join("tree"), &shown.path().join("new"));
    ran.complains(1, &["tree"]);
    // Only in the middle of it can be seen that the target is in the source; it ends there.
    let after = Portrait::of(&folder.join("tree"));
    let grown = Leeway::but(&[Aspect::Accessed, Aspect::Modified, Aspect::Extra]);
    assert_same(&before, &after, grown, &ran);
    assert!(after.entries.len() <= 2 * before.entries.len() + 1, "{ran}");
    shown.finish();
}

#[test]
fn a_source_onto_itself_is_refused_by_whatever_name() {
    needs!(under_test());
    let folder = Folder::new();
    planted(&folder);
    fs::hard_link(folder.join("tree/file"), folder.join("tree/hard")).unwrap();
    symlink("tree/file", folder.join("soft")).unwrap();
    let before = Portrait::of(&folder.join("tree"));
    for options in [&[][..], &["--in-place"], &["--always"], &["--atomic"]] {
        for target in ["tree/file", "tree/hard"] {
            let ran = copy(options, &folder.join("tree/file"), &folder.join(target));
            ran.complains(1, &["file"]);
            let after = Portrait::of(&folder.join("tree"));
            assert_same(&before, &after, READ, format!("onto {target}{ran}"));
        }
        copy(options, &folder.join("tree/file"), &folder.join("soft"));
        assert_eq!(fs::read(folder.join("tree/file")).unwrap(), b"precious");
    }
}

#[test]
fn a_source_onto_itself_is_refused_through_a_bind_mount() {
    needs!(under_test());
    let folder = Folder::new();
    planted(&folder);
    let shown = needs!(Mounted::shown_again(&folder.join("tree")));
    let before = Portrait::of(&folder.join("tree"));
    for name in ["file", "sub"] {
        let ran =
            copy(&["-T", "--always"], &folder.join("tree").join(name), &shown.path().join(name));
        ran.complains(1, &[name]);
        assert_same(&before, &Portrait::of(&folder.join("tree")), READ, &ran);
    }
    shown.finish();
}

#[test]
fn two_sources_of_one_name_do_not_overwrite_each_other() {
    needs!(under_test());
    let folder = Folder::new();
    planted(&folder);
    fs::create_dir(folder.join("into")).unwrap();
    let program = Folder::new();
    let words = ["-t".into(), folder.join("into").into_os_string()];
    let two = (&*folder.join("tree/file"), &*folder.join("tree/sub/file"));
    let ran = copier(&program, &words, two).run();
    ran.complains(1, &["file"]);
    assert_eq!(fs::read(folder.join("into/file")).unwrap(), b"precious");
}

#[test]
fn a_dangling_symlink_at_the_target_is_not_written_through() {
    needs!(under_test());
    for options in [&["-T"][..], &["-T", "--in-place"], &["-T", "--atomic"]] {
        let folder = Folder::new();
        planted(&folder);
        fs::create_dir(folder.join("copy")).unwrap();
        symlink("../outside", folder.join("copy/file")).unwrap();
        symlink("../nowhere", folder.join("copy/sub")).unwrap();
        let ran = copy(options, &folder.join("tree"), &folder.join("copy"));
        assert!(!folder.join("outside").exists() && !folder.join("nowhere").exists(), "{ran}");
        assert!(matches!(ran.code, Some(0 | 1)), "{ran}");
        let file = folder.join("copy/file").symlink_metadata().unwrap();
        assert!(file.is_file() || ran.code == Some(1), "what was not copied is said{ran}");
    }
}

/// A symlink to a file or directory that does exist is followed no more than one that dangles.
#[test]
fn a_symlink_at_the_target_is_not_written_through() {
    needs!(under_test());
    for options in [&["-T"][..], &["-T", "--in-place"], &["-T", "--always"]] {
        let folder = Folder::new();
        planted(&folder);
        fs::create_dir_all(folder.join("outside/sub")).unwrap();
        fs::write(folder.join("outside/file"), "not yours").unwrap();
        let before = Portrait::of(&folder.join("outside"));
        fs::create_dir(folder.join("copy")).unwrap();
        symlink("../outside/file", folder.join("copy/file")).unwrap();
        symlink("../outside/sub", folder.join("copy/sub")).unwrap();
        let ran = copy(options, &folder.join("tree"), &folder.join("copy"));
        assert_same(&before, &Portrait::of(&folder.join("outside")), Leeway::NONE, &ran);
    }
}
