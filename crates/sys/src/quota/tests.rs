//! Recorded control groups of other machines. Trees are built under the test's own folder.

use super::*;
use crate::fixture::Tree;

const V1_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 /docker/4f1 /sys/fs/cgroup/cpu,cpuacct ro,nosuid shared:9 master:2 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
const V1_MEMBERSHIPS: &str = "\
9:name=systemd:/
4:memory:/api/ec83
2:cpu,cpuacct:/docker/4f1/job
0::/
";
const V2_MOUNTS: &str = "\
26 20 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
";

#[test]
fn memberships_of_a_mixed_layout() {
    let members = parse_memberships(V1_MEMBERSHIPS);
    assert_eq!(members.len(), 4);
    assert_eq!(members[2].controllers, ["cpu", "cpuacct"]);
    assert_eq!(members[2].group, "/docker/4f1/job");
    assert!(members[3].controllers.is_empty());
}

#[test]
fn a_group_name_may_hold_a_colon() {
    assert_eq!(parse_memberships("0::/a:b\n")[0].group, "/a:b");
}

#[test]
fn names_of_groups_and_places_may_hold_what_the_table_writes_as_numbers() {
    // systemd escapes a dash as `\x2d`, and mountinfo the backslash as `\134`.
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/app\\x2da.scope/job\n"),
        (
            "proc/self/mountinfo",
            "26 20 0:23 /app\\134x2da.scope /sys/fs/a\\040group rw - cgroup2 cgroup2 rw\n",
        ),
        ("sys/fs/a group/job/memory.max", "4096\n"),
    ]);
    assert_eq!(Groups::discover(tree.root()).memory_limit_bytes(), Some(4096));
}

#[test]
fn of_several_mounts_the_one_counts_that_shows_the_group() {
    let other = "25 20 0:23 /other /mnt rw - cgroup2 cgroup2 rw\n";
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/own\n"),
        ("proc/self/mountinfo", &[other, V2_MOUNTS].concat()),
        ("mnt/memory.max", "1\n"),
        ("sys/fs/cgroup/own/memory.max", "4096\n"),
    ]);
    assert_eq!(Groups::discover(tree.root()).memory_limit_bytes(), Some(4096));
}

#[test]
fn a_group_outside_the_namespace_is_none_of_the_same_name_within() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/../job\n"),
        ("proc/self/mountinfo", V2_MOUNTS),
        ("sys/fs/cgroup/memory.max", "8192\n"),
        ("sys/fs/cgroup/job/memory.max", "4096\n"),
    ]);
    assert_eq!(Groups::discover(tree.root()).memory_limit_bytes(), Some(8192));
}

#[test]
fn where_the_mount_shows_more_than_the_namespace_the_group_that_lists_the_process_counts() {
    let own = std::process::id().to_string();
    let mount = "26 20 0:23 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", mount),
        ("sys/fs/cgroup/cgroup.procs", "1\n"),
        ("sys/fs/cgroup/other/cgroup.procs", &format!("1{own}\n")),
        ("sys/fs/cgroup/other/memory.max", "1\n"),
        ("sys/fs/cgroup/pod/memory.max", "8192\n"),
        ("sys/fs/cgroup/pod/job/cgroup.procs", &format!("1\n{own}\n")),
        ("sys/fs/cgroup/pod/job/cpu.max", "50000 100000\n"),
    ]);
    let groups = Groups::discover(tree.root());
    assert_eq!(groups.memory_limit_bytes(), Some(8192));
    assert_eq!(groups.cpu_quota_cpus(), Some(0.5));
}

#[test]
fn quotas_are_worth_cpus() {
    assert_eq!(cpus("150000", "100000"), Some(1.5));
    assert_eq!(cpus("max", "100000"), None);
    assert_eq!(cpus("", ""), None);
    assert_eq!(cpus("-1", "100000"), None);
}

#[test]
fn throttled_time_has_another_unit_in_each_version() {
    let v2 = "usage_usec 9\nnr_periods 4\nnr_throttled 2\nthrottled_usec 7\n";
    assert_eq!(parse_throttled_ns(v2, Version::V2), Some(7_000));
    let v1 = "nr_periods 4\nnr_throttled 2\nthrottled_time 7\n";
    assert_eq!(parse_throttled_ns(v1, Version::V1), Some(7));
    assert_eq!(parse_throttled_ns("usage_usec 9\n", Version::V2), None);
}

#[test]
fn memory_limits_and_their_two_ways_to_say_none() {
    assert_eq!(parse_memory_limit("536870912\n"), Some(536_870_912));
    assert_eq!(parse_memory_limit("max\n"), None);
    assert_eq!(parse_memory_limit("9223372036854771712\n"), None);
}

