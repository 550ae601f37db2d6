//! How much was done so far, counted by all threads.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use flatout_io::transfer::Method;

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
    /// Files that were begun again, because they changed meanwhile.
    pub retried: u64,
    /// Bytes that the kernel took, without holes.
    pub bytes_accepted: u64,
    /// Files and bytes that each method moved.
    pub by_method: [(Method, u64, u64); Method::ALL.len()],
    /// What most threads wait for.
    pub waiting: Waiting,
}

/// What a thread is doing in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing: it runs.
    #[default]
    Nothing,
    /// Bytes of the source.
    Reading,
    /// The target taking bytes.
    Writing,
    /// Names and attributes.
    Metadata,
    /// Storage, which has to have everything in the end.
    Device,
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
    pub(super) bytes: AtomicU64,
    by_method: [(AtomicU64, AtomicU64); Method::ALL.len()],
    waiting: AtomicU8,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Tally {
    /// A file was moved by this method.
    pub(super) fn moved(&self, method: Method, bytes: u64) {
        let (files, total) = &self.by_method[method.index()];
        files.fetch_add(1, Ordering::Relaxed);
        total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All of it waits for storage now.
    pub(super) fn wait_for_device(&self) {
        self.waiting.store(Waiting::Device as u8, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            files: read(&self.files),
            directories: read(&self.directories),
            others: read(&self.others),
            linked: read(&self.linked),
            unchanged: read(&self.unchanged),
            failed: read(&self.failed),
            retried: read(&self.retried),
            bytes_accepted: read(&self.bytes),
            by_method: std::array::from_fn(|index| {
                let (files, bytes) = &self.by_method[index];
                (Method::ALL[index], read(files), read(bytes))
            }),
            waiting: match self.waiting.load(Ordering::Relaxed) {
                device if device == Waiting::Device as u8 => Waiting::Device,
                _ => Waiting::Nothing,
            },
        }
    }
}
