//! Writes that fail: one line that names operation, path and cause, a whole document, and nothing
//! left of a file that was made for it.

use std::fs::{self, File};
use std::path::Path;

use flatout_sys::launcher::{Denied, EIO, FDATASYNC, PWRITE, Resource, deny, limit};
use rustix::fs::{FallocateFlags, fallocate, statfs};

use crate::bin::{Flatout, Folder, Ran, executable, wait_for};
use crate::filesystem::{Kind, Mounted};
use crate::fixture::random_file;
use crate::skip::needs;

const ENGINES: [&str; 2] = ["sync", "uring"];
const CACHINGS: [&str; 2] = ["buffered", "direct"];

/// A write of 8 MiB to `new`.
const EIGHT: &str = "write new --block-size 64KiB --block-count 128 --format json";

#[track_caller]
fn fails(ran: &Ran, words: &[&str]) {
    ran.complains(1, words);
    assert!(!ran.document()["end"]["errors"].as_array().unwrap().is_empty(), "{ran}");
}

/// A file may have a mebibyte and no more.
fn limited(run: Flatout<'_>) -> Ran {
    let limited = run.with(|command| {
        limit(command, Resource::FileSize, 1 << 20);
    });
    limited.run()
}

fn denied(run: Flatout<'_>, calls: &[Denied]) -> Ran {
    let denied = run.with(|command| {
        deny(command, calls);
    });
    denied.run()
}

/// Takes every free block of a filesystem.
fn fill(folder: &Path) {
    let file = File::create(folder.join("filler")).unwrap();
    let block_bytes = statfs(folder).unwrap().f_bsize as u64;
    let (mut end, mut step) = (0, 1_u64 << 30);
    while step >= block_bytes {
        match fallocate(&file, FallocateFlags::empty(), end, step) {
            Ok(()) => end += step,
            Err(_) => step /= 2,
        }
    }
}

#[test]
fn a_full_filesystem_is_refused_beforehand() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    for engine in ENGINES {
        for threads in ["1", "3"] {
            let folder = Folder::inside(&mounted.path());
            let more = ["--engine", engine, "--threads", threads];
            let ran = folder.flatout(EIGHT.split(' ').chain(more)).run();
            fails(&ran, &["cannot write", "new", "reserve"]);
        }
    }
    mounted.finish();
}

#[test]
fn a_hole_is_not_taken_for_room_of_its_own() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(1 << 20)));
    let folder = Folder::inside(&mounted.path());
    File::create(folder.join("new")).unwrap().set_len(1 << 40).unwrap();
    let ran = folder.flatout(EIGHT.split(' ').chain(["--overwrite"])).run();
    fails(&ran, &["cannot write", "new", "reserve"]);
    assert_eq!(fs::metadata(folder.join("new")).unwrap().len(), 1 << 40, "nothing was done");
    drop(folder);
    mounted.finish();
}

/// Whether more than half of a filesystem is free.
fn has_room(mounted: &Mounted) -> bool {
    let facts = statfs(mounted.path().as_path()).unwrap();
    facts.f_bavail > facts.f_blocks / 2
}

/// Begins a write in small blocks, takes all the room away, and sees how it ends.
fn fills_up(mounted: &Mounted, block_count: u64, options: &str) {
    // A process that another test starts holds the last filler until it has become its program.
    wait_for(|| has_room(mounted));
    let folder = Folder::inside(&mounted.path());
    let arguments = format!("write new --block-count {block_count} --format json {options}");
    let mut running = folder.flatout(arguments.split(' ')).leaves("filler").start();
    // All the blocks take seconds; the first of them shows that the check of room is over.
    let begun = || fs::metadata(folder.join("new")).is_ok_and(|facts| facts.len() > 0);
    running.wait_until("status", |_| begun());
    fill(folder.path());
    let ran = running.wait();
    fails(&ran, &["cannot write", "new", "No space left"]);
    assert!(!folder.join("new").exists(), "{ran}");
}

#[test]
fn a_filesystem_that_fills_up_in_the_middle_is_a_failure() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(32 << 20)));
    for engine in ENGINES {
        for threads in ["1", "3"] {
            let options = format!("--block-size 1 --engine {engine} --threads {threads}");
            fills_up(&mounted, 16 << 20, &options);
        }
    }
    mounted.finish();
}

#[test]
fn storage_that_fills_up_in_the_middle_of_direct_writes_is_a_failure() {
    let mounted = needs!(Mounted::new(Kind::Ext4));
    for engine in ENGINES {
        let options = format!("--caching direct --block-size 4096 --engine {engine} --depth 1");
        fills_up(&mounted, 80_000, &options);
    }
    mounted.finish();
}

#[test]
fn a_limit_on_file_size_is_a_failure_that_leaves_nothing_behind() {
    let folder = Folder::new();
    for engine in ENGINES {
        for caching in CACHINGS {
            for threads in ["1", "3"] {
                let more = ["--engine", engine, "--caching", caching, "--threads", threads];
                let ran = limited(folder.flatout(EIGHT.split(' ').chain(more)));
                fails(&ran, &["cannot write", "new", "File too large (ulimit -f: "]);
            }
        }
    }
}

#[test]
fn the_signal_of_a_file_size_limit_kills_nobody() {
    let folder = Folder::new();
    let script = "ulimit -f 2048; exec \"$0\" write new --block-count 64 --format json";
    let words = ["-c".into(), script.into(), executable().into()].to_vec();
    let ran = folder.program("sh".as_ref(), words).run();
    fails(&ran, &["cannot write", "new", "File too large (ulimit -f: "]);
}

#[test]
fn a_broken_device_is_a_failure_that_leaves_nothing_behind() {
    let folder = Folder::new();
    let ran = denied(folder.flatout(EIGHT.split(' ')), &[(PWRITE, EIO)]);
    fails(&ran, &["cannot write", "new", "Input/output error"]);
    for engine in ENGINES {
        for caching in CACHINGS {
            let more = ["--engine", engine, "--caching", caching];
            let run = folder.flatout(EIGHT.split(' ').chain(more));
            let ran = denied(run, &[(FDATASYNC, EIO)]);
            fails(&ran, &["cannot sync", "new", "Input/output error"]);
        }
    }
}

#[test]
fn a_failed_overwrite_keeps_the_file() {
    let folder = Folder::new();
    random_file(&folder.join("new"), 5000, 1);
    let ran = limited(folder.flatout(EIGHT.split(' ').chain(["--overwrite"])));
    fails(&ran, &["cannot write", "new", "File too large (ulimit -f: "]);
    assert!(folder.join("new").exists(), "a file that the run did not create is not removed");
}
