//! Facts that rows of several areas have; those of one area stand in its own `fact.rs`.

pub(crate) use flatout_measure::sampler::fact::OVERHEAD_RATIO;
use flatout_measure::{Key, Merge};

/// What all of the work took, where the figure is that of its quiet moments.
pub(crate) const ALL_TIME_NS: Key = Key::sum("all_time_ns");
/// Bytes that the work moved, as it counted them itself.
pub(crate) const BYTES: Key = Key::sum("bytes");
/// Bytes that the disks behind the place read meanwhile.
pub(crate) const DEVICE_READ_BYTES: Key = Key::sum("device_read_bytes");
/// Bytes of the file in the page cache before and after a trial.
pub(crate) const CACHED_BEFORE_BYTES: Key = Key::new("cached_before_bytes", Merge::Mean);
pub(crate) const CACHED_AFTER_BYTES: Key = Key::new("cached_after_bytes", Merge::Mean);
/// Why the work ended before all was done, and where.
pub(crate) const ENDED_EARLY: Key = Key::last("ended_early");
/// Whether the CPUs that work together are hardware threads of one core.
pub(crate) const CPUS_SHARE_CORE: Key = Key::last("cpus_share_core");
