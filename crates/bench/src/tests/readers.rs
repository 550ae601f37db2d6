//! What reads `/proc`, `/sys` and control groups, on what no kernel says: no panic, and no figure that
//! cannot be. `FLATOUT_TEST_FULL=1` tries 1,000 changes of each file instead of a few.

use std::fs;
use std::path::Path;

use flatout_measure::environment;
use flatout_measure::random::SplitMix64;
use flatout_sys::block_account::BlockAccount;
use flatout_sys::pressure::{Resource, pressure};
use flatout_sys::storage::{self, DeviceNumber, MountTable};
use flatout_sys::{Groups, cpu_cache, dimm, numa, page_cache, process_table, steal};

use crate::cores;

const ALLOWED: [usize; 4] = [0, 1, 6, 7];

/// A machine with CPUs 0, 1, 6, 7 of 512, a node without memory, and groups of both versions.
const FILES: &[(&str, &str)] = &[
    ("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: sse2 avx2 hypervisor\n"),
    ("proc/meminfo", "MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 4000 kB\nDirty: 4 kB\n"),
    ("proc/vmstat", "nr_free_pages 1\nnr_dirtied 12345\nnr_written 9\n"),
    ("proc/loadavg", "0.50 0.25 0.10 1/86 10190\n"),
    (
        "proc/stat",
        "cpu  9 8 7 6 5 4 3 2 1 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu7 1 1 1 1 1 1 1 1 0 0\n\
        intr 1 2 3\nprocs_running 3\n",
    ),
    ("proc/41/stat", "41 (a (b) c) S 1 41 41 0 -1 4194304 92 0 0 0 5 7 0 0 20 0 1 0 35 2 3 4\n"),
    (
        "proc/self/status",
        "Name:\tx\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1,6-7\n\
        Mems_allowed_list:\t0\n",
    ),
    ("proc/self/cgroup", "5:cpu,cpuacct:/a/b\n4:blkio:/a\n1:name=systemd:/x\n0::/a/b\n"),
    (
        "proc/self/mountinfo",
        "26 20 0:23 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n\
        27 20 0:24 /a /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n\
        28 20 0:25 / /sys/fs/cgroup/blkio ro - cgroup cgroup rw,blkio\n\
        29 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n",
    ),
    ("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0 total=3\n"),
    ("proc/sys/kernel/osrelease", "6.8.0-45-generic\n"),
    ("proc/sys/kernel/io_uring_disabled", "2\n"),
    ("sys/devices/system/cpu/online", "0-1,6-7\n"),
    ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
    ("sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "6,7\n"),
    ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n"),
    ("sys/devices/system/cpu/cpu6/cpu_capacity", "430\n"),
    ("sys/devices/cpu_atom/cpus", "6-7\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-1\n"),
    ("sys/devices/system/node/has_memory", "0\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8000 kB\nNode 0 MemFree: 1 kB\n"),
    ("sys/devices/system/node/node1/cpulist", "6-7\n"),
    ("sys/dev/block/8:1/stat", "1 2 3 4 5 6 7 8 9 10 11\n"),
    ("sys/fs/cgroup/a/b/memory.max", "4096000\n"),
    ("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "150000\n"),
    ("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n"),
    ("sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device", "8:1 1048576\n"),
    (
        "run/udev/data/+dmi:id",
        "E:MEMORY_DEVICE_0_SIZE=8\nE:MEMORY_DEVICE_0_DATA_WIDTH=64\n\
        E:MEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=3200\nE:MEMORY_DEVICE_0_LOCATOR=DIMM_A1\n",
    ),
];

const WORDS: [&str; 18] = [
    "",
    "0",
    "-1",
    "max",
    "18446744073709551615",
    "99999999999999999999",
    "9223372036854775807",
    "0-511",
    "7-3",
    "0-",
    "65535-65536",
    "NaN",
    "inf",
    " ",
    "\n",
    ":",
    "\u{fffd}",
    "=",
];

/// The text with one thing changed: a byte, a part that is gone or comes twice, a number that is another.
fn changed(text: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut below = |most: usize| (random.next_u64() % most.max(1) as u64) as usize;
    let mut bytes = text.to_vec();
    let (from, length) = (below(bytes.len()), below(12));
    let until = (from + length).min(bytes.len());
    let word = WORDS[below(WORDS.len())].as_bytes().to_vec();
    match below(6) {
        0 if !bytes.is_empty() => bytes[from] ^= 1 << below(8),
        1 => drop(bytes.drain(from..until)),
        2 => bytes.extend_from_within(from..until),
        3 => bytes.truncate(from),
        4 => drop(bytes.splice(from..from, word)),
        _ => {
            let is_digit = |at: &usize| bytes.get(*at).is_some_and(u8::is_ascii_digit);
            let begin = (from..bytes.len()).find(is_digit).unwrap_or(from);
            let end = (begin..bytes.len()).find(|at| !is_digit(at)).unwrap_or(bytes.len());
            drop(bytes.splice(begin..end.max(begin), word));
        }
    }
    bytes
}

/// Asks everything that is read below a root.
fn ask(root: &Path) {
    let environment = environment::capture(root);
    assert!(environment.cpu_quota_cpus.is_none_or(|cpus| cpus.is_finite() && cpus > 0.0));
    assert!(environment.cpus_online.is_none_or(|cpus| (1..=1 << 20).contains(&cpus)));
    let mut cpus = cores::kinds(root, &ALLOWED).concat();
    cpus.sort_unstable();
    assert_eq!(cpus, ALLOWED, "each CPU is of one kind");
    let siblings = cores::siblings(root, &ALLOWED);
    assert!(siblings.iter().flatten().all(|cpu| ALLOWED.contains(cpu)), "{siblings:?}");
    assert!(cpu_cache::data_caches(root, 0).iter().all(|cache| cache.bytes > 0));
    numa::nodes(root);
    numa::allowed_free_bytes(root);
    let groups = Groups::discover(root);
    groups.memory_left_bytes();
    groups.throttled_ns();
    if let Some(times) = steal::cpu_times(root) {
        assert!(times.busy() >= times.user_mode());
    }
    process_table::processes(root);
    page_cache::dirtied_bytes(root);
    pressure(root, Resource::Io);
    let disk = DeviceNumber { major: 8, minor: 1 };
    storage::limits(root, &[disk]);
    BlockAccount::read(root, disk);
    let mounts = MountTable::read(root);
    mounts.all().for_each(|mount| _ = (mount.all_options(), mount.lower_directories()));
    dimm::dimms(root).map(|(_, modules)| dimm::channels(&modules));
}

#[test]
fn what_no_kernel_says_is_no_figure_and_no_fault() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    for (path, text) in FILES {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
    ask(root);
    assert_eq!(environment::capture(root).cpus_online, Some(4));
    let nodes = numa::nodes(root);
    assert_eq!([nodes[0].memory_bytes, nodes[1].memory_bytes], [8000 << 10, 0]);
    assert_eq!(Groups::discover(root).cpu_quota_cpus(), Some(1.5));
    assert_eq!(Groups::discover(root).memory_limit_bytes(), Some(4_096_000));
    assert_eq!(cores::siblings(root, &ALLOWED), [vec![0, 1], vec![6, 7]]);
    let is_full = std::env::var_os("FLATOUT_TEST_FULL").is_some();
    let changes = if is_full { 1000 } else { 50 };
    let seed = if is_full { flatout_sys::clock::monotonic_ns() } else { 1 };
    let mut random = SplitMix64::new(seed);
    for (path, text) in FILES {
        for _ in 0..changes {
            let mut bytes = changed(text.as_bytes(), &mut random);
            if random.next_u64().is_multiple_of(2) {
                bytes = changed(&bytes, &mut random);
            }
            fs::write(root.join(path), &bytes).unwrap();
            let asked = std::panic::catch_unwind(|| ask(root));
            assert!(asked.is_ok(), "{path}: {:?}", String::from_utf8_lossy(&bytes));
        }
        fs::write(root.join(path), text).unwrap();
    }
}
