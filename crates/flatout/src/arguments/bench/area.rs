//! The areas: a name each, and the type that is the area and has its options.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Id, ValueEnum};
use flatout_bench::{Area, cache, copy, cpu, disk, memory, network, syscall};

use crate::arguments::similar::similar;

flatout_sys::words! {
    /// What can be measured.
    #[derive(PartialOrd, Ord, ValueEnum)]
    pub enum Name: word {
        /// The page cache: rate over block sizes and threads, warm and cold
        Cache = "cache",
        /// The disk: throughput, IOPS, latency, metadata
        Disk = "disk",
        /// System calls: nanoseconds per call
        Syscall = "syscall",
        /// The CPU: arithmetic units, Linpack
        Cpu = "cpu",
        /// Memory and its caches: bandwidth, latency
        Memory = "memory",
        /// TCP and UDP: throughput, round trips
        Network = "network",
        /// flatout copy: trees of files
        Copy = "copy",
    }
}

macro_rules! entry {
    ($name:ident $area:ident $other_words:expr) => {
        Entry {
            name: Name::$name,
            other_words: $other_words,
            notes: include_str!(concat!("../help/bench-", stringify!($area), ".txt")),
            define: $area::Options::augment_args,
            make: make::<$area::Options>,
        }
    };
}

/// What the areas are, and what others call them.
const AREAS: [Entry; 7] = [
    entry!(Cache cache &["page-cache", "pagecache"]),
    entry!(Disk disk &["fio", "io", "hdd", "nvme", "ssd", "storage", "fileio"]),
    entry!(Syscall syscall &[]),
    entry!(Cpu cpu &["linpack", "processor"]),
    entry!(Memory memory &["ram", "stream"]),
    entry!(Network network &["iperf", "iperf3", "tcp", "udp"]),
    entry!(Copy copy &[]),
];

struct Entry {
    name: Name,
    /// What others call it.
    other_words: &'static [&'static str],
    /// What its help says besides the options.
    notes: &'static str,
    /// Adds the options that it defines.
    define: fn(Command) -> Command,
    /// The area as the options want it.
    make: fn(&ArgMatches) -> Result<Box<dyn Area>, clap::Error>,
}

fn make<A: Area + Args + 'static>(matches: &ArgMatches) -> Result<Box<dyn Area>, clap::Error> {
    Ok(Box::new(A::from_arg_matches(matches)?))
}

impl Name {
    /// The area that is called so.
    pub fn of(word: &str) -> Option<Self> {
        Self::from_str(word, false).ok()
    }

    /// The area that others call so.
    pub fn called(word: &str) -> Option<Self> {
        AREAS.iter().find(|entry| entry.other_words.contains(&word)).map(|entry| entry.name)
    }

    /// The area that is meant by a word: its name misspelt, or what others call it.
    pub fn meant(word: &str) -> Option<Self> {
        let names = Self::value_variants().iter().map(|area| area.word());
        Self::called(word).or_else(|| Self::of(similar(word, names)?))
    }

    fn entry(self) -> &'static Entry {
        AREAS.iter().find(|entry| entry.name == self).expect("the list has all areas")
    }

    /// What its help says besides the options.
    pub fn notes(self) -> &'static str {
        self.entry().notes.trim_end()
    }

    /// Whether it works in a place that is named on the command line.
    pub fn has_place(self) -> bool {
        matches!(self, Self::Disk | Self::Copy)
    }

    /// The options that it defines.
    fn arguments(self) -> Vec<Arg> {
        (self.entry().define)(Command::new("area")).get_arguments().cloned().collect()
    }

    /// The areas that know an option which not all know; none for one that all know.
    pub fn owners(id: &str) -> Vec<Self> {
        // Asked for each option of each area: the definitions are gone through once.
        static KNOWN: LazyLock<Vec<(Name, Vec<Id>)>> = LazyLock::new(|| {
            let ids =
                |name: Name| name.arguments().iter().map(|own| own.get_id().clone()).collect();
            Name::value_variants().iter().map(|name| (*name, ids(*name))).collect()
        });
        let defines = |(_, ids): &&(Self, Vec<Id>)| ids.iter().any(|own| own == id);
        KNOWN.iter().filter(defines).map(|(name, _)| *name).collect()
    }
}

/// The options that these areas define. What several define stands there once, as the first has it;
/// of all areas that is the one that takes most.
pub fn arguments(names: &[Name]) -> Vec<Arg> {
    let mut known = BTreeSet::new();
    let all = names.iter().flat_map(|name| name.arguments());
    // In the order in which they stand here, not in that of each area.
    let all = all.map(|argument| argument.display_order(None));
    all.filter(|argument| known.insert(argument.get_id().to_string())).collect()
}

/// The options that areas have for themselves, and all as they were given. It stands before all
/// others, which take theirs away.
#[derive(Debug, Clone)]
pub struct Areas(ArgMatches);

impl Areas {
    /// An area as the options want it; nothing is looked at yet.
    ///
    /// Errors: none that parsing the command line would not have found.
    pub fn make(&self, name: Name) -> Result<Box<dyn Area>, clap::Error> {
        (name.entry().make)(&self.0)
    }

    /// Options of an area, as another type has them.
    ///
    /// Errors: none that parsing the command line would not have found.
    #[cfg(feature = "mpi")]
    pub fn options<T: FromArgMatches>(&self) -> Result<T, clap::Error> {
        T::from_arg_matches(&self.0)
    }

    /// The options on the command line, by the names of their fields.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        let is_given =
            |id: &&str| self.0.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        self.0.ids().map(Id::as_str).filter(is_given)
    }

    /// How many values an option has.
    pub fn count(&self, id: &str) -> usize {
        self.0.get_raw(id).map_or(0, Iterator::count)
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
        command.args(arguments(Name::value_variants()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_several_areas_has_the_same_names_in_all_and_the_first_takes_most() {
        let all = arguments(Name::value_variants());
        for (name, argument) in Name::value_variants()
            .iter()
            .flat_map(|name| name.arguments().into_iter().map(move |argument| (name, argument)))
        {
            let first = all.iter().find(|one| one.get_id() == argument.get_id()).unwrap();
            let names = |one: &Arg| format!("{:?} {:?}", one.get_all_aliases(), one.get_short());
            assert_eq!(names(first), names(&argument), "{name:?}");
            let is_list = argument.get_value_delimiter().is_some();
            assert!(!is_list || first.get_value_delimiter().is_some(), "{name:?} {argument}");
        }
    }
}
