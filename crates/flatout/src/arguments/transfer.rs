//! `flatout transfer`: not shown in the help; what `versus dd` races against dd.

use std::path::PathBuf;

use clap::Args;

use flatout_bench::option::size_to;

/// Longest block; it lies in memory.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, Args)]
pub struct Transfer {
    /// The file that is read
    pub source: PathBuf,
    /// The file that is written; what it held is lost
    pub target: PathBuf,
    /// Bytes per block
    #[arg(long, value_name = "SIZE", value_parser = size_to(MAX_BLOCK_BYTES), default_value = "1M")]
    pub block_size: u64,
}
