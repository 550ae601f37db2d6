//! What races take and write, as far as can be said beforehand.

use flatout_bench::versus::race::Race;
use flatout_bench::versus::rival::Discipline;
use flatout_bench::versus::{self, Ground};
use flatout_bench::write_limit::WriteLimit;
use flatout_measure::clock::{Clock, SystemClock};
use flatout_report::quantity;
use flatout_report::text::Joined;

use super::{QUICK_ROUNDS, SECOND_NS, USUAL_ROUNDS, plan, rounds};
use crate::announcement;
use crate::arguments::versus::Versus as Arguments;

/// Time that even the shortest races have together, unless they are quick.
const LEAST_NS: u64 = 2 * SECOND_NS;
/// What is kept of the time asked for to remove targets and to write down what was found: one part
/// in so many.
const CLOSING_PART: u64 = 12;
/// How much longer than announced races may take until each has its least rounds: one part in so
/// many.
const STRETCH_PART: u64 = 4;

/// Bytes that making what is read likely writes, and that the rounds do: where time is limited, of the races
/// that there is time for in what is left of it; and how many these are.
pub(super) fn written_bytes(
    arguments: &Arguments,
    races: &[Race<'_>],
    (limit, left_ns): (&WriteLimit, Option<u64>),
) -> (u64, usize) {
    let planned = planned_rounds(arguments, races, limit);
    let Some(time_ns) = left_ns else {
        let rounds = round_bytes(races.iter()).saturating_mul(planned.into());
        return (versus::made_bytes(races.iter()).saturating_add(rounds), races.len());
    };
    let mut is_taken = versus::in_time(races.iter(), plan(arguments, 0, 0).min_trials, time_ns);
    if !is_taken.contains(&true) {
        // The shortest is begun nevertheless.
        let expected_ns = |at: &usize| versus::expected_ns(races[*at..].iter().take(1), 1);
        (0..races.len()).min_by_key(expected_ns).into_iter().for_each(|at| is_taken[at] = true);
    }
    let taken = || races.iter().zip(&is_taken).filter(|(_, taken)| **taken).map(|(race, _)| race);
    let rounds = planned.min(limit.rounds(round_bytes(taken())));
    let [made_s, all_s] = [0, rounds].map(|rounds| versus::expected_ns(taken(), rounds) as f64);
    let share = (time_ns as f64 - made_s).max(0.0) / (all_s - made_s).max(1.0);
    let rounds_bytes = round_bytes(taken()) as f64 * f64::from(rounds) * share.min(1.0);
    (versus::made_bytes(taken()) + rounds_bytes as u64, taken().count())
}

/// Whether half of the races, the shortest, likely have enough rounds in this time to show how far they differ.
pub(super) fn has_time(races: &[Race<'_>], time_ns: u64) -> bool {
    let races: Vec<&Race<'_>> = races.iter().collect();
    let fitting = versus::fitting(&races, QUICK_ROUNDS.0, time_ns);
    2 * fitting.into_iter().filter(|fits| *fits).count() >= races.len()
}

/// What of the time asked for is there to race in, and to remove what is made.
fn racing_ns(asked_ns: u64) -> u64 {
    asked_ns - asked_ns / CLOSING_PART
}

/// What is left of it, where time is limited.
pub(super) fn left_ns(arguments: &Arguments, begun_ns: u64) -> Option<u64> {
    let ends_ns = begun_ns.saturating_add(racing_ns(arguments.max_time?));
    Some(ends_ns.saturating_sub(SystemClock.now_ns()))
}

pub(super) fn round_bytes<'r, 'a: 'r>(races: impl Iterator<Item = &'r Race<'a>>) -> u64 {
    races.map(Race::round_bytes).fold(0, u64::saturating_add)
}

/// Rounds for which the time is planned: where nobody limits it, short races go on.
fn planned_rounds(arguments: &Arguments, races: &[Race<'_>], limit: &WriteLimit) -> u32 {
    let most = plan(arguments, 0, 0).max_trials;
    let usual = rounds(arguments).1;
    let planned = match arguments.max_time {
        None if arguments.rounds.is_none() && most > usual => {
            let usual_ns = versus::expected_ns(races.iter(), usual);
            let longer = stretched(LEAST_NS) as f64 / usual_ns.max(1) as f64;
            ((f64::from(usual) * longer) as u32).clamp(usual, most)
        }
        _ => most,
    };
    planned.min(limit.rounds(round_bytes(races.iter())))
}

/// The time that everything takes: where there is a limit, up to it, unless the most rounds end
/// before.
pub(super) fn time_ns(arguments: &Arguments, races: &[Race<'_>], limit: &WriteLimit) -> u64 {
    let planned = planned_rounds(arguments, races, limit);
    let expected_ns = versus::expected_ns(races.iter(), planned);
    arguments.max_time.map_or(expected_ns, |asked_ns| expected_ns.min(asked_ns))
}

/// When everything is over, on the system's clock: asked for exactly, rounds are raced whatever
/// time they take, unless that is limited.
pub(super) fn ends_ns(
    arguments: &Arguments,
    races: &[Race<'_>],
    (limit, begun_ns): (&WriteLimit, u64),
) -> u64 {
    match (arguments.max_time, arguments.rounds) {
        (Some(asked_ns), _) => begun_ns.saturating_add(racing_ns(asked_ns)),
        (None, Some(_)) => u64::MAX,
        (None, None) => {
            let time_ns = time_ns(arguments, races, limit).max(LEAST_NS);
            SystemClock.now_ns().saturating_add(stretched(time_ns))
        }
    }
}

/// What is said before anything is done.
pub(super) fn announcement(
    arguments: &Arguments,
    ground: &Ground,
    races: &[Race<'_>],
    (needed_bytes, written, time_ns): (u64, &str, u64),
    in_time: usize,
) -> String {
    let all = quantity::counted(races.len(), "race");
    let all = if in_time < races.len() { format!("the shortest {in_time} of {all}") } else { all };
    let time = announcement::time(time_ns);
    let is_short = plan(arguments, 0, 0).max_trials < USUAL_ROUNDS.0;
    let few = match (is_short, arguments.quick && arguments.commands.is_empty()) {
        (true, true) => ", few rounds of small work: nobody wins or loses",
        (true, false) => ", few rounds: nobody wins or loses",
        (false, true) => ", small work",
        (false, false) => "",
    };
    // Of races for which there is no time none are made.
    let most = if arguments.max_time.is_some() { "at most " } else { "" };
    let size = quantity::rounded_size(needed_bytes);
    let files = format!("files of {most}{size} in {:?}, writes {written}", arguments.directory);
    let has = |disciplines: &[Discipline]| {
        ground.found.iter().any(|found| disciplines.contains(&found.rival.discipline))
    };
    let work = [
        (needed_bytes > 0, files.as_str()),
        (has(&[Discipline::Matrix]), "matrices in memory"),
        (has(&[Discipline::Stream]), "arrays in memory"),
        (!ground.commands.commands.is_empty(), "commands of yours"),
        (has(&[Discipline::Network]), "connections over loopback"),
    ];
    let rivals = ground.found.iter().map(|found| found.rival.name);
    let commands = ground.commands.commands.iter().map(|command| &*command.name);
    format!(
        "racing {}: {all}, {}, takes about {time}{few}",
        rivals.chain(commands).joined(", "),
        work.iter().filter(|(is, _)| *is).map(|(_, what)| what).joined(", "),
    )
}

fn stretched(time_ns: u64) -> u64 {
    time_ns.saturating_add(time_ns / STRETCH_PART)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use flatout_bench::Error;
    use flatout_bench::versus::race::{Argv, Checked, Contestant, Made, Run, Workload};
    use flatout_measure::row::Parameters;
    use flatout_sys::process::Account;

    use super::*;
    use crate::arguments::{Arguments as Parsed, Command};

    struct Nothing;

    impl Workload for Nothing {
        fn invocation(&mut self, _run: &Run<'_>) -> Result<Argv, Error> {
            Ok(Argv::new())
        }

        fn check(&mut self, _run: &Run<'_>, _account: &Account) -> Result<Checked, Error> {
            Ok(Checked::default())
        }
    }

    fn race(bytes: u64, expected_s: f64) -> Race<'static> {
        Race {
            test: versus::copy::TEST,
            parameters: Parameters::default(),
            printed: None,
            bytes,
            made: Some(Made {
                path: bytes.to_string().into(),
                bytes,
                making_ns: bytes * 5 / 2,
                removing_ns: 0,
            }),
            written_bytes: bytes,
            contestants: vec![Contestant::flatout("flatout".as_ref()); 2],
            expected_s,
            workload: Box::new(Nothing),
        }
    }

    #[test]
    fn there_is_time_where_half_of_the_races_have_three_rounds() {
        let races = [race(1 << 20, 0.5), race(1 << 30, 60.0), race(1 << 20, 1.0)];
        // Making what is read takes the time of a run.
        let two = &races[..2];
        assert!(has_time(two, SECOND_NS * 11 / 3) && !has_time(two, SECOND_NS * 11 / 4));
        let three = &races;
        assert!(has_time(three, SECOND_NS * 11) && !has_time(three, SECOND_NS * 10));
    }

    #[test]
    fn what_there_is_no_time_for_is_not_announced() {
        let written = |words: &[&str]| {
            let words = ["flatout", "versus", "cp-a"].iter().chain(words);
            let Command::Versus(arguments) = Parsed::try_parse_from(words).unwrap().command else {
                panic!("another command");
            };
            let races = [race(1 << 20, 0.05), race(1 << 30, 60.0)];
            let left_ns = arguments.max_time.map(racing_ns);
            written_bytes(&arguments, &races, (&WriteLimit::new(None, 0), left_ns))
        };
        let rounds = |rounds: u64| (1 + 2 * rounds) * ((1 << 30) + (1 << 20));
        assert_eq!(["2", "20"].map(|most| written(&["-n", most])), [2, 20].map(|n| (rounds(n), 2)));
        let (short, in_time) = written(&["--max-time", "4s"]);
        assert_eq!(in_time, 1, "of two");
        assert!((70 << 20..80 << 20).contains(&short), "36 rounds of the short race: {short}");
        let (shortest, _) = written(&["--max-time", "100ms"]);
        assert!((1 << 20..4 << 20).contains(&shortest), "it is begun nevertheless: {shortest}");
    }
}
