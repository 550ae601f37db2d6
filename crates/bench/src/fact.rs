//! Facts that rows of several areas have; those of one area stand in its own `fact.rs`.

use flatout_measure::Key;
pub(crate) use flatout_measure::sampler::fact::OVERHEAD_RATIO;

/// What all of the work took, where the figure is that of its quiet moments.
pub(crate) const ALL_TIME_NS: Key = Key::sum("all_time_ns");
/// Bytes that the work moved, as it counted them itself.
pub(crate) const BYTES: Key = Key::sum("bytes");
/// Bytes that the disks behind the place read meanwhile.
pub(crate) const DEVICE_READ_BYTES: Key = Key::sum("device_read_bytes");
/// Bytes of the file that the page cache held before.
pub(crate) const CACHED_BEFORE_BYTES: Key = Key::sum("cached_before_bytes");
/// Bytes of the file that the page cache held afterwards.
pub(crate) const CACHED_AFTER_BYTES: Key = Key::last("cached_after_bytes");
/// Why the work ended before all was done, and where.
pub(crate) const ENDED_EARLY: Key = Key::last("ended_early");
/// The hardware threads of the first CPU's core.
pub(crate) const FIRST_CPU_SHARES_CORE_WITH: Key = Key::last("first_cpu_shares_core_with");
