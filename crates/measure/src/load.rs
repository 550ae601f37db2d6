//! What other programs did on the machine while a run went on: so that what they took is neither
//! blamed on the hardware nor on a hypervisor.
//!
//! Two readings, at the beginning and at the end of the run. How far a single trial was disturbed:
//! [`crate::guard`].

use std::collections::BTreeMap;
use std::path::Path;

use flatout_sys::pressure::{Resource, pressure};
use flatout_sys::process_table::{self, Process};
use flatout_sys::quota::Groups;
use flatout_sys::steal::{self, CpuTimes};
use flatout_sys::{affinity, clock, run_queue, usage};

use crate::record::{Load, ProgramLoad};

/// Share of the machine's CPUs that others use from which on it is called busy. A rate of all CPUs
/// falls by that share at most, and one of fewer threads by none until these wait, which is looked
/// for besides; intervals on a quiet machine are ±12 % and wider (docs/measuring.md). A program in the
/// background that has a tenth of a CPU moves no figure out of its interval.
const BUSY_SHARE: f64 = 0.1;
/// CPUs that others use from which on it is they who keep our threads waiting, and not these each
/// other: who has a tenth of a CPU keeps nobody waiting for more than that.
const KEEPING_CPUS: f64 = 0.25;
/// Share of the time in which threads waited for a CPU from which on the machine is called busy.
pub const BUSY_WAIT: f64 = 0.05;
/// Ticks of a run below which nothing is said of others: what the kernel counts is that coarse.
const LEAST_TICKS: u64 = 20;
/// Programs that are named, at most.
const NAMED_MOST: usize = 3;
/// CPUs below which a program is not worth naming: who stops it has nothing of it.
const NAMED_LEAST_CPUS: f64 = 0.1;

/// What the kernel had counted at one moment.
#[derive(Debug, Clone, Default)]
struct Counted {
    at_ns: u64,
    times: CpuTimes,
    own_ns: u64,
    /// The part of it in user mode.
    own_user_ns: u64,
    waited_ns: Option<u64>,
    /// Time that a CPU quota held this process back: its threads wait then, but for nobody.
    throttled_ns: u64,
    pressure_ns: Option<u64>,
    processes: Vec<Process>,
}

impl Counted {
    fn now() -> Self {
        let root = Path::new("/");
        let [own_ns, own_user_ns] = usage::cpu_ns_with_children();
        Self {
            at_ns: clock::monotonic_ns(),
            times: steal::cpu_times(root).unwrap_or_default(),
            own_ns,
            own_user_ns,
            waited_ns: run_queue::waited_ns(),
            throttled_ns: Groups::discover(root).throttled_ns().unwrap_or(0),
            pressure_ns: pressure(root, Resource::Cpu),
            processes: process_table::processes(root),
        }
    }
}

/// Looks at the machine from the beginning of a run to its end.
pub struct LoadWatch {
    begun: Counted,
    /// Whether processes of this program with the same parent are not others: a launcher has started them
    /// to work with this one.
    pub is_in_job: bool,
}

impl LoadWatch {
    /// Begins now.
    ///
    /// Cost: some 10 µs per process of the machine.
    pub fn begin() -> Self {
        Self { begun: Counted::now(), is_in_job: false }
    }

    /// What others did since then. Cost: as [`Self::begin`].
    pub fn end(&self) -> Load {
        let (mut ended, own_pid) = (Counted::now(), std::process::id());
        if self.is_in_job {
            let used = process_table::since(&self.begun.processes, &ended.processes);
            let own = ended.processes.iter().find(|process| process.pid == own_pid);
            let kin = own.map(|own| (own.parent, own.name.clone()));
            let is_kin = |process: &Process| {
                let kin = kin.as_ref().is_some_and(|(parent, name)| {
                    (process.parent, &process.name) == (*parent, name)
                });
                kin && process.pid != own_pid
            };
            let kin = used.iter().filter(|(process, _)| is_kin(process));
            let kin_ticks: u64 = kin.map(|used| used.1).sum();
            ended.own_ns += kin_ticks * steal::tick_ns();
            ended.own_user_ns += kin_ticks * steal::tick_ns();
            ended.processes.retain(|process| !is_kin(process));
        }
        between(&self.begun, &ended, own_pid, steal::tick_ns())
    }
}

