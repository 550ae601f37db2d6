//! What the help of `flatout bench` and of its areas says besides the options.

/// `flatout bench --help`.
pub const BENCH: &str = include_str!("../help/bench.txt");

/// `flatout bench cache --help`.
pub const CACHE: &str = include_str!("../help/bench-cache.txt");

/// `flatout bench disk --help`.
pub const DISK: &str = include_str!("../help/bench-disk.txt");

/// `flatout bench syscall --help`.
pub const SYSCALL: &str = include_str!("../help/bench-syscall.txt");

/// `flatout bench cpu --help`.
pub const CPU: &str = include_str!("../help/bench-cpu.txt");

/// `flatout bench memory --help`.
pub const MEMORY: &str = include_str!("../help/bench-memory.txt");

/// `flatout bench network --help`.
pub const NETWORK: &str = include_str!("../help/bench-network.txt");

/// `flatout bench copy --help`.
pub const COPY: &str = include_str!("../help/bench-copy.txt");
