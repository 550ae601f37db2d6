//! What one thread does with a load: slices of work with a reading of the clock before each, between
//! probes of the core, until enough of them had it alone.

use flatout_sys::{monotonic_ns, thread_cpu_ns};

use super::{LEAD_PASSES, Load, Reading, SampleWindow, Slice};
use crate::contention::{ContentionProbe, CoreUse};
use crate::cpu::preemption::PreemptionCheck;

/// For how long a window looks for moments without contention, and how many times that at most where
/// several threads must find some.
const SEARCH_NS: u64 = 40_000_000;
const SEARCH_TIMES: u32 = 2;
/// The same where the sibling has hardly rested lately.
const SHORT_SEARCH_NS: u64 = 3_000_000;
/// How many times longer slices are where nothing is read before them and their time is not looked at one by
/// one: what surrounds them is in the figure.
const APART: u64 = 5;
/// Slices of each length that a window wants to have had alone.
const ALONE_SLICES: usize = 2;

impl Load {
    /// A slice of work. One in which somebody else had the CPU says how long that was and
    /// nothing about the units: it is kept apart, as is one with contention. `lead` passes before
    /// it do not count.
    fn work(
        &self,
        passes: u64,
        lead: u64,
        probe: Option<&ContentionProbe>,
        window: &mut SampleWindow,
    ) {
        let before = window.core_use;
        let check = PreemptionCheck::start();
        window.is_wrong |= !self.workload.run(lead).is_right;
        let start_ns = monotonic_ns();
        let checked = self.workload.run(passes);
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns).max(1);
        let is_preempted = check.is_preempted();
        window.probe(probe);
        window.is_wrong |= !checked.is_right;
        let (operations, reading) = (checked.operations, window.reading);
        let core_use = before.and(window.core_use);
        let slice = Slice { operations, elapsed_ns, passes, reading, is_preempted, core_use };
        window.slices.push(slice);
    }

    /// Works on until a probe sees nobody else on the core, or until `until_ns`: the core must not come
    /// to rest meanwhile.
    fn wait(&self, probe: Option<&ContentionProbe>, until_ns: u64, window: &mut SampleWindow) {
        if window.probes == 0 {
            window.probe(probe);
        }
        while window.core_use == CoreUse::Contended && monotonic_ns() < until_ns {
            window.is_wrong |= !self.workload.run(LEAD_PASSES).is_right;
            window.probe(probe);
        }
    }

    /// The window that `work` fills, with its times.
    fn timed(work: impl FnOnce(&mut SampleWindow)) -> SampleWindow {
        let mut window = SampleWindow::default();
        let cpu_ns = thread_cpu_ns();
        window.start_ns = monotonic_ns();
        work(&mut window);
        window.end_ns = monotonic_ns();
        window.cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        window
    }

    /// What one of `threads` threads does in a trial: slices of work of one length and of twice that,
    /// before each a reading of the clock and work that does not count, or neither. With a contention
    /// probe there are more rounds until some slices of both lengths had the core alone, or for 40 ms;
    /// of several threads, all of which must find such moments, 80 ms.
    pub(in super::super) fn sample(
        &self,
        rounds: u32,
        reading: Reading,
        probe: Option<&ContentionProbe>,
        threads: u32,
    ) -> SampleWindow {
        let is_hopeless = probe.is_some_and(ContentionProbe::is_hopeless);
        let longest_ns = SEARCH_NS * u64::from(threads.clamp(1, SEARCH_TIMES));
        let search_ns = if is_hopeless { SHORT_SEARCH_NS } else { longest_ns };
        let (slice, lead) = match reading {
            Reading::Between => (self.passes, LEAD_PASSES),
            Reading::Apart => (APART * self.passes, 0),
        };
        Self::timed(|window| {
            let until_ns = window.start_ns.saturating_add(search_ns);
            if reading == Reading::Between {
                self.lead_in(window);
            }
            for round in 1.. {
                for passes in [slice, 2 * slice] {
                    if reading == Reading::Between {
                        self.wait(probe, until_ns, window);
                        self.read_clock(window);
                    }
                    self.work(passes, lead, probe, window);
                }
                let wants_more =
                    window.core_use != CoreUse::Unknown && !window.has_alone(ALONE_SLICES);
                if round >= rounds && !(wants_more && monotonic_ns() < until_ns) {
                    break;
                }
            }
        })
    }

    /// Works on, without counting, as long as `others_work`, and no longer than they may: so that the
    /// slices of other threads have the same beside them from the first to the last.
    pub(in super::super) fn keep_busy(&self, others_work: impl Fn() -> bool) {
        let mut rest = SampleWindow::default();
        let until_ns = monotonic_ns().saturating_add(SEARCH_NS * u64::from(SEARCH_TIMES));
        while others_work() && monotonic_ns() < until_ns {
            self.lead_in(&mut rest);
        }
    }

    /// Slices of work, one after the other, for at least `least_ns`.
    pub(in super::super) fn sample_for(&self, least_ns: u64) -> SampleWindow {
        Self::timed(|window| {
            let until_ns = window.start_ns.saturating_add(least_ns);
            while monotonic_ns() < until_ns {
                self.work(APART * self.passes, 0, None, window);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use flatout_measure::case::TrialError;
    use flatout_sys::throughput::{Form, Kernel, Level, Number, Operation};

    use super::*;

    fn load() -> Option<Load> {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Sse2 };
        match Load::new(kernel, Form::Work, 5) {
            Ok(load) => Some(load),
            Err(TrialError::Unsupported(text)) => {
                eprintln!("skipped: {text}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_window_counts_slices_of_both_lengths_and_reads_the_clock_before_each() {
        let Some(load) = load() else { return };
        let window = load.sample(3, Reading::Between, None, 1);
        let per_pass = load.workload.run(1).operations;
        assert_eq!(window.operations(), 3 * 3 * load.passes * per_pass);
        assert!(window.slices.len() == 6 && window.readings.0.len() <= 6);
        assert!(!window.is_wrong && window.elapsed_ns() > 0);
        // Readings and slices in which others had the CPU tell nothing: of each there may be only those.
        assert_eq!(window.clock().is_some(), !window.readings.0.is_empty());
        if window.slices.iter().all(|slice| !slice.is_preempted) {
            assert!(window.doubling_ratio().is_some());
        }
        let long = load.sample_for(1_000_000);
        assert!(long.elapsed_ns() >= 1_000_000 && !long.slices.is_empty());
        let apart = load.sample(1, Reading::Apart, None, 1);
        assert_eq!(apart.operations(), 3 * APART * load.passes * per_pass);
        assert!(apart.readings.0.is_empty());
        assert!(apart.per_cycle().is_empty());
    }
}
