//! Rivals raced in one run: the same work, the same state of the cache, rounds in random order.
//!
//! A [`rival`] says how it is called; a [`race`] is one work in one state, with those that take
//! part; [`finish`] makes rows of its rounds. What can be raced: [`dd`], [`digest`], [`disk`],
//! [`network`], [`compute`], [`mod@copy`], and any [`commands`] instead.

pub mod commands;
pub mod compute;
pub mod copy;
pub mod dd;
pub mod digest;
pub mod disk;
pub(crate) mod fact;
pub mod finish;
pub mod network;
mod printed;
pub mod race;
pub mod rival;
pub mod run;
mod source;
pub mod state;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use flatout_measure::{Chart, Outcome};
use flatout_sys::CancelToken;

pub use crate::area::Extent;
use crate::option::size;
use crate::tried::Tried;
use crate::{Error, place, scratch};
use commands::Commands;
use race::{Made, Race};
use rival::{Discipline, Found};

/// The folder below the directory of a race; everything that a race makes lies there.
pub const FOLDER: &str = place::RACE.folder;

/// Rounds for which a race is begun where time is short: one race does not take what is wanted by
/// those to come.
const FEW_ROUNDS: u32 = 3;
/// Removing what a race makes takes one part in so many of the time at most.
const REMOVING_PART: u64 = 4;
/// Of the memory that can be had, files that live there take at most one part in so many.
const MEMORY_PART: u64 = 2;

flatout_sys::words! {
    /// The state in which a work begins, or must end.
    #[derive(PartialOrd, Ord, ValueEnum)]
    pub enum State: name, ALL {
        /// What is read lies in the page cache
        #[value(name = "warm", alias = "hot")]
        Hot = "hot",
        /// Nothing of what is read lies in the page cache
        Cold = "cold",
        /// Copying: as warm, and done when storage has the copy
        Durable = "durable",
        /// Copying: as warm, right after the same tree was deleted
        Refresh = "refresh",
        /// Copying: as warm, onto a copy that is the same already
        Unchanged = "unchanged",
    }
}

const HEADING: &str = "Copying trees";

// What a race of copiers works on, where something else is wanted than the usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[group(skip)]
#[expect(missing_docs, reason = "clap would take it for what the command does")]
pub struct Trees {
    /// Copying: length of each file
    #[arg(id = "file_size", long = "file-size", value_name = "SIZE", value_parser = size, help_heading = HEADING)]
    pub file_bytes: Option<u64>,
    /// Copying: number of files
    #[arg(long, value_name = "N", help_heading = HEADING)]
    pub files: Option<u64>,
    /// Copying: folders above each other
    #[arg(id = "tree_depth", long = "tree-depth", value_name = "N", help_heading = HEADING)]
    pub depth: Option<u32>,
    /// Copying: names of corpora, see below
    #[arg(id = "corpus", long = "corpus", value_name = "NAME,…", value_delimiter = ',', help_heading = HEADING)]
    pub corpora: Vec<String>,
    /// Copying: a tree of your own, which is only read
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath, help_heading = HEADING)]
    pub tree: Option<PathBuf>,
    /// Copying: flatout keeps no attributes, as most of its rivals
    #[arg(long, value_name = "all", value_parser = ["all"], help_heading = HEADING)]
    pub no_preserve: Option<String>,
}

/// What every discipline needs to make its races.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The rivals that are raced and were found.
    pub found: Vec<Found>,
    /// The directory that was asked for; files are made below its [`FOLDER`].
    pub directory: PathBuf,
    /// The program of flatout.
    pub flatout: PathBuf,
    /// How much is raced: small sizes and few rounds, or what the help says.
    pub extent: Extent,
    /// The states that are wanted, as far as a discipline knows them.
    pub states: Vec<State>,
    /// Bytes that may lie there at once, corpora and targets together.
    pub room_bytes: u64,
    /// Corpora, with a copy of the largest, take one part in so many of the room that the others leave:
    /// where rounds, too, must not write more.
    pub tree_part: u64,
    /// What a little of the work took there.
    pub tried: Tried,
    /// Whether what was made stays.
    pub keeps: bool,
    /// What a race of copiers works on.
    pub trees: Trees,
    /// Orders of matrices; none: the usual ones.
    pub orders: Vec<u64>,
    /// Commands that are raced instead of rivals.
    pub commands: Commands,
    /// Seed of contents and orders.
    pub seed: u64,
    /// Whether the user wants to stop.
    pub cancel: CancelToken,
}

