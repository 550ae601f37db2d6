//! Whether something outside the trial spoiled it: stolen time, throttling, a clock that drifts,
//! or other programs that took the CPU.
//!
//! A [`Witness`] is read before and after each trial; [`judge`] compares. It calls an interval
//! spoiled only when it is sure. The kernel shows stolen and busy time in ticks of 10 ms, and a
//! difference of one tick may stand for a nanosecond: thresholds apply to what is certain, the
//! difference less what rounding can have added. Short trials therefore pass where long ones
//! would not, and their spread has to speak instead.

use std::path::Path;

use flatout_sys::process_table::{self, Process};
use flatout_sys::quota::Groups;
use flatout_sys::{clock, run_queue, steal, usage};

use crate::load::BUSY_WAIT;

/// Share of the machine's CPUs from which on what others use decides the figures of a run.
const LOAD: f64 = 0.2;

/// Ticks that bound in 95 of 100 intervals by how much the time of others is off: user's and kernel's
/// time are both cut to whole ticks at either end (standard deviation √(4 ÷ 12)), and sampled by them.
const WITHIN_TICKS: f64 = 1.2;

/// Totals that only grow, read at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time that the hypervisor took from all CPUs together, in whole ticks.
    pub steal_ns: u64,
    /// Times that the scheduler took the CPU from this process.
    pub involuntary_switches: u64,
    /// CPU time of this process and of its children that have ended.
    pub own_ns: u64,
    /// Time that threads of this process were ready and waited for a CPU; `None` where the kernel
    /// does not count it.
    pub waited_ns: Option<u64>,
    /// Time that the CPU quota held this process back.
    pub throttled_ns: u64,
    /// Threads of others that ran or were ready to at that moment.
    pub others_running: u32,
    /// CPU time of all programs but this process and those children, all CPUs together, to about a tick.
    pub others_busy_ns: u64,
    /// CPU time of threads of the kernel, as far as it was looked at.
    pub kernel_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// `CLOCK_MONOTONIC_RAW` at the same moment.
    pub raw_ns: u64,
}

/// What is asked before and after each trial.
pub trait Witness {
    /// The totals now.
    fn read(&mut self) -> Reading;

    /// CPUs over which the totals are summed.
    fn cpus(&self) -> u32 {
        1
    }
}

flatout_sys::words! {
    /// Why an interval must not count.
    pub enum Spoil: name {
        /// The hypervisor ran something else.
        Stolen = "stolen time",
        /// The CPU quota held the process back.
        Throttled = "quota throttling",
        /// The clock was steered so hard that times are wrong.
        ClockDrift = "clock drift",
        /// Other programs took the CPU again and again.
        Preempted = "preemption",
        /// The SMT sibling used the core all the time.
        SiblingContention = "SMT sibling contention",
    }
}

/// Share of the CPU time of an interval that may be stolen.
pub const STOLEN_SHARE: f64 = 0.02;
/// Share of the CPU time of an interval that others may use while they also preempt.
pub const OTHERS_SHARE: f64 = 0.05;
/// Involuntary switches per second that an interval may have.
pub const SWITCHES_PER_SECOND: f64 = 200.0;
/// Involuntary switches that an interval may have however short it is.
pub const SWITCHES_LEAST: u64 = 5;
/// Parts per million by which the two clocks may differ; NTP never steers harder than this.
pub const DRIFT_PPM: f64 = 500.0;
/// What the two clocks may differ by because they are not read at one instant. [`SystemWitness`]
/// brackets one reading by the other and retries, so this is generous.
pub const DRIFT_RESOLUTION_NS: u64 = 10_000;

/// Waiting below which a trial was not preempted however short it is: a tick's interrupts take less.
const WAITED_LEAST_NS: u64 = 20_000;

/// Who had the CPUs in an interval, or in several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UseOfCpus {
    /// The length of the interval.
    pub elapsed_ns: u64,
    /// CPU time of this process.
    pub own_ns: u64,
    /// Time that its threads were ready and waited for a CPU, if that is known.
    pub waited_ns: Option<u64>,
    /// That of intervals at whose beginning or end a thread of others ran.
    pub waited_beside_ns: u64,
    /// CPU time of all other programs, to about a tick for each interval: as likely too little as too
    /// much, so that it may be below 0.
    pub others_ns: i64,
    /// That of threads of the kernel, which may work for us: write back what we wrote, for one.
    pub kernel_ns: u64,
    /// Time that the hypervisor took from all CPUs together, in whole ticks.
    pub stolen_ns: u64,
    /// Intervals.
    pub intervals: u32,
    /// Beginnings and ends of intervals at which a thread of others ran. A thread of ours that is
    /// about to end may pass for one.
    pub beside_others: u32,
}

