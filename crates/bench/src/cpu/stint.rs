//! What one thread did while it was measured: its slices of work, the clock beside them, and which of
//! them count. How they come about: `load/effort.rs`.

use flatout_measure::statistics::{median, quantile};
use flatout_sys::clock::monotonic_ns;

use super::clock::{Clock, Readings};
use super::lookout::{Lookout, Sight};

/// A slice of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slice {
    pub(super) operations: u64,
    pub(super) elapsed_ns: u64,
    pub(super) passes: u64,
    /// The clock right before it, in the load. Beside a neighbour, who lowers readings: that or the
    /// next one, whichever is higher.
    pub(super) reading: Option<Clock>,
    /// Whether the thread lost its CPU in it.
    pub(super) is_spoiled: bool,
    /// Whether the core was its own, right before it and right after it.
    pub(super) sight: Sight,
}

impl Slice {
    fn is_alone(&self) -> bool {
        self.sight == Sight::Alone && !self.is_spoiled
    }
}

/// What one thread did.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stint {
    pub(super) readings: Readings,
    /// Those in which somebody else had the CPU.
    pub(super) spoiled_readings: Readings,
    /// The last reading, if it was not spoiled.
    pub(super) reading: Option<Clock>,
    pub(super) slices: Vec<Slice>,
    /// What the last glance at the core saw, when that was, and how many there were.
    pub(super) sight: Sight,
    pub(super) glances: u32,
    pub(super) looked_ns: u64,
    /// The time from glance to glance, and the part of it at the end of which a neighbour was there.
    pub(super) watched_ns: u64,
    pub(super) shared_ns: u64,
    pub(super) is_wrong: bool,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The part of the time that went into reading the clock.
    pub(super) clock_ns: u64,
    pub(super) cpu_ns: u64,
}

