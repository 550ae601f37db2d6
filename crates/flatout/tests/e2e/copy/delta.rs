//! Files that are changed in place: only blocks that differ are written.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, ioctl_ficlone};

use super::copier::under_test;
use super::oracle::{Aspect, Leeway, Portrait, assert_same};
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::fixture::{Random, is_full, random_bytes, seed};
use crate::input::as_nobody;
use crate::skip::needs;

const BLOCK: u64 = 4096;

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn amend(source: &Path, target: &Path, words: &[&str]) -> Ran {
    let folder = Folder::new();
    let paths = ["-T".as_ref(), source.as_os_str(), target.as_os_str()];
    let words = ["copy", "--in-place", "--delta", "--format=json"].iter().chain(words);
    folder.flatout(words.map(AsRef::as_ref).chain(paths)).run()
}

fn bytes_written(ran: &Ran) -> u64 {
    ran.result()["audit"]["bytes"].as_u64().unwrap()
}

/// Extents that are shared are counted once by the filesystem.
#[test]
fn blocks_that_are_the_same_stay_shared_with_a_snapshot() {
    needs!(under_test());
    const LENGTH: u64 = 16 << 20;
    for kind in [Kind::Xfs, Kind::Btrfs] {
        let mounted = needs!(Mounted::new(kind));
        let folder = Folder::new();
        let (source, target) = (folder.join("disk"), mounted.path().join("disk"));
        fs::write(&source, random_bytes(LENGTH as usize, 1)).unwrap();
        amend(&source, &target, &[]).exits(0);
        let snapshot = mounted.path().join("snapshot");
        ioctl_ficlone(File::create(&snapshot).unwrap(), open(&target)).unwrap();
        let old = fs::read(&snapshot).unwrap();
        for block in [0, 17, 18, LENGTH / BLOCK - 1] {
            open(&source).write_all_at(&random_bytes(100, block), block * BLOCK + 7).unwrap();
        }
        let free = || {
            open(&target).sync_all().unwrap();
            rustix::fs::syncfs(open(&target)).unwrap();
            let facts = rustix::fs::statvfs(mounted.path()).unwrap();
            facts.f_bfree * facts.f_frsize
        };
        let (inode, before) = (fs::metadata(&target).unwrap().ino(), free());
        let ran = amend(&source, &target, &["--verify"]);
        assert_eq!(bytes_written(ran.exits(0)), 4 * BLOCK, "{kind:?}{ran}");
        let taken = before.saturating_sub(free());
        assert!(taken < LENGTH / 8, "{kind:?}: {taken} bytes of room were taken");
        assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap(), "{kind:?}");
        assert!(old == fs::read(&snapshot).unwrap(), "{kind:?}: the snapshot changed");
        assert_eq!(fs::metadata(&target).unwrap().ino(), inode);
        // Nothing to do.
        assert_eq!(bytes_written(amend(&source, &target, &[]).exits(0)), 0, "{kind:?}");
        mounted.finish();
    }
}

/// Random changes on both sides: bytes, holes, lengths.
fn change(file: &Path, random: &mut Random, length: u64) {
    let file = open(file);
    for _ in 0..random.below(6) {
        let place = random.below(length as usize) as u64;
        let more = 1 + random.below(100_000) as u64;
        match random.below(4) {
            0 => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let (place, more) = (place / BLOCK * BLOCK, more.next_multiple_of(BLOCK));
                fallocate(&file, flags, place, more).unwrap();
            }
            1 => file.write_all_at(&vec![0; more as usize], place).unwrap(),
            2 => file.set_len(place + more).unwrap(),
            _ => file.write_all_at(&random_bytes(more as usize, place), place).unwrap(),
        }
    }
}

