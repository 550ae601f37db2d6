//! Earlier snapshots: unchanged files are linked, or share extents, and what is there stays as it is.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::XattrFlags;

use super::copier::under_test;
use super::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::fixture::random_bytes;
use crate::input::as_nobody;
use crate::skip::needs;

fn write(path: &Path, text: &str, seconds: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _gone = fs::remove_file(path);
    fs::write(path, text).unwrap();
    set_time(path, seconds);
}

fn set_time(path: &Path, seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn copy(folder: &Folder, words: &[&str]) -> Ran {
    let target = words.last().unwrap();
    folder.flatout([&["copy"], words].concat()).leaves(target).run()
}

fn inode(folder: &Folder, name: &str) -> u64 {
    fs::symlink_metadata(folder.join(name)).unwrap().ino()
}

#[track_caller]
fn is_copy(source: &Path, target: &Path) {
    let leeway = Leeway::but(&[Aspect::Accessed, Aspect::Links]);
    assert_same(&Portrait::of(source), &Portrait::of(target), leeway, target.display());
}

/// A source of some files, and a first snapshot of it in `mon`.
fn snapshot() -> Folder {
    let folder = Folder::new();
    for name in ["same", "sub/same", "sub/deep/same", "size", "time", "mode", "attribute", "empty"]
    {
        let text = if name == "empty" { "" } else { name };
        write(&folder.join("src").join(name), text, 1000);
    }
    symlink("same", folder.join("src/symlink")).unwrap();
    copy(&folder, &["src", "mon"]).exits(0);
    folder
}

/// All that is known of a tree, but for access times and numbers of links.
fn state(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let facts = fs::symlink_metadata(&path).unwrap();
        let text = if facts.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let times = (facts.mtime(), facts.mtime_nsec());
        found.push(format!(
            "{path:?} {} {} {:o} {times:?} {text:?}",
            facts.ino(),
            facts.uid(),
            facts.mode()
        ));
        if facts.is_dir() {
            found.extend(state(&path));
        }
    }
    found.sort();
    found
}

#[test]
fn unchanged_files_become_links_and_the_snapshot_stays_as_it_is() {
    needs!(under_test());
    let folder = snapshot();
    let source = |name: &str| folder.join("src").join(name);
    write(&source("size"), "other size", 1000);
    set_time(&source("time"), 2000);
    fs::set_permissions(source("mode"), Permissions::from_mode(0o600)).unwrap();
    let set = rustix::fs::setxattr(source("attribute"), "user.new", b"1", XattrFlags::empty());
    write(&source("new"), "new", 1000);
    let before = state(&folder.join("mon"));
    let changed = ["size", "time", "mode"];
    // Into a directory that is new, into one that is there, and once more into that.
    for (words, root) in [
        (&["src", "tue"][..], "tue"),
        (&["src/.", "wed"], "wed"),
        (&["src/.", "wed"], "wed"),
        (&["--checksum", "src/.", "wed"], "wed"),
        (&["--quick-check", "src/.", "wed"], "wed"),
    ] {
        let _there = fs::create_dir(folder.join("wed"));
        copy(&folder, &[&["--link-dest", "mon"], words].concat()).exits(0);
        for name in ["same", "sub/same", "sub/deep/same", "empty"] {
            let [old, new] = ["mon", root].map(|root| inode(&folder, &format!("{root}/{name}")));
            assert_eq!(old, new, "{words:?}: {name}");
        }
        let more = set.is_ok().then_some("attribute");
        for name in changed.into_iter().chain(more) {
            let [old, new] = ["mon", root].map(|root| inode(&folder, &format!("{root}/{name}")));
            assert_ne!(old, new, "{words:?}: {name}");
        }
        assert_eq!(state(&folder.join("mon")), before, "{words:?}");
        is_copy(&folder.join("src"), &folder.join(root));
    }
}

