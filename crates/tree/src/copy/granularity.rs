//! How fine the times of a filesystem are, and whether it counts names: a copy there may be right and
//! yet not have the very time of its source.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use flatout_sys::filesystem;
use rustix::fs::{Stat, Timespec, Timestamps};

use super::Entry;
use crate::file_data;
use crate::lock::lock;
use crate::spool::unnamed::without_a_name;

const SECOND_NS: i64 = 1_000_000_000;
const STEPS_NS: [i64; 6] = [1, 100, 1_000, 1_000_000, 10_000_000, SECOND_NS];
/// What the file of the trial gets: odd in each digit, and a second that two do not divide.
const TRIAL: Timespec = Timespec { tv_sec: 1_000_000_001, tv_nsec: 123_456_789 };

/// What the times and the number of names of a file can tell.
#[derive(Debug, Clone, Copy)]
struct Clock {
    step_ns: i64,
    /// Whether it notes when a file was changed, whatever time it is given.
    notes_changes: bool,
    /// Whether it says of a new file that it has one name.
    counts_names: bool,
}

/// What is known of the filesystems of the target, by device.
#[derive(Debug, Default)]
pub(super) struct Granularity {
    clocks: Mutex<Vec<(u64, Clock)>>,
    /// The last one that was seen to take what is set of a symlink.
    sets_symlinks: AtomicU64,
}

impl Entry<'_> {
    /// Whether a target has the time of the source, as well as its filesystem can have it.
    pub(super) fn is_same_time(&self, source: &Stat, target: &Stat) -> bool {
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
        let mut step_ns = self.clock(target.st_dev).step_ns;
        if self.copy.is_plan() {
            step_ns = step_ns.max(step_told_by(target.st_ctime_nsec as i64));
        }
        let step = i128::from(step_ns);
        to % step == 0 && from - to < step
    }

    /// Whether nobody has given a file its time: it is the one at which it was written. Such a file
    /// is no copy, although it may have been written in the very tick in which the source was; and
    /// it may be a copy that somebody was killed over.
    pub(super) fn is_untouched(&self, found: &Stat) -> bool {
        !notes_changes(found) && self.clock(found.st_dev).notes_changes
    }

    /// Whether what was made here may have this many names: some servers say the same of each file.
    pub(super) fn may_be_new(&self, found: &Stat) -> bool {
        found.st_nlink <= 1 || !self.clock(found.st_dev).counts_names
    }

    /// Has it known whether the attributes of symlinks can be set in the target.
    pub(super) fn look_at_symlinks(&self) {
        let (device, known) = (self.pair.found.target.0, &self.copy.granularity.sets_symlinks);
        if rustix::fs::major(device) != 0 || known.load(Ordering::Relaxed) == device {
            return;
        }
        let is_program =
            filesystem::of(self.pair.target()).is_ok_and(|home| home.may_answer_short());
        if is_program && filesystem::follows_symlinks(device) {
            self.copy.attributes.expect_followed(device);
        } else {
            known.store(device, Ordering::Relaxed);
        }
    }

    fn clock(&self, device: u64) -> Clock {
        // One tries it, for all.
        let mut known = lock(&self.copy.granularity.clocks);
        if let Some(&(_, clock)) = known.iter().find(|(of, _)| *of == device) {
            return clock;
        }
        let usual = || usual_of(filesystem::of(self.pair.target()).map_or("", |home| home.name));
        // A plan makes nothing with which it could be tried.
        let tried = if self.copy.is_plan() { None } else { self.try_it() };
        let clock = tried.unwrap_or_else(usual);
        known.push((device, clock));
        clock
    }

    /// Gives a file a time and looks what became of it: one without a name, where there are such, so that the
    /// directory keeps its time.
    fn try_it(&self) -> Option<Clock> {
        let (directory, temporaries) = (self.pair.target(), &self.copy.temporaries);
        let (file, name) = match without_a_name(directory) {
            Ok(file) => (file, None),
            Err(_) => {
                let name = temporaries.name_for(c"", false);
                temporaries.file(directory, name).map(|(file, name)| (file, Some(name))).ok()?
            }
        };
        let times = Timestamps { last_access: TRIAL, last_modification: TRIAL };
        // Until the server is asked, the kernel may have the time that was set (cifs).
        let found = rustix::fs::futimens(&file, &times)
            .and_then(|()| rustix::fs::fstat(&file))
            .and_then(|facts| file_data::ask_again(&file, &facts));
        if let Some(name) = &name {
            self.copy.remove_mark(directory, name);
        }
        let found = found.ok()?;
        let step_ns = step_of(found.st_mtime, found.st_mtime_nsec as i64);
        let counts_names = found.st_nlink == if name.is_some() { 1 } else { 0 };
        Some(Clock { step_ns, notes_changes: notes_changes(&found), counts_names })
    }
}

/// What a filesystem of this name is known for.
fn usual_of(filesystem: &str) -> Clock {
    let step_ns = match filesystem {
        "vfat" => 2 * SECOND_NS,
        "exfat" => 10_000_000,
        "cifs" => 100,
        _ => 1,
    };
    let notes_changes = !matches!(filesystem, "vfat" | "exfat" | "cifs" | "fuse");
    Clock { step_ns, notes_changes, counts_names: true }
}

/// Whether a file was changed at another time than the one that it has.
fn notes_changes(found: &Stat) -> bool {
    (found.st_ctime, found.st_ctime_nsec) != (found.st_mtime, found.st_mtime_nsec)
}

/// The coarsest step of a clock that may have told when a file was changed, which nobody can set: this part of a
/// second. What takes two at a time (vfat) does not tell that.
fn step_told_by(nanoseconds: i64) -> i64 {
    STEPS_NS.into_iter().rev().find(|step| nanoseconds % step == 0).unwrap_or(1)
}

/// The step of a clock that made this of [`TRIAL`].
fn step_of(seconds: i64, nanoseconds: i64) -> i64 {
    if seconds != TRIAL.tv_sec {
        return 2 * SECOND_NS;
    }
    let matches = |step: &i64| nanoseconds == TRIAL.tv_nsec / step * step;
    STEPS_NS.into_iter().find(matches).unwrap_or(1)
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

    #[test]
    fn the_time_of_a_change_tells_how_coarse_the_clock_may_be() {
        for (nanoseconds, step) in
            [(123_456_789, 1), (123_456_700, 100), (120_000_000, 10_000_000), (0, SECOND_NS)]
        {
            assert_eq!(step_told_by(nanoseconds), step);
        }
    }

    /// As tried in virtual machines: what a plan takes for equal is what the copy leaves alone.
    #[test]
    fn a_plan_knows_the_clocks_that_are_coarse_or_note_no_changes() {
        let of = |name| {
            let clock = usual_of(name);
            (clock.step_ns, clock.notes_changes)
        };
        let known = ["vfat", "exfat", "cifs", "fuse", "ext4"].map(of);
        let vfat = (2 * SECOND_NS, false);
        let [exfat, cifs] = [(10_000_000, false), (100, false)];
        assert_eq!(known, [vfat, exfat, cifs, (1, false), (1, true)]);
    }
}
