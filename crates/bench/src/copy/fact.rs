//! What is known of the copies of a tree besides their time; what every program run has stands in
//! [`crate::versus::fact`].

use flatout_measure::Key;

/// Files of the tree.
pub(super) const SOURCE_FILES: Key = Key::last("source_files");
/// Their bytes.
pub(super) const SOURCE_BYTES: Key = Key::last("source_bytes");
/// These bytes by the time.
pub(super) const RATE_BYTES_PER_S: Key = Key::last("rate_bytes_per_s");
/// Files by the time.
pub(super) const FILES_PER_S: Key = Key::last("files_per_s");
/// That of the samples around their mean.
pub(super) const STANDARD_DEVIATION_NS: Key = Key::last("standard_deviation_ns");
/// CPU time by the bytes that were copied.
pub(super) const CPU_S_PER_GIB: Key = Key::last("cpu_s_per_gib");
/// Whether copies share the extents of their sources.
pub(super) const EXTENTS: Key = Key::last("extents");