/// A file that is replaced in the new snapshot stays in the old one, whatever way it is compared.
#[test]
fn a_shared_inode_gets_no_other_attributes() {
    needs!(under_test());
    let folder = snapshot();
    // Several names in the source, so that links of the target may stand for them.
    fs::hard_link(folder.join("src/same"), folder.join("src/again")).unwrap();
    copy(&folder, &["-T", "src", "mon"]).exits(0);
    copy(&folder, &["--link-dest", "mon", "src", "tue"]).exits(0);
    assert_eq!(inode(&folder, "mon/same"), inode(&folder, "tue/again"));
    let before = state(&folder.join("mon"));
    fs::set_permissions(folder.join("src/same"), Permissions::from_mode(0o600)).unwrap();
    for way in ["--checksum", "--quick-check", "--force"] {
        copy(&folder, &[way, "--link-dest", "mon", "-T", "src", "tue"]).exits(0);
        assert_eq!(state(&folder.join("mon")), before, "{way}");
        assert_eq!(fs::metadata(folder.join("tue/same")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(inode(&folder, "tue/same"), inode(&folder, "tue/again"), "{way}");
    }
}

#[test]
fn the_first_snapshot_that_has_a_file_is_taken() {
    needs!(under_test());
    let folder = snapshot();
    write(&folder.join("src/size"), "another size", 1000);
    copy(&folder, &["--link-dest=mon", "src", "tue"]).exits(0);
    copy(&folder, &["--link-dest=mon", "--link-dest=tue", "src", "wed"]).exits(0);
    assert_eq!(inode(&folder, "wed/size"), inode(&folder, "tue/size"));
    assert_eq!(inode(&folder, "wed/same"), inode(&folder, "mon/same"));
    // One file, under the name that the copy gets.
    copy(&folder, &["--link-dest=mon", "src/same", "sub"]).exits(0);
    assert_ne!(inode(&folder, "sub"), inode(&folder, "mon/same"));
    fs::create_dir(folder.join("thu")).unwrap();
    copy(&folder, &["--link-dest=mon", "src/same", "thu"]).exits(0);
    assert_eq!(inode(&folder, "thu/same"), inode(&folder, "mon/same"));
}

#[test]
fn a_time_that_is_not_kept_need_not_be_that_of_a_snapshot_whose_bytes_are_compared() {
    needs!(under_test());
    let folder = snapshot();
    set_time(&folder.join("src/same"), 2000);
    write(&folder.join("src/size"), "SIZE", 2000);
    for (way, root, is_linked) in [("--checksum", "tue", true), ("--quick-check", "wed", false)] {
        copy(&folder, &[way, "--no-preserve=timestamps", "--link-dest=mon", "src", root]).exits(0);
        let same = ["mon", root].map(|root| inode(&folder, &format!("{root}/same")));
        assert_eq!(same[0] == same[1], is_linked, "{way}");
        assert_eq!(fs::read(folder.join(root).join("size")).unwrap(), b"SIZE", "{way}");
    }
}

#[test]
fn names_that_are_one_file_in_the_snapshot_and_two_in_the_source_stay_two() {
    needs!(under_test());
    let folder = Folder::new();
    write(&folder.join("src/a"), "one", 1000);
    fs::hard_link(folder.join("src/a"), folder.join("src/b")).unwrap();
    copy(&folder, &["src", "mon"]).exits(0);
    write(&folder.join("src/b"), "two", 1000);
    copy(&folder, &["--link-dest", "mon", "src", "tue"]).exits(0);
    assert_ne!(inode(&folder, "tue/a"), inode(&folder, "tue/b"));
    // Equal size and time are taken for proof, as asked for: contents only with --checksum.
    fs::remove_dir_all(folder.join("tue")).unwrap();
    copy(&folder, &["--checksum", "--link-dest", "mon", "src", "tue"]).exits(0);
    assert_eq!(fs::read(folder.join("tue/a")).unwrap(), b"one");
    assert_eq!(fs::read(folder.join("tue/b")).unwrap(), b"two");
}

#[test]
fn no_symlink_in_a_snapshot_is_followed() {
    needs!(under_test());
    let folder = snapshot();
    fs::rename(folder.join("mon/sub"), folder.join("elsewhere")).unwrap();
    symlink("../elsewhere", folder.join("mon/sub")).unwrap();
    copy(&folder, &["--link-dest", "mon", "src", "tue"]).exits(0);
    assert_ne!(inode(&folder, "tue/sub/same"), inode(&folder, "elsewhere/same"));
    assert_eq!(fs::read(folder.join("tue/sub/same")).unwrap(), b"sub/same");
}

#[test]
fn a_snapshot_that_cannot_serve_is_said_before_anything_is_copied() {
    needs!(under_test());
    let folder = snapshot();
    fs::create_dir_all(folder.join("there/old")).unwrap();
    for option in ["--link-dest", "--reflink-dest"] {
        let refused = |directory: &str, target: &str, words: &[&str]| {
            copy(&folder, &[option, directory, "src", target]).complains(1, words);
        };
        refused("gone", "new", &[option, "gone", "No such file"]);
        refused("src/same", "new", &[option, "src/same", "Not a directory"]);
        refused("mon", "mon", &["the target itself"]);
        refused("old", "there", &["there/old", "rsync"]);
        if let Ok(other) = Mounted::new(Kind::Tmpfs(1 << 20)) {
            refused(other.path().to_str().unwrap(), "new", &["another filesystem"]);
            other.finish();
        }
    }
    assert!(!folder.join("new").exists());
}

#[test]
fn extents_of_a_snapshot_are_shared_where_that_can_be_had() {
    needs!(under_test());
    for kind in [Kind::Xfs, Kind::Btrfs, Kind::Ext4] {
        let mounted = needs!(Mounted::new(kind));
        // Elsewhere, so that the source gives no extents.
        let source = Folder::new();
        fs::create_dir(source.join("src")).unwrap();
        for (index, name) in ["same", "mode", "time"].into_iter().enumerate() {
            fs::write(source.join("src").join(name), random_bytes(300_000, index as u64)).unwrap();
            set_time(&source.join("src").join(name), 1000);
        }
        let folder = Folder::inside(&mounted.path());
        let from = source.join("src");
        let from = from.to_str().unwrap();
        copy(&folder, &[from, "mon"]).exits(0);
        set_time(&source.join("src/time"), 2000);
        fs::set_permissions(source.join("src/mode"), Permissions::from_mode(0o600)).unwrap();
        let before = state(&folder.join("mon"));
        let words = ["--format=json", "--reflink-dest", "mon", "--verify", from, "tue"];
        let ran = copy(&folder, &words);
        let audit = ran.exits(0).result()["audit"].clone();
        assert_eq!(audit["verified"], true, "{ran}");
        let methods = &audit["files_by_method"];
        if kind == Kind::Ext4 {
            assert_eq!(methods["sync"], 3, "{ran}");
            assert_eq!(ran.complaints().len(), 1, "{ran}");
            ran.says(&["--reflink-dest", "cannot be shared"]);
        } else {
            assert_eq!((&methods["reflink"], &methods["sync"]), (&2.into(), &1.into()), "{ran}");
            assert_eq!(ran.stderr, "");
        }
        assert_eq!(state(&folder.join("mon")), before);
        assert_ne!(inode(&folder, "tue/same"), inode(&folder, "mon/same"));
        is_copy(&source.join("src"), &folder.join("tue"));
        drop(folder);
        mounted.finish();
    }
}

/// What was renamed since is found by size and time, and its bytes are compared.
#[test]
fn a_renamed_file_is_found_and_one_with_other_bytes_is_not() {
    needs!(under_test());
    let folder = Folder::new();
    let bytes = |seed| random_bytes(40_000, seed);
    for (index, name) in ["a", "sub/b", "mode", "linked", "small"].into_iter().enumerate() {
        let path = folder.join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = bytes(index as u64);
        fs::write(&path, &bytes[..if name == "small" { 10 } else { bytes.len() }]).unwrap();
        set_time(&path, 1000);
    }
    fs::hard_link(folder.join("src/linked"), folder.join("src/linked too")).unwrap();
    copy(&folder, &["src", "mon"]).exits(0);
    let before = state(&folder.join("mon"));
    let rename = |from: &str, to: &str| {
        fs::rename(folder.join("src").join(from), folder.join("src").join(to)).unwrap();
    };
    // All have one size and one time.
    rename("a", "sub/odd\nname");
    rename("sub", "elsewhere");
    rename("mode", "other mode");
    rename("linked", "one");
    rename("linked too", "two");
    rename("small", "little");
    let path = folder.join("src/other mode");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.join("src/new"), bytes(9)).unwrap();
    set_time(&folder.join("src/new"), 1000);
    // A symlink in the snapshot leads nowhere else.
    symlink("/etc", folder.join("mon/link")).unwrap();
    for words in [&["--threads=1"][..], &["--threads=8", "--checksum"]] {
        copy(&folder, &[words, &["--link-dest", "mon", "src", "tue"]].concat()).exits(0);
        is_copy(&folder.join("src"), &folder.join("tue"));
        let is_same = |old: &str, new: &str| {
            inode(&folder, &format!("mon/{old}")) == inode(&folder, &format!("tue/{new}"))
        };
        for (old, new, expected) in [
            ("a", "elsewhere/odd\nname", true),
            ("sub/b", "elsewhere/b", true),
            ("linked", "one", true),
            ("linked", "two", true),
            ("mode", "other mode", false),
            ("small", "little", false),
            ("a", "new", false),
        ] {
            assert_eq!(is_same(old, new), expected, "{words:?} {old} {new}");
        }
        fs::remove_dir_all(folder.join("tue")).unwrap();
    }
    fs::remove_file(folder.join("mon/link")).unwrap();
    assert_eq!(state(&folder.join("mon")), before);
}

/// Bytes, size and time of two files are the same: they stay two files.
#[test]
fn files_that_are_alike_do_not_become_one_file_of_the_snapshot() {
    needs!(under_test());
    let folder = Folder::new();
    let bytes = random_bytes(50_000, 1);
    let write = |name: &str| {
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src").join(name), &bytes).unwrap();
        set_time(&folder.join("src").join(name), 1000);
    };
    write("m");
    copy(&folder, &["src", "mon"]).exits(0);
    for name in ["a", "b", "y", "z"] {
        write(name);
    }
    copy(&folder, &["--link-dest", "mon", "src", "tue"]).exits(0);
    let mut inodes: Vec<u64> =
        ["a", "b", "m", "y", "z"].map(|name| inode(&folder, &format!("tue/{name}"))).to_vec();
    assert!(inodes.contains(&inode(&folder, "mon/m")));
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), 5);
    assert_eq!(fs::metadata(folder.join("mon/m")).unwrap().nlink(), 2);
    is_copy(&folder.join("src"), &folder.join("tue"));
}

