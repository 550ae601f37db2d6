//! Where the time of all CPUs went, from `/proc/stat`: to programs, to interrupts, to nobody,
//! and to other virtual machines (stolen time).
//!
//! The kernel counts in nanoseconds but shows whole ticks, 10 ms on nearly every machine: a
//! difference of one tick can stand for almost nothing. See proc(5).

use std::path::Path;

use crate::affinity;
use crate::attribute::{after, whole};

/// Beyond any uptime, so that sums of what makes no sense do not overflow.
const MOST_TICKS: u64 = 1 << 48;

/// Times summed over all CPUs since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Programs at normal priority; includes guests that run here.
    pub user: u64,
    /// Programs at lowered priority.
    pub nice: u64,
    /// The kernel on behalf of programs.
    pub system: u64,
    /// Hardware interrupts.
    pub irq: u64,
    /// Deferred interrupt work, which is where most network code runs.
    pub softirq: u64,
    /// A CPU that the reader may use wanted to run, but the hypervisor ran something else; any CPU where the
    /// list has none of those numbers, as in some containers.
    pub steal: u64,
    /// CPUs of which that is. Unless these are all, each is cut to whole ticks.
    pub steal_cpus: u32,
    /// All of it, the time included in which a CPU had nothing to do.
    pub all: u64,
    /// CPUs that the kernel lists.
    pub cpus: u32,
    /// Threads that ran or were ready to at that moment, the reader included; in a container those
    /// of the whole machine.
    pub running: u32,
}

impl CpuTimes {
    /// Ticks in which a CPU ran a program or a thread of the kernel; no interrupts.
    pub fn programs(&self) -> u64 {
        self.user_mode() + self.system
    }

    /// Ticks in which a CPU ran a program in user mode, as no thread of the kernel does.
    pub fn user_mode(&self) -> u64 {
        self.user + self.nice
    }

    /// Ticks in which a CPU did anything here, whoever asked for it.
    pub fn busy(&self) -> u64 {
        self.programs() + self.irq + self.softirq
    }
}

/// Length of one tick of `/proc/stat` (and of every other `USER_HZ` field).
///
/// Units: nanoseconds; 10 000 000 on nearly every machine. Cost: none, from the auxiliary vector.
pub fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Reads `proc/stat` below `root` (`/` for the real one); `None` where it is not there.
///
/// Cost: open, read, close. The kernel formats every interrupt counter for it, so tens to
/// hundreds of microseconds on machines with many CPUs: read it around a trial, not inside.
pub fn cpu_times(root: &Path) -> Option<CpuTimes> {
    let own = affinity::allowed_cpus().unwrap_or_default();
    parse_cpu_times(&whole(&root.join("proc/stat"))?, &own)
}

/// Reads the text of `/proc/stat`, for a reader who may use the CPUs `own`, ascending; `None` without a line of
/// totals. Fields that an old kernel does not have count as 0.
pub fn parse_cpu_times(text: &str, own: &[usize]) -> Option<CpuTimes> {
    let totals = after(text, "cpu ")?.split_ascii_whitespace();
    let ticks = |field: &str| Some(field.parse::<u64>().ok()?.min(MOST_TICKS));
    let fields: Vec<u64> = totals.map_while(ticks).collect();
    if fields.len() < 4 {
        return None;
    }
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let stolen = |line: &str| {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let steal = times.split_ascii_whitespace().nth(7).and_then(ticks);
        Some((number.parse().ok()?, steal.unwrap_or(0)))
    };
    let each: Vec<(usize, u64)> = text.lines().filter_map(stolen).collect();
    let cpus = each.len();
    let owned = each.iter().filter(|(number, _)| own.binary_search(number).is_ok());
    let owned: Vec<u64> = owned.map(|(_, steal)| *steal).collect();
    let is_part = (1..cpus).contains(&owned.len());
    Some(CpuTimes {
        user: field(0),
        nice: field(1),
        system: field(2),
        irq: field(5),
        softirq: field(6),
        steal: if is_part { owned.iter().sum() } else { field(7) },
        steal_cpus: if is_part { owned.len() } else { cpus } as u32,
        // What guests of this machine had comes behind these, and is in the first two of them.
        all: fields.iter().take(8).sum(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        running: after(text, "procs_running ").and_then(|all| all.parse().ok()).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIRTUAL_MACHINE: &str = "\
cpu  19630 0 4961 134813 711 0 206 28 0 0
cpu0 11280 0 3017 65407 385 0 63 10 0 0
cpu1 8349 0 1943 69406 326 0 143 18 0 0
intr 1166393 0 9 0 0 0 0 0 0 0
ctxt 2263430
btime 1700000000
procs_running 3
";

    #[test]
    fn totals_and_cpus_of_a_virtual_machine() {
        let times = parse_cpu_times(VIRTUAL_MACHINE, &[0, 1]).unwrap();
        assert_eq!((times.steal, times.steal_cpus), (28, 2));
        assert_eq!(times.softirq, 206);
        assert_eq!(times.cpus, 2);
        assert_eq!(times.busy(), 19630 + 4961 + 206);
        assert_eq!(times.user_mode(), 19630);
        assert_eq!(times.all, times.busy() + 134_813 + 711 + 28);
        assert_eq!(times.running, 3);
    }

    #[test]
    fn what_is_stolen_from_cpus_that_others_have_is_not_ours() {
        let stolen = |own: &[usize]| {
            let times = parse_cpu_times(VIRTUAL_MACHINE, own).unwrap();
            (times.steal, times.steal_cpus)
        };
        assert_eq!([stolen(&[0]), stolen(&[1]), stolen(&[1, 5])], [(10, 1), (18, 1), (18, 1)]);
        // A container that numbers its CPUs anew.
        assert_eq!([stolen(&[5, 7]), stolen(&[])], [(28, 2); 2]);
    }

    #[test]
    fn an_old_kernel_without_steal_has_none() {
        let times = parse_cpu_times("cpu  10 20 30 40\ncpu0 10 20 30 40\n", &[0]).unwrap();
        assert_eq!((times.steal, times.cpus), (0, 1));
    }

    #[test]
    fn no_totals_is_none() {
        assert_eq!(parse_cpu_times("", &[]), None);
        assert_eq!(parse_cpu_times("cpu0 1 2 3 4\n", &[]), None);
        assert_eq!(parse_cpu_times("cpu  1 x\n", &[]), None);
    }

    #[test]
    fn a_missing_tree_is_none() {
        assert_eq!(cpu_times(Path::new("/nonexistent")), None);
    }

    #[test]
    fn a_tick_is_a_fraction_of_a_second() {
        assert!(tick_ns() > 0 && tick_ns() <= 1_000_000_000);
    }
}
