//! Kernels that lack a system call, and containers that deny one: the copy is the same.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use flatout_sys::launcher::{
    CACHESTAT, COPY_FILE_RANGE, Denied, ENOSYS, EPERM, FALLOCATE, FSTATFS, IO_URING_REGISTER,
    IO_URING_SETUP, OPENAT2, RENAMEAT2, SPLICE, STATX, UMASK, XATTRAT, deny,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::bin::Folder;
use crate::copy::entry::set;
use crate::copy::likeness::{assert_alike, likeness};
use crate::filesystem::needs_program;
use crate::fixture::{random_bytes, sparse_file};
use crate::skip::needs;

const CALLS: [std::ffi::c_long; 9] = [
    IO_URING_SETUP,
    OPENAT2,
    COPY_FILE_RANGE,
    SPLICE,
    STATX,
    FALLOCATE,
    RENAMEAT2,
    CACHESTAT,
    UMASK,
];

/// Some of everything, long enough for each method, and with an older copy of some of it.
fn plant(folder: &Folder) {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("sub/deep")).unwrap();
    for (name, length) in
        [("empty", 0), ("short", 9), ("sub/long", 9 << 20), ("sub/deep/x", 70_000)]
    {
        fs::write(tree.join(name), random_bytes(length, 5)).unwrap();
    }
    sparse_file(&tree.join("sparse"), 3 << 20);
    fs::hard_link(tree.join("short"), tree.join("sub/deep/other-name")).unwrap();
    symlink("short", tree.join("symlink")).unwrap();
    mknodat(CWD, tree.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    for name in ["short", "sub"] {
        set(&tree.join(name), "user.some", b"value");
    }
    if rustix::process::geteuid().is_root() {
        for name in ["symlink", "pipe"] {
            set(&tree.join(name), "trusted.some", b"value");
        }
    }
    fs::set_permissions(tree.join("sub/deep"), Permissions::from_mode(0o555)).unwrap();
}

fn plant_older(copy: &Path) {
    fs::create_dir_all(copy).unwrap();
    fs::write(copy.join("short"), "the old one").unwrap();
    symlink("elsewhere", copy.join("symlink")).unwrap();
}

fn copies_without(calls: &[Denied], engines: &[&str]) {
    let folder = Folder::new();
    plant(&folder);
    for engine in engines {
        let target = folder.join("copy");
        plant_older(&target);
        let ran = folder
            .flatout(["copy", "-T", "--engine", engine, "tree", "copy"])
            .with(|command| {
                deny(command, calls);
            })
            .run();
        assert!(ran.exits(0).complaints().is_empty(), "without {calls:?}{ran}");
        let context = format!("{engine} without {calls:?}{ran}");
        assert_alike(&likeness(&folder.join("tree")), &likeness(&target), context);
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_call_that_is_lacking_makes_no_difference_to_the_copy() {
    for call in CALLS.into_iter().chain([FSTATFS]) {
        for errno in [ENOSYS, EPERM] {
            copies_without(&[(call, errno)], &["auto"]);
        }
    }
    for errno in [ENOSYS, EPERM] {
        copies_without(&XATTRAT.map(|call| (call, errno)), &["auto"]);
    }
}

#[test]
fn an_engine_whose_call_is_lacking_gives_way_to_another() {
    for errno in [ENOSYS, EPERM] {
        for call in [IO_URING_SETUP, IO_URING_REGISTER] {
            copies_without(&[(call, errno)], &["uring"]);
        }
        copies_without(&[(COPY_FILE_RANGE, errno)], &["copy-file-range"]);
        copies_without(&[(SPLICE, errno)], &["splice"]);
        copies_without(&[(FALLOCATE, errno)], &["mmap", "sync", "uring"]);
    }
}

#[test]
fn all_of_the_calls_may_be_lacking_at_once() {
    for errno in [ENOSYS, EPERM] {
        copies_without(&CALLS.map(|call| (call, errno)), &["auto", "mmap", "uring"]);
    }
}

/// ext4 takes 65,000 names of one file.
#[test]
fn a_file_of_a_snapshot_that_takes_no_more_names_is_copied() {
    needs!(needs_program("strace"));
    let folder = Folder::new();
    fs::create_dir(folder.join("tree")).unwrap();
    fs::write(folder.join("tree/file"), "text").unwrap();
    folder.flatout(["copy", "tree", "mon"]).leaves("mon").run().exits(0);
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=linkat:error=EMLINK"];
    let words = ["copy", "--link-dest", "mon", "tree", "copy"];
    let ran = folder.under(&strace, &words).leaves("copy").run();
    let said = "copied, not linked: the target takes no (more) links to it";
    assert_eq!(ran.exits(0).stderr.matches(said).count(), 1, "{ran}");
    assert_alike(&likeness(&folder.join("tree")), &likeness(&folder.join("copy")), &ran);
}
