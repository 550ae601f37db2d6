//! What a target cannot keep: where `cp -a` fails, the exit code says so, and the entries are
//! counted; where it is silent, nothing is said that nobody can change.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use serde_json::Value;

use super::copier::{copy, cp};
use super::entry::{chmod, date, mode};
use super::forest::{Acl, acl};
use super::likeness::{assert_alike, likeness};
use crate::bin::{Folder, Ran, executable};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, MountPoint, Mounted, needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

const NOBODY: u32 = 65_534;
const STRANGER: u32 = 4321;

fn set(path: &Path, name: &str, value: &[u8]) -> Result<(), String> {
    lsetxattr(path, name, value, XattrFlags::empty()).map_err(|error| format!("{name}: {error}"))
}

/// Lines in which a word is said.
fn count(ran: &Ran, word: &str) -> usize {
    ran.stderr.lines().filter(|line| line.contains(word)).count()
}

/// The audit of a copy that tells its figures on standard output.
fn audit(ran: &Ran) -> Value {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran}"));
    document["results"][0]["audit"].clone()
}

/// A tree with three entries that have lists, and more that have none.
fn tree_with_lists(folder: &Folder) -> Result<(), String> {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for name in ["one", "two", "plain"] {
        fs::write(tree.join(name), name).unwrap();
    }
    for name in ["one", "two"] {
        // The group may read, the mask all: the mode of the file says 0670.
        set(&tree.join(name), Acl::Access.attribute(), &acl([6, 7, 4, 4, 7, 0]))?;
    }
    set(&tree.join("sub"), Acl::Access.attribute(), &acl([7, 0, 5, 5, 5, 5]))?;
    set(&tree.join("sub"), Acl::Default.attribute(), &acl([7, 7, 7, 7, 7, 7]))
}

#[test]
fn lists_that_the_target_cannot_hold_are_no_success() {
    let mounted = needs!(Mounted::new(Kind::Ramfs));
    let folder = Folder::new();
    needs!(tree_with_lists(&folder));
    let (tree, target) = (folder.join("tree"), mounted.path().join("copy"));
    assert_eq!(cp(&tree, &mounted.path().join("by-cp")).code, Some(1));
    let ran = copy(&["--format", "json"], &tree, &target);
    ran.exits(1);
    // The first of them is named, and in the end how many there are.
    let first = |name: &str| format!("supported (first: \"{}\")", target.join(name).display());
    assert!(["one", "two", "sub"].iter().any(|name| ran.stderr.contains(&first(name))), "{ran}");
    assert_eq!(count(&ran, "cannot keep access control lists: 3 entries in all"), 1, "{ran}");
    assert_eq!((count(&ran, "access control lists"), ran.stderr.lines().count()), (2, 2), "{ran}");
    let audit = audit(&ran);
    assert_eq!((&audit["incomplete"], &audit["failed"]), (&3.into(), &0.into()), "{audit:#}");
    // Which they are is told, though what it is was said once.
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let errors = document["end"]["errors"].to_string();
    for name in ["tree/one is incomplete: acl_not_kept", "tree/two is", "tree/sub is"] {
        assert!(errors.contains(name), "{errors}");
    }
    // Nobody may do more than by the list that is lost.
    let modes = ["one", "plain", "sub"].map(|name| mode(&target.join(name)));
    assert_eq!(modes, [0o640, 0o644, 0o700]);
    let ran = copy(&["--verbose", "-T"], &tree, &target);
    ran.exits(1);
    assert!(ran.stderr.contains("3 incomplete"), "{ran}");
    // Nobody asks for lists: nothing is lost.
    let ran = copy(&["--no-preserve=mode", "-T"], &tree, &target);
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    mounted.finish();
}

