//! `flatout bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::quantity::{size, time};
use super::shared::Output;

const AFTER: &str = "\
Areas:
  cache     rate over block sizes 1 B … 4 MiB and over threads; engines sync, mmap, uring; hot and
            cold; the series first read, again, after clearing
  syscall   nanoseconds per system call, with private and shared descriptors
Without an AREA a short set of all runs: at most 60 rows and 90 s. A named AREA runs its full
grid; --quick shortens it.

It needs no root and disturbs nobody: it writes one unnamed temporary file in DIRECTORY, says
beforehand how many bytes and how long, and never takes more than 10 % of the free space. Bare
`flatout bench` leaves flatout-DATE.json and flatout-DATE.html in the current directory.

Cold rows: the file is written back (fsync), dropped from the page cache (POSIX_FADV_DONTNEED),
and that it is gone is proved (cachestat). --drop-caches also drops the caches of the whole system
by writing to /proc/sys/vm/drop_caches, which needs root and slows everybody down for a while:
  1  drops clean page-cache pages: file contents
  2  drops dentries and inodes: names and attributes, and the bitmaps that hang on them
  3  drops both. A cold read in real life finds neither the contents nor the block map that the
     inode holds; after 1 the map is still there, after 2 the contents are. Hence 3.
None of them drops dirty pages: those are synced first.

Examples:
  flatout bench                     the short set, with a report page
  flatout bench cache --quick       the page cache, a coarse grid
  flatout bench syscall --format json --output syscall.json";

/// `flatout bench`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Bench {
    /// What to measure [default: a short set of everything]
    #[arg(value_name = "AREA")]
    pub areas: Vec<Area>,
    /// A coarser grid and fewer trials
    #[arg(long)]
    pub quick: bool,
    /// Where the temporary files are made [default: the current directory]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub directory: PathBuf,
    /// Time for all trials together; figures that are not precise by then say so
    /// [default: 65s in all; cache 240s, syscall 120s; with --quick 25s; 30s, 15s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<u64>,
    /// Never write more than this
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_write: Option<u64>,
    /// Bytes per read, pread and write of the syscall area
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1")]
    pub block_size: u64,
    /// Drop the caches of the whole system before cold rows; needs root
    #[arg(long)]
    pub drop_caches: bool,
    /// Seed of all random orders and data [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Area {
    /// The page cache
    Cache,
    /// System calls
    Syscall,
}

impl Area {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Syscall => "syscall",
        }
    }
}
