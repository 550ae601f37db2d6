//! What is known of a row of the disk area besides its figure. docs/disk.md says what each means.

use flatout_measure::Key;

pub(super) use crate::fact::{BYTES, CACHED_AFTER_BYTES, CACHED_BEFORE_BYTES, OVERHEAD_RATIO};
pub(super) use crate::file_trial::accounting::*;

/// Operations that completed, and requests: a copy of a block is one operation of two requests.
pub(super) const OPERATIONS: Key = Key::sum("operations");
pub(super) const REQUESTS: Key = Key::sum("requests");
/// What the requests moved, by direction.
pub(super) const READ_BYTES: Key = Key::sum("read_bytes");
pub(super) const WRITTEN_BYTES: Key = Key::sum("written_bytes");
/// From the first start to the last end, or until the bytes were durable.
pub(super) const ELAPSED_NS: Key = Key::sum("elapsed_ns");
/// Blocks that were looked at, and those that held zeros.
pub(super) const BLOCKS_SAMPLED: Key = Key::sum("blocks_sampled");
pub(super) const ZERO_BLOCKS: Key = Key::sum("zero_blocks");

/// What follows from these, once all trials are over.
pub(super) const DISK_REQUESTS_PER_REQUEST_RATIO: Key =
    Key::last("disk_requests_per_request_ratio");
pub(super) const OTHERS_DISK_BYTES: Key = Key::last("others_disk_bytes");
pub(super) const OTHERS_DISK_RATIO: Key = Key::last("others_disk_ratio");
/// The sampler's own estimate, for areas that read the clock around a trial only.
pub(super) const HARNESS_OVERHEAD_NS: Key = Key::last("harness_overhead_ns");

/// The rate before and after it changed its level, and when it did.
pub(super) use flatout_measure::shape::{BURST_PER_S, KNEE_S, SUSTAINED_PER_S};
/// The nearest command line of fio, the options of its job, and what it does otherwise.
pub(super) const FIO_COMMAND: Key = Key::last("fio_command");
pub(super) const FIO_OPTIONS: Key = Key::last("fio_options");
pub(super) const FIO_NOTE: Key = Key::last("fio_note");

/// Of rows of metadata: the time of all threads together.
pub(super) const THREADS_NS: Key = Key::sum("threads_ns");
