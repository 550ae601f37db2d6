//! Whether something outside the trial spoiled it: stolen time, throttling, a clock that drifts,
//! or other programs that took the CPU.
//!
//! A [`Witness`] is read before and after each trial; [`judge`] compares. It calls an interval
//! spoiled only when it is sure. The kernel shows stolen and busy time in ticks of 10 ms, and a
//! difference of one tick may stand for a nanosecond: thresholds apply to what is certain, the
//! difference less what rounding can have added. Short trials therefore pass where long ones
//! would not, and their spread has to speak instead.

mod distance;
mod use_of_cpus;
mod witness;

use flatout_sys::steal;

pub use distance::FAR;
pub use use_of_cpus::UseOfCpus;
pub use witness::{FakeWitness, SystemWitness};

/// Totals that only grow, read at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time that the hypervisor took from all CPUs together, in whole ticks.
    pub steal_ns: u64,
    /// CPUs of which alone that is, each in whole ticks; 0: all.
    pub steal_cpus: u32,
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
    /// Whether nobody says what others did (`/proc/stat` is hidden); `others_running` is 0 then.
    pub others_hidden: bool,
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

    /// How far the first two CPUs are from each other, in nanoseconds, where it is known.
    fn distance_ns(&mut self) -> Option<u32> {
        None
    }

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
        /// What was to be measured at the same moment was not.
        Apart = "clients that were not there at the same moment",
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

/// Judges the interval between two readings on a machine with `cpus` CPUs; `None` is fine.
///
/// That others preempted us shows in the time that our threads waited for a CPU, in nanoseconds,
/// where somebody was there when the trial began or ended: threads of ours can wait for each other.
/// Where the kernel does not count it, involuntary switches alone prove nothing: a program whose
/// threads wake each other preempts itself. They count only together with time that others are
/// known to have used.
pub fn judge(before: &Reading, after: &Reading, cpus: u32) -> Option<Spoil> {
    let tick_ns = steal::tick_ns();
    let stolen_cpus = if after.steal_cpus > 0 { after.steal_cpus } else { cpus.max(1) };
    let cpus = u64::from(cpus.max(1));
    let interval_ns = after.monotonic_ns.saturating_sub(before.monotonic_ns);
    let capacity_ns = interval_ns as f64 * cpus as f64;

    if after.throttled_ns > before.throttled_ns {
        return Some(Spoil::Throttled);
    }
    // k ticks shown are more than k − 1 in truth, of each count. So one tick is never enough, and two in a
    // trial of 50 ms are: at least 10 of its 100 CPU milliseconds are gone.
    let off_ns = u64::from(after.steal_cpus.max(1)) * tick_ns;
    let stolen_ns = after.steal_ns.saturating_sub(before.steal_ns).saturating_sub(off_ns);
    if stolen_ns as f64 > STOLEN_SHARE * interval_ns as f64 * f64::from(stolen_cpus) {
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
    fn of_a_large_machine_the_cpus_that_may_be_used_count() {
        let of = |steal_cpus| Reading { steal_ns: ticks(4), steal_cpus, ..after(400 * MS) };
        assert_eq!(verdict(&of(0), 64), None);
        assert_eq!(verdict(&of(2), 64), Some(Spoil::Stolen));
        assert_eq!(verdict(&of(4), 64), None, "each of them may be off by a tick");
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
}