#[test]
fn version_2_takes_the_tightest_ancestor() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/outer/inner\n"),
        ("proc/self/mountinfo", V2_MOUNTS),
        ("sys/fs/cgroup/outer/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/outer/cpu.stat", "throttled_usec 3\n"),
        ("sys/fs/cgroup/outer/memory.max", "max\n"),
        ("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/outer/inner/cpu.stat", "throttled_usec 4\n"),
        ("sys/fs/cgroup/outer/inner/memory.max", "1073741824\n"),
    ]);
    let groups = Groups::discover(tree.root());
    assert_eq!(groups.cpu_quota_cpus(), Some(0.5));
    assert_eq!(groups.memory_limit_bytes(), Some(1 << 30));
    assert_eq!(groups.throttled_ns(), Some(7_000), "a quota may be set later on any level");
}

/// As seen in a cgroup namespace whose group lies in one with a quota.
#[test]
fn what_a_group_that_cannot_be_seen_held_back_counts_as_throttled() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", V2_MOUNTS),
        ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n"),
        ("sys/fs/cgroup/cpu.stat.local", "throttled_usec 5\n"),
    ]);
    let groups = Groups::discover(tree.root());
    assert_eq!((groups.cpu_quota_cpus(), groups.throttled_ns()), (None, Some(5_000)));
}

#[test]
fn version_1_in_a_container_that_sees_a_part_of_the_tree() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", V1_MEMBERSHIPS),
        ("proc/self/mountinfo", V1_MOUNTS),
        ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", "throttled_time 11\n"),
        ("sys/fs/cgroup/memory/api/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/api/ec83/memory.limit_in_bytes", "4096000\n"),
    ]);
    let groups = Groups::discover(tree.root());
    assert_eq!(groups.cpu_quota_cpus(), Some(4.0));
    assert_eq!(groups.throttled_ns(), Some(11));
    assert_eq!(groups.memory_limit_bytes(), Some(4_096_000));
}

#[test]
fn a_limit_above_counts_in_version_1_too() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "4:memory:/a/b\n"),
        ("proc/self/mountinfo", "9 1 0:9 / /m rw - cgroup cgroup rw,memory\n"),
        ("m/a/memory.limit_in_bytes", "1000000\n"),
        ("m/a/b/memory.limit_in_bytes", "2000000\n"),
    ]);
    assert_eq!(Groups::discover(tree.root()).memory_limit_bytes(), Some(1_000_000));
}

#[test]
fn no_groups_no_limits() {
    let groups = Groups::discover(Path::new("/nonexistent"));
    assert_eq!(groups, Groups::default());
    assert_eq!(groups.cpu_quota_cpus(), None);
    assert_eq!(groups.memory_limit_bytes(), None);
    assert_eq!(groups.throttled_ns(), None);
}

#[test]
fn what_is_left_of_a_memory_limit_is_that_of_the_tightest_level() {
    let tree = Tree::new(&[
        ("proc/self/mountinfo", V2_MOUNTS),
        ("proc/self/cgroup", "0::/box/job\n"),
        ("sys/fs/cgroup/box/memory.max", "1000000\n"),
        ("sys/fs/cgroup/box/memory.current", "900000\n"),
        ("sys/fs/cgroup/box/memory.stat", "inactive_file 200000\nactive_file 200000\n"),
        ("sys/fs/cgroup/box/job/memory.max", "500000\n"),
        ("sys/fs/cgroup/box/job/memory.current", "50000\n"),
    ]);
    assert_eq!(Groups::discover(tree.root()).memory_left_bytes(), Some(400_000));
    tree.file("sys/fs/cgroup/box/job/memory.high", b"200000\n");
    assert_eq!(Groups::discover(tree.root()).memory_left_bytes(), Some(150_000));
    assert_eq!(Groups::discover(tree.root()).memory_limit_bytes(), Some(200_000));
    let tree = Tree::new(&[
        ("proc/self/mountinfo", V1_MOUNTS),
        ("proc/self/cgroup", V1_MEMBERSHIPS),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"),
        ("sys/fs/cgroup/memory/api/ec83/memory.limit_in_bytes", "4096\n"),
        ("sys/fs/cgroup/memory/api/ec83/memory.usage_in_bytes", "8192\n"),
        ("sys/fs/cgroup/memory/api/ec83/memory.stat", "total_inactive_file 6000\n"),
    ]);
    assert_eq!(Groups::discover(tree.root()).memory_left_bytes(), Some(4096 - 2192));
    let tree = Tree::new(&[("proc/self/mountinfo", V2_MOUNTS), ("proc/self/cgroup", "0::/\n")]);
    assert_eq!(Groups::discover(tree.root()).memory_left_bytes(), None);
}
