//! Targets that get full, or whose files may not become longer.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use flatout_sys::launcher::{Resource, limit};

use crate::bin::{Folder, Ran};
use crate::copy::likeness::{assert_alike, differences, likeness};
use crate::filesystem::{Backing, Kind, Mounted, needs_program};
use crate::fixture::random_bytes;
use crate::skip::needs;

/// More than there is room for.
const FILES: usize = 24;
const FILE_BYTES: usize = 1 << 20;
/// What is left on a filesystem that is filled.
const ROOM_BYTES: u64 = 8 << 20;

fn plant(folder: &Folder) -> std::path::PathBuf {
    let tree = folder.join("tree");
    for index in 0..FILES {
        let directory = tree.join(format!("dir{}", index % 3));
        fs::create_dir_all(&directory).unwrap();
        let bytes = random_bytes(FILE_BYTES, index as u64);
        fs::write(directory.join(format!("file{index:02}")), bytes).unwrap();
    }
    tree
}

fn copy(folder: &Folder, options: &[&str], tree: &Path, target: &Path) -> Ran {
    let words = ["copy".as_ref(), "-T".as_ref(), tree.as_os_str(), target.as_os_str()];
    folder.flatout(words.into_iter().chain(options.iter().map(OsStr::new))).run()
}

/// Copies what does not fit, then makes room and copies on.
fn overfill(target: &Path, cause: &str, options: &[&str], make_room: impl FnOnce()) {
    let folder = Folder::new();
    let tree = plant(&folder);
    let ran = copy(&folder, options, &tree, target);
    ran.exits(1);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.iter().any(|line| line.contains(cause)), "{ran}");
    assert!(lines.last().unwrap().contains("no room left"), "{ran}");
    // A line for each thread at most that was in the middle of something.
    assert!(lines.len() <= 40 && !ran.stderr.contains("panicked"), "{ran}");
    let (wanted, found) = (likeness(&tree), likeness(target));
    for (path, what) in differences(&wanted, &found) {
        let is_directory = tree.join(&path).is_dir();
        // btrfs may refuse to set the times for want of quota and have them set all the same: then a
        // file with all its bytes stays private, and is named. The rerun must put it right.
        let name = path.to_string_lossy();
        let is_named = ran
            .stderr
            .lines()
            .any(|line| line.contains("cannot set ") && line.contains(&format!("/{name}\": ")));
        assert!(is_directory || what == "is missing" || is_named, "{path:?} {what}{ran}");
    }
    make_room();
    // btrfs has the room of a removed file only after its next transaction.
    rustix::fs::syncfs(File::open(target).unwrap()).unwrap();
    let again = copy(&folder, options, &tree, target);
    assert_alike(&wanted, &likeness(target), again.exits(0));
}

/// Fills a filesystem up to what is left for the copy.
fn fill(place: &Path) -> std::path::PathBuf {
    let ballast = place.join("ballast");
    let free = rustix::fs::statvfs(place).unwrap();
    let length = (free.f_bavail * free.f_frsize).saturating_sub(ROOM_BYTES);
    let file = File::create(&ballast).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, length).unwrap();
    file.sync_all().unwrap();
    ballast
}

fn overfill_image(kind: Kind, bytes: u64) -> Result<(), String> {
    for options in [&[][..], &["--engine", "uring"], &["--threads", "1", "--atomic"]] {
        let mounted = Mounted::on_image(kind, bytes, Backing::Cached)?;
        let ballast = fill(&mounted.path());
        let target = mounted.path().join("copy");
        overfill(&target, "No space left on device", options, || {
            fs::remove_file(&ballast).unwrap();
        });
        mounted.finish();
    }
    Ok(())
}

#[test]
fn a_full_ext4_ends_the_copy_and_a_rerun_completes_it() {
    needs!(overfill_image(Kind::Ext4, 64 << 20));
}

/// Without -T it would go into what the first run has made.
#[test]
fn who_stopped_for_want_of_room_is_told_the_command_that_goes_on() {
    fn told() -> Result<(), String> {
        let mounted = Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Cached)?;
        let (folder, ballast) = (Folder::new(), fill(&mounted.path()));
        let (tree, target) = (plant(&folder), mounted.path().join("copy"));
        let copy = |first: &[&str]| {
            let words = first.iter().map(AsRef::as_ref);
            folder.flatout(words.chain([tree.as_os_str(), target.as_os_str()])).run()
        };
        let ran = copy(&["copy"]);
        let hint = ran.exits(1).stderr.lines().last().unwrap();
        assert!(hint.contains("no room left") && hint.contains("with -T,"), "{ran}");
        fs::remove_file(&ballast).unwrap();
        let again = copy(&["copy", "-T"]);
        assert_alike(&likeness(&tree), &likeness(&target), again.exits(0));
        // A file goes into a directory the second time, too.
        fs::write(folder.join("large"), vec![1; 80 << 20]).unwrap();
        let ran = folder.flatout([OsStr::new("copy"), "large".as_ref(), target.as_os_str()]).run();
        let hint = ran.exits(1).stderr.lines().last().unwrap();
        assert!(hint.contains("no room left") && !hint.contains("-T"), "{ran}");
        mounted.finish();
        Ok(())
    }
    needs!(told());
}

