//! `flatout write`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use flatout_bench::choice::{self, Wishes};
use flatout_bench::option::{Wish, Words, words};
use flatout_bench::write::{Data, Job, Sync};
use flatout_io::{Engine, Existing, MachineProfile};
use flatout_sys::cancel::CancelToken;

use super::shared::{Moving, Output, path};

const AFTER: &str = include_str!("help/write.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Write {
    /// The file to write
    #[arg(value_name = "FILE", value_parser = path())]
    pub file: PathBuf,
    #[command(flatten)]
    pub moving: Moving,
    /// How the kernel is handed the bytes
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = words(ENGINES))]
    pub engine: Wish<Engine>,
    /// What the blocks hold
    #[arg(long, value_name = "DATA", default_value = "random")]
    pub data: Data,
    /// When the bytes must be durable: never, at the end, after each block
    #[arg(long, value_name = "WHEN", default_value = "end")]
    pub sync: Sync,
    /// Write over an existing file, in place; it gets the length of the new data
    #[arg(long)]
    pub overwrite: bool,
    /// Seed of random data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: Output,
}

/// `--engine`.
const ENGINES: &Words<Wish<Engine>> = &[
    ("auto", None, "The fastest one known for this caching"),
    ("sync", Some(Engine::Sync), "pwrite(2), one block at a time"),
    ("uring", Some(Engine::Uring), "io_uring, several blocks at a time"),
];

impl Write {
    /// Says what cannot be written.
    pub fn contradiction(&self) -> Option<String> {
        if self.file.as_os_str() == "-" {
            return Some("write makes a file: standard output is none; ./- is a file".to_owned());
        }
        self.blocks().err()
    }

    fn blocks(&self) -> Result<(Option<u64>, Option<u64>), String> {
        self.moving.blocks(choice::default_write_block(&self.moving.wishes(self.engine, None)))
    }

    /// The job.
    pub fn job(&self, profile: Option<Arc<MachineProfile>>, cancel: CancelToken) -> Job {
        let (block_count, block_bytes) = self.blocks().unwrap_or_default();
        Job {
            path: self.file.clone(),
            wishes: Wishes { block_bytes, ..self.moving.wishes(self.engine, None) },
            block_count,
            data: self.data,
            sync: self.sync,
            existing: if self.overwrite { Existing::Overwrite } else { Existing::Refuse },
            seed: self.seed,
            profile,
            cancel,
        }
    }
}
