//! What several processes did in the same time: three answers to one question, since they neither
//! begin nor end together. Each tells its times since the start that was agreed on, on its own clock.

use serde::{Deserialize, Serialize};

/// Points of a curve at most; beyond it every other one is dropped.
const MOST_POINTS: usize = 512;
/// The least time between two points.
const LEAST_STEP_NS: u64 = 100_000;

/// What one process did, in nanoseconds since the agreed start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Lane {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) done: u64,
    /// How much was done by when, and the least time between two of these.
    points: Vec<(u64, u64)>,
    step_ns: u64,
}

impl Lane {
    /// Notes that one more is done by now.
    pub(super) fn note(&mut self, now_ns: u64) {
        self.done += 1;
        let due = self.points.last().is_none_or(|(last, _)| now_ns >= last + self.step_ns);
        if due {
            self.keep(now_ns);
        }
    }

    /// Notes what is done by now in any case.
    pub(super) fn keep(&mut self, now_ns: u64) {
        if self.points.len() >= MOST_POINTS {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step_ns = (2 * self.step_ns).max(LEAST_STEP_NS);
        }
        self.points.push((now_ns, self.done));
    }

    /// From its start to its end.
    pub(super) fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// What was done by a time; between two points as if at one rate.
    fn done_by(&self, time_ns: u64) -> f64 {
        if time_ns <= self.start_ns {
            return 0.0;
        }
        if time_ns >= self.end_ns {
            return self.done as f64;
        }
        let at = self.points.partition_point(|&(point, _)| point <= time_ns);
        let before = at.checked_sub(1).map_or((self.start_ns, 0), |at| self.points[at]);
        let after = self.points.get(at).copied().unwrap_or((self.end_ns, self.done));
        let part = (time_ns - before.0) as f64 / (after.0 - before.0).max(1) as f64;
        before.1 as f64 + part * after.1.saturating_sub(before.1) as f64
    }
}

/// An amount, and the time that it took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Part {
    pub(super) amount: f64,
    pub(super) elapsed_ns: u64,
}

/// What all did together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Together {
    /// All of it, from the agreed start until the last one was done.
    pub(super) last: Part,
    /// What all had done when the first one was done.
    pub(super) first: Part,
    /// From the start of the last to the end of the first: all were at work. None where there is no
    /// such time.
    pub(super) common: Option<Part>,
}

impl Together {
    pub(super) fn of(lanes: &[&Lane]) -> Self {
        let least = |time: fn(&Lane) -> u64| lanes.iter().map(|lane| time(lane)).min().unwrap_or(0);
        let last = |time: fn(&Lane) -> u64| lanes.iter().map(|lane| time(lane)).max().unwrap_or(0);
        let (first_end, last_end) = (least(|lane| lane.end_ns), last(|lane| lane.end_ns));
        let last_start = last(|lane| lane.start_ns);
        let by = |time: u64| lanes.iter().map(|lane| lane.done_by(time)).sum::<f64>();
        let common_ns = first_end.saturating_sub(last_start);
        Self {
            last: Part { amount: by(last_end), elapsed_ns: last_end },
            first: Part { amount: by(first_end), elapsed_ns: first_end },
            common: (common_ns > 0)
                .then(|| Part { amount: by(first_end) - by(last_start), elapsed_ns: common_ns }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(start_ns: u64, end_ns: u64, points: &[(u64, u64)], done: u64) -> Lane {
        Lane { start_ns, end_ns, done, points: points.to_vec(), step_ns: 0 }
    }

    #[test]
    fn three_windows_of_processes_that_begin_and_end_apart() {
        // One is at work from 0 to 100 at 1 per ns, one from 20 to 60 at 2 per ns.
        let lanes = [lane(0, 100, &[(50, 50)], 100), lane(20, 60, &[], 80)];
        let together = Together::of(&lanes.each_ref());
        assert_eq!(together.last, Part { amount: 180.0, elapsed_ns: 100 });
        assert_eq!(together.first, Part { amount: 140.0, elapsed_ns: 60 });
        assert_eq!(together.common, Some(Part { amount: 120.0, elapsed_ns: 40 }));
        // Where one has ended before another began, nothing is common.
        let apart = [lane(0, 10, &[], 5), lane(20, 30, &[], 5)];
        assert_eq!(Together::of(&apart.each_ref()).common, None);
    }

    #[test]
    fn a_pause_at_the_end_is_no_progress() {
        // Written until 50, then synced until 100.
        let lanes = [lane(0, 100, &[(50, 10)], 10), lane(0, 50, &[(50, 10)], 10)];
        assert_eq!(Together::of(&lanes.each_ref()).first, Part { amount: 20.0, elapsed_ns: 50 });
    }

    #[test]
    fn a_long_curve_is_thinned_and_stays_in_order() {
        let mut lane = Lane { end_ns: 100_000_000, ..Lane::default() };
        (0..100_000).for_each(|at| lane.note(at * 1_000));
        assert!(lane.points.len() <= MOST_POINTS && lane.points.len() > MOST_POINTS / 4);
        assert!(lane.points.is_sorted());
        assert!((lane.done_by(50_000_000) - 50_000.0).abs() < 1_000.0);
    }
}
