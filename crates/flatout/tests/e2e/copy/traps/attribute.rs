//! Attributes that one step of a copy can undo for another.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{CWD, FileType, IFlags, Mode, ioctl_getflags, ioctl_setflags, mknodat};

use super::super::copier::{copy, under_test};
use super::super::entry::{chmod, date, set};
use super::super::forest::{Acl, acl, capability};
use super::super::oracle::{Aspect, Leeway, Portrait, assert_same};
use super::{copies_whole, pair};
use crate::bin::Folder;
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, MountPoint, Mounted, needs_program, needs_root};
use crate::skip::needs;

const READ: Leeway = Leeway::but(&[Aspect::Accessed]);

/// Whoever changes the owner after the mode loses these bits; whoever writes, too.
#[test]
fn set_id_bits_survive_a_change_of_owner() {
    needs!(needs_root("changes owners"));
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    for (name, mode) in [("user", 0o4755), ("group", 0o2755), ("both", 0o6711), ("all", 0o7777)] {
        fs::write(tree.join(name), "#!").unwrap();
        chown(tree.join(name), Some(1234), Some(4321)).unwrap();
        chmod(&tree.join(name), mode);
        fs::create_dir(tree.join(format!("dir-{name}"))).unwrap();
        chown(tree.join(format!("dir-{name}")), Some(1234), Some(4321)).unwrap();
        chmod(&tree.join(format!("dir-{name}")), mode);
    }
    copies_whole(&[], &tree, &target);
    // Over files of somebody else that have none of it.
    for options in [&["-T", "--always"][..], &["-T", "--always", "--in-place"], &["-T"]] {
        for name in ["user", "group", "both", "all"] {
            chown(target.join(name), Some(7), Some(8)).unwrap();
            chmod(&target.join(name), 0o600);
        }
        let before = Portrait::of(&tree);
        let ran = copy(options, &tree, &target);
        ran.exits(0);
        assert_same(&before, &Portrait::of(&target), READ, &ran);
    }
}

/// Capabilities are lost by a change of owner and by writing.
#[test]
fn capabilities_survive_the_other_steps() {
    needs!(needs_root("gives capabilities"));
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("ping"), "program").unwrap();
    chown(tree.join("ping"), Some(1234), Some(4321)).unwrap();
    chmod(&tree.join("ping"), 0o755);
    set(&tree.join("ping"), "security.capability", &capability(1 << 13));
    copies_whole(&[], &tree, &target);
    for options in [&["-T", "--always"][..], &["-T", "--always", "--in-place"]] {
        fs::write(target.join("ping"), "another").unwrap();
        let before = Portrait::of(&tree);
        let ran = copy(options, &tree, &target);
        assert_same(&before, &Portrait::of(&target), READ, ran.exits(0));
    }
}

#[test]
fn sticky_bits_are_kept_and_files_in_sticky_directories_replaced() {
    needs!(needs_root("changes owners"));
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "of somebody").unwrap();
    chown(tree.join("file"), Some(1234), Some(1234)).unwrap();
    chmod(&tree, 0o1777);
    copies_whole(&[], &tree, &target);
    // The kernel refuses root to open another's file there with O_CREAT (fs.protected_regular).
    for options in [&["-T", "--always"][..], &["-T", "--always", "--in-place"]] {
        let before = Portrait::of(&tree);
        let ran = copy(options, &tree, &target);
        assert_same(&before, &Portrait::of(&target), READ, ran.exits(0));
    }
}

