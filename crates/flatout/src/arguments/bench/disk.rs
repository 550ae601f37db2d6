//! The options of the disk area.

use clap::Args;
use flatout_bench::disk::{Pattern, Selection};
use flatout_io::{Engine, Split};

use crate::arguments::quantity::{rate, time};
use crate::arguments::shared::{CachingChoice, SplitChoice};

/// Options that only the disk area knows.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Disk area")]
pub struct Disk {
    /// What to do to the file, several separated by commas: sequential-read, sequential-write,
    /// sequential-copy, random-read, random-write, mixed, backward-read, strided-read, reread,
    /// cold-blocks, metadata [default: a short plan of throughput, operations per second and latency]
    #[arg(long, value_name = "PATTERN,…", value_parser = pattern, value_delimiter = ',')]
    pub pattern: Vec<Pattern>,
    /// The whole grid: see below
    #[arg(long)]
    pub matrix: bool,
    /// Requests in flight per thread; several make a sweep [default: 16 sequential, 64 random; of
    /// the matrix 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub depth: Vec<u32>,
    /// How the kernel is asked: sync (pread, pwrite) or uring [default: uring]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Engine>,
    /// How the page cache takes part [default: direct]
    #[arg(long, value_name = "HOW")]
    pub caching: Option<CachingChoice>,
    /// Which blocks a thread gets in sequential patterns [default: contiguous]
    #[arg(long, value_name = "HOW")]
    pub split: Option<SplitChoice>,
    /// Time of each trial [default: 500ms; of the matrix 400ms; 200ms with --quick]. Given, trials
    /// that write are limited by it and --max-write alone [default then: 100 GB]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub runtime: Option<u64>,
    /// Operations per second, all threads together: an open loop, whose latencies count from the
    /// intended start. Of the network area: bytes per second, all streams of a direction together
    /// (as 12.5MB), or, with --measure latency, questions per second
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// Reads of a hundred operations of the pattern mixed [default: 70]
    #[arg(long, value_name = "PERCENT")]
    pub mix: Option<u8>,
    /// Write over the FILE given: its content is lost
    #[arg(long)]
    pub overwrite: bool,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse()
}

impl Disk {
    /// What the user fixed; each pattern counts once.
    pub fn selection(&self, block_bytes: &[u64], threads: &[u32]) -> Selection {
        let mut patterns: Vec<Pattern> = Vec::new();
        for &pattern in &self.pattern {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        let each_once = |list: &[u32]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list.dedup();
            list
        };
        let mut block_bytes = block_bytes.to_vec();
        block_bytes.sort_unstable();
        block_bytes.dedup();
        Selection {
            patterns,
            block_bytes,
            threads: each_once(threads),
            depths: each_once(&self.depth),
            engine: self.engine,
            caching: self.caching.and_then(CachingChoice::wish),
            split: self.split.map(|split| match split {
                SplitChoice::Contiguous => Split::Contiguous,
                SplitChoice::Interleaved => Split::Interleaved,
            }),
            rate_per_s: self.rate,
            read_percent: self.mix,
        }
    }
}
