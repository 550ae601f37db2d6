//! What the readings of clock chains say: the clock, and whether two kinds of chain agree.
//!
//! Readings come in pairs, one of each kind right after the other, so that a clock that wanders
//! hits both. Whatever disturbs a chain (an interrupt, an instruction that waits for a port)
//! makes it longer and its reading lower. Too high it reads by what is taken off for a piece beyond what
//! that took, some nanoseconds of 8 µs.

use flatout_measure::statistics::max;

/// How far two kinds may lie apart.
pub(super) const AGREEMENT: f64 = 0.01;

/// Readings of one thread in Hz, in the order in which they were taken: of the kind of chain that
/// counts, and of the one that must agree with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Readings(pub(super) Vec<[f64; 2]>);

/// What the readings say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    pub(super) hz: f64,
    /// What the second kind of chain reads at best, as a share of what the first reads at best:
    /// contention lowers both, loads more than products, and neither is the clock then.
    pub(super) agreement_ratio: f64,
}

impl Readings {
    /// The clock; `None` without a reading. All but one of the readings may be disturbed.
    pub(super) fn clock(&self) -> Option<Clock> {
        // The kind that reads more was held up less.
        // A kind that cannot be read here is no number, and has no say.
        let kind = |which: usize| -> Option<f64> {
            let known = self.0.iter().map(|pair| pair[which]).filter(|value| value.is_finite());
            max(&known.collect::<Vec<_>>())
        };
        let (first, second) = (kind(0), kind(1));
        let hz = first.into_iter().chain(second).reduce(f64::max)?;
        Some(Clock { hz, agreement_ratio: second? / first? })
    }
}

/// Whether a share of the second kind of chain in the first is as good as agreement.
pub(super) fn agrees(ratio: f64) -> bool {
    (ratio - 1.0).abs() <= AGREEMENT
}

/// How far a load's latency may lie from a whole number of cycles. A core with four cycles and one
/// with five are told apart by far; a chain of loads alone read 5.0 to 5.3 cycles, 5.0 beside work
/// (Sapphire Rapids with a busy sibling, 2026-11-22).
const LATENCY_TOLERANCE: f64 = 0.35;

/// Cycles of a load, from the time of a link of loads and of one of additions; `None` where they
/// are no whole number.
pub(super) fn load_cycles(load_ns: f64, add_ns: f64) -> Option<u64> {
    let cycles = load_ns / add_ns;
    let whole = cycles.round();
    let plausible = (2.0..=9.0).contains(&whole) && (cycles - whole).abs() <= LATENCY_TOLERANCE;
    plausible.then_some(whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(pairs: &[[f64; 2]]) -> Clock {
        Readings(pairs.to_vec()).clock().unwrap()
    }

    #[test]
    fn a_disturbed_reading_does_not_count() {
        let seen = clock(&[[2.4e9, 2.39e9], [1.1e9, 2.4e9], [2.4e9, 1.4e9], [2.4e9, 2.4e9]]);
        assert_eq!(seen.hz, 2.4e9);
        assert!(agrees(seen.agreement_ratio), "{seen:?}");
    }

    #[test]
    fn a_clock_that_wanders_hits_both_kinds() {
        let seen = clock(&[[2.18e9, 2.18e9], [2.28e9, 2.28e9], [2.28e9, 2.28e9]]);
        assert_eq!((seen.hz, seen.agreement_ratio), (2.28e9, 1.0));
    }

    #[test]
    fn the_kind_that_was_held_up_less_counts() {
        // As beside tiles, where loads wait.
        let seen = clock(&[[1.75e9, 2.1e9]]);
        assert!((seen.hz - 2.1e9).abs() < 1.0 && !agrees(seen.agreement_ratio));
    }

    #[test]
    fn a_folded_chain_disagrees() {
        // A core that folds additions: 9 GHz.
        assert!(!agrees(clock(&[[3.0e9, 9.1e9]]).agreement_ratio));
        assert!(!agrees(clock(&[[9.1e9, 3.0e9]]).agreement_ratio));
        assert_eq!(Readings::default().clock(), None);
    }

    #[test]
    fn the_latency_of_loads_is_a_whole_number() {
        // Zen 3, Skylake; Ice Lake, Sapphire Rapids; the latter disturbed; nonsense.
        assert_eq!(load_cycles(4.0 / 3.4, 1.0 / 3.4), Some(4));
        assert_eq!(load_cycles(5.0 / 2.9, 1.0 / 2.9), Some(5));
        assert_eq!(load_cycles(5.3, 1.0), Some(5));
        assert_eq!(load_cycles(4.5, 1.0), None);
        assert_eq!(load_cycles(1.0, 1.0), None);
        assert_eq!(load_cycles(1.0, 0.0), None);
    }
}
