//! Flags of chattr(1) and project ids, where they are asked for.

mod locks;

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flatout_sys::attribute_at::{ExtentHints, Owned};
use rustix::fs::{CWD, IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;

use super::copier::under_test;
use crate::bin::{Folder, Ran};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::input::as_nobody;
use crate::skip::needs;

const NODUMP: u32 = 0x40;
const NOATIME: u32 = 0x80;
const SYNC: u32 = 0x8;
const IMMUTABLE: u32 = 0x10;
const APPEND: u32 = 0x20;
const NOCOW: u32 = 0x80_0000;
const DIRSYNC: u32 = 0x1_0000;
const ASKED: u32 = NODUMP | NOATIME | SYNC | IMMUTABLE | APPEND | NOCOW | DIRSYNC;

fn flags(path: &Path) -> u32 {
    ioctl_getflags(File::open(path).unwrap()).unwrap().bits() & ASKED
}

fn set(path: &Path, flags: u32) {
    let file = File::open(path).unwrap();
    let others = ioctl_getflags(&file).unwrap().bits() & !ASKED;
    ioctl_setflags(&file, IFlags::from_bits_retain(others | flags)).unwrap();
}

/// Whatever is locked may go.
fn unlock(path: &Path) {
    set(path, 0);
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let facts = fs::symlink_metadata(&path).unwrap();
        match facts.is_dir() {
            true => unlock(&path),
            false if facts.is_file() => set(&path, 0),
            false => {}
        }
    }
}

impl Ran {
    /// Fails unless it lost something of several entries, said in these words.
    #[track_caller]
    fn complains_of(&self, words: &[&str]) {
        let lines = self.exits(0).complaints().join("\n");
        let is_said = words.iter().all(|word| lines.contains(word));
        assert!(
            is_said && lines.contains("(first: ") && lines.contains(" entries in all"),
            "{self}"
        );
        assert_eq!(lines.lines().count(), 2, "{self}");
    }
}

fn copy(words: &[&str], source: &Path, target: &Path) -> Ran {
    let folder = Folder::new();
    let paths = ["-T".as_ref(), source.as_os_str(), target.as_os_str()];
    folder.flatout(["copy"].iter().chain(words).map(AsRef::as_ref).chain(paths)).run()
}

const KEPT: &str = "--preserve=all,flags";

/// Names, their flags, and whether they are directories. What is locked comes last.
fn wanted(kind: Kind) -> Vec<(&'static str, u32)> {
    let own = match kind {
        Kind::Btrfs => [("nocow", NOCOW), ("nocow directory/", NOCOW)],
        Kind::Ext4 => [("synchronous", SYNC), ("dirsync/", DIRSYNC | NODUMP)],
        _ => [("nodump too", NODUMP), ("noatime directory/", NOATIME)],
    };
    let common = [
        ("plain", 0),
        ("nodump", NODUMP),
        ("both", NODUMP | NOATIME),
        ("append", APPEND),
        ("immutable", IMMUTABLE | NODUMP),
        ("empty immutable", IMMUTABLE),
        ("locked/file", 0),
        ("locked/sub/immutable", IMMUTABLE),
        ("locked/sub/", APPEND),
        ("locked/", IMMUTABLE),
    ];
    own.into_iter().chain(common).collect()
}

fn plant(source: &Path, kind: Kind) -> Vec<(&'static str, u32)> {
    fs::create_dir(source).unwrap();
    let wanted = wanted(kind);
    for (name, flags) in &wanted {
        let path = source.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(&path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = File::create(&path).unwrap();
            if *flags == NOCOW {
                ioctl_setflags(&file, IFlags::NOCOW).unwrap();
            }
            fs::write(&path, if name.starts_with("empty") { "" } else { name }).unwrap();
        }
    }
    fs::hard_link(source.join("immutable"), source.join("further name")).unwrap();
    fs::hard_link(source.join("immutable"), source.join("another one")).unwrap();
    for (name, flags) in &wanted {
        set(&source.join(name), *flags);
    }
    wanted
}

#[track_caller]
fn has_flags(target: &Path, wanted: &[(&str, u32)], context: &str) {
    for (name, expected) in wanted {
        assert_eq!(flags(&target.join(name)), *expected, "{name}: {context}");
        if !name.ends_with('/') && !name.starts_with("empty") {
            assert_eq!(fs::read(target.join(name)).unwrap(), name.as_bytes(), "{context}");
        }
    }
    let inode = |name: &str| fs::metadata(target.join(name)).unwrap().ino();
    assert_eq!(inode("immutable"), inode("further name"), "{context}");
    assert_eq!(inode("immutable"), inode("another one"), "{context}");
}

