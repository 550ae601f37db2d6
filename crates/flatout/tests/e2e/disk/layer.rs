//! What lies between a path and its device: filesystems on others, loop devices, limits.

use std::time::Instant;

use serde_json::Value;

use crate::bin::{Folder, LIMIT, warnings};
use crate::filesystem::{
    Backing, Kind, LoopDevice, Mounted, needs_kernel, needs_program, needs_storage,
};
use crate::fixture::{random_bytes, random_file};
use crate::skip::needs;
use crate::throttle::{Limits, Throttle};

use super::{LITTLE, all_warned, audit, disk, disk_in, document, rows};

/// The chain of the only place that was measured.
#[track_caller]
fn storage(document: &Value) -> &Value {
    let places = document["start"]["environment"]["storage"].as_array().unwrap();
    assert_eq!(places.len(), 1, "{places:#?}");
    &places[0]
}

/// The layer of this kind.
#[track_caller]
fn layer<'a>(storage: &'a Value, kind: &str) -> &'a Value {
    let layers = storage["layers"].as_array().unwrap();
    let found = layers.iter().find(|layer| layer["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}: {storage:#}"))
}

#[test]
fn the_chain_of_a_loop_mount_goes_down_to_its_disk() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Cached));
    let folder = Folder::new();
    let place = mounted.path();
    let options = "--rw sequential-read --size 4MiB";
    let document = document(&disk(&folder, place.to_str().unwrap(), options).run());
    let storage = storage(&document);
    assert_eq!(storage["filesystem"], "ext4", "{storage:#}");
    assert_eq!(layer(storage, "mount")["source"], mounted.node().to_str().unwrap());
    let device = layer(storage, "loop");
    assert_eq!(device["name"], mounted.node().file_name().unwrap().to_str().unwrap());
    assert_eq!(device["direct_io"], false, "{storage:#}");
    assert!(device["backing"].as_str().unwrap().ends_with("/image"), "{storage:#}");
    mounted.finish();
}

#[test]
fn what_a_synchronous_mount_writes_is_durable() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 64 << 20, Backing::Cached));
    let folder = Folder::new();
    let place = mounted.path();
    let is_doubted = || {
        let options = "--rw sequential-write --size 4MiB --caching direct";
        let document = document(&disk(&folder, place.to_str().unwrap(), options).run());
        let written = rows(&document, "disk/sequential-write");
        assert!(!written.is_empty(), "{document:#}");
        written.iter().any(|row| warnings(row).contains(&"not_durable"))
    };
    assert!(is_doubted());
    mounted.remount("sync").unwrap();
    assert!(!is_doubted());
    mounted.finish();
}

#[test]
fn a_loop_device_itself_has_a_chain() {
    let device = needs!(LoopDevice::new(&random_bytes(8 << 20, 1)));
    let folder = Folder::new();
    let options = "--rw sequential-read --caching direct";
    let document = document(&disk(&folder, device.path().to_str().unwrap(), options).run());
    all_warned(&document, "disk/sequential-read", "loop_cached");
    let name = device.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(layer(storage(&document), "loop")["name"], name);
    device.finish();
}

#[test]
fn an_overlay_is_named() {
    let lower = tempfile::tempdir().unwrap();
    let upper = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let overlay = needs!(Mounted::overlay(lower.path(), &upper.path()));
    let folder = Folder::new();
    let place = overlay.path();
    let options = "--rw random-read --block-size 4KiB";
    let document = document(&disk_in(&folder, place.to_str().unwrap(), options).run());
    all_warned(&document, "disk/random-read", "overlay_filesystem");
    // What lies at the bottom counts, not the name of the layer above it.
    all_warned(&document, "disk/random-read", "memory_filesystem");
    assert_eq!(happened(&document, "disk/random-read"), ["no"]);
    let storage = storage(&document);
    assert_eq!(storage["bottom"], "memory", "{storage:#}");
    assert_eq!(storage["nature"], "overlay", "{storage:#}");
    let layers = upper.path().join("upper");
    assert_eq!(layer(storage, "overlay")["upper"], layers.to_str().unwrap(), "{storage:#}");
    assert!(Folder::names_in(&place).is_empty());
    overlay.finish();
    upper.finish();
}

#[test]
fn memory_is_no_disk() {
    let mounted = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let folder = Folder::new();
    let place = mounted.path();
    let document = document(&disk_in(&folder, place.to_str().unwrap(), "--rw random-read").run());
    all_warned(&document, "disk/random-read", "memory_filesystem");
    assert_eq!(storage(&document)["nature"], "memory");
    for row in rows(&document, "disk/random-read") {
        assert!(row["audit"]["disk_read_bytes"].as_f64().unwrap_or(0.0) == 0.0, "{row:#}");
    }
    mounted.finish();
}

