//! What one thread does with a load: slices of work with a reading of the clock before each, between
//! glances at the core, until enough of them had it alone.

use flatout_sys::clock::{monotonic_ns, thread_cpu_ns};

use super::{LEAD_PASSES, Load, Reading, Slice, Stint};
use crate::cpu::lookout::{Lookout, Sight};
use crate::cpu::watch::Watch;

/// For how long a stint looks for moments in which nobody else uses the core, and how many times that at
/// most where several threads must find some.
const SEARCH_NS: u64 = 40_000_000;
const SEARCH_TIMES: u32 = 2;
/// The same where a neighbour has hardly rested lately.
const SHORT_SEARCH_NS: u64 = 3_000_000;
/// How many times longer slices are where nothing is read before them and their time is not looked at one by
/// one: what watches them is in the figure.
const APART: u64 = 5;
/// Slices of each length that a stint wants to have had alone.
const ALONE_SLICES: usize = 2;

impl Load {
    /// A slice of work. One in which somebody else had the CPU says how long that was and
    /// nothing about the units: it is kept apart, as is one beside a neighbour on the core. `lead`
    /// passes before it do not count.
    fn work(&self, passes: u64, lead: u64, lookout: Option<&Lookout>, stint: &mut Stint) {
        let before = stint.sight;
        let watch = Watch::start();
        stint.is_wrong |= !self.workload.run(lead).is_right;
        let start_ns = monotonic_ns();
        let checked = self.workload.run(passes);
        let elapsed_ns = monotonic_ns().saturating_sub(start_ns).max(1);
        let (_, is_spoiled) = watch.stop();
        stint.look(lookout);
        stint.is_wrong |= !checked.is_right;
        let (operations, reading) = (checked.operations, stint.reading);
        let sight = before.and(stint.sight);
        stint.slices.push(Slice { operations, elapsed_ns, passes, reading, is_spoiled, sight });
    }

    /// Works on until a glance sees nobody else on the core, or until `until_ns`: the core must not come
    /// to rest meanwhile.
    fn wait(&self, lookout: Option<&Lookout>, until_ns: u64, stint: &mut Stint) {
        if stint.glances == 0 {
            stint.look(lookout);
        }
        while stint.sight == Sight::Shared && monotonic_ns() < until_ns {
            stint.is_wrong |= !self.workload.run(LEAD_PASSES).is_right;
            stint.look(lookout);
        }
    }

    /// What one thread does in a trial: slices of work of one length and of twice that, before each a
    /// reading of the clock and work that does not count, or neither. With a lookout a glance
    /// stands between them, and there are more rounds until some slices of both lengths had the
    /// core alone, or for 40 ms; of several threads 80 ms.
    pub(in super::super) fn stint(
        &self,
        rounds: u32,
        reading: Reading,
        lookout: Option<&Lookout>,
    ) -> Stint {
        self.stint_beside(rounds, reading, lookout, 1)
    }

    /// The same for one of so many threads: all of them must find such moments.
    pub(in super::super) fn stint_beside(
        &self,
        rounds: u32,
        reading: Reading,
        lookout: Option<&Lookout>,
        threads: u32,
    ) -> Stint {
        let mut stint = Stint::default();
        let cpu_ns = thread_cpu_ns();
        stint.start_ns = monotonic_ns();
        let is_hopeless = lookout.is_some_and(Lookout::is_hopeless);
        let longest_ns = SEARCH_NS * u64::from(threads.clamp(1, SEARCH_TIMES));
        let search_ns = if is_hopeless { SHORT_SEARCH_NS } else { longest_ns };
        let until_ns = stint.start_ns.saturating_add(search_ns);
        if reading == Reading::Between {
            self.lead_in(&mut stint);
        }
        let slice = if reading == Reading::Between { self.passes } else { APART * self.passes };
        for round in 1.. {
            for passes in [slice, 2 * slice] {
                if reading == Reading::Between {
                    self.wait(lookout, until_ns, &mut stint);
                    self.read_clock(&mut stint);
                }
                let lead = if reading == Reading::Between { LEAD_PASSES } else { 0 };
                self.work(passes, lead, lookout, &mut stint);
            }
            let wants_more = stint.sight != Sight::Unknown && !stint.has_alone(ALONE_SLICES);
            if round >= rounds && !(wants_more && monotonic_ns() < until_ns) {
                break;
            }
        }
        stint.end_ns = monotonic_ns();
        stint.cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        stint
    }

    /// Works on, without counting, as long as `others_work`, and no longer than they may: so that the
    /// slices of other threads have the same beside them from the first to the last.
    pub(in super::super) fn keep_company(&self, others_work: impl Fn() -> bool) {
        let mut rest = Stint::default();
        let until_ns = monotonic_ns().saturating_add(SEARCH_NS * u64::from(SEARCH_TIMES));
        while others_work() && monotonic_ns() < until_ns {
            self.lead_in(&mut rest);
        }
    }
}

impl Load {
    /// Slices of work, one after the other, for at least `least_ns`.
    pub(in super::super) fn endure(&self, least_ns: u64) -> Stint {
        let mut stint = Stint::default();
        let cpu_ns = thread_cpu_ns();
        stint.start_ns = monotonic_ns();
        while stint.end_ns.saturating_sub(stint.start_ns) < least_ns {
            self.work(APART * self.passes, 0, None, &mut stint);
            stint.end_ns = monotonic_ns();
        }
        stint.cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        stint
    }
}

#[cfg(test)]
mod tests {
    use flatout_sys::throughput::{Form, Kernel, Level, Number, Operation};

    use super::super::NoLoad;
    use super::*;

    fn load() -> Option<Load> {
        let kernel = Kernel { number: Number::F64, operation: Operation::Add, level: Level::Sse2 };
        match Load::new(kernel, Form::Work, 5) {
            Ok(load) => Some(load),
            Err(NoLoad::Unsupported(text)) => {
                eprintln!("skipped: {text}");
                None
            }
            Err(NoLoad::Wrong(text)) => panic!("{text}"),
        }
    }

    #[test]
    fn a_stint_counts_slices_of_both_lengths_and_reads_the_clock_before_each() {
        let Some(load) = load() else { return };
        let stint = load.stint(3, Reading::Between, None);
        let per_pass = load.workload.run(1).operations;
        assert_eq!(stint.operations(), 3 * 3 * load.passes * per_pass);
        let readings = stint.readings.0.len() + stint.spoiled_readings.0.len();
        assert_eq!((stint.slices.len(), readings), (6, 6));
        assert!(!stint.is_wrong && stint.clock_ns > 0);
        assert!(stint.end_ns - stint.start_ns >= stint.clock_ns);
        assert!(stint.clock().is_some() && stint.doubling_ratio().is_some());
        let enduring = load.endure(1_000_000);
        assert!(enduring.end_ns - enduring.start_ns >= 1_000_000 && !enduring.slices.is_empty());
        let apart = load.stint(1, Reading::Apart, None);
        assert_eq!(apart.operations(), 3 * APART * load.passes * per_pass);
        assert_eq!((apart.clock_ns, apart.readings.0.len()), (0, 0));
        assert!(apart.per_cycle().is_empty());
    }
}
