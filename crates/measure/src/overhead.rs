//! What the harness itself costs, found by timing nothing, as a trial times its work.

use crate::clock::Clock;
use crate::statistics;

/// Share of a trial's time from which the harness is a warning.
pub const OVERHEAD_SHARE: f64 = 0.01;

/// Clock readings per batch; the cost of one is the time of a batch over this.
const READS_PER_BATCH: u32 = 256;
/// Batches, and empty trials; the median of them counts. All together take well below 1 ms.
const REPEATS: u32 = 15;

/// What the harness adds to the time of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overhead {
    /// One clock reading.
    pub clock_read_ns: f64,
    /// What an empty timed region shows.
    pub empty_trial_ns: f64,
}

impl Overhead {
    /// Time inside a trial's timed region that is not the workload's, when the trial reads the
    /// clock `clock_reads` times between start and end.
    pub fn of_trial_ns(&self, clock_reads: f64) -> f64 {
        self.empty_trial_ns + self.clock_read_ns * clock_reads
    }
}

/// Times the clock and an empty trial.
///
/// Cost: some 4000 clock readings, no system calls where the clock has a vDSO reader.
pub fn calibrate(clock: &dyn Clock) -> Overhead {
    let repeated = |ns: fn(&dyn Clock) -> f64| {
        let all: Vec<f64> = (0..REPEATS).map(|_| ns(clock)).collect();
        statistics::median(&all).unwrap_or(0.0)
    };
    let empty_ns = |clock: &dyn Clock| {
        let start_ns = clock.now_ns();
        clock.now_ns().saturating_sub(start_ns) as f64
    };
    Overhead { clock_read_ns: repeated(clock_read_ns), empty_trial_ns: repeated(empty_ns) }
}

fn clock_read_ns(clock: &dyn Clock) -> f64 {
    let start_ns = clock.now_ns();
    let mut end_ns = start_ns;
    for _ in 0..READS_PER_BATCH {
        end_ns = clock.now_ns();
    }
    end_ns.saturating_sub(start_ns) as f64 / f64::from(READS_PER_BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;

    #[test]
    fn a_clock_that_costs_time_is_found_out() {
        let clock = FakeClock::new(0);
        clock.set_step(30);
        let overhead = calibrate(&clock);
        assert_eq!(overhead, Overhead { clock_read_ns: 30.0, empty_trial_ns: 30.0 });
        assert_eq!(overhead.of_trial_ns(10.0), 330.0);
    }

    #[test]
    fn a_clock_that_stands_still_costs_nothing() {
        assert_eq!(calibrate(&FakeClock::new(7)), Overhead::default());
    }
}
