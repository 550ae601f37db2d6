//! A whole run on a real directory, with a clock that nobody waits for.

use std::fs::File;
use std::os::fd::AsFd;

use flatout_io::SizeClass;
use flatout_measure::clock::SystemClock;
use flatout_measure::guard::{FakeWitness, Reading};
use flatout_measure::units::parse_size;
use flatout_measure::{Sampler, Status, TrialError};
use flatout_sys::mapping::Window;

use super::*;

fn options(directories: Vec<PathBuf>, most_bytes: u64) -> Options {
    Options {
        directories,
        extent: Extent::Quick,
        max_write_bytes: Some(most_bytes),
        time_ns: None,
        tried: Vec::new(),
        machine: "m".to_owned(),
        kernel: String::new(),
        time: "2026-11-22T12:00:00Z".to_owned(),
        seed: 1,
        cancel: CancelToken::manual(),
    }
}

fn run_once(options: &Options) -> Tuned {
    run_beside(options, FakeWitness::quiet())
}

fn run_beside(options: &Options, mut witness: FakeWitness) -> Tuned {
    let plan = Plan { min_trials: 3, max_trials: 3, budget_ns: u64::MAX / 4, ..Plan::default() };
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock: &SystemClock,
        witness: &mut witness,
        events: &mut |_| {},
        cancelled: &|| options.cancel.is_cancelled(),
    };
    run(options, &mut sampler).unwrap()
}

#[test]
fn a_directory_that_is_named_twice_is_refused_before_anything_is_announced() {
    let place = tempfile::tempdir().unwrap();
    let (path, once_more) = (place.path().to_owned(), place.path().join("."));
    let refused = check(&options(vec![path, once_more], 2 << 30)).unwrap_err();
    assert!(
        matches!(&refused, Error::Usage(text) if text.ends_with("is named twice")),
        "{refused}"
    );
}

#[test]
fn each_kind_of_work_gets_settings_that_were_tried_and_a_limit_not_below_them() {
    let place = tempfile::tempdir().unwrap();
    let tuned = run_once(&options(vec![place.path().to_owned()], 2 << 30));
    assert_eq!(tuned.left_behind, Vec::<String>::new());
    for row in &tuned.outcomes {
        let is_good = row.median.is_some_and(|rate| rate > 0.0);
        // Beside others a file may not leave the page cache.
        let is_warm = row.warnings.iter().any(|it| it.text.contains("for the state \"cold\""));
        assert!(is_good || is_warm || row.status == Status::Unsupported, "{row:?}");
        // Bytes that were counted do not show that a device gave them.
        let is_proved = row.median.is_none() || row.audit["evidence"]["by"] != "bytes";
        assert!(row.id != "tune/read" || is_proved, "{row:?}");
    }
    let find = |work, size, cached| {
        let is_it = |entry: &&ProfileEntry| {
            (entry.key.work, entry.key.size, entry.key.cached) == (work, size, cached)
        };
        tuned.entries.iter().find(is_it)
    };
    for (work, size) in [
        (Work::Read, SizeClass::Large),
        (Work::Copy, SizeClass::Large),
        (Work::Copy, SizeClass::Tiny),
    ] {
        let entry = find(work, size, true).unwrap();
        assert!(entry.limit_bytes_per_s > 0.0 && entry.file_bytes > 0, "{entry:?}");
        let id = if work == Work::Read { "tune/read" } else { "tune/copy" };
        let mut chosen = tuned.outcomes.iter().filter(|row| row.id == id).filter(|row| {
            row.audit.get("chosen") == Some(&true.into())
                && row.parameters["cache_state"] == "hot"
                && row.parameters["file_bytes"] == entry.file_bytes
        });
        let row = chosen.next_back().unwrap();
        assert_eq!(row.parameters["threads"], entry.tuning.threads);
        let unit_bytes = if size == SizeClass::Tiny { 4096.0 } else { 1.0 };
        assert!(row.median.unwrap() * unit_bytes <= entry.limit_bytes_per_s * 1.000_001);
    }
    let tiny = find(Work::Copy, SizeClass::Tiny, true).unwrap();
    assert_eq!(tiny.file_bytes, 4096);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "all is removed");
}

/// As where somebody has the file mapped, or a filesystem keeps what it is told to drop.
#[test]
fn a_file_that_stays_cached_is_no_failure_of_a_setting() {
    let directory = tempfile::tempdir().unwrap();
    if scratch::on(directory.path()).unwrap().in_memory {
        return eprintln!("skipped: temporary files lie in memory, where nothing is ever cold");
    }
    let options = options(vec![directory.path().to_owned()], 2 << 30);
    let place = [TunedPlace::make(directory.path(), &options).unwrap()];
    let file = File::open(place[0].large_file()).unwrap();
    let length = file.metadata().unwrap().len() as usize;
    let held = Window::map(file.as_fd(), 0, length).unwrap();
    assert_ne!(held.view(0, length).xor32(), 0);
    let groups = group::all(&[(place[0].sizes, place[0].in_memory)], 2);
    let is_cold = |group: &&Group| group.work == Work::Copy && !group.cached;
    let group = groups.iter().rfind(is_cold).unwrap();
    let why = copying::copy((group, &place), &group.usual, &options).unwrap_err();
    assert!(matches!(&why, TrialError::NoMore(why) if why.code == warning::NOT_COLD), "{why:?}");
    drop((groups, held));
    place.into_iter().for_each(|place| place.leave().unwrap());
}

