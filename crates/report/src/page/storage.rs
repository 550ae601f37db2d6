//! The way from a place to its device in words, from `start.environment.storage`.
//!
//! Every layer that the record names is shown in its order, also one of a kind that is not known
//! here. What the record does not know is called unknown where a reader would ask for it.

use serde_json::Value;

use super::{Block, Section, machine};
use crate::text::{self, Joined};
use crate::{label, order, quantity, style::Tone};

/// Mount options longer than this, all together, are left to the JSON document.
const LONGEST_OPTIONS: usize = 60;

/// One place and what it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    /// `. on ext4 (rw,relatime) → vda, virtio, 256 GiB · link unknown`.
    pub line: String,
    /// What a reader must know before the figures: no disk below, limits of control groups.
    pub remarks: Vec<String>,
}

/// Adds what the places stand on: one chain each.
pub(super) fn push(section: &mut Section, environment: &Value) {
    for Chain { line, remarks } in chains(environment) {
        section.push(Block::Text(line, Tone::Plain));
        remarks.into_iter().for_each(|remark| section.push(Block::Text(remark, Tone::Warn)));
    }
}

/// The chains of an environment, in its order; none where it has no storage.
pub(super) fn chains(environment: &Value) -> Vec<Chain> {
    objects(environment, "storage").map(chain).collect()
}

fn chain(place: &Value) -> Chain {
    let layers: Vec<&Value> = objects(place, "layers").collect();
    let mut line = words(place, "place").unwrap_or("a place without a name").to_owned();
    let mut has_mount = false;
    for layer in &layers {
        let is_mount = kind(layer) == "mount";
        let joint = if is_mount && !has_mount { " on " } else { " → " };
        has_mount |= is_mount;
        line += &format!("{joint}{}", layer_text(layer));
    }
    if !has_mount && let Some(filesystem) = machine::filesystem(place) {
        line += &format!(" (filesystem {filesystem})");
    }
    let disks = layers.iter().filter(|layer| kind(layer) == "disk");
    for told in order::distinct(disks.map(|disk| link_text(disk))).into_iter().chain(room(place)) {
        line += &format!(" · {told}");
    }
    let nature = words(place, "nature");
    // Where nobody sees to the bottom, it is not in the record.
    let bottom = words(place, "bottom").filter(|&bottom| Some(bottom) != nature);
    let no_device = || {
        let found = layers.iter().any(|layer| matches!(kind(layer), "disk" | "partition" | "md"));
        let is_unknown = nature.is_none_or(|nature| nature == "disk") && !found;
        is_unknown.then(|| "the device below is unknown".to_owned())
    };
    let below = match bottom {
        Some("memory") => Some("at the bottom is memory: no disk takes part".to_owned()),
        Some(other) => nature_text(other),
        None => no_device(),
    };
    let mut remarks: Vec<String> = nature.and_then(nature_text).into_iter().chain(below).collect();
    remarks.extend(objects(place, "limits").filter_map(limit_text));
    Chain { line, remarks }
}

fn objects<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().into_iter().flatten().filter(|item| item.is_object())
}

fn words<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    of[key].as_str().filter(|text| !text.is_empty())
}

fn kind(layer: &Value) -> &str {
    words(layer, "kind").unwrap_or("layer")
}

fn layer_text(layer: &Value) -> String {
    let name = words(layer, "name").unwrap_or("unnamed");
    match kind(layer) {
        "mount" => mount_text(layer),
        "overlay" => {
            let by_size = layer["by_size"] == true;
            let seen = if by_size { ", found below by the size alone" } else { "" };
            match (words(layer, "lower"), words(layer, "upper")) {
                (Some(lower), _) => format!("overlay, lower layer {lower}"),
                (None, Some(upper)) => format!("overlay, upper layer {upper}{seen}"),
                (None, None) => format!("overlay without an upper layer{seen}"),
            }
        }
        "loop" => {
            let backing = words(layer, "backing").unwrap_or("unknown");
            let caching = match layer["direct_io"].as_bool() {
                Some(true) => ", direct",
                Some(false) => ", through the page cache",
                None => "",
            };
            format!("{name}, a loop device on the file {backing}{caching}")
        }
        "partition" => name.to_owned(),
        "dm" => format!("{name}, device mapper ({})", words(layer, "type").unwrap_or("unknown")),
        "md" => format!("{name}, {}", words(layer, "level").unwrap_or("RAID of unknown level")),
        "disk" => disk_text(name, layer),
        kind => unknown_layer(kind, layer),
    }
}

