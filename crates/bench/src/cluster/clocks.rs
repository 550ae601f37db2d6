//! How far the clocks of two hosts lie apart: by the exchange with the shortest round trip, which
//! leaves the least room for an error.

use flatout_sys::monotonic_ns;

use super::Wire;

/// A clock against that of the first process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offset {
    /// What it shows when the first one's shows zero.
    pub(super) ns: i64,
    /// It may be off by so much: half of the round trip.
    pub(super) error_ns: u64,
}

impl Offset {
    /// A time of the first one's clock, on this one.
    pub(super) fn there(self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.ns)
    }

    /// What exchanges say: sent, read there, received.
    fn of(exchanges: impl Iterator<Item = [u64; 3]>) -> Self {
        let fastest = exchanges.min_by_key(|[sent, _, back]| back - sent);
        fastest.map_or_else(Self::default, |[sent, there, back]| {
            let round_trip = back - sent;
            let middle = sent + round_trip / 2;
            Self { ns: there.wrapping_sub(middle) as i64, error_ns: round_trip.div_ceil(2) }
        })
    }
}

/// Asks another process for readings of its clock.
pub(super) fn ask(wire: &mut dyn Wire, rank: usize, tries: u32) -> Offset {
    let mut reading = [0; 8];
    Offset::of((0..tries).map(|_| {
        let sent = monotonic_ns();
        wire.put(rank, &[0; 8]);
        wire.take(rank, &mut reading);
        [sent, u64::from_le_bytes(reading), monotonic_ns()]
    }))
}

/// Answers the first one.
pub(super) fn answer(wire: &mut dyn Wire, tries: u32) {
    let mut question = [0; 8];
    for _ in 0..tries {
        wire.take(0, &mut question);
        wire.put(0, &monotonic_ns().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_exchange_tells_and_its_round_trip_is_the_error() {
        // The other clock is 1,000,000 ahead; way there 40, back 60, then 900 and 100.
        let exchanges = [[0, 1_000_900, 1_000], [5_000, 1_005_040, 5_100]];
        let offset = Offset::of(exchanges.into_iter());
        assert_eq!(offset, Offset { ns: 999_990, error_ns: 50 });
        assert!(offset.ns.abs_diff(1_000_000) <= offset.error_ns);
        // One that was started later.
        let behind = Offset::of([[9_000, 1_000, 9_010]].into_iter());
        assert_eq!((behind.ns, behind.error_ns), (-8_005, 5));
        assert_eq!(behind.there(9_005), 1_000);
        assert_eq!(Offset::of(std::iter::empty()), Offset::default());
    }
}
