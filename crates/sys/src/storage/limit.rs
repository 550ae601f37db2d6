//! Limits that control groups set on the I/O of this process.
//!
//! Version 2 has `io.max`, and every ancestor binds too. Version 1 has `blkio.throttle.*`, where
//! only the group itself binds, and buffered writes go free: the kernel writes them back later in
//! the root's name. Groups above the root of a cgroup namespace bind but cannot be seen. See the
//! kernel's `admin-guide/cgroup-v2` and `admin-guide/cgroup-v1/blkio-controller`.

use std::collections::BTreeMap;
use std::path::Path;

use super::DeviceNumber;
use crate::attribute::whole;
use crate::quota::{Levels, Version};

/// The limits that one group sets on one disk; `None` where it sets none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IoLimit {
    /// The group, as its path below the mounted tree: `/` is the top of what is mounted.
    pub group: String,
    /// The disk.
    pub device: DeviceNumber,
    /// Bytes read per second.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<u64>,
    /// Read requests per second.
    pub read_operations_per_s: Option<u64>,
    /// Write requests per second.
    pub write_operations_per_s: Option<u64>,
}

/// The limits on these devices that bind this process, innermost group first.
///
/// All devices of a chain should be given: limits are set on whole disks, not on partitions, and may sit on a
/// layer in the middle.
///
/// Cost: two small files, and one or four more per level of groups.
pub fn limits(root: &Path, devices: &[DeviceNumber]) -> Vec<IoLimit> {
    let [Some(levels)] = Levels::discover(root, ["blkio"]) else { return Vec::new() };
    let Some(top) = levels.folders.last() else { return Vec::new() };
    let (binding, read): (_, fn(&Path, &str) -> Vec<IoLimit>) = match levels.version {
        Version::V1 => (&levels.folders[..1], read_v1),
        Version::V2 => (&levels.folders[..], read_v2),
    };
    let mut found = Vec::new();
    for folder in binding {
        let inside = folder.strip_prefix(top).unwrap_or(Path::new(""));
        let group = Path::new("/").join(inside).to_string_lossy().into_owned();
        let all = read(folder, &group).into_iter();
        found.extend(all.filter(|limit| devices.contains(&limit.device)));
    }
    found
}

impl IoLimit {
    fn none(group: &str, device: DeviceNumber) -> Self {
        Self { group: group.to_owned(), device, ..Self::default() }
    }

    /// What a figure that it bounds is held against.
    pub fn name(&self) -> String {
        format!("the I/O limit of the control group {}", self.group)
    }
}

type Field = fn(&mut IoLimit) -> &mut Option<u64>;

/// What they are called in version 2 and in version 1.
const FIELDS: [(&str, &str, Field); 4] = [
    ("rbps", "read_bps", |limit| &mut limit.read_bytes_per_s),
    ("wbps", "write_bps", |limit| &mut limit.write_bytes_per_s),
    ("riops", "read_iops", |limit| &mut limit.read_operations_per_s),
    ("wiops", "write_iops", |limit| &mut limit.write_operations_per_s),
];

fn read_v2(folder: &Path, group: &str) -> Vec<IoLimit> {
    let text = whole(&folder.join("io.max")).unwrap_or_default();
    text.lines()
        .filter_map(|line| parse_io_max(group, line))
        .filter(|limit| *limit != IoLimit::none(group, limit.device))
        .collect()
}

/// A line of `io.max`: `8:16 rbps=2097152 wbps=max riops=max wiops=120`.
fn parse_io_max(group: &str, line: &str) -> Option<IoLimit> {
    let mut words = line.split_ascii_whitespace();
    let mut limit = IoLimit::none(group, words.next()?.parse().ok()?);
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        if let Some((_, _, field)) = FIELDS.iter().find(|(known, ..)| *known == name) {
            *field(&mut limit) = value.parse().ok();
        }
    }
    Some(limit)
}

fn read_v1(folder: &Path, group: &str) -> Vec<IoLimit> {
    let mut limits = BTreeMap::new();
    for (_, name, field) in FIELDS {
        let path = folder.join(format!("blkio.throttle.{name}_device"));
        let text = whole(&path).unwrap_or_default();
        for (device, value) in text.lines().filter_map(parse_throttle) {
            let limit = limits.entry(device).or_insert_with(|| IoLimit::none(group, device));
            *field(limit) = Some(value);
        }
    }
    limits.into_values().collect()
}

/// A line of a throttle file of version 1: `8:16 1048576`.
fn parse_throttle(line: &str) -> Option<(DeviceNumber, u64)> {
    let (device, value) = line.split_once(' ')?;
    Some((device.parse().ok()?, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Tree;

    const SDA: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
    const SDA1: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

    #[test]
    fn version_2_gives_each_ancestor() {
        let tree = Tree::new(&[
            ("proc/self/cgroup", "0::/outer/inner\n"),
            (
                "proc/self/mountinfo",
                "26 20 0:23 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/outer/io.max", "8:0 rbps=max wbps=1000 riops=max wiops=max\n"),
            (
                "sys/fs/cgroup/outer/inner/io.max",
                "8:16 rbps=1 wbps=1 riops=1 wiops=1\n8:0 rbps=5 wbps=max riops=max wiops=120\n",
            ),
        ]);
        let found = limits(tree.root(), &[SDA1, SDA]);
        let inner = IoLimit {
            read_bytes_per_s: Some(5),
            write_operations_per_s: Some(120),
            ..IoLimit::none("/outer/inner", SDA)
        };
        let outer = IoLimit { write_bytes_per_s: Some(1000), ..IoLimit::none("/outer", SDA) };
        assert_eq!(found, [inner, outer]);
        assert_eq!(limits(tree.root(), &[]), []);
    }

    #[test]
    fn a_line_without_any_limit_is_none() {
        let tree = Tree::new(&[
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", "26 20 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/a/io.max", "8:0 rbps=max wbps=max riops=max wiops=max\nodd\n"),
        ]);
        assert_eq!(limits(tree.root(), &[SDA]), []);
        assert_eq!(limits(Path::new("/nonexistent"), &[SDA]), []);
    }

    #[test]
    fn in_version_1_only_the_group_itself_binds() {
        let throttle = "sys/fs/cgroup/blkio/a/b/blkio.throttle";
        let tree = Tree::new(&[
            ("proc/self/cgroup", "7:blkio:/a/b\n0::/\n"),
            (
                "proc/self/mountinfo",
                "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
                 41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device", "8:0 7\n"),
            (&format!("{throttle}.read_bps_device"), "8:0 1048576\n8:16 1\n"),
            (&format!("{throttle}.write_iops_device"), "8:0 100\n"),
        ]);
        let expected = IoLimit {
            read_bytes_per_s: Some(1 << 20),
            write_operations_per_s: Some(100),
            ..IoLimit::none("/a/b", SDA)
        };
        assert_eq!(limits(tree.root(), &[SDA]), [expected]);
    }
}