/// A list with more users than an inode of ext4 and a block have room for. The mode of its file says
/// 0660, and the group may do nothing.
#[test]
fn a_list_that_is_too_large_for_the_target_widens_nothing() {
    let (from, to) = (needs!(Mounted::new(Kind::Tmpfs(1 << 20))), needs!(Mounted::new(Kind::Ext4)));
    let mut list = 2_u32.to_le_bytes().to_vec();
    let mut add = |tag: u16, permissions: u16, id: u32| {
        list.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        list.extend(id.to_le_bytes());
    };
    add(0x01, 6, u32::MAX);
    (0..900).for_each(|user| add(0x02, 6, 1000 + user));
    add(0x04, 0, u32::MAX);
    add(0x10, 6, u32::MAX);
    add(0x20, 0, u32::MAX);
    let source = from.path().join("f");
    for target in ["new", "old", "with"] {
        let target = to.path().join(target);
        fs::write(&source, "secret").unwrap();
        needs!(set(&source, Acl::Access.attribute(), &list));
        assert_eq!(mode(&source), 0o660);
        if !target.ends_with("new") {
            fs::write(&target, "old").unwrap();
        }
        if target.ends_with("with") {
            set(&target, Acl::Access.attribute(), &acl([6, 6, 0, 6, 6, 0])).unwrap();
        }
        for option in ["--no-preserve=links", "--in-place"] {
            let ran = copy(&[option], &source, &target);
            ran.complains(1, &["too large"]);
            assert_eq!((mode(&target), fs::read(&target).unwrap()), (0o600, b"secret".to_vec()));
            let mut names = [0; 64];
            let left = rustix::fs::llistxattr(&target, &mut names).unwrap();
            assert!(!String::from_utf8_lossy(&names[..left]).contains("acl"), "{ran}");
        }
    }
    from.finish();
    to.finish();
}

/// A directory that says that it is gone and is not (a server may) is not taken for listed: with
/// `--delete` all that was copied of it before would go.
#[test]
fn a_listing_that_breaks_off_is_no_end() {
    needs!(needs_program("strace"));
    let folder = Folder::new();
    for name in ["src/sub/f", "dst/sub/f"] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), name).unwrap();
    }
    for call in ["1", "1+"] {
        let inject = format!("inject=getdents64:error=ENOENT:when={call}");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
        let words = ["copy", "--threads=1", "--delete", "-T", "src", "dst"];
        let ran = folder.under(&strace, &words).run();
        assert!(ran.exits(1).stderr.contains("cannot list"), "{ran}");
        assert_eq!(fs::read(folder.join("dst/sub/f")).unwrap(), b"dst/sub/f", "{ran}");
    }
}

/// What a list says that cannot be read is not known: nobody gets what its mask has.
#[test]
fn a_list_that_cannot_be_read_widens_nothing() {
    needs!(needs_program("strace"));
    for (calls, code, expected) in [
        ("fgetxattr", 1, Some([0o600, 0o644, 0o700])),
        ("flistxattr,fgetxattr", 1, Some([0o600, 0o600, 0o700])),
        // Lists are asked for by their names.
        ("flistxattr", 0, None),
    ] {
        let folder = Folder::new();
        needs!(tree_with_lists(&folder));
        let program = executable().to_str().unwrap();
        let strace = format!("-f -qq -o /dev/null -e inject={calls}:error=EPERM");
        let line = format!("{strace} {program} copy --threads=1 -T tree copy");
        let words = line.split(' ').map(Into::into).collect();
        let ran = folder.program("strace".as_ref(), words).leaves("copy").run();
        ran.exits(code);
        let copy = folder.join("copy");
        match expected {
            Some(modes) => {
                let found = ["one", "plain", "sub"].map(|name| mode(&copy.join(name)));
                assert_eq!(found, modes, "{ran}");
            }
            None => assert_alike(&likeness(&folder.join("tree")), &likeness(&copy), ran),
        }
    }
}

#[test]
fn lists_are_no_success_on_storage_that_is_mounted_without() {
    needs!(needs_root("mounts a filesystem"));
    needs!(needs_program("mkfs.btrfs"));
    let mut point = MountPoint::new();
    let image = point.beside("image");
    File::create_new(&image).unwrap().set_len(120 << 20).unwrap();
    let made = Command::new("mkfs.btrfs").args(["-q", "-f"]).arg(&image).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    needs!(point.mount(&["-t", "btrfs", "-o", "loop,noacl", image.to_str().unwrap()]));
    let folder = Folder::new();
    needs!(tree_with_lists(&folder));
    let (tree, target) = (folder.join("tree"), point.path().join("copy"));
    assert_eq!(cp(&tree, &point.path().join("by-cp")).code, Some(1));
    let ran = copy(&["--format", "json"], &tree, &target);
    assert_eq!((ran.code, audit(&ran)["incomplete"].as_u64()), (Some(1), Some(3)), "{ran}");
    let modes = ["one", "plain", "sub"].map(|name| mode(&target.join(name)));
    assert_eq!(modes, [0o640, 0o644, 0o700]);
    point.finish();
}

