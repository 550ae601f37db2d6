//! `flatout tune`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Output;
use flatout_bench::option::{size, time};

const AFTER: &str = "\
For each directory it measures, with the code that does the work later, what its filesystem gives:
reading a large file that is cached, and one that is not; writing one until it is durable; copying
a large file and many small ones, from the cache and not. Each with several engines, block sizes,
depths and numbers of threads, in rounds of random order. The smallest settings that reach 98 % of
the best are saved, with the best rate as the limit. Copies are measured within each directory, and
between each two that are named.

`flatout read`, `sum` and `copy` use what was saved for the filesystem at hand, unless told
otherwise, and `copy` says at its end how close to the limit it ran. Settings belong to a machine,
its version of Linux and a filesystem, wherever that is mounted; measuring again replaces them.

The profile is the file that $FLATOUT_PROFILE names, else flatout/profile.json in $XDG_CONFIG_HOME
or ~/.config. FLATOUT_PROFILE= (empty) before a command makes it go without.

All files lie in DIR/.flatout-tune and are removed at the end. It needs no root.

Examples:
  flatout tune                    the filesystem of the current directory
  flatout tune /data --quick      shorter, with wider intervals
  flatout tune /data /backup      two, and copies from each to the other
  flatout tune --no-save          what there is to know, without a profile";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Tune {
    /// Where to measure [default: the current directory]
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true,
        value_hint = clap::ValueHint::DirPath)]
    pub directories: Vec<PathBuf>,
    /// Smaller files and fewer trials
    #[arg(long)]
    pub quick: bool,
    /// Try each setting exactly so often, whatever time it takes unless --max-time is given
    /// [default: 6 to 12 times, with --quick 3]
    #[arg(short = 'n', long = "runs", aliases = ["rounds", "trials"], value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Time for everything, from making files to removing them; figures that are not precise by
    /// then say so, and settings for which there is none are left out
    /// [default: 60s for each directory, 25s for each way between two; with --quick a sixth]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<u64>,
    /// Room that the files may take in each directory [default: 10 % of the free space]
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
