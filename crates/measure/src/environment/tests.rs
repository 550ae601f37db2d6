//! Recorded trees of other machines.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A folder tree that is removed when the test ends.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let folder = format!("flatout-environment-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(folder);
        for (path, bytes) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self(root)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_container_on_a_virtual_machine() {
    let cpu = "sys/devices/system/cpu";
    let tree = Tree::new(
        "container",
        &[
            ("proc/sys/kernel/osrelease", b"6.8.0-45-generic\n"),
            ("proc/sys/kernel/hostname", b"secret-host\n"),
            (
                "proc/cpuinfo",
                b"processor\t: 0\nmodel name\t: A CPU\nflags\t\t: sse2 avx2 hypervisor\n",
            ),
            ("proc/meminfo", b"MemTotal:  2048 kB\nMemFree:  1 kB\nMemAvailable:  1024 kB\n"),
            ("proc/loadavg", b"0.50 0.25 0.10 1/86 10190\n"),
            ("proc/self/status", b"Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-1\n"),
            ("proc/self/cgroup", b"0::/\n"),
            ("proc/self/mountinfo", b"26 20 0:23 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/cpu.max", b"150000 100000\n"),
            ("sys/fs/cgroup/memory.max", b"1048576\n"),
            (&format!("{cpu}/online"), b"0-7\n"),
            (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), b"performance\n"),
            (&format!("{cpu}/vulnerabilities/meltdown"), b"Mitigation: PTI\n"),
            (&format!("{cpu}/vulnerabilities/l1tf"), b"Not affected\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", b"always [madvise] never\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", b"kvm-clock\n"),
            ("proc/sys/kernel/io_uring_disabled", b"2\n"),
        ],
    );
    let environment = capture(&tree.0);
    let text = |text: &str| Some(text.to_owned());
    let expected = Environment {
        flatout_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel_release: text("6.8.0-45-generic"),
        cpu_model: text("A CPU"),
        simd: text("avx2"),
        simd_limit: None,
        cpus_online: Some(8),
        cpus_allowed: Some(2),
        cpu_quota_cpus: Some(1.5),
        memory_bytes: Some(2 << 20),
        memory_available_bytes: Some(1 << 20),
        memory_limit_bytes: Some(1 << 20),
        page_bytes: Some(base_page_bytes() as u64),
        hypervisor: Some(true),
        governor: text("performance"),
        transparent_hugepages: text("madvise"),
        clocksource: text("kvm-clock"),
        io_uring_disabled: Some(2),
        mitigations: [("meltdown", "Mitigation: PTI"), ("l1tf", "Not affected")]
            .map(|(name, state)| (name.to_owned(), state.to_owned()))
            .into(),
        load_average: Some([0.5, 0.25, 0.1]),
        root: Some(true),
    };
    assert_eq!(environment, expected);
    assert!(!environment.to_value().to_string().contains("secret-host"));
}

#[test]
fn an_arm_board_without_frequency_control() {
    let cpuinfo = b"processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm\n\
                    CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n";
    let tree = Tree::new("arm", &[("proc/cpuinfo", cpuinfo)]);
    let environment = capture(&tree.0);
    assert_eq!(environment.cpu_model.as_deref(), Some("implementer 0x41 part 0xd0c"));
    assert_eq!(environment.simd.as_deref(), Some("neon"));
    assert_eq!((environment.hypervisor, environment.governor), (None, None));
}

#[test]
fn an_empty_tree_is_all_null_and_no_failure() {
    let environment = capture(Path::new("/nonexistent"));
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let page_bytes = Some(base_page_bytes() as u64);
    let expected = Environment { flatout_version: version, page_bytes, ..Environment::default() };
    assert_eq!(environment, expected);
    assert_eq!(environment.to_value()["kernel_release"], Value::Null);
}

#[test]
fn only_the_beginning_of_a_long_file_is_read() {
    let mut cpuinfo = b"model name\t: First\n".to_vec();
    cpuinfo.resize(1 << 20, b'\n');
    let tree = Tree::new("long", &[("proc/cpuinfo", &cpuinfo)]);
    assert_eq!(beginning(&tree.0.join("proc/cpuinfo")).len(), 16 << 10);
    assert_eq!(capture(&tree.0).cpu_model.as_deref(), Some("First"));
}

#[test]
fn this_machine_has_a_kernel_memory_and_pages() {
    let environment = capture(Path::new("/"));
    assert!(environment.kernel_release.is_some());
    assert!(environment.memory_bytes.is_some_and(|bytes| bytes > 0));
    assert!(environment.page_bytes.is_some_and(|bytes| bytes >= 4096));
    assert!(environment.root.is_some());
    let back: Environment = serde_json::from_value(environment.to_value()).unwrap();
    assert_eq!(back, environment);
}
