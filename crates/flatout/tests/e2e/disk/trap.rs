//! Traps: files, caches and filesystems that make a figure mean something else than it seems to.
//! Each is set up and must be named by its own code.

use std::fs::{self, File};
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate, statfs};

use crate::bin::{Folder, LIMIT, warnings};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Backing, Kind, Mounted, needs_kernel, needs_storage};
use crate::fixture::{random_bytes, random_file, sparse_file, zero_file};
use crate::skip::needs;

use super::{
    LENGTH_BYTES, all_warned, audit, disk, disk_in, document, nobody_warned, refused, rows,
};

/// Runs, in one of which another who is always at work should get to it.
const ATTEMPTS: u32 = 10;

#[test]
fn a_sparse_file_is_named() {
    let folder = Folder::new();
    sparse_file(&folder.join("sparse"), LENGTH_BYTES as u64);
    for pattern in ["sequential-read", "random-read"] {
        let options = format!("--rw {pattern} --block-size 64KiB");
        let document = document(&disk(&folder, "sparse", &options).run());
        let id = format!("disk/{pattern}");
        all_warned(&document, &id, "sparse_file");
        let holes = audit(rows(&document, &id)[0], "hole_bytes");
        assert!(holes >= (LENGTH_BYTES - (1 << 20)) as f64, "{document:#}");
    }
}

#[test]
fn a_file_that_is_shorter_than_what_was_asked_for_is_named() {
    let folder = Folder::new();
    random_file(&folder.join("data"), 1 << 20, 1);
    for (size, is_short) in [("1GiB", true), ("512KiB", false)] {
        let options = format!("--rw randread --block-size 64KiB --size {size}");
        let document = document(&disk(&folder, "data", &options).run());
        let row = rows(&document, "disk/random-read")[0];
        assert_eq!(warnings(row).contains(&"short_file"), is_short, "{row:#}");
    }
}

#[test]
fn a_file_that_was_allocated_and_never_written_is_named() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    let file = File::create(folder.join("reserved")).unwrap();
    needs!(
        fallocate(&file, FallocateFlags::empty(), 0, LENGTH_BYTES as u64)
            .map_err(|errno| format!("the filesystem allocates nothing beforehand: {errno}"))
    );
    let document = document(&disk(&folder, "reserved", "--rw random-read").run());
    all_warned(&document, "disk/random-read", "unwritten_extents");
    let unwritten = audit(rows(&document, "disk/random-read")[0], "unwritten_bytes");
    assert_eq!(unwritten, LENGTH_BYTES as f64, "{document:#}");
}

#[test]
fn a_file_of_zeros_is_named() {
    let folder = Folder::new();
    zero_file(&folder.join("zeros"), LENGTH_BYTES);
    let document = document(&disk(&folder, "zeros", "--rw random-read").run());
    all_warned(&document, "disk/random-read", "zero_blocks");
    assert_eq!(audit(rows(&document, "disk/random-read")[0], "zero_block_ratio"), 1.0);
}

#[test]
fn more_requests_in_flight_than_blocks_are_named() {
    let folder = Folder::new();
    random_file(&folder.join("short"), 10_000, 1);
    let document = document(&disk(&folder, "short", "--rw random-read").run());
    let texts = |row: &serde_json::Value| row["warnings"].to_string();
    for row in rows(&document, "disk/random-read") {
        let is_deep = row["parameters"]["depth"].as_u64() > Some(2);
        assert_eq!(texts(row).contains("the file has 2 blocks"), is_deep, "{row:#}");
    }
}

#[test]
fn reads_that_the_cache_answers_are_named() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    File::open(folder.join("data")).unwrap().sync_all().unwrap();
    fs::read(folder.join("data")).unwrap();
    let options = "--rw random-read --caching buffered --block-size 4KiB";
    let document = document(&disk(&folder, "data", options).run());
    all_warned(&document, "disk/random-read", "fits_in_cache");
    for row in rows(&document, "disk/random-read") {
        assert!(audit(row, "cached_before_bytes") >= 0.0, "{row:#}");
        // Either the cache answered and that is said, or it was emptied first.
        let share = audit(row, "disk_share_ratio");
        let codes = warnings(row);
        assert!(share > 0.5 || codes.contains(&"not_from_device"), "{row:#}");
    }
}