/// Whether others were in the way.
pub fn is_busy(load: &Load) -> bool {
    let has_waited = load.run_queue_wait_ratio.is_some_and(|ratio| ratio > BUSY_WAIT);
    load.others_cpus.is_some_and(|others_cpus| {
        others_cpus > BUSY_SHARE * f64::from(load.cpus) || has_waited && others_cpus > KEEPING_CPUS
    })
}

/// What was going on, in words: `busy machine: 1.6 of 2 CPUs taken by others (yes 1.6)`; `None` where
/// the machine was ours.
pub fn busy_words(load: &Load) -> Option<String> {
    if !is_busy(load) {
        return None;
    }
    let taken = format!("{:.1} of {} CPUs taken by others", load.others_cpus?, load.cpus);
    let mut words = format!("busy machine: {taken}");
    let programs =
        load.programs.iter().map(|ProgramLoad { name, processes, cpus }| match processes {
            1 => format!("{name} {cpus:.1}"),
            many => format!("{many} {name} {cpus:.1}"),
        });
    if !load.programs.is_empty() {
        words += &format!(" ({})", programs.collect::<Vec<_>>().join(", "));
    }
    if let Some(ratio) = load.run_queue_wait_ratio.filter(|ratio| *ratio > BUSY_WAIT) {
        let percent = ratio * 100.0;
        words += &format!(
            "; its threads waited for a CPU in {percent:.0} % of the time that they wanted one"
        );
    }
    Some(words)
}

