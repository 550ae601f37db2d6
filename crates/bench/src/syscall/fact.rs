//! What is known of a system call's row besides its figure.

use flatout_measure::{Key, Merge};

/// Calls that were timed, all threads together.
pub(super) const CALLS: Key = Key::sum("calls");
/// Time of the thread that was done first.
pub(super) const FASTEST_THREAD_NS: Key = Key::sum("fastest_thread_ns");
/// Time of the thread that was done last.
pub(super) const SLOWEST_THREAD_NS: Key = Key::sum("slowest_thread_ns");
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
