//! What the control group allows: CPU quota, time spent throttled, memory limit.
//!
//! Both versions of cgroups are read, and the mixed layout in which version 1 controllers and an
//! empty version 2 tree exist side by side. A limit may sit on any ancestor, so every level up to
//! the mount is looked at and the tightest one counts. See cgroups(7) and the kernel's
//! `admin-guide/cgroup-v2`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::attribute::{self, number_after};
use crate::storage::{Mount, MountTable};

/// Which tree a controller lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One tree per controller.
    V1,
    /// One tree for all.
    V2,
}

/// One line of `/proc/self/cgroup`: the group of this process in one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Controllers of the tree; empty for version 2.
    pub controllers: Vec<String>,
    /// Path of the group from the root of the tree.
    pub group: String,
}

/// Reads the text of `/proc/self/cgroup`. Lines that cannot be read are left out.
pub fn parse_memberships(text: &str) -> Vec<Membership> {
    text.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let names = fields.next()?.split(',').filter(|name| !name.is_empty());
            let controllers = names.map(str::to_owned).collect();
            Some(Membership { controllers, group: fields.next()?.to_owned() })
        })
        .collect()
}

/// The CPUs that a quota is worth, by the two numbers of `cpu.max` (version 2), or of `cpu.cfs_quota_us`
/// and `cpu.cfs_period_us` (version 1); `None` when unlimited.
fn cpus(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

/// Reads `cpu.stat`: the time that the group was held back by its quota.
pub fn parse_throttled_ns(text: &str, version: Version) -> Option<u64> {
    let (key, factor) = match version {
        Version::V1 => ("throttled_time ", 1),
        Version::V2 => ("throttled_usec ", 1_000),
    };
    number_after(text, key)?.checked_mul(factor)
}

/// Version 1 has no word for "unlimited": it shows the largest multiple of the page size that
/// fits a signed 64-bit count, 2^63 − 4096 with 4 KiB pages. Anything this large is no limit.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// Reads `memory.max` or `memory.limit_in_bytes`; `None` when unlimited.
pub fn parse_memory_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < UNLIMITED_BYTES)
}

/// The groups that this process is in, resolved once; limits are read anew with each call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    cpu: Option<Levels>,
    memory: Option<Levels>,
}

/// A group's folder and those of its ancestors, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) version: Version,
    pub(crate) folders: Vec<PathBuf>,
}

impl Groups {
    /// Finds the groups of this process below `root` (`/` for the real ones).
    ///
    /// Cost: two small files. What cannot be found has no limits.
    pub fn discover(root: &Path) -> Self {
        let [cpu, memory] = Levels::discover(root, ["cpu", "memory"]);
        Self { cpu, memory }
    }

    /// Whether a limit on memory would be seen.
    pub(crate) fn tell_memory(&self) -> bool {
        self.memory.as_ref().is_some_and(|levels| levels.folders.iter().any(|at| at.exists()))
    }

    /// CPUs that the tightest quota is worth, for example 1.5; `None` without a quota.
    pub fn cpu_quota_cpus(&self) -> Option<f64> {
        let levels = self.cpu.as_ref()?;
        levels.folders.iter().filter_map(|folder| levels.quota(folder)).reduce(f64::min)
    }

    /// The tightest memory limit; `None` without one.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let levels = self.memory.as_ref()?;
        levels.folders.iter().filter_map(|folder| levels.memory_limit_bytes(folder)).min()
    }

    /// Bytes that may still be taken before a memory limit is reached, on the level where least is
    /// left; `None` without a limit. Files in the cache do not count as taken if nobody has used
    /// them lately, and by half otherwise, because the kernel gives them up first; `MemAvailable`
    /// counts alike.
    pub fn memory_left_bytes(&self) -> Option<u64> {
        let levels = self.memory.as_ref()?;
        levels.folders.iter().filter_map(|folder| levels.memory_left_bytes(folder)).min()
    }

    /// Time for which a quota held this process's groups back; `None` where no level tells.
    ///
    /// The levels are summed: the figure only ever grows, and only its growth means anything. Those
    /// without a quota are read, too: one may be set later.
    pub fn throttled_ns(&self) -> Option<u64> {
        let levels = self.cpu.as_ref()?;
        let of = |text: String| parse_throttled_ns(&text, levels.version);
        let seen_ns = levels.read("cpu.stat").filter_map(of).reduce(u64::saturating_add);
        // What groups above a namespace did to this one is counted here, and nowhere else to be seen
        // (Linux 6.6 and newer).
        let innermost = levels.folders.first()?;
        seen_ns.max(attribute::text(innermost, "cpu.stat.local").and_then(of))
    }
}

impl Levels {
    /// Finds the groups of this process in the trees of these controllers.
    pub(crate) fn discover<const N: usize>(
        root: &Path,
        controllers: [&str; N],
    ) -> [Option<Self>; N] {
        let text = attribute::text(root, "proc/self/cgroup").unwrap_or_default();
        let memberships = parse_memberships(&text);
        let mounts = MountTable::read(root);
        controllers.map(|controller| Self::find(root, controller, &memberships, &mounts))
    }

