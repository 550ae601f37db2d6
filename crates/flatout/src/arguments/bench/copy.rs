//! The options of the copy area.

use clap::Args;
use flatout_bench::copy::{Selection, State, Until};

use crate::arguments::quantity::size;

/// Options that only the copy area knows.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Copy area")]
pub struct Copy {
    /// Copy each tree exactly so often [default: at least 6 times, until its time is precise, at
    /// most 10; with --quick at least 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Length of each file; with --files and --tree-depth every combination is copied [default
    /// then: 1M]
    #[arg(long, value_name = "SIZE,…", value_parser = size, value_delimiter = ',')]
    pub file_size: Vec<u64>,
    /// Number of files [default beside --file-size or --tree-depth: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub files: Vec<u64>,
    /// Directories above them, each in the one before [default beside the other two: 0]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub tree_depth: Vec<u64>,
    /// Trees by name, as `flatout versus` has them: sizes, split-1G, split-32M, deep, single,
    /// memory, deviation, source-tree, 900x128K, 10x1M@5, …
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub corpus: Vec<String>,
    /// Copy what the page cache does not hold, instead of what it holds
    #[arg(long)]
    pub cold: bool,
    /// Besides, the time until storage has the copy
    #[arg(long)]
    pub durable: bool,
}

impl Copy {
    /// What is copied.
    pub fn selection(&self) -> Selection {
        let each_once = |list: &[u64]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list.dedup();
            list
        };
        Selection {
            corpora: self.corpus.clone(),
            file_bytes: each_once(&self.file_size),
            files: each_once(&self.files),
            depths: each_once(&self.tree_depth),
        }
    }

    /// What the page cache holds of it.
    pub fn state(&self) -> State {
        if self.cold { State::Cold } else { State::Hot }
    }

    /// When a copy is done.
    pub fn until(&self) -> Until {
        if self.durable { Until::Durable } else { Until::Cached }
    }
}
