//! Rates and latencies of caches and memory.

pub mod levels;
