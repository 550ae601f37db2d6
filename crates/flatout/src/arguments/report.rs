//! `flatout report`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Output;

#[derive(Debug, Clone, Args)]
#[command(after_help = include_str!("help/report.txt").trim_ascii_end())]
pub struct Report {
    /// What a run left; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    /// Say what is usual here: the range of the records of this machine in DIR, beside each figure
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub history: Option<PathBuf>,
}