impl Ground {
    /// Where corpora lie; they are kept.
    pub fn corpora(&self) -> PathBuf {
        self.directory.join(FOLDER).join(place::CORPORA)
    }

    /// Where the targets of this process lie; they are removed.
    pub fn targets(&self) -> PathBuf {
        place::own_targets(&self.directory.join(FOLDER))
    }

    /// The rivals of one discipline.
    pub fn of(&self, discipline: Discipline) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(move |found| found.rival.discipline == discipline)
    }
}

/// What is raced, what it takes, and what is not.
#[derive(Default)]
pub struct Planned {
    /// All races, discipline by discipline.
    pub races: Vec<Race<'static>>,
    /// Bytes that lie in the directory at once, corpora and targets together. Every discipline reuses
    /// the room that the targets of another had.
    pub room_bytes: u64,
    /// What was asked for and is not raced, one line each, with the reason.
    pub left_out: Vec<String>,
}

/// Plans all races; copiers have the room that the sources and targets of the others leave.
///
/// Errors: one of them cannot be made; nothing was done.
pub fn plan(ground: &Ground) -> Result<Planned, Error> {
    let beside = dd::room_bytes(ground).saturating_add(digest::room_bytes(ground));
    let beside = beside.saturating_add(disk::room_bytes(ground)?);
    let trees =
        copy::plan(ground, ground.room_bytes.saturating_sub(beside) / ground.tree_part.max(1))?;
    let mut races = dd::races(ground);
    races.extend(digest::races(ground));
    races.extend(disk::races(ground)?);
    races.extend(network::races(ground));
    races.extend(compute::races(ground));
    races.extend(trees.races);
    // Programs are as slow as what they wait for: the CPUs or, before each run with files, storage.
    for race in &mut races {
        race.expected_s = match race.made {
            Some(_) => {
                let settle_s =
                    if race.test == copy::TEST { 0.0 } else { ground.tried.settle_ns / 1e9 };
                race.expected_s * ground.tried.waiting_slowdown() + settle_s
            }
            None => race.expected_s * ground.tried.slowdown,
        };
    }
    // What these take is known.
    races.extend(commands::race(ground));
    let room_bytes = beside.saturating_add(trees.room_bytes);
    Ok(Planned { races, room_bytes, left_out: trees.left_out })
}

/// The pictures of a race, of the rows that it has.
pub fn charts(rows: &[Outcome]) -> Vec<Chart> {
    let has = |chart: &Chart| {
        rows.iter().filter(|row| row.id == chart.id && row.median.is_some()).count() > 1
    };
    dd::charts().into_iter().filter(has).collect()
}

/// Bytes that a race may take in a directory: those that were allowed, or a tenth of the free
/// space.
///
/// Errors: it is no directory.
pub fn allowed_bytes(directory: &Path, most: Option<u64>) -> Result<u64, Error> {
    let filesystem = scratch::on(directory)?;
    // Where files live in memory, they must leave some to the programs.
    let memory_part = scratch::memory_part(&filesystem, MEMORY_PART);
    let free = scratch::free_bytes(&filesystem).min(memory_part);
    Ok(most.unwrap_or(scratch::part_of(free)).min(free))
}

/// The part of `left_ns` for the first of the races, by what each is expected to take for a round.
///
/// Called before each race with the races that are left, so that what one leaves goes to the next.
pub fn share_ns(left: &[&Race<'_>], left_ns: u64) -> u64 {
    let weight = |race: &&Race<'_>| race.expected_s * race.contestants.len() as f64;
    let all: f64 = left.iter().map(weight).sum();
    let first = left.first().map_or(0.0, weight);
    if all > 0.0 { (left_ns as f64 * (first / all)) as u64 } else { left_ns }
}

/// The time that removing what a race makes may take, of that of all races: it may take twice as long as it
/// was seen to, beside a writer that comes and goes.
pub fn most_removing_ns(time_ns: u64) -> u64 {
    time_ns / REMOVING_PART
}

/// Which of the races there is time for: all, where it is enough for `FEW_ROUNDS` of each; else the
/// shortest first, as many as have time for these; where none has, those that have time for one.
pub fn in_time<'r, 'a: 'r>(
    races: impl Iterator<Item = &'r Race<'a>>,
    rounds: u32,
    time_ns: u64,
) -> Vec<bool> {
    let races: Vec<&Race<'_>> = races.collect();
    let all = fitting(&races, rounds.min(FEW_ROUNDS), time_ns);
    if all.contains(&true) { all } else { fitting(&races, 1, time_ns) }
}

