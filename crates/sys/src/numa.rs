//! Memory nodes: which there are, which CPUs are near, and where the pages of a range lie.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-devices-node`, mbind(2), numa(7).

use std::path::Path;
use std::{fs, io};

use crate::cause::answered;
use crate::{affinity, attribute};

/// Nodes that a kernel has at most (`NODES_SHIFT`).
const MOST_NODES: usize = 1024;

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its number; numbers may have gaps.
    pub number: u32,
    /// CPUs of the node, ascending; none for memory without CPUs (CXL, persistent memory).
    pub cpus: Vec<usize>,
    /// Memory of the node; 0 for CPUs without memory.
    pub memory_bytes: u64,
}

/// The nodes from `sys/devices/system/node` below `root` (`/` for the real one), ascending; none
/// where the kernel has no nodes.
///
/// Cost: two small files per node are read.
pub fn nodes(root: &Path) -> Vec<Node> {
    let folder = root.join("sys/devices/system/node");
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let read = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        let text = |name: &str| attribute::text(&entry.path(), name).unwrap_or_default();
        let cpus = parse_cpu_list(&text("cpulist"))?;
        Some(Node { number, cpus, memory_bytes: member(&text("meminfo"), "MemTotal:") })
    };
    let mut nodes: Vec<Node> = entries.flatten().filter_map(read).collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// Reads a list of CPUs as the kernel prints it, for example `0-3,8`; an empty one has none.
/// `None` for anything else.
pub fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // The kernel has at most 8192 CPUs; what says more is no such list.
        if last < first || last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// A member of a node's meminfo in bytes; 0 without it.
fn member(meminfo: &str, name: &str) -> u64 {
    let mut found = meminfo.lines().filter_map(|line| line.split_once(name));
    found.next().and_then(|(_, kib)| attribute::of_kib(kib)).unwrap_or(0)
}

/// Memory that is free on the nodes that this process may use ([`usable`]), below `root`, files in the cache as
/// control groups count them; `None` where these are all nodes.
pub fn allowed_free_bytes(root: &Path) -> Option<u64> {
    free_on(root, &usable(root)?)
}

fn free_on(root: &Path, usable: &[usize]) -> Option<u64> {
    let all = parse_cpu_list(&attribute::text(root, "sys/devices/system/node/has_memory")?)?;
    let own = || all.iter().filter(|&node| usable.contains(node));
    let is_part = (1..all.len()).contains(&own().count());
    if is_part { own().map(|&node| free_bytes(root, node as u32)).sum() } else { None }
}

/// The nodes that memory of this thread may lie on (`cpuset.mems`, and where a policy binds it, as `numactl
/// --membind` does), below `root`; `None` where the kernel does not say.
pub fn usable(root: &Path) -> Option<Vec<usize>> {
    let status = attribute::whole(&root.join("proc/self/status"))?;
    let mut nodes = parse_cpu_list(attribute::after(&status, "Mems_allowed_list:")?)?;
    if let Some((libc::MPOL_BIND, bound)) = policy() {
        nodes.retain(|node| bound.contains(node));
    }
    Some(nodes)
}

/// Whether memory of this thread lies near the CPU that touches it first, as far as there is room: no policy
/// says otherwise (`numactl --interleave`, `--preferred`).
pub fn is_local() -> bool {
    policy().is_none_or(|(mode, _)| {
        [libc::MPOL_DEFAULT, libc::MPOL_BIND, libc::MPOL_LOCAL].contains(&mode)
    })
}

/// Memory that is free on a node, files in the cache as control groups count them; `None` where the kernel does
/// not say.
pub fn free_bytes(root: &Path, node: u32) -> Option<u64> {
    let folder = root.join(format!("sys/devices/system/node/node{node}"));
    let meminfo = attribute::text(&folder, "meminfo")?;
    let of = |name| member(&meminfo, name);
    let given_up = of("Inactive(file):").saturating_add(of("Active(file):") / 2);
    Some(of("MemFree:").saturating_add(given_up))
}

/// The policy of this thread, and its nodes.
fn policy() -> Option<(i32, Vec<usize>)> {
    let (mut mode, mut mask) = (0_i32, [0_usize; MOST_NODES / usize::BITS as usize]);
    // SAFETY: the kernel writes a mode, and no more of the mask than it is told, less one bit.
    let answer = unsafe {
        let (bits, nowhere) = (MOST_NODES + 1, 0);
        libc::syscall(libc::SYS_get_mempolicy, &mut mode, mask.as_mut_ptr(), bits, nowhere, 0)
    };
    answered(answer).ok()?;
    // Flags stand above the mode.
    Some((mode & 0xff, mask.iter().enumerate().flat_map(affinity::set_bits).collect()))
}

/// How many pages of the mapping that begins at `start` lie on which node, out of the text of
/// `/proc/self/numa_maps`; `None` where the mapping is not listed.
///
/// Units: pages of the size that the kernel lists for the mapping (`kernelpagesize_kB`).
pub fn pages_by_node(numa_maps: &str, start: u64) -> Option<Vec<(u32, u64)>> {
    let head = format!("{start:x} ");
    let line = numa_maps.lines().find(|line| line.starts_with(&head))?;
    let pages = |field: &str| {
        let (node, pages) = field.strip_prefix('N')?.split_once('=')?;
        Some((node.parse().ok()?, pages.parse().ok()?))
    };
    Some(line.split_whitespace().filter_map(pages).collect())
}

