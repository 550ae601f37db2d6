//! The kernel and the CPU made safe: buffers, rings, mappings, vector kernels, kernel readings.
//!
//! Rule: the only room with `unsafe`. Each block names the contract and who keeps it; what leaves
//! this room is safe to call with any argument. It knows no file format, no policy and no
//! statistics. Errors are plain `std::io::Error`: the room above adds operation and path.
//!
//! Read next: [`ring`] and [`mapping`], where the kernel shares memory with us.

#![deny(clippy::unwrap_used)]

// Numbers of calls and requests, and kernels by hand, are those of these two.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("flatout is for x86-64 and aarch64");

pub mod affinity;
pub mod attribute;
pub mod attribute_at;
pub mod blake3;
pub mod blas;
pub mod block_account;
pub mod buffer;
pub mod call;
pub mod caller;
pub mod cancel;
pub mod cause;
pub mod chase;
pub mod clock;
pub mod core_clock;
pub mod cpu_cache;
pub mod descriptor;
pub mod dgemm;
pub mod dimm;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod elementary;
pub mod extent;
pub mod file_handle;
pub mod filesystem;
#[cfg(test)]
#[path = "tests/fixture.rs"]
mod fixture;
pub mod generator;
pub mod hand_over;
pub mod input;
pub mod inquiry;
pub mod instruction_set;
pub mod issue_width;
#[cfg(feature = "launcher")]
#[path = "tests/launcher/mod.rs"]
pub mod launcher;
pub mod lock;
pub mod mapping;
pub mod memory;
pub mod numa;
pub mod occupation;
pub mod page_cache;
mod prefetch;
pub mod pressure;
pub mod priority;
pub mod process;
pub mod process_table;
pub mod quota;
pub mod region;
pub mod resource_limit;
pub mod ring;
pub mod run_queue;
pub mod screen;
pub mod socket;
pub mod standard;
pub mod start;
pub mod steal;
pub mod storage;
pub mod stream;
pub mod terminal;
pub mod thread;
pub mod throughput;
pub mod usage;
pub mod view;
mod words;
pub mod xor;
pub mod xxh3;

pub use buffer::AlignedBuffer;
pub use cancel::CancelToken;
pub use clock::{monotonic_ns, thread_cpu_ns};
pub use filesystem::{Filesystem, Nature};
pub use generator::fill_random;
pub use page_cache::CacheState;
pub use quota::Groups;
