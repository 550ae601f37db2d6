//! Who had the CPUs between two readings of a witness: this process, threads of the kernel, other
//! programs, the hypervisor. What that means for a trial: `guard.rs`; for a row: the sampler.

use flatout_sys::steal;

use super::Reading;
use crate::load::BUSY_WAIT;

/// Share of the machine's CPUs from which on what others use decides the figures of a run.
const LOAD: f64 = 0.2;
/// Share of a trial's time below which waiting for a CPU changes no figure, however little else its threads
/// wanted one for: those that wait for storage are woken late now and then.
const SLIGHT: f64 = 0.01;

/// Share of the time that threads waited from which on it was for others where these cannot be seen: two of
/// ours that begin on one CPU wait for each other until they are moved apart.
const WAITED_UNSEEN: f64 = 0.2;

/// Part of the time that threads waited which others must have had the CPUs.
const EXPLAINED: f64 = 0.5;

/// Ticks that bound in 95 of 100 intervals by how much the time of others is off: user's and kernel's
/// time are both cut to whole ticks at either end (standard deviation √(4 ÷ 12)), and sampled by them.
const WITHIN_TICKS: f64 = 1.2;

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
    /// Whether nobody says what others did.
    pub others_hidden: bool,
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
            others_hidden: before.others_hidden || after.others_hidden,
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
            others_hidden: self.others_hidden || other.others_hidden,
            kernel_ns: self.kernel_ns + other.kernel_ns,
            stolen_ns: self.stolen_ns + other.stolen_ns,
            intervals: self.intervals + other.intervals,
            beside_others: self.beside_others + other.beside_others,
        }
    }

    /// The share of the time that threads waited, if it was for others and not worth overlooking.
    /// Where threads of the kernel had more than they, nobody knows for whom these worked, and where
    /// no thread of others was seen, or these had too little of the CPUs, they waited for each other.
    pub fn wait_for_others(&self) -> Option<f64> {
        let is_kernel = self.kernel_ns > 0 && self.kernel_ns.cast_signed() > self.others_ns;
        let is_beside = self.is_beside_others() && !is_kernel && self.others_may_be_why();
        let share = |waited_ns: u64| waited_ns as f64 / (waited_ns + self.own_ns).max(1) as f64;
        let for_others = self.waited_ns.map(|_| share(self.waited_beside_ns));
        let matters = self.waited_beside_ns as f64 > SLIGHT * self.elapsed_ns as f64;
        for_others.filter(|&ratio| is_beside && matters && ratio > BUSY_WAIT)
    }

    /// The share of the time that threads waited, if it is more than those of ours wait for each other and
    /// nobody says whether others were there.
    pub fn wait_unseen(&self) -> Option<f64> {
        self.wait_ratio().filter(|&ratio| self.others_hidden && ratio > WAITED_UNSEEN)
    }

    /// Whether others can have had the CPUs for as long as threads waited, or certainly had a good part of
    /// one: several threads can wait for one of others.
    fn others_may_be_why(&self) -> bool {
        let off_ns = self.others_resolution_cpus() * self.elapsed_ns as f64;
        let (least_ns, most_ns) = (self.others_ns as f64 - off_ns, self.others_ns as f64 + off_ns);
        most_ns >= EXPLAINED * self.waited_beside_ns as f64
            || least_ns > LOAD * self.elapsed_ns as f64
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

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

    #[test]
    fn who_waits_for_threads_of_the_kernel_does_not_wait_for_other_programs() {
        let waits = |others_ns: u64, kernel_ns| {
            let (others_ns, waited_ns) = (others_ns.cast_signed(), Some(50 * MS));
            let (own_ns, intervals, beside_others) = (100 * MS, 1, 2);
            let all = UseOfCpus::default();
            let all = UseOfCpus { own_ns, waited_ns, others_ns, kernel_ns, intervals, ..all };
            let (elapsed_ns, waited_beside_ns) = (100 * MS, 50 * MS);
            let all = UseOfCpus { elapsed_ns, waited_beside_ns, beside_others, ..all };
            all.wait_for_others().is_some()
        };
        let others = [waits(40 * MS, 0), waits(50 * MS, 30 * MS), waits(30 * MS, 50 * MS)];
        assert_eq!(others, [true, true, false]);
        assert!(!waits(10 * MS, 0), "others had the CPUs for less than half of that");
    }

    /// As seen of a row that slept for nearly all of its time, on a machine without others.
    #[test]
    fn who_hardly_wants_a_cpu_is_not_held_up_by_waking_late() {
        let waits = |waited_ns| {
            let (own_ns, others_ns) = (10 * MS, 37 * MS.cast_signed());
            let all = UseOfCpus { own_ns, others_ns, intervals: 1, ..UseOfCpus::default() };
            let (waited_beside_ns, beside_others) = (waited_ns, 2);
            let all = UseOfCpus { waited_beside_ns, beside_others, elapsed_ns: 1000 * MS, ..all };
            UseOfCpus { waited_ns: Some(waited_ns), ..all }.wait_for_others().is_some()
        };
        assert_eq!([35 * MS / 10, 11 * MS].map(waits), [false, true]);
    }

    /// Two trials beside somebody in which threads hardly waited, and one in which they waited for each
    /// other: nobody was in the way.
    #[test]
    fn of_several_trials_those_beside_others_tell_what_these_took() {
        let trial = |waited_ns, others_running: u32| {
            let before = Reading { waited_ns: Some(0), others_running, ..Reading::default() };
            let own_ns = 10 * MS;
            let after = Reading {
                own_ns,
                waited_ns: Some(waited_ns),
                others_running,
                monotonic_ns: own_ns,
                ..before
            };
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
}