/// Binds pages that are not there yet to one node.
///
/// Errors: those of mbind(2).
///
/// # Safety
///
/// The range must be whole pages of a mapping of the caller's own.
pub(crate) unsafe fn bind(
    start: *mut libc::c_void,
    length_bytes: usize,
    node: u32,
) -> io::Result<()> {
    const BITS: u32 = u64::BITS;
    if node as usize >= MOST_NODES {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut mask = [0_u64; MOST_NODES / BITS as usize];
    mask[(node / BITS) as usize] = 1 << (node % BITS);
    // The kernel takes one bit less than it is told (mbind(2), "BUGS" of get_mempolicy(2)).
    let bits = MOST_NODES + 1;
    // SAFETY: the kernel reads the mask, which lives through the call; the range is the caller's.
    answered(unsafe {
        libc::syscall(libc::SYS_mbind, start, length_bytes, libc::MPOL_BIND, mask.as_ptr(), bits, 0)
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chase::{Arena, Pages};

    /// A tree as a machine with two sockets and a node of memory alone would show; made up.
    const TREE: [(&str, &str, &str); 3] = [
        (
            "node0",
            "0-3,8-11\n",
            "Node 0 MemTotal:       65738312 kB\nNode 0 MemFree: 5 kB\nNode 0 Active(file): 6 kB\n\
             Node 0 Inactive(file): 7 kB\n",
        ),
        ("node1", "4-7,12-15\n", "Node 1 MemTotal:       66059512 kB\n"),
        ("node2", "\n", "Node 2 MemTotal:       130023424 kB\nNode 2 MemFree: 1 kB\n"),
    ];

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("sys/devices/system/node");
        for (name, cpus, meminfo) in TREE {
            let folder = base.join(name);
            fs::create_dir_all(&folder).unwrap();
            for (file, text) in [("cpulist", cpus), ("meminfo", meminfo)] {
                fs::write(folder.join(file), text).unwrap();
            }
        }
        fs::write(base.join("has_cpu"), "0-1\n").unwrap();
        fs::write(base.join("has_memory"), "0-2\n").unwrap();
        root
    }

    #[test]
    fn nodes_have_cpus_and_memory() {
        let root = tree();
        let nodes = nodes(root.path());
        assert_eq!(nodes.iter().map(|node| node.number).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(nodes[0].cpus, [0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(nodes[1].memory_bytes, 66_059_512 * 1024);
        assert!(nodes[2].cpus.is_empty());
    }

    #[test]
    fn memory_of_nodes_that_may_not_be_used_is_not_free() {
        let root = tree();
        let free = |nodes: &[usize]| free_on(root.path(), nodes);
        assert_eq!([free(&[0, 1, 2]), free(&[7])], [None; 2]);
        assert_eq!([free(&[2]), free(&[0, 2])], [Some(1 << 10), Some((1 + 5 + 7 + 3) << 10)]);
        assert_eq!([0, 7].map(|node| free_bytes(root.path(), node)), [Some(15 << 10), None]);
    }

    #[test]
    fn nodes_are_those_of_the_cpuset_that_a_policy_leaves() {
        let root = tree();
        let folder = root.path().join("proc/self");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("status"), "Name:\tx\nMems_allowed_list:\t0,900\n").unwrap();
        assert_eq!(usable(root.path()), Some(vec![0, 900]));
        let bound = || {
            let mask = [1_u64];
            // SAFETY: the kernel reads one word, which lives through the call.
            let set = unsafe {
                libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), 65_u64)
            };
            (set == 0).then(|| (usable(root.path()), is_local()))
        };
        // In a thread of its own, whose policy ends with it.
        match std::thread::scope(|scope| scope.spawn(bound).join().unwrap()) {
            Some(found) => assert_eq!(found, (Some(vec![0]), true)),
            None => eprintln!("skipped: set_mempolicy is refused"),
        }
    }

    #[test]
    fn a_machine_without_nodes_has_none() {
        assert!(nodes(Path::new("/nonexistent")).is_empty());
        assert_eq!(allowed_free_bytes(Path::new("/nonexistent")), None);
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list(""), Some(vec![]));
        for odd in ["3-1", "x", "1-", "0-99999999"] {
            assert_eq!(parse_cpu_list(odd), None, "{odd}");
        }
    }

    #[test]
    fn pages_are_counted_by_node() {
        let text = "7f10a0000000 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
                    7f10a0200000 bind:1 anon=512 dirty=512 N1=512 kernelpagesize_kB=4\n";
        assert_eq!(pages_by_node(text, 0x7f10_a000_0000), Some(vec![(0, 1), (1, 2)]));
        assert_eq!(pages_by_node(text, 0x7f10_a020_0000), Some(vec![(1, 512)]));
        assert_eq!(pages_by_node(text, 0x7f10_a020), None);
    }

    #[test]
    fn memory_is_bound_to_the_node_that_is_named() {
        let Some(node) = nodes(Path::new("/")).into_iter().find(|node| node.memory_bytes > 0)
        else {
            return eprintln!("skipped: the kernel shows no memory nodes");
        };
        let arena = match Arena::new(1 << 20, Pages::Base, Some(node.number)) {
            Ok(arena) => arena,
            Err(error) => return eprintln!("skipped: mbind is refused: {error}"),
        };
        match arena.pages_by_node() {
            Some(pages) => assert!(pages.iter().all(|&(on, _)| on == node.number), "{pages:?}"),
            None => eprintln!("skipped: no /proc/self/numa_maps"),
        }
        assert!(Arena::new(1 << 20, Pages::Base, Some(u32::MAX)).is_err());
    }
}
