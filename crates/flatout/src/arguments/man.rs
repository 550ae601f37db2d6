//! `flatout man`.

use clap::Args;

const AFTER: &str = include_str!("help/man.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct Man {
    /// The command, and an area of bench [default: flatout, which lists the commands]
    #[arg(value_name = "COMMAND")]
    pub words: Vec<String>,
}
