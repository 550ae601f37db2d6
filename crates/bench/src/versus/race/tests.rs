//! Races with fake workloads, a fake runner and a fake clock.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use flatout_measure::case::WhenPrecise;
use flatout_measure::clock::FakeClock;
use flatout_measure::guard::{FakeWitness, Reading, Witness};
use flatout_measure::{Better, Key, Plan, Sampler, Status};

use flatout_sys::process::End;

use super::*;
use crate::versus::State;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// A workload whose contestants are told apart by their first argument.
#[derive(Default)]
struct Fake {
    /// How many runs were prepared.
    prepared: Rc<Cell<u64>>,
    /// Who prints nonsense, and in which round.
    wrong: Option<(usize, u32)>,
    impossible: bool,
    figures: Vec<f64>,
    /// The round whose state cannot be proved.
    unproved: Option<u32>,
    is_cold: bool,
    /// What each contestant keeps.
    fidelities: Vec<&'static str>,
    /// Who does something else.
    otherwise: Option<usize>,
}

impl Workload for Fake {
    fn prepare(&mut self, run: &Run<'_>) -> Result<Facts, Error> {
        self.prepared.set(self.prepared.get() + 1);
        if self.impossible {
            return Err(Error::NoRoom("the disk is full".to_owned()));
        }
        let is_proved = self.unproved != Some(run.round);
        let state = if self.is_cold { State::Cold } else { State::Hot };
        Ok(Facts::default()
            .with(Key::last("state"), run.round)
            .with(fact::source_cached_bytes(state), 100 - u64::from(run.round))
            .with(fact::CACHE_STATE_PROVED, is_proved))
    }

    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        Ok(vec![run.index.to_string().into()])
    }

    fn check(&mut self, run: &Run<'_>, _: &Account) -> Result<Checked, Error> {
        if self.wrong == Some((run.index, run.round)) {
            return Err(Error::NoRoom("the digest is wrong".to_owned()));
        }
        let figure = self.figures.get(run.index).copied();
        let mut facts = Facts::default();
        facts.set_known(fact::FIDELITY, self.fidelities.get(run.index).copied());
        let said = Warning::new(warning::DONE_OTHERWISE, "it has one thread");
        let warnings = self.otherwise.filter(|index| *index == run.index).map(|_| said);
        let warnings = warnings.into_iter().collect();
        Ok(Checked { figure, facts, warnings })
    }
}

/// Says how long each contestant takes, run by run; the last time is repeated.
struct Stopwatch<'a> {
    clock: &'a FakeClock,
    times: Vec<VecDeque<u64>>,
    /// Who crashes.
    crashes: Option<usize>,
    /// After how many runs the user wants to stop.
    interrupted_after: usize,
    is_interrupted: Rc<Cell<bool>>,
    runs: Vec<usize>,
}

impl<'a> Stopwatch<'a> {
    fn new(clock: &'a FakeClock, times: &[&[u64]]) -> Self {
        let times = times.iter().map(|times| times.iter().copied().collect()).collect();
        let (is_interrupted, runs) = Default::default();
        Self { clock, times, crashes: None, interrupted_after: usize::MAX, is_interrupted, runs }
    }
}

impl Runner for Stopwatch<'_> {
    fn run(&mut self, argv: &[OsString], _: u64) -> Result<Account, String> {
        if self.runs.len() == self.interrupted_after {
            self.is_interrupted.set(true);
            return Ok(Account { end: End::Cancelled, ..Account::default() });
        }
        let index: usize = argv[0].to_str().unwrap().parse().unwrap();
        self.runs.push(index);
        let times = &mut self.times[index];
        let elapsed_ns = if times.len() > 1 { times.pop_front().unwrap() } else { times[0] };
        self.clock.advance(elapsed_ns);
        let mut account = Account {
            elapsed_ns,
            user_ns: elapsed_ns / 2,
            system_ns: elapsed_ns / 4,
            peak_memory_bytes: index as u64 * 1000 + 5,
            ..Account::default()
        };
        if self.crashes == Some(index) {
            account.exit_code = 3;
            account.stderr = b"first\nout of luck\n".to_vec();
        }
        Ok(account)
    }
}

fn among(names: &[&str], track: Fake) -> Race<'static> {
    let contestant = |name: &&str| Contestant {
        name: (*name).to_owned(),
        version: "1".to_owned(),
        program: name.into(),
    };
    Race {
        test: "copy",
        parameters: Parameters::default(),
        printed: None,
        bytes: 0,
        made: None,
        written_bytes: 0,
        contestants: names.iter().map(contestant).collect(),
        expected_s: 1.0,
        workload: Box::new(track),
    }
}