#[test]
fn extents_of_a_renamed_file_are_shared() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Btrfs));
    let source = Folder::new();
    fs::create_dir(source.join("src")).unwrap();
    fs::write(source.join("src/old"), random_bytes(300_000, 1)).unwrap();
    let folder = Folder::inside(&mounted.path());
    let from = source.join("src");
    let from = from.to_str().unwrap();
    copy(&folder, &[from, "mon"]).exits(0);
    fs::rename(source.join("src/old"), source.join("src/new")).unwrap();
    let ran = copy(&folder, &["--format=json", "--reflink-dest", "mon", from, "tue"]);
    let methods = &ran.exits(0).result()["audit"]["files_by_method"];
    assert_eq!(methods["reflink"], 1, "{ran}");
    is_copy(&source.join("src"), &folder.join("tue"));
    drop(folder);
    mounted.finish();
}

/// Where it lies in the target, under a name of the source or by a mount that the way up does not show.
#[test]
fn a_snapshot_in_the_target_is_not_written_and_not_deleted() {
    needs!(under_test());
    let folder = Folder::new();
    for (name, text) in [("src/a", "new"), ("src/mon/b", "new"), ("dst/mon/b", "snapshot")] {
        write(&folder.join(name), text, 1000);
    }
    let before = state(&folder.join("dst/mon"));
    let ran = copy(&folder, &["--link-dest", "dst/mon", "-T", "src", "dst"]);
    ran.complains(1, &["dst/mon", "it is a snapshot"]);
    assert_eq!(fs::read(folder.join("dst/a")).unwrap(), b"new");
    assert_eq!(state(&folder.join("dst/mon")), before);
    let shown = needs!(Mounted::shown_again(&folder.join("dst/mon")));
    fs::remove_dir_all(folder.join("src/mon")).unwrap();
    fs::set_permissions(folder.join("dst/mon"), Permissions::from_mode(0o555)).unwrap();
    let snapshot = shown.path();
    let words = ["--delete", "--link-dest", snapshot.to_str().unwrap(), "-T", "src", "dst"];
    let ran = copy(&folder, &words);
    assert!(ran.exits(1).stderr.contains("it is a snapshot"), "{ran}");
    shown.finish();
    assert_eq!(state(&folder.join("dst/mon")), before);
    assert_eq!(fs::metadata(folder.join("dst/mon")).unwrap().mode() & 0o7777, 0o555);
    fs::set_permissions(folder.join("dst/mon"), Permissions::from_mode(0o755)).unwrap();
}

/// Also where links are not kept, and no new file can take the place of the old one.
#[test]
fn what_a_snapshot_has_is_never_written_in_place() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    write(&folder.join("mon/f"), "snapshot", 1000);
    write(&folder.join("src/f"), "new", 2000);
    fs::create_dir(folder.join("tue")).unwrap();
    fs::hard_link(folder.join("mon/f"), folder.join("tue/f")).unwrap();
    fs::set_permissions(folder.join("mon/f"), Permissions::from_mode(0o666)).unwrap();
    let words = "copy --no-preserve=links --link-dest mon src/. tue";
    let ran = as_nobody(&folder, words).run();
    assert!(ran.exits(1).stderr.contains("cannot replace \"tue/./f\": Permission denied"), "{ran}");
    assert_eq!(fs::read(folder.join("mon/f")).unwrap(), b"snapshot");
}