/// The mask would become the permissions of the group, and nothing would be said.
#[test]
fn lists_of_a_server_that_lists_no_attributes_are_kept() {
    let unlisted = acl([6, 7, 0, 4, 4, 4]).leak();
    let faulty = needs!(Faulty::new(Faults { unlisted, ..Faults::default() }));
    faulty.put("file", b"bytes");
    let (folder, name) = (Folder::new(), Acl::Access.attribute());
    fs::write(folder.join("other"), "").unwrap();
    needs!(set(&folder.join("other"), name, unlisted));
    copy::<&str>(&[], &faulty.path().join("file"), &folder.join("copy")).exits(0);
    let mut found = [0; 64];
    let length = lgetxattr(folder.join("copy"), name, &mut found).unwrap();
    assert_eq!(&found[..length], unlisted);
    faulty.finish();
}

#[test]
fn extended_attributes_that_the_target_cannot_hold_are_said_and_no_failure() {
    let mounted = needs!(Mounted::new(Kind::Ramfs));
    let folder = Folder::new();
    let (tree, target) = (folder.join("tree"), mounted.path().join("copy"));
    fs::write(&tree, "").unwrap();
    needs!(set(&tree, "user.note", b"lost"));
    assert_eq!(cp(&tree, &mounted.path().join("by-cp")).code, Some(0));
    let ran = copy::<&str>(&[], &tree, &target);
    assert_eq!((ran.exits(0).stderr.lines().count(), count(&ran, "user.*")), (1, 1), "{ran}");
    mounted.finish();
}