fn raced(race: Race<'_>, plan: &Plan, watch: &mut Stopwatch<'_>) -> Vec<Outcome> {
    race_seen_by(race, plan, watch, FakeWitness::quiet())
}

fn race_seen_by(
    race: Race<'_>,
    plan: &Plan,
    watch: &mut Stopwatch<'_>,
    mut witness: FakeWitness,
) -> Vec<Outcome> {
    let (clock, is_interrupted) = (watch.clock, Rc::clone(&watch.is_interrupted));
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| is_interrupted.get(),
    };
    run(race, watch, &WriteLimit::new(None, 0), &mut sampler)
}

fn plan(budget_s: u64) -> Plan {
    Plan { budget_ns: budget_s * SECOND, ..Plan::default() }
}

fn ratio<'a>(rows: &'a [Outcome], against: &str) -> &'a Outcome {
    let is_it = |row: &&Outcome| row.id == finish::RATIO && row.parameters["against"] == against;
    rows.iter().find(is_it).unwrap()
}

#[test]
fn a_clear_race_ends_after_the_least_rounds_with_wins_ties_and_losses() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200], &[50], &[100]]);
    let rows =
        raced(among(&["flatout", "slow", "fast", "same"], Fake::default()), &plan(60), &mut watch);
    assert_eq!(watch.runs.len(), 4 * 6);
    for (name, median, result) in
        [("slow", 2.0, "win"), ("fast", 0.5, "loss"), ("same", 1.0, "tie")]
    {
        let row = ratio(&rows, name);
        assert_eq!((row.median, row.status), (Some(median), Status::Ok));
        assert_eq!((&row.audit["result"], &row.audit["rounds"]), (&result.into(), &6.into()));
        assert_eq!(
            (row.better, row.parameters["subject"].as_str()),
            (Better::Higher, Some("flatout"))
        );
    }
    let slow = &rows[1];
    assert_eq!(
        (slow.id.as_str(), slow.unit.as_str(), slow.median),
        ("versus/copy", "ns", Some(200.0))
    );
    assert_eq!(
        (&slow.audit["cpu_ns"], &slow.audit["peak_memory_bytes"]),
        (&150.0.into(), &1005.into())
    );
    assert_eq!((&slow.audit["command"], &slow.audit["state"]), (&"1".into(), &5.into()));
}

#[test]
fn a_state_that_one_run_could_not_prove_is_said_and_the_worst_counts() {
    let clock = FakeClock::new(0);
    for (state, unproved, cached) in [("hot", Some(2), 95), ("cold", None, 100)] {
        let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
        let track = Fake { unproved, is_cold: state == "cold", ..Fake::default() };
        let race = among(&["flatout", "dd"], track);
        let rows = raced(race, &plan(60), &mut watch);
        for row in &rows[..2] {
            assert_eq!(row.audit["cache_state_proved"], unproved.is_none());
            assert_eq!(row.audit["source_cached_bytes"], cached);
            let is_said = warning::has(&row.warnings, warning::STATE_UNPROVED);
            assert_eq!(is_said, unproved.is_some());
        }
    }
}

#[test]
fn a_ratio_of_two_who_do_not_keep_the_same_says_so() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200], &[100]]);
    let fidelities = vec!["archive", "contents", "archive"];
    let track = Fake { fidelities, otherwise: Some(2), ..Fake::default() };
    let rows = raced(among(&["cp-a", "xcp", "rsync-a"], track), &plan(60), &mut watch);
    let pair = |subject| {
        let is_it =
            |row: &&Outcome| row.parameters.get("subject").is_some_and(|name| name == subject);
        rows.iter().find(is_it).unwrap()
    };
    let said = &pair("xcp").warnings[0];
    assert_eq!(said.code, warning::KEEPS_LESS);
    assert!(said.text.starts_with("xcp keeps contents, cp-a archive"), "{said:?}");
    let [said] = &pair("rsync-a").warnings[..] else { panic!("one of both does otherwise") };
    assert_eq!((&*said.code, &*said.text), (warning::DONE_OTHERWISE, "it has one thread"));
}

