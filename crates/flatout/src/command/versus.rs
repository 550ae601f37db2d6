//! `flatout versus`: races, one after the other, in one record. Who takes part: `versus/field.rs`; what it takes:
//! `versus/forecast.rs`.

mod field;
mod forecast;

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::process::ExitCode;

use flatout_bench::Error;
use flatout_bench::place::{self, Place};
use flatout_bench::tried::{self, Tried};
use flatout_bench::versus::commands::Commands;
use flatout_bench::versus::race::{self, Made, Race};
use flatout_bench::versus::rival::{Discipline, Found};
use flatout_bench::versus::run::SystemRunner;
use flatout_bench::versus::{self, Extent, Ground, Planned, State, Trees, finish};
use flatout_bench::write_limit::{WriteLimit, announced_at_most};
use flatout_measure::case::{Plan, WhenPrecise};
use flatout_measure::clock::{Clock, SystemClock};
use flatout_measure::record::{Outcome, Status};
use flatout_measure::sampler::Sampler;
use flatout_measure::units::size_text;
use flatout_measure::warning;
use flatout_report::Format;
use flatout_sys::cancel::CancelToken;

use crate::announcement;
use crate::arguments::versus::Versus as Arguments;
use crate::command::own_program;
use crate::conclusion::{Conclusion, DONE, Draft, FAILED, INTERRUPTED};
use crate::output;
use crate::progress::Progress;
use field::Field;
use forecast::{ends_ns, round_bytes, time_ns, written_bytes};

const SECOND_NS: u64 = 1_000_000_000;
/// Rounds that a race gets at least, and for which the time is planned.
const USUAL_ROUNDS: (u32, u32) = (6, 8);
const QUICK_ROUNDS: (u32, u32) = (3, 3);
/// Rounds that a race gets at most where time was asked for: more make a record large.
const MOST_ROUNDS: u32 = 1000;

/// Said first, and at each figure.
const NO_TIME: &str = "there is no time for the usual work: that of --quick is raced";
const NO_ROOM: &str = "there is no room for the usual work: that of --quick is raced";

/// What does not race anybody: the list, and the cleaning.
pub fn without_race(arguments: &Arguments, cancel: CancelToken) -> Option<ExitCode> {
    if arguments.list {
        return Some(list(arguments, cancel));
    }
    arguments.clean.then(|| match place::remove_all(&arguments.directory) {
        Ok(()) => output::exit(DONE),
        Err(error) => output::give_up(FAILED, &error.to_string()),
    })
}

/// Shows the rivals that are named, or all.
fn list(arguments: &Arguments, cancel: CancelToken) -> ExitCode {
    if let Err(error) = output::check(arguments.output.output.as_deref(), &[]) {
        return output::give_up(FAILED, &error);
    }
    let mut draft = Draft::begin(0);
    let rows = match field::listed(&arguments.rivals, cancel) {
        Ok(rows) => rows,
        Err(error) => return output::conclude(draft.refused(&error), &arguments.output),
    };
    if arguments.output.format() == Format::Table {
        let place = arguments.output.output.as_deref();
        return output::deliver(place, field::list(&rows).as_bytes(), DONE);
    }
    rows.into_iter().for_each(|row| draft.add(row));
    output::conclude(draft.conclude(), &arguments.output)
}

/// Races all that take part; a race that fails does not stop the next.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> Conclusion {
    let begun_ns = SystemClock.now_ns();
    let seed = arguments.seed.unwrap_or(begun_ns);
    let mut draft = Draft::measure(seed);
    let prepared = prepare(arguments, (seed, begun_ns), cancel);
    let Prepared { field, ground, races, reduced, place, limit, left_out } = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return draft.refused(&error),
    };
    for line in field.remarks() {
        if field.is_named {
            draft.fail(FAILED, line);
        } else {
            output::notice(&line);
        }
    }
    let is_raced = !races.is_empty();
    let mut rows = race_all(arguments, &ground, races, (&limit, begun_ns));
    if let Some(why) = reduced {
        let figures = rows.iter_mut().filter(|row| row.median.is_some());
        figures.for_each(|row| row.warn(warning::SIZE_REDUCED, why.to_owned()));
    }
    let leave = if arguments.keep { Place::leave } else { Place::leave_nothing };
    if let Some(Err(error)) = place.map(leave) {
        draft.fail(FAILED, error.to_string());
    }
    draft.record.charts = versus::charts(&rows);
    note_failures(&mut draft, &rows);
    let asides = field.rows().into_iter().chain(versus::disk::incomparable(&ground));
    rows.into_iter().chain(asides).for_each(|row| draft.add(row));
    for line in left_out {
        match is_raced {
            true => draft.add(field::missing(warning::UNSUPPORTED, line)),
            false => draft.fail(FAILED, line),
        }
    }
    if cancel.is_cancelled() {
        let text = "interrupted: targets are removed, rows without enough rounds say so";
        draft.fail(INTERRUPTED, text.to_owned());
    }
    draft.require_a_figure();
    draft.judge()
}

