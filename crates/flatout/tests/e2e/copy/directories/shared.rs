//! Directories that several people use: what they are allowed never becomes more, and what makes a
//! directory shared or private stays.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

use rustix::fs::{XattrFlags, lsetxattr};

use super::super::copier::{copy, cp};
use super::super::forest::{Acl, acl};
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::{NOBODY, by_nobody, chmod, folder_of_nobody, mode, plant};
use crate::bin::{Folder, executable};
use crate::filesystem::{needs_program, needs_root};
use crate::skip::needs;

#[test]
fn a_shared_directory_keeps_its_set_group_id_bit() {
    needs!(needs_root("changes groups"));
    for (existing, source, wanted) in [
        (0o2775, 0o755, 0o2755),
        (0o2755, 0o700, 0o2700),
        (0o1777, 0o755, 0o1755),
        (0o3777, 0o2755, 0o3755),
        (0o775, 0o2755, 0o2755),
    ] {
        let folder = Folder::new();
        let tree = folder.join("tree");
        plant(&tree);
        chmod(&tree, source);
        let mut modes = Vec::new();
        for (place, name) in ["with", "without"].map(|name| (folder.join(name), name)) {
            fs::create_dir(&place).unwrap();
            chown(&place, None, Some(50)).unwrap();
            chmod(&place, existing);
            let options = if name == "with" { &["-T"][..] } else { &["-T", "--no-preserve=mode"] };
            copy(options, &tree, &place).exits(0);
            modes.push(mode(&place));
        }
        assert_eq!(modes, [wanted, existing], "{source:o} over {existing:o}");
    }
}

/// A stopped copy leaves new directories with that mode, too.
#[test]
fn a_shared_directory_into_which_a_private_one_was_merged_stays_shared() {
    needs!(needs_root("changes groups"));
    let folder = Folder::new();
    let (tree, shared) = (folder.join("tree"), folder.join("shared"));
    plant(&tree);
    chmod(&tree.join("sub"), 0o700);
    fs::create_dir_all(shared.join("sub")).unwrap();
    for (name, bits) in [("", 0o2775), ("sub", 0o3775)] {
        chown(shared.join(name), None, Some(50)).unwrap();
        chmod(&shared.join(name), bits);
    }
    for _ in 0..3 {
        copy(&["-T"], &tree, &shared).exits(0);
        assert_eq!(mode(&shared.join("sub")), 0o3700);
    }
}

#[test]
fn directories_below_a_shared_one_belong_to_its_group_where_modes_are_not_kept() {
    needs!(needs_root("changes groups"));
    let folder = Folder::new();
    let (tree, shared) = (folder.join("tree"), folder.join("shared"));
    plant(&tree);
    fs::create_dir(&shared).unwrap();
    chown(&shared, None, Some(50)).unwrap();
    chmod(&shared, 0o2775);
    copy(&["--no-preserve=mode,ownership"], &tree, &shared.join("copy")).exits(0);
    for name in ["copy", "copy/sub", "copy/sub/deep"] {
        let facts = fs::metadata(shared.join(name)).unwrap();
        assert_eq!((facts.mode() & 0o7000, facts.gid()), (0o2000, 50), "{name}");
    }
    assert_eq!(fs::metadata(shared.join("copy/sub/file")).unwrap().gid(), 50);
}

