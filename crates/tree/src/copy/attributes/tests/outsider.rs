//! Without privilege, and on filesystems that cannot: said once, and all else is right.

use std::process::Command;

use super::*;

/// statfs(2).
const XFS_MAGIC: u64 = 0x5846_5342;

#[test]
fn without_privilege_nobody_misses_the_owner_and_set_id_bits_are_dropped() {
    needs!(is_root(), "nobody else's files here");
    let folders = Folders::new();
    for name in ["a", "b", "c"] {
        set_times(&folders.source_file(name, 0o6755), 1_000_000_000, 5);
    }
    let directory = folders.source.join("directory");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o3755)).unwrap();
    set(&folders.source.join("a"), CAPABILITY, &CAPABILITY_VALUE).unwrap();
    set(&folders.source.join("b"), CAPABILITY, &CAPABILITY_VALUE).unwrap();
    let has_attributes = set(&folders.source.join("b"), c"user.x", b"x").is_ok();
    chown(&folders.target, NOBODY, NOBODY);
    as_nobody(|| {
        let attributes = folders.attributes();
        for name in ["a", "b", "c"] {
            let facts = folders.copy_with(&attributes, name).unwrap();
            assert_eq!((mode(&facts), facts.uid(), facts.mtime()), (0o755, NOBODY, 1_000_000_000));
        }
        let facts = folders.copy_directory("directory").unwrap();
        // The sticky bit takes rights away; it stays.
        assert_eq!(mode(&facts), 0o1755);
        assert_eq!(attributes.incomplete(), 0);
    });
    assert_eq!(get(&folders.target.join("b"), c"user.x").is_some(), has_attributes);
    assert_eq!(folders.heard.codes(), ["capability_not_kept"]);
}

#[test]
fn an_owner_that_root_cannot_give_is_said_once_and_counted() {
    needs!(is_root(), "nobody else's files here");
    let folders = Folders::new();
    for name in ["a", "b"] {
        folders.source_file(name, 0o4755);
    }
    chown(&folders.target, NOBODY, NOBODY);
    // Of root, and used by a thread that is not: as root is that may not give files away.
    let attributes = folders.attributes();
    as_nobody(|| {
        for name in ["a", "b"] {
            assert_eq!(mode(&folders.copy_with(&attributes, name).unwrap()), 0o755);
        }
    });
    assert_eq!(folders.heard.codes(), ["owner_not_kept", "set_id_not_kept"]);
    assert_eq!(attributes.incomplete(), 2);
}

#[test]
fn a_group_of_ours_is_kept_without_the_owner() {
    needs!(is_root(), "nobody else's files here");
    let folders = Folders::new();
    let source = folders.source_file("file", 0o644);
    chown(&source, STRANGER, STRANGER);
    chown(&folders.target, NOBODY, NOBODY);
    let attributes = folders.attributes();
    let run = || {
        rustix::thread::set_thread_groups(&[Gid::from_raw(STRANGER)]).unwrap();
        let user = Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        folders.copy_with(&attributes, "file").unwrap()
    };
    let facts = std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    assert_eq!((facts.uid(), facts.gid()), (NOBODY, STRANGER));
    assert_eq!(folders.heard.codes(), ["owner_not_kept"]);
    assert_eq!(attributes.incomplete(), 1);
}

#[test]
fn a_file_of_somebody_elses_is_a_failure_only_where_it_matters() {
    needs!(is_root(), "nobody else's files here");
    let folders = Folders::new();
    let source = folders.source_file("file", 0o644);
    let target = folders.target.join("file");
    fs::copy(&source, &target).unwrap();
    set_times(&target, 1_000_000_000, 5);
    let time = |seconds| Timespec { tv_sec: seconds, tv_nsec: 5 };
    let times = Timestamps { last_access: time(7), last_modification: time(1_000_000_000) };
    rustix::fs::utimensat(CWD, &source, &times, AtFlags::empty()).unwrap();
    as_nobody(|| assert_eq!(folders.repair(c"file"), Ok(false)));
    fs::set_permissions(&source, Permissions::from_mode(0o664)).unwrap();
    let refusal = as_nobody(|| folders.repair(c"file").unwrap_err());
    assert_eq!(refusal.cause, Cause::System(Errno::PERM));
}

