//! How fast a copy is now, and how long it still takes: arithmetic without a clock of its own.

use std::collections::VecDeque;

use flatout_report::quantity;
use flatout_sys::occupation::Occupation;
use flatout_tree::copy::Snapshot;

use super::survey::Whole;

/// Time over which the present rate is taken.
const WINDOW_NS: u64 = 3_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Bytes accepted at past moments.
#[derive(Debug, Default)]
pub struct Pace {
    moments: VecDeque<(u64, u64)>,
}

/// What can be said at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Since the copy began.
    pub elapsed_ns: u64,
    /// How far it is.
    pub snapshot: &'a Snapshot,
    /// What there is, if it is known.
    pub whole: Option<Whole>,
    /// What storage may not have yet, at most, if that is known.
    pub unwritten_bytes: Option<u64>,
}

impl Pace {
    /// Bytes per second over the last few seconds.
    pub fn rate(&mut self, elapsed_ns: u64, bytes: u64) -> f64 {
        self.moments.push_back((elapsed_ns, bytes));
        while self.moments.len() > 2 && self.moments[1].0 + WINDOW_NS < elapsed_ns {
            self.moments.pop_front();
        }
        let (then_ns, then_bytes) = self.moments[0];
        match elapsed_ns.saturating_sub(then_ns) {
            0 => 0.0,
            ns => bytes.saturating_sub(then_bytes) as f64 / (ns as f64 / 1e9),
        }
    }
}

impl Moment<'_> {
    /// The part that is done, from 0 to 1. Bytes tell better than files, but of files that are
    /// there already no bytes are moved.
    pub fn share(&self) -> Option<f64> {
        let whole = self.whole?;
        let Snapshot { files, linked, unchanged, failed, bytes_accepted, .. } = *self.snapshot;
        let ratio = |done: u64, all: u64| (done as f64 / all.max(1) as f64).min(1.0);
        if unchanged == 0 && whole.bytes > 0 {
            return Some(ratio(bytes_accepted, whole.bytes));
        }
        Some(ratio(files + linked + unchanged + failed, whole.files))
    }

    /// Seconds that it still takes if it goes on as it went.
    pub fn left_s(&self) -> Option<u64> {
        let share = self.share().filter(|share| *share > 0.0)?;
        let left_ns = self.elapsed_ns as f64 * (1.0 - share) / share;
        Some((left_ns as u64).div_ceil(SECOND_NS))
    }

    /// All of it in one line, of which a narrow terminal shows the beginning.
    pub fn line(&self, rate: f64) -> String {
        let snapshot = self.snapshot;
        let size = quantity::rounded_size;
        let mut line = String::new();
        if let Some(left_s) = self.left_s() {
            line.push_str(&format!("{} s left, ", quantity::count(left_s)));
        }
        line.push_str(&quantity::value("bytes/s", rate));
        line.push_str(match snapshot.occupation {
            Occupation::Running | Occupation::Idle => "",
            Occupation::Reading => ", reading",
            Occupation::Writing => ", writing",
            Occupation::Metadata => ", metadata",
            Occupation::Device => ", waits for the device",
            Occupation::Resting => ", held back as asked",
        });
        let accepted = snapshot.bytes_accepted;
        line.push_str(&format!("; {}", size(accepted)));
        if let Some(whole) = self.whole {
            line.push_str(&format!(" of {}", size(whole.bytes.max(accepted))));
        }
        if let Some(unwritten) = self.unwritten_bytes {
            let on_disk = accepted.saturating_sub(unwritten);
            line.push_str(&format!(", about {} on disk", size(on_disk)));
        }
        let done = snapshot.files + snapshot.linked + snapshot.unchanged;
        line.push_str(&format!("; {}", quantity::count(done)));
        if let Some(whole) = self.whole {
            line.push_str(&format!(" of {}", quantity::count(whole.files.max(done))));
        }
        let count = self.whole.map_or(done, |whole| whole.files.max(done));
        line + if count == 1 { " file" } else { " files" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn snapshot(files: u64, bytes_accepted: u64) -> Snapshot {
        Snapshot { files, bytes_accepted, occupation: Occupation::Writing, ..Snapshot::default() }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut pace = Pace::default();
        assert_eq!(pace.rate(0, 0), 0.0);
        assert_eq!(pace.rate(SECOND_NS, 100), 100.0);
        for second in 2..=10 {
            pace.rate(second * SECOND_NS, 100);
        }
        assert_eq!(pace.rate(11 * SECOND_NS, 100), 0.0, "the first second is forgotten");
    }

    #[test]
    fn a_line_says_how_far_it_is_and_what_it_waits_for() {
        let snapshot = snapshot(1, 256 * MIB);
        let whole = Some(Whole { files: 2, bytes: 1024 * MIB });
        let mut moment = Moment {
            elapsed_ns: SECOND_NS,
            snapshot: &snapshot,
            whole,
            unwritten_bytes: Some(56 * MIB),
        };
        assert_eq!(
            moment.line(256.0 * MIB as f64),
            "3 s left, 256 MiB/s, writing; 256 MiB of 1 GiB, about 200 MiB on disk; 1 of 2 files"
        );
        (moment.whole, moment.unwritten_bytes) = (None, None);
        assert_eq!(moment.line(0.0), "0 MiB/s, writing; 256 MiB; 1 file");
        assert_eq!((moment.share(), moment.left_s()), (None, None));
    }

    #[test]
    fn what_was_there_already_counts_by_files() {
        let mut snapshot = snapshot(1, MIB);
        snapshot.unchanged = 2;
        let whole = Some(Whole { files: 4, bytes: 1024 * MIB });
        let moment =
            Moment { elapsed_ns: 3 * SECOND_NS, snapshot: &snapshot, whole, unwritten_bytes: None };
        assert_eq!(moment.share(), Some(0.75));
        assert_eq!(moment.left_s(), Some(1));
    }
}
