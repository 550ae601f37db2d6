//! The area as a whole: what it refuses, and that each row of a small run has a figure or a reason.

use flatout_measure::case::record;
use flatout_measure::clock::SystemClock;
use flatout_measure::guard::FakeWitness;
use flatout_measure::{Plan, Row, Sampler, Status};
use flatout_sys::CancelToken;

use super::*;

fn options(extent: Extent, threads: &[u32], bytes: Option<u64>) -> Options {
    let run = Run { extent, seed: 5, cancel: CancelToken::manual(), ..Run::default() };
    Options { run, threads: threads.to_vec(), bytes }
}

#[test]
fn too_few_bytes_for_the_threads_are_refused_by_name() {
    let error = check(&options(Extent::Full, &[8], Some(2047))).unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
    let text = error.to_string();
    assert!(
        text.starts_with("--size 2.0 KiB: 8 threads need at least 2 KiB") && !text.contains('\n'),
        "{text}"
    );
    assert!(check(&options(Extent::Full, &[], None)).is_ok());
    assert!(check(&options(Extent::Full, &[8], Some(2048))).is_ok());
}

#[test]
fn the_usual_threads_hold_the_number_of_cpus_once() {
    let threads = |extent, chosen: &[u32], cpus| options(extent, chosen, None).threads(cpus);
    assert_eq!(threads(Extent::Full, &[], 2), [1, 2, 4, 8]);
    assert_eq!(threads(Extent::Full, &[], 96), [1, 2, 4, 8, 96]);
    assert_eq!(threads(Extent::Quick, &[], 1), [1]);
    assert_eq!(threads(Extent::Few, &[], 6), [1, 6]);
    assert_eq!(threads(Extent::Full, &[3, 1, 3], 6), [1, 3]);
}

#[test]
fn machines_with_several_nodes_get_memory_per_number_of_threads() {
    let machine = Machine::default();
    let terms = Terms {
        extent: Extent::Quick,
        threads: vec![1, 4],
        quota_cpus: None,
        bytes: 1 << 20,
        room_bytes: 1 << 30,
        room_reason: String::new(),
        machine: &machine,
    };
    let rows = terms.rows().unwrap();
    let count = rows.len();
    assert_eq!(groups(rows.clone(), 1).len(), 1);
    assert_eq!(groups(rows.clone(), 0).len(), 1);
    let several = groups(rows, 2);
    assert_eq!(several.iter().map(Vec::len).sum::<usize>(), count);
    let threads: Vec<_> = several.iter().map(|group| group[0].parts.threads).collect();
    assert_eq!(threads, [1, 4]);
    assert!(
        several
            .iter()
            .all(|group| group.iter().all(|row| row.parts.threads == group[0].parts.threads))
    );
}

#[test]
fn the_last_caches_of_all_cpus_are_counted() {
    let root = tempfile::tempdir().unwrap();
    for (cpu, shared) in ["0-1", "0-1", "2-3", "2-3"].into_iter().enumerate() {
        let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/cache"));
        for (level, shared) in [("2", cpu.to_string()), ("3", shared.to_owned())] {
            let folder = folder.join(format!("index{level}"));
            std::fs::create_dir_all(&folder).unwrap();
            let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
            write("level", level);
            write("type", "Unified");
            write("size", "1024K");
            write("shared_cpu_list", &shared);
        }
    }
    let count = |cpus: &[usize]| last_caches(root.path(), cpus);
    assert_eq!((count(&[0, 1, 2, 3]), count(&[2, 3]), count(&[0])), (2, 1, 1));
    assert_eq!(count(&[9]), 1, "nobody says");
}

#[test]
fn every_row_of_bandwidth_has_a_figure_or_a_reason() {
    let machine = Machine { cpus: affinity::allowed_cpus().unwrap(), ..Machine::default() };
    let options = options(Extent::Full, &[1, 3], Some(1 << 20));
    let terms = Terms {
        extent: Extent::Full,
        threads: vec![1, 3],
        quota_cpus: None,
        bytes: 1 << 20,
        // Little, so that the test is short.
        room_bytes: 24 << 20,
        room_reason: "a test".to_owned(),
        machine: &machine,
    };
    let plan = Plan { min_trials: 1, max_trials: 1, budget_ns: u64::MAX / 4, ..Plan::default() };
    let mut witness = FakeWitness::quiet();
    let mut events = |_| {};
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock: &SystemClock,
        witness: &mut witness,
        events: &mut events,
        cancelled: &|| false,
    };
    let (rows, probe) = (terms.rows().unwrap(), ContentionProbe::default());
    let outcomes =
        record(measure_group(&options, rows.clone(), (&machine, &probe), &mut sampler).unwrap());
    assert_eq!(outcomes.len(), rows.len());
    for (row, outcome) in rows.iter().zip(&outcomes) {
        assert_eq!(row.id(), outcome.id);
        assert_eq!(row.parameters().to_json(), outcome.parameters);
        let has_figure = outcome.median.is_some_and(|figure| figure > 0.0);
        assert!(has_figure || outcome.status == Status::Unsupported, "{outcome:?}");
        assert!(outcome.ceiling.is_some(), "{outcome:?}");
    }
}

#[test]
fn every_picture_shows_rows_that_a_run_has() {
    let machine = Machine::default();
    let terms = Terms {
        extent: Extent::Full,
        threads: vec![1],
        quota_cpus: None,
        bytes: 1 << 20,
        room_bytes: 1 << 30,
        room_reason: String::new(),
        machine: &machine,
    };
    let rows = terms.rows().unwrap();
    let own = [working_set::ID].into_iter().chain(block::PATTERNS.map(|pattern| pattern.id));
    for id in own {
        let charts = charts(Extent::Full);
        let chart = charts.iter().find(|chart| chart.id == id).unwrap();
        for row in rows.iter().filter(|row| row.id() == id) {
            let parameters = row.parameters().to_json();
            assert!(parameters[&chart.x_parameter].is_number());
            assert!(chart.line_parameters.iter().all(|name| parameters.contains_key(name)));
        }
    }
}

/// A sampler whose time ends then.
fn in_room(ends_ns: u64, time_ns: u64, wanted_bytes: u64) -> (u64, String) {
    let plan = Plan { ends_ns, ..Plan::default() };
    let mut witness = FakeWitness::quiet();
    let sampler = Sampler {
        plan,
        clock: &SystemClock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| false,
    };
    in_time(&sampler, time_ns, wanted_bytes, &Room::of(Some(10_000_000), None, None))
}

#[test]
fn memory_is_cut_by_what_is_free_or_by_the_time_and_never_by_both() {
    let free = (6_000_000, "60 % of 10 MB that are free".to_owned());
    // What was wanted was had: the room is as large as it was, not as what was wanted of it.
    assert_eq!(in_room(1, u64::MAX, 1 << 20), free);
    assert_eq!(in_room(u64::MAX, 0, 1 << 20), free, "time has no end");
    let (bytes, reason) = in_room(1, 0, 1 << 20);
    assert_eq!((bytes, reason.as_str()), (0, "what memory can be had in the time"));
}