/// Root of a user namespace may not give files to whom the namespace does not know.
#[test]
fn owners_that_root_of_a_namespace_cannot_give_are_no_success() {
    needs!(needs_root("changes owners"));
    needs!(needs_program("unshare"));
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["one", "two", "own"] {
        fs::write(tree.join(name), name).unwrap();
    }
    symlink("nowhere", tree.join("link")).unwrap();
    for name in ["one", "two", "link"] {
        std::os::unix::fs::lchown(tree.join(name), Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let line = |copier: &str, name: &str| {
        let words = format!("-r {copier} tree {name}");
        let words = words.split(' ').map(Into::into).collect();
        folder.program("unshare".as_ref(), words).leaves(name).run()
    };
    let by_cp = line("cp -a", "by-cp");
    if by_cp.stderr.contains("unshare") {
        needs!(Err::<(), _>(format!("no user namespaces here: {}", by_cp.stderr)));
    }
    let program = executable().to_str().unwrap();
    let ran = line(&format!("{program} copy --format json"), "copy");
    assert_eq!((by_cp.code, ran.code), (Some(1), Some(1)), "{ran}");
    assert_eq!((count(&ran, "owners"), audit(&ran)["incomplete"].as_u64()), (2, Some(3)), "{ran}");
    assert_eq!(fs::read(folder.join("copy/one")).unwrap(), b"one");
    // What is there already is looked at again, and no better.
    assert_eq!(line(&format!("{program} copy -T"), "copy").code, Some(1));
}

/// Where a mount maps owners (mount_setattr(2)) and does not know one, chown(2) answers EOVERFLOW.
#[test]
fn owners_that_a_mount_does_not_map_are_no_success_and_cost_nothing_else() {
    let faults = Faults { owner: Some(fuser::Errno::EOVERFLOW), ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["one", "two"] {
        fs::write(tree.join(name), name).unwrap();
        chmod(&tree.join(name), 0o640);
        chown(tree.join(name), Some(STRANGER), Some(STRANGER)).unwrap();
    }
    let target = faulty.path().join("copy");
    let ran = copy(&["--format=json"], &tree, &target);
    assert_eq!((ran.code, count(&ran, "owners")), (Some(1), 2), "{ran}");
    assert_eq!(audit(&ran)["incomplete"].as_u64(), Some(2), "{ran}");
    for name in ["one", "two"] {
        assert_eq!(fs::read(target.join(name)).unwrap(), name.as_bytes());
        assert_eq!(mode(&target.join(name)), 0o640);
    }
    faulty.finish();
}

#[test]
fn a_server_that_tells_nothing_of_its_filesystem_is_copied_from_and_to() {
    let faults = Faults { statfs: Some(fuser::Errno::ENOSYS), ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), "bytes").unwrap();
    for [source, target] in
        [[tree, faulty.path().join("copy")], [faulty.path().join("copy"), folder.join("back")]]
    {
        let ran = copy::<&str>(&[], &source, &target);
        assert_eq!(
            (ran.code, fs::read(target.join("file")).unwrap()),
            (Some(0), b"bytes".to_vec()),
            "{ran}"
        );
    }
    faulty.finish();
}

/// cifs and many servers accept owners and forget them: a program of somebody else must not run as
/// whoever the filesystem calls its owner.
#[test]
fn owners_that_a_filesystem_forgets_are_no_success_and_lend_no_rights() {
    let faulty = needs!(Faulty::new(Faults::default()));
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for (name, bits) in [("file", 0o640), ("program", 0o6755)] {
        fs::write(tree.join(name), name).unwrap();
        chown(tree.join(name), Some(STRANGER), Some(STRANGER)).unwrap();
        chmod(&tree.join(name), bits);
    }
    let target = faulty.path().join("copy");
    let ran = copy(&["--format=json"], &tree, &target);
    assert_eq!((ran.code, count(&ran, "owners")), (Some(1), 2), "{ran}");
    assert_eq!(audit(&ran)["incomplete"].as_u64(), Some(2), "{ran}");
    assert_eq!((mode(&target.join("file")), mode(&target.join("program"))), (0o640, 0o755));
    faulty.finish();
}

#[test]
fn permissions_and_times_that_a_filesystem_forgets_are_said_once() {
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["first", "second"] {
        fs::write(tree.join(name), name).unwrap();
        chmod(&tree.join(name), 0o640);
        date(&tree.join(name), 1_000_000_000, 0);
    }
    for forgets_modes in [false, true] {
        let faulty = needs!(Faulty::new(Faults { forgets_modes, ..Faults::default() }));
        let ran = copy(&["--format=json"], &tree, &faulty.path().join("copy"));
        let said = (count(&ran, "permissions"), count(&ran, "times"));
        assert_eq!((ran.code, said), (Some(0), (forgets_modes.into(), 1)), "{ran}");
        faulty.finish();
    }
}

#[test]
fn owners_are_no_matter_without_root() {
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for (name, bits) in [("file", 0o644), ("program", 0o6755)] {
        fs::write(tree.join(name), name).unwrap();
        chmod(&tree.join(name), bits);
    }
    chmod(&tree, 0o2755);
    let ran = as_nobody(&folder, "copy --format json tree copy").leaves("copy").run();
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    assert_eq!(audit(&ran)["incomplete"], 0);
    assert_eq!(mode(&folder.join("copy/program")), 0o755, "rights of nobody are not lent");
}

#[test]
fn times_that_the_target_clamps_are_said_once() {
    let point = needs!(MountPoint::with_coarse_times());
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir(&tree).unwrap();
    for (name, seconds) in [("early", -5), ("usual", 1_700_000_000), ("late", 5_000_000_000)] {
        fs::write(tree.join(name), name).unwrap();
        date(&tree.join(name), seconds, 0);
    }
    fs::write(tree.join("later"), "").unwrap();
    date(&tree.join("later"), 6_000_000_000, 0);
    assert_eq!(cp(&tree, &point.path().join("by-cp")).code, Some(0));
    let ran = copy::<&str>(&[], &tree, &point.path().join("copy"));
    assert_eq!((ran.exits(0).stderr.lines().count(), count(&ran, "times")), (2, 2), "{ran}");
    let times = ["early", "late"]
        .map(|name| fs::metadata(point.path().join("copy").join(name)).unwrap().mtime());
    assert_eq!(times, [-5, i64::from(i32::MAX)]);
    // Where they can be kept, nothing is said.
    let ran = copy::<&str>(&[], &tree, &folder.join("copy"));
    assert_eq!(ran.exits(0).stderr, "", "{ran}");
    point.finish();
}