impl UseOfCpus {
    /// From one reading to a later one.
    pub fn between(before: &Reading, after: &Reading) -> Self {
        let waited_ns = after.waited_ns.zip(before.waited_ns);
        // While a quota holds threads back they wait, but for nobody.
        let throttled_ns = after.throttled_ns.saturating_sub(before.throttled_ns);
        let waited_ns =
            waited_ns.map(|(after, before)| after.saturating_sub(before + throttled_ns));
        let beside_others = [before, after].map(|at| u32::from(at.others_running > 0)).iter().sum();
        Self {
            elapsed_ns: after.monotonic_ns.saturating_sub(before.monotonic_ns),
            own_ns: after.own_ns.saturating_sub(before.own_ns),
            waited_ns,
            waited_beside_ns: waited_ns.filter(|_| beside_others > 0).unwrap_or(0),
            others_ns: after.others_busy_ns.wrapping_sub(before.others_busy_ns).cast_signed(),
            kernel_ns: after.kernel_ns.saturating_sub(before.kernel_ns),
            stolen_ns: after.steal_ns.saturating_sub(before.steal_ns),
            intervals: 1,
            beside_others,
        }
    }

    /// Both intervals together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            elapsed_ns: self.elapsed_ns + other.elapsed_ns,
            own_ns: self.own_ns + other.own_ns,
            waited_ns: self.waited_ns.zip(other.waited_ns).map(|(one, more)| one + more),
            waited_beside_ns: self.waited_beside_ns + other.waited_beside_ns,
            others_ns: self.others_ns + other.others_ns,
            kernel_ns: self.kernel_ns + other.kernel_ns,
            stolen_ns: self.stolen_ns + other.stolen_ns,
            intervals: self.intervals + other.intervals,
            beside_others: self.beside_others + other.beside_others,
        }
    }

    /// The share of the time that threads waited, if it was for others and not worth overlooking.
    /// Where threads of the kernel had more than they, nobody knows for whom these worked, and where
    /// no thread of others was seen, they waited for each other.
    pub fn wait_for_others(&self) -> Option<f64> {
        let is_kernel = self.kernel_ns > 0 && self.kernel_ns.cast_signed() > self.others_ns;
        let is_beside = self.is_beside_others() && !is_kernel;
        let share = |waited_ns: u64| waited_ns as f64 / (waited_ns + self.own_ns).max(1) as f64;
        let for_others = self.waited_ns.map(|_| share(self.waited_beside_ns));
        for_others.filter(|&ratio| is_beside && ratio > BUSY_WAIT)
    }

    /// CPUs that others used.
    pub fn others_cpus(&self) -> f64 {
        self.others_ns.max(0) as f64 / self.elapsed_ns.max(1) as f64
    }

    /// How far [`Self::others_cpus`] may be off, since the kernel shows whole ticks.
    pub fn others_resolution_cpus(&self) -> f64 {
        let off_ns = WITHIN_TICKS * steal::tick_ns() as f64 * f64::from(self.intervals).sqrt();
        off_ns / self.elapsed_ns.max(1) as f64
    }

    /// Whether others were there most of the time, and certainly used a good part of so many CPUs.
    pub fn is_beside_load(&self, cpus: u32) -> bool {
        let certain_cpus = self.others_cpus() - self.others_resolution_cpus();
        self.is_beside_others() && certain_cpus > LOAD * f64::from(cpus)
    }

    /// Whether others ran at half of the beginnings and ends.
    fn is_beside_others(&self) -> bool {
        self.beside_others >= self.intervals.max(1)
    }

    /// Of the time that threads wanted a CPU, the share in which they waited for one.
    pub fn wait_ratio(&self) -> Option<f64> {
        let waited_ns = self.waited_ns?;
        Some(waited_ns as f64 / (waited_ns + self.own_ns).max(1) as f64)
    }
}