#[test]
fn an_immutable_source_is_copied_and_an_immutable_target_is_named() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let (tree, target) = (mounted.path().join("tree"), mounted.path().join("copy"));
    fs::create_dir(&tree).unwrap();
    for name in ["a", "fixed", "z"] {
        fs::write(tree.join(name), name).unwrap();
    }
    let flags = |path: &Path, flags: IFlags| {
        ioctl_setflags(File::open(path).unwrap(), flags).unwrap();
    };
    let ordinary = ioctl_getflags(File::open(tree.join("fixed")).unwrap()).unwrap();
    flags(&tree.join("fixed"), ordinary | IFlags::IMMUTABLE);
    let before = Portrait::of(&tree);
    let ran = copy::<&str>(&[], &tree, &target);
    assert_same(&before, &Portrait::of(&target), Leeway::NONE, ran.exits(0));
    flags(&tree.join("fixed"), ordinary);
    flags(&target.join("fixed"), ordinary | IFlags::IMMUTABLE);
    fs::write(tree.join("fixed"), "changed").unwrap();
    fs::write(tree.join("z"), "changed").unwrap();
    for options in [&["-T"][..], &["-T", "--in-place"]] {
        let ran = copy(options, &tree, &target);
        ran.exits(1);
        assert!(ran.stderr.contains("fixed"), "{ran}");
        assert_eq!(fs::read(target.join("fixed")).unwrap(), b"fixed");
        assert_eq!(fs::read(target.join("z")).unwrap(), b"changed", "one does not stop the rest");
        super::assert_no_litter(&tree, &target);
    }
    flags(&target.join("fixed"), ordinary);
    mounted.finish();
}

/// What a directory hands down to new files would open them to others.
#[test]
fn default_lists_of_the_target_hand_nothing_down() {
    let folder = Folder::new();
    let (tree, place) = pair(&folder);
    fs::create_dir_all(tree.join("sub/sub")).unwrap();
    fs::write(tree.join("secret"), "s").unwrap();
    fs::write(tree.join("sub/secret"), "s").unwrap();
    chmod(&tree.join("secret"), 0o600);
    chmod(&tree.join("sub"), 0o700);
    mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::create_dir(&place).unwrap();
    set(&place, Acl::Default.attribute(), &acl([7, 7, 7, 7, 7, 7]));
    copies_whole(&[], &tree, &place.join("copy"));
    copies_whole(&["--atomic"], &tree, &place.join("whole"));
}

/// A list on what is there already goes when the source has none.
#[test]
fn lists_of_what_was_there_go() {
    needs!(under_test());
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    for place in [&tree, &target] {
        fs::create_dir_all(place.join("sub")).unwrap();
        fs::write(place.join("file"), "same").unwrap();
        date(&place.join("file"), 1_000_000_000, 5);
    }
    set(&target.join("file"), Acl::Access.attribute(), &acl([6, 6, 6, 6, 6, 6]));
    set(&target.join("sub"), Acl::Access.attribute(), &acl([7, 7, 7, 7, 7, 7]));
    set(&target.join("sub"), Acl::Default.attribute(), &acl([7, 7, 7, 7, 7, 7]));
    chmod(&tree.join("file"), 0o640);
    let before = Portrait::of(&tree);
    let ran = copy(&["-T"], &tree, &target);
    assert_same(&before, &Portrait::of(&target), READ, ran.exits(0));
}

#[test]
fn directories_keep_their_times_after_all_that_is_made_in_them() {
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    for index in 0..200 {
        fs::create_dir_all(tree.join(format!("{}/{index}", index % 7))).unwrap();
        fs::write(tree.join(format!("{}/{index}/file", index % 7)), "x").unwrap();
        date(&tree.join(format!("{}/{index}", index % 7)), 1000 + index, 7);
    }
    (0..7).for_each(|index| date(&tree.join(index.to_string()), -index, 999_999_999));
    date(&tree, 5_000_000_000, 1);
    copies_whole(&[], &tree, &target);
    copies_whole(&["--threads", "8"], &tree, &folder.join("threads"));
}