/// Which of the races, the shortest first, together have time for so many rounds.
pub fn fitting(races: &[&Race<'_>], rounds: u32, time_ns: u64) -> Vec<bool> {
    let needed_ns = |at: usize| expected_ns(std::iter::once(races[at]), rounds);
    let mut order: Vec<usize> = (0..races.len()).collect();
    order.sort_by_key(|&at| needed_ns(at));
    let (mut left_ns, mut chosen) = (time_ns, vec![false; races.len()]);
    for at in order {
        let removing_ns = races[at].made.as_ref().map_or(0, |made| made.removing_ns);
        if needed_ns(at) <= left_ns && removing_ns <= most_removing_ns(time_ns) {
            (left_ns, chosen[at]) = (left_ns - needed_ns(at), true);
        }
    }
    chosen
}

/// The time that the races take for a number of rounds, with what they read being made, as far as
/// can be said beforehand.
pub fn expected_ns<'r, 'a: 'r>(races: impl Iterator<Item = &'r Race<'a>>, rounds: u32) -> u64 {
    let races: Vec<&Race<'_>> = races.collect();
    // Making what is read takes its files' time, which is a run's, and that of its bytes.
    let mut known = BTreeSet::new();
    let mut runs = |race: &'r Race<'a>| {
        let is_new = race.made.as_ref().is_some_and(|made| known.insert(made));
        f64::from(rounds) * race.contestants.len() as f64 + f64::from(u8::from(is_new))
    };
    let runs_s: f64 = races.iter().map(|race| race.expected_s * runs(race)).sum();
    let made_ns =
        made(races.into_iter()).map(|made| made.making_ns.saturating_add(made.removing_ns));
    made_ns.fold((runs_s * 1e9) as u64, u64::saturating_add)
}

/// Bytes that making what the races read writes.
pub fn made_bytes<'r, 'a: 'r>(races: impl Iterator<Item = &'r Race<'a>>) -> u64 {
    made(races).map(|made| made.bytes).fold(0, u64::saturating_add)
}