#[test]
fn drift_hits_both_of_a_pair_and_leaves_their_ratio_alone() {
    let clock = FakeClock::new(0);
    let drifting: Vec<u64> = (1..100).map(|round| round * SECOND).collect();
    let twice: Vec<u64> = drifting.iter().map(|time| time * 2).collect();
    let mut watch = Stopwatch::new(&clock, &[&drifting, &twice]);
    let rows = raced(among(&["flatout", "dd"], Fake::default()), &plan(1000), &mut watch);
    assert_eq!((ratio(&rows, "dd").ci95, ratio(&rows, "dd").n), (Some([2.0, 2.0]), 6));
    assert_eq!(rows[0].status, Status::Unstable, "the times themselves say nothing definite");
}

#[test]
fn a_wide_ratio_is_raced_until_the_time_is_over_and_called_unstable() {
    let clock = FakeClock::new(0);
    let jumping: Vec<u64> =
        (0..100).map(|round| if round % 2 == 0 { SECOND } else { 3 * SECOND }).collect();
    let mut watch = Stopwatch::new(&clock, &[&jumping, &[SECOND]]);
    let rows = raced(among(&["flatout", "dd"], Fake::default()), &plan(30), &mut watch);
    let row = ratio(&rows, "dd");
    assert_eq!((row.status, row.n), (Status::Unstable, 10));
    assert!(warning::has(&row.warnings, warning::UNSTABLE));
    assert_eq!(row.audit["result"], "tie");
}

#[test]
fn too_little_time_gives_few_rounds_and_no_time_none() {
    for (seconds, rounds, code) in [(0, 0, warning::TIME_SHORT), (2, 2, warning::FEW_TRIALS)] {
        let clock = FakeClock::new(SECOND);
        let mut watch = Stopwatch::new(&clock, &[&[SECOND / 2], &[SECOND / 2]]);
        let plan = Plan { ends_ns: (1 + seconds) * SECOND, ..plan(60) };
        let rows = raced(among(&["flatout", "dd"], Fake::default()), &plan, &mut watch);
        assert_eq!(ratio(&rows, "dd").n, rounds);
        assert!(rows.iter().all(|row| warning::has(&row.warnings, code)), "{rows:?}");
        assert!(rows.iter().all(|row| row.status != Status::Failed), "{rows:?}");
        assert_eq!(clock.now_ns(), (1 + seconds) * SECOND);
    }
}

#[test]
fn a_race_that_was_given_its_time_uses_it_though_its_ratio_is_clear() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[SECOND / 10], &[SECOND / 5]]);
    let when_precise = WhenPrecise::Thin;
    let plan = Plan { when_precise, max_trials: 1000, ends_ns: 20 * SECOND, ..plan(20) };
    let rows = raced(among(&["flatout", "dd"], Fake::default()), &plan, &mut watch);
    assert_eq!(ratio(&rows, "dd").median, Some(2.0));
    assert!((19 * SECOND..=20 * SECOND).contains(&clock.now_ns()), "{}", clock.now_ns());
}

#[test]
fn a_run_that_the_end_of_the_time_ends_takes_nothing_from_the_others() {
    struct Slow<'a>(Stopwatch<'a>);
    impl Runner for Slow<'_> {
        fn run(&mut self, argv: &[OsString], limit_ns: u64) -> Result<Account, String> {
            match self.0.runs.len() {
                0..6 => self.0.run(argv, limit_ns),
                _ => Ok(Account { end: End::TimeOver, ..Account::default() }),
            }
        }
    }
    let clock = FakeClock::new(0);
    let mut slow = Slow(Stopwatch::new(&clock, &[&[SECOND], &[SECOND]]));
    let mut witness = FakeWitness::quiet();
    let mut sampler = Sampler {
        plan: Plan { ends_ns: 9 * SECOND, ..plan(60) },
        clock: &clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let rows = run(
        among(&["flatout", "dd"], Fake::default()),
        &mut slow,
        &WriteLimit::new(None, 0),
        &mut sampler,
    );
    assert_eq!(ratio(&rows, "dd").n, 3);
    assert!(rows.iter().all(|row| row.status != Status::Failed), "{rows:?}");
}

#[test]
fn without_flatout_all_are_held_against_the_first() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[50], &[400]]);
    let rows = raced(among(&["cp-a", "xcp", "tar"], Fake::default()), &plan(60), &mut watch);
    let found: Vec<_> = rows
        .iter()
        .filter(|row| row.id == finish::RATIO)
        .map(|row| {
            (row.parameters["subject"].clone(), row.parameters["against"].clone(), row.median)
        })
        .collect();
    let expected = [("xcp", Some(2.0)), ("tar", Some(0.25))];
    assert_eq!(found, expected.map(|(name, median)| (name.into(), "cp-a".into(), median)));
}

