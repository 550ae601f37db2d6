//! What is known of the runs of a program besides their time.

use flatout_measure::{Key, Merge};

use super::State;

/// Whether the kernel told what the page cache held before each run.
pub(crate) const CACHE_STATE_PROVED: Key = Key::new("cache_state_proved", Merge::Min);
/// Bytes of data in the tree that is read, in whole pages.
pub(crate) const SOURCE_DATA_BYTES: Key = Key::new("source_data_bytes", Merge::Max);
/// What was dropped before a cold run.
pub(crate) const COLD: Key = Key::last("cold");
/// What became of the targets.
pub(crate) const TARGETS: Key = Key::last("targets");
/// Entries of the copy that were compared with the source.
pub(crate) const COMPARED_ENTRIES: Key = Key::new("compared_entries", Merge::Max);
/// CPU time in user mode.
pub(crate) const USER_NS: Key = Key::new("user_ns", Merge::Mean);
/// CPU time in the kernel.
pub(crate) const SYSTEM_NS: Key = Key::new("system_ns", Merge::Mean);
/// CPU time of both. Of means, unlike medians, those of the parts add up to that of the sum.
pub(super) const CPU_NS: Key = Key::new("cpu_ns", Merge::Mean);
/// Largest resident set.
pub(crate) const PEAK_MEMORY_BYTES: Key = Key::new("peak_memory_bytes", Merge::Max);
/// The command as one types it.
pub(crate) const COMMAND: Key = Key::last("command");
/// What the program says its version is.
pub(super) const VERSION: Key = Key::last("version");
/// What kind of copy it makes.
pub(super) const FIDELITY: Key = Key::last("fidelity");
/// Differences of the copy that it does not promise to avoid.
pub(super) const LACKS: Key = Key::last("lacks");
/// Digests that were compared with those of our own.
pub(super) const DIGESTS_CHECKED: Key = Key::new("digests_checked", Merge::Max);
/// Bytes that the program says it moved.
pub(super) const MOVED_BYTES: Key = Key::new("moved_bytes", Merge::Max);
/// How far the result is off, as HPL counts it.
pub(super) const NORMALISED_RESIDUAL: Key = Key::new("normalised_residual", Merge::Max);
/// Repetitions that a figure is of.
pub(super) const REPETITIONS: Key = Key::new("repetitions", Merge::Min);
/// Rounds in which both ran.
pub(super) const ROUNDS: Key = Key::last("rounds");
/// Half of the interval's width over the median.
pub(super) const HALF_WIDTH: Key = Key::last("half_width");

/// Bytes of the source in the page cache before the run that began worst.
pub(crate) fn source_cached_bytes(state: State) -> Key {
    // Of what should be there the least counts, of what should not the most.
    let worst = if state == State::Cold { Merge::Max } else { Merge::Min };
    Key::new("source_cached_bytes", worst)
}
