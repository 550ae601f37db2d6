//! The options of the cpu area.

use clap::Args;

/// Options that only the cpu area knows.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cpu area")]
pub struct Cpu {
    /// Order of the matrices of Linpack and DGEMM [default: what time and memory allow]
    #[arg(long, value_name = "N")]
    pub order: Option<u64>,
    /// Trials of Linpack, as the time allows [default: 10]
    #[arg(long, value_name = "N")]
    pub trials: Option<u32>,
}
