//! Rails: what is never written to, whatever was asked, and what is never left behind.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::bin::{Folder, warnings};
use crate::faulty::{Faults, Faulty};
use crate::filesystem::{Backing, Kind, LoopDevice, Mounted, moved_bytes};
use crate::fixture::{random_bytes, random_file};
use crate::skip::needs;

use super::{LENGTH_BYTES, READS, WRITES, disk, disk_in, document, refused, rows};

/// What must not change about a file that is only read.
fn facts(path: &Path) -> (i64, i64, u64, u64) {
    let facts = fs::metadata(path).unwrap();
    (facts.mtime(), facts.mtime_nsec(), facts.ino(), facts.len())
}

#[test]
fn a_file_is_only_read_unless_overwriting_is_asked_for() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), 1 << 20, 1);
    symlink("data", folder.join("link")).unwrap();
    let before = facts(&folder.join("data"));
    for name in ["data", "link"] {
        for pattern in WRITES {
            let options = format!("--rw random-read,{pattern} --block-size 4KiB");
            // What makes files of its own cannot be had by overwriting either.
            let way = if pattern == "sequential-copy" { "directory" } else { "--overwrite" };
            refused(&disk(&folder, name, &options).run(), &[name, way]);
        }
        for pattern in READS {
            disk(&folder, name, &format!("--rw {pattern} --block-size 4KiB")).run().exits(0);
        }
        // The usual plan of a file has no writes in it.
        let document = document(&disk(&folder, name, "").run());
        for row in document["results"].as_array().unwrap() {
            assert!(row["parameters"]["until"].is_null(), "{row:#}");
            assert!(!row["id"].as_str().unwrap().contains("write"), "{row:#}");
        }
    }
    assert!(fs::read(folder.join("data")).unwrap() == bytes, "the file has changed");
    assert_eq!(facts(&folder.join("data")), before);
}

#[test]
fn a_file_that_may_be_overwritten_keeps_inode_and_length() {
    let folder = Folder::new();
    let bytes = random_file(&folder.join("data"), (1 << 20) + 777, 1);
    let (_, _, inode, length) = facts(&folder.join("data"));
    let options = "--overwrite --block-size 4KiB";
    for pattern in ["sequential-write", "random-write", "mixed"] {
        for caching in ["buffered", "direct"] {
            fs::write(folder.join("data"), &bytes).unwrap();
            let options = format!("{options} --caching {caching} --rw {pattern}");
            let document = document(&disk(&folder, "data", &options).run());
            assert!(!rows(&document, &format!("disk/{pattern}")).is_empty());
            assert!(fs::read(folder.join("data")).unwrap() != bytes, "nothing was written");
            let (_, _, inode_after, length_after) = facts(&folder.join("data"));
            assert_eq!((inode_after, length_after), (inode, length), "{options}");
        }
    }
}

#[test]
fn a_block_device_is_only_read_always() {
    let content = random_bytes(LENGTH_BYTES, 1);
    let device = needs!(LoopDevice::new(&content));
    let folder = Folder::new();
    symlink(device.path(), folder.join("link")).unwrap();
    let before = moved_bytes(device.path()).1;
    for path in [device.path().to_str().unwrap(), "link"] {
        for pattern in WRITES {
            for more in ["", "--overwrite"] {
                let options = format!("--rw {pattern} --block-size 4KiB {more}");
                refused(&disk(&folder, path, &options).run(), &[path]);
            }
        }
        refused(&disk(&folder, path, "--overwrite").run(), &[path, "block device"]);
        for options in ["--rw random-read", ""] {
            let document = document(&disk(&folder, path, options).run());
            for row in document["results"].as_array().unwrap() {
                assert!(row["parameters"]["until"].is_null(), "{row:#}");
            }
        }
    }
    let grid = "--matrix --time 1ms --size 8MiB";
    disk(&folder, device.path().to_str().unwrap(), grid).run().exits(0);
    assert_eq!(moved_bytes(device.path()).1, before, "the device was written to");
    assert!(device.finish() == content, "the device has changed");
}

