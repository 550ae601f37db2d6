//! How long a phase goes until its stonewall, and how much may wait in the page cache meanwhile: where
//! time is limited, what is left is shared by what is left of the round.
//!
//! Pure: the time is given.

use super::LEAST_STONEWALL_NS;
use super::phase::Phase;

/// A wear-out ends after so many stonewalls, and so does a phase that makes nothing.
pub(super) const WEAR_OUT_STONEWALLS: u64 = 1;
pub(super) const OTHER_STONEWALLS: u64 = 2;
/// What a phase that makes something is counted as: both its parts, each with its sync.
const OF_MAKING: u64 = 4;
/// Beside a tenth of the time, what the first round may take more than that.
const MORE_NS: u64 = 1_000_000_000;
/// Bytes that a process leaves to the page cache before it has them written, at most and at least.
const DIRTY_BYTES: [u64; 2] = [1 << 20, 64 << 20];

/// The time of all rounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Without a limit of time.
    pub(super) usual_ns: u64,
    /// When all began, and when it must be over.
    begun_ns: u64,
    pub(super) ends_ns: u64,
    rounds: u64,
    pub(super) most_rounds: u64,
    /// Of the phase that is under way.
    pub(super) stonewall_ns: u64,
    /// Bytes that storage took of all in a nanosecond.
    pub(super) bytes_per_ns: f64,
}

impl Pace {
    /// As long as nobody sets an end.
    pub(super) fn unlimited(usual_ns: u64, begun_ns: u64) -> Self {
        let (ends_ns, stonewall_ns) = (u64::MAX, usual_ns);
        let (rounds, most_rounds) = (0, u64::MAX);
        Self { usual_ns, begun_ns, ends_ns, rounds, most_rounds, stonewall_ns, bytes_per_ns: 0.0 }
    }

    /// Whether the time is over. The first round goes on with the shortest phases, for without it there
    /// is no figure, but not for long.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let time_ns = self.ends_ns.saturating_sub(self.begun_ns);
        let more_ns = if self.rounds > 1 { 0 } else { time_ns / 10 + MORE_NS };
        now_ns > self.ends_ns.saturating_add(more_ns)
    }

    /// Whether another round would write more than may be written.
    pub(super) fn is_written(&self) -> bool {
        self.rounds >= self.most_rounds
    }

    /// Begins a phase.
    pub(super) fn begin(&mut self, phase: Phase, now_ns: u64) {
        self.rounds += u64::from(phase == Phase::ALL[0]);
        let rest = Phase::ALL.iter().skip_while(|known| **known != phase);
        let counted = |phase: &Phase| if phase.makes() { OF_MAKING } else { OTHER_STONEWALLS };
        let left_ns = self.ends_ns.saturating_sub(now_ns) / rest.map(counted).sum::<u64>().max(1);
        self.stonewall_ns = left_ns.max(LEAST_STONEWALL_NS).min(self.usual_ns);
    }

    /// What each of so many processes may leave to the page cache: where time is limited, what storage
    /// takes of all in the time of the phase.
    pub(super) fn most_dirty_bytes(&self, processes: usize) -> u64 {
        let [least, most] = DIRTY_BYTES;
        let taken = self.bytes_per_ns * self.stonewall_ns as f64 / processes as f64;
        if self.ends_ns == u64::MAX { most } else { (taken as u64).clamp(least, most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_time_is_shared_by_the_phases_that_are_left() {
        const SECOND: u64 = 1_000_000_000;
        let mut pace = Pace { ends_ns: 5 * SECOND, ..Pace::unlimited(SECOND, 0) };
        // Each takes all that it may, and the end is kept.
        let mut now_ns = 0;
        for phase in Phase::ALL {
            pace.begin(phase, now_ns);
            assert!((LEAST_STONEWALL_NS..=SECOND).contains(&pace.stonewall_ns));
            let counted = if phase.makes() { OF_MAKING } else { OTHER_STONEWALLS };
            now_ns += counted * pace.stonewall_ns;
        }
        assert!((4 * SECOND..=5 * SECOND).contains(&now_ns), "{now_ns}");
        pace.begin(Phase::ContiguousRead, 9 * SECOND);
        assert_eq!(pace.stonewall_ns, LEAST_STONEWALL_NS);
        // Without the first round there is no figure.
        assert_eq!([5, 6, 7].map(|s| pace.is_over(s * SECOND)), [false, false, true]);
        pace.begin(Phase::OwnWrite, 4 * SECOND);
        assert_eq!([5, 6].map(|s| pace.is_over(s * SECOND)), [false, true]);
        let mut free = Pace::unlimited(SECOND, 0);
        free.begin(Phase::OwnWrite, 9 * SECOND);
        assert_eq!((free.stonewall_ns, free.most_dirty_bytes(3)), (SECOND, 64 << 20));
        let slow = Pace { stonewall_ns: SECOND / 10, bytes_per_ns: 0.2, ..pace };
        assert_eq!(slow.most_dirty_bytes(4), 5_000_000);
    }
}
