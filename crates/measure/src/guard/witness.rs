//! Who is read before and after each trial: the real machine, and a fake for tests.

use std::path::{Path, PathBuf};

use flatout_sys::process_table::{self, Process};
use flatout_sys::quota::Groups;
use flatout_sys::steal::{self, CpuTimes};
use flatout_sys::{affinity, clock, run_queue, usage};

use super::distance::Distance;
use super::{Reading, Witness};

/// The real machine. What it cannot read stays as it was read last, or 0, and is never a reason: a total
/// that began anew would be all that others did since the machine was started.
pub struct SystemWitness {
    root: PathBuf,
    groups: Groups,
    times: CpuTimes,
    throttled_ns: u64,
    cpus: u32,
    kernel: KernelThreads,
    /// `None`: it is not looked at.
    distance: Option<Distance>,
}

/// Looking at threads of the kernel may take one part in so many of the time.
const LOOKING_PART: u64 = 50;

/// The CPU time of threads of the kernel. As there is a file for each, they are looked at only when
/// somebody but us was at work, and not often.
#[derive(Debug, Default)]
struct KernelThreads {
    known: Vec<Process>,
    used_ns: u64,
    /// What all but us had used when they were looked at, and when they may be again.
    not_ours_ns: u64,
    next_ns: u64,
}

impl KernelThreads {
    /// What they have used `now_ns`, when all but us have used `not_ours_ns`; `look` finds them.
    fn used_ns(&mut self, not_ours_ns: u64, now_ns: u64, look: fn() -> Vec<Process>) -> u64 {
        let is_quiet = not_ours_ns.saturating_sub(self.not_ours_ns) < 2 * steal::tick_ns();
        if now_ns < self.next_ns || is_quiet && !self.known.is_empty() {
            return self.used_ns;
        }
        let mut threads = look();
        threads.retain(|process| process.is_kernel);
        if !self.known.is_empty() {
            let used = process_table::since(&self.known, &threads);
            self.used_ns += used.iter().map(|(_, ticks)| ticks * steal::tick_ns()).sum::<u64>();
        }
        (self.known, self.not_ours_ns) = (threads, not_ours_ns);
        let cost_ns = clock::monotonic_ns().saturating_sub(now_ns);
        self.next_ns = now_ns.saturating_add(cost_ns.saturating_mul(LOOKING_PART));
        self.used_ns
    }

    /// Whether none can be seen, as from a container: what they do then looks like the work of others.
    fn is_blind(&self) -> bool {
        self.next_ns > 0 && self.known.is_empty()
    }
}

impl SystemWitness {
    fn below(root: &Path) -> Self {
        let (groups, times) = (Groups::discover(root), steal::cpu_times(root));
        let cpus = times.map_or_else(affinity::allowed_cpu_count, |times| times.cpus.max(1));
        let throttled_ns = groups.throttled_ns().unwrap_or(0);
        Self {
            root: root.to_owned(),
            groups,
            times: times.unwrap_or_default(),
            throttled_ns,
            cpus,
            kernel: KernelThreads::default(),
            distance: Some(Distance::default()),
        }
    }

    /// One that does not look at threads of the kernel, as if none could be seen, nor at where CPUs are: for
    /// work of which looking would be a notable part.
    pub fn brief() -> Self {
        Self {
            kernel: KernelThreads { next_ns: u64::MAX, ..KernelThreads::default() },
            distance: None,
            ..Self::default()
        }
    }
}

impl Default for SystemWitness {
    /// A witness for this process; finds its control groups once.
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}

impl Witness for SystemWitness {
    fn read(&mut self) -> Reading {
        let now = steal::cpu_times(&self.root);
        let times = now.unwrap_or(self.times);
        self.times = times;
        self.throttled_ns = self.groups.throttled_ns().unwrap_or(self.throttled_ns);
        let (own, [own_ns, own_user_ns]) = (usage::usage(), usage::cpu_ns_with_children());
        let (monotonic_ns, raw_ns) = both_clocks();
        // Interrupts are nobody's: they may have worked for us.
        let busy_ns = times.programs().saturating_mul(steal::tick_ns());
        let not_ours_ns = busy_ns.wrapping_sub(own_ns);
        let look = || process_table::processes(Path::new("/"));
        let kernel_ns = self.kernel.used_ns(not_ours_ns, monotonic_ns, look);
        let others_busy_ns = match self.kernel.is_blind() {
            true => times.user_mode().saturating_mul(steal::tick_ns()).wrapping_sub(own_user_ns),
            false => not_ours_ns.wrapping_sub(kernel_ns),
        };
        Reading {
            steal_ns: times.steal.saturating_mul(steal::tick_ns()),
            steal_cpus: if times.steal_cpus < times.cpus { times.steal_cpus } else { 0 },
            involuntary_switches: own.involuntary_switches,
            throttled_ns: self.throttled_ns,
            own_ns,
            waited_ns: run_queue::waited_ns(),
            // The thread that reads is one of them.
            others_running: now.map_or(0, |times| times.running.saturating_sub(1)),
            others_busy_ns,
            others_hidden: now.is_none_or(|times| times.cpus == 0),
            kernel_ns,
            monotonic_ns,
            raw_ns,
        }
    }

