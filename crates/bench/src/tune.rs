//! The smallest settings that reach 95 % of what a place gives: for reading, writing and copying.
//!
//! Each kind of work has a group of settings (`tune/candidate.rs`), which are measured in rounds, in a
//! new random order each, by the code that does the work itself; those that came close to the best are
//! measured once more, alone, and only that counts for them. `tune/choose.rs` picks; what it picked
//! becomes an entry of an [`flatout_io::Profile`]. Read next: `tune/group.rs`.

mod candidate;
mod choose;
mod copying;
mod group;
mod trial;
mod tuned_place;

use std::path::PathBuf;

use flatout_io::{Evidence, ProfileEntry, ProfileKey, SizeClass, Work};
use flatout_measure::{Outcome, Plan, Sampler, record_counted, warning};
use flatout_sys::{CancelToken, affinity, memory};

use crate::file_trial::evidence;
use crate::tried::Tried;
use crate::{Error, Extent, WriteLimit, fact, scratch};

use group::Group;
use tuned_place::{Sizes, TunedPlace};

/// What the user chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// The places; copies are measured within each and between each two.
    pub directories: Vec<PathBuf>,
    /// How long the trials are; [`Extent::Few`] counts as quick.
    pub extent: Extent,
    /// Bytes that may be written; `None`: as many as files in a tenth of what is free take.
    pub max_write_bytes: Option<u64>,
    /// The time that was asked for.
    pub time_ns: Option<u64>,
    /// What a little of the work took in each directory, in their order.
    pub tried: Vec<Tried>,
    /// What tells this machine from others.
    pub machine: String,
    /// The version of its kernel.
    pub kernel: String,
    /// The time now, RFC 3339.
    pub time: String,
    /// Seed of data and orders.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
}

/// Places at most: copies are measured between each two of them.
pub const MOST_DIRECTORIES: usize = 4;
/// Time for what concerns one place, and for copies from one place to another.
const PLACE_NS: u64 = 60_000_000_000;
const PAIR_NS: u64 = 25_000_000_000;
/// So few settings get the same number of trials: most of them come close to the best, and halves of the
/// few trials that there are of small files tell little.
const FEW_SETTINGS: usize = 5;
/// With few trials of small files.
const QUICK_PART: u64 = 6;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Tuned {
    /// A row for each setting that was tried. `audit.chosen` tells which was picked.
    pub outcomes: Vec<Outcome>,
    /// What was picked, with the limits.
    pub entries: Vec<ProfileEntry>,
    /// Kinds of work of which nothing was picked: their best settings had no time, or too few trials.
    pub unsure: Vec<String>,
    /// What could not be removed.
    pub left_behind: Vec<String>,
}

/// Refuses what cannot be done, before anything is made.
///
/// Errors: no directory, too many of them, one twice, no room.
pub fn check(options: &Options) -> Result<(), Error> {
    if options.directories.len() > MOST_DIRECTORIES {
        return Err(Error::Usage(format!(
            "{} directories: at most {MOST_DIRECTORIES} are measured at a time",
            options.directories.len()
        )));
    }
    let mut seen = Vec::new();
    for directory in &options.directories {
        let Ok(facts) = rustix::fs::stat(directory) else { continue };
        if seen.contains(&(facts.st_dev, facts.st_ino)) {
            return Err(Error::Usage(format!("{directory:?} is named twice")));
        }
        seen.push((facts.st_dev, facts.st_ino));
    }
    memory::room_to_measure().map_err(|why| Error::NoRoom(format!("cannot measure: {why}")))?;
    room_bytes(options).map(drop)
}

/// Bytes that lie in each directory at most, in their order.
///
/// Errors: as [`check`].
pub fn room_bytes(options: &Options) -> Result<Vec<u64>, Error> {
    let sizes = options.directories.iter().map(|directory| Sizes::of(directory, options));
    sizes.map(|sizes| Ok(sizes?.room_bytes(options))).collect()
}

/// What is likely written in so much time, with so many trials of each setting at least and at most, and the
/// time that it takes, if nobody set a limit of bytes.
///
/// Errors: as [`check`].
pub fn forecast(options: &Options, trials: (u32, u32), time_ns: u64) -> Result<(u64, u64), Error> {
    let known = |place: &PathBuf| Ok((Sizes::of(place, options)?, scratch::on(place)?.in_memory));
    let places = options.directories.iter().map(known).collect::<Result<Vec<_>, Error>>()?;
    let made: u64 = places.iter().map(|(sizes, _)| sizes.made_bytes()).sum();
    let beside_ns = places.iter().zip(&options.tried).map(|((sizes, _), tried)| {
        tried.surely_making_ns(sizes.made_bytes()) + sizes.removing_ns(tried)
    });
    let beside_ns: u64 = beside_ns.sum();
    let time_ns = time_ns.saturating_sub(beside_ns) as f64;
    let groups = group::all(&places, affinity::allowed_cpu_count());
    let (bytes, trials_ns) = group::in_time(&groups, &options.tried, trials, time_ns);
    Ok((made.saturating_add(bytes as u64), beside_ns.saturating_add(trials_ns as u64)))
}

/// The time that all trials take together.
pub fn budget_ns(options: &Options) -> u64 {
    let places = options.directories.len() as u64;
    let whole_ns = places * PLACE_NS + places * places.saturating_sub(1) * PAIR_NS;
    if options.extent == Extent::Full { whole_ns } else { whole_ns / QUICK_PART }
}