#[test]
fn a_private_directory_stays_private_where_modes_are_not_kept() {
    let folder = Folder::new();
    let (tree, target) = (folder.join("tree"), folder.join("copy"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::create_dir(&target).unwrap();
    chmod(&target, 0o700);
    // As it was made, not touched since.
    Command::new("mkdir").args(["-m", "700"]).arg(target.join("sub")).status().unwrap();
    for _ in 0..2 {
        copy(&["-T", "--no-preserve=mode"], &tree, &target).exits(0);
        assert_eq!([mode(&target), mode(&target.join("sub"))], [0o700; 2]);
    }
}

/// The sticky bit protects the files of each from the others: as with cp, it is no matter of modes.
#[test]
fn a_sticky_directory_stays_sticky_where_modes_are_not_kept() {
    let folder = Folder::new();
    let (tree, target) = (folder.join("tree"), folder.join("copy"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    chmod(&tree.join("sub"), 0o1777);
    for _ in 0..2 {
        copy(&["-T", "--no-preserve=mode"], &tree, &target).exits(0);
        assert_eq!([&target, &target.join("sub")].map(|path| mode(path) & 0o7000), [0, 0o1000]);
    }
}

/// What a directory hides must not be seen while it is copied into an open one; and neither a new
/// owner nor the group may get, for a moment, what somebody else was allowed.
#[test]
fn an_existing_directory_is_never_open_to_more_than_before_and_after() {
    needs!(needs_root("changes owners"));
    needs!(needs_program("strace"));
    for (call, existing, wanted) in [
        ("utimensat", 0o775, 0o700),
        ("fchown", 0o775, 0o700),
        ("fchown", 0o2777, 0o2700),
        ("fremovexattr", 0o770, 0o700),
    ] {
        let folder = Folder::new();
        let [tree, target] = ["tree", "copy"].map(|name| folder.join(name));
        fs::create_dir_all(tree.join("sub")).unwrap();
        fs::write(tree.join("sub/file"), "secret").unwrap();
        chmod(&tree.join("sub"), 0o700);
        fs::create_dir_all(target.join("sub")).unwrap();
        if call == "fremovexattr" {
            let list = acl([7, 7, 0, 0, 7, 0]);
            let path = target.join("sub");
            let set = lsetxattr(&path, Acl::Access.attribute(), &list, XattrFlags::empty());
            needs!(set.map_err(|error| format!("no lists here: {error}")));
            chmod(&tree.join("sub"), 0o770);
        }
        chmod(&target.join("sub"), existing);
        if call == "fchown" {
            chown(target.join("sub"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let inject = format!("inject={call}:signal=KILL");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let words = ["copy", "--threads", "1", "-T", "tree", "copy"];
        let killed = folder.under(&wrapper, &words).run();
        assert_ne!(killed.code, Some(0), "{killed}");
        assert!(target.join("sub/file").exists(), "{killed}");
        let found = mode(&target.join("sub"));
        assert_eq!(found, wanted, "{found:o} {call}{killed}");
        let ran = copy(&["-T"], &tree, &target);
        let [before, after] = [&tree, &target].map(|path| Portrait::of(path));
        let leeway = Leeway::but(&[Aspect::Accessed, Aspect::Mode]);
        assert_same(&before, &after, leeway, ran.exits(0));
        assert_eq!(mode(&target.join("sub")) & 0o777, mode(&tree.join("sub")));
    }
}

/// The mode of somebody else's directory is no matter where modes are not kept.
#[test]
fn a_directory_of_somebody_elses_is_merged_into_where_nothing_of_it_is_to_change() {
    let folder = needs!(folder_of_nobody());
    plant(&folder.join("tree"));
    fs::create_dir(folder.join("copy")).unwrap();
    chmod(&folder.join("copy"), 0o777);
    let ran = by_nobody(&folder, "./program copy --preserve=links -T tree copy").run();
    assert_eq!((ran.exits(0).stderr.as_str(), mode(&folder.join("copy"))), ("", 0o777), "{ran}");
}

/// What a directory hands on does not go beyond the umask.
#[test]
fn a_default_list_widens_nothing_beyond_the_umask() {
    let folder = Folder::new();
    let (tree, place) = (folder.join("tree"), folder.join("place"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("file"), "").unwrap();
    fs::create_dir(&place).unwrap();
    let generous = acl([7, 7, 7, 7, 7, 7]);
    let set = lsetxattr(&place, Acl::Default.attribute(), &generous, XattrFlags::empty());
    needs!(set.map_err(|error| format!("no lists here: {error}")));
    let line =
        format!("umask 077; {} copy --no-preserve=mode tree place/copy", executable().display());
    let words = ["-c".into(), OsString::from(line)];
    folder.program("sh".as_ref(), words.to_vec()).run().exits(0);
    for (name, wanted) in [("copy", 0o700), ("copy/sub", 0o700), ("copy/file", 0o600)] {
        assert_eq!(mode(&place.join(name)), wanted, "{name}");
    }
}

/// Nothing of the difference that cp makes is missed: `cp -a` keeps the bit, too, where it sets the
/// mode as a list.
#[test]
fn what_cp_makes_of_a_shared_directory_is_made_of_it() {
    needs!(needs_root("changes groups"));
    let folder = Folder::new();
    plant(&folder.join("tree"));
    let mut modes = Vec::new();
    for name in ["cp", "flatout"] {
        fs::create_dir(folder.join(name)).unwrap();
        chown(folder.join(name), None, Some(50)).unwrap();
        chmod(&folder.join(name), 0o2775);
        let inside = folder.join("tree/.");
        let ran = match name {
            "cp" => cp(&inside, &folder.join(name)),
            _ => copy::<&str>(&[], &inside, &folder.join(name)),
        };
        ran.exits(0);
        modes.push(mode(&folder.join(name)));
    }
    // A cp without lists, or a filesystem without, loses it.
    assert_eq!(modes[1], 0o2755);
    assert!([0o755, 0o2755].contains(&modes[0]), "{modes:?}");
}