    fn find(
        root: &Path,
        controller: &str,
        memberships: &[Membership],
        mounts: &MountTable,
    ) -> Option<Self> {
        let member = |fits: &dyn Fn(&[String]) -> bool| {
            memberships.iter().find(|member| fits(&member.controllers))
        };
        let v1 = (Version::V1, member(&|names| names.iter().any(|name| name == controller)));
        let v2 = (Version::V2, member(&<[String]>::is_empty));
        [v1, v2].into_iter().find_map(|(version, member)| {
            let group = Path::new(&member?.group);
            let trees = mounts.all().filter(|mount| match version {
                Version::V1 => mount.filesystem == "cgroup" && mount.has_option(controller),
                Version::V2 => mount.filesystem == "cgroup2",
            });
            // A container may have mounts of other parts of the tree besides.
            let mount = trees.min_by_key(|mount| !group.starts_with(&mount.root))?;
            Some(Self { version, folders: folders(root, group, mount) })
        })
    }

    /// What each level says in the file of this name.
    fn read(&self, name: &str) -> impl Iterator<Item = String> {
        self.folders.iter().filter_map(move |folder| attribute::text(folder, name))
    }

    /// The limit of one level. `memory.high` is one, too: who exceeds it is held back until little
    /// moves.
    fn memory_limit_bytes(&self, folder: &Path) -> Option<u64> {
        let names: &[&str] = match self.version {
            Version::V1 => &["memory.limit_in_bytes"],
            Version::V2 => &["memory.max", "memory.high"],
        };
        let texts = names.iter().filter_map(|name| attribute::text(folder, name));
        texts.filter_map(|text| parse_memory_limit(&text)).min()
    }

    fn memory_left_bytes(&self, folder: &Path) -> Option<u64> {
        let limit_bytes = self.memory_limit_bytes(folder)?;
        let (taken, prefix) = match self.version {
            Version::V1 => ("memory.usage_in_bytes", "total_"),
            Version::V2 => ("memory.current", ""),
        };
        let taken_bytes = attribute::number(folder, taken)?;
        let stat = attribute::text(folder, "memory.stat").unwrap_or_default();
        let cached =
            |name: &str| number_after(&stat, &format!("{prefix}{name}_file ")).unwrap_or(0);
        let given_up_bytes = cached("inactive") + cached("active") / 2;
        let taken_bytes = taken_bytes.saturating_sub(given_up_bytes);
        Some(limit_bytes.saturating_sub(taken_bytes))
    }

    fn quota(&self, folder: &Path) -> Option<f64> {
        let read = |name: &str| attribute::text(folder, name);
        match self.version {
            Version::V1 => cpus(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
            Version::V2 => {
                let max = read("cpu.max")?;
                max.split_once(' ').and_then(|(quota, period)| cpus(quota, period))
            }
        }
    }
}

/// The folder of `group` and of each ancestor that the mount shows, innermost first.
///
/// In a container without a cgroup namespace the mount shows only a part of the tree, and the
/// group's path begins with that part. A group outside the mount is seen as the mount itself; so is
/// one outside the cgroup namespace, which the kernel calls `/../other`. Where the mount shows more
/// than the namespace (`unshare -C`, the tree of the host in a container) its root is called `/..`,
/// and only the groups themselves tell which of them is meant.
fn folders(root: &Path, group: &Path, mount: &Mount) -> Vec<PathBuf> {
    let base = root.join(mount.mount_point.strip_prefix("/").unwrap_or(&mount.mount_point));
    let is_below =
        |path: &&Path| path.components().all(|component| matches!(component, Component::Normal(_)));
    let innermost = match group.strip_prefix(&mount.root).ok().filter(is_below) {
        Some(inside) => base.join(inside),
        None if mount.root.starts_with("/..") => {
            let levels = mount.root.components().chain(group.components()).count();
            own_group(&base, levels).unwrap_or_else(|| base.clone())
        }
        None => base.clone(),
    };
    let is_shown = |folder: &&Path| folder.starts_with(&base);
    innermost.ancestors().take_while(is_shown).map(Path::to_owned).collect()
}

/// The folder of the group that lists this process, so many levels down.
///
/// Cost: the list of each group on the way.
fn own_group(folder: &Path, levels: usize) -> Option<PathBuf> {
    let own = std::process::id().to_string();
    let listed = attribute::text(folder, "cgroup.procs").unwrap_or_default();
    if listed.lines().any(|process| process == own) {
        return Some(folder.to_owned());
    }
    let entries = levels.checked_sub(1).and_then(|_| fs::read_dir(folder).ok())?;
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flatten().filter(is_folder).find_map(|entry| own_group(&entry.path(), levels - 1))
}

#[cfg(test)]
mod tests;