#[test]
fn direct_that_memory_refuses_or_feigns_is_named() {
    for kind in [Kind::Tmpfs(64 << 20), Kind::Ramfs] {
        let mounted = needs!(Mounted::new(kind));
        let folder = Folder::inside(&mounted.path());
        random_file(&folder.join("data"), LENGTH_BYTES, 1);
        let options = "--rw random-read --caching direct --block-size 4KiB";
        let document = document(&disk(&folder, "data", options).run());
        all_warned(&document, "disk/random-read", "memory_filesystem");
        for row in rows(&document, "disk/random-read") {
            let codes = warnings(row);
            // Since Linux 6.6 tmpfs accepts O_DIRECT and goes through memory all the same.
            let is_said = kind != Kind::Ramfs || codes.contains(&"direct_refused");
            assert!(is_said, "{row:#}");
        }
        drop(folder);
        mounted.finish();
    }
}

#[test]
fn dirty_pages_before_a_read_are_named() {
    needs!(needs_kernel((6, 5), "cachestat tells what is dirty"));
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    let options = "--rw random-read --caching direct --block-size 4KiB";
    // The kernel may have written them before it is looked, if others sync the same filesystem.
    let begun = Instant::now();
    let is_named = std::iter::repeat(()).take_while(|()| begun.elapsed() < LIMIT).any(|()| {
        random_file(&folder.join("data"), LENGTH_BYTES, 1);
        let document = document(&disk(&folder, "data", options).run());
        rows(&document, "disk/random-read").iter().all(|row| warnings(row).contains(&"dirty_pages"))
    });
    assert!(is_named, "the pages were clean in each run of {LIMIT:?}");
}

#[test]
fn a_loop_device_on_a_cached_file_is_named() {
    let cached = needs!(Mounted::on_image(Kind::Ext4, 128 << 20, Backing::Cached));
    let direct = needs!(Mounted::on_image(Kind::Ext4, 128 << 20, Backing::Direct));
    let folder = Folder::new();
    let run = |mounted: &Mounted| {
        let options = "--rw random-read --caching direct --block-size 4KiB";
        document(&disk_in(&folder, mounted.path().to_str().unwrap(), options).run())
    };
    all_warned(&run(&cached), "disk/random-read", "loop_cached");
    nobody_warned(&run(&direct), "loop_cached");
    cached.finish();
    direct.finish();
}

#[test]
fn a_depth_that_an_engine_cannot_have_is_named() {
    let folder = Folder::new();
    random_file(&folder.join("data"), LENGTH_BYTES, 1);
    let options = "--rw random-read --engine sync --iodepth 16";
    let document = document(&disk(&folder, "data", options).run());
    all_warned(&document, "disk/random-read", "depth_unused");
}

#[test]
fn a_size_below_the_cache_is_named() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    let options = "--rw sequential-read,sequential-write --caching buffered";
    let document = document(&disk_in(&folder, ".", options).run());
    all_warned(&document, "disk/sequential-read", "fits_in_cache");
}