#[test]
fn names_are_measured_where_nobody_counts_what_is_free() {
    let mounted = needs!(Mounted::new(Kind::Ramfs));
    let folder = Folder::new();
    let place = mounted.path();
    let document = document(&disk(&folder, place.to_str().unwrap(), "--rw metadata").run());
    assert!(rows(&document, "disk/create")[0]["median"].is_f64(), "{document:#}");
    mounted.finish();
}

#[test]
fn a_limit_of_a_control_group_is_named() {
    needs!(needs_storage(&std::env::temp_dir()));
    let folder = Folder::new();
    random_file(&folder.join("data"), 8 << 20, 1);
    std::fs::File::open(folder.join("data")).unwrap().sync_all().unwrap();
    let limits = Limits { read_bytes_per_s: Some(16 << 20), write_bytes_per_s: Some(48 << 20) };
    let throttle = needs!(Throttle::new(folder.path(), limits));
    let options =
        "bench disk data --rw random-read --caching direct --block-size 64KiB --iodepth 1";
    let arguments: Vec<&str> = options.split(' ').chain(LITTLE.split(' ')).collect();
    let wrapper = throttle.wrapper();
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let document = document(&folder.under(&wrapper, &arguments).run());
    all_warned(&document, "disk/random-read", "io_limit");
    let all = storage(&document)["limits"].as_array().unwrap();
    let limit = all.iter().find(|limit| limit["group"] == throttle.name().as_str());
    let limit = limit.unwrap_or_else(|| panic!("{all:#?}"));
    assert_eq!(limit["read_bytes_per_s"], 16 << 20, "{limit:#}");
    assert_eq!(limit["write_bytes_per_s"], 48 << 20, "{limit:#}");
    assert!(limit["read_operations_per_s"].is_null(), "{limit:#}");
    // However far the row is from it, below or above: it was given.
    for row in rows(&document, "disk/random-read") {
        assert_eq!(row["ceiling"]["provenance"], "given", "{row:#}");
        assert_eq!(row["ceiling"]["value"], 256.0, "{row:#}");
        let exceeds = row["ceiling"]["ratio"].as_f64().unwrap() > 1.02;
        assert_eq!(warnings(row).contains(&"limit_exceeded"), exceeds, "{row:#}");
    }
    for (words, most) in [
        ("read data --cold --format json", 16 << 20),
        ("write new --caching direct --block-size 1M --block-count 8 --format json", 48 << 20),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let result = folder.under(&wrapper, &words).leaves("new").run().exits(0).result();
        assert!(warnings(&result).contains(&"io_limit"), "{result:#}");
        let ceiling = &result["ceiling"];
        assert_eq!(
            (&ceiling["provenance"], &ceiling["value"]),
            (&"given".into(), &f64::from(most).into())
        );
    }
}