#[test]
fn a_setting_that_is_disturbed_in_every_trial_is_left_with_all_of_them() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let disturbed = |n| Reading { throttled_ns: n, ..Reading::default() };
    let witness = FakeWitness::new((0..10_000).map(disturbed));
    let tuned = run_beside(&options(vec![place.path().to_owned()], 2 << 30), witness);
    let measured = tuned.outcomes.iter().filter(|row| row.median.is_some());
    assert!(measured.clone().count() > 3, "{:?}", tuned.outcomes);
    for row in measured {
        assert_eq!(row.audit.get("spoil_reasons"), None, "{row:?}");
    }
}

#[test]
fn copies_between_two_places_have_entries_of_their_own() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap()];
    if scratch::on(places[0].path()).unwrap().in_memory {
        return eprintln!("skipped: temporary files lie in memory, too");
    }
    let directories = places.iter().map(|place| place.path().to_owned()).collect();
    let tuned = run_once(&options(directories, 5 << 30));
    let copies: Vec<_> =
        tuned.entries.iter().filter(|entry| entry.key.work == Work::Copy).collect();
    for (index, one) in copies.iter().enumerate() {
        assert!(copies[..index].iter().all(|other| other.key != one.key), "{:?}", one.key);
    }
    let crossing = copies.iter().filter(|entry| entry.key.source != entry.key.target).count();
    assert!(crossing >= 4, "{copies:?}");
    let in_memory = |identity: &str| identity.starts_with("tmpfs");
    let cold = tuned.entries.iter().filter(|entry| !entry.key.cached);
    assert!(cold.filter(|entry| in_memory(&entry.key.source)).count() == 0, "never cold");
}

#[test]
fn what_has_no_room_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    let small = options(vec![place.path().to_owned()], 1 << 20);
    let Err(Error::NoRoom(text)) = check(&small) else { panic!("it has room") };
    let (_, said) = text.split_once("--max-write must be at least ").unwrap();
    let enough = parse_size(said).unwrap();
    assert!(check(&options(vec![place.path().to_owned()], enough)).is_ok(), "{said}");
    let many = options(vec![place.path().to_owned(); MOST_DIRECTORIES + 1], 1 << 30);
    assert!(matches!(check(&many), Err(Error::Usage(_))));
    assert!(check(&options(vec!["/nowhere".into()], 1 << 30)).is_err());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn room_that_is_announced_is_no_less_than_what_lies_there() {
    let place = tempfile::tempdir().unwrap();
    for most in [2 << 30, 3 << 30, 40 << 30] {
        let options = options(vec![place.path().to_owned()], most);
        let room = room_bytes(&options).unwrap()[0];
        assert!(room <= most, "{room} of {most}");
    }
}

#[test]
fn every_setting_writes_as_much_as_is_counted() {
    let place = tempfile::tempdir().unwrap();
    for most in (2..40).map(|part| part << 28) {
        let options = options(vec![place.path().to_owned()], most);
        let Ok(sizes) = Sizes::of(place.path(), &options) else { continue };
        let bytes = sizes.file_bytes(SizeClass::Large);
        let settings = candidate::large(Work::Write, true, 2);
        assert!(settings.iter().all(|one| bytes % one.block_bytes == 0), "{bytes} of {most}");
    }
}

#[test]
fn the_slower_bytes_become_durable_the_fewer_are_announced() {
    let place = tempfile::tempdir().unwrap();
    let sizes = Sizes::of(place.path(), &options(vec![place.path().to_owned()], 8 << 30)).unwrap();
    let written = |durable_byte_ns| {
        let tried = Tried { durable_byte_ns, ..Tried::USUAL };
        group::in_time(&group::all(&[(sizes, false)], 2), &[tried], (3, 1000), 60e9).0
    };
    let [xfs, unknown, btrfs] = [0.28, Tried::USUAL.durable_byte_ns, 1.5].map(written);
    assert!(xfs > unknown && unknown > btrfs, "{xfs} {unknown} {btrfs}");
}

#[test]
fn where_there_was_no_time_for_any_setting_that_is_why_nothing_was_picked() {
    let place = tempfile::tempdir().unwrap();
    let options = options(vec![place.path().to_owned()], 2 << 30);
    let made = [TunedPlace::make(place.path(), &options).unwrap()];
    // The time is over, and nobody wants to stop.
    options.cancel.cancel();
    let plan = Plan { min_trials: 3, max_trials: 3, budget_ns: u64::MAX / 4, ..Plan::default() };
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock: &SystemClock,
        witness: &mut FakeWitness::quiet(),
        events: &mut |_| {},
        cancelled: &|| false,
    };
    let (limit, mut tuned) = (WriteLimit::new(Some(2 << 30), 0), Tuned::default());
    measure(&made, (&options, &limit), &mut sampler, &mut tuned);
    made.into_iter().for_each(|place| place.leave().unwrap());
    assert_eq!(tuned.entries, []);
    assert!(tuned.outcomes.iter().all(|row| row.median.is_none()), "{:?}", tuned.outcomes);
    assert!(tuned.unsure.iter().any(|work| work.contains("copy")), "{:?}", tuned.outcomes);
}

#[test]
fn a_wish_to_stop_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let options = options(vec![place.path().to_owned()], 2 << 30);
    options.cancel.cancel();
    let plan = Plan { min_trials: 1, max_trials: 1, budget_ns: u64::MAX / 4, ..Plan::default() };
    let mut sampler = Sampler {
        plan: plan.clone(),
        clock: &SystemClock,
        witness: &mut FakeWitness::quiet(),
        events: &mut |_| {},
        cancelled: &|| options.cancel.is_cancelled(),
    };
    let tuned = run(&options, &mut sampler);
    assert!(tuned.is_err() || tuned.unwrap().entries.is_empty());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