#[test]
fn flags_are_kept_and_a_rerun_does_not_fail_for_them() {
    needs!(under_test());
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(16 << 20)] {
        let mounted = needs!(Mounted::new(kind));
        if ioctl_getflags(File::open(mounted.path()).unwrap()).is_err() {
            // tmpfs has flags since Linux 6.0.
            assert!(matches!(kind, Kind::Tmpfs(_)), "{kind:?}");
            continue;
        }
        let (source, target) = (mounted.path().join("source"), mounted.path().join("target"));
        let wanted = plant(&source, kind);
        for words in [
            &[KEPT][..],
            &[KEPT],
            &[KEPT, "--always"],
            &[KEPT, "--quick-check"],
            &[KEPT, "--checksum"],
            &[KEPT, "--in-place"],
            &[KEPT, "--atomic", "--always", "--threads=4"],
        ] {
            let context = format!("{kind:?} {words:?}");
            let ran = copy(words, &source, &target);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{context}{ran}");
            has_flags(&target, &wanted, &context);
        }
        // What was changed since.
        set(&source.join("immutable"), 0);
        fs::set_permissions(source.join("immutable"), fs::Permissions::from_mode(0o640)).unwrap();
        set(&source.join("immutable"), IMMUTABLE | NODUMP);
        set(&source.join("nodump"), 0);
        let changed: Vec<_> = wanted
            .iter()
            .map(|&(name, flags)| (name, if name == "nodump" { 0 } else { flags }))
            .collect();
        let ran = copy(&[KEPT, "--quick-check"], &source, &target);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{kind:?}{ran}");
        has_flags(&target, &changed, "changed");
        assert_eq!(fs::metadata(target.join("immutable")).unwrap().mode() & 0o777, 0o640);
        // Without the option nothing is locked, and it is said once that directories are.
        let plain = mounted.path().join("plain");
        let ran = copy(&[], &source, &plain);
        ran.complains_of(&["locked by chattr", "/locked/sub\")", "2 entries in all"]);
        assert_eq!(flags(&plain.join("locked")), 0);
        for tree in [&source, &target] {
            unlock(tree);
        }
        mounted.finish();
    }
}

/// Protection that the source has not got is somebody's will.
#[test]
fn a_locked_file_gives_way_to_a_locked_source_only_or_by_force() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Ext4));
    let (source, target) = (mounted.path().join("source"), mounted.path().join("target"));
    fs::write(&source, "new").unwrap();
    fs::write(&target, "old").unwrap();
    set(&target, IMMUTABLE);
    for words in [&[KEPT][..], &[KEPT, "--in-place"], &["--force"], &[]] {
        copy(words, &source, &target).complains(1, &["target", "not permitted"]);
        assert_eq!((fs::read(&target).unwrap(), flags(&target)), (b"old".to_vec(), IMMUTABLE));
    }
    set(&source, APPEND);
    copy(&[KEPT], &source, &target).exits(1);
    assert_eq!(flags(&target), IMMUTABLE);
    copy(&[KEPT, "--force"], &source, &target).exits(0);
    assert_eq!((fs::read(&target).unwrap(), flags(&target)), (b"new".to_vec(), APPEND));
    unlock(&mounted.path());
    mounted.finish();
}

#[test]
fn what_a_filesystem_or_a_user_cannot_have_is_said_once_and_fails_nothing() {
    needs!(under_test());
    needs!(needs_program("setpriv"));
    let (from, to) = (needs!(Mounted::new(Kind::Ext4)), needs!(Mounted::new(Kind::Ramfs)));
    let source = from.path().join("source");
    let wanted = plant(&source, Kind::Ext4);
    let ran = copy(&[KEPT], &source, &to.path().join("target"));
    ran.complains_of(&["cannot keep some of the flags"]);
    // Some of them, on another kind.
    let xfs = needs!(Mounted::new(Kind::Xfs));
    let ran = copy(&[KEPT], &source, &xfs.path().join("target"));
    assert_eq!(ran.exits(0).complaints().len(), 1, "{ran}");
    for (name, flags_) in &wanted {
        let expected = flags_ & !DIRSYNC;
        assert_eq!(flags(&xfs.path().join("target").join(name)), expected, "{name}");
    }
    unlock(&xfs.path().join("target"));
    xfs.finish();
    // Who is not root locks nothing, but keeps the others.
    let folder = Folder::inside(&from.path());
    let words = format!("copy {KEPT} ../source new");
    let run = as_nobody(&folder, &words).leaves("new");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let ran = run.run();
    ran.complains_of(&["cannot keep some of the flags"]);
    for (name, flags_) in &wanted {
        let expected = flags_ & !(IMMUTABLE | APPEND);
        assert_eq!(flags(&folder.join("new").join(name)), expected, "{name}");
    }
    unlock(&source);
    drop(folder);
    from.finish();
    to.finish();
}