/// A race that may begin.
struct Prepared {
    field: Field,
    ground: Ground,
    races: Vec<Race<'static>>,
    /// Why less is raced than usual.
    reduced: Option<&'static str>,
    /// Where no race needs files, nothing is made.
    place: Option<Place>,
    /// What all races may write.
    limit: WriteLimit,
    /// What is not raced, and why.
    left_out: Vec<String>,
}

/// Everything that can be said before anything is done; says it.
///
/// Errors: what cannot be done.
fn prepare(
    arguments: &Arguments,
    (seed, begun_ns): (u64, u64),
    cancel: CancelToken,
) -> Result<Prepared, Error> {
    refuse_misuse(arguments)?;
    let commands = tried_commands(arguments, begun_ns, cancel);
    let field = field::gather(arguments, cancel)?;
    // Corpora that are kept are not waited for.
    let tried = tried(arguments, &field);
    let most_bytes = tried::left_of(arguments.max_write);
    let room_bytes = versus::allowed_bytes(&arguments.directory, most_bytes)?;
    let mut ground = Ground {
        found: field.found.clone(),
        // Programs run where they like; names must mean the same everywhere.
        directory: arguments
            .directory
            .canonicalize()
            .map_err(flatout_io::Error::system("open the directory", &arguments.directory))?,
        flatout: own_program(),
        extent: if arguments.quick { Extent::Quick } else { Extent::Full },
        states: arguments.states(),
        room_bytes,
        tree_part: tree_part(arguments, &field),
        tried,
        keeps: arguments.keep,
        trees: arguments.trees(),
        orders: arguments.order.clone(),
        commands,
        seed,
        cancel,
    };
    let mut planned = versus::plan(&ground)?;
    let left_ns = forecast::left_ns(arguments, begun_ns);
    let mut reduced = None;
    let is_given = !arguments.commands.is_empty() || !arguments.order.is_empty();
    let can_be_less = !arguments.quick && !is_given;
    if let Some(why) = too_much(left_ns, &planned, room_bytes).filter(|_| can_be_less) {
        let smaller = Ground { extent: Extent::Quick, ..ground.clone() };
        let less = versus::plan(&smaller)?;
        // Where room lacks for that, too, it is said of what was asked for.
        if too_much(left_ns, &less, room_bytes) != Some(NO_ROOM) {
            output::notice(why);
            (ground, planned, reduced) = (smaller, less, Some(why));
        }
    }
    let Planned { races, room_bytes: needed_bytes, left_out } = planned;
    if needed_bytes > room_bytes {
        let all_bytes = versus::allowed_bytes(&ground.directory, Some(u64::MAX))?;
        let why = match arguments.max_write {
            _ if needed_bytes > all_bytes => "no more is free; --directory DIR takes another place",
            Some(_) => "--max-write SIZE allows more",
            None => "10 % of the free space; --max-write SIZE allows more",
        };
        return Err(Error::NoRoom(format!(
            "the files of the race take {} in {:?}, but only {} may be taken ({why})",
            size_text(needed_bytes),
            ground.directory,
            size_text(room_bytes)
        )));
    }
    if races.is_empty() {
        let limit = WriteLimit::new(None, 0);
        return Ok(Prepared { field, ground, races, reduced, place: None, limit, left_out });
    }
    left_out.iter().for_each(|line| output::notice(line));
    let takes_place = needed_bytes > 0;
    let place = takes_place.then(|| Place::take(&ground.directory, place::RACE)).transpose()?;
    if let Some(place) = &place {
        // It takes room, but is no reason not to race.
        place.remove_leftovers()?.iter().for_each(|line| output::complain(line));
    }
    let mut limit = WriteLimit::new(most_bytes, needed_bytes).counting();
    let (likely_bytes, in_time) = written_bytes(arguments, &races, (&limit, left_ns));
    let mut written = announcement::written(likely_bytes);
    if left_ns.is_some() && arguments.rounds.is_none() && most_bytes.is_none() {
        let most_bytes = announced_at_most(likely_bytes);
        limit = WriteLimit::new(Some(most_bytes), 0).counting();
        written.push_str(&announcement::at_most(likely_bytes, most_bytes));
    }
    let time_ns = time_ns(arguments, &races, &limit);
    let takes = (needed_bytes, &*written, time_ns);
    output::notice(&forecast::announcement(arguments, &ground, &races, takes, in_time));
    Ok(Prepared { field, ground, races, reduced, place, limit, left_out })
}

