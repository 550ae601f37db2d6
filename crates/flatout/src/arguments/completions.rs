//! `flatout completions`.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
#[command(after_help = include_str!("help/completions.txt").trim_ascii_end())]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Which shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU Bash, with the bash-completion package
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}
