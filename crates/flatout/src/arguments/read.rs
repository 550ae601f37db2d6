//! `flatout read`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use flatout_bench::choice::{self, Wishes};
use flatout_bench::option::{SPLIT, Wish, count_to, time, words};
use flatout_bench::read::{CacheStart, Clearing, DigestKind, Job, Limit};
use flatout_io::{Engine, MachineProfile, Split};
use flatout_sys::cancel::CancelToken;

use super::shared::{ENGINES, Moving, Output, path, repeated};

const AFTER: &str = include_str!("help/read.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Read {
    /// Files to read, one after the other; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_parser = path())]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub moving: Moving,
    /// How the kernel is asked for bytes
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = words(ENGINES))]
    pub engine: Wish<Engine>,
    /// Which blocks a thread gets [default: see below]
    #[arg(long, value_name = "HOW", value_parser = words(SPLIT))]
    pub split: Option<Split>,
    /// Clear the file from the page cache first (written back, dropped, and proved), outside the
    /// timed region; before each pass and trial
    #[arg(long)]
    pub cold: bool,
    /// Stop after this time and say how far it got
    #[arg(short = 't', long = "time", aliases = ["duration", "runtime"], value_name = "TIME",
        value_parser = time, conflicts_with = "min_time")]
    pub duration: Option<u64>,
    /// Start with 1 block and double the count until a read takes this long; a file that is too
    /// short is passed over again, a stream is read on until all reads together take this long
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["block_count", "size"])]
    pub min_time: Option<u64>,
    /// What is computed of the bytes, inside the timed region
    #[arg(long, value_name = "DIGEST", default_value = "xor32")]
    pub digest: DigestKind,
    /// Read it N times; from 3 on there is a 95 % interval
    #[arg(short = 'n', long = "runs", aliases = ["trials", "rounds"], value_name = "N",
        default_value_t = 1,
        value_parser = count_to(100_000))]
    pub trials: u32,
    #[command(flatten)]
    pub output: Output,
}

impl Read {
    fn blocks(&self) -> Result<(Option<u64>, Option<u64>), String> {
        match self.length_bytes() {
            Some(_) => Ok((None, None)),
            None => self.moving.blocks(choice::MMAP_BLOCK_BYTES),
        }
    }

    /// Bytes that are asked for without a word about blocks, where blocks of any engine divide them.
    fn length_bytes(&self) -> Option<u64> {
        let size = self.moving.size.filter(|_| self.moving.block_size.is_none());
        size.filter(|size| size.is_multiple_of(choice::MMAP_BLOCK_BYTES))
    }

    /// Says what cannot be read.
    pub fn contradiction(&self) -> Option<String> {
        self.blocks().err().or_else(|| repeated(&self.files))
    }

    /// The job for one of the files.
    pub fn job(
        &self,
        file: &std::path::Path,
        profile: Option<Arc<MachineProfile>>,
        cancel: CancelToken,
    ) -> Job {
        let (block_count, block_bytes) = self.blocks().unwrap_or_default();
        let limit = match (self.duration, self.min_time) {
            (Some(ns), _) => Limit::Duration(ns),
            (None, Some(ns)) => Limit::MinTime(ns),
            (None, None) => Limit::Blocks,
        };
        Job {
            path: file.to_owned(),
            wishes: Wishes { block_bytes, ..self.moving.wishes(self.engine, self.split) },
            block_count,
            length_bytes: self.length_bytes(),
            limit,
            state: if self.cold { CacheStart::Cold(Clearing::File) } else { CacheStart::AsItIs },
            digest: self.digest,
            profile,
            cancel,
        }
    }
}
