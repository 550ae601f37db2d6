//! The CPUs that may be used: which, in which order, how many cores they are, and the quota.
//!
//! What the kernel says about cores is believed where it says that CPUs share one; where it says
//! that they do not, `sharing` asks the CPUs.

use std::fs;
use std::path::Path;
use std::thread;

use flatout_sys::affinity;
use flatout_sys::quota::Groups;

use super::lookout::Lookout;

/// CPUs that are looked at for the quietest one, and glances at each.
const SCOUTED: usize = 4;
const SCOUTING: u32 = 20;
/// Glances at a CPU before and after work that takes seconds.
const GLANCES: u32 = 64;

/// The CPUs of this process as they were when the area began.
#[derive(Debug, Default)]
pub(super) struct Site {
    /// CPUs in the order in which threads get them: one of each core first.
    pub(super) cpus: Vec<usize>,
    /// Sets of CPUs that share a core, as the kernel says; lone ones are left out.
    pub(super) declared: Vec<Vec<usize>>,
    /// CPUs that the quota of the control group is worth.
    pub(super) quota_cpus: Option<f64>,
    /// Tells whether others use a core.
    pub(super) lookout: Lookout,
}

impl Site {
    /// Looks at the machine below `root`, `/` for this one.
    pub(super) fn look(root: &Path) -> Self {
        let allowed = affinity::allowed_cpus().unwrap_or_default();
        let declared = declared(root, &allowed);
        let quota_cpus = Groups::discover(root).cpu_quota_cpus();
        let lookout = Lookout::default();
        Self { cpus: spread(&allowed, &declared), declared, quota_cpus, lookout }
    }

    /// CPUs that may be used, at least one.
    pub(super) fn count(&self) -> u32 {
        self.cpus.len().max(1) as u32
    }

    /// The CPU for a thread that works alone: where others use cores, of the first ones that whose core was
    /// its own most often in some glances just now; else the first one.
    ///
    /// Cost: 0.2 ms for each CPU looked at, where there are neighbours.
    pub(super) fn quietest(&self) -> Option<usize> {
        let first = self.cpus.first().copied();
        if self.cpus.len() < 2 || !self.lookout.sees_neighbours() {
            return first;
        }
        let look =
            |cpu: usize| affinity::pin_to(cpu).map_or(0, |()| self.lookout.alone_of(SCOUTING));
        let scout = || {
            // Of equals the first one, which comes last here.
            let candidates = self.cpus.iter().copied().take(SCOUTED).rev();
            candidates.max_by_key(|&cpu| look(cpu))
        };
        thread::scope(|scope| {
            scope.spawn(scout).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Share of some glances that see others on the cores of the first CPUs; `None` where nobody can tell.
    ///
    /// Cost: 0.3 ms for each of at most four CPUs.
    pub(super) fn neighbour_ratio(&self) -> Option<f64> {
        self.lookout.width()?;
        let cpus: Vec<usize> = self.cpus.iter().copied().take(SCOUTED).collect();
        let look = |cpu: usize| {
            affinity::pin_to(cpu).ok().map(|()| f64::from(self.lookout.alone_of(GLANCES)))
        };
        let alone: Option<f64> = thread::scope(|scope| {
            let all = scope.spawn(|| cpus.iter().map(|&cpu| look(cpu)).sum());
            all.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let glances = f64::from(GLANCES) * cpus.len() as f64;
        alone.filter(|_| glances > 0.0).map(|alone| 1.0 - alone / glances)
    }

    /// Whether the set of allowed CPUs is still the same.
    pub(super) fn is_unchanged(&self) -> bool {
        let mut known = self.cpus.clone();
        known.sort_unstable();
        affinity::allowed_cpus().is_ok_and(|now| now == known)
    }
}

/// Sets of allowed CPUs that share a core according to sysfs.
fn declared(root: &Path, allowed: &[usize]) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for cpu in allowed {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let mut set = list(&text);
        set.retain(|cpu| allowed.contains(cpu));
        if set.len() > 1 && !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

/// CPUs of a list such as `0-3,8`; what cannot be read is left out.
fn list(text: &str) -> Vec<usize> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// One CPU of each core first, then the others; of equals the last first, because the first one of
/// a machine serves most interrupts.
fn spread(allowed: &[usize], declared: &[Vec<usize>]) -> Vec<usize> {
    let place = |cpu: &usize| {
        let set = declared.iter().find(|set| set.contains(cpu));
        set.and_then(|set| set.iter().position(|one| one == cpu)).unwrap_or(0)
    };
    let mut order: Vec<usize> = allowed.iter().rev().copied().collect();
    order.sort_by_key(place);
    order
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
    use super::*;

    /// A machine whose CPUs have these siblings.
    fn machine(siblings: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, text) in siblings.iter().enumerate() {
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
        let sets = declared(zen.path(), &allowed);
        assert_eq!(sets, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(spread(&allowed, &sets), [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!((cores(&allowed[..4], &sets), cores(&allowed, &sets)), (4, 4));
    }

    #[test]
    fn siblings_of_an_ice_lake_cloud_machine_are_neighbours() {
        let ice_lake = machine(&["0-1\n", "0-1\n", "2-3\n", "2-3\n"]);
        let sets = declared(ice_lake.path(), &[0, 1, 2, 3]);
        assert_eq!(spread(&[0, 1, 2, 3], &sets), [2, 0, 3, 1]);
        assert_eq!(cores(&[0, 2], &sets), 2);
        assert_eq!(cores(&[0, 1], &sets), 1);
    }

    #[test]
    fn an_aarch64_neoverse_has_one_thread_per_core() {
        let neoverse = machine(&["0\n", "1\n", "2\n", "3\n"]);
        let sets = declared(neoverse.path(), &[0, 1, 2, 3]);
        assert!(sets.is_empty());
        assert_eq!(cores(&[0, 1, 2, 3], &sets), 4);
    }

    #[test]
    fn a_sibling_outside_the_allowed_set_does_not_count() {
        let ice_lake = machine(&["0-1\n", "0-1\n", "2-3\n", "2-3\n"]);
        assert!(declared(ice_lake.path(), &[0, 2]).is_empty());
        assert!(declared(Path::new("/nowhere"), &[0, 1]).is_empty());
    }

    #[test]
    fn measured_sets_may_overlap_declared_ones() {
        assert_eq!(cores(&[0, 1, 2, 3], &[vec![0, 1], vec![1, 2]]), 2);
        assert_eq!(cores(&[0, 1], &[]), 2);
        assert_eq!(cores(&[], &[vec![0, 1]]), 0);
    }

    #[test]
    fn the_real_set_does_not_change_by_itself() {
        let site = Site::look(Path::new("/"));
        assert!(site.is_unchanged() && site.count() >= 1);
        let other = Site { cpus: vec![usize::MAX], ..site };
        assert!(!other.is_unchanged());
    }
}
