//! What one thread did in its sample window: its slices of work, the clock beside them, and which of
//! them count. How they come about: `load/sampling.rs`.

use flatout_measure::statistics::median;
use flatout_sys::monotonic_ns;

use super::clock::{Clock, Readings};
use crate::contention::{ContentionProbe, CoreUse};

/// The first part of a window, in which contention is watched. The rest may be a search that goes on
/// while there is some and ends when there is none: it would find mostly what it looks for.
const WATCHED_NS: u64 = 1_000_000;

/// A slice of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slice {
    pub(super) operations: u64,
    pub(super) elapsed_ns: u64,
    pub(super) passes: u64,
    /// The clock right before it, in the load. Under contention, which lowers readings: that or the
    /// next one, whichever is higher.
    pub(super) reading: Option<Clock>,
    /// Whether the thread lost its CPU in it.
    pub(super) is_preempted: bool,
    /// Whether the core was its own, right before it and right after it.
    pub(super) core_use: CoreUse,
}

impl Slice {
    fn is_alone(&self) -> bool {
        self.core_use == CoreUse::Alone && !self.is_preempted
    }

    fn per_s(&self) -> f64 {
        self.operations as f64 * 1e9 / self.elapsed_ns as f64
    }
}

/// What one thread did.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SampleWindow {
    /// The readings in which nobody else had the CPU.
    pub(super) readings: Readings,
    /// The last reading, if it is one of them.
    pub(super) reading: Option<Clock>,
    pub(super) slices: Vec<Slice>,
    /// What the last probe of the core saw, when that was, and how many there were.
    pub(super) core_use: CoreUse,
    pub(super) probes: u32,
    pub(super) probed_ns: u64,
    /// The time from probe to probe in the first millisecond, and the part of it at the end of which
    /// there was contention.
    pub(super) watched_ns: u64,
    pub(super) contended_ns: u64,
    pub(super) is_wrong: bool,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The clock before the work and after it.
    pub(super) before: Option<Clock>,
    pub(super) after: Option<Clock>,
    pub(super) cpu_ns: u64,
}

impl SampleWindow {
    /// From its start to its end.
    pub(super) fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The clock: that beside the slices which had the core alone, in the middle; where there are none, what
    /// the readings tell. Those in which somebody else had the CPU would tell how long the thread waited, and
    /// are no bound of what it does when it does not: where there are only those, no clock is known.
    pub(super) fn clock(&self) -> Option<Clock> {
        let is_quiet = self.has_alone(1);
        let alone = self.slices.iter().filter(|slice| is_quiet && slice.is_alone());
        let clocks: Vec<Clock> = alone.filter_map(|slice| slice.reading).collect();
        let middle = |of: fn(&Clock) -> f64| median(&clocks.iter().map(of).collect::<Vec<_>>());
        if let Some((hz, agreement_ratio)) =
            middle(|one| one.hz).zip(middle(|one| one.agreement_ratio))
        {
            return Some(Clock { hz, agreement_ratio });
        }
        self.readings.clock()
    }

    /// Takes a pair of readings in, unless it was preempted.
    pub(super) fn take_reading(&mut self, pair: [f64; 2], is_preempted: bool) {
        self.readings.0.extend((!is_preempted).then_some(pair));
        self.reading = Readings(vec![pair]).clock().filter(|_| !is_preempted);
        if let Some(last) = self.slices.last_mut().filter(|last| !last.is_alone()) {
            let both = last.reading.into_iter().chain(self.reading);
            last.reading = both.max_by(|a, b| a.hz.total_cmp(&b.hz));
        }
    }

    /// Probes the core for contention.
    pub(super) fn probe(&mut self, probe: Option<&ContentionProbe>) {
        let Some(probe) = probe else { return };
        let core_use = probe.probe();
        self.take_probe(core_use, monotonic_ns());
    }

    fn take_probe(&mut self, core_use: CoreUse, now_ns: u64) {
        self.core_use = core_use;
        let is_watched = now_ns.saturating_sub(self.start_ns) <= WATCHED_NS;
        if self.probes > 0 && is_watched {
            let since_ns = now_ns.saturating_sub(self.probed_ns);
            self.watched_ns += since_ns;
            self.contended_ns += if self.core_use == CoreUse::Contended { since_ns } else { 0 };
        }
        self.probed_ns = now_ns;
        self.probes += 1;
    }

