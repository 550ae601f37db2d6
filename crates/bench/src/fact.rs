//! Facts that rows of several areas have; those of one area stand in its own `fact.rs`.

use flatout_measure::fact::Key;

/// Bytes that the work moved, as it counted them itself.
pub(crate) const BYTES: Key = Key::sum("bytes");
/// Bytes that the disks behind the place read meanwhile.
pub(crate) const DEVICE_READ_BYTES: Key = Key::sum("device_read_bytes");
/// Bytes of the file that the page cache held before.
pub(crate) const CACHED_BEFORE_BYTES: Key = Key::sum("cached_before_bytes");