/// Why less than the usual work is raced.
fn too_much(left_ns: Option<u64>, planned: &Planned, most_bytes: u64) -> Option<&'static str> {
    let Planned { races, room_bytes, left_out } = planned;
    if *room_bytes > most_bytes || (races.is_empty() && !left_out.is_empty()) {
        return Some(NO_ROOM);
    }
    let lacks_time = |time_ns| !races.is_empty() && !forecast::has_time(races, time_ns);
    left_ns.is_some_and(lacks_time).then_some(NO_TIME)
}

/// The commands that are raced instead of rivals, each of which is run once, to know what it takes.
fn tried_commands(arguments: &Arguments, begun_ns: u64, cancel: CancelToken) -> Commands {
    let commands = arguments.commands();
    if commands.commands.is_empty() {
        return commands;
    }
    output::notice("running each command once, to see how long it takes");
    let limit_ns = forecast::left_ns(arguments, begun_ns).unwrap_or(u64::MAX);
    commands.tried(&mut SystemRunner { cancel }, limit_ns)
}

/// What a little of the work takes, where files are made.
fn tried(arguments: &Arguments, field: &Field) -> Tried {
    let in_memory = [Discipline::Matrix, Discipline::Stream, Discipline::Network];
    let takes_files = |found: &Found| !in_memory.contains(&found.rival.discipline);
    match field.found.iter().any(takes_files) {
        true => Tried::with_copying(&arguments.directory, arguments.max_write),
        false => Tried::nothing(),
    }
}

