//! What is known of a row of memory besides its figure.

use flatout_measure::{Key, Merge};

/// Bytes that the program read and wrote.
pub(super) const APPLICATION_BYTES: Key = Key::sum("application_bytes");
/// Those of them that it read.
pub(super) const READ_BYTES: Key = Key::sum("read_bytes");
/// Those of them that it wrote.
pub(super) const WRITTEN_BYTES: Key = Key::sum("written_bytes");
/// Bytes that must have crossed the memory bus for that.
pub(super) const BUS_BYTES: Key = Key::last("bus_bytes");
/// The figure in such bytes.
pub(super) const BUS_BYTES_PER_S: Key = Key::last("bus_bytes_per_s");
/// Accesses of all threads.
pub(super) const ACCESSES: Key = Key::sum("accesses");
/// From the first start of a thread to the last end.
pub(super) const ELAPSED_NS: Key = Key::sum("elapsed_ns");
/// The kernel that moved the bytes.
pub(super) const KERNEL: Key = Key::last("kernel");
/// Rate of its operations.
pub(super) const FLOP_PER_S: Key = Key::last("flop_per_s");
/// The best trial, as STREAM prints it.
pub(super) const BEST_BYTES_PER_S: Key = Key::last("best_bytes_per_s");

/// The level that the data live in.
pub(super) const LEVEL: Key = Key::last("level");
/// Whether the size of that level was measured, or is what the CPU says.
pub(super) const LEVEL_PROVENANCE: Key = Key::last("level_provenance");
/// Size of a level by the curve.
pub(super) const MEASURED_BYTES: Key = Key::last("measured_bytes");
/// Its size by what the CPU says.
pub(super) const DECLARED_BYTES: Key = Key::last("declared_bytes");

/// Steps of the chase.
pub(super) const STEPS: Key = Key::sum("steps");
/// Time per step in the quietest sixteenth of the first halves of the walks.
pub(super) const QUIETEST_FIRST_NS: Key = Key::new("quietest_first_ns", Merge::Min);
/// The same of the second halves.
pub(super) const QUIETEST_SECOND_NS: Key = Key::new("quietest_second_ns", Merge::Min);
/// Lines that all chases loaded.
pub(super) const LINES: Key = Key::sum("lines");
/// Lines that the core waited for at once, on average.
pub(super) const LINES_IN_FLIGHT: Key = Key::last("lines_in_flight");
/// The CPU that walked.
pub(super) const CPU: Key = Key::last("cpu");
/// Length of the ring that was walked through.
pub(super) const WORKING_SET_BYTES: Key = Key::last("working_set_bytes");
/// Length of the pages that it lies on.
pub(super) const PAGE_BYTES: Key = Key::last("page_bytes");
/// Whether it was shown to lie on such pages.
pub(super) const PAGES_VERIFIED: Key = Key::last("pages_verified");
/// Bytes that the load read during the timed walks.
pub(super) const LOAD_BYTES: Key = Key::sum("load_bytes");
/// Their rate.
pub(super) const LOAD_BYTES_PER_S: Key = Key::new("load_bytes_per_s", Merge::Mean);
/// CPUs that made the load.
pub(super) const LOAD_THREADS: Key = Key::last("load_threads");
/// Times that the line went from one CPU to the other.
pub(super) const HAND_OVERS: Key = Key::sum("hand_overs");
