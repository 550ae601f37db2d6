//! What a thread did with its last small files: whether it waits for storage.

use flatout_sys::usage::Usage;

/// The least that a file costs storage that is not in the page cache.
const FETCHED_BYTES: u64 = 4096;

/// What a thread did since it was last asked whether it waits.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Looked {
    /// Small files.
    pub(super) files: u64,
    /// How often it gave the CPU away.
    pub(super) waits: u64,
    /// What storage was asked for meanwhile.
    pub(super) fetched_bytes: u64,
}

impl Looked {
    pub(super) fn add(&mut self, files: u64, before: &Usage, after: &Usage) {
        self.files += files;
        // A kernel that does not answer leaves nothing to tell.
        self.waits += after.voluntary_switches.saturating_sub(before.voluntary_switches);
        self.fetched_bytes += after.device_read_bytes.saturating_sub(before.device_read_bytes);
    }

    /// Whether it waited for most of its files. Threads also wait for each other: for the lock of a
    /// directory, for the journal; more of them would wait longer. What comes from a device is
    /// accounted for; a server and a program that serve files are waited for unseen.
    pub(super) fn waits_for_storage(&self, lies_on_devices: bool) -> bool {
        self.waits > self.files / 2 && (!lies_on_devices || self.fetches())
    }

    /// Whether storage was asked for most of its files.
    pub(super) fn fetches(&self) -> bool {
        self.fetched_bytes > self.files / 2 * FETCHED_BYTES
    }
}
