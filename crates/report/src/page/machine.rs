//! The environment of a record in words, without knowing its members by heart.
//!
//! The record stores the machine as a free document, so it is shown generically: every member
//! becomes a pair of words. Only the headline looks for a few well-known names.

use serde_json::Value;

use crate::text::{self, Joined};
use crate::{label, order, quantity};

/// Members and their values, nested names joined by a space; empty and unread members last.
pub(crate) fn pairs(environment: &Value) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    collect("", environment, &mut pairs);
    pairs.sort_by_key(|(_, value)| value == "unknown");
    pairs
}

fn collect(prefix: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    let Value::Object(members) = value else {
        if !prefix.is_empty() {
            let key = prefix.rsplit(' ').next().unwrap_or(prefix);
            let text = label::spelled(key, value, quantity::rounded_size);
            pairs.push((prefix.split(' ').map(label::noun).joined(" "), text));
        }
        return;
    };
    for (key, member) in members {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix} {key}") };
        collect(&path, member, pairs);
    }
}

/// Facts of the headline, and what follows each.
const HEADLINE: [(&str, &str); 5] = [
    ("cpu_model", ""),
    ("simd_limit", " at most"),
    ("cpus_online", " CPUs"),
    ("memory_bytes", " memory"),
    ("kernel_release", ""),
];

/// What of a fact of the headline may be used, where that is less.
const LIMITS: [(&str, &str); 3] = [
    ("cpus_online", "cpu_quota_cpus"),
    ("cpus_online", "cpus_allowed"),
    ("memory_bytes", "memory_limit_bytes"),
];

/// The machine in one line: model, CPUs, memory, kernel; what is unknown is left out.
pub(crate) fn headline(environment: &Value) -> String {
    let told = |key: &str, value: &Value| match (label::unit_of(key), value.as_f64()) {
        ("bytes", Some(bytes)) => quantity::value("bytes", bytes),
        _ => label::plain(key, value),
    };
    let known = |key: &str| {
        let value = environment.get(key)?;
        (value.is_string() || value.is_number()).then_some(value)
    };
    let words = HEADLINE.iter().filter_map(|&(key, noun)| {
        let value = known(key)?;
        let text = told(key, value);
        // What a container may use is less than what there is.
        let limits = LIMITS.iter().filter(|(of, _)| *of == key);
        let limits = limits.filter_map(|&(_, limit)| Some((known(limit)?.as_f64()?, limit)));
        let less = limits.filter(|(limit, _)| Some(*limit) < value.as_f64());
        let text = match less.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
            Some((_, limit)) => format!("{} of {text}", told(limit, known(limit)?)),
            None => text,
        };
        let kernel = if key == "kernel_release" && !text.contains("Linux") { "Linux " } else { "" };
        let noun = if text == "1" { noun.trim_end_matches('s') } else { noun };
        Some(format!("{kernel}{text}{noun}"))
    });
    words.joined(", ")
}

/// Disks of a place that are named; of more, their number tells more.
const NAMED_DISKS: usize = 3;

/// Filesystem and disks of the first place that was measured: `ext4 on vda (virtio)`.
pub(crate) fn place(environment: &Value) -> String {
    let place = &environment["storage"][0];
    let disks: Vec<&Value> = layers(place).filter(|layer| layer["kind"] == "disk").collect();
    let texts = |key: &str| disks.iter().filter_map(|disk| disk[key].as_str()).collect::<Vec<_>>();
    let names = texts("name");
    let named = match names.len() {
        0..=NAMED_DISKS => names.iter().joined(" + "),
        many => quantity::counted(many, "disk"),
    };
    let transports = order::distinct(texts("transport").into_iter()).joined(", ");
    let disks = (!names.is_empty()).then(|| text::with_aside(&named, &transports));
    filesystem(place).map(str::to_owned).into_iter().chain(disks).joined(" on ")
}

/// The filesystem of a place. That of a block device is `none`.
pub(crate) fn filesystem(place: &Value) -> Option<&str> {
    place["filesystem"].as_str().filter(|name| !["", "none"].contains(name))
}

/// Whether both measured the same filesystem over the same disks, put together alike. Of a
/// volume nobody knows how it lies on its disks, so each is a place of its own; partitions of a disk are one.
pub(crate) fn are_one_place(one: &Value, other: &Value) -> bool {
    foundation(one) == foundation(other)
}