fn mount_text(layer: &Value) -> String {
    let mut text = words(layer, "filesystem").unwrap_or("an unknown filesystem").to_owned();
    // A device below has a layer of its own; a server or a dataset has not.
    if let Some(source) = words(layer, "source")
        && !source.starts_with("/dev/")
        && source.contains(['/', ':'])
    {
        text.push_str(&format!(" from {source}"));
    }
    let options = words(layer, "options").unwrap_or_default();
    let short = options.split(',').filter(|option| !option.contains('/')).joined(",");
    if !short.is_empty() && short.len() <= LONGEST_OPTIONS {
        text.push_str(&format!(" ({short})"));
    }
    text
}

fn disk_text(name: &str, layer: &Value) -> String {
    let mut parts = vec![name.to_owned()];
    let plain = |key: &str| words(layer, key).map(|text| text.trim().to_owned());
    parts.extend(plain("model"));
    parts.extend(plain("transport"));
    if layer["rotational"] == true {
        parts.push("rotating".to_owned());
    }
    parts.extend(plain("write_cache"));
    parts.extend(words(layer, "scheduler").map(|scheduler| format!("scheduler {scheduler}")));
    let bytes = layer["size_bytes"].as_u64();
    parts.push(bytes.map_or("size unknown".to_owned(), quantity::rounded_size));
    parts.join(", ")
}

fn link_text(disk: &Value) -> String {
    let link = &disk["link"];
    if !link.is_object() {
        return "link unknown".to_owned();
    }
    let name = format!("link {}", words(link, "name").unwrap_or("unnamed"));
    let rate = link["bytes_per_s"].as_f64().map(|rate| quantity::value("bytes/s", rate));
    text::listed([name, rate.unwrap_or_default()], ", ")
}

/// Free bytes of the filesystem, with its size where that is known too.
fn room(place: &Value) -> Option<String> {
    let bytes = |key: &str| place[key].as_f64();
    let free = quantity::value("bytes", bytes("free_bytes")?);
    let size = bytes("size_bytes").map(|size| format!(" of {}", quantity::value("bytes", size)));
    Some(format!("{free} free{}", size.unwrap_or_default()))
}

/// A sentence where the place is no disk; none where it is.
fn nature_text(nature: &str) -> Option<String> {
    Some(match nature {
        "disk" => return None,
        "memory" => "in memory: no figure here is one of a disk".to_owned(),
        "network" => {
            "on another machine: the figures include the network and the server".to_owned()
        }
        "userspace" => "served by a program (FUSE): the figures include that program".to_owned(),
        "overlay" => "an overlay: the first write to a file copies it up".to_owned(),
        other => format!("of an unfamiliar nature: {other}"),
    })
}

/// What a control group allows, for example `control group /a limits reads to 95.4 MiB/s`.
fn limit_text(limit: &Value) -> Option<String> {
    let known = [
        ("read_bytes_per_s", "bytes/s", "reads"),
        ("write_bytes_per_s", "bytes/s", "writes"),
        ("read_operations_per_s", "operations/s", "reads"),
        ("write_operations_per_s", "operations/s", "writes"),
    ];
    let bounds = known.iter().filter_map(|(key, unit, what)| {
        let bound = limit[*key].as_f64()?;
        Some(format!("{what} to {}", quantity::value(unit, bound)))
    });
    let bounds = Some(bounds.joined(", ")).filter(|bounds| !bounds.is_empty())?;
    let group = words(limit, "group").unwrap_or("of an unknown name");
    let device = words(limit, "device").map(|device| format!(" on device {device}"));
    Some(format!("control group {group} limits {bounds}{}", device.unwrap_or_default()))
}