/// By its descriptor, or a symlink by its name, which may be asked since Linux 6.17.
fn owned<T>(path: &Path, act: impl FnOnce(Owned<'_>) -> T) -> T {
    if let Ok(file) = rustix::fs::open(path, OFlags::NOFOLLOW, Mode::empty()) {
        return act(Owned { directory: file.as_fd(), name: c"", follows: false });
    }
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    act(Owned { directory: CWD, name: &name, follows: false })
}

#[test]
fn project_ids_are_kept_where_there_are_any() {
    needs!(under_test());
    needs!(needs_root("sets project ids"));
    let mounted = needs!(Mounted::new(Kind::Xfs));
    let source = mounted.path().join("source");
    fs::create_dir_all(source.join("sub")).unwrap();
    fs::write(source.join("file"), "text").unwrap();
    fs::write(source.join("sub/none"), "text").unwrap();
    symlink("file", source.join("symlink")).unwrap();
    let mut given = vec![("", 7), ("file", 8), ("sub", 9), ("sub/none", 0), ("symlink", 11)];
    given.retain(|&(name, project)| {
        let set = owned(&source.join(name), |file| file.set_project(project));
        assert!(set.is_ok() || (name, set) == ("symlink", Err(Errno::NOSYS)), "{name}: {set:?}");
        set.is_ok()
    });
    rustix::fs::setxattr(source.join("file"), "user.note", b"1", rustix::fs::XattrFlags::empty())
        .unwrap();
    let projects = |tree: &Path| -> Vec<_> {
        let of = |name| (name, owned(&tree.join(name), |file| file.project()).unwrap());
        given.iter().map(|&(name, _)| of(name)).collect()
    };
    let target = mounted.path().join("target");
    for words in [&["--preserve=all,project"][..], &["--preserve=all,project", "--quick-check"]] {
        let ran = copy(words, &source, &target);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
        assert_eq!(projects(&target), given);
    }
    copy(&[], &source, &mounted.path().join("plain")).exits(0);
    assert!(projects(&mounted.path().join("plain")).iter().all(|&(_, project)| project == 0));
    let other = needs!(Mounted::new(Kind::Ext4));
    let ran = copy(&["--preserve=all,project"], &source, &other.path().join("target"));
    ran.complains_of(&["cannot keep project ids", &format!("{} entries in all", given.len() - 1)]);
    other.finish();
    mounted.finish();
}

#[test]
fn extent_size_hints_are_kept_where_there_are_any() {
    needs!(under_test());
    needs!(needs_root("mounts xfs"));
    let mounted = needs!(Mounted::new(Kind::Xfs));
    let source = mounted.path().join("source");
    fs::create_dir_all(source.join("sub")).unwrap();
    let of = |path: PathBuf, act: &dyn Fn(Owned<'_>) -> rustix::io::Result<ExtentHints>| {
        let file = File::open(path).unwrap();
        act(Owned { directory: file.as_fd(), name: c"", follows: false }).unwrap()
    };
    // FS_XFLAG_EXTSZINHERIT and FS_XFLAG_EXTSIZE of linux/fs.h.
    for (name, flags, extent_bytes) in [("sub", 0x1000, 1 << 16), ("file", 0x800, 1 << 20)] {
        let hints = ExtentHints { flags, extent_bytes, cow_extent_bytes: 0 };
        if name == "file" {
            File::create(source.join(name)).unwrap();
        }
        of(source.join(name), &|owned| owned.set_extent_hints(hints).map(|()| hints));
    }
    // It gets the hints of its directory.
    for name in ["file", "sub/file", "none"] {
        fs::write(source.join(name), "text").unwrap();
    }
    let all = |tree: &str| {
        let names = ["sub", "file", "sub/file", "none"];
        names.map(|name| of(mounted.path().join(tree).join(name), &|owned| owned.extent_hints()))
    };
    assert!(!all("source")[2].are_none() && all("source")[3].are_none());
    let words = ["--preserve=all,flags", "--reflink=never"];
    for words in [&words[..1], &words[1..], &words] {
        let target = mounted.path().join("target");
        let ran = copy(words, &source, &target);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
        match words[0] {
            "--reflink=never" => assert!(all("target").iter().all(|hints| hints.are_none())),
            _ => assert_eq!(all("target"), all("source"), "{words:?}"),
        }
        fs::remove_dir_all(target).unwrap();
    }
    let other = needs!(Mounted::new(Kind::Ext4));
    let ran = copy(&["--preserve=all,flags"], &source, &other.path().join("target"));
    ran.complains_of(&["cannot keep some of the flags", "3 entries in all"]);
    other.finish();
    mounted.finish();
}

/// A filesystem that has none says so; what a broken one has is not known.
#[test]
fn flags_that_cannot_be_read_are_a_failure_and_a_filesystem_without_any_is_none() {
    needs!(under_test());
    let faulty = needs!(Faulty::new(Faults::default()));
    faulty.put("file", b"text");
    let folder = Folder::new();
    for (ioctl, words, code) in [
        (None, "--preserve=all,flags", 0),
        (Some(fuser::Errno::EIO), "--preserve=all,flags", 1),
        (Some(fuser::Errno::EIO), "--preserve=all,project", 1),
        (Some(fuser::Errno::EIO), "--preserve=all", 0),
    ] {
        faulty.change(|faults| faults.ioctl = ioctl);
        let ran = copy(&[words], faulty.path(), &folder.join("new"));
        assert_eq!(ran.code, Some(code), "{words}{ran}");
        assert_eq!(ran.stderr.contains("read the flags of"), code == 1, "{words}{ran}");
        fs::remove_dir_all(folder.join("new")).unwrap();
    }
    faulty.finish();
}
