//! Without root: what needs it is said once, owners apart, the rest is right.

use std::fs;
use std::os::unix::fs::chown;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::super::copier::under_test;
use super::super::entry::{chmod, date, set};
use super::super::forest::{Acl, acl, capability};
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::bin::{Folder, Ran};
use crate::filesystem::{needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

const NOBODY: u32 = 65_534;
const READ: &[Aspect] = &[Aspect::Accessed, Aspect::Owner];

/// A folder in which nobody may do everything.
fn open_folder() -> Folder {
    let folder = Folder::new();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

fn copy_as_nobody(folder: &Folder, words: &str) -> Ran {
    as_nobody(folder, &format!("copy {words}")).leaves("copy").run()
}

#[test]
fn set_id_bits_go_with_owners_that_cannot_be_kept() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = open_folder();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for index in 0..20 {
        let file = tree.join(format!("file{index}"));
        fs::write(&file, "of root").unwrap();
        chmod(&file, [0o644, 0o4755, 0o2755, 0o6755][index % 4]);
        date(&file, 1_000_000_000 + index as i64, 9);
    }
    set(&tree.join("file0"), "user.note", b"kept");
    set(&tree.join("file4"), Acl::Access.attribute(), &acl([6, 4, 4, 4, 4, 4]));
    chmod(&tree, 0o755);
    let before = Portrait::of(&tree);
    let ran = copy_as_nobody(&folder, "tree copy");
    assert_eq!(ran.exits(0).stderr, "", "as cp, which expects no owner to be kept: {ran}");
    let after = Portrait::of(&folder.join("copy"));
    let mut wanted = before.clone();
    for entry in wanted.entries.values_mut() {
        entry.mode &= 0o1777;
    }
    assert_same(&wanted, &after, Leeway::but(READ), &ran);
    assert!(after.entries.values().all(|entry| entry.owner == (NOBODY, NOBODY)));
}

#[test]
fn what_nobody_may_read_or_make_is_named_and_the_rest_copied() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = open_folder();
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("shut")).unwrap();
    for name in ["good", "secret", "shut/inside"] {
        fs::write(tree.join(name), name).unwrap();
    }
    mknodat(CWD, tree.join("device"), FileType::CharacterDevice, Mode::RUSR, makedev(1, 3))
        .unwrap();
    set(&tree.join("good"), "security.capability", &capability(1));
    chmod(&tree.join("secret"), 0o600);
    chmod(&tree.join("shut"), 0o700);
    chmod(&tree.join("good"), 0o755);
    chmod(&tree, 0o755);
    let ran = copy_as_nobody(&folder, "tree copy");
    ran.exits(1);
    for (name, cause) in [("secret", "Permission denied"), ("shut", "Permission denied")] {
        let found = ran.stderr.lines().any(|line| line.contains(name) && line.contains(cause));
        assert!(found, "{name}{ran}");
    }
    assert!(ran.stderr.contains("device"), "{ran}");
    assert_eq!(fs::read(folder.join("copy/good")).unwrap(), b"good");
    assert!(!folder.join("copy/secret").exists(), "{ran}");
}

#[test]
fn read_only_directories_are_filled_by_nobody_too() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = open_folder();
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("closed/inner")).unwrap();
    for name in ["closed/inner/file", "closed/file", "file"] {
        fs::write(tree.join(name), name).unwrap();
        chmod(&tree.join(name), 0o444);
    }
    for name in ["closed/inner/file", "closed/file", "file", "closed/inner", "closed", ""] {
        chown(tree.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    for name in ["closed/inner", "closed", ""] {
        chmod(&tree.join(name), 0o555);
    }
    let before = Portrait::of(&tree);
    let ran = copy_as_nobody(&folder, "tree copy");
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    assert_same(&before, &Portrait::of(&folder.join("copy")), Leeway::but(READ), &ran);
    // A second time they are protected, as from cp.
    let ran = copy_as_nobody(&folder, "-T tree copy");
    assert_eq!(ran.exits(1).stderr.lines().count(), 3, "{ran}");
    assert_same(&before, &Portrait::of(&folder.join("copy")), Leeway::but(READ), &ran);
}

/// A mirror that root has made, when somebody else has it looked through.
#[test]
fn a_directory_of_somebody_else_that_is_as_it_should_be_is_no_failure() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = open_folder();
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("sub/file"), "bytes").unwrap();
    folder.flatout(["copy", "tree", "copy"]).leaves("copy").run().exits(0);
    let again = || copy_as_nobody(&folder, "--delete --quick-check -T tree copy");
    assert_eq!(again().exits(0).stderr, "");
    chmod(&tree.join("sub"), 0o775);
    again().complains(1, &["cannot set the mode of", "copy/sub", "not permitted"]);
}

/// A file that its owner may not write is protected, unless it is to be replaced by all means, or the target is
/// a mirror, as with rsync.
#[test]
fn a_read_only_file_is_replaced_only_by_force_or_in_a_mirror() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = open_folder();
    for (place, mode) in [("tree", 0o640), ("copy", 0o444)] {
        fs::create_dir(folder.join(place)).unwrap();
        let file = folder.join(place).join("file");
        fs::write(&file, place).unwrap();
        chmod(&file, mode);
        date(&file, 1_000_000_000, 1);
        chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
        chown(folder.join(place), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = Portrait::of(&folder.join("tree"));
    copy_as_nobody(&folder, "-T tree copy").complains(1, &["copy/file", "Permission denied"]);
    assert_eq!(fs::read(folder.join("copy/file")).unwrap(), b"copy");
    let in_place = ["-f --in-place", "--delete --in-place", "--delete --in-place --delta"];
    for way in ["-f", "--delete"].into_iter().chain(in_place) {
        let ran = copy_as_nobody(&folder, &format!("{way} -T tree copy"));
        ran.exits(0);
        assert_same(&before, &Portrait::of(&folder.join("copy")), Leeway::but(READ), &ran);
        fs::write(folder.join("copy/file"), "copy").unwrap();
        chmod(&folder.join("copy/file"), 0o444);
    }
}