/// Judges the interval between two readings on a machine with `cpus` CPUs; `None` is fine.
///
/// That others preempted us shows in the time that our threads waited for a CPU, in nanoseconds,
/// where somebody was there when the trial began or ended: threads of ours can wait for each other.
/// Where the kernel does not count it, involuntary switches alone prove nothing: a program whose
/// threads wake each other preempts itself. They count only together with time that others are
/// known to have used.
pub fn judge(before: &Reading, after: &Reading, cpus: u32) -> Option<Spoil> {
    let tick_ns = steal::tick_ns();
    let cpus = u64::from(cpus.max(1));
    let interval_ns = after.monotonic_ns.saturating_sub(before.monotonic_ns);
    let capacity_ns = interval_ns as f64 * cpus as f64;

    if after.throttled_ns > before.throttled_ns {
        return Some(Spoil::Throttled);
    }
    // k ticks shown are more than k − 1 in truth. So one tick is never enough, and two in a
    // trial of 50 ms are: at least 10 of its 100 CPU milliseconds are gone.
    let stolen_ns = after.steal_ns.saturating_sub(before.steal_ns).saturating_sub(tick_ns);
    if stolen_ns as f64 > STOLEN_SHARE * capacity_ns {
        return Some(Spoil::Stolen);
    }
    let raw_ns = after.raw_ns.saturating_sub(before.raw_ns);
    let drift_ns = interval_ns.abs_diff(raw_ns).saturating_sub(DRIFT_RESOLUTION_NS);
    if drift_ns as f64 > DRIFT_PPM * 1e-6 * raw_ns as f64 {
        return Some(Spoil::ClockDrift);
    }
    let use_of_cpus = UseOfCpus::between(before, after);
    if let Some(waited_ns) = use_of_cpus.waited_ns {
        let is_preempted = waited_ns > WAITED_LEAST_NS && use_of_cpus.wait_for_others().is_some();
        return is_preempted.then_some(Spoil::Preempted);
    }
    // Busy time is summed by tick per CPU, so each CPU can be off by one at either end.
    let others_ns = use_of_cpus.others_ns as f64 - (2 * cpus * tick_ns) as f64;
    let switches = after.involuntary_switches.saturating_sub(before.involuntary_switches);
    let switches_limit = SWITCHES_PER_SECOND * interval_ns as f64 / 1e9;
    let preempted = switches > SWITCHES_LEAST && switches as f64 > switches_limit;
    if preempted && others_ns > OTHERS_SHARE * capacity_ns {
        return Some(Spoil::Preempted);
    }
    None
}

/// The real machine. What it cannot read stays 0 and is never a reason.
#[derive(Debug)]
pub struct SystemWitness {
    groups: Groups,
    cpus: u32,
    kernel: KernelThreads,
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
    /// A witness for this process; finds its control groups once.
    pub fn new() -> Self {
        let root = Path::new("/");
        let cpus = steal::cpu_times(root).map_or(1, |times| times.cpus.max(1));
        Self { groups: Groups::discover(root), cpus, kernel: KernelThreads::default() }
    }
}

impl Default for SystemWitness {
    fn default() -> Self {
        Self::new()
    }
}

impl Witness for SystemWitness {
    fn read(&mut self) -> Reading {
        let times = steal::cpu_times(Path::new("/")).unwrap_or_default();
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
            involuntary_switches: own.involuntary_switches,
            throttled_ns: self.groups.throttled_ns().unwrap_or(0),
            own_ns,
            waited_ns: run_queue::waited_ns(),
            // The thread that reads is one of them.
            others_running: times.running.saturating_sub(1),
            others_busy_ns,
            kernel_ns,
            monotonic_ns,
            raw_ns,
        }
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
}