/// Measures, and picks.
///
/// Errors: a place cannot be used. What goes wrong with a setting is its row's.
pub fn run(options: &Options, sampler: &mut Sampler<'_>) -> Result<Tuned, Error> {
    let sizes = options.directories.iter().map(|directory| Sizes::of(directory, options));
    let made = sizes.flatten().map(Sizes::made_bytes).sum();
    let limit = WriteLimit::new(options.max_write_bytes, made);
    let ends_ns = sampler.plan.ends_ns;
    let options = &Options { cancel: options.cancel.until(ends_ns), ..options.clone() };
    let mut places = Vec::new();
    for directory in &options.directories {
        match TunedPlace::make(directory, options) {
            Ok(place) => places.push(place),
            Err(error) => {
                // What was made for the others goes first.
                places.into_iter().for_each(|place| drop(place.leave()));
                let is_late = options.cancel.is_cancelled() && !(sampler.cancelled)();
                return Err(if is_late { Error::Warned(warning::no_time()) } else { error });
            }
        }
    }
    let mut tuned = Tuned::default();
    // Removing what was made belongs to the time, too, if that was asked for.
    let removing = places.iter().zip(&options.tried).filter(|_| options.time_ns.is_some());
    let removing_ns: u64 = removing.map(|(place, tried)| place.sizes.removing_ns(tried)).sum();
    let sampler = &mut sampler.within(sampler.left_ns().saturating_sub(removing_ns));
    let options =
        &Options { cancel: options.cancel.until(sampler.plan.ends_ns), ..options.clone() };
    measure(&places, (options, &limit), sampler, &mut tuned);
    let left_behind = places.into_iter().filter_map(|place| place.leave().err());
    tuned.left_behind.extend(left_behind.map(|error| error.to_string()));
    Ok(tuned)
}

fn measure(
    places: &[TunedPlace],
    (options, limit): (&Options, &WriteLimit),
    sampler: &mut Sampler<'_>,
    tuned: &mut Tuned,
) {
    let known: Vec<_> = places.iter().map(|place| (place.sizes, place.in_memory)).collect();
    let groups = group::all(&known, affinity::allowed_cpu_count());
    let mut whole: f64 = groups.iter().map(|group| group.weight).sum();
    let mut rest: u64 = groups.iter().map(Group::round_bytes).sum();
    for group in groups {
        let plan = &sampler.plan;
        let budget_ns = (sampler.left_ns() as f64 * group.weight / whole) as u64;
        whole -= group.weight;
        // All that write have the same number of trials of what may be written.
        let most = if group.work == Work::Read { u32::MAX } else { limit.rounds(rest) };
        limit.begin_part(group.round_bytes(), rest);
        rest -= group.round_bytes();
        let max_trials = group::most_of(group.size, plan.max_trials).min(most);
        let min_trials = plan.min_trials.min(most);
        let share = Plan { budget_ns, min_trials, max_trials, ..plan.clone() };
        let case =
            |index: usize| trial::case(&group, places, group.tunings[index], (options, limit));
        let all = (0..group.tunings.len()).map(case).collect();
        let mut rows;
        if share.min_trials >= share.max_trials || group.tunings.len() <= FEW_SETTINGS {
            rows = sampler.with(share).run(all);
        } else {
            // The best of many that were measured shortly is good or lucky.
            let (min_trials, max_trials) = (choose::FEWEST_TRIALS, max_trials.div_ceil(2));
            let half = Plan { min_trials, max_trials, budget_ns: budget_ns / 2, ..share };
            rows = sampler.with(half.clone()).run(all);
            let close = choose::close(&rows);
            let again = close.iter().map(|&index| case(index)).collect();
            for (index, measured) in close.iter().zip(sampler.with(half).run(again)) {
                if choose::tells_more(&measured.outcome, &rows[*index].outcome) {
                    rows[*index] = measured;
                }
            }
        }
        let name = |taken: &_| group.ceiling_name(taken);
        match choose::among(&group.tunings, Some(&group.usual), &mut rows, name) {
            Some(one) if one.is_sure => tuned.entries.push(entry(&group, places, &one, options)),
            None if !rows.iter().any(|row| choose::was_left_out(&row.outcome)) => {}
            _ => tuned.unsure.push(group.words()),
        }
        if group.work == Work::Read {
            let ground = places[group.source].ground();
            rows.iter_mut().for_each(|row| evidence::prove_read(row, group.cached, ground));
        }
        tuned.outcomes.extend(record_counted(rows, &[fact::BYTES]));
        if (sampler.cancelled)() {
            return;
        }
    }
}

fn entry(
    group: &Group,
    places: &[TunedPlace],
    choice: &choose::Choice,
    options: &Options,
) -> ProfileEntry {
    let of = |place: usize, not: Work| {
        if group.work == not { String::new() } else { places[place].identity.clone() }
    };
    // Small files are counted.
    let each_bytes = if group.size == SizeClass::Tiny { group.file_bytes() as f64 } else { 1.0 };
    ProfileEntry {
        key: ProfileKey {
            machine: options.machine.clone(),
            kernel: options.kernel.clone(),
            cpus: affinity::allowed_cpu_count(),
            work: group.work,
            size: group.size,
            cached: group.cached,
            source: of(group.source, Work::Write),
            target: of(group.target, Work::Read),
        },
        tuning: choice.tuning,
        limit_bytes_per_s: choice.limit * each_bytes,
        file_bytes: group.file_bytes(),
        evidence: Evidence {
            time: options.time.clone(),
            n: choice.n,
            ci95: choice.ci95.map(|ends| ends.map(|end| end * each_bytes)),
        },
    }
}

#[cfg(test)]
mod tests;
