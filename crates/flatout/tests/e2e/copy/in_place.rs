//! Files that cannot be replaced are written in place, as cp does, and it is said.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::copier::under_test;
use crate::bin::{Folder, Ran};
use crate::filesystem::{Kind, Mounted, needs_program, needs_root};
use crate::fixture::random_bytes;
use crate::input::as_nobody;
use crate::skip::needs;

const NOBODY: u32 = 65_534;

fn copy(folder: &Folder, source: &Path, target: &Path) -> Ran {
    folder.flatout(["copy".as_ref(), source.as_os_str(), target.as_os_str()]).run()
}

#[track_caller]
fn is_said(ran: &Ran) {
    ran.exits(0);
    assert!(ran.stderr.contains("written in place"), "{ran}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
}

/// ext4 does that for what gets its room while it is written out (`auto_da_alloc`), not for what has it
/// already, and xfs for what was cut off: a power cut would leave zeros, or nothing, where an old file was.
#[test]
fn what_takes_the_place_of_a_file_is_written_out() {
    needs!(under_test());
    needs!(needs_program("strace"));
    for (kind, bytes) in [(Kind::Ext4, 9 << 20), (Kind::Xfs, 5)] {
        let mounted = needs!(Mounted::new(kind));
        let folder = Folder::inside(&mounted.path());
        fs::write(folder.join("src"), random_bytes(bytes, 7)).unwrap();
        let writes = |words: &[&str]| {
            let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=sync_file_range"];
            folder.under(&strace, words).leaves("dst").leaves("trace").run().exits(0);
            fs::read_to_string(folder.join("trace"))
                .unwrap()
                .matches("SYNC_FILE_RANGE_WRITE")
                .count()
        };
        assert_eq!(writes(&["copy", "--reflink=never", "src", "dst"]), 0, "it is new");
        for way in [&["copy", "--always"][..], &["copy", "--always", "--in-place"], &["cp"]] {
            let words = [way, &["--reflink=never", "src", "dst"]].concat();
            assert!(writes(&words) > 0, "{bytes} {way:?}");
        }
        drop(folder);
        mounted.finish();
    }
}

/// As containers have it for /etc/hosts.
#[test]
fn a_file_that_is_mounted_is_written_in_place() {
    needs!(under_test());
    needs!(needs_root("mounts a file"));
    let folder = Folder::new();
    for name in ["behind", "shown", "new"] {
        fs::write(folder.join(name), name).unwrap();
    }
    let mount = |words: &[&str]| {
        let done = Command::new(words[0]).args(&words[1..]).current_dir(folder.path()).status();
        done.unwrap().success()
    };
    needs!(if mount(&["mount", "--bind", "behind", "shown"]) {
        Ok(())
    } else {
        Err("no mounts".to_owned())
    });
    let ran = copy(&folder, &folder.join("new"), &folder.join("shown"));
    let (shown, atomic) = (
        fs::read(folder.join("shown")).unwrap(),
        folder.flatout(["copy", "--atomic", "--always", "new", "shown"]).run(),
    );
    assert!(mount(&["umount", "shown"]));
    is_said(&ran);
    assert_eq!(
        (shown.as_slice(), fs::read(folder.join("behind")).unwrap().as_slice()),
        (&b"new"[..], &b"new"[..])
    );
    atomic.complains(1, &["replace", "busy"]);
    assert_eq!(folder.names().len(), 3, "{:?}", folder.names());
}

#[test]
fn a_file_in_a_directory_that_may_not_be_written_is_written_in_place() {
    needs!(under_test());
    needs!(needs_root("running as somebody else"));
    needs!(needs_program("setpriv"));
    // Unwritable, and sticky with a file of somebody else that anybody may write.
    for (mode, owner) in [(0o755, NOBODY), (0o1777, 1234)] {
        let folder = Folder::new();
        fs::create_dir(folder.join("d")).unwrap();
        fs::write(folder.join("new"), "new").unwrap();
        fs::write(folder.join("d/f"), "the old one").unwrap();
        chown(folder.join("d/f"), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(folder.join("d/f"), Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(folder.join("d"), Permissions::from_mode(mode)).unwrap();
        let ran = as_nobody(&folder, "copy --no-preserve=all new d/f").run();
        is_said(&ran);
        assert_eq!(fs::read(folder.join("d/f")).unwrap(), b"new", "{ran}");
        assert_eq!(Folder::names_in(&folder.join("d")).len(), 1, "{ran}");
    }
}

#[test]
fn an_append_only_directory_gets_no_temporary_file() {
    needs!(under_test());
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs] {
        let mounted = needs!(Mounted::new(kind));
        let directory = mounted.path().join("d");
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::write(directory.join("f"), "the old one").unwrap();
        std::os::unix::fs::symlink("old", directory.join("s")).unwrap();
        let folder = Folder::new();
        fs::create_dir(folder.join("tree")).unwrap();
        fs::write(folder.join("tree/f"), "new").unwrap();
        fs::write(folder.join("tree/g"), "new").unwrap();
        let lock = |is_on: bool| {
            let directory = File::open(&directory).unwrap();
            let flags = ioctl_getflags(&directory).unwrap();
            let flags = if is_on { flags | IFlags::APPEND } else { flags - IFlags::APPEND };
            ioctl_setflags(&directory, flags).unwrap();
        };
        lock(true);
        let ran = folder
            .flatout([
                "copy".as_ref(),
                "--no-preserve=timestamps,mode".as_ref(),
                "-T".as_ref(),
                folder.join("tree").as_os_str(),
                directory.as_os_str(),
            ])
            .run();
        let names = Folder::names_in(&directory);
        // A symlink cannot be written in place.
        std::os::unix::fs::symlink("new", folder.join("tree/s")).unwrap();
        let refused = copy(&folder, &folder.join("tree/s"), &directory);
        let after = Folder::names_in(&directory);
        let quick = folder
            .flatout([
                "copy".as_ref(),
                "--quick-check".as_ref(),
                folder.join("tree/f").as_os_str(),
                directory.as_os_str(),
            ])
            .run();
        let last = Folder::names_in(&directory);
        lock(false);
        is_said(&ran);
        refused.complains(1, &["replace"]);
        assert!(matches!(quick.code, Some(0 | 1)), "{quick}");
        for names in [names, after, last] {
            assert_eq!(
                names.into_iter().collect::<Vec<_>>(),
                ["f", "g", "s", "sub"],
                "{kind:?}{ran}"
            );
        }
        assert_eq!(fs::read(directory.join("f")).unwrap(), b"new");
        mounted.finish();
    }
}

/// A copy that fits once, but not beside the old one.
#[test]
fn a_file_without_room_for_a_second_one_is_written_in_place() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Tmpfs(10 << 20)));
    let folder = Folder::new();
    let target = mounted.path().join("f");
    fs::write(&target, random_bytes(7 << 20, 1)).unwrap();
    fs::write(folder.join("new"), random_bytes(8 << 20, 2)).unwrap();
    is_said(&copy(&folder, &folder.join("new"), &target));
    assert!(fs::read(&target).unwrap() == random_bytes(8 << 20, 2));
    // One that does not fit at all leaves the old one as it is.
    fs::write(folder.join("new"), random_bytes(11 << 20, 3)).unwrap();
    let ran = copy(&folder, &folder.join("new"), &target);
    ran.exits(1);
    assert!(ran.stderr.contains("No space left"), "{ran}");
    assert!(fs::read(&target).unwrap() == random_bytes(8 << 20, 2), "the old one is whole");
    // Holes of the source are holes.
    sparse(&folder.join("new"), [(0, 4), (8, 1)]);
    is_said(&copy(&folder, &folder.join("new"), &target));
    assert!(fs::read(&target).unwrap() == fs::read(folder.join("new")).unwrap());
    assert_eq!(fs::metadata(&target).unwrap().blocks(), (5 << 20) / 512);
    // Where blocks cannot be reserved, not even its time is another.
    fs::remove_file(&target).unwrap();
    sparse(&target, [(2, 5), (7, 1)]);
    let before = (fs::metadata(&target).unwrap().modified().unwrap(), fs::read(&target).unwrap());
    fs::write(folder.join("new"), random_bytes(9 << 20, 3)).unwrap();
    let ran = copy(&folder, &folder.join("new"), &target);
    assert!(ran.exits(1).stderr.contains("cannot replace"), "{ran}");
    let after = (fs::metadata(&target).unwrap().modified().unwrap(), fs::read(&target).unwrap());
    assert!(before == after);
    assert_eq!(Folder::names_in(&mounted.path()).len(), 1);
    mounted.finish();
}