#[test]
fn devices_are_refused_without_privilege() {
    let folders = Folders::new();
    if is_root() {
        chown(&folders.target, NOBODY, NOBODY);
    }
    let folder = File::open(&folders.target).unwrap();
    let facts = rustix::fs::stat("/dev/null").unwrap();
    let target = Place { directory: folder.as_fd(), name: c"null" };
    let source = Special { place: target, facts: &facts, text: None, called: target.name };
    let refusal = as_nobody(|| folders.attributes().make(&source, target).unwrap_err());
    assert_eq!(refusal.cause, Cause::System(Errno::PERM));
}

/// A filesystem that has neither attributes nor lists, until it is dropped.
struct Plain(tempfile::TempDir);

impl Plain {
    fn new() -> Option<Self> {
        let point = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "ramfs", "none"]).arg(point.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(point))
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // A program that another test starts just now holds a file of it until it is there.
        let _unread = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

#[test]
fn a_filesystem_without_attributes_is_mentioned_once_and_widens_nothing() {
    let Some(plain) = is_root().then(Plain::new).flatten() else {
        return eprintln!("skipped: no ramfs can be mounted here");
    };
    let folders = Folders::new();
    for name in ["a", "b"] {
        let source = folders.source_file(name, 0o600);
        let all_set = [
            set(&source, acl::ACCESS, &generous_list()),
            set(&source, c"user.x", b"x"),
            set(&source, c"trusted.x", b"x"),
            set(&source, CAPABILITY, &CAPABILITY_VALUE),
        ];
        needs!(all_set.iter().all(rustix::io::Result::is_ok), "no attributes here");
    }
    let directory = File::open(plain.0.path()).unwrap();
    let inheritance = Inheritance::of(directory.as_fd());
    assert!(!inheritance.has_default_acl());
    let attributes = folders.attributes();
    for name in ["a", "b"] {
        let source = File::open(folders.source.join(name)).unwrap();
        let facts = rustix::fs::fstat(&source).unwrap();
        let target = rustix::fs::openat(
            &directory,
            name,
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY,
            PRIVATE,
        );
        let target = File::from(target.unwrap());
        let made = Made::new(inheritance);
        attributes.file(source.as_fd(), target.as_fd(), &facts, made, None).unwrap();
        // The mode of the source says 0670: the mask, which was for the stranger.
        assert_eq!(mode(&target.metadata().unwrap()), 0o640);
    }
    let expected = ["acl_not_kept", "capability_not_kept", "xattr_not_kept", "xattr_not_kept"];
    assert_eq!(folders.heard.codes(), expected);
    assert_eq!(attributes.incomplete(), 2, "each lost a list, which cp fails for");
}

#[test]
fn sources_without_attributes_are_no_reason_to_speak() {
    let folders = Folders::new();
    let source = File::open("/proc/self/status").unwrap();
    let folder = File::open(&folders.target).unwrap();
    let target = File::create_new(folders.target.join("file")).unwrap();
    let facts = rustix::fs::fstat(&source).unwrap();
    let made = Made::new(Inheritance::of(folder.as_fd()));
    folders.attributes().file(source.as_fd(), target.as_fd(), &facts, made, None).unwrap();
    assert_eq!(mode(&target.metadata().unwrap()), facts.st_mode & MODE_BITS);
    assert_eq!(folders.heard.codes(), [""; 0]);
}

#[test]
fn lists_as_xfs_stores_them_are_not_carried() {
    needs!(is_root(), "only root has trusted attributes");
    let folders = Folders::new();
    let source = folders.source_file("file", 0o640);
    // Elsewhere than on xfs it is an attribute like any other.
    let stored = c"trusted.SGI_ACL_FILE";
    let filesystem = rustix::fs::statfs(&source).unwrap();
    needs!(filesystem.f_type as u64 != XFS_MAGIC, "xfs must not be lied to");
    needs!(set(&source, stored, b"as stored").is_ok(), "no trusted attributes here");
    folders.copy("file").unwrap();
    assert_eq!(get(&folders.target.join("file"), stored), None);
    assert_eq!(folders.heard.codes(), [""; 0]);
}
