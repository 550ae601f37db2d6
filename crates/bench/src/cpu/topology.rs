//! The CPUs that may be used: which, in which order, how many cores they are, and the quota.
//!
//! What the kernel says about cores is believed where it says that CPUs share one; where it says
//! that they do not, `sharing` asks the CPUs.

use std::path::Path;

use flatout_measure::{Warning, warning};
use flatout_sys::{Groups, affinity};

use crate::contention::ContentionProbe;
use crate::cores;

/// Probes of a CPU for the quietest one.
const PROBES: u32 = 20;

/// The CPUs of this process as they were when the area began.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// CPUs in the order in which threads get them: one of each core first.
    pub(super) cpus: Vec<usize>,
    /// Sets of CPUs that share a core, as the kernel says; lone ones are left out.
    pub(super) siblings: Vec<Vec<usize>>,
    /// Whether CPUs are of several kinds: then neither ports nor width of one are those of another.
    pub(super) is_mixed: bool,
    /// CPUs that the quota of the control group is worth.
    pub(super) quota_cpus: Option<f64>,
    /// Tells whether an SMT sibling contends for a core.
    pub(super) probe: ContentionProbe,
}

impl Topology {
    /// Looks at the machine below `root`, `/` for this one.
    pub(super) fn look(root: &Path) -> Self {
        let allowed = affinity::allowed_cpus().unwrap_or_default();
        let siblings = cores::siblings(root, &allowed);
        let quota_cpus = Groups::discover(root).cpu_quota_cpus();
        let kinds = cores::kinds(root, &allowed);
        let is_mixed = kinds.len() > 1;
        let probe = ContentionProbe::of(is_mixed);
        let cpus = cores::spread(&kinds, &siblings);
        Self { cpus, siblings, is_mixed, quota_cpus, probe }
    }

    /// CPUs that may be used, at least one.
    pub(super) fn count(&self) -> u32 {
        self.cpus.len().max(1) as u32
    }

    /// The CPU for a thread that works alone: where there is contention, of the first ones that whose core
    /// was its own most often in some probes just now; else the first one.
    ///
    /// Cost: 0.2 ms for each CPU probed, where there is contention.
    pub(super) fn quietest(&self) -> Option<usize> {
        let first = self.cpus.first().copied();
        if self.cpus.len() < 2 || !self.probe.is_contended() {
            return first;
        }
        let alone = self.probe.alone_on(&self.cpus, PROBES);
        // Of equals the first one, which comes last here.
        let best = self.cpus.iter().zip(alone).rev().max_by_key(|(_, alone)| alone.unwrap_or(0));
        best.map(|(&cpu, _)| cpu)
    }

    /// Says so where the set of allowed CPUs is another one by now.
    pub(super) fn changed(&self) -> Option<Warning> {
        let mut known = self.cpus.clone();
        known.sort_unstable();
        let is_unchanged = affinity::allowed_cpus().is_ok_and(|now| now == known);
        let text = "the CPUs that this process may use changed while it was measured";
        (!is_unchanged).then(|| Warning::new(warning::CPUS_CHANGED, text))
    }
}

/// How many cores these CPUs are, when those of each set share one; sets may overlap.
pub(super) fn cores(cpus: &[usize], sets: &[Vec<usize>]) -> usize {
    let mut label: Vec<usize> = (0..cpus.len()).collect();
    for set in sets {
        let inside: Vec<usize> =
            (0..cpus.len()).filter(|&at| set.contains(&cpus[at])).map(|at| label[at]).collect();
        let Some(&first) = inside.first() else { continue };
        label.iter_mut().filter(|own| inside.contains(own)).for_each(|own| *own = first);
    }
    label.sort_unstable();
    label.dedup();
    label.len()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cores::{siblings, spread};

    /// A machine whose CPUs have these siblings.
    fn machine(lists: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, text) in lists.iter().enumerate() {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("thread_siblings_list"), text).unwrap();
        }
        root
    }

    #[test]
    fn siblings_of_an_amd_zen_lie_half_the_machine_apart() {
        let zen =
            machine(&["0,4\n", "1,5\n", "2,6\n", "3,7\n", "0,4\n", "1,5\n", "2,6\n", "3,7\n"]);
        let allowed: Vec<usize> = (0..8).collect();
        let sets = siblings(zen.path(), &allowed);
        assert_eq!(sets, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(spread(std::slice::from_ref(&allowed), &sets), [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!((cores(&allowed[..4], &sets), cores(&allowed, &sets)), (4, 4));
    }

    #[test]
    fn siblings_of_an_ice_lake_cloud_machine_have_adjacent_numbers() {
        let ice_lake = machine(&["0-1\n", "0-1\n", "2-3\n", "2-3\n"]);
        let sets = siblings(ice_lake.path(), &[0, 1, 2, 3]);
        assert_eq!(spread(&[vec![0, 1, 2, 3]], &sets), [2, 0, 3, 1]);
        assert_eq!(cores(&[0, 2], &sets), 2);
        assert_eq!(cores(&[0, 1], &sets), 1);
    }

    #[test]
    fn siblings_of_two_sockets_of_sapphire_rapids_lie_half_the_machine_apart() {
        // Two sockets of four cores: the kernel numbers all cores first.
        let lists: Vec<String> =
            (0..16).map(|cpu| format!("{},{}\n", cpu % 8, cpu % 8 + 8)).collect();
        let machine = machine(&lists.iter().map(String::as_str).collect::<Vec<_>>());
        let allowed: Vec<usize> = (0..16).collect();
        let sets = siblings(machine.path(), &allowed);
        assert_eq!((sets.len(), cores(&allowed, &sets)), (8, 8));
        assert!(spread(std::slice::from_ref(&allowed), &sets)[..8].iter().all(|cpu| *cpu < 8));
    }

    #[test]
    fn an_aarch64_neoverse_has_one_thread_per_core() {
        let neoverse = machine(&["0\n", "1\n", "2\n", "3\n"]);
        let sets = siblings(neoverse.path(), &[0, 1, 2, 3]);
        assert!(sets.is_empty());
        assert_eq!(cores(&[0, 1, 2, 3], &sets), 4);
    }

    #[test]
    fn a_sibling_outside_the_allowed_set_does_not_count() {
        let ice_lake = machine(&["0-1\n", "0-1\n", "2-3\n", "2-3\n"]);
        assert!(siblings(ice_lake.path(), &[0, 2]).is_empty());
        assert!(siblings(Path::new("/nowhere"), &[0, 1]).is_empty());
    }

    #[test]
    fn measured_sets_may_overlap_declared_ones() {
        assert_eq!(cores(&[0, 1, 2, 3], &[vec![0, 1], vec![1, 2]]), 2);
        assert_eq!(cores(&[0, 1], &[]), 2);
        assert_eq!(cores(&[], &[vec![0, 1]]), 0);
    }

    #[test]
    fn the_real_set_does_not_change_by_itself() {
        let topology = Topology::look(Path::new("/"));
        assert!(topology.changed().is_none() && topology.count() >= 1);
        let other = Topology { cpus: vec![usize::MAX], ..topology };
        assert_eq!(other.changed().unwrap().code, warning::CPUS_CHANGED);
    }
}
