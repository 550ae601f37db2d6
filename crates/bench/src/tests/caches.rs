//! Caches that a CPU declares, for tests.

use flatout_sys::cpu_cache::DataCache;

/// Data caches of these sizes, the first one level 1.
pub(crate) fn caches(sizes: &[u64]) -> Vec<DataCache> {
    let cache = |(index, &bytes): (usize, &u64)| DataCache {
        level: index as u32 + 1,
        bytes,
        shared_cpus: String::new(),
    };
    sizes.iter().enumerate().map(cache).collect()
}