/// Read-only directories can be filled; who may not write in them is not root.
#[test]
fn read_only_directories_are_filled() {
    let folder = Folder::new();
    let (tree, target) = pair(&folder);
    fs::create_dir_all(tree.join("closed/inner")).unwrap();
    fs::write(tree.join("closed/file"), "x").unwrap();
    fs::write(tree.join("closed/inner/file"), "x").unwrap();
    for name in ["closed/inner/file", "closed/file"] {
        chmod(&tree.join(name), 0o400);
    }
    let directories = ["closed/inner", "closed"];
    directories.iter().for_each(|name| chmod(&tree.join(name), 0o555));
    copies_whole(&[], &tree, &target);
    for place in [&tree, &target] {
        directories.iter().rev().for_each(|name| chmod(&place.join(name), 0o755));
    }
}

/// A filesystem that keeps seconds only, and none after 2038.
#[test]
fn a_target_with_a_coarse_clock_gets_what_it_can_keep() {
    needs!(under_test());
    let point = needs!(MountPoint::with_coarse_times());
    let folder = Folder::new();
    let (tree, target) = (folder.join("tree"), point.path().join("copy"));
    fs::create_dir(&tree).unwrap();
    let times = [("a", 1_700_000_000, 123), ("b", -5, 999_999_999), ("c", 5_000_000_000, 1)];
    for (name, seconds, nanoseconds) in times {
        fs::write(tree.join(name), name).unwrap();
        date(&tree.join(name), seconds, nanoseconds);
    }
    for options in [&[][..], &["-T"], &["-T", "--checksum"]] {
        let before = Portrait::of(&tree);
        let ran = copy(options, &tree, &target);
        let after = Portrait::of(&target);
        let coarse = Leeway::but(&[Aspect::Accessed, Aspect::Modified]);
        assert_same(&before, &after, coarse, ran.exits(0));
        assert_eq!(after.entry("a").modified, (1_700_000_000, 0));
        assert_eq!(after.entry("b").modified, (-5, 0));
    }
    // A plan knows them, too; what is clamped never has its time.
    let ran = copy(&["-T", "--quick-check", "--dry-run"], &tree, &target);
    assert!(ran.exits(0).stdout.contains("2 unchanged"), "{ran}");
    // What has its time as well as it can have it is not older; without that time it may be.
    let into = point.path().join("copy");
    let into = into.to_str().unwrap();
    for (words, stays) in
        [(&["copy", "-u"][..], true), (&["cp", "-au"], true), (&["cp", "-r", "-u"], false)]
    {
        for (name, seconds, _) in &times[..2] {
            fs::write(target.join(name), "edited").unwrap();
            date(&target.join(name), *seconds, 0);
        }
        folder.flatout([words, &["tree/.", into]].concat()).run().exits(0);
        for name in ["a", "b"] {
            let text = fs::read_to_string(target.join(name)).unwrap();
            assert_eq!(text, if stays { "edited" } else { name }, "{words:?}");
        }
    }
    point.finish();
}

/// The list gives a directory permissions, and the one above gets its set-group-ID bit: the mark of what is
/// unfinished must be known again, or not be there, when the copy ends between.
#[test]
fn a_directory_whose_attributes_failed_is_completed_by_a_rerun() {
    needs!(under_test());
    needs!(needs_program("strace"));
    for (list, above) in [(true, 0o755), (false, 0o2755), (true, 0o2755)] {
        let folder = Folder::new();
        let (tree, target) = pair(&folder);
        fs::create_dir_all(tree.join("below")).unwrap();
        if list {
            set(&tree.join("below"), "system.posix_acl_access", &acl([7, 7, 5, 7, 7, 5]));
        }
        chmod(&tree, above);
        let before = Portrait::of(&tree);
        let path = target.join("below");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", path.to_str().unwrap()];
        let wrapper = [&wrapper[..], &["-e", "inject=utimensat:error=EIO"]].concat();
        let words = ["copy", "-T", tree.to_str().unwrap(), target.to_str().unwrap()];
        let failed = folder.under(&wrapper, &words).leaves("copy").run();
        assert!(failed.exits(1).stderr.contains("below"), "{failed}");
        let ran = copy(&["-T"], &tree, &target);
        assert_same(&before, &Portrait::of(&target), READ, ran.exits(0));
    }
}