impl Stint {
    /// The clock: that beside the slices which had the core alone, in the middle; where there are none, what
    /// the readings tell that were not spoiled, or all if most were.
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
        if self.readings.0.len() >= self.spoiled_readings.0.len() {
            return self.readings.clock();
        }
        let all = [&self.readings.0[..], &self.spoiled_readings.0].concat();
        Readings(all).clock()
    }

    /// Takes a pair of readings in, spoiled or not.
    pub(super) fn take_reading(&mut self, pair: [f64; 2], is_spoiled: bool) {
        let readings = if is_spoiled { &mut self.spoiled_readings } else { &mut self.readings };
        readings.0.push(pair);
        self.reading = Readings(vec![pair]).clock().filter(|_| !is_spoiled);
        if let Some(last) = self.slices.last_mut().filter(|last| !last.is_alone()) {
            let both = last.reading.into_iter().chain(self.reading);
            last.reading = both.max_by(|a, b| a.hz.total_cmp(&b.hz));
        }
    }

    /// Takes a glance at the core.
    pub(super) fn look(&mut self, lookout: Option<&Lookout>) {
        let Some(lookout) = lookout else { return };
        self.sight = lookout.look();
        let now_ns = monotonic_ns();
        if self.glances > 0 {
            let since_ns = now_ns.saturating_sub(self.looked_ns);
            self.watched_ns += since_ns;
            self.shared_ns += if self.sight == Sight::Shared { since_ns } else { 0 };
        }
        self.looked_ns = now_ns;
        self.glances += 1;
    }

    /// Whether at least so many slices of each length had the core alone.
    pub(super) fn has_alone(&self, least: usize) -> bool {
        let alone = || self.slices.iter().filter(|slice| slice.is_alone());
        let single = alone().map(|slice| slice.passes).min();
        let singles = alone().filter(|slice| Some(slice.passes) == single).count();
        singles >= least && alone().count() - singles >= least
    }

    /// Whether a neighbour used the core all the time.
    pub(super) fn is_beside_neighbour(&self) -> bool {
        let is_shared = self.slices.iter().any(|slice| slice.sight == Sight::Shared);
        is_shared && !self.has_alone(1)
    }

    /// Slices that count: those that had the core alone; where there are none, those that were not
    /// spoiled, or all if most were.
    fn counting(&self) -> impl Iterator<Item = &Slice> {
        let some_alone = self.has_alone(1);
        let quiet = self.slices.iter().filter(|slice| !slice.is_spoiled).count();
        let keep_all = 2 * quiet < self.slices.len();
        self.slices.iter().filter(move |slice| match some_alone {
            true => slice.is_alone(),
            false => keep_all || !slice.is_spoiled,
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

    /// Operations per second of the slice in the middle of those that count: a neighbour who came and went
    /// between two glances was in one of five or ten of them.
    pub(super) fn per_s(&self) -> Option<f64> {
        let rate = |slice: &Slice| slice.operations as f64 * 1e9 / slice.elapsed_ns as f64;
        quantile(&self.counting().map(rate).collect::<Vec<_>>(), 0.5)
    }

    /// Operations per cycle of each slice that counts, at the clock that was read beside it.
    pub(super) fn per_cycle(&self) -> Vec<f64> {
        let each = self.counting().filter_map(|slice| {
            let hz = slice.reading.filter(|clock| clock.hz > 0.0)?.hz;
            Some(slice.operations as f64 * 1e9 / slice.elapsed_ns as f64 / hz)
        });
        each.collect()
    }

    /// The time of the doubled slice in the middle ÷ that of the single one in the middle.
    pub(super) fn doubling_ratio(&self) -> Option<f64> {
        let least = self.counting().map(|slice| slice.passes).min()?;
        let middle = |double: bool| {
            let of_kind = self.counting().filter(|slice| (slice.passes > least) == double);
            quantile(&of_kind.map(|slice| slice.elapsed_ns as f64).collect::<Vec<_>>(), 0.5)
        };
        Some(middle(true)? / middle(false)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(operations: u64, elapsed_ns: u64, is_spoiled: bool) -> Slice {
        let clock = Clock { hz: 1e9, agreement_ratio: 1.0 };
        let (passes, reading, sight) = (operations, Some(clock), Sight::Unknown);
        Slice { operations, elapsed_ns, passes, reading, is_spoiled, sight }
    }

    #[test]
    fn of_slices_beside_a_neighbour_and_alone_the_latter_count() {
        let beside = Slice { sight: Sight::Shared, ..slice(10, 20, false) };
        let alone = Slice { sight: Sight::Alone, ..slice(10, 10, false) };
        let robbed = Slice { sight: Sight::Alone, ..slice(10, 15, true) };
        let of = |slices: &[Slice]| Stint { slices: slices.to_vec(), ..Stint::default() };
        let double = Slice { passes: 20, operations: 20, elapsed_ns: 20, ..alone };
        let stint = of(&[beside, alone, double, robbed]);
        assert_eq!((stint.per_s(), stint.discarded()), (Some(1e9), 2));
        assert!(!stint.is_beside_neighbour());
        assert!(of(&[beside, alone]).is_beside_neighbour(), "one length alone is not enough");
        let stint = of(&[beside, robbed]);
        assert_eq!((stint.per_s(), stint.discarded()), (Some(5e8), 1));
        assert!(stint.is_beside_neighbour());
        assert!(!of(&[slice(10, 10, false)]).is_beside_neighbour(), "nobody looked");
    }

    #[test]
    fn slices_in_which_others_had_the_cpu_do_not_count_unless_most_are_such() {
        let quiet = [slice(10, 10, false), slice(20, 20, false)];
        let stint = |spoiled: usize| {
            let spoiled = vec![slice(10, 90, true); spoiled];
            Stint { slices: [quiet.to_vec(), spoiled].concat(), ..Stint::default() }
        };
        assert_eq!((stint(1).per_s(), stint(1).discarded()), (Some(1e9), 1));
        assert_eq!(stint(3).discarded(), 0);
        assert_eq!(stint(3).per_s(), Some(1e9 / 9.0));
        assert_eq!(stint(1).operations(), 40, "what was done was done");
        assert_eq!((stint(0).doubling_ratio(), stint(0).per_cycle()), (Some(2.0), vec![1.0; 2]));
    }

    /// A slice with this clock before it.
    fn read(passes: u64, hz: f64, sight: Sight) -> Slice {
        let reading = Some(Clock { hz, agreement_ratio: 1.0 });
        Slice { reading, sight, passes, ..slice(passes, passes, false) }
    }

    #[test]
    fn the_clock_is_that_beside_the_slices_alone_or_the_highest_reading() {
        use Sight::{Alone, Shared};
        let readings = Readings(vec![[2.0e9, 2.0e9], [2.6e9, 2.5e9]]);
        let of =
            |slices: Vec<Slice>| Stint { slices, readings: readings.clone(), ..Stint::default() };
        let alone = [read(1, 2.0e9, Alone), read(2, 2.2e9, Alone), read(1, 2.1e9, Alone)];
        let both = [alone.to_vec(), vec![read(2, 2.6e9, Shared); 5]].concat();
        assert_eq!(of(both).clock().unwrap().hz, 2.1e9);
        // One length alone is no trial.
        assert_eq!(of(vec![alone[0], alone[2]]).clock().unwrap().hz, 2.6e9);
        let spoiled = Stint { spoiled_readings: Readings(vec![[2.7e9; 2]; 3]), ..of(Vec::new()) };
        assert_eq!(spoiled.clock().unwrap().hz, 2.7e9, "most were spoiled");
    }

    #[test]
    fn the_next_reading_helps_a_slice_beside_a_neighbour_only() {
        for (sight, expected) in [(Sight::Alone, 2.0e9), (Sight::Shared, 2.2e9)] {
            let mut stint = Stint { slices: vec![read(1, 2.0e9, sight)], ..Stint::default() };
            stint.take_reading([2.2e9, 2.1e9], false);
            assert_eq!(stint.slices[0].reading.unwrap().hz, expected);
            assert_eq!(stint.reading.unwrap().hz, 2.2e9);
        }
        let mut stint = Stint::default();
        stint.take_reading([2.2e9, 2.1e9], true);
        assert_eq!((stint.reading, stint.spoiled_readings.0.len()), (None, 1));
    }

    #[test]
    fn both_lengths_must_have_been_alone() {
        let of = |passes: &[u64]| {
            let slices = passes.iter().map(|&one| read(one, 2e9, Sight::Alone)).collect();
            Stint { slices, ..Stint::default() }
        };
        assert!(!of(&[4, 4, 4]).has_alone(1) && !of(&[8, 8]).has_alone(1));
        assert!(of(&[4, 8]).has_alone(1) && !of(&[4, 8, 4]).has_alone(2));
        assert!(of(&[4, 8, 4, 8]).has_alone(2));
    }

    #[test]
    fn a_stint_without_slices_says_nothing() {
        let stint = Stint::default();
        assert_eq!((stint.clock(), stint.per_s()), (None, None));
        assert_eq!((stint.per_cycle(), stint.doubling_ratio()), (Vec::new(), None));
    }
}
