//! `flatout versus`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use flatout_bench::versus::commands::{Command, Commands};
use flatout_bench::versus::{State, Trees, copy};

use super::shared::Output;
use flatout_bench::option::{count_to, each_once, size, time};

const AFTER: &str = include_str!("help/versus.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct Versus {
    /// Whom to race [default: all that are installed]
    #[arg(value_name = "RIVAL")]
    pub rivals: Vec<String>,
    /// Where the files of the race lie [default: the current directory]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true,
        value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Race exactly so many rounds [default: at least 6, until the ratios are precise]
    #[arg(short = 'n', long = "runs", aliases = ["rounds", "trials"], value_name = "N",
        value_parser = count_to(10_000))]
    pub rounds: Option<u32>,
    /// Time for everything, from making files to removing targets; ratios that are not precise by
    /// then say so, and the longest races are left out where there is no time for all
    /// [default: what about ten rounds take]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<u64>,
    /// Never write more than this; every copy counts [default: files in 10 % of the free space, as often
    /// as there is time]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_write: Option<u64>,
    /// Small files and 3 rounds: no 95 % interval, so nobody wins or loses
    #[arg(long)]
    pub quick: bool,
    /// Race in the cold state too; the same as --state warm,cold
    #[arg(long, conflicts_with = "state")]
    pub cold: bool,
    /// States in which the work begins, or must end
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', default_value = "warm")]
    state: Vec<State>,
    #[command(flatten)]
    asked: Trees,
    /// Race commands of your own, this one against the first that is given, instead of rivals; sh gets
    /// them where one needs it
    #[arg(long = "command", value_name = "NAME=COMMAND", help_heading = "Any commands",
        value_parser = OsStringValueParser::new().try_map(Command::named),
        conflicts_with_all = ["rivals", "directory", "max_write", "cold", "state", "file_size", "files",
            "tree_depth", "corpus", "tree", "no_preserve", "order", "list", "keep", "clean"])]
    pub commands: Vec<Command>,
    /// Give COMMAND to sh before each run, outside of its time
    #[arg(long, value_name = "COMMAND", help_heading = "Any commands")]
    before: Option<OsString>,
    /// Matrices: their orders [default: 500,1000,2000,4000,6000]
    #[arg(long, value_name = "N,…", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub order: Vec<u64>,
    /// Seed of all random orders and data [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Show all rivals with their version or package, and race nobody
    #[arg(long)]
    pub list: bool,
    /// Keep what is read in DIR, for the next race
    #[arg(long, conflicts_with_all = ["list", "clean"])]
    pub keep: bool,
    /// Remove everything that races left in DIR, and race nobody
    #[arg(long, conflicts_with = "list")]
    pub clean: bool,
    #[command(flatten)]
    pub output: Output,
}

impl Versus {
    /// The states asked for, each once.
    pub fn states(&self) -> Vec<State> {
        let mut states = self.state.clone();
        states.extend(self.cold.then_some(State::Cold));
        each_once(&mut states);
        states
    }

    /// What is raced instead of rivals.
    pub fn commands(&self) -> Commands {
        let (commands, before) = (self.commands.clone(), self.before.clone());
        Commands { commands, before, ..Commands::default() }
    }

    /// What copiers are to work on. Where everybody races, and not quickly, they get less than when
    /// they are named.
    pub fn trees(&self) -> Trees {
        if !self.rivals.is_empty() || self.quick || self.asked != Trees::default() {
            return self.asked.clone();
        }
        Trees { corpora: copy::BESIDE_OTHERS.map(str::to_owned).to_vec(), ..Trees::default() }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn parsed(words: &[&str]) -> Versus {
        let argv = ["flatout", "versus"].iter().chain(words);
        match Arguments::try_parse_from(argv).unwrap().command {
            Command::Versus(versus) => *versus,
            other => panic!("{other:?}"),
        }
    }

    fn states(words: &[&str]) -> Vec<State> {
        parsed(words).states()
    }

    #[test]
    fn copiers_get_less_to_do_where_nobody_is_named_and_nothing_asked_for() {
        let corpora = |words: &[&str]| parsed(words).trees().corpora;
        assert_eq!(corpora(&[]), copy::BESIDE_OTHERS);
        assert_eq!(corpora(&["--cold"]), copy::BESIDE_OTHERS);
        assert_eq!(corpora(&["--corpus", "large"]), ["large"]);
        for words in [&["cp-a"][..], &["--quick"], &["--files", "5"], &["--tree", "/t"]] {
            assert!(corpora(words).is_empty(), "{words:?}");
        }
    }

    #[test]
    fn states_are_warm_unless_something_else_is_asked_for() {
        assert_eq!(states(&[]), [State::Hot]);
        assert_eq!(states(&["--cold"]), [State::Hot, State::Cold]);
        assert_eq!(states(&["--state", "refresh,cold,cold"]), [State::Cold, State::Refresh]);
    }
}