#[test]
fn nothing_incomplete_appears_where_files_appear_as_a_whole() {
    needs!(under_test());
    needs!(needs_program("strace"));
    for call in ["utimensat", "fchmod"] {
        let folder = Folder::new();
        for name in ["new", "old", "there/old"] {
            fs::create_dir_all(folder.join("there")).unwrap();
            fs::write(folder.join(name), name).unwrap();
        }
        let inject = format!("inject={call}:error=EIO");
        let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let words = ["copy", "--atomic", "--threads=1", "new", "old", "there"];
        let ran = folder.under(&wrapper, &words).run();
        assert_eq!(ran.exits(1).complaints().len(), 2, "{ran}");
        assert_eq!(Folder::names_in(&folder.join("there")).len(), 1, "{ran}");
        assert_eq!(fs::read_to_string(folder.join("there/old")).unwrap(), "there/old", "{ran}");
    }
}

/// Some do so where they keep no permissions.
#[test]
fn lists_that_a_server_accepts_and_forgets_are_no_success() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(Faults { forgets_attributes: true, ..Faults::default() }));
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    let list = acl([6, 6, 0, 6, 6, 0]);
    for name in ["a", "b"] {
        fs::write(tree.join(name), "x").unwrap();
        set(&tree.join(name), "system.posix_acl_access", &list);
    }
    let target = faulty.path().join("copy");
    let ran = copy(&["-T", "--format=json"], &tree, &target);
    let said = ran.exits(1).stderr.lines();
    let said: Vec<_> = said.filter(|line| line.contains("access control lists")).collect();
    assert!(said.len() == 2 && said[1].ends_with("lists: 2 entries in all"), "{ran}");
    assert!(ran.stdout.contains("\"incomplete\": 2"), "{ran}");
    for name in ["a", "b"] {
        let mode = fs::metadata(target.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the group had nothing");
    }
    faulty.finish();
}

#[test]
fn attributes_that_a_server_accepts_and_forgets_are_said() {
    let faulty = needs!(Faulty::new(Faults { forgets_attributes: true, ..Faults::default() }));
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    set(&tree.join("file"), "user.empty", b"");
    set(&tree.join("file"), "security.capability", &capability(1));
    let ran = copy(&["-T"], &tree, &faulty.path().join("copy"));
    for word in ["file capabilities (first", "attributes (user.*) (first"] {
        assert!(ran.exits(0).stderr.contains(word), "{ran}");
    }
    faulty.finish();
}

#[test]
fn what_a_symlink_leads_to_keeps_its_times_where_a_server_follows_it() {
    let faulty = needs!(Faulty::new(Faults { follows: true, ..Faults::default() }));
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    for (link, text) in [("dangling", "nowhere"), ("link", "file")] {
        std::os::unix::fs::symlink(text, tree.join(link)).unwrap();
    }
    for times in ["times (first", "times: 2 entries in all"] {
        let ran = copy(&["-T"], &tree, faulty.path());
        assert!(ran.exits(1).stderr.contains(times), "{ran}");
        let mode = fs::metadata(faulty.path().join("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{ran}");
    }
    assert_eq!(faulty.names(), ["dangling", "file", "link"]);
    faulty.finish();
}

/// NFSv4 makes one of each mode.
#[test]
fn a_list_that_a_server_shows_of_each_file_is_no_failure() {
    let faulty = needs!(Faulty::new(Faults { has_lists: true, ..Faults::default() }));
    let folder = Folder::new();
    let (tree, _) = pair(&folder);
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("sub/file"), "x").unwrap();
    mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let target = faulty.path().join("copy");
    for words in [&["-T"][..], &["-T"], &["-T", "--quick-check", "--delete"], &["-Tu"]] {
        let ran = copy(words, &tree, &target);
        ran.exits(0);
        assert!(!ran.stderr.contains("list of"), "{ran}");
        let mode = fs::symlink_metadata(target.join("fifo")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o400, "{ran}");
    }
    faulty.finish();
}