#[test]
fn a_filesystem_of_a_process_is_named() {
    let faults = Faults { delay: std::time::Duration::from_millis(1), ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    faulty.put("data", &random_bytes(1 << 20, 1));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    let options = "--rw random-read --block-size 64KiB --iodepth 2";
    let document = document(&disk(&folder, path.to_str().unwrap(), options).run());
    all_warned(&document, "disk/random-read", "userspace_filesystem");
    assert_eq!(document["start"]["environment"]["storage"][0]["nature"], "userspace");
    faulty.finish();
}

#[test]
fn a_server_that_answers_short_has_no_ring() {
    let faults = Faults { answer_bytes: 20_000, is_uncached: true, ..Faults::default() };
    let faulty = needs!(Faulty::new(faults));
    faulty.put("data", &random_bytes(1 << 20, 1));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    let options = "--rw randread --block-size 64KiB --iodepth 2 --engine uring";
    let document = document(&disk(&folder, path.to_str().unwrap(), options).run());
    all_warned(&document, "disk/random-read", "uring_refused");
    // What was counted has gone through.
    let counted: f64 =
        rows(&document, "disk/random-read").iter().map(|row| audit(row, "bytes")).sum();
    assert!(counted <= faulty.read_bytes() as f64, "{document:#}");
    faulty.finish();
}

#[test]
fn requests_that_begin_late_are_named() {
    let faults = Faults {
        delay: std::time::Duration::from_millis(5),
        is_uncached: true,
        ..Faults::default()
    };
    let faulty = needs!(Faulty::new(faults));
    faulty.put("data", &random_bytes(1 << 20, 1));
    let folder = Folder::new();
    let path = faulty.path().join("data");
    let options = "--rw random-read --block-size 4KiB --rate 2000 --engine sync --iodepth 1";
    let document = document(&disk(&folder, path.to_str().unwrap(), options).run());
    all_warned(&document, "disk/random-read", "late_starts");
    faulty.finish();
}

#[test]
fn requests_that_the_device_splits_are_named() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 128 << 20, Backing::Direct));
    let folder = Folder::new();
    let options = "--rw sequential-read --caching direct --block-size 8MiB --iodepth 1";
    let place = mounted.path();
    let document = document(&disk_in(&folder, place.to_str().unwrap(), options).run());
    // Where others are at work below the loop device, their requests cannot be told from ours.
    let codes = warnings(rows(&document, "disk/sequential-read")[0]);
    let is_said = ["requests_split", "shared_device"].iter().any(|code| codes.contains(code));
    assert!(is_said, "{document:#}");
    let row = rows(&document, "disk/sequential-read")[0];
    assert!(audit(row, "disk_requests_per_request_ratio") > 0.0, "{row:#}");
    mounted.finish();
}

/// Leaves this much room, and no more.
fn leave(mounted: &Mounted, free_bytes: u64) {
    let file = File::create(mounted.path().join("filler")).unwrap();
    let facts = statfs(mounted.path()).unwrap();
    let room = facts.f_bavail as u64 * facts.f_bsize as u64;
    fallocate(&file, FallocateFlags::empty(), 0, room - free_bytes).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_disk_that_is_nearly_full_is_named_and_spared() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 256 << 20, Backing::Direct));
    leave(&mounted, 8 << 20);
    let folder = Folder::new();
    let place = mounted.path();
    let options = "--rw sequential-read --block-size 64KiB";
    let ran = disk(&folder, place.to_str().unwrap(), options).run();
    // Less is measured and that is said, or nothing is done and one line says why.
    if ran.code == Some(0) {
        let document = document(&ran);
        all_warned(&document, "disk/sequential-read", "nearly_full");
        all_warned(&document, "disk/sequential-read", "size_reduced");
        let row = rows(&document, "disk/sequential-read")[0];
        assert!(audit(row, "file_bytes") <= f64::from(4 << 20), "{row:#}");
    } else {
        refused(&ran, &[place.to_str().unwrap()]);
    }
    // More than there is, asked for in so many words, is never begun.
    let ran = disk(&folder, place.to_str().unwrap(), "--rw random-read --size 1GiB").run();
    if ran.code == Some(0) {
        all_warned(&document(&ran), "disk/random-read", "size_reduced");
    } else {
        ran.exits(1);
    }
    assert_eq!(Folder::names_in(&place).into_iter().filter(|name| name != "lost+found").count(), 1);
    mounted.finish();
}

#[test]
fn others_who_use_the_device_are_named() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 128 << 20, Backing::Direct));
    let folder = Folder::new();
    let node = mounted.node().display();
    let script = format!("while :; do dd if={node} of=/dev/null bs=1M iflag=direct; done");
    let other = folder.program("sh".as_ref(), vec!["-c".into(), script.into()]).start();
    let mut is_noticed = false;
    let options = "--rw random-read --caching direct --block-size 4KiB --iodepth 1 --time 200ms";
    let place = mounted.path();
    // The other may get next to no CPU during a whole run; what it read stands in the account. A few
    // requests are none worth a word.
    for _ in 0..ATTEMPTS {
        let document = document(&disk_in(&folder, place.to_str().unwrap(), options).run());
        let row = rows(&document, "disk/random-read")[0];
        let other_of = |key| row["audit"][key].as_f64().unwrap_or(0.0);
        is_noticed = other_of("others_disk_ratio") > 0.1
            && other_of("others_disk_bytes") > f64::from(8 << 20);
        if is_noticed {
            all_warned(&document, "disk/random-read", "shared_device");
            break;
        }
    }
    drop(other);
    assert!(is_noticed, "the other did not read in any of {ATTEMPTS} runs");
    mounted.finish();
}
