//! `flatout compute`: not shown in the help; what `versus` races against OpenBLAS and STREAM.

use std::path::PathBuf;

use clap::Args;
use flatout_bench::compute::{Job, Work};
use flatout_bench::option::{Words, time, words};
use flatout_sys::stream::Kernel;

/// What is timed.
const WORK: &Words<Work> = &[
    ("product", Work::Product, "Product of two matrices"),
    ("factor", Work::Factor, "LU factorisation"),
    ("copy", Work::Stream(Kernel::Copy), "c = a"),
    ("scale", Work::Stream(Kernel::Scale), "b = q c"),
    ("add", Work::Stream(Kernel::Add), "c = a + b"),
    ("triad", Work::Stream(Kernel::Triad), "a = b + q c"),
];

#[derive(Debug, Clone, Args)]
pub struct Compute {
    /// What is timed
    #[arg(value_parser = words(WORK))]
    pub what: Work,
    /// Order of the matrices, or elements of each array of a stream
    #[arg(long, value_name = "N")]
    pub order: u64,
    /// Threads
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// Time of the repetitions together
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub duration: u64,
    /// Seed of the numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The library that does it instead of flatout: OpenBLAS
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// Streams as the plain loops of STREAM
    #[arg(long)]
    pub plain: bool,
}

impl Compute {
    pub fn job(&self) -> Job {
        let Self { what: work, order, threads, seed, duration: time_ns, plain, .. } = *self;
        Job { work, order, threads, seed, time_ns, library: self.library.clone(), plain }
    }
}