    /// Whether at least so many slices of each length had the core alone.
    pub(super) fn has_alone(&self, least: usize) -> bool {
        let alone = || self.slices.iter().filter(|slice| slice.is_alone());
        let single = alone().map(|slice| slice.passes).min();
        let singles = alone().filter(|slice| Some(slice.passes) == single).count();
        singles >= least && alone().count() - singles >= least
    }

    /// Whether the SMT sibling used the core all the time.
    pub(super) fn is_contended(&self) -> bool {
        let is_contended = |slice: &Slice| slice.core_use == CoreUse::Contended;
        self.slices.iter().any(is_contended) && !self.has_alone(1)
    }

    /// Slices that count: those that had the core alone; where there are none, those that were not
    /// preempted, or all if most were.
    fn counting(&self) -> impl Iterator<Item = &Slice> {
        let some_alone = self.has_alone(1);
        let quiet = self.slices.iter().filter(|slice| !slice.is_preempted).count();
        let keep_all = 2 * quiet < self.slices.len();
        self.slices.iter().filter(move |slice| match some_alone {
            true => slice.is_alone(),
            false => keep_all || !slice.is_preempted,
        })
    }

    /// Slices that were thrown away.
    pub(super) fn discarded(&self) -> usize {
        self.slices.len() - self.counting().count()
    }

    /// Operations of all slices.
    pub(super) fn operations(&self) -> u64 {
        self.slices.iter().map(|slice| slice.operations).sum()
    }

    /// Operations per second of the slice in the middle of those that count: contention that came and
    /// went between two probes was in one of five or ten of them.
    pub(super) fn per_s(&self) -> Option<f64> {
        median(&self.counting().map(Slice::per_s).collect::<Vec<_>>())
    }

    /// Operations per cycle of each slice that counts, at the clock that was read beside it.
    pub(super) fn per_cycle(&self) -> Vec<f64> {
        let each = self.counting().filter_map(|slice| {
            let clock = slice.reading.filter(|clock| clock.hz > 0.0)?;
            Some(slice.per_s() / clock.hz)
        });
        each.collect()
    }

