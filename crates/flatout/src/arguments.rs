//! What the command line can say. One definition yields parser, help and errors; a file per
//! command.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod copy;
pub mod cp;
pub mod help;
mod in_order;
mod plain;
pub mod read;
pub mod refusal;
pub mod report;
pub mod serve;
pub mod shared;
pub mod similar;
pub mod sum;
pub mod transfer;
pub mod tune;
pub mod versus;
pub mod write;
mod wrong;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use refusal::Refusal;
use shared::Talk;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "flatout",
    version,
    about = "Measures how fast a Linux machine really is, and moves data that fast",
    after_help = include_str!("arguments/help/flatout.txt").trim_ascii_end(),
    max_term_width = MOST_COLUMNS,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    /// Where a launcher (mpirun, srun) starts this several times: each does all of the work
    #[arg(long, global = true, hide = true)]
    pub single: bool,
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
            Command::Cp(cp) => cp.contradiction(),
            Command::Sum(sum) => sum.contradiction(),
            Command::Read(read) => read.contradiction(),
            Command::Report(report) => shared::repeated(&report.files),
            Command::Write(write) => write.contradiction(),
            _ => None,
        }
        .map_or(Ok(self), |text| Err(Self::command().error(ErrorKind::ArgumentConflict, text)))
    }
}

/// What to do, in the order in which it is shown. A command's options are defined when it is the one
/// that was named: each start of the program pays for one command, not for all.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Measure this machine's limits: disk, CPU, memory, network, …
    Bench(Box<bench::Bench>),
    /// Read files flat out; print digest and rate
    Read(Box<read::Read>),
    /// Write a file flat out; print the rate to cache and the durable rate
    Write(Box<write::Write>),
    /// Copy files and trees, as faithfully as cp -a
    Copy(Box<copy::Copy>),
    /// Copy files and trees with the options and the rules of GNU cp
    Cp(Box<cp::Cp>),
    /// Print or check the digests of files and trees
    Sum(sum::Sum),
    /// Race other programs that are installed, side by side with flatout
    Versus(Box<versus::Versus>),
    /// Compare results, with statistics and a verdict per row
    Compare(Box<compare::Compare>),
    /// Find the best settings of a place, and save them for copy, read and sum
    Tune(Box<tune::Tune>),
    /// Show what a run left, in this or another form
    Report(report::Report),
    /// Be the far end of `flatout bench network`
    Serve(serve::Serve),
    /// Print what a shell needs to complete command lines of flatout
    Completions(completions::Completions),
    /// Print the help of a command, or of an area of bench
    #[command(after_help = help::AFTER)]
    Help(help::Page),
    /// Print the manual page
    #[command(after_help = include_str!("arguments/help/man.txt").trim_ascii_end())]
    Man(help::Page),
    /// Time one product of matrices, factorisation or stream through memory
    #[command(hide = true)]
    Compute(flatout_bench::compute::Job),
    /// Move the bytes of one file into another, block by block, as dd does
    #[command(hide = true)]
    Transfer(transfer::Transfer),
}

impl Command {
    /// How much is to be said besides, and how it looks.
    pub fn talk(&self) -> Option<&Talk> {
        Some(match self {
            Self::Bench(bench) => &bench.output.talk,
            Self::Read(read) => &read.output.talk,
            Self::Write(write) => &write.output.talk,
            Self::Versus(versus) => &versus.output.talk,
            Self::Compare(compare) => &compare.talk,
            Self::Tune(tune) => &tune.output.talk,
            Self::Report(report) => &report.output.talk,
            _ => return None,
        })
    }

    /// Whether it is over at once: then it dies of a signal as anything does, and several processes
    /// are not in each other's way.
    pub fn is_brief(&self) -> bool {
        match self {
            // It makes no runs.
            Self::Compare(it) => it.runs.is_none() && !(it.noise && it.files.is_empty()),
            Self::Completions(_) | Self::Compute(_) | Self::Help(_) => true,
            Self::Man(_) | Self::Report(_) => true,
            _ => false,
        }
    }
}

/// The definition as it is shown: areas as commands of bench, and nothing that is hidden, which
/// generators of completions do not leave out.
pub fn shown_definition() -> clap::Command {
    let whole = Arguments::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let commands = commands.enumerate().map(|(at, command)| {
        match command.get_about() {
            Some(about) if command.get_name() == "bench" => bench::shown(&[]).about(about.clone()),
            _ => command,
        }
        .display_order(at)
    });
    let program = clap::Command::new("flatout").disable_help_subcommand(true);
    let program = program.version(env!("CARGO_PKG_VERSION")).max_term_width(MOST_COLUMNS);
    let program = program.arg_required_else_help(true).subcommand_required(true);
    let about = whole.get_about().cloned().unwrap_or_default();
    let after = whole.get_after_help().cloned().unwrap_or_default();
    program.about(about).after_help(after).subcommands(commands)
}