fn foundation(environment: &Value) -> Vec<Option<&Value>> {
    let place = &environment["storage"][0];
    let parts = layers(place).filter(|layer| layer["kind"] != "partition").flat_map(|layer| {
        let has_name = ["disk", "dm"].iter().any(|kind| layer["kind"] == *kind);
        let name = layer.get("name").filter(|_| has_name);
        let keys = ["kind", "filesystem", "type", "level", "direct_io"];
        keys.map(|key| layer.get(key)).into_iter().chain([name])
    });
    std::iter::once(place.get("filesystem")).chain(parts).collect()
}

fn layers(place: &Value) -> impl Iterator<Item = &Value> {
    place["layers"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_members_become_pairs() {
        let environment =
            json!({"cpu": {"model": "X", "mhz": null}, "memory": {"total_bytes": 1 << 30}});
        let expected = [("CPU model", "X"), ("memory total", "1 GiB"), ("CPU mhz", "unknown")];
        let found = pairs(&environment);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_headline_takes_what_is_there() {
        let environment = json!({"cpu_model": "Xeon", "cpus_online": 2, "kernel_release": "6.1.0"});
        assert_eq!(headline(&environment), "Xeon, 2 CPUs, Linux 6.1.0");
        assert_eq!(headline(&json!(null)), "");
        let limited = json!({"cpu_model": "X", "cpus_online": 8, "cpus_allowed": 4,
            "cpu_quota_cpus": 1.5, "memory_bytes": 1_u64 << 33, "memory_limit_bytes": 64 << 20});
        assert_eq!(headline(&limited), "X, 1.50 of 8 CPUs, 64.0 MiB of 8.00 GiB memory");
        let held_down = json!({"cpu_model": "X", "cpus_online": 2, "simd_limit": "sse4.1"});
        assert_eq!(headline(&held_down), "X, sse4.1 at most, 2 CPUs");
        let whole = json!({"cpus_online": 8, "cpus_allowed": 8, "cpu_quota_cpus": 16.0});
        assert_eq!(headline(&whole), "8 CPUs");
        assert_eq!(headline(&json!({"cpus_online": 1})), "1 CPU");
    }

    #[test]
    fn a_place_has_all_of_its_disks() {
        let on = |filesystem: &str, above: Value, disks: &[&str]| {
            let disk = |name| json!({"kind": "disk", "name": name, "transport": "virtio"});
            let layers: Vec<Value> = std::iter::once(above).chain(disks.iter().map(disk)).collect();
            json!({"storage": [{"filesystem": filesystem, "layers": layers}]})
        };
        let md = |level| json!({"kind": "md", "name": "md0", "level": level});
        let partition = |name| json!({"kind": "partition", "name": name});
        for (environment, text) in [
            (on("ext4", partition("vda1"), &["vda"]), "ext4 on vda (virtio)"),
            (on("ext4", md("raid0"), &["vdc", "vdd"]), "ext4 on vdc + vdd (virtio)"),
            (on("xfs", md("raid6"), &["a", "b", "c", "d"]), "xfs on 4 disks (virtio)"),
            (on("none", partition("vdc1"), &["vdc"]), "vdc (virtio)"),
            (json!({"storage": [{"filesystem": "tmpfs"}]}), "tmpfs"),
            (json!(null), ""),
        ] {
            assert_eq!(place(&environment), text);
            assert!(are_one_place(&environment, &environment), "{text}");
        }
        let striped = on("ext4", md("raid0"), &["vdc", "vdd"]);
        for other in [
            on("ext4", md("raid1"), &["vdc", "vdd"]),
            on("ext4", md("raid0"), &["vdc", "vde"]),
            on("ext4", partition("vdd1"), &["vdd"]),
            on("xfs", md("raid0"), &["vdc", "vdd"]),
        ] {
            assert!(!are_one_place(&striped, &other), "{other}");
        }
        let volume = |name| json!({"kind": "dm", "name": name, "type": "LVM"});
        let [one, other] = ["vg-a", "vg-b"].map(|name| on("ext4", volume(name), &["vdc", "vdd"]));
        assert!(!are_one_place(&one, &other), "one may be striped");
        let [one, other] = ["vda1", "vda2"].map(|name| on("ext4", partition(name), &["vda"]));
        assert!(are_one_place(&one, &other), "partitions of one disk");
    }
}
