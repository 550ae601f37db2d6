//! Whether a filesystem has the mode, the times and the attributes that it accepted: some (FUSE servers) forget
//! them. Each filesystem is looked at until it has proved that it has them. Without a list a copy fails, but
//! not without the others, as with cp.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::FileType;

use super::acl;
use super::extended::loss;
use super::remarks::Loss;
use super::times::{are_kept_everywhere, times};
use super::{Attributes, Job, PRIVATE};
use crate::copy::Preserve;

/// FAT has every second second.
const COARSEST_CHANGE_S: u64 = 2;
/// A time this near to now may be that of the last write.
const RECENT_S: u64 = 60;
const PERMISSIONS: u32 = 0o777;

impl Attributes<'_> {
    /// Says once that what was set is not there. `mode`: that which was to be set.
    ///
    /// Cost: an fstat, until a filesystem has answered by something that proves it.
    pub(super) fn look_whether_kept(&self, job: &Job<'_>, mode: Option<u32>) {
        let device = job.made.inheritance.device;
        if device == 0 || !matches!(job.kind, FileType::RegularFile | FileType::Directory) {
            return;
        }
        let is_new = |looked_for: &AtomicU64| looked_for.load(Ordering::Relaxed) != device;
        let expectation = &self.expectation;
        // What it was made with proves nothing.
        let mode = mode.filter(|mode| {
            let made = if job.kind.is_dir() { 0o700 } else { PRIVATE.bits() };
            mode & PERMISSIONS != made && is_new(&expectation.mode_looked_for)
        });
        let wants_times = self.preserve.has(Preserve::TIMESTAMPS)
            && is_new(&expectation.times_looked_for)
            && are_kept_everywhere(job.facts)
            && is_old(job.facts.st_mtime);
        if mode.is_none() && !wants_times {
            return;
        }
        let Ok(found) = job.target.stat() else { return };
        let lost = job.lost.get().map(|(loss, _)| loss);
        if let Some(mode) = mode {
            expectation.mode_looked_for.store(device, Ordering::Relaxed);
            if (mode ^ found.st_mode) & PERMISSIONS != 0 && lost != Some(Loss::Mode) {
                self.lose(job, Loss::ModeForgotten, None);
            }
        }
        if wants_times {
            expectation.times_looked_for.store(device, Ordering::Relaxed);
            let [wanted, found] = [job.facts, &found].map(|facts| times(facts)[1].tv_sec);
            if wanted.abs_diff(found) > COARSEST_CHANGE_S && lost != Some(Loss::Times) {
                self.lose(job, Loss::TimesForgotten, None);
            }
        }
    }

    /// Whether an attribute that was accepted is not there. Of a list that is no more than a mode nothing is told.
    ///
    /// Cost: a call for each filesystem and kind, and for each without a value: some servers have none (cifs).
    pub(super) fn forgets(&self, job: &Job<'_>, name: &CStr, value: &[u8]) -> bool {
        let device = job.made.inheritance.device;
        let looked_for = &self.expectation.attributes_looked_for[loss(name) as usize];
        let is_known = device != 0 && looked_for.load(Ordering::Relaxed) == device;
        let is_mode = name == acl::ACCESS && value.len() <= acl::MODE_BYTES;
        if is_mode || is_known && !value.is_empty() {
            return false;
        }
        let found = job.target.value(name);
        if matches!(found, Ok(Some(_))) && !value.is_empty() {
            looked_for.store(device, Ordering::Relaxed);
        }
        found == Ok(None)
    }
}

/// Whether a time is not that of what is written now.
fn is_old(seconds: i64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    now.abs_diff(seconds.cast_unsigned()) > RECENT_S
}
