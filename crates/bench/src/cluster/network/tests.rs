//! All pairs of threads that take each other for processes.

use std::rc::Rc;

use flatout_measure::clock::FakeClock;
use flatout_measure::guard::FakeWitness;
use flatout_measure::{Case, Measured, Plan, Sample, warning};
use flatout_sys::CancelToken;

use super::*;
use crate::tests::threads::threads;

fn run() -> Run {
    Run {
        extent: Extent::Full,
        is_quick: true,
        least_trials: 3,
        place: ".".into(),
        flatout: "flatout".into(),
        max_write_bytes: None,
        time_ns: None,
        rounds: Some(3),
        seed: 1,
        cancel: CancelToken::manual(),
        notice: None,
    }
}

fn measured(size: usize, extent: Extent) -> Found {
    let mut all = threads(size);
    let others: Vec<_> = all.drain(1..).collect();
    std::thread::scope(|scope| {
        for other in others {
            scope.spawn(move || {
                let wire: Shared = Rc::new(RefCell::new(other));
                super::super::follow(&wire, CancelToken::manual(), || ()).unwrap();
            });
        }
        let wire: Shared = Rc::new(RefCell::new(all.pop().unwrap()));
        let _over = super::super::Dismissal(wire.clone());
        let hosts = (0..size).map(|rank| format!("h{}", rank % 2)).collect();
        let options = Options { exchange_ns: Some(LEAST_EXCHANGE_NS) };
        let mut area = Network::new(wire, hosts, options);
        area.plan(&Run { extent, ..run() }).unwrap();
        let plan = Plan { min_trials: 3, max_trials: 3, ..Plan::default() };
        area.measure(&mut Sampler {
            plan,
            clock: &FakeClock::default(),
            witness: &mut FakeWitness::quiet(),
            events: &mut |_| (),
            cancelled: &|| false,
        })
        .unwrap()
    })
}

#[test]
fn each_pair_has_its_rows_and_all_have_figures() {
    // Messages of a mebibyte take most of the time.
    for (size, extent, swept) in
        [(2, Extent::Full, SWEPT_BYTES.len()), (3, Extent::Quick, 0), (4, Extent::Quick, 0)]
    {
        let found = measured(size, extent);
        let rows = |id: &str, key: &str| {
            let own = found.outcomes.iter().filter(|row| row.id == id);
            own.filter(|row| row.parameters.contains_key(key)).count()
        };
        let pairs = size * (size - 1) / 2;
        assert_eq!(rows("network/pair-latency", "to"), pairs);
        assert_eq!(rows("network/pair-one-way", "to"), 2 * pairs);
        assert_eq!(rows("network/pair-both-ways", "to"), pairs);
        assert_eq!(rows("network/all-to-all", "process"), size);
        assert_eq!(rows("network/all-to-one", "process"), size);
        assert_eq!(rows("network/message-rate", "to"), swept);
        for row in &found.outcomes {
            assert!(row.median.is_some_and(|median| median > 0.0), "{row:?}");
            assert!(
                row.audit["between_runs"]["deviation"].as_f64() > Some(0.0),
                "as of one process"
            );
            let is_of_all =
                !["from", "process"].iter().any(|key| row.parameters.contains_key(*key));
            let is_told = warning::has(&row.warnings, warning::SAME_HOST);
            assert_eq!(is_told, is_of_all && size > 2, "two hosts: {row:?}");
        }
    }
}

fn pairs(figures: &[(u64, u64, [f64; 3])]) -> Vec<Measured<NetworkRow>> {
    let row = row::rows(&["a".into(), "b".into(), "c".into()], Extent::Quick)[1];
    let mut trial = 0;
    let trial = |_| {
        let further = figures.iter().map(|(from, to, figures)| {
            let parameters =
                flatout_measure::row::Parameters::default().with("from", *from).with("to", *to);
            let amount = figures[trial % 3];
            flatout_measure::case::Further {
                parameters,
                amount,
                elapsed_ns: 1_000,
                ..Default::default()
            }
        });
        let further = further.collect();
        trial += 1;
        Ok(Sample { amount: 1.0, elapsed_ns: 1_000, further, ..Sample::default() })
    };
    let mut sampler = Sampler {
        plan: Plan { min_trials: 6, max_trials: 6, ..Plan::default() },
        clock: &FakeClock::default(),
        witness: &mut FakeWitness::quiet(),
        events: &mut |_| (),
        cancelled: &|| false,
    };
    sampler.run(vec![Case { row, trial: Box::new(trial) }])
}

#[test]
fn slow_and_asymmetric_pairs_are_named_and_noisy_ones_are_not() {
    let usual = [99.0, 100.0, 101.0];
    let all = |slow| {
        let mut rows = pairs(&[
            (0, 1, usual),
            (1, 0, usual),
            (0, 2, slow),
            (2, 0, usual),
            (1, 2, usual),
            (2, 1, usual),
        ]);
        row::name_pairs(&mut rows, &["a", "a", "b"].map(str::to_owned));
        let warnings = rows.remove(0).outcome.warnings;
        let text = |code: &str| {
            warnings.iter().find(|warning| warning.code == code).map(|warning| warning.text.clone())
        };
        (text(warning::SLOW_PAIRS), text(warning::ASYMMETRIC_PAIRS))
    };
    let (less, _) = all([69.0, 70.0, 71.0]);
    assert!(less.unwrap().contains("0 a to 2 b (0.70"), "in this run, whatever runs differ by");
    let (slow, asymmetric) = all([39.0, 40.0, 41.0]);
    assert!(slow.unwrap().contains("0 a to 2 b (0.40"));
    assert!(asymmetric.unwrap().contains("0 a to 2 b (0.40"));
    assert_eq!(all([10.0, 60.0, 120.0]), (None, None));
    assert_eq!(all(usual), (None, None));
}
