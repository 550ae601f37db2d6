//! `flatout man`.

use clap::Args;

const AFTER: &str = "\
Examples:
  flatout man | man -l -                  read it
  flatout man copy | man -l -             that of a command
  flatout man > ~/.local/share/man/man1/flatout.1
  flatout man copy > ~/.local/share/man/man1/flatout-copy.1";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct Man {
    /// The page of this command [default: that of flatout, which lists the commands]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}
