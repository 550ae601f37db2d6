//! How much was done so far, counted by all threads.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use flatout_io::transfer::Method;
use flatout_sys::occupation::Occupation;
use rustix::fs::Stat;

use super::attributes::Losses;
use super::lane::MUCH_BYTES;
use super::{Copy, Entry, Side};
use crate::lock::lock;

/// What a copy has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Regular files copied.
    pub files: u64,
    /// Directories completed.
    pub directories: u64,
    /// Symlinks, FIFOs, sockets and devices made.
    pub others: u64,
    /// Names that became links to files that were copied.
    pub linked: u64,
    /// Entries that were there already.
    pub unchanged: u64,
    /// Entries that were not copied, or not whole.
    pub failed: u64,
    /// Entries that were copied without something of their source that `cp -a` would fail for: an
    /// access control list, an owner that root cannot give, a mode, times.
    pub incomplete: u64,
    /// Entries that lost something, be it no reason to fail, by what.
    pub losses: Losses<u64>,
    /// Files that were begun again, because they changed meanwhile.
    pub retried: u64,
    /// Things of the target that were deleted because the source does not have them.
    pub deleted: u64,
    /// Such things that stay because no more were to be deleted.
    pub spared: u64,
    /// Things that would be overwritten; only where nothing is done.
    pub overwritten: u64,
    /// Bytes that the kernel took, without holes: also for files that were not finished.
    pub bytes_accepted: u64,
    /// Files copied by each method, and the bytes in them.
    pub by_method: [(Method, u64, u64); Method::ALL.len()],
    /// What most threads do that are not idle.
    pub occupation: Occupation,
}

impl Default for Snapshot {
    /// Nothing was done.
    fn default() -> Self {
        Tally::default().snapshot(std::iter::empty())
    }
}

impl Snapshot {
    /// All that is counted.
    pub(super) fn numbers(&mut self) -> impl Iterator<Item = &mut u64> {
        let Self { files, directories, others, linked, unchanged, failed, .. } = self;
        let Self { incomplete, retried, deleted, spared, overwritten, bytes_accepted, .. } = self;
        let all = [files, directories, others, linked, unchanged, failed, incomplete, retried];
        let rest = [deleted, spared, overwritten, bytes_accepted];
        let by_method = self.by_method.iter_mut().flat_map(|(_, files, bytes)| [files, bytes]);
        all.into_iter().chain(rest).chain(&mut self.losses).chain(by_method)
    }

    /// Bytes that lie in the files copied: fewer than were accepted where files failed, or were
    /// begun again.
    pub fn bytes_copied(&self) -> u64 {
        self.by_method.iter().map(|(_, _, bytes)| bytes).sum()
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) files: AtomicU64,
    pub(super) directories: AtomicU64,
    pub(super) others: AtomicU64,
    pub(super) linked: AtomicU64,
    pub(super) unchanged: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) overwritten: AtomicU64,
    pub(super) bytes: AtomicU64,
    by_method: [(AtomicU64, AtomicU64); Method::ALL.len()],
    /// All of it waits for storage now.
    pub(super) waits_for_device: AtomicBool,
    /// Large files that are being copied, as long as somebody holds their paths.
    at_work: Mutex<Vec<Weak<OsString>>>,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Tally {
    /// Notes a file, if it is large, until what is returned is dropped.
    pub(super) fn begin(&self, entry: Entry<'_>, facts: &Stat) -> Option<Arc<OsString>> {
        if (facts.st_size as u64) < MUCH_BYTES {
            return None;
        }
        let path = Arc::new(entry.path(Side::Source));
        let mut all = lock(&self.at_work);
        all.retain(|path| path.strong_count() > 0);
        all.push(Arc::downgrade(&path));
        Some(path)
    }

    /// A file was moved by this method.
    pub(super) fn moved(&self, method: Method, bytes: u64) {
        let (files, total) = &self.by_method[method.index()];
        files.fetch_add(1, Ordering::Relaxed);
        total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counters, and what most of the threads wait for that do this.
    pub(super) fn snapshot(&self, occupations: impl Iterator<Item = Occupation>) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            files: read(&self.files),
            directories: read(&self.directories),
            others: read(&self.others),
            linked: read(&self.linked),
            unchanged: read(&self.unchanged),
            failed: read(&self.failed),
            retried: read(&self.retried),
            overwritten: read(&self.overwritten),
            deleted: 0,
            spared: 0,
            incomplete: 0,
            losses: Losses::default(),
            bytes_accepted: read(&self.bytes),
            by_method: std::array::from_fn(|index| {
                let (files, bytes) = &self.by_method[index];
                (Method::ALL[index], read(files), read(bytes))
            }),
            occupation: match self.waits_for_device.load(Ordering::Relaxed) {
                true => Occupation::Device,
                false => most(occupations),
            },
        }
    }
}

impl Copy<'_> {
    /// A large file that is being copied just now: the one that was begun first.
    pub fn at_work(&self) -> Option<OsString> {
        let all = lock(&self.tally.at_work);
        all.iter().find_map(Weak::upgrade).map(Arc::unwrap_or_clone)
    }
}

/// What most threads do that are not idle.
fn most(occupations: impl Iterator<Item = Occupation>) -> Occupation {
    use Occupation::{Device, Metadata, Reading, Resting, Running, Writing};
    let occupations: Vec<Occupation> = occupations.collect();
    let count = |kind: &Occupation| occupations.iter().filter(|one| *one == kind).count();
    let kinds = [Device, Metadata, Writing, Reading, Resting, Running];
    kinds.into_iter().max_by_key(count).unwrap_or(Running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_threads_wait_for_is_said() {
        use Occupation::{Idle, Metadata, Reading, Resting, Running, Writing};
        let waiting = |occupations: &[Occupation]| most(occupations.iter().copied());
        assert_eq!(waiting(&[]), Running);
        assert_eq!(waiting(&[Reading, Metadata, Reading, Idle, Idle, Idle]), Reading);
        assert_eq!(waiting(&[Running, Metadata]), Running);
        assert_eq!(waiting(&[Writing, Resting, Idle]), Resting);
    }
}
