//! All phases by threads that take each other for processes.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use clap::{Args, Command, FromArgMatches};
use flatout_measure::clock::SystemClock;
use flatout_measure::guard::FakeWitness;
use flatout_measure::{Outcome, Plan, Status, warning};
use flatout_sys::CancelToken;

use super::phase::Phase;
use super::*;
use crate::tests::threads::threads;

fn options(words: &[&str]) -> Options {
    let drop_caches =
        crate::option::flag([crate::cache::Clearing::File, crate::cache::Clearing::System]);
    let drop_caches = clap::Arg::new("drop_caches")
        .long("drop-caches")
        .action(clap::ArgAction::SetTrue)
        .value_parser(drop_caches);
    let command = Options::augment_args(Command::new("disk").no_binary_name(true).arg(drop_caches));
    Options::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn run(place: &Path, cancel: CancelToken) -> Run {
    Run {
        extent: Extent::Quick,
        is_quick: true,
        least_trials: 2,
        place: place.to_owned(),
        flatout: "flatout".into(),
        max_write_bytes: Some(64 << 20),
        time_ns: None,
        rounds: Some(2),
        seed: 1,
        cancel,
        notice: None,
    }
}

/// `watch` sees all that happens.
fn measured(size: usize, place: &Path, watch: impl Fn(CancelToken)) -> Result<Found, Error> {
    measured_in_rounds(2, size, place, watch)
}

fn measured_in_rounds(
    rounds: u32,
    size: usize,
    place: &Path,
    watch: impl Fn(CancelToken),
) -> Result<Found, Error> {
    let cancel = CancelToken::manual();
    let mut all = threads(size);
    let others: Vec<_> = all.drain(1..).collect();
    std::thread::scope(|scope| {
        for other in others {
            scope.spawn(move || {
                let wire: Shared = Rc::new(RefCell::new(other));
                super::super::follow(&wire, cancel, || ()).unwrap();
            });
        }
        let wire: Shared = Rc::new(RefCell::new(all.pop().unwrap()));
        let _over = super::super::Dismissal(wire.clone());
        let hosts = (0..size).map(|rank| format!("h{}", rank / 2)).collect();
        let mut area = Disk::new(wire, hosts, options(&["--time", "4ms", "--block-size", "64K"]));
        area.plan(&run(place, cancel)).unwrap();
        area.measure(&mut Sampler {
            plan: Plan { min_trials: rounds, max_trials: rounds, ..Plan::default() },
            clock: &SystemClock,
            witness: &mut FakeWitness::quiet(),
            events: &mut |_| watch(cancel),
            cancelled: &|| cancel.is_cancelled(),
        })
    })
}

#[test]
fn all_phases_have_figures_in_their_order_and_nothing_is_left() {
    for size in [2, 3, 4] {
        let place = tempfile::tempdir().unwrap();
        let found = measured(size, place.path(), |_| ()).unwrap();
        let all: Vec<&Outcome> = found.outcomes.iter().collect();
        let is_failed = |row: &&&Outcome| row.status == Status::Failed;
        assert_eq!(all.iter().find(is_failed), None);
        let of_all = |row: &&&Outcome| {
            ["across", "process"].iter().all(|key| !row.parameters.contains_key(*key))
        };
        let ids: Vec<&str> = all.iter().filter(of_all).map(|row| row.id.as_str()).collect();
        let mut phases = Vec::new();
        for phase in Phase::ALL {
            phases.extend(vec![phase.id(); if phase.makes() { 2 } else { 1 }]);
        }
        assert_eq!(ids, phases);
        let of_process = |row: &&&Outcome| row.parameters.contains_key("process");
        assert_eq!(all.iter().filter(of_process).count(), size * phases.len());
        for row in all.iter().filter(of_all) {
            assert!(row.median.is_some() && row.status != Status::Failed, "{row:?}");
            assert!(
                row.audit["between_runs"]["deviation"].as_f64() > Some(0.0),
                "as of one process"
            );
            let (least, most) = ("least_operations", "most_operations");
            let [least, most] = [least, most].map(|key| row.fact_count(key).unwrap());
            // A wear-out that is complete leaves all with as much.
            if row.audit.get("wear_out_complete") == Some(&true.into()) {
                let same = row.n == 1 || least <= most;
                assert!(same, "{row:?}");
            }
            assert!(row.latency.as_ref().is_some_and(|latency| latency.operations > 0));
        }
        // Of three processes two are on one host, which cannot both read what another one wrote.
        let read = all.iter().find(|row| row.id == "disk/shared-directory-read").unwrap();
        assert_eq!(warning::has(&read.warnings, warning::NOT_COLD), size < 4, "{read:?}");
        let find = all.iter().find(|row| row.id == "disk/find").unwrap();
        let warnings: Vec<&str> = find.warnings.iter().map(|warning| &*warning.code).collect();
        assert!(!warnings.contains(&"missing"), "{find:?}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn an_interrupt_ends_all_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let seen = std::cell::Cell::new(0);
    let found = measured(3, place.path(), |cancel| {
        seen.set(seen.get() + 1);
        if seen.get() == 7 {
            cancel.cancel();
        }
    });
    let found = found.unwrap();
    assert!(found.outcomes.iter().all(|row| row.status == Status::Interrupted));
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_process_that_cannot_go_on_fails_the_rows_with_its_name_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    // The file that is read is gone.
    let seen = std::cell::Cell::new(0);
    let found = measured(2, place.path(), |_| {
        seen.set(seen.get() + 1);
        if seen.get() == 10 {
            let made = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap();
            std::fs::remove_file(made.path().join("file-own-1")).unwrap();
        }
    });
    let found = found.unwrap();
    let failed = found.outcomes.iter().find(|row| row.status == Status::Failed).unwrap();
    assert!(failed.warnings[0].text.contains("process 0 on h0: cannot open"), "{failed:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn rounds_that_would_write_more_than_is_allowed_do_not_begin() {
    let place = tempfile::tempdir().unwrap();
    let found = measured_in_rounds(9, 2, place.path(), |_| ()).unwrap();
    for row in &found.outcomes {
        assert!(row.n <= 3, "{row:?}");
    }
    let is_limited = |row: &Outcome| row.warnings.iter().any(|why| why.code == "write_limit");
    assert!(found.outcomes.iter().any(is_limited), "{:?}", found.outcomes);
}

#[test]
fn what_is_announced_has_all_rounds_that_there_is_time_for() {
    let place = tempfile::tempdir().unwrap();
    let announced = |time_ns| {
        let wire: Shared = Rc::new(RefCell::new(threads(1).remove(0)));
        let options = options(&["--time", "4ms", "--size", "1M"]);
        let mut area = Disk::new(wire, vec!["h0".to_owned()], options);
        let run = run(place.path(), CancelToken::manual());
        let run = Run { max_write_bytes: None, time_ns, ..run };
        area.plan(&run).unwrap().most_write_bytes
    };
    let round_bytes = SHARING << 20;
    assert_eq!(announced(None), 3 * round_bytes, "one of two may be made again");
    assert_eq!(announced(Some(10_000_000_000)), (100 + SPOILED_ROUNDS) * round_bytes);
}
