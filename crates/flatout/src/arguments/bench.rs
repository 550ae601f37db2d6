//! `flatout bench`: the options that all areas share. Those of an area are defined where the area
//! is, in `flatout_bench`; the areas: `bench/area.rs`.

mod area;

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Args, Command, ValueEnum, ValueHint};
use flatout_bench::cache::Clearing;
use flatout_bench::option::{count_to, each_once, flag, size, time};
use flatout_io::escape;
use flatout_report::text::Joined;

use super::shared::{Output, path};
use area::Areas;

pub use area::Name;

#[derive(Debug, Clone, Args)]
#[command(allow_negative_numbers = true)]
pub struct Bench {
    #[command(flatten)]
    pub areas: Areas,
    /// What to measure, and where the disk and the copy area do it.
    #[arg(value_name = "AREA|PLACE", value_parser = path())]
    words: Vec<PathBuf>,
    /// A coarser grid and fewer runs
    #[arg(long)]
    pub quick: bool,
    /// Run each row N times [default: until it is precise]
    #[arg(short = 'n', long = "runs", aliases = ["rounds", "trials"], value_name = "N",
        value_parser = count_to(10_000))]
    pub rounds: Option<u32>,
    /// Time for everything [default: 90s; by area]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<u64>,
    /// Never write more than this to files; every copy counts
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_write: Option<u64>,
    /// Where the temporary files are made [default: here]
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true,
        value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Drop the system's caches before cold rows; needs root
    #[arg(long, action = ArgAction::SetTrue, value_parser = flag([Clearing::File, Clearing::System]))]
    drop_caches: Clearing,
    /// Seed of orders and data [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Show the rows as they converge; q stops in order
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub live: bool,
    #[command(flatten)]
    pub output: Output,
    /// Beside figures: the range of earlier records in DIR
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub history: Option<PathBuf>,
}

/// The definition as help, completions and pages show it: without areas the options that all know,
/// with the areas as commands; with areas their options, too.
pub fn shown(areas: &[Name]) -> Command {
    let is_own = |argument: &&Arg| Name::owners(argument.get_id().as_str()).is_empty();
    let whole = Bench::augment_args(Command::new("bench"));
    let common = whole.get_arguments().filter(is_own).filter(|argument| !argument.is_positional());
    let common = common.cloned();
    let [first, ..] = areas else {
        let each = Name::value_variants().iter().map(|name| shown(&[*name]));
        return Command::new("bench")
            .override_usage("flatout bench [OPTIONS] [AREA]... [PLACE]")
            .subcommand_help_heading("Areas")
            .disable_help_subcommand(true)
            .subcommands(each)
            .args(common)
            .after_help(include_str!("help/bench.txt").trim_end());
    };
    let under = |argument: Arg| match argument.get_help_heading() {
        None => argument.help_heading("Common options"),
        Some(_) => argument,
    };
    let abouts =
        areas.iter().filter_map(|area| Some(area.to_possible_value()?.get_help()?.to_string()));
    let command = Command::new(first.word()).about(abouts.joined("\n"));
    let command = command.args(area::arguments(areas)).args(common.map(under));
    let command = command.after_help(areas.iter().map(|area| area.notes()).joined("\n\n"));
    if !areas.iter().any(|area| area.has_place()) {
        return command;
    }
    let place = Arg::new("place").value_name("PLACE").value_hint(ValueHint::AnyPath);
    command.arg(place.help("Where [default: the current directory]"))
}

/// Options of all areas that only some heed.
const COMMON: [(&str, &[Name]); 2] = [
    ("directory", &[Name::Cache, Name::Disk, Name::Syscall, Name::Copy]),
    ("drop_caches", &[Name::Cache, Name::Disk]),
];

/// How processes that were started together share an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Each measures its own machine.
    EachHost,
    /// They measure something that all of them use.
    Together,
}

impl Bench {
    /// What several processes do of it: all areas named are of one kind.
    pub fn among_processes(&self) -> Option<Among> {
        let kind = |name: &Name| match name {
            Name::Cpu | Name::Memory => Some(Among::EachHost),
            Name::Disk | Name::Network => Some(Among::Together),
            _ => None,
        };
        let names = self.names();
        let first = names.first().and_then(kind);
        first.filter(|_| names.iter().all(|name| kind(name) == first))
    }

    /// Refuses options of areas that several processes measure in rows of their own.
    ///
    /// Errors: one line that says which.
    #[cfg(feature = "mpi")]
    pub fn check_together(&self) -> Result<(), String> {
        const TAKEN: [&str; 3] = ["--time", "--size", "--block-size"];
        let known = |(option, _): &(String, _)| TAKEN.contains(&option.as_str());
        match self.given().find(|given| !known(given)) {
            Some((option, _)) => Err(format!(
                "{option} is for one process: where several measure together, {} are taken",
                TAKEN.join(", ")
            )),
            None => Ok(()),
        }
    }

    /// The areas named, each once, in the order of a report.
    pub fn names(&self) -> Vec<Name> {
        let mut areas: Vec<Name> = self.words.iter().filter_map(|word| area_of(word)).collect();
        each_once(&mut areas);
        areas
    }

    fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.words.iter().filter(|word| area_of(word).is_none())
    }

    /// What the disk area measures, and where the copy area works.
    pub fn place(&self) -> &PathBuf {
        self.places().next().unwrap_or(&self.directory)
    }

    /// The directory that `--directory` names.
    pub fn given_directory(&self) -> Option<&PathBuf> {
        self.areas.given().any(|id| id == "directory").then_some(&self.directory)
    }

    /// The files that are worked on.
    pub fn files(&self) -> Vec<PathBuf> {
        self.places().cloned().collect()
    }

    /// The options given that only some areas know, and these areas.
    fn given(&self) -> impl Iterator<Item = (String, Vec<Name>)> {
        let definition = Self::augment_args(Command::new("bench"));
        self.areas.given().filter_map(move |id| {
            let owners = Name::owners(id);
            let argument = definition.get_arguments().find(|argument| argument.get_id() == id)?;
            (!owners.is_empty())
                .then(|| (format!("--{}", argument.get_long().unwrap_or(id)), owners))
        })
    }

    /// Refuses words and options that belong to an area which is not measured.
    ///
    /// Errors: one line that says which, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let areas = self.names();
        let has_place = areas.iter().any(|area| area.has_place());
        for place in self.places() {
            let path = escape(place);
            let hint = match (place.to_str().and_then(Name::meant), path.as_str()) {
                (Some(meant), _) if !has_place || !place.exists() => {
                    format!("; did you mean '{}'?", meant.word())
                }
                _ if has_place => continue,
                (_, "help") => "; did you mean 'flatout help bench'?".to_owned(),
                (_, "all") => {
                    ": without one all are measured; did you mean 'flatout bench'?".to_owned()
                }
                _ => format!(
                    " ({}); a place is for disk and copy: flatout bench disk {path}",
                    Name::value_variants().iter().map(|area| area.word()).joined(", ")
                ),
            };
            return Err(format!("there is no area '{path}'{hint}"));
        }
        if let Some(second) = self.places().chain(self.given_directory()).nth(1) {
            return Err(format!(
                "one place is measured at a time, '{}' is one more",
                escape(second)
            ));
        }
        // All areas take these, so that they can be given for all of them together.
        let idle = COMMON.iter().filter(|(id, _)| self.areas.given().any(|given| given == *id));
        let idle = idle.filter(|_| !areas.is_empty());
        let idle = idle.map(|(id, areas)| (format!("--{}", id.replace('_', "-")), areas.to_vec()));
        for (option, owners) in idle.chain(self.given()) {
            if !owners.iter().any(|owner| areas.contains(owner)) {
                return Err(format!(
                    "{option} is for {}: flatout bench {} {option} …",
                    owners.iter().map(|area| area.word()).joined(", "),
                    owners[0].word()
                ));
            }
        }
        let takes_one = areas.contains(&Name::Syscall);
        if takes_one && self.areas.count("block_size") > 1 {
            return Err("--block-size takes one value where syscall is measured".to_owned());
        }
        Ok(())
    }
}

/// The area that a word names.
fn area_of(word: &Path) -> Option<Name> {
    word.to_str().and_then(Name::of)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn parsed(words: &[&str]) -> Bench {
        let argv = ["flatout", "bench"].iter().chain(words);
        match Arguments::try_parse_from(argv).unwrap().command {
            Command::Bench(bench) => *bench,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_are_areas_or_a_place() {
        let bench = parsed(&["syscall", "disk", "/data", "disk"]);
        assert_eq!(bench.names(), [Name::Disk, Name::Syscall]);
        assert_eq!(bench.place(), &PathBuf::from("/data"));
        assert!(bench.check().is_ok());
        assert_eq!(parsed(&["disk", "./cache"]).place(), &PathBuf::from("./cache"));
        assert_eq!(parsed(&["disk"]).place(), &PathBuf::from("."));
        let copy = parsed(&["copy", "/data", "--files", "9,1,9", "--file-size", "0,1K"]);
        assert_eq!((copy.names(), copy.place()), (vec![Name::Copy], &PathBuf::from("/data")));
        assert!(copy.check().is_ok());
    }

    #[test]
    fn what_belongs_to_the_disk_area_is_refused_without_it() {
        for words in [
            &["cahce"][..],
            &["/data"],
            &["syscall", "--pattern", "random-read"],
            &["--matrix"],
            &["disk", "/a", "/b"],
            &["disk", "syscall", "--block-size", "1,2"],
            &["--threads", "2"],
            &["cpu", "--bytes", "1G"],
            &["memory", "--order", "100"],
            &["disk", "--cold"],
            &["cpu", "--directory", "/"],
            &["memory", "network", "--directory", "/"],
            &["disk", "/a", "--directory", "/"],
            &["copy", "--drop-caches"],
        ] {
            assert!(parsed(words).check().is_err(), "{words:?}");
        }
        for words in [&["--directory", "/"][..], &["cpu", "syscall", "--directory", "/"]] {
            assert_eq!(parsed(words).check(), Ok(()), "{words:?}");
        }
        let refused = |words: &[&str]| parsed(words).check().unwrap_err();
        let said = refused(&["cpu", "--directory", "/"]);
        assert!(said.starts_with("--directory is for cache, disk, syscall, copy:"), "{said}");
        assert!(refused(&["cahce"]).contains("did you mean 'cache'?"));
        assert!(refused(&["/data"]).contains("cache, disk, syscall, cpu, memory, network, copy"));
        assert!(refused(&["ram"]).contains("did you mean 'memory'?"));
        assert!(refused(&["disk", "cahce"]).contains("did you mean 'cache'?"));
    }
}
