//! Which way of sending TCP is the fastest here, and where its threads run: measured, before the rows.

use flatout_measure::{TrialError, statistics};
use flatout_sys::monotonic_ns;

use super::row::TestRow;
use super::sessions::Sessions;
use super::spec::{Placement, Sender, Spec};
use super::topology::Topology;
use super::{sample, times::Times};

/// Rounds in which each way runs once.
const ROUNDS: u16 = 3;
/// Length of a run before and within its window. Short: the rows themselves say it more exactly.
const WARM_NS: u64 = 8_000_000;
const WINDOW_NS: u64 = 20_000_000;

/// The choice.
#[derive(Debug, Clone)]
pub struct Best {
    /// The fastest.
    pub sender: Sender,
    /// Where the threads of a stream ran then.
    pub placement: Placement,
    /// How many ways were compared.
    pub ways: usize,
    /// What was measured.
    pub reason: String,
}

/// A run that is long enough to tell ways apart, however long the trials of the rows are: had they been
/// as long as a third of a second's trial, there would have been no time for a round of all.
fn short(spec: Spec, times: Times) -> Spec {
    let usual = Times { window_ns: None, ..times }.of(spec);
    Spec {
        streams: 1,
        bytes: 0,
        rate_per_s: 0,
        warm_ns: WARM_NS.max(usual.warm_ns / 2),
        window_ns: WINDOW_NS.max(usual.window_ns / 3).min(times.of(spec).window_ns),
        tail_ns: usual.tail_ns,
        ..spec
    }
}

/// Measures all ways, in turn, if a row wants the best one and all rounds are over before `ends_ns`, on the
/// system's clock: one short run of each would choose otherwise the next time. A way that this machine
/// cannot go is left out.
pub fn choose(
    tests: &[TestRow],
    sessions: &Sessions,
    (topology, times): (&Topology, Times),
    ends_ns: u64,
) -> Best {
    let test = tests.iter().find(|test| test.is_best_sender);
    let placement = test.map_or(Placement::Apart, |test| test.spec.placement);
    let reason =
        "not compared, for want of time (--max-time) or because clients are measured together";
    let reason = reason.to_owned();
    let unmeasured = Best { sender: Sender::Write, placement, ways: 1, reason };
    let Some(test) = test else { return unmeasured };
    let spec = short(test.spec, times);
    let has_choice = topology.is_one_machine && topology.cpus > 1;
    let placements = match test.is_best_placement && has_choice {
        true => &[Placement::Apart, Placement::Together][..],
        false => &[placement],
    };
    let ways = placements.iter().flat_map(|&placement| {
        Sender::ALL.iter().map(move |&sender| Spec { sender, placement, ..spec })
    });
    let mut rates: Vec<(Spec, Vec<f64>)> = ways.map(|way| (way, Vec::new())).collect();
    let round_ns = spec.whole_ns().saturating_mul(rates.len() as u64);
    for round in 0..ROUNDS {
        let left_ns = round_ns.saturating_mul((ROUNDS - round).into());
        if monotonic_ns().saturating_add(left_ns) > ends_ns {
            return unmeasured;
        }
        for (way, rates) in &mut rates {
            way.turn = round;
            match sessions.run(test.family, *way).and_then(|report| sample::throughput(&report)) {
                Ok(sample) if sample.amount > 0.0 => {
                    rates.push(sample.amount * 1e9 / sample.elapsed_ns as f64);
                }
                // Nothing came: the other end cannot, and the run was over before it said so.
                Ok(_) | Err(TrialError::Unsupported(_)) => {}
                // The other end cannot send like that, or lacks what it had for the first way.
                Err(TrialError::Failed(_)) if way.sender != Sender::Write => {}
                // The rows will say that the user wants to stop, that the server has gone, or what it lacks.
                Err(_) => return unmeasured,
            }
        }
    }
    let median = |(way, rates): &(Spec, Vec<f64>)| Some((*way, statistics::median(rates)?));
    let medians: Vec<(Spec, f64)> = rates.iter().filter_map(median).collect();
    let best = medians.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((Spec { sender, placement, .. }, _)) = best else { return unmeasured };
    let figure = |(way, rate): &(Spec, f64)| {
        format!("{} {} {:.2} GB/s", way.sender.name(), way.placement.name(), rate / 1e9)
    };
    let figures = medians.iter().map(figure).collect::<Vec<_>>().join(", ");
    let reason = format!("median of {ROUNDS} short runs: {figures}");
    Best { sender: *sender, placement: *placement, ways: medians.len(), reason }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;
    use crate::Extent;
    use crate::network::row::{self, ON_ONE_MACHINE};
    use crate::network::topology::Family;
    use crate::network::{Options, Selection, sessions};

    #[test]
    fn where_time_is_short_no_single_run_of_each_way_decides() {
        let usual = Options::augment_args(Command::new("network")).get_matches_from(["network"]);
        let options = Options::from_arg_matches(&usual).unwrap();
        let tests =
            row::tests(Extent::Few, &Selection::default(), Family::V4, None, &ON_ONE_MACHINE);
        let best = |rounds: u64| {
            sessions::with(&options, |sessions| {
                let topology = Topology { cpus: 2, ..Topology::of(&sessions.first()) };
                let round_ns = 8 * short(tests[0].spec, Times::default()).whole_ns();
                let ends_ns = monotonic_ns() + rounds * round_ns;
                choose(&tests, sessions, (&topology, Times::default()), ends_ns)
            })
            .unwrap()
        };
        // One round would have ended in time.
        let rule = best(2);
        assert_eq!((rule.sender, rule.placement, rule.ways), (Sender::Write, Placement::Apart, 1));
        assert!(rule.reason.contains("want of time"), "{}", rule.reason);
        let chosen = best(1000);
        assert!(chosen.ways > 1 && chosen.reason.contains("3 short runs"), "{}", chosen.reason);
    }

    #[test]
    fn long_trials_leave_time_for_the_choice_of_a_sender() {
        let [usual, long] = [None, Some(1_000_000_000)].map(|window_ns| {
            let spec = short(
                Spec::default(),
                Times { round_trip_ns: 40_000, window_ns, ..Times::default() },
            );
            spec.warm_ns + spec.window_ns + spec.tail_ns
        });
        assert_eq!(usual, long);
        // In a row it lasts for two periods of a quota.
        let times = Times { is_contained: true, ..Times::default() };
        assert_eq!(times.of(Spec::default()).window_ns, 200_000_000);
        // A quarter of the five seconds of a race has room for three rounds of eight ways.
        assert!(long * 8 * 3 < 1_250_000_000, "{long}");
    }
}
