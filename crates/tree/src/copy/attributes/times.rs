//! The times of a target. The kernel clamps silently what a filesystem does not have (utimensat(2)).

use flatout_sys::filesystem;
use rustix::fs::{Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::node::Node;
use super::remarks::Loss;
use super::{Attributes, Job};
use crate::copy::Refusal;

const LAST_NANOSECOND: u64 = 999_999_999;
/// Seconds that all filesystems can keep, with a day for time zones: FAT begins with 1980, inodes of
/// 128 bytes (ext4) and xfs without `bigtime` end in January 2038.
const TIMES_EVERYWHERE: std::ops::Range<i64> = 315_619_200..2_147_396_000;
/// FAT keeps the day of an access.
const COARSEST_TIME_S: u64 = 86_400;

const SET_TIMES: &str = "set the times of";

impl Attributes<'_> {
    /// Sets the times unless they were found right, and says whether it did.
    pub(super) fn set_times(&self, job: &Job<'_>, found: Option<&Stat>) -> Result<bool, Refusal> {
        let (wanted, found) = (times(job.facts), found.map(times));
        if found == Some(wanted) {
            return Ok(false);
        }
        if self.is_followed(job.kind, job.made.inheritance.device) {
            self.lose(job, Loss::Times, None);
            return Ok(false);
        }
        let errno = match job.target.set_times(&timestamps(job.facts)) {
            Ok(()) => {
                self.look_whether_clamped(job, wanted);
                return Ok(true);
            }
            Err(errno) => errno,
        };
        let only_access = || {
            let found = found.or_else(|| job.target.stat().ok().as_ref().map(times));
            found.is_some_and(|[_, modified]| modified == wanted[1])
        };
        match errno {
            Errno::OPNOTSUPP | Errno::NOSYS => self.lose(job, Loss::Times, Some(errno)),
            // What is somebody else's, or locked, or cannot be written to, and is right in all that matters:
            // its source was read meanwhile, that is all.
            Errno::PERM | Errno::ACCESS | Errno::ROFS if job.was_there() && only_access() => {}
            _ => {
                self.check_lock(job, SET_TIMES, errno)?;
                return Err(Refusal::of(SET_TIMES)(errno));
            }
        }
        Ok(false)
    }

    /// Says once that the filesystem of the target has no such times. Only times that some
    /// filesystem has not are read back.
    fn look_whether_clamped(&self, job: &Job<'_>, wanted: [Timespec; 2]) {
        if are_kept_everywhere(job.facts) {
            return;
        }
        let Ok(facts) = job.target.stat() else { return };
        let is_far = |(wanted, found): (&Timespec, &Timespec)| {
            wanted.tv_sec.abs_diff(found.tv_sec) > COARSEST_TIME_S
        };
        if wanted.iter().zip(&times(&facts)).any(is_far) {
            self.lose(job, Loss::TimeRange, None);
        }
    }
}

/// Whether a server gives what gets this mode the time of that change: samba 4.17 does, by the end of it, where
/// nobody may write it any more.
pub(super) fn makes_time_another(job: &Job<'_>, mode: u32) -> bool {
    let is_cifs = |file| filesystem::of(file).is_ok_and(|home| home.name == "cifs");
    mode & 0o222 == 0 && matches!(job.target, Node::Open(file) if is_cifs(file))
}

/// The times of an entry, to be set again.
pub(in crate::copy) fn timestamps(facts: &Stat) -> Timestamps {
    let [last_access, last_modification] = times(facts);
    Timestamps { last_access, last_modification }
}

/// Whether there is no filesystem that would have them otherwise.
pub(in crate::copy) fn are_kept_everywhere(facts: &Stat) -> bool {
    times(facts).iter().all(|time| TIMES_EVERYWHERE.contains(&time.tv_sec))
}

/// Access and modification time, as the kernel takes them. A filesystem that makes up fractions of
/// a second and more must not hit the numbers that mean `now` and `leave it` (utimensat(2)).
pub(super) fn times(facts: &Stat) -> [Timespec; 2] {
    let time = |seconds: i64, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.min(LAST_NANOSECOND) as _,
    };
    [
        time(facts.st_atime as _, facts.st_atime_nsec as _),
        time(facts.st_mtime as _, facts.st_mtime_nsec as _),
    ]
}