#[test]
fn results_are_never_written_over_a_block_device() {
    let content = random_bytes(1 << 20, 1);
    let device = needs!(LoopDevice::new(&content));
    let folder = Folder::new();
    let path = device.path().to_str().unwrap().to_owned();
    let options = format!("--rw random-read --block-size 4KiB --output {path}");
    let ran = disk_in(&folder, ".", &options).run();
    refused(&ran, &[&path, "block device"]);
    assert!(device.finish() == content, "the device has changed");
}

#[test]
fn the_device_below_a_mounted_filesystem_is_only_read() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Direct));
    let folder = Folder::new();
    let node = mounted.node().to_str().unwrap();
    for more in ["", "--overwrite"] {
        let options = format!("--rw random-write {more}");
        let ran = disk(&folder, node, &options).run();
        refused(&ran, &[node, "block device"]);
        assert_eq!(ran.document()["results"][0]["warnings"][0]["code"], "write_refused", "{ran}");
    }
    let ran = disk(&folder, node, "--rw random-read --block-size 4KiB").run();
    assert!(!rows(&document(&ran), "disk/random-read").is_empty(), "{ran}");
    mounted.finish();
}

#[test]
fn a_directory_that_cannot_be_written_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    random_file(&directory.path().join("data"), 1 << 20, 1);
    let mounted = needs!(Mounted::read_only(directory.path()));
    let folder = Folder::new();
    let place = mounted.path();
    for pattern in ["random-read", "sequential-write"] {
        let ran = disk_in(&folder, place.to_str().unwrap(), &format!("--rw {pattern}")).run();
        refused(&ran, &[place.to_str().unwrap(), "Read-only file system"]);
        assert_eq!(ran.document()["results"][0]["warnings"][0]["code"], "read_only", "{ran}");
        ran.exits(1);
    }
    // A file in there can be read nevertheless.
    let path = place.join("data");
    disk(&folder, path.to_str().unwrap(), "--rw random-read").run().exits(0);
    mounted.finish();
}

#[test]
fn nothing_is_left_where_files_cannot_be_nameless() {
    let faulty = needs!(Faulty::new(Faults::default()));
    let folder = Folder::new();
    let place = faulty.path().to_str().unwrap();
    let options = "--rw random-read,sequential-write,sequential-copy --block-size 64KiB";
    document(&disk_in(&folder, place, options).run());
    assert_eq!(faulty.names().len(), 0, "{:?}", faulty.names());
    faulty.change(|faults| faults.can_create = false);
    let ran = disk_in(&folder, place, options).run();
    refused(&ran, &[place, "Read-only file system"]);
    faulty.finish();
}

#[test]
fn no_more_is_written_than_was_allowed() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 256 << 20, Backing::Direct));
    let folder = Folder::new();
    let place = mounted.path();
    let most = 24_u64 << 20;
    let options = "--rw sequential-write,random-write,random-read --block-size 64KiB \
                   --max-write 24MiB --caching direct";
    let before = moved_bytes(mounted.node()).1;
    let ran = disk_in(&folder, place.to_str().unwrap(), options).run();
    let written = moved_bytes(mounted.node()).1 - before;
    if ran.code == Some(0) {
        let document = document(&ran);
        let all = document["results"].as_array().unwrap();
        let is_named = all.iter().any(|row| warnings(row).contains(&"write_limit"));
        let counted: f64 = ["disk/sequential-write", "disk/random-write"]
            .iter()
            .flat_map(|id| rows(&document, id))
            // The second figure of the same bytes.
            .filter(|row| row["parameters"]["until"] != "durable")
            // A row that the limit has left nothing has no account.
            .filter_map(|row| row["audit"]["bytes"].as_f64())
            .sum();
        assert!(counted <= most as f64, "{counted}: {ran}");
        // Where others keep the disk busy, the time may end before the limit does.
        assert!(is_named || counted < most as f64 / 2.0, "{counted}: {ran}");
    } else {
        refused(&ran, &["--max-write"]);
    }
    // The journal and the bitmaps of the filesystem come on top.
    assert!(written <= most + (4 << 20), "{written} of {most}: {ran}");
    mounted.finish();
}

#[test]
fn a_limit_too_small_for_anything_is_one_line() {
    let folder = Folder::new();
    refused(&disk_in(&folder, ".", "--rw random-read --max-write 1000").run(), &["--max-write"]);
}