/// A layer of a kind that this version has not heard of: whatever the record says.
fn unknown_layer(kind: &str, layer: &Value) -> String {
    let told = layer.as_object().into_iter().flatten();
    let told = told.filter(|(key, value)| *key != "kind" && !value.is_null());
    std::iter::once(kind.to_owned())
        .chain(told.map(|(key, value)| label::parameter(key, value)))
        .joined(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(place: Value) -> Chain {
        let mut found = chains(&json!({ "storage": [place] }));
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn a_plain_disk_is_one_line() {
        let chain = only(json!({"place": ".", "filesystem": "ext4", "nature": "disk", "layers": [
            {"kind": "mount", "filesystem": "ext4", "source": "/dev/vda", "options": "rw,relatime"},
            {"kind": "disk", "name": "vda", "model": null, "transport": "virtio",
             "rotational": false, "scheduler": "none", "write_cache": "write back",
             "size_bytes": 274877906944_u64, "link": null}]}));
        let expected = ". on ext4 (rw,relatime) → vda, virtio, write back, scheduler none, \
                        256 GiB · link unknown";
        assert_eq!(chain.line, expected);
        assert!(chain.remarks.is_empty());
    }

    #[test]
    fn layers_between_are_named() {
        let chain = only(json!({"place": "img", "nature": "disk", "layers": [
            {"kind": "mount", "filesystem": "xfs", "source": "/dev/loop0"},
            {"kind": "loop", "name": "loop0", "backing": "/srv/disk.img", "direct_io": false},
            {"kind": "mount", "filesystem": "ext4"},
            {"kind": "dm", "name": "vg-home", "type": "crypt"},
            {"kind": "md", "name": "md0", "level": "raid1", "members": ["sda1", "sdb1"]},
            {"kind": "partition", "name": "sda1"},
            {"kind": "bcache", "name": "bcache0", "cache_bytes": 4096},
            {"kind": "disk", "name": "sda", "rotational": true,
             "link": {"name": "SATA 6 Gb/s", "bytes_per_s": 629145600}}],
            "free_bytes": 1073741824_u64}));
        let expected = "img on xfs → loop0, a loop device on the file /srv/disk.img, through the \
            page cache → ext4 → vg-home, device mapper (crypt) → md0, raid1 → sda1 → bcache cache \
            4 KiB bcache0 → sda, rotating, size unknown · link SATA 6 Gb/s, 600 MiB/s · 1.00 GiB free";
        assert_eq!(chain.line, expected);
    }

    #[test]
    fn what_is_no_disk_is_called_so() {
        let chain = only(json!({"place": "/tmp", "filesystem": "tmpfs", "nature": "memory",
            "layers": [{"kind": "mount", "filesystem": "tmpfs", "source": "tmpfs"}]}));
        assert_eq!(chain.line, "/tmp on tmpfs");
        assert_eq!(chain.remarks, ["in memory: no figure here is one of a disk"]);
        let chain = only(json!({"place": "x", "filesystem": "ext4", "nature": "disk"}));
        assert_eq!(chain.line, "x (filesystem ext4)");
        assert_eq!(chain.remarks, ["the device below is unknown"]);
        assert!(chains(&json!({"storage": "none"})).is_empty());
        assert!(chains(&Value::Null).is_empty());
    }

    #[test]
    fn an_overlay_says_where_it_leads_and_memory_at_the_bottom_is_said() {
        let layers = |layer: Value| json!({"place": "x", "nature": "overlay", "layers": [layer]});
        let line = |layer| only(layers(layer)).line;
        let upper = json!({"kind": "overlay", "upper": "/u", "lower": null, "by_size": true});
        assert!(line(upper).contains("upper layer /u, found below by the size alone"));
        let lower = json!({"kind": "overlay", "upper": "/u", "lower": "/l", "by_size": false});
        assert!(line(lower).contains("overlay, lower layer /l"));
        let chain = only(json!({"place": "x", "nature": "disk", "bottom": "memory", "layers": [
            {"kind": "loop", "name": "loop0", "backing": "/tmp/image", "direct_io": true}]}));
        assert_eq!(chain.remarks, ["at the bottom is memory: no disk takes part"]);
        let remarks = |bottom| {
            only(json!({"place": "/dev/loop0", "nature": "disk", "bottom": bottom, "layers": [
                {"kind": "loop", "name": "loop0", "backing": "/srv/image", "direct_io": true}]}))
            .remarks
        };
        assert!(remarks("network").concat().starts_with("on another machine"));
        assert_eq!(remarks("disk"), ["the device below is unknown"], "which disk nobody knows");
    }

    #[test]
    fn limits_of_groups_are_sentences() {
        let chain = only(json!({"place": "x", "nature": "overlay", "limits": [
            {"group": "/a", "device": "254:0", "read_bytes_per_s": 104857600,
             "write_bytes_per_s": null, "write_operations_per_s": 500},
            {"group": "/b", "device": "254:0"}]}));
        assert_eq!(
            chain.remarks[1..],
            ["control group /a limits reads to 100 MiB/s, writes to 500 op/s on device 254:0"]
        );
    }
}
