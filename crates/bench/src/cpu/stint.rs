//! What one thread did while it was measured: its slices of work, the clock beside them, and which of
//! them count. How they come about: `load.rs`.

use flatout_measure::statistics::quantile;

use super::clock::{Clock, Readings};

/// A slice of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slice {
    pub(super) operations: u64,
    pub(super) elapsed_ns: u64,
    pub(super) passes: u64,
    /// The clock right before it, or right after it, whichever is higher.
    pub(super) reading: Option<f64>,
    /// Whether the thread lost its CPU in it.
    pub(super) is_spoiled: bool,
}

/// What one thread did.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stint {
    pub(super) readings: Readings,
    /// Those in which somebody else had the CPU.
    pub(super) spoiled_readings: Readings,
    /// The last reading, if it was not spoiled.
    pub(super) reading: Option<f64>,
    pub(super) slices: Vec<Slice>,
    pub(super) is_wrong: bool,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The part of the time that went into reading the clock.
    pub(super) clock_ns: u64,
    pub(super) cpu_ns: u64,
}

impl Stint {
    /// The clock that its readings tell: those that were not spoiled, or all if most were.
    pub(super) fn clock(&self) -> Option<Clock> {
        if self.readings.0.len() >= self.spoiled_readings.0.len() {
            return self.readings.clock();
        }
        let all = [&self.readings.0[..], &self.spoiled_readings.0].concat();
        Readings(all).clock()
    }

    /// Slices that count: those that were not spoiled, or all if most were.
    fn counting(&self) -> impl Iterator<Item = &Slice> {
        let quiet = self.slices.iter().filter(|slice| !slice.is_spoiled).count();
        let keep_all = 2 * quiet < self.slices.len();
        self.slices.iter().filter(move |slice| keep_all || !slice.is_spoiled)
    }

    /// Slices that were thrown away.
    pub(super) fn discarded(&self) -> usize {
        self.slices.len() - self.counting().count()
    }

    /// Operations of all slices.
    pub(super) fn operations(&self) -> u64 {
        self.slices.iter().map(|slice| slice.operations).sum()
    }

    /// Operations per second of the slices that count, together.
    pub(super) fn per_s(&self) -> Option<f64> {
        let (operations, ns) = self.counting().fold((0, 0), |(operations, ns), slice| {
            (operations + slice.operations, ns + slice.elapsed_ns)
        });
        (ns > 0).then(|| operations as f64 * 1e9 / ns as f64)
    }

    /// Operations per second of the slice in the middle.
    pub(super) fn median_per_s(&self) -> Option<f64> {
        let rate = |slice: &Slice| slice.operations as f64 * 1e9 / slice.elapsed_ns as f64;
        quantile(&self.counting().map(rate).collect::<Vec<_>>(), 0.5)
    }

    /// Operations per cycle of each slice that counts, at the clock that was read beside it.
    pub(super) fn per_cycle(&self) -> Vec<f64> {
        let each = self.counting().filter_map(|slice| {
            let hz = slice.reading.filter(|hz| *hz > 0.0)?;
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
