//! Latency of single operations: one histogram per thread, merged afterwards.
//!
//! Percentiles of percentiles mean nothing, so threads and trials hand in whole histograms.

use hdrhistogram::Histogram as Counts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::Latency;

/// The longest operation that is told apart from longer ones: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits that are kept: figures are true to 0.1 %.
const DIGITS: u8 = 3;
/// Operations that must lie beyond a percentile for it to be shown.
const BEYOND_LEAST: u128 = 10;
/// Name and parts per 100 000 of each percentile.
const PERCENTILES: [(&str, u32); 5] =
    [("p50", 50_000), ("p90", 90_000), ("p99", 99_000), ("p99.9", 99_900), ("p99.99", 99_990)];
const WHOLE: u32 = 100_000;

flatout_sys::words! {
    /// How operations were paced.
    pub enum LoopKind: name {
        /// The next begins when the last has ended: a stall delays, and hides, those behind it.
        Closed = "closed",
        /// Each is counted from its intended start.
        Open = "open",
    }
}

/// Counts of operations by duration.
///
/// Cost: about 270 KiB each, recording touches one counter.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    counts: Counts<u64>,
    min_ns: u64,
    max_ns: u64,
}

/// What a histogram is made of, to be sent to another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Durations, and how many operations each has.
    counts: Vec<(u64, u64)>,
    min_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// All that it takes to make it anew.
    pub fn packed(&self) -> Packed {
        let counts = self.counts.iter_recorded();
        let counts = counts.map(|count| (count.value_iterated_to(), count.count_at_value()));
        Packed { counts: counts.collect(), min_ns: self.min_ns, max_ns: self.max_ns }
    }

    /// Adds all operations of one that was packed, as [`Histogram::merge`] would; none of one whose
    /// shortest is longer than its longest.
    pub fn merge_packed(&mut self, other: &Packed) {
        if other.min_ns > other.max_ns {
            return;
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for &(value, count) in &other.counts {
            self.counts.saturating_record_n(value, count);
        }
    }

    /// Counts one operation. Zero counts as a nanosecond, more than an hour as an hour; shortest
    /// and longest are kept exactly.
    pub fn record(&mut self, duration_ns: u64) {
        self.min_ns = self.min_ns.min(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
        self.counts.saturating_record(duration_ns.clamp(1, LONGEST_NS));
    }

    /// Adds all operations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.counts.add(&other.counts).expect("all histograms have the same bounds");
    }

    /// Operations counted so far.
    pub fn operations(&self) -> u64 {
        self.counts.len()
    }

    /// The duration that the share `q` (0 to 1) of the operations does not exceed; `None` of
    /// nothing.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let value = || self.counts.value_at_quantile(q).clamp(self.min_ns, self.max_ns);
        (self.operations() > 0).then(value)
    }

    /// What goes into the record; `None` of nothing.
    ///
    /// A percentile is left out when fewer than ten operations lie beyond it: it would be little
    /// more than the longest one.
    pub fn latency(&self, loop_kind: LoopKind) -> Option<Latency> {
        let operations = self.operations();
        if operations == 0 {
            return None;
        }
        let mut percentiles_ns = Map::new();
        for (name, parts) in PERCENTILES {
            let beyond = u128::from(operations) * u128::from(WHOLE - parts);
            if beyond < BEYOND_LEAST * u128::from(WHOLE) {
                continue;
            }
            if let Some(value) = self.quantile_ns(f64::from(parts) / f64::from(WHOLE)) {
                percentiles_ns.insert(name.to_owned(), Value::from(value));
            }
        }
        Some(Latency {
            loop_kind: loop_kind.name().to_owned(),
            operations,
            min_ns: self.min_ns as f64,
            max_ns: self.max_ns as f64,
            percentiles_ns,
        })
    }
}

impl Default for Histogram {
    /// A histogram of nothing.
    fn default() -> Self {
        let counts = Counts::new_with_bounds(1, LONGEST_NS, DIGITS)
            .expect("the bounds are constants that the library takes");
        Self { counts, min_ns: u64::MAX, max_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(durations: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        durations.into_iter().for_each(|duration| histogram.record(duration));
        histogram
    }

    fn shown(operations: u64) -> Vec<String> {
        let latency = of(1..=operations).latency(LoopKind::Closed).unwrap();
        latency.percentiles_ns.keys().cloned().collect()
    }

    #[test]
    fn a_percentile_needs_ten_operations_beyond_it() {
        assert!(shown(19).is_empty());
        assert_eq!(shown(20), ["p50"]);
        assert_eq!(shown(99), ["p50"]);
        assert_eq!(shown(100), ["p50", "p90"]);
        assert_eq!(shown(1_000), ["p50", "p90", "p99"]);
        assert_eq!(shown(10_000), ["p50", "p90", "p99", "p99.9"]);
        assert_eq!(shown(99_999), ["p50", "p90", "p99", "p99.9"]);
        assert_eq!(shown(100_000).len(), 5);
    }

    #[test]
    fn nothing_has_no_latency() {
        assert_eq!(Histogram::default().latency(LoopKind::Open), None);
        assert_eq!(Histogram::default().quantile_ns(0.5), None);
    }

    #[test]
    fn shortest_and_longest_are_exact_even_out_of_range() {
        let latency = of([0, 123_457, u64::MAX]).latency(LoopKind::Open).unwrap();
        assert_eq!((latency.min_ns, latency.max_ns), (0.0, u64::MAX as f64));
        assert_eq!((latency.operations, latency.loop_kind.as_str()), (3, "open"));
    }

    #[test]
    fn a_message_whose_shortest_operation_is_its_longest_one_adds_nothing() {
        let mut histogram = of([5, 9]);
        let packed = of([7]).packed();
        for (min_ns, max_ns) in [(8, 7), (u64::MAX, 0)] {
            histogram.merge_packed(&Packed { min_ns, max_ns, ..packed.clone() });
        }
        assert_eq!((histogram.operations(), histogram.quantile_ns(0.9)), (2, Some(9)));
        let mut empty = Histogram::default();
        empty.merge_packed(&Packed { min_ns: 8, ..packed });
        assert_eq!(empty.quantile_ns(0.5), None);
    }

    proptest! {
        // Each case is costly: large histograms, thousands of resamples.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn merging_is_recording_all(
            a in prop::collection::vec(1_u64..1_000_000_000, 0..200),
            b in prop::collection::vec(1_u64..1_000_000_000, 1..200),
        ) {
            let mut merged = of(a.clone());
            merged.merge(&of(b.clone()));
            let mut packed = of(a.clone());
            packed.merge_packed(&of(b.clone()).packed());
            prop_assert_eq!(&packed, &merged);
            let all = of(a.into_iter().chain(b));
            prop_assert_eq!(merged.latency(LoopKind::Closed), all.latency(LoopKind::Closed));
        }

        #[test]
        fn quantiles_are_true_to_a_thousandth(
            mut durations in prop::collection::vec(1_u64..1_000_000_000, 1..300),
            percent in 1_usize..=100,
        ) {
            let got = of(durations.clone()).quantile_ns(percent as f64 / 100.0).unwrap() as f64;
            durations.sort_unstable();
            // Floats may round the rank up or down.
            let rank = (durations.len() * percent).div_ceil(100).max(1) - 1;
            let near = |index: usize| {
                durations.get(index).is_some_and(|d| (got / *d as f64 - 1.0).abs() <= 0.001)
            };
            prop_assert!(near(rank) || near(rank + 1));
        }
    }
}