/// Columns of a help text, however wide the terminal is.
const MOST_COLUMNS: usize = 100;

/// The version, where nothing else is asked for. Scripts do so before each use: making a definition of
/// all commands would be a third of the answer's cost.
pub fn version(mut argv: impl Iterator<Item = OsString>) -> Option<&'static str> {
    let name = argv.next()?;
    let is_it = argv.next().is_some_and(|word| word == "--version" || word == "-V");
    (is_it && argv.next().is_none() && !help::is_cp(&name)).then_some(concat!(
        "flatout ",
        env!("CARGO_PKG_VERSION"),
        "\n"
    ))
}

/// Reads the command line.
pub fn parse(argv: impl Iterator<Item = OsString>) -> Result<Arguments, Box<Refusal>> {
    let argv = as_cp(argv.collect());
    let parsed = plain::read(&argv).map_or_else(|| Arguments::try_parse_from(&argv), Ok);
    let parsed = parsed.and_then(Arguments::checked);
    parsed.map_err(|error| Box::new(Refusal { error, argv }))
}

/// The name by which the program is cp, and the command that is the same.
pub const CP: &str = "cp";

/// The words of a command line; where the program was called as cp, or is told to be, as cp takes
/// them.
fn as_cp(mut argv: Vec<OsString>) -> Vec<OsString> {
    if argv.first().is_some_and(help::is_cp) {
        argv.splice(..1, ["flatout".into(), CP.into()]);
    }
    let letters: [&[u8]; 2] = match argv.get(1).and_then(|word| word.to_str()) {
        Some(CP) => [b"St", b""],
        Some("copy") => [b"S", b"jot"],
        _ => return argv,
    };
    let rest = cp::in_order(argv.split_off(2), letters);
    argv.extend(rest);
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_version_is_that_of_the_definition() {
        let version = |words: [&str; 2]| version(words.map(OsString::from).into_iter());
        for word in ["--version", "-V"] {
            let defined = Arguments::try_parse_from(["flatout", word]).unwrap_err();
            assert_eq!(version(["x/flatout", word]), Some(&*defined.to_string()));
        }
        assert!(version(["cp", "--version"]).is_none() && version(["flatout", "cp"]).is_none());
    }

    #[test]
    fn names_that_hands_know_and_older_ones_are_the_same_options() {
        // A command, and options of it by their names, each with others for it.
        let table: [(&str, &[(&str, &str)]); 12] = [
            ("bench", &[("--runs 2", "-n 2|--rounds 2|--trials 2"), ("--output f", "-o f")]),
            ("bench disk", &[("--rw read", "--pattern read"), ("--rwmixread 5", "--mix 5")]),
            ("bench disk", &[("--block-size 4K", "-b 4K|--bs 4K"), ("--size 1M", "--bytes 1M")]),
            ("bench disk", &[("--iodepth 2", "--depth 2"), ("--threads 2", "-j 2|--numjobs 2")]),
            ("bench cpu memory", &[("--threads 2", "-j 2|--numjobs 2"), ("--quiet", "-q")]),
            ("bench network -c h", &[("--streams 2", "-P 2"), ("--port 9", "-p 9")]),
            ("bench network", &[("--connect h", "-c h"), ("--reverse", "-R"), ("--verbose", "-v")]),
            ("read f", &[("--block-size 4K", "-b 4K|--bs 4K"), ("--runs 2", "-n 2|--trials 2")]),
            ("write f", &[("--iodepth 2", "--depth 2"), ("--threads 2", "-j 2")]),
            ("copy a b", &[("--iodepth 2", "--depth 2"), ("--itemize", "--itemize-changes")]),
            ("sum f", &[("--threads 2", "-j 2"), ("--output f", "-o f")]),
            ("serve", &[("--port 9", "-p 9"), ("--once", "-1")]),
        ];
        let more = ["bench disk", "bench network", "read f"]
            .map(|command| (command, ("--time 2", "-t 2|--runtime 2|--duration 2")));
        let runs = ["versus", "tune", "compare a b"]
            .map(|command| (command, ("--runs 9", "-n 9|--rounds 9|--trials 9")));
        let table =
            table.iter().flat_map(|(command, names)| names.iter().map(|one| (*command, *one)));
        for (command, (name, others)) in table.chain(more).chain(runs) {
            let parsed = |options: &str| {
                let line = format!("flatout {command} {options}");
                let parsed = Arguments::try_parse_from(line.split_whitespace());
                format!("{:?}", parsed.unwrap_or_else(|error| panic!("{line}: {error}")))
            };
            for other in others.split('|') {
                assert_eq!(parsed(other), parsed(name), "{command} {other}");
            }
            assert_ne!(parsed(name), parsed(""), "{command} {name}");
        }
    }
}