#[test]
fn a_full_xfs_ends_the_copy_and_a_rerun_completes_it() {
    needs!(overfill_image(Kind::Xfs, 320 << 20));
}

#[test]
fn a_full_btrfs_ends_the_copy_and_a_rerun_completes_it() {
    needs!(overfill_image(Kind::Btrfs, 256 << 20));
}

#[test]
fn a_quota_that_is_used_up_ends_the_copy_and_a_rerun_completes_it() {
    needs!(needs_program("btrfs"));
    let mounted = needs!(Mounted::on_image(Kind::Btrfs, 512 << 20, Backing::Cached));
    let volume = mounted.path().join("volume");
    let btrfs = |words: &[&str], path: &Path| {
        let output = Command::new("btrfs").args(words).arg(path).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    };
    btrfs(&["subvolume", "create"], &volume);
    btrfs(&["quota", "enable"], &mounted.path());
    btrfs(&["qgroup", "limit", "8M"], &volume);
    overfill(&volume.join("copy"), "quota exceeded", &[], || {
        btrfs(&["qgroup", "limit", "none"], &volume);
    });
    mounted.finish();
}

/// ext4 has an inode for each 16 KiB, so there is room for bytes, but not for names.
#[test]
fn a_filesystem_without_inodes_ends_the_copy_and_leaves_whole_files() {
    const NAMES: usize = 1500;
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for index in 0..NAMES {
        fs::write(tree.join(format!("sub/{index}")), index.to_string()).unwrap();
    }
    for options in [&[][..], &["--threads", "1", "--atomic"]] {
        let mounted = needs!(Mounted::on_image(Kind::Ext4, 16 << 20, Backing::Cached));
        let total = rustix::fs::statvfs(mounted.path()).unwrap().f_ffree;
        let target = mounted.path().join("copy");
        // All but some of them are taken.
        let taken = mounted.path().join("taken");
        fs::create_dir(&taken).unwrap();
        for index in 0..total.saturating_sub(NAMES as u64 / 2) {
            File::create(taken.join(index.to_string())).unwrap();
        }
        let ran = copy(&folder, options, &tree, &target);
        ran.exits(1);
        assert!(ran.stderr.contains("No space left on device"), "{ran}");
        assert!(ran.stderr.lines().count() <= 40, "{ran}");
        for (path, what) in differences(&likeness(&tree), &likeness(&target)) {
            assert!(tree.join(&path).is_dir() || what == "is missing", "{path:?} {what}{ran}");
        }
        fs::remove_dir_all(&taken).unwrap();
        let again = copy(&folder, options, &tree, &target);
        assert_alike(&likeness(&tree), &likeness(&target), again.exits(0));
        mounted.finish();
    }
}

/// The kernel sends a signal with it that ends who does not expect it.
#[test]
fn a_file_that_may_not_become_so_long_is_named_and_the_others_are_copied() {
    let folder = Folder::new();
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    let lengths = [("a", 9), ("b-long", 3 << 20), ("sub/c", 70_000), ("sub/d-long", (1 << 20) + 1)];
    for (name, length) in lengths {
        fs::write(tree.join(name), random_bytes(length, 7)).unwrap();
    }
    for engine in ["auto", "copy-file-range", "splice", "sync", "mmap", "uring"] {
        let target = folder.join("copy");
        let words = ["copy", "-T", "--engine", engine, "tree", "copy"];
        let ran = folder
            .flatout(words)
            .leaves("copy")
            .with(|command| {
                limit(command, Resource::FileSize, 1 << 20);
            })
            .run();
        assert_eq!(ran.exits(1).complaints().len(), 2, "{ran}");
        for name in ["copy/b-long\": ", "copy/sub/d-long\": "] {
            let is_named =
                |line: &str| line.contains(name) && line.ends_with("(ulimit -f: 1048576 bytes)");
            assert!(ran.stderr.lines().any(is_named), "{name}{ran}");
        }
        for (path, what) in differences(&likeness(&tree), &likeness(&target)) {
            let is_long = path.to_str().unwrap().ends_with("-long");
            assert!(is_long && what == "is missing", "{engine}: {path:?} {what}{ran}");
        }
        fs::remove_dir_all(target).unwrap();
    }
}
