//! `flatout compute`: not shown in the help; what `versus` races against OpenBLAS and STREAM.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use flatout_bench::compute::{Job, Work};
use flatout_bench::option::time;
use flatout_sys::stream::Kernel;

/// What is timed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum What {
    Product,
    Factor,
    Copy,
    Scale,
    Add,
    Triad,
}

#[derive(Debug, Clone, Args)]
pub struct Compute {
    /// What is timed
    #[arg(value_enum)]
    pub what: What,
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
        let work = match self.what {
            What::Product => Work::Product,
            What::Factor => Work::Factor,
            What::Copy => Work::Stream(Kernel::Copy),
            What::Scale => Work::Stream(Kernel::Scale),
            What::Add => Work::Stream(Kernel::Add),
            What::Triad => Work::Stream(Kernel::Triad),
        };
        let Self { order, threads, seed, duration: time_ns, plain, .. } = *self;
        Job { work, order, threads, seed, time_ns, library: self.library.clone(), plain }
    }
}
