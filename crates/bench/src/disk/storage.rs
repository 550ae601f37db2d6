//! What lies between a place and its disks, in the members of the record.

use std::path::Path;

use flatout_sys::Nature;
use flatout_sys::storage::{Disk, IoLimit, Layer, Link};
use serde_json::{Value, json};

use super::place::Kind;
use super::test_file::TestFile;

/// The entry of `start.environment.storage` for a place.
pub(super) fn describe(file: &TestFile) -> Value {
    let chain = &file.chain;
    // The space around a device's node says nothing about the device.
    let is_device = file.place.kind == Kind::Device;
    let space = |bytes: u64| (!is_device && file.filesystem.size_bytes > 0).then_some(bytes);
    json!({
        "place": words(&file.place.path),
        "filesystem": chain.filesystem,
        "nature": chain.nature.name(),
        "bottom": chain.ground().map(Nature::name),
        "free_bytes": space(file.filesystem.free_bytes),
        "size_bytes": space(file.filesystem.size_bytes),
        "used_bytes": space(file.filesystem.used_bytes),
        "layers": chain.layers.iter().map(layer).collect::<Vec<_>>(),
        "limits": file.limits.iter().map(limit).collect::<Vec<_>>(),
    })
}

fn words(path: &Path) -> String {
    flatout_io::escape(path.as_os_str())
}

fn layer(layer: &Layer) -> Value {
    match layer {
        Layer::Mount(mount) => json!({
            "kind": "mount",
            "filesystem": mount.filesystem,
            "source": flatout_io::escape(&mount.source),
            "options": flatout_io::escape(mount.all_options()),
        }),
        Layer::Overlay { upper, lower, by_size } => json!({
            "kind": "overlay",
            "upper": upper.as_deref().map(words),
            "lower": lower.as_deref().map(words),
            "by_size": by_size,
        }),
        Layer::Loop { name, backing, direct_io, .. } => {
            json!({ "kind": "loop", "name": name, "backing": words(backing), "direct_io": direct_io })
        }
        Layer::Partition { name, .. } => json!({ "kind": "partition", "name": name }),
        Layer::Mapper { name, kind, .. } => json!({ "kind": "dm", "name": name, "type": kind }),
        Layer::Raid { name, level, members, .. } => {
            json!({ "kind": "md", "name": name, "level": level, "members": members })
        }
        Layer::Stacked { name, .. } => json!({ "kind": "stacked", "name": name }),
        Layer::Disk(disk) => self::disk(disk),
    }
}

fn disk(disk: &Disk) -> Value {
    let link = |link: &Link| json!({ "name": link.name, "bytes_per_s": link.bytes_per_s });
    json!({
        "kind": "disk",
        "name": disk.name,
        "model": disk.model,
        "transport": disk.transport,
        "rotational": disk.rotational,
        "scheduler": disk.scheduler,
        "write_cache": disk.write_cache,
        "size_bytes": disk.size_bytes,
        "logical_block_bytes": disk.logical_block_bytes,
        "physical_block_bytes": disk.physical_block_bytes,
        "max_request_bytes": disk.max_request_bytes,
        "queue_requests": disk.queue_requests,
        "read_ahead_bytes": disk.read_ahead_bytes,
        "link": disk.link.as_ref().map(link),
    })
}

fn limit(limit: &IoLimit) -> Value {
    json!({
        "group": limit.group,
        "device": limit.device.to_string(),
        "read_bytes_per_s": limit.read_bytes_per_s,
        "write_bytes_per_s": limit.write_bytes_per_s,
        "read_operations_per_s": limit.read_operations_per_s,
        "write_operations_per_s": limit.write_operations_per_s,
    })
}