    fn distance_ns(&mut self) -> Option<u32> {
        self.distance.as_mut()?.look()
    }

    fn cpus(&self) -> u32 {
        self.cpus
    }
}

/// Tries to read both clocks at one instant before the best try is taken.
const CLOCK_TRIES: u32 = 8;
/// A bracket as short as this is good enough.
const CLOCK_BRACKET_NS: u64 = 1_000;

/// Reads the raw clock between two readings of the other and takes the middle; a preemption in
/// between is seen as a wide bracket and the reading is repeated.
fn both_clocks() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..CLOCK_TRIES {
        let first = clock::monotonic_ns();
        let raw = clock::monotonic_raw_ns();
        let bracket = clock::monotonic_ns().saturating_sub(first);
        if bracket < best.0 {
            best = (bracket, first + bracket / 2, raw);
        }
        if bracket <= CLOCK_BRACKET_NS {
            break;
        }
    }
    (best.1, best.2)
}

/// A witness that reads out what it was given, then repeats the last; for tests.
#[derive(Debug, Clone, Default)]
pub struct FakeWitness {
    readings: std::collections::VecDeque<Reading>,
    last: Reading,
    distances_ns: std::collections::VecDeque<u32>,
}

impl FakeWitness {
    /// A witness that gives `readings` in turn: two for each trial, before and after.
    pub fn new(readings: impl IntoIterator<Item = Reading>) -> Self {
        Self { readings: readings.into_iter().collect(), ..Self::default() }
    }

    /// A witness that sees CPUs at these distances in turn: two for each trial.
    pub fn of_moved_cpus(distances_ns: impl IntoIterator<Item = u32>) -> Self {
        Self { distances_ns: distances_ns.into_iter().collect(), ..Self::default() }
    }

    /// A witness to whom nothing ever happens.
    pub fn quiet() -> Self {
        Self::default()
    }
}

impl Witness for FakeWitness {
    fn read(&mut self) -> Reading {
        if let Some(reading) = self.readings.pop_front() {
            self.last = reading;
        }
        self.last
    }

    fn distance_ns(&mut self) -> Option<u32> {
        self.distances_ns.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local!(static USED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

    #[test]
    fn threads_of_the_kernel_are_counted_apart_and_looked_at_when_somebody_was_at_work() {
        let mut kernel = KernelThreads::default();
        let mut look = |ticks, not_ours| {
            USED.set(ticks);
            let all = || {
                let (name, is_kernel) = ("kworker/u4:1-flush".to_owned(), true);
                vec![Process { pid: 7, parent: 2, begun: 5, name, is_kernel, ticks: USED.get() }]
            };
            kernel.used_ns(not_ours * steal::tick_ns(), u64::MAX, all) / steal::tick_ns()
        };
        assert_eq!(look(100, 1000), 0, "before we came");
        assert_eq!(look(101, 1001), 0, "not worth a look");
        assert_eq!(look(130, 1040), 30);
        assert_eq!(look(135, 1050), 35);
        assert!(!kernel.is_blind());
        let mut blind = KernelThreads::default();
        blind.used_ns(0, 1, Vec::new);
        assert!(blind.is_blind());
    }

    #[test]
    fn what_cannot_be_read_for_a_moment_is_no_stolen_time() {
        let root = std::env::temp_dir().join(format!("flatout-witness-{}", std::process::id()));
        let stat = root.join("proc/stat");
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let text =
            "cpu  9000 0 900 9000 0 0 0 7000 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\nprocs_running 9\n";
        std::fs::write(&stat, text).unwrap();
        let mut witness = SystemWitness::below(&root);
        std::fs::remove_file(&stat).unwrap();
        let before = witness.read();
        std::fs::write(&stat, text).unwrap();
        let after = witness.read();
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!((before.others_hidden, before.others_running), (true, 0));
        assert_eq!((after.others_hidden, after.others_running), (false, 8));
        assert_eq!(after.steal_ns - before.steal_ns, 0, "all of it since the start");
        let others_ns = after.others_busy_ns.wrapping_sub(before.others_busy_ns).cast_signed();
        assert!(others_ns <= 0, "{others_ns}");
    }

    #[test]
    fn the_real_machine_can_be_read() {
        let mut witness = SystemWitness::default();
        let (first, second) = (witness.read(), witness.read());
        assert!(witness.cpus() >= 1);
        assert!(first.monotonic_ns > 0 && second.monotonic_ns >= first.monotonic_ns);
        assert!(second.involuntary_switches >= first.involuntary_switches);
    }

    #[test]
    fn what_a_child_used_is_ours_and_not_others() {
        let mut witness = SystemWitness::default();
        let (before, children_ns) = (witness.read(), usage::children().cpu_ns());
        let busy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        let child_ns = usage::children().cpu_ns() - children_ns;
        let after = witness.read();
        assert!(child_ns > 0 && after.own_ns - before.own_ns >= child_ns);
    }

    fn after(monotonic_ns: u64) -> Reading {
        Reading { monotonic_ns, ..Reading::default() }
    }

    #[test]
    fn the_fake_repeats_its_last_reading() {
        let mut fake = FakeWitness::new([1, 2].map(after));
        assert_eq!(fake.read(), after(1));
        assert_eq!((fake.read(), fake.read()), (after(2), after(2)));
    }
}
