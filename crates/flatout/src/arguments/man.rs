//! `flatout man`.

use clap::Args;

const AFTER: &str = "\
Examples:
  flatout man | man -l -                  read it
  flatout man bench disk | man -l -       that of an area
  flatout man > ~/.local/share/man/man1/flatout.1
  flatout man copy > ~/.local/share/man/man1/flatout-copy.1";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct Man {
    /// The command, and an area of bench [default: flatout, which lists the commands]
    #[arg(value_name = "COMMAND")]
    pub words: Vec<String>,
}