/// A file with data at these places, in MiB, of these lengths, and holes between them.
fn sparse(path: &Path, data: [(u64, usize); 2]) {
    let file = File::create(path).unwrap();
    for (place, length) in data {
        file.write_all_at(&random_bytes(length << 20, place), place << 20).unwrap();
    }
}

/// A mount inside of the target that is full ends only what lies on it.
#[test]
fn a_full_mount_in_the_target_ends_only_what_lies_on_it() {
    needs!(under_test());
    let mounted = needs!(Mounted::new(Kind::Tmpfs(2 << 20)));
    let target = mounted.path().parent().unwrap().to_owned();
    let folder = Folder::new();
    let name = mounted.path().file_name().unwrap().to_owned();
    let small = folder.join("tree").join(&name);
    fs::create_dir_all(small.join("sub")).unwrap();
    for number in 0..6 {
        fs::write(small.join(format!("{number}")), random_bytes(1 << 20, number)).unwrap();
        fs::write(small.join(format!("sub/{number}")), random_bytes(1 << 20, number)).unwrap();
        for directory in ["a", "z"] {
            let directory = folder.join("tree").join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(format!("{number}")), random_bytes(1 << 20, number)).unwrap();
        }
    }
    for options in [&[][..], &["--threads=1"]] {
        // What is full comes first.
        let full = format!("tree/{}", name.to_str().unwrap());
        let operands = ["-t", target.to_str().unwrap(), &full, "tree/a", "tree/z"];
        let ran = folder.flatout([&["copy"][..], options, &operands].concat()).run();
        ran.exits(1);
        assert!(ran.stderr.contains("No space left"), "{ran}");
        for directory in ["a", "z"] {
            assert_eq!(Folder::names_in(&target.join(directory)).len(), 6, "{ran}");
            fs::remove_dir_all(target.join(directory)).unwrap();
        }
    }
    mounted.finish();
}