/// What the rows of an id have as evidence, each answer once.
fn happened(document: &Value, id: &str) -> Vec<String> {
    let all = rows(document, id).into_iter();
    let mut all: Vec<String> = all
        .map(|row| row["audit"]["evidence"]["happened"].as_str().unwrap_or("none").to_owned())
        .collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn an_overlay_on_storage_has_the_account_of_its_device_also_where_its_layers_are_hidden() {
    // A size that no image of another test has: where the layers are hidden it tells the device.
    let below = needs!(Mounted::on_image(Kind::Ext4, 61 << 20, Backing::Direct));
    needs!(needs_program("unshare"));
    let (hidden, lower) = (below.path().join("hidden"), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(hidden.join("here")).unwrap();
    let overlay = needs!(Mounted::overlay(lower.path(), &hidden.join("here")));
    let folder = Folder::new();
    let place = overlay.path();
    let options = "bench disk --rw random-read,sequential-write --caching direct --size 4MiB";
    let arguments: Vec<&str> = options.split(' ').chain(LITTLE.split(' ')).collect();
    let arguments = [&arguments[..2], &[place.to_str().unwrap()], &arguments[2..]].concat();
    // As in a container: a namespace in which the upper directory has no name.
    let script = format!("mount -t tmpfs none {} && exec \"$@\"", hidden.display());
    for (wrapper, by_size) in
        [(vec!["env"], false), (vec!["unshare", "--mount", "sh", "-c", &script, "sh"], true)]
    {
        let document = document(&folder.under(&wrapper, &arguments).run());
        let storage = storage(&document);
        assert_eq!(layer(storage, "overlay")["by_size"], by_size, "{storage:#}");
        assert_eq!(
            layer(storage, "loop")["name"],
            below.node().file_name().unwrap().to_str().unwrap()
        );
        for id in ["disk/random-read", "disk/sequential-write"] {
            assert!(audit(rows(&document, id)[0], "disk_share_ratio") > 0.0, "{document:#}");
            // Whether writes went around the cache nobody sees where others write, too.
            let happened = happened(&document, id);
            let is_told =
                |word: &String| word == "yes" || id.ends_with("write") && word == "unknown";
            assert!(happened.iter().all(is_told), "{document:#}");
        }
    }
    let file = place.join("file");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let arguments = ["read", file.to_str().unwrap(), "--format", "json"];
    let ran = folder.flatout(arguments).run().exits(0).document();
    assert!(audit(&ran["results"][0], "cached_before_bytes") >= 1048576.0, "{ran:#}");
    overlay.finish();
    below.finish();
}

#[test]
fn a_loop_device_that_goes_around_the_cache_of_memory_is_no_disk() {
    let memory = needs!(Mounted::new(Kind::Tmpfs(64 << 20)));
    let content = random_bytes(8 << 20, 1);
    let device = needs!(LoopDevice::inside(&memory.path(), &content, Backing::Direct));
    let folder = Folder::new();
    let options = "--rw random-read --caching direct";
    let document = document(&disk(&folder, device.path().to_str().unwrap(), options).run());
    all_warned(&document, "disk/random-read", "memory_filesystem");
    assert_eq!(storage(&document)["bottom"], "memory");
    assert_eq!(happened(&document, "disk/random-read"), ["no"], "{document:#}");
    let answers = document["end"]["verdict"].as_array().unwrap();
    let happened = answers.iter().find(|one| one["question"] == "did it even happen?").unwrap();
    assert!(happened["text"].as_str().unwrap().contains("memory"), "{happened:#}");
    device.finish();
    memory.finish();
}

#[test]
fn direct_writes_that_btrfs_buffers_are_told_from_those_that_it_does_not() {
    let mounted = needs!(Mounted::on_image(Kind::Btrfs, 256 << 20, Backing::Direct));
    needs!(needs_kernel((6, 18), "btrfs buffers direct writes"));
    let folder = Folder::inside(&mounted.path());
    for (name, chattr, expected) in [("sums", "-C", "no"), ("bare", "+C", "yes")] {
        let path = folder.join(name);
        std::fs::File::create(&path).unwrap();
        let words = vec![chattr.into(), path.clone().into()];
        needs!(match folder.program("chattr".as_ref(), words).run().code {
            Some(0) => Ok(()),
            code => Err(format!("chattr ended with {code:?}")),
        });
        std::fs::write(&path, random_bytes(8 << 20, 1)).unwrap();
        let options = "--rw random-write --overwrite --caching direct --time 100ms";
        let document = document(&disk(&folder, path.to_str().unwrap(), options).run());
        assert_eq!(happened(&document, "disk/random-write"), [expected], "{name}: {document:#}");
        for row in rows(&document, "disk/random-write") {
            let is_said = warnings(row).contains(&"direct_cached");
            assert_eq!(is_said, expected == "no", "{row:#}");
        }
        let words = ["write", path.to_str().unwrap(), "--overwrite", "--direct", "--sync", "none"];
        let how = ["--block-size", "1M", "--block-count", "32", "--format", "json"];
        let result = folder.flatout([&words[..], &how].concat()).run().exits(0).result();
        let is_said = warnings(&result).contains(&"direct_cached");
        assert!(!is_said || result["ceiling"]["limiter"] != "device", "{result:#}");
    }
    drop(folder);
    mounted.finish();
}

#[test]
fn the_account_of_the_device_agrees_with_what_was_asked() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 128 << 20, Backing::Direct));
    let folder = Folder::new();
    let place = mounted.path();
    let options = "--rw random-read,random-write --caching direct --block-size 16KiB";
    // Others may read from the disk below meanwhile.
    let begun = Instant::now();
    let is_exact = std::iter::repeat(()).take_while(|()| begun.elapsed() < LIMIT).any(|()| {
        let document = document(&disk_in(&folder, place.to_str().unwrap(), options).run());
        let mut most = 0.0_f64;
        for (id, key) in
            [("disk/random-read", "disk_read_bytes"), ("disk/random-write", "disk_write_bytes")]
        {
            let all = rows(&document, id).into_iter();
            for row in all.filter(|row| row["parameters"]["caching"] == "direct") {
                assert_eq!(row["audit"]["evidence"]["happened"], "yes", "{row:#}");
                let (moved, asked) = (audit(row, key), audit(row, "bytes"));
                // A filesystem takes nothing away. To writes it adds its journal, and what it still
                // has to make of a new image, which costs a short trial most.
                assert!(moved >= 0.9 * asked, "{row:#}");
                most = if id == "disk/random-read" { most.max(moved / asked) } else { most };
            }
        }
        most < 3.0
    });
    assert!(is_exact, "more was read than asked for in each run of {LIMIT:?}");
    mounted.finish();
}
