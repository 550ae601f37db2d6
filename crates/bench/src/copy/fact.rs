//! What is known of the copies of a tree besides their time; what every program run has stands in
//! [`crate::versus::fact`].

use flatout_measure::Key;

/// CPU time by the bytes that were copied.
pub(super) const CPU_S_PER_GIB: Key = Key::last("cpu_s_per_gib");
