//! What an existing file keeps when it gets other bytes: all that was not asked to change.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use super::copier::under_test;
use super::entry::set;
use super::forest::{Acl, acl};
use super::oracle::Portrait;
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

const NOBODY: u32 = 65_534;

fn file(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn copy(folder: &Folder, options: &[&str]) -> Ran {
    let words = [&["copy"][..], options, &["n", "e"]].concat();
    let umask = ["sh", "-c", "umask 022 && exec \"$@\"", "sh"];
    folder.under(&umask, &words).run()
}

/// As cp, which writes into the file: whatever was there stays.
#[test]
fn a_mode_and_a_list_that_are_not_copied_stay() {
    needs!(under_test());
    for options in [&[][..], &["--atomic"], &["--in-place"]] {
        for mode in [0o600, 0o755, 0o640, 0o777, 0o1644, 0o200] {
            let folder = Folder::new();
            file(&folder.join("n"), "new", 0o644);
            file(&folder.join("e"), "old", mode);
            let ran = copy(&folder, &[&["--no-preserve=mode"][..], options].concat());
            ran.exits(0);
            let facts = folder.join("e").metadata().unwrap();
            assert_eq!(facts.mode() & 0o7777, mode, "{options:?}{ran}");
            let folder = Folder::new();
            file(&folder.join("n"), "new", 0o644);
            file(&folder.join("e"), "old", 0o600);
            set(&folder.join("e"), Acl::Access.attribute(), &acl([6, 4, 0, 4, 4, 0]));
            set(&folder.join("n"), "user.new", b"1");
            set(&folder.join("e"), "user.old", b"2");
            let before = Portrait::of(&folder.join("e"));
            copy(&folder, &[&["--no-preserve=mode,xattr"][..], options].concat()).exits(0);
            let after = Portrait::of(&folder.join("e"));
            assert_eq!(after.entry("").attributes, before.entry("").attributes, "{options:?}");
            assert_eq!(after.entry("").mode, before.entry("").mode, "{options:?}");
            assert_eq!(fs::read(folder.join("e")).unwrap(), b"new");
        }
    }
}

#[test]
fn an_owner_that_is_not_copied_stays() {
    needs!(under_test());
    needs!(needs_root("gives files away"));
    for options in [&[][..], &["--atomic"], &["--in-place"]] {
        let folder = Folder::new();
        file(&folder.join("n"), "new", 0o644);
        file(&folder.join("e"), "old", 0o640);
        chown(folder.join("e"), Some(1234), Some(4321)).unwrap();
        copy(&folder, &[&["--no-preserve=ownership"][..], options].concat()).exits(0);
        let facts = folder.join("e").metadata().unwrap();
        assert_eq!((facts.uid(), facts.gid()), (1234, 4321), "{options:?}");
        assert_eq!(fs::read(folder.join("e")).unwrap(), b"new");
        // Set-id bits lend the rights of an owner, and stay with it only.
        file(&folder.join("e"), "old", 0o4755);
        copy(&folder, &[&["--no-preserve=mode"][..], options].concat()).exits(0);
        let facts = folder.join("e").metadata().unwrap();
        assert_eq!((facts.uid(), facts.mode() & 0o7777), (0, 0o755), "{options:?}");
    }
}

/// What a directory hands down to new files is not handed to one that takes the place of another.
#[test]
fn a_default_list_does_not_come_to_a_file_that_was_there() {
    needs!(under_test());
    let folder = Folder::new();
    fs::create_dir(folder.join("d")).unwrap();
    file(&folder.join("d/e"), "old", 0o600);
    set(&folder.join("d"), Acl::Default.attribute(), &acl([7, 7, 7, 7, 7, 7]));
    file(&folder.join("n"), "new", 0o644);
    folder.flatout(["copy", "--no-preserve=mode", "n", "d/e"]).run().exits(0);
    let after = Portrait::of(&folder.join("d/e"));
    assert_eq!(after.entry("").mode, 0o600);
    assert!(after.entry("").attributes.is_empty(), "{after:?}");
}

/// As cp, which removes a name of a file that has several, and writes into no other name.
#[test]
fn a_name_of_a_file_of_somebody_else_with_several_names_is_replaced() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    fs::create_dir(folder.join("d")).unwrap();
    chown(folder.join("d"), Some(NOBODY), Some(NOBODY)).unwrap();
    file(&folder.join("n"), "new", 0o644);
    chown(folder.join("n"), Some(NOBODY), Some(NOBODY)).unwrap();
    file(&folder.join("d/e"), "old", 0o644);
    chown(folder.join("d/e"), Some(1234), Some(4321)).unwrap();
    fs::hard_link(folder.join("d/e"), folder.join("d/other")).unwrap();
    as_nobody(&folder, "copy n d/e").run().exits(0);
    assert_eq!(fs::read(folder.join("d/e")).unwrap(), b"new");
    assert_eq!(folder.join("d/e").metadata().unwrap().uid(), NOBODY);
    assert_eq!(fs::read(folder.join("d/other")).unwrap(), b"old");
    assert_eq!(folder.join("d/other").metadata().unwrap().uid(), 1234);
}

/// Without privilege a file of somebody else keeps its owner, because it is written in place.
#[test]
fn a_file_of_somebody_else_stays_theirs() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    file(&folder.join("n"), "new", 0o644);
    file(&folder.join("e"), "old", 0o666);
    file(&folder.join("shut"), "old", 0o644);
    chown(folder.join("e"), Some(1234), Some(4321)).unwrap();
    let ran = as_nobody(&folder, "copy --no-preserve=ownership,mode,timestamps n e").run();
    assert!(ran.exits(0).stderr.contains("written in place"), "{ran}");
    let facts = folder.join("e").metadata().unwrap();
    assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o7777), (1234, 4321, 0o666));
    assert_eq!(fs::read(folder.join("e")).unwrap(), b"new");
    // Also where the source is one's own: cp does not take the file over either.
    chown(folder.join("n"), Some(NOBODY), Some(NOBODY)).unwrap();
    let ran = as_nobody(&folder, "copy n e").run();
    assert!(ran.exits(1).stderr.contains("cannot set the times"), "{ran}");
    assert_eq!(folder.join("e").metadata().unwrap().uid(), 1234);
    let ran = as_nobody(&folder, "copy n shut").run();
    ran.complains(1, &["shut", "Permission denied"]);
    assert_eq!(fs::read(folder.join("shut")).unwrap(), b"old");
}

/// The same on filesystems that do it another way.
#[test]
fn every_filesystem_keeps_what_was_there() {
    needs!(under_test());
    for kind in [Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(16 << 20)] {
        let mounted = needs!(Mounted::new(kind));
        let place = mounted.path();
        let folder = Folder::new();
        file(&folder.join("n"), "new", 0o644);
        let target = place.join("e");
        file(&target, "old", 0o600);
        set(&target, Acl::Access.attribute(), &acl([6, 4, 0, 4, 4, 0]));
        chown(&target, Some(7), Some(8)).unwrap();
        let before = Portrait::of(&target);
        let words = ["copy", "--no-preserve=mode,ownership", "n", target.to_str().unwrap()];
        folder.flatout(words).run().exits(0);
        let after = Portrait::of(&target);
        let kept = |portrait: &Portrait| {
            let entry = portrait.entry("");
            (entry.mode, entry.owner, entry.attributes.clone())
        };
        assert_eq!(kept(&after), kept(&before), "{kind:?}");
        assert_eq!(fs::read(&target).unwrap(), b"new");
        mounted.finish();
    }
}
