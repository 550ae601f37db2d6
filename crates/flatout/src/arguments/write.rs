//! `flatout write`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flatout_bench::write::{Data, Job, Sync};
use flatout_io::Existing;
use flatout_sys::cancel::CancelToken;

use super::shared::{EngineChoice, Moving, Output};

const AFTER: &str = "\
Defaults, chosen by measurement (docs/performance.md):
  1 GiB in all; sync engine, buffered, 256 KiB blocks, one thread
  --caching direct or --engine uring: uring, 1 MiB blocks, depth 16

Examples:
  flatout write FILE                                       1 GiB of random data
  flatout write FILE --block-size 1M --block-count 100     100 MiB
  flatout write FILE --caching direct --depth 32           around the page cache
  flatout write FILE --sync each --block-size 4K --block-count 1000

A new file gets mode 0666 less umask. An existing file is refused without --overwrite, which
writes over it in place; anything but a regular file is refused always. A file made by a write
that fails or is interrupted is removed again.";

/// `flatout write`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Write {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub moving: Moving,
    /// How the kernel is handed the bytes
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: WriteEngine,
    /// What the blocks hold
    #[arg(long, value_name = "DATA", default_value = "random")]
    pub data: DataChoice,
    /// When the bytes must be durable: never, at the end, after each block
    #[arg(long, value_name = "WHEN", default_value = "end")]
    pub sync: SyncChoice,
    /// Write over an existing file, in place; it gets the length of the new data
    #[arg(long)]
    pub overwrite: bool,
    /// Seed of random data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: Output,
}

/// `--engine` of `flatout write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WriteEngine {
    /// The fastest one known for this caching
    Auto,
    /// pwrite(2), one block at a time
    Sync,
    /// io_uring, several blocks at a time
    Uring,
}

/// `--data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataChoice {
    /// Incompressible; no two blocks alike
    Random,
    /// Zero bytes
    Zero,
    /// Each 8-byte word holds its own offset
    Pattern,
}

/// `--sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SyncChoice {
    /// Never
    None,
    /// Once, at the end
    End,
    /// After each block
    Each,
}

impl Write {
    /// The job.
    pub fn job(&self, cancel: CancelToken) -> Job {
        let engine = match self.engine {
            WriteEngine::Auto => EngineChoice::Auto,
            WriteEngine::Sync => EngineChoice::Sync,
            WriteEngine::Uring => EngineChoice::Uring,
        };
        Job {
            path: self.file.clone(),
            wishes: self.moving.wishes(engine, None),
            block_count: self.moving.block_count,
            data: match self.data {
                DataChoice::Random => Data::Random,
                DataChoice::Zero => Data::Zero,
                DataChoice::Pattern => Data::Pattern,
            },
            sync: match self.sync {
                SyncChoice::None => Sync::None,
                SyncChoice::End => Sync::End,
                SyncChoice::Each => Sync::Each,
            },
            existing: if self.overwrite { Existing::Overwrite } else { Existing::Refuse },
            seed: self.seed,
            cancel,
        }
    }
}
