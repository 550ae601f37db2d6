//! What the readings of clock chains say: the clock, and whether two kinds of chain agree.
//!
//! Whatever disturbs a chain (an interrupt, an instruction that waits for a port) makes it longer
//! and its reading lower; nothing makes it read too high. So the upper quartile of a kind's
//! readings counts, and of the kinds the highest; the next one must agree with it.

use flatout_sys::core_clock::Chain;

/// Share of readings that lie below the one that counts.
const QUANTILE: f64 = 0.75;
/// How far two kinds may lie apart.
pub(super) const AGREEMENT: f64 = 0.01;

/// Readings of one thread, in Hz, in the order in which they were taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Readings(pub(super) Vec<(Chain, f64)>);

/// What the readings say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clock {
    pub(super) hz: f64,
    /// What the second best kind of chain reads, as a share of the best; none with one kind.
    pub(super) agreement_ratio: Option<f64>,
}

impl Readings {
    /// The clock; `None` without a reading.
    pub(super) fn clock(&self) -> Option<Clock> {
        let of = |kind: Chain| {
            let own = self.0.iter().filter(|(chain, _)| *chain == kind).map(|(_, hz)| *hz);
            quantile(&own.collect::<Vec<_>>(), QUANTILE)
        };
        let kinds = [Chain::Add, Chain::Multiply, Chain::Load];
        let mut readings: Vec<f64> = kinds.into_iter().filter_map(of).collect();
        readings.sort_by(|a, b| b.total_cmp(a));
        let hz = *readings.first()?;
        Some(Clock { hz, agreement_ratio: readings.get(1).map(|second| second / hz) })
    }
}

/// Whether a share of the second kind of chain in the first is as good as agreement.
pub(super) fn agrees(ratio: f64) -> bool {
    ratio >= 1.0 - AGREEMENT
}

/// The value that this share of values does not exceed; `None` for none.
pub(super) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().checked_sub(1)? as f64 * share).round() as usize;
    sorted.get(at).copied()
}

/// How far a load's latency may lie from a whole number of cycles. A core with four cycles and one
/// with five are told apart by far; a chain of loads alone read 5.0 to 5.3 cycles, 5.0 beside work
/// (Sapphire Rapids with a busy neighbour, 2026-11-22).
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

    fn readings(add: &[f64], multiply: &[f64], load: &[f64]) -> Readings {
        let all = |chain, values: &[f64]| values.iter().map(move |&hz| (chain, hz)).collect();
        let lists: [Vec<_>; 3] =
            [all(Chain::Add, add), all(Chain::Multiply, multiply), all(Chain::Load, load)];
        Readings(lists.concat())
    }

    #[test]
    fn a_disturbed_reading_does_not_count() {
        let seen = readings(&[], &[2.39e9, 2.38e9, 1.4e9, 2.39e9], &[2.4e9, 1.1e9, 2.4e9, 2.4e9]);
        let clock = seen.clock().unwrap();
        assert_eq!(clock.hz, 2.4e9);
        assert!(agrees(clock.agreement_ratio.unwrap()));
    }

    #[test]
    fn two_of_three_kinds_are_enough() {
        // As beside 512-bit multiply-add: additions wait for ports, the others do not.
        let clock = readings(&[1.96e9], &[2.09e9], &[2.08e9]).clock().unwrap();
        assert_eq!(clock.hz, 2.09e9);
        assert!(agrees(clock.agreement_ratio.unwrap()));
        // As beside tiles: loads do.
        let clock = readings(&[2.09e9], &[2.11e9], &[1.75e9]).clock().unwrap();
        assert!(agrees(clock.agreement_ratio.unwrap()));
    }

    #[test]
    fn a_folded_chain_disagrees_with_all_others() {
        // A core that folds additions: 9 GHz.
        let clock = readings(&[9.1e9], &[3.0e9], &[3.0e9]).clock().unwrap();
        assert!(!agrees(clock.agreement_ratio.unwrap()));
        assert_eq!(readings(&[], &[], &[3e9]).clock().unwrap().agreement_ratio, None);
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
