//! `flatout tune`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Output;
use flatout_bench::option::{count_to, size, time};

const AFTER: &str = include_str!("help/tune.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Tune {
    /// Where to measure, four at most [default: the current directory]
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true,
        value_hint = clap::ValueHint::DirPath)]
    pub directories: Vec<PathBuf>,
    /// Smaller files and fewer trials
    #[arg(long)]
    pub quick: bool,
    /// Try each setting exactly so often, whatever time it takes unless --max-time is given
    /// [default: 6 to 12 times, with --quick 3]
    #[arg(short = 'n', long = "runs", aliases = ["rounds", "trials"], value_name = "N",
        value_parser = count_to(10_000))]
    pub rounds: Option<u32>,
    /// Time for everything, from making files to removing them; figures that are not precise by
    /// then say so, and settings for which there is none are left out
    /// [default: 60s for each directory, 25s for each way between two; with --quick a sixth]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<u64>,
    /// Never write more than this; every trial counts [default: files in 10 % of the free space, as often
    /// as there is time]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_write: Option<u64>,
    /// Leave the profile as it is
    #[arg(long)]
    pub no_save: bool,
    /// Seed of all random orders and data [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub output: Output,
}
