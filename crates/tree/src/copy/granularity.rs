//! How fine the times of a filesystem are: a copy there may be right and yet not have the very
//! time of its source.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Stat, Timespec, Timestamps};

use super::temporary::Temporaries;

const SECOND_NS: i64 = 1_000_000_000;
/// What the file of the trial gets: odd in each digit, and a second that two do not divide.
const TRIAL: Timespec = Timespec { tv_sec: 1_000_000_001, tv_nsec: 123_456_789 };

/// What is known of the filesystems of the target, by device: the step of their clocks.
#[derive(Debug, Default)]
pub(super) struct Granularity {
    known: Mutex<Vec<(u64, i64)>>,
}

impl Granularity {
    /// Whether the target has the time of the source, as well as its filesystem can have it.
    pub(super) fn is_same_time(
        &self,
        source: &Stat,
        target: &Stat,
        directory: BorrowedFd<'_>,
        temporaries: &Temporaries,
    ) -> bool {
        let [from, to] = [source, target].map(|facts| {
            i128::from(facts.st_mtime) * i128::from(SECOND_NS)
                + i128::from(facts.st_mtime_nsec as i64)
        });
        if from == to {
            return true;
        }
        // What is coarser than two seconds is no clock.
        if from < to || from - to >= 2 * i128::from(SECOND_NS) {
            return false;
        }
        let step = i128::from(self.step_ns(target.st_dev, directory, temporaries));
        to % step == 0 && from - to < step
    }

    fn step_ns(&self, device: u64, directory: BorrowedFd<'_>, temporaries: &Temporaries) -> i64 {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, step)) = known().iter().find(|(of, _)| *of == device) {
            return step;
        }
        let step = try_it(directory, temporaries).unwrap_or(1);
        known().push((device, step));
        step
    }
}

/// Gives a file a time and looks what became of it.
fn try_it(directory: BorrowedFd<'_>, temporaries: &Temporaries) -> Option<i64> {
    let (file, name) = temporaries.file(directory).ok()?;
    let times = Timestamps { last_access: TRIAL, last_modification: TRIAL };
    let found = rustix::fs::futimens(&file, &times).and_then(|()| rustix::fs::fstat(&file));
    let _gone = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
    let found = found.ok()?;
    Some(step_of(found.st_mtime, found.st_mtime_nsec as i64))
}

/// The step of a clock that made this of [`TRIAL`].
fn step_of(seconds: i64, nanoseconds: i64) -> i64 {
    if seconds != TRIAL.tv_sec {
        return 2 * SECOND_NS;
    }
    let steps = [1, 100, 1_000, 1_000_000, 10_000_000, SECOND_NS];
    let matches = |step: &i64| nanoseconds == TRIAL.tv_nsec as i64 / step * step;
    steps.into_iter().find(matches).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_smallest_that_explains_what_came_back() {
        for (nanoseconds, step) in [
            (123_456_789, 1),
            (123_456_700, 100),
            (123_456_000, 1_000),
            (123_000_000, 1_000_000),
            (120_000_000, 10_000_000),
            (0, SECOND_NS),
        ] {
            assert_eq!(step_of(TRIAL.tv_sec, nanoseconds), step);
        }
        assert_eq!(step_of(TRIAL.tv_sec - 1, 0), 2 * SECOND_NS);
    }
}
