//! Which CPUs share a core, and the order in which threads get CPUs: a core each, as long as there
//! are any.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use flatout_sys::numa::parse_cpu_list;
use flatout_sys::{affinity, attribute};

/// The kinds of CPU that are allowed (big and little ones, cores for performance and for efficiency),
/// the strongest first; one kind where the kernel tells of no difference.
pub(crate) fn kinds(root: &Path, allowed: &[usize]) -> Vec<Vec<usize>> {
    let list = |path: &str| {
        let text = attribute::text(&root.join("sys/devices"), path);
        text.and_then(|text| parse_cpu_list(&text)).unwrap_or_default()
    };
    let [efficient, low_power] = ["cpu_atom/cpus", "cpu_lowpower/cpus"].map(list);
    let strength = |cpu: usize| {
        let capacity =
            attribute::number(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"));
        (!low_power.contains(&cpu), !efficient.contains(&cpu), capacity)
    };
    let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    allowed.iter().for_each(|&cpu| kinds.entry(strength(cpu)).or_default().push(cpu));
    kinds.into_values().rev().collect()
}

/// The allowed CPUs in the order in which threads get them.
///
/// Errors: those of sched_getaffinity(2).
/// Cost: a small file for each CPU.
pub(crate) fn in_order() -> io::Result<Vec<usize>> {
    let allowed = affinity::allowed_cpus()?;
    let root = Path::new("/");
    Ok(spread(&kinds(root, &allowed), &siblings(root, &allowed)))
}

/// The same, beginning with another pair at each turn where there are more than two: what two threads do
/// together is not what the first two CPUs do.
pub(crate) fn in_turn(turn: usize) -> io::Result<Vec<usize>> {
    Ok(turned(in_order()?, turn, |one, other| share_core(one, other) == Some(true)))
}

/// The pairs are those beside each other that have a core each.
fn turned(mut cpus: Vec<usize>, turn: usize, shares: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let has_cores = |at: &usize| !shares(cpus[*at], cpus[(at + 1) % cpus.len()]);
    if turn > 0 && cpus.len() > 2 {
        let starts: Vec<usize> = (0..cpus.len()).filter(has_cores).collect();
        cpus.rotate_left(starts.get(turn % starts.len().max(1)).copied().unwrap_or(0));
    }
    cpus
}

/// Sets of allowed CPUs that share a core according to sysfs.
pub(crate) fn siblings(root: &Path, allowed: &[usize]) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for cpu in allowed {
        let Some(mut set) = core_siblings(root, *cpu) else { continue };
        set.retain(|cpu| allowed.contains(cpu));
        if set.len() > 1 && !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

/// The CPUs that the kernel lists as hardware threads of the same core, this one included.
pub(crate) fn core_siblings(root: &Path, cpu: usize) -> Option<Vec<usize>> {
    let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    parse_cpu_list(&attribute::text(root, &path)?)
}

/// Whether two CPUs are hardware threads of one core; `None` where the kernel does not say.
pub(crate) fn share_core(first: usize, second: usize) -> Option<bool> {
    core_siblings(Path::new("/"), first).map(|core| core.contains(&second))
}

/// The strongest kind first; of each one CPU of each core first, then the others; of equals the last
/// first, because the first one of a machine serves most interrupts.
pub(crate) fn spread(kinds: &[Vec<usize>], siblings: &[Vec<usize>]) -> Vec<usize> {
    let place = |cpu: &usize| {
        let set = siblings.iter().find(|set| set.contains(cpu));
        set.and_then(|set| set.iter().position(|one| one == cpu)).unwrap_or(0)
    };
    let of_kind = |kind: &Vec<usize>| {
        let mut order: Vec<usize> = kind.iter().rev().copied().collect();
        order.sort_by_key(place);
        order
    };
    kinds.iter().flat_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    /// A machine with these files below /sys/devices.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("sys/devices").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn performance_cores_of_an_alder_lake_come_before_efficient_ones() {
        let alder_lake = machine(&[("cpu_core/cpus", "0-3\n"), ("cpu_atom/cpus", "4-5\n")]);
        let kinds = kinds(alder_lake.path(), &[0, 1, 2, 3, 4, 5]);
        assert_eq!(kinds, [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(spread(&kinds, &[vec![0, 1], vec![2, 3]]), [2, 0, 3, 1, 5, 4]);
        assert_eq!(super::kinds(alder_lake.path(), &[4, 5]).len(), 1, "what is allowed counts");
    }

    #[test]
    fn low_power_cores_of_an_arrow_lake_come_last() {
        let arrow_lake = machine(&[("cpu_atom/cpus", "2-3\n"), ("cpu_lowpower/cpus", "4-5\n")]);
        let kinds = kinds(arrow_lake.path(), &[0, 1, 2, 3, 4, 5]);
        assert_eq!(kinds, [[0, 1], [2, 3], [4, 5]]);
    }

    #[test]
    fn each_turn_has_another_pair_of_cores() {
        let siblings = [vec![0, 1], vec![2, 3]];
        let shares =
            |one, other| siblings.iter().any(|set| [one, other].iter().all(|c| set.contains(c)));
        for cpus in [vec![0, 1, 2, 3], vec![0, 1, 2], vec![0, 2, 4, 6, 8]] {
            let order = spread(std::slice::from_ref(&cpus), &siblings);
            let pairs = (0..8).map(|turn| turned(order.clone(), turn, shares));
            let pairs: BTreeSet<[usize; 2]> = pairs.map(|cpus| [cpus[0], cpus[1]]).collect();
            assert!(pairs.iter().all(|&[one, other]| !shares(one, other)), "{pairs:?}");
            assert!(pairs.len() >= 2 && (cpus.len() < 4 || pairs.len() == cpus.len()), "{pairs:?}");
        }
        assert_eq!(turned(vec![1, 0], 1, |_, _| false), [1, 0], "two have one way");
    }

    #[test]
    fn big_cores_come_before_little_ones_and_equal_ones_are_one_kind() {
        let capacity = |cpu| format!("system/cpu/cpu{cpu}/cpu_capacity");
        let paths: Vec<String> = (0..3).map(capacity).collect();
        let capacities = ["446\n", "446\n", "1024\n"];
        let files: Vec<_> = paths.iter().map(String::as_str).zip(capacities).collect();
        assert_eq!(kinds(machine(&files).path(), &[0, 1, 2]), [vec![2], vec![0, 1]]);
        assert_eq!(kinds(Path::new("/nowhere"), &[0, 1]), [vec![0, 1]]);
    }
}