/// What is made for the races, each once.
fn made<'r, 'a: 'r>(races: impl Iterator<Item = &'r Race<'a>>) -> impl Iterator<Item = &'r Made> {
    let made: BTreeSet<&Made> = races.filter_map(|race| race.made.as_ref()).collect();
    made.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(names: &[&str], extent: Extent) -> Ground {
        let rivals = names.iter().flat_map(|name| rival::named(name).unwrap());
        let found = |rival| Found { rival, path: "/bin/rival".into(), version: String::new() };
        Ground {
            found: rivals.map(found).collect(),
            directory: "/nowhere".into(),
            flatout: "/bin/flatout".into(),
            extent,
            states: vec![State::Hot, State::Cold],
            room_bytes: 8 << 30,
            tree_part: 1,
            tried: Tried::USUAL,
            keeps: false,
            trees: Trees::default(),
            orders: Vec::new(),
            commands: Commands::default(),
            seed: 1,
            cancel: CancelToken::manual(),
        }
    }

    #[test]
    fn races_are_those_of_the_rivals_that_are_there() {
        let count = |names: &[&str]| plan(&ground(names, Extent::Full)).unwrap().races.len();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&["dd"]), 4 + 4 + 2);
        assert_eq!(count(&["xxhsum", "sha256sum", "openssl"]), 3, "one hot file each");
        let placements = crate::cores::in_order().unwrap().len().min(2);
        assert_eq!(count(&["iperf3", "sockperf"]), 3 + 2 * placements);
        assert_eq!(count(&["openblas"]), 2 * 5 * compute::threads().len());
        assert_eq!(count(&["stream", "stream-loops"]), 2 * 4);
        assert_eq!(count(&["b3sum"]), 3, "a hot file, small files hot and cold");
    }

    #[test]
    fn the_room_is_that_of_all_sources_and_the_largest_target() {
        let bytes = |names: &[&str]| plan(&ground(names, Extent::Full)).unwrap().room_bytes;
        assert_eq!(bytes(&[]), 0);
        assert_eq!(bytes(&["dd"]), (1111 + 2048 + 2048) << 20);
        assert_eq!(bytes(&["xxhsum"]), 1 << 30);
        assert_eq!(bytes(&["b3sum", "xxhsum"]), (1 << 30) + 20_000 * 4096);
        let quick = plan(&ground(&["dd", "b3sum"], Extent::Quick)).unwrap();
        assert!(quick.room_bytes < 200 << 20);
    }

    #[test]
    fn copiers_have_the_room_that_the_others_leave() {
        let mut both = ground(&["dd", "cp-a"], Extent::Quick);
        both.trees.corpora = ["1x1M", "1x8M"].map(str::to_owned).to_vec();
        both.room_bytes = dd::room_bytes(&both) + (4 << 20);
        let Planned { room_bytes, left_out: left, .. } = plan(&both).unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].starts_with("1x8M"), "{left:?}");
        assert!(room_bytes <= both.room_bytes);
        both.room_bytes += 32 << 20;
        assert!(plan(&both).unwrap().left_out.is_empty());
    }

    #[test]
    fn time_is_shared_by_what_a_round_takes_and_what_is_left_goes_on() {
        let races = plan(&ground(&["dd"], Extent::Full)).unwrap().races;
        let mut left_ns = 100_000_000_000;
        let mut shares = Vec::new();
        for begun in 0..races.len() {
            let share = share_ns(&races[begun..].iter().collect::<Vec<_>>(), left_ns);
            left_ns -= share;
            shares.push(share);
        }
        assert!(shares[0] < shares[3], "{shares:?}");
        assert!(left_ns < 1000, "the last takes all that is left: {left_ns}");
        assert_eq!(share_ns(&[], 7), 7);
        assert!(expected_ns(races.iter(), 12) > expected_ns(races.iter(), 6));
    }

    #[test]
    fn where_time_is_short_the_shortest_races_are_run() {
        let races = plan(&ground(&["dd", "b3sum"], Extent::Full)).unwrap().races;
        let chosen = |time_ns| in_time(races.iter(), 6, time_ns);
        assert_eq!(chosen(u64::MAX), vec![true; races.len()]);
        assert_eq!(chosen(0), vec![false; races.len()]);
        let each_ns = |at: usize, rounds| expected_ns(races[at..=at].iter(), rounds);
        let shortest = (0..races.len()).min_by_key(|&at| each_ns(at, 3)).unwrap();
        let only = |at: usize| (0..races.len()).map(|other| other == at).collect::<Vec<_>>();
        assert_eq!(chosen(each_ns(shortest, 3)), only(shortest));
        assert_eq!(chosen(each_ns(shortest, 1)), only(shortest), "one round is better than none");
        let half = chosen(expected_ns(races.iter(), 2));
        let taken = half.iter().zip(0..).filter(|(is_taken, _)| **is_taken);
        assert!(taken.map(|(_, at)| each_ns(at, 3)).sum::<u64>() <= expected_ns(races.iter(), 2));
        // What would take longest to remove is not made.
        let mut slow = plan(&ground(&["dd", "b3sum"], Extent::Full)).unwrap().races;
        slow[shortest].made = Some(Made { removing_ns: 2_500_000_000, ..Made::default() });
        let is_begun = |time_ns| in_time(slow.iter(), 6, time_ns)[shortest];
        assert_eq!([9_000_000_000, 10_000_000_000_000].map(is_begun), [false, true]);
        let sockperf = plan(&ground(&["sockperf"], Extent::Full)).unwrap().races;
        let begun = in_time(sockperf.iter(), 6, 60_000_000_000);
        assert!(begun.iter().all(|is_begun| *is_begun), "nobody takes all: {begun:?}");
    }
}