fn between(begun: &Counted, ended: &Counted, own_pid: u32, tick_ns: u64) -> Load {
    let elapsed_ns = ended.at_ns.saturating_sub(begun.at_ns).max(1) as f64;
    let known_cpus = Some(ended.times.cpus).filter(|&cpus| cpus > 0);
    let cpus = known_cpus.unwrap_or_else(affinity::allowed_cpu_count);
    if elapsed_ns < (LEAST_TICKS * tick_ns) as f64 {
        return Load { cpus, others_cpus: known_cpus.map(|_| 0.0), ..Load::default() };
    }
    let used = process_table::since(&begun.processes, &ended.processes);
    let in_cpus = |ticks: u64| ticks as f64 * tick_ns as f64 / elapsed_ns;
    let kernel: u64 = used.iter().filter(|(process, _)| process.is_kernel).map(|used| used.1).sum();
    // Interrupts are nobody's: they may have worked for us.
    let busy_ticks = ended.times.programs().saturating_sub(begun.times.programs());
    let user_ticks = ended.times.user_mode().saturating_sub(begun.times.user_mode());
    let own_ns = ended.own_ns.saturating_sub(begun.own_ns) as f64;
    let own_user_ns = ended.own_user_ns.saturating_sub(begun.own_user_ns) as f64;
    // In a namespace of its own a program sees no thread of the kernel, of which every machine has
    // some; what they did, for us perhaps, cannot be told from what others did, but in user mode.
    let others_cpus = match ended.processes.iter().any(|process| process.is_kernel) {
        true => in_cpus(busy_ticks) - in_cpus(kernel) - own_ns / elapsed_ns,
        false => in_cpus(user_ticks) - own_user_ns / elapsed_ns,
    };
    let waited_ns = ended.waited_ns.zip(begun.waited_ns);
    let throttled_ns = ended.throttled_ns.saturating_sub(begun.throttled_ns);
    let for_others = |(end, begin): (u64, u64)| end.saturating_sub(begin + throttled_ns) as f64;
    // Threads of ours wait for each other, too, as both ends of a loopback on one CPU do: for others
    // no longer than these ran.
    let is_known = known_cpus.is_some();
    let others_ns = if is_known { (others_cpus * elapsed_ns).max(0.0) } else { f64::MAX };
    let waited_ns = waited_ns.map(for_others).map(|waited_ns| waited_ns.min(others_ns));
    let stolen = in_cpus(ended.times.steal.saturating_sub(begun.times.steal));
    let pressure_ns = ended.pressure_ns.zip(begun.pressure_ns);
    let mut by_name: BTreeMap<&str, ProgramLoad> = BTreeMap::new();
    let is_other = |process: &Process| {
        !process.is_kernel && process.pid != own_pid && process.parent != own_pid
    };
    for (process, ticks) in used.iter().filter(|(process, _)| is_other(process)) {
        let program = by_name.entry(&process.name).or_default();
        if *ticks > 0 {
            program.processes += 1;
            program.cpus += in_cpus(*ticks);
        }
    }
    let named = by_name.into_iter().filter(|(_, program)| program.cpus >= NAMED_LEAST_CPUS);
    let mut programs: Vec<ProgramLoad> =
        named.map(|(name, program)| ProgramLoad { name: name.to_owned(), ..program }).collect();
    programs.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
    programs.truncate(NAMED_MOST);
    Load {
        cpus,
        // Ticks are coarse: more of them can be counted than there were.
        others_cpus: is_known.then(|| others_cpus.clamp(0.0, f64::from(cpus))),
        stolen_ratio: stolen / f64::from(ended.times.steal_cpus.max(1)),
        run_queue_wait_ratio: waited_ns.map(|waited| waited / (waited + own_ns).max(1.0)),
        cpu_pressure_ratio: pressure_ns
            .map(|(end, begin)| end.saturating_sub(begin) as f64 / elapsed_ns),
        programs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 10_000_000;
    const SECOND_NS: u64 = 1_000_000_000;

    fn process(pid: u32, name: &str, ticks: u64) -> Process {
        let name = name.to_owned();
        Process { pid, parent: 1, begun: 1, name, is_kernel: false, ticks }
    }

    /// Ten seconds on two CPUs in which everybody used so much.
    fn ten_seconds(user: u64, own_ns: u64, processes: Vec<Process>) -> Load {
        let mut processes = processes;
        processes.push(Process { is_kernel: true, ..process(2, "kthreadd", 0) });
        let before = processes.iter().map(|process| Process { ticks: 0, ..process.clone() });
        let times = |user| CpuTimes { user, cpus: 2, ..CpuTimes::default() };
        let begun = Counted {
            times: times(0),
            waited_ns: Some(0),
            processes: before.collect(),
            ..Counted::default()
        };
        let ended = Counted {
            at_ns: 10 * SECOND_NS,
            times: times(user),
            own_ns,
            own_user_ns: own_ns,
            waited_ns: Some(3 * SECOND_NS),
            throttled_ns: 0,
            pressure_ns: None,
            processes,
        };
        between(&begun, &ended, 99, TICK_NS)
    }

    #[test]
    fn of_a_run_of_a_few_ticks_nothing_is_said() {
        let times = |user| CpuTimes { user, cpus: 2, ..CpuTimes::default() };
        let kernel = Process { is_kernel: true, ..process(2, "kthreadd", 0) };
        let begun = Counted { times: times(0), ..Counted::default() };
        let ended = |at_ns, user| {
            let processes = vec![kernel.clone()];
            Counted { at_ns, times: times(user), processes, ..Counted::default() }
        };
        let others =
            |at_ns, user| between(&begun, &ended(at_ns, user), 99, TICK_NS).others_cpus.unwrap();
        assert!(others(10 * TICK_NS, 30) < 1e-9);
        let hidden = Counted { at_ns: 10 * TICK_NS, ..Counted::default() };
        assert_eq!(between(&hidden, &hidden, 99, TICK_NS).others_cpus, None, "/proc is hidden");
        assert!((others(30 * TICK_NS, 30) - 1.0).abs() < 1e-9);
        assert!((others(30 * TICK_NS, 90) - 2.0).abs() < 1e-9, "no more than there are");
    }

    #[test]
    fn busy_loops_are_counted_and_named() {
        let loops = (1..=4).map(|pid| process(pid, "yes", 400));
        let all: Vec<Process> = loops.chain([process(99, "flatout", 300)]).collect();
        let load = ten_seconds(1900, 3 * SECOND_NS, all);
        assert!((load.others_cpus.unwrap() - 1.6).abs() < 1e-9, "{load:?}");
        assert_eq!(load.run_queue_wait_ratio, Some(0.5));
        assert_eq!((load.programs.len(), load.programs[0].processes), (1, 4));
        assert!((load.programs[0].cpus - 1.6).abs() < 1e-9);
        assert_eq!(
            busy_words(&load).as_deref(),
            Some(
                "busy machine: 1.6 of 2 CPUs taken by others (4 yes 1.6); its threads waited for a \
                 CPU in 50 % of the time that they wanted one"
            )
        );
    }

    #[test]
    fn waiting_that_a_quota_caused_is_not_for_others() {
        let (begun, mut ended) = (Counted::default(), Counted::default());
        let times = CpuTimes { user: 700, cpus: 8, ..CpuTimes::default() };
        (ended.at_ns, ended.times, ended.own_ns) = (10 * SECOND_NS, times, 3 * SECOND_NS);
        let begun = Counted { waited_ns: Some(0), ..begun };
        ended.waited_ns = Some(3 * SECOND_NS);
        ended.processes = vec![Process { is_kernel: true, ..process(2, "kthreadd", 0) }];
        assert!(is_busy(&between(&begun, &ended, 99, TICK_NS)));
        ended.throttled_ns = 3 * SECOND_NS;
        let load = between(&begun, &ended, 99, TICK_NS);
        assert_eq!((is_busy(&load), load.run_queue_wait_ratio), (false, Some(0.0)));
    }

    /// As `bench network` had on a machine of its own: both ends of a loopback on one CPU, and a program
    /// in the background with 0.09 CPUs.
    #[test]
    fn threads_of_ours_that_wait_for_each_other_make_no_machine_busy() {
        let load = ten_seconds(1490, 14 * SECOND_NS, vec![process(1, "zsh", 90)]);
        assert!(load.run_queue_wait_ratio.unwrap() < 0.07, "{load:?}");
        assert_eq!(busy_words(&load), None);
    }

    #[test]
    fn what_the_kernel_does_for_us_makes_no_machine_busy() {
        let kernel = Process { is_kernel: true, ..process(3, "kworker/0:1", 500) };
        let load = ten_seconds(800, 3 * SECOND_NS, vec![kernel]);
        assert!(load.others_cpus.unwrap() < 1e-9 && load.programs.is_empty(), "{load:?}");
    }

    #[test]
    fn where_no_thread_of_the_kernel_is_seen_others_are_told_from_it_by_user_mode() {
        let seen = |user, system, cpus| {
            let times = CpuTimes { user, system, cpus, ..CpuTimes::default() };
            let processes = vec![process(99, "flatout", 10)];
            let (own_ns, own_user_ns) = (SECOND_NS / 10, SECOND_NS / 20);
            let ended =
                Counted { at_ns: SECOND_NS, times, own_ns, own_user_ns, ..Counted::default() };
            between(&Counted::default(), &Counted { processes, ..ended }, 99, TICK_NS)
        };
        let load = seen(5, 150, 2);
        assert_eq!((load.others_cpus, busy_words(&load)), (Some(0.0), None), "for us, perhaps");
        let words = busy_words(&seen(155, 20, 2));
        assert_eq!(words.as_deref(), Some("busy machine: 1.5 of 2 CPUs taken by others"));
        assert_eq!(seen(0, 0, 0).others_cpus, None, "/proc is hidden");
    }

    #[test]
    fn a_quiet_machine_is_not_busy() {
        let others =
            |others_cpus| Load { cpus: 2, others_cpus: Some(others_cpus), ..Load::default() };
        let load = others(0.05);
        let waited = Load { run_queue_wait_ratio: Some(0.04), ..others(0.19) };
        assert_eq!((busy_words(&load), busy_words(&waited)), (None, None), "in the background");
        assert!(is_busy(&others(0.21)), "more than intervals allow for");
        let of_four = |ratio| Load { cpus: 4, run_queue_wait_ratio: Some(ratio), ..others(0.3) };
        assert_eq!([0.04, 0.06].map(|ratio| is_busy(&of_four(ratio))), [false, true]);
        let waited = Load { run_queue_wait_ratio: Some(0.2), ..load };
        assert!(!is_busy(&waited), "threads of ours wait for each other");
        let one_of_many = Load { cpus: 64, others_cpus: Some(1.0), ..waited };
        assert!(is_busy(&one_of_many), "tied to its CPU");
    }
}
