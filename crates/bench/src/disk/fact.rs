//! What is known of a row of the disk area besides its figure. docs/disk.md says what each means.

use flatout_measure::{Key, Merge};

pub(super) use crate::fact::{BYTES, OVERHEAD_RATIO};
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

/// Bytes of the file in the page cache before and after a trial; of those before, dirty ones.
pub(super) const CACHED_BEFORE_BYTES: Key = Key::new("cached_before_bytes", Merge::Mean);
pub(super) const CACHED_AFTER_BYTES: Key = Key::new("cached_after_bytes", Merge::Mean);
pub(super) const DIRTY_BEFORE_BYTES: Key = Key::new("dirty_before_bytes", Merge::Mean);

/// What follows from these, once all trials are over.
pub(super) const DISK_SHARE_RATIO: Key = Key::last("disk_share_ratio");
pub(super) const DISK_REQUESTS_PER_REQUEST_RATIO: Key =
    Key::last("disk_requests_per_request_ratio");
pub(super) const OTHERS_DISK_BYTES: Key = Key::last("others_disk_bytes");
pub(super) const OTHERS_DISK_RATIO: Key = Key::last("others_disk_ratio");
pub(super) const STOLEN_RATIO: Key = Key::last("stolen_ratio");
pub(super) const CPU_S_PER_GIB: Key = Key::last("cpu_s_per_gib");
/// The sampler's own estimate, for areas that read the clock around a trial only.
pub(super) const HARNESS_OVERHEAD_NS: Key = Key::last("harness_overhead_ns");

/// Length of the file.
pub(super) const FILE_BYTES: Key = Key::last("file_bytes");
/// The rate before and after it changed its level, and when it did.
pub(super) use flatout_measure::shape::{BURST_PER_S, KNEE_S, SUSTAINED_PER_S};
/// The nearest command line of fio, the options of its job, and what it does otherwise.
pub(super) const FIO_COMMAND: Key = Key::last("fio_command");
pub(super) const FIO_OPTIONS: Key = Key::last("fio_options");
pub(super) const FIO_NOTE: Key = Key::last("fio_note");

/// Of rows of metadata: files and directories, and the time of all threads together.
pub(super) const SPREAD: Key = Key::last("spread");
pub(super) const THREADS_NS: Key = Key::sum("threads_ns");