#[test]
fn who_crashes_is_out_and_the_others_go_on() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200], &[300]]);
    watch.crashes = Some(1);
    let rows = raced(among(&["flatout", "frail", "dd"], Fake::default()), &plan(60), &mut watch);
    let frail = &rows[1];
    assert_eq!((frail.status, frail.median), (Status::Failed, None));
    assert_eq!(frail.warnings[0].code, warning::FAILED);
    assert_eq!(frail.warnings[0].text, "frail failed with exit code 3: out of luck (1)");
    assert_eq!(
        (ratio(&rows, "frail").status, ratio(&rows, "frail").median),
        (Status::Failed, None)
    );
    assert_eq!((ratio(&rows, "dd").status, ratio(&rows, "dd").median), (Status::Ok, Some(3.0)));
    assert_eq!(watch.runs.iter().filter(|&&index| index == 1).count(), 1);
}

#[test]
fn a_wrong_result_is_a_failure_even_in_a_late_round() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    let track = Fake { wrong: Some((1, 4)), ..Fake::default() };
    let rows = raced(among(&["flatout", "dd"], track), &plan(60), &mut watch);
    assert_eq!(rows[1].warnings[0].text, "dd: the digest is wrong");
    assert_eq!(
        (rows[1].n, rows[0].status, ratio(&rows, "dd").status),
        (0, Status::Ok, Status::Failed)
    );
}

#[test]
fn a_state_that_cannot_be_had_fails_all() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    let track = Fake { impossible: true, ..Fake::default() };
    let rows = raced(among(&["flatout", "dd"], track), &plan(60), &mut watch);
    assert!(rows.iter().all(|row| row.status == Status::Failed && row.median.is_none()));
    assert!(rows[0].warnings[0].text.contains("the disk is full"));
    assert!(watch.runs.is_empty());
}

#[test]
fn an_interrupt_keeps_the_rounds_so_far() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    watch.interrupted_after = 5;
    let track = Fake::default();
    let rows = raced(among(&["flatout", "dd"], track), &plan(60), &mut watch);
    assert!(rows.iter().all(|row| row.status == Status::Interrupted && row.n == 2));
    assert!(warning::has(&ratio(&rows, "dd").warnings, warning::INTERRUPTED));
}

/// Readings around each run: in those named, a hypervisor took the CPU.
fn stolen_in(runs: std::ops::Range<u64>) -> FakeWitness {
    let mut stolen_ns = 0;
    let readings = (0..200_u64).flat_map(|run| {
        let at = |stolen_ns, begun: u64| Reading {
            steal_ns: stolen_ns,
            monotonic_ns: run * SECOND + begun,
            raw_ns: run * SECOND + begun,
            ..Reading::default()
        };
        let before = at(stolen_ns, 0);
        stolen_ns += if runs.contains(&run) { SECOND / 2 } else { 0 };
        [before, at(stolen_ns, SECOND / 2)]
    });
    FakeWitness::new(readings.collect::<Vec<_>>())
}

#[test]
fn a_spoiled_round_is_discarded_and_counted() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    let race = among(&["flatout", "dd"], Fake::default());
    let rows = race_seen_by(race, &plan(60), &mut watch, stolen_in(2..3));
    assert_eq!(watch.runs.len(), 2 * 7);
    let flatout = &rows[0];
    assert_eq!((flatout.n, flatout.status), (6, Status::Ok));
    assert_eq!(flatout.audit["intervals_spoiled"], 1);
    assert_eq!(flatout.audit["spoil_reasons"]["stolen time"], 1);
}

/// A witness that sees a hypervisor take the CPU whenever a run is prepared.
struct Unquiet<'a> {
    clock: &'a FakeClock,
    prepared: Rc<Cell<u64>>,
}

impl Witness for Unquiet<'_> {
    fn read(&mut self) -> Reading {
        let now_ns = self.clock.now_ns();
        let steal_ns = self.prepared.get() * SECOND;
        Reading { steal_ns, monotonic_ns: now_ns, raw_ns: now_ns, ..Reading::default() }
    }
}

