//! The areas: a name each, and the type that is the area and has its options.

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use flatout_bench::{Area, cache, copy, cpu, disk, memory, network, syscall};

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Name {
    /// The page cache
    Cache,
    /// The disk
    Disk,
    /// System calls
    Syscall,
    /// The arithmetic units
    Cpu,
    /// Memory and its caches
    Memory,
    /// TCP and UDP
    Network,
    /// Trees of files
    Copy,
}

/// All areas, in the order of a report.
const ALL: [Entry; 7] = [
    entry::<cache::Options>(Name::Cache, "cache"),
    entry::<disk::Disk>(Name::Disk, "disk"),
    entry::<syscall::Options>(Name::Syscall, "syscall"),
    entry::<cpu::Options>(Name::Cpu, "cpu"),
    entry::<memory::Options>(Name::Memory, "memory"),
    entry::<network::Options>(Name::Network, "network"),
    entry::<copy::Copying>(Name::Copy, "copy"),
];

struct Entry {
    name: Name,
    word: &'static str,
    /// Adds the options that only this area defines.
    define: fn(Command) -> Command,
    /// The area as the options want it.
    make: fn(&ArgMatches) -> Result<Box<dyn Area>, clap::Error>,
}

const fn entry<A: Area + Args + 'static>(name: Name, word: &'static str) -> Entry {
    Entry { name, word, define: A::augment_args, make: make::<A> }
}

fn make<A: Area + Args + 'static>(matches: &ArgMatches) -> Result<Box<dyn Area>, clap::Error> {
    Ok(Box::new(A::from_arg_matches(matches)?))
}

impl Name {
    fn entry(self) -> &'static Entry {
        &ALL[self as usize]
    }

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        self.entry().word
    }

    /// The areas that know an option which not all know; none for one that all know.
    pub fn owners(id: &str) -> Vec<Self> {
        let defines = |entry: &&Entry| {
            let definition = (entry.define)(Command::new("area"));
            definition.get_arguments().any(|argument| argument.get_id() == id)
        };
        match id {
            "threads" => vec![Self::Disk, Self::Cpu, Self::Memory],
            "rate" => vec![Self::Disk, Self::Network],
            "bytes" => vec![Self::Disk, Self::Memory, Self::Network],
            _ => ALL.iter().filter(defines).map(|entry| entry.name).collect(),
        }
    }
}

/// Where the help lists the options that areas have for themselves.
#[derive(Debug, Clone)]
pub struct Own;

impl FromArgMatches for Own {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl Args for Own {
    fn augment_args(command: Command) -> Command {
        // With its options clap takes what an area is for what the command does.
        let about = command.get_about().cloned();
        let command = ALL.iter().fold(command, |command, entry| (entry.define)(command));
        command.about(about.unwrap_or_default())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// All options, as they were given. It stands before all others, which take theirs away.
#[derive(Debug, Clone)]
pub struct Areas(ArgMatches);

impl Areas {
    /// An area as the options want it; nothing is looked at yet.
    ///
    /// Errors: none that parsing the command line would not have found.
    pub fn make(&self, name: Name) -> Result<Box<dyn Area>, clap::Error> {
        (name.entry().make)(&self.0)
    }

    /// The options on the command line, by the names of their fields.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        let is_given =
            |id: &&str| self.0.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        self.0.ids().map(clap::Id::as_str).filter(is_given)
    }
}

impl FromArgMatches for Areas {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Areas {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