    /// The time of the doubled slice in the middle ÷ that of the single one in the middle.
    pub(super) fn doubling_ratio(&self) -> Option<f64> {
        let least = self.counting().map(|slice| slice.passes).min()?;
        let middle = |double: bool| {
            let of_kind = self.counting().filter(|slice| (slice.passes > least) == double);
            median(&of_kind.map(|slice| slice.elapsed_ns as f64).collect::<Vec<_>>())
        };
        Some(middle(true)? / middle(false)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(operations: u64, elapsed_ns: u64, is_preempted: bool) -> Slice {
        let clock = Clock { hz: 1e9, agreement_ratio: 1.0 };
        let (passes, reading, core_use) = (operations, Some(clock), CoreUse::Unknown);
        Slice { operations, elapsed_ns, passes, reading, is_preempted, core_use }
    }

    #[test]
    fn of_slices_with_contention_and_without_the_latter_count() {
        let contended = Slice { core_use: CoreUse::Contended, ..slice(10, 20, false) };
        let alone = Slice { core_use: CoreUse::Alone, ..slice(10, 10, false) };
        let robbed = Slice { core_use: CoreUse::Alone, ..slice(10, 15, true) };
        let of =
            |slices: &[Slice]| SampleWindow { slices: slices.to_vec(), ..SampleWindow::default() };
        let double = Slice { passes: 20, operations: 20, elapsed_ns: 20, ..alone };
        let window = of(&[contended, alone, double, robbed]);
        assert_eq!((window.per_s(), window.discarded()), (Some(1e9), 2));
        assert!(!window.is_contended());
        assert!(of(&[contended, alone]).is_contended(), "one length alone is not enough");
        let window = of(&[contended, robbed]);
        assert_eq!((window.per_s(), window.discarded()), (Some(5e8), 1));
        assert!(window.is_contended());
        assert!(!of(&[slice(10, 10, false)]).is_contended(), "nobody probed");
    }

    #[test]
    fn slices_in_which_others_had_the_cpu_do_not_count_unless_most_are_such() {
        let quiet = [slice(10, 10, false), slice(20, 20, false)];
        let window = |preempted: usize| {
            let preempted = vec![slice(10, 90, true); preempted];
            SampleWindow { slices: [quiet.to_vec(), preempted].concat(), ..SampleWindow::default() }
        };
        assert_eq!((window(1).per_s(), window(1).discarded()), (Some(1e9), 1));
        assert_eq!(window(3).discarded(), 0);
        assert_eq!(window(3).per_s(), Some(1e9 / 9.0));
        assert_eq!(window(1).operations(), 40, "what was done was done");
        assert_eq!((window(0).doubling_ratio(), window(0).per_cycle()), (Some(2.0), vec![1.0; 2]));
    }

    /// A slice with this clock before it.
    fn read(passes: u64, hz: f64, core_use: CoreUse) -> Slice {
        let reading = Some(Clock { hz, agreement_ratio: 1.0 });
        Slice { reading, core_use, passes, ..slice(passes, passes, false) }
    }

    #[test]
    fn the_clock_is_that_beside_the_slices_alone_or_the_highest_reading() {
        use CoreUse::{Alone, Contended};
        let readings = Readings(vec![[2.0e9, 2.0e9], [2.6e9, 2.5e9]]);
        let of = |slices: Vec<Slice>| SampleWindow {
            slices,
            readings: readings.clone(),
            ..SampleWindow::default()
        };
        let alone = [read(1, 2.0e9, Alone), read(2, 2.2e9, Alone), read(1, 2.1e9, Alone)];
        let both = [alone.to_vec(), vec![read(2, 2.6e9, Contended); 5]].concat();
        assert_eq!(of(both).clock().unwrap().hz, 2.1e9);
        // One length alone is no trial.
        assert_eq!(of(vec![alone[0], alone[2]]).clock().unwrap().hz, 2.6e9);
        let mut window = SampleWindow::default();
        window.take_reading([0.9e9; 2], true);
        assert_eq!(window.clock(), None, "a thread without its CPU reads no clock");
        window.take_reading([2.6e9; 2], false);
        assert_eq!(window.clock().unwrap().hz, 2.6e9);
    }

    #[test]
    fn the_next_reading_helps_a_slice_with_contention_only() {
        for (core_use, expected) in [(CoreUse::Alone, 2.0e9), (CoreUse::Contended, 2.2e9)] {
            let mut window =
                SampleWindow { slices: vec![read(1, 2.0e9, core_use)], ..SampleWindow::default() };
            window.take_reading([2.2e9, 2.1e9], false);
            assert_eq!(window.slices[0].reading.unwrap().hz, expected);
            assert_eq!(window.reading.unwrap().hz, 2.2e9);
        }
        let mut window = SampleWindow::default();
        window.take_reading([2.2e9, 2.1e9], true);
        assert_eq!((window.reading, window.readings.0.len()), (None, 0));
    }

    #[test]
    fn a_search_that_ends_when_the_sibling_rests_does_not_say_how_often_it_rests() {
        // The sibling works for 3 ms and rests for 3 ms; windows begin at any time of that.
        let (mut watched_ns, mut contended_ns, mut searched_ns) = (0, 0, 0);
        for start_ns in (0..6_000_000).step_by(100_000) {
            let mut window = SampleWindow { start_ns, ..SampleWindow::default() };
            let mut now_ns = start_ns;
            for probe in 0.. {
                let is_busy = now_ns % 6_000_000 < 3_000_000;
                let core_use = if is_busy { CoreUse::Contended } else { CoreUse::Alone };
                window.take_probe(core_use, now_ns);
                if probe >= 10 && !is_busy {
                    break;
                }
                now_ns += 100_000;
            }
            watched_ns += window.watched_ns;
            contended_ns += window.contended_ns;
            searched_ns += now_ns - start_ns;
        }
        let ratio = contended_ns as f64 / watched_ns as f64;
        assert!((0.48..0.52).contains(&ratio), "{ratio}");
        assert!(searched_ns > watched_ns, "searches went on");
    }

    #[test]
    fn both_lengths_must_have_been_alone() {
        let of = |passes: &[u64]| {
            let slices = passes.iter().map(|&one| read(one, 2e9, CoreUse::Alone)).collect();
            SampleWindow { slices, ..SampleWindow::default() }
        };
        assert!(!of(&[4, 4, 4]).has_alone(1) && !of(&[8, 8]).has_alone(1));
        assert!(of(&[4, 8]).has_alone(1) && !of(&[4, 8, 4]).has_alone(2));
        assert!(of(&[4, 8, 4, 8]).has_alone(2));
    }

    #[test]
    fn a_window_without_slices_says_nothing() {
        let window = SampleWindow::default();
        assert_eq!((window.clock(), window.per_s()), (None, None));
        assert_eq!((window.per_cycle(), window.doubling_ratio()), (Vec::new(), None));
    }
}
