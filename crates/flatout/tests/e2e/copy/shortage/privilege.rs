//! Without root: what needs it is said once, owners apart, the rest is right.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, makedev, mknodat};

use crate::bin::{Folder, Ran};
use crate::copy::entry::chmod;
use crate::copy::likeness::{Likeness, assert_alike, likeness};
use crate::filesystem::{needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

const NOBODY: u32 = 65_534;
/// Whose files they are. Neither root nor nobody.
const STRANGER: u32 = 4321;
const FILES: usize = 30;

/// A folder in which nobody may do everything, and in it a tree of somebody else's.
fn folder_of_a_stranger() -> Folder {
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for index in 0..FILES {
        let file = tree.join(format!("sub/file{index:02}"));
        fs::write(&file, index.to_string()).unwrap();
        lsetxattr(&file, "user.note", b"kept", XattrFlags::empty()).unwrap();
        chown(&file, Some(STRANGER), Some(STRANGER)).unwrap();
        chmod(&file, if index % 2 == 0 { 0o644 } else { 0o4755 });
    }
    symlink("sub/file00", tree.join("symlink")).unwrap();
    mknodat(CWD, tree.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::ROTH, 0).unwrap();
    fs::hard_link(tree.join("sub/file00"), tree.join("other-name")).unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

fn copy_as_nobody(folder: &Folder) -> Ran {
    as_nobody(folder, "copy tree copy").leaves("copy").run()
}

fn count(ran: &Ran, word: &str) -> usize {
    ran.stderr.lines().filter(|line| line.contains(word)).count()
}

/// What a copy by nobody is to be.
fn wanted(folder: &Folder) -> Likeness {
    let mut wanted = likeness(&folder.join("tree"));
    for entry in wanted.values_mut() {
        entry.owner = (NOBODY, NOBODY);
        entry.mode &= !0o6000;
        entry.attributes.retain(|name, _| name.to_str().unwrap().starts_with("user."));
    }
    wanted
}

#[test]
fn what_nobody_cannot_keep_is_said_once() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = folder_of_a_stranger();
    for index in 0..FILES {
        let file = folder.join(&format!("tree/sub/file{index:02}"));
        lsetxattr(&file, "trusted.note", b"not kept", XattrFlags::empty()).unwrap();
        // A capability, revision 2: no more than the kernel checks.
        let mut capability = [0; 20];
        capability[..8].copy_from_slice(&[1, 0, 0, 2, 0, 4, 0, 0]);
        lsetxattr(&file, "security.capability", &capability, XattrFlags::empty()).unwrap();
    }
    let ran = copy_as_nobody(&folder);
    ran.exits(0);
    // Nobody expects owners to be kept, nor the bits that go with them.
    assert_eq!(count(&ran, "capabilities: Operation not permitted (first: "), 1, "{ran}");
    assert_eq!(count(&ran, &format!("capabilities: {FILES} entries in all")), 1, "{ran}");
    assert_eq!(ran.stderr.lines().count(), 2, "{ran}");
    assert_alike(&wanted(&folder), &likeness(&folder.join("copy")), &ran);
    let again = as_nobody(&folder, "copy -T tree copy").run();
    assert_alike(&wanted(&folder), &likeness(&folder.join("copy")), again.exits(0));
}

#[test]
fn a_file_that_nobody_may_read_is_named_and_the_others_are_copied() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = folder_of_a_stranger();
    chmod(&folder.join("tree/sub/file07"), 0o600);
    fs::create_dir(folder.join("tree/shut")).unwrap();
    fs::write(folder.join("tree/shut/inside"), "").unwrap();
    chmod(&folder.join("tree/shut"), 0o700);
    let ran = copy_as_nobody(&folder);
    ran.exits(1);
    for path in ["tree/sub/file07", "tree/shut"] {
        let is_named = |line: &str| line.ends_with(&format!(" \"{path}\": Permission denied"));
        assert_eq!(ran.stderr.lines().filter(|line| is_named(line)).count(), 1, "{path}{ran}");
    }
    assert_eq!(count(&ran, "Permission denied"), 2, "{ran}");
    let (mut wanted, mut found) = (wanted(&folder), likeness(&folder.join("copy")));
    for path in ["sub/file07", "shut", "shut/inside"] {
        wanted.remove(Path::new(path));
        found.remove(Path::new(path));
    }
    assert_alike(&wanted, &found, &ran);
    assert!(!folder.join("copy/sub/file07").exists());
}

#[test]
fn devices_that_nobody_may_make_are_named_and_the_rest_is_copied() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = folder_of_a_stranger();
    for index in 0..3 {
        let device = folder.join(&format!("tree/device{index}"));
        mknodat(CWD, &device, FileType::CharacterDevice, Mode::RUSR, makedev(1, 3)).unwrap();
    }
    let ran = copy_as_nobody(&folder);
    ran.exits(1);
    assert_eq!(count(&ran, "make the device"), 3, "{ran}");
    let mut wanted = wanted(&folder);
    wanted.retain(|path, _| !path.to_string_lossy().starts_with("device"));
    assert_alike(&wanted, &likeness(&folder.join("copy")), &ran);
}

/// What was there and is somebody else's stays, and that is said.
#[test]
fn a_target_of_somebody_elses_is_named() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = folder_of_a_stranger();
    fs::create_dir_all(folder.join("copy/sub")).unwrap();
    fs::write(folder.join("copy/sub/file03"), "the old one").unwrap();
    chown(folder.join("copy"), Some(NOBODY), Some(NOBODY)).unwrap();
    let ran = as_nobody(&folder, "copy -T tree copy").run();
    ran.exits(1);
    assert_eq!(fs::read(folder.join("copy/sub/file03")).unwrap(), b"the old one", "{ran}");
    assert!(ran.stderr.contains("copy/sub") && ran.stderr.contains("ermi"), "{ran}");
    assert!(folder.join("copy/symlink").is_symlink(), "{ran}");
}
