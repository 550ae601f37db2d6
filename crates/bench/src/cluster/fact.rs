//! What is known of a row that several processes measured together, besides its figure.

use flatout_measure::{Key, Merge};

/// How far a clock may be off against that of the first process, half of the shortest round trip.
pub(super) const CLOCK_ERROR_NS: Key = Key::new("clock_error_ns", Merge::Max);
/// The latest start after the agreed one.
pub(super) const START_SPREAD_NS: Key = Key::new("start_spread_ns", Merge::Max);
/// From the end of the first process to the end of the last one.
pub(super) const END_SPREAD_NS: Key = Key::new("end_spread_ns", Merge::Median);
/// What the processes did, the least and the most of one of them.
pub(super) const LEAST_OPERATIONS: Key = Key::new("least_operations", Merge::Min);
pub(super) const MOST_OPERATIONS: Key = Key::new("most_operations", Merge::Max);
pub(super) const OPERATIONS: Key = Key::sum("operations");
/// Whether all processes did as much as the fastest had done at the stonewall.
pub(super) const WEAR_OUT_COMPLETE: Key = Key::new("wear_out_complete", Merge::Min);
/// What storage was asked to fetch or to take, by all processes, as their kernels account it.
pub(super) const PROCESS_READ_BYTES: Key = Key::sum("process_read_bytes");
pub(super) const PROCESS_WRITE_BYTES: Key = Key::sum("process_write_bytes");
/// Entries that find looked at, and those that it was to find.
pub(super) const ENTRIES_FOUND: Key = Key::sum("entries_found");
/// Messages and their length.
pub(super) const MESSAGES: Key = Key::sum("messages");
