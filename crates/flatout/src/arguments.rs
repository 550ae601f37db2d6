//! What the command line can say. One definition yields parser, help and errors; a file per
//! command.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod copy;
pub mod man;
pub mod read;
pub mod report;
pub mod serve;
pub mod shared;
pub mod sum;
pub mod transfer;
pub mod tune;
pub mod versus;
pub mod write;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use shared::Output;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "flatout",
    version,
    about = "Measures how fast a Linux machine really is, and moves data that fast",
    after_help = "Sizes: 4096, 4K or 4KiB (1024), 4kB (1000), likewise M, G, T. Times: 500ms, 5s, 2m.\n\
                  Results go to standard output, progress and complaints to standard error.\n\
                  Exit codes: 0 done, 1 something failed, 2 wrong use, 130 interrupted.\n\
                  An interrupt ends a run in order; another one, more than a second later, at once.\n\
                  FLATOUT_INSTRUCTION_SET=sse2, sse4.1 or avx2 keeps kernels from wider vectors.\n\n\
                  Start with:  flatout bench",
    max_term_width = 100,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// Refuses options that make no sense together, where the definition cannot say so.
    fn checked(self) -> Result<Self, clap::Error> {
        match &self.command {
            Command::Compare(compare) => compare.contradiction(),
            Command::Copy(copy) => copy.contradiction(),
            Command::Sum(sum) => sum.contradiction(),
            Command::Recorded(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Report(_)
            | Command::Serve(_)
            | Command::Transfer(_) => None,
        }
        .map_or(Ok(self), |text| Err(Self::command().error(ErrorKind::ArgumentConflict, text)))
    }
}

/// What to do. A command's options are defined when it is the one that was named: each start of
/// the program pays for one command, not for all.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    #[command(flatten)]
    Recorded(Box<Recorded>),
    /// Print what a shell needs to complete command lines of flatout
    Completions(completions::Completions),
    /// Compare results, with statistics and a verdict per row
    Compare(compare::Compare),
    /// Copy files and trees, as faithfully as cp -a
    Copy(Box<copy::Copy>),
    /// Print the manual page
    Man(man::Man),
    /// Show what a run left, in this or another form
    Report(report::Report),
    /// Be the far end of `flatout bench network`
    Serve(serve::Serve),
    /// Print or check the digests of files and trees
    Sum(sum::Sum),
    /// Move the bytes of one file into another, block by block, as dd does
    #[command(hide = true)]
    Transfer(transfer::Transfer),
}

/// What leaves a record that is shown when it is complete.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Recorded {
    /// Measure this machine's limits: disk, page cache, system calls, CPU, memory, network
    Bench(bench::Bench),
    /// Read files flat out; print digest and rate
    Read(read::Read),
    /// Find the best settings of a place, and save them for copy, read and sum
    Tune(tune::Tune),
    /// Race other programs that are installed, side by side with flatout
    Versus(versus::Versus),
    /// Write a file flat out; print the rate to cache and the durable rate
    Write(write::Write),
}

impl Recorded {
    /// Where the results go, and in which form.
    pub fn output(&self) -> &Output {
        match self {
            Self::Bench(bench) => &bench.output,
            Self::Read(read) => &read.output,
            Self::Tune(tune) => &tune.output,
            Self::Versus(versus) => &versus.output,
            Self::Write(write) => &write.output,
        }
    }
}

impl Recorded {
    /// The files that are worked on.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Bench(bench) => bench.files(),
            Self::Read(read) => read.files.clone(),
            Self::Tune(_) | Self::Versus(_) => Vec::new(),
            Self::Write(write) => vec![write.file.clone()],
        }
    }

    /// The form of the results, for showing them on standard output whatever was asked for.
    pub fn shown(&self) -> Output {
        self.output().shown()
    }
}

/// The definition without what is hidden, for scripts and pages made of it: the generators of
/// completions do not leave hidden commands out.
pub fn shown_definition() -> clap::Command {
    let whole = Arguments::command();
    let commands: Vec<clap::Command> =
        whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let program = clap::Command::new("flatout").disable_help_subcommand(true);
    let program = program.version(env!("CARGO_PKG_VERSION"));
    let about = whole.get_about().cloned().unwrap_or_default();
    let after = whole.get_after_help().cloned().unwrap_or_default();
    program.about(about).after_help(after).subcommands(commands)
}

/// A command line that cannot be obeyed, or that asks for help.
pub struct Refusal {
    /// What clap has to say.
    pub error: clap::Error,
    /// Whether the command line asks for JSON, so that the refusal must be JSON too.
    pub wants_json: bool,
    /// The arguments.
    pub argv: Vec<OsString>,
}

/// Reads the command line.
pub fn parse(argv: impl Iterator<Item = OsString>) -> Result<Arguments, Box<Refusal>> {
    let argv: Vec<OsString> = argv.collect();
    Arguments::try_parse_from(&argv).and_then(Arguments::checked).map_err(|error| {
        let wants_json = asks_for_json(&argv);
        Box::new(Refusal { error, wants_json, argv })
    })
}

fn asks_for_json(argv: &[OsString]) -> bool {
    let pair = argv.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    pair || argv.iter().any(|argument| argument == "--format=json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn json_is_seen_even_in_a_command_line_that_makes_no_sense() {
        let argv = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(asks_for_json(&argv(&["flatout", "read", "--format", "json", "--wrong"])));
        assert!(asks_for_json(&argv(&["flatout", "--format=json"])));
        assert!(!asks_for_json(&argv(&["flatout", "read", "json"])));
    }
}
