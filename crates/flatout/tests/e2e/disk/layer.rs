//! What lies between a path and its device: filesystems on others, loop devices, limits.

use serde_json::Value;

use crate::bin::Folder;
use crate::filesystem::{Backing, Kind, LoopDevice, Mounted, needs_storage};
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
    let options = "--pattern sequential-read --bytes 4MiB";
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
fn a_loop_device_itself_has_a_chain() {
    let device = needs!(LoopDevice::new(&random_bytes(8 << 20, 1)));
    let folder = Folder::new();
    let options = "--pattern sequential-read --caching direct";
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
    let options = "--pattern random-read --block-size 4KiB";
    let document = document(&disk_in(&folder, place.to_str().unwrap(), options).run());
    all_warned(&document, "disk/random-read", "overlay_filesystem");
    let storage = storage(&document);
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
    let document =
        document(&disk_in(&folder, place.to_str().unwrap(), "--pattern random-read").run());
    all_warned(&document, "disk/random-read", "memory_filesystem");
    assert_eq!(storage(&document)["nature"], "memory");
    for row in rows(&document, "disk/random-read") {
        assert!(row["audit"]["disk_read_bytes"].as_f64().unwrap_or(0.0) == 0.0, "{row:#}");
    }
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
        "bench disk data --pattern random-read --caching direct --block-size 64KiB --depth 1";
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
}

#[test]
fn the_account_of_the_device_agrees_with_what_was_asked() {
    let mounted = needs!(Mounted::on_image(Kind::Ext4, 128 << 20, Backing::Direct));
    let folder = Folder::new();
    let place = mounted.path();
    let options = "--pattern random-read,random-write --caching direct --block-size 16KiB";
    let document = document(&disk_in(&folder, place.to_str().unwrap(), options).run());
    for (id, key) in
        [("disk/random-read", "disk_read_bytes"), ("disk/random-write", "disk_write_bytes")]
    {
        for row in rows(&document, id) {
            if row["parameters"]["caching"] == "direct" {
                let (moved, asked) = (audit(row, key), audit(row, "bytes"));
                // A filesystem adds its journal, which costs a short trial most, and never takes
                // half away.
                let journal = audit(row, "trials_run") * f64::from(1 << 20);
                assert!(moved >= 0.9 * asked && moved < 2.0 * asked + journal, "{row:#}");
            }
        }
    }
    mounted.finish();
}