/// Errors: options that would be ignored, or make a race copy itself.
fn refuse_misuse(arguments: &Arguments) -> Result<(), Error> {
    let trees = arguments.trees();
    let is_of_copies = |state| !matches!(state, State::Hot | State::Cold);
    let wants_copies =
        trees != Trees::default() || arguments.states().into_iter().any(is_of_copies);
    if wants_copies && !field::has_copier(&arguments.rivals)? {
        let text = "--corpus, --tree, --files, --file-size, --tree-depth, --no-preserve and --state durable, \
                    refresh and unchanged are for programs that copy trees: name some, too, such as cp-a \
                    and tar, or name nobody";
        return Err(Error::Usage(text.to_owned()));
    }
    if !arguments.order.is_empty() && !arguments.rivals.iter().any(|name| name == "openblas") {
        return Err(Error::Usage("--order is for openblas: name it, too".to_owned()));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = arguments.commands.iter().find(|command| !names.insert(&command.name)) {
        return Err(Error::Usage(format!(
            "two commands are called {}: --command NAME=COMMAND",
            twice.name
        )));
    }
    if arguments.commands.is_empty() && arguments.commands().before.is_some() {
        return Err(Error::Usage("--before goes with --command".to_owned()));
    }
    if arguments.commands.len() == 1 {
        let text = "one command has nobody to race: give --command another time, too";
        return Err(Error::Usage(text.to_owned()));
    }
    trees.tree.map_or(Ok(()), |tree| place::refuse_overlap(&arguments.directory, &tree))
}

fn rounds(arguments: &Arguments) -> (u32, u32) {
    if arguments.quick { QUICK_ROUNDS } else { USUAL_ROUNDS }
}

/// Where `--max-write` is to be enough for the least rounds: making corpora, and a round of all
/// copiers each, take one part in so many.
fn tree_part(arguments: &Arguments, field: &Field) -> u64 {
    let least = arguments.rounds.unwrap_or(rounds(arguments).0);
    let runs = u64::from(least) * (field.found.len() as u64 + 1);
    if arguments.max_write.is_some() { runs + 1 } else { 1 }
}

fn race_all(
    arguments: &Arguments,
    ground: &Ground,
    races: Vec<Race<'static>>,
    (limit, begun_ns): (&WriteLimit, u64),
) -> Vec<Outcome> {
    let ends_ns = Cell::new(ends_ns(arguments, &races, (limit, begun_ns)));
    let left_ns = || match ends_ns.get() {
        u64::MAX => u64::MAX / 4,
        ends_ns => ends_ns.saturating_sub(SystemClock.now_ns()),
    };
    let mut made: BTreeSet<Made> = BTreeSet::new();
    let least = plan(arguments, 0, 0).min_trials;
    let mut progress = Progress::begin(time_ns(arguments, &races, limit));
    let mut runner = SystemRunner { cancel: ground.cancel };
    let mut rows: Vec<(usize, Vec<Outcome>)> = Vec::new();
    let most_removing_ns = versus::most_removing_ns(left_ns());
    let mut race_one = |place: usize, race: Race<'static>, share_ns: u64, most: u32| {
        let plan = plan(arguments, share_ns, ground.seed.wrapping_add(place as u64));
        let (min_trials, max_trials) = (plan.min_trials.min(most), plan.max_trials.min(most));
        // What it makes is removed in the end; for what others made there is time kept already.
        let new = race.made.clone().filter(|new| !made.contains(new));
        let removing_ns = new.as_ref().map_or(0, |new| new.removing_ns);
        let earlier_ns = match ends_ns.get() {
            u64::MAX => u64::MAX,
            _ if removing_ns > most_removing_ns => 0,
            ends_ns => ends_ns.saturating_sub(removing_ns),
        };
        let plan = Plan { min_trials, max_trials, ends_ns: earlier_ns, ..plan };
        let plan = plan.from(SystemClock.now_ns());
        let run = |sampler: &mut Sampler<'_>| race::run(race, &mut runner, limit, sampler);
        rows.push((place, progress.measure(share_ns, plan, ground.cancel, run)));
        if let Some(new) = new.filter(|new| earlier_ns > 0 && new.path.exists()) {
            made.insert(new);
            ends_ns.set(earlier_ns);
        }
    };
    let mut waiting: Vec<(usize, Race<'static>)> = races.into_iter().enumerate().collect();
    // Those that there was no time for get what the others leave, as long as it is enough for one.
    while !waiting.is_empty() && !ground.cancel.is_cancelled() {
        let is_in_time = match arguments.max_time {
            Some(_) => versus::in_time(waiting.iter().map(|(_, race)| race), least, left_ns()),
            None => vec![true; waiting.len()],
        };
        let is_last = !is_in_time.contains(&true);
        let (now, later): (Vec<_>, Vec<_>) =
            waiting.into_iter().zip(is_in_time).partition(|(_, is_in_time)| is_last || *is_in_time);
        waiting = later.into_iter().map(|(race, _)| race).collect();
        let mut now = now;
        if is_last {
            // Perhaps there is time for the shortest after all.
            now.sort_by_key(|((_, race), _)| versus::expected_ns(std::iter::once(race), 1));
        }
        let mut now: VecDeque<_> = now.into_iter().map(|(race, _)| race).collect();
        while !ground.cancel.is_cancelled() {
            let left: Vec<&Race<'_>> = now.iter().map(|(_, race)| race).collect();
            let share_ns = if is_last { 0 } else { versus::share_ns(&left, left_ns()) };
            let most = limit.rounds(round_bytes(left.into_iter()));
            let Some((place, race)) = now.pop_front() else { break };
            let most = if race.written_bytes > 0 { most } else { u32::MAX };
            race_one(place, race, share_ns, most);
        }
    }
    drop(progress);
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().flat_map(|(_, rows)| rows).collect()
}

fn plan(arguments: &Arguments, budget_ns: u64, seed: u64) -> Plan {
    let usual = Plan { min_trials: rounds(arguments).0, budget_ns, seed, ..Plan::default() };
    match (arguments.rounds, arguments.max_time) {
        (Some(rounds), _) => Plan { min_trials: rounds, max_trials: rounds, ..usual },
        (None, _) if arguments.quick => Plan { max_trials: usual.min_trials, ..usual },
        // Time that was asked for is used.
        (None, Some(_)) => {
            Plan { max_trials: MOST_ROUNDS, when_precise: WhenPrecise::Thin, ..usual }
        }
        (None, None) => usual,
    }
}

/// A line for each contestant that failed, and for what could not be removed. The rows of speeds
/// and pairs repeat what that of the time says.
fn note_failures(draft: &mut Draft, rows: &[Outcome]) {
    draft.note_failures(rows.iter().filter(|row| row.id != finish::RATIO));
    if !rows.is_empty() && rows.iter().all(|row| row.status == Status::Failed) {
        draft.fail(FAILED, "nobody could be raced".to_owned());
    }
}
