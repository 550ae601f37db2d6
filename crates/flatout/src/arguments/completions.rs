//! `flatout completions`.

use clap::{Args, ValueEnum};

const AFTER: &str = include_str!("help/completions.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
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