#[test]
fn whatever_was_there_becomes_the_source_with_its_holes_on_any_filesystem() {
    needs!(under_test());
    let seed = seed();
    let mut random = Random::new(seed);
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs(64 << 20)] {
        let mounted = needs!(Mounted::new(kind));
        for round in 0..if is_full() { 200 } else { 12 } {
            let folder = Folder::inside(&mounted.path());
            let (source, target) = (folder.join("source"), folder.join("target"));
            // Large ones are compared by several threads.
            let most = if round % 4 == 3 { 12 << 20 } else { 1 << 20 };
            let length = 1 + random.below(most) as u64;
            for path in [&source, &target] {
                fs::write(path, random_bytes(length as usize, 1)).unwrap();
                change(path, &mut random, length);
            }
            let context = format!("FLATOUT_TEST_SEED={seed} {kind:?} round {round}");
            let limit = ["--bwlimit=1G", "--verify", "--threads=3"];
            let ran = amend(&source, &target, &limit[..random.below(3)]);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{context}{ran}");
            let leeway = Leeway::but(&[Aspect::Accessed, Aspect::Holes]);
            assert_same(&Portrait::of(&source), &Portrait::of(&target), leeway, &context);
            // What is a hole in the source is one here; what differs in nothing may have been one.
            let room = |path: &Path| fs::metadata(path).unwrap().blocks() * 512;
            if kind != Kind::Btrfs {
                assert!(room(&target) <= room(&source) + 64 * BLOCK, "{context}");
            }
        }
        mounted.finish();
    }
}

#[test]
fn other_names_and_foreign_rights_are_as_without_it() {
    needs!(under_test());
    let folder = Folder::new();
    let (source, target) = (folder.join("source"), folder.join("target"));
    fs::write(&source, "new and longer").unwrap();
    fs::write(&target, "old").unwrap();
    fs::hard_link(&target, folder.join("other")).unwrap();
    amend(&source, &target, &[]).exits(0);
    assert_eq!(fs::read(folder.join("other")).unwrap(), b"old");
    assert_eq!(fs::read(&target).unwrap(), b"new and longer");
    // Empty, and from nothing.
    fs::write(&source, "").unwrap();
    amend(&source, &target, &[]).exits(0);
    amend(&source, &folder.join("fresh"), &[]).exits(0);
    let length = |path: &Path| fs::metadata(path).unwrap().len();
    assert_eq!(length(&target) + length(&folder.join("fresh")), 0);
    // A symlink in a tree is replaced, not written through.
    for tree in ["from", "to"] {
        fs::create_dir(folder.join(tree)).unwrap();
    }
    fs::write(folder.join("from/file"), "text").unwrap();
    std::os::unix::fs::symlink("../other", folder.join("to/file")).unwrap();
    amend(&folder.join("from"), &folder.join("to"), &[]).exits(0);
    assert_eq!(fs::read(folder.join("other")).unwrap(), b"old");
    assert!(fs::symlink_metadata(folder.join("to/file")).unwrap().is_file());
}

#[test]
fn what_may_be_written_but_not_read_is_written_whole() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    let folder = Folder::new();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("new"), "the new one").unwrap();
    fs::write(folder.join("old"), "the old one, longer").unwrap();
    fs::set_permissions(folder.join("old"), Permissions::from_mode(0o222)).unwrap();
    let ran = as_nobody(&folder, "copy --in-place --delta --no-preserve=all new old").run();
    ran.exits(0);
    assert_eq!(fs::read(folder.join("old")).unwrap(), b"the new one");
}

#[test]
fn what_contradicts_a_delta_is_wrong_use() {
    needs!(under_test());
    let folder = Folder::new();
    for (words, said) in [
        (&["--delta"][..], "--in-place"),
        (&["--in-place", "--delta", "--sparse=always"], "--sparse"),
        (&["--in-place", "--delta", "--reflink"], "--reflink"),
        (&["--in-place", "--delta", "-u"], "-u"),
    ] {
        let words = [&["copy"], words, &["a", "b"]].concat();
        folder.flatout(&words).run().complains(2, &["--delta", said]);
    }
}
