//! Caches that a CPU declares, for the tests of this area.

use flatout_sys::cpu_cache::DataCache;

/// Data caches of these sizes, the first one level 1.
pub(super) fn caches(sizes: &[u64]) -> Vec<DataCache> {
    let cache = |(index, &bytes): (usize, &u64)| DataCache {
        level: index as u32 + 1,
        bytes,
        line_bytes: 64,
        shared_cpus: String::new(),
    };
    sizes.iter().enumerate().map(cache).collect()
}
