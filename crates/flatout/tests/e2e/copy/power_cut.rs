//! What a power cut leaves: what the kernel has sent to the device by then.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::copier::under_test;
use super::forest::{Plan, plant};
use super::oracle::{Leeway, Portrait, assert_same};
use crate::bin::Folder;
use crate::filesystem::{Backing, Kind, LoopDevice, Mounted, needs_kernel, needs_program};
use crate::fixture::random_bytes;
use crate::skip::needs;

const KINDS: [Kind; 3] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs];
/// The kernel begins to write by itself half a minute after the bytes came.
const BEFORE_THE_KERNEL: Duration = Duration::from_secs(20);

/// A filesystem on which nothing waits for the journal for long.
fn mounted(kind: Kind) -> Result<Mounted, String> {
    if kind == Kind::Btrfs {
        needs_kernel((6, 7), "btrfs mounts a copy of what is mounted")?;
    }
    let mounted = Mounted::new(kind)?;
    if kind == Kind::Btrfs {
        mounted.remount("commit=1")?;
    }
    Ok(mounted)
}

/// Whether power cuts leave a file that holds one of these, where the journal was written a moment before.
fn leaves(mounted: &Mounted, kind: Kind, name: &str, texts: &[&[u8]]) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < BEFORE_THE_KERNEL {
        let journalled = File::create(mounted.path().join("other")).unwrap();
        journalled.write_all_at(b"x", 0).unwrap();
        journalled.sync_all().unwrap();
        // What is written while the device is looked at may be half there.
        let Ok(left) = mounted.after_a_power_cut(kind) else { continue };
        let found = fs::read(left.path().join(name));
        left.finish();
        if found.is_ok_and(|found| texts.contains(&found.as_slice())) {
            return true;
        }
    }
    false
}

fn run(folder: &Folder, words: &[&str], paths: &[&Path]) {
    let paths = paths.iter().map(|path| path.as_os_str());
    folder.flatout(words.iter().map(AsRef::as_ref).chain(paths)).run().exits(0);
}

#[test]
fn what_was_synced_outlives_a_power_cut() {
    needs!(under_test());
    let ways = [["copy", "--delete"], ["copy", "--atomic"], ["copy", "--in-place"]];
    for (kind, [copy, way]) in KINDS.into_iter().zip(ways) {
        let (mounted, folder) = (needs!(mounted(kind)), Folder::new());
        let target = mounted.path().join("copy");
        for seed in [1, 2] {
            let source = folder.join(&seed.to_string());
            plant(&source, Plan::new(seed).with_small_holes());
            // Where a mirror is made something of another kind is replaced.
            let target =
                if way == "--delete" { target.clone() } else { target.join(seed.to_string()) };
            fs::create_dir_all(&target).unwrap();
            run(&folder, &[copy, way, "--sync", "-T"], &[&source, &target]);
        }
        let left = mounted.after_a_power_cut(kind).unwrap();
        let both = [&mounted, &left].map(|side| Portrait::of(&side.path().join("copy")));
        assert_same(&both[0], &both[1], Leeway::NONE, format!("{kind:?}"));
        left.finish();
        drop(folder);
        mounted.finish();
    }
}

/// Its length comes first: with its time, too, it would be finished for `--quick-check`.
#[test]
fn a_file_with_holes_does_not_look_finished_without_its_bytes() {
    needs!(under_test());
    for (kind, sparse) in KINDS.into_iter().zip(["auto", "auto", "always"]) {
        let (mounted, folder) = (needs!(mounted(kind)), Folder::new());
        let source = folder.join("disk");
        let file = File::create(&source).unwrap();
        file.set_len(4 << 20).unwrap();
        file.write_all_at(&random_bytes(1 << 20, 3), 0).unwrap();
        let words = ["copy", &format!("--sparse={sparse}")];
        run(&folder, &words, &[&source, &mounted.path()]);
        let bytes = fs::read(&source).unwrap();
        assert!(leaves(&mounted, kind, "disk", &[&bytes]), "{kind:?}");
        drop(folder);
        mounted.finish();
    }
}

/// It is as long as before, and has the time of its source.
#[test]
fn a_file_changed_in_place_does_not_look_finished_without_its_bytes() {
    needs!(under_test());
    for kind in KINDS {
        let (mounted, folder) = (needs!(mounted(kind)), Folder::new());
        let (source, mut bytes) = (folder.join("disk"), random_bytes(1 << 20, 3));
        for sync in ["--sync", "--quiet"] {
            bytes[70_000] ^= 1;
            fs::write(&source, &bytes).unwrap();
            let words = ["copy", "--always", "--in-place", "--delta", sync];
            run(&folder, &words, &[&source, &mounted.path()]);
        }
        assert!(leaves(&mounted, kind, "disk", &[&bytes]), "{kind:?}");
        drop(folder);
        mounted.finish();
    }
}

/// xfs keeps that it has got the name, and may not have its bytes yet.
#[test]
fn a_list_that_takes_the_place_of_another_one_is_never_empty() {
    for kind in KINDS {
        let (mounted, folder) = (needs!(mounted(kind)), Folder::new());
        let list = mounted.path().join("list");
        let lists = ["old", "new"].map(|name| {
            fs::write(folder.join(name), name).unwrap();
            run(&folder, &["sum", name, "-o"], &[&list]);
            if name == "old" {
                File::open(&list).unwrap().sync_all().unwrap();
            }
            fs::read(&list).unwrap()
        });
        assert!(leaves(&mounted, kind, "list", &lists.each_ref().map(Vec::as_slice)), "{kind:?}");
        drop(folder);
        mounted.finish();
    }
}

/// ext4 and btrfs begin to write it by themselves, xfs does not.
#[test]
fn what_takes_the_place_of_a_file_of_an_overlay_is_written_out() {
    needs!(under_test());
    let (below, lower, folder) = (needs!(mounted(Kind::Xfs)), Folder::new(), Folder::new());
    let overlay = needs!(Mounted::overlay(lower.path(), &below.path()));
    let (source, target) = (folder.join("file"), overlay.path().join("file"));
    for (text, sync) in [("old", "--sync"), ("new", "--quiet")] {
        fs::write(&source, text).unwrap();
        run(&folder, &["copy", "--always", sync], &[&source, &target]);
    }
    assert!(leaves(&below, Kind::Xfs, "upper/file", &[b"old", b"new"]));
    drop(folder);
    overlay.finish();
    below.finish();
}

/// syncfs(2) knows no device, and only the last one to close it waits for it.
#[test]
fn what_is_synced_to_a_device_is_waited_for() {
    needs!(under_test());
    needs!(needs_program("strace"));
    let folder = Folder::new();
    let device = needs!(LoopDevice::inside(folder.path(), &[0; 4096], Backing::Cached));
    let held = File::open(device.path()).unwrap();
    fs::write(folder.join("bytes"), [7; 4096]).unwrap();
    let strace = ["strace", "-f", "-qq", "-y", "-o", "trace", "-e", "trace=fdatasync"];
    let words = ["copy", "-H", "--sync", "-T", "bytes", device.path().to_str().unwrap()];
    folder.under(&strace, &words).leaves("trace").run().exits(0);
    let trace = fs::read_to_string(folder.join("trace")).unwrap();
    assert!(trace.contains(&format!("<{}", device.path().display())), "{trace}");
    assert_eq!(fs::read(folder.join("image")).unwrap(), [7; 4096]);
    drop(held);
    device.finish();
}