#[test]
fn what_happens_while_a_run_is_prepared_spoils_no_round() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[SECOND], &[2 * SECOND]]);
    let track = Fake::default();
    let mut witness = Unquiet { clock: &clock, prepared: Rc::clone(&track.prepared) };
    let mut sampler = Sampler {
        plan: plan(60),
        clock: &clock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let rows =
        run(among(&["flatout", "dd"], track), &mut watch, &WriteLimit::new(None, 0), &mut sampler);
    assert_eq!((rows[0].n, rows[0].status), (6, Status::Ok));
    assert_eq!(rows[0].audit["intervals_spoiled"], 0);
}

#[test]
fn where_most_rounds_are_spoiled_they_count_and_say_so() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    let race = among(&["flatout", "dd"], Fake::default());
    let rows = race_seen_by(race, &plan(60), &mut watch, stolen_in(0..200));
    assert_eq!(watch.runs.len(), 2 * 6);
    let row = ratio(&rows, "dd");
    assert_eq!((row.n, row.status, row.median), (6, Status::Degraded, Some(2.0)));
    assert!(warning::has(&row.warnings, warning::DISTURBED));
}

#[test]
fn rounds_asked_for_exactly_are_so_many_even_when_all_are_spoiled() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    let plan = Plan { min_trials: 2, max_trials: 2, ..plan(60) };
    let race = among(&["flatout", "dd"], Fake::default());
    let rows = race_seen_by(race, &plan, &mut watch, stolen_in(0..200));
    assert_eq!((ratio(&rows, "dd").n, watch.runs.len()), (2, 4));
}

#[test]
fn printed_figures_are_compared_in_their_own_direction() {
    for (unit, expected) in [(Unit::BytesPerSecond, 4.0), (Unit::Nanoseconds, 0.25)] {
        let clock = FakeClock::new(0);
        let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
        let track = Fake { figures: vec![40.0, 10.0], ..Fake::default() };
        let printed = Some(unit);
        let race = Race { printed, ..among(&["flatout", "fio"], track) };
        let rows = raced(race, &plan(60), &mut watch);
        assert_eq!((ratio(&rows, "fio").median, rows[0].median), (Some(expected), Some(40.0)));
        assert_eq!((rows[0].unit.as_str(), rows[0].better), (unit.name(), unit.better()));
    }
}

#[test]
fn a_program_that_prints_no_figure_fails() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[100], &[200]]);
    let printed = Some(Unit::BytesPerSecond);
    let track = Fake { figures: vec![40.0], ..Fake::default() };
    let rows = raced(Race { printed, ..among(&["flatout", "fio"], track) }, &plan(60), &mut watch);
    assert_eq!((rows[0].status, rows[1].status), (Status::Ok, Status::Failed));
}

#[test]
fn everybody_runs_once_a_round_in_an_order_that_the_seed_decides() {
    let order = |seed| {
        let clock = FakeClock::new(0);
        let mut watch = Stopwatch::new(&clock, &[&[100], &[200], &[300]]);
        let plan = Plan { seed, ..plan(60) };
        raced(among(&["a", "b", "c"], Fake::default()), &plan, &mut watch);
        watch.runs
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    for round in order(3).chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2]);
    }
}

#[test]
fn speeds_stand_beside_times_where_the_race_asks_for_them() {
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[SECOND], &[2 * SECOND]]);
    let race = Race { bytes: 1000, ..among(&["flatout", "dd"], Fake::default()) };
    let rows = raced(race, &plan(60), &mut watch);
    let speeds: Vec<_> = rows.iter().filter(|row| row.id == "versus/copy-speed").collect();
    assert_eq!((speeds.len(), speeds[0].median, speeds[1].median), (2, Some(1000.0), Some(500.0)));
    assert_eq!((speeds[0].unit.as_str(), speeds[0].better), ("bytes/s", Better::Higher));
}

#[test]
fn a_race_ends_before_a_round_that_would_write_more_than_may_be() {
    const TB: u64 = 1 << 40;
    let clock = FakeClock::new(0);
    let mut watch = Stopwatch::new(&clock, &[&[SECOND], &[2 * SECOND]]);
    let race = Race { written_bytes: TB, ..among(&["flatout", "dd"], Fake::default()) };
    let mut sampler = Sampler {
        plan: plan(600),
        clock: &clock,
        witness: &mut FakeWitness::quiet(),
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let rows = run(race, &mut watch, &WriteLimit::new(Some(10 * TB), 3 * TB), &mut sampler);
    assert_eq!(watch.runs.len(), 3 * 2, "7 TB are left, 2 for a round");
    assert!(warning::has(&rows[0].warnings, warning::WRITE_LIMIT), "{:?}", rows[0].warnings);
}