/// A file may be mounted, too.
#[test]
fn a_full_file_that_is_mounted_ends_nothing_else() {
    const OTHERS: usize = 200;
    needs!(under_test());
    let small = needs!(Mounted::new(Kind::Tmpfs(64 << 10)));
    let folder = Folder::new();
    for directory in ["S", "T"] {
        fs::create_dir(folder.join(directory)).unwrap();
    }
    fs::write(small.path().join("behind"), "old").unwrap();
    fs::write(folder.join("T/f"), "").unwrap();
    fs::write(folder.join("S/f"), random_bytes(1 << 20, 1)).unwrap();
    for index in 0..OTHERS {
        fs::write(folder.join(&format!("S/{index}")), "small").unwrap();
    }
    let run = |program: &str, words: &[&Path]| {
        let mut command = Command::new(program);
        assert!(command.args(words).status().unwrap().success(), "{program}");
    };
    run("mount", &[Path::new("--bind"), &small.path().join("behind"), &folder.join("T/f")]);
    let ran = folder.flatout(["copy", "--threads=1", "-T", "S", "T"]).run();
    run("umount", &[&folder.join("T/f")]);
    ran.exits(1);
    assert!(ran.stderr.contains("cannot write \"T/f\": No space left"), "{ran}");
    assert_eq!(Folder::names_in(&folder.join("T")).len(), OTHERS + 1, "{ran}");
    small.finish();
}
