//! How much a run will likely write, by how busy the machine is: for what is announced.

use super::estimate::of_trial;
use super::pattern::IoType;
use super::row::Row;

/// What a trial needs besides its own time.
const SET_UP_NS: f64 = 30e6;
/// What a row of large blocks and one of small ones likely write in a second, with requests in
/// flight and one at a time: for the announcement. Slower disks write less.
const STREAM_BYTES_PER_S: f64 = 2e9;
const RANDOM_BYTES_PER_S: f64 = 400e6;
const SINGLE_BYTES_PER_S: f64 = 50e6;

/// Bytes that are likely written, and the time for it.
pub(super) type Likely = (f64, f64);

/// One trial of a row where all is so many times slower than usual.
pub(super) fn likely_trial(row: &Row, cap_bytes: u64, runtime_ns: u64, slowdown: f64) -> Likely {
    let is_single = row.tuning.depth.saturating_mul(row.tuning.threads) == 1;
    let rate = match (row.test.is_random(), is_single) {
        (false, _) => STREAM_BYTES_PER_S,
        (true, false) => RANDOM_BYTES_PER_S,
        (true, true) => SINGLE_BYTES_PER_S,
    };
    let part = match row.test.io_type() {
        IoType::Read => 0.0,
        IoType::Mixed => 1.0 - f64::from(row.read_percent) / 100.0,
        IoType::Write | IoType::Copy => 1.0,
    };
    let (bytes_per_ns, runtime_ns) = (rate * part / slowdown / 1e9, runtime_ns as f64);
    let bytes = (bytes_per_ns * runtime_ns).min(of_trial(row, cap_bytes) as f64);
    let time_ns = if part > 0.0 { bytes / bytes_per_ns } else { runtime_ns };
    (bytes, time_ns + SET_UP_NS * slowdown)
}

/// What a run will likely do.
#[derive(Default)]
pub(super) struct Forecast {
    /// A round of all rows, as it usually is and as it is just now.
    pub(super) usual: Likely,
    pub(super) now: Likely,
    /// Time for what is beside the rows.
    pub(super) beside_ns: u64,
    pub(super) trials: u32,
    /// Trials of a row at most; as many as that where a number was asked for.
    pub(super) max_trials: u32,
    pub(super) is_exact: bool,
}

impl Forecast {
    /// What these rows do where all is so many times slower, before anybody says how often.
    pub(super) fn of(rows: &[Row], cap_bytes: u64, runtime_ns: u64, slowdown: f64) -> Self {
        let round = |slowdown| {
            let each = rows.iter().map(|row| likely_trial(row, cap_bytes, runtime_ns, slowdown));
            each.fold((0.0, 0.0), |sum: Likely, one| (sum.0 + one.0, sum.1 + one.1))
        };
        // Requests wait for the disk for most of their time: trials wrote 1/4 beside load 21, and 4/5
        // beside four loops, on 2 CPUs (ext4, AMD EPYC, 2026-11-26).
        let (usual, now) = (round(1.0), round(slowdown.sqrt()));
        Self { usual, now, ..Self::default() }
    }

    /// Time that it usually takes.
    pub(super) fn usual_ns(&self) -> u64 {
        self.beside_ns.saturating_add((self.usual.1 * f64::from(self.trials)) as u64)
    }

    /// Bytes that trials likely write in so much time, shared out as usual.
    pub(super) fn trials_bytes(&self, time_ns: u64) -> u64 {
        let most = f64::from(self.max_trials);
        let rows_ns = self.usual.1 * f64::from(self.trials);
        let share = rows_ns / (self.beside_ns as f64 + rows_ns).max(1.0);
        let rounds = time_ns as f64 * share / self.now.1.max(1.0);
        (self.now.0 * if self.is_exact { most } else { rounds.min(most) }) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Test;
    use super::*;

    #[test]
    fn what_is_likely_written_follows_from_the_time_and_is_bounded_by_the_trials() {
        // A round of these rows writes 100 bytes in 50 ns, on a busy machine 60 bytes in 100 ns.
        let forecast = Forecast {
            usual: (100.0, 50.0),
            now: (100.0, 50.0),
            beside_ns: 500,
            trials: 10,
            max_trials: 20,
            is_exact: false,
        };
        assert_eq!(forecast.usual_ns(), 1000);
        let bytes = |forecast: &Forecast| [1000, 250, 1 << 60].map(|ns| forecast.trials_bytes(ns));
        assert_eq!(bytes(&forecast), [1000, 250, 2000]);
        let busy = Forecast { now: (60.0, 100.0), ..forecast };
        assert_eq!(bytes(&busy), [300, 75, 1200]);
        let exact = Forecast { max_trials: 3, is_exact: true, ..busy };
        assert_eq!(bytes(&exact), [180; 3]);
    }

    #[test]
    fn a_row_likely_writes_what_it_may_or_what_there_is_time_for() {
        let mut row = super::super::plan::tests_rows().remove(1);
        assert!(row.writes() && !row.test.is_random());
        let second = 1_000_000_000;
        assert_eq!(likely_trial(&row, 150_000_000, second, 1.0), (150e6, 75e6 + SET_UP_NS));
        assert_eq!(likely_trial(&row, 150_000_000, second, 5.0), (150e6, 375e6 + 5.0 * SET_UP_NS));
        row.test = Test::RandomWrite;
        assert_eq!(likely_trial(&row, u64::MAX, second, 1.0), (400e6, 1e9 + SET_UP_NS));
        assert_eq!(likely_trial(&row, u64::MAX, second, 2.0), (200e6, 1e9 + 2.0 * SET_UP_NS));
        row.test = Test::RandomRead;
        assert_eq!(likely_trial(&row, u64::MAX, second, 1.0), (0.0, 1e9 + SET_UP_NS));
    }
}