impl FakeWitness {
    /// A witness that gives `readings` in turn: two for each trial, before and after.
    pub fn new(readings: impl IntoIterator<Item = Reading>) -> Self {
        Self { readings: readings.into_iter().collect(), last: Reading::default() }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// An interval of this length in which nothing happened.
    fn after(interval_ns: u64) -> Reading {
        Reading { monotonic_ns: interval_ns, raw_ns: interval_ns, ..Reading::default() }
    }

    fn verdict(after: &Reading, cpus: u32) -> Option<Spoil> {
        judge(&Reading::default(), after, cpus)
    }

    fn ticks(count: u64) -> u64 {
        count * steal::tick_ns()
    }

    #[test]
    fn a_quiet_interval_counts() {
        assert_eq!(verdict(&after(50 * MS), 2), None);
        assert_eq!(verdict(&after(0), 2), None);
    }

    #[test]
    fn a_load_is_others_who_are_there_and_use_a_good_part_of_the_cpus() {
        let beside = |others_ns, beside_others| UseOfCpus {
            elapsed_ns: 100 * MS,
            others_ns,
            intervals: 4,
            beside_others,
            ..UseOfCpus::default()
        };
        let some_ns = 90 * MS.cast_signed();
        assert!(beside(some_ns, 4).is_beside_load(2));
        assert!(!beside(some_ns, 3).is_beside_load(2), "threads of the kernel, for us");
        assert!(!beside(some_ns, 8).is_beside_load(64), "one of 64 CPUs");
        assert!(!UseOfCpus::default().is_beside_load(2));
    }

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
            kernel.used_ns(self::ticks(not_ours), u64::MAX, all) / steal::tick_ns()
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
    fn who_waits_for_threads_of_the_kernel_does_not_wait_for_other_programs() {
        let waits = |others_ns, kernel_ns| {
            let waited_ns = Some(50 * MS);
            let (own_ns, intervals, beside_others) = (100 * MS, 1, 2);
            let all = UseOfCpus::default();
            let all = UseOfCpus { own_ns, waited_ns, others_ns, kernel_ns, intervals, ..all };
            let all = UseOfCpus { waited_beside_ns: 50 * MS, beside_others, ..all };
            all.wait_for_others().is_some()
        };
        assert_eq!([waits(0, 0), waits(5, 3), waits(3, 5)], [true, true, false]);
    }

    /// Two trials beside somebody in which threads hardly waited, and one in which they waited for each
    /// other: nobody was in the way.
    #[test]
    fn of_several_trials_those_beside_others_tell_what_these_took() {
        let trial = |waited_ns, others_running| {
            let before = Reading { waited_ns: Some(0), others_running, ..Reading::default() };
            let own_ns = 10 * MS;
            let after =
                Reading { own_ns, waited_ns: Some(waited_ns), others_running, ..after(own_ns) };
            UseOfCpus::between(&before, &after)
        };
        let all = |waits: [(u64, u32); 3]| {
            let all = waits.map(|(waited_ns, others)| trial(waited_ns, others)).into_iter();
            all.reduce(UseOfCpus::and).unwrap().wait_for_others().is_some()
        };
        assert!(!all([(MS / 100, 1), (MS / 100, 1), (8 * MS, 0)]));
        assert!(all([(MS / 100, 1), (8 * MS, 1), (MS / 100, 0)]));
    }

    #[test]
    fn ticks_that_fall_into_short_trials_are_no_others() {
        // Every fourth trial of 2.5 ms sees a tick that stands for all four, and no one else.
        let tick_ns = steal::tick_ns();
        let trial = |number: u64| {
            let at = |own_ns: u64| Reading {
                own_ns,
                others_running: 1,
                others_busy_ns: (1 << 40) + own_ns / tick_ns * tick_ns - own_ns,
                monotonic_ns: own_ns,
                ..Reading::default()
            };
            UseOfCpus::between(&at(number * tick_ns / 4), &at((number + 1) * tick_ns / 4))
        };
        let all = (0..40).map(trial).reduce(UseOfCpus::and).unwrap();
        assert_eq!((all.others_cpus(), all.is_beside_load(2)), (0.0, false));
        // Of three of them nobody can tell: a tick more or less is as much as one CPU does.
        let few = (1..4).map(trial).reduce(UseOfCpus::and).unwrap();
        assert!(few.others_cpus() > 0.3 && few.others_resolution_cpus() > 1.0);
        assert!(!few.is_beside_load(2));
    }

    #[test]
    fn one_tick_is_never_enough() {
        let reading = Reading { steal_ns: ticks(1), ..after(50 * MS) };
        assert_eq!(verdict(&reading, 1), None);
    }

    #[test]
    fn two_ticks_spoil_a_short_interval_but_not_a_long_one() {
        let short = Reading { steal_ns: ticks(2), ..after(50 * MS) };
        assert_eq!(verdict(&short, 2), Some(Spoil::Stolen));
        let long = Reading { steal_ns: ticks(2), ..after(1_000 * MS) };
        assert_eq!(verdict(&long, 2), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_cpus() {
        let reading = Reading { steal_ns: ticks(30), ..after(10_000 * MS) };
        assert_eq!(verdict(&reading, 1), Some(Spoil::Stolen));
        assert_eq!(verdict(&reading, 2), None);
    }

    #[test]
    fn any_throttling_spoils() {
        let reading = Reading { throttled_ns: 1, ..after(50 * MS) };
        assert_eq!(verdict(&reading, 2), Some(Spoil::Throttled));
    }

    #[test]
    fn the_clock_may_be_steered_but_not_wildly() {
        let second = 1_000 * MS;
        let steered = Reading { raw_ns: second + 400_000, ..after(second) };
        assert_eq!(verdict(&steered, 2), None);
        let wild = Reading { raw_ns: second + 600_000, ..after(second) };
        assert_eq!(verdict(&wild, 2), Some(Spoil::ClockDrift));
        let back = Reading { raw_ns: second - 600_000, ..after(second) };
        assert_eq!(verdict(&back, 2), Some(Spoil::ClockDrift));
        let resolution = Reading { raw_ns: MS + 9_000, ..after(MS) };
        assert_eq!(verdict(&resolution, 2), None, "within the resolution of the readings");
    }

    #[test]
    fn switches_spoil_only_when_others_used_the_time() {
        let second = 1_000 * MS;
        let switches = Reading { involuntary_switches: 1_000, ..after(second) };
        assert_eq!(verdict(&switches, 2), None, "threads of one program preempt each other");
        let others = Reading { others_busy_ns: 500 * MS, ..after(second) };
        assert_eq!(verdict(&others, 2), None, "others ran on another CPU");
        let both = Reading { others_busy_ns: 500 * MS, ..switches };
        assert_eq!(verdict(&both, 2), Some(Spoil::Preempted));
    }

    #[test]
    fn a_few_switches_are_forgiven() {
        let short = Reading { others_busy_ns: 500 * MS, ..after(10 * MS) };
        assert_eq!(verdict(&Reading { involuntary_switches: 5, ..short }, 1), None);
        assert_eq!(
            verdict(&Reading { involuntary_switches: 6, ..short }, 1),
            Some(Spoil::Preempted)
        );
    }

    #[test]
    fn waiting_for_a_cpu_spoils_the_shortest_trial_on_the_largest_machine() {
        let waited = |own_ns, waited_ns| {
            let before = Reading { waited_ns: Some(7), ..Reading::default() };
            let others_running = 1;
            let after =
                Reading { own_ns, waited_ns: Some(7 + waited_ns), others_running, ..after(2 * MS) };
            let alone = Reading { others_running: 0, ..after };
            assert_eq!(judge(&before, &alone, 64), None, "our threads waited for each other");
            judge(&before, &after, 64)
        };
        assert_eq!(waited(MS, MS), Some(Spoil::Preempted));
        assert_eq!(waited(MS, MS / 100), None, "a hundredth of the time");
        assert_eq!(waited(50_000, 15_000), None, "an interrupt's worth");
        let switches =
            Reading { involuntary_switches: 1_000, others_busy_ns: 900 * MS, ..after(MS) };
        let before = Reading { waited_ns: Some(0), ..Reading::default() };
        let counted = Reading { waited_ns: Some(0), own_ns: MS, ..switches };
        assert_eq!(judge(&before, &counted, 2), None, "others ran, and nobody waited for them");
    }

    #[test]
    fn the_real_machine_can_be_read() {
        let mut witness = SystemWitness::new();
        let (first, second) = (witness.read(), witness.read());
        assert!(witness.cpus() >= 1);
        assert!(first.monotonic_ns > 0 && second.monotonic_ns >= first.monotonic_ns);
        assert!(second.involuntary_switches >= first.involuntary_switches);
    }

    #[test]
    fn what_a_child_used_is_ours_and_not_others() {
        let mut witness = SystemWitness::new();
        let (before, children_ns) = (witness.read(), usage::children().cpu_ns());
        let busy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", busy]).status().unwrap().success());
        let child_ns = usage::children().cpu_ns() - children_ns;
        let after = witness.read();
        assert!(child_ns > 0 && after.own_ns - before.own_ns >= child_ns);
    }

    #[test]
    fn the_fake_repeats_its_last_reading() {
        let mut fake = FakeWitness::new([after(1), after(2)]);
        assert_eq!(fake.read(), after(1));
        assert_eq!((fake.read(), fake.read()), (after(2), after(2)));
    }
}
