//! What is known of a system call's row besides its figure.

use flatout_measure::{Key, Merge};

/// Calls that were timed, all threads together.
pub(super) const CALLS: Key = Key::sum("calls");
/// Time of an empty loop of as many turns, which the figure does not contain.
pub(super) const EMPTY_LOOP_NS: Key = Key::sum("empty_loop_ns");
/// Other time of the harness that the figure does not contain.
pub(super) const EXCLUDED_NS: Key = Key::sum("excluded_ns");
/// Time of the thread that was done first.
pub(super) const FASTEST_THREAD_NS: Key = Key::sum("fastest_thread_ns");
/// Time of the thread that was done last.
pub(super) const SLOWEST_THREAD_NS: Key = Key::sum("slowest_thread_ns");
/// The filesystem of the file that is worked on.
pub(super) const FILESYSTEM: Key = Key::last("filesystem");
/// Length of the writes that filled that file.
pub(super) const FILLED_BY_WRITES_OF_BYTES: Key = Key::last("filled_by_writes_of_bytes");
/// Where the kernel has the time from.
pub(super) const CLOCK_SOURCE: Key = Key::last("clock_source");
/// False for what never enters the kernel.
pub(super) const IS_SYSTEM_CALL: Key = Key::last("is_system_call");
/// Memory of this process, on which the cost of a fork depends.
pub(super) const PROCESS_RESIDENT_BYTES: Key = Key::new("process_resident_bytes", Merge::Max);
/// The CPUs of two threads that wake each other.
pub(super) const CPU_NUMBERS: Key = Key::last("cpu_numbers");
/// Calls of all threads together.
pub(super) const CALLS_PER_S: Key = Key::last("calls_per_s");
/// Bytes that these move.
pub(super) const BYTES_PER_S: Key = Key::last("bytes_per_s");
/// The figure over that of an empty function.
pub(super) const RATIO_TO_EMPTY_CALL: Key = Key::last("ratio_to_empty_call");
